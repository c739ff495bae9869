//! Blocks that wait for the disk. What they are going to read is read side by side then, by threads
//! that run their transactions on the parent's state, or go through their access list, for that
//! alone.
//!
//! A thread that follows paths waits for one page after the other, and a device answers many at
//! once. Where all is in memory it would be a waste of processors, so it begins when a block has
//! waited for a while, or the one before has.

use crate::block::ahead::{Listed, ParentState};
use crate::chain::record::BlockRecord;
use crate::shared::Core;
use crate::threads::background::yield_to_others;
use crate::threads::pool::{Help, ThreadPool};
use execution::{AheadOutcome, AheadOutcomes, ChainSpec, CodeCache, SealedBlock, Senders};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use trie::versioned::Version;
use witness::State;

/// The threads that read ahead. They mostly wait, and when they do not, others go before them.
pub(crate) fn thread_pool(count: usize) -> ThreadPool {
    ThreadPool::start(count, "prefetch", yield_to_others)
}

/// A block whose reads may be made ahead, on the state after its parent.
#[derive(Debug)]
pub(crate) struct Prefetch<'a> {
    pub(crate) core: &'a Core,
    pub(crate) chain: &'a ChainSpec,
    pub(crate) codes: &'a CodeCache,
    pub(crate) parent: &'a Arc<BlockRecord>,
    pub(crate) version: Version,
    pub(crate) block: &'a SealedBlock,
    pub(crate) senders: &'a dyn Senders,
    /// What its access list names.
    pub(crate) listed: Option<&'a Listed>,
}

impl Prefetch<'_> {
    /// Runs the block by `run`, which tells what is handed to it of its progress, and reads ahead
    /// on `threads` meanwhile if that is worth it. `inner` is asked for what has run ahead.
    pub(crate) fn during<T>(
        &self,
        threads: &ThreadPool,
        inner: Option<&dyn AheadOutcomes>,
        run: impl FnOnce(&dyn AheadOutcomes) -> T,
    ) -> T {
        let progress = Progress::default();
        let was_cold = &self.core.was_cold;
        threads.with_help(&|| self.read(&progress), |help| {
            let watch = Watch {
                prefetch: self,
                progress: &progress,
                inner,
                waited_before: state::waited(),
                has_begun: Cell::new(false),
                help,
            };
            if was_cold.load(Ordering::Relaxed) {
                watch.begin();
            }
            let outcome = run(&watch);
            was_cold.store(watch.has_waited_long(), Ordering::Relaxed);
            progress.is_over.store(true, Ordering::Relaxed);
            outcome
        })
    }

    /// How many transactions, or accounts of the list, are read one by one.
    fn units_count(&self) -> usize {
        let transactions = &self.block.body.transactions;
        self.listed.map_or(transactions.len(), |listed| listed.list.accounts().len())
    }

    /// Reads ahead on this thread, as long as there is something to read.
    fn read(&self, progress: &Progress) {
        let next = || {
            let index = progress.next.fetch_add(1, Ordering::Relaxed);
            let is_wanted = index < self.units_count() && !progress.is_over.load(Ordering::Relaxed);
            is_wanted.then_some(index)
        };
        let state = ParentState::new(self.core, self.parent.clone(), self.version, self.listed);
        let mut state = state.until(&progress.is_over);
        match self.listed {
            None => {
                let Self { chain, block, senders, codes, .. } = *self;
                execution::prefetch_reads(chain, block, senders, codes, state, next);
            }
            // What fails is met by the block, if it reads the same.
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
}

/// How far the reading ahead and the block are.
#[derive(Debug, Default)]
struct Progress {
    /// The first transaction, or account of the list, that nobody has read or run.
    next: AtomicUsize,
    is_over: AtomicBool,
}

/// Sees a block run, and has its reads made ahead once it waits too long.
#[derive(Debug)]
struct Watch<'w> {
    prefetch: &'w Prefetch<'w>,
    progress: &'w Progress,
    inner: Option<&'w dyn AheadOutcomes>,
    /// What this thread had waited for the disk before the block.
    waited_before: Duration,
    has_begun: Cell<bool>,
    help: &'w Help<'w>,
}

impl Watch<'_> {
    fn has_waited_long(&self) -> bool {
        state::waited() - self.waited_before >= self.prefetch.core.options.prefetch_after
    }

    fn begin(&self) {
        if self.has_begun.replace(true) {
            return;
        }
        let next = self.progress.next.load(Ordering::Relaxed);
        let left = self.prefetch.units_count().saturating_sub(next);
        self.help.ask(left);
    }
}

