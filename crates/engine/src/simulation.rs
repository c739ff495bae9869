//! Floor 5. The engine against a slow one: random blocks, branches, bad blocks, heads, restarts and
//! crashes.
//!
//! The seed is printed; `DEPONENT_SEED` repeats a run, `DEPONENT_STEPS` makes it longer.

use crate::after::prune::prune;
use crate::samples::{
    self, attributes, branch, changed, choose, counter, extend, genesis_file, heads, sender,
};
use crate::witnesses::copies::copy_a_witness;
use crate::world::{self, Branches, StartAccount, genesis_alloc};
use crate::{Engine, EngineOptions, Error, Genesis, Missing, Verdict};
use alloy_primitives::map::B256Set;
use alloy_primitives::{Address, B256, Bytes, TxKind, U256, keccak256};
use execution::{SealedBlock, Transaction};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use state::{Disk, JournalMode, MemoryDisk, Options, Retained};
use std::sync::Arc;
use std::time::Duration;

mod power_cuts;

/// Contracts that store word 1 of a call's data in the slot that word 0 names.
const LEDGERS: u8 = 3;

fn ledger(number: u8) -> Address {
    Address::repeat_byte(0xd0 + number)
}

fn accounts() -> Vec<(Address, StartAccount)> {
    let ledgers = (0..LEDGERS).map(|number| {
        let contract = StartAccount::contract(vec![0x60, 0x20, 0x35, 0x60, 0, 0x35, 0x55]);
        (ledger(number), contract.storage((0..u64::from(number) * 40).map(|slot| (slot, 1))))
    });
    // Enough accounts for the state's root to have all its children.
    let others = (0..400u64).map(|number| {
        let address = Address::from_word(keccak256(number.to_be_bytes()));
        (address, StartAccount { balance: U256::from(number + 1), ..StartAccount::default() })
    });
    let sender = (sender().address(), StartAccount::rich());
    ledgers.chain(others).chain([sender, counter()]).collect()
}

/// Segments and files of the journal that are small, so that there are many.
const SMALL: Options = Options {
    cache_bytes: state::limits::PAGE_CACHE_BYTES,
    code_cache_bytes: state::limits::CODE_CACHE_BYTES,
    index_cache_bytes: state::limits::INDEX_CACHE_BYTES,
    segment_bytes: 64 << 10,
    witness_segment_bytes: 4 << 10,
    journal: JournalMode::Write,
    journal_file_bytes: 2 << 10,
};

/// An engine with such files.
fn open(
    disk: impl Disk + 'static,
    genesis: &alloy_genesis::Genesis,
    options: EngineOptions,
) -> Result<Engine, Error> {
    samples::open(disk, genesis, &SMALL, options)
}

/// The two engines, and what is known of the chain.
struct Simulation {
    random: StdRng,
    disk: MemoryDisk,
    options: EngineOptions,
    genesis: alloy_genesis::Genesis,
    /// `None` only while it is opened again.
    fast: Option<Engine>,
    slow: Branches,
    /// Every valid block but the first, in the order of validation.
    blocks: Vec<SealedBlock>,
}

impl Simulation {
    fn new(seed: u64, options: EngineOptions) -> Self {
        Self::beginning_at(0, seed, options)
    }

    /// A chain whose genesis has this number.
    fn beginning_at(number: u64, seed: u64, options: EngineOptions) -> Self {
        let genesis = alloy_genesis::Genesis {
            number: Some(number),
            alloc: genesis_alloc(accounts()),
            ..genesis_file(world::config("osaka"))
        };
        let (chain, Genesis { header, .. }) = samples::read(&genesis);
        let mut simulation = Self {
            random: StdRng::seed_from_u64(seed),
            disk: MemoryDisk::new(),
            options,
            genesis,
            fast: None,
            slow: Branches::new(chain, accounts(), header),
            blocks: Vec::new(),
        };
        simulation.open();
        simulation
    }

    fn open(&mut self) {
        self.fast = Some(open(self.disk.clone(), &self.genesis, self.options.clone()).unwrap());
    }

    fn fast(&self) -> &Engine {
        self.fast.as_ref().expect("open")
    }

