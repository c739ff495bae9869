//! Overrides: what a call sees in place of the state's.

use crate::cache::BlockCache;
use crate::code_cache::bytecode;
use crate::codes::Context;
use crate::evm::BlockEvm;
use crate::recorder::ReadError;
use alloy_consensus::Header;
use alloy_evm::Evm;
use alloy_primitives::map::{AddressMap, B256Map};
use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use revm::context::JournalTr;
use revm::database_interface::bal::EvmDatabaseError;
use revm::inspector::Inspector;
use revm::state::{Account as EvmAccount, EvmStorageSlot};
use revm::{Database, DatabaseCommit};
use std::collections::BTreeMap;
use trie::{Account, EMPTY_ROOT_HASH};
use witness::{State, StateError};

/// Values that a call sees in place of the state's and the block's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overrides {
    /// Of accounts.
    pub state: StateOverrides,
    /// Of the block.
    pub block: BlockOverrides,
}

/// The overridden fields of the block; a field that is `None` keeps its value. The fork is that of
/// the overridden number and time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BlockOverrides {
    /// The number. Blocks from the real number on have no hash.
    pub number: Option<u64>,
    /// The time, in seconds since the epoch.
    pub timestamp: Option<u64>,
    /// The gas limit.
    pub gas_limit: Option<u64>,
    /// The recipient of fees.
    pub beneficiary: Option<Address>,
    /// The randomness of the beacon chain (EIP-4399).
    pub prev_randao: Option<B256>,
    /// The base fee, in wei for a unit of gas. Where gas is free it is zero all the same.
    pub base_fee_per_gas: Option<u64>,
    /// The base fee of blobs, in wei for a unit of blob gas.
    pub blob_base_fee: Option<u128>,
    /// The difficulty, of a block before the merge.
    pub difficulty: Option<U256>,
}

impl BlockOverrides {
    /// The header as a call sees it.
    pub(crate) fn header(&self, header: &Header) -> Header {
        let mut header = header.clone();
        header.number = self.number.unwrap_or(header.number);
        header.timestamp = self.timestamp.unwrap_or(header.timestamp);
        header.gas_limit = self.gas_limit.unwrap_or(header.gas_limit);
        header.beneficiary = self.beneficiary.unwrap_or(header.beneficiary);
        header.mix_hash = self.prev_randao.unwrap_or(header.mix_hash);
        header.base_fee_per_gas = self.base_fee_per_gas.or(header.base_fee_per_gas);
        if !header.difficulty.is_zero() {
            header.difficulty = self.difficulty.unwrap_or(header.difficulty);
        }
        header
    }
}

/// State overrides by address: the accounts as a call sees them, in place of the state's.
pub type StateOverrides = AddressMap<AccountOverride>;

/// The overridden fields of one account; a field that is `None` keeps its value. A precompiled
/// contract that is overridden becomes an ordinary account.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccountOverride {
    /// The balance, in wei.
    pub balance: Option<U256>,
    /// The nonce.
    pub nonce: Option<u64>,
    /// The code.
    pub code: Option<Bytes>,
    /// The storage.
    pub storage: Option<StorageOverride>,
    /// Where the precompiled contract at this address is to be instead. The account there keeps its
    /// fields, but its code is not run.
    pub precompile_moved_to: Option<Address>,
}

impl AccountOverride {
    const fn has_fields(&self) -> bool {
        let Self { balance, nonce, code, storage, .. } = self;
        balance.is_some() || nonce.is_some() || code.is_some() || storage.is_some()
    }
}

/// The overridden storage of one account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StorageOverride {
    /// These slots; all others are zero.
    Whole(BTreeMap<U256, U256>),
    /// These slots; all others keep their values.
    Some(BTreeMap<U256, U256>),
}

impl StorageOverride {
    const fn slots(&self) -> &BTreeMap<U256, U256> {
        let (Self::Whole(slots) | Self::Some(slots)) = self;
        slots
    }

    fn value(&self, slot: &U256) -> Option<U256> {
        match self {
            Self::Whole(slots) => Some(slots.get(slot).copied().unwrap_or_default()),
            Self::Some(slots) => slots.get(slot).copied(),
        }
    }
}

/// Why overrides cannot be applied.
#[derive(Debug)]
pub(crate) enum Inapplicable {
    /// They contradict each other or the fork, in geth's words.
    Refused(String),
    Read(EvmDatabaseError<ReadError>),
}

/// Puts into the EVM what it would not ask the state for: the slots of an account that it creates,
/// which it takes as zero unless they are in its journal, and precompiled contracts.
pub(crate) fn prepare<'a, 'o, S: State, I: Inspector<Context<'a, OverriddenState<'o, S>>>>(
    evm: &mut BlockEvm<'a, OverriddenState<'o, S>, I>,
    overrides: &StateOverrides,
) -> Result<(), Inapplicable> {
    move_precompiles(evm, overrides).map_err(Inapplicable::Refused)?;
    for (&address, found) in overrides {
        let Some(slots) = found.storage.as_ref().map(StorageOverride::slots) else { continue };
        let info = evm.db_mut().basic(address).map_err(Inapplicable::Read)?.unwrap_or_default();
        let mut account = EvmAccount::from(info).with_cold_mark();
        for (&slot, &value) in slots {
            let mut value = EvmStorageSlot::new(value, account.transaction_id);
            value.mark_cold();
            account.storage.insert(slot, value);
        }
        evm.journaled_state.state.insert(address, account);
    }
    Ok(())
}

