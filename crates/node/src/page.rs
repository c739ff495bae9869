//! The page at `GET /`: heads, times, blocks, and what is in their witnesses.
//!
//! It is one document without anything from elsewhere, and asks its own port for
//! `deponent_overview` and `deponent_inspectWitness`, without which there is none. Texts of answers
//! are never put in as markup.

use std::sync::OnceLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rpc::Pieces;
use rpc::rest::{HeaderMap, HeaderValue, Response, StatusCode, header};
use sha2::{Digest as _, Sha256};

const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = include_str!("page/page.js");
const PAGE: &str = concat!(
    "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">",
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">",
    "<meta name=\"color-scheme\" content=\"light dark\">",
    "<link rel=\"icon\" href=\"data:,\"><title>Deponent</title><style>",
    include_str!("page/page.css"),
    "</style></head>",
    include_str!("page/body.html"),
    "<script>",
    include_str!("page/page.js"),
    "</script></html>"
);

/// The methods that the page calls.
const METHODS: [&str; 2] = ["deponent_overview", "deponent_inspectWitness"];

/// The page, as a browser gets it, or an answer that says why it would not work: the port `offers`
/// some methods alone.
pub(crate) fn response(offers: impl Fn(&str) -> bool) -> Response {
    if !METHODS.iter().all(|method| offers(method)) {
        let text = "The page at / needs the methods of the namespace deponent, which this port \
                    does not offer: add it to --http.api (--ws.api), or turn the page off with \
                    --http.page=false.\n";
        return Response::text(StatusCode::NOT_FOUND, text);
    }
    let mut body = Pieces::default();
    body.push(PAGE.as_bytes());
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
        (header::CONTENT_SECURITY_POLICY, policy()),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    ];
    let headers = HeaderMap::from_iter(headers);
    Response { status: StatusCode::OK, headers, body, file: None }
}

/// Content Security Policy: this script and this style alone, and calls of the page's own port.
fn policy() -> HeaderValue {
    static POLICY: OnceLock<HeaderValue> = OnceLock::new();
    let digest = |text: &str| STANDARD.encode(Sha256::digest(text));
    let policy = POLICY.get_or_init(|| {
        let policy = format!(
            "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; \
             connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; \
             frame-ancestors 'none'",
            digest(SCRIPT),
            digest(STYLE)
        );
        policy.try_into().expect("it is ASCII")
    });
    policy.clone()
}