    fn step(&mut self) {
        match self.random.random_range(0..100) {
            0..50 => _ = self.extend(),
            50..60 => {
                let parent = self.parent();
                self.offer_a_bad_block_on(parent);
            }
            60..75 => self.choose_a_head(),
            75..90 => self.ask_for_a_witness(),
            90..94 => self.fast().persist().unwrap(),
            94..97 => self.restart(),
            _ => self.crash(),
        }
    }

    /// A block to stand on: mostly a recent one.
    fn parent(&mut self) -> B256 {
        let newest = self.blocks.len().saturating_sub(6);
        let recent = self.blocks[newest..].choose(&mut self.random).map(SealedBlock::hash);
        recent.unwrap_or(self.fast().heads().genesis)
    }

    fn transactions(&mut self, parent: B256) -> Vec<Transaction> {
        let state = self.fast().state(parent).unwrap();
        let nonce = state.account(sender().address()).unwrap().unwrap().nonce;
        let transactions = (0..self.random.random_range(0..6)).map(|index| {
            let nonce = nonce + index;
            if self.random.random_range(0..4) == 0 {
                let to = Address::with_last_byte(self.random.random_range(20..60));
                return sender().transact(nonce, TxKind::Call(to), U256::from(1), Bytes::new());
            }
            let slot = U256::from(self.random.random_range(0..90u64));
            let value = U256::from(self.random.random_range(0..3u64));
            let to = ledger(self.random.random_range(0..LEDGERS));
            let words = [slot.to_be_bytes::<32>(), value.to_be_bytes::<32>()];
            sender().call(nonce, to, words.concat())
        });
        transactions.collect()
    }

    fn build_on(&mut self, parent: B256) -> SealedBlock {
        let transactions = self.transactions(parent);
        let attributes = attributes(self.fast(), parent);
        let tag = Bytes::from(vec![self.random.random::<u8>()]);
        self.fast().build(parent, attributes, transactions, tag).unwrap().block
    }

    fn extend(&mut self) -> B256 {
        let parent = self.parent();
        self.extend_on(parent)
    }

    fn extend_on(&mut self, parent: B256) -> B256 {
        let block = self.build_on(parent);
        let hash = block.hash();
        assert_eq!(self.fast().new_block(block.clone()).unwrap(), Verdict::Valid);
        if !self.slow.headers.contains_key(&hash) {
            assert!(self.slow.validate(&block), "the slow engine refuses {hash}");
            self.blocks.push(block);
        }
        hash
    }

    /// A chain of valid blocks on `parent`.
    fn branch(&mut self, parent: B256, length: usize) -> Vec<B256> {
        let mut parent = parent;
        let next = || {
            parent = self.extend_on(parent);
            parent
        };
        std::iter::repeat_with(next).take(length).collect()
    }

    /// So many blocks more, each of which becomes the head.
    fn grow(&mut self, count: usize) {
        for _ in 0..count {
            let head = self.extend();
            assert_eq!(choose(self.fast(), head), Verdict::Valid);
        }
    }

    /// The same, each persisted before the next.
    fn grow_persisted(&mut self, count: usize) {
        for _ in 0..count {
            self.grow(1);
            self.fast().persist().unwrap();
        }
    }

    /// The canonical blocks, but for the first.
    fn canonical(&self) -> Vec<SealedBlock> {
        let mut blocks = Vec::new();
        let mut hash = self.fast().heads().head;
        while let Some(block) = self.blocks.iter().find(|block| block.hash() == hash) {
            assert_eq!(self.fast().canonical_hash(block.header.number), Ok(Some(hash)));
            blocks.push(block.clone());
            hash = block.header.parent_hash;
        }
        assert_eq!(hash, self.fast().heads().genesis);
        blocks
    }

    /// All copies that are due are made, of each canonical block.
    fn check_copies(&self) {
        copy_witnesses(self);
        for block in self.canonical() {
            let copy = self.fast().database().witness(&block.hash()).unwrap();
            let number = block.header.number;
            assert!(matches!(copy, Retained::Present(_)), "block {number}: {copy:?}");
        }
    }

