//! What the engine's threads share.

use crate::after::persist::{PersistedBlock, Signals, tried};
use crate::after::seal::{Sealed, SweepState};
use crate::chain::record::{BlockRecord, stored_header};
use crate::chain::tree::{BlockTree, Heads, stored_block, stored_link};
use crate::read::remembered::Shelf;
use crate::threads::background::Rest;
use crate::witnesses::assemble::{Assembler, Copier};
use crate::witnesses::recent::Ring;
use crate::{Error, limits};
use alloy_primitives::{B256, Bytes};
use state::{Database, Retained};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{
    Arc, Condvar, Mutex, MutexGuard, OnceLock, RwLock, RwLockReadGuard, RwLockWriteGuard,
};
use std::time::Duration;
use trie::versioned::NodeAddress;

/// How the engine works; the defaults are for a node on a machine of its own.
#[derive(Debug, Clone)]
pub struct EngineOptions {
    /// Blocks that may wait in memory before they are persisted (`--engine.persistence-threshold`).
    pub persistence_threshold: usize,
    /// Bytes that may wait to be persisted; beyond them `newPayload` waits for the disk.
    pub unpersisted_bytes: u64,
    /// Keys handed to the trie workers at a time (`--engine.multiproof-chunk-size`).
    pub multiproof_chunk_size: usize,
    /// Gas from which on a block is worth the trie workers; a smaller one runs on one thread.
    pub parallel_gas: u64,
    /// Gas from which on the transactions of a block run side by side.
    pub ahead_gas: u64,
    /// Threads that run transactions ahead of a block that came without an access list
    /// (`--engine.ahead-threads`); 0 is none. Half of the cores but one by default, up to 7, and
    /// none below four cores.
    pub ahead_threads: usize,
    /// Threads that load tries while a block runs (`--engine.trie-workers`); `None` is as many as
    /// there are cores besides the block's and those of `ahead_threads`, 16 at most.
    pub trie_workers: Option<usize>,
    /// Threads that read ahead of a block that waits for the disk; 0 is none.
    pub prefetch_threads: usize,
    /// How long a block waits for the disk before its reads are made ahead.
    pub prefetch_after: Duration,
    /// Bytes of the log of nodes, the newest, that are read into the cache in the background when
    /// the chain is opened.
    pub read_ahead_bytes: u64,
    /// Bytes of nodes below which the log is not swept.
    pub sweep_min_bytes: u64,
    /// Bytes of nodes that are worth a step of the sweep.
    pub sweep_step_bytes: u64,
    /// Bytes of memory for codes made ready to run (`--cache.code-bytes`).
    pub code_cache_bytes: usize,
    /// Bytes of memory for the nodes of the newest witnesses (`--cache.witness-bytes`).
    pub witness_cache_bytes: usize,
    /// Blocks before the head whose state is kept (`--history.retain-blocks`).
    pub retain_history: u64,
    /// Blocks whose witness is kept as a copy of its own (`--witness.retain-blocks`).
    pub retain_witness_blocks: u64,
    /// Bytes of such copies (`--witness.retain-bytes`).
    pub retain_witness_bytes: u64,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
            persistence_threshold: 0,
            unpersisted_bytes: limits::UNPERSISTED_BYTES,
            multiproof_chunk_size: limits::MULTIPROOF_CHUNK_SIZE,
            parallel_gas: limits::PARALLEL_GAS,
            ahead_gas: limits::AHEAD_GAS,
            ahead_threads: limits::ahead_threads(processors()),
            trie_workers: None,
            prefetch_threads: limits::PREFETCH_THREADS,
            prefetch_after: limits::COLD_BLOCK,
            read_ahead_bytes: 0,
            sweep_min_bytes: limits::SWEEP_MIN_BYTES,
            sweep_step_bytes: limits::SWEEP_STEP_BYTES,
            code_cache_bytes: limits::CODE_CACHE_BYTES,
            witness_cache_bytes: limits::WITNESS_CACHE_BYTES,
            retain_history: limits::RETAIN_HISTORY,
            retain_witness_blocks: limits::RETAIN_WITNESS_BLOCKS,
            retain_witness_bytes: limits::RETAIN_WITNESS_BYTES,
        }
    }
}

