//! One connection to an endpoint: a message of calls there, and what became of each of them.

use bytes::Bytes;
use rpc::rest::{HeaderMap, HeaderValue, Method, StatusCode, header};
use rpc::{Client, ClientError, RawValue, SessionClient, response};

use super::mix::Call;
use super::tally::Failure;

/// Codes by which servers ask for patience: EIP-1474's, and those of hosted nodes.
const LIMIT_CODES: [i64; 3] = [-32005, -32007, 429];

/// A connection. Over a socket, clones are the same one, and may call at the same time.
#[derive(Debug)]
pub(super) enum Link {
    /// HTTP/1.1, where the next message waits for the answer to the last one.
    Http { client: Box<Client>, path: String, next_id: u64 },
    /// WebSocket or IPC, where answers come in any order.
    Socket(SessionClient),
}

/// What came back for a message.
#[derive(Debug, Default)]
pub(super) struct Answered {
    /// For each call its result or what became of it, in the order of the calls.
    pub(super) outcomes: Vec<Result<Box<RawValue>, Failure>>,
    /// The server asked for patience, perhaps for so many seconds.
    pub(super) limited: Option<Option<u64>>,
    pub(super) received_bytes: usize,
    /// The error in the answer, or the beginning of an answer that is no JSON-RPC, in words.
    pub(super) said: Option<String>,
}

impl Link {
    /// Sends one call, or a batch of them, and waits for the answer.
    ///
    /// # Errors
    /// There is no answer to any of them.
    pub(super) async fn exchange(
        &mut self,
        calls: &[&Call],
        is_batch: bool,
    ) -> Result<Answered, ClientError> {
        match self {
            Self::Socket(client) if is_batch => {
                let texts: Vec<_> =
                    calls.iter().map(|call| (&*call.method, &*call.params)).collect();
                let (ids, body) = client.batch_raw(&texts).await?;
                Ok(Answered::to_batch(&body, ids.start, calls.len()))
            }
            Self::Socket(client) => {
                let [call] = calls else { return Ok(Answered::default()) };
                let body = client.call_raw(&call.method, &call.params).await?;
                Ok(Answered::to_call(&body, None))
            }
            Self::Http { client, path, next_id } => {
                let first = *next_id;
                *next_id += calls.len() as u64;
                let messages = (first..).zip(calls).map(|(id, call)| call.message(id));
                let mut text = messages.collect::<Vec<_>>().join(",");
                if is_batch {
                    text = format!("[{text}]");
                }
                let json = HeaderValue::from_static("application/json");
                let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, json)]);
                let reply = client.request(Method::POST, path, headers, text).await?;
                let retry_after = reply.headers.get(header::RETRY_AFTER);
                if reply.status != StatusCode::OK {
                    let seconds = retry_after.and_then(|value| value.to_str().ok()?.parse().ok());
                    return Ok(Answered::refused(reply.status, seconds, &reply.body, calls.len()));
                }
                Ok(match is_batch {
                    true => Answered::to_batch(&reply.body, first, calls.len()),
                    false => Answered::to_call(&reply.body, Some(first)),
                })
            }
        }
    }

    /// The same connection, where it can be shared.
    pub(super) fn share(&self) -> Option<Self> {
        match self {
            Self::Http { .. } => None,
            Self::Socket(client) => Some(Self::Socket(client.clone())),
        }
    }
}

impl Answered {
    /// Reads the answer to one call, which has this id where that is not known otherwise.
    fn to_call(body: &Bytes, id: Option<u64>) -> Self {
        let mut this = Self { received_bytes: body.len(), ..Self::default() };
        let outcome = match serde_json::from_slice::<&RawValue>(body) {
            Ok(answer) => this.outcome(answer, |answered| id.is_none() || answered == id),
            Err(_) => Err(this.malformed(body)),
        };
        this.outcomes.push(outcome);
        this
    }

    /// Reads the answer to a batch, whose calls have ids from `first` on.
    fn to_batch(body: &Bytes, first: u64, count: usize) -> Self {
        let mut this = Self { received_bytes: body.len(), ..Self::default() };
        this.outcomes.resize_with(count, || Err(Failure::Missing));
        if let Ok(answers) = serde_json::from_slice::<Vec<&RawValue>>(body) {
            for answer in answers {
                let place = id_of(answer).and_then(|id| id.checked_sub(first));
                let place = place.and_then(|place| usize::try_from(place).ok());
                if let Some(place) = place.filter(|place| *place < count) {
                    this.outcomes[place] = this.outcome(answer, |_| true);
                }
            }
            return this;
        }
        // It may be refused as a whole.
        let failure = match serde_json::from_slice::<&RawValue>(body) {
            Ok(answer) => this.outcome(answer, |_| true).err().unwrap_or(Failure::Malformed),
            Err(_) => this.malformed(body),
        };
        this.outcomes.fill_with(|| Err(failure));
        this
    }