    /// Each canonical block is found by its bloom, and each of its transactions.
    fn check_found(&self) {
        let engine = self.fast();
        let mut blocks = self.canonical();
        blocks.reverse();
        check_found(engine, &blocks);
        let canonical: B256Set = blocks.iter().flat_map(transaction_hashes).collect();
        for hash in self.blocks.iter().flat_map(transaction_hashes) {
            if !canonical.contains(&hash) {
                assert_eq!(engine.find_transaction(&hash).unwrap().map(|(_, place)| place), None);
            }
        }
    }

    fn offer_a_bad_block_on(&mut self, parent: B256) {
        let block = self.build_on(parent);
        let bad = changed(&block, |block| {
            let at = usize::from(block.header.state_root[0]) % 32;
            block.header.state_root[at] ^= 1;
        });
        let verdict = self.fast().new_block(bad.clone()).unwrap();
        assert!(matches!(verdict, Verdict::Invalid { .. }), "{verdict:?}");
        assert!(!self.slow.validate(&bad));
    }

    fn choose_a_head(&mut self) {
        let head = self.parent();
        assert_eq!(choose(self.fast(), head), Verdict::Valid);
        assert_eq!(self.fast().heads().head, head);
        self.check_head();
        self.check_found();
    }

    /// The head is in memory, so it is never read again.
    fn check_head(&self) {
        let head = self.fast().heads().head;
        let [one, other] = [(); 2].map(|()| self.fast().block(head).unwrap().unwrap());
        assert!(Arc::ptr_eq(&one, &other));
    }

    fn ask_for_a_witness(&mut self) {
        let Some(block) = self.blocks.choose(&mut self.random) else { return };
        self.check_witness(block);
    }

    fn check_witness(&self, block: &SealedBlock) {
        let witness = self.fast().witness(block.hash()).unwrap().expect("a valid block");
        assert_eq!(*witness, self.slow.witnesses[&block.hash()], "block {}", block.header.number);
    }

    /// Stops the engine as one should, and opens it again: nothing is lost.
    fn restart(&mut self) {
        let heads = self.fast().heads();
        drop(self.fast.take());
        self.open();
        assert_eq!(self.fast().heads(), heads);
        self.check_head();
        for block in &self.blocks {
            assert!(self.fast().block(block.hash()).unwrap().is_some());
        }
    }

    fn restart_with(&mut self, options: EngineOptions) {
        self.options = options;
        self.restart();
    }

    /// Opens the files as they are in the middle of things, as after `kill -9`: nothing is lost.
    fn crash(&mut self) {
        let heads = self.fast().heads();
        let files = self.disk.contents();
        drop(self.fast.take());
        self.disk = MemoryDisk::with_contents(&files);
        self.open();
        assert_eq!(self.fast().heads(), heads);
        self.check_head();
        for block in &self.blocks {
            assert!(self.fast().block(block.hash()).unwrap().is_some(), "{} is lost", block.hash());
        }
    }

    /// Every block's state and witness, as the slow engine has them.
    fn check_all(&self) {
        let mut seen = B256Set::default();
        for block in &self.blocks {
            assert!(seen.insert(block.hash()));
            assert_eq!(self.fast().state(block.hash()).unwrap().root(), block.header.state_root);
            self.check_witness(block);
        }
        self.check_found();
    }
}

fn transaction_hashes(block: &SealedBlock) -> impl Iterator<Item = B256> {
    block.body.transactions.iter().map(|transaction| *transaction.hash())
}

/// These are the canonical blocks after the first, and they and their transactions are found.
fn check_found(engine: &Engine, blocks: &[SealedBlock]) {
    let first = engine.number(&engine.heads().genesis).unwrap().unwrap();
    let found = engine.blocks_by_bloom(first + 1..=u64::MAX, &|_| true).unwrap();
    let expected: Vec<_> = blocks.iter().map(|block| (block.header.number, block.hash())).collect();
    assert_eq!(found, expected);
    for block in blocks {
        for (place, hash) in transaction_hashes(block).enumerate() {
            let (record, found) = engine.find_transaction(&hash).unwrap().expect("it is there");
            assert_eq!((record.hash(), found), (block.hash(), place));
        }
    }
}