/// When a witness is to be copied.
#[derive(Debug, Clone, Copy)]
pub(crate) enum CopyDue {
    /// That of a block since the database was opened: soon, while what it read is in memory.
    Now,
    /// That of a block before, which has none because the process ended too soon: before its
    /// parent's state is forgotten.
    InTime,
}

/// Which witnesses have their copies.
#[derive(Debug)]
struct Copied {
    /// By [`CopyDue`], the last number up to which each witness of a canonical block has its copy,
    /// or gets none.
    up_to: [u64; 2],
    /// How often others became canonical.
    branches: u64,
}

/// How many threads can run at once.
pub(crate) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// What is told to those who wait for persistence.
type Listener = Box<dyn Fn(PersistedBlock) + Send + Sync>;

/// The chain as all threads see it.
pub(crate) struct Core {
    pub(crate) options: EngineOptions,
    pub(crate) database: Arc<Database>,
    tree: RwLock<BlockTree>,
    /// Held by the one thread that gives addresses to a block's nodes.
    pub(crate) sealing: Mutex<()>,
    floors: Mutex<Floors>,
    pub(crate) unsealed: Unsealed,
    pub(crate) signals: Signals,
    /// The heads as a crash would leave them.
    persisted: RwLock<Heads>,
    listeners: RwLock<Vec<Listener>>,
    /// What reads of earlier blocks have left for the next one; empty while that runs.
    pub(crate) remembered: Shelf,
    pub(crate) ring: Ring,
    /// The last witness that was asked for, and room for the next. Held while one is put together,
    /// so that many who ask for one have it made once.
    pub(crate) assembler: Mutex<Assembler>,
    /// The same for all blocks but the latest: who asks for those keeps no block waiting.
    pub(crate) earlier_assembler: Mutex<Assembler>,
    /// Held while a copy of a witness is made.
    pub(crate) copier: Mutex<Copier>,
    copied: Mutex<Copied>,
    /// The head's number when the database was opened.
    opened_at: u64,
    /// Whether a block runs, and the processor is better left to it.
    pub(crate) running: AtomicBool,
    /// What seals, sweeps and persists rests.
    pub(crate) rest: Arc<Rest>,
    /// Whether the block that ran last has waited long for the disk.
    pub(crate) was_cold: AtomicBool,
    /// How long the last fork choice took, in microseconds.
    pub(crate) chosen_in_us: AtomicU64,
    failure: OnceLock<Error>,
}

impl Core {
    pub(crate) fn new(
        options: EngineOptions,
        database: Arc<Database>,
        heads: Heads,
        floors: Floors,
        [head_number, first_number]: [u64; 2],
    ) -> Result<Self, Error> {
        let rest = Arc::new(Rest::default());
        database.pace_writes({
            let rest = rest.clone();
            move || rest.pause()
        });
        Ok(Self {
            ring: Ring::new(options.witness_cache_bytes),
            assembler: Mutex::default(),
            earlier_assembler: Mutex::default(),
            options,
            tree: RwLock::new(BlockTree::new(database.clone(), heads)?),
            database,
            sealing: Mutex::new(()),
            floors: Mutex::new(floors),
            unsealed: Unsealed::default(),
            signals: Signals::default(),
            persisted: RwLock::new(heads),
            listeners: RwLock::default(),
            remembered: Shelf::new(),
            copier: Mutex::default(),
            copied: Mutex::new(Copied { up_to: [head_number, first_number], branches: 0 }),
            opened_at: head_number,
            running: AtomicBool::new(false),
            rest,
            // That a block waits for the disk is seen soon enough.
            was_cold: AtomicBool::new(false),
            chosen_in_us: AtomicU64::new(0),
            failure: OnceLock::new(),
        })
    }

