//! Content codings (RFC 9110 section 8.4): zstd (RFC 8878), and none.
//!
//! An answer is coded while it is sent, chunk by chunk, for a client that names zstd.

use std::io;

use bytes::Bytes;
use hyper::header::{
    ACCEPT_ENCODING, ACCEPT_RANGES, CONTENT_ENCODING, CONTENT_RANGE, ETAG, HeaderMap, HeaderValue,
    VARY,
};
use hyper::{Method, Response, StatusCode};
use tokio::sync::OwnedSemaphorePermit;
use zstd::stream::raw::{DParameter, Decoder, Encoder, InBuffer, Operation, OutBuffer};

use crate::http::resource as rest;
use crate::limits::{CODED_BYTES, RESERVED_BYTES, TO_CODE_BYTES, ZSTD_LEVEL, ZSTD_WINDOW_LOG};
use crate::pieces::Pieces;

/// The name of the coding.
pub(crate) const ZSTD: &str = "zstd";

/// What a client takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Accepted {
    /// zstd is what it wants, or all that it takes of what there is.
    pub(crate) zstd: bool,
    /// It takes the bytes as they are.
    pub(crate) identity: bool,
}

impl Accepted {
    /// Reads `Accept-Encoding` (RFC 9110 section 12.5.3). zstd has to be named, with at least the
    /// weight that identity is given, unless identity is refused. What is malformed is not there.
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

/// Whether an answer with this body is coded, for a client that takes `accepted`, where bodies of
/// `from_bytes` and more are; what goes with that is said in its headers.
///
/// Never in answer to `HEAD`, which says how long the body is as it is; nor what comes by
/// descriptor, nor a range: ranges are of the body as it is, so a coded answer offers none, and
/// its entity tag is weak, which `If-Range` does not take.
pub(crate) fn is_coded<B>(
    accepted: Accepted,
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
        // Of the answer that it stands for.
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

/// Makes an entity tag that is there a weak one.
fn weaken(headers: &mut HeaderMap) {
    if let Some(tag) = headers.get_mut(ETAG)
        && !tag.as_bytes().starts_with(b"W/")
    {
        let weak = [b"W/", tag.as_bytes()].concat();
        *tag = HeaderValue::from_bytes(&weak).expect("it was a header");
    }
}

/// Pieces that are coded while they are taken.
pub(crate) struct Coded {
    pieces: Pieces,
    /// Made when the first bytes are taken, and dropped with the last ones.
    encoder: Option<Encoder<'static>>,
    /// The room that it takes.
    coder: Option<OwnedSemaphorePermit>,
    is_ended: bool,
}

impl Coded {
    /// One frame of all pieces, which says how long they are.
    pub(crate) const fn new(pieces: Pieces, coder: OwnedSemaphorePermit) -> Self {
        Self { pieces, encoder: None, coder: Some(coder), is_ended: false }
    }

    pub(crate) const fn is_ended(&self) -> bool {
        self.is_ended
    }

    /// Takes what is to be sent next: something, until it is ended.
    pub(crate) fn take(&mut self) -> io::Result<Bytes> {
        let encoder = match &mut self.encoder {
            Some(encoder) => encoder,
            none => none.insert(encoder(self.pieces.len_bytes())?),
        };
        let mut coded = Vec::with_capacity(2 * CODED_BYTES);
        while !self.is_ended && coded.len() < CODED_BYTES {
            let chunk = self.pieces.take(TO_CODE_BYTES);
            let mut input = InBuffer::around(&chunk);
            loop {
                coded.reserve(CODED_BYTES);
                let filled = coded.len();
                let mut output = OutBuffer::around_pos(&mut coded, filled);
                if input.pos() < chunk.len() {
                    encoder.run(&mut input, &mut output)?;
                } else if !self.pieces.is_empty() {
                    break;
                } else if encoder.finish(&mut output, true)? == 0 {
                    self.is_ended = true;
                    break;
                }
            }
        }
        if self.is_ended {
            (self.encoder, self.coder) = (None, None);
        }
        Ok(coded.into())
    }
}

fn encoder(length: usize) -> io::Result<Encoder<'static>> {
    let mut encoder = Encoder::new(ZSTD_LEVEL)?;
    encoder.set_pledged_src_size(Some(length as u64))?;
    Ok(encoder)
}

impl std::fmt::Debug for Coded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}, coded", self.pieces)
    }
}

/// Reads a body as it was before it was coded.
pub(crate) struct Decoding {
    decoder: Decoder<'static>,
    /// Nothing has come yet.
    is_fresh: bool,
    /// What came so far is whole frames.
    is_whole: bool,
}

