//! Content that never changes, whole or a range of it (RFC 9110, sections 8.8.3, 13 and 14).

use std::ops::Range;

use alloy_primitives::B256;
use rpc::Pieces;
use rpc::rest::header::{ACCEPT_RANGES, CONTENT_RANGE, ETAG, IF_NONE_MATCH, IF_RANGE, RANGE};
use rpc::rest::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};

use super::problem::{Problem, ProblemKind};
use super::ssz;

/// A strong entity tag: a block and the form of what is given of it.
pub(super) struct ETag(String);

impl ETag {
    pub(super) fn new(hash: B256, form: &str) -> Self {
        Self(format!("\"{hash}-{form}\""))
    }

    /// Whether the client has it already (`If-None-Match`).
    pub(super) fn is_known(&self, request: &Request) -> bool {
        let values = request.headers.get_all(IF_NONE_MATCH).iter();
        let mut tags = values.filter_map(|value| value.to_str().ok()).flat_map(|v| v.split(','));
        tags.any(|tag| {
            let tag = tag.trim();
            tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == self.0
        })
    }

    pub(super) fn not_modified(&self) -> Response {
        let mut headers = HeaderMap::new();
        headers.insert(ETAG, self.value());
        Response { status: StatusCode::NOT_MODIFIED, headers, body: Pieces::default(), file: None }
    }

    /// Whether a range may be given: `If-Range` is not there, or is this tag.
    fn is_same(&self, request: &Request) -> bool {
        request.headers.get(IF_RANGE).is_none_or(|value| value == self.0.as_str())
    }

    fn value(&self) -> HeaderValue {
        HeaderValue::try_from(&self.0).expect("quotes, hex and letters")
    }
}

/// All of `content`, or the range that is asked for.
pub(super) fn respond(request: &Request, tag: &ETag, content: Pieces) -> Result<Response, Problem> {
    let bytes = content.len_bytes();
    let (mut answer, content_range) = match requested(request, tag, bytes) {
        RequestedRange::All => (ssz(content), None),
        RequestedRange::Part(range) => {
            let content_range = format!("bytes {}-{}/{bytes}", range.start, range.end - 1);
            let part = ssz(content.slice(range));
            (Response { status: StatusCode::PARTIAL_CONTENT, ..part }, Some(content_range))
        }
        RequestedRange::Nothing => {
            let detail = format!("the range lies behind the end: there are {bytes} bytes");
            let problem = Problem::new(ProblemKind::RangeNotSatisfiable, detail);
            (problem.response(), Some(format!("bytes */{bytes}")))
        }
    };
    answer.headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    answer.headers.insert(ETAG, tag.value());
    if let Some(range) = content_range {
        let range = HeaderValue::try_from(range).expect("digits and ASCII");
        answer.headers.insert(CONTENT_RANGE, range);
    }
    Ok(answer)
}

/// The range of a content that a request asks for.
#[derive(Debug, PartialEq, Eq)]
enum RequestedRange {
    All,
    Part(Range<usize>),
    /// A range that begins behind the end.
    Nothing,
}

fn requested(request: &Request, tag: &ETag, bytes: usize) -> RequestedRange {
    let mut values = request.headers.get_all(RANGE).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return RequestedRange::All };
    if request.method != Method::GET || !tag.is_same(request) {
        return RequestedRange::All;
    }
    value.to_str().map_or(RequestedRange::All, |value| range(value, bytes))
}

/// Reads a single range. Several ranges and malformed ones may be ignored, and are.
fn range(value: &str, bytes: usize) -> RequestedRange {
    let Some((unit, spec)) = value.split_once('=') else { return RequestedRange::All };
    let Some((first, last)) = spec.trim().split_once('-') else { return RequestedRange::All };
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return RequestedRange::All;
    }
    // A number that is too large lies behind the end like any other that is.
    let number = |digits: &str| match digits.bytes().all(|digit| digit.is_ascii_digit()) {
        true if !digits.is_empty() => Ok(Some(digits.parse().unwrap_or(usize::MAX))),
        true => Ok(None),
        false => Err(()),
    };
    let (Ok(first), Ok(last)) = (number(first), number(last)) else { return RequestedRange::All };
    let (start, end) = match (first, last) {
        (None, None) => return RequestedRange::All,
        (Some(first), Some(last)) if first > last => return RequestedRange::All,
        (Some(first), last) => (first, last.unwrap_or(usize::MAX).saturating_add(1).min(bytes)),
        (None, Some(suffix)) => (bytes - suffix.min(bytes), bytes),
    };
    if start < end { RequestedRange::Part(start..end) } else { RequestedRange::Nothing }
}

#[cfg(test)]
mod tests;