/// Moves and removes precompiled contracts; if they cannot be moved, the reason is in geth's words.
/// One that is overridden is an ordinary account, but warm, as all that the fork has are
/// (EIP-2929); where it was moved to, it is cold.
pub(crate) fn move_precompiles<'a, S: State, I: Inspector<Context<'a, S>>>(
    evm: &mut BlockEvm<'a, S, I>,
    overrides: &StateOverrides,
) -> Result<(), String> {
    let warm = evm.components().2.addresses().copied().collect();
    evm.journaled_state.warm_precompiles(&warm);
    // The order decides which of two contracts that are moved to one place is there.
    let mut addresses: Vec<_> = overrides.keys().copied().collect();
    addresses.sort_unstable();
    for address in addresses {
        let found = &overrides[&address];
        if let Some(target) = found.precompile_moved_to {
            if evm.components().2.get(&address).is_none() {
                return Err(format!("account {address} is not a precompile"));
            }
            if overrides.contains_key(&target) {
                return Err(format!("account {target} is already overridden"));
            }
            let mut moved = None;
            let precompiles = evm.precompiles_mut();
            precompiles.apply_precompile(&address, |contract| {
                moved = contract;
                None
            });
            precompiles.apply_precompile(&target, |_| moved);
        }
        evm.precompiles_mut().apply_precompile(&address, |_| None);
    }
    Ok(())
}

/// Writes the overrides into the cache of a block, as a transaction before its first one would.
/// Accounts that they leave empty are there, as in geth.
pub(crate) fn write<S: State>(
    db: &mut BlockCache<S>,
    overrides: &StateOverrides,
) -> Result<(), EvmDatabaseError<ReadError>> {
    for (&address, found) in overrides.iter().filter(|(_, found)| found.has_fields()) {
        let before = db.basic(address)?;
        let mut info = before.clone().unwrap_or_default();
        info.balance = found.balance.unwrap_or(info.balance);
        info.nonce = found.nonce.unwrap_or(info.nonce);
        if let Some(code) = &found.code {
            (info.code_hash, info.code) = (keccak256(code), Some(bytecode(code.clone())));
            db.recorder().note_written(info.code_hash, code.clone());
        }
        let mut account = EvmAccount::from(info);
        account.mark_touch();
        let wipes = matches!(found.storage, Some(StorageOverride::Whole(_)));
        if let (Some(before), true) = (&before, wipes) {
            let mut wiped = EvmAccount::from(before.clone());
            wiped.mark_touch();
            wiped.mark_selfdestruct();
            db.commit(AddressMap::from_iter([(address, wiped)]));
        }
        let slots = found.storage.iter().flat_map(StorageOverride::slots);
        for (&slot, &value) in slots {
            let before = if wipes { U256::ZERO } else { db.storage(address, slot)? };
            let value = EvmStorageSlot::new_changed(before, value, account.transaction_id);
            account.storage.insert(slot, value);
        }
        if before.is_none() || wipes || account.is_empty() {
            // revm takes an account that is empty and touched for deleted, unless it is new.
            account.mark_created();
        }
        db.commit(AddressMap::from_iter([(address, account)]));
    }
    Ok(())
}

/// A state under overrides.
#[derive(Debug)]
pub(crate) struct OverriddenState<'a, S> {
    state: S,
    overrides: &'a StateOverrides,
    /// The codes among the overrides, by hash.
    codes: B256Map<&'a Bytes>,
    /// The number of the block, which has no hash for a call in it, as those above it have none.
    number: u64,
}

impl<'a, S> OverriddenState<'a, S> {
    pub(crate) fn new(state: S, overrides: &'a StateOverrides, number: u64) -> Self {
        let codes = overrides.values().filter_map(|account| account.code.as_ref());
        let codes = codes.map(|code| (keccak256(code), code)).collect();
        Self { state, overrides, codes, number }
    }
}

impl<S: State> State for OverriddenState<'_, S> {
    fn account(&mut self, address: Address) -> Result<Option<Account>, StateError> {
        let account = self.state.account(address)?;
        let found = self.overrides.get(&address);
        let Some(found) = found.filter(|found| found.has_fields()) else {
            return Ok(account);
        };
        let AccountOverride { balance, nonce, code, storage, .. } = found;
        let mut account = account.unwrap_or_default();
        account.balance = balance.unwrap_or(account.balance);
        account.nonce = nonce.unwrap_or(account.nonce);
        account.code_hash = code.as_ref().map_or(account.code_hash, keccak256);
        if let Some(StorageOverride::Whole(_)) = storage {
            account.storage_root = EMPTY_ROOT_HASH;
        }
        Ok(Some(account))
    }

    fn storage(&mut self, address: Address, slot: U256) -> Result<U256, StateError> {
        let found = self.overrides.get(&address).and_then(|account| account.storage.as_ref());
        match found.and_then(|storage| storage.value(&slot)) {
            Some(value) => Ok(value),
            None => self.state.storage(address, slot),
        }
    }

    fn code(&mut self, code_hash: B256) -> Result<Bytes, StateError> {
        match self.codes.get(&code_hash) {
            Some(code) => Ok((*code).clone()),
            None => self.state.code(code_hash),
        }
    }

    fn block_hash(&mut self, number: u64) -> Result<B256, StateError> {
        match number < self.number {
            true => self.state.block_hash(number),
            false => Ok(B256::ZERO),
        }
    }
}
