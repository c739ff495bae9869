//! `debug_getRaw*`: what is stored, as it is encoded.

use std::sync::Arc;

use alloy_eips::eip2718::Encodable2718;
use alloy_primitives::Bytes;
use engine::BlockRecord;
use execution::SealedBlock;
use rpc::{Code, Error, Json, Params, Pieces};

use super::blocks::{AnyBlock, BlockId};
use super::transactions::{hash, hash_and_index, number_and_index, whole};
use super::{Api, refusal};

/// `debug_getRawHeader`: RLP.
pub(super) fn header(api: &Api, params: Params<'_>) -> Result<Json, Error> {
    let record = named(api, params)?;
    Ok(data(alloy_rlp::encode(&record.block.header)))
}

/// `debug_getRawBlock`: RLP of header and body.
pub(super) fn block(api: &Api, params: Params<'_>) -> Result<Json, Error> {
    let record = whole_block(api, params)?;
    Ok(data(alloy_rlp::encode(&*record.block)))
}

/// `debug_getRawReceipts`: each as in the receipts trie.
pub(super) fn receipts(api: &Api, params: Params<'_>) -> Result<Json, Error> {
    let record = whole_block(api, params)?;
    let mut list = Pieces::default();
    for (index, receipt) in record.receipts.iter().enumerate() {
        list.push(if index == 0 { &b"[\"0x"[..] } else { &b"\",\"0x"[..] });
        list.push_hex(receipt.encoded_2718());
    }
    list.push(if record.receipts.is_empty() { &b"[]"[..] } else { &b"\"]"[..] });
    Ok(list.into())
}

/// `debug_getRawTransaction` and `eth_getRawTransactionByHash`: EIP-2718, of a canonical block or
/// of the pool; nothing where there is none, as geth.
pub(super) fn transaction(api: &Api, params: Params<'_>) -> Result<Json, Error> {
    let hash = hash(params)?;
    let found = api.engine.find_transaction(&hash).map_err(refusal);
    if let Some(pooled) = api.waiting(hash).filter(|_| !matches!(found, Ok(Some(_)))) {
        return Ok(data(pooled.transaction().encoded_2718()));
    }
    let transaction = found?.and_then(|(record, index)| encoded(&record.block, index));
    Ok(data(transaction.unwrap_or_default()))
}

/// `eth_getRawTransactionByBlockHashAndIndex`: in a block of any branch.
pub(super) fn by_hash_and_index(api: &Api, params: Params<'_>) -> Result<Json, Error> {
    let (block, index) = hash_and_index(api, params, "transaction index")?;
    Ok(at_index(block.as_ref(), index))
}

/// `eth_getRawTransactionByBlockNumberAndIndex`: in a block of the chain, or in the pending one.
pub(super) fn by_number_and_index(api: &Api, params: Params<'_>) -> Result<Json, Error> {
    let (block, index) = number_and_index(api, params, "transaction index")?;
    Ok(at_index(block.as_ref(), index))
}

fn at_index(block: Option<&AnyBlock>, index: usize) -> Json {
    let transaction = block.and_then(|block| encoded(block.contents().block, index));
    data(transaction.unwrap_or_default())
}

fn encoded(block: &SealedBlock, index: usize) -> Option<Vec<u8>> {
    block.body.transactions.get(index).map(Encodable2718::encoded_2718)
}

fn whole_block(api: &Api, params: Params<'_>) -> Result<Arc<BlockRecord>, Error> {
    Ok(whole(Some(named(api, params)?))?.expect("a block stays one"))
}

/// The block that the only parameter names.
fn named(api: &Api, mut params: Params<'_>) -> Result<Arc<BlockRecord>, Error> {
    let id: BlockId = params.next("block")?;
    params.end()?;
    let record = api.block_by_id(&id)?;
    record.ok_or_else(|| Error::new(Code::Server, format_args!("there is no {id}")))
}

/// DATA whose digits are made while they are sent.
pub(super) fn data(bytes: impl Into<Bytes>) -> Json {
    let mut pieces = Pieces::default();
    pieces.push(&b"\"0x"[..]);
    pieces.push_hex(bytes.into().0);
    pieces.push(&b"\""[..]);
    pieces.into()
}
