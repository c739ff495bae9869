//! Answers that come without some of the codes of their witness.

use alloy_primitives::Bytes;
use engine_api::{PayloadStatus, WithWitness, headers};
use rpc::rest::HeaderName;

use crate::Error;

/// Asks for a witness without some of its codes, and says in the answer how they were left out.
pub(super) const CODES: HeaderName = HeaderName::from_static(headers::CODES);

/// Two offsets: of the answer, and of the list.
const FIXED_BYTES: usize = 8;

/// A status with its witness.
pub(super) type StatusAnswer = WithWitness<PayloadStatus>;

/// Splits `{ answer: PayloadStatusWithWitness, list }` into its two fields.
pub(super) fn split(body: &Bytes) -> Result<(Bytes, Bytes), Error> {
    let offset = |at: usize| {
        let bytes = body.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
        bytes.map(|bytes| u32::from_le_bytes(bytes) as usize)
    };
    match (offset(0), offset(4)) {
        (Some(FIXED_BYTES), Some(end)) if (FIXED_BYTES..=body.len()).contains(&end) => {
            Ok((body.slice(FIXED_BYTES..end), body.slice(end..)))
        }
        _ => Err(malformed("its offsets are wrong")),
    }
}

/// The items of a list, of `BYTES` each.
pub(super) fn items<const BYTES: usize, T>(
    list: &[u8],
    read: impl Fn([u8; BYTES]) -> T,
) -> Result<Vec<T>, Error> {
    match list.as_chunks() {
        (items, []) => Ok(items.iter().map(|item| read(*item)).collect()),
        _ => Err(malformed("an item of its list is cut")),
    }
}

pub(super) fn malformed(reason: &str) -> Error {
    Error::Decode(format!("an answer without some of its codes: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(answer: &[u8], numbers: &[u8]) -> Bytes {
        let end = (FIXED_BYTES + answer.len()) as u32;
        [&8_u32.to_le_bytes(), &end.to_le_bytes(), answer, numbers].concat().into()
    }

    #[test]
    fn an_answer_and_numbers_are_told_apart() {
        let (answer, list) = split(&parts(b"answer", &[1, 0, 0, 0, 0, 1, 0, 0])).expect("whole");
        assert_eq!(answer, b"answer"[..]);
        assert_eq!(items(&list, u32::from_le_bytes).expect("whole"), [1, 256]);
        let whole = parts(b"", b"");
        assert!(split(&whole).is_ok());
        for length in 0..whole.len() {
            split(&whole.slice(..length)).expect_err("it is cut");
        }
        items(&[1, 0, 0, 0, 1], u32::from_le_bytes).expect_err("a part of a number");
        split(&Bytes::from_static(&[8, 0, 0, 0, 9, 0, 0, 0])).expect_err("behind the end");
        split(&Bytes::from_static(&[8, 0, 0, 0, 7, 0, 0, 0])).expect_err("before the answer");
        split(&Bytes::from_static(&[4, 0, 0, 0, 8, 0, 0, 0])).expect_err("another offset");
    }
}
