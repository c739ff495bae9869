//! Floor 2. The first block of a chain, and its state.

use crate::chain::found::new_canonical;
use crate::chain::record::BlockRecord;
use crate::chain::sealed::{Seal, Sealed, SweepState};
use crate::chain::stored::{add_block, encode_block, new_codes};
use crate::chain::tree::Heads;
use crate::remote::Remote;
use crate::{Error, limits};
use alloy_consensus::Header;
use alloy_genesis::GenesisAccount;
use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256, keccak256};
use execution::{ChainSpec, SealedBlock};
use state::Database;
use std::collections::BTreeMap;
use std::fmt::Display;
use trie::bulk::StateBuilder;
use trie::versioned::{MemoryRecords, NodeAddress, RecordSink, Version};
use trie::{Account, AccountInfo};

/// The first block: its header and the state after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Genesis {
    /// The header; its state root must be that of `alloc`.
    pub header: Header,
    /// Every account. Slots with the value zero are left out of the state. None are given where the
    /// state is elsewhere.
    pub alloc: BTreeMap<Address, GenesisAccount>,
}

impl Genesis {
    /// The genesis that a geth-style `genesis.json` describes: the header gets the fields of the
    /// forks that are active at its time, with their initial values where the file is silent.
    ///
    /// # Errors
    /// [`Error::Genesis`] when the base fee has more than 64 bits.
    pub fn new(genesis: &alloy_genesis::Genesis, chain: &ChainSpec) -> Result<Self, Error> {
        let alloc = genesis.alloc.clone();
        let mut records = MemoryRecords::default();
        let version = write_state::<_, Error>(entries(&alloc), &mut records, &mut |_| Ok(()))?;
        let header = Self::header(genesis, chain, version.root)?;
        Ok(Self { header, alloc })
    }

    /// The header of such a file's first block, when its state has this root.
    ///
    /// # Errors
    /// As for [`new`](Self::new).
    pub fn header(
        genesis: &alloy_genesis::Genesis,
        chain: &ChainSpec,
        state_root: B256,
    ) -> Result<Header, Error> {
        execution::first_header(genesis, chain, state_root).map_err(refused)
    }

    /// Writes the first block and the state after it to an empty database, durably.
    pub(crate) fn write(
        self,
        chain: &ChainSpec,
        database: &Database,
        remote: Option<&Remote>,
    ) -> Result<Heads, Error> {
        if let Some(remote) = remote {
            let version = remote_version(chain, remote, &self.header)?;
            let begun = database.nodes().end();
            return write_first_block(database, self.header, version, begun, Vec::new());
        }
        let codes = self.alloc.values().filter_map(|account| account.code.as_ref());
        let codes = codes.filter(|code| !code.is_empty());
        let codes = codes.map(|code| Ok((keccak256(code), code.clone())));
        initialise(chain, database, entries(&self.alloc), codes, |_| Ok(self.header.clone()))
    }

    /// Checks that the database's chain begins with this genesis.
    pub(crate) fn check_same(&self, heads: Heads) -> Result<Heads, Error> {
        let hash = self.header.hash_slow();
        if heads.genesis != hash {
            let reason = format!(
                "the database holds the chain that begins with {}, the genesis given is {hash}; \
                 use another data directory, or the chain's own genesis",
                heads.genesis
            );
            return Err(Error::Genesis(reason));
        }
        Ok(heads)
    }
}

pub(crate) fn refused(reason: impl Display) -> Error {
    Error::Genesis(reason.to_string())
}

/// A part of a state, in the order of its trie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateEntry {
    /// An account; hashed addresses ascend.
    Account {
        /// keccak-256 of the address.
        hashed_address: B256,
        /// The account, its storage aside.
        info: AccountInfo,
        /// The root of its storage, where that is known beforehand: what its slots must give.
        storage_root: Option<B256>,
    },
    /// A slot of the account before it; hashed slots ascend.
    Slot {
        /// keccak-256 of the slot's number.
        hashed_slot: B256,
        /// Its value; zero is left out.
        value: U256,
    },
}

/// Begins a chain in an empty database with a state that need not fit into memory; `header` gives
/// the first block's header for the state's root. Everything is durable when this returns.
///
/// # Errors
/// [`Error::Genesis`] when the chain cannot begin so: entries out of order, a header with another
/// state root; [`Error::StorageRoot`]; what `entries` and `codes` say; [`Error::Storage`].
pub fn initialise<E: From<Error>>(
    chain: &ChainSpec,
    database: &Database,
    entries: impl Iterator<Item = Result<StateEntry, E>>,
    codes: impl Iterator<Item = Result<(B256, Bytes), E>>,
    header: impl FnOnce(B256) -> Result<Header, Error>,
) -> Result<Heads, E> {
    let begun = database.nodes().end();
    let mut batch = database.batch();
    let version = write_state(entries, &mut batch, &mut |batch| {
        // They go to the disk as they come.
        if batch.bytes() > limits::INIT_BATCH_BYTES {
            batch.flush()?;
            database.persist()?;
        }
        Ok(())
    })?;
    batch.seal().map_err(Error::from)?;
    let header = header(version.root)?;
    check_first_header(&header, chain, version)?;
    let (mut some, mut bytes) = (Vec::new(), 0);
    for code in codes {
        let code = code?;
        bytes += code.1.len();
        some.push(code);
        if bytes > limits::INIT_BATCH_BYTES {
            database.add_codes(new_codes(std::mem::take(&mut some))).map_err(Error::from)?;
            database.persist().map_err(Error::from)?;
            bytes = 0;
        }
    }
    Ok(write_first_block(database, header, version, begun, some)?)
}

