//! Floor 4. Reads that are made ahead of a block that waits for the disk.
//!
//! A thread that follows paths waits for one page after the other, and a device answers many
//! requests at once. So when a block has waited for a while, or the one before has, other threads
//! run its transactions on the parent's state, or go through its access list, for the reads alone.
//! Where all is in memory that would waste processors.

use crate::block::ahead::RunningBlock;
use crate::block::live::DiskWait;
use crate::read::listed::AccessListState;
use crate::read::view::VersionState;
use crate::threads::pool::{Scope, ThreadPool};
use execution::{AheadOutcome, AheadOutcomes};
use std::cell::Cell;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use trie::versioned::Version;
use witness::State;

/// The reads of a block that may be made ahead, on the state after its parent.
#[derive(Debug)]
pub(crate) struct ReadAhead<'a> {
    running: RunningBlock<'a>,
    version: Version,
    /// The state that its access list names.
    listed: Option<Arc<AccessListState>>,
    /// The first transaction, or account of the list, that no thread has read or run.
    next: AtomicUsize,
    is_over: AtomicBool,
}

impl<'a> ReadAhead<'a> {
    pub(crate) fn new(
        running: RunningBlock<'a>,
        version: Version,
        listed: Option<Arc<AccessListState>>,
    ) -> Self {
        let (next, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
        Self { running, version, listed, next, is_over }
    }

    /// How many transactions, or accounts of the list, are read one by one.
    fn units_count(&self) -> usize {
        let transactions = &self.running.block.body.transactions;
        self.listed.as_ref().map_or(transactions.len(), |listed| listed.list.accounts().len())
    }

    /// Reads ahead on this thread, as long as there is something to read.
    pub(crate) fn run(&self) {
        let next = || {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            let is_wanted = index < self.units_count() && !self.is_over.load(Ordering::Relaxed);
            is_wanted.then_some(index)
        };
        let listed = self.listed.as_deref();
        let mut state = VersionState::new(self.running.chain, self.running.parent, self.version);
        (state.listed, state.is_over) = (listed, Some(&self.is_over));
        match listed {
            None => {
                let RunningBlock { spec, block, senders, codes, .. } = self.running;
                execution::prefetch_reads(spec, block, senders, codes, state, next);
            }
            // A failure is met by the block, if it reads the same.
            Some(listed) => {
                let accounts = listed.list.accounts();
                while let Some(account) = next().map(|index| &accounts[index]) {
                    let _ = state.account(account.address());
                    for slot in account.slots() {
                        let _ = state.storage(account.address(), slot);
                    }
                }
            }
        }
    }

    /// Has all reads end soon.
    fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// Has the reads of a block made ahead once it waits too long for the disk.
pub(crate) struct ColdWatch<'w, 'env> {
    pub(crate) reads: &'w ReadAhead<'w>,
    /// Is asked for transactions that have run ahead.
    pub(crate) inner: Option<&'w dyn AheadOutcomes>,
    pub(crate) waited: DiskWait,
    /// How long a block may wait before its reads are made ahead.
    pub(crate) limit: Duration,
    pub(crate) scope: &'w Scope<'env>,
    pub(crate) pool: &'w ThreadPool,
    /// The work for the pool's threads, taken once.
    pub(crate) read: Cell<Option<&'env (dyn Fn() + Sync)>>,
}

impl ColdWatch<'_, '_> {
    pub(crate) fn has_waited_long(&self) -> bool {
        self.waited.get() >= self.limit
    }

    /// Begins to read ahead, if that was not begun.
    pub(crate) fn begin(&self) {
        if let Some(read) = self.read.take() {
            let next = self.reads.next.load(Ordering::Relaxed);
            let left = self.reads.units_count().saturating_sub(next);
            self.scope.ask(self.pool, left, read);
        }
    }
}

impl AheadOutcomes for ColdWatch<'_, '_> {
    fn take(&self, index: usize) -> Option<AheadOutcome> {
        if self.reads.listed.is_none() {
            self.reads.next.fetch_max(index + 1, Ordering::Relaxed);
        }
        if self.has_waited_long() {
            self.begin();
        }
        self.inner?.take(index)
    }

    /// The block waits for the threads that read, before it can be answered. One that runs without
    /// reading goes on to the transaction's end.
    fn end(&self) {
        self.reads.end();
        if let Some(inner) = self.inner {
            inner.end();
        }
    }
}

impl Drop for ColdWatch<'_, '_> {
    fn drop(&mut self) {
        self.reads.end();
    }
}

impl fmt::Debug for ColdWatch<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ColdWatch").field("waited", &self.waited).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
