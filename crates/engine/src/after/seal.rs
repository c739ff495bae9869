//! Giving addresses to what a block has changed.

use crate::block::live::{Tries, drop_in_parts};
use crate::chain::read_set::Nodes;
use crate::chain::record::BlockRecord;
use crate::shared::Core;
use crate::threads::background::{self, Turns, Yielding};
use crate::{Error, limits};
use alloy_primitives::{B256, Bytes};
use alloy_rlp::{Decodable, RlpDecodable, RlpEncodable};
use state::{Database, NewBlock, NewCode};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use trie::versioned::{NodeAddress, SweepCursor, Version, sweep};

/// The state after a block, and how far it has been swept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sealed {
    /// The state's root.
    pub(crate) version: Version,
    pub(crate) sweep: SweepState,
}

/// Where the sweep of a branch of versions stands; see docs/design/state.md.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct SweepState {
    /// No node of the version has an address below.
    pub(crate) floor: NodeAddress,
    /// The cycle under way.
    pub(crate) cycle: Option<Cycle>,
    /// Bytes in use, as the last whole cycle found; 0 before the first.
    pub(crate) live_bytes: u64,
    /// Bytes that blocks have appended and no step has answered yet.
    pub(crate) owed_bytes: u64,
}

/// One walk through the whole state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cycle {
    /// Where the log ended when the cycle began: nodes below are moved.
    below: NodeAddress,
    /// Where the walk goes on.
    cursor: SweepCursor,
    /// Bytes moved so far.
    moved_bytes: u64,
}

#[derive(RlpEncodable, RlpDecodable)]
struct StoredSweep {
    floor: u64,
    live_bytes: u64,
    owed_bytes: u64,
    below: u64,
    moved_bytes: u64,
    hashed_address: B256,
    hashed_slot: B256,
}

impl SweepState {
    pub(crate) fn to_stored(self) -> Bytes {
        let cycle = self.cycle;
        let cursor = cycle.map_or_else(SweepCursor::default, |cycle| cycle.cursor);
        let stored = StoredSweep {
            floor: self.floor.offset(),
            live_bytes: self.live_bytes,
            owed_bytes: self.owed_bytes,
            below: cycle.map_or(0, |cycle| cycle.below.offset()),
            moved_bytes: cycle.map_or(0, |cycle| cycle.moved_bytes),
            hashed_address: cursor.hashed_address,
            hashed_slot: cursor.hashed_slot,
        };
        alloy_rlp::encode(stored).into()
    }

    pub(crate) fn from_stored(stored: &[u8]) -> Result<Self, Error> {
        let damaged = || Error::Storage("a version's sweep state cannot be read back".into());
        let stored = StoredSweep::decode(&mut &stored[..]).map_err(|_| damaged())?;
        if stored.floor.max(stored.below) >> 48 != 0 {
            return Err(damaged());
        }
        let StoredSweep { hashed_address, hashed_slot, .. } = stored;
        let cursor = SweepCursor { hashed_address, hashed_slot };
        let (below, moved_bytes) = (NodeAddress::new(stored.below), stored.moved_bytes);
        let cycle = (!below.is_none()).then_some(Cycle { below, cursor, moved_bytes });
        let (live_bytes, owed_bytes) = (stored.live_bytes, stored.owed_bytes);
        Ok(Self { floor: NodeAddress::new(stored.floor), cycle, live_bytes, owed_bytes })
    }
}

/// Says what the state after a block is as soon as its nodes have addresses. Clones are the same
/// promise.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seal(Arc<Promise>);

#[derive(Debug, Default)]
struct Promise {
    sealed: OnceLock<Result<Sealed, Error>>,
    /// Whether somebody waits who would rather not, or is about to.
    is_urgent: AtomicBool,
}

impl Seal {
    /// A promise that is kept already.
    pub(crate) fn kept(sealed: Result<Sealed, Error>) -> Self {
        Self(Arc::new(Promise { sealed: sealed.into(), is_urgent: false.into() }))
    }

