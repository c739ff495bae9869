use crate::after::persist::{self, PersistedBlock, Persister};
use crate::after::seal::{self, Seal};
use crate::block::ahead::{Order, ParentState, Schedule};
use crate::block::live::{Finished, LiveState, RootTimings, Threads, Tries};
use crate::block::prefetch::{self, Prefetch};
use crate::block::senders::{self, Recovery};
use crate::block::trie_workers::{After, Workers};
use crate::build::Build;
use crate::chain::read_set::Nodes;
use crate::chain::record::{BlockRecord, WitnessBytes, WitnessSize};
use crate::chain::tree::{Bounded, InvalidRecord};
use crate::read::version::StateView;
use crate::shared::{Core, EngineOptions, Floors, Unsealed, processors};
use crate::threads::background::ReadAhead;
use crate::threads::helpers::{Helpers, Pool};
use crate::threads::pool::ThreadPool;
use crate::witnesses::assemble::{Assembled, Assembler, Last, assemble};
use crate::{Error, Genesis, Heads, limits};
use alloy_consensus::Transaction as _;
use alloy_eips::eip2718::{Decodable2718, Encodable2718};
use alloy_hardforks::EthereumHardforks;
use alloy_primitives::{Address, B256, Bytes};
use alloy_rpc_types_engine::{ExecutionPayload, ExecutionPayloadSidecar};
use execution::{
    AccessList, AheadExecutor, AheadOutcomes, BlockError, ChainSpec, CodeCache, Executed,
    InvalidBlock, PriorChanges, PublicKey, RunOptions, SealedBlock, Senders, Signer, Transaction,
};
use state::{Database, MemoryDisk};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};
use std::time::{Duration, Instant};
use witness::{ReadCode, Witness};

/// A payload as the Engine API hands it over.
#[derive(Debug, Clone)]
pub struct Payload {
    /// The execution payload.
    pub execution: ExecutionPayload,
    /// The other parameters of `engine_newPayload`: versioned hashes, beacon root, requests.
    pub sidecar: ExecutionPayloadSidecar,
}

/// The answer on a payload or a head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The block and all its ancestors are valid; it is itself the latest valid block.
    Valid,
    /// The block, or one before it, breaks a rule.
    Invalid {
        /// The last valid block of the branch, `None` when that is not known.
        latest_valid_hash: Option<B256>,
        /// The rule broken.
        reason: String,
    },
    /// The block's parent is not known, so nothing can be said.
    Syncing,
}

impl Verdict {
    pub(crate) fn invalid(record: InvalidRecord) -> Self {
        let InvalidRecord { latest_valid_hash, reason } = record;
        Self::Invalid { latest_valid_hash, reason }
    }
}

/// The chain of one network: validates payloads, follows the fork choice, builds payloads.
///
/// All functions may be called from any thread. One block runs at a time; the fork choice and
/// everything that reads do not wait for it. Dropping the engine persists what is in memory.
#[derive(Debug)]
pub struct Engine {
    chain: ChainSpec,
    /// First to be dropped: it seals what has run.
    after: After,
    /// Made when a block first has work for them.
    workers: OnceLock<Workers>,
    _read_ahead: Option<ReadAhead>,
    /// Dropped next: it persists what is sealed.
    _persister: Persister,
    core: Arc<Core>,
    /// Held while a block runs.
    running: Mutex<()>,
    builds: Mutex<Bounded<Build>>,
    /// The last block that ran, with the codes that it read, which may be many.
    latest: Mutex<Option<Latest>>,
    /// Codes made ready to run.
    pub(crate) codes: CodeCache,
    /// Made when a block first has work for it.
    pool: OnceLock<Pool>,
    /// So are these.
    prefetchers: OnceLock<ThreadPool>,
    /// The threads of the first of these pools, and the trie workers.
    helpers: Arc<Helpers>,
}

/// What the last block that was validated left in memory.
#[derive(Debug)]
struct Latest {
    hash: B256,
    /// All nodes that it read, until it is sealed.
    nodes: Weak<Tries>,
    codes: Vec<ReadCode>,
    public_keys: Vec<PublicKey>,
    timings: Timings,
}

/// Where the time of one validated block went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Timings {
    /// Recovering senders, or waiting for them, on the block's thread: what others do beside it
    /// does not count.
    pub recovery: Duration,
    /// Until the block begins: waiting for the parent's state to get its addresses, mostly.
    pub parent: Duration,
    /// From the first system call to the root's beginning, recovery aside: execution, and what is
    /// checked of it.
    pub execution: Duration,
    /// What was left of the state root after that.
    pub root: Duration,
    /// Of `root`, until all that was read was loaded.
    pub catching_up: Duration,
    /// Putting the witness together, where it was asked for with the verdict.
    pub witness: Duration,
}

