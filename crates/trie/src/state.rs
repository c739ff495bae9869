use crate::{
    Account, EMPTY_ROOT_HASH, Error, NodeSource, SparseTrie,
    value::{decode_account, decode_slot},
};
use alloy_primitives::{B256, Bytes, U256, map::B256Map};

#[cfg(test)]
pub(crate) mod tests;

/// The changes of a block to the state: for each account the values after the block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StateChanges {
    /// The changes, in any order, at most one for each account.
    pub accounts: Vec<AccountChange>,
}

/// The changes of a block to one account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountChange {
    /// The Keccak-256 hash of the address.
    pub hashed_address: B256,
    /// The account after the block; `None` if it is deleted, and its storage with it. Whether an
    /// empty account is deleted (EIP-161) is for the caller to decide.
    pub account: Option<AccountInfo>,
    /// Whether the storage starts again from empty, as after SELFDESTRUCT before Cancun. The old
    /// storage is then not revealed, and `storage` is all that the new one holds.
    pub storage_wiped: bool,
    /// Hashed slots with their values after the block, in any order, each slot at most once.
    /// Zero removes the slot.
    pub storage: Vec<(B256, U256)>,
}

/// The fields of an [`Account`] that a block sets; the storage root follows from the slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountInfo {
    /// The number of transactions sent, or for a contract of contracts created.
    pub nonce: u64,
    /// The balance, in wei.
    pub balance: U256,
    /// The Keccak-256 hash of the account's code.
    pub code_hash: B256,
}

impl AccountInfo {
    /// An empty account (EIP-161): no nonce, balance or code.
    pub const EMPTY: Self =
        Self { nonce: 0, balance: U256::ZERO, code_hash: alloy_primitives::KECCAK256_EMPTY };
}

impl From<Account> for AccountInfo {
    fn from(account: Account) -> Self {
        let Account { nonce, balance, code_hash, .. } = account;
        Self { nonce, balance, code_hash }
    }
}

/// An account with the proofs of it and of some of its slots, as `eth_getProof` answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountProof {
    /// The account, or `None` where it does not exist.
    pub account: Option<Account>,
    /// The proof of the account, or of its absence, against the state root.
    pub proof: Vec<Bytes>,
    /// The proofs of the slots, in the order they were asked for.
    pub storage: Vec<StorageProof>,
}

/// A storage slot with its proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageProof {
    /// The Keccak-256 hash of the slot's number.
    pub hashed_slot: B256,
    /// The value, zero if the slot is not set.
    pub value: U256,
    /// The proof against the account's storage root; empty if the storage is.
    pub proof: Vec<Bytes>,
}

/// The state of Ethereum: the trie of the accounts, and the storage trie of each account that
/// was asked for. One `StateTrie` serves one block: it is opened at the parent's state root, all
/// that the block reads is read through it, the block's changes are applied to it, and the nodes
/// it has revealed then are the `state` of the block's witness.
///
/// # Errors
/// Every operation with a source can fail like those of [`SparseTrie`], and with
/// [`Error::MalformedValue`]. Reads can then be tried again.
#[derive(Clone, Debug)]
pub struct StateTrie {
    accounts: SparseTrie,
    /// The storage tries of existing accounts, by hashed address.
    storages: B256Map<SparseTrie>,
    /// The accounts as last read or written, by hashed address.
    known: B256Map<Option<Account>>,
    /// The revealed nodes of storage tries that have since been deleted or wiped.
    revealed: Vec<Bytes>,
}

impl StateTrie {
    /// The state with this root, of which nothing is revealed yet.
    pub fn new(root: B256) -> Self {
        Self {
            accounts: SparseTrie::of_hashes(root),
            storages: B256Map::default(),
            known: B256Map::default(),
            revealed: Vec::new(),
        }
    }

    /// The account, or `None` where the state proves that there is none.
    ///
    /// # Errors
    /// See [`StateTrie`].
    pub fn account(
        &mut self,
        hashed_address: B256,
        nodes: &(impl NodeSource + ?Sized),
    ) -> Result<Option<Account>, Error> {
        if let Some(known) = self.known.get(&hashed_address) {
            return Ok(*known);
        }
        let rlp = self.accounts.get(hashed_address.as_slice(), nodes)?;
        let account = rlp.map(|rlp| decode_account(&hashed_address, rlp)).transpose()?;
        self.known.insert(hashed_address, account);
        Ok(account)
    }

    /// The value of a storage slot, zero if it is not set. Of an account without storage only
    /// the account is revealed.
    ///
    /// # Errors
    /// See [`StateTrie`].
    pub fn storage(
        &mut self,
        hashed_address: B256,
        hashed_slot: B256,
        nodes: &(impl NodeSource + ?Sized),
    ) -> Result<U256, Error> {
        let account = self.account(hashed_address, nodes)?;
        let root = account.map_or(EMPTY_ROOT_HASH, |account| account.storage_root);
        if root == EMPTY_ROOT_HASH {
            return Ok(U256::ZERO);
        }
        let trie =
            self.storages.entry(hashed_address).or_insert_with(|| SparseTrie::of_hashes(root));
        match trie.get(hashed_slot.as_slice(), nodes)? {
            None => Ok(U256::ZERO),
            Some(rlp) => decode_slot(&hashed_slot, rlp),
        }
    }

