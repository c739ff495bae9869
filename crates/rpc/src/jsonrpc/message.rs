//! JSON-RPC 2.0: a message in, its answer out, whatever carried it.

use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;
use std::ops::{ControlFlow, Range};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use bytes::Bytes;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::jsonrpc::error::{Code, Error};
use crate::jsonrpc::handler::Handler;
use crate::jsonrpc::json::{Json, failure, success};
use crate::jsonrpc::params::{Elements, elements};
use crate::limits::{ID_BYTES, Limits};
use crate::pieces::Pieces;
use crate::quote::{quote, shortened};

/// Answers one message: a request, or a batch of them, called one after the other.
///
/// `None` where the message has notifications only. The message may come from anywhere and be of
/// any length; no part of it is copied but ids and methods. Subscriptions are refused: they need a
/// connection that lasts.
pub fn answer(message: &[u8], handler: &dyn Handler, limits: &Limits) -> Option<Json> {
    answer_by(message, limits, &mut |request| call_handler(handler, None, request))
}

/// Has the handler make a call that comes from `host`; subscriptions are refused.
pub(crate) fn call_handler(
    handler: &dyn Handler,
    host: Option<IpAddr>,
    request: &CallRequest<'_>,
) -> Result<Json, Error> {
    let method = &*request.method;
    if handler.subscriptions().iter().any(|kind| kind.has(method)) {
        return Err(Error::needs_websocket(method));
    }
    handler.call_from(host, method, request.params)
}

/// Answers the single calls of a message.
pub(crate) type Calls<'c> = dyn FnMut(&CallRequest<'_>) -> Result<Json, Error> + 'c;

/// As [`answer`], with `calls` instead of a handler. Their panics become internal errors.
pub(crate) fn answer_by(message: &[u8], limits: &Limits, calls: &mut Calls<'_>) -> Option<Json> {
    if !is_batch(message) {
        return answer_single(message, calls);
    }
    let mut batch = Batch::begin(message, limits);
    while batch.make_call(message, limits, calls).is_continue() {
        batch.keep_answer();
    }
    batch.into_answer()
}

/// Whether a message is a list of requests.
pub(crate) fn is_batch(message: &[u8]) -> bool {
    message.iter().find(|byte| !SPACES.contains(&char::from(**byte))) == Some(&b'[')
}

/// White space of JSON.
const SPACES: [char; 4] = [' ', '\t', '\r', '\n'];

/// Answers a message that is no batch.
pub(crate) fn answer_single(message: &[u8], calls: &mut Calls<'_>) -> Option<Json> {
    let text = match std::str::from_utf8(message) {
        Ok(text) => text.trim_matches(SPACES),
        Err(fault) => return Some(failure(None, &Error::new(Code::Parse, fault))),
    };
    match text.is_empty() {
        false => single(text, calls),
        true => Some(failure(None, &Error::new(Code::Parse, "the message is empty"))),
    }
}

/// A batch whose calls are made one by one.
#[derive(Debug)]
pub(crate) struct Batch {
    /// Where the requests are in the message, the next one last.
    requests: Vec<Range<usize>>,
    answers: Pieces,
    /// The last answer, and where its request is, until it is kept or refused.
    last: Option<(Range<usize>, Json)>,
    begun: Instant,
    /// Why no more calls are made.
    refusal: Option<(Code, String)>,
    /// The answer to something that is no batch.
    fault: Option<Json>,
}

impl Batch {
    /// Finds the requests of a batch.
    pub(crate) fn begin(message: &[u8], limits: &Limits) -> Self {
        let (requests, fault) = match find_requests(message, limits) {
            Ok(requests) => (requests, None),
            Err(fault) => (Vec::new(), Some(fault)),
        };
        let (answers, begun) = (Pieces::default(), Instant::now());
        Self { requests, answers, last: None, begun, refusal: None, fault }
    }

    /// Makes the next call. Its answer is then to be [kept](Self::keep_answer) or
    /// [refused](Self::refuse_answer). It ends when there is none.
    pub(crate) fn make_call(
        &mut self,
        message: &[u8],
        limits: &Limits,
        calls: &mut Calls<'_>,
    ) -> ControlFlow<()> {
        let Some(place) = self.requests.pop() else { return ControlFlow::Break(()) };
        let text = text_at(message, &place);
        let answer = match &self.refusal {
            Some((code, reason)) => refuse(text, *code, reason),
            None => single(text, calls),
        };
        self.last = answer.map(|answer| (place, answer));
        let last_bytes = self.last.as_ref().map_or(0, |(_, answer)| answer.len_bytes());
        if self.answers.len_bytes() + last_bytes > limits.batch_answer_bytes {
            let most = limits.batch_answer_bytes;
            let reason = format!("the answers before it in this batch exceed {most} bytes");
            self.refuse_rest(Code::ResponseTooLarge, reason);
        } else if self.begun.elapsed() > limits.batch_time {
            let most = limits.batch_time;
            let reason = format!("the calls before it in this batch took more than {most:?}");
            self.refuse_rest(Code::TimedOut, reason);
        }
        ControlFlow::Continue(())
    }

