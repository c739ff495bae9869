//! Floor 2. The heads as a crash would leave them.

use crate::chain::tree::Heads;
use crate::error::NO_PANIC;
use alloy_primitives::B256;
use std::sync::RwLock;

/// A canonical block that would survive a crash now, with all blocks before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PersistedBlock {
    /// The block's number.
    pub number: u64,
    /// The block's hash.
    pub hash: B256,
}

/// Is called with each canonical head that is persisted.
type Listener = Box<dyn Fn(PersistedBlock) + Send + Sync>;

/// The heads that are persisted, and the listeners for them.
pub(crate) struct PersistedHeads {
    heads: RwLock<Heads>,
    listeners: RwLock<Vec<Listener>>,
}

impl PersistedHeads {
    pub(crate) fn new(heads: Heads) -> Self {
        Self { heads: RwLock::new(heads), listeners: RwLock::default() }
    }

    pub(crate) fn get(&self) -> Heads {
        *self.heads.read().expect(NO_PANIC)
    }

    /// Notes that `block` is persisted as the head, and tells the listeners.
    pub(crate) fn set(&self, block: PersistedBlock, heads: Heads) {
        *self.heads.write().expect(NO_PANIC) = heads;
        for listener in self.listeners.read().expect(NO_PANIC).iter() {
            listener(block);
        }
    }

    pub(crate) fn listen(&self, listener: Listener) {
        self.listeners.write().expect(NO_PANIC).push(listener);
    }
}
