//! The endpoint that a chain for tests began at, called from any thread.

use std::cell::Cell;
use std::fmt;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use client::{Endpoint, EndpointAddress};
use rpc::{ClientError, Code, Error, read_json, shown_address};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::limits::{FORK_ANSWER_BYTES, FORK_CALL_TIME, FORK_CALLS, FORK_PAUSE, FORK_TRIES};

thread_local! {
    /// When the call that this thread answers has to end.
    static CALL_END: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Answers a call on this thread, which waits for no endpoint longer than so.
pub(crate) fn within<T>(time: Option<Duration>, answer: impl FnOnce() -> T) -> T {
    struct Before(Option<Instant>);
    impl Drop for Before {
        fn drop(&mut self) {
            CALL_END.set(self.0);
        }
    }
    let end = time.and_then(|time| Instant::now().checked_add(time));
    let _before = Before(CALL_END.replace(end));
    answer()
}

/// An endpoint of JSON-RPC. Each call is made by a thread of its own, and tried again where the
/// network or the endpoint's load is at fault.
pub(crate) struct ForkEndpoint {
    url: String,
    address: EndpointAddress,
    connections: Mutex<Connections>,
    call_ended: Condvar,
}

/// Why there is no answer.
enum Unanswered {
    Client(ClientError),
    /// The call for which it is needed has to end.
    CallOver,
}

#[derive(Default)]
struct Connections {
    idle: Vec<Endpoint>,
    calls: usize,
}

/// Without the path and the password of its URL, which may be secrets.
impl fmt::Debug for ForkEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ForkEndpoint").field(&self.to_string()).finish()
    }
}

impl fmt::Display for ForkEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shown_address(&self.url))
    }
}

impl ForkEndpoint {
    /// The endpoint at a URL, which is not called yet.
    pub(crate) fn parse(url: &str) -> Result<Self, ClientError> {
        let address = EndpointAddress::parse(url, None, None)?;
        let (connections, call_ended) = (Mutex::default(), Condvar::new());
        Ok(Self { url: url.to_owned(), address, connections, call_ended })
    }

    /// The URL as it was given.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Calls a method, and reads its result. The error names the endpoint and the method.
    pub(crate) fn call<T: DeserializeOwned>(
        self: &Arc<Self>,
        method: &str,
        params: &Value,
    ) -> Result<T, String> {
        let answer = self.answer(method, params).map_err(|error| self.told(method, &error))?;
        read_json(&answer)
            .map_err(|fault| format!("{self}: {method}: its answer cannot be read: {fault}"))
    }

    /// The result of a call as JSON text, or the error with which the endpoint answers.
    pub(crate) fn forward(self: &Arc<Self>, method: &str, params: &Value) -> Result<String, Error> {
        self.answer(method, params).map_err(|error| match error {
            Unanswered::Client(ClientError::Rpc(error)) => error,
            error => Error::new(Code::Server, self.told(method, &error)),
        })
    }

    fn told(&self, method: &str, error: &Unanswered) -> String {
        let error = match error {
            Unanswered::Client(error) => error,
            Unanswered::CallOver => {
                return format!(
                    "{self}: {method}: no answer in the time of the call (--rpc.evmtimeout)"
                );
            }
        };
        match error {
            ClientError::Rpc(answered) if answered.is(Code::MethodNotFound) => {
                format!("{self} has no {method}, which a fork needs: {answered}")
            }
            ClientError::Connect { source, .. } => {
                format!("{self}: {method}: no connection: {source}")
            }
            ClientError::Timeout { limit, .. } => {
                format!("{self}: {method}: no answer within {limit:?}, {FORK_TRIES} times")
            }
            error => format!("{self}: {method}: {error}"),
        }
    }

    fn answer(self: &Arc<Self>, method: &str, params: &Value) -> Result<String, Unanswered> {
        let end = CALL_END.get();
        let turn = self.turn(end).ok_or(Unanswered::CallOver)?;
        let (sender, answer) = sync_channel(1);
        let (method, params) = (method.to_owned(), params.clone());
        // The caller may be a task, which must not wait for another runtime, and it may leave.
        thread::spawn(move || {
            let answer = turn.0.tried(&method, &params);
            drop(turn);
            sender.send(answer).unwrap_or_default();
        });
        let answer = match end {
            Some(end) => answer.recv_timeout(end.saturating_duration_since(Instant::now())),
            None => Ok(answer.recv().expect("a call does not panic")),
        };
        answer.map_err(|_| Unanswered::CallOver)?.map_err(Unanswered::Client)
    }

    fn tried(&self, method: &str, params: &Value) -> Result<String, ClientError> {
        let mut pause = FORK_PAUSE;
        for _ in 1..FORK_TRIES {
            match self.once(method, params) {
                Err(error) if may_pass(&error) => {
                    tracing::debug!(%error, method, "the endpoint is asked again");
                    thread::park_timeout(pause);
                    pause *= 2;
                }
                answer => return answer,
            }
        }
        self.once(method, params)
    }

    fn once(&self, method: &str, params: &Value) -> Result<String, ClientError> {
        let idle = self.connections.lock().unwrap_or_else(PoisonError::into_inner).idle.pop();
        let mut endpoint = match idle {
            Some(endpoint) => endpoint,
            None => self.address.connect(FORK_CALL_TIME, FORK_ANSWER_BYTES)?,
        };
        let answer = endpoint.call(method, params);
        if matches!(answer, Ok(_) | Err(ClientError::Rpc(_))) {
            let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
            connections.idle.push(endpoint);
        }
        let answer = String::from_utf8(answer?.to_vec());
        answer.map_err(|_| ClientError::Malformed("it is no text".into()))
    }

    /// The right to make a call, of which there are so many at a time; `None` at the end of the
    /// call that needs it.
    fn turn(self: &Arc<Self>, end: Option<Instant>) -> Option<Turn> {
        let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        while connections.calls >= FORK_CALLS {
            let Some(end) = end else {
                let waited = self.call_ended.wait(connections);
                connections = waited.unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left = end.checked_duration_since(Instant::now())?;
            let waited = self.call_ended.wait_timeout(connections, left);
            connections = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        connections.calls += 1;
        Some(Turn(Arc::clone(self)))
    }
}

impl Drop for ForkEndpoint {
    fn drop(&mut self) {
        // A task must not wait for the runtimes of the connections to end.
        let connections = self.connections.get_mut().unwrap_or_else(PoisonError::into_inner);
        let idle = std::mem::take(&mut connections.idle);
        thread::spawn(move || drop(idle));
    }
}

/// The right to make a call, until it is dropped.
struct Turn(Arc<ForkEndpoint>);

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.connections.lock().unwrap_or_else(PoisonError::into_inner).calls -= 1;
        self.0.call_ended.notify_one();
    }
}

/// Whether a call may be answered the next time.
fn may_pass(error: &ClientError) -> bool {
    match error {
        // Of too many calls: EIP-1474, and what hosted endpoints answer.
        ClientError::Rpc(error) => error.is(Code::LimitExceeded) || error.code == 429,
        ClientError::Http { status, .. } => *status == 429 || *status >= 500,
        ClientError::Timeout { .. }
        | ClientError::Connect { .. }
        | ClientError::Broken { .. }
        | ClientError::Closed { .. } => true,
        _ => false,
    }
}
