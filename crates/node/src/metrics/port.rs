//! The port of metrics: `GET /metrics`, and geth's path.

use std::fmt;
use std::sync::Arc;

use prometheus_client::encoding::prometheus_text::{CONTENT_TYPE as TEXT_FORMAT, encode};
use prometheus_client::registry::Registry;
use rpc::rest::header::{ALLOW, CONTENT_TYPE};
use rpc::rest::{HeaderMap, HeaderValue, Method, Request, Resources, Response, StatusCode};
use rpc::{Error, Handler, Json, Limits, RawValue, quote};

use super::scrape::NodeState;
use super::{Metrics, scrape};
use crate::limits;

/// The paths of the metrics: the usual one, and geth's.
const PATHS: [&str; 2] = ["/metrics", "/debug/metrics/prometheus"];

/// Answers scrapes.
pub(crate) struct MetricsPort {
    metrics: Arc<Metrics>,
    /// Values that are asked for at each scrape.
    node: Registry,
}

impl MetricsPort {
    pub(crate) fn new(metrics: Arc<Metrics>, state: NodeState) -> Self {
        Self::of(metrics, scrape::registry(state))
    }

    /// Of a node with other values of its own.
    pub(crate) const fn of(metrics: Arc<Metrics>, node: Registry) -> Self {
        Self { metrics, node }
    }

    /// The port's bounds: a scrape is short, and a handful of programs make one now and then.
    pub(crate) fn limits() -> Limits {
        let limits = Limits::public().with_memory(limits::METRICS_PORT_BYTES);
        let connections = limits::METRICS_CONNECTIONS;
        Limits { connections, sessions: 1, call_bytes: limits::METRICS_TEXT_BYTES, ..limits }
    }

    /// All metrics in the text format of Prometheus, version 0.0.4.
    fn text(&self) -> String {
        let mut text = String::new();
        let encoded =
            encode(&mut text, &self.metrics.registry).and_then(|()| encode(&mut text, &self.node));
        encoded.expect("a text takes all that is written");
        text
    }
}

impl fmt::Debug for MetricsPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MetricsPort")
    }
}

impl Handler for MetricsPort {
    fn call(&self, method: &str, _: Option<&RawValue>) -> Result<Json, Error> {
        Err(Error::method_not_found(method))
    }

    fn resources(&self) -> Option<&dyn Resources> {
        Some(self)
    }
}

impl Resources for MetricsPort {
    fn prefix(&self) -> &str {
        "/"
    }

    fn answer(&self, request: Request) -> Response {
        if !PATHS.contains(&request.path.as_str()) {
            let text = format!("there is no {}: metrics are at {}", quote(&request.path), PATHS[0]);
            return Response::text(StatusCode::NOT_FOUND, text);
        }
        if !matches!(request.method, Method::GET | Method::HEAD) {
            let mut response =
                Response::text(StatusCode::METHOD_NOT_ALLOWED, "metrics are for GET");
            response.headers.insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return response;
        }
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(TEXT_FORMAT));
        let body = self.text().into_bytes().into();
        Response { status: StatusCode::OK, headers, body, file: None }
    }
}
