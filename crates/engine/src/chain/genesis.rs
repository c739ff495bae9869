//! Floor 2. The first block of a chain, and its state.

use crate::chain::record::BlockRecord;
use crate::chain::sealed::{Seal, Sealed, SweepState};
use crate::chain::stored::{EncodedBlock, new_codes};
use crate::chain::tree::Heads;
use crate::{Error, limits};
use alloy_consensus::constants::EMPTY_WITHDRAWALS;
use alloy_consensus::{Block as AlloyBlock, BlockBody, Header};
use alloy_eips::eip1559::INITIAL_BASE_FEE;
use alloy_eips::eip7685::EMPTY_REQUESTS_HASH;
use alloy_hardforks::{EthereumHardfork, EthereumHardforks};
use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256, keccak256};
use execution::{ChainSpec, SealedBlock};
use state::{Database, NodeBatch};
use std::collections::BTreeMap;
use trie::bulk::StateBuilder;
use trie::versioned::{NodeAddress, RecordSink, Version};
use trie::{Account, AccountInfo, hashed_slot};

/// The first block: its header and the state after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Genesis {
    /// The header; its state root must be that of `alloc`.
    pub header: Header,
    /// Every account.
    pub alloc: BTreeMap<Address, GenesisAccount>,
}

/// One account of a [`Genesis`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GenesisAccount {
    /// The account's nonce.
    pub nonce: u64,
    /// The account's balance in wei.
    pub balance: U256,
    /// The account's code, empty for none.
    pub code: Bytes,
    /// Slots and their values; zero values are left out of the state.
    pub storage: BTreeMap<U256, U256>,
}

impl Genesis {
    /// The genesis that a geth-style `genesis.json` describes: the header gets the fields of the
    /// forks that are active at its time, with their initial values where the file is silent.
    ///
    /// # Errors
    /// [`Error::Genesis`] when the base fee has more than 64 bits.
    pub fn new(genesis: &alloy_genesis::Genesis, chain: &ChainSpec) -> Result<Self, Error> {
        let alloc: BTreeMap<_, _> = genesis
            .alloc
            .iter()
            .map(|(address, account)| (*address, GenesisAccount::new(account)))
            .collect();
        let root = state(&alloc, &mut Nowhere::default())?.0.root;
        let header = Self::header(genesis, chain, root)?;
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
        let (number, timestamp) = (genesis.number.unwrap_or(0), genesis.timestamp);
        let london = chain.is_ethereum_fork_active_at_block(EthereumHardfork::London, number);
        let shanghai = chain.is_shanghai_active_at_timestamp(timestamp);
        let cancun = chain.is_cancun_active_at_timestamp(timestamp);
        let prague = chain.is_prague_active_at_timestamp(timestamp);
        let amsterdam = chain.is_amsterdam_active_at_timestamp(timestamp);
        let base_fee = match genesis.base_fee_per_gas {
            Some(fee) => u64::try_from(fee)
                .map_err(|_| Error::Genesis(format!("baseFeePerGas {fee} is over 64 bits")))?,
            None => INITIAL_BASE_FEE,
        };
        Ok(Header {
            parent_hash: genesis.parent_hash.unwrap_or_default(),
            beneficiary: genesis.coinbase,
            state_root,
            difficulty: genesis.difficulty,
            number,
            gas_limit: genesis.gas_limit,
            timestamp,
            extra_data: genesis.extra_data.clone(),
            mix_hash: genesis.mix_hash,
            nonce: genesis.nonce.into(),
            base_fee_per_gas: london.then_some(base_fee),
            withdrawals_root: shanghai.then_some(EMPTY_WITHDRAWALS),
            blob_gas_used: cancun.then_some(genesis.blob_gas_used.unwrap_or(0)),
            excess_blob_gas: cancun.then_some(genesis.excess_blob_gas.unwrap_or(0)),
            parent_beacon_block_root: cancun.then_some(B256::ZERO),
            requests_hash: prague.then_some(EMPTY_REQUESTS_HASH),
            // keccak-256 of the RLP of an empty list (EIP-7928).
            block_access_list_hash: amsterdam.then(|| keccak256([0xc0])),
            slot_number: amsterdam.then_some(genesis.slot_number.unwrap_or(0)),
            ..Header::default()
        })
    }

