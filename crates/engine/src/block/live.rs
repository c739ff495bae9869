//! Floor 4. The state as a block of the chain reads and changes it: a version in the database, and
//! tries that grow above it, on other threads when the block is worth it.

use crate::block::trie_workers::{TrieSession, TrieWorkers};
use crate::chain::figures::{BlockFigures, StateReads};
use crate::chain::read_set::{ReadNodes, ReadSet};
use crate::chain::record::BlockRecord;
use crate::chain::timings::Timings;
use crate::read::ancestors::Ancestors;
use crate::read::found::Guess;
use crate::read::listed::{AccessListState, ListCoverage};
use crate::read::version::{KnownAccount, VersionReader};
use crate::shared::Shared;
use crate::threads::pool::ThreadPool;
use crate::tries::Tries;
use crate::{Error, limits};
use alloy_primitives::map::AddressMap;
use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use execution::{AccessList, Executed, SealedBlock};
use state::NodeStore;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use trie::versioned::{Lister, NodeAddress, Version, WorkUnit, run_serially};
use trie::{Account, hashed_slot};
use witness::{BlockState, Change, Code, State, StateError, Witness};

/// The state after a block's parent, and the tries to which the block's changes are applied.
#[derive(Debug)]
pub(crate) struct BlockTries<'a> {
    ancestors: Ancestors<'a>,
    nodes: &'a NodeStore,
    reader: VersionReader<'a>,
    /// Accounts as they were asked for.
    accounts: AddressMap<KnownAccount>,
    work: TrieWork<'a>,
    /// The state that the block's access list names, which the workers were told at once.
    pub(crate) listed: Option<Arc<AccessListState>>,
    /// Of that, what the block has asked for.
    coverage: ListCoverage,
    /// Shared with the threads that run transactions ahead.
    guess: Option<Arc<Guess>>,
    /// The changes of the transactions so far, when a root is asked for after each.
    so_far: AddressMap<Change>,
    /// The nodes that these roots needed.
    needed_so_far: Vec<NodeAddress>,
    pub(crate) waited: DiskWait,
    /// How many slots were asked for: the EVM's cache asks for each once.
    slots_read: usize,
    /// How many codes were asked for that the cache of codes lacked.
    uncached_codes: usize,
    /// Those of the root alone.
    pub(crate) timings: Timings,
}

/// How long a block's thread has waited for the disk, in nanoseconds; clones are the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct DiskWait(Arc<AtomicU64>);

impl DiskWait {
    pub(crate) fn get(&self) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::Relaxed))
    }

    pub(crate) fn set(&self, waited: Duration) {
        self.0.store(waited.as_nanos() as u64, Ordering::Relaxed);
    }
}

/// The tries of a block that has run, and the list of what it read.
#[derive(Debug)]
pub(crate) struct FinishedTries {
    /// Its nodes are listed from the tries, unless these have not all of them.
    pub(crate) read_set: ReadSet,
    /// The tries to seal.
    pub(crate) tries: Arc<Tries>,
    /// Whether these have all nodes that were read.
    pub(crate) has_all_nodes: bool,
}

/// The threads that tend the tries.
#[derive(Debug)]
enum TrieWork<'a> {
    /// This thread, as it goes.
    Here(Box<Tries>),
    /// The trie workers, who hold the shards meanwhile.
    Beside { session: TrieSession<'a>, tries: Box<Tries>, threads: TrieThreads<'a> },
}

/// The threads that tend the tries of a block that is worth them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TrieThreads<'a> {
    pub(crate) workers: &'a TrieWorkers,
    pub(crate) pool: &'a ThreadPool,
    pub(crate) chunk_size: usize,
}

impl<'a> BlockTries<'a> {
    /// The state after `parent`, once that is sealed; on this thread alone when there are no
    /// `threads`.
    pub(crate) fn new(
        shared: &'a Shared,
        parent: Arc<BlockRecord>,
        threads: Option<TrieThreads<'a>>,
        list: Option<AccessList>,
    ) -> Result<Self, Error> {
        let Shared { chain, background, .. } = shared;
        let version = chain.sealed(background, &parent)?.version;
        let nodes = chain.database.nodes();
        let tries = Box::new(Tries::new(nodes.clone(), version)?);
        let mut work = match threads {
            None => TrieWork::Here(tries),
            Some(threads) => TrieWork::begin(tries, threads),
        };
        let reader = VersionReader::of(chain, version);
        let (mut coverage, mut listed) = (ListCoverage::default(), None);
        if let (TrieWork::Beside { session, .. }, Some(list)) = (&mut work, list) {
            reader.ask_listed(&list);
            coverage = ListCoverage::new(&list);
            let state = Arc::new(AccessListState::new(list));
            session.list(&state);
            listed = Some(state);
        }
        Ok(Self {
            ancestors: Ancestors::new(chain, parent),
            nodes,
            reader,
            accounts: AddressMap::default(),
            work,
            listed,
            coverage,
            guess: None,
            so_far: AddressMap::default(),
            needed_so_far: Vec::new(),
            waited: DiskWait::default(),
            slots_read: 0,
            uncached_codes: 0,
            timings: Timings::default(),
        })
    }