impl Engine {
    /// A chain that consists of `genesis`, in memory.
    ///
    /// # Errors
    /// As [`Engine::open`].
    pub fn new(chain: ChainSpec, genesis: Genesis) -> Result<Self, Error> {
        // Its files are in memory too, and caches cost time to make.
        let options = state::Options {
            cache_bytes: limits::MEMORY_CACHE_BYTES,
            code_cache_bytes: limits::MEMORY_CACHE_BYTES,
            index_cache_bytes: limits::MEMORY_CACHE_BYTES as usize,
            ..state::Options::default()
        };
        let database = Database::open(MemoryDisk::new(), &options)?;
        let options = EngineOptions {
            witness_cache_bytes: limits::MEMORY_CACHE_BYTES as usize,
            ..EngineOptions::default()
        };
        Self::open(chain, Some(genesis), database, options)
    }

    /// The chain in `database`; when that is empty, a chain that consists of `genesis`.
    ///
    /// # Errors
    /// [`Error::Genesis`] when the database holds another chain, when it is empty and there is no
    /// genesis, or when the genesis cannot be used: its header's state root is not that of the
    /// accounts, or its forks contradict each other. [`Error::Storage`] when the database
    /// cannot be read or written.
    pub fn open(
        chain: ChainSpec,
        genesis: Option<Genesis>,
        database: Database,
        options: EngineOptions,
    ) -> Result<Self, Error> {
        let database = Arc::new(database);
        let heads = match (Heads::from_stored(database.heads()), genesis) {
            (Some(heads), None) => heads,
            (Some(heads), Some(genesis)) => genesis.check_same(heads)?,
            (None, Some(genesis)) => genesis.write(&chain, &database)?,
            (None, None) => {
                let reason = "the database is empty, and no genesis was given to begin with";
                return Err(Error::Genesis(reason.into()));
            }
        };
        let floors = Floors::of(&database);
        let codes = CodeCache::new(options.code_cache_bytes, state::look_at_mapped);
        let head = database.entry(&heads.head)?.ok_or(Error::UnknownBlock(heads.head))?;
        let first = database.entry(&heads.genesis)?.ok_or(Error::UnknownBlock(heads.genesis))?;
        let read_ahead = options.read_ahead_bytes;
        let numbers = [head.number, first.number];
        let core = Arc::new(Core::new(options, database, heads, floors, numbers)?);
        // The head is asked for all the time.
        let head = core.block(&heads.head)?.ok_or(Error::UnknownBlock(heads.head))?;
        drop(core.tree_mut().insert(head));
        let read_ahead = (read_ahead > 0).then(|| ReadAhead::start(core.clone(), read_ahead));
        Ok(Self {
            chain,
            after: After::start(),
            workers: OnceLock::new(),
            _read_ahead: read_ahead,
            _persister: Persister::start(core.clone()),
            core,
            running: Mutex::new(()),
            builds: Mutex::new(Bounded::new(limits::BUILDS)),
            latest: Mutex::new(None),
            codes,
            pool: OnceLock::new(),
            helpers: Helpers::new(),
            prefetchers: OnceLock::new(),
        })
    }

    /// The chain's rules.
    pub const fn chain(&self) -> &ChainSpec {
        &self.chain
    }

    /// Validates a payload, running it unless the answer is known already.
    pub fn new_payload(&self, payload: Payload) -> Result<Verdict, Error> {
        self.new_payload_wanted(payload, Wanted::Verdict)
    }

    /// As [`new_payload`](Self::new_payload), and the witness of a valid block, which the first
    /// block of a chain alone has not. It is put together before anything else is done with the
    /// block.
    pub fn new_payload_with_witness(
        &self,
        payload: Payload,
    ) -> Result<(Verdict, Option<Assembled>), Error> {
        let block_hash = payload.execution.block_hash();
        let verdict = self.new_payload_wanted(payload, Wanted::Witness)?;
        let assembled = match verdict {
            Verdict::Valid => self.assembled(block_hash)?,
            _ => None,
        };
        Ok((verdict, assembled))
    }

