//! The REST Engine API: requests and answers.

use alloy_rpc_types_engine::{ForkchoiceUpdated, PayloadStatus};
use engine_api::headers::{EXECUTION_VERSION, OCTET_STREAM};
use engine_api::{Fork, ForkchoiceUpdateResponse, WithWitness};
use rpc::Reply;
use rpc::rest::header::CONTENT_TYPE;
use rpc::rest::{DESCRIPTOR, HeaderMap, HeaderValue, StatusCode};
use serde::Deserialize;

use crate::answers::{status_of, updated};
use crate::{Capabilities, Error, Timings, Wire, WitnessAnswer};

/// The headers of a request: the fork, if it is about a block, and SSZ as the type of the body.
pub(crate) fn headers(wire: Wire, fork: Option<Fork>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(OCTET_STREAM));
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
    if reply.status == StatusCode::OK { Ok(reply) } else { Err(Error::of(&reply)) }
}

/// Reads `PayloadStatus`.
pub(crate) fn status(reply: Reply) -> Result<PayloadStatus, Error> {
    Ok(status_of(engine_api::PayloadStatus::decode(&reply.body.into())?))
}

/// Reads `PayloadStatusWithWitness`.
pub(crate) fn with_witness(reply: Reply) -> Result<(PayloadStatus, Option<WitnessAnswer>), Error> {
    let read = WithWitness::<engine_api::PayloadStatus>::decode(&reply.body.clone().into())?;
    Ok(answered(read, &reply))
}

/// An answer with what its headers say.
pub(crate) fn answered(
    read: WithWitness<engine_api::PayloadStatus>,
    reply: &Reply,
) -> (PayloadStatus, Option<WitnessAnswer>) {
    let WithWitness { content, witness, public_keys } = read;
    let (timings, received_bytes) = (Timings::read(&reply.headers), reply.body.len());
    let answer =
        witness.map(|witness| WitnessAnswer { witness, public_keys, timings, received_bytes });
    (status_of(content), answer)
}

/// Reads `ForkchoiceUpdateResponse`.
pub(crate) fn forkchoice_updated(reply: Reply) -> Result<ForkchoiceUpdated, Error> {
    Ok(updated(ForkchoiceUpdateResponse::decode(&reply.body.into())?))
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
    let fields: Fields = rpc::read_json_bytes(&reply.body)?;
    let mut endpoints = fields.fork_scoped_endpoints;
    endpoints.extend(fields.unscoped_endpoints);
    Ok(Capabilities { forks: fields.supported_forks, endpoints, limits: fields.limits })
}
