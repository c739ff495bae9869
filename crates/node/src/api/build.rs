//! `engine_forkchoiceUpdated` and what it begins: `engine_getPayload`; and `testing_buildBlockV1`.

use std::ops::Range;
use std::sync::Arc;

use alloy_consensus::Transaction as _;
use alloy_eips::Decodable2718;
use alloy_hardforks::{EthereumHardfork, EthereumHardforks as _};
use alloy_primitives::{B256, Bytes};
use alloy_rpc_types_engine::{ExecutionPayload, ForkchoiceState, PayloadId};
use engine::{BuildRequest, BuildStep, Built, ChainEvent, ForkchoiceOutcome};
use engine_api::json::{Data, FixedData, ForkchoiceStateFields, Object};
use engine_api::{BlobsBundle, BuiltPayload, EngineMethod, ForkchoiceUpdateResponse};
use execution::{InvalidBlock, Transaction};
use rpc::{Code, Error, Json, Params, Pieces, RawValue};
use serde::Serialize;

use super::new_payload::push_witness;
use super::payload::check_fork;
use super::traced::TracedCall;
use super::{Api, attributes, refusal};
use crate::answers::payload_status;
use crate::forks::rules_of;

/// `engine_forkchoiceUpdated`.
pub(super) fn plain(api: &Api, params: Params<'_>, version: u8) -> Result<Json, Error> {
    forkchoice_updated(api, params, version, false)
}

/// `engine_forkchoiceUpdatedWithWitness`: `engine_getPayload` will carry the witness.
pub(super) fn witness(api: &Api, params: Params<'_>, version: u8) -> Result<Json, Error> {
    forkchoice_updated(api, params, version, true)
}

fn forkchoice_updated(
    api: &Api,
    mut params: Params<'_>,
    version: u8,
    with_witness: bool,
) -> Result<Json, Error> {
    let Object(fields): Object<ForkchoiceStateFields> = params.next("forkchoiceState")?;
    let json: Option<&RawValue> = params.optional("payloadAttributes")?;
    if version >= 4 {
        // All cells of a blob are sent with it: checked, and not used.
        let _: Option<FixedData<16>> = params.optional("custodyColumns")?;
    }
    params.end()?;
    let state = ForkchoiceState::from(fields);
    let attributes = json.map(|json| attributes::read(json, version, api.engine.chain()));
    let build = attributes.transpose().map(|attributes| {
        attributes.map(|attributes| BuildRequest { attributes, version, with_witness })
    });
    let ForkchoiceOutcome { verdict, payload_id, .. } = update_forkchoice(api, state, build)?;
    let payload_status = payload_status(verdict, state.head_block_hash);
    Json::of(&ForkchoiceUpdateResponse { payload_status, payload_id })
}

/// Applies the fork choice, and begins the build that is asked for.
///
/// paris.md, `engine_forkchoiceUpdatedV1`, point 8: what was wrong with the attributes is said only
/// once the head is applied, and does not undo it.
pub(crate) fn update_forkchoice(
    api: &Api,
    state: ForkchoiceState,
    build: Result<Option<BuildRequest>, Error>,
) -> Result<ForkchoiceOutcome, Error> {
    api.check_led()?;
    let (build, bad) = match build {
        Ok(build) => (build, None),
        Err(error) => (None, Some(error)),
    };
    let traced = TracedCall::forkchoice(api, state.head_block_hash);
    let outcome = api.engine.forkchoice_updated(state, build);
    traced.chosen(&outcome);
    let outcome = outcome.map_err(refusal)?;
    if let Some(condition) = api.condition.as_ref().filter(|_| outcome.is_applied) {
        condition.chosen();
    }
    match bad {
        Some(error) if outcome.is_applied => Err(failed(api, error)),
        _ => Ok(outcome),
    }
}

/// `engine_getPayload`.
pub(super) fn payload(api: &Api, mut params: Params<'_>, version: u8) -> Result<Json, Error> {
    let id: FixedData<8> = params.next("payloadId")?;
    params.end()?;
    let built =
        built(api, PayloadId::new(id.0), &rules_of(EngineMethod::GetPayload.forks(version)))?;
    let mut out = match version {
        1 => json(&execution_payload(&built))?,
        _ => json(&envelope(api, &built, Some(version))?)?,
    };
    if built.with_witness {
        // Both are objects with members: the witness becomes the last one.
        assert_eq!(out.pop(), Some(b'}'));
        let mut out = Pieces::from(out);
        out.push(&br#","witness":"#[..]);
        push_witness(&mut out, &built.witness);
        out.push(&b"}"[..]);
        return Ok(out.into());
    }
    Ok(out.into())
}

/// The payload that was begun under `id`, if it is of one of these forks.
pub(crate) fn built(
    api: &Api,
    id: PayloadId,
    forks: &Range<EthereumHardfork>,
) -> Result<Arc<Built>, Error> {
    let traced = TracedCall::get_payload(api, id);
    let built = find_built(api, id, forks);
    traced.built(built.as_ref().map(drop).map_err(detail));
    built
}

fn find_built(
    api: &Api,
    id: PayloadId,
    forks: &Range<EthereumHardfork>,
) -> Result<Arc<Built>, Error> {
    // The engine itself tells of builds that it cannot make.
    let built = api.engine.built(id).map_err(refusal)?.ok_or_else(|| {
        let reason = format_args!("no build has the id {id}, or not any more");
        failed(api, Error::new(Code::UnknownPayload, reason))
    })?;
    let checked = check_fork(api.engine.chain(), built.block.header.timestamp, forks);
    checked.map_err(|error| failed(api, error))?;
    Ok(built)
}

/// Tells of a build that failed before the engine was asked, or after.
fn failed(api: &Api, error: Error) -> Error {
    if let Some(feed) = &api.feed {
        feed.tell(&ChainEvent::Build(BuildStep::Failed(detail(&error))));
    }
    error
}

fn json(value: &impl Serialize) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(value).map_err(|fault| Error::new(Code::Internal, fault))
}

