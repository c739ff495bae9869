//! `/payloads`: payloads to validate, and payloads that were built.

use std::sync::Arc;
use std::time::Instant;

use alloy_consensus::Transaction as _;
use alloy_eips::Decodable2718;
use alloy_primitives::{B256, Bytes};
use alloy_rpc_types_engine::PayloadId;
use engine::{Built, JudgedPayload, Payload};
use engine_api::ssz::{ExecutionPayloadEnvelope, PayloadStatus, Status, with_witness_parts};
use engine_api::{EngineMethod, Fork, NewPayload};
use execution::{ChainSpec, Transaction};
use rpc::rest::{DESCRIPTOR, DESCRIPTOR_BYTES, Request, Response};

use super::body::WitnessBody;
use super::problem::{Problem, ProblemKind};
use super::{code_files, fork, held, not_stored, pieces, rules, segment, ssz, ssz_body, verdict};
use crate::answers::payload_status;
use crate::api::{self, Api, refusal};
use crate::metrics::{CodesSent, Wire};

/// `POST /payloads`.
pub(super) fn status(api: &Api, request: &Request) -> Result<Response, Problem> {
    let (hash, payload) = read(api, request)?;
    let JudgedPayload { verdict, .. } = api::validate(api, payload)?;
    let status = payload_status(verdict, hash);
    Ok(with_headers(api, hash, &status, ssz(status.encode())))
}

/// `POST /payloads/witness`: each VALID answer has the witness, repeated ones too.
pub(super) fn witness(api: &Api, request: &Request) -> Result<Response, Problem> {
    let are_mapped = code_files::are_mapped(request)?;
    let (hash, payload) = read(api, request)?;
    let (judged, assembled) = api::validate_with_witness(api, payload)?;
    let JudgedPayload { verdict, timings } = judged;
    let begun = Instant::now();
    let status = payload_status(verdict, hash);
    // Genesis alone is VALID and has none: nothing was run.
    let Some(assembled) = assembled else {
        let parts = with_witness_parts(&status.encode(), None, &[]).map_err(Problem::of_answer)?;
        return Ok(with_headers(api, hash, &status, ssz(pieces(parts))));
    };
    let missing = || Problem::new(ProblemKind::Internal, format!("there is no block {hash}"));
    let record = api.engine.block(hash).map_err(refusal)?.ok_or_else(missing)?;
    let keys = api.engine.public_keys(&record.block).map_err(refusal)?;
    let whole = assembled.witness.clone();
    let (witness_body, codes, sent) = if are_mapped {
        let body = code_files::located(api, &assembled)?.witness_body(whole);
        (body, Some(code_files::MAPPED), CodesSent::Mapped)
    } else if let Some(unheld) = held::unheld(request, &assembled) {
        let first = unheld.header();
        (unheld.witness_body(whole), Some(first), CodesSent::Unheld)
    } else {
        (WitnessBody::whole(whole), None, CodesSent::Whole)
    };
    let mut body = witness_body.body_with(&status.encode(), &keys).map_err(|fault| {
        held::forget(request);
        Problem::of_answer(fault)
    })?;
    let assembly = api::assembly_time(timings) + begun.elapsed();
    api.metrics.answers.begin(wire(request, body.len_bytes()), sent, assembly, &mut body);
    let mut answer = ssz(body);
    if let Some(codes) = codes {
        answer.headers.insert(held::CODES, codes);
    }
    Ok(with_headers(api, hash, &status, answer))
}

/// How an answer of so many bytes gets to the client that sent a request.
fn wire(request: &Request, bytes: usize) -> Wire {
    let is_asked = request.headers.contains_key(DESCRIPTOR);
    match request.takes_files {
        true if is_asked && bytes >= DESCRIPTOR_BYTES => Wire::Descriptor,
        true => Wire::SszUnix,
        false => Wire::Ssz,
    }
}

fn with_headers(api: &Api, hash: B256, status: &PayloadStatus, mut answer: Response) -> Response {
    if status.status == Status::Valid {
        verdict::add_headers(api, hash, &mut answer.headers);
    }
    answer
}

/// The payload of a request, and its block's hash.
fn read(api: &Api, request: &Request) -> Result<(B256, Payload), Problem> {
    let fork = fork(request)?;
    let envelope = ExecutionPayloadEnvelope::decode(fork, &ssz_body(request)?)?;
    let hash = envelope.payload.block_hash();
    Ok((hash, payload(api.engine.chain(), fork, envelope)?))
}

/// The payload of an envelope, after the checks of JSON-RPC's parameters.
///
/// # Errors
/// If the requests are wrong, or the fork is another one.
pub(crate) fn payload(
    chain: &ChainSpec,
    fork: Fork,
    envelope: ExecutionPayloadEnvelope,
) -> Result<Payload, Problem> {
    let ExecutionPayloadEnvelope { payload, parent_beacon_block_root, execution_requests } =
        envelope;
    api::check_requests(execution_requests.as_deref().unwrap_or_default())?;
    api::check_fork(chain, payload.timestamp(), &rules(fork))?;
    let versioned_hashes = versioned_hashes(payload.transactions());
    let call =
        NewPayload { payload, versioned_hashes, parent_beacon_block_root, execution_requests };
    let sidecar = call.sidecar();
    Ok(Payload { execution: call.payload, sidecar })
}

/// The versioned hashes of all blobs. A transaction that cannot be read has none; the engine will
/// say what is wrong with it.
fn versioned_hashes(transactions: &[Bytes]) -> Vec<B256> {
    const BLOB: u8 = 3;
    let blob = transactions.iter().filter(|raw| raw.first() == Some(&BLOB));
    let blob = blob.filter_map(|raw| Transaction::decode_2718_exact(raw).ok());
    blob.flat_map(|transaction| transaction.blob_versioned_hashes().unwrap_or_default().to_vec())
        .collect()
}

/// `GET /payloads/{id}`.
pub(super) fn built(api: &Api, request: &Request, id: &str) -> Result<Response, Problem> {
    let (fork, built) = find(api, request, id)?;
    Ok(not_stored(ssz(encode(api, fork, &built)?)))
}

/// `GET /payloads/{id}/witness`: the same, and the witness of the block.
pub(super) fn built_with_witness(
    api: &Api,
    request: &Request,
    id: &str,
) -> Result<Response, Problem> {
    let (fork, built) = find(api, request, id)?;
    let keys = api.engine.public_keys(&built.block).map_err(refusal)?;
    let body = WitnessBody::whole(built.witness.clone().into())
        .body_with(&encode(api, fork, &built)?, &keys);
    Ok(not_stored(ssz(body.map_err(Problem::of_answer)?)))
}

fn find(api: &Api, request: &Request, id: &str) -> Result<(Fork, Arc<Built>), Problem> {
    let fork = fork(request)?;
    let id = PayloadId::new(segment("the payload's id", id)?);
    Ok((fork, api::built(api, id, &rules(fork))?))
}

fn encode(api: &Api, fork: Fork, built: &Built) -> Result<Vec<u8>, Problem> {
    let version = EngineMethod::GetPayload.version(fork);
    api::envelope(api, built, Some(version))?.encode().map_err(Problem::of_answer)
}
