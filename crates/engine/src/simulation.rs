//! Floor 5. The engine against a slow one: random blocks, branches, bad blocks, heads, restarts and
//! crashes.
//!
//! The seed is printed; `DEPONENT_SEED` repeats a run, `DEPONENT_STEPS` makes it longer.

use crate::after::prune::prune;
use crate::samples::{attributes, branch, changed, choose, extend, genesis_file, heads, sender};
use crate::witnesses::copied::CopyDue;
use crate::witnesses::copies::copy_a_witness;
use crate::world;
use crate::{Engine, EngineOptions, Error, Genesis, Verdict};
use alloy_consensus::Header;
use alloy_primitives::map::{B256Map, B256Set};
use alloy_primitives::{Address, B256, Bytes, TxKind, U256, keccak256};
use execution::{ChainSpec, SealedBlock, Transaction};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use state::{Database, Disk, MemoryDisk, Options, Retained};
use std::sync::Arc;
use std::time::Duration;
use trie::{AccountChange, AccountInfo, NodeSource, StateChanges, StateTrie};
use witness::{Ancestor, Source, TrieState, Witness};

mod power_cuts;

/// Contracts that store word 1 of a call's data in the slot that word 0 names.
const LEDGERS: u8 = 3;

fn ledger(number: u8) -> Address {
    Address::repeat_byte(0xd0 + number)
}

/// A genesis with this number.
fn genesis(number: u64) -> (ChainSpec, Genesis, alloy_genesis::Genesis) {
    let mut file = genesis_file(world::config("osaka"));
    file.number = Some(number);
    for number in 0..LEDGERS {
        let code = Bytes::from_static(&[0x60, 0x20, 0x35, 0x60, 0, 0x35, 0x55]);
        let slots = (0..u64::from(number) * 40)
            .map(|n| (B256::from(U256::from(n)), B256::with_last_byte(1)));
        let account = alloy_genesis::GenesisAccount {
            code: Some(code),
            storage: Some(slots.collect()),
            ..Default::default()
        };
        file.alloc.insert(ledger(number), account);
    }
    // Enough accounts for the state's root to have all its children.
    for number in 0..400u64 {
        let address = Address::from_word(keccak256(number.to_be_bytes()));
        let balance = U256::from(number + 1);
        let account = alloy_genesis::GenesisAccount { balance, ..Default::default() };
        file.alloc.insert(address, account);
    }
    let chain = ChainSpec::from_config(&file.config).unwrap();
    let genesis = Genesis::new(&file, &chain).unwrap();
    (chain, genesis, file)
}

/// Nodes by hash in a map, tries made for each block: no versions, threads, caches or files.
#[derive(Debug)]
struct Slow {
    chain: ChainSpec,
    nodes: B256Map<Bytes>,
    codes: B256Map<Bytes>,
    headers: B256Map<Header>,
    witnesses: B256Map<Witness>,
}

impl Slow {
    fn new(chain: ChainSpec, genesis: &Genesis) -> Self {
        let (mut nodes, mut codes) = (B256Map::default(), B256Map::default());
        let accounts = genesis.alloc.iter().map(|(address, account)| {
            let code_hash = keccak256(&account.code);
            codes.insert(code_hash, account.code.clone());
            let (nonce, balance) = (account.nonce, account.balance);
            let slot =
                |(slot, value): (&U256, &U256)| (keccak256(slot.to_be_bytes::<32>()), *value);
            AccountChange {
                hashed_address: keccak256(address),
                account: Some(AccountInfo { nonce, balance, code_hash }),
                storage_wiped: false,
                storage: account.storage.iter().map(slot).collect(),
            }
        });
        let changes = StateChanges { accounts: accounts.collect() };
        let mut trie = StateTrie::new(trie::EMPTY_ROOT_HASH);
        let root = trie.apply(&changes, &B256Map::<Bytes>::default()).unwrap();
        assert_eq!(root, genesis.header.state_root);
        trie.new_nodes(&mut |hash, rlp| drop(nodes.insert(hash, rlp)));
        let headers = [(genesis.header.hash_slow(), genesis.header.clone())];
        let headers = headers.into_iter().collect();
        Self { chain, nodes, codes, headers, witnesses: B256Map::default() }
    }

