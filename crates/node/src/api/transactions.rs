//! Transactions by their place in a block, and their receipts.

use std::sync::Arc;

use alloy_consensus::Transaction as _;
use alloy_consensus::transaction::{Recovered, TransactionInfo};
use alloy_primitives::{Address, B256, U64};
use alloy_rpc_types_eth::{Log, Transaction, TransactionReceipt};
use engine::BlockRecord;
use engine_api::json::{FixedData, Quantity};
use execution::{ChainSpec, SealedBlock};
use rpc::{Code, Error, Json, Params, Pieces};

use super::blocks::{BlockId, NumberOrTag};
use super::{Api, refusal};
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
    Json::of(&found.map(|(record, index)| {
        let before = Before::of(&record.receipts[..index]);
        shown_receipt(&record, index, before, blob_fee(api.engine.chain(), &record))
    }))
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

/// The receipts are rendered one by one: all logs of a block may have 70 MB as JSON, and more as
/// values.
fn block_receipts(chain: &ChainSpec, record: &BlockRecord) -> Result<Json, Error> {
    let blob_fee = blob_fee(chain, record);
    let mut before = Before::default();
    let mut shown = Pieces::from(vec![b'[']);
    for (index, receipt) in record.receipts.iter().enumerate() {
        let receipt_shown = shown_receipt(record, index, before, blob_fee);
        let mut text = if index == 0 { Vec::new() } else { vec![b','] };
        serde_json::to_writer(&mut text, &receipt_shown)
            .map_err(|fault| Error::new(Code::Internal, fault))?;
        shown.push(text);
        before = before.and(receipt);
    }
    shown.push(vec![b']']);
    Ok(shown.into())
}

fn blob_fee(chain: &ChainSpec, record: &BlockRecord) -> Option<u128> {
    let header = &record.block.header;
    header.blob_fee(chain.blob_params(header.timestamp)?)
}

/// The sums of the receipts before one.
#[derive(Clone, Copy, Default)]
struct Before {
    gas: u64,
    logs: u64,
}

impl Before {
    fn of(receipts: &[execution::Receipt]) -> Self {
        receipts.iter().fold(Self::default(), Self::and)
    }

    fn and(self, receipt: &execution::Receipt) -> Self {
        let logs = self.logs + receipt.logs().len() as u64;
        Self { gas: receipt.cumulative_gas_used(), logs }
    }
}

/// The receipt of the block's transaction at `index`.
fn shown_receipt(
    record: &BlockRecord,
    index: usize,
    before: Before,
    blob_fee: Option<u128>,
) -> TransactionReceipt<alloy_consensus::ReceiptEnvelope<Log>> {
    let BlockRecord { block, senders, receipts, .. } = record;
    let (hash, header) = (block.hash(), &block.header);
    let (transaction, sender) = (&block.body.transactions[index], &senders[index]);
    let receipt = &receipts[index];
    let mut log_index = before.logs;
    let inner = receipt.clone().map_logs(|inner| {
        log_index += 1;
        Log {
            inner,
            block_hash: Some(hash),
            block_number: Some(header.number),
            block_timestamp: Some(header.timestamp),
            transaction_hash: Some(*transaction.hash()),
            transaction_index: Some(index as u64),
            log_index: Some(log_index - 1),
            removed: false,
        }
    });
    let blob_gas_used = transaction.blob_gas_used();
    TransactionReceipt {
        inner,
        transaction_hash: *transaction.hash(),
        transaction_index: Some(index as u64),
        block_hash: Some(hash),
        block_number: Some(header.number),
        gas_used: receipt.cumulative_gas_used() - before.gas,
        effective_gas_price: transaction.effective_gas_price(header.base_fee_per_gas),
        blob_gas_used,
        blob_gas_price: blob_gas_used.and(blob_fee),
        from: *sender,
        to: transaction.to(),
        contract_address: transaction.is_create().then(|| sender.create(transaction.nonce())),
    }
}