/// Checks that a chain can begin with this header and this state.
pub(crate) fn check_first_header(
    header: &Header,
    chain: &ChainSpec,
    version: Version,
) -> Result<(), Error> {
    execution::validate_first_header(header, chain).map_err(refused)?;
    if header.state_root != version.root {
        let (got, root) = (header.state_root, version.root);
        return Err(refused(format!("state root {got} in the header, the accounts give {root}")));
    }
    Ok(())
}

/// Writes the nodes of a state to `sink`, of which `next` is told after each entry.
fn write_state<S: RecordSink, E: From<Error>>(
    entries: impl Iterator<Item = Result<StateEntry, E>>,
    sink: &mut S,
    next: &mut dyn FnMut(&mut S) -> Result<(), Error>,
) -> Result<Version, E> {
    let mut builder = StateBuilder::new(sink);
    let mut expected = None;
    for entry in entries {
        let added = match entry? {
            StateEntry::Account { hashed_address, info, storage_root } => {
                check_storage(builder.end_account(), expected)?;
                expected = storage_root;
                builder.account(hashed_address, info)
            }
            StateEntry::Slot { hashed_slot, value } => builder.slot(hashed_slot, value),
        };
        added.map_err(refused)?;
        next(builder.sink())?;
    }
    check_storage(builder.end_account(), expected)?;
    Ok(builder.finish())
}

fn check_storage(built: Option<(B256, Account)>, expected: Option<B256>) -> Result<(), Error> {
    match (built, expected) {
        (Some((hashed_address, account)), Some(expected)) if account.storage_root != expected => {
            Err(Error::StorageRoot { hashed_address, got: account.storage_root, expected })
        }
        _ => Ok(()),
    }
}

/// The state after a first block, which is elsewhere.
pub(crate) fn remote_version(
    chain: &ChainSpec,
    remote: &Remote,
    header: &Header,
) -> Result<Version, Error> {
    execution::validate_first_header(header, chain).map_err(refused)?;
    let version = remote.version(header.hash_slow());
    version.ok_or_else(|| refused("the state after the first block is not the one elsewhere"))
}

/// Writes the first block of a chain, whose state is in the database already, durably. Its nodes
/// are those from `begun` on: an `init` that came to no end may have left others.
pub(crate) fn write_first_block(
    database: &Database,
    header: Header,
    version: Version,
    begun: NodeAddress,
    codes: Vec<(B256, Bytes)>,
) -> Result<Heads, Error> {
    // All of it is in use: there is nothing to sweep until as much again has been added.
    let live_bytes = database.nodes().end().offset() - begun.offset();
    let record = first_record(database, header, version, live_bytes);
    let (number, hash) = (record.number(), record.hash());
    let heads = Heads { genesis: hash, head: hash, safe: None, finalized: None };
    add_block(database, encode_block(&record, codes), record.seal.wait()?)?;
    database.set_canonical([(number, Some(new_canonical(&record)))], heads.to_stored())?;
    database.persist()?;
    Ok(heads)
}

/// The record of a first block without a body, after which the state is this version.
pub(crate) fn first_record(
    database: &Database,
    header: Header,
    version: Version,
    live_bytes: u64,
) -> BlockRecord {
    let floor = database.nodes().start();
    let sweep = SweepState { floor, live_bytes, ..SweepState::default() };
    BlockRecord {
        // That of another one is not known.
        block_access_list: header
            .block_access_list_hash
            .filter(|hash| *hash == keccak256([0xc0]))
            .map(|_| [0xc0].into()),
        total_difficulty: header.difficulty,
        block: SealedBlock::first(header),
        senders: Vec::new(),
        receipts: Vec::new(),
        requests: Default::default(),
        read_set: None,
        seal: Seal::kept(Ok(Sealed { version, sweep })),
    }
}

/// The accounts and slots in the order of their tries.
fn entries<E>(
    alloc: &BTreeMap<Address, GenesisAccount>,
) -> impl Iterator<Item = Result<StateEntry, E>> {
    let mut sorted: Vec<_> =
        alloc.iter().map(|(address, account)| (keccak256(address), account)).collect();
    sorted.sort_unstable_by_key(|(hashed_address, _)| *hashed_address);
    sorted.into_iter().flat_map(|(hashed_address, account)| {
        let GenesisAccount { nonce, balance, code, storage, .. } = account;
        let code_hash = code.as_ref().map_or(KECCAK256_EMPTY, keccak256);
        let info = AccountInfo { nonce: nonce.unwrap_or(0), balance: *balance, code_hash };
        let slots: BTreeMap<_, _> =
            storage.iter().flatten().map(|(slot, value)| (keccak256(slot), *value)).collect();
        let slots = slots
            .into_iter()
            .map(|(hashed_slot, value)| Ok(StateEntry::Slot { hashed_slot, value: value.into() }));
        let account = StateEntry::Account { hashed_address, info, storage_root: None };
        std::iter::once(Ok(account)).chain(slots)
    })
}

#[cfg(test)]
mod tests;
