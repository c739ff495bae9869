//! Floor 2. A cache of slots that blocks have read, for the blocks after them.

use crate::limits;
use alloy_primitives::{Address, B256, U256};
use quick_cache::sync::Cache;
use std::fmt;
use trie::versioned::SlotRead;

/// The slots of storages that are read often, in any version: one that is read again needs no hash,
/// and no walk where no slot near it has changed since.
pub(crate) struct SlotCache(Cache<(Address, U256), CachedSlot>);

#[derive(Debug, Clone, Copy)]
pub(crate) struct CachedSlot {
    pub(crate) hash: B256,
    pub(crate) read: SlotRead,
}

impl SlotCache {
    pub(crate) fn get(&self, owner: Address, slot: U256) -> Option<CachedSlot> {
        self.0.get(&(owner, slot))
    }

    pub(crate) fn insert(&self, owner: Address, slot: U256, cached: CachedSlot) {
        self.0.insert((owner, slot), cached);
    }
}

impl Default for SlotCache {
    fn default() -> Self {
        Self(Cache::new(limits::CACHED_SLOTS))
    }
}

impl fmt::Debug for SlotCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SlotCache").field("slots", &self.0.len()).finish_non_exhaustive()
    }
}
