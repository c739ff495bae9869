//! One connection to an endpoint: a message of calls, and the result or failure of each.

use std::ops::Range;

use bytes::Bytes;
use rpc::rest::{HeaderMap, HeaderValue, Method, StatusCode, header};
use rpc::{Client, ClientError, RawValue, SessionClient, response};

use super::mix::Call;
use super::tally::CallFailure;

/// Codes by which servers limit the rate of calls: EIP-1474's, and those of hosted nodes.
const LIMIT_CODES: [i64; 3] = [-32005, -32007, 429];
/// Characters of an answer that errors quote.
const QUOTED: usize = 500;

/// A connection.
#[derive(Debug)]
pub(super) enum Connection {
    /// HTTP/1.1, where the next message waits for the answer to the last one.
    Http { client: Box<Client>, path: String, next_id: u64 },
    /// WebSocket or IPC, where answers come in any order.
    Session(SessionClient),
}

/// The answer to a message.
#[derive(Debug, Default)]
pub(super) struct CallReply {
    /// A result or a failure for each call, in the order of the calls.
    pub(super) results: Vec<Result<Box<RawValue>, CallFailure>>,
    /// The pause that the server asks for, in seconds.
    pub(super) retry_after: Option<u64>,
    pub(super) received_bytes: usize,
    /// The error in the answer, or the beginning of an answer that is no JSON-RPC, in words.
    pub(super) error_text: String,
}

impl Connection {
    /// Sends one call, or a batch of them, and waits for the answer.
    ///
    /// # Errors
    /// There is no answer to any of them.
    pub(super) async fn exchange(
        &mut self,
        calls: &[&Call],
        is_batch: bool,
    ) -> Result<CallReply, ClientError> {
        match self {
            Self::Session(client) if is_batch => {
                let texts: Vec<_> =
                    calls.iter().map(|call| (&*call.method, &*call.params)).collect();
                let (ids, body) = client.batch_raw(&texts).await?;
                Ok(CallReply::to_batch(&body, ids))
            }
            Self::Session(client) => {
                let body = client.call_raw(&calls[0].method, &calls[0].params).await?;
                Ok(CallReply::to_call(&body, None))
            }
            Self::Http { client, path, next_id } => {
                let ids = *next_id..*next_id + calls.len() as u64;
                *next_id = ids.end;
                let messages: Vec<_> =
                    ids.clone().zip(calls).map(|(id, call)| call.message(id)).collect();
                let mut text = messages.join(",");
                if is_batch {
                    text = format!("[{text}]");
                }
                let json = HeaderValue::from_static("application/json");
                let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, json)]);
                let reply = client.request(Method::POST, path, headers, text).await?;
                Ok(match reply.status {
                    StatusCode::OK if is_batch => CallReply::to_batch(&reply.body, ids),
                    StatusCode::OK => CallReply::to_call(&reply.body, Some(ids.start)),
                    _ => CallReply::refused(&reply, calls.len()),
                })
            }
        }
    }

    /// Several calls may be under way on it at a time.
    pub(super) const fn is_session(&self) -> bool {
        matches!(self, Self::Session(_))
    }
}

impl CallReply {
    /// Reads the answer to one call, which has this id where that is not known otherwise.
    fn to_call(body: &Bytes, id: Option<u64>) -> Self {
        let mut this = Self { received_bytes: body.len(), ..Self::default() };
        let result = match serde_json::from_slice(body) {
            Ok(answer) => this.result(answer, |answered| id.is_none() || answered == id),
            Err(_) => Err(this.malformed(body)),
        };
        this.results.push(result);
        this
    }

    /// Reads the answer to a batch of calls with these ids.
    fn to_batch(body: &Bytes, ids: Range<u64>) -> Self {
        let mut this = Self { received_bytes: body.len(), ..Self::default() };
        let count = (ids.end - ids.start) as usize;
        if let Ok(answers) = serde_json::from_slice::<Vec<&RawValue>>(body) {
            this.results.resize_with(count, || Err(CallFailure::Missing));
            for answer in answers {
                if let Some(id) = id_of(answer).filter(|id| ids.contains(id)) {
                    this.results[(id - ids.start) as usize] = this.result(answer, |_| true);
                }
            }
            return this;
        }
        // It may be refused as a whole.
        let refusal = match serde_json::from_slice(body) {
            Ok(answer) => this.result(answer, |_| true).err().unwrap_or(CallFailure::Malformed),
            Err(_) => this.malformed(body),
        };
        this.results.resize_with(count, || Err(refusal));
        this
    }

