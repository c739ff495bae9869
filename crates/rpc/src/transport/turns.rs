//! The calls of one connection that are made [in order](crate::Handler::in_order).

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::Notify;

#[derive(Debug, Default)]
pub(crate) struct Order {
    waiting: Mutex<Waiting>,
    /// Whenever one has gone.
    changed: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    last: u64,
    numbers: BTreeSet<u64>,
}

/// The place of a message among those that may have such calls. Dropped when they have been made,
/// or when it is clear that it has none.
#[derive(Debug)]
pub(crate) struct Turn {
    order: Arc<Order>,
    number: u64,
}

impl Order {
    /// The place behind all that have come so far.
    pub(crate) fn line_up(self: &Arc<Self>) -> Turn {
        let mut waiting = self.waiting();
        waiting.last += 1;
        let number = waiting.last;
        waiting.numbers.insert(number);
        Turn { order: Arc::clone(self), number }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().expect("nothing panics while it is held")
    }
}

impl Turn {
    /// Waits until all that came before have gone.
    pub(crate) async fn come(&self) {
        loop {
            let mut changed = pin!(self.order.changed.notified());
            changed.as_mut().enable();
            if self.order.waiting().numbers.first() == Some(&self.number) {
                return;
            }
            changed.await;
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.order.waiting().numbers.remove(&self.number);
        self.order.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::time::timeout;

    #[tokio::test]
    async fn who_came_first_goes_first() {
        let order = Arc::<Order>::default();
        let [first, second, third] = [(); 3].map(|()| order.line_up());
        first.come().await;
        let mut comes = pin!(third.come());
        assert!(timeout(Duration::ZERO, &mut comes).await.is_err());
        drop(first);
        assert!(timeout(Duration::ZERO, &mut comes).await.is_err());
        drop(second);
        comes.await;
    }
}
