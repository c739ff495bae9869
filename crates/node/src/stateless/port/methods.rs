//! The methods of a node without a state.

use std::collections::BTreeMap;
use std::time::Instant;

use alloy_primitives::{B256, U64};
use alloy_rpc_types_engine::ForkchoiceState;
use alloy_rpc_types_eth::Header as RpcHeader;
use engine_api::json::{Data, FixedData, ForkchoiceStateFields, Object, Quantity};
use engine_api::{
    EXCHANGE_CAPABILITIES, EngineMethod, ForkchoiceUpdateResponse, GET_CLIENT_VERSION,
    PayloadStatus, Status,
};
use execution::{InvalidBlock, SealedBlock};
use rpc::{Code, Error, Json, Method, Params, RawValue, quote};
use serde_json::{Value, json};

use super::super::chain::{Anchor, Chain, NoAncestor};
use super::StatelessApi;
use crate::api::bodies::{bodies, check_bytes, check_range};
use crate::api::{
    self, ClientVersion, NumberOrTag, client_name, our_version, payload, shown_block,
};
use crate::console::VERSION;
use crate::limits::{
    BLOB_HASHES, BODIES, CAPABILITIES, STATELESS_BODIES_BYTES, STATELESS_VERDICT_TIME,
};

/// A method, and the function that answers it.
#[derive(Clone, Copy)]
pub(crate) struct StatelessRow {
    pub(crate) method: Method,
    pub(crate) call: Answered,
}