    /// Keeps the promise.
    fn keep(&self, sealed: Result<Sealed, Error>) {
        self.0.sealed.set(sealed).expect("a block is sealed once");
    }

    #[cfg(test)]
    pub(crate) fn keep_for_tests(&self) {
        self.keep(Ok(Sealed { version: Version::EMPTY, sweep: SweepState::default() }));
    }

    /// Whether waiting is over.
    pub(crate) fn is_kept(&self) -> bool {
        self.0.sealed.get().is_some()
    }

    /// Has it kept soon: what can be left for later is.
    pub(crate) fn hurry(&self) {
        self.0.is_urgent.store(true, Ordering::Relaxed);
    }

    fn is_urgent(&self) -> bool {
        self.0.is_urgent.load(Ordering::Relaxed)
    }

    /// Waits for the state, as long as it takes.
    pub(crate) fn wait(&self) -> Result<&Sealed, Error> {
        self.0.sealed.wait().as_ref().map_err(Clone::clone)
    }
}

/// Gives addresses to what `record`'s block has changed, and the block to the database.
/// `is_all` is whether the tries have all nodes that it read.
pub(crate) fn seal(
    core: &Core,
    parent: &Seal,
    record: &BlockRecord,
    tries: Arc<Tries>,
    codes: Vec<(B256, Bytes)>,
    is_all: bool,
) {
    core.rest.wait();
    let is_small = tries.nodes_count() <= limits::NODES_IN_ONE_PART;
    let pause = || {
        if !is_small {
            core.rest.pause();
        }
    };
    if let Some(touched) = &record.touched {
        touched.list(|| Nodes::of(&tries, pause));
    }
    let start = core.database.nodes().end();
    let sealed = try_seal(core, parent, record, &tries, codes, pause);
    if let Err(error) = &sealed {
        tracing::error!(%error, block = %record.hash(), "the state after a block was not kept");
        core.fail(error.clone());
    }
    record.seal.keep(sealed);
    core.signals.block_sealed();
    let mut grown_bytes = 0;
    if is_all {
        pause();
        grown_bytes += keep_witness(core, record.hash(), &tries, pause);
    }
    drop_in_parts(tries, pause);
    if core.database.nodes().cache_has_room() {
        grown_bytes += (core.database.nodes().end().offset() - start.offset()) as usize;
    }
    let touched_bytes = background::touched_for(grown_bytes);
    background::touch_memory(touched_bytes, &core.rest, || !core.rest.is_awaited());
}

/// Keeps the nodes of the block's witness in memory; says by how much more that is now.
fn keep_witness(core: &Core, hash: B256, tries: &Arc<Tries>, pause: impl Fn()) -> usize {
    // Who asks for one just now does not wait for this.
    let assembler = core.assembler.try_lock().ok();
    let assembled = assembler.and_then(|assembler| assembler.last_of(&hash));
    let listed = assembled.as_ref().map(|last| &last.witness.state);
    core.ring.keep(hash, tries, listed, pause)
}

fn try_seal(
    core: &Core,
    parent: &Seal,
    record: &BlockRecord,
    tries: &Tries,
    codes: Vec<(B256, Bytes)>,
    pause: impl Fn() + Copy,
) -> Result<Sealed, Error> {
    let parent = parent.wait()?;
    let _one_at_a_time = core.sealing.lock().expect("no thread panics while it holds the lock");
    let mut batch = core.database.batch();
    let version = tries.write(&mut Yielding { sink: &mut batch, turns: Turns::new(&core.rest) });
    let appended_bytes = batch.bytes() as u64;
    pause();
    batch.seal_in_parts(pause)?;
    let stored = Stored::of(record, pause);
    pause();
    // Whoever comes while it goes on waits for what is behind it, and that is little.
    let sealed = sweep_on(core, version, parent.sweep, appended_bytes, &record.seal)?;
    stored.add(&core.database, record, &sealed, codes)?;
    core.floors().add(record.number(), &sealed.sweep);
    Ok(sealed)
}