fn execution_payload(built: &Built) -> ExecutionPayload {
    let Built { block, block_access_list, .. } = built;
    let list = block_access_list.clone().unwrap_or_default();
    ExecutionPayload::from_block_unchecked_with_bal(block.hash(), block, list).0
}

/// The answer to `engine_getPayload` from the second version on: with the fields that `version`
/// has, or with all that the block has.
///
/// # Errors
/// When the pool has a blob no more.
pub(crate) fn envelope(
    api: &Api,
    built: &Built,
    version: Option<u8>,
) -> Result<BuiltPayload, Error> {
    let has = |since: u8| version.is_none_or(|version| version >= since);
    let has_requests = has(4) && built.block.header.requests_hash.is_some();
    // A test gives transactions without their blobs.
    let bundle = match version {
        Some(3..) => blobs_bundle(api, built)?,
        _ => BlobsBundle::default(),
    };
    Ok(BuiltPayload {
        payload: execution_payload(built),
        block_value: built.block_value,
        blobs: has(3).then_some((bundle, false)),
        execution_requests: has_requests.then(|| built.requests.iter().cloned().collect()),
    })
}

/// The blobs of the block's transactions, in order, with one proof each, or from Osaka on with one
/// for each cell.
fn blobs_bundle(api: &Api, built: &Built) -> Result<BlobsBundle, Error> {
    let mut bundle = BlobsBundle::default();
    let transactions = &built.block.body.transactions;
    let hashes = transactions.iter().flat_map(|it| it.blob_versioned_hashes()).flatten();
    let hashes: Vec<_> = hashes.copied().collect();
    if hashes.is_empty() {
        return Ok(bundle);
    }
    let has_cells = api.engine.chain().is_osaka_active_at_timestamp(built.block.header.timestamp);
    for (hash, blob) in hashes.iter().zip(api.pool()?.0.blobs(&hashes)) {
        let missing = || Error::new(Code::Server, format_args!("the pool has no blob {hash} now"));
        let blob = blob.ok_or_else(missing)?;
        bundle.commitments.push(blob.commitment());
        bundle.blobs.push(Bytes::copy_from_slice(blob.blob()));
        match has_cells {
            true => bundle.proofs.extend(blob.cell_proofs()),
            false => bundle.proofs.push(blob.blob_proof()),
        }
    }
    Ok(bundle)
}

/// `testing_buildBlockV1`: builds on any known block, and changes nothing.
pub(super) fn testing(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let parent: FixedData<32> = params.next("parentBlockHash")?;
    let attributes: &RawValue = params.next("payloadAttributes")?;
    let transactions: Option<Vec<Data>> = params.next("transactions")?;
    let extra_data: Option<Data> = params.optional("extraData")?;
    params.end()?;
    let attributes = attributes::read_any(attributes, api.engine.chain())
        .map_err(|error| Error::invalid_params(detail(&error)))?;
    let extra_data = extra_data.unwrap_or_default().0;
    let parent = B256::from(parent);
    let built = match transactions {
        None => api.engine.build_best(parent, attributes, extra_data),
        Some(transactions) => {
            let transactions = transactions
                .iter()
                .enumerate()
                .map(|(index, raw)| {
                    Transaction::decode_2718_exact(&raw.0).map_err(|fault| {
                        Error::invalid_params(format_args!("transactions[{index}]: {fault}"))
                    })
                })
                .collect::<Result<_, _>>()?;
            api.engine.build(parent, attributes, transactions, extra_data)
        }
    };
    let built = built.map_err(|error| match error {
        engine::Error::InvalidAttributes(reason) => Error::invalid_params(reason),
        // geth answers with the transaction's own words.
        engine::Error::Build(InvalidBlock::Transaction { reason, .. }) => {
            Error::new(Code::Server, reason)
        }
        error => refusal(error),
    })?;
    Json::of(&envelope(api, &built, None)?)
}

/// The reason in an error.
pub(crate) fn detail(error: &Error) -> String {
    let data = error.data.as_ref().and_then(|data| data.get("err")).and_then(|err| err.as_str());
    data.unwrap_or(&error.message).to_owned()
}