#[derive(Clone, Copy)]
pub(crate) enum Answered {
    Plain(fn(&StatelessApi, Params<'_>) -> Result<Json, Error>),
    Versioned(fn(&StatelessApi, Params<'_>, u8) -> Result<Json, Error>, u8),
}

type Plain = fn(&StatelessApi, Params<'_>) -> Result<Json, Error>;

const fn quick(name: &'static str, call: Plain) -> StatelessRow {
    StatelessRow { method: Method::new(name).quick(), call: Answered::Plain(call) }
}

const fn method(name: &'static str, call: Plain) -> StatelessRow {
    StatelessRow { method: Method::new(name), call: Answered::Plain(call) }
}

/// The methods of the Engine API's port, without those that every port has.
pub(crate) fn engine_rows() -> Vec<StatelessRow> {
    let versions = |method: EngineMethod| method.names().iter().zip(1..);
    let new_payload = versions(EngineMethod::NewPayload).map(|(name, version)| StatelessRow {
        method: Method::new(name),
        call: Answered::Versioned(new_payload, version),
    });
    let choices = versions(EngineMethod::ForkchoiceUpdated).map(|(name, version)| StatelessRow {
        method: Method::new(name).quick().in_order(),
        call: Answered::Versioned(forkchoice, version),
    });
    let by_hash = (1..).zip(["engine_getPayloadBodiesByHashV1", "engine_getPayloadBodiesByHashV2"]);
    let by_range =
        (1..).zip(["engine_getPayloadBodiesByRangeV1", "engine_getPayloadBodiesByRangeV2"]);
    let bodies = |(version, name), call| StatelessRow {
        method: Method::new(name),
        call: Answered::Versioned(call, version),
    };
    let by_hash = by_hash.map(|one| bodies(one, bodies_by_hash));
    let by_range = by_range.map(|one| bodies(one, bodies_by_range));
    let refused = versions(EngineMethod::GetPayload).map(|(name, _)| quick(name, no_payload));
    let others = [
        quick(EXCHANGE_CAPABILITIES, capabilities),
        quick(GET_CLIENT_VERSION, version),
        quick("engine_getSyncStatus", sync_status),
        quick("engine_getBlobsV1", |_, mut params| {
            let hashes: Vec<FixedData<32>> = params.list("versionedHashes", BLOB_HASHES)?;
            params.end()?;
            Json::of(&vec![Value::Null; hashes.len()])
        }),
        quick("engine_getBlobsV2", no_blobs),
        quick("engine_getBlobsV3", no_blobs),
        quick("engine_getBlobsV4", |_, mut params| {
            let _: Vec<FixedData<32>> = params.list("versionedHashes", BLOB_HASHES)?;
            let _: FixedData<16> = params.next("indicesBitarray")?;
            params.end()?;
            Json::of(&Value::Null)
        }),
    ];
    let bodies = by_hash.chain(by_range);
    new_payload.chain(choices).chain(refused).chain(bodies).chain(others).collect()
}

/// The methods of every port.
pub(crate) const ROWS: &[StatelessRow] = &[
    method("deponent_status", status),
    quick("eth_blockNumber", block_number),
    quick("eth_chainId", |api, params| {
        params.end()?;
        Json::of(&U64::from(api.shared.spec.chain_id()))
    }),
    method("eth_getBlockByHash", |api, mut params| {
        let hash: FixedData<32> = params.next("block hash")?;
        whole(api, Some(hash.into()), params)
    }),
    method("eth_getBlockByNumber", |api, mut params| {
        let id: NumberOrTag = params.next("block")?;
        let hash = named(&api.shared.chain(), id)?;
        whole(api, hash, params)
    }),
    method("eth_getHeaderByHash", |api, mut params| {
        let hash: FixedData<32> = params.next("block hash")?;
        header(api, Some(hash.into()), params)
    }),
    method("eth_getHeaderByNumber", |api, mut params| {
        let id: NumberOrTag = params.next("block")?;
        let hash = named(&api.shared.chain(), id)?;
        header(api, hash, params)
    }),
    quick("eth_syncing", syncing),
    quick("net_listening", |_, params| {
        params.end()?;
        Json::of(&false)
    }),
    quick("net_peerCount", |_, params| {
        params.end()?;
        Json::of(&U64::ZERO)
    }),
    quick("net_version", |api, params| {
        params.end()?;
        Json::of(&api.shared.spec.chain_id().to_string())
    }),
    quick("rpc_modules", |api, params| {
        params.end()?;
        let modules = api.methods().filter_map(|name| name.split('_').next());
        Json::of(&modules.map(|module| (module, "1.0")).collect::<BTreeMap<_, _>>())
    }),
    quick("web3_clientVersion", |_, params| {
        params.end()?;
        Json::of(&client_name())
    }),
    method("web3_sha3", |_, mut params| {
        let Data(bytes) = params.next("data")?;
        params.end()?;
        Json::of(&alloy_primitives::keccak256(bytes))
    }),
];

/// `engine_newPayload`.
fn new_payload(api: &StatelessApi, mut params: Params<'_>, version: u8) -> Result<Json, Error> {
    let call = payload::read(&mut params, version)?;
    params.end()?;
    let call = payload::payload(call, version, &api.shared.spec)?;
    let mut status = judge(api, call.execution, &call.sidecar);
    if version == 1 && status.is_misnamed {
        status.status.status = Status::InvalidBlockHash;
    }
    Json::of(&status.status)
}

/// The verdict on a payload.
pub(super) struct Verdict {
    pub(super) status: PayloadStatus,
    /// Whether its fields do not hash to its block hash.
    is_misnamed: bool,
}

/// Has a payload judged.
pub(super) fn judge(
    api: &StatelessApi,
    execution: alloy_rpc_types_engine::ExecutionPayload,
    sidecar: &alloy_rpc_types_engine::ExecutionPayloadSidecar,
) -> Verdict {
    let hash = execution.block_hash();
    match decode(hash, execution, sidecar) {
        Ok(block) => {
            let status = api.shared.judge(block, STATELESS_VERDICT_TIME);
            Verdict { status, is_misnamed: false }
        }
        Err(fault) => {
            let is_misnamed = matches!(fault, InvalidBlock::BlockHash { .. });
            let reason = rpc::shortened(fault);
            tracing::warn!(%hash, reason, "invalid payload");
            api.shared.counts.invalid();
            // The hash names other bytes than these: it is not remembered.
            let status = PayloadStatus {
                status: Status::Invalid,
                latest_valid_hash: None,
                validation_error: Some(reason),
            };
            Verdict { status, is_misnamed }
        }
    }
}

/// The block of a payload, with the checks between it and what came beside it.
fn decode(
    got: B256,
    execution: alloy_rpc_types_engine::ExecutionPayload,
    sidecar: &alloy_rpc_types_engine::ExecutionPayloadSidecar,
) -> Result<SealedBlock, InvalidBlock> {
    let list = execution.block_access_list().cloned();
    let block = execution::decode_payload(execution, sidecar)?;
    if block.hash() != got {
        return Err(InvalidBlock::BlockHash { got, expected: block.hash() });
    }
    if let Some(given) = sidecar.versioned_hashes() {
        execution::validate_versioned_hashes(&block, given)?;
    }
    if let Some(list) = list {
        execution::AccessList::decode(&list, block.header.gas_limit)?;
    }
    Ok(block)
}

/// `engine_forkchoiceUpdated`.
fn forkchoice(api: &StatelessApi, mut params: Params<'_>, version: u8) -> Result<Json, Error> {
    let Object(fields): Object<ForkchoiceStateFields> = params.next("forkchoiceState")?;
    let attributes: Option<&RawValue> = params.optional("payloadAttributes")?;
    if version >= 4 {
        let _: Option<FixedData<16>> = params.optional("custodyColumns")?;
    }
    params.end()?;
    let payload_status = choose(api, fields.into(), attributes.is_some())?;
    Json::of(&ForkchoiceUpdateResponse { payload_status, payload_id: None })
}

/// Applies a fork choice. That nothing is built is said once the head is applied (paris.md,
/// `engine_forkchoiceUpdatedV1`, point 8).
pub(super) fn choose(
    api: &StatelessApi,
    state: ForkchoiceState,
    builds: bool,
) -> Result<PayloadStatus, Error> {
    if state.head_block_hash.is_zero() {
        return Err(Error::new(Code::InvalidForkchoiceState, "the head's hash is zero"));
    }
    let chosen = api.shared.change(|chain, now| chain.choose(state, now));
    let status = chosen.map_err(|NoAncestor { name, hash }| {
        let detail = format!("the {name} block {hash} is no ancestor of the head");
        Error::new(Code::InvalidForkchoiceState, detail)
    })?;
    if status.status != Status::Valid {
        return Ok(status);
    }
    api.condition.chosen();
    match builds {
        true => Err(Error::new(Code::InvalidPayloadAttributes, NO_BUILDING)),
        false => Ok(status),
    }
}

/// Why no payload is built.
pub(super) const NO_BUILDING: &str = "a node with --stateless builds no payloads, having no state: \
                                      propose with an external builder, or another node";

/// `engine_getPayload`.
fn no_payload(_: &StatelessApi, mut params: Params<'_>) -> Result<Json, Error> {
    let _: FixedData<8> = params.next("payloadId")?;
    params.end()?;
    Err(Error::new(Code::UnknownPayload, NO_BUILDING))
}

/// `engine_getPayloadBodiesByHash`, of the blocks that are kept whole.
fn bodies_by_hash(api: &StatelessApi, mut params: Params<'_>, version: u8) -> Result<Json, Error> {
    let hashes: Vec<FixedData<32>> = params.list("blockHashes", BODIES as usize)?;
    params.end()?;
    let hashes = hashes.into_iter().map(|hash| Some(hash.into())).collect();
    bodies_of(api, hashes, version)
}

/// `engine_getPayloadBodiesByRange`, of the same blocks.
fn bodies_by_range(api: &StatelessApi, mut params: Params<'_>, version: u8) -> Result<Json, Error> {
    let Quantity(start) = params.next("start")?;
    let Quantity(count) = params.next("count")?;
    params.end()?;
    check_range(start, count, BODIES)?;
    let hashes = api.shared.chain().canonical_range(start, count);
    bodies_of(api, hashes, version)
}

/// The bodies of these blocks. Access lists are not kept.
fn bodies_of(api: &StatelessApi, hashes: Vec<Option<B256>>, version: u8) -> Result<Json, Error> {
    let chain = api.shared.chain();
    let blocks: Vec<_> = hashes.into_iter().map(|hash| chain.block(&hash?)).collect();
    drop(chain);
    let bytes = blocks.iter().flatten().map(|block| block.rlp_bytes()).sum();
    check_bytes(bytes, STATELESS_BODIES_BYTES)?;
    bodies(blocks.iter().map(|block| Some((&**block.as_ref()?, None))), version)
}

/// `engine_getBlobsV2` and `V3`: `null`, as from any client that cannot serve blobs (osaka.md of
/// execution-apis). Were they not offered, Prysm would complain of each column.
fn no_blobs(_: &StatelessApi, mut params: Params<'_>) -> Result<Json, Error> {
    let _: Vec<FixedData<32>> = params.list("versionedHashes", BLOB_HASHES)?;
    params.end()?;
    Json::of(&Value::Null)
}

/// `engine_exchangeCapabilities`: what is refused is not listed.
fn capabilities(api: &StatelessApi, mut params: Params<'_>) -> Result<Json, Error> {
    let _theirs: Vec<String> = params.list("capabilities", CAPABILITIES)?;
    params.end()?;
    let is_ours = |name: &&str| {
        name.starts_with("engine_")
            && *name != EXCHANGE_CAPABILITIES
            && !EngineMethod::GetPayload.names().contains(name)
    };
    Json::of(&api.methods().filter(is_ours).collect::<Vec<_>>())
}

/// `engine_getClientVersionV1`.
fn version(api: &StatelessApi, mut params: Params<'_>) -> Result<Json, Error> {
    let Object(told): Object<ClientVersion> = params.next("clientVersion")?;
    params.end()?;
    api.condition.told_version(quote(told.name_and_version()));
    Json::of(&[our_version()])
}

/// `engine_getSyncStatus` (EIP-8379): blocks are executed as they come.
fn sync_status(api: &StatelessApi, params: Params<'_>) -> Result<Json, Error> {
    params.end()?;
    Json::of(&sync_status_of(api)?)
}

pub(super) fn sync_status_of(api: &StatelessApi) -> Result<Value, Error> {
    let (number, hash) = head(&api.shared.chain()).ok_or_else(no_head)?;
    let number = U64::from(number);
    Ok(json!({
        "headBlockHash": hash,
        "headBlockNumber": number,
        "executedBlockHash": hash,
        "executedBlockNumber": number,
    }))
}

fn no_head() -> Error {
    let words = "no block is verified yet: the consensus client has named no head whose ancestors \
                 and witnesses are here (--stateless)";
    Error::new(Code::Server, words)
}

/// The number and the hash of the head.
pub(super) fn head(chain: &Chain) -> Option<(u64, B256)> {
    let hash = chain.heads().head?;
    Some((chain.header(&hash)?.number, hash))
}

/// The number of the latest block; 0 before one is known, as other clients have it.
fn latest_number(chain: &Chain) -> u64 {
    chain.latest().map_or(0, |(_, header)| header.number)
}

/// `eth_blockNumber`.
fn block_number(api: &StatelessApi, params: Params<'_>) -> Result<Json, Error> {
    params.end()?;
    Json::of(&U64::from(latest_number(&api.shared.chain())))
}

/// The block of a tag or a number. Every node has a latest block: before one is known that is an
/// error, and not `null`.
fn named(chain: &Chain, id: NumberOrTag) -> Result<Option<B256>, Error> {
    let heads = chain.heads();
    Ok(match id {
        NumberOrTag::Number(number) => chain.canonical(number),
        NumberOrTag::Earliest => chain.canonical(0),
        NumberOrTag::Latest => Some(chain.latest().ok_or_else(no_head)?.0),
        NumberOrTag::Safe => heads.safe,
        NumberOrTag::Finalized => heads.finalized,
        NumberOrTag::Pending => None,
    })
}

/// A valid block with its transactions; an error where it is not kept whole.
fn whole(api: &StatelessApi, hash: Option<B256>, mut params: Params<'_>) -> Result<Json, Error> {
    let full: bool = params.next("hydrated transactions")?;
    params.end()?;
    let chain = api.shared.chain();
    let Some(hash) = hash.filter(|hash| chain.header(hash).is_some()) else {
        return Json::of(&Value::Null);
    };
    let Some(block) = chain.block(&hash) else {
        let words = "the block's transactions are not kept any more: a node with --stateless has \
                     those of the newest blocks, and headers of older ones (eth_getHeaderByHash)";
        return Err(Error::new(Code::PrunedHistory, words));
    };
    drop(chain);
    let senders = match full {
        true => execution::recover_senders_at(
            &api.shared.spec,
            block.header.number,
            &block.body.transactions,
        ),
        false => Ok(Vec::new()),
    };
    let senders = senders.map_err(|fault| Error::new(Code::Internal, fault))?;
    Json::of(&shown_block(&block, &senders, full))
}

/// The header of a valid block.
fn header(api: &StatelessApi, hash: Option<B256>, params: Params<'_>) -> Result<Json, Error> {
    params.end()?;
    let chain = api.shared.chain();
    let header = hash.and_then(|hash| {
        let inner = chain.header(&hash)?.clone();
        Some(RpcHeader { hash, inner, total_difficulty: None, size: None })
    });
    Json::of(&header)
}

/// `eth_syncing`: `false` while the head that was chosen is verified.
fn syncing(api: &StatelessApi, params: Params<'_>) -> Result<Json, Error> {
    params.end()?;
    Json::of(&syncing_of(&api.shared.chain()))
}

fn syncing_of(chain: &Chain) -> Value {
    if chain.is_in_step() {
        return json!(false);
    }
    let current = latest_number(chain);
    let number = U64::from(current);
    json!({
        "startingBlock": number,
        "currentBlock": number,
        "highestBlock": U64::from(chain.highest().max(current)),
    })
}

/// Why the head cannot be relied on now.
pub(super) fn why_not_ready(api: &StatelessApi) -> Vec<String> {
    let mut reasons = Vec::new();
    if api.condition.is_stopping() {
        reasons.push("the node is stopping".to_owned());
    }
    let chain = api.shared.chain();
    if chain.wanted().is_none() {
        reasons.push("no consensus client has named a head since the start".to_owned());
    } else if !chain.is_in_step() {
        let waiting = match chain.waiting_len() {
            1 => "1 block waits for its witness or its ancestors".to_owned(),
            blocks => format!("{blocks} blocks wait for their witnesses or their ancestors"),
        };
        reasons.push(format!(
            "the head that the consensus client chose is not verified yet: {waiting}"
        ));
        reasons.extend(chain.lacking(Instant::now()).map(|lacking| lacking.to_string()));
    }
    drop(chain);
    reasons.extend(api.condition.client_missing(Instant::now()));
    reasons
}

/// `deponent_status`: as that of a node with a state, as far as there is something to say.
fn status(api: &StatelessApi, params: Params<'_>) -> Result<Json, Error> {
    params.end()?;
    let reasons = why_not_ready(api);
    let refused = api.shared.counts.refusals();
    let sources = refused.iter().map(|(name, refused)| json!({"name": name, "refused": refused}));
    let sources: Vec<_> = sources.collect();
    let chain = api.shared.chain();
    let named = |hash: Option<B256>| {
        let Some(hash) = hash else { return Value::Null };
        json!({"number": chain.header(&hash).map(|header| header.number), "hash": hash})
    };
    let heads = chain.heads();
    let (client, last) = api.condition.last_call();
    let client = last.map(|last| {
        let seconds = last.at.elapsed().as_secs();
        json!({"name": client, "method": last.method, "secondsAgo": seconds})
    });
    let anchor = match chain.anchor() {
        Anchor::At(hash) => named(Some(hash)),
        Anchor::Unknown | Anchor::ParentOf(_) => Value::Null,
    };
    let syncing = match syncing_of(&chain) {
        Value::Bool(_) => json!(false),
        _ => json!({
            "currentBlock": latest_number(&chain),
            "highestBlock": chain.highest(),
        }),
    };
    Json::of(&json!({
        "version": VERSION,
        "stateless": true,
        "uptime": api.condition.started.elapsed().as_secs(),
        "chainId": api.shared.spec.chain_id(),
        "ready": reasons.is_empty(),
        "reasons": reasons,
        "anchor": anchor,
        "head": named(heads.head),
        "safe": named(heads.safe),
        "finalized": named(heads.finalized),
        "syncing": syncing,
        "waiting": {"blocks": chain.waiting_len(), "witnessBytes": chain.witness_bytes()},
        "sources": sources,
        "consensusClient": client,
    }))
}

/// The error of a method that is not here, though another node may have it.
pub(super) fn not_found(name: &str) -> Error {
    if !api::method_names().contains(&name) {
        return Error::method_not_found(name);
    }
    let words = format!(
        "{name} is not offered by a node with --stateless, which has no state, no receipts and no \
         pool: ask the node that its witnesses come from"
    );
    Error::new(Code::MethodNotFound, words)
}
