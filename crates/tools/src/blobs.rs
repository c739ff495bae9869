//! Blobs of files, with their commitments and cell proofs (EIP-7594).

use std::path::PathBuf;

use alloy_eips::eip4844::builder::{SidecarBuilder, SimpleCoder};
use alloy_eips::eip4844::{BYTES_PER_BLOB, Blob, Bytes48};
use alloy_eips::eip7594::{BlobTransactionSidecarEip7594, BlobTransactionSidecarVariant};
use anyhow::anyhow;
use c_kzg::ethereum_kzg_settings;

use crate::error::Misuse;
use crate::limits::BLOBS;

/// The sidecar of the files' content, one after the other. A file of 131,072 bytes whose words are
/// all field elements is a blob as it is; others are put into blobs in the form of alloy's
/// `SimpleCoder`, as Foundry does: 31 bytes a word, after the length.
///
/// # Errors
/// If a file cannot be read, or there are more blobs than a transaction may have.
pub(crate) fn sidecar(files: &[PathBuf]) -> anyhow::Result<BlobTransactionSidecarVariant> {
    let mut blobs = Vec::new();
    for file in files {
        let content = std::fs::read(file)
            .map_err(|error| Misuse::error(format_args!("--blob {}: {error}", file.display())))?;
        if content.len() > BLOBS * BYTES_PER_BLOB {
            return Err(Misuse::error(format_args!(
                "--blob {}: {} bytes do not fit into {BLOBS} blobs",
                file.display(),
                content.len()
            )));
        }
        match is_whole(&content) {
            true => blobs.push(Blob::from_slice(&content)),
            false => blobs.extend(SidecarBuilder::<SimpleCoder>::from_slice(&content).take()),
        }
    }
    if blobs.len() > BLOBS {
        return Err(Misuse::error(format_args!(
            "the files need {} blobs, and a transaction has {BLOBS} at most (EIP-7594)",
            blobs.len()
        )));
    }
    // A table for more speed takes longer to make than it saves for some blobs.
    let settings = ethereum_kzg_settings(0);
    let (mut commitments, mut cell_proofs) = (Vec::new(), Vec::new());
    for blob in &blobs {
        let blob = c_kzg::Blob::from_bytes(&blob[..]).map_err(fault)?;
        let commitment = settings.blob_to_kzg_commitment(&blob).map_err(fault)?;
        commitments.push(Bytes48::from(commitment.to_bytes().into_inner()));
        let (_, proofs) = settings.compute_cells_and_kzg_proofs(&blob).map_err(fault)?;
        let proofs = proofs.iter().map(|proof| Bytes48::from(proof.to_bytes().into_inner()));
        cell_proofs.extend(proofs);
    }
    let sidecar = BlobTransactionSidecarEip7594 { blobs, commitments, cell_proofs };
    Ok(BlobTransactionSidecarVariant::Eip7594(sidecar))
}

fn fault(error: c_kzg::Error) -> anyhow::Error {
    anyhow!("{error:?}").context("the proofs of a blob")
}

/// Whether this is a blob already: of each word of 32 bytes, which is below the field's modulus,
/// the first is below 0x73.
fn is_whole(content: &[u8]) -> bool {
    content.len() == BYTES_PER_BLOB && content.chunks(32).all(|word| word[0] < 0x73)
}
