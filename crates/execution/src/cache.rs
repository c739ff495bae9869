use crate::recorder::{Recorder, account_info};
use alloy_primitives::map::{AddressMap, Entry};
use alloy_primitives::{Address, B256, KECCAK256_EMPTY, U256};
use revm::DatabaseCommit;
use revm::database::{AccountStatus, State as Cache};
use revm::database_interface::Database;
use revm::database_interface::bal::EvmDatabaseError;
use revm::state::{Account, AccountInfo, Bytecode, EvmState};
use witness::{Change, State};

/// The EVM's database while a block runs: a cache of all that the block has read and written, over
/// the [`Recorder`].
#[derive(Debug)]
pub(crate) struct BlockCache<S>(pub(crate) Cache<Recorder<S>>);

impl<S> BlockCache<S> {
    pub(crate) fn recorder(&mut self) -> &mut Recorder<S> {
        &mut self.0.database
    }

    /// Removes a code from the cache and from the accounts that a transaction has loaded, so that
    /// the [`Recorder`] sees the next read of it.
    pub(crate) fn forget_code(&mut self, code_hash: &B256, loaded: &mut EvmState) {
        self.0.cache.contracts.remove(code_hash);
        let has_it = |account: &&mut Account| account.info.code_hash == *code_hash;
        loaded.values_mut().filter(has_it).for_each(|account| account.info.code = None);
    }
}

impl<S: State> BlockCache<S> {
    /// Whether only a run under the inspector tells which codes the transaction has read and
    /// written; `after` is the state after one without it.
    pub(crate) fn is_ambiguous(&self, after: Option<&EvmState>) -> bool {
        let transaction = &self.0.database.transaction;
        let has_emptied = || after.is_some_and(|after| after.values().any(is_emptied));
        transaction.exact.is_none() && (transaction.ambiguous || has_emptied())
    }

    /// Undoes the code reads of the running transaction, so that a second run under the inspector
    /// records them again.
    pub(crate) fn restart_exactly(&mut self) {
        let Cache { cache, database: recorder, .. } = &mut self.0;
        recorder.error = None;
        for hash in std::mem::take(&mut recorder.transaction.fetched) {
            recorder.codes.remove(&hash);
            cache.contracts.remove(&hash);
        }
        recorder.transaction.exact = Some(Vec::new());
    }

    /// Notes which codes the transaction has written, which is about to be committed.
    pub(crate) fn note_written(&mut self, after: &EvmState) {
        let recorder = self.recorder();
        for account in after.values() {
            if let (true, Some(code)) = (account.is_created(), &account.info.code) {
                recorder.note_written(account.info.code_hash, code.original_bytes());
            }
        }
        for (hash, code) in recorder.transaction.exact.take().into_iter().flatten() {
            recorder.note_written(hash, code);
        }
    }
}

impl<S: State> Database for BlockCache<S> {
    type Error = <Cache<Recorder<S>> as Database>::Error;

    fn basic(&mut self, address: Address) -> Result<Option<AccountInfo>, Self::Error> {
        self.0.basic(address)
    }

    fn code_by_hash(&mut self, code_hash: B256) -> Result<Bytecode, Self::Error> {
        self.0.code_by_hash(code_hash)
    }

    fn storage(&mut self, address: Address, slot: U256) -> Result<U256, Self::Error> {
        let Cache { cache, database, .. } = &mut self.0;
        // Once such an account has changed, the cache takes its storage for empty.
        if database.has_storage_only(&address)
            && let Some(cached) = cache.accounts.get_mut(&address)
            && cached.status == AccountStatus::InMemoryChange
            && let Some(account) = &mut cached.account
            && let Entry::Vacant(entry) = account.storage.entry(slot)
        {
            let value = database.storage(address, slot).map_err(EvmDatabaseError::Database)?;
            entry.insert(value);
        }
        Database::storage(&mut self.0, address, slot)
    }

    fn block_hash(&mut self, number: u64) -> Result<B256, Self::Error> {
        self.0.block_hash(number)
    }
}

impl<S: State> DatabaseCommit for BlockCache<S> {
    fn commit(&mut self, accounts: AddressMap<Account>) {
        for (address, _) in accounts.iter().filter(|(_, account)| is_deleted(account)) {
            self.0.database.note_deleted(address);
        }
        let changes = accounts.iter().filter_map(|(address, account)| change(*address, account));
        self.0.database.state.ran(&mut { changes });
        self.0.commit(accounts);
    }
}

/// Whether a contract self-destructed in the transaction that created it and its account remains
/// for its balance, from Amsterdam on (EIP-8246). The account no longer shows which code it had.
fn is_emptied(account: &Account) -> bool {
    let info = &account.info;
    let has_nothing_else = info.nonce == 0 && info.code_hash == KECCAK256_EMPTY;
    account.is_created() && has_nothing_else && !info.balance.is_zero()
}

/// Whether a transaction deleted an account: the decision that revm makes when it commits.
fn is_deleted(account: &Account) -> bool {
    let is_empty = account.is_empty() && !account.is_created();
    account.is_touched() && (account.is_selfdestructed() || is_empty)
}

/// The changes that the EVM made to an account; `None` if there are none.
fn change(address: Address, account: &Account) -> Option<Change> {
    if !account.is_touched() {
        return None;
    }
    let existed = !account.is_loaded_as_not_existing();
    if is_deleted(account) {
        let slots = Vec::new();
        return existed.then_some(Change { address, account: None, storage_wiped: true, slots });
    }
    let changed = account.storage.iter().filter(|(_, slot)| slot.is_changed());
    let slots: Vec<_> = changed.map(|(slot, value)| (*slot, value.present_value)).collect();
    if existed && slots.is_empty() && !account.is_changed() {
        return None;
    }
    let info = Some(account_info(&account.info));
    Some(Change { address, account: info, storage_wiped: false, slots })
}
