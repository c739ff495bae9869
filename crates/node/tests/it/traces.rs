//! Traces of the Engine API, as a collector of OpenTelemetry gets them.

use std::sync::{Arc, Mutex};

use deponent_node::TraceOptions;
use rpc::rest::{Method, Request, Resources, Response, StatusCode};
use rpc::{Error, Handler, Json, Limits, RawValue, ServerOptions};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{Notify, oneshot};

use crate::support::*;

/// A collector that keeps all spans that it is sent.
#[derive(Default)]
struct Collector {
    requests: Mutex<Vec<Value>>,
    came: Notify,
}

impl Handler for Collector {
    fn call(&self, method: &str, _: Option<&RawValue>) -> Result<Json, Error> {
        Err(Error::method_not_found(method))
    }

    fn resources(&self) -> Option<&dyn Resources> {
        Some(self)
    }
}

impl Resources for Collector {
    fn prefix(&self) -> &str {
        "/v1/"
    }

    fn answer(&self, request: Request) -> Response {
        assert_eq!((request.method, request.path.as_str()), (Method::POST, "/v1/traces"));
        assert_eq!(request.headers["content-type"], "application/json");
        let body = serde_json::from_slice(&request.body).expect("JSON");
        self.requests.lock().expect("no panic").push(body);
        self.came.notify_one();
        Response::text(StatusCode::OK, "{}")
    }
}

impl Collector {
    /// All spans so far.
    fn spans(&self) -> Vec<Value> {
        let requests = self.requests.lock().expect("no panic");
        let spans = requests.iter().flat_map(|request| {
            let resource = &request["resourceSpans"][0];
            let name = json!({"key": "service.name", "value": {"stringValue": "test-node"}});
            assert!(resource["resource"]["attributes"].as_array().expect("a list").contains(&name));
            resource["scopeSpans"][0]["spans"].as_array().expect("a list").clone()
        });
        spans.collect()
    }

    /// The first span of this name for which something holds, once it has come.
    async fn span(&self, name: &str, holds: impl Fn(&Value) -> bool) -> Value {
        loop {
            let spans = self.spans();
            if let Some(span) = spans.into_iter().find(|span| span["name"] == name && holds(span)) {
                return span;
            }
            self.came.notified().await;
        }
    }
}

fn attribute<'s>(span: &'s Value, key: &str) -> &'s Value {
    let attributes = span["attributes"].as_array().expect("a list");
    let found = attributes.iter().find(|attribute| attribute["key"] == key);
    &found.unwrap_or_else(|| panic!("no {key}: {span}"))["value"]
}

fn time(span: &Value, member: &str) -> u128 {
    span[member].as_str().expect("a text").parse().expect("nanoseconds")
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_of_the_engine_api_become_spans_with_their_stages() {
    let collector = Arc::new(Collector::default());
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let endpoint = format!("http://{}", listener.local_addr().expect("an address"));
    let (stop, stopped) = oneshot::channel::<()>();
    let stopped = async { stopped.await.unwrap_or_default() };
    let (options, handler) = (ServerOptions::new(None, Limits::public()), collector.clone());
    let served = tokio::spawn(rpc::serve(listener, options, handler, stopped));
    let options = TraceOptions::new(&endpoint, "test-node".into()).expect("an endpoint");
    let mut node =
        TestNode::start_with(genesis_of_osaka(), |node| node.traces = Some(options)).await;

    let id = node.begin(OSAKA, 1, true).await;
    let built = node.built(OSAKA, id).await;
    node.ok("engine_newPayloadWithWitnessV4", new_payload(4, &built)).await;
    node.adopt(OSAKA, &built).await;
    let mut bad = built.clone();
    bad["executionPayload"]["stateRoot"] = json!(alloy_primitives::B256::repeat_byte(7));
    node.ok("engine_newPayloadV4", new_payload(4, &bad)).await;
    node.call("engine_getPayloadV5", json!(["0x0102030405060708"])).await.expect_err("no build");

    let hash = json!({"stringValue": built["executionPayload"]["blockHash"]});
    let call = collector.span("newPayload", |span| span["kind"] == 2).await;
    assert_eq!(attribute(&call, "block.hash"), &hash);
    assert_eq!(attribute(&call, "block.number"), &json!({"intValue": "1"}));
    assert_eq!(attribute(&call, "status"), &json!({"stringValue": "VALID"}));
    assert_eq!(attribute(&call, "block.known"), &json!({"boolValue": false}));
    // The same payload came again.
    let known = |span: &Value| attribute(span, "block.known")["boolValue"] == true;
    let known = collector.span("newPayload", known).await;
    assert_eq!(attribute(&known, "status"), &json!({"stringValue": "VALID"}));
    let invalid = |span: &Value| attribute(span, "status")["stringValue"] == "INVALID";
    collector.span("newPayload", invalid).await;
    let (start, end) = (time(&call, "startTimeUnixNano"), time(&call, "endTimeUnixNano"));
    for stage in ["recovery", "parent", "execution", "root", "journal", "witness"] {
        let span = collector.span(stage, |span| span["parentSpanId"] == call["spanId"]).await;
        assert_eq!(span["traceId"], call["traceId"]);
        let within = start..=end;
        for member in ["startTimeUnixNano", "endTimeUnixNano"] {
            assert!(within.contains(&time(&span, member)), "{span} in {call}");
        }
    }
    let stages = collector.spans();
    let of_known = stages.iter().find(|span| span["parentSpanId"] == known["spanId"]);
    assert_eq!(of_known, None, "nothing ran for it");
    let chosen = |span: &Value| attribute(span, "block.hash") == &hash;
    let chosen = collector.span("forkchoiceUpdated", chosen).await;
    assert_eq!(attribute(&chosen, "status"), &json!({"stringValue": "VALID"}));
    collector.span("getPayload", |span| span["status"].is_null()).await;
    let failed = collector.span("getPayload", |span| span["status"]["code"] == 2).await;
    assert!(failed["status"]["message"].as_str().expect("a text").contains("0x0102030405060708"));
    let ids = collector.spans().into_iter().map(|span| span["spanId"].to_string());
    let (ids, spans): (std::collections::HashSet<_>, _) = (ids.collect(), collector.spans().len());
    assert_eq!(ids.len(), spans, "each span has an id of its own");
    node.node.stop().await;
    drop(stop);
    served.await.expect("it stops");
}

#[test]
fn an_endpoint_is_an_http_url() {
    for (endpoint, kept) in [
        ("http://127.0.0.1:4318", Some("http://127.0.0.1:4318")),
        ("http://collector:4318/prefix/", Some("http://collector:4318/prefix")),
        ("https://collector:4318", None),
        ("127.0.0.1:4318", None),
    ] {
        let options = TraceOptions::new(endpoint, "node".into());
        assert_eq!(options.as_ref().ok().map(|options| options.endpoint.as_str()), kept);
        if let Err(said) = options {
            assert!(said.contains("http://HOST:PORT"), "{said}");
        }
    }
}
