//! The signatures of a block's transactions, recovered while it runs: by other threads ahead of it,
//! and by its own where these are behind.

use crate::threads::helpers::Pool;
use alloy_primitives::Address;
use execution::{ChainSpec, InvalidBlock, Senders, Signer, Transaction};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Who signed the transactions of a block, each recovered when first asked for or before.
#[derive(Debug)]
pub(crate) struct Recovery<'a> {
    chain: &'a ChainSpec,
    /// The block's number.
    number: u64,
    transactions: &'a [Transaction],
    signers: Vec<OnceLock<Result<Signer, InvalidBlock>>>,
    /// The first transaction that nobody has begun with.
    next: AtomicUsize,
    /// Nanoseconds that the block's thread has spent on signatures.
    spent: AtomicU64,
}

impl<'a> Recovery<'a> {
    pub(crate) fn new(chain: &'a ChainSpec, number: u64, transactions: &'a [Transaction]) -> Self {
        let signers = transactions.iter().map(|_| OnceLock::new()).collect();
        let (next, spent) = (AtomicUsize::new(0), AtomicU64::new(0));
        Self { chain, number, transactions, signers, next, spent }
    }

    /// Has threads of a pool recover ahead while `run` does what it does; they stop when it has
    /// ended.
    pub(crate) fn during<T>(&self, pool: Option<&Pool>, run: impl FnOnce() -> T) -> T {
        let Some(pool) = pool else { return run() };
        let helpers = pool.threads_count().min(self.transactions.len()).saturating_sub(1);
        let recover_ahead = || {
            while let Some(index) = self.begin() {
                self.recover(index);
            }
        };
        pool.with_help(&recover_ahead, |help| {
            help.ask(helpers);
            let outcome = run();
            self.next.store(self.transactions.len(), Ordering::Relaxed);
            outcome
        })
    }

    /// Takes the next transaction that nobody has begun with.
    fn begin(&self) -> Option<usize> {
        let is_left = || self.next.load(Ordering::Relaxed) < self.transactions.len();
        let index = is_left().then(|| self.next.fetch_add(1, Ordering::Relaxed))?;
        (index < self.transactions.len()).then_some(index)
    }

    fn recover(&self, index: usize) -> &Result<Signer, InvalidBlock> {
        let (transaction, signer) = (&self.transactions[index], &self.signers[index]);
        if signer.get().is_none() {
            // Another thread may do it too, and finds the same; nobody waits for another.
            let _ = signer.set(execution::recover_signer_at(
                self.chain,
                self.number,
                index,
                transaction,
            ));
        }
        signer.get().expect("just set")
    }

    /// Who signed; as long as another thread is at it, this one recovers others.
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

    /// What the block's thread has spent on signatures.
    pub(crate) fn spent(&self) -> Duration {
        Duration::from_nanos(self.spent.load(Ordering::Relaxed))
    }

    /// All who signed.
    ///
    /// # Errors
    /// The first wrong signature, in the order of transactions.
    pub(crate) fn signers(&self) -> Result<Vec<Signer>, InvalidBlock> {
        (0..self.transactions.len()).map(|index| self.signer(index).clone()).collect()
    }
}

/// For the block's own thread.
impl Senders for Recovery<'_> {
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

/// The same for threads that run transactions ahead: of these some have so low a priority that
/// nobody should wait for what they have begun.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Aside<'a>(pub(crate) &'a Recovery<'a>);

impl Senders for Aside<'_> {
    fn sender(&self, index: usize) -> Result<Address, InvalidBlock> {
        self.0.recover(index).clone().map(|signer| signer.address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{COUNTER, engine, sender, spoilt};
    use crate::threads::helpers::Helpers;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    #[test]
    fn whoever_asks_in_whatever_order_is_told_what_the_signatures_say() {
        let engine = engine();
        let seed = rand::random();
        println!("seed {seed}");
        let mut random = StdRng::seed_from_u64(seed);
        for _ in 0..20 {
            let count = random.random_range(1..40);
            let mut transactions: Vec<_> =
                (0..count).map(|nonce| sender().call(nonce, COUNTER, [])).collect();
            let wrong = random.random_bool(0.5).then(|| random.random_range(0..count as usize));
            if let Some(index) = wrong {
                transactions[index] = spoilt(&transactions[index]);
            }
            let chain = engine.chain();
            let expect = |index| {
                execution::recover_signer_at(chain, 1, index, &transactions[index])
                    .map(|signer| signer.address)
            };
            let threads = random.random_range(1..5);
            let pool = Pool::start(threads, Helpers::new());
            let recovery = Recovery::new(chain, 1, &transactions);
            recovery.during(random.random_bool(0.8).then_some(&pool), || {
                for _ in 0..count {
                    let index = random.random_range(0..transactions.len());
                    let asked: &dyn Senders = match random.random_bool(0.5) {
                        true => &recovery,
                        false => &Aside(&recovery),
                    };
                    assert_eq!(asked.sender(index), expect(index));
                }
            });
            let all = recovery.signers().map(|signers| signers.len());
            let slow = execution::recover_senders_at(chain, 1, &transactions);
            assert_eq!(all, slow.map(|senders| senders.len()));
            assert_eq!(all.is_err(), wrong.is_some());
        }
    }
}