    /// Adds the last answer to the others.
    pub(crate) fn keep_answer(&mut self) {
        let Some((_, answer)) = self.last.take() else { return };
        self.answers.push(Bytes::from_static(if self.answers.is_empty() { b"[" } else { b"," }));
        self.answers.append(answer.pieces);
    }

    /// Adds an error instead of the last answer, and has the calls that are left refused.
    pub(crate) fn refuse_answer(&mut self, message: &[u8], reason: impl fmt::Display) {
        if let Some((place, answer)) = &mut self.last
            && let Ok(CallRequest { id, .. }) = CallRequest::parse(text_at(message, place))
        {
            let detail = format_args!("called, and its answer is lost: {reason}");
            *answer = failure(id, &Error::new(Code::Server, detail));
        }
        self.keep_answer();
        self.refuse_rest(Code::Server, reason);
    }

    /// Has the calls that are left refused.
    pub(crate) fn refuse_rest(&mut self, code: Code, reason: impl fmt::Display) {
        self.refusal.get_or_insert_with(|| (code, reason.to_string()));
    }

    /// Bytes of memory of the answers so far, the last one too.
    pub(crate) fn held_bytes(&self) -> usize {
        let last = self.last.as_ref().map_or(0, |(_, answer)| answer.pieces.held_bytes());
        self.answers.held_bytes() + last
    }

    /// Whether all calls were made.
    pub(crate) fn is_ended(&self) -> bool {
        self.requests.is_empty()
    }

    /// The answers, once all calls were made.
    pub(crate) fn into_answer(self) -> Option<Json> {
        let Self { mut answers, fault, .. } = self;
        if answers.is_empty() {
            return fault;
        }
        answers.push(Bytes::from_static(b"]"));
        Some(answers.into())
    }
}

fn text_at<'m>(message: &'m [u8], place: &Range<usize>) -> &'m str {
    std::str::from_utf8(&message[place.clone()]).expect("all of it was read as text")
}

/// Where the requests of a batch are, the first one last.
fn find_requests(message: &[u8], limits: &Limits) -> Result<Vec<Range<usize>>, Json> {
    let refused = |error| failure(None, &error);
    let text =
        std::str::from_utf8(message).map_err(|fault| refused(Error::new(Code::Parse, fault)))?;
    let requests = elements(text.trim_matches(SPACES), limits.batch_len);
    let requests = requests.map_err(|fault| refused(Error::new(Code::Parse, fault)))?;
    if requests.count == 0 {
        return Err(refused(Error::new(Code::InvalidRequest, "the batch is empty")));
    }
    if requests.count > limits.batch_len {
        return Err(too_large(&requests, limits.batch_len));
    }
    let place = |request: &RawValue| {
        let from = request.get().as_ptr() as usize - message.as_ptr() as usize;
        from..from + request.get().len()
    };
    Ok(requests.list.into_iter().rev().map(place).collect())
}

/// The answer to a batch with too many requests: as in geth a batch with one error, which has the
/// first id, since clients look for their ids.
fn too_large(requests: &Elements<'_>, most: usize) -> Json {
    let mut requests_read = requests.list.iter().map(|request| CallRequest::parse(request.get()));
    let id = requests_read.find_map(|request| request.ok()?.id);
    let count = requests.count;
    let detail = format_args!("a batch of {count} requests, at most {most} are allowed");
    let mut answer = Pieces::from(vec![b'[']);
    answer.append(failure(id, &Error::new(Code::BatchTooLarge, detail)).pieces);
    answer.push(vec![b']']);
    answer.into()
}

fn single(text: &str, calls: &mut Calls<'_>) -> Option<Json> {
    let request = match CallRequest::parse(text) {
        Ok(request) => request,
        Err(invalid) => return Some(failure(invalid.id, &invalid.error)),
    };
    let result = call(&request, calls);
    let id = request.id?;
    Some(match result {
        Ok(result) => success(id, result),
        Err(error) => failure(Some(id), &error),
    })
}