fn simulate(seed: u64, options: EngineOptions) {
    let steps = testing::rounds("DEPONENT_STEPS", 120, 400);
    // Witnesses of no block are in memory, of a few, or of all since the last start.
    let witness_cache_bytes = [0, 40 << 10, options.witness_cache_bytes][seed as usize % 3];
    let options = EngineOptions { witness_cache_bytes, ..options };
    println!("DEPONENT_STEPS={steps}, {options:?}");
    let mut simulation = Simulation::new(seed, options);
    for _ in 0..steps {
        simulation.step();
    }
    simulation.check_all();
}

/// Sweeps that begin at once and move little at a time, so that they are always under way.
fn sweeping() -> EngineOptions {
    EngineOptions { sweep_min_bytes: 1, sweep_step_bytes: 1 << 10, ..EngineOptions::default() }
}

#[test]
fn the_engine_agrees_with_the_slow_one_on_one_thread() {
    simulate(testing::seed(), sweeping());
}

#[test]
fn the_engine_agrees_with_the_slow_one_on_many_threads() {
    for (workers, chunk_size, prefetch_threads, ahead) in [(1, 1, 0, 0), (3, 7, 4, 0), (2, 7, 0, 3)]
    {
        let options = EngineOptions {
            parallel_gas: 0,
            ahead_gas: 0,
            ahead_threads: ahead,
            trie_workers: Some(workers),
            multiproof_chunk_size: chunk_size,
            prefetch_threads,
            prefetch_after: Duration::ZERO,
            ..sweeping()
        };
        simulate(testing::seed(), options);
    }
}

#[test]
fn what_waits_for_the_disk_is_bounded_and_lazy_persistence_loses_no_more_than_it_may() {
    let options =
        EngineOptions { persistence_threshold: 5, unpersisted_bytes: 40 << 10, ..sweeping() };
    simulate(testing::seed(), options);
}

#[test]
fn history_that_is_not_kept_is_refused_and_nothing_else_is() {
    let (retain_history, length) = (8, 40);
    let options = EngineOptions { retain_history, ..sweeping() };
    let mut simulation = Simulation::new(1, options);
    for _ in 0..length {
        let hash = simulation.extend_on(simulation.fast().heads().head);
        assert_eq!(choose(simulation.fast(), hash), Verdict::Valid);
        simulation.fast().persist().unwrap();
    }
    // They are in memory, whatever is kept of the state.
    simulation.blocks.iter().for_each(|block| simulation.check_witness(block));
    for reopened in [false, true] {
        if reopened {
            simulation.restart();
        }
        let first_kept = length - retain_history;
        for block in &simulation.blocks {
            let is_kept = block.header.number >= first_kept;
            let state = simulation.fast().state(block.hash());
            assert_eq!(state.is_ok(), is_kept, "block {}", block.header.number);
            if block.header.number > first_kept {
                simulation.check_witness(block);
            }
            if !is_kept {
                let child = changed(block, |child| {
                    child.header.parent_hash = block.hash();
                    child.header.number += 1;
                    child.header.timestamp += 12;
                });
                let missing = Missing::State { parent: block.hash() };
                assert_eq!(simulation.fast().new_block(child), Ok(Verdict::Syncing(missing)));
                let state = heads(block.hash(), B256::ZERO, B256::ZERO);
                let refused = simulation.fast().forkchoice_updated(state, None);
                assert_eq!(refused, Err(Error::TooDeepReorg(block.hash())));
            }
        }
        let head = simulation.blocks.last().expect("some were added").hash();
        assert_eq!(simulation.fast().heads().head, head);
        assert_eq!(choose(simulation.fast(), head), Verdict::Valid);
        simulation.fast().persist().unwrap();
    }
}

#[test]
fn the_parent_of_a_block_that_is_not_sealed_keeps_its_state() {
    let options = EngineOptions { retain_history: 0, unpersisted_bytes: 1 << 20, ..sweeping() };
    let simulation = Simulation::new(8, options);
    let (engine, shared) = (simulation.fast(), &simulation.fast().shared);
    let grow = || {
        let head = extend(engine, engine.heads().head, 0);
        assert_eq!(choose(engine, head), Verdict::Valid);
        engine.prune(&mut |_| ()).unwrap();
        shared.chain.floors().first
    };
    assert_eq!((grow(), grow()), (1, 2));
    let mut unsealed = shared.chain.unsealed.begin(3);
    assert_eq!((grow(), grow()), (2, 2));
    // A thread that validates the next block waits for those that hold too much.
    unsealed.holds(2 << 20);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(grow);
        while !shared.background.is_wanted() && !waiting.is_finished() {
            std::thread::yield_now();
        }
        assert!(!waiting.is_finished());
        drop(unsealed);
        assert_eq!(waiting.join().unwrap(), 5);
    });
}