/// These codes as the database takes them: with their tables of jump destinations.
pub(crate) fn new_codes(codes: Vec<(B256, Bytes)>) -> Vec<NewCode> {
    let new_code = |(hash, code): (B256, Bytes)| {
        let table = execution::jump_table(&code);
        NewCode::new(hash, code, table)
    };
    codes.into_iter().map(new_code).collect()
}

/// What a database keeps of a block besides its state.
#[derive(Debug)]
pub(crate) struct Stored {
    block: Bytes,
    touched: Option<Bytes>,
}

impl Stored {
    /// In parts with a `pause` in between.
    pub(crate) fn of(record: &BlockRecord, pause: impl Fn()) -> Self {
        let touched = record.touched.as_ref().map(|touched| touched.to_stored());
        pause();
        Self { block: record.to_stored(pause), touched }
    }

    /// Hands the block with its state to the database.
    pub(crate) fn add(
        self,
        database: &Database,
        record: &BlockRecord,
        sealed: &Sealed,
        codes: Vec<(B256, Bytes)>,
    ) -> Result<(), Error> {
        database.add(NewBlock {
            hash: record.hash(),
            number: record.number(),
            parent_hash: record.block.header.parent_hash,
            version: sealed.version,
            floor: sealed.sweep.floor,
            sweep: sealed.sweep.to_stored(),
            block: self.block,
            touched: self.touched,
            codes: new_codes(codes),
            witness: None,
        })?;
        Ok(())
    }
}

