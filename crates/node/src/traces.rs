//! Traces of the Engine API, for a collector of OpenTelemetry (OTLP over HTTP, in JSON).
//!
//! A call becomes a trace when it has ended: a span of the call, and one of each of its stages. A
//! task sends them, some at a time; where the collector does not keep up, traces are lost, and no
//! call waits. The form is that of opentelemetry-proto 1, `ExportTraceServiceRequest`, by the rules
//! of JSON in the OTLP specification: ids in hex, 64-bit numbers as texts. There is no TLS: a
//! collector on this host, or a proxy, has that.

use std::num::NonZeroU16;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rpc::rest::header::CONTENT_TYPE;
use rpc::rest::{HeaderMap, HeaderValue, Method};
use rpc::{Client, LogThrottle};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use crate::limits::{TRACE_ANSWER_BYTES, TRACE_BATCH, TRACE_PAUSE, TRACE_TIME, TRACES_WAITING};

/// Where traces go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceOptions {
    /// The URL of the collector, as `http://127.0.0.1:4318`; `/v1/traces` is added.
    pub endpoint: String,
    /// The name by which the collector knows this node (`service.name`).
    pub service: String,
}

impl TraceOptions {
    /// A collector, and the name of this service.
    ///
    /// # Errors
    /// If the endpoint is not an HTTP URL with a host and a port that there is.
    pub fn new(endpoint: &str, service: String) -> Result<Self, String> {
        let address = endpoint.trim_end_matches('/');
        let quoted = rpc::shown_address(endpoint);
        let Some(rest) = address.strip_prefix("http://") else {
            return Err(format!(
                "the endpoint of traces is {quoted}: expected http://HOST:PORT; TLS needs a \
                 collector on this host, or a proxy"
            ));
        };
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let (host, port) = match authority.rsplit_once(':') {
            // The last part of an IPv6 address is no port.
            Some((host, port)) if !port.ends_with(']') => (host, port),
            _ => (authority, "80"),
        };
        if host.is_empty() || port.parse::<NonZeroU16>().is_err() {
            return Err(format!(
                "the endpoint of traces is {quoted}: expected http://HOST:PORT, with a port \
                 from 1 to 65535"
            ));
        }
        Ok(Self { endpoint: address.to_owned(), service })
    }
}

