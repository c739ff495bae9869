//! The block of a payload, checked against the block hash in it.

use alloy_consensus::Transaction as _;
use alloy_eips::eip7685::{EMPTY_REQUESTS_HASH, Requests};
use alloy_primitives::B256;
use alloy_rpc_types_engine::ExecutionPayload;
use execution::{SealedBlock, Transaction};

use crate::FileBlock;

/// The other parameters of a payload, from Cancun on.
#[derive(Debug, Default)]
pub(super) struct PayloadParameters {
    /// The root of the parent beacon block.
    pub(super) beacon_root: Option<B256>,
    /// `None` if they are not given, and so not checked.
    pub(super) versioned_hashes: Option<Vec<B256>>,
    /// `None` before Prague, and if they are left out because there are none.
    pub(super) requests: Option<Requests>,
}

/// The block of a payload, whose hash and versioned hashes must match.
pub(super) fn seal(
    execution: ExecutionPayload,
    beside: PayloadParameters,
) -> Result<FileBlock, String> {
    let PayloadParameters { beacon_root, versioned_hashes, mut requests } = beside;
    let expected = execution.block_hash();
    let number = execution.block_number();
    let access_list = execution.as_v4().map(|payload| payload.block_access_list.clone());
    let mut block = execution
        .try_into_block::<Transaction>()
        .map_err(|error| format!("block {number}: {error}"))?;
    block.header.parent_beacon_block_root = beacon_root;
    block.header.requests_hash = requests.as_ref().map(Requests::requests_hash);
    if requests.is_none() && block.header.hash_slow() != expected {
        block.header.requests_hash = Some(EMPTY_REQUESTS_HASH);
        requests = Some(Requests::default());
    }
    let block = SealedBlock::new(block);
    if block.hash() != expected {
        let got = block.hash();
        let from = match beacon_root {
            None => "the payload gives",
            Some(_) => "the payload, its parentBeaconBlockRoot and its executionRequests give",
        };
        return Err(format!("block {number}: blockHash {expected}, {from} {got}"));
    }
    if let Some(versioned_hashes) = versioned_hashes {
        let transactions = block.body.transactions.iter();
        let own = transactions.flat_map(|tx| tx.blob_versioned_hashes().into_iter().flatten());
        if !own.eq(&versioned_hashes) {
            return Err(format!("block {number}: the transactions have other versioned hashes"));
        }
    }
    Ok(FileBlock { requests, access_list, ..FileBlock::of(block) })
}
