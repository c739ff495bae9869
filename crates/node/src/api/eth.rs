//! The chain as applications see it.

use alloy_primitives::{Address, B256, U64, U256};
use alloy_rlp::Encodable;
use alloy_rpc_types_eth::{Block, BlockTransactions, Header, Transaction};
use engine::{BlockRecord, PendingBlock};
use engine_api::json::FixedData;
use execution::SealedBlock;
use rpc::{Code, Error, Json, Params};
use serde_json::{Value, json};

use super::blocks::NumberOrTag;
use super::transactions::shown_transaction;
use super::{Api, refusal};
use crate::feed::sync_status;

/// `eth_blockNumber`.
pub(super) fn block_number(api: &Api, params: Params<'_>) -> Result<Json, Error> {
    params.end()?;
    Json::of(&U64::from(api.head()?.number()))
}

/// `eth_chainId`.
pub(super) fn chain_id(api: &Api, params: Params<'_>) -> Result<Json, Error> {
    params.end()?;
    Json::of(&U64::from(api.engine.chain().chain_id()))
}

/// `eth_syncing`: `false` while the chain is in step with what the consensus client sends.
pub(super) fn syncing(api: &Api, params: Params<'_>) -> Result<Json, Error> {
    params.end()?;
    let Some(progress) = api.engine.progress().map_err(refusal)? else {
        return Json::of(&false);
    };
    let mut status = sync_status(progress);
    if let Some(filling) = api.backfill.as_ref().and_then(|backfill| backfill.progress()) {
        status["stage"] = json!(filling.stage.word());
        status["upstream"] = json!(filling.upstream);
    }
    Json::of(&status)
}

/// `eth_getBlockByHash`: of any branch.
pub(super) fn block_by_hash(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let hash: FixedData<32> = params.next("block hash")?;
    let full: bool = params.next("hydrated transactions")?;
    params.end()?;
    let record = api.block(B256::from(hash))?;
    Json::of(&record.map(|record| block(&record, full)))
}

/// A block with its whole transactions.
pub(super) fn full_block(api: &Api, hash: B256) -> Result<RpcBlock, Error> {
    let record = api.block(hash)?;
    let record = record.ok_or_else(|| refusal(engine::Error::UnknownBlock(hash)))?;
    Ok(block(&record, true))
}

/// `eth_getBlockByNumber`.
pub(super) fn block_by_number(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let id: NumberOrTag = params.next("block")?;
    let full: bool = params.next("hydrated transactions")?;
    params.end()?;
    if id == NumberOrTag::Pending {
        return pending_block(&*api.pending()?, full);
    }
    let record = api.block_by_number(id)?;
    Json::of(&record.map(|record| block(&record, full)))
}

/// A pending block: without what only a block of the chain has, as geth.
fn pending_block(pending: &PendingBlock, full: bool) -> Result<Json, Error> {
    let shown = shown_block(&pending.block, &pending.senders, full);
    let mut shown =
        serde_json::to_value(shown).map_err(|fault| Error::new(Code::Internal, fault))?;
    for name in ["hash", "nonce", "miner"] {
        shown[name] = Value::Null;
    }
    Json::of(&shown)
}

/// `eth_getHeaderByHash`: of any branch.
pub(super) fn header_by_hash(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let hash: FixedData<32> = params.next("block hash")?;
    params.end()?;
    Json::of(&api.block(B256::from(hash))?.map(|record| shown_header(&record, None)))
}

/// `eth_getHeaderByNumber`.
pub(super) fn header_by_number(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let id: NumberOrTag = params.next("block")?;
    params.end()?;
    Json::of(&api.block_by_number(id)?.map(|record| shown_header(&record, None)))
}

fn shown_header(record: &BlockRecord, size: Option<U256>) -> Header {
    header(&record.block, size)
}

fn header(block: &SealedBlock, size: Option<U256>) -> Header {
    Header { hash: block.hash(), inner: block.header.clone(), total_difficulty: None, size }
}

pub(crate) type RpcBlock = Block<Transaction<execution::Transaction>>;

fn block(record: &BlockRecord, full: bool) -> RpcBlock {
    shown_block(&record.block, &record.senders, full)
}

/// A block with its transactions, or with their hashes.
pub(crate) fn shown_block(block: &SealedBlock, senders: &[Address], full: bool) -> RpcBlock {
    let body = &block.body;
    let transactions = if full {
        let full = 0..body.transactions.len();
        let full = full.map_while(|index| shown_transaction(block, senders, index));
        BlockTransactions::Full(full.collect())
    } else {
        BlockTransactions::Hashes(body.transactions.iter().map(|tx| *tx.hash()).collect())
    };
    let header = header(block, Some(U256::from(block.length())));
    let uncles = body.ommers.iter().map(|ommer| ommer.hash_slow()).collect();
    Block { header, uncles, transactions, withdrawals: body.withdrawals.clone() }
}