    fn new_payload_wanted(&self, payload: Payload, wanted: Wanted) -> Result<Verdict, Error> {
        self.core.rest.end();
        // Its state is wanted by the time that the payload is decoded.
        if let Some(parent) = self.core.tree().recent(&payload.execution.parent_hash()) {
            parent.seal.hurry();
        }
        let block_hash = payload.execution.block_hash();
        match decode(payload) {
            Ok((block, list)) => self.new_listed_block(block, list, wanted),
            Err(reason) => {
                // The hash cannot be trusted to name these bytes: it is not remembered.
                tracing::warn!(%block_hash, %reason, "an invalid payload");
                Ok(Verdict::Invalid { latest_valid_hash: None, reason: told(&reason) })
            }
        }
    }

    /// Validates a block, running it unless the answer is known already.
    pub fn new_block(&self, block: SealedBlock) -> Result<Verdict, Error> {
        if let Err(reason) = execution::validate_body_roots(&block) {
            // Another body may be the right one for this hash: it is not remembered.
            return Ok(Verdict::Invalid { latest_valid_hash: None, reason: told(&reason) });
        }
        self.new_listed_block(block, None, Wanted::Nothing)
    }

    /// As [`new_block`](Self::new_block), of a block whose header has the roots of its body, and
    /// that may have come with an access list, as RLP.
    fn new_listed_block(
        &self,
        block: SealedBlock,
        list: Option<Bytes>,
        wanted: Wanted,
    ) -> Result<Verdict, Error> {
        // Before anything is held that the fork choice may need.
        self.wait_for_room()?;
        let _running = self.running();
        // That of the block that ran until now.
        self.core.rest.end();
        let (hash, parent_hash) = (block.hash(), block.header.parent_hash);
        let is_new = self.core.tree().is_new(&hash, &parent_hash);
        if !is_new && self.core.link(&hash)?.is_some() {
            return Ok(Verdict::Valid);
        }
        {
            let tree = self.core.tree();
            if let Some(invalid) = tree.invalid(&hash) {
                return Ok(Verdict::invalid(invalid.clone()));
            }
            if let Some(invalid) = tree.invalid(&parent_hash) {
                let record = invalid.clone();
                drop(tree);
                self.core.tree_mut().insert_invalid(hash, record.clone());
                return Ok(Verdict::invalid(record));
            }
        }
        let Some(parent) = self.core.block(&parent_hash)? else { return Ok(Verdict::Syncing) };
        self.core.running.store(true, Ordering::Relaxed);
        let validated = self.validate(&parent, block, list, wanted);
        self.core.running.store(false, Ordering::Relaxed);
        match validated {
            Ok(()) => Ok(Verdict::Valid),
            Err(Failure::Block(BlockError::Invalid(reason))) => {
                // Paris, payload validation, point 3: zero when that is a block of proof of work.
                let is_mined = !parent.block.header.difficulty.is_zero();
                let latest_valid_hash = Some(if is_mined { B256::ZERO } else { parent_hash });
                let record = InvalidRecord { latest_valid_hash, reason: told(&reason) };
                tracing::warn!(%hash, reason = record.reason, "an invalid block");
                self.core.tree_mut().insert_invalid(hash, record.clone());
                Ok(Verdict::invalid(record))
            }
            // Paris, `engine_newPayloadV1`, point 6: what it takes to validate it is missing, where
            // the chain begins later than BLOCKHASH reaches.
            Err(Failure::Block(BlockError::State(witness::StateError::MissingHeader(number)))) => {
                tracing::warn!(%hash, number, "a block needs an ancestor that is not there");
                Ok(Verdict::Syncing)
            }
            Err(Failure::Block(BlockError::State(error))) => Err(error.into()),
            Err(Failure::Block(BlockError::Internal(reason))) => Err(Error::Evm(reason)),
            // The same.
            Err(Failure::Engine(Error::Pruned(_))) => Ok(Verdict::Syncing),
            Err(Failure::Engine(error)) => Err(error),
        }
    }

    /// Waits until not too much waits to be sealed, nor for the disk.
    fn wait_for_room(&self) -> Result<(), Error> {
        let limit = self.core.options.unpersisted_bytes;
        if self.core.unsealed.are_above(limit) {
            let _waiting = self.core.rest.wait_for_work();
            self.core.unsealed.wait(limit);
        }
        while self.core.database.unpersisted_bytes() > limit {
            let _waiting = self.core.rest.wait_for_work();
            self.core.signals.hurry();
            self.core.database.wait_for_room(limit, limits::ROOM_PAUSE)?;
            self.core.check()?;
        }
        self.core.check()
    }

