//! The methods that ports offer, and the bounds of calls and batches.

use std::time::Duration;

use deponent_node::{BatchBounds, CallBounds, Offered, PublicPort};
use rpc::Client;
use serde_json::{Value, json};

use crate::persistence::{Process, directory};
use crate::support::{TestNode, genesis_of_osaka, unwrap};

const CALLED: &str = "0x00000000000000000000000000000000000ca11e";

/// The methods that a port offers.
fn offered(namespaces: Option<&[&str]>, methods: &[&str], flag: &'static str) -> Offered {
    let namespaces = namespaces.map(|all| all.iter().map(ToString::to_string).collect());
    let methods = methods.iter().map(|text| text.parse().expect("a method")).collect();
    Offered { namespaces, methods, methods_flag: flag, ..Offered::default() }
}

/// A method is refused as one that is not there, with these words.
async fn refused(client: &mut Client, method: &str, words: &str) {
    let error = unwrap(client.call(method, json!([])).await).expect_err(method);
    assert_eq!(error.code, -32601, "{method}: {error}");
    assert!(error.to_string().contains(words), "{method}: {error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_port_offers_the_methods_that_its_flag_names() {
    let genesis = genesis_of_osaka();
    let mut node = TestNode::start_with(genesis, |options| {
        let http = offered(Some(&["eth", "net"]), &["eth_*", "!eth_getLogs"], "--http.methods");
        let only = offered(None, &["net_version", "eth_subscribe"], "--ws.methods");
        options.ports.ipc_offered = offered(None, &["!engine_*"], "--ipc.methods");
        let ports = &mut options.ports;
        let public = ports.http.as_mut().expect("a public port");
        ports.websocket = Some(PublicPort { address: public.address, offered: only });
        public.offered = http;
    })
    .await;
    let public = &mut node.public;
    let _: Value = public.call("eth_chainId", json!([])).await.expect("offered");
    refused(public, "eth_getLogs", r#""eth_getLogs" is not offered here: --http.methods has !"#)
        .await;
    refused(public, "net_version", "it is not in --http.methods").await;
    refused(public, "debug_getRawBlock", "--http.api has no debug").await;
    // A method that no port has is no matter of flags.
    refused(public, "eth_nothing", "there is no method \"eth_nothing\" here").await;
    let websocket = node.node.websocket_addr.expect("it listens").to_string();
    let mut websocket = Client::connect(&websocket, None).await.expect("a connection");
    let _: Value = websocket.call("net_version", json!([])).await.expect("offered");
    refused(&mut websocket, "eth_chainId", "it is not in --ws.methods").await;
    let mut local = node.unix_client().await;
    let _: Value = local.call("debug_chainConfig", json!([])).await.expect("offered");
    refused(&mut local, "engine_exchangeCapabilities", "--ipc.methods has !engine_*").await;
    // The Engine API over REST goes with that.
    let (method, headers) = (rpc::rest::Method::GET, rpc::rest::HeaderMap::new());
    let rest = local.request(method, "/engine/v1/capabilities", headers, Vec::new()).await;
    assert_eq!(rest.expect("an answer").status, 404);
    // The Engine API's port has all of its methods.
    node.ok("engine_exchangeCapabilities", json!([[]])).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_that_is_taken_away_is_refused_with_the_flag() {
    let mut node = TestNode::start_with(genesis_of_osaka(), |options| {
        let public = options.ports.http.as_mut().expect("a public port");
        public.offered = offered(None, &["!eth_subscribe"], "--http.methods");
    })
    .await;
    let address = format!("ws://{}", node.node.http_addr);
    let session = rpc::SessionClient::connect(&address, None).await.expect("a connection");
    let refused = session.call::<Value>("eth_subscribe", json!(["newHeads"])).await;
    let refused = refused.expect_err("taken away").to_string();
    assert!(refused.contains("--http.methods has !eth_subscribe"), "{refused}");
    node.public("eth_chainId", json!([])).await.expect("offered");
}

/// Each method that runs code, with parameters by which it runs an endless loop.
fn endless() -> Vec<(&'static str, Value)> {
    let state = json!({ CALLED: { "code": "0x5b5f56" } });
    let call = json!({ "to": CALLED });
    let block = json!({ "stateOverrides": state, "calls": [call] });
    vec![
        ("eth_call", json!([call, "latest", state])),
        ("eth_estimateGas", json!([call, "latest", state])),
        ("eth_createAccessList", json!([call, "latest", state])),
        ("eth_simulateV1", json!([{ "blockStateCalls": [block] }, "latest"])),
        ("debug_traceCall", json!([call, "latest", { "stateOverrides": state }])),
    ]
}

/// The time is over at the first look, so that none of them can be faster.
#[tokio::test(flavor = "multi_thread")]
async fn every_method_that_runs_code_ends_with_its_time() {
    let dir = directory();
    let process = Process::start_with(dir.path(), &["--rpc.evmtimeout", "1ns"]).await;
    let mut public = Client::connect(&process.public, None).await.expect("a connection");
    for (method, params) in endless() {
        let error = unwrap(public.call(method, params).await).expect_err(method);
        let words = match method {
            "debug_traceCall" => "execution timeout",
            _ => "execution aborted (timeout = 1ns)",
        };
        assert_eq!((error.code, &*error.message), (-32000, words), "{method}");
    }
    // A trace may ask for time of its own.
    let state = json!({ CALLED: { "code": "0x00" } });
    let config = json!({ "stateOverrides": state, "timeout": "1h" });
    let traced: Value = public
        .call("debug_traceCall", json!([{ "to": CALLED }, "latest", config]))
        .await
        .expect("there is time");
    assert_eq!(traced["failed"], false, "{traced}");
}

/// Without a bound of gas a call has as much as it asks for, and only its time ends it.
#[tokio::test(flavor = "multi_thread")]
async fn without_a_bound_of_gas_time_alone_ends_a_call() {
    let dir = directory();
    let flags = ["--rpc.gascap", "0", "--rpc.evmtimeout", "100ms"];
    let process = Process::start_with(dir.path(), &flags).await;
    let mut public = Client::connect(&process.public, None).await.expect("a connection");
    let (_, mut params) = endless().swap_remove(0);
    params[0]["gas"] = json!("0x3fffffffffffffff");
    let error = unwrap(public.call("eth_call", params).await).expect_err("it is endless");
    assert_eq!(error.message, "execution aborted (timeout = 100ms)");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_call_has_more_gas_than_the_bound() {
    let dir = directory();
    let process = Process::start_with(dir.path(), &["--rpc.gascap", "100000"]).await;
    let mut public = Client::connect(&process.public, None).await.expect("a connection");
    // Returns the gas that is left.
    let state = json!({ CALLED: { "code": "0x5a5f5260205ff3" } });
    for gas in [json!(null), json!("0xf4240")] {
        let call = json!({ "to": CALLED, "gas": gas });
        let left: String =
            public.call("eth_call", json!([call, "latest", state])).await.expect("an answer");
        let left = u64::from_str_radix(&left[50..], 16).expect("a number");
        assert_eq!(left, 100_000 - 21_000 - 2);
    }
    let code = json!({ CALLED: { "code": "0x5b5f56" } });
    let params = json!([{ "to": CALLED }, "latest", code]);
    let error = unwrap(public.call("eth_estimateGas", params).await).expect_err("too little gas");
    assert_eq!(error.message, "gas required exceeds allowance (100000)");
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_have_the_bounds_of_the_flags() {
    let dir = directory();
    let flags = ["--rpc.batch-request-limit", "3", "--rpc.batch-response-max-size", "1000"];
    let process = Process::start_with(dir.path(), &flags).await;
    let mut public = Client::connect(&process.public, None).await.expect("a connection");
    let call = |id: usize, method: &str| json!({ "jsonrpc": "2.0", "id": id, "method": method });
    let mut send = async |batch: Vec<Value>| -> Value {
        let answer = public.send(json!(batch).to_string()).await.expect("an answer");
        serde_json::from_slice(&answer).expect("JSON")
    };
    let all = send((1..4).map(|id| call(id, "eth_chainId")).collect()).await;
    assert!(all.as_array().expect("a list").iter().all(|one| one["result"].is_string()), "{all}");
    let refused = send((1..5).map(|id| call(id, "eth_chainId")).collect()).await;
    assert_eq!((&refused[0]["id"], &refused[0]["error"]["code"]), (&json!(1), &json!(-32600)));
    assert_eq!(refused[0]["error"]["message"], "batch too large", "{refused}");
    // A block has more than a kilobyte. The answer that is too long is still there.
    let mut batch: Vec<_> = (1..4).map(|id| call(id, "eth_chainId")).collect();
    batch[1] = json!({
        "jsonrpc": "2.0", "id": 2, "method": "eth_getBlockByNumber", "params": ["latest", true],
    });
    let answer = send(batch).await;
    assert!(answer[1]["result"].is_object(), "{answer}");
    let error = &answer[2]["error"];
    assert_eq!((&answer[2]["id"], &error["code"]), (&json!(3), &json!(-32003)), "{answer}");
    assert_eq!(error["message"], "response too large", "{answer}");
}

#[test]
fn the_defaults_are_those_of_geth() {
    let CallBounds { gas, time } = CallBounds::default();
    assert_eq!((gas, time), (50_000_000, Some(Duration::from_secs(5))));
    assert_eq!(BatchBounds::default().requests, 1_000);
}
