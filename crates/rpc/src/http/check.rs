//! The checks of a request before its body is read: its token, its method, its content type.

use std::sync::atomic::Ordering;

use hyper::body::{Body, Incoming};
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, StatusCode, Version};

use crate::http::coding::negotiate::AcceptedCodings;
use crate::http::handshake;
use crate::http::refusal::Refusal;
use crate::jwt::JwtSecret;
use crate::port::Port;

/// Checks a request before its body is read.
pub(super) fn check(
    port: &Port,
    head: &Parts,
    body: &Incoming,
    is_resource: bool,
) -> Result<(), Refusal> {
    // RFC 9112 section 3.2.
    let hosts = head.headers.get_all(header::HOST).iter().count();
    if head.version == Version::HTTP_11 && hosts != 1 {
        let text = format!("HTTP/1.1 needs one Host header, and this request has {hosts}");
        return Err(Refusal::new(StatusCode::BAD_REQUEST, text));
    }
    check_framing(&head.headers)?;
    let named = port.origins.check_host(head);
    named.map_err(|text| {
        port.budgets.refusals.forbidden.fetch_add(1, Ordering::Relaxed);
        Refusal::new(StatusCode::FORBIDDEN, text)
    })?;
    if let Some(secret) = &port.jwt {
        authorize(secret, &head.headers).map_err(|reason| {
            port.budgets.refusals.unauthorized.fetch_add(1, Ordering::Relaxed);
            if port.unauthorized.is_due() {
                tracing::warn!(reason, "a request without a valid token");
            }
            Refusal::new(StatusCode::UNAUTHORIZED, reason)
        })?;
    }
    if !is_resource {
        if is_probe(head, body) && port.handler.probe(head.uri.path()).is_some() {
            return Ok(());
        }
        check_path(head)?;
        let is_handshake = handshake::is_asked(head) && head.version != Version::HTTP_2;
        if is_handshake || is_probe(head, body) {
            return Ok(());
        }
        check_call(head)?;
    }
    let AcceptedCodings { zstd, identity } = AcceptedCodings::read(&head.headers);
    if !identity && (!zstd || port.limits.zstd_bytes == usize::MAX) {
        let text = "no coding that accept-encoding takes is spoken here: let identity be one";
        return Err(Refusal::new(StatusCode::NOT_ACCEPTABLE, text));
    }
    if body.size_hint().lower() > port.limits.body_bytes as u64 {
        return Err(Refusal::too_long(port.limits.body_bytes));
    }
    Ok(())
}

/// Refuses headers that two readers could understand in two ways.
fn check_framing(headers: &HeaderMap) -> Result<(), Refusal> {
    // RFC 9112 section 6.1: what is coded beside being chunked is not decoded here.
    let mut codings = headers.get_all(header::TRANSFER_ENCODING).iter();
    let is_chunked =
        |coding: &HeaderValue| coding.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked");
    if codings.next().is_some_and(|first| !is_chunked(first)) || codings.next().is_some() {
        let text = "the transfer-encoding is not chunked alone: send the body as it is";
        return Err(Refusal::new(StatusCode::NOT_IMPLEMENTED, text));
    }
    for name in [header::CONTENT_TYPE, header::CONTENT_ENCODING] {
        if headers.get_all(&name).iter().count() > 1 {
            let text = format!("more than one {name} header");
            return Err(Refusal::new(StatusCode::BAD_REQUEST, text));
        }
    }
    Ok(())
}

fn check_path(head: &Parts) -> Result<(), Refusal> {
    if head.uri.path() != "/" {
        let text = "JSON-RPC is served at the path / alone; the Engine API has its port \
                    and the Unix socket";
        return Err(Refusal::new(StatusCode::NOT_FOUND, text));
    }
    Ok(())
}

fn check_call(head: &Parts) -> Result<(), Refusal> {
    if head.method != Method::POST {
        let text = "JSON-RPC needs POST, with a JSON body and content-type application/json";
        return Err(Refusal::new(StatusCode::METHOD_NOT_ALLOWED, text));
    }
    check_content(&head.headers)
}

/// Whether a request asks only whether there is a server, as load balancers do, some of them with a
/// query, which says nothing. geth answers that too.
pub(super) fn is_probe(head: &Parts, body: &Incoming) -> bool {
    let wants_no_other = !head.headers.contains_key(header::UPGRADE);
    let asks = matches!(head.method, Method::GET | Method::HEAD);
    asks && wants_no_other && body.is_end_stream()
}

/// Whether a request comes from a browser that is to show a page: a list of types with `text/html`.
pub(super) fn wants_page(head: &Parts) -> bool {
    let accepted = head.headers.get_all(header::ACCEPT).iter();
    let mut types = accepted.filter_map(|list| list.to_str().ok()).flat_map(|list| list.split(','));
    let is_html = |entry: &str| {
        let name = entry.split(';').next().unwrap_or_default().trim();
        name.eq_ignore_ascii_case("text/html")
    };
    head.uri.path() == "/" && types.any(is_html)
}

fn authorize(secret: &JwtSecret, headers: &HeaderMap) -> Result<(), String> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let Some(value) = values.next() else {
        return Err("missing token: send the header authorization: Bearer <JWT>".into());
    };
    if values.next().is_some() {
        return Err("more than one authorization header".into());
    }
    let token = value.to_str().ok().and_then(|text| {
        let (scheme, token) = text.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
    });
    secret.verify(token.ok_or("malformed token: the authorization header is not Bearer <JWT>")?)
}

/// The content types that geth takes too.
const JSON_TYPES: [&str; 3] =
    ["application/json", "application/json-rpc", "application/jsonrequest"];

fn check_content(headers: &HeaderMap) -> Result<(), Refusal> {
    let of = |name| headers.get(name).map(|value| value.to_str().unwrap_or("unreadable"));
    let kind = of(header::CONTENT_TYPE).unwrap_or("none");
    let media = kind.split(';').next().unwrap_or_default().trim();
    if !JSON_TYPES.iter().any(|json| media.eq_ignore_ascii_case(json)) {
        let text = format!("the content-type is {kind}: only application/json is taken");
        return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, text));
    }
    match of(header::CONTENT_ENCODING) {
        None => Ok(()),
        Some(encoding) if encoding.eq_ignore_ascii_case("identity") => Ok(()),
        Some(encoding) => {
            let text = format!("the content-encoding is {encoding}: send the body as it is");
            Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, text))
        }
    }
}