#[test]
fn what_only_pruned_states_need_is_deleted_right_after_a_restart_too() {
    let mut simulation = Simulation::new(5, sweeping());
    simulation.grow_persisted(150);
    let start = |simulation: &Simulation| simulation.fast().database().nodes().start();
    assert!(start(&simulation).is_none(), "all states are kept");
    simulation.restart_with(EngineOptions { retain_history: 8, ..sweeping() });
    simulation.fast().prune(&mut |_| ()).unwrap();
    assert!(!start(&simulation).is_none(), "segments are left that nobody needs");
    simulation.restart();
    let head = simulation.fast().heads().head;
    let head = simulation.fast().block(head).unwrap().unwrap().number();
    for block in simulation.blocks.iter().filter(|block| block.header.number > head - 8) {
        let hash = block.hash();
        match simulation.fast().canonical_hash(block.header.number).unwrap() == Some(hash) {
            true => simulation.check_witness(block),
            // Of a branch that is too old it may be gone, and is refused then.
            false => {
                _ = simulation.fast().state(hash).map_err(|error| {
                    assert_eq!(error, Error::Pruned(hash));
                })
            }
        }
    }
}

#[test]
fn a_witness_that_is_not_kept_is_refused_and_no_other() {
    let options = EngineOptions { retain_witness_bytes: 4 << 10, ..EngineOptions::default() };
    let mut simulation = Simulation::new(4, options);
    simulation.grow_persisted(100);
    // Those that are in memory are there anyway.
    simulation.restart();
    let first = simulation.fast().heads().genesis;
    assert_eq!(simulation.fast().witness(first), Ok(None));
    let mut refused_count = 0;
    for block in &simulation.blocks {
        let hash = block.hash();
        match simulation.fast().witness(hash) {
            Ok(_) => simulation.check_witness(block),
            refused => {
                assert_eq!(refused, Err(Error::PrunedWitness(hash)));
                refused_count += 1;
            }
        }
    }
    assert!((1..100).contains(&refused_count), "{refused_count}");
}

/// History that is pruned soon, of blocks that nothing persists but a request.
fn lazy() -> EngineOptions {
    EngineOptions {
        retain_history: 8,
        witness_cache_bytes: 0,
        persistence_threshold: usize::MAX,
        ..sweeping()
    }
}

/// A chain whose genesis has this number, and `count` blocks of whose witnesses none has a copy.
fn uncopied(number: u64, seed: u64, count: usize) -> Simulation {
    let options = EngineOptions { retain_witness_blocks: 0, ..sweeping() };
    let mut simulation = Simulation::beginning_at(number, seed, options);
    simulation.grow(count);
    simulation
}

/// Makes all copies of witnesses that are due.
fn copy_witnesses(simulation: &Simulation) {
    simulation.fast().persist().unwrap();
    while copy_a_witness(&simulation.fast().shared, u64::MAX).unwrap() {}
    simulation.fast().persist().unwrap();
}

#[test]
fn every_canonical_block_has_its_copy_after_reorgs_and_restarts() {
    let mut simulation = Simulation::new(6, sweeping());
    for round in 0..30 {
        (0..5).for_each(|_| _ = simulation.extend());
        simulation.choose_a_head();
        if round % 10 == 9 {
            // Copies that were due stay due.
            simulation.restart();
        }
        if round % 3 == 0 {
            simulation.check_copies();
        }
    }
    simulation.check_copies();
}

#[test]
fn a_state_is_forgotten_when_its_witnesses_have_copies_and_not_before() {
    // Some were never copied, since nothing was to be, and the others come without a pause.
    let mut simulation = uncopied(0, 9, 60);
    // The deepest reorg is of 9 blocks. What gets canonical by a deeper one may have been forgotten
    // before.
    let options = EngineOptions { retain_history: 10, witness_cache_bytes: 0, ..sweeping() };
    simulation.restart_with(options);
    simulation.grow(60);
    simulation.fast().persist().unwrap();
    simulation.fast().prune(&mut |_| ()).unwrap();
    simulation.restart();
    simulation.canonical().iter().for_each(|block| simulation.check_witness(block));
}

