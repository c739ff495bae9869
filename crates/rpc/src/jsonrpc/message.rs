//! JSON-RPC 2.0: a message in, the answer out, whatever carried it.

use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use bytes::Bytes;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::http::resource::{self as rest, StatusCode};
use crate::jsonrpc::error::{Code, Error, quote};
use crate::jsonrpc::json::Json;
use crate::jsonrpc::params::elements;
use crate::jsonrpc::subscription::{Subscription, SubscriptionMethods};
use crate::limits::{ID_BYTES, IN_ORDER_BYTES, Limits, SHORT_BYTES};
use crate::pieces::Pieces;
use crate::port::Pace;

/// What a port offers.
pub trait Handler: Send + Sync + 'static {
    /// Answers one call.
    ///
    /// It may take its time: it has a thread to itself, unless it [is quick](Self::is_quick). A
    /// panic becomes an internal error for the caller. `params`, when present, are an array or an
    /// object: see [`Params`](crate::Params).
    fn call(&self, method: &str, params: Option<&RawValue>) -> Result<Json, Error>;

    /// Whether a call is answered out of memory, in microseconds, so that waking another thread for
    /// it would take longer: it is then made on the thread that reads from all clients.
    fn is_quick(&self, method: &str, params: Option<&RawValue>) -> bool {
        _ = (method, params);
        false
    }

    /// What the names begin with of methods whose calls on one connection are made in the order in
    /// which they come, one after the other; all others may overtake each other.
    fn in_order(&self) -> Option<&str> {
        None
    }

    /// What can be subscribed to over a WebSocket: nothing, unless a handler says otherwise.
    fn subscriptions(&self) -> &[SubscriptionMethods] {
        &[]
    }

    /// Where the paths begin at which there are resources beside JSON-RPC: nowhere, unless a
    /// handler says otherwise. It ends in a slash.
    fn resources(&self) -> Option<&str> {
        None
    }

    /// Answers a request for a resource; everything else is as in [`call`](Self::call). A panic
    /// becomes [`refuse_resource`](Self::refuse_resource) with status 500.
    fn resource(&self, request: rest::Request) -> rest::Response {
        self.refuse_resource(StatusCode::NOT_FOUND, &format!("there is no {}", request.path))
    }

    /// Whether a request for a resource [is quick](Self::is_quick).
    fn is_quick_resource(&self, request: &rest::Request) -> bool {
        _ = request;
        false
    }

    /// Whether requests for what is at this path are answered [in order](Self::in_order).
    fn is_resource_in_order(&self, path: &str) -> bool {
        _ = path;
        false
    }

    /// Says why a request for a resource was not answered, in the form that its clients expect:
    /// too long (413), no turn (503), a fault of ours (500), or whatever `resource` says no with.
    fn refuse_resource(&self, status: StatusCode, detail: &str) -> rest::Response {
        rest::Response::text(status, detail)
    }

    /// Begins a subscription, by one of the methods in [`subscriptions`](Self::subscriptions);
    /// everything else is as in [`call`](Self::call).
    fn subscribe(&self, method: &str, params: Option<&RawValue>) -> Result<Subscription, Error> {
        _ = params;
        Err(Error::method_not_found(method))
    }
}

/// Answers one message: a request, or a batch of them, called one after the other.
///
/// `None` where there is nothing to say: the message has notifications only. The message may come
/// from anybody and be of any length; no part of it is copied but ids and methods. Subscriptions
/// are refused: they need a connection that lasts.
pub fn answer(message: &[u8], handler: &dyn Handler, limits: &Limits) -> Option<Json> {
    answer_while(message, handler, limits, &|| true)
}

/// As [`answer`]; once nobody waits for it any more, nothing more of a batch is called.
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

/// How long the calls of a message are thought to take.
pub(crate) fn pace(message: &[u8], handler: &dyn Handler) -> Pace {
    // Of a batch nothing more is called once its client hangs up, which is seen where it was read.
    if is_batch(message) {
        return Pace::Short;
    }
    if message.len() > SHORT_BYTES {
        return Pace::Long;
    }
    let text = std::str::from_utf8(message).unwrap_or_default();
    let request = Request::parse(text.trim_matches([' ', '\t', '\r', '\n']));
    match request {
        Ok(request) if handler.is_quick(&request.method, request.params) => Pace::Quick,
        _ => Pace::Short,
    }
}

/// Whether a message may have calls [in order](Handler::in_order).
pub(crate) fn is_in_order(message: &[u8], handler: &dyn Handler) -> bool {
    let is_looked_at = || message.len() <= IN_ORDER_BYTES || is_batch(message);
    let has = |name| std::str::from_utf8(message).is_ok_and(|text| text.contains(name));
    handler.in_order().is_some_and(|name| is_looked_at() && has(name))
}

fn is_batch(message: &[u8]) -> bool {
    message.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[')
}

/// What answers the single calls of a message.
pub(crate) type Calls<'c> = dyn FnMut(&Request<'_>) -> Result<Json, Error> + 'c;