    /// Runs a block, and remembers it when it is valid.
    fn validate(
        &self,
        parent: &Arc<BlockRecord>,
        block: SealedBlock,
        list: Option<Bytes>,
        wanted: Wanted,
    ) -> Result<(), Failure> {
        let mut timings = Timings::default();
        let mut last = Instant::now();
        let mut lap = || {
            let start = std::mem::replace(&mut last, Instant::now());
            last - start
        };
        self.validate_ancestry(parent, &block)?;
        let mut unsealed = Unsealed::begin(&self.core, block.header.number);
        let threads = self.threads(block.header.gas_used);
        let list = list.filter(|_| threads.is_some());
        let list = list.and_then(|list| AccessList::decode(&list, block.header.gas_limit));
        let transactions = &block.body.transactions;
        let recovery = Recovery::new(&self.chain, block.header.number, transactions);
        let (state, executed) = recovery.during(self.recoverers(transactions), || {
            let mut state = LiveState::new(&self.core, parent.clone(), threads, list)?;
            timings.parent = lap();
            let mut executed = self.run(parent, &block, &recovery, threads, &mut state)?;
            if !state.has_asked_for_all_listed() {
                let hash = block.hash();
                tracing::warn!(%hash, "the access list names more than the block reads");
                state = LiveState::new(&self.core, parent.clone(), threads, None)?;
                executed = self.run(parent, &block, &recovery, threads, &mut state)?;
            }
            Ok::<_, Failure>((state, executed))
        })?;
        let RootTimings { catching_up, applying } = state.timings;
        timings.catching_up = catching_up;
        timings.root = catching_up + applying;
        timings.recovery = recovery.spent();
        timings.execution = lap().saturating_sub(timings.root + timings.recovery);
        let signers = recovery.signers().map_err(BlockError::from)?;
        let (senders, public_keys): (Vec<_>, _) =
            signers.into_iter().map(|signer| (signer.address, signer.public_key)).unzip();
        let Executed { codes_read, new_codes, receipts, requests, block_access_list, .. } =
            executed;
        let (code_hashes, codes) = codes_read.into_iter().unzip();
        let Finished { touched, tries, is_all } =
            state.finish(code_hashes, executed.first_ancestor);
        let record = Arc::new(BlockRecord {
            total_difficulty: parent.total_difficulty + block.header.difficulty,
            block,
            senders,
            receipts,
            requests,
            block_access_list,
            touched: Some(touched),
            seal: Seal::default(),
        });
        let nodes = if is_all { Arc::downgrade(&tries) } else { Weak::new() };
        let hash = record.hash();
        unsealed.holds(limits::UNSEALED_NODE_BYTES * tries.nodes_count() as u64);
        *self.latest() = Some(Latest { hash, nodes, codes, public_keys, timings });
        let left = self.core.tree_mut().add_validated(record.clone());
        let mut rest = limits::REST_FOR_VERDICT;
        let mut dropped_later = None;
        if wanted == Wanted::Witness {
            let start = Instant::now();
            self.core.rest.begin(limits::REST_MAX);
            dropped_later = self.core.assembler.lock().expect(NO_PANIC).last.take();
            // It is kept for who asks. Why there is none, who asks is told again.
            let assembled = self.assembled(hash).ok().flatten();
            let bytes = assembled.map_or(0, |assembled| assembled.witness.content_bytes());
            rest += limits::REST_PER_MEGABYTE * (bytes >> 20) as u32;
            if let Some(latest) = &mut *self.latest() {
                latest.timings.witness = start.elapsed();
            }
        }
        let (core, parent_seal) = (self.core.clone(), parent.seal.clone());
        if wanted != Wanted::Nothing {
            self.core.rest.begin(rest);
        }
        if threads.is_none() {
            // It leaves sweeping to larger blocks, as long as the log is not too long.
            record.seal.hurry();
        }
        let seal = move || {
            seal::seal(&core, &parent_seal, &record, tries, new_codes, is_all);
            drop(unsealed);
            drop(left);
            if let Some(last) = dropped_later {
                Assembler::recycle(&core.assembler, last, || core.rest.pause());
            }
        };
        if threads.is_some() || wanted != Wanted::Nothing {
            self.after.run(seal);
        } else {
            // Nobody waits for an answer, and waking a thread would take a good part of the time.
            let _waiting = self.core.rest.wait_for_work();
            seal();
        }
        Ok(())
    }

