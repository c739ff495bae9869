//! A port of a node without a state: its methods, and the Engine API over REST.

mod methods;
mod rest;

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use rpc::rest::{Request, Resources, Response, StatusCode};
use rpc::{Error, Handler, Json, Method, Params, RawValue};

use super::work::Stateless;
use crate::api::Offered;
use crate::metrics::Metrics;
use crate::observe::{NodeCondition, Sign};
use crate::port::probe;
use methods::{Answered, ROWS, StatelessRow, engine_rows, not_found, why_not_ready};

/// One port's methods.
pub(crate) struct StatelessApi {
    pub(crate) shared: Arc<Stateless>,
    pub(crate) condition: Arc<NodeCondition>,
    pub(crate) metrics: Arc<Metrics>,
    rows: Vec<StatelessRow>,
    methods: Vec<Method>,
    /// Whether it has the Engine API.
    is_engine: bool,
    /// Whether it is a Unix socket's.
    is_local: bool,
}

impl StatelessApi {
    /// A port with the Engine API, or a public one.
    pub(crate) fn new(
        shared: Arc<Stateless>,
        condition: Arc<NodeCondition>,
        metrics: Arc<Metrics>,
        is_engine: bool,
    ) -> Self {
        let mut rows = if is_engine { engine_rows() } else { Vec::new() };
        rows.extend(ROWS);
        let methods = rows.iter().map(|row| row.method).collect();
        Self { shared, condition, metrics, rows, methods, is_engine, is_local: false }
    }

    /// The same, on a Unix socket.
    pub(crate) fn local(self) -> Self {
        Self { is_local: true, ..self }
    }

    /// Whether it is the port of the Engine API: who calls there has the secret.
    const fn is_engine_port(&self) -> bool {
        self.is_engine && !self.is_local
    }

    /// Those of its methods that are offered.
    pub(crate) fn only(mut self, offered: &Offered) -> Self {
        self.rows.retain(|row| offered.refusal(row.method.name).is_none());
        self.methods = self.rows.iter().map(|row| row.method).collect();
        self
    }

    /// The names of all methods.
    pub(crate) fn methods(&self) -> impl Iterator<Item = &'static str> {
        self.methods.iter().map(|method| method.name)
    }
}

impl fmt::Debug for StatelessApi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.methods()).finish()
    }
}

impl Handler for StatelessApi {
    fn call(&self, method: &str, params: Option<&RawValue>) -> Result<Json, Error> {
        let begun = Instant::now();
        let found = self.rows.iter().find(|row| row.method.name == method);
        if found.is_some()
            && let Some(sign) = Sign::of(method, self.is_engine_port())
        {
            self.condition.called(method, sign);
        }
        let answer = match found.map(|row| row.call) {
            Some(Answered::Plain(call)) => Params::of(params).and_then(|params| call(self, params)),
            Some(Answered::Versioned(call, version)) => {
                Params::of(params).and_then(|params| call(self, params, version))
            }
            None => Err(not_found(method)),
        };
        let name = found.map(|row| row.method.name);
        self.metrics.called(name, begun.elapsed(), answer.as_ref().err());
        // The Engine API has the reason in `data`, all others in the message.
        answer.map_err(|error| match found.is_some() && method.starts_with("engine_") {
            true => error,
            false => error.in_message(),
        })
    }

    fn methods(&self) -> &[Method] {
        &self.methods
    }

    fn probe(&self, path: &str) -> Option<Result<String, String>> {
        probe(path, || why_not_ready(self))
    }

    fn user_agent(&self, method: &str, user_agent: &str) {
        if self.is_engine && method.starts_with("engine_") {
            self.condition.user_agent(user_agent);
        }
    }

    fn resources(&self) -> Option<&dyn Resources> {
        self.is_engine.then_some(self)
    }
}

impl Resources for StatelessApi {
    fn prefix(&self) -> &str {
        "/engine/"
    }

    fn answer(&self, request: Request) -> Response {
        rest::answer(self, &request)
    }

    fn refuse(&self, status: StatusCode, detail: &str) -> Response {
        crate::rest::refuse(status, detail)
    }

    fn is_quick(&self, request: &Request) -> bool {
        !request.path.ends_with("/payloads")
    }

    fn is_in_order(&self, path: &str) -> bool {
        crate::rest::is_in_order(path)
    }
}
