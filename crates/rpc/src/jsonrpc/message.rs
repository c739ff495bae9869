//! JSON-RPC 2.0: a message in, its answer out, whatever carried it.

use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use bytes::Bytes;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::jsonrpc::error::{Code, Error};
use crate::jsonrpc::handler::Handler;
use crate::jsonrpc::json::{Json, failure, success};
use crate::jsonrpc::params::elements;
use crate::limits::{ID_BYTES, Limits};
use crate::pieces::Pieces;
use crate::quote::{quote, shortened};

/// Answers one message: a request, or a batch of them, called one after the other.
///
/// `None` where the message has notifications only. The message may come from anywhere and be of
/// any length; no part of it is copied but ids and methods. Subscriptions are refused: they need a
/// connection that lasts.
pub fn answer(message: &[u8], handler: &dyn Handler, limits: &Limits) -> Option<Json> {
    answer_while(message, handler, limits, &|| true)
}

/// As [`answer`]. Once the answer is not wanted any more, no more calls of a batch are made.
pub(crate) fn answer_while(
    message: &[u8],
    handler: &dyn Handler,
    limits: &Limits,
    is_wanted: &dyn Fn() -> bool,
) -> Option<Json> {
    answer_by(message, limits, &mut |request| {
        if !is_wanted() {
            return Err(Error::hung_up());
        }
        let method = &*request.method;
        if handler.subscriptions().iter().any(|kind| kind.has(method)) {
            return Err(Error::needs_websocket(method));
        }
        handler.call(method, request.params)
    })
}

/// Answers the single calls of a message.
pub(crate) type Calls<'c> = dyn FnMut(&CallRequest<'_>) -> Result<Json, Error> + 'c;

/// As [`answer`], with `calls` instead of a handler. Their panics become internal errors.
pub(crate) fn answer_by(message: &[u8], limits: &Limits, calls: &mut Calls<'_>) -> Option<Json> {
    let text = match std::str::from_utf8(message) {
        Ok(text) => text.trim_matches([' ', '\t', '\r', '\n']),
        Err(fault) => return Some(failure(None, &Error::new(Code::Parse, fault))),
    };
    match text.as_bytes().first() {
        Some(b'[') => batch(text, limits, calls),
        Some(_) => single(text, calls),
        None => Some(failure(None, &Error::new(Code::Parse, "the message is empty"))),
    }
}

fn batch(text: &str, limits: &Limits, calls: &mut Calls<'_>) -> Option<Json> {
    let requests = match elements(text, limits.batch_len) {
        Ok(requests) => requests,
        Err(fault) => return Some(failure(None, &Error::new(Code::Parse, fault))),
    };
    if requests.count == 0 {
        return Some(failure(None, &Error::new(Code::InvalidRequest, "the batch is empty")));
    }
    if requests.count > limits.batch_len {
        let detail = format_args!(
            "a batch of {} requests, at most {} are allowed: send several",
            requests.count, limits.batch_len
        );
        return Some(failure(None, &Error::new(Code::InvalidRequest, detail)));
    }
    let mut answers = Pieces::default();
    let mut answers_bytes = 0;
    let begun = Instant::now();
    let mut is_late = false;
    for request in requests.list {
        let (most_bytes, most_time) = (limits.batch_answer_bytes, limits.batch_time);
        let answer = if answers_bytes > most_bytes {
            let reason =
                format_args!("the answers before it in this batch exceed {most_bytes} bytes");
            refuse(request.get(), Code::TooLargeRequest, &reason)
        } else if is_late {
            let reason =
                format_args!("the calls before it in this batch took more than {most_time:?}");
            refuse(request.get(), Code::Server, &reason)
        } else {
            single(request.get(), calls)
        };
        is_late = begun.elapsed() > most_time;
        if let Some(answer) = answer {
            answers_bytes += answer.len_bytes();
            answers.push(Bytes::from_static(if answers.is_empty() { b"[" } else { b"," }));
            answers.append(answer.pieces);
        }
    }
    if answers.is_empty() {
        return None;
    }
    answers.push(Bytes::from_static(b"]"));
    Some(answers.into())
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
