//! The REST Engine API: what is sent, and how its answers are read.

use alloy_primitives::Bytes;
use alloy_rpc_types_engine::{
    ExecutionPayload, ExecutionPayloadSidecar, ForkchoiceUpdated, PayloadStatus, PayloadStatusEnum,
};
use rpc::rest::header::CONTENT_TYPE;
use rpc::rest::{DESCRIPTOR, HeaderMap, HeaderName, HeaderValue, StatusCode};
use rpc::{ClientError, Reply};
use serde::Deserialize;

use crate::client::Beside;
use crate::limits::QUOTE_CHARS;
use crate::ssz::{self, ExecutionPayloadEnvelope, ForkchoiceUpdateResponse, Status, WithWitness};
use crate::{Capabilities, Error, Fork, Problem, Timings, Wire, WitnessAnswer};

/// Where all paths begin.
pub(crate) const BASE: &str = "/engine/v1/";

const EXECUTION_VERSION: HeaderName = HeaderName::from_static("eth-execution-version");

/// The headers of a request for a block of `fork`, where it is for one, whose body, if it has one,
/// is SSZ.
pub(crate) fn headers(wire: Wire, fork: Option<Fork>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    if let Some(fork) = fork {
        headers.insert(EXECUTION_VERSION, HeaderValue::from_static(fork.name()));
    }
    if wire == Wire::Descriptor {
        headers.insert(DESCRIPTOR, HeaderValue::from_static("1"));
    }
    headers
}

/// An answer, unless it is a refusal.
pub(crate) fn checked(reply: Reply) -> Result<Reply, Error> {
    if reply.status == StatusCode::OK { Ok(reply) } else { Err(refused(&reply)) }
}

/// Why there is no answer: a problem, or what a server says that does not speak REST.
pub(crate) fn refused(reply: &Reply) -> Error {
    let status = reply.status.as_u16();
    let content_type = reply.headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    if content_type.is_some_and(|found| found.starts_with(b"application/problem+json")) {
        return Problem::read(status, &reply.body).map_or_else(|error| error, Error::Problem);
    }
    let text = String::from_utf8_lossy(&reply.body).trim().chars().take(QUOTE_CHARS).collect();
    Error::Transport(ClientError::Http { status, text })
}

/// The body of `POST payloads`.
pub(crate) fn envelope(
    payload: &ExecutionPayload,
    sidecar: &ExecutionPayloadSidecar,
) -> Result<Bytes, Error> {
    let Beside { root, requests, .. } = Beside::of(payload, sidecar)?;
    let envelope = ExecutionPayloadEnvelope {
        payload: payload.clone(),
        parent_beacon_block_root: root,
        execution_requests: requests,
    };
    let encoded = envelope.encode().map_err(|error| Error::Encode(error.to_string()))?;
    Ok(encoded.into())
}

/// Reads `PayloadStatus`.
pub(crate) fn status(reply: Reply) -> Result<PayloadStatus, Error> {
    Ok(from_ssz(ssz::PayloadStatus::decode(&reply.body.into())?))
}

/// Reads `PayloadStatusWithWitness`.
pub(crate) fn with_witness(reply: Reply) -> Result<(PayloadStatus, Option<WitnessAnswer>), Error> {
    let read = WithWitness::<ssz::PayloadStatus>::decode(&reply.body.clone().into())?;
    Ok(answered(read, &reply))
}

/// What was read of an answer, and what its headers say.
pub(crate) fn answered(
    read: WithWitness<ssz::PayloadStatus>,
    reply: &Reply,
) -> (PayloadStatus, Option<WitnessAnswer>) {
    let WithWitness { content, witness, public_keys } = read;
    let (timings, received_bytes) = (Timings::read(&reply.headers), reply.body.len());
    let answer =
        witness.map(|witness| WitnessAnswer { witness, public_keys, timings, received_bytes });
    (from_ssz(content), answer)
}

/// Reads `ForkchoiceUpdateResponse`.
pub(crate) fn forkchoice_updated(reply: Reply) -> Result<ForkchoiceUpdated, Error> {
    let read = ForkchoiceUpdateResponse::decode(&reply.body.into())?;
    let ForkchoiceUpdateResponse { payload_status, payload_id } = read;
    Ok(ForkchoiceUpdated { payload_status: from_ssz(payload_status), payload_id })
}

fn from_ssz(status: ssz::PayloadStatus) -> PayloadStatus {
    let ssz::PayloadStatus { status, latest_valid_hash, validation_error } = status;
    let status = match status {
        Status::Valid => PayloadStatusEnum::Valid,
        Status::Invalid => {
            PayloadStatusEnum::Invalid { validation_error: validation_error.unwrap_or_default() }
        }
        Status::Syncing => PayloadStatusEnum::Syncing,
        Status::Accepted => PayloadStatusEnum::Accepted,
    };
    PayloadStatus { status, latest_valid_hash }
}

/// Reads `GET capabilities`.
pub(crate) fn capabilities(reply: &Reply) -> Result<Capabilities, Error> {
    #[derive(Deserialize)]
    struct Fields {
        supported_forks: Vec<String>,
        #[serde(default)]
        fork_scoped_endpoints: Vec<String>,
        #[serde(default)]
        unscoped_endpoints: Vec<String>,
        #[serde(default)]
        limits: std::collections::BTreeMap<String, u64>,
    }
    let fields: Fields = serde_json::from_slice(&reply.body)?;
    let mut endpoints = fields.fork_scoped_endpoints;
    endpoints.extend(fields.unscoped_endpoints);
    Ok(Capabilities { forks: fields.supported_forks, endpoints, limits: fields.limits })
}
