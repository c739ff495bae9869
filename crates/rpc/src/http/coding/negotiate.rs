//! Which coding an answer gets.

use hyper::header::{
    ACCEPT_ENCODING, ACCEPT_RANGES, CONTENT_ENCODING, CONTENT_RANGE, ETAG, HeaderMap, HeaderValue,
    VARY,
};
use hyper::{Method, Response, StatusCode};

use crate::http::coding::ZSTD;
use crate::http::resource as rest;

/// The codings that a client takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AcceptedCodings {
    /// The client prefers zstd, or takes nothing else that there is.
    pub(crate) zstd: bool,
    /// The client takes the bytes as they are.
    pub(crate) identity: bool,
}

impl AcceptedCodings {
    /// Reads `Accept-Encoding` (RFC 9110 section 12.5.3). zstd has to be named, with at least the
    /// weight that identity is given, unless identity is refused. Malformed items are ignored.
    pub(crate) fn read(headers: &HeaderMap) -> Self {
        let (mut zstd, mut identity, mut any) = (None, None, None);
        let lists = headers.get_all(ACCEPT_ENCODING).iter();
        let items = lists.filter_map(|list| list.to_str().ok()).flat_map(|list| list.split(','));
        for item in items {
            let (name, parameters) = item.split_once(';').unwrap_or((item, "q=1"));
            let known = match name.trim() {
                name if name.eq_ignore_ascii_case(ZSTD) => &mut zstd,
                name if name.eq_ignore_ascii_case("identity") => &mut identity,
                "*" => &mut any,
                _ => continue,
            };
            *known = weight(parameters).or(*known);
        }
        let is_identity_taken = identity.or(any) != Some(0);
        let is_zstd_wanted = zstd.is_some_and(|zstd| zstd > 0 && zstd >= identity.unwrap_or(0));
        let is_zstd_taken = zstd.or(any).is_some_and(|weight| weight > 0);
        Self {
            zstd: is_zstd_wanted || (is_zstd_taken && !is_identity_taken),
            identity: is_identity_taken,
        }
    }
}

/// Reads `q=0.123` as thousandths.
fn weight(parameter: &str) -> Option<u32> {
    let (name, value) = parameter.split_once('=')?;
    if !name.trim().eq_ignore_ascii_case("q") {
        return None;
    }
    let (whole, decimals) = value.trim().split_once('.').unwrap_or((value.trim(), ""));
    let is_number = decimals.len() <= 3 && decimals.bytes().all(|digit| digit.is_ascii_digit());
    let thousandths: u32 = format!("{decimals:0<3}").parse().ok().filter(|_| is_number)?;
    match whole {
        "0" => Some(thousandths),
        "1" if thousandths == 0 => Some(1000),
        _ => None,
    }
}

/// Whether an answer with this body is coded for a client that takes `accepted`, where bodies of
/// `from_bytes` and more are. The response's headers are changed accordingly.
///
/// Answers to `HEAD` are not coded, which say how long the body is as it is; nor are bodies passed
/// by descriptor, nor ranges. Ranges are of the body as it is, so a coded answer offers none, and
/// its entity tag is weak, which `If-Range` does not take.
pub(crate) fn is_coded<B>(
    accepted: AcceptedCodings,
    from_bytes: usize,
    method: &Method,
    body_bytes: usize,
    response: &mut Response<B>,
) -> bool {
    let status = response.status();
    let headers = response.headers_mut();
    if from_bytes == usize::MAX || headers.contains_key(rest::DESCRIPTOR) {
        return false;
    }
    headers.append(VARY, HeaderValue::from_static("accept-encoding"));
    if status == StatusCode::NOT_MODIFIED && accepted.zstd {
        // The tag of the answer that it stands for.
        weaken(headers);
    }
    let is_long = body_bytes >= from_bytes || (!accepted.identity && body_bytes > 0);
    let is_whole = status == StatusCode::OK && !headers.contains_key(CONTENT_RANGE);
    let is_coded = accepted.zstd && is_long && is_whole && method != Method::HEAD;
    if is_coded {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static(ZSTD));
        headers.remove(ACCEPT_RANGES);
        weaken(headers);
    }
    is_coded
}

/// Makes the entity tag a weak one, if there is one.
fn weaken(headers: &mut HeaderMap) {
    if let Some(tag) = headers.get_mut(ETAG)
        && !tag.as_bytes().starts_with(b"W/")
    {
        let weak = [b"W/", tag.as_bytes()].concat();
        *tag = HeaderValue::from_bytes(&weak).expect("it was a header");
    }
}
