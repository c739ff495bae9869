//! Codes that came on the connection, which the server does not send again.

use alloy_primitives::Bytes;
use engine_api::headers;
use rpc::Reply;
use rpc::rest::HeaderValue;
use witness::Witness;

use super::partial::{CODES, StatusAnswer, items, malformed, split};
use crate::Error;

/// The header's value with which a client says that it holds codes.
pub(super) const HELD: HeaderValue = HeaderValue::from_static(headers::HELD);

/// The codes that came on a connection. Their numbers, from 0, are those that the server counts.
#[derive(Debug, Default)]
pub(crate) struct HeldCodes {
    codes: Vec<Bytes>,
    bytes: usize,
    /// Bytes that may be held between two calls.
    most_bytes: usize,
}

impl HeldCodes {
    pub(super) fn new(most_bytes: usize) -> Self {
        Self { most_bytes, ..Self::default() }
    }

    /// Whether there are more than may be held.
    pub(crate) const fn is_full(&self) -> bool {
        self.bytes > self.most_bytes
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::new(self.most_bytes);
    }

    /// Reads an answer and completes its witness; `None` where the server's numbers are not ours,
    /// so that a new connection has to be made. After an error, nothing is held.
    pub(crate) fn read(&mut self, reply: &Reply) -> Result<Option<StatusAnswer>, Error> {
        let Some(first) = reply.headers.get(CODES) else {
            // The answer has no witness, or the server numbers no codes.
            return Ok(Some(StatusAnswer::decode(&reply.body.clone().into())?));
        };
        let mut held = std::mem::replace(self, Self::new(self.most_bytes));
        let first = first.to_str().ok().and_then(|first| first.parse::<usize>().ok());
        match first.ok_or_else(|| malformed("the number of its first code cannot be read"))? {
            0 => held.clear(),
            first if first == held.codes.len() => {}
            _ => return Ok(None),
        }
        let (answer, numbers) = split(&reply.body.clone().into())?;
        let numbers = items(&numbers, u32::from_le_bytes)?;
        let mut answer = StatusAnswer::decode(&answer)?;
        let Some(witness) = &mut answer.witness else {
            return Err(malformed("codes are numbered, and there is no witness"));
        };
        held.complete(witness, &numbers)?;
        *self = held;
        Ok(Some(answer))
    }

    /// Adds the codes with these numbers to a witness, and holds those that it has already.
    fn complete(&mut self, witness: &mut Witness, numbers: &[u32]) -> Result<(), Error> {
        let found = numbers.iter().map(|number| self.codes.get(*number as usize).cloned());
        let found: Option<Vec<_>> = found.collect();
        let found = found.ok_or_else(|| malformed("a code that was never sent"))?;
        // Copied into one allocation, so that they do not keep the memory of a whole answer.
        let new = Bytes::from(witness.codes.concat());
        let mut end = 0;
        self.codes.extend(witness.codes.iter().map(|code| {
            let start = end;
            end += code.len();
            new.slice(start..end)
        }));
        self.bytes += new.len();
        // Both lists are in order already, which makes sorting them quick.
        witness.codes.extend(found);
        witness.codes.sort();
        Ok(())
    }
}
