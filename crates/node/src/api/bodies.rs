//! `engine_getPayloadBodies`, and `engine_getBlobs` of a pool that does not exist.

use std::sync::Arc;

use alloy_eips::Encodable2718;
use alloy_hardforks::EthereumHardfork;
use alloy_primitives::B256;
use engine::BlockRecord;
use rpc::{Code, Error, Json, Params, push_hex};

use super::hex::{Fixed, Quantity};
use super::{Api, refusal};
use crate::limits::{BLOB_HASHES, BODIES, BODIES_BYTES};

/// `engine_getPayloadBodiesByHash`.
pub(super) fn by_hash(api: &Api, mut params: Params<'_>, version: u8) -> Result<Json, Error> {
    let hashes: Vec<Fixed<32>> = params.next("blockHashes")?;
    params.end()?;
    let hashes: Vec<_> = hashes.into_iter().map(B256::from).collect();
    bodies(&blocks_by_hash(api, &hashes, BODIES)?, version)
}

/// At most so many valid blocks, of any branch, each as far as it is known.
pub(crate) fn blocks_by_hash(
    api: &Api,
    hashes: &[B256],
    most: u64,
) -> Result<Vec<Option<Arc<BlockRecord>>>, Error> {
    check_count(hashes.len() as u64, most)?;
    hashes.iter().map(|hash| api.block(*hash)).collect()
}

/// `engine_getPayloadBodiesByRange`: of the canonical chain, up to its head.
pub(super) fn by_range(api: &Api, mut params: Params<'_>, version: u8) -> Result<Json, Error> {
    let Quantity(start) = params.next("start")?;
    let Quantity(count) = params.next("count")?;
    params.end()?;
    bodies(&blocks_by_range(api, start, count, BODIES)?, version)
}

/// At most so many blocks of the canonical chain, up to its head; `None` is one below its first.
pub(crate) fn blocks_by_range(
    api: &Api,
    start: u64,
    count: u64,
    most: u64,
) -> Result<Vec<Option<Arc<BlockRecord>>>, Error> {
    if start == 0 || count == 0 {
        return Err(Error::invalid_params("start and count are at least 1"));
    }
    check_count(count, most)?;
    let end = start.saturating_add(count);
    api.engine.canonical_range(start, end).map_err(refusal)
}

fn check_count(count: u64, most: u64) -> Result<(), Error> {
    if count <= most {
        return Ok(());
    }
    let detail = format!("{count} bodies asked for, at most {most} are allowed");
    Err(Error::new(Code::TooLargeRequest, detail))
}

/// Refuses more than one answer may have.
pub(crate) fn check_bytes(blocks: &[Option<Arc<BlockRecord>>]) -> Result<(), Error> {
    let sizes = blocks.iter().flatten().map(|record| {
        record.block.rlp_bytes() + record.block_access_list.as_ref().map_or(0, |list| list.len())
    });
    let bytes: usize = sizes.sum();
    if bytes > BODIES_BYTES {
        let detail = format!("{bytes} bytes of bodies, at most {BODIES_BYTES} in one answer");
        return Err(Error::new(Code::TooLargeRequest, detail));
    }
    Ok(())
}

fn bodies(blocks: &[Option<Arc<BlockRecord>>], version: u8) -> Result<Json, Error> {
    check_bytes(blocks)?;
    let mut out = vec![b'['];
    for (index, record) in blocks.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        match record {
            Some(record) if record.has_body() => push_body(&mut out, record, version),
            _ => out.extend_from_slice(b"null"),
        }
    }
    out.push(b']');
    Ok(out.into())
}

/// `ExecutionPayloadBodyV1` or `V2`.
fn push_body(out: &mut Vec<u8>, record: &BlockRecord, version: u8) {
    out.extend_from_slice(br#"{"transactions":["#);
    let mut raw = Vec::new();
    for (index, transaction) in record.block.body.transactions.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        raw.clear();
        transaction.encode_2718(&mut raw);
        push_hex(out, &raw);
    }
    out.extend_from_slice(br#"],"withdrawals":"#);
    serde_json::to_writer(&mut *out, &record.block.body.withdrawals)
        .expect("numbers and addresses have a JSON form");
    if version >= 2 {
        out.extend_from_slice(br#","blockAccessList":"#);
        match &record.block_access_list {
            Some(list) => push_hex(out, list),
            None => out.extend_from_slice(b"null"),
        }
    }
    out.push(b'}');
}

/// `engine_getBlobs`: the first version has a `null` for each blob, the others are `null`
/// altogether where there is no pool (osaka.md, `engine_getBlobsV2` point 4, `V3` point 5).
pub(super) fn blobs(api: &Api, mut params: Params<'_>, version: u8) -> Result<Json, Error> {
    let hashes: Vec<Fixed<32>> = params.next("versionedHashes")?;
    params.end()?;
    if hashes.len() > BLOB_HASHES {
        let detail = format!("{} blobs asked for, at most {BLOB_HASHES} are allowed", hashes.len());
        return Err(Error::new(Code::TooLargeRequest, detail));
    }
    if version > 1 {
        return Json::of(&());
    }
    let timestamp = api.head()?.block.header.timestamp;
    let fork = api.engine.chain().fork_at(timestamp);
    if fork >= EthereumHardfork::Osaka {
        let detail = format!("the head is in {fork}; this version is for forks before Osaka");
        return Err(Error::new(Code::UnsupportedFork, detail));
    }
    Json::of(&vec![(); hashes.len()])
}
