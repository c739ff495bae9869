//! Resources by path, beside JSON-RPC on the same port.

pub use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
pub use hyper::{Method, StatusCode};

use bytes::Bytes;

use crate::pieces::Pieces;

/// A request for a resource. Its token, where the port asks for one, was right, and its body was
/// read within the port's limits.
#[derive(Clone, Debug)]
pub struct Request {
    /// The method.
    pub method: Method,
    /// The path, as it came.
    pub path: String,
    /// What follows the question mark, as it came.
    pub query: Option<String>,
    /// All headers.
    pub headers: HeaderMap,
    /// The body, empty where there is none.
    pub body: Bytes,
}

/// What a resource answers.
#[derive(Clone, Debug)]
pub struct Response {
    /// The status.
    pub status: StatusCode,
    /// The headers; the length of the body is added.
    pub headers: HeaderMap,
    /// The body. It is not sent in answer to `HEAD`, but its length is.
    pub body: Pieces,
}

impl Response {
    /// A line of plain text.
    pub fn text(status: StatusCode, text: impl Into<String>) -> Self {
        let mut headers = HeaderMap::new();
        let plain = HeaderValue::from_static("text/plain; charset=utf-8");
        headers.insert(header::CONTENT_TYPE, plain);
        Self { status, headers, body: (text.into() + "\n").into_bytes().into() }
    }
}
