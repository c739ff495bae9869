use std::collections::HashMap;

use alloy_primitives::B256;

use crate::sidecar::{PooledBlob, Sidecar, memory_bytes};

/// The sidecars of transactions in the pool, and of those in blocks that are not finalized: a
/// reorganisation may bring these back, and a consensus client may ask for them.
#[derive(Debug, Default)]
pub(crate) struct Sidecars {
    held: HashMap<B256, Held>,
    bytes: usize,
}

#[derive(Debug)]
struct Held {
    sidecar: Sidecar,
    /// The number of a block at or after the one that has the transaction, if one has it.
    included: Option<u64>,
}

impl Sidecars {
    /// Bytes of memory of all.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Holds the sidecar of a transaction in the pool.
    pub(crate) fn put(&mut self, hash: B256, sidecar: Sidecar) {
        self.hold(hash, Held { sidecar, included: None });
    }

    /// Holds that of a transaction that is in the block with this number, or in one before.
    pub(crate) fn include(&mut self, hash: B256, sidecar: Sidecar, number: u64) {
        self.hold(hash, Held { sidecar, included: Some(number) });
    }

    fn hold(&mut self, hash: B256, held: Held) {
        self.take(&hash);
        self.bytes += memory_bytes(&held.sidecar);
        self.held.insert(hash, held);
    }

    /// Takes the sidecar of a transaction.
    pub(crate) fn take(&mut self, hash: &B256) -> Option<Sidecar> {
        let held = self.held.remove(hash)?;
        self.bytes -= memory_bytes(&held.sidecar);
        Some(held.sidecar)
    }

    /// The sidecar of a transaction.
    pub(crate) fn of(&self, hash: &B256) -> Option<Sidecar> {
        Some(self.held.get(hash)?.sidecar.clone())
    }

    /// Forgets those of blocks up to a finalized one.
    pub(crate) fn finalize(&mut self, number: u64) {
        let final_ones =
            self.held.iter().filter(|(_, it)| it.included.is_some_and(|at| at <= number));
        let final_ones: Vec<_> = final_ones.map(|(hash, _)| *hash).collect();
        final_ones.iter().for_each(|hash| _ = self.take(hash));
    }

    /// Forgets those of the oldest blocks, while all have more than so many bytes.
    pub(crate) fn forget_included(&mut self, most_bytes: usize) {
        while self.bytes > most_bytes {
            let included = self.held.iter().filter_map(|(hash, it)| Some((it.included?, *hash)));
            let Some((_, oldest)) = included.min() else { return };
            self.take(&oldest);
        }
    }

    /// The blobs with these versioned hashes.
    pub(crate) fn blobs(&self, hashes: &[B256]) -> Vec<Option<PooledBlob>> {
        let mut wanted: HashMap<B256, Option<PooledBlob>> =
            hashes.iter().map(|hash| (*hash, None)).collect();
        for Held { sidecar, .. } in self.held.values() {
            for (index, hash) in sidecar.versioned_hashes().enumerate() {
                if let Some(found) = wanted.get_mut(&hash) {
                    *found = Some(PooledBlob { sidecar: sidecar.clone(), index });
                }
            }
        }
        hashes.iter().map(|hash| wanted[hash].clone()).collect()
    }
}