#[test]
fn a_state_is_not_forgotten_before_its_copies_can_be_read() {
    let mut simulation = uncopied(0, 12, 100);
    simulation.restart_with(lazy());
    let mut parts = vec![0.0];
    simulation.fast().prune(&mut |part| parts.push(part)).unwrap();
    assert!(parts.is_sorted() && parts.len() > 9 && parts.ends_with(&[1.0]), "{parts:?}");
    assert!(simulation.fast().shared.chain.floors().first > 8);
    simulation.canonical().iter().for_each(|block| simulation.check_witness(block));
}

#[test]
fn a_state_is_not_forgotten_before_its_blocks_are_persisted() {
    let mut simulation = Simulation::new(10, lazy());
    for _ in 0..3 {
        simulation.grow(30);
        // As when the fork choice goes on while a round persists.
        prune(&simulation.fast().shared, &mut |_| ()).unwrap();
        simulation.fast().persist().unwrap();
    }
    assert!(simulation.fast().shared.chain.floors().first > 8);
    simulation.canonical().iter().for_each(|block| simulation.check_witness(block));
}

#[test]
fn a_chain_that_begins_late_has_its_copies_too() {
    let mut simulation = uncopied(1000, 11, 20);
    simulation.restart_with(sweeping());
    simulation.check_copies();
}

#[test]
fn a_chain_that_begins_late_passes_over_what_was_before() {
    for (number, is_taken) in [(0, false), (1000, true)] {
        let mut simulation = Simulation::beginning_at(number, 13, sweeping());
        let head = simulation.extend();
        let before = B256::repeat_byte(9);
        let named = |finalized| heads(head, finalized, finalized);
        let outcome = simulation.fast().forkchoice_updated(named(before), None);
        assert_eq!(outcome.is_ok(), is_taken, "{outcome:?}");
        // Once a block that is known is final, no other name is passed over.
        assert!(simulation.fast().forkchoice_updated(named(head), None).is_ok());
        assert!(simulation.fast().forkchoice_updated(named(before), None).is_err());
    }
}

/// A page of a file that is spoilt.
struct Damage {
    file: &'static str,
    /// Bytes before the first page, and those that a page takes.
    start: usize,
    stride: usize,
}

/// Spoils the pages of a file one by one, on a chain of `length` blocks. Those that stop no block
/// under `lazy` options stop none under `eager` ones, by which they are read as well.
fn check_damage(damage: &Damage, length: usize, lazy: &EngineOptions, eager: &EngineOptions) {
    let Damage { file, start, stride } = *damage;
    let mut simulation = Simulation::new(12, sweeping());
    let first = branch(simulation.fast(), simulation.fast().heads().genesis, 0, length);
    assert_eq!(choose(simulation.fast(), first[length - 1]), Verdict::Valid);
    simulation.fast().persist().unwrap();
    drop(simulation.fast.take());
    let contents = simulation.disk.contents();
    let (name, bytes) = contents.iter().find(|(name, _)| name.starts_with(file)).unwrap();
    let mut goes_on = |page: usize, options: &EngineOptions| {
        let mut contents = contents.clone();
        contents.get_mut(name).unwrap()[start + page * stride + 100] ^= 1;
        simulation.disk = MemoryDisk::with_contents(&contents);
        simulation.options = options.clone();
        let run = || {
            simulation.open();
            let (engine, parent) = (simulation.fast(), simulation.fast().heads().head);
            branch(engine, parent, 1, 30).iter().all(|block| {
                let is_valid = choose(engine, *block) == Verdict::Valid;
                engine.persist().is_ok() && is_valid
            })
        };
        let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
        drop(simulation.fast.take());
        ran.is_ok_and(|is_valid| is_valid)
    };
    let pages = 0..(bytes.len() - start) / stride;
    let unread: Vec<_> = pages.filter(|page| goes_on(*page, lazy)).collect();
    assert!(!unread.is_empty());
    for page in unread {
        assert!(goes_on(page, eager), "page {page}");
    }
}