    /// Runs a block on the state after its parent, its transactions side by side when its access
    /// list is known, or when there are to be guesses.
    fn run(
        &self,
        parent: &Arc<BlockRecord>,
        block: &SealedBlock,
        recovery: &Recovery<'_>,
        threads: Option<Threads<'_>>,
        state: &mut LiveState<'_>,
    ) -> Result<Executed, BlockError> {
        let (core, chain, version) = (&*self.core, &self.chain, state.version());
        let (header, hash, codes) = (&parent.block.header, parent.hash(), Some(&self.codes));
        let validate = |ahead: Option<&dyn AheadOutcomes>, state: &mut LiveState<'_>| {
            let help = RunOptions { codes, ahead };
            execution::validate(chain, header, hash, block, recovery, help, state)
        };
        let Some(Threads { pool, .. }) = threads else { return validate(None, state) };
        let listed = state.listed().cloned();
        let listed = listed.as_deref();
        let senders: &dyn Senders = &senders::Aside(recovery);
        let prefetch =
            Prefetch { core, chain, codes: &self.codes, parent, version, block, senders, listed };
        let prefetched = |inner: Option<&dyn AheadOutcomes>, state: &mut LiveState<'_>| {
            let Some(threads) = self.prefetchers() else { return validate(inner, state) };
            prefetch.during(threads, inner, |ahead| validate(Some(ahead), state))
        };
        let transactions = &block.body.transactions;
        let threads_count = match listed {
            _ if block.header.gas_used < core.options.ahead_gas => 0,
            Some(_) => pool.threads_count() - 1,
            // Without its list, or with one that is wrong, a block of Amsterdam has no guess.
            None if chain.is_amsterdam_active_at_timestamp(block.header.timestamp) => 0,
            None => core.options.ahead_threads,
        };
        let helpers = threads_count.min(transactions.len().saturating_sub(1));
        if helpers == 0 {
            return prefetched(None, state);
        }
        let guess;
        let (before, order, found) = match listed {
            Some(listed) => {
                // One that runs a long one leaves all others to the block's own thread meanwhile.
                let most_long = if helpers > 1 { limits::LONG_TRANSACTIONS } else { 0 };
                (PriorChanges::List(&listed.list), Order::Last(most_long), None)
            }
            None => {
                guess = state.guess();
                let order = Order::Next(limits::AHEAD_TRANSACTIONS);
                (PriorChanges::Committed(&guess.so_far), order, Some(&guess.found))
            }
        };
        let of = AheadExecutor { chain, block, senders, before, codes };
        let gas_limits: Vec<_> = transactions.iter().map(|tx| tx.gas_limit()).collect();
        let most_gas = block.header.gas_used.saturating_mul(limits::AHEAD_GAS_TIMES);
        let schedule = Schedule::new(&gas_limits, order, most_gas);
        let run_ahead = || {
            let state = ParentState::new(core, parent.clone(), version, listed);
            schedule.help(&of, state.sharing(found));
        };
        pool.with_help(&run_ahead, |help| {
            let _stopping = schedule.stopping();
            help.ask(helpers);
            prefetched(Some(&schedule), state)
        })
    }

    /// The witness of a valid block other than the first, whatever branch it is on: put together
    /// from what the block read, which changes nothing.
    ///
    /// `None` when no such block is known.
    ///
    /// # Errors
    /// [`Error::Pruned`] when neither the witness nor the state that it was read from is kept;
    /// [`Error::PrunedWitness`] when what the block read is not.
    pub fn witness(&self, block_hash: B256) -> Result<Option<Arc<Witness>>, Error> {
        Ok(self.assembled(block_hash)?.map(|assembled| assembled.witness))
    }

    /// As [`witness`](Self::witness), with the hashes of the codes.
    pub fn assembled(&self, block_hash: B256) -> Result<Option<Assembled>, Error> {
        let is_latest = self.latest().as_ref().is_some_and(|latest| latest.hash == block_hash);
        let assembler = match is_latest {
            true => &self.core.assembler,
            false => {
                let latest = self.core.assembler.try_lock().ok();
                if let Some(assembled) = latest.and_then(|latest| latest.last_of(&block_hash)) {
                    return Ok(Some(assembled));
                }
                &self.core.earlier_assembler
            }
        };
        let mut assembler = assembler.lock().expect(NO_PANIC);
        if let Some(assembled) = assembler.last_of(&block_hash) {
            return Ok(Some(assembled));
        }
        let Assembler { last, lister } = &mut *assembler;
        // First of all: when it is there, it is the latest block, or has been handed to be sealed.
        let Some(record) = self.core.block(&block_hash)? else { return Ok(None) };
        let (nodes, codes) = match &*self.latest() {
            Some(Latest { hash, nodes, codes, .. }) if *hash == block_hash => {
                (nodes.upgrade(), Some(codes.clone()))
            }
            _ => (None, None),
        };
        let listed = nodes.as_ref().map(|nodes| (nodes, self.pool()));
        let assembled = assemble(&self.core, lister, &record, listed, codes)?;
        let Some(assembled) = assembled else { return Ok(None) };
        let new = Last { block_hash, assembled: assembled.clone(), tries: nodes };
        let before = last.replace(new);
        if let Some(before) = before
            && let Some(witness) = Arc::into_inner(before.assembled.witness)
        {
            lister.recycle(witness.state);
        }
        Ok(Some(assembled))
    }

    /// How much the witness of a block is, without putting it together; `None` for the first block
    /// of a chain.
    pub fn witness_size(&self, record: &BlockRecord) -> Option<WitnessSize> {
        let touched = record.touched.as_ref()?;
        let (codes, headers) =
            (touched.codes.len(), (record.number() - touched.first_ancestor) as usize);
        // Who asks does not wait for one that is being put together.
        let assembler = self.core.assembler.try_lock().ok();
        let last = assembler.and_then(|assembler| assembler.last_of(&record.hash()));
        if let Some(Assembled { witness, .. }) = last {
            let bytes = Some(WitnessBytes::Exactly(witness::ssz::encoded_len(&witness)));
            return Some(WitnessSize { nodes_at_most: witness.state.len(), codes, headers, bytes });
        }
        let latest = self.latest().as_ref().filter(|latest| latest.hash == record.hash()).map(
            |Latest { nodes, codes, .. }| {
                (nodes.upgrade(), codes.iter().map(|code| code.bytes.len()).sum::<usize>())
            },
        );
        let (tries, codes_bytes) = latest.unzip();
        let (nodes_at_most, nodes_bytes) = match (touched.listed(), tries.flatten()) {
            (None, Some(tries)) => {
                let (count, bytes) = tries.witness_size();
                (count, Some(bytes))
            }
            (Some(Nodes { addresses, bytes }), _) => (addresses.len(), *bytes),
            (None, None) => {
                let _waiting = self.core.rest.wait_for_work();
                (touched.addresses().len(), None)
            }
        };
        let bytes = codes_bytes.zip(nodes_bytes).map(|(codes_bytes, nodes_bytes)| {
            let items_bytes = codes_bytes + nodes_bytes + headers * limits::HEADER_BYTES;
            WitnessBytes::AtMost(items_bytes + 4 * (3 + nodes_at_most + codes + headers))
        });
        Some(WitnessSize { nodes_at_most, codes, headers, bytes })
    }

    /// Where the time of the block went that was validated last, and its hash.
    pub fn last_timings(&self) -> Option<(B256, Timings)> {
        self.latest().as_ref().map(|latest| (latest.hash, latest.timings))
    }

    /// A valid block by its hash, whatever branch it is on.
    pub fn block(&self, hash: B256) -> Result<Option<Arc<BlockRecord>>, Error> {
        self.core.block(&hash)
    }

    /// The number of a valid block, whatever branch it is on; `None` when there is none.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn number(&self, hash: &B256) -> Result<Option<u64>, Error> {
        Ok(self.core.link(hash)?.map(|(number, _)| number))
    }

    /// The hash of block `number` of the canonical chain.
    pub fn canonical_hash(&self, number: u64) -> Result<Option<B256>, Error> {
        self.core.canonical_hash(number)
    }

    /// The hashes of blocks `start` to before `end` of the canonical chain, up to its head, all of
    /// them as one fork choice left it. `None` is a number that is below the chain's first block.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn canonical_range(&self, start: u64, end: u64) -> Result<Vec<Option<B256>>, Error> {
        loop {
            let (reorgs, newest) = {
                let tree = self.core.tree();
                let (head, _) = tree.known_link(&tree.heads.head)?;
                let numbers = start..end.min(head + 1);
                let newest = numbers.map(|number| Ok((number, tree.newest_canonical(number)?)));
                (tree.reorgs, newest.collect::<Result<Vec<_>, Error>>()?)
            };
            // Nobody waits for the tree meanwhile.
            let hashes = newest.into_iter().map(|(number, known)| match known {
                Some(known) => Ok(known),
                None => Ok(self.core.database.canonical(number)?),
            });
            let hashes = hashes.collect::<Result<_, Error>>()?;
            if self.core.tree().reorgs == reorgs {
                return Ok(hashes);
            }
        }
    }

    /// The heads that the consensus layer has chosen.
    pub fn heads(&self) -> Heads {
        self.core.tree().heads
    }

    /// The finalized block, once it is persisted: this waits until then.
    ///
    /// # Errors
    /// When persistence has failed.
    pub fn finalized(&self) -> Result<Option<B256>, Error> {
        let Some(finalized) = self.heads().finalized else { return Ok(None) };
        if self.core.persisted_heads().finalized != Some(finalized) {
            let _waiting = self.core.rest.wait_for_work();
            self.core.signals.flush();
            self.core.check()?;
        }
        Ok(Some(finalized))
    }

    /// Persists the chain that is chosen, and all blocks that are sealed by now; returns when that
    /// is done.
    ///
    /// # Errors
    /// When persistence has failed.
    pub fn persist(&self) -> Result<(), Error> {
        let _waiting = self.core.rest.wait_for_work();
        self.core.signals.flush();
        self.core.check()
    }

    /// Forgets the versions that are too old by the options, and deletes what only they need.
    /// `progress` is told the part that is done, from 0 to 1.
    ///
    /// # Errors
    /// When writing fails.
    pub fn prune(&self, progress: &mut dyn FnMut(f64)) -> Result<(), Error> {
        let _waiting = self.core.rest.wait_for_work();
        persist::prune(&self.core, progress)?;
        // What was not persisted until now is pruned by the persistence thread, in silence.
        self.persist()?;
        self.core.database.persist()?;
        Ok(())
    }

    /// Has `listener` told of each canonical head that is persisted. It must not block.
    pub fn on_persisted(&self, listener: impl Fn(PersistedBlock) + Send + Sync + 'static) {
        self.core.listen(Box::new(listener));
    }

    /// The state after a valid block.
    ///
    /// # Errors
    /// [`Error::UnknownBlock`]; [`Error::Pruned`] when it is not kept any more.
    pub fn state(&self, block_hash: B256) -> Result<StateView, Error> {
        let record = self.core.block(&block_hash)?.ok_or(Error::UnknownBlock(block_hash))?;
        Ok(StateView::new(self.core.database.clone(), self.core.sealed(&record)?.version))
    }

    /// Bytes and counts of what is on disk and in memory.
    pub fn database(&self) -> &Arc<Database> {
        &self.core.database
    }

    /// The senders of `transactions`, recovered on all cores.
    pub(crate) fn recover(
        &self,
        transactions: &[Transaction],
    ) -> Result<Vec<Address>, InvalidBlock> {
        let signers = self.recover_at(u64::MAX, transactions)?;
        Ok(signers.into_iter().map(|signer| signer.address).collect())
    }

    /// Who signed, by the rules of block `number`.
    fn recover_at(
        &self,
        number: u64,
        transactions: &[Transaction],
    ) -> Result<Vec<Signer>, InvalidBlock> {
        let recovery = Recovery::new(&self.chain, number, transactions);
        recovery.during(self.recoverers(transactions), || recovery.signers())
    }

    /// Who recovers signatures besides the thread that asks for it, where it is worth it.
    fn recoverers(&self, transactions: &[Transaction]) -> Option<&Pool> {
        (transactions.len() >= PARALLEL_RECOVERY).then(|| self.pool())
    }

    /// The public keys of those who signed a block's transactions, in order.
    ///
    /// # Errors
    /// [`Error::Build`] when a signature has none, which no valid block's has.
    pub fn public_keys(&self, block: &SealedBlock) -> Result<Vec<PublicKey>, Error> {
        if let Some(latest) = self.latest().as_ref().filter(|latest| latest.hash == block.hash()) {
            return Ok(latest.public_keys.clone());
        }
        let signers = self.recover_at(block.header.number, &block.body.transactions);
        let signers = signers.map_err(Error::Build)?;
        Ok(signers.into_iter().map(|signer| signer.public_key).collect())
    }

    /// Checks what lies further behind a block than its parent, in the days of proof of work.
    fn validate_ancestry(
        &self,
        parent: &Arc<BlockRecord>,
        block: &SealedBlock,
    ) -> Result<(), Failure> {
        if block.header.difficulty.is_zero() && parent.block.header.difficulty.is_zero() {
            return Ok(());
        }
        let mut records = vec![parent.clone()];
        while !block.body.ommers.is_empty() && records.len() < execution::OMMER_GENERATIONS {
            let next = records[records.len() - 1].block.header.parent_hash;
            let Some(record) = self.core.block(&next)? else { break };
            records.push(record);
        }
        let ancestors: Vec<_> = records.iter().map(|record| &record.block).collect();
        let total_difficulty = parent.total_difficulty;
        execution::validate_ancestry(&self.chain, block, total_difficulty, &ancestors)
            .map_err(|reason| Failure::Block(reason.into()))
    }

    /// The threads for a block that uses so much gas, if it is worth them.
    pub(crate) fn threads(&self, gas_used: u64) -> Option<Threads<'_>> {
        if gas_used < self.core.options.parallel_gas {
            return None;
        }
        let workers = self.workers.get_or_init(|| {
            let left = processors().saturating_sub(1 + self.core.options.ahead_threads);
            let count = self.core.options.trie_workers.unwrap_or(left);
            Workers::start(count.clamp(1, limits::TRIE_WORKERS), self.helpers.clone())
        });
        Some(Threads { workers, pool: self.pool() })
    }

    fn pool(&self) -> &Pool {
        self.pool.get_or_init(|| Pool::start(processors(), self.helpers.clone()))
    }

    /// The threads that read ahead, if there are to be any.
    fn prefetchers(&self) -> Option<&ThreadPool> {
        let count = self.core.options.prefetch_threads;
        (count > 0).then(|| self.prefetchers.get_or_init(|| prefetch::thread_pool(count)))
    }

    pub(crate) const fn core(&self) -> &Arc<Core> {
        &self.core
    }

    /// Holds everybody else back who wants to run a block.
    pub(crate) fn running(&self) -> MutexGuard<'_, ()> {
        self.running.lock().expect(NO_PANIC)
    }

    pub(crate) fn builds(&self) -> MutexGuard<'_, Bounded<Build>> {
        self.builds.lock().expect(NO_PANIC)
    }

    fn latest(&self) -> MutexGuard<'_, Option<Latest>> {
        self.latest.lock().expect(NO_PANIC)
    }
}

