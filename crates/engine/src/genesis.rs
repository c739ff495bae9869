use crate::Error;
use alloy_consensus::Header;
use alloy_consensus::constants::{EMPTY_ROOT_HASH, EMPTY_WITHDRAWALS};
use alloy_eips::eip1559::INITIAL_BASE_FEE;
use alloy_eips::eip7685::EMPTY_REQUESTS_HASH;
use alloy_hardforks::{EthereumHardfork, EthereumHardforks};
use alloy_primitives::map::B256Map;
use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256, keccak256};
use execution::ChainSpec;
use std::collections::BTreeMap;
use trie::{AccountChange, AccountInfo, StateChanges, StateTrie};

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

/// The state of a genesis as the store takes it.
pub(crate) struct GenesisState {
    pub(crate) root: B256,
    pub(crate) nodes: Vec<(B256, Bytes)>,
    pub(crate) codes: Vec<(B256, Bytes)>,
}

impl Genesis {
    /// The genesis that a geth-style `genesis.json` describes: the header gets the fields of the
    /// forks that are active at its time, with their initial values where the file is silent.
    pub fn new(genesis: &alloy_genesis::Genesis, chain: &ChainSpec) -> Result<Self, Error> {
        let alloc: BTreeMap<_, _> = genesis
            .alloc
            .iter()
            .map(|(address, account)| (*address, GenesisAccount::new(account)))
            .collect();
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
        let header = Header {
            parent_hash: genesis.parent_hash.unwrap_or_default(),
            beneficiary: genesis.coinbase,
            state_root: state(&alloc)?.root,
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
        };
        Ok(Self { header, alloc })
    }

    /// Builds the state; its root must be the header's.
    pub(crate) fn state(&self) -> Result<GenesisState, Error> {
        let state = state(&self.alloc)?;
        if state.root != self.header.state_root {
            let (got, root) = (self.header.state_root, state.root);
            let reason = format!("state root {got} in the header, the accounts give {root}");
            return Err(Error::Genesis(reason));
        }
        Ok(state)
    }
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

fn state(alloc: &BTreeMap<Address, GenesisAccount>) -> Result<GenesisState, Error> {
    let mut codes = Vec::new();
    let mut accounts = Vec::with_capacity(alloc.len());
    for (address, account) in alloc {
        let mut code_hash = KECCAK256_EMPTY;
        if !account.code.is_empty() {
            code_hash = keccak256(&account.code);
            codes.push((code_hash, account.code.clone()));
        }
        let slots = account.storage.iter().filter(|(_, value)| !value.is_zero());
        let GenesisAccount { nonce, balance, .. } = *account;
        accounts.push(AccountChange {
            hashed_address: keccak256(address),
            account: Some(AccountInfo { nonce, balance, code_hash }),
            storage_wiped: false,
            storage: slots
                .map(|(slot, value)| (keccak256(slot.to_be_bytes::<32>()), *value))
                .collect(),
        });
    }
    let mut trie = StateTrie::new(EMPTY_ROOT_HASH);
    let root = trie
        .apply(&StateChanges { accounts }, &B256Map::<Bytes>::default())
        .map_err(|error| Error::Genesis(error.to_string()))?;
    let mut nodes = Vec::new();
    trie.new_nodes(&mut |hash, rlp| nodes.push((hash, rlp)));
    Ok(GenesisState { root, nodes, codes })
}

#[cfg(test)]
mod tests;