    /// Writes the first block and the state after it to an empty database, durably.
    pub(crate) fn write(self, chain: &ChainSpec, database: &Database) -> Result<Heads, Error> {
        check_first_header(&self.header, chain)?;
        let begun = database.nodes().end();
        let mut batch = database.batch();
        let (version, codes) = state(&self.alloc, &mut batch)?;
        if version.root != self.header.state_root {
            let (got, root) = (self.header.state_root, version.root);
            let reason = format!("state root {got} in the header, the accounts give {root}");
            return Err(Error::Genesis(reason));
        }
        batch.seal()?;
        write_first_block(database, self.header, version, begun, codes)
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

/// Checks that a chain may begin with this header.
fn check_first_header(header: &Header, chain: &ChainSpec) -> Result<(), Error> {
    // Where the configuration says that it has come, that is of the chain as it is, not of its
    // beginning.
    let is_merged = chain.is_merged_at(header.number.saturating_add(1)) == Some(true);
    if is_merged && header.base_fee_per_gas.is_none() {
        let reason = "London is not active at genesis, but the merge builds on it: \
                      londonBlock must not be after the first block";
        return Err(Error::Genesis(reason.into()));
    }
    if header.gas_limit < execution::GAS_LIMIT_MINIMUM {
        let (got, least) = (header.gas_limit, execution::GAS_LIMIT_MINIMUM);
        let reason = format!("gasLimit is {got}, no block can have less than {least}");
        return Err(Error::Genesis(reason));
    }
    if header.number > 0 && !header.difficulty.is_zero() {
        let number = header.number;
        let reason = format!(
            "block {number} has proof of work: what follows needs the total difficulty up to it, \
             and the blocks before it for ommers; begin with block 0, or behind the merge"
        );
        return Err(Error::Genesis(reason));
    }
    execution::validate_parent(header).map_err(|error| Error::Genesis(error.to_string()))
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
    let mut sink = LargeBatch { database, batch: Some(database.batch()), failure: None };
    let mut builder = StateBuilder::new(&mut sink);
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
        added.map_err(|error| Error::Genesis(error.to_string()))?;
    }
    check_storage(builder.end_account(), expected)?;
    let version = builder.finish();
    sink.finish()?;
    let header = header(version.root)?;
    check_first_header(&header, chain)?;
    if header.state_root != version.root {
        let (got, root) = (header.state_root, version.root);
        let reason = format!("state root {got} in the header, the accounts give {root}");
        return Err(Error::Genesis(reason).into());
    }
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

fn check_storage(built: Option<(B256, Account)>, expected: Option<B256>) -> Result<(), Error> {
    match (built, expected) {
        (Some((hashed_address, account)), Some(expected)) if account.storage_root != expected => {
            Err(Error::StorageRoot { hashed_address, got: account.storage_root, expected })
        }
        _ => Ok(()),
    }
}

/// Takes any number of records, and brings them to the disk as they come.
#[derive(Debug)]
struct LargeBatch<'a> {
    database: &'a Database,
    batch: Option<NodeBatch>,
    failure: Option<Error>,
}

impl LargeBatch<'_> {
    fn persist(&mut self) -> Result<(), Error> {
        self.batch.take().expect("there is always one").seal()?;
        self.database.persist()?;
        self.batch = Some(self.database.batch());
        Ok(())
    }

    fn finish(mut self) -> Result<(), Error> {
        match self.failure.take() {
            Some(error) => Err(error),
            None => Ok(self.batch.take().expect("there is always one").seal()?),
        }
    }
}

