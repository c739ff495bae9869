//! The state as a block of the chain reads and changes it: a version in the database, and tries
//! that grow above it, on other threads when the block is worth it.

use crate::block::ahead::{Guess, Listed};
use crate::block::trie_workers::{Session, Workers};
use crate::chain::read_set::{self, Touched};
use crate::chain::record::BlockRecord;
use crate::read::ancestors::Ancestors;
use crate::read::remembered::{Reader, Remembered};
use crate::read::version as state_view;
use crate::shared::Core;
use crate::threads::helpers::Pool;
use crate::{Error, limits};
use alloy_primitives::map::AddressMap;
use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use execution::{AccessList, Executed};
use state::{NodeReader, NodeStore};
use std::sync::Arc;
use std::time::{Duration, Instant};
use trie::versioned::{
    self, BlockTrie, Lister, NodeAddress, Shortcuts, SlotRead, Version, WorkUnit, run_serially,
};
use trie::{Account, EMPTY_ROOT_HASH, Error as TrieError};
use witness::{BlockState, Change, Code, State, StateError, Witness};

/// The tries of one block, above the database.
pub(crate) type Tries = BlockTrie<NodeStore>;

/// Gives back the memory of a block's tries, if nobody else holds them: a shard at a time, with a
/// `pause` after each.
pub(crate) fn drop_in_parts(tries: Arc<Tries>, pause: impl Fn()) {
    let Some(mut tries) = Arc::into_inner(tries) else { return };
    for shard in tries.take_shards() {
        drop(shard);
        pause();
    }
}

/// The state after a block's parent, and what the block does with it.
#[derive(Debug)]
pub(crate) struct LiveState<'a> {
    core: &'a Core,
    ancestors: Ancestors<'a>,
    version: Version,
    /// Accounts as they were asked for, each with its hashed address and its storage.
    accounts: AddressMap<Known>,
    reads: Reads<'a>,
    work: Work<'a>,
    /// What the block's access list names, which the workers were told at once.
    listed: Option<Arc<Listed>>,
    /// Of that, what the block has asked for.
    asked: Asked,
    /// What this thread and those that run transactions ahead tell each other.
    guess: Option<Arc<Guess>>,
    /// What the transactions so far have changed, when a root is asked for after each.
    so_far: AddressMap<Change>,
    /// What these roots needed to be known.
    needed_so_far: Vec<NodeAddress>,
    pub(crate) timings: RootTimings,
}

/// An account as the parent has it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known {
    hashed_address: B256,
    pub(crate) account: Option<Account>,
    /// Where the storage's root stands; known when the tries are tended by others.
    storage: NodeAddress,
}

/// What is left of a block that has run.
#[derive(Debug)]
pub(crate) struct Finished {
    /// What was read. Its nodes are listed from the tries, unless these have not all of them.
    pub(crate) touched: Touched,
    /// The tries to seal.
    pub(crate) tries: Arc<Tries>,
    /// Whether these have all nodes that were read.
    pub(crate) is_all: bool,
}

/// How much of an access list a block has asked for.
#[derive(Debug, Default)]
struct Asked {
    accounts_count: usize,
    /// Slots of accounts with storage.
    slots_count: usize,
    /// Which slots these are, of all that the list names.
    slots: Vec<bool>,
}

/// Who tends the tries.
#[derive(Debug)]
enum Work<'a> {
    /// This thread, as it goes.
    Here(Box<Tries>),
    /// The trie workers, who hold the shards meanwhile.
    Ahead { session: Session<'a>, tries: Box<Tries>, pool: &'a Pool },
}

/// How long the root took after the last transaction.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RootTimings {
    /// Until all that was read is loaded: waiting for the workers, and what they have left.
    pub(crate) catching_up: Duration,
    /// Applying what was left, and hashing.
    pub(crate) applying: Duration,
}

/// Threads for a block that is worth them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Threads<'a> {
    pub(crate) workers: &'a Workers,
    pub(crate) pool: &'a Pool,
}