    /// Whether the block is valid on its parent; remembers it then.
    fn validate(&mut self, block: &SealedBlock) -> bool {
        let parent_hash = block.header.parent_hash;
        let parent = self.headers[&parent_hash].clone();
        let senders = execution::recover_senders(&block.body.transactions).unwrap();
        let view = View { slow: self, parent: parent_hash };
        let mut state = TrieState::new(parent.state_root, &view);
        let executed = execution::validate(
            &self.chain,
            &parent,
            parent_hash,
            block,
            &senders,
            execution::RunOptions::default(),
            &mut state,
        );
        let Ok(executed) = executed else { return false };
        let witness = executed.witness(&mut state, &block.header).unwrap();
        let mut nodes = Vec::new();
        state.new_nodes(&mut |hash, rlp| nodes.push((hash, rlp)));
        self.nodes.extend(nodes);
        self.codes.extend(executed.new_codes);
        self.headers.insert(block.hash(), block.header.clone());
        self.witnesses.insert(block.hash(), witness);
        true
    }
}

#[derive(Debug)]
struct View<'a> {
    slow: &'a Slow,
    parent: B256,
}

impl NodeSource for View<'_> {
    fn node(&self, hash: &B256) -> Option<Bytes> {
        self.slow.nodes.get(hash).cloned()
    }
}

impl Source for View<'_> {
    fn code(&self, code_hash: &B256) -> Option<Bytes> {
        self.slow.codes.get(code_hash).cloned()
    }

    fn ancestor(&self, number: u64) -> Option<Ancestor> {
        let mut hash = self.parent;
        loop {
            let header = self.slow.headers.get(&hash)?;
            if header.number == number {
                return Some(Ancestor { hash, rlp: alloy_rlp::encode(header).into() });
            }
            hash = header.parent_hash;
        }
    }
}

/// An engine whose segments are small, so that there are many.
fn open(
    disk: impl Disk + 'static,
    genesis: &alloy_genesis::Genesis,
    options: EngineOptions,
) -> Result<Engine, Error> {
    let small =
        Options { segment_bytes: 64 << 10, witness_segment_bytes: 4 << 10, ..Options::default() };
    let database = Database::open(disk, &small)?;
    let chain = ChainSpec::from_config(&genesis.config).unwrap();
    let genesis = Genesis::new(genesis, &chain).unwrap();
    Engine::open(chain, Some(genesis), database, options)
}

/// The two engines, and what is known of the chain.
struct Simulation {
    random: StdRng,
    disk: MemoryDisk,
    options: EngineOptions,
    genesis: alloy_genesis::Genesis,
    /// `None` only while it is opened again.
    fast: Option<Engine>,
    slow: Slow,
    /// Every valid block but the first, in the order of validation.
    blocks: Vec<SealedBlock>,
    /// Transactions sent on the branch of each block.
    nonces: B256Map<u64>,
}

impl Simulation {
    fn new(seed: u64, options: EngineOptions) -> Self {
        Self::beginning_at(0, seed, options)
    }

    /// A chain whose genesis has this number.
    fn beginning_at(number: u64, seed: u64, options: EngineOptions) -> Self {
        let (chain, genesis, file) = genesis(number);
        let slow = Slow::new(chain.clone(), &genesis);
        let disk = MemoryDisk::new();
        let nonces = [(genesis.header.hash_slow(), 0)].into_iter().collect();
        let mut simulation = Self {
            random: StdRng::seed_from_u64(seed),
            disk,
            options,
            genesis: file,
            fast: None,
            slow,
            blocks: Vec::new(),
            nonces,
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
            0..50 => self.extend(),
            50..60 => self.offer_a_bad_block(),
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
        let mut nonce = self.nonces[&parent];
        let count = self.random.random_range(0..6);
        let transactions = (0..count).map(|_| {
            let transaction = match self.random.random_range(0..4) {
                0 => {
                    let to = Address::with_last_byte(self.random.random_range(20..60));
                    sender().transact(nonce, TxKind::Call(to), U256::from(1), Bytes::new())
                }
                _ => {
                    let slot = U256::from(self.random.random_range(0..90u64));
                    let value = U256::from(self.random.random_range(0..3u64));
                    let to = ledger(self.random.random_range(0..LEDGERS));
                    let words = [slot.to_be_bytes::<32>(), value.to_be_bytes::<32>()];
                    sender().call(nonce, to, words.concat())
                }
            };
            nonce += 1;
            transaction
        });
        transactions.collect()
    }

    fn build_on(&mut self, parent: B256) -> SealedBlock {
        let transactions = self.transactions(parent);
        let count = transactions.len() as u64;
        let attributes = attributes(self.fast(), parent);
        let tag = Bytes::from(vec![self.random.random::<u8>()]);
        let block = self.fast().build(parent, attributes, transactions, tag).unwrap().block;
        let nonce = self.nonces[&parent] + count;
        self.nonces.insert(block.hash(), nonce);
        block
    }

    fn extend(&mut self) {
        let parent = self.parent();
        self.extend_on(parent);
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
            self.extend();
            let head = self.blocks.last().expect("one was added").hash();
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
            assert!(
                matches!(copy, Retained::Present(_)),
                "block {}: {copy:?}",
                block.header.number
            );
        }
    }

