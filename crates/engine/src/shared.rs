//! Floor 2. The data that the engine's threads share: the chain, its newest witnesses, and the
//! flags by which background work gives way.

use crate::chain::bad::BadBlocks;
use crate::chain::before::Before;
use crate::chain::events::EventListeners;
use crate::chain::floors::Floors;
use crate::chain::persisted::PersistedHeads;
use crate::chain::record::BlockRecord;
use crate::chain::sealed::Sealed;
use crate::chain::slots::SlotCache;
use crate::chain::stored::{stored_block, stored_header, stored_link};
use crate::chain::tree::{BlockTree, Heads};
use crate::chain::unsealed::Unsealed;
use crate::error::{Error, NO_PANIC};
use crate::options::EngineOptions;
use crate::remote::Remote;
use crate::threads::background::Background;
use crate::witnesses::copied::CopySchedule;
use crate::witnesses::recent::RecentWitnesses;
use alloy_primitives::{B256, Bytes};
use state::Database;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Everything that the threads share. Functions take the part that they need.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) options: EngineOptions,
    pub(crate) chain: Chain,
    /// The newest witnesses, in memory.
    pub(crate) recent: RecentWitnesses,
    /// Which witnesses have their copies on disk.
    pub(crate) copies: CopySchedule,
    pub(crate) background: Background,
}

/// The valid blocks, on disk and in memory.
pub(crate) struct Chain {
    pub(crate) database: Arc<Database>,
    /// The state after the first block, where that is elsewhere.
    pub(crate) remote: Option<Arc<Remote>>,
    /// The headers before the first block.
    pub(crate) before: Before,
    pub(crate) slots: SlotCache,
    tree: RwLock<BlockTree>,
    floors: Mutex<Floors>,
    pub(crate) unsealed: Arc<Unsealed>,
    /// Held by the one thread that gives addresses to a block's nodes.
    sealing: Mutex<()>,
    pub(crate) persisted: PersistedHeads,
    pub(crate) events: EventListeners,
    bad_blocks: Mutex<BadBlocks>,
    failure: OnceLock<Error>,
    failure_listeners: Mutex<Vec<FailureListener>>,
}

/// Is called when the engine stops, with the reason.
type FailureListener = Box<dyn Fn(&Error) + Send + Sync>;

impl Shared {
    /// The chain in `database`, which has these heads.
    pub(crate) fn new(
        options: EngineOptions,
        database: Arc<Database>,
        heads: Heads,
    ) -> Result<Self, Error> {
        let chain = Chain::new(database, heads, options.remote.clone())?;
        let recent = RecentWitnesses::new(options.witness_cache_bytes);
        let copies = CopySchedule::new(chain.number(&heads.genesis)?);
        Ok(Self { options, chain, recent, copies, background: Background::default() })
    }
}

impl Chain {
    fn new(
        database: Arc<Database>,
        heads: Heads,
        remote: Option<Arc<Remote>>,
    ) -> Result<Self, Error> {
        let first = stored_link(&database, &heads.genesis)?;
        let first = first.ok_or(Error::UnknownBlock(heads.genesis))?;
        let chain = Self {
            before: Before::open(&database, first)?,
            tree: RwLock::new(BlockTree::new(database.clone(), heads)?),
            slots: SlotCache::default(),
            floors: Mutex::new(Floors::of(&database)),
            database,
            remote,
            unsealed: Arc::default(),
            sealing: Mutex::new(()),
            persisted: PersistedHeads::new(heads),
            events: EventListeners::default(),
            bad_blocks: Mutex::default(),
            failure: OnceLock::new(),
            failure_listeners: Mutex::default(),
        };
        // The head is asked for all the time.
        let head = chain.block(&heads.head)?.ok_or(Error::UnknownBlock(heads.head))?;
        drop(chain.tree_mut().insert(head));
        Ok(chain)
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

    /// The newest invalid blocks.
    pub(crate) fn bad_blocks(&self) -> MutexGuard<'_, BadBlocks> {
        self.bad_blocks.lock().expect(NO_PANIC)
    }