    /// Applies a block's changes and returns the state root after the block.
    ///
    /// Which nodes are revealed is that of the canonical witness: in each storage trie all slots
    /// are set first and then those with value zero removed; all storage tries come before the
    /// accounts; then all accounts are set, and then those deleted removed. The order of the
    /// changes as given has no influence.
    ///
    /// # Errors
    /// See [`StateTrie`]. Some changes may be applied then, and neither reads nor nodes are to
    /// be relied on, until the same changes are applied again without error; that leads to the
    /// same root and the same revealed nodes as if there had been no error.
    ///
    /// # Panics
    /// If an account, or a slot of an account, is listed twice.
    pub fn apply(
        &mut self,
        changes: &StateChanges,
        nodes: &(impl NodeSource + ?Sized),
    ) -> Result<B256, Error> {
        let mut changes: Vec<&AccountChange> = changes.accounts.iter().collect();
        changes.sort_unstable_by_key(|change| change.hashed_address);
        let is_unique = changes.is_sorted_by(|a, b| a.hashed_address < b.hashed_address);
        assert!(is_unique, "an account is changed at most once");

        let mut written = Vec::with_capacity(changes.len());
        for change in &changes {
            if let Some(AccountInfo { nonce, balance, code_hash }) = change.account {
                let storage_root = self.apply_storage(change, nodes)?;
                let account = Account { nonce, balance, storage_root, code_hash };
                written.push((change.hashed_address, account));
            }
        }
        for (hashed_address, account) in written {
            self.accounts.insert(hashed_address.as_slice(), account.to_rlp(), nodes)?;
            self.known.insert(hashed_address, Some(account));
        }
        for change in changes.iter().filter(|change| change.account.is_none()) {
            self.accounts.remove(change.hashed_address.as_slice(), nodes)?;
            self.known.insert(change.hashed_address, None);
            self.drop_storage(&change.hashed_address);
        }
        Ok(self.accounts.root())
    }

    /// Applies the changes of one account's storage and returns the storage root after them.
    fn apply_storage(
        &mut self,
        change: &AccountChange,
        nodes: &(impl NodeSource + ?Sized),
    ) -> Result<B256, Error> {
        let account = self.account(change.hashed_address, nodes)?;
        let mut root = account.map_or(EMPTY_ROOT_HASH, |account| account.storage_root);
        if change.storage_wiped {
            self.drop_storage(&change.hashed_address);
            self.storages.insert(change.hashed_address, SparseTrie::of_hashes(EMPTY_ROOT_HASH));
            root = EMPTY_ROOT_HASH;
        }
        if change.storage.is_empty() {
            return Ok(root);
        }
        let mut slots: Vec<&(B256, U256)> = change.storage.iter().collect();
        slots.sort_unstable_by_key(|(slot, _)| slot);
        let is_unique = slots.is_sorted_by(|(a, _), (b, _)| a < b);
        assert!(is_unique, "a slot is changed at most once");

        let trie = self
            .storages
            .entry(change.hashed_address)
            .or_insert_with(|| SparseTrie::of_hashes(root));
        for (slot, value) in slots.iter().filter(|(_, value)| !value.is_zero()) {
            trie.insert(slot.as_slice(), alloy_rlp::encode(value), nodes)?;
        }
        for (slot, _) in slots.iter().filter(|(_, value)| value.is_zero()) {
            trie.remove(slot.as_slice(), nodes)?;
        }
        Ok(trie.root())
    }

    /// Drops a storage trie, but keeps its revealed nodes.
    fn drop_storage(&mut self, hashed_address: &B256) {
        if let Some(mut trie) = self.storages.remove(hashed_address) {
            self.revealed.append(&mut trie.take_revealed());
        }
    }

    /// The nodes revealed since the state was opened, or since this was last called, of all
    /// tries: the `state` of the witness. Each once, in lexicographic order.
    pub fn take_witness_nodes(&mut self) -> Vec<Bytes> {
        let mut revealed = std::mem::take(&mut self.revealed);
        revealed.append(&mut self.accounts.take_revealed());
        for trie in self.storages.values_mut() {
            revealed.append(&mut trie.take_revealed());
        }
        revealed.sort_unstable();
        revealed.dedup();
        revealed
    }

    /// Hands over the nodes that a hash-keyed store needs to have the state as it is now, of all
    /// tries, as [`SparseTrie::new_nodes`] does for one. The accounts come first, then the
    /// storage tries by hashed address.
    pub fn new_nodes(&mut self, sink: &mut impl FnMut(B256, Bytes)) {
        self.accounts.new_nodes(sink);
        let mut storages: Vec<_> = self.storages.iter_mut().collect();
        storages.sort_unstable_by_key(|(hashed_address, _)| **hashed_address);
        for (_, trie) in storages {
            trie.new_nodes(sink);
        }
    }

    /// The account with the proofs of it and of these slots.
    ///
    /// # Errors
    /// See [`StateTrie`].
    pub fn account_proof(
        &mut self,
        hashed_address: B256,
        hashed_slots: &[B256],
        nodes: &(impl NodeSource + ?Sized),
    ) -> Result<AccountProof, Error> {
        let account = self.account(hashed_address, nodes)?;
        let proof = self.accounts.proof(hashed_address.as_slice(), nodes)?;
        let mut storage = Vec::with_capacity(hashed_slots.len());
        for &hashed_slot in hashed_slots {
            let value = self.storage(hashed_address, hashed_slot, nodes)?;
            let proof = match self.storages.get_mut(&hashed_address) {
                Some(trie) => trie.proof(hashed_slot.as_slice(), nodes)?,
                None => Vec::new(),
            };
            storage.push(StorageProof { hashed_slot, value, proof });
        }
        Ok(AccountProof { account, proof, storage })
    }
}