    fn offer_a_bad_block(&mut self) {
        let parent = self.parent();
        self.offer_a_bad_block_on(parent);
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

    /// Opens the files as they are in the middle of things: what is lost is a tail of the blocks.
    fn crash(&mut self) {
        let files = self.disk.contents();
        drop(self.fast.take());
        self.disk = MemoryDisk::with_contents(&files);
        self.open();
        let known = |block: &SealedBlock| self.fast().block(block.hash()).unwrap().is_some();
        let kept = self.blocks.iter().take_while(|block| known(block)).count();
        for block in &self.blocks[kept..] {
            assert!(!known(block), "a block is there, and one before it is not");
        }
        let head = self.fast().heads().head;
        let first = self.fast().heads().genesis;
        assert!(head == first || self.slow.headers.contains_key(&head));
        for block in &self.blocks[kept..] {
            assert_eq!(self.fast().new_block(block.clone()).unwrap(), Verdict::Valid);
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
    }
}

fn simulate(seed: u64, options: EngineOptions) {
    let steps = testing::rounds("DEPONENT_STEPS", 120, 400);
    // Witnesses of no block are in memory, of a few, or of all since the last start.
    let witness_cache_bytes = [0, 40 << 10, options.witness_cache_bytes][seed as usize % 3];
    let options = EngineOptions { witness_cache_bytes, ..options };
    println!("DEPONENT_SEED={seed} DEPONENT_STEPS={steps}, {options:?}");
    let mut simulation = Simulation::new(seed, options);
    for _ in 0..steps {
        simulation.step();
    }
    simulation.check_all();
}

fn seed() -> u64 {
    match std::env::var("DEPONENT_SEED") {
        Ok(seed) => seed.parse().expect("DEPONENT_SEED is a number"),
        Err(_) => rand::random(),
    }
}

/// Sweeps that begin at once and move little at a time, so that they are always under way.
fn sweeping() -> EngineOptions {
    EngineOptions { sweep_min_bytes: 1, sweep_step_bytes: 1 << 10, ..EngineOptions::default() }
}

#[test]
fn the_engine_agrees_with_the_slow_one_on_one_thread() {
    simulate(seed(), sweeping());
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
        simulate(seed(), options);
    }
}

#[test]
fn what_waits_for_the_disk_is_bounded_and_lazy_persistence_loses_no_more_than_it_may() {
    let options =
        EngineOptions { persistence_threshold: 5, unpersisted_bytes: 40 << 10, ..sweeping() };
    simulate(seed(), options);
}

#[test]
fn history_that_is_not_kept_is_refused_and_nothing_else_is() {
    let (retain_history, length) = (8, 40);
    let options = EngineOptions { retain_history, ..sweeping() };
    let mut simulation = Simulation::new(1, options);
    for _ in 0..length {
        let head = simulation.blocks.last().map(SealedBlock::hash);
        let head = head.unwrap_or(simulation.fast().heads().genesis);
        let hash = simulation.extend_on(head);
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
                assert_eq!(simulation.fast().new_block(child), Ok(Verdict::Syncing));
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
    let (engine, shared) = (simulation.fast(), simulation.fast().shared());
    let grow = || {
        let head = extend(engine, engine.heads().head, 0);
        assert_eq!(choose(engine, head), Verdict::Valid);
        engine.prune(&mut |_| ()).unwrap();
        shared.chain.floors().first()
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
    simulation.options.retain_history = 8;
    simulation.restart();
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

/// Makes all copies of witnesses that are due.
fn copy_witnesses(simulation: &Simulation) {
    simulation.fast().persist().unwrap();
    for due in [CopyDue::Now, CopyDue::InTime] {
        while copy_a_witness(simulation.fast().shared(), due, u64::MAX) {}
    }
    simulation.fast().persist().unwrap();
}

#[test]
fn every_canonical_block_has_its_copy_after_reorgs_and_restarts() {
    let mut simulation = Simulation::new(6, sweeping());
    for round in 0..30 {
        (0..5).for_each(|_| simulation.extend());
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
    let none = EngineOptions { retain_witness_blocks: 0, ..sweeping() };
    let mut simulation = Simulation::new(9, none);
    simulation.grow(60);
    // The deepest reorg is of 9 blocks. What gets canonical by a deeper one may have been forgotten
    // before.
    simulation.options = EngineOptions { retain_history: 10, witness_cache_bytes: 0, ..sweeping() };
    simulation.restart();
    simulation.grow(60);
    simulation.fast().persist().unwrap();
    simulation.fast().prune(&mut |_| ()).unwrap();
    simulation.restart();
    simulation.canonical().iter().for_each(|block| simulation.check_witness(block));
}

#[test]
fn a_state_is_not_forgotten_before_its_copies_can_be_read() {
    let none = EngineOptions { retain_witness_blocks: 0, ..sweeping() };
    let mut simulation = Simulation::new(12, none);
    simulation.grow(60);
    simulation.options = EngineOptions {
        retain_history: 8,
        witness_cache_bytes: 0,
        persistence_threshold: usize::MAX,
        ..sweeping()
    };
    simulation.restart();
    let mut parts = vec![0.0];
    simulation.fast().prune(&mut |part| parts.push(part)).unwrap();
    assert!(parts.is_sorted() && parts.len() > 9 && parts.ends_with(&[1.0]), "{parts:?}");
    assert!(simulation.fast().shared().chain.floors().first() > 8);
    simulation.canonical().iter().for_each(|block| simulation.check_witness(block));
}

#[test]
fn a_state_is_not_forgotten_before_its_blocks_are_persisted() {
    let options = EngineOptions {
        retain_history: 8,
        witness_cache_bytes: 0,
        persistence_threshold: usize::MAX,
        ..sweeping()
    };
    let mut simulation = Simulation::new(10, options);
    for _ in 0..3 {
        simulation.grow(30);
        // As when the fork choice goes on while a round persists.
        prune(simulation.fast().shared(), &mut |_| ()).unwrap();
        simulation.fast().persist().unwrap();
    }
    assert!(simulation.fast().shared().chain.floors().first() > 8);
    simulation.canonical().iter().for_each(|block| simulation.check_witness(block));
}

#[test]
fn a_chain_that_begins_late_has_its_copies_too() {
    let none = EngineOptions { retain_witness_blocks: 0, ..sweeping() };
    let mut simulation = Simulation::beginning_at(1000, 11, none);
    simulation.grow(20);
    simulation.options = sweeping();
    simulation.restart();
    simulation.check_copies();
}

#[test]
fn a_chain_that_begins_late_passes_over_what_was_before() {
    for (number, is_taken) in [(0, false), (1000, true)] {
        let mut simulation = Simulation::beginning_at(number, 13, sweeping());
        simulation.extend();
        let head = simulation.blocks.last().expect("one was added").hash();
        let before = B256::repeat_byte(9);
        let named = |finalized| heads(head, finalized, finalized);
        let outcome = simulation.fast().forkchoice_updated(named(before), None);
        assert_eq!(outcome.is_ok(), is_taken, "{outcome:?}");
        // Once a block that is known is final, no other name is passed over.
        assert!(simulation.fast().forkchoice_updated(named(head), None).is_ok());
        assert!(simulation.fast().forkchoice_updated(named(before), None).is_err());
    }
}

/// Only sweeping comes by it.
#[test]
fn a_damaged_page_that_no_block_reads_stops_nothing() {
    let mut simulation = Simulation::new(12, sweeping());
    let first = branch(simulation.fast(), simulation.fast().heads().genesis, 0, 5);
    assert_eq!(choose(simulation.fast(), first[4]), Verdict::Valid);
    simulation.fast().persist().unwrap();
    drop(simulation.fast.take());
    let contents = simulation.disk.contents();
    let (nodes, bytes) = contents.iter().find(|(name, _)| name.starts_with("nodes-")).unwrap();
    let mut goes_on = |page: usize, options: EngineOptions| {
        let mut contents = contents.clone();
        contents.get_mut(nodes).unwrap()[page * 4096 + 100] ^= 1;
        simulation.disk = MemoryDisk::with_contents(&contents);
        simulation.options = options;
        simulation.open();
        let (engine, parent) = (simulation.fast(), simulation.fast().heads().head);
        let run = || {
            let blocks = branch(engine, parent, 1, 30);
            blocks.iter().all(|block| choose(engine, *block) == Verdict::Valid)
        };
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_ok_and(|is_valid| is_valid)
    };
    let never = EngineOptions { sweep_min_bytes: u64::MAX, ..EngineOptions::default() };
    let unread: Vec<_> =
        (0..bytes.len() / 4096).filter(|page| goes_on(*page, never.clone())).collect();
    assert!(!unread.is_empty());
    for page in unread {
        assert!(goes_on(page, sweeping()), "page {page}");
    }
}

/// Only pruning, and looking for witnesses without a copy, come by it.
#[test]
fn a_damaged_page_of_the_index_that_no_block_needs_stops_nothing() {
    const BLOCKS: usize = 700;
    const AT: usize = 12288;
    const STRIDE: usize = 4100;
    let mut simulation = Simulation::new(14, sweeping());
    let first = branch(simulation.fast(), simulation.fast().heads().genesis, 0, BLOCKS);
    assert_eq!(choose(simulation.fast(), first[first.len() - 1]), Verdict::Valid);
    simulation.fast().persist().unwrap();
    drop(simulation.fast.take());
    let contents = simulation.disk.contents();
    let mut goes_on = |page: usize, retain_history: u64| {
        let mut contents = contents.clone();
        contents.get_mut("index").unwrap()[AT + page * STRIDE + 100] ^= 1;
        simulation.disk = MemoryDisk::with_contents(&contents);
        simulation.options = EngineOptions { retain_history, ..EngineOptions::default() };
        let run = || {
            simulation.open();
            let (engine, parent) = (simulation.fast(), simulation.fast().heads().head);
            let blocks = branch(engine, parent, 1, 3);
            blocks.iter().all(|block| {
                let is_valid = choose(engine, *block) == Verdict::Valid;
                engine.persist().is_ok() && is_valid
            })
        };
        let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
        drop(simulation.fast.take());
        ran.is_ok_and(|is_valid| is_valid)
    };
    let pages = (contents["index"].len() - AT) / STRIDE;
    let unread: Vec<_> = (0..pages).filter(|page| goes_on(*page, u64::MAX)).collect();
    assert!(!unread.is_empty());
    for page in unread {
        assert!(goes_on(page, BLOCKS as u64 - 50), "page {page}");
    }
}

#[test]
fn a_copy_is_enough_whatever_else_is_deleted() {
    let none = EngineOptions { retain_witness_blocks: 0, ..sweeping() };
    let mut simulation = Simulation::new(7, none);
    simulation.grow(100);
    simulation.options = sweeping();
    simulation.restart();
    copy_witnesses(&simulation);
    let log_bytes = simulation.fast().database().stats().unwrap().witnesses.kept_bytes;
    // The read sets of blocks come first in the log.
    simulation.options.retain_witness_bytes = log_bytes * 9 / 10;
    simulation.restart();
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
    let seed = seed();
    println!("DEPONENT_SEED={seed}");
    let mut simulation = Simulation::new(seed, sweeping());
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
            0 => drop(simulation.extend_on(head)),
            1 => drop(simulation.extend_on(branch[branch.len() - 2])),
            _ => simulation.offer_a_bad_block_on(head),
        }
        simulation.ask_for_a_witness();
    }
    simulation.restart();
    simulation.check_all();
}

#[test]
fn reorgs_of_1_to_512_blocks_end_in_the_state_that_the_slow_engine_has() {
    let seed = seed();
    println!("DEPONENT_SEED={seed}");
    let mut simulation = Simulation::new(seed, sweeping());
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
