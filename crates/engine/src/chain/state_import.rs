//! Floor 2. A whole state that comes in the order of its tries, built so that it can be stopped.

use crate::chain::genesis::{check_first_header, refused, write_first_block};
use crate::chain::stored::new_codes;
use crate::chain::tree::Heads;
use crate::{Error, limits};
use alloy_consensus::Header;
use alloy_primitives::map::B256Set;
use alloy_primitives::{B256, Bytes, U256};
use execution::ChainSpec;
use state::{Database, NodeBatch};
use trie::AccountInfo;
use trie::bulk::StateBuilder;
use trie::versioned::{NodeAddress, Version};

/// The database key of the state of an unfinished import: the root that it is to have, the place in
/// the log of nodes where it began, and the builder's spine. Empty where there is none.
const UNFINISHED: &str = "unfinished-state";

/// A state on its way into an empty database: accounts in the order of their hashed addresses, each
/// after its slots in the order of their hashes.
///
/// Each batch of nodes goes to the disk together with all that is needed to go on behind it, in one
/// transaction of the index. A process that is killed loses what came after, and
/// [`resume`](Self::resume) takes the rest. No chain begins before
/// [`begin_chain`](ImportedState::begin_chain).
#[derive(Debug)]
pub struct StateImport<'d> {
    database: &'d Database,
    builder: StateBuilder<NodeBatch>,
    begun: NodeAddress,
    root: B256,
    /// The bytes of nodes, or of codes, after which they go to the disk.
    batch_bytes: usize,
    /// Slots of the account under way up to this one are there already.
    there: Option<B256>,
    codes: Vec<(B256, Bytes)>,
    codes_bytes: usize,
    /// Codes that have come, so that few are written twice.
    known: B256Set,
}

/// An account whose slots have come.
#[derive(Debug, Clone)]
pub struct ImportedAccount {
    /// keccak-256 of its address.
    pub hashed_address: B256,
    /// The account, its storage aside.
    pub info: AccountInfo,
    /// The root of its storage, where that is known: what its slots must give.
    pub storage_root: Option<B256>,
    /// The code with the hash in `info`, where there is one.
    pub code: Option<Bytes>,
}

impl<'d> StateImport<'d> {
    /// Begins to import the state with this root. `batch_bytes` of nodes are collected before they
    /// go to the disk ([`limits::INIT_BATCH_BYTES`]).
    pub fn begin(database: &'d Database, root: B256, batch_bytes: usize) -> Self {
        let begun = database.nodes().end();
        Self::new(database, root, begun, StateBuilder::new(database.batch()), batch_bytes)
    }

    /// Goes on with the import that the database has, where it is of the state with this root.
    ///
    /// # Errors
    /// [`Error::Storage`] when the database cannot be read.
    pub fn resume(
        database: &'d Database,
        root: B256,
        batch_bytes: usize,
    ) -> Result<Option<Self>, Error> {
        let Some((found, begun, spine)) = unfinished(database)? else { return Ok(None) };
        if found != root {
            return Ok(None);
        }
        // One of another version is begun anew.
        let Ok(builder) = StateBuilder::resume(database.batch(), &spine) else { return Ok(None) };
        let mut import = Self::new(database, root, begun, builder, batch_bytes);
        import.there = import.builder.last_slot();
        Ok(Some(import))
    }

    fn new(
        database: &'d Database,
        root: B256,
        begun: NodeAddress,
        builder: StateBuilder<NodeBatch>,
        batch_bytes: usize,
    ) -> Self {
        Self {
            database,
            builder,
            begun,
            root,
            batch_bytes,
            there: None,
            codes: Vec::new(),
            codes_bytes: 0,
            known: B256Set::default(),
        }
    }

    /// The hashed address of the last account that is whole.
    pub const fn last_account(&self) -> Option<B256> {
        self.builder.last_account()
    }

    /// Adds a slot of the account that comes next. After [`resume`](Self::resume) those that are
    /// there already are passed over.
    ///
    /// # Errors
    /// [`Error::Genesis`] when it is out of order; [`Error::Storage`].
    pub fn slot(&mut self, hashed_slot: B256, value: U256) -> Result<(), Error> {
        if self.there.is_some_and(|last| hashed_slot <= last) {
            return Ok(());
        }
        self.builder.next_slot(hashed_slot, value).map_err(refused)?;
        self.write_full()
    }