    pub(crate) fn tree(&self) -> RwLockReadGuard<'_, BlockTree> {
        self.tree.read().expect(NO_PANIC)
    }

    pub(crate) fn tree_mut(&self) -> RwLockWriteGuard<'_, BlockTree> {
        self.tree.write().expect(NO_PANIC)
    }

    pub(crate) fn floors(&self) -> MutexGuard<'_, Floors> {
        self.floors.lock().expect(NO_PANIC)
    }

    /// A valid block, `None` when there is none.
    pub(crate) fn block(&self, hash: &B256) -> Result<Option<Arc<BlockRecord>>, Error> {
        match self.recent(hash) {
            Some(record) => Ok(Some(record)),
            None => stored_block(&self.database, hash),
        }
    }

    /// The RLP of a valid block's header.
    pub(crate) fn header_rlp(&self, hash: &B256) -> Result<Option<Bytes>, Error> {
        match self.recent(hash) {
            Some(record) => Ok(Some(alloy_rlp::encode(&record.block.header).into())),
            None => self.database.block(hash)?.map(|stored| stored_header(&stored)).transpose(),
        }
    }

    /// A valid block, if it is one of the newest. What it leaves out is in the database, which is
    /// not read while the tree is locked: the fork choice would wait for that.
    fn recent(&self, hash: &B256) -> Option<Arc<BlockRecord>> {
        self.tree().recent(hash).cloned()
    }

    /// The state after a block, as long as it is kept.
    pub(crate) fn sealed<'a>(&self, record: &'a BlockRecord) -> Result<&'a Sealed, Error> {
        record.seal.hurry();
        let _waiting = (!record.seal.is_kept()).then(|| self.rest.wait_for_work());
        let sealed = record.seal.wait()?;
        let mut floors = self.floors();
        if !self.keeps(&floors, record.number(), sealed) {
            return Err(Error::Pruned(record.hash()));
        }
        // It may be on a branch from before the database was opened, and is needed from here on.
        floors.add(record.number(), &sealed.sweep);
        Ok(sealed)
    }

    /// Whether the version after a block with this number is kept.
    fn keeps(&self, floors: &Floors, number: u64, sealed: &Sealed) -> bool {
        let start = floors.start.max(self.database.nodes().start());
        let has_nodes = sealed.version.address.is_none() || sealed.sweep.floor >= start;
        floors.first <= number && has_nodes
    }

    /// Number and parent of a valid block, `None` when there is none.
    pub(crate) fn link(&self, hash: &B256) -> Result<Option<(u64, B256)>, Error> {
        let recent = self.tree().recent_link(hash);
        match recent {
            Some(link) => Ok(Some(link)),
            None => stored_link(&self.database, hash),
        }
    }

    /// The number of a valid block that must be there.
    pub(crate) fn number(&self, hash: &B256) -> Result<u64, Error> {
        Ok(self.link(hash)?.ok_or(Error::UnknownBlock(*hash))?.0)
    }

    /// Whether the state after a valid block is known not to be kept any more. Fails where it could
    /// not be written, as on a full disk.
    pub(crate) fn is_pruned(&self, record: &BlockRecord) -> Result<bool, Error> {
        Ok(match record.seal.is_kept().then(|| record.seal.wait()).transpose() {
            Ok(Some(sealed)) => !self.keeps(&self.floors(), record.number(), sealed),
            Ok(None) => record.number() < self.floors().first(),
            Err(Error::Pruned(_)) => true,
            Err(error) => return Err(error),
        })
    }

    /// The heads as a crash would leave them.
    pub(crate) fn persisted_heads(&self) -> Heads {
        *self.persisted.read().expect(NO_PANIC)
    }

    /// Tells those who wait that `block` is persisted.
    pub(crate) fn persisted(&self, block: PersistedBlock, heads: Heads) {
        *self.persisted.write().expect(NO_PANIC) = heads;
        for listener in self.listeners.read().expect(NO_PANIC).iter() {
            listener(block);
        }
    }

    /// The next canonical block, up to the one with the number `last`, whose witness is to get a
    /// copy and has none: persisted, and with its nodes kept. Each is given once.
    pub(crate) fn next_copy(&self, due: CopyDue, last: u64) -> Result<Option<B256>, Error> {
        let head = self.number(&self.persisted_heads().head)?;
        let last = match due {
            CopyDue::Now => last.min(head),
            CopyDue::InTime => last.min(self.opened_at).min(head),
        };
        let kept = self.floors().first() + 1;
        let wanted = (head + 1).saturating_sub(self.options.retain_witness_blocks);
        let Copied { up_to, branches } = *self.copied();
        let copied = up_to[due as usize];
        let note = |number| {
            let mut copied = self.copied();
            // What has become canonical meanwhile is looked at again.
            if copied.branches == branches {
                copied.up_to[due as usize] = number;
            }
        };
        for number in (copied + 1).max(kept).max(wanted)..=last {
            let entry = || {
                let Some(hash) = self.canonical_hash(number)? else { return Ok(None) };
                Ok::<_, Error>(self.database.entry(&hash)?.map(|entry| (hash, entry)))
            };
            let entry = match tried(entry) {
                Ok(entry) => entry,
                // It holds up no other.
                Err(error) => {
                    tracing::warn!(%error, number, "a block's witness is not copied");
                    continue;
                }
            };
            let Some((hash, entry)) = entry else { return Ok(None) };
            if entry.witness == Retained::Never {
                note(number);
                return Ok(Some(hash));
            }
        }
        note(last.max(copied));
        Ok(None)
    }

    /// The hash of block `number` of the canonical chain. Nobody waits for the tree while the disk
    /// is read.
    pub(crate) fn canonical_hash(&self, number: u64) -> Result<Option<B256>, Error> {
        let newest = self.tree().newest_canonical(number)?;
        newest.map_or_else(|| Ok(self.database.canonical(number)?), Ok)
    }

    /// The last number up to which each witness of a canonical block has its copy, or gets none.
    pub(crate) fn copied_up_to(&self, due: CopyDue) -> u64 {
        self.copied().up_to[due as usize]
    }

    /// Notes that other blocks are canonical above `number`: they may have no copies yet.
    pub(crate) fn branched_off(&self, number: u64) {
        let mut copied = self.copied();
        copied.up_to[CopyDue::Now as usize] = copied.up_to[CopyDue::Now as usize].min(number);
        copied.branches += 1;
    }

    fn copied(&self) -> MutexGuard<'_, Copied> {
        self.copied.lock().expect(NO_PANIC)
    }

    pub(crate) fn is_running(&self) -> bool {
        self.running.load(Ordering::Relaxed)
    }

    pub(crate) fn listen(&self, listener: Listener) {
        self.listeners.write().expect(NO_PANIC).push(listener);
    }

    /// Remembers why the engine has stopped. The first reason stays.
    pub(crate) fn fail(&self, error: Error) {
        let _ = self.failure.set(error);
    }

    /// An error when the engine has stopped.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match self.failure.get() {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }
}

