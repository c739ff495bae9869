//! Floor 5. The engine: a chain that is opened, and questions about it.

use crate::after::After;
use crate::after::prune::prune;
use crate::block::plan::BlockThreads;
use crate::block::senders::BlockSenders;
use crate::builder::{BuildThread, Builder};
use crate::chain::events::ChainEvent;
use crate::chain::genesis::Genesis;
use crate::chain::orphans::{GapFiller, Orphans};
use crate::chain::persisted::PersistedBlock;
use crate::chain::record::{BlockRecord, WitnessSize};
use crate::chain::timings::Timings;
use crate::chain::tree::Heads;
use crate::error::{Error, NO_PANIC};
use crate::limits;
use crate::options::EngineOptions;
use crate::read::view::StateView;
use crate::shared::{Chain, Shared};
use crate::witnesses::assemble::Witnesses;
use crate::witnesses::assembled::Assembled;
use alloy_consensus::Header;
use alloy_primitives::B256;
use execution::{ChainSpec, CodeCache, InvalidBlock, PublicKey, SealedBlock, Signer, Transaction};
use state::{Database, MemoryDisk};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use witness::Witness;

/// The chain of one network: validates payloads, follows the fork choice, builds payloads.
///
/// All functions may be called from any thread. One block runs at a time; the fork choice and
/// everything that reads do not wait for it. Dropping the engine persists what is in memory.
#[derive(Debug)]
pub struct Engine {
    chain: ChainSpec,
    pub(crate) shared: Arc<Shared>,
    /// Seals and persists all that is left when it is dropped.
    pub(crate) after: After,
    pub(crate) threads: BlockThreads,
    /// Codes made ready to run.
    pub(crate) codes: CodeCache,
    /// Held while a block runs.
    running: Mutex<()>,
    /// Held by the one who is next to run one: so whoever runs many, one after the other, lets
    /// others in between.
    next_to_run: Mutex<()>,
    pub(crate) builder: Arc<Builder>,
    /// Begins with the first source of transactions.
    pub(crate) build_thread: OnceLock<BuildThread>,
    pub(crate) orphans: Mutex<Orphans>,
    /// The number of the head when the chain was opened.
    pub(crate) opened_at: u64,
    pub(crate) gap_filler: GapFiller,
    /// The block that was validated last.
    last: Mutex<Option<LastBlock>>,
    /// Whether the block that ran last has waited long for the disk.
    pub(crate) was_cold: AtomicBool,
    /// How long the last fork choice took, in microseconds.
    pub(crate) chosen_in_us: AtomicU64,
}

