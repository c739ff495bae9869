//! The server's part of a WebSocket handshake (RFC 6455 section 4.2).

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, StatusCode, Version};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

/// Whether a request asks for a WebSocket.
pub(crate) fn is_asked(head: &Parts) -> bool {
    head.method == Method::GET && lists(&head.headers, header::UPGRADE, "websocket")
}

/// The headers of the agreement, or the status and the reason of a refusal.
pub(crate) fn accept(
    head: &Parts,
) -> Result<[(HeaderName, HeaderValue); 3], (StatusCode, &'static str)> {
    let headers = &head.headers;
    let is_upgrade = lists(headers, header::CONNECTION, "upgrade");
    if head.version != Version::HTTP_11 || !is_upgrade {
        let text = "a WebSocket needs HTTP/1.1 and the header connection: upgrade";
        return Err((StatusCode::BAD_REQUEST, text));
    }
    if headers.get(header::SEC_WEBSOCKET_VERSION).is_none_or(|version| version != "13") {
        let text = "the sec-websocket-version is not 13, the one of RFC 6455";
        return Err((StatusCode::UPGRADE_REQUIRED, text));
    }
    let key = headers.get(header::SEC_WEBSOCKET_KEY).map(HeaderValue::as_bytes);
    let key = key.filter(|key| BASE64_STANDARD.decode(key).is_ok_and(|key| key.len() == 16));
    let Some(key) = key else {
        return Err((StatusCode::BAD_REQUEST, "the sec-websocket-key is not 16 bytes in base64"));
    };
    let accept = derive_accept_key(key).try_into().expect("base64 may be a header");
    Ok([
        (header::CONNECTION, HeaderValue::from_static("upgrade")),
        (header::UPGRADE, HeaderValue::from_static("websocket")),
        (header::SEC_WEBSOCKET_ACCEPT, accept),
    ])
}

/// Whether a header that is a list has an element, in upper or lower case.
fn lists(headers: &HeaderMap, name: HeaderName, element: &str) -> bool {
    let values = headers.get_all(name);
    let mut texts = values.iter().filter_map(|value| value.to_str().ok());
    texts.any(|text| text.split(',').any(|found| found.trim().eq_ignore_ascii_case(element)))
}
