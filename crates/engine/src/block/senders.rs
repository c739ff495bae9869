//! Floor 4. The signatures of a block's transactions, recovered while it runs: by other threads
//! ahead of it, and by its own where these are behind.

use crate::threads::on_drop::OnDrop;
use crate::threads::pool::{self, ThreadPool};
use alloy_primitives::Address;
use execution::{ChainSpec, InvalidBlock, Senders, Signer, Transaction};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The signers of a block's transactions, each recovered when first asked for or before.
#[derive(Debug)]
pub(crate) struct BlockSenders<'a> {
    chain: &'a ChainSpec,
    /// The block's number.
    number: u64,
    transactions: &'a [Transaction],
    signers: Vec<OnceLock<Result<Signer, InvalidBlock>>>,
    /// The first transaction that no thread has begun with.
    next: AtomicUsize,
    /// Nanoseconds that the block's thread has spent on signatures.
    spent: AtomicU64,
}

impl<'a> BlockSenders<'a> {
    pub(crate) fn new(chain: &'a ChainSpec, number: u64, transactions: &'a [Transaction]) -> Self {
        let signers = transactions.iter().map(|_| OnceLock::new()).collect();
        let (next, spent) = (AtomicUsize::new(0), AtomicU64::new(0));
        Self { chain, number, transactions, signers, next, spent }
    }

    /// Recovers on this thread, as long as there are signatures that no thread has begun with.
    pub(crate) fn recover_ahead(&self) {
        while let Some(index) = self.begin() {
            self.recover(index);
        }
    }

    /// Recovers all signatures, with `count` threads of a pool beside the calling one.
    pub(crate) fn recover_all(
        &self,
        help: Option<(&ThreadPool, usize)>,
    ) -> Result<Vec<Signer>, InvalidBlock> {
        let recover_ahead = || self.recover_ahead();
        pool::scope(|scope| {
            if let Some((pool, count)) = help {
                scope.ask(pool, count, &recover_ahead);
            }
            self.signers()
        })
    }

    /// Once this is dropped, no thread begins with another signature.
    pub(crate) fn stopping(&self) -> OnDrop<impl FnMut()> {
        OnDrop(|| self.next.store(self.transactions.len(), Ordering::Relaxed))
    }

    /// Takes the next transaction that no thread has begun with.
    fn begin(&self) -> Option<usize> {
        let is_left = || self.next.load(Ordering::Relaxed) < self.transactions.len();
        let index = is_left().then(|| self.next.fetch_add(1, Ordering::Relaxed))?;
        (index < self.transactions.len()).then_some(index)
    }

    fn recover(&self, index: usize) -> &Result<Signer, InvalidBlock> {
        let (transaction, signer) = (&self.transactions[index], &self.signers[index]);
        if signer.get().is_none() {
            // Another thread may do it too, and finds the same; neither waits for the other.
            let _ = signer.set(execution::recover_signer_at(
                self.chain,
                self.number,
                index,
                transaction,
            ));
        }
        signer.get().expect("just set")
    }

    /// The signer; as long as another thread is at it, this one recovers others.
    fn signer(&self, index: usize) -> &Result<Signer, InvalidBlock> {
        loop {
            if let Some(signer) = self.signers[index].get() {
                return signer;
            }
            match self.begin() {
                Some(next) => self.recover(next),
                None => return self.recover(index),
            };
        }
    }

    /// The time that the block's thread has spent on signatures.
    pub(crate) fn spent(&self) -> Duration {
        Duration::from_nanos(self.spent.load(Ordering::Relaxed))
    }

    /// All signers.
    ///
    /// # Errors
    /// The first wrong signature, in the order of transactions.
    pub(crate) fn signers(&self) -> Result<Vec<Signer>, InvalidBlock> {
        (0..self.transactions.len()).map(|index| self.signer(index).clone()).collect()
    }
}

/// For the block's own thread.
impl Senders for BlockSenders<'_> {
    fn sender(&self, index: usize) -> Result<Address, InvalidBlock> {
        if let Some(signer) = self.signers[index].get() {
            return signer.clone().map(|signer| signer.address);
        }
        let start = Instant::now();
        let sender = self.signer(index).clone().map(|signer| signer.address);
        self.spent.fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
        sender
    }
}

/// The same for threads that run transactions ahead: some of them have so low a priority that no
/// thread should wait for what they have begun.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SendersAhead<'a>(pub(crate) &'a BlockSenders<'a>);

impl Senders for SendersAhead<'_> {
    fn sender(&self, index: usize) -> Result<Address, InvalidBlock> {
        self.0.recover(index).clone().map(|signer| signer.address)
    }
}

#[cfg(test)]
mod tests;