/// What an answer is to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// Nobody sends one.
    Nothing,
    Verdict,
    Witness,
}

/// Why a block was not validated: because of the block, or because of us.
enum Failure {
    Block(BlockError),
    Engine(Error),
}

impl From<BlockError> for Failure {
    fn from(error: BlockError) -> Self {
        Self::Block(error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Engine(error)
    }
}

const NO_PANIC: &str = "no thread panics while it holds the lock";

/// The rule broken, in words; what a block says of itself may be long, and is cut.
fn told(reason: &InvalidBlock) -> String {
    let mut told = reason.to_string();
    let end = (0..=limits::REASON_BYTES).rev().find(|end| told.is_char_boundary(*end));
    told.truncate(end.expect("every text has a boundary at 0"));
    told
}

/// Transactions from which on their senders are recovered on all cores: fewer are not worth waking
/// the other threads.
const PARALLEL_RECOVERY: usize = 4;

/// The block that a payload describes, if its hash and versioned hashes are right, and its access
/// list, to which the hash commits.
fn decode(payload: Payload) -> Result<(SealedBlock, Option<Bytes>), InvalidBlock> {
    let Payload { execution, sidecar } = payload;
    let got = execution.block_hash();
    let list = execution.block_access_list().cloned();
    let transactions_root = trie::ordered_root(execution.transactions());
    let block = execution
        .into_block_with_sidecar_raw_with_transactions_root(&sidecar, transactions_root)
        .map_err(|error| InvalidBlock::Payload(error.to_string()))?;
    let mut encoded = Vec::new();
    let transaction = |bytes: Bytes| {
        let decoded = Transaction::decode_2718_exact(&bytes)
            .map_err(|error| InvalidBlock::Payload(error.to_string()))?;
        // The header has the root of the bytes as they came.
        encoded.clear();
        decoded.encode_2718(&mut encoded);
        if encoded != bytes {
            let reason = format!("transaction {} is encoded in another way", decoded.tx_hash());
            return Err(InvalidBlock::Payload(reason));
        }
        Ok(decoded)
    };
    let block = SealedBlock::new(block.try_map_transactions(transaction)?);
    if block.hash() != got {
        return Err(InvalidBlock::BlockHash { got, expected: block.hash() });
    }
    if let Some(versioned_hashes) = sidecar.versioned_hashes() {
        let transactions = block.body.transactions.iter();
        let expected = transactions.flat_map(|tx| tx.blob_versioned_hashes().into_iter().flatten());
        if !expected.eq(versioned_hashes) {
            return Err(InvalidBlock::VersionedHashes);
        }
    }
    Ok((block, list))
}

#[cfg(test)]
mod tests;
