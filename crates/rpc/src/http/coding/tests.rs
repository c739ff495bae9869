use super::decode::{DecodeError, ZstdDecoder};
use super::encode::EncodedBody;
use super::negotiate::{AcceptedCodings, is_coded};
use crate::pieces::Pieces;
use hyper::header::{
    ACCEPT_ENCODING, ACCEPT_RANGES, CONTENT_ENCODING, ETAG, HeaderMap, HeaderValue, VARY,
};
use hyper::{Method, Response, StatusCode};
use proptest::prelude::*;
use std::io;
use std::sync::Arc;
use tokio::sync::Semaphore;
use zstd::stream::raw::{CParameter, Encoder, Operation as _};

#[track_caller]
fn check(accept: &str, zstd: bool, identity: bool) {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT_ENCODING, accept.parse().expect("a header"));
    assert_eq!(AcceptedCodings::read(&headers), AcceptedCodings { zstd, identity }, "{accept}");
}

#[test]
fn zstd_is_for_those_who_name_it() {
    assert_eq!(
        AcceptedCodings::read(&HeaderMap::new()),
        AcceptedCodings { zstd: false, identity: true },
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
    let both = AcceptedCodings { zstd: true, identity: true };
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
    let identity = AcceptedCodings { zstd: false, identity: true };
    assert_eq!(as_it_is(identity, 1, Method::GET, StatusCode::OK), "\"tag\"");
    // A client that refuses identity gets short answers coded, too.
    let zstd = AcceptedCodings { zstd: true, identity: false };
    assert!(is_coded(zstd, 100, &Method::GET, 1, &mut response(StatusCode::OK)));
}

fn decode(coded: &[u8], step: usize, most_bytes: usize) -> Result<Vec<u8>, DecodeError> {
    let (mut decoding, mut body) = (ZstdDecoder::new().expect("memory"), Vec::new());
    for part in coded.chunks(step) {
        decoding.push(part, &mut body, most_bytes)?;
    }
    match decoding.is_whole() {
        true => Ok(body),
        false => Err(DecodeError::Malformed(io::ErrorKind::UnexpectedEof.into())),
    }
}

fn coded(pieces: Pieces) -> Vec<u8> {
    let permit = Arc::new(Semaphore::new(1)).try_acquire_owned().expect("it is free");
    let (mut coded, mut all) = (EncodedBody::new(pieces, permit), Vec::new());
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
            prop_assert!(matches!(too_long, Err(DecodeError::TooLong)));
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
    encoder.set_parameter(CParameter::WindowLog(24)).expect("known");
    let mut out = vec![0; 1 << 20];
    let status = encoder.run_on_buffers(&[1; 300_000], &mut out).expect("coded");
    let coded = &out[..status.bytes_written];
    assert!(matches!(decode(coded, 1000, usize::MAX), Err(DecodeError::Malformed(_))));
}
