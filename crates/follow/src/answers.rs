//! Headers, blocks and access lists in the answers of upstreams.

use alloy_consensus::Header;
use alloy_primitives::{B256, Bytes, keccak256};
use execution::{AccessList, SealedBlock, decode_block, validate_body_roots};
use rpc::{ClientError, read_json};

use crate::error::Error;
use crate::exchange::Exchange;

/// The header in an answer with a block; `None` where that is null.
pub(crate) fn read_header(method: &'static str, result: &str) -> Result<Option<Header>, Error> {
    let read = read_json::<Option<alloy_rpc_types_eth::Header>>(result);
    let header = read.map_err(|fault| Error::Unreadable { method, reason: fault.to_string() })?;
    Ok(header.map(|header| header.inner))
}

/// The blocks with these hashes, up to the first that is missing or wrong; an error where that is
/// the first of all.
pub(crate) fn read_blocks(
    form: BlockMethod,
    exchange: &Exchange,
    hashes: &[B256],
) -> Result<Vec<SealedBlock>, Error> {
    let method = form.name();
    let results = exchange.results().map_err(|error| Error::Unanswered { method, error })?;
    let mut blocks = Vec::with_capacity(results.len());
    for (result, hash) in results.into_iter().zip(hashes) {
        match read_block(form, result, *hash) {
            Ok(block) => blocks.push(block),
            Err(error) if blocks.is_empty() => return Err(error),
            // It is told of when it is the first one of a request.
            Err(_) => break,
        }
    }
    Ok(blocks)
}

/// The forms in which a whole block is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockMethod {
    /// As RLP.
    Raw,
    /// As JSON, with whole transactions.
    Json,
}

impl BlockMethod {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Raw => "debug_getRawBlock",
            Self::Json => "eth_getBlockByHash",
        }
    }
}

/// The block with this hash, whose body has the roots of its header.
fn read_block(
    form: BlockMethod,
    result: Result<&str, ClientError>,
    hash: B256,
) -> Result<SealedBlock, Error> {
    let method = form.name();
    let result = result.map_err(|error| Error::Unanswered { method, error })?;
    let lie = |reason: String| Error::Lie { method, hash, reason };
    let unreadable = |reason: String| Error::Unreadable { method, reason };
    let block = match form {
        BlockMethod::Raw => {
            let rlp = read_json::<Option<Bytes>>(result);
            let rlp = rlp.map_err(|fault| unreadable(fault.to_string()))?;
            let rlp = rlp.ok_or(Error::Absent(hash))?;
            decode_block(&rlp).map_err(|fault| lie(fault.to_string()))?
        }
        BlockMethod::Json => {
            // Its body has the roots of its header, or it is no block there.
            let block = files::rpc_block(result).map_err(|fault| unreadable(fault.to_string()))?;
            block.ok_or(Error::Absent(hash))?
        }
    };
    if block.hash() != hash {
        return Err(lie(format!("its header hashes to {}", block.hash())));
    }
    validate_body_roots(&block).map_err(|fault| lie(fault.to_string()))?;
    Ok(block)
}

/// The methods that give block access lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListMethod {
    /// For one block, as RLP.
    Raw,
    /// For many blocks, within their bodies: of engine ports, and of sockets with all methods.
    Bodies,
}

impl ListMethod {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Raw => "debug_getRawBlockAccessList",
            Self::Bodies => "engine_getPayloadBodiesByHashV2",
        }
    }
}

/// A block whose access list is asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ListWanted {
    pub(crate) block: B256,
    /// The hash of its list.
    pub(crate) list: B256,
    pub(crate) gas_limit: u64,
}

/// The access lists in an answer, one for each of these blocks or of the first ones, `None` where
/// the upstream has none; up to the first that is wrong, with the reason.
pub(crate) fn read_lists(
    method: ListMethod,
    exchange: &Exchange,
    wanted: &[ListWanted],
) -> (Vec<Option<AccessList>>, Result<(), Error>) {
    let mut lists = Vec::with_capacity(wanted.len());
    let given = match given_lists(method, exchange) {
        Ok(given) => given,
        Err(error) => return (lists, Err(error)),
    };
    for (given, wanted) in given.into_iter().zip(wanted) {
        match given.and_then(|rlp| rlp.map(|rlp| read_list(method, &rlp, *wanted)).transpose()) {
            Ok(list) => lists.push(list.flatten()),
            Err(error) => return (lists, Err(error)),
        }
    }
    (lists, Ok(()))
}

/// The lists as they are given. That a block's list is refused is as good as that there is none.
fn given_lists(
    method: ListMethod,
    exchange: &Exchange,
) -> Result<Vec<Result<Option<Bytes>, Error>>, Error> {
    let name = method.name();
    let unanswered = |error| Error::Unanswered { method: name, error };
    let unreadable = |reason| Error::Unreadable { method: name, reason };
    if method == ListMethod::Bodies {
        let bodies = exchange.result().map_err(unanswered)?;
        let lists = files::body_access_lists(bodies).map_err(|e| unreadable(e.to_string()))?;
        return Ok(lists.into_iter().map(Ok).collect());
    }
    let results = exchange.results().map_err(unanswered)?;
    let list = |result| match result {
        Ok(text) => read_json(text).map_err(|fault| unreadable(fault.to_string())),
        Err(ClientError::Rpc(_)) => Ok(None),
        Err(error) => Err(unanswered(error)),
    };
    Ok(results.into_iter().map(list).collect())
}

/// `None` for a list that no valid block has, though the header has its hash.
fn read_list(
    method: ListMethod,
    rlp: &[u8],
    wanted: ListWanted,
) -> Result<Option<AccessList>, Error> {
    match keccak256(rlp) {
        got if got != wanted.list => {
            Err(Error::FalseList { method: method.name(), hash: wanted.block, got })
        }
        _ => Ok(AccessList::decode(rlp, wanted.gas_limit).ok().flatten()),
    }
}
