//! Uncles: headers beside the chain that blocks of proof of work name. Later blocks have none.

use alloy_primitives::U64;
use alloy_rpc_types_eth::{Block, Transaction};
use rpc::{Error, Json, Params};

use super::Api;
use super::blocks::AnyBlock;
use super::transactions::{hash_and_index, named_by_hash, named_by_number, number_and_index};

/// `eth_getUncleCountByBlockHash`: of a block of any branch.
pub(super) fn count_by_hash(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    count(named_by_hash(api, &mut params)?, params)
}

/// `eth_getUncleCountByBlockNumber`: of a block of the chain, or of the pending one.
pub(super) fn count_by_number(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    count(named_by_number(api, &mut params)?, params)
}

/// `eth_getUncleByBlockHashAndIndex`: in a block of any branch.
pub(super) fn by_hash_and_index(api: &Api, params: Params<'_>) -> Result<Json, Error> {
    let (block, index) = hash_and_index(api, params, "uncle index")?;
    at_index(block.as_ref(), index)
}

/// `eth_getUncleByBlockNumberAndIndex`.
pub(super) fn by_number_and_index(api: &Api, params: Params<'_>) -> Result<Json, Error> {
    let (block, index) = number_and_index(api, params, "uncle index")?;
    at_index(block.as_ref(), index)
}

fn count(block: Option<AnyBlock>, params: Params<'_>) -> Result<Json, Error> {
    params.end()?;
    let count = |block: &AnyBlock| U64::from(block.contents().block.body.ommers.len());
    Json::of(&block.as_ref().map(count))
}

/// The uncle's header as a block without a list of transactions, as in geth.
fn at_index(block: Option<&AnyBlock>, index: usize) -> Result<Json, Error> {
    let uncles = block.map(|block| &block.contents().block.body.ommers);
    let uncle = uncles.and_then(|uncles| uncles.get(index).cloned());
    Json::of(&uncle.map(Block::<Transaction>::uncle_from_header))
}