    /// The state's version after the parent.
    pub(crate) fn version(&self) -> Version {
        self.reader.version()
    }

    /// From now on, changes of transactions are told to the threads that run others ahead, and the
    /// reads of these are not made again.
    pub(crate) fn guess(&mut self) -> Arc<Guess> {
        self.guess.insert(Arc::default()).clone()
    }

    /// Whether the block has asked for all that its access list names: else the tries hold more
    /// than it has read.
    pub(crate) fn has_asked_for_all_listed(&self) -> bool {
        self.listed.as_ref().is_none_or(|listed| self.coverage.is_all_of(listed))
    }

    /// The figures that are known of the block before its times are.
    pub(crate) fn figures(&self, block: &SealedBlock, executed: &Executed) -> BlockFigures {
        let codes = executed.codes_read.len();
        let reads = StateReads {
            accounts: self.accounts.len(),
            slots: self.slots_read,
            codes,
            code_bytes: executed.codes_read.values().map(|code| code.bytes.len()).sum(),
            uncached_codes: self.uncached_codes.min(codes),
        };
        let is_listed = self.listed.is_some();
        BlockFigures { is_listed, ..BlockFigures::new(block, reads, executed) }
    }

    /// The nodes and codes that were read, and the tries to seal.
    pub(crate) fn finish(self, codes: Vec<B256>, first_ancestor: u64) -> FinishedTries {
        let (TrieWork::Here(tries) | TrieWork::Beside { tries, .. }) = self.work;
        let has_all_nodes = self.needed_so_far.is_empty();
        let read_set = ReadSet::new(tries.nodes_count(), codes, first_ancestor);
        if !has_all_nodes {
            read_set.list(|| {
                let ReadNodes { mut addresses, bytes } = ReadNodes::of(&tries);
                let needed_bytes = self.needed_so_far.len() * limits::NODE_BYTES;
                addresses.extend(self.needed_so_far);
                addresses.sort_unstable();
                addresses.dedup();
                ReadNodes { addresses, bytes: bytes.map(|bytes| bytes + needed_bytes) }
            });
        }
        FinishedTries { read_set, tries: tries.into(), has_all_nodes }
    }

    /// The witness of what has run, its changes applied, when it has run on this thread alone.
    pub(crate) fn witness(mut self, executed: &Executed) -> Result<Witness, Error> {
        let TrieWork::Here(tries) = self.work else { unreachable!("a draft runs on one thread") };
        let tries = Arc::new(*tries);
        let mut codes: Vec<_> = executed.codes_read.values().cloned().collect();
        codes.sort_unstable();
        let codes = codes.into_iter().map(|code| code.bytes).collect();
        let headers = self.ancestors.headers(executed.first_ancestor)?;
        let state = tries.witness(&mut Lister::default(), 1, &run_serially);
        Ok(Witness { state, codes, headers })
    }

    fn known(&mut self, address: Address) -> Result<KnownAccount, StateError> {
        if let Some(known) = self.accounts.get(&address) {
            return Ok(*known);
        }
        let known = self.read_account(address)?;
        self.waited.set(self.reader.waited());
        self.accounts.insert(address, known);
        Ok(known)
    }

    fn read_account(&mut self, address: Address) -> Result<KnownAccount, StateError> {
        if let Some(listed) = &self.listed
            && let Some(known) = listed.account(&mut self.reader, address)?
        {
            self.coverage.add_account();
            return Ok(known);
        }
        match &mut self.work {
            TrieWork::Here(tries) => {
                let hashed_address = keccak256(address);
                self.reader.ask(hashed_address, address);
                let account = tries.shard_mut(&hashed_address).touch(&hashed_address)?;
                if let Some(account) = account {
                    self.reader.has_code(address, account.code_hash);
                }
                Ok(KnownAccount::without_storage(hashed_address, account))
            }
            TrieWork::Beside { session, .. } => {
                let found = self.guess.as_ref().and_then(|guess| guess.reads.account(&address));
                let known = found.map_or_else(|| self.reader.account(address), Ok)?;
                session.touch_account(known.hashed_address);
                Ok(known)
            }
        }
    }

