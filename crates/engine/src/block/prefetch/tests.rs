use super::*;
use crate::Built;
use crate::chain::record::BlockRecord;
use crate::engine::Engine;
use crate::samples::{COUNTER, build, count, engine_of, sender};
use crate::threads::pool;
use crate::world;
use alloy_primitives::{Address, U256};
use execution::{AccessList, CodeCache, SealedBlock, Senders};
use std::time::Instant;

/// A block on the first one, and all that it takes to read ahead of it.
struct Sample {
    engine: Engine,
    codes: CodeCache,
    parent: Arc<BlockRecord>,
    block: SealedBlock,
    senders: Vec<Address>,
    list: Option<AccessList>,
}

impl Sample {
    fn new(fork: &str, counts: bool) -> Self {
        let engine = engine_of(world::config(fork));
        let parent = engine.block(engine.heads().genesis).unwrap().unwrap();
        let transactions = if counts { vec![count(&engine, parent.hash())] } else { Vec::new() };
        let senders = transactions.iter().map(|_| sender().address()).collect();
        let Built { block, block_access_list, .. } = build(&engine, parent.hash(), transactions, 0);
        let gas_limit = block.header.gas_limit;
        let list =
            block_access_list.map(|list| AccessList::decode(&list, gas_limit).unwrap().unwrap());
        let codes = CodeCache::new(1 << 20, |_| ());
        Self { engine, codes, parent, block, senders, list }
    }

    fn reads(&self, listed: Option<Arc<AccessListState>>) -> ReadAhead<'_> {
        let shared = &self.engine.shared;
        let running = RunningBlock {
            chain: &shared.chain,
            spec: self.engine.chain(),
            codes: &self.codes,
            parent: &self.parent,
            block: &self.block,
            senders: &self.senders as &dyn Senders,
        };
        let version = shared.chain.sealed(&shared.background, &self.parent).unwrap().version;
        ReadAhead::new(running, version, listed)
    }
}

fn watch<T>(reads: &ReadAhead<'_>, threads: usize, run: impl FnOnce(&ColdWatch<'_, '_>) -> T) -> T {
    let pool = ThreadPool::start(threads, "test", || ());
    let read = || reads.run();
    pool::scope(|scope| {
        run(&ColdWatch {
            reads,
            inner: None,
            waited: DiskWait::default(),
            limit: Duration::from_millis(1),
            scope,
            pool: &pool,
            read: Cell::new(Some(&read)),
        })
    })
}

#[test]
fn a_block_is_cold_once_it_has_waited_long() {
    let sample = Sample::new("osaka", false);
    let reads = sample.reads(None);
    watch(&reads, 1, |watch| {
        assert!(watch.take(0).is_none() && !watch.has_waited_long() && watch.read.get().is_some());
        watch.waited.set(watch.limit);
        assert!(watch.take(1).is_none() && watch.has_waited_long() && watch.read.get().is_none());
    });
}

#[test]
fn nothing_is_read_ahead_once_the_transactions_have_run() {
    let sample = Sample::new("osaka", false);
    let reads = sample.reads(None);
    let mut state = VersionState::new(reads.running.chain, &sample.parent, reads.version);
    state.is_over = Some(&reads.is_over);
    assert!(state.account(COUNTER).unwrap().is_some());
    watch(&reads, 1, |watch| watch.end());
    state.account(COUNTER).unwrap_err();
    state.storage(COUNTER, U256::ZERO).unwrap_err();
}

/// Whether the reads of a block are made while it does nothing but wait for that.
fn is_read_by_others(fork: &str, is_listed: bool) {
    let mut sample = Sample::new(fork, true);
    let list = sample.list.take().filter(|_| is_listed);
    let listed = list.map(|list| Arc::new(AccessListState::new(list)));
    let state = sample.engine.state(sample.parent.hash()).unwrap();
    let code_hash = state.account(COUNTER).unwrap().unwrap().code_hash;
    let is_read = || match &listed {
        Some(listed) => listed.slots_with_paths().is_some(),
        None => sample.codes.contains(&code_hash),
    };
    assert!(!is_read());
    let reads = sample.reads(listed.clone());
    let start = Instant::now();
    watch(&reads, 2, |watch| {
        watch.begin();
        while !is_read() {
            assert!(start.elapsed() < Duration::from_secs(60), "{fork}: no thread has read it");
            std::thread::yield_now();
        }
    });
}

#[test]
fn the_reads_of_a_cold_block_are_made_by_others() {
    is_read_by_others("osaka", false);
    is_read_by_others("amsterdam", false);
    is_read_by_others("amsterdam", true);
}