/// A call that has ended.
#[derive(Debug, Clone)]
pub(crate) struct Trace {
    pub(crate) name: &'static str,
    pub(crate) begun: SystemTime,
    pub(crate) took: Duration,
    /// The stages in their order. They begin so long after the call that the last ends with it.
    pub(crate) stages: Vec<(&'static str, Duration)>,
    pub(crate) attributes: Vec<(&'static str, Value)>,
    /// The reason why there is no answer.
    pub(crate) error: Option<String>,
}

/// Takes traces for the task that sends them.
#[derive(Debug)]
pub(crate) struct Tracer {
    traces: mpsc::Sender<Trace>,
    lost: AtomicU64,
    throttle: LogThrottle,
}

impl Tracer {
    /// A tracer, and the task that sends its traces until the tracer is dropped.
    pub(crate) fn new(options: TraceOptions) -> (Self, impl Future<Output = ()> + use<>) {
        let (traces, waiting) = mpsc::channel(TRACES_WAITING);
        let (lost, throttle) = (AtomicU64::new(0), LogThrottle::minutely());
        (Self { traces, lost, throttle }, export(options, waiting))
    }

    /// Has a trace sent, unless too many wait.
    pub(crate) fn end(&self, trace: Trace) {
        if self.traces.try_send(trace).is_err() {
            let lost = self.lost.fetch_add(1, Ordering::Relaxed) + 1;
            if self.throttle.is_due() {
                tracing::warn!(lost, "traces are lost: the collector takes them too slowly");
            }
        }
    }
}

async fn export(options: TraceOptions, mut waiting: mpsc::Receiver<Trace>) {
    let throttle = LogThrottle::minutely();
    let mut client = None;
    let mut batch = Vec::new();
    while waiting.recv_many(&mut batch, TRACE_BATCH).await > 0 {
        let body = request(&options.service, &batch).to_string();
        batch.clear();
        let sent = timeout(TRACE_TIME, send(&mut client, &options.endpoint, body)).await;
        let sent = sent.unwrap_or_else(|_| Err(format!("no answer in {TRACE_TIME:?}")));
        if let Err(reason) = sent {
            client = None;
            if throttle.is_due() {
                let endpoint = rpc::shown_address(&options.endpoint);
                tracing::warn!(endpoint, reason, "traces are not sent");
            }
        }
        // More come together.
        sleep(TRACE_PAUSE).await;
    }
}

/// Sends one request, over the connection of the last one if that is there.
async fn send(client: &mut Option<Client>, endpoint: &str, body: String) -> Result<(), String> {
    let told = |error: rpc::ClientError| error.to_string();
    let client = match client {
        Some(client) => client,
        None => client.insert(Client::connect(endpoint, None).await.map_err(told)?),
    };
    client.set_answer_bytes(TRACE_ANSWER_BYTES);
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let (_, path) = endpoint.split_once("://").unwrap_or_default();
    let path = path.find('/').map_or("", |at| &path[at..]);
    let reply = client.request(Method::POST, &format!("{path}/v1/traces"), headers, body).await;
    let reply = reply.map_err(told)?;
    match reply.status.is_success() {
        true => Ok(()),
        false => Err(format!("the collector answers {}", reply.status)),
    }
}

/// An `ExportTraceServiceRequest`.
fn request(service: &str, traces: &[Trace]) -> Value {
    let spans: Vec<_> = traces.iter().flat_map(spans).collect();
    let resource =
        [("service.name", json!(service)), ("service.version", json!(env!("CARGO_PKG_VERSION")))];
    json!({"resourceSpans": [{
        "resource": {"attributes": attributes(&resource)},
        "scopeSpans": [{
            "scope": {"name": "deponent", "version": env!("CARGO_PKG_VERSION")},
            "spans": spans,
        }],
    }]})
}

/// The kinds of spans: `SPAN_KIND_INTERNAL`, `SPAN_KIND_SERVER`.
const INTERNAL: u8 = 1;
const SERVER: u8 = 2;

/// `STATUS_CODE_ERROR`.
const ERROR: u8 = 2;

/// The span of a call, and those of its stages.
fn spans(trace: &Trace) -> Vec<Value> {
    let Trace { name, begun, took, stages, .. } = trace;
    let (trace_id, id) = (format!("{:032x}", rand::random::<u128>()), span_id());
    let span = |name: &str, id: &str, kind: u8, start: SystemTime, took: Duration| {
        json!({
            "traceId": trace_id,
            "spanId": id,
            "name": name,
            "kind": kind,
            "startTimeUnixNano": nanoseconds(start).to_string(),
            "endTimeUnixNano": nanoseconds(start + took).to_string(),
        })
    };
    let mut call = span(name, &id, SERVER, *begun, *took);
    call["attributes"] = attributes(&trace.attributes);
    if let Some(reason) = &trace.error {
        call["status"] = json!({"code": ERROR, "message": reason});
    }
    let mut spans = vec![call];
    let known: Duration = stages.iter().map(|(_, took)| *took).sum();
    let mut start = *begun + took.saturating_sub(known);
    for (name, took) in stages {
        let mut stage = span(name, &span_id(), INTERNAL, start, *took);
        stage["parentSpanId"] = json!(id);
        spans.push(stage);
        start += *took;
    }
    spans
}

fn span_id() -> String {
    format!("{:016x}", rand::random::<u64>())
}

fn nanoseconds(time: SystemTime) -> u128 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos()
}

fn attributes(pairs: &[(&'static str, Value)]) -> Value {
    let attribute = |(key, value): &(&'static str, Value)| {
        let value = match value {
            Value::Number(number) => json!({"intValue": number.to_string()}),
            Value::String(text) => json!({"stringValue": text}),
            Value::Bool(value) => json!({"boolValue": value}),
            other => json!({"stringValue": other.to_string()}),
        };
        json!({"key": key, "value": value})
    };
    pairs.iter().map(attribute).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_has_a_host_and_a_port_that_there_is() {
        let read = |endpoint| TraceOptions::new(endpoint, "node".into());
        for endpoint in ["http://a", "http://a:1/", "http://[::1]:65535/x", "http://[::1]"] {
            read(endpoint).expect(endpoint);
        }
        for endpoint in ["http://a:65536", "http://a:0", "http://a:x/", "http://a:", "http://:1"] {
            let fault = read(endpoint).expect_err(endpoint);
            let shown = endpoint.trim_end_matches('/');
            assert!(fault.contains("from 1 to 65535") && fault.contains(shown), "{fault}");
        }
        read("https://a").expect_err("no TLS");
    }
}
