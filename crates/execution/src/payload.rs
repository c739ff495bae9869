//! Blocks as payloads of the Engine API.

use crate::header::EXTRA_DATA_BYTES;
use crate::{InvalidBlock, SealedBlock, Transaction};
use alloy_consensus::Transaction as _;
use alloy_eips::eip2718::{Decodable2718, Encodable2718};
use alloy_primitives::{B256, Bytes};
use alloy_rpc_types_engine::{ExecutionPayload, ExecutionPayloadSidecar};

/// The block that a payload describes, whatever block hash the payload names.
///
/// # Errors
/// [`InvalidBlock::Payload`] when its fields are no block's, or a transaction is encoded in another
/// way than its own.
pub fn decode_payload(
    payload: ExecutionPayload,
    sidecar: &ExecutionPayloadSidecar,
) -> Result<SealedBlock, InvalidBlock> {
    // alloy's error would repeat all of it, in hex.
    let extra_data_bytes = payload.as_v1().extra_data.len();
    if extra_data_bytes > EXTRA_DATA_BYTES {
        return Err(InvalidBlock::ExtraData(extra_data_bytes));
    }
    let transactions_root = trie::ordered_root(payload.transactions());
    let block = payload
        .into_block_with_sidecar_raw_with_transactions_root(sidecar, transactions_root)
        .map_err(|error| InvalidBlock::Payload(error.to_string()))?;
    let mut encoded = Vec::new();
    let transaction = |bytes: Bytes| {
        let decoded = Transaction::decode_2718_exact(&bytes)
            .map_err(|error| InvalidBlock::Payload(error.to_string()))?;
        // The header has the root of the bytes as they came.
        encoded.clear();
        decoded.encode_2718(&mut encoded);
        if encoded != bytes {
            let reason = format!("transaction {} is encoded in another way", decoded.tx_hash());
            return Err(InvalidBlock::Payload(reason));
        }
        Ok(decoded)
    };
    Ok(SealedBlock::new(block.try_map_transactions(transaction)?))
}

/// Checks the versioned hashes that came with a payload: those of its transactions, in order.
///
/// # Errors
/// [`InvalidBlock::VersionedHashes`].
pub fn validate_versioned_hashes(block: &SealedBlock, given: &[B256]) -> Result<(), InvalidBlock> {
    let transactions = block.body.transactions.iter();
    let expected = transactions.flat_map(|tx| tx.blob_versioned_hashes().into_iter().flatten());
    if expected.eq(given) { Ok(()) } else { Err(InvalidBlock::VersionedHashes) }
}
