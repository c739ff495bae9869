//! Uncles: headers beside the chain that blocks of proof of work name. Later blocks have none.

use std::sync::Arc;

use alloy_primitives::{B256, U64};
use alloy_rpc_types_eth::{Block, Transaction};
use engine::BlockRecord;
use engine_api::json::{FixedData, Quantity};
use rpc::{Error, Json, Params};

use super::Api;
use super::blocks::NumberOrTag;
use super::transactions::{hash_and_index, number_and_index, whole};

/// `eth_getUncleCountByBlockHash`: of a block of any branch.
pub(super) fn count_by_hash(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let hash: FixedData<32> = params.next("block hash")?;
    params.end()?;
    count(api.block(B256::from(hash))?)
}

/// `eth_getUncleCountByBlockNumber`.
pub(super) fn count_by_number(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let id: NumberOrTag = params.next("block")?;
    params.end()?;
    count(api.block_by_number(id)?)
}

/// `eth_getUncleByBlockHashAndIndex`: in a block of any branch.
pub(super) fn by_hash_and_index(api: &Api, params: Params<'_>) -> Result<Json, Error> {
    let (record, index) = hash_and_index(api, params, "uncle index")?;
    at_index(record, index)
}

/// `eth_getUncleByBlockNumberAndIndex`.
pub(super) fn by_number_and_index(api: &Api, params: Params<'_>) -> Result<Json, Error> {
    let (record, index) = number_and_index(api, params, "uncle index")?;
    at_index(record, index)
}

fn count(record: Option<Arc<BlockRecord>>) -> Result<Json, Error> {
    Json::of(&whole(record)?.map(|record| U64::from(record.block.body.ommers.len())))
}

/// The uncle's header as a block without a list of transactions, as in geth.
fn at_index(record: Option<Arc<BlockRecord>>, index: Quantity) -> Result<Json, Error> {
    let index = usize::try_from(index.0).unwrap_or(usize::MAX);
    let uncle = whole(record)?.and_then(|record| record.block.body.ommers.get(index).cloned());
    Json::of(&uncle.map(Block::<Transaction>::uncle_from_header))
}