/// The answer to a request of a batch for which there is no memory, or no time.
fn refuse(text: &str, code: Code, reason: &dyn fmt::Display) -> Option<Json> {
    let (id, error) = match CallRequest::parse(text) {
        Ok(request) => (Some(request.id?), Error::new(code, format_args!("not called: {reason}"))),
        Err(invalid) => (invalid.id, invalid.error),
    };
    Some(failure(id, &error))
}

fn call(request: &CallRequest<'_>, calls: &mut Calls<'_>) -> Result<Json, Error> {
    // A handler's own state is its own business after a panic: locks there are poisoned.
    catch_unwind(AssertUnwindSafe(|| calls(request))).unwrap_or_else(|panic| {
        let reason = panic_text(&*panic);
        tracing::error!(
            method = quote(&request.method),
            reason = shortened(reason),
            "a method panicked"
        );
        Err(Error::new(Code::Internal, "the method failed; the server's log says why"))
    })
}

pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> &str {
    match panic.downcast_ref::<String>() {
        Some(text) => text,
        None => panic.downcast_ref::<&str>().copied().unwrap_or("no message"),
    }
}

/// One request, borrowed from the message.
#[derive(Debug)]
pub(crate) struct CallRequest<'a> {
    /// `None` for a notification: it is called, but not answered.
    pub(crate) id: Option<&'a RawValue>,
    pub(crate) method: Cow<'a, str>,
    pub(crate) params: Option<&'a RawValue>,
}

/// Why a text is no request, and the id for the answer.
#[derive(Debug)]
pub(crate) struct InvalidRequest<'a> {
    id: Option<&'a RawValue>,
    error: Error,
}

impl<'a> CallRequest<'a> {
    pub(crate) fn parse(text: &'a str) -> Result<Self, InvalidRequest<'a>> {
        let invalid = |detail: &dyn std::fmt::Display| Error::new(Code::InvalidRequest, detail);
        // Deserialize would take an array for the list of the fields.
        if !text.starts_with('{') {
            let error = match serde_json::from_str::<&RawValue>(text) {
                Ok(_) => invalid(&"a request is an object"),
                Err(fault) => Error::new(Code::Parse, fault),
            };
            return Err(InvalidRequest { id: None, error });
        }
        let fields: RequestFields<'a> =
            serde_json::from_str(text).map_err(|fault| InvalidRequest {
                id: None,
                error: if fault.is_data() {
                    invalid(&fault)
                } else {
                    Error::new(Code::Parse, fault)
                },
            })?;
        let id = match fields.id {
            Some(id) if !is_id(id) => {
                let detail =
                    format!("an id is a string, a number or null, of at most {ID_BYTES} bytes");
                return Err(InvalidRequest { id: None, error: invalid(&detail) });
            }
            id => id,
        };
        match fields.request(id) {
            Ok(request) => Ok(request),
            Err(error) => Err(InvalidRequest { id, error }),
        }
    }
}

fn is_id(id: &RawValue) -> bool {
    let kind = id.get().as_bytes()[0];
    id.get().len() <= ID_BYTES && matches!(kind, b'"' | b'0'..=b'9' | b'-' | b'n')
}

/// The members of a request, each of any kind, so that a wrong one is answered with the id.
#[derive(Deserialize)]
struct RequestFields<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    method: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    params: Option<&'a RawValue>,
}

/// Keeps `null` apart from nothing at all.
fn present<'de, D: Deserializer<'de>>(json: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(json).map(Some)
}

/// A string that is borrowed where it has no escapes.
#[derive(Deserialize)]
struct CowText<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'a> RequestFields<'a> {
    fn request(self, id: Option<&'a RawValue>) -> Result<CallRequest<'a>, Error> {
        let invalid = |detail: &str| Error::new(Code::InvalidRequest, detail);
        let version = self.jsonrpc.ok_or_else(|| invalid("jsonrpc is missing: it is \"2.0\""))?;
        let is_right = serde_json::from_str(version.get()).is_ok_and(|CowText(text)| text == "2.0");
        if !is_right {
            let found = quote(version.get());
            return Err(invalid(&format!("jsonrpc is \"2.0\", got {found}")));
        }
        let method = self.method.ok_or_else(|| invalid("method is missing"))?;
        if method.get().len() > ID_BYTES {
            return Err(invalid("method is too long"));
        }
        let CowText(method) =
            serde_json::from_str(method.get()).map_err(|_| invalid("method is not a string"))?;
        let params = match self.params.map(|params| (params, params.get().as_bytes()[0])) {
            None | Some((_, b'n')) => None,
            Some((params, b'[' | b'{')) => Some(params),
            Some(_) => return Err(Error::invalid_params("params are not an array")),
        };
        Ok(CallRequest { id, method, params })
    }
}

#[cfg(test)]
mod tests;
