//! The blobs of a transaction, their commitments and proofs.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};

use alloy_eips::eip4844::{BYTES_PER_BLOB, Bytes48, kzg_to_versioned_hash};
use alloy_eips::eip7594::{
    BlobTransactionSidecarEip7594, BlobTransactionSidecarVariant, CELLS_PER_EXT_BLOB,
};
use alloy_primitives::B256;
use c_kzg::{Cell, KzgSettings, ethereum_kzg_settings};

use crate::error::Refusal;
use crate::limits::{BLOBS, CONVERSIONS};

/// A sidecar with cell proofs.
pub(crate) type Sidecar = Arc<BlobTransactionSidecarEip7594>;

/// One sidecar with blob proofs is converted at a time.
static CONVERTING: Mutex<()> = Mutex::new(());
/// How many are converted or wait for it.
static WAITING: AtomicUsize = AtomicUsize::new(0);

/// Bytes of memory that a sidecar takes.
pub(crate) fn memory_bytes(sidecar: &BlobTransactionSidecarEip7594) -> usize {
    let points = sidecar.commitments.len() + sidecar.cell_proofs.len();
    sidecar.blobs.len() * BYTES_PER_BLOB + points * size_of::<Bytes48>()
}

/// A blob, as part of the transaction that has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PooledBlob {
    pub(crate) sidecar: Sidecar,
    pub(crate) index: usize,
}

impl PooledBlob {
    /// The blob, 131,072 bytes.
    pub fn blob(&self) -> &[u8] {
        self.sidecar.blobs[self.index].as_slice()
    }

    /// Its commitment.
    pub fn commitment(&self) -> Bytes48 {
        self.sidecar.commitments[self.index]
    }

    /// The proofs of its 128 cells, in their order (EIP-7594).
    pub fn cell_proofs(&self) -> &[Bytes48] {
        &self.sidecar.cell_proofs[self.index * CELLS_PER_EXT_BLOB..][..CELLS_PER_EXT_BLOB]
    }

    /// Computes its cells, 2,048 bytes each, in their order; 5 ms.
    #[expect(clippy::missing_panics_doc, reason = "the blob was verified")]
    pub fn cells(&self) -> Vec<[u8; 2048]> {
        let cells = settings().compute_cells(&blob(self.blob()));
        cells.expect("it was verified").iter().map(Cell::to_bytes).collect()
    }

    /// Computes the proof of the whole blob (EIP-4844), as before Osaka; 40 ms.
    #[expect(clippy::missing_panics_doc, reason = "the blob was verified")]
    pub fn blob_proof(&self) -> Bytes48 {
        let commitment = c_kzg::Bytes48::from(self.sidecar.commitments[self.index].0);
        let proof = settings().compute_blob_kzg_proof(&blob(self.blob()), &commitment);
        Bytes48::from(*proof.expect("it was verified").to_bytes())
    }
}

/// Checks that a sidecar is that of a transaction with these versioned hashes, in the order and
/// with the words of geth (`validateBlobSidecar` of `core/txpool`), but for its proofs.
pub(crate) fn check(
    hashes: &[B256],
    sidecar: &BlobTransactionSidecarVariant,
) -> Result<(), Refusal> {
    let (blobs, commitments) = (sidecar.blobs().len(), sidecar.commitments());
    let wrong = |words: String| Err(Refusal::Sidecar(words));
    if hashes.is_empty() {
        return wrong("blobless blob transaction".into());
    }
    if commitments.len() != hashes.len() {
        let (ours, theirs) = (commitments.len(), hashes.len());
        let words =
            format!("invalid number of {ours} blob commitments compared to {theirs} blob hashes");
        return wrong(words);
    }
    for (index, (hash, commitment)) in hashes.iter().zip(commitments).enumerate() {
        let found = kzg_to_versioned_hash(commitment.as_slice());
        if found != *hash {
            let words =
                format!("blob {index}: computed hash {found} mismatches transaction one {hash}");
            return wrong(words);
        }
    }
    if hashes.len() > BLOBS {
        return Err(Refusal::TooManyBlobs { count: hashes.len(), limit: BLOBS });
    }
    if blobs != commitments.len() {
        let words =
            format!("invalid number of {blobs} blobs compared to {} commitments", hashes.len());
        return wrong(words);
    }
    let (proofs, expected) = match sidecar {
        BlobTransactionSidecarVariant::Eip4844(sidecar) => (sidecar.proofs.len(), blobs),
        BlobTransactionSidecarVariant::Eip7594(sidecar) => {
            (sidecar.cell_proofs.len(), blobs * CELLS_PER_EXT_BLOB)
        }
    };
    if proofs != expected {
        let words = format!(
            "Wrong sidecar format: invalid number of {proofs} blob proofs expected {expected}"
        );
        return wrong(words);
    }
    Ok(())
}