impl<'a> LiveState<'a> {
    /// The state after `parent`; on this thread alone when there are no `threads`.
    pub(crate) fn new(
        core: &'a Core,
        parent: Arc<BlockRecord>,
        threads: Option<Threads<'a>>,
        list: Option<AccessList>,
    ) -> Result<Self, Error> {
        let version = core.sealed(&parent)?.version;
        let tries = Box::new(Tries::new(core.database.nodes().clone(), version)?);
        let mut work = match threads {
            None => Work::Here(tries),
            Some(Threads { workers, pool }) => begin(core, tries, workers, pool),
        };
        let mut asked = Asked::default();
        let mut listed = None;
        if let (Work::Ahead { session, .. }, Some(list)) = (&mut work, list) {
            asked.slots = vec![false; list.slots_count()];
            let shared = Arc::new(Listed::new(list, core.database.nodes().clone(), version));
            session.list(&shared);
            listed = Some(shared);
        }
        Ok(Self {
            core,
            ancestors: Ancestors::new(core, parent),
            version,
            accounts: AddressMap::default(),
            reads: Reads::new(core, version, Reader::Block),
            work,
            listed,
            asked,
            guess: None,
            so_far: AddressMap::default(),
            needed_so_far: Vec::new(),
            timings: RootTimings::default(),
        })
    }

    /// The state's version after the parent.
    pub(crate) const fn version(&self) -> Version {
        self.version
    }

    /// What the block's access list names, if the workers were told.
    pub(crate) const fn listed(&self) -> Option<&Arc<Listed>> {
        self.listed.as_ref()
    }

    /// From now on, what transactions have changed is told to those that run others ahead, and what
    /// these have read is not read again.
    pub(crate) fn guess(&mut self) -> Arc<Guess> {
        self.guess.insert(Arc::default()).clone()
    }

    /// Whether the block has asked for all that its access list names: else the tries hold more
    /// than it has read.
    pub(crate) fn has_asked_for_all_listed(&self) -> bool {
        let Asked { accounts_count, slots_count, .. } = self.asked;
        self.listed.as_ref().is_none_or(|listed| {
            accounts_count == listed.list.accounts().len()
                && listed.slots_with_paths() == Some(slots_count)
        })
    }

    /// What was read, codes aside, and the tries to seal.
    pub(crate) fn finish(self, codes: Vec<B256>, first_ancestor: u64) -> Finished {
        let (Work::Here(tries) | Work::Ahead { tries, .. }) = self.work;
        let is_all = self.needed_so_far.is_empty();
        let touched = Touched::new(tries.nodes_count(), codes, first_ancestor);
        if !is_all {
            touched.list(|| {
                let read_set::Nodes { mut addresses, bytes } = read_set::Nodes::of(&tries, || ());
                let needed_bytes = self.needed_so_far.len() * limits::NODE_BYTES;
                addresses.extend(self.needed_so_far);
                addresses.sort_unstable();
                addresses.dedup();
                read_set::Nodes { addresses, bytes: bytes.map(|bytes| bytes + needed_bytes) }
            });
        }
        Finished { touched, tries: tries.into(), is_all }
    }

    /// The witness of what has run, its changes applied, when it has run on this thread alone.
    pub(crate) fn witness(mut self, executed: &Executed) -> Result<Witness, Error> {
        let Work::Here(tries) = self.work else { unreachable!("a draft runs on one thread") };
        let tries = Arc::new(*tries);
        let mut codes: Vec<_> = executed.codes_read.values().cloned().collect();
        codes.sort_unstable();
        let codes = codes.into_iter().map(|code| code.bytes).collect();
        let headers = self.ancestors.headers(executed.first_ancestor)?;
        let state = tries.witness(&mut Lister::default(), 1, &run_serially);
        Ok(Witness { state, codes, headers })
    }

    fn known(&mut self, address: Address) -> Result<Known, StateError> {
        if let Some(known) = self.accounts.get(&address) {
            return Ok(*known);
        }
        let listed = self.listed.as_ref().map(|listed| listed.account(address)).transpose()?;
        let known = match (&mut self.work, listed.flatten()) {
            (_, Some(known)) => {
                self.asked.accounts_count += 1;
                known
            }
            (Work::Here(tries), None) => {
                let hashed_address = keccak256(address);
                let account = tries.shard_mut(&hashed_address).touch(&hashed_address)?;
                Known { hashed_address, account, storage: NodeAddress::NONE }
            }
            (Work::Ahead { session, .. }, None) => {
                let found = self.guess.as_ref().and_then(|guess| guess.found.account(&address));
                let known = found.map_or_else(|| self.reads.account(address), Ok)?;
                session.touch_account(known.hashed_address);
                known
            }
        };
        self.accounts.insert(address, known);
        Ok(known)
    }
}

