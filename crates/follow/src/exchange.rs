//! A message to an upstream, and the answers in it.

use std::ops::Range;

use alloy_primitives::bytes::Bytes;
use client::Connection;
use rpc::{ClientError, RawValue, read_json, response};

/// The answer to a message of one or several calls of a method.
#[derive(Debug)]
pub(crate) struct Exchange {
    body: Bytes,
    /// The ids of the calls; `None` for a message that is no batch.
    ids: Option<Range<u64>>,
}

impl Exchange {
    /// Calls a method, once for each of these parameters.
    pub(crate) async fn make(
        connection: &mut Connection,
        method: &str,
        params: &[Box<RawValue>],
    ) -> Result<Self, ClientError> {
        if let [params] = params {
            let body = connection.call_raw(method, params).await?;
            return Ok(Self { body, ids: None });
        }
        let calls: Vec<_> = params.iter().map(|params| (method, &**params)).collect();
        let (ids, body) = connection.batch_raw(&calls).await?;
        Ok(Self { body, ids: Some(ids) })
    }

    /// Bytes of the answer.
    pub(crate) const fn bytes(&self) -> usize {
        self.body.len()
    }

    /// The result of the only call, as JSON text.
    pub(crate) fn result(&self) -> Result<&str, ClientError> {
        response::result(&self.body)
    }

    /// Whether a batch was refused as a whole: by one error, or by a list in which some calls have
    /// no answer and no one has a result.
    pub(crate) fn is_refused(&self) -> bool {
        if self.ids.is_none() {
            return false;
        }
        match self.results() {
            Err(error) => matches!(error, ClientError::Rpc(_)),
            Ok(results) => {
                let is_left_out =
                    |result: &Result<_, _>| matches!(result, Err(ClientError::Malformed(_)));
                results.iter().all(Result::is_err) && results.iter().any(is_left_out)
            }
        }
    }

    /// Whether a call has a result.
    pub(crate) fn has_result(&self) -> bool {
        self.results().is_ok_and(|results| results.iter().any(Result::is_ok))
    }

    /// The results of the calls, in their order, as JSON text.
    pub(crate) fn results<'s>(&'s self) -> Result<Vec<Result<&'s str, ClientError>>, ClientError> {
        let Some(ids) = &self.ids else {
            return match response::result(&self.body) {
                Err(error @ ClientError::Malformed(_)) => Err(error),
                result => Ok(vec![result]),
            };
        };
        if !self.body.trim_ascii_start().starts_with(b"[") {
            // One error for all of them.
            response::result(&self.body)?;
            return Err(ClientError::Malformed("a batch has a list for an answer".into()));
        }
        let text = std::str::from_utf8(&self.body);
        let text = text.map_err(|fault| ClientError::Malformed(fault.to_string()))?;
        let answers: Vec<&'s RawValue> =
            read_json(text).map_err(|fault| ClientError::Malformed(fault.to_string()))?;
        let mut found: Vec<Option<&'s RawValue>> = vec![None; (ids.end - ids.start) as usize];
        for answer in answers {
            let id = response::field(answer.get(), "id")?.parse::<u64>().ok();
            let place = id.and_then(|id| id.checked_sub(ids.start)).map(|place| place as usize);
            if let Some(place) = place.and_then(|place| found.get_mut(place)) {
                *place = Some(answer);
            }
        }
        let result = |answer: Option<&'s RawValue>| match answer {
            Some(answer) => response::result(answer.get().as_bytes()),
            None => Err(ClientError::Malformed("a call of the batch has no answer".into())),
        };
        Ok(found.into_iter().map(result).collect())
    }
}