    /// The calls of a message that HTTP refused.
    fn refused(reply: &rpc::Reply, count: usize) -> Self {
        let retry_after = reply.headers.get(header::RETRY_AFTER);
        let mut this = Self {
            received_bytes: reply.body.len(),
            retry_after: retry_after.and_then(|value| value.to_str().ok()?.parse().ok()),
            ..Self::default()
        };
        this.malformed(&reply.body);
        let failure = match reply.status {
            StatusCode::TOO_MANY_REQUESTS => CallFailure::Limited,
            status => CallFailure::Status(status.as_u16()),
        };
        this.results.resize_with(count, || Err(failure));
        this
    }

    fn malformed(&mut self, body: &[u8]) -> CallFailure {
        self.error_text = String::from_utf8_lossy(&body[..body.len().min(QUOTED)]).into_owned();
        CallFailure::Malformed
    }

    /// The result in an answer, if its id is that of its call.
    fn result(
        &mut self,
        answer: &RawValue,
        is_right: impl Fn(Option<u64>) -> bool,
    ) -> Result<Box<RawValue>, CallFailure> {
        let id = id_of(answer);
        match response::result(answer.get().as_bytes()) {
            // A server that cannot read a request does not know its id.
            Err(ClientError::Rpc(error)) if id.is_none() || is_right(id) => {
                self.error_text = error.to_string();
                let is_limited = LIMIT_CODES.contains(&error.code);
                Err(if is_limited { CallFailure::Limited } else { CallFailure::Code(error.code) })
            }
            _ if !is_right(id) => Err(CallFailure::WrongId),
            Ok(result) => RawValue::from_string(result.to_owned())
                .map_err(|_| self.malformed(answer.get().as_bytes())),
            Err(_) => Err(self.malformed(answer.get().as_bytes())),
        }
    }
}

/// The id of an answer, where it is a number.
fn id_of(answer: &RawValue) -> Option<u64> {
    response::field(answer.get(), "id").ok()?.parse().ok()
}

/// The failure of all calls of a message that has no answer.
pub(super) fn failure(error: &ClientError) -> CallFailure {
    match error {
        ClientError::Timeout { .. } => CallFailure::Timeout,
        ClientError::Broken { source, .. } if source.is_parse() => CallFailure::Malformed,
        ClientError::Malformed(_) | ClientError::TooLong { .. } => CallFailure::Malformed,
        _ => CallFailure::Closed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ZERO: &str = r#"{"id":10,"result":null}"#;
    const ONE: &str = r#"{"result":{"id":5,"error":1},"error":null,"id":11}"#;
    const TWO: &str = r#"{"id":12,"error":{"code":-32601,"message":""}}"#;
    const LIMITED: &str = r#"{"id":10,"error":{"code":-32005,"message":""}}"#;
    const NONE: &str = r#"{"id":null,"error":{"code":-32700,"message":""}}"#;

    /// The failures in words, `""` for a result.
    fn words(reply: &CallReply) -> Vec<String> {
        let results = reply.results.iter();
        results.map(|one| one.as_ref().map_or_else(|it| it.to_string(), |_| "".into())).collect()
    }

    #[test]
    fn an_answer_counts_for_what_it_is() {
        for (text, id, expected) in [
            (ZERO, Some(10), ""),
            (ONE, Some(10), "wrong id"),
            (ONE, None, ""),
            (TWO, Some(10), "wrong id"),
            (LIMITED, Some(10), "rate limited"),
            (NONE, Some(10), "JSON-RPC error -32700"),
            (r#"{"id":10}"#, Some(10), "malformed answer"),
            (r#"{"id":"10","result":1}"#, Some(10), "wrong id"),
            (r#"{"id":null,"error":{"code":-32601}}"#, Some(10), "wrong id"),
            ("{", Some(10), "malformed answer"),
        ] {
            let reply = CallReply::to_call(&Bytes::from_static(text.as_bytes()), id);
            assert_eq!(words(&reply), [expected], "{text}");
        }
    }

    #[test]
    fn a_batch_is_answered_in_any_order_or_as_a_whole() {
        let list = |answers: &[&str]| format!("\n [{}] ", answers.join(" , "));
        for (text, expected) in [
            (list(&[ONE, TWO, ZERO]), &["", "", "JSON-RPC error -32601"][..]),
            (list(&[ONE]), &["missing from the batch", "", "missing from the batch"]),
            ("[]".into(), &["missing from the batch"; 2]),
            (NONE.into(), &["JSON-RPC error -32700"; 2]),
            (LIMITED.into(), &["rate limited"; 2]),
            (ZERO.into(), &["malformed answer"; 2]),
            ("[".into(), &["malformed answer"; 2]),
            (list(&[ONE, ONE, ZERO]), &["", ""]),
        ] {
            let ids = 10..10 + expected.len() as u64;
            assert_eq!(words(&CallReply::to_batch(&text.clone().into(), ids)), expected, "{text}");
        }
    }
}
