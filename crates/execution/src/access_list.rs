use crate::InvalidBlock;
use alloy_eip7928::{AccountChanges, BlockAccessIndex, CodeChange, SlotChanges, total_bal_items};
use alloy_primitives::map::AddressMap;
use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256, keccak256};
use alloy_rlp::Decodable;
use std::sync::OnceLock;
use trie::AccountInfo;

/// Gas that one item of a block access list stands for (EIP-7928, `BLOCK_ACCESS_LIST_ITEM`).
pub(crate) const ACCESS_LIST_ITEM_GAS: u64 = 2000;

/// The block access list of a payload (EIP-7928), indexed by address. Until the block has run, the
/// list is an unverified claim of the payload's builder.
#[derive(Debug)]
pub struct AccessList {
    accounts: Vec<ListedAccount>,
    places: AddressMap<usize>,
    slots_count: usize,
    rlp_bytes: usize,
}

/// One account in a block access list.
#[derive(Debug)]
pub struct ListedAccount {
    changes: AccountChanges,
    /// The hashes of the codes in `changes`, computed at the first use.
    code_hashes: OnceLock<Vec<B256>>,
    /// The number of slots of all accounts before this one.
    first_slot: usize,
}

impl AccessList {
    /// Reads a list from RLP. `None` if it is not ordered as the EIP demands, or has more items
    /// than a block with this gas limit may have: no valid block has such a list.
    ///
    /// # Errors
    /// [`InvalidBlock::AccessListRlp`] if the bytes are no list at all.
    pub fn decode(mut rlp: &[u8], gas_limit: u64) -> Result<Option<Self>, InvalidBlock> {
        let rlp_bytes = rlp.len();
        let list = Vec::<AccountChanges>::decode(&mut rlp)
            .map_err(|error| InvalidBlock::AccessListRlp(error.to_string()))?;
        if !rlp.is_empty() {
            let reason = format!("{} bytes after the end", rlp.len());
            return Err(InvalidBlock::AccessListRlp(reason));
        }
        let is_ordered = list.is_sorted_by(|a, b| a.address < b.address)
            && list.iter().all(|account| {
                account.storage_changes.is_sorted_by(|a, b| a.slot < b.slot)
                    && account.storage_changes.iter().all(|changes| !changes.is_empty())
                    && account.storage_reads.is_sorted_by(|a, b| a < b)
            });
        if !is_ordered || total_bal_items(&list) > gas_limit / ACCESS_LIST_ITEM_GAS {
            return Ok(None);
        }
        let places = list.iter().enumerate().map(|(place, account)| (account.address, place));
        let places = places.collect();
        let mut slots_count = 0;
        let accounts = list.into_iter().map(|changes| {
            let first_slot = slots_count;
            slots_count += changes.storage_changes.len() + changes.storage_reads.len();
            ListedAccount { changes, code_hashes: OnceLock::new(), first_slot }
        });
        Ok(Some(Self { accounts: accounts.collect(), places, slots_count, rlp_bytes }))
    }

    /// The length of the list in RLP.
    pub const fn rlp_bytes(&self) -> usize {
        self.rlp_bytes
    }

    /// The accounts, ordered by address.
    pub fn accounts(&self) -> &[ListedAccount] {
        &self.accounts
    }

    /// The number of slots that the list names, of all accounts.
    pub const fn slots_count(&self) -> usize {
        self.slots_count
    }

    /// The index of an account in [`accounts`](Self::accounts).
    pub fn place(&self, address: &Address) -> Option<usize> {
        self.places.get(address).copied()
    }

    pub(crate) fn account(&self, address: &Address) -> Option<&ListedAccount> {
        self.place(address).map(|place| &self.accounts[place])
    }
}

impl ListedAccount {
    /// The account's address.
    pub const fn address(&self) -> Address {
        self.changes.address
    }

    /// The slots that the list names, each once, those that change first.
    pub fn slots(&self) -> impl ExactSizeIterator<Item = U256> {
        let AccountChanges { storage_changes, storage_reads, .. } = &self.changes;
        let count = storage_changes.len() + storage_reads.len();
        (0..count).map(|at| match storage_changes.get(at) {
            Some(changes) => changes.slot,
            None => storage_reads[at - storage_changes.len()],
        })
    }

    /// The index of a slot among all slots that the list names, those of other accounts included.
    pub fn slot_place(&self, slot: &U256) -> Option<usize> {
        let AccountChanges { storage_changes, storage_reads, .. } = &self.changes;
        let at = storage_changes.binary_search_by(|changes| changes.slot.cmp(slot));
        let read = || Ok::<_, usize>(storage_changes.len() + storage_reads.binary_search(slot)?);
        at.or_else(|_| read()).ok().map(|at| self.first_slot + at)
    }

    /// The account after the block, given `account` before it; `None` if the block does not change
    /// it.
    pub fn after(&self, account: AccountInfo) -> Option<AccountInfo> {
        let after = self.at(BlockAccessIndex::new(u64::MAX), account);
        (after != account).then_some(after)
    }

    /// The slots that change, as [`slots`](Self::slots) has them, with their values after the
    /// block.
    pub fn slots_after(&self) -> impl Iterator<Item = (U256, U256)> {
        self.changes.storage_post_states()
    }

    /// The account as a transaction with this index finds it, when it was `account` before the
    /// block.
    pub(crate) fn at(&self, index: BlockAccessIndex, mut account: AccountInfo) -> AccountInfo {
        let AccountChanges { balance_changes, nonce_changes, code_changes, .. } = &self.changes;
        let of_balance = balance_changes.partition_point(|c| c.block_access_index < index);
        if let Some(change) = balance_changes[..of_balance].last() {
            account.balance = change.post_balance;
        }
        let of_nonce = nonce_changes.partition_point(|c| c.block_access_index < index);
        if let Some(change) = nonce_changes[..of_nonce].last() {
            account.nonce = change.new_nonce;
        }
        let of_code = code_changes.partition_point(|c| c.block_access_index < index);
        if let Some(last) = of_code.checked_sub(1) {
            account.code_hash = self.code_hashes()[last];
        }
        account
    }

    /// The value of a slot as a transaction with this index finds it, `None` when nothing in the
    /// block has changed it before.
    pub(crate) fn slot_at(&self, index: BlockAccessIndex, slot: &U256) -> Option<U256> {
        let changes = &self.changes.storage_changes;
        let at = changes.binary_search_by(|changes| changes.slot.cmp(slot)).ok()?;
        let SlotChanges { changes, .. } = &changes[at];
        let before = changes.partition_point(|change| change.block_access_index < index);
        changes[..before].last().map(|change| change.new_value)
    }

    /// The code with this hash, if the block gives it to the account.
    pub(crate) fn code(&self, code_hash: &B256) -> Option<&Bytes> {
        let at = self.code_hashes().iter().position(|hash| hash == code_hash)?;
        Some(&self.changes.code_changes[at].new_code)
    }

    fn code_hashes(&self) -> &[B256] {
        self.code_hashes.get_or_init(|| {
            let hash = |change: &CodeChange| match change.new_code.is_empty() {
                true => KECCAK256_EMPTY,
                false => keccak256(&change.new_code),
            };
            self.changes.code_changes.iter().map(hash).collect()
        })
    }
}

#[cfg(test)]
mod tests;