/// Why a body is not read any further.
#[derive(Debug)]
pub(crate) enum Undecoded {
    /// It is not zstd.
    Malformed(io::Error),
    /// It is longer than it may be.
    TooLong,
}

impl Decoding {
    pub(crate) fn new() -> io::Result<Self> {
        let mut decoder = Decoder::new()?;
        decoder.set_parameter(DParameter::WindowLogMax(ZSTD_WINDOW_LOG))?;
        Ok(Self { decoder, is_fresh: true, is_whole: false })
    }

    /// Appends what `coded` holds to `body`, which may get `most_bytes` long.
    pub(crate) fn push(
        &mut self,
        coded: &[u8],
        body: &mut Vec<u8>,
        most_bytes: usize,
    ) -> Result<(), Undecoded> {
        if std::mem::take(&mut self.is_fresh)
            && let Ok(Some(announced)) = zstd::zstd_safe::get_frame_content_size(coded)
        {
            // New memory is not touched before it is needed, so that a wrong length costs nothing.
            let announced = usize::try_from(announced).unwrap_or(usize::MAX);
            body.reserve(announced.min(RESERVED_BYTES));
        }
        let mut input = InBuffer::around(coded);
        loop {
            if body.capacity() == body.len() {
                body.reserve(CODED_BYTES);
            }
            let filled = body.len();
            let mut output = OutBuffer::around_pos(body, filled);
            let left = self.decoder.run(&mut input, &mut output).map_err(Undecoded::Malformed)?;
            self.is_whole = left == 0;
            if body.len() > most_bytes {
                return Err(Undecoded::TooLong);
            }
            let is_all_read = input.pos() == coded.len();
            // As long as the memory is filled, there may be more of what was read.
            if is_all_read && (self.is_whole || body.len() < body.capacity()) {
                return Ok(());
            }
        }
    }

    /// Whether the body is complete.
    pub(crate) const fn is_whole(&self) -> bool {
        self.is_whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::Arc;
    use tokio::sync::Semaphore;

    #[track_caller]
    fn check(accept: &str, zstd: bool, identity: bool) {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT_ENCODING, accept.parse().expect("a header"));
        assert_eq!(Accepted::read(&headers), Accepted { zstd, identity }, "{accept}");
    }

    #[test]
    fn zstd_is_for_those_who_name_it() {
        assert_eq!(
            Accepted::read(&HeaderMap::new()),
            Accepted { zstd: false, identity: true },
            "nothing is said"
        );
        for accept in ["", "gzip, deflate, br", "*", "identity", "*;q=0.5, gzip", "xzstd, zstdx"] {
            check(accept, false, true);
        }
        for accept in ["zstd", "gzip, ZStd ;Q=0.5", "zstd;q=0.001", "*;q=0.1, zstd", "zstd,,"] {
            check(accept, true, true);
        }
    }

    #[test]
    fn weights_are_heeded() {
        check("zstd;q=0", false, true);
        check("zstd;q=0.000, *", false, true);
        check("zstd;q=0.5, identity", false, true);
        check("zstd;q=0.5, identity;q=0.5", true, true);
        check("zstd;q=0.5, identity;q=0.501", false, true);
        check("identity;q=0", false, false);
        check("identity;q=0, *", true, false);
        check("identity;q=0, zstd;q=0.1", true, false);
        check("identity;q=0, zstd;q=0, *", false, false);
        check("*;q=0", false, false);
        check("*;q=0, identity", false, true);
        check("*;q=0, zstd", true, false);
        check("identity;q=0;q=1", false, true);
    }

    #[test]
    fn what_is_malformed_is_not_there() {
        for weight in ["q", "q=", "q=2", "q=1.1", "q=0.0001", "q=-1", "q=+0", "p=1", "q=0.+1"] {
            check(&format!("zstd;{weight}"), false, true);
        }
    }

    fn response(status: StatusCode) -> Response<()> {
        let mut response = Response::new(());
        *response.status_mut() = status;
        response.headers_mut().insert(ETAG, HeaderValue::from_static("\"tag\""));
        response.headers_mut().insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        response
    }

