//! The Engine API over REST and SSZ, as far as a node without a state has it.

use std::time::Instant;

use engine_api::ssz::{ExecutionPayloadEnvelope, ForkchoiceUpdate, ForkchoiceUpdateResponse};
use engine_api::{Fork, REST_BASE, limits};
use rpc::quote;
use rpc::rest::{Request, Response};
use serde_json::json;

use super::StatelessApi;
use super::methods::{NO_BUILDING, choose, judge, sync_status_of};
use crate::api::our_version;
use crate::rest::{
    Problem, ProblemKind, endpoint, fork, get, json_body, not_stored, payload, post, sign, ssz,
    ssz_body,
};

/// Answers one request.
pub(crate) fn answer(api: &StatelessApi, request: &Request) -> Response {
    let (begun, name) = (Instant::now(), endpoint(&request.path));
    if let Some(sign) = sign(request, name, api.is_engine_port()) {
        api.condition.called(&quote(&request.path), sign);
    }
    let response = route(api, request).unwrap_or_else(Problem::response);
    api.metrics.requested(name, begun.elapsed(), response.status);
    response
}

fn route(api: &StatelessApi, request: &Request) -> Result<Response, Problem> {
    match request.path.strip_prefix(REST_BASE) {
        Some("payloads") => post(request).and_then(|()| status(api, request)),
        Some("forkchoice") => post(request).and_then(|()| update(api, request)),
        Some("capabilities") => get(request).map(|()| capabilities()),
        Some("syncstatus") => {
            get(request)?;
            Ok(not_stored(json_body(&sync_status_of(api)?)))
        }
        Some("identity") => get(request).map(|()| json_body(&[our_version()])),
        Some(path) if path.starts_with("payloads/") && path != "payloads/witness" => {
            Err(Problem::new(ProblemKind::UnknownPayload, NO_BUILDING))
        }
        _ => {
            let path = quote(&request.path);
            let detail = format!("there is no {path} on a node with --stateless");
            Err(Problem::new(ProblemKind::UnknownPath, detail))
        }
    }
}

/// `POST /payloads`.
fn status(api: &StatelessApi, request: &Request) -> Result<Response, Problem> {
    let fork = fork(request)?;
    let envelope = ExecutionPayloadEnvelope::decode(fork, &ssz_body(request)?)?;
    let payload = payload(&api.shared.spec, fork, envelope)?;
    let verdict = judge(api, payload.execution, &payload.sidecar);
    Ok(ssz(verdict.status.encode()))
}

/// `POST /forkchoice`.
fn update(api: &StatelessApi, request: &Request) -> Result<Response, Problem> {
    let update = ForkchoiceUpdate::decode(fork(request)?, &ssz_body(request)?)?;
    let builds = update.payload_attributes.is_some();
    let payload_status = choose(api, update.forkchoice_state, builds)?;
    Ok(ssz(ForkchoiceUpdateResponse { payload_status, payload_id: None }.encode()))
}

fn capabilities() -> Response {
    json_body(&json!({
        "supported_forks": Fork::ALL.map(Fork::name),
        "fork_scoped_endpoints": ["payloads", "forkchoice"],
        "independently_versioned": {},
        "unscoped_endpoints": ["capabilities", "identity", "syncstatus"],
        "limits": {"payload.max_bytes": limits::REQUEST_BYTES},
    }))
}
