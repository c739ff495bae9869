use std::collections::BTreeMap;
use std::sync::Arc;

use alloy_primitives::B256;
use engine::StateHandle;
use pool::Pooled;

use crate::clock::Clock;
use crate::limits::SNAPSHOTS;

/// The number of a snapshot.
pub type SnapshotId = u64;

/// A place to come back to.
#[derive(Debug, Clone)]
pub(crate) struct Snapshot {
    pub(crate) head: B256,
    pub(crate) number: u64,
    pub(crate) state: StateHandle,
    pub(crate) clock: Clock,
    /// The transactions that waited.
    pub(crate) waiting: Vec<Arc<Pooled>>,
}

/// The snapshots that were made and not reverted to.
#[derive(Debug, Default)]
pub(crate) struct Snapshots {
    next: SnapshotId,
    kept: BTreeMap<SnapshotId, Snapshot>,
}

impl Snapshots {
    pub(crate) fn add(&mut self, snapshot: Snapshot) -> SnapshotId {
        let id = self.next;
        self.next += 1;
        self.kept.insert(id, snapshot);
        while self.kept.len() > SNAPSHOTS {
            self.kept.pop_first();
        }
        id
    }

    pub(crate) fn get(&self, id: SnapshotId) -> Option<&Snapshot> {
        self.kept.get(&id)
    }

    /// Each, with the number and the hash of its head.
    pub(crate) fn all(&self) -> Vec<(SnapshotId, u64, B256)> {
        self.kept.iter().map(|(id, kept)| (*id, kept.number, kept.head)).collect()
    }

    /// Forgets a snapshot and the later ones.
    pub(crate) fn end(&mut self, id: SnapshotId) {
        drop(self.kept.split_off(&id));
    }
}