/// Only sweeping comes by it.
#[test]
fn a_damaged_page_that_no_block_reads_stops_nothing() {
    let never = EngineOptions { sweep_min_bytes: u64::MAX, ..EngineOptions::default() };
    check_damage(&Damage { file: "nodes-", start: 0, stride: 4096 }, 5, &never, &sweeping());
}

/// Only pruning, and looking for witnesses without a copy, come by it.
#[test]
fn a_damaged_page_of_the_index_that_no_block_needs_stops_nothing() {
    let keeping = |retain_history| EngineOptions { retain_history, ..EngineOptions::default() };
    let index = Damage { file: "index", start: 12288, stride: 4100 };
    check_damage(&index, 700, &keeping(u64::MAX), &keeping(650));
}

#[test]
fn a_copy_is_enough_whatever_else_is_deleted() {
    let mut simulation = uncopied(0, 7, 100);
    simulation.restart_with(sweeping());
    copy_witnesses(&simulation);
    let log_bytes = simulation.fast().database().stats().unwrap().witnesses.kept_bytes;
    // The read sets of blocks come first in the log.
    let retain_witness_bytes = log_bytes * 9 / 10;
    simulation.restart_with(EngineOptions { retain_witness_bytes, ..sweeping() });
    simulation.fast().prune(&mut |_| ()).unwrap();
    simulation.restart();
    let database = simulation.fast().database().clone();
    let is = |kept: Retained<Bytes>| matches!(kept, Retained::Present(_));
    let alone = simulation.blocks.iter().filter(|block| {
        let hash = block.hash();
        is(database.witness(&hash).unwrap()) && !is(database.touched(&hash).unwrap())
    });
    let alone: Vec<_> = alone.collect();
    assert!(!alone.is_empty());
    alone.into_iter().for_each(|block| simulation.check_witness(block));
}

#[test]
fn two_heads_change_places_a_thousand_times_between_valid_invalid_and_sibling_payloads() {
    let mut simulation = Simulation::new(testing::seed(), sweeping());
    let first = simulation.fast().heads().genesis;
    let common = simulation.branch(first, 10)[9];
    let branches = [simulation.branch(common, 20), simulation.branch(common, 30)];
    for round in 0..1000 {
        let branch = &branches[round % 2];
        let head = branch[branch.len() - 1];
        assert_eq!(choose(simulation.fast(), head), Verdict::Valid);
        for (number, hash) in (11..).zip(branch) {
            assert_eq!(simulation.fast().canonical_hash(number).unwrap(), Some(*hash));
        }
        let next = 11 + branch.len() as u64;
        assert_eq!(simulation.fast().canonical_hash(next).unwrap(), None);
        // One on the head, one beside it, and one that is not valid: what the caches hold is of
        // one branch, and wanted for the other.
        match round % 6 / 2 {
            0 => _ = simulation.extend_on(head),
            1 => _ = simulation.extend_on(branch[branch.len() - 2]),
            _ => simulation.offer_a_bad_block_on(head),
        }
        simulation.ask_for_a_witness();
    }
    simulation.restart();
    simulation.check_all();
}

#[test]
fn reorgs_of_1_to_512_blocks_end_in_the_state_that_the_slow_engine_has() {
    let mut simulation = Simulation::new(testing::seed(), sweeping());
    let first = simulation.fast().heads().genesis;
    let branches = [simulation.branch(first, 513), simulation.branch(first, 513)];
    let mut last = None;
    // Each leaves one block fewer behind than its own branch has.
    for depth in 1..=513 {
        let head = branches[depth % 2][depth - 1];
        assert_eq!(choose(simulation.fast(), head), Verdict::Valid);
        for (number, hash) in (1..).zip(&branches[depth % 2][..depth]) {
            assert_eq!(simulation.fast().canonical_hash(number).unwrap(), Some(*hash));
        }
        // The branch left behind is still valid, and so are blocks on it.
        if let Some(left) = last.filter(|_| depth.is_power_of_two()) {
            simulation.extend_on(left);
            simulation.offer_a_bad_block_on(left);
            simulation.extend_on(head);
        }
        last = Some(head);
    }
    simulation.restart();
    simulation.check_all();
}
