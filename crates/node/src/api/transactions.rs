//! Transactions by their place in a block, and their receipts.

use std::sync::Arc;

use alloy_consensus::transaction::{Recovered, TransactionInfo};
use alloy_primitives::{Address, B256, U64};
use alloy_rpc_types_eth::Transaction;
use engine::BlockRecord;
use engine_api::json::{FixedData, Quantity};
use execution::SealedBlock;
use rpc::{Code, Error, Json, Params};

use super::blocks::{BlockId, NumberOrTag};
use super::{Api, refusal};
use crate::receipts::{block_receipts, receipt};
use crate::unmined::Unmined;

/// `eth_getTransactionByBlockHashAndIndex`: in a block of any branch.
pub(super) fn by_hash_and_index(api: &Api, params: Params<'_>) -> Result<Json, Error> {
    let (record, index) = hash_and_index(api, params, "transaction index")?;
    at_index(record, index)
}

/// `eth_getTransactionByBlockNumberAndIndex`.
pub(super) fn by_number_and_index(api: &Api, params: Params<'_>) -> Result<Json, Error> {
    let (record, index) = number_and_index(api, params, "transaction index")?;
    at_index(record, index)
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
    let hash: FixedData<32> = params.next("block hash")?;
    params.end()?;
    count(api.block(B256::from(hash))?)
}

/// `eth_getBlockTransactionCountByNumber`.
pub(super) fn count_by_number(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let id: NumberOrTag = params.next("block")?;
    params.end()?;
    if id == NumberOrTag::Pending {
        return Json::of(&U64::from(api.pending()?.block.body.transactions.len()));
    }
    count(api.block_by_number(id)?)
}

/// `eth_getBlockReceipts`.
pub(super) fn receipts(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let id: BlockId = params.next("block")?;
    params.end()?;
    match whole(api.block_by_id(&id)?)? {
        Some(record) => block_receipts(api.engine.chain(), &record),
        None => Json::of(&()),
    }
}

/// The block that a hash names, of any branch, and a place in it.
pub(super) fn hash_and_index(
    api: &Api,
    mut params: Params<'_>,
    index_name: &str,
) -> Result<(Option<Arc<BlockRecord>>, Quantity), Error> {
    let hash: FixedData<32> = params.next("block hash")?;
    let index = params.next(index_name)?;
    params.end()?;
    Ok((api.block(B256::from(hash))?, index))
}

/// The canonical block that a number or tag names, and a place in it.
pub(super) fn number_and_index(
    api: &Api,
    mut params: Params<'_>,
    index_name: &str,
) -> Result<(Option<Arc<BlockRecord>>, Quantity), Error> {
    let id: NumberOrTag = params.next("block")?;
    let index = params.next(index_name)?;
    params.end()?;
    Ok((api.block_by_number(id)?, index))
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

fn at_index(record: Option<Arc<BlockRecord>>, index: Quantity) -> Result<Json, Error> {
    let index = usize::try_from(index.0).unwrap_or(usize::MAX);
    Json::of(&whole(record)?.and_then(|record| transaction(&record, index)))
}

fn count(record: Option<Arc<BlockRecord>>) -> Result<Json, Error> {
    Json::of(&whole(record)?.map(|record| U64::from(record.block.body.transactions.len())))
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