impl RecordSink for LargeBatch<'_> {
    fn append(&mut self, record: &[u8]) -> NodeAddress {
        if self.batch.as_ref().is_some_and(|batch| batch.bytes() > limits::INIT_BATCH_BYTES)
            && let Err(error) = self.persist()
        {
            // The builder goes on, and what it makes is thrown away in the end.
            self.failure.get_or_insert(error);
            self.batch = Some(self.database.batch());
        }
        self.batch.as_mut().expect("there is always one").append(record)
    }
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
    let withdrawals = header.withdrawals_root.map(|_| Default::default());
    let body = BlockBody { transactions: Vec::new(), ommers: Vec::new(), withdrawals };
    // All of it is in use: there is nothing to sweep until as much again has been added.
    let (floor, end) = (database.nodes().start(), database.nodes().end());
    let live_bytes = end.offset() - begun.offset();
    let sweep = SweepState { floor, live_bytes, ..SweepState::default() };
    let sealed = Sealed { version, sweep };
    let record = BlockRecord {
        // That of another one is not known.
        block_access_list: header
            .block_access_list_hash
            .filter(|hash| *hash == keccak256([0xc0]))
            .map(|_| [0xc0].into()),
        total_difficulty: header.difficulty,
        block: SealedBlock::new(AlloyBlock { header, body }),
        senders: Vec::new(),
        receipts: Vec::new(),
        requests: Default::default(),
        read_set: None,
        seal: Seal::kept(Ok(sealed.clone())),
    };
    let (number, hash) = (record.number(), record.hash());
    let heads = Heads { genesis: hash, head: hash, safe: None, finalized: None };
    EncodedBlock::of(&record).add(database, &record, &sealed, codes)?;
    database.set_canonical(&[(number, Some(hash))], heads.to_stored())?;
    database.persist()?;
    Ok(heads)
}

impl GenesisAccount {
    fn new(account: &alloy_genesis::GenesisAccount) -> Self {
        let slots = account.storage.iter().flatten();
        Self {
            nonce: account.nonce.unwrap_or(0),
            balance: account.balance,
            code: account.code.clone().unwrap_or_default(),
            storage: slots.map(|(slot, value)| ((*slot).into(), (*value).into())).collect(),
        }
    }
}

/// Writes the state to `sink`; also gives all codes.
fn state(
    alloc: &BTreeMap<Address, GenesisAccount>,
    sink: &mut impl RecordSink,
) -> Result<(Version, Vec<(B256, Bytes)>), Error> {
    let mut codes = Vec::new();
    let mut sorted: Vec<_> =
        alloc.iter().map(|(address, account)| (keccak256(address), account)).collect();
    sorted.sort_unstable_by_key(|(hashed_address, _)| *hashed_address);
    let mut builder = StateBuilder::new(sink);
    let failed = |error: trie::bulk::OrderError| Error::Genesis(error.to_string());
    for (hashed_address, account) in sorted {
        let mut code_hash = KECCAK256_EMPTY;
        if !account.code.is_empty() {
            code_hash = keccak256(&account.code);
            codes.push((code_hash, account.code.clone()));
        }
        let GenesisAccount { nonce, balance, .. } = *account;
        builder
            .account(hashed_address, AccountInfo { nonce, balance, code_hash })
            .map_err(failed)?;
        let slots = account.storage.iter().filter(|(_, value)| !value.is_zero());
        let mut slots: Vec<_> = slots.map(|(slot, value)| (hashed_slot(*slot), *value)).collect();
        slots.sort_unstable_by_key(|(slot, _)| *slot);
        for (slot, value) in slots {
            builder.slot(slot, value).map_err(failed)?;
        }
    }
    Ok((builder.finish(), codes))
}

/// Takes records and keeps none: for the root alone.
#[derive(Debug, Default)]
struct Nowhere(u64);

impl RecordSink for Nowhere {
    fn append(&mut self, record: &[u8]) -> NodeAddress {
        self.0 += record.len() as u64;
        NodeAddress::new(self.0)
    }
}

#[cfg(test)]
mod tests;
