//! Calls to servers that misbehave.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use alloy_primitives::B256;
use alloy_rpc_types_engine::{
    ExecutionPayload, ExecutionPayloadSidecar, ExecutionPayloadV1, ExecutionPayloadV2,
    ExecutionPayloadV3, ForkchoiceState, PayloadStatusEnum,
};
use deponent_client::{EngineClient, Error, Wire};
use rpc::rest::{self, HeaderMap, HeaderValue, StatusCode};
use rpc::{ClientError, Code, Handler, Json, Limits, RawValue, ServerOptions, serve};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// A server of JSON-RPC, and of REST where `problem` says what is wrong there.
struct Server {
    problem: Option<&'static str>,
}

impl Handler for Server {
    fn call(&self, method: &str, _: Option<&RawValue>) -> Result<Json, rpc::Error> {
        match method {
            "engine_newPayloadV1" => Ok(br#"{"status":"SYNCING"}"#.to_vec().into()),
            "engine_newPayloadV2" => Err(rpc::Error::new(Code::Internal, "a fault")),
            // A server of before Amsterdam, and a payload of Prague.
            "engine_getPayloadV5" => Err(rpc::Error::new(Code::UnsupportedFork, "not of Osaka")),
            "engine_getPayloadV4" => Err(rpc::Error::new(Code::Internal, "a fault of V4")),
            "debug_executionWitnessByHash" => {
                Ok(br#"{"state":["0x01"],"codes":[],"headers":[],"keys":[]}"#.to_vec().into())
            }
            _ => Err(rpc::Error::method_not_found(method)),
        }
    }

    fn resources(&self) -> Option<&dyn rest::Resources> {
        self.problem.map(|_| self as &dyn rest::Resources)
    }
}

impl rest::Resources for Server {
    fn prefix(&self) -> &str {
        "/engine/"
    }

    fn answer(&self, _: rest::Request) -> rest::Response {
        let text = self.problem.expect("resources are there with it");
        let mut headers = HeaderMap::new();
        let problem = HeaderValue::from_static("application/problem+json");
        headers.insert(rest::header::CONTENT_TYPE, problem);
        let body = text.as_bytes().to_vec().into();
        rest::Response { status: StatusCode::BAD_REQUEST, headers, body, file: None }
    }
}

async fn start(server: Server) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("bound").to_string();
    let options = ServerOptions::new(None, Limits::engine());
    tokio::spawn(serve(listener, options, Arc::new(server), std::future::pending()));
    address
}

fn payload() -> (ExecutionPayload, ExecutionPayloadSidecar) {
    let payload = ExecutionPayloadV1 {
        parent_hash: B256::ZERO,
        fee_recipient: Default::default(),
        state_root: B256::ZERO,
        receipts_root: B256::ZERO,
        logs_bloom: Default::default(),
        prev_randao: B256::ZERO,
        block_number: 1,
        gas_limit: 1,
        gas_used: 0,
        timestamp: 1,
        extra_data: Default::default(),
        base_fee_per_gas: Default::default(),
        block_hash: B256::ZERO,
        transactions: Vec::new(),
    };
    (ExecutionPayload::V1(payload), ExecutionPayloadSidecar::none())
}

#[tokio::test]
async fn a_server_that_lacks_the_newest_method_is_asked_by_the_older_ones() {
    let address = start(Server { problem: None }).await;
    let mut client = EngineClient::connect(&address, None).await.expect("connects");
    let error = client.get_payload(Default::default()).await.expect_err("a fault");
    assert!(error.to_string().contains("a fault of V4"), "{error}");
}

#[tokio::test]
async fn a_server_without_rest_is_spoken_to_in_json() {
    let address = start(Server { problem: None }).await;
    let mut client = EngineClient::connect(&address, None).await.expect("connects");
    assert_eq!(client.wire(), Wire::Json);
    let (payload, sidecar) = payload();
    // A call may run in a task of its own.
    let call = tokio::spawn(async move {
        let status = client.new_payload(&payload, &sidecar).await.expect("a status");
        assert_eq!(status.status, PayloadStatusEnum::Syncing);
        client
    });
    let mut client = call.await.expect("no panic");
    // The name that geth has for it.
    let witness = client.witness(B256::ZERO).await.expect("a witness");
    assert_eq!(witness.state[0][..], [1]);
    let error = client.stateless_input(B256::ZERO, false).await.expect_err("not over JSON-RPC");
    assert!(matches!(error, Error::NotOverJson(_)), "{error}");
    let error = client.identity().await.expect_err("no such method");
    assert!(matches!(&error, Error::Rpc(error) if error.is(Code::MethodNotFound)), "{error}");
}

#[tokio::test]
async fn a_problem_is_not_an_error_of_json_rpc() {
    let kind = r#"{"type":"/engine-api/errors/internal","detail":"a fault"}"#;
    for (problem, expected) in
        [(kind, "internal (400): a fault"), (r#"{"type":"about:blank"}"#, "about:blank (400): ")]
    {
        let address = start(Server { problem: Some(problem) }).await;
        let mut client =
            EngineClient::connect_over(Wire::Ssz, &address, None).await.expect("connects");
        match client.witness(B256::ZERO).await {
            Err(Error::Problem(problem)) => assert_eq!(problem.to_string(), expected),
            other => panic!("{other:?}"),
        }
    }
    let address = start(Server { problem: Some("no JSON") }).await;
    let mut client = EngineClient::connect_over(Wire::Ssz, &address, None).await.expect("connects");
    let error = client.capabilities().await.expect_err("no problem document");
    assert!(matches!(error, Error::Decode(_)), "{error}");
}

#[tokio::test]
async fn an_incomplete_sidecar_is_not_sent() {
    let address = start(Server { problem: None }).await;
    for wire in [Wire::Json, Wire::Ssz] {
        let mut client = EngineClient::connect_over(wire, &address, None).await.expect("connects");
        let (payload, sidecar) = payload();
        let ExecutionPayload::V1(first) = payload else { unreachable!("it is the first") };
        let second = ExecutionPayloadV2 { payload_inner: first, withdrawals: Vec::new() };
        let third = ExecutionPayload::V3(ExecutionPayloadV3 {
            payload_inner: second,
            blob_gas_used: 0,
            excess_blob_gas: 0,
        });
        let error = client.new_payload(&third, &sidecar).await.expect_err("no root");
        assert!(matches!(&error, Error::Encode(reason) if reason.contains("beacon")), "{error}");
    }
}

/// A server that answers each request with `begun`, and hangs up; and how many there were.
async fn vanishing(begun: &'static [u8]) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("bound").to_string();
    let requests = Arc::new(AtomicUsize::new(0));
    let count = requests.clone();
    tokio::spawn(async move {
        loop {
            let (mut socket, _) = listener.accept().await.expect("a connection");
            let count = count.clone();
            tokio::spawn(async move {
                let mut read = [0; 4096];
                if socket.read(&mut read).await.is_ok_and(|bytes| bytes > 0) {
                    count.fetch_add(1, Ordering::Relaxed);
                    socket.write_all(begun).await.unwrap_or_default();
                }
            });
        }
    });
    (address, requests)
}

#[tokio::test]
async fn what_is_safe_to_repeat_is_repeated_twice() {
    let begun = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n0123";
    for begun in [&b""[..], begun] {
        for wire in [Wire::Json, Wire::Ssz] {
            let (address, requests) = vanishing(begun).await;
            let mut client =
                EngineClient::connect_over(wire, &address, None).await.expect("connects");
            let (payload, sidecar) = payload();
            let sent = |expected: usize, error: Error| {
                let broken = matches!(error, Error::Transport(ClientError::Broken { .. }));
                assert!(broken, "{wire:?}: {error:?}");
                assert_eq!(requests.swap(0, Ordering::Relaxed), expected, "{wire:?}");
            };
            sent(3, client.new_payload(&payload, &sidecar).await.expect_err("it hangs up"));
            sent(3, client.capabilities().await.expect_err("it hangs up"));
            sent(3, client.witness(B256::ZERO).await.expect_err("it hangs up"));
            let state = ForkchoiceState::default();
            sent(1, client.forkchoice_updated(state, None).await.expect_err("it hangs up"));
        }
    }
}

#[tokio::test]
async fn a_server_that_is_gone_is_a_fault_of_the_transport() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("bound").to_string();
    let mut client = EngineClient::connect_over(Wire::Ssz, &address, None).await.expect("queued");
    drop(listener);
    let error = client.capabilities().await.expect_err("no server listens");
    assert!(matches!(error, Error::Transport(_)), "{error}");
    let error = EngineClient::connect(&address, None).await.expect_err("no server listens");
    assert!(matches!(error, Error::Transport(ClientError::Connect { .. })), "{error}");
}