/// What a thread reads of the version that a block stands on, by itself.
#[derive(Debug)]
pub(crate) struct Reads<'a> {
    core: &'a Core,
    reader: Reader,
    nodes: NodeReader,
    remembered: Remembered,
    accounts: Shortcuts,
    /// The storages, with how often each was read, and shortcuts once it is worth them.
    storages: AddressMap<(usize, Option<Shortcuts>)>,
}

impl<'a> Reads<'a> {
    pub(crate) fn new(core: &'a Core, version: Version, reader: Reader) -> Self {
        let nodes = NodeReader::new(core.database.nodes().clone());
        let (remembered, accounts) = (core.remembered.take(reader), Shortcuts::new(version));
        Self { core, reader, nodes, remembered, accounts, storages: AddressMap::default() }
    }

    pub(crate) fn account(&mut self, address: Address) -> Result<Known, StateError> {
        let hashed_address = keccak256(address);
        let paths = &mut self.remembered.paths;
        let found = self.accounts.account(&mut self.nodes, paths, &hashed_address)?;
        Ok(Known::new(hashed_address, found))
    }

    /// The hash of a slot, and what was read of it.
    pub(crate) fn slot(
        &mut self,
        owner: Address,
        storage: Version,
        slot: U256,
    ) -> Result<(B256, SlotRead), TrieError> {
        let Self { nodes, remembered: Remembered { paths, slots }, .. } = self;
        let (hash, before) = slots.get(owner, slot);
        let (reads_count, shortcuts) = self.storages.entry(owner).or_default();
        *reads_count += 1;
        let read = if *reads_count < limits::SHORTCUT_READS {
            versioned::slot_with(nodes, paths, &storage, &hash, before)?
        } else {
            let shortcuts = shortcuts.get_or_insert_with(|| Shortcuts::new(storage));
            shortcuts.slot(nodes, paths, &hash, before)?
        };
        if before != Some(read) {
            slots.put(owner, slot, hash, read);
        }
        Ok((hash, read))
    }

    /// Remembers what another thread has read of a slot.
    fn remember(&mut self, owner: Address, slot: U256, hash: B256, read: SlotRead) {
        self.remembered.slots.put(owner, slot, hash, read);
    }
}

impl Drop for Reads<'_> {
    fn drop(&mut self) {
        self.core.remembered.put(self.reader, std::mem::take(&mut self.remembered));
    }
}

/// Reads an account in the version that the block stands on.
pub(crate) fn read_account(
    nodes: &NodeStore,
    version: &Version,
    address: Address,
) -> Result<Known, StateError> {
    let hashed_address = keccak256(address);
    Ok(Known::new(hashed_address, versioned::account(nodes, version, &hashed_address)?))
}

/// Reads a slot of an account that was read in the same version.
pub(crate) fn read_slot(nodes: &NodeStore, known: &Known, slot: U256) -> Result<U256, StateError> {
    let Some(storage) = known.storage() else { return Ok(U256::ZERO) };
    Ok(versioned::slot(nodes, &storage, &hashed_slot(slot))?)
}

impl Known {
    fn new(hashed_address: B256, found: Option<(Account, Version)>) -> Self {
        let (account, storage) = found.unzip();
        let storage = storage.map_or(NodeAddress::NONE, |storage| storage.address);
        Self { hashed_address, account, storage }
    }

    /// The account's storage, `None` if that is empty.
    pub(crate) fn storage(&self) -> Option<Version> {
        let root = self.account?.storage_root;
        (root != EMPTY_ROOT_HASH).then_some(Version { root, address: self.storage })
    }
}

fn hashed_slot(slot: U256) -> B256 {
    keccak256(slot.to_be_bytes::<32>())
}

fn begin<'a>(core: &Core, mut tries: Box<Tries>, workers: &'a Workers, pool: &'a Pool) -> Work<'a> {
    let shards = tries.take_shards();
    let session = workers.begin(shards, core.options.multiproof_chunk_size);
    Work::Ahead { session, tries, pool }
}

