//! Accounts, storage and code of every block the engine has validated.
//!
//! State is kept as trie nodes by hash, so any number of blocks share it: side chains, reorgs and
//! old roots need no rewinding. [`Store`] keeps it in memory and never drops a node; what the disk
//! takes over is behind its four functions.

use alloy_primitives::map::B256Map;
use alloy_primitives::{B256, Bytes};
use std::sync::{RwLock, RwLockReadGuard};
use trie::NodeSource;

/// Trie nodes and codes by their keccak-256 hash, shared by all threads.
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

    /// Opens the store for reading. Commits wait until every snapshot is dropped.
    pub fn snapshot(&self) -> Snapshot<'_> {
        Snapshot(self.tables.read().expect("no thread panics while it holds the lock"))
    }

    /// Adds what a block made. Content is named by its hash, so adding twice changes nothing.
    pub fn commit(
        &self,
        nodes: impl IntoIterator<Item = (B256, Bytes)>,
        codes: impl IntoIterator<Item = (B256, Bytes)>,
    ) {
        let mut tables = self.tables.write().expect("no thread panics while it holds the lock");
        tables.nodes.extend(nodes);
        tables.codes.extend(codes);
    }
}

/// A consistent view of a [`Store`].
#[derive(Debug)]
pub struct Snapshot<'a>(RwLockReadGuard<'a, Tables>);

impl Snapshot<'_> {
    /// The code whose hash is `code_hash`.
    pub fn code(&self, code_hash: &B256) -> Option<Bytes> {
        self.0.codes.get(code_hash).cloned()
    }
}

impl NodeSource for Snapshot<'_> {
    fn node(&self, hash: &B256) -> Option<Bytes> {
        self.0.nodes.get(hash).cloned()
    }
}
