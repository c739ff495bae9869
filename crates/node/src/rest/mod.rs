//! The Engine API over REST and SSZ, from Paris on: execution-apis #793 as merged, the witness
//! endpoint of #885, and what we add.
//!
//! Bodies are the containers of [`engine_api::ssz`], the header `Eth-Execution-Version` names the
//! fork, and refusals are `application/problem+json`. The endpoints do what their
//! JSON-RPC twins do, through the same functions. `docs/transports.md` lists them all.

mod blobs;
mod bodies;
mod body;
mod code_files;
mod forkchoice;
mod held;
mod payloads;
mod problem;
mod resource;
mod verdict;
mod witnesses;

use std::time::Instant;

use alloy_primitives::Bytes;
use engine_api::Fork;
use engine_api::headers::{CLIENT_VERSION, EXECUTION_VERSION, OCTET_STREAM};
use engine_api::{REST_BASE, limits};
use rpc::rest::header::{CACHE_CONTROL, CONTENT_TYPE, USER_AGENT};
use rpc::rest::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use rpc::{Pieces, quote};
use serde_json::json;

use crate::api::{Api, our_version, sync_status_of};
use crate::observe::Sign;

pub(crate) use payloads::payload;
pub(crate) use problem::{Problem, ProblemKind};

pub use crate::forks::rules;

/// Answers one request, which may take its time. Every request has an answer.
pub(crate) fn answer(api: &Api, request: Request) -> Response {
    let client = request.headers.get(CLIENT_VERSION);
    tracing::debug!(method = %request.method, path = quote(&request.path), ?client, "REST");
    // Provers and monitors read; a consensus client brings blocks and chooses heads.
    let name = endpoint(&request.path);
    let sign = sign(&request, name, api.is_engine_port());
    if let Some(condition) = api.condition.as_ref().filter(|_| sign == Some(Sign::Update)) {
        let client = client.or_else(|| request.headers.get(USER_AGENT));
        if let Some(Ok(client)) = client.map(HeaderValue::to_str) {
            condition.user_agent(client);
        }
    }
    api.shows_client(&quote(&request.path), sign);
    let begun = Instant::now();
    let response = route(api, &request).unwrap_or_else(Problem::response);
    api.metrics.requested(name, begun.elapsed(), response.status);
    response
}

/// The sign of a consensus client that a request for the endpoint with this name is, on the Engine
/// API's own port or on a Unix socket. Witnesses are read by provers.
pub(crate) fn sign(request: &Request, name: &str, is_engine_port: bool) -> Option<Sign> {
    let is_post = request.method == Method::POST;
    match name {
        "payloads" | "payloads/witness" | "forkchoice" if is_post => Some(Sign::Update),
        "payloads/id" | "bodies" | "blobs" | "capabilities" | "syncstatus" | "identity" => {
            is_engine_port.then_some(Sign::Life)
        }
        _ => None,
    }
}

/// The name of what is at a path.
pub(crate) fn endpoint(path: &str) -> &'static str {
    let path = path.strip_prefix(REST_BASE).unwrap_or_default();
    let segments: Vec<_> = path.split('/').collect();
    match segments[..] {
        ["payloads"] => "payloads",
        ["payloads", "witness"] => "payloads/witness",
        ["payloads", _] => "payloads/id",
        ["payloads", _, "witness"] => "payloads/id/witness",
        ["forkchoice"] => "forkchoice",
        ["bodies"] | ["bodies", "hash"] => "bodies",
        ["blobs", _] => "blobs",
        ["capabilities"] => "capabilities",
        ["syncstatus"] => "syncstatus",
        ["identity"] => "identity",
        ["code-files", _] => "code-files",
        ["witnesses", _] => "witnesses",
        ["stateless-inputs", _] => "stateless-inputs",
        _ => "unknown",
    }
}

/// Whether a request is answered out of memory, in microseconds.
pub(crate) fn is_quick(request: &Request) -> bool {
    match request.path.strip_prefix(REST_BASE) {
        Some("forkchoice") => forkchoice::is_quick(request),
        Some("capabilities" | "identity" | "syncstatus") => true,
        _ => false,
    }
}

/// "Message ordering" in the Engine API's common definitions.
pub(crate) fn is_in_order(path: &str) -> bool {
    path.strip_prefix(REST_BASE) == Some("forkchoice")
}

/// The answer to a request that the port itself refuses, for a reason that `status` stands for.
pub(crate) fn refuse(status: StatusCode, detail: &str) -> Response {
    let kind = match status {
        StatusCode::NOT_FOUND => ProblemKind::UnknownPath,
        StatusCode::PAYLOAD_TOO_LARGE => ProblemKind::RequestTooLarge,
        StatusCode::UNSUPPORTED_MEDIA_TYPE => ProblemKind::UnsupportedMediaType,
        StatusCode::SERVICE_UNAVAILABLE => ProblemKind::Unavailable,
        status if status.is_client_error() => ProblemKind::InvalidRequest,
        _ => ProblemKind::Internal,
    };
    Response { status, ..Problem::new(kind, detail).response() }
}

