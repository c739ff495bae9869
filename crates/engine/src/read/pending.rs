//! Floor 3. The next block as it would be built now, and the state after it.

use crate::chain::record::BlockRecord;
use crate::error::Error;
use crate::read::view::{StateView, VersionState};
use alloy_primitives::map::{AddressMap, B256Map, HashMap};
use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256};
use execution::{Executed, Receipt, SealedBlock, SoFar};
use std::collections::BTreeMap;
use std::sync::Arc;
use trie::versioned::Version;
use trie::{Account, AccountInfo, EMPTY_ROOT_HASH};
use witness::{Change, Code, State, StateError};

/// A block that would be built now, and that is part of no chain; or a part of one that is.
#[derive(Debug)]
pub struct PendingBlock {
    /// The block.
    pub block: SealedBlock,
    /// The senders of its transactions.
    pub senders: Vec<Address>,
    /// The receipts of its transactions.
    pub receipts: Vec<Receipt>,
    pub(crate) parent: Arc<BlockRecord>,
    /// The number of logs of its transactions.
    pub logs: usize,
    changes: Vec<Change>,
    accounts: AddressMap<ChangedAccount>,
    codes: B256Map<Bytes>,
}

/// An account that the block has changed.
#[derive(Debug)]
struct ChangedAccount {
    /// `None` when it is deleted.
    info: Option<AccountInfo>,
    /// Whether the slots are all that its storage has.
    is_whole: bool,
    slots: HashMap<U256, U256>,
}

/// A block whose state is read.
#[derive(Debug, Clone)]
pub enum StateAt {
    /// A valid block of any branch.
    Block(B256),
    /// A pending one.
    Pending(Arc<PendingBlock>),
}

impl From<B256> for StateAt {
    fn from(hash: B256) -> Self {
        Self::Block(hash)
    }
}

impl PendingBlock {
    pub(crate) fn new(
        parent: Arc<BlockRecord>,
        block: SealedBlock,
        senders: Vec<Address>,
        executed: Executed,
    ) -> Self {
        let Executed { receipts, changes, new_codes, .. } = executed;
        let logs = receipts.iter().map(|receipt| receipt.logs().len()).sum();
        let so_far = SoFar { changes, new_codes, logs };
        Self { receipts, ..Self::part(parent, block, senders, so_far) }
    }

    /// A block as far as it has run, without receipts.
    pub(crate) fn part(
        parent: Arc<BlockRecord>,
        block: SealedBlock,
        senders: Vec<Address>,
        so_far: SoFar,
    ) -> Self {
        let SoFar { changes, new_codes, logs } = so_far;
        let accounts = changes.iter().map(|change| {
            let is_whole = change.storage_wiped || change.account.is_none();
            let slots = change.slots.iter().copied().collect();
            (change.address, ChangedAccount { info: change.account, is_whole, slots })
        });
        let (accounts, codes) = (accounts.collect(), new_codes.into_iter().collect());
        let receipts = Vec::new();
        Self { block, senders, receipts, parent, logs, changes, accounts, codes }
    }

    /// The hash of the block on which it stands.
    pub fn parent_hash(&self) -> B256 {
        self.parent.hash()
    }

    /// The account that the block left, where it has changed it; `before` is that of its parent.
    /// The root of its storage is made up where the block has changed the storage: it says whether
    /// there is any.
    fn account(
        &self,
        address: Address,
        before: impl FnOnce() -> Result<Option<Account>, StateError>,
    ) -> Result<Option<Account>, StateError> {
        let Some(changed) = self.accounts.get(&address) else { return before() };
        let Some(AccountInfo { nonce, balance, code_hash }) = changed.info else {
            return Ok(None);
        };
        let before = if changed.is_whole { None } else { before()? };
        let root = before.map_or(EMPTY_ROOT_HASH, |before| before.storage_root);
        let has_slots = changed.slots.values().any(|value| !value.is_zero());
        let storage_root = match root == EMPTY_ROOT_HASH && has_slots {
            true => B256::ZERO,
            false => root,
        };
        Ok(Some(Account { nonce, balance, code_hash, storage_root }))
    }

    /// The value of a slot, where the block decides it.
    fn slot(&self, address: Address, slot: U256) -> Option<U256> {
        let changed = self.accounts.get(&address)?;
        let value = changed.slots.get(&slot).copied();
        value.or_else(|| changed.is_whole.then_some(U256::ZERO))
    }

