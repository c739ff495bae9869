//! Trie nodes and codes by their hash, in memory and for ever.

use alloy_primitives::map::B256Map;
use alloy_primitives::{B256, Bytes};
use std::sync::{RwLock, RwLockReadGuard};
use trie::NodeSource;

/// Trie nodes and codes by their keccak-256 hash, shared by all threads.
///
/// What is named by its hash never changes, so every read stands for itself: readers of a long
/// block and the writer of the next do not wait for each other.
#[derive(Debug, Default)]
pub struct Store {
    tables: RwLock<Tables>,
}

#[derive(Debug, Default)]
struct Tables {
    nodes: B256Map<Bytes>,
    codes: B256Map<Bytes>,
}

impl Store {
    /// An empty store that lives in memory.
    pub fn in_memory() -> Self {
        Self::default()
    }

    /// The code whose hash is `code_hash`, `None` when it is not there.
    pub fn code(&self, code_hash: &B256) -> Option<Bytes> {
        self.tables().codes.get(code_hash).cloned()
    }

    /// Adds what a block made. Adding twice changes nothing.
    pub fn commit(
        &self,
        nodes: impl IntoIterator<Item = (B256, Bytes)>,
        codes: impl IntoIterator<Item = (B256, Bytes)>,
    ) {
        let mut tables = self.tables.write().expect("no thread panics while it holds the lock");
        tables.nodes.extend(nodes);
        tables.codes.extend(codes);
    }

    fn tables(&self) -> RwLockReadGuard<'_, Tables> {
        self.tables.read().expect("no thread panics while it holds the lock")
    }
}

impl NodeSource for Store {
    fn node(&self, hash: &B256) -> Option<Bytes> {
        self.tables().nodes.get(hash).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_committed_is_found_by_its_hash_and_nothing_else_is() {
        let store = Store::in_memory();
        let (node, code) = (B256::repeat_byte(1), B256::repeat_byte(2));
        store.commit([(node, Bytes::from("node"))], [(code, Bytes::from("code"))]);
        assert_eq!(store.node(&node), Some(Bytes::from("node")));
        assert_eq!(store.code(&code), Some(Bytes::from("code")));
        assert_eq!(store.node(&code), None);
        assert_eq!(store.code(&node), None);
    }
}
