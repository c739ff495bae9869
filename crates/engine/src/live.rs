//! The state as a block of the chain reads and changes it: a version in the database, and tries
//! that grow above it, on other threads when the block is worth it.

use crate::Error;
use crate::ancestors::Ancestors;
use crate::core::Core;
use crate::record::BlockRecord;
use crate::state_view;
use crate::touched::Touched;
use crate::workers::{Session, Workers};
use alloy_primitives::map::AddressMap;
use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use execution::Executed;
use rayon::ThreadPool;
use rayon::prelude::*;
use state::Nodes;
use std::sync::Arc;
use std::time::{Duration, Instant};
use trie::versioned::{self, BlockTrie, NodeAddress, Unit, Version, run_serially};
use trie::{Account, EMPTY_ROOT_HASH, StateChanges};
use witness::{BlockState, Change, State, StateError, Witness};

/// The tries of one block, above the database.
pub(crate) type Tries = BlockTrie<Nodes>;

/// The state after a block's parent, and what the block does with it.
#[derive(Debug)]
pub(crate) struct LiveState<'a> {
    core: &'a Core,
    ancestors: Ancestors<'a>,
    version: Version,
    /// Accounts as they were asked for, each with its hashed address and its storage.
    accounts: AddressMap<Known>,
    work: Work<'a>,
    /// What the transactions so far have changed, when a root is asked for after each.
    so_far: AddressMap<Change>,
    /// What these roots needed to be known.
    needed_so_far: Vec<NodeAddress>,
    pub(crate) timings: RootTimings,
}

#[derive(Debug, Clone, Copy)]
struct Known {
    hashed_address: B256,
    account: Option<Account>,
    /// Where the storage's root stands; known when the tries are tended by others.
    storage: NodeAddress,
}

/// Who tends the tries.
#[derive(Debug)]
enum Work<'a> {
    /// This thread, as it goes.
    Here(Box<Tries>),
    /// The trie workers, who hold the shards meanwhile.
    Ahead { session: Session<'a>, tries: Box<Tries>, pool: &'a ThreadPool },
}

/// How long the root took after the last transaction.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RootTimings {
    /// Waiting for the workers to catch up with what was read and set ahead.
    pub(crate) catching_up: Duration,
    /// Applying what was left, and hashing.
    pub(crate) applying: Duration,
}

/// Threads for a block that is worth them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Threads<'a> {
    pub(crate) workers: &'a Workers,
    pub(crate) pool: &'a ThreadPool,
}

impl<'a> LiveState<'a> {
    /// The state after `parent`; on this thread alone when there are no `threads`.
    pub(crate) fn new(
        core: &'a Core,
        parent: Arc<BlockRecord>,
        threads: Option<Threads<'a>>,
    ) -> Result<Self, Error> {
        let version = core.sealed(&parent)?.version;
        let tries = Box::new(Tries::new(core.database.nodes().clone(), version)?);
        let work = match threads {
            None => Work::Here(tries),
            Some(Threads { workers, pool }) => begin(core, tries, workers, pool),
        };
        Ok(Self {
            core,
            ancestors: Ancestors::new(core, parent),
            version,
            accounts: AddressMap::default(),
            work,
            so_far: AddressMap::default(),
            needed_so_far: Vec::new(),
            timings: RootTimings::default(),
        })
    }

    /// What was read, codes aside, and the tries to seal.
    pub(crate) fn finish(self, codes: Vec<B256>, first_ancestor: u64) -> (Touched, Box<Tries>) {
        let (Work::Here(tries) | Work::Ahead { tries, .. }) = self.work;
        let mut nodes = tries.witness_addresses();
        if !self.needed_so_far.is_empty() {
            nodes.extend(self.needed_so_far);
            nodes.sort_unstable();
            nodes.dedup();
        }
        (Touched { nodes, codes, first_ancestor }, tries)
    }

    /// The witness of what has run, its changes applied, when it has run on this thread alone.
    pub(crate) fn witness(&mut self, executed: &Executed) -> Result<Witness, Error> {
        let Work::Here(tries) = &self.work else { unreachable!("a draft runs on one thread") };
        let codes = executed.codes_read.values().cloned().collect();
        let headers = self.ancestors.headers(executed.first_ancestor)?;
        let mut witness = Witness { state: tries.witness(), codes, headers };
        witness.sort();
        Ok(witness)
    }

    fn known(&mut self, address: Address) -> Result<Known, StateError> {
        if let Some(known) = self.accounts.get(&address) {
            return Ok(*known);
        }
        let hashed_address = keccak256(address);
        let (account, storage) = match &mut self.work {
            Work::Here(tries) => {
                (tries.shard_mut(&hashed_address).touch(&hashed_address)?, NodeAddress::NONE)
            }
            Work::Ahead { session, .. } => {
                session.touch_account(hashed_address);
                let nodes = self.core.database.nodes();
                versioned::account(nodes, &self.version, &hashed_address)?
                    .map_or((None, NodeAddress::NONE), |(account, storage)| {
                        (Some(account), storage.address)
                    })
            }
        };
        let known = Known { hashed_address, account, storage };
        self.accounts.insert(address, known);
        Ok(known)
    }
}