/// Verifies the proofs of a checked sidecar. One with blob proofs gets cell proofs in their place.
pub(crate) fn verify(sidecar: BlobTransactionSidecarVariant) -> Result<Sidecar, Refusal> {
    let wrong = |error: c_kzg::Error| Refusal::Proof(error.to_string());
    match sidecar {
        BlobTransactionSidecarVariant::Eip7594(sidecar) => {
            let (mut cells, mut indices, mut commitments) = (Vec::new(), Vec::new(), Vec::new());
            for (one, commitment) in sidecar.blobs.iter().zip(&sidecar.commitments) {
                let of_blob = settings().compute_cells(&blob(one.as_slice())).map_err(wrong)?;
                cells.extend_from_slice(&of_blob[..]);
                indices.extend(0..CELLS_PER_EXT_BLOB as u64);
                let commitment = c_kzg::Bytes48::from(commitment.0);
                commitments.extend([commitment; CELLS_PER_EXT_BLOB]);
            }
            let proofs: Vec<_> =
                sidecar.cell_proofs.iter().map(|proof| c_kzg::Bytes48::from(proof.0)).collect();
            let settings = settings();
            let verified =
                settings.verify_cell_kzg_proof_batch(&commitments, &indices, &cells, &proofs);
            match verified.map_err(wrong)? {
                true => Ok(Arc::new(sidecar)),
                false => Err(Refusal::Proof("invalid proof".into())),
            }
        }
        BlobTransactionSidecarVariant::Eip4844(sidecar) => {
            let blobs: Vec<_> = sidecar.blobs.iter().map(|one| blob(one.as_slice())).collect();
            let [commitments, proofs] = [&sidecar.commitments, &sidecar.proofs]
                .map(|list| list.iter().map(|it| c_kzg::Bytes48::from(it.0)).collect::<Vec<_>>());
            let settings = settings();
            let verified = settings.verify_blob_kzg_proof_batch(&blobs, &commitments, &proofs);
            if !verified.map_err(wrong)? {
                return Err(Refusal::Proof("invalid proof".into()));
            }
            let cell_proofs = cell_proofs(&blobs)?;
            let (blobs, commitments) = (sidecar.blobs, sidecar.commitments);
            Ok(Arc::new(BlobTransactionSidecarEip7594 { blobs, commitments, cell_proofs }))
        }
    }
}

/// Computes the proofs of the cells of all blobs, a third of a second each.
fn cell_proofs(blobs: &[c_kzg::Blob]) -> Result<Vec<Bytes48>, Refusal> {
    if WAITING.fetch_add(1, Ordering::Relaxed) >= CONVERSIONS {
        WAITING.fetch_sub(1, Ordering::Relaxed);
        return Err(Refusal::Busy);
    }
    let converting = CONVERTING.lock().unwrap_or_else(PoisonError::into_inner);
    let proofs = blobs.iter().map(|blob| settings().compute_cells_and_kzg_proofs(blob));
    let proofs: Result<Vec<_>, _> = proofs.collect();
    drop(converting);
    WAITING.fetch_sub(1, Ordering::Relaxed);
    let proofs = proofs.map_err(|error| Refusal::Proof(error.to_string()))?;
    let proofs = proofs.iter().flat_map(|(_, proofs)| proofs.iter());
    Ok(proofs.map(|proof| Bytes48::from(*proof.to_bytes())).collect())
}

fn blob(bytes: &[u8]) -> c_kzg::Blob {
    c_kzg::Blob::from_bytes(bytes).expect("a blob has its length by its type")
}

/// The points of the ceremony. They are prepared when the first blob comes, in two seconds, since
/// most nodes of developers see none.
fn settings() -> &'static KzgSettings {
    ethereum_kzg_settings(0)
}

/// Prepares the points of the ceremony on a thread of its own, the first time that it is called: on
/// a chain with blobs no transaction waits for them.
pub(crate) fn prepare_settings() {
    static PREPARED: Once = Once::new();
    PREPARED.call_once(|| {
        let prepare = || {
            settings();
        };
        // Without the thread, the first blob prepares them.
        let _ = std::thread::Builder::new().name("kzg".into()).spawn(prepare);
    });
}
