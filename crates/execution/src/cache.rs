use crate::recorder::{Recorder, account_info};
use alloy_primitives::map::{AddressMap, Entry};
use alloy_primitives::{Address, B256, KECCAK256_EMPTY, U256};
use revm::DatabaseCommit;
use revm::database::{AccountStatus, State as Cache};
use revm::database_interface::Database;
use revm::database_interface::bal::EvmDatabaseError;
use revm::state::{Account, AccountInfo, Bytecode, EvmState};
use witness::{Change, State};

/// The EVM's database while a block runs: what the block has read and written so far, above the
/// [`Recorder`], which is told of every commit.
#[derive(Debug)]
pub(crate) struct BlockCache<S>(pub(crate) Cache<Recorder<S>>);

impl<S> BlockCache<S> {
    pub(crate) fn recorder(&mut self) -> &mut Recorder<S> {
        &mut self.0.database
    }

    /// Makes a code unknown to the cache and to the accounts that a transaction has loaded: the
    /// [`Recorder`] is to notice the next to ask for it.
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

    /// Makes the running transaction's code reads undone, so that a second run records them anew,
    /// following creations.
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
        // Once such an account has changed, the cache holds its storage for known: as empty.
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

/// Whether this contract has ended with the transaction that created it, and its account is there
/// for its balance, from Amsterdam on (EIP-8246). Which code it had does not show any more.
fn is_emptied(account: &Account) -> bool {
    let info = &account.info;
    let has_nothing_else = info.nonce == 0 && info.code_hash == KECCAK256_EMPTY;
    account.is_created() && has_nothing_else && !info.balance.is_zero()
}

/// Whether a transaction deleted an account: the same decision as revm's, when it commits it.
fn is_deleted(account: &Account) -> bool {
    let is_empty = account.is_empty() && !account.is_created();
    account.is_touched() && (account.is_selfdestructed() || is_empty)
}

/// What the EVM changed in an account, `None` when nothing.
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