/// Sweeps on until somebody wants the block's state, or a block runs, which may be on another
/// branch and is sealed after this one, or somebody waits for one that is; as many bytes as blocks
/// have appended.
///
/// A cycle begins when the log from the floor on is twice as long as what was in use at the end of
/// the last one. When blocks follow each other too closely and the log gets [twice as long
/// again](limits::SWEEP_URGENCY), each block pays for its own bytes whoever waits.
fn sweep_on(
    core: &Core,
    version: Version,
    mut state: SweepState,
    appended_bytes: u64,
    seal: &Seal,
) -> Result<Sealed, Error> {
    let nodes = core.database.nodes();
    let end = nodes.end();
    let log_bytes = end.offset() - state.floor.offset();
    let worth_it = (2 * state.live_bytes).max(core.options.sweep_min_bytes);
    if state.cycle.is_none() && log_bytes > worth_it {
        state.cycle = Some(Cycle { below: end, cursor: SweepCursor::default(), moved_bytes: 0 });
    }
    if state.cycle.is_none() {
        return Ok(Sealed { version, sweep: state });
    }
    state.owed_bytes += appended_bytes;
    let due_bytes = state.owed_bytes.min(limits::SWEEP_STEP_MAX_BYTES);
    let is_log_long = log_bytes > worth_it.saturating_mul(limits::SWEEP_URGENCY);
    let own_bytes = if is_log_long { appended_bytes.min(due_bytes) } else { 0 };
    let is_urgent = || seal.is_urgent() || core.is_running() || core.rest.is_awaited();
    let goes_on = |walked| walked < if is_urgent() { own_bytes } else { due_bytes };
    if state.owed_bytes < core.options.sweep_step_bytes || !goes_on(0) {
        return Ok(Sealed { version, sweep: state });
    }
    let (mut version, mut walked_bytes, mut turns) = (version, 0, Turns::new(&core.rest));
    // What is appended is handed over in parts: nobody waits for more than one.
    while let Some(Cycle { below, cursor, moved_bytes }) = &mut state.cycle
        && goes_on(walked_bytes)
    {
        let before = walked_bytes;
        let mut go_on = |walked| {
            turns.step();
            walked_bytes = before + walked;
            walked < limits::SWEEP_PART_BYTES && goes_on(walked_bytes)
        };
        let mut batch = core.database.batch();
        let next = match sweep(nodes, &version, *below, cursor, &mut go_on, &mut batch) {
            Ok((swept, next)) => {
                version = swept;
                next
            }
            Err(error) => {
                // The state is there as it was, and what cannot be read may be needed by nobody.
                tracing::error!(%error, "old nodes were not swept; a later block tries again");
                state.owed_bytes = 0;
                break;
            }
        };
        *moved_bytes += batch.bytes() as u64;
        batch.seal_in_parts(|| core.rest.pause())?;
        state.owed_bytes = state.owed_bytes.saturating_sub(walked_bytes - before);
        match next {
            Some(next) => *cursor = next,
            None => {
                let (floor, live_bytes) = (*below, *moved_bytes);
                state = SweepState { floor, cycle: None, live_bytes, owed_bytes: 0 };
            }
        }
    }
    Ok(Sealed { version, sweep: state })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{branch, genesis_file};
    use crate::{Engine, EngineOptions, Genesis, world};
    use alloy_primitives::{Address, U256};
    use execution::ChainSpec;
    use state::MemoryDisk;

    /// There is nothing in it that nobody needs.
    #[test]
    fn the_state_that_a_chain_begins_with_is_not_swept_at_once() {
        let config = world::config("osaka");
        let chain = ChainSpec::from_config(&config).unwrap();
        let mut file = genesis_file(config);
        file.alloc
            .extend((1..2_000u64).map(|n| (Address::from_word(U256::from(n).into()), rich())));
        let genesis = Genesis::new(&file, &chain).unwrap();
        let database = Database::open(MemoryDisk::new(), &state::Options::default()).unwrap();
        let options = EngineOptions { sweep_min_bytes: 1, ..EngineOptions::default() };
        let engine = Engine::open(chain, Some(genesis), database, options).unwrap();
        let head = *branch(&engine, engine.heads().genesis, 0, 3).last().unwrap();
        let sealed = engine.block(head).unwrap().unwrap().seal.wait().unwrap().sweep;
        assert_eq!((sealed.cycle, sealed.owed_bytes), (None, 0));
        assert!(sealed.live_bytes > 100_000, "{sealed:?}");
    }

    fn rich() -> alloy_genesis::GenesisAccount {
        alloy_genesis::GenesisAccount { balance: U256::MAX, ..Default::default() }
    }

    #[test]
    fn a_sweep_is_in_nobodys_way() {
        let config = world::config("osaka");
        let chain = ChainSpec::from_config(&config).unwrap();
        let genesis = Genesis::new(&genesis_file(config), &chain).unwrap();
        let database = Database::open(MemoryDisk::new(), &state::Options::default()).unwrap();
        let options = EngineOptions { sweep_min_bytes: 1, ..EngineOptions::default() };
        let engine = Engine::open(chain, Some(genesis), database, options).unwrap();
        let core = engine.core();
        let head = *branch(&engine, engine.heads().genesis, 0, 3).last().unwrap();
        let record = engine.block(head).unwrap().unwrap();
        let (version, below) = (record.seal.wait().unwrap().version, core.database.nodes().end());
        let cycle = Cycle { below, cursor: SweepCursor::default(), moved_bytes: 0 };
        let begun = SweepState { cycle: Some(cycle), owed_bytes: 1 << 30, ..SweepState::default() };
        // How far it comes behind a block that has appended so many bytes.
        let swept_by = |appended_bytes, seal: &Seal| {
            sweep_on(core, version, begun, appended_bytes, seal).unwrap().sweep
        };
        let goes_on = |seal: &Seal| swept_by(0, seal) != begun;
        let seal = Seal::default();
        assert!(goes_on(&seal));
        core.running.store(true, Ordering::Relaxed);
        assert!(!goes_on(&seal), "a block runs");
        // The log is long, so it goes on by what the block has appended, and no further.
        let swept = swept_by(1, &seal);
        assert!(swept.owed_bytes < begun.owed_bytes && swept.cycle.is_some(), "{swept:?}");
        core.running.store(false, Ordering::Relaxed);
        let waiting = core.rest.wait_for_work();
        assert!(!goes_on(&seal), "somebody waits for another block's state");
        drop(waiting);
        seal.hurry();
        assert!(!goes_on(&seal), "somebody wants this block's state");
        let swept = swept_by(0, &Seal::default());
        assert!(swept.cycle.is_none(), "{swept:?}");
    }
}