fn begin<'a>(
    core: &Core,
    mut tries: Box<Tries>,
    workers: &'a Workers,
    pool: &'a ThreadPool,
) -> Work<'a> {
    let shards = tries.take_shards();
    let session = workers.begin(shards, core.options.multiproof_chunk_size);
    Work::Ahead { session, tries, pool }
}

impl State for LiveState<'_> {
    fn account(&mut self, address: Address) -> Result<Option<Account>, StateError> {
        Ok(self.known(address)?.account)
    }

    fn storage(&mut self, address: Address, slot: U256) -> Result<U256, StateError> {
        let Known { hashed_address, account, storage } = self.known(address)?;
        let root = account.map_or(EMPTY_ROOT_HASH, |account| account.storage_root);
        if root == EMPTY_ROOT_HASH {
            return Ok(U256::ZERO);
        }
        let hashed_slot = keccak256(slot.to_be_bytes::<32>());
        match &mut self.work {
            Work::Here(tries) => {
                Ok(tries.shard_mut(&hashed_address).touch_slot(&hashed_address, &hashed_slot)?)
            }
            Work::Ahead { session, .. } => {
                session.touch_slot(hashed_address, hashed_slot);
                let storage = Version { root, address: storage };
                Ok(versioned::slot(self.core.database.nodes(), &storage, &hashed_slot)?)
            }
        }
    }

    fn code(&mut self, code_hash: B256) -> Result<Bytes, StateError> {
        state_view::code(&self.core.database, code_hash)
    }

    fn block_hash(&mut self, number: u64) -> Result<B256, StateError> {
        self.ancestors.block_hash(number)
    }

    fn ran(&mut self, changes: &mut dyn Iterator<Item = Change>) {
        if let Work::Ahead { session, .. } = &mut self.work {
            for change in changes {
                let known = self.accounts.get(&change.address);
                let hashed_address =
                    known.map_or_else(|| keccak256(change.address), |known| known.hashed_address);
                session.ran(hashed_address, change);
            }
        }
    }
}

pub(crate) fn storage_error(error: impl std::fmt::Display) -> StateError {
    StateError::Storage(error.to_string())
}

impl BlockState for LiveState<'_> {
    fn restart(&mut self) {
        self.accounts.clear();
        self.so_far.clear();
        self.needed_so_far.clear();
        // The tries were made from this version before: no new error can come of it.
        let tries = Tries::new(self.core.database.nodes().clone(), self.version);
        let tries = Box::new(tries.expect("the root was read before"));
        self.work = match &self.work {
            Work::Here(_) => Work::Here(tries),
            Work::Ahead { session, pool, .. } => begin(self.core, tries, session.workers(), pool),
        };
    }

    fn apply(&mut self, changes: &[Change]) -> Result<B256, StateError> {
        let start = Instant::now();
        let changes = StateChanges { accounts: changes.iter().map(Change::hashed).collect() };
        let root = match &mut self.work {
            Work::Here(tries) => tries.finish(&changes, &run_serially)?,
            Work::Ahead { session, tries, pool } => {
                tries.put_shards(session.end()?);
                self.timings.catching_up = start.elapsed();
                let on_pool = |units: &mut [Unit<'_>]| {
                    pool.install(|| units.par_iter_mut().for_each(Unit::run));
                };
                tries.finish(&changes, &on_pool)?
            }
        };
        self.timings.applying = start.elapsed() - self.timings.catching_up;
        Ok(root)
    }

    /// Blocks from before Byzantium are small, so each root is made from the parent's anew.
    fn apply_transaction(&mut self, changes: &[Change]) -> Result<B256, StateError> {
        for change in changes {
            let Change { address, account, storage_wiped, slots } = change.clone();
            let empty = Change { address, account, storage_wiped, slots: Vec::new() };
            let merged = self.so_far.entry(address).or_insert(empty);
            if storage_wiped || account.is_none() {
                merged.slots.clear();
                merged.storage_wiped = true;
            }
            merged.account = account;
            merged.slots.retain(|(slot, _)| slots.iter().all(|(changed, _)| changed != slot));
            merged.slots.extend(slots);
        }
        let accounts = self.so_far.values().map(Change::hashed).collect();
        let mut tries = Tries::new(self.core.database.nodes().clone(), self.version)?;
        let root = tries.finish(&StateChanges { accounts }, &run_serially)?;
        self.needed_so_far.extend(tries.witness_addresses());
        Ok(root)
    }
}
