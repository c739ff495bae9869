use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::sync::Arc;

use alloy_primitives::Address;

use crate::book::Book;
use crate::entry::{Entry, Pooled, Worth};

/// The pending transactions in the order in which they are worth a place in a block: by effective
/// tip, the one that came first before others with the same tip, those of a sender by nonce.
///
/// It is a copy: what enters or leaves the pool later does not change it.
#[derive(Debug)]
pub struct Best {
    base_fee: u64,
    /// The next transaction of each sender.
    next: BinaryHeap<(Worth, Address)>,
    /// All transactions of each sender, by nonce, that did not come yet.
    senders: HashMap<Address, VecDeque<Entry>>,
}

impl Best {
    pub(crate) fn new(book: &Book, base_fee: u64) -> Self {
        let senders = book.accounts.iter().filter(|(_, account)| account.pending > 0);
        let senders = senders
            .map(|(sender, account)| (*sender, account.pending_entries().cloned().collect()));
        let senders: HashMap<Address, VecDeque<Entry>> = senders.collect();
        let mut best = Self { base_fee, next: BinaryHeap::new(), senders };
        let addresses: Vec<_> = best.senders.keys().copied().collect();
        addresses.into_iter().for_each(|sender| best.line_up(sender));
        best
    }

    /// Leaves out all further transactions of a sender: one of them cannot run or does not fit, so
    /// that those after it cannot run either.
    pub fn skip_sender(&mut self, sender: Address) {
        self.senders.remove(&sender);
    }

    /// Has the sender's next transaction wait for its turn; where its fee does not cover the base
    /// fee, the sender has none.
    fn line_up(&mut self, sender: Address) {
        let Some(entry) = self.senders.get(&sender).and_then(VecDeque::front) else { return };
        let worth = entry.worth(self.base_fee);
        if worth.tip >= 0 {
            self.next.push((worth, sender));
        }
    }
}

impl Iterator for Best {
    type Item = Arc<Pooled>;

    fn next(&mut self) -> Option<Arc<Pooled>> {
        loop {
            let (_, sender) = self.next.pop()?;
            // A sender that was skipped has none.
            let Some(entry) = self.senders.get_mut(&sender).and_then(VecDeque::pop_front) else {
                continue;
            };
            self.line_up(sender);
            return Some(entry.pooled);
        }
    }
}