impl State for LiveState<'_> {
    fn account(&mut self, address: Address) -> Result<Option<Account>, StateError> {
        Ok(self.known(address)?.account)
    }

    fn storage(&mut self, address: Address, slot: U256) -> Result<U256, StateError> {
        let known = self.known(address)?;
        let Some(storage) = known.storage() else { return Ok(U256::ZERO) };
        let listed = self.listed.as_ref().map(|listed| listed.slot(address, &known, slot));
        match (&mut self.work, listed.transpose()?.flatten()) {
            (_, Some((place, value))) => {
                let is_new = !std::mem::replace(&mut self.asked.slots[place], true);
                self.asked.slots_count += usize::from(is_new);
                Ok(value)
            }
            (Work::Here(tries), None) => {
                let Known { hashed_address, .. } = known;
                let shard = tries.shard_mut(&hashed_address);
                Ok(shard.touch_slot(&hashed_address, &hashed_slot(slot))?)
            }
            (Work::Ahead { session, .. }, None) => {
                let found = self.guess.as_ref().and_then(|guess| guess.found.slot(address, slot));
                let (hashed_slot, read) = match found {
                    Some((hashed_slot, read)) => {
                        self.reads.remember(address, slot, hashed_slot, read);
                        (hashed_slot, read)
                    }
                    None => self.reads.slot(address, storage, slot)?,
                };
                session.touch_slot(known.hashed_address, hashed_slot);
                Ok(read.value)
            }
        }
    }

    fn code(&mut self, code_hash: B256) -> Result<Bytes, StateError> {
        state_view::code(&self.core.database, code_hash)
    }

    fn code_to_run(&mut self, code_hash: B256) -> Result<Code, StateError> {
        state_view::code_to_run(&self.core.database, code_hash)
    }

    fn block_hash(&mut self, number: u64) -> Result<B256, StateError> {
        self.ancestors.block_hash(number)
    }

    fn ran(&mut self, changes: &mut dyn Iterator<Item = Change>) {
        // Of a listed block the workers know the end already.
        if let (Work::Ahead { session, .. }, None) = (&mut self.work, &self.listed) {
            for change in changes {
                if let Some(guess) = &self.guess {
                    guess.so_far.put(&change);
                }
                let known = self.accounts.get(&change.address);
                let hashed_address =
                    known.map_or_else(|| keccak256(change.address), |known| known.hashed_address);
                session.ran(hashed_address, change);
            }
        }
    }

    fn all_ran(&mut self) {
        if let Work::Ahead { session, .. } = &mut self.work {
            session.flush();
        }
    }
}

pub(crate) fn storage_error(error: impl std::fmt::Display) -> StateError {
    StateError::Storage(error.to_string())
}

impl BlockState for LiveState<'_> {
    fn restart(&mut self) -> Result<(), StateError> {
        self.accounts.clear();
        (self.listed, self.guess) = (None, None);
        self.so_far.clear();
        self.needed_so_far.clear();
        let tries = Box::new(Tries::new(self.core.database.nodes().clone(), self.version)?);
        self.work = match &mut self.work {
            Work::Here(_) => Work::Here(tries),
            Work::Ahead { session, pool, .. } => {
                session.give_up();
                begin(self.core, tries, session.workers(), pool)
            }
        };
        Ok(())
    }

    fn apply(&mut self, changes: &[Change]) -> Result<B256, StateError> {
        let start = Instant::now();
        let changes = Change::hashed(changes);
        let root = match &mut self.work {
            Work::Here(tries) => tries.finish(&changes, &run_serially)?,
            Work::Ahead { session, tries, pool } => {
                let (shards, left) = session.end()?;
                tries.put_shards(shards);
                let run: &dyn Fn(&mut [WorkUnit<'_>]) = match left.len() < limits::SHARED_KEYS {
                    true => &run_serially,
                    false => &|units| pool.run(units),
                };
                tries.touch_all(left, run)?;
                self.timings.catching_up = start.elapsed();
                tries.finish(&changes, &|units| pool.run(units))?
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
        let mut tries = Tries::new(self.core.database.nodes().clone(), self.version)?;
        let root = tries.finish(&Change::hashed(self.so_far.values()), &run_serially)?;
        self.needed_so_far.extend(tries.witness_addresses());
        Ok(root)
    }
}
