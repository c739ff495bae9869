//! Transactions by their place in a block, and their receipts.

use std::sync::Arc;

use alloy_consensus::transaction::{Recovered, TransactionInfo};
use alloy_primitives::{Address, B256, U64};
use alloy_rpc_types_eth::Transaction;
use engine::BlockRecord;
use engine_api::json::{FixedData, Quantity};
use execution::SealedBlock;
use rpc::{Code, Error, Json, Params};

use super::blocks::{AnyBlock, BlockId, NumberOrTag};
use super::{Api, refusal};
use crate::receipts::{block_receipts, receipt};
use crate::unmined::Unmined;

/// `eth_getTransactionByBlockHashAndIndex`: in a block of any branch.
pub(super) fn by_hash_and_index(api: &Api, params: Params<'_>) -> Result<Json, Error> {
    let (block, index) = hash_and_index(api, params, "transaction index")?;
    at_index(block.as_ref(), index)
}

/// `eth_getTransactionByBlockNumberAndIndex`: in a block of the chain, or in the pending one.
pub(super) fn by_number_and_index(api: &Api, params: Params<'_>) -> Result<Json, Error> {
    let (block, index) = number_and_index(api, params, "transaction index")?;
    at_index(block.as_ref(), index)
}

/// `eth_getTransactionByHash`: in a canonical block, or in the pool.
pub(super) fn by_hash(api: &Api, params: Params<'_>) -> Result<Json, Error> {
    let hash = hash(params)?;
    let found = api.engine.find_transaction(&hash).map_err(refusal);
    match api.waiting(hash) {
        // A node without an index has the pool.
        Some(pooled) if !matches!(found, Ok(Some(_))) => Json::of(&Unmined::new(&pooled)),
        _ => Json::of(&found?.and_then(|(record, index)| transaction(&record, index))),
    }
}

/// `eth_getTransactionReceipt`: of a transaction in a canonical block.
pub(super) fn receipt_by_hash(api: &Api, params: Params<'_>) -> Result<Json, Error> {
    let found = found_by_hash(api, params)?;
    Json::of(&found.map(|(record, index)| receipt(api.engine.chain(), &record, index)))
}

/// The canonical block with the transaction that the only parameter names, and its place there.
fn found_by_hash(
    api: &Api,
    params: Params<'_>,
) -> Result<Option<(Arc<BlockRecord>, usize)>, Error> {
    api.engine.find_transaction(&hash(params)?).map_err(refusal)
}

/// The transaction's hash, which is the only parameter.
pub(super) fn hash(mut params: Params<'_>) -> Result<B256, Error> {
    let hash: FixedData<32> = params.next("transaction hash")?;
    params.end()?;
    Ok(hash.into())
}

/// `eth_getBlockTransactionCountByHash`: of a block of any branch.
pub(super) fn count_by_hash(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    count(named_by_hash(api, &mut params)?, params)
}

/// `eth_getBlockTransactionCountByNumber`: of a block of the chain, or of the pending one.
pub(super) fn count_by_number(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    count(named_by_number(api, &mut params)?, params)
}

/// `eth_getBlockReceipts`: of a block of any branch, or of the pending one.
pub(super) fn receipts(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let id: BlockId = params.next("block")?;
    params.end()?;
    match whole_block(api.any_block(&id)?)? {
        Some(block) => block_receipts(api.engine.chain(), block.contents()),
        None => Json::of(&()),
    }
}

/// The block that a hash names, of any branch, with its body.
pub(super) fn named_by_hash(api: &Api, params: &mut Params<'_>) -> Result<Option<AnyBlock>, Error> {
    let hash: FixedData<32> = params.next("block hash")?;
    whole_block(api.block(B256::from(hash))?.map(AnyBlock::Valid))
}

/// The block of the chain that a number or tag names, or the pending one, with its body.
pub(super) fn named_by_number(
    api: &Api,
    params: &mut Params<'_>,
) -> Result<Option<AnyBlock>, Error> {
    let id: NumberOrTag = params.next("block")?;
    whole_block(api.any_block(&BlockId::Number(id))?)
}

/// The block that a hash names, and a place in it.
pub(super) fn hash_and_index(
    api: &Api,
    mut params: Params<'_>,
    index_name: &str,
) -> Result<(Option<AnyBlock>, usize), Error> {
    let block = named_by_hash(api, &mut params)?;
    Ok((block, index(params, index_name)?))
}

/// The block that a number or tag names, and a place in it.
pub(super) fn number_and_index(
    api: &Api,
    mut params: Params<'_>,
    index_name: &str,
) -> Result<(Option<AnyBlock>, usize), Error> {
    let block = named_by_number(api, &mut params)?;
    Ok((block, index(params, index_name)?))
}

/// The last parameter, a place in a block.
fn index(mut params: Params<'_>, name: &str) -> Result<usize, Error> {
    let Quantity(index) = params.next(name)?;
    params.end()?;
    Ok(usize::try_from(index).unwrap_or(usize::MAX))
}

fn whole_block(block: Option<AnyBlock>) -> Result<Option<AnyBlock>, Error> {
    whole(block.as_ref().and_then(AnyBlock::record).cloned())?;
    Ok(block)
}

/// A block with its body.
pub(super) fn whole(record: Option<Arc<BlockRecord>>) -> Result<Option<Arc<BlockRecord>>, Error> {
    match record {
        Some(record) if !record.has_body() => {
            let number = record.number();
            let detail =
                format!("the chain begins with the state after block {number}, not its body");
            Err(Error::new(Code::PrunedHistory, detail))
        }
        record => Ok(record),
    }
}

fn at_index(block: Option<&AnyBlock>, index: usize) -> Result<Json, Error> {
    let contents = block.map(AnyBlock::contents);
    Json::of(&contents.and_then(|it| shown_transaction(it.block, it.senders, index)))
}

fn count(block: Option<AnyBlock>, params: Params<'_>) -> Result<Json, Error> {
    params.end()?;
    let count = |block: &AnyBlock| U64::from(block.contents().block.body.transactions.len());
    Json::of(&block.as_ref().map(count))
}

/// The block's transaction at `index`, where it has so many.
pub(super) fn transaction(
    record: &BlockRecord,
    index: usize,
) -> Option<Transaction<execution::Transaction>> {
    shown_transaction(&record.block, &record.senders, index)
}

/// A block's transaction at `index`, where it has so many.
pub(super) fn shown_transaction(
    block: &SealedBlock,
    senders: &[Address],
    index: usize,
) -> Option<Transaction<execution::Transaction>> {
    let transaction = block.body.transactions.get(index)?;
    let recovered = Recovered::new_unchecked(transaction.clone(), *senders.get(index)?);
    let info = TransactionInfo {
        hash: None,
        index: Some(index as u64),
        block_hash: Some(block.hash()),
        block_number: Some(block.header.number),
        base_fee: block.header.base_fee_per_gas,
        block_timestamp: Some(block.header.timestamp),
    };
    Some(Transaction::from_transaction(recovered, info))
}
