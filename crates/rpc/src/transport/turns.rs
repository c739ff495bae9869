//! The order of the calls of one connection that are made [in order](crate::Method::in_order).

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::Notify;

/// The messages of one connection that wait for their turn.
#[derive(Debug, Default)]
pub(crate) struct TurnQueue {
    numbers: Mutex<TurnNumbers>,
    /// Notified whenever a turn has ended.
    changed: Notify,
}

#[derive(Debug, Default)]
struct TurnNumbers {
    last: u64,
    waiting: BTreeSet<u64>,
}

/// The turn of a message that may have such calls. Dropped when these have been made, or when it
/// is clear that the message has none.
#[derive(Debug)]
pub(crate) struct Turn {
    queue: Arc<TurnQueue>,
    number: u64,
}

impl TurnQueue {
    /// A turn after all that were given out so far.
    pub(crate) fn enter(self: &Arc<Self>) -> Turn {
        let mut numbers = self.numbers();
        numbers.last += 1;
        let number = numbers.last;
        numbers.waiting.insert(number);
        Turn { queue: Arc::clone(self), number }
    }

    fn numbers(&self) -> MutexGuard<'_, TurnNumbers> {
        self.numbers.lock().expect("nothing panics while it is locked")
    }
}

impl Turn {
    /// Waits until all turns before this one have ended.
    pub(crate) async fn wait(&self) {
        loop {
            let mut changed = pin!(self.queue.changed.notified());
            changed.as_mut().enable();
            if self.queue.numbers().waiting.first() == Some(&self.number) {
                return;
            }
            changed.await;
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.queue.numbers().waiting.remove(&self.number);
        self.queue.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::time::timeout;

    #[tokio::test]
    async fn turns_come_in_the_order_in_which_they_were_given_out() {
        let queue = Arc::<TurnQueue>::default();
        let [first, second, third] = [(); 3].map(|()| queue.enter());
        first.wait().await;
        let mut comes = pin!(third.wait());
        assert!(timeout(Duration::ZERO, &mut comes).await.is_err());
        drop(first);
        assert!(timeout(Duration::ZERO, &mut comes).await.is_err());
        drop(second);
        comes.await;
    }
}