    /// Adds an account whose slots have come.
    ///
    /// # Errors
    /// [`Error::StorageRoot`] when its slots give another root, [`Error::Genesis`] when it is out
    /// of order; then the account is not there, and its slots are dropped. [`Error::Storage`].
    pub fn account(&mut self, account: ImportedAccount) -> Result<(), Error> {
        let ImportedAccount { hashed_address, info, storage_root, code } = account;
        self.there = None;
        let storage = self.builder.end_storage();
        if let Some(expected) = storage_root.filter(|expected| *expected != storage.root) {
            return Err(Error::StorageRoot { hashed_address, got: storage.root, expected });
        }
        self.builder.whole_account(hashed_address, info, storage).map_err(refused)?;
        if let Some(code) = code {
            self.code(info.code_hash, code);
        }
        self.write_full()
    }

    fn code(&mut self, hash: B256, code: Bytes) {
        if self.known.len() >= limits::KNOWN_CODES {
            self.known.clear();
        }
        if self.known.insert(hash) {
            self.codes_bytes += code.len();
            self.codes.push((hash, code));
        }
    }

    fn write_full(&mut self) -> Result<(), Error> {
        if self.builder.sink().bytes().max(self.codes_bytes) > self.batch_bytes {
            self.write()?;
        }
        Ok(())
    }

    /// Writes all that has come, durably, so that the import can go on from there.
    fn write(&mut self) -> Result<(), Error> {
        self.add_codes()?;
        self.builder.sink().flush()?;
        let spine = self.builder.spine();
        let begun = self.begun.to_bytes();
        let value = [&self.root[..], &begun, &spine].concat();
        self.database.set_meta(UNFINISHED, value.into())?;
        self.database.persist()?;
        Ok(())
    }

    fn add_codes(&mut self) -> Result<(), Error> {
        self.codes_bytes = 0;
        let codes = std::mem::take(&mut self.codes);
        if !codes.is_empty() {
            self.database.add_codes(new_codes(codes))?;
        }
        Ok(())
    }

    /// Ends the import for now, durably: it can go on behind the last account that is whole.
    ///
    /// # Errors
    /// [`Error::Storage`].
    pub fn stop(mut self) -> Result<(), Error> {
        self.builder.drop_slots();
        self.write()
    }

    /// Ends the state: all accounts have come. Before that, all is written as by
    /// [`stop`](Self::stop).
    ///
    /// # Errors
    /// [`Error::Storage`].
    ///
    /// # Panics
    /// When slots have come whose account has not.
    pub fn end(mut self) -> Result<ImportedState<'d>, Error> {
        assert!(self.builder.last_slot().is_none(), "slots come before their account");
        self.write()?;
        let (version, mut batch) = self.builder.end();
        batch.flush()?;
        Ok(ImportedState { database: self.database, begun: self.begun, version })
    }
}

/// A state whose accounts have all come. Where no chain begins with it, its import can go on.
#[derive(Debug)]
pub struct ImportedState<'d> {
    database: &'d Database,
    begun: NodeAddress,
    version: Version,
}

impl ImportedState<'_> {
    /// The root of the state.
    pub const fn root(&self) -> B256 {
        self.version.root
    }

    /// Begins a chain with this state and the header of its first block. Everything is durable when
    /// this returns.
    ///
    /// # Errors
    /// [`Error::Genesis`] when the chain cannot begin so; [`Error::Storage`].
    pub fn begin_chain(self, chain: &ChainSpec, header: Header) -> Result<Heads, Error> {
        let Self { database, begun, version } = self;
        check_first_header(&header, chain, version)?;
        database.set_meta(UNFINISHED, Bytes::new())?;
        write_first_block(database, header, version, begun, Vec::new())
    }

    /// Gives the state up, durably: no import goes on with it.
    ///
    /// # Errors
    /// [`Error::Storage`].
    pub fn discard(self) -> Result<(), Error> {
        self.database.set_meta(UNFINISHED, Bytes::new())?;
        self.database.persist()?;
        Ok(())
    }
}

/// The root of the state whose import has come to no end, where the database has one.
///
/// # Errors
/// [`Error::Storage`] when the database cannot be read.
pub fn unfinished_state(database: &Database) -> Result<Option<B256>, Error> {
    Ok(unfinished(database)?.map(|(root, ..)| root))
}

fn unfinished(database: &Database) -> Result<Option<(B256, NodeAddress, Bytes)>, Error> {
    let Some(value) = database.meta(UNFINISHED)? else { return Ok(None) };
    let read = || {
        let (root, rest) = value.split_first_chunk::<32>()?;
        let (begun, spine) = rest.split_first_chunk()?;
        Some((B256::new(*root), NodeAddress::from_bytes(*begun), value.slice_ref(spine)))
    };
    Ok(read())
}
