//! The client against our own server, and against servers without manners.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use crate::support::{PATIENCE, Server, pattern};
use deponent_rpc::rest::{HeaderMap, Method};
use deponent_rpc::{
    Client, ClientError, Code, ConnectOptions, JwtSecret, Limits, RawValue, response,
};
use serde_json::{Value, json};

async fn client(server: &Server) -> Client {
    Client::connect(&server.address.to_string(), None).await.expect("connected")
}

#[tokio::test]
async fn a_call_gives_its_result_or_a_typed_error() {
    let server = Server::public();
    let mut client = client(&server).await;
    let echoed: Value = client.call("echo", json!([1, {"a": "é"}])).await.expect("a result");
    assert_eq!(echoed, json!([1, {"a": "é"}]));
    match client.call::<Value>("nothing", ()).await {
        Err(ClientError::Rpc(error)) => {
            assert!(error.is(Code::MethodNotFound), "{error}");
            assert!(error.to_string().contains("\"nothing\""), "{error}");
        }
        other => panic!("{other:?}"),
    }
    match client.call::<u64>("echo", ["text"]).await {
        Err(ClientError::Malformed(reason)) => assert!(reason.contains("invalid type")),
        other => panic!("{other:?}"),
    }
    let echoed: [u64; 1] = client.call("echo", [5]).await.expect("the client goes on");
    assert_eq!(echoed, [5]);
}

