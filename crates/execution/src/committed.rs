use alloy_primitives::map::{AddressMap, HashMap};
use alloy_primitives::{Address, U256};
use std::sync::{RwLock, RwLockReadGuard};
use trie::AccountInfo;
use witness::Change;

/// The changes of the transactions of a block that have had their turn, shared with the threads
/// that run others ahead ([`PriorChanges::Committed`](crate::PriorChanges::Committed)).
///
/// ```
/// # use deponent_execution::CommittedChanges;
/// # use alloy_primitives::{Address, U256};
/// # use witness::Change;
/// let (address, slots) = (Address::repeat_byte(1), vec![(U256::ZERO, U256::from(7))]);
/// let committed = CommittedChanges::default();
/// assert_eq!(committed.slot(&address, &U256::ZERO), None);
/// committed.put(&Change { address, account: None, storage_wiped: false, slots });
/// assert_eq!(committed.slot(&address, &U256::ZERO), Some(U256::from(7)));
/// ```
#[derive(Debug, Default)]
pub struct CommittedChanges {
    /// Sharded by the last byte of the address, so that threads seldom wait for a lock.
    parts: [RwLock<AddressMap<CommittedAccount>>; PARTS],
}

#[derive(Debug, Default)]
struct CommittedAccount {
    info: Option<AccountInfo>,
    /// Whether all slots that are not in `slots` are zero.
    storage_wiped: bool,
    slots: HashMap<U256, U256>,
}

const PARTS: usize = 16;

impl CommittedChanges {
    /// Adds the changes that the next transaction has made to an account.
    #[expect(clippy::missing_panics_doc, reason = "nothing panics while a part is locked")]
    pub fn put(&self, change: &Change) {
        let part = &self.parts[part(&change.address)];
        let mut part = part.write().expect(NO_PANIC);
        let changed = part.entry(change.address).or_default();
        changed.info = change.account;
        if change.storage_wiped {
            changed.storage_wiped = true;
            changed.slots.clear();
        }
        changed.slots.extend(change.slots.iter().copied());
    }

    /// The current fields of an account that was changed: `Some(None)` if it no longer exists,
    /// `None` if it was not changed.
    pub fn account(&self, address: &Address) -> Option<Option<AccountInfo>> {
        self.part(address).get(address).map(|changed| changed.info)
    }

    /// The current value of a slot; `None` if it was not changed.
    pub fn slot(&self, address: &Address, slot: &U256) -> Option<U256> {
        let part = self.part(address);
        let CommittedAccount { storage_wiped, slots, .. } = part.get(address)?;
        slots.get(slot).copied().or_else(|| storage_wiped.then_some(U256::ZERO))
    }

    fn part(&self, address: &Address) -> RwLockReadGuard<'_, AddressMap<CommittedAccount>> {
        self.parts[part(address)].read().expect(NO_PANIC)
    }
}

fn part(address: &Address) -> usize {
    usize::from(address[Address::len_bytes() - 1]) % PARTS
}

const NO_PANIC: &str = "no thread panics while it holds the lock";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_change_counts_and_a_wiped_storage_is_empty() {
        let address = Address::repeat_byte(1);
        let (committed, info) =
            (CommittedChanges::default(), AccountInfo { nonce: 1, ..AccountInfo::EMPTY });
        let slots = |slots: &[(u64, u64)]| {
            slots.iter().map(|(slot, value)| (U256::from(*slot), U256::from(*value))).collect()
        };
        let put = |account, storage_wiped, slots| {
            committed.put(&Change { address, account, storage_wiped, slots });
        };
        let slot = |slot: u64| committed.slot(&address, &U256::from(slot));
        assert_eq!((committed.account(&address), slot(1)), (None, None));
        put(Some(info), false, slots(&[(1, 5), (2, 6)]));
        put(Some(info), false, slots(&[(1, 7)]));
        assert_eq!(committed.account(&address), Some(Some(info)));
        assert_eq!([1, 2, 3].map(slot), [Some(U256::from(7)), Some(U256::from(6)), None]);
        put(None, true, slots(&[]));
        assert_eq!(
            (committed.account(&address), slot(1), slot(3)),
            (Some(None), Some(U256::ZERO), Some(U256::ZERO))
        );
        put(Some(info), false, slots(&[(3, 1)]));
        assert_eq!([1, 3].map(slot), [Some(U256::ZERO), Some(U256::from(1))]);
    }
}