    /// Held while a block's nodes get their addresses.
    pub(crate) fn sealing(&self) -> MutexGuard<'_, ()> {
        self.sealing.lock().expect(NO_PANIC)
    }

    /// A valid block, `None` when there is none. One that is not among the newest is in the
    /// database, which is not read while the tree is locked: the fork choice would wait for that.
    pub(crate) fn block(&self, hash: &B256) -> Result<Option<Arc<BlockRecord>>, Error> {
        let recent = self.tree().recent(hash).cloned();
        recent.map_or_else(|| stored_block(&self.database, hash), |record| Ok(Some(record)))
    }

    /// A valid block that must be there.
    pub(crate) fn known_block(&self, hash: &B256) -> Result<Arc<BlockRecord>, Error> {
        self.block(hash)?.ok_or(Error::UnknownBlock(*hash))
    }

    /// The RLP of a valid block's header.
    pub(crate) fn header_rlp(&self, hash: &B256) -> Result<Option<Bytes>, Error> {
        let recent = self.tree().recent(hash).cloned();
        match recent {
            Some(record) => Ok(Some(alloy_rlp::encode(&record.block.header).into())),
            None => self.database.block(hash)?.map(|stored| stored_header(&stored)).transpose(),
        }
    }

    /// Number and parent of a valid block, `None` when there is none.
    pub(crate) fn link(&self, hash: &B256) -> Result<Option<(u64, B256)>, Error> {
        let recent = self.tree().recent_link(hash);
        match recent {
            Some(link) => Ok(Some(link)),
            None => stored_link(&self.database, hash),
        }
    }

    /// Number and parent of an ancestor of a valid block, `None` when its header is not there. One
    /// before the first block is asked for where its chain is elsewhere.
    pub(crate) fn ancestor_link(&self, hash: &B256) -> Result<Option<(u64, B256)>, Error> {
        match (self.link(hash)?, &self.remote) {
            (None, Some(remote)) => {
                let (header, _) = remote.header(*hash)?;
                let link = (header.number, header.parent_hash);
                Ok(remote.reaches(header.number).then_some(link))
            }
            (None, None) => Ok(self.before.link(hash)),
            (link, _) => Ok(link),
        }
    }

    /// The RLP of an ancestor's header, as [`ancestor_link`](Self::ancestor_link).
    pub(crate) fn ancestor_rlp(&self, hash: &B256) -> Result<Option<Bytes>, Error> {
        match (self.header_rlp(hash)?, &self.remote) {
            (None, Some(remote)) => Ok(Some(remote.header(*hash)?.1)),
            (None, None) => Ok(self.before.rlp(hash)),
            (rlp, _) => Ok(rlp),
        }
    }

    /// The number of a valid block that must be there.
    pub(crate) fn number(&self, hash: &B256) -> Result<u64, Error> {
        Ok(self.link(hash)?.ok_or(Error::UnknownBlock(*hash))?.0)
    }

    /// The hash of block `number` of the canonical chain. The tree is not locked while the disk is
    /// read.
    pub(crate) fn canonical_hash(&self, number: u64) -> Result<Option<B256>, Error> {
        let newest = self.tree().newest_canonical(number)?;
        newest.map_or_else(|| Ok(self.database.canonical(number)?), Ok)
    }

    /// The state after a block, as long as it is kept. Waits until the block is sealed.
    pub(crate) fn sealed<'a>(
        &self,
        background: &Background,
        record: &'a BlockRecord,
    ) -> Result<&'a Sealed, Error> {
        record.seal.want();
        let _wanted = (!record.seal.is_kept()).then(|| background.want());
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

    /// Whether the state after a valid block is known not to be kept any more. Fails where it could
    /// not be written, as on a full disk.
    pub(crate) fn is_pruned(&self, record: &BlockRecord) -> Result<bool, Error> {
        Ok(match record.seal.is_kept().then(|| record.seal.wait()).transpose() {
            Ok(Some(sealed)) => !self.keeps(&self.floors(), record.number(), sealed),
            Ok(None) => record.number() < self.floors().first,
            Err(Error::Pruned(_)) => true,
            Err(error) => return Err(error),
        })
    }

    /// Remembers why the engine has stopped, and tells the listeners. The first reason stays.
    pub(crate) fn fail(&self, error: Error) {
        let listeners = self.failure_listeners.lock().expect(NO_PANIC);
        if self.failure.set(error.clone()).is_ok() {
            listeners.iter().for_each(|listener| listener(&error));
        }
    }

    /// Has `listener` told when the engine stops, at once if it has.
    pub(crate) fn on_failure(&self, listener: FailureListener) {
        let mut listeners = self.failure_listeners.lock().expect(NO_PANIC);
        if let Some(error) = self.failure.get() {
            listener(error);
        }
        listeners.push(listener);
    }

    /// The same, for an error that is passed on.
    pub(crate) fn failed(&self, error: Error) -> Error {
        self.fail(error.clone());
        error
    }

    /// An error when the engine has stopped.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match self.failure.get() {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chain").field("persisted", &self.persisted.get()).finish_non_exhaustive()
    }
}