const NO_PANIC: &str = "no thread panics while it holds the lock";

impl std::fmt::Debug for Core {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Core").field("options", &self.options).finish_non_exhaustive()
    }
}

/// Blocks that are validated or wait to be sealed: each needs its parent's state until then, and
/// holds what it read.
#[derive(Debug, Default)]
pub(crate) struct Unsealed {
    blocks: Mutex<UnsealedBlocks>,
    one_sealed: Condvar,
}

#[derive(Debug, Default)]
struct UnsealedBlocks {
    /// How many have which number.
    numbers: BTreeMap<u64, usize>,
    bytes: u64,
}

impl Unsealed {
    /// Notes a block with this number, until what this gives is dropped.
    pub(crate) fn begin(core: &Arc<Core>, number: u64) -> UnsealedBlock {
        *core.unsealed.blocks().numbers.entry(number).or_default() += 1;
        UnsealedBlock { core: core.clone(), number, bytes: 0 }
    }

    /// The lowest number that one has.
    pub(crate) fn lowest(&self) -> Option<u64> {
        self.blocks().numbers.first_key_value().map(|(number, _)| *number)
    }

    /// Whether they hold more than `most_bytes`.
    pub(crate) fn are_above(&self, most_bytes: u64) -> bool {
        self.blocks().bytes > most_bytes
    }