    #[test]
    fn a_coded_answer_has_a_weak_tag_and_no_ranges() {
        let both = Accepted { zstd: true, identity: true };
        let mut coded = response(StatusCode::OK);
        assert!(is_coded(both, 100, &Method::GET, 100, &mut coded));
        assert_eq!(coded.headers()[ETAG], "W/\"tag\"");
        assert_eq!(coded.headers()[CONTENT_ENCODING], "zstd");
        assert_eq!(coded.headers()[VARY], "accept-encoding");
        assert!(!coded.headers().contains_key(ACCEPT_RANGES));
        let as_it_is = |accepted, from_bytes, method: Method, status| {
            let mut response = response(status);
            assert!(!is_coded(accepted, from_bytes, &method, 99, &mut response));
            assert!(!response.headers().contains_key(CONTENT_ENCODING));
            response.headers()[ETAG].to_str().expect("text").to_owned()
        };
        assert_eq!(as_it_is(both, 100, Method::GET, StatusCode::OK), "\"tag\"");
        assert_eq!(as_it_is(both, usize::MAX, Method::GET, StatusCode::OK), "\"tag\"");
        assert_eq!(as_it_is(both, 1, Method::HEAD, StatusCode::OK), "\"tag\"");
        assert_eq!(as_it_is(both, 1, Method::GET, StatusCode::PARTIAL_CONTENT), "\"tag\"");
        assert_eq!(as_it_is(both, 1, Method::GET, StatusCode::NOT_MODIFIED), "W/\"tag\"");
        let identity = Accepted { zstd: false, identity: true };
        assert_eq!(as_it_is(identity, 1, Method::GET, StatusCode::OK), "\"tag\"");
        // Who refuses it as it is gets short ones coded too.
        let zstd = Accepted { zstd: true, identity: false };
        assert!(is_coded(zstd, 100, &Method::GET, 1, &mut response(StatusCode::OK)));
    }

    fn decode(coded: &[u8], step: usize, most_bytes: usize) -> Result<Vec<u8>, Undecoded> {
        let (mut decoding, mut body) = (Decoding::new().expect("memory"), Vec::new());
        for part in coded.chunks(step) {
            decoding.push(part, &mut body, most_bytes)?;
        }
        match decoding.is_whole() {
            true => Ok(body),
            false => Err(Undecoded::Malformed(io::ErrorKind::UnexpectedEof.into())),
        }
    }

    fn coded(pieces: Pieces) -> Vec<u8> {
        let coder = Arc::new(Semaphore::new(1)).try_acquire_owned().expect("it is free");
        let (mut coded, mut all) = (Coded::new(pieces, coder), Vec::new());
        while !coded.is_ended() {
            let part = coded.take().expect("coded");
            assert!(!part.is_empty());
            all.extend_from_slice(&part);
        }
        all
    }

    proptest! {
        /// The library's own one-shot functions are the other end.
        #[test]
        fn what_is_coded_is_read_back(
            parts in prop::collection::vec((any::<bool>(), any::<u64>(), 0..150_000_usize), 0..6),
            step in prop_oneof![1..50_usize, 1000..200_000_usize],
        ) {
            let mut pieces = Pieces::default();
            for (is_hex, seed, length) in parts {
                // Some of it is noise, and some of it is not.
                let mut state = seed | 1;
                let bytes: Vec<u8> = (0..length).map(|at| {
                    state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
                    if at % 5000 < 2500 { (state >> 33) as u8 } else { at as u8 / 16 }
                }).collect();
                if is_hex { pieces.push_hex(bytes) } else { pieces.push(bytes) }
            }
            let expected = pieces.to_vec();
            let coded = coded(pieces);
            prop_assert!(zstd::stream::decode_all(&coded[..]).expect("zstd") == expected);
            prop_assert!(decode(&coded, step, expected.len()).expect("zstd") == expected);
            let elsewhere = zstd::stream::encode_all(&expected[..], 3).expect("memory");
            prop_assert!(decode(&elsewhere, step, expected.len()).expect("zstd") == expected);
            if !expected.is_empty() {
                let too_long = decode(&coded, step, expected.len() - 1);
                prop_assert!(matches!(too_long, Err(Undecoded::TooLong)));
            }
            for cut in [1, coded.len() / 2, coded.len()] {
                prop_assert!(decode(&coded[..coded.len() - cut], step, usize::MAX).is_err());
            }
        }

        #[test]
        fn whatever_comes_is_no_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..300),
            flip in any::<prop::sample::Index>(),
        ) {
            decode(&bytes, 7, 1 << 20).map(drop).unwrap_or_default();
            let mut coded = coded(vec![7; 20_000].into());
            let at = flip.index(coded.len());
            coded[at] ^= 1 + bytes.first().copied().unwrap_or_default() / 2;
            decode(&coded, 100, 1 << 20).map(drop).unwrap_or_default();
        }
    }

    #[test]
    fn a_window_beyond_eight_mebibytes_is_refused() {
        let mut encoder = Encoder::new(1).expect("memory");
        use zstd::stream::raw::CParameter;
        encoder.set_parameter(CParameter::WindowLog(24)).expect("known");
        let mut out = vec![0; 1 << 20];
        let status = encoder.run_on_buffers(&[1; 300_000], &mut out).expect("coded");
        let coded = &out[..status.bytes_written];
        assert!(matches!(decode(coded, 1000, usize::MAX), Err(Undecoded::Malformed(_))));
    }
}
