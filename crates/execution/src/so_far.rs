use alloy_primitives::map::{AddressMap, HashMap};
use alloy_primitives::{Address, U256};
use std::sync::{RwLock, RwLockReadGuard};
use trie::AccountInfo;
use witness::Change;

/// What the transactions of a block that have had their turn have changed so far, for threads that
/// run others ahead ([`Before::SoFar`](crate::Before::SoFar)).
///
/// ```
/// # use execution::SoFar;
/// # use alloy_primitives::{Address, U256};
/// # use witness::Change;
/// let (address, slots) = (Address::repeat_byte(1), vec![(U256::ZERO, U256::from(7))]);
/// let so_far = SoFar::default();
/// assert_eq!(so_far.slot(&address, &U256::ZERO), None);
/// so_far.put(&Change { address, account: None, storage_wiped: false, slots });
/// assert_eq!(so_far.slot(&address, &U256::ZERO), Some(U256::from(7)));
/// ```
#[derive(Debug, Default)]
pub struct SoFar {
    /// By the last byte of the address, so that threads seldom wait for each other.
    parts: [RwLock<AddressMap<Changed>>; PARTS],
}

#[derive(Debug, Default)]
struct Changed {
    info: Option<AccountInfo>,
    /// Whether slots that are not here are empty.
    storage_wiped: bool,
    slots: HashMap<U256, U256>,
}

const PARTS: usize = 16;

impl SoFar {
    /// Adds what a transaction has changed in an account, behind all that was added before.
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

    /// What an account that was changed is now, `None` inside when it is not there any more.
    pub fn account(&self, address: &Address) -> Option<Option<AccountInfo>> {
        self.part(address).get(address).map(|changed| changed.info)
    }

    /// What a slot that was changed has now.
    pub fn slot(&self, address: &Address, slot: &U256) -> Option<U256> {
        let part = self.part(address);
        let Changed { storage_wiped, slots, .. } = part.get(address)?;
        slots.get(slot).copied().or_else(|| storage_wiped.then_some(U256::ZERO))
    }

    fn part(&self, address: &Address) -> RwLockReadGuard<'_, AddressMap<Changed>> {
        self.parts[part(address)].read().expect(NO_PANIC)
    }
}

fn part(address: &Address) -> usize {
    usize::from(address[Address::len_bytes() - 1]) % PARTS
}

const NO_PANIC: &str = "no thread panics while it holds the lock";