    /// Waits until they hold `most_bytes` at most.
    pub(crate) fn wait(&self, most_bytes: u64) {
        let is_above = |blocks: &mut UnsealedBlocks| blocks.bytes > most_bytes;
        drop(self.one_sealed.wait_while(self.blocks(), is_above).expect(NO_PANIC));
    }

    fn blocks(&self) -> MutexGuard<'_, UnsealedBlocks> {
        self.blocks.lock().expect(NO_PANIC)
    }
}

/// One of the [`Unsealed`].
#[derive(Debug)]
pub(crate) struct UnsealedBlock {
    core: Arc<Core>,
    number: u64,
    bytes: u64,
}

impl UnsealedBlock {
    /// Notes how much it holds.
    pub(crate) fn holds(&mut self, bytes: u64) {
        self.bytes += bytes;
        self.core.unsealed.blocks().bytes += bytes;
    }
}

impl Drop for UnsealedBlock {
    fn drop(&mut self) {
        let mut blocks = self.core.unsealed.blocks();
        blocks.bytes -= self.bytes;
        if let Some(count) = blocks.numbers.get_mut(&self.number) {
            *count -= 1;
            if *count == 0 {
                blocks.numbers.remove(&self.number);
            }
        }
        self.core.unsealed.one_sealed.notify_all();
    }
}

/// Which versions are kept, and where the nodes of the newest begin.
#[derive(Debug)]
pub(crate) struct Floors {
    /// The first number whose versions are kept.
    first: u64,
    /// Below it all nodes are deleted, or are about to be.
    start: NodeAddress,
    /// For each number the lowest address of the versions that were added since the database was
    /// opened, with that number or a later one. Where it is the same, the last of them says so:
    /// both ascend.
    added: BTreeMap<u64, NodeAddress>,
}

impl Floors {
    pub(crate) fn of(database: &Database) -> Self {
        let start = database.nodes().start();
        Self { first: database.versions_from(), start, added: BTreeMap::new() }
    }

    /// The first number whose versions are kept.
    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    /// Notes a version.
    pub(crate) fn add(&mut self, number: u64, sweep: &SweepState) {
        let floor = sweep.floor;
        if self.added.range(number..).next().is_some_and(|(_, later)| *later <= floor) {
            return;
        }
        while let Some((&earlier, _)) =
            self.added.range(..=number).next_back().filter(|(_, earlier)| **earlier >= floor)
        {
            self.added.remove(&earlier);
        }
        self.added.insert(number, floor);
    }

    /// Forgets the numbers below `cutoff`, whose canonical version has this floor, and says what
    /// the lowest address of the others is.
    ///
    /// Nothing on a branch has a lower floor than what it stands on. So this is the lowest of all
    /// but those that branch off before `cutoff`, of which the ones that were added before the
    /// database was opened, and not asked for since, are given up.
    pub(crate) fn cut(&mut self, cutoff: u64, floor: NodeAddress) -> NodeAddress {
        self.first = cutoff;
        self.added = self.added.split_off(&cutoff);
        self.start = self.added.values().next().map_or(floor, |lowest| floor.min(*lowest));
        self.start
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng, rngs::StdRng};

    /// The slow twin keeps every floor.
    #[test]
    fn floors_are_those_of_all_versions_that_are_kept() {
        let seed: u64 = rand::random();
        println!("seed {seed}");
        let mut random = StdRng::seed_from_u64(seed);
        for _ in 0..200 {
            let mut floors =
                Floors { first: 0, start: NodeAddress::new(0), added: BTreeMap::new() };
            let mut all: Vec<(u64, NodeAddress)> = Vec::new();
            for _ in 0..60 {
                let number = random.random_range(0..40);
                let floor = NodeAddress::new(random.random_range(0..8));
                if random.random_ratio(1, 4) {
                    all.retain(|(at, _)| *at >= number);
                    let expected = all.iter().fold(floor, |least, (_, floor)| least.min(*floor));
                    assert_eq!(floors.cut(number, floor), expected);
                } else {
                    all.push((number, floor));
                    floors.add(number, &SweepState { floor, ..SweepState::default() });
                }
                assert!(floors.added.len() <= 8, "one for each floor, not for each number");
            }
        }
    }
}