/// As [`answer`], with calls answered by `calls`, whose panics become internal errors.
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
    let request = match Request::parse(text) {
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

/// The answer to a request of a batch for which there is no room, or no time.
fn refuse(text: &str, code: Code, reason: &dyn fmt::Display) -> Option<Json> {
    let (id, error) = match Request::parse(text) {
        Ok(request) => (Some(request.id?), Error::new(code, format_args!("not called: {reason}"))),
        Err(invalid) => (invalid.id, invalid.error),
    };
    Some(failure(id, &error))
}

fn call(request: &Request<'_>, calls: &mut Calls<'_>) -> Result<Json, Error> {
    // A handler's own state is its own business after a panic: locks there are poisoned.
    catch_unwind(AssertUnwindSafe(|| calls(request))).unwrap_or_else(|panic| {
        let reason = panic_text(&*panic);
        tracing::error!(method = %request.method, reason, "a method panicked");
        Err(Error::new(Code::Internal, "the method failed; the server's log says why"))
    })
}

pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> &str {
    match panic.downcast_ref::<String>() {
        Some(text) => text,
        None => panic.downcast_ref::<&str>().copied().unwrap_or("no message"),
    }
}

fn success(id: &RawValue, result: Json) -> Json {
    let mut answer = Pieces::default();
    answer.push(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":"));
    answer.append(result.pieces);
    answer.push(Bytes::from_static(b"}"));
    answer.into()
}

pub(crate) fn failure(id: Option<&RawValue>, error: &Error) -> Json {
    let id = id.map_or("null", RawValue::get);
    let error = serde_json::to_string(error).expect("numbers and strings have a JSON form");
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{error}}}").into_bytes().into()
}

/// One request, borrowed from the message.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    /// `None` for a notification: it is called, but not answered.
    pub(crate) id: Option<&'a RawValue>,
    pub(crate) method: Cow<'a, str>,
    pub(crate) params: Option<&'a RawValue>,
}

/// Why a text is no request, and the id to say it to.
#[derive(Debug)]
struct Invalid<'a> {
    id: Option<&'a RawValue>,
    error: Error,
}

impl<'a> Request<'a> {
    fn parse(text: &'a str) -> Result<Self, Invalid<'a>> {
        let invalid = |detail: &dyn std::fmt::Display| Error::new(Code::InvalidRequest, detail);
        // Deserialize would take an array for the list of the fields.
        if !text.starts_with('{') {
            let error = match serde_json::from_str::<&RawValue>(text) {
                Ok(_) => invalid(&"a request is an object"),
                Err(fault) => Error::new(Code::Parse, fault),
            };
            return Err(Invalid { id: None, error });
        }
        let fields: Fields<'a> = serde_json::from_str(text).map_err(|fault| Invalid {
            id: None,
            error: if fault.is_data() { invalid(&fault) } else { Error::new(Code::Parse, fault) },
        })?;
        let id = match fields.id {
            Some(id) if !is_id(id) => {
                let detail =
                    format!("an id is a string, a number or null, of at most {ID_BYTES} bytes");
                return Err(Invalid { id: None, error: invalid(&detail) });
            }
            id => id,
        };
        match fields.request(id) {
            Ok(request) => Ok(request),
            Err(error) => Err(Invalid { id, error }),
        }
    }
}

fn is_id(id: &RawValue) -> bool {
    let kind = id.get().as_bytes()[0];
    id.get().len() <= ID_BYTES && matches!(kind, b'"' | b'0'..=b'9' | b'-' | b'n')
}

/// The members of a request, each of any kind, so that a wrong one is answered with the id.
#[derive(Deserialize)]
struct Fields<'a> {
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
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'a> Fields<'a> {
    fn request(self, id: Option<&'a RawValue>) -> Result<Request<'a>, Error> {
        let invalid = |detail: &str| Error::new(Code::InvalidRequest, detail);
        let version = self.jsonrpc.ok_or_else(|| invalid("jsonrpc is missing: it is \"2.0\""))?;
        let is_right = serde_json::from_str(version.get()).is_ok_and(|Text(text)| text == "2.0");
        if !is_right {
            let found = quote(version.get());
            return Err(invalid(&format!("jsonrpc is \"2.0\", got {found}")));
        }
        let method = self.method.ok_or_else(|| invalid("method is missing"))?;
        if method.get().len() > ID_BYTES {
            return Err(invalid("method is too long"));
        }
        let Text(method) =
            serde_json::from_str(method.get()).map_err(|_| invalid("method is not a string"))?;
        let params = match self.params.map(|params| (params, params.get().as_bytes()[0])) {
            None | Some((_, b'n')) => None,
            Some((params, b'[' | b'{')) => Some(params),
            Some(_) => return Err(Error::invalid_params("params are not an array")),
        };
        Ok(Request { id, method, params })
    }
}

#[cfg(test)]
mod tests;
