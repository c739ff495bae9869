//! Floor 3. The state that a block's access list (EIP-7928) names.

use crate::read::version::{KnownAccount, VersionReader};
use alloy_primitives::{Address, U256};
use execution::AccessList;
use std::sync::OnceLock;
use trie::{Account, EMPTY_ROOT_HASH};
use witness::StateError;

/// The accounts and slots that a list names, as the block's parent has them: each is read once, by
/// the thread that needs it first.
#[derive(Debug)]
pub(crate) struct AccessListState {
    pub(crate) list: AccessList,
    accounts: Vec<OnceLock<KnownAccount>>,
    slots: Vec<OnceLock<U256>>,
}

/// How much of an access list a block has asked for.
#[derive(Debug, Default)]
pub(crate) struct ListCoverage {
    accounts_count: usize,
    /// Slots of accounts with storage.
    slots_count: usize,
    /// Which slots these are, of all that the list names.
    slots: Vec<bool>,
}

/// A slot that the list names.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ListedSlot {
    /// Its place among all slots of the list.
    place: usize,
    pub(crate) value: U256,
}

impl AccessListState {
    pub(crate) fn new(list: AccessList) -> Self {
        let accounts = list.accounts().iter().map(|_| OnceLock::new()).collect();
        let slots = (0..list.slots_count()).map(|_| OnceLock::new()).collect();
        Self { list, accounts, slots }
    }

    /// An account that the list names, `None` if it does not; read by the thread's own `reader`.
    pub(crate) fn account(
        &self,
        reader: &mut VersionReader<'_>,
        address: Address,
    ) -> Result<Option<KnownAccount>, StateError> {
        let Some(place) = self.list.place(&address) else { return Ok(None) };
        if let Some(known) = self.accounts[place].get() {
            return Ok(Some(*known));
        }
        // Another thread may read it too, and finds the same.
        let known = reader.account(address)?;
        Ok(Some(*self.accounts[place].get_or_init(|| known)))
    }

    /// A slot that the list names, `None` if it does not.
    pub(crate) fn slot(
        &self,
        reader: &mut VersionReader<'_>,
        address: Address,
        known: &KnownAccount,
        slot: U256,
    ) -> Result<Option<ListedSlot>, StateError> {
        let account = self.list.place(&address).map(|place| &self.list.accounts()[place]);
        let Some(place) = account.and_then(|account| account.slot_place(&slot)) else {
            return Ok(None);
        };
        if let Some(value) = self.slots[place].get() {
            return Ok(Some(ListedSlot { place, value: *value }));
        }
        let value = reader.slot(address, known, slot)?;
        Ok(Some(ListedSlot { place, value: *self.slots[place].get_or_init(|| value) }))
    }

    /// How many slots the list names of accounts with storage, when all accounts have been asked
    /// for.
    pub(crate) fn slots_with_paths(&self) -> Option<usize> {
        let mut count = 0;
        for (known, listed) in self.accounts.iter().zip(self.list.accounts()) {
            let has_storage = |account: Account| account.storage_root != EMPTY_ROOT_HASH;
            if known.get()?.account.is_some_and(has_storage) {
                count += listed.slots().len();
            }
        }
        Some(count)
    }
}

impl ListCoverage {
    /// Of a list of which nothing has been asked for.
    pub(crate) fn new(list: &AccessList) -> Self {
        Self { slots: vec![false; list.slots_count()], ..Self::default() }
    }

    /// Notes an account, which is asked for once.
    pub(crate) fn add_account(&mut self) {
        self.accounts_count += 1;
    }

    pub(crate) fn add_slot(&mut self, slot: ListedSlot) {
        let is_new = !std::mem::replace(&mut self.slots[slot.place], true);
        self.slots_count += usize::from(is_new);
    }

    /// Whether it is all of the list.
    pub(crate) fn is_all_of(&self, state: &AccessListState) -> bool {
        self.accounts_count == state.list.accounts().len()
            && state.slots_with_paths() == Some(self.slots_count)
    }
}
