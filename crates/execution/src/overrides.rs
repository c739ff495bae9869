//! Overrides: what a call sees in place of the state's.

use crate::evm::BlockEvm;
use crate::recorder::ReadError;
use alloy_evm::Evm;
use alloy_primitives::map::{AddressMap, B256Map};
use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use revm::Database;
use revm::context::JournalTr;
use revm::database_interface::bal::EvmDatabaseError;
use revm::state::{Account as EvmAccount, EvmStorageSlot};
use std::collections::BTreeMap;
use trie::{Account, EMPTY_ROOT_HASH};
use witness::{State, StateError};

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
    fn value(&self, slot: &U256) -> Option<U256> {
        match self {
            Self::Whole(slots) => Some(slots.get(slot).copied().unwrap_or_default()),
            Self::Some(slots) => slots.get(slot).copied(),
        }
    }
}

/// Puts into the EVM what it would not ask the state for.
///
/// The EVM takes the slots of an account that it creates as zero unless they are in its journal.
/// A precompiled contract that is overridden is an ordinary account, but warm, as all that the fork
/// has are (EIP-2929).
pub(crate) fn prepare<S: State>(
    evm: &mut BlockEvm<'_, OverriddenState<'_, S>>,
    overrides: &StateOverrides,
) -> Result<(), EvmDatabaseError<ReadError>> {
    let warm = evm.components().2.addresses().copied().collect();
    evm.journaled_state.warm_precompiles(&warm);
    for (&address, found) in overrides {
        evm.precompiles_mut().apply_precompile(&address, |_| None);
        let Some(StorageOverride::Whole(slots) | StorageOverride::Some(slots)) = &found.storage
        else {
            continue;
        };
        let info = evm.db_mut().basic(address)?.unwrap_or_default();
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

/// A state under overrides.
#[derive(Debug)]
pub(crate) struct OverriddenState<'a, S> {
    state: S,
    overrides: &'a StateOverrides,
    /// The codes among the overrides, by hash.
    codes: B256Map<&'a Bytes>,
}

impl<'a, S> OverriddenState<'a, S> {
    pub(crate) fn new(state: S, overrides: &'a StateOverrides) -> Self {
        let codes = overrides.values().filter_map(|account| account.code.as_ref());
        let codes = codes.map(|code| (keccak256(code), code)).collect();
        Self { state, overrides, codes }
    }
}

impl<S: State> State for OverriddenState<'_, S> {
    fn account(&mut self, address: Address) -> Result<Option<Account>, StateError> {
        let account = self.state.account(address)?;
        let found = self.overrides.get(&address);
        let Some(found) = found.filter(|found| **found != AccountOverride::default()) else {
            return Ok(account);
        };
        let AccountOverride { balance, nonce, code, storage } = found;
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
        self.state.block_hash(number)
    }
}