impl AheadOutcomes for Watch<'_> {
    fn take(&self, index: usize) -> Option<AheadOutcome> {
        if self.prefetch.listed.is_none() {
            self.progress.next.fetch_max(index + 1, Ordering::Relaxed);
        }
        if self.has_waited_long() {
            self.begin();
        }
        self.inner?.take(index)
    }

    /// The block waits for those who read, before it can be answered. What runs without reading
    /// goes on to the transaction's end.
    fn end(&self) {
        self.progress.is_over.store(true, Ordering::Relaxed);
        if let Some(inner) = self.inner {
            inner.end();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{COUNTER, build, count, engine_of, sender};
    use crate::{Built, world};
    use alloy_primitives::U256;
    use execution::AccessList;
    use state::{Database, MemoryDisk};
    use std::time::Instant;
    use testing::disks::WatchedDisk;

    #[test]
    fn a_block_that_waits_is_cold_and_so_is_the_next() {
        let engine = engine_of(world::config("osaka"));
        let core = engine.core();
        let parent = &engine.block(engine.heads().genesis).unwrap().unwrap();
        let version = core.sealed(parent).unwrap().version;
        let block = &build(&engine, parent.hash(), Vec::new(), 0).block;
        let (chain, codes) = (engine.chain(), &CodeCache::new(1 << 20, |_| ()));
        let senders = &Vec::new();
        let prefetch =
            Prefetch { core, chain, codes, parent, version, block, senders, listed: None };
        let threads = thread_pool(1);
        let is_cold = || core.was_cold.load(Ordering::Relaxed);
        core.was_cold.store(true, Ordering::Relaxed);
        prefetch.during(&threads, None, |watch| assert!(watch.take(0).is_none()));
        assert!(!is_cold());
        let disk = MemoryDisk::new();
        let options = state::Options::default();
        drop(Database::open(disk.clone(), &options).unwrap());
        prefetch.during(&threads, None, |_| {
            // What this thread reads, whatever it is.
            let after = core.options.prefetch_after;
            let slow = WatchedDisk::new(disk, move |_, _| std::thread::sleep(after));
            Database::open(slow, &options).unwrap();
        });
        assert!(is_cold());
        prefetch.during(&threads, None, |_| ());
        assert!(!is_cold());
    }

    #[test]
    fn nothing_is_read_ahead_once_the_transactions_have_run() {
        let engine = engine_of(world::config("osaka"));
        let core = engine.core();
        let parent = engine.block(engine.heads().genesis).unwrap().unwrap();
        let version = core.sealed(&parent).unwrap().version;
        let block = &build(&engine, parent.hash(), Vec::new(), 0).block;
        let (chain, codes, parent) = (engine.chain(), &CodeCache::new(1 << 20, |_| ()), &parent);
        let senders = &Vec::new();
        let prefetch =
            Prefetch { core, chain, codes, parent, version, block, senders, listed: None };
        let progress = Progress::default();
        let mut state =
            ParentState::new(core, parent.clone(), version, None).until(&progress.is_over);
        assert!(state.account(COUNTER).unwrap().is_some());
        thread_pool(1).with_help(&|| (), |help| {
            let (progress, inner) = (&progress, None);
            let (waited_before, has_begun) = (state::waited(), Cell::new(false));
            let prefetch = &prefetch;
            Watch { prefetch, progress, inner, waited_before, has_begun, help }.end();
        });
        state.account(COUNTER).unwrap_err();
        state.storage(COUNTER, U256::ZERO).unwrap_err();
    }

    /// Whether what a block reads is read while it does nothing but wait for that.
    fn is_read_by_others(fork: &str, is_listed: bool) {
        let engine = engine_of(world::config(fork));
        let parent = engine.block(engine.heads().genesis).unwrap().unwrap();
        let transactions = vec![count(&engine, parent.hash())];
        let Built { block, block_access_list, .. } = build(&engine, parent.hash(), transactions, 0);
        let (core, chain, codes) =
            (&**engine.core(), engine.chain(), &CodeCache::new(1 << 20, |_| ()));
        let version = core.sealed(&parent).unwrap().version;
        let list = block_access_list.filter(|_| is_listed).map(|list| {
            let list = AccessList::decode(&list, block.header.gas_limit).unwrap();
            Listed::new(list, core.database.nodes().clone(), version)
        });
        let (parent, block, listed) = (&parent, &block, list.as_ref());
        let senders = &vec![sender().address()];
        let prefetch = Prefetch { core, chain, codes, parent, version, block, senders, listed };
        let code = engine.state(parent.hash()).unwrap().account(COUNTER).unwrap().unwrap();
        let is_read = || match listed {
            Some(listed) => listed.slots_with_paths().is_some(),
            None => codes.contains(&code.code_hash),
        };
        assert!(!is_read());
        core.was_cold.store(true, Ordering::Relaxed);
        let threads = thread_pool(2);
        let start = Instant::now();
        prefetch.during(&threads, None, |_| {
            while !is_read() {
                assert!(start.elapsed() < Duration::from_secs(60), "{fork}: nobody has read it");
                std::thread::yield_now();
            }
        });
    }

    #[test]
    fn what_a_cold_block_reads_is_read_by_others() {
        is_read_by_others("osaka", false);
        is_read_by_others("amsterdam", false);
        is_read_by_others("amsterdam", true);
    }
}