    fn read_slot(
        &mut self,
        address: Address,
        known: &KnownAccount,
        slot: U256,
    ) -> Result<U256, StateError> {
        if let Some(listed) = &self.listed
            && let Some(listed_slot) = listed.slot(&mut self.reader, address, known, slot)?
        {
            self.coverage.add_slot(listed_slot);
            return Ok(listed_slot.value);
        }
        let hashed_address = known.hashed_address;
        match &mut self.work {
            TrieWork::Here(tries) => {
                let (shard, key) = (tries.shard_mut(&hashed_address), hashed_slot(slot));
                self.reader.ask_slot(hashed_address, key, slot);
                Ok(shard.touch_slot(&hashed_address, &key)?)
            }
            TrieWork::Beside { session, .. } => {
                let found = self.guess.as_ref().and_then(|guess| guess.reads.slot(address, slot));
                let read = match found {
                    Some(found) => Some(found),
                    None => self.reader.hashed_slot(address, known, slot)?,
                };
                let Some((hashed_slot, value)) = read else { return Ok(U256::ZERO) };
                session.touch_slot(hashed_address, hashed_slot);
                Ok(value)
            }
        }
    }
}

impl<'a> TrieWork<'a> {
    fn begin(mut tries: Box<Tries>, threads: TrieThreads<'a>) -> Self {
        let session = threads.workers.begin(tries.take_shards(), threads.chunk_size);
        Self::Beside { session, tries, threads }
    }
}

impl State for BlockTries<'_> {
    fn account(&mut self, address: Address) -> Result<Option<Account>, StateError> {
        Ok(self.known(address)?.account)
    }

    fn storage(&mut self, address: Address, slot: U256) -> Result<U256, StateError> {
        self.slots_read += 1;
        let known = self.known(address)?;
        if known.storage().is_none() {
            return Ok(U256::ZERO);
        }
        let value = self.read_slot(address, &known, slot)?;
        self.waited.set(self.reader.waited());
        Ok(value)
    }

    fn code(&mut self, code_hash: B256) -> Result<Bytes, StateError> {
        self.reader.code(code_hash)
    }

    fn code_to_run(&mut self, code_hash: B256) -> Result<Code, StateError> {
        self.uncached_codes += 1;
        self.reader.code_to_run(code_hash)
    }

    fn block_hash(&mut self, number: u64) -> Result<B256, StateError> {
        self.ancestors.block_hash(number)
    }

    fn ran(&mut self, changes: &mut dyn Iterator<Item = Change>) {
        // Of a listed block the workers know the end already.
        if let (TrieWork::Beside { session, .. }, None) = (&mut self.work, &self.listed) {
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
        if let TrieWork::Beside { session, .. } = &mut self.work {
            session.flush();
        }
    }
}

impl BlockState for BlockTries<'_> {
    fn restart(&mut self) -> Result<(), StateError> {
        self.accounts.clear();
        (self.slots_read, self.uncached_codes) = (0, 0);
        (self.listed, self.guess) = (None, None);
        self.so_far.clear();
        self.needed_so_far.clear();
        let tries = Box::new(Tries::new(self.nodes.clone(), self.version())?);
        self.work = match &mut self.work {
            TrieWork::Here(_) => TrieWork::Here(tries),
            TrieWork::Beside { session, threads, .. } => {
                session.give_up();
                TrieWork::begin(tries, *threads)
            }
        };
        Ok(())
    }

    fn apply(&mut self, changes: &[Change]) -> Result<B256, StateError> {
        let start = Instant::now();
        let changes = Change::hashed(changes);
        let root = match &mut self.work {
            TrieWork::Here(tries) => tries.finish(&changes, &run_serially)?,
            TrieWork::Beside { session, tries, threads: TrieThreads { pool, .. } } => {
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
        (self.timings.root, self.timings.disk) = (start.elapsed(), self.waited.get());
        Ok(root)
    }

    /// Blocks from before Byzantium are small, so each root is made from the parent's anew.
    fn apply_transaction(&mut self, changes: &[Change]) -> Result<B256, StateError> {
        for change in changes {
            let Change { address, account, storage_wiped, .. } = *change;
            let before = Change { address, account, storage_wiped, slots: Vec::new() };
            self.so_far.entry(address).or_insert(before).then(change);
        }
        let mut tries = Tries::new(self.nodes.clone(), self.version())?;
        let root = tries.finish(&Change::hashed(self.so_far.values()), &run_serially)?;
        self.needed_so_far.extend(tries.witness_addresses());
        Ok(root)
    }
}