fn route(api: &Api, request: &Request) -> Result<Response, Problem> {
    let unknown =
        || Problem::new(ProblemKind::UnknownPath, format!("there is no {}", quote(&request.path)));
    let path = request.path.strip_prefix(REST_BASE).ok_or_else(unknown)?;
    let segments: Vec<_> = path.split('/').collect();
    match segments[..] {
        ["payloads"] => post(request).and_then(|()| payloads::status(api, request)),
        ["payloads", "witness"] => post(request).and_then(|()| payloads::witness(api, request)),
        ["payloads", id] => get(request).and_then(|()| payloads::built(api, request, id)),
        ["payloads", id, "witness"] => {
            get(request).and_then(|()| payloads::built_with_witness(api, request, id))
        }
        ["forkchoice"] => post(request).and_then(|()| forkchoice::update(api, request)),
        ["bodies"] => get(request).and_then(|()| bodies::by_range(api, request)),
        ["bodies", "hash"] => post(request).and_then(|()| bodies::by_hash(api, request)),
        ["blobs", "v1"] => post(request).and_then(|()| blobs::blobs(api, request, 1)),
        ["blobs", "v2"] => post(request).and_then(|()| blobs::blobs(api, request, 2)),
        ["blobs", "v3"] => post(request).and_then(|()| blobs::blobs(api, request, 3)),
        ["blobs", "v4"] => post(request).and_then(|()| blobs::blobs(api, request, 4)),
        ["capabilities"] => get(request).map(|()| capabilities()),
        ["syncstatus"] => get(request).and_then(|()| sync_status(api)),
        ["identity"] => get(request).map(|()| json_body(&[our_version()])),
        ["code-files", segment] => {
            only(request, &[Method::GET], "GET").and_then(|()| code_files::code_file(api, segment))
        }
        ["witnesses", name] => get(request).and_then(|()| witnesses::witness(api, request, name)),
        ["stateless-inputs", hash] => {
            get(request).and_then(|()| witnesses::stateless_input(api, request, hash))
        }
        _ => Err(unknown()),
    }
}

pub(crate) fn post(request: &Request) -> Result<(), Problem> {
    only(request, &[Method::POST], "POST")
}

pub(crate) fn get(request: &Request) -> Result<(), Problem> {
    only(request, &[Method::GET, Method::HEAD], "GET, HEAD")
}

fn only(request: &Request, methods: &[Method], names: &'static str) -> Result<(), Problem> {
    if methods.contains(&request.method) {
        return Ok(());
    }
    let (path, method) = (quote(&request.path), quote(&request.method));
    let detail = format!("{path} is for {names}, not {method}");
    Err(Problem::new(ProblemKind::Method(names), detail))
}

/// The fork that the request names.
pub(crate) fn fork(request: &Request) -> Result<Fork, Problem> {
    let refuse = |what: &str| {
        let forks = Fork::ALL.map(Fork::name).join(", ");
        let detail = format!("Eth-Execution-Version {what}; it is one of {forks}");
        Problem::new(ProblemKind::UnsupportedFork, detail)
    };
    let value = request.headers.get(EXECUTION_VERSION).ok_or_else(|| refuse("is missing"))?;
    let name = value.to_str().map_err(|_| refuse("is not text"))?;
    Fork::named(name).ok_or_else(|| refuse("is none that there is"))
}

/// The body, which must be SSZ.
pub(crate) fn ssz_body(request: &Request) -> Result<Bytes, Problem> {
    let given = request.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = given.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    if !essence.eq_ignore_ascii_case(OCTET_STREAM) {
        let got =
            given.map_or_else(|| "nothing".to_owned(), |given| format!("\"{}\"", quote(given)));
        let detail = format!("Content-Type must be {OCTET_STREAM}, and is {got}");
        return Err(Problem::new(ProblemKind::UnsupportedMediaType, detail));
    }
    let bytes = request.body.len();
    if bytes > limits::REQUEST_BYTES {
        let detail = format!("{bytes} bytes, at most {} are allowed", limits::REQUEST_BYTES);
        return Err(Problem::new(ProblemKind::RequestTooLarge, detail));
    }
    Ok(request.body.clone().into())
}

/// An answer that is SSZ.
pub(crate) fn ssz(body: impl Into<Pieces>) -> Response {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(OCTET_STREAM));
    Response { status: StatusCode::OK, headers, body: body.into(), file: None }
}

/// Byte strings that follow each other.
fn pieces(parts: Vec<Bytes>) -> Pieces {
    parts.into_iter().map(|part| part.0).collect::<Vec<_>>().into()
}

pub(crate) fn json_body(value: &impl serde::Serialize) -> Response {
    let body = serde_json::to_vec(value).expect("texts and numbers have a JSON form");
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Response { status: StatusCode::OK, headers, body: body.into(), file: None }
}

/// `GET /syncstatus` (EIP-8379).
fn sync_status(api: &Api) -> Result<Response, Problem> {
    let status = sync_status_of(api)?;
    Ok(not_stored(json_body(&status)))
}

/// The answer is as it is now, and may be another one the next time.
pub(crate) fn not_stored(mut response: Response) -> Response {
    response.headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// The bytes of a path segment: hex, with or without its prefix.
fn segment<const N: usize>(name: &str, digits: &str) -> Result<[u8; N], Problem> {
    let refuse = |_| {
        let detail = format!("{name} in \"{}\" must be {N} bytes in hex", quote(digits));
        Problem::new(ProblemKind::InvalidRequest, detail)
    };
    alloy_primitives::hex::decode_to_array(digits).map_err(refuse)
}

/// The endpoints that depend on no fork.
const UNSCOPED: [&str; 6] =
    ["capabilities", "identity", "syncstatus", "witnesses", "stateless-inputs", "code-files"];

/// The capabilities: forks, endpoints and limits.
fn capabilities() -> Response {
    json_body(&json!({
        "supported_forks": Fork::ALL.map(Fork::name),
        "fork_scoped_endpoints": ["payloads", "payloads/witness", "forkchoice", "bodies"],
        "independently_versioned": {"blobs": ["v1", "v2", "v3", "v4"]},
        "unscoped_endpoints": UNSCOPED,
        "limits": {
            "bodies.max_count": limits::BODIES,
            "blobs.max_versioned_hashes": limits::BLOB_HASHES,
            "payload.max_bytes": limits::REQUEST_BYTES,
        },
    }))
}
