//! A port: the methods of [`Api`] over JSON-RPC, and the Engine API over REST.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use engine::SyncProgress;
use rpc::rest::{Request, Resources, Response, StatusCode};
use rpc::{Code, Error, Handler, Json, Later, Method, Params, RawValue};
use rpc::{Subscription, SubscriptionMethods};
use serde_json::json;

use crate::api::{self, Api, SUBSCRIPTIONS};
use crate::observe::{Detail, NodeCondition, Sign};
use crate::page;
use crate::rest;

impl Handler for Api {
    fn call(&self, method: &str, params: Option<&RawValue>) -> Result<Json, Error> {
        self.call_from(None, method, params)
    }

    fn call_from(
        &self,
        host: Option<IpAddr>,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<Json, Error> {
        let (begun, found) = (Instant::now(), self.entry(method));
        // A port without the Engine API has none of its methods: no consensus client calls there.
        if found.is_some() {
            self.shows_client(method, Sign::of(method, self.is_engine_port()));
        }
        let answer = match found {
            Some(found) => match self.forwarded(method, params) {
                Some(answer) => answer,
                None => self.in_time(method, || {
                    Params::of(params).and_then(|params| found.call(self, params, host))
                }),
            },
            None => Err(self.not_found(method)),
        };
        let name = found.map(|found| found.method.name);
        self.metrics.called(name, begun.elapsed(), answer.as_ref().err());
        // The Engine API has the reason in `data`, all others in the message.
        answer.map_err(|error| match method.starts_with("engine_") {
            true => error,
            false => self.told(error.in_message()),
        })
    }

    fn call_later(
        &self,
        _: Option<IpAddr>,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<Later, Error> {
        let (begun, found) = (Instant::now(), self.entry(method));
        let name = found.map(|found| found.method.name);
        let later = match found {
            Some(found) => Params::of(params).and_then(|params| found.call_later(self, params)),
            None => Err(Error::method_not_found(method)),
        };
        let later = later.map_err(|error| {
            self.metrics.called(name, begun.elapsed(), Some(&error));
            self.told(error.in_message())
        })?;
        let (metrics, condition) = (self.metrics.clone(), self.public_condition().cloned());
        Ok(Box::pin(async move {
            let answer = later.await;
            metrics.called(name, begun.elapsed(), answer.as_ref().err());
            answer.map_err(|error| told(condition.as_deref(), error.in_message()))
        }))
    }

    fn methods(&self) -> &[Method] {
        &self.methods
    }

    fn probe(&self, path: &str) -> Option<Result<String, String>> {
        probe(path, || self.why_not_ready(Detail::Public))
    }

    fn page(&self) -> Option<Response> {
        self.has_page.then(|| page::response(|method| self.entry(method).is_some()))
    }

    fn user_agent(&self, method: &str, user_agent: &str) {
        if let Some(condition) = self.condition.as_ref().filter(|_| drives(method)) {
            condition.user_agent(user_agent);
        }
    }

    /// The Engine API over REST, on its own ports.
    fn resources(&self) -> Option<&dyn Resources> {
        self.offers_rest().then_some(self)
    }

    fn subscriptions(&self) -> &[SubscriptionMethods] {
        if self.feed.is_some() { SUBSCRIPTIONS } else { &[] }
    }

    fn subscribe(&self, method: &str, params: Option<&RawValue>) -> Result<Subscription, Error> {
        let feed = self.feed.as_ref().filter(|_| self.offers(method));
        let begun = Instant::now();
        let answer = feed.ok_or_else(|| self.not_found(method)).and_then(|feed| {
            let pending = self.pending_feed.as_deref();
            api::subscribe((feed, pending), method, Params::of(params)?)
        });
        let name = SUBSCRIPTIONS.iter().map(|kind| kind.subscribe).find(|name| *name == method);
        self.metrics.called(name, begun.elapsed(), answer.as_ref().err());
        answer.map_err(|error| self.told(error.in_message()))
    }
}

/// Answers monitors: `/health` and `/live` say that the process answers, `/ready` that it
/// validates, is in step, and is called by a consensus client, or why not.
pub(crate) fn probe(
    path: &str,
    why_not_ready: impl FnOnce() -> Vec<String>,
) -> Option<Result<String, String>> {
    match path {
        "/health" => Some(Ok(String::new())),
        "/live" => Some(Ok(json!({"live": true}).to_string())),
        "/ready" => {
            let reasons = why_not_ready();
            let body = json!({"ready": reasons.is_empty(), "reasons": reasons}).to_string();
            Some(if reasons.is_empty() { Ok(body) } else { Err(body) })
        }
        _ => None,
    }
}

fn told(public: Option<&NodeCondition>, error: Error) -> Error {
    match public.filter(|_| error.is(Code::Internal)) {
        Some(condition) => {
            let message = condition.without_directory(&error.message);
            Error { message: message.into(), ..error }
        }
        None => error,
    }
}

/// Whether a method of the Engine API is one that a consensus client alone calls: provers and
/// monitors with the same secret read.
fn drives(method: &str) -> bool {
    const DRIVING: [&str; 5] = [
        "engine_newPayload",
        "engine_forkchoiceUpdated",
        // Not engine_getPayloadBodies.
        "engine_getPayloadV",
        "engine_exchangeCapabilities",
        "engine_getClientVersion",
    ];
    DRIVING.iter().any(|driving| method.starts_with(driving))
}

impl Api {
    /// An error as the port tells it: a fault of ours may name files, and the public port says
    /// nothing of where they are.
    fn told(&self, error: Error) -> Error {
        told(self.public_condition().map(|condition| &**condition), error)
    }

    /// Notes a call, if it shows a consensus client.
    pub(crate) fn shows_client(&self, what: &str, sign: Option<Sign>) {
        if let (Some(condition), Some(sign)) = (&self.condition, sign) {
            condition.called(what, sign);
        }
    }

    /// How the node is, of which the public port says less.
    fn public_condition(&self) -> Option<&Arc<NodeCondition>> {
        self.condition.as_ref().filter(|_| !self.offers_rest())
    }

    /// Why the chain cannot be relied on now; nothing where blocks are validated, a consensus
    /// client leads, and the chain is in step with it.
    pub(crate) fn why_not_ready(&self, detail: Detail) -> Vec<String> {
        let mut reasons = Vec::new();
        if let Some(condition) = &self.condition {
            if condition.is_stopping() {
                reasons.push("the node is stopping".to_owned());
            }
            reasons.extend(self.why_not_led(condition));
        }
        if let Err(error) = self.engine.check() {
            reasons.push(detail.of("a write has failed", &error));
        }
        match self.engine.progress() {
            Ok(None) => {}
            Ok(Some(progress)) => reasons.extend(self.why_not_in_step(progress)),
            Err(error) => reasons.push(detail.of("the chain cannot be read", &error)),
        }
        reasons
    }

    /// Why nobody has said what the head is.
    fn why_not_led(&self, condition: &NodeCondition) -> Option<String> {
        if condition.head_source().is_some() {
            return condition.not_followed();
        }
        let named = self.engine.progress().ok().flatten().and_then(|named| named.unknown_head);
        match condition.has_chosen() || named.is_some() {
            false => Some("no consensus client has named a head since the start".into()),
            true => condition.client_missing(Instant::now()),
        }
    }

    /// Why the head is not the one that was named.
    fn why_not_in_step(&self, progress: SyncProgress) -> Vec<String> {
        let SyncProgress { current, highest, unknown_head, .. } = progress;
        let source = self.condition.as_ref().and_then(|condition| condition.head_source());
        let gap = self.backfill.as_ref().and_then(|backfill| backfill.progress());
        let given_up = gap.and_then(|gap| gap.problem);
        let mut reasons = Vec::new();
        match unknown_head {
            // The reason is that of the source.
            Some(hash) if source.is_some() => {
                let is_invalid = self.engine.is_invalid(&hash);
                let reason = format!("the head of the upstream is not known yet: {hash}");
                reasons.extend((!is_invalid).then_some(reason));
            }
            Some(hash) => reasons.push(match self.engine.invalid_reason(&hash) {
                None => {
                    format!("the head that the consensus client chose is not known yet: {hash}")
                }
                Some(reason) => format!(
                    "the head that the consensus client chose, {hash}, is invalid: {reason}"
                ),
            }),
            None => {}
        }
        let is_told = unknown_head.is_some_and(|hash| self.engine.is_invalid(&hash));
        if let Some(reason) = given_up.filter(|_| !is_told) {
            reasons.push(format!("a gap cannot be filled: {reason}"));
        }
        if highest > current || unknown_head.is_none() {
            reasons.push(format!(
                "not in step: the head is block {current}, the highest block heard of {highest}"
            ));
        }
        reasons
    }
}

impl Resources for Api {
    fn prefix(&self) -> &str {
        "/engine/"
    }

    fn answer(&self, request: Request) -> Response {
        match self.offers_rest() {
            true => rest::answer(self, request),
            false => rest::refuse(StatusCode::NOT_FOUND, "the Engine API is not offered here"),
        }
    }

    fn refuse(&self, status: StatusCode, detail: &str) -> Response {
        rest::refuse(status, detail)
    }

    fn is_quick(&self, request: &Request) -> bool {
        rest::is_quick(request)
    }

    fn is_in_order(&self, path: &str) -> bool {
        rest::is_in_order(path)
    }
}
