//! Rendered JSON, and hex at SIMD speed.

use bytes::Bytes;
use serde::Serialize;

use crate::error::{Code, Error};
use crate::limits::HEX_CHUNK_BYTES;

/// One JSON value, rendered already, as a list of pieces that are sent without being joined.
///
/// The pieces are trusted to be one value when put together: only the server's own code makes
/// them.
#[derive(Clone, Debug)]
pub struct Json {
    pub(crate) parts: Vec<Bytes>,
}

impl Json {
    /// Renders a value; fails only where the type has no JSON form, which is a fault of ours.
    pub fn of(value: &impl Serialize) -> Result<Self, Error> {
        match serde_json::to_vec(value) {
            Ok(text) => Ok(text.into()),
            Err(fault) => Err(Error::new(
                Code::Internal,
                format_args!("the result has no JSON form: {fault}"),
            )),
        }
    }

    /// Bytes in all.
    pub fn len_bytes(&self) -> usize {
        self.parts.iter().map(Bytes::len).sum()
    }

    /// The pieces joined: a copy, for tests and small values.
    pub fn to_vec(&self) -> Vec<u8> {
        self.parts.concat()
    }
}

impl From<Vec<u8>> for Json {
    fn from(text: Vec<u8>) -> Self {
        vec![Bytes::from(text)].into()
    }
}

impl From<Vec<Bytes>> for Json {
    fn from(parts: Vec<Bytes>) -> Self {
        assert!(parts.iter().any(|part| !part.is_empty()), "nothing is not a JSON value");
        Self { parts }
    }
}

/// Appends `bytes` as a JSON string, `"0x..."`.
pub fn push_hex(out: &mut Vec<u8>, bytes: &[u8]) {
    out.reserve(4 + 2 * bytes.len());
    out.extend_from_slice(b"\"0x");
    // Chunk by chunk, so that the zeroes are overwritten while still in the cache.
    for chunk in bytes.chunks(HEX_CHUNK_BYTES) {
        let start = out.len();
        out.resize(start + 2 * chunk.len(), 0);
        const_hex::encode_to_slice(chunk, &mut out[start..]).expect("two digits for each byte");
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn hex_of_nothing_is_0x() {
        let mut out = b"x".to_vec();
        push_hex(&mut out, &[]);
        assert_eq!(out, b"x\"0x\"");
    }

    #[test]
    fn a_type_without_json_form_is_an_internal_error() {
        let map = std::collections::BTreeMap::from([((1, 2), 3)]);
        assert!(Json::of(&map).expect_err("keys are not strings").is(Code::Internal));
    }

    proptest! {
        #[test]
        fn hex_agrees_with_formatting_byte_by_byte(
            seed in any::<u8>(),
            length in 0..4 * HEX_CHUNK_BYTES,
        ) {
            let bytes: Vec<u8> = (0..length).map(|i| (i as u8).wrapping_mul(seed)).collect();
            let mut fast = Vec::new();
            push_hex(&mut fast, &bytes);
            let slow: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            prop_assert_eq!(fast, format!("\"0x{slow}\"").into_bytes());
        }
    }
}
