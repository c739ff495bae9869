//! Codes that came on the connection, which are not sent again.

use alloy_primitives::Bytes;
use engine_api::{PayloadStatus, WithWitness, headers};
use rpc::Reply;
use rpc::rest::{HeaderName, HeaderValue};
use witness::Witness;

use crate::Error;

/// Asks for the codes alone that are not held, and says in the answer which number the first of
/// them has.
pub(crate) const CODES: HeaderName = HeaderName::from_static(headers::CODES);

/// The value with which it asks.
pub(crate) const HELD: HeaderValue = HeaderValue::from_static(headers::HELD);

/// Two offsets: of the answer, and of the numbers.
const FIXED_BYTES: usize = 8;

/// The codes that came on a connection. Their numbers, from 0, are those that the server counts.
#[derive(Debug, Default)]
pub(crate) struct Held {
    codes: Vec<Bytes>,
    bytes: usize,
    /// Bytes that may be held between two calls.
    most_bytes: usize,
}

impl Held {
    pub(crate) fn new(most_bytes: usize) -> Self {
        Self { most_bytes, ..Self::default() }
    }

    /// Whether there are more than may be held.
    pub(crate) const fn is_full(&self) -> bool {
        self.bytes > self.most_bytes
    }

    pub(crate) fn forget(&mut self) {
        *self = Self::new(self.most_bytes);
    }

    /// Reads an answer and completes its witness; `None` where the server's numbers are not ours,
    /// so that a new connection has to be made. After anything but a witness nothing is held.
    pub(crate) fn read(&mut self, reply: &Reply) -> Result<Option<Read>, Error> {
        let Some(first) = reply.headers.get(CODES) else {
            // Of an answer without a witness, or a server that numbers no codes.
            return Ok(Some(Read::decode(&reply.body.clone().into())?));
        };
        let mut held = std::mem::replace(self, Self::new(self.most_bytes));
        let first = first.to_str().ok().and_then(|first| first.parse::<usize>().ok());
        match first.ok_or_else(|| malformed("its number is none"))? {
            0 => held.forget(),
            first if first == held.codes.len() => {}
            _ => return Ok(None),
        }
        let (answer, numbers) = split(&reply.body.clone().into())?;
        let numbers = items(&numbers, u32::from_le_bytes)?;
        let mut read = Read::decode(&answer)?;
        let Some(witness) = &mut read.witness else {
            return Err(malformed("codes are numbered, and there is no witness"));
        };
        held.complete(witness, &numbers)?;
        *self = held;
        Ok(Some(read))
    }

    /// Adds the codes with these numbers to a witness, and holds those that it has already.
    fn complete(&mut self, witness: &mut Witness, numbers: &[u32]) -> Result<(), Error> {
        let found = numbers.iter().map(|number| self.codes.get(*number as usize).cloned());
        let found: Option<Vec<_>> = found.collect();
        let found = found.ok_or_else(|| malformed("a code that was never sent"))?;
        // Copied, so that they do not keep the memory of a whole answer; into one allocation.
        let new = Bytes::from(witness.codes.concat());
        let mut end = 0;
        self.codes.extend(witness.codes.iter().map(|code| {
            let start = end;
            end += code.len();
            new.slice(start..end)
        }));
        self.bytes += new.len();
        // Both lists are in order already, which sorting makes use of.
        witness.codes.extend(found);
        witness.codes.sort();
        Ok(())
    }
}

/// What is read of an answer.
pub(crate) type Read = WithWitness<PayloadStatus>;

/// The answer, and the list behind it: `{ answer: PayloadStatusWithWitness, list }`.
pub(crate) fn split(body: &Bytes) -> Result<(Bytes, Bytes), Error> {
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
pub(crate) fn items<const BYTES: usize, T>(
    list: &[u8],
    read: impl Fn([u8; BYTES]) -> T,
) -> Result<Vec<T>, Error> {
    match list.as_chunks() {
        (items, []) => Ok(items.iter().map(|item| read(*item)).collect()),
        _ => Err(malformed("an item of its list is cut")),
    }
}

pub(crate) fn malformed(reason: &str) -> Error {
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
