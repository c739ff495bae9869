//! Those who wait until a transaction is in a canonical block.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

use alloy_primitives::B256;
use engine::{ChainEvent, Engine, WitnessSize};
use tokio::sync::watch;

use crate::observe::Observer;

/// The transactions that are waited for.
#[derive(Default)]
pub(crate) struct Inclusions(Mutex<HashMap<B256, watch::Sender<()>>>);

/// Waits for one transaction.
#[derive(Debug)]
pub(crate) struct Inclusion {
    all: Arc<Inclusions>,
    hash: B256,
    told: Option<watch::Receiver<()>>,
}

impl Inclusions {
    /// Begins to wait for a transaction.
    pub(crate) fn wait_for(self: &Arc<Self>, hash: B256) -> Inclusion {
        let told = self.waiting().entry(hash).or_default().subscribe();
        Inclusion { all: self.clone(), hash, told: Some(told) }
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<B256, watch::Sender<()>>> {
        self.0.lock().expect("nothing panics while it is held")
    }
}

impl fmt::Debug for Inclusions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inclusions").field("waiting", &self.waiting().len()).finish()
    }
}

impl Inclusion {
    /// Returns when a block with the transaction became canonical since this was called last, or
    /// since the waiting began; perhaps also when none did.
    pub(crate) async fn next(&mut self) {
        if let Some(told) = &mut self.told {
            // The sender lives as long as this.
            told.changed().await.unwrap_or_default();
        }
    }
}

impl Drop for Inclusion {
    fn drop(&mut self) {
        let mut waiting = self.all.waiting();
        self.told = None;
        if waiting.get(&self.hash).is_some_and(|sender| sender.receiver_count() == 0) {
            waiting.remove(&self.hash);
        }
    }
}

/// Tells those who wait of the transactions of new blocks.
#[derive(Debug)]
pub(crate) struct InclusionWatch {
    pub(crate) engine: Arc<Engine>,
    pub(crate) inclusions: Arc<Inclusions>,
}

impl Observer for InclusionWatch {
    fn event(&mut self, event: &ChainEvent, _: Option<WitnessSize>) {
        let ChainEvent::Chosen(change) = event else { return };
        for hash in &change.joined {
            if self.inclusions.waiting().is_empty() {
                return;
            }
            let Ok(Some(record)) = self.engine.block(*hash) else { continue };
            let waiting = self.inclusions.waiting();
            for transaction in &record.block.body.transactions {
                if let Some(sender) = waiting.get(transaction.hash()) {
                    sender.send_replace(());
                }
            }
        }
    }

    fn lost(&mut self, _: u64) {
        // They look for themselves.
        self.inclusions.waiting().values().for_each(|sender| sender.send_replace(()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_who_waits_is_told_and_nothing_is_left_behind() {
        let all = Arc::new(Inclusions::default());
        let [one, other] = [1, 2].map(B256::repeat_byte);
        let mut waiting = [one, one, other].map(|hash| all.wait_for(hash));
        assert_eq!(all.waiting().len(), 2);
        // Before they wait, which they notice all the same.
        all.waiting()[&one].send_replace(());
        waiting[0].next().await;
        waiting[1].next().await;
        let [first, second, third] = waiting;
        drop((first, third));
        assert_eq!(all.waiting().len(), 1);
        drop(second);
        assert!(all.waiting().is_empty());
    }
}
