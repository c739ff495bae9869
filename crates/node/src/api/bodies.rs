//! `engine_getPayloadBodies`.

use std::sync::Arc;

use alloy_primitives::{B256, Bytes};
use alloy_rpc_types_engine::{ExecutionPayloadBodyV1, ExecutionPayloadBodyV2};
use engine::BlockRecord;
use engine_api::json::{FixedData, Quantity};
use execution::SealedBlock;
use rpc::{Code, Error, Json, Params};

use super::{Api, refusal};
use crate::limits::{BODIES, BODIES_BYTES};

/// `engine_getPayloadBodiesByHash`.
pub(super) fn by_hash(api: &Api, mut params: Params<'_>, version: u8) -> Result<Json, Error> {
    let hashes: Vec<FixedData<32>> = params.list("blockHashes", BODIES as usize)?;
    params.end()?;
    let hashes: Vec<_> = hashes.into_iter().map(B256::from).collect();
    of_records(&blocks_by_hash(api, &hashes, BODIES, |_| true)?, version)
}

/// At most so many valid blocks that are wanted, of any branch, each as far as it is known. It
/// refuses more bytes of them than one answer may have.
pub(crate) fn blocks_by_hash(
    api: &Api,
    hashes: &[B256],
    most: u64,
    is_wanted: impl Fn(&BlockRecord) -> bool,
) -> Result<Vec<Option<Arc<BlockRecord>>>, Error> {
    check_count(hashes.len() as u64, most)?;
    blocks(api, hashes.iter().copied().map(Some), is_wanted)
}

/// `engine_getPayloadBodiesByRange`: of the canonical chain, up to its head.
pub(super) fn by_range(api: &Api, mut params: Params<'_>, version: u8) -> Result<Json, Error> {
    let Quantity(start) = params.next("start")?;
    let Quantity(count) = params.next("count")?;
    params.end()?;
    of_records(&blocks_by_range(api, start, count, BODIES, |_| true)?, version)
}

/// The same of the canonical chain, up to its head; `None` is one below its first.
pub(crate) fn blocks_by_range(
    api: &Api,
    start: u64,
    count: u64,
    most: u64,
    is_wanted: impl Fn(&BlockRecord) -> bool,
) -> Result<Vec<Option<Arc<BlockRecord>>>, Error> {
    check_range(start, count, most)?;
    let end = start.saturating_add(count);
    let hashes = api.engine.canonical_range(start, end).map_err(refusal)?;
    blocks(api, hashes, is_wanted)
}

fn blocks(
    api: &Api,
    hashes: impl IntoIterator<Item = Option<B256>>,
    is_wanted: impl Fn(&BlockRecord) -> bool,
) -> Result<Vec<Option<Arc<BlockRecord>>>, Error> {
    let mut bytes = 0;
    let mut block = |hash: Option<B256>| {
        let record = hash.map(|hash| api.block(hash)).transpose()?.flatten();
        let record = record.filter(|record| record.has_body() && is_wanted(record));
        if let Some(record) = &record {
            let list = record.block_access_list.as_ref();
            bytes += record.block.rlp_bytes() + list.map_or(0, |list| list.len());
        }
        check_bytes(bytes, BODIES_BYTES)?;
        Ok(record)
    };
    hashes.into_iter().map(&mut block).collect()
}

/// Refuses more bodies than one answer may have.
pub(crate) fn check_count(count: u64, most: u64) -> Result<(), Error> {
    if count <= most {
        return Ok(());
    }
    let detail = format!("{count} bodies asked for, at most {most} are allowed");
    Err(Error::new(Code::TooLargeRequest, detail))
}

/// Refuses a range that begins with the first block, is empty, or is too long.
pub(crate) fn check_range(start: u64, count: u64, most: u64) -> Result<(), Error> {
    if start == 0 || count == 0 {
        return Err(Error::invalid_params("start and count are at least 1"));
    }
    check_count(count, most)
}

/// Refuses more bytes of bodies than one answer may have.
pub(crate) fn check_bytes(bytes: usize, most: usize) -> Result<(), Error> {
    if bytes <= most {
        return Ok(());
    }
    let detail = format!("over {most} bytes of bodies, the most of one answer");
    Err(Error::new(Code::TooLargeRequest, detail))
}

fn of_records(records: &[Option<Arc<BlockRecord>>], version: u8) -> Result<Json, Error> {
    let known = records.iter().map(|record| {
        let record = record.as_ref()?;
        Some((&record.block, record.block_access_list.clone()))
    });
    bodies(known, version)
}

/// The list of `ExecutionPayloadBodyV1` or `V2`, with `null` for each block that is not known.
pub(crate) fn bodies<'a>(
    blocks: impl Iterator<Item = Option<(&'a SealedBlock, Option<Bytes>)>>,
    version: u8,
) -> Result<Json, Error> {
    let body = |(block, list): (&SealedBlock, Option<Bytes>)| {
        let body = &block.body;
        ExecutionPayloadBodyV2::new(body.withdrawals.clone(), &body.transactions, list)
    };
    let bodies = blocks.map(|known| known.map(body));
    match version {
        1 => {
            let bodies = bodies.map(|body| body.map(ExecutionPayloadBodyV1::from));
            Json::of(&bodies.collect::<Vec<_>>())
        }
        _ => Json::of(&bodies.collect::<Vec<_>>()),
    }
}
