//! From a payload to the block whose hash it names.

use alloy_consensus::Transaction as _;
use alloy_eips::eip7685::{EMPTY_REQUESTS_HASH, Requests};
use alloy_primitives::B256;
use alloy_rpc_types_engine::ExecutionPayload;
use execution::{SealedBlock, Transaction};

use crate::FileBlock;

/// What comes with a payload from Cancun on.
#[derive(Debug, Default)]
pub(super) struct Beside {
    /// The root of the beacon block before the payload's own.
    pub(super) beacon_root: Option<B256>,
    /// `None` where they are not said, and so not checked.
    pub(super) versioned_hashes: Option<Vec<B256>>,
    /// `None` before Prague, and where they are not said because there are none.
    pub(super) requests: Option<Requests>,
}

/// The block that a payload describes; its hash and versioned hashes must be right.
pub(super) fn seal(execution: ExecutionPayload, beside: Beside) -> Result<FileBlock, String> {
    let Beside { beacon_root, versioned_hashes, mut requests } = beside;
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