#[tokio::test]
async fn a_secret_opens_the_engine_port() {
    let secret = JwtSecret::random();
    let server = Server::start(Some(secret.clone()), Limits::engine());
    let address = format!("http://{}/", server.address);
    let mut good = Client::connect(&address, Some(secret)).await.expect("connected");
    for i in 0..3 {
        assert_eq!(good.call::<[u64; 1]>("echo", [i]).await.expect("a result"), [i]);
    }
    for other in [None, Some(JwtSecret::random())] {
        let mut bad = Client::connect(&address, other).await.expect("connected");
        match bad.call::<Value>("echo", ()).await {
            Err(ClientError::Http { status: 401, text }) => {
                assert!(text.contains("token") || text.contains("signature"), "{text}");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn fifty_megabytes_come_back_as_they_are() {
    let server = Server::public();
    let mut client = client(&server).await;
    let body = client.call_raw("hex", [50_000_000]).await.expect("an answer");
    let result = response::result(&body).expect("a result");
    let bytes = response::bytes(result).expect("hex");
    assert!(bytes == pattern(50_000_000));
    // And there: 40 MB in one request.
    let limits = Limits { body_bytes: 50 << 20, ..Limits::public() };
    let server = Server::start(None, limits);
    let mut client = self::client(&server).await;
    let text = "ab".repeat(20 << 20);
    let [echoed]: [String; 1] = client.call("echo", [&text]).await.expect("a result");
    assert!(echoed == text);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_clients_are_served_at_once() {
    let server = Server::public();
    let tasks: Vec<_> = (0..64u64)
        .map(|task| {
            let address = server.address.to_string();
            tokio::spawn(async move {
                let mut client = Client::connect(&address, None).await.expect("connected");
                for i in 0..50 {
                    let echoed: [u64; 2] = client.call("echo", [task, i]).await.expect("a result");
                    assert_eq!(echoed, [task, i]);
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("no panic");
    }
}

#[tokio::test]
async fn a_connection_that_the_server_found_idle_is_opened_again() {
    let secret = JwtSecret::random();
    let limits = Limits { header_read: Duration::from_millis(150), ..Limits::engine() };
    let server = Server::start(Some(secret.clone()), limits.clone());
    let address = server.address.to_string();
    let mut client = Client::connect(&address, Some(secret)).await.expect("connected");
    client.call::<Value>("echo", ()).await.expect("a result");
    // The server closes idle connections after the same time as this one, which is opened when the
    // client's is about to be closed.
    tokio::time::sleep(limits.header_read).await;
    tokio::task::spawn_blocking({
        let idle = server.connect();
        move || idle.rest()
    })
    .await
    .expect("closed");
    settle().await;
    client.call::<Value>("echo", ()).await.expect("a result on a new connection");
}

/// Lets the client's connection see what has arrived already.
async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

/// A server that reads a request on each connection and gives one of the prepared replies.
fn scripted(replies: Vec<String>) -> (String, Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound").to_string();
    let (closed, wait_closed) = sync_channel(replies.len());
    std::thread::spawn(move || {
        for reply in replies {
            let (mut socket, _) = listener.accept().expect("a connection");
            socket.set_read_timeout(Some(PATIENCE)).expect("set");
            let mut request = Vec::new();
            while !request.ends_with(b"}") {
                let mut buffer = [0; 4096];
                let length = socket.read(&mut buffer).expect("a request");
                request.extend_from_slice(&buffer[..length]);
            }
            socket.write_all(reply.as_bytes()).unwrap_or_default();
            if reply.is_empty() {
                // No answer: until the client gives up.
                socket.read(&mut [0]).unwrap_or_default();
            }
            drop(socket);
            closed.send(()).unwrap_or_default();
        }
    });
    (address, wait_closed)
}

fn reply(headers: &str, body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\n{headers}content-length: {}\r\n\r\n{body}", body.len())
}

fn result(id: u64) -> String {
    reply("", &format!(r#"{{"jsonrpc":"2.0","id":{id},"result":"{id}"}}"#))
}

#[tokio::test]
async fn a_connection_closed_between_calls_is_opened_again() {
    let closing = result(1).replace("content-length", "connection: close\r\ncontent-length");
    let (address, closed) = scripted(vec![closing, result(2), result(3)]);
    let mut client = Client::connect(&address, None).await.expect("connected");
    assert_eq!(client.call::<String>("x", ()).await.expect("a result"), "1");
    assert_eq!(client.call::<String>("x", ()).await.expect("a result"), "2");
    // The second one says nothing of closing, and does it.
    for _ in 0..2 {
        closed.recv_timeout(PATIENCE).expect("closed");
    }
    settle().await;
    assert_eq!(client.call::<String>("x", ()).await.expect("a result"), "3");
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_an_error_and_the_next_call_works() {
    let broken = result(1).replace("}", "");
    let (address, _closed) = scripted(vec![broken, result(2)]);
    let mut client = Client::connect(&address, None).await.expect("connected");
    match client.call::<String>("x", ()).await {
        Err(fault @ ClientError::Broken { .. }) => {
            assert!(fault.to_string().contains(&address), "{fault}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(client.call::<String>("x", ()).await.expect("a result"), "2");
}

#[tokio::test]
async fn a_call_without_answer_times_out_and_takes_its_connection_along() {
    let (address, closed) = scripted(vec![String::new(), result(2)]);
    let mut client = Client::connect(&address, None).await.expect("connected");
    client.set_timeout(Duration::from_millis(50));
    match client.call::<String>("x", ()).await {
        Err(fault @ ClientError::Timeout { .. }) => {
            assert!(fault.to_string().contains("within 50ms"), "{fault}");
        }
        other => panic!("{other:?}"),
    }
    client.set_timeout(PATIENCE);
    assert_eq!(client.call::<String>("x", ()).await.expect("a result"), "2");
    closed.recv_timeout(PATIENCE).expect("the first connection was closed");
}

#[tokio::test]
async fn an_answer_to_something_else_is_malformed() {
    let replies = [
        (result(7), "its id is 7"),
        (reply("content-encoding: gzip\r\n", "x"), "gzip"),
        (reply("", "<html>"), "expected value"),
        (reply("", r#"{"jsonrpc":"2.0","id":1}"#), "neither result nor error"),
    ];
    for (reply, expected) in replies {
        let (address, _closed) = scripted(vec![reply]);
        let mut client = Client::connect(&address, None).await.expect("connected");
        match client.call::<String>("x", ()).await {
            Err(ClientError::Malformed(reason)) => {
                assert!(reason.contains(expected), "{reason}");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn nobody_there_is_an_error_with_the_address() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound").to_string();
    drop(listener);
    let error = Client::connect(&address, None).await.expect_err("nobody listens");
    assert!(matches!(error, ClientError::Connect { .. }), "{error}");
    assert!(error.to_string().contains(&address), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_of_an_answer_is_used_again_when_nobody_looks_at_it() {
    let server = Server::public();
    let mut client = Client::connect(&server.address.to_string(), None).await.expect("connected");
    let first = client.call_raw("hex", [2_000_000]).await.expect("an answer");
    let (place, part) = (first.as_ptr(), first.slice(100..200));
    let second = client.call_raw("hex", [2_000_000]).await.expect("an answer");
    assert_ne!(second.as_ptr(), place, "somebody still looks at the first");
    assert_eq!(part, second.slice(100..200));
    drop((first, second, part));
    let third = client.call_raw("hex", [1_000_000]).await.expect("an answer");
    let fourth = client.call_raw("hex", [10]).await.expect("an answer");
    assert!(third.len() > 2_000_000 && fourth.len() < 100);
    let place = third.as_ptr();
    drop((third, fourth));
    assert_eq!(client.call_raw("hex", [1000]).await.expect("an answer").as_ptr(), place);
}

#[tokio::test]
async fn a_batch_is_one_message() {
    let server = Server::public();
    let mut client = client(&server).await;
    let params: &RawValue = serde_json::from_str("[1]").expect("JSON");
    let (ids, answer) = client.batch_raw(&[("echo", params); 2]).await.expect("an answer");
    let answers: Vec<Value> = serde_json::from_slice(&answer).expect("a list");
    assert_eq!((ids, answers.len(), &answers[1]["result"]), (1..3, 2, &json!([1])));
    assert_eq!(answers[1]["id"], 2);
    assert_eq!(client.call::<[u32; 1]>("echo", [3]).await.expect("a result"), [3]);
}

#[tokio::test]
async fn calls_and_resources_go_over_http2_too() {
    let secret = JwtSecret::random();
    let server = Server::start(Some(secret.clone()), Limits::engine());
    let address = server.address.to_string();
    let options = ConnectOptions { secret: Some(secret), ..Default::default() };
    let mut http2 = Client::connect_http2(&address, options).await.expect("connected");
    for n in 0..3 {
        assert_eq!(http2.call::<[u32; 1]>("echo", [n]).await.expect("a result"), [n]);
    }
    let answer = http2.call_raw("hex", [3_000_000]).await.expect("an answer");
    let hex = response::result(&answer).expect("a result");
    assert!(response::bytes(hex).expect("hex") == pattern(3_000_000));
    let reply = http2.request(Method::GET, "/", HeaderMap::new(), "").await.expect("a reply");
    assert_eq!(reply.status, 200);
    assert_eq!(http2.connections(), 1);
    http2.hang_up();
    assert_eq!(http2.call::<[u32; 1]>("echo", [4]).await.expect("a result"), [4]);
    assert_eq!(http2.connections(), 2);
}