/// The block that was validated last.
#[derive(Debug)]
pub(crate) struct LastBlock {
    pub(crate) hash: B256,
    pub(crate) public_keys: Vec<PublicKey>,
    pub(crate) timings: Timings,
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
            journal: state::JournalMode::Off,
            ..state::Options::default()
        };
        let database = Database::open(MemoryDisk::new(), &options)?;
        let options = EngineOptions {
            witness_cache_bytes: limits::MEMORY_CACHE_BYTES as usize,
            ..EngineOptions::default()
        };
        Self::open(chain, Some(genesis), database, options)
    }

    /// The chain in `database`; when that is empty, a chain that consists of `genesis`. The blocks
    /// of its journal that are not persisted run again.
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
        if let Some(remote) = &options.remote {
            database.nodes().set_remote(remote.clone());
        }
        let heads = match (Heads::from_stored(database.heads()), genesis) {
            (Some(heads), None) => heads,
            (Some(heads), Some(genesis)) => genesis.check_same(heads)?,
            (None, Some(genesis)) => genesis.write(&chain, &database, options.remote.as_deref())?,
            (None, None) => {
                let reason = "the database is empty, and no genesis was given to begin with";
                return Err(Error::Genesis(reason.into()));
            }
        };
        let codes = CodeCache::new(options.code_cache_bytes, state::look_at_mapped);
        let shared = Arc::new(Shared::new(options, database, heads)?);
        let opened_at = shared.chain.number(&heads.head)?;
        let builder = Builder::new(chain.clone(), shared.clone(), codes.clone());
        let engine = Self {
            chain,
            builder: Arc::new(builder),
            after: After::start(&shared),
            shared,
            opened_at,
            gap_filler: GapFiller::default(),
            threads: BlockThreads::default(),
            codes,
            running: Mutex::new(()),
            next_to_run: Mutex::new(()),
            build_thread: OnceLock::new(),
            orphans: Mutex::default(),
            last: Mutex::new(None),
            was_cold: AtomicBool::new(false),
            chosen_in_us: AtomicU64::new(0),
        };
        engine.replay_journal()?;
        Ok(engine)
    }

    /// The chain's rules.
    pub const fn chain(&self) -> &ChainSpec {
        &self.chain
    }

    /// The witness of a valid block other than the first, whatever branch it is on: put together
    /// from what the block read, which changes nothing.
    ///
    /// `None` when no such block is known.
    ///
    /// # Errors
    /// [`Error::Pruned`] when neither the witness nor the state that it was read from is kept;
    /// [`Error::PrunedWitness`] when the list of what the block read is not.
    pub fn witness(&self, block_hash: B256) -> Result<Option<Arc<Witness>>, Error> {
        Ok(self.assembled(block_hash)?.map(|assembled| assembled.witness))
    }

    /// As [`witness`](Self::witness), with the hashes of the codes.
    ///
    /// # Errors
    /// As for [`witness`](Self::witness).
    pub fn assembled(&self, block_hash: B256) -> Result<Option<Assembled>, Error> {
        Witnesses::new(&self.shared).on(self.threads.pool()).get(&block_hash)
    }

    /// How much the witness of a block is, without putting it together; `None` for the first block
    /// of a chain.
    pub fn witness_size(&self, record: &BlockRecord) -> Option<WitnessSize> {
        Witnesses::new(&self.shared).size(record)
    }

    /// The same where it is known at once: the nodes of a block are listed soon after its verdict,
    /// and [`witness_size`](Self::witness_size) waits for it. `None` until then, too.
    pub fn known_witness_size(&self, record: &BlockRecord) -> Option<WitnessSize> {
        Witnesses::new(&self.shared).known_size(record)
    }

    /// Where the time of the block went that was validated last, and its hash.
    pub fn last_timings(&self) -> Option<(B256, Timings)> {
        self.last().as_ref().map(|last| (last.hash, last.timings))
    }

    /// A valid block by its hash, whatever branch it is on.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn block(&self, hash: B256) -> Result<Option<Arc<BlockRecord>>, Error> {
        self.shared.chain.block(&hash)
    }

    /// The newest blocks that were found to be invalid since the start, the highest number first:
    /// 16 at most, and 12 MiB in all. One whose hash is not that of its fields is not among them.
    pub fn bad_blocks(&self) -> Vec<Arc<SealedBlock>> {
        self.shared.chain.bad_blocks().list()
    }

    /// The number of a valid block, whatever branch it is on; `None` when there is none.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn number(&self, hash: &B256) -> Result<Option<u64>, Error> {
        Ok(self.shared.chain.link(hash)?.map(|(number, _)| number))
    }

    /// The hash of block `number` of the canonical chain.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn canonical_hash(&self, number: u64) -> Result<Option<B256>, Error> {
        self.shared.chain.canonical_hash(number)
    }

    /// The hashes of blocks `start` to before `end` of the canonical chain, up to its head, all of
    /// them as one fork choice left it. `None` is a number that is below the chain's first block.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn canonical_range(&self, start: u64, end: u64) -> Result<Vec<Option<B256>>, Error> {
        loop {
            let (reorgs, head) = {
                let tree = self.shared.chain.tree();
                (tree.reorgs, tree.known_link(&tree.heads.head)?.0)
            };
            let hashes = (start..end.min(head + 1)).map(|number| self.canonical_hash(number));
            let hashes = hashes.collect::<Result<_, _>>()?;
            if self.shared.chain.tree().reorgs == reorgs {
                return Ok(hashes);
            }
        }
    }

    /// The heads that the consensus layer has chosen.
    pub fn heads(&self) -> Heads {
        self.shared.chain.tree().heads
    }

    /// The heads that would survive a crash now.
    pub fn persisted_heads(&self) -> Heads {
        self.shared.chain.persisted.get()
    }

    /// The finalized block, once it is persisted: this waits until then.
    ///
    /// # Errors
    /// When persistence has failed.
    pub fn finalized(&self) -> Result<Option<B256>, Error> {
        let Some(finalized) = self.heads().finalized else { return Ok(None) };
        if self.shared.chain.persisted.get().finalized != Some(finalized) {
            self.persist()?;
        }
        Ok(Some(finalized))
    }

    /// Persists the chain that is chosen, and all blocks that are sealed by now; returns when that
    /// is done.
    ///
    /// # Errors
    /// When persistence has failed.
    pub fn persist(&self) -> Result<(), Error> {
        self.after.flush();
        self.shared.chain.check()
    }

    /// Number and hash of the next header that is wanted from before the first block of a chain
    /// that begins with a state: the first 255 blocks after it may ask for hashes from before it
    /// (`BLOCKHASH`). `None` where none is.
    pub fn wanted_header(&self) -> Option<(u64, B256)> {
        self.shared.chain.before.wanted()
    }

    /// Keeps headers from before the first block, durably, as long as each is the one that is
    /// wanted. How many were.
    ///
    /// # Errors
    /// When writing fails.
    pub fn add_headers(&self, headers: Vec<Header>) -> Result<usize, Error> {
        let Chain { before, database, .. } = &self.shared.chain;
        let mut count = 0;
        for header in headers {
            if !before.add(database, header)? {
                break;
            }
            count += 1;
        }
        if count > 0 {
            // A block that needs them runs again after a crash.
            database.persist()?;
        }
        Ok(count)
    }

    /// Forgets the versions that are too old by the options, and deletes what only they need.
    /// `progress` is told the part that is done, from 0 to 1.
    ///
    /// # Errors
    /// When writing fails.
    pub fn prune(&self, progress: &mut dyn FnMut(f64)) -> Result<(), Error> {
        let _wanted = self.shared.background.want();
        prune(&self.shared, progress)?;
        // Blocks that were not persisted until now are pruned by the persistence thread, without
        // progress.
        self.persist()?;
        self.shared.chain.database.persist()?;
        Ok(())
    }

    /// Has `listener` told of each canonical head that is persisted. It must not block.
    pub fn on_persisted(&self, listener: impl Fn(PersistedBlock) + Send + Sync + 'static) {
        self.shared.chain.persisted.listen(Box::new(listener));
    }

    /// Has `listener` told of each event, and returns the heads before the first. It may run while
    /// the chain is locked, so it must be quick and must not call the engine.
    pub fn on_event(&self, listener: impl Fn(&ChainEvent) + Send + Sync + 'static) -> Heads {
        let tree = self.shared.chain.tree_mut();
        self.shared.chain.events.add(Box::new(listener));
        tree.heads
    }

    /// Has `listener` told when a write has failed: nothing is validated from then on, and no head
    /// chosen. It is told at once if that was before. It must not block.
    pub fn on_failure(&self, listener: impl Fn(&Error) + Send + Sync + 'static) {
        self.shared.chain.on_failure(Box::new(listener));
    }

    /// Whether blocks are validated.
    ///
    /// # Errors
    /// The reason why not: a write that has failed.
    pub fn check(&self) -> Result<(), Error> {
        self.shared.chain.check()
    }

    /// The state after a valid block.
    ///
    /// # Errors
    /// [`Error::UnknownBlock`]; [`Error::Pruned`] when it is not kept any more.
    pub fn state(&self, block_hash: B256) -> Result<StateView, Error> {
        let (chain, background) = (&self.shared.chain, &self.shared.background);
        let record = chain.known_block(&block_hash)?;
        let version = chain.sealed(background, &record)?.version;
        Ok(StateView::new(chain.database.clone(), version, chain.remote.clone()))
    }

    /// The number of the first block: 0, or that of the block whose state the chain began with.
    pub fn first_number(&self) -> u64 {
        self.shared.chain.before.first_number()
    }

    /// The lowest number of a block after which the state is kept.
    pub fn oldest_state(&self) -> u64 {
        self.shared.chain.floors().first.max(self.first_number())
    }

    /// How many blocks before the head the state is kept ([`EngineOptions::retain_history`]).
    pub fn retained_states(&self) -> u64 {
        self.shared.options.retain_history
    }

    /// Bytes and counts of what is on disk and in memory.
    pub fn database(&self) -> &Arc<Database> {
        &self.shared.chain.database
    }

    /// The public keys of those who signed a block's transactions, in order.
    ///
    /// # Errors
    /// [`Error::Build`] when a signature has none, which no valid block's has.
    pub fn public_keys(&self, block: &SealedBlock) -> Result<Vec<PublicKey>, Error> {
        if let Some(last) = self.last().as_ref().filter(|last| last.hash == block.hash()) {
            return Ok(last.public_keys.clone());
        }
        let signers = self.recover_at(block.header.number, &block.body.transactions);
        let signers = signers.map_err(Error::Build)?;
        Ok(signers.into_iter().map(|signer| signer.public_key).collect())
    }

    /// The signers by the rules of block `number`, recovered on all cores.
    pub(crate) fn recover_at(
        &self,
        number: u64,
        transactions: &[Transaction],
    ) -> Result<Vec<Signer>, InvalidBlock> {
        let senders = BlockSenders::new(&self.chain, number, transactions);
        senders.recover_all(self.threads.sender_threads(transactions.len()))
    }

    /// Held by the one thread that runs a block.
    pub(crate) fn running(&self) -> MutexGuard<'_, ()> {
        let _next = self.next_to_run.lock().expect(NO_PANIC);
        self.running.lock().expect(NO_PANIC)
    }

    pub(crate) fn last(&self) -> MutexGuard<'_, Option<LastBlock>> {
        self.last.lock().expect(NO_PANIC)
    }
}