    /// The changes of the block, and later ones.
    pub(crate) fn changes_and(&self, later: &[Change]) -> Vec<Change> {
        let changes = self.changes.iter().map(|change| (change.address, change.clone()));
        let mut all: BTreeMap<_, _> = changes.collect();
        for change in later {
            let known = all.get_mut(&change.address).map(|known| known.then(change));
            if known.is_none() {
                all.insert(change.address, change.clone());
            }
        }
        all.into_values().collect()
    }
}

/// The state after a block that is valid or pending, as calls read it.
#[derive(Debug)]
pub(crate) struct CallState<'a> {
    kept: VersionState<'a>,
    pending: Option<&'a PendingBlock>,
}

impl<'a> CallState<'a> {
    /// The state after a block, or after a pending one on it.
    pub(crate) const fn new(kept: VersionState<'a>, pending: Option<&'a PendingBlock>) -> Self {
        Self { kept, pending }
    }

    /// The version below the pending block.
    pub(crate) fn version(&self) -> Version {
        self.kept.version()
    }

    pub(crate) const fn pending(&self) -> Option<&'a PendingBlock> {
        self.pending
    }
}

impl State for CallState<'_> {
    fn account(&mut self, address: Address) -> Result<Option<Account>, StateError> {
        match self.pending {
            Some(pending) => pending.account(address, || self.kept.account(address)),
            None => self.kept.account(address),
        }
    }

    fn storage(&mut self, address: Address, slot: U256) -> Result<U256, StateError> {
        match self.pending.and_then(|pending| pending.slot(address, slot)) {
            Some(value) => Ok(value),
            None => self.kept.storage(address, slot),
        }
    }

    fn code(&mut self, code_hash: B256) -> Result<Bytes, StateError> {
        match self.pending.and_then(|pending| pending.codes.get(&code_hash)) {
            Some(code) => Ok(code.clone()),
            None => self.kept.code(code_hash),
        }
    }

    fn code_to_run(&mut self, code_hash: B256) -> Result<Code, StateError> {
        match self.pending.and_then(|pending| pending.codes.get(&code_hash)) {
            Some(code) => Ok(code.clone().into()),
            None => self.kept.code_to_run(code_hash),
        }
    }

    fn block_hash(&mut self, number: u64) -> Result<B256, StateError> {
        match self.pending.filter(|pending| pending.block.header.number == number) {
            Some(pending) => Ok(pending.block.hash()),
            None => self.kept.block_hash(number),
        }
    }
}

/// The state after a pending block, to read from.
#[derive(Debug, Clone)]
pub struct PendingView {
    kept: StateView,
    pending: Arc<PendingBlock>,
}

impl PendingView {
    pub(crate) const fn new(kept: StateView, pending: Arc<PendingBlock>) -> Self {
        Self { kept, pending }
    }

    /// The account at `address`, `None` when there is none. The root of its storage says no more
    /// than whether there is any.
    ///
    /// # Errors
    /// As for [`StateView::account`].
    pub fn account(&self, address: Address) -> Result<Option<Account>, Error> {
        match self.pending.accounts.contains_key(&address) {
            true => {
                let before = self.kept.account(address)?;
                Ok(self.pending.account(address, || Ok(before))?)
            }
            false => self.kept.account(address),
        }
    }

    /// The value in `slot` of the account at `address`, zero when never written.
    ///
    /// # Errors
    /// As for [`StateView::account`].
    pub fn storage(&self, address: Address, slot: U256) -> Result<U256, Error> {
        match self.pending.slot(address, slot) {
            Some(value) => Ok(value),
            None => self.kept.storage(address, slot),
        }
    }

    /// The code of the account at `address`, empty when it has none.
    ///
    /// # Errors
    /// As for [`StateView::account`].
    pub fn code(&self, address: Address) -> Result<Bytes, Error> {
        match self.account(address)? {
            Some(account) if account.code_hash != KECCAK256_EMPTY => {
                match self.pending.codes.get(&account.code_hash) {
                    Some(code) => Ok(code.clone()),
                    None => self.kept.code_of(account.code_hash),
                }
            }
            _ => Ok(Bytes::new()),
        }
    }
}

#[cfg(test)]
mod tests;
