//! Calls as texts, one by one and in batches.

use std::ops::Range;

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::client::error::{ClientError, malformed};
use crate::jsonrpc::error::quote;
use crate::jsonrpc::params::elements;
use crate::jsonrpc::response::AnswerEnvelope;

/// The text of a call.
pub(crate) fn call_text(
    id: u64,
    method: &str,
    params: impl Serialize,
) -> Result<Vec<u8>, ClientError> {
    #[derive(Serialize)]
    struct CallText<'a, P> {
        jsonrpc: &'a str,
        id: u64,
        method: &'a str,
        params: P,
    }
    serde_json::to_vec(&CallText { jsonrpc: "2.0", id, method, params })
        .map_err(|source| ClientError::Params { method: method.into(), source })
}

/// Calls that are sent in one message.
///
/// ```
/// let mut batch = deponent_rpc::Batch::default();
/// batch.push("eth_chainId", [(); 0])?;
/// batch.push("eth_getBalance", ["0x0000000000000000000000000000000000000000", "latest"])?;
/// assert_eq!(batch.len(), 2);
/// # Ok::<(), deponent_rpc::ClientError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// The calls, with a comma behind each.
    text: Vec<u8>,
    len: usize,
}

impl Batch {
    /// Adds a call.
    ///
    /// # Errors
    /// If the parameters have no JSON form.
    pub fn push(&mut self, method: &str, params: impl Serialize) -> Result<(), ClientError> {
        let call = call_text(self.len as u64, method, params)?;
        self.text.extend_from_slice(&call);
        self.text.push(b',');
        self.len += 1;
        Ok(())
    }

    /// The number of calls.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no calls.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The text of the batch, in which the calls have their positions as ids.
    ///
    /// # Panics
    /// If the batch is empty, which servers refuse.
    pub fn to_message(&self) -> Bytes {
        assert!(!self.is_empty(), "a batch has calls");
        let calls = &self.text[..self.text.len() - 1];
        [b"[", calls, b"]"].concat().into()
    }
}

/// The answers to the calls of a [`Batch`].
#[derive(Clone, Debug)]
pub struct BatchAnswers {
    body: Bytes,
    /// Where the answer to each call lies.
    ranges: Vec<Option<Range<usize>>>,
}

impl BatchAnswers {
    /// Reads the answer to a batch of so many calls, whose ids are their positions.
    ///
    /// # Errors
    /// If the whole batch was refused, or the answer is malformed.
    pub fn read(body: Bytes, len: usize) -> Result<Self, ClientError> {
        let text = std::str::from_utf8(&body).map_err(malformed)?;
        if text.trim_start().starts_with('{') {
            return Err(match AnswerEnvelope::read(&body)?.result() {
                Ok(_) => malformed("it is one answer to a batch"),
                Err(error) => error,
            });
        }
        let mut ranges = vec![None; len];
        for answer in elements(text, len).map_err(malformed)?.list {
            let id = AnswerEnvelope::read(answer.get().as_bytes())?.id;
            let position = id.and_then(|id| id.get().parse().ok());
            let Some(range) = position.and_then(|at: usize| ranges.get_mut(at)) else {
                let id = quote(id.map_or("none", RawValue::get));
                return Err(malformed(format_args!("no call of the batch has its id, {id}")));
            };
            let start = answer.get().as_ptr().addr() - text.as_ptr().addr();
            *range = Some(start..start + answer.get().len());
        }
        Ok(Self { body, ranges })
    }

    /// The number of calls.
    pub const fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Whether there were no calls.
    pub const fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The result of the call at a position, as it stands in the answer.
    ///
    /// # Errors
    /// [`ClientError::Rpc`] if the server answered with an error, [`ClientError::Malformed`] if it
    /// did not answer the call.
    ///
    /// # Panics
    /// If there are not so many calls.
    pub fn raw(&self, at: usize) -> Result<&RawValue, ClientError> {
        let unanswered = || malformed(format_args!("the call at {at} of the batch has no answer"));
        let range = self.ranges[at].clone().ok_or_else(unanswered)?;
        AnswerEnvelope::read(&self.body[range])?.result()
    }

    /// The parsed result of the call at a position.
    ///
    /// # Errors
    /// As [`raw`](Self::raw); also if the result is not a `T`.
    ///
    /// # Panics
    /// If there are not so many calls.
    pub fn result<T: DeserializeOwned>(&self, at: usize) -> Result<T, ClientError> {
        serde_json::from_str(self.raw(at)?.get()).map_err(malformed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_a_batch_come_in_any_order() {
        let text = r#" [{"id":1,"result":"b"}, {"id":0,"error":{"code":3,"message":"no"}}] "#;
        let answers = BatchAnswers::read(Bytes::from_static(text.as_bytes()), 3).expect("answers");
        assert!(matches!(answers.raw(0), Err(ClientError::Rpc(error)) if error.code == 3));
        assert_eq!(answers.result::<String>(1).expect("a result"), "b");
        assert!(answers.raw(2).expect_err("missing").to_string().contains("has no answer"));
    }

    #[test]
    fn what_is_no_answer_to_a_batch_is_refused() {
        let check = |text: &'static str, part: &str| {
            let error = BatchAnswers::read(Bytes::from_static(text.as_bytes()), 2);
            let error = error.expect_err(text).to_string();
            assert!(error.contains(part), "{error}");
        };
        check(r#"{"id":null,"error":{"code":-32600,"message":"too many"}}"#, "too many");
        check(r#"{"id":1,"result":1}"#, "one answer to a batch");
        check(r#"[{"id":2,"result":1}]"#, "has its id, 2");
        check(r#"[{"result":1}]"#, "has its id, none");
        check("", "EOF");
    }
}
