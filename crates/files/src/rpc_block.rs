//! Blocks out of the answers of JSON-RPC servers, checked against what their headers commit to.

use alloy_consensus::Block;
use alloy_primitives::{Bytes, keccak256};
use engine_api::json::{List, Object};
use engine_api::limits::{BODIES, JSON_WITHDRAWALS};
use execution::{SealedBlock, Transaction};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::json;
use serde_json::value::RawValue;

use crate::archive::check_roots;
use crate::error::{AnswerError, quote};
use crate::json::{parse, parse_object};

/// A block as `eth_getBlockByHash` answers it, with whole transactions.
pub(super) type RpcBlock =
    alloy_rpc_types_eth::Block<alloy_rpc_types_eth::Transaction<Transaction>>;

/// Reads the block in an answer of `eth_getBlockByHash` or `eth_getBlockByNumber` that was asked
/// for with whole transactions; `None` if the server has no such block.
///
/// The header's fields give the hash that the answer names, and the header has the roots of the
/// transactions and withdrawals. Fields that the header does not commit to, such as the hashes of
/// transactions, are not taken from the answer. Whether it is the block that was asked for, the
/// caller checks.
///
/// # Errors
/// If the answer is no such block, has ommers or hashes instead of transactions, or if its parts
/// do not fit together.
pub fn rpc_block(answer: &str) -> Result<Option<SealedBlock>, AnswerError> {
    if answer.trim() == "null" {
        return Ok(None);
    }
    let block = read(answer.as_bytes()).map_err(AnswerError::content)?;
    seal(block).map(Some).map_err(AnswerError::content)
}

/// Reads the block in an answer of `debug_getRawBlock`; `None` if the server has no such block.
/// The header has the roots of the body.
///
/// # Errors
/// If the answer is no block in RLP, or if its parts do not fit together.
pub fn raw_block(answer: &str) -> Result<Option<SealedBlock>, AnswerError> {
    if answer.trim() == "null" {
        return Ok(None);
    }
    let block = decode_raw(answer.as_bytes()).map_err(AnswerError::content)?;
    let number = block.header.number;
    check_roots(&block.header, &block.body)
        .map_err(|problem| AnswerError::content(format!("block {number}: {problem}")))?;
    Ok(Some(block))
}

/// Asks for the block access list (EIP-7928) of a block, which engine ports alone tell. `call` is
/// given a method and its parameters.
///
/// # Errors
/// Those of `call`; [`AnswerError`] if the server lacks the list, or gives one with another hash
/// than the block's header.
pub fn rpc_access_list<E: From<AnswerError>>(
    block: &SealedBlock,
    mut call: impl FnMut(&str, &str) -> Result<Box<RawValue>, E>,
) -> Result<Option<Bytes>, E> {
    const METHOD: &str = "engine_getPayloadBodiesByHashV2";
    let Some(expected) = block.header.block_access_list_hash else { return Ok(None) };
    let answer = call(METHOD, &json!([[block.hash()]]).to_string())?;
    let lists = body_access_lists(answer.get()).map_err(|problem| problem.of(METHOD))?;
    let list = lists.into_iter().flatten().next();
    let list =
        list.ok_or_else(|| AnswerError::content("the block access list is not kept there"))?;
    if keccak256(&list) != expected {
        let problem = format!("{METHOD} gives another block access list");
        return Err(AnswerError::content(problem).into());
    }
    Ok(Some(list))
}

/// Reads the block access lists in an answer of `engine_getPayloadBodiesByHashV2`, of which nothing
/// is checked; `None` for a block of which the server has none.
///
/// # Errors
/// If the answer is no list of bodies.
pub fn body_access_lists(answer: &str) -> Result<Vec<Option<Bytes>>, AnswerError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Body {
        block_access_list: Option<Bytes>,
    }
    let bodies: List<Option<Body>, BODIES> =
        parse(answer.as_bytes()).map_err(AnswerError::content)?;
    Ok(bodies.0.into_iter().map(|body| body?.block_access_list).collect())
}

/// The members of a block whose types do not say that they are objects.
#[derive(Deserialize)]
struct BlockMembers {
    #[serde(rename = "withdrawals")]
    _withdrawals: Option<List<Object<IgnoredAny>, JSON_WITHDRAWALS>>,
}

/// A block as it is in JSON, of which nothing is checked.
pub(super) fn read(text: &[u8]) -> Result<RpcBlock, String> {
    // A withdrawal alone of their types would be read from an array, too.
    let BlockMembers { .. } = parse_object(text)?;
    parse(text)
}

/// The block, if its hash and roots are those of its content.
pub(super) fn seal(block: RpcBlock) -> Result<SealedBlock, String> {
    let number = block.header.inner.number;
    if !block.uncles.is_empty() {
        return Err(format!(
            "block {number}: of its {} ommers only the hashes are here; its RLP has all",
            block.uncles.len()
        ));
    }
    if !block.transactions.is_full() && !block.transactions.is_empty() {
        return Err(format!(
            "block {number}: of its transactions only the hashes are here; ask for whole ones"
        ));
    }
    let expected = block.header.hash;
    let block: Block<Transaction> =
        block.map_transactions(|transaction| transaction.into_inner()).into_consensus();
    // The transactions hold the hashes that the answer gives them; those of their content are
    // found when they are decoded.
    let block = execution::decode_block(&alloy_rlp::encode(&block))
        .map_err(|fault| format!("block {number}: {fault}"))?;
    if block.hash() != expected {
        return Err(format!("block {number}: hash {expected}, its fields give {}", block.hash()));
    }
    check_roots(&block.header, &block.body)
        .map_err(|problem| format!("block {number}: {problem}"))?;
    Ok(block)
}

/// A block as its RLP is in JSON, of which no root is checked.
pub(super) fn decode_raw(text: &[u8]) -> Result<SealedBlock, String> {
    let rlp: Bytes = parse(text)?;
    decode(&rlp)
}

/// A block as RLP, of which no root is checked.
pub(super) fn decode(rlp: &[u8]) -> Result<SealedBlock, String> {
    execution::decode_block(rlp).map_err(quote)
}