    /// All calls of a message that HTTP refused.
    fn refused(status: StatusCode, seconds: Option<u64>, body: &Bytes, count: usize) -> Self {
        let mut this = Self { received_bytes: body.len(), ..Self::default() };
        this.malformed(body);
        let is_limited = status == StatusCode::TOO_MANY_REQUESTS;
        this.limited = is_limited.then_some(seconds);
        let failure = if is_limited { Failure::Limited } else { Failure::Status(status.as_u16()) };
        this.outcomes.resize_with(count, || Err(failure));
        this
    }

    fn malformed(&mut self, body: &[u8]) -> Failure {
        self.said = Some(String::from_utf8_lossy(&body[..body.len().min(500)]).into_owned());
        Failure::Malformed
    }

    /// What an answer says, if its id is that of its call.
    fn outcome(
        &mut self,
        answer: &RawValue,
        is_right: impl Fn(Option<u64>) -> bool,
    ) -> Result<Box<RawValue>, Failure> {
        let id = id_of(answer);
        match response::result(answer.get().as_bytes()) {
            // A server that cannot read a request does not know its id.
            Err(ClientError::Rpc(error)) if id.is_none() || is_right(id) => {
                let is_limited = LIMIT_CODES.contains(&error.code);
                let code = error.code;
                self.said = Some(error.to_string());
                if is_limited {
                    self.limited.get_or_insert(None);
                    return Err(Failure::Limited);
                }
                Err(Failure::Code(code))
            }
            _ if !is_right(id) => Err(Failure::WrongId),
            Ok(result) => Ok(result.to_owned()),
            Err(_) => Err(self.malformed(answer.get().as_bytes())),
        }
    }
}

/// The id of an answer, where it is a number.
fn id_of(answer: &RawValue) -> Option<u64> {
    let [id] = response::fields(answer, ["id"]).ok()?;
    id?.get().parse().ok()
}

/// What became of the calls of a message that has no answer.
pub(super) fn failure(error: &ClientError) -> Failure {
    match error {
        ClientError::Connect { .. } | ClientError::Http { .. } | ClientError::Address { .. } => {
            Failure::Connect
        }
        ClientError::Timeout { .. } => Failure::Timeout,
        ClientError::Broken { source, .. } if source.is_parse() => Failure::Malformed,
        ClientError::Malformed(_) | ClientError::TooLong { .. } => Failure::Malformed,
        _ => Failure::Closed,
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

    /// What became of the calls, `""` for a result.
    fn words(answered: &Answered) -> Vec<String> {
        let outcomes = answered.outcomes.iter();
        outcomes.map(|one| one.as_ref().map_or_else(|it| it.to_string(), |_| "".into())).collect()
    }

    #[test]
    fn an_answer_counts_for_what_it_is() {
        let check = |text: &str, expected: &str| {
            let answered = Answered::to_call(&Bytes::copy_from_slice(text.as_bytes()), Some(10));
            assert_eq!(words(&answered), [expected], "{text}");
            assert_eq!(answered.limited.is_some(), expected == "rate limited");
        };
        check(ZERO, "");
        check(ONE, "wrong id");
        check(TWO, "wrong id");
        check(LIMITED, "rate limited");
        check(NONE, "JSON-RPC error -32700");
        check(r#"{"id":10}"#, "malformed answer");
        check(r#"{"id":"10","result":1}"#, "wrong id");
        check("{", "malformed answer");
        let any = Answered::to_call(&Bytes::from_static(ONE.as_bytes()), None);
        assert_eq!(words(&any), [""]);
    }

    #[test]
    fn a_batch_is_answered_in_any_order_or_as_a_whole() {
        let check = |text: String, expected: &[&str]| {
            let answered = Answered::to_batch(&text.clone().into(), 10, expected.len());
            assert_eq!(words(&answered), expected, "{text}");
        };
        let list = |answers: &[&str]| format!("\n [{}] ", answers.join(" , "));
        check(list(&[ONE, TWO, ZERO]), &["", "", "JSON-RPC error -32601"]);
        check(list(&[ONE]), &["missing from the batch", "", "missing from the batch"]);
        check("[]".into(), &["missing from the batch"; 2]);
        check(NONE.into(), &["JSON-RPC error -32700"; 2]);
        check(LIMITED.into(), &["rate limited"; 2]);
        check(ZERO.into(), &["malformed answer"; 2]);
        check("[".into(), &["malformed answer"; 2]);
        check(list(&[ONE, ONE, ZERO]), &["", ""]);
    }
}
