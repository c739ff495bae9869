//! The client against our own server, and against servers without manners.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use crate::support::{PATIENCE, Server};
use deponent_rpc::rest::{HeaderMap, Method};
use deponent_rpc::{Client, ClientError, JwtSecret, Limits};
use serde_json::Value;

async fn client(server: &Server) -> Client {
    Client::connect(&server.address.to_string(), None).await.expect("connected")
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

/// zstd of 1 MiB of zeroes, in 60 bytes.
#[tokio::test]
async fn a_coding_that_was_not_asked_for_is_not_decoded() {
    let packed = zstd::encode_all(&vec![0; 1 << 20][..], 1).expect("packed");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound").to_string();
    std::thread::spawn(move || {
        for socket in listener.incoming().take(2) {
            let mut socket = socket.expect("a connection");
            assert!(socket.read(&mut [0; 4096]).expect("a request") > 0);
            let length = packed.len();
            let head = "HTTP/1.1 200 OK\r\ncontent-encoding: zstd\r\nconnection: close\r\n";
            let head = format!("{head}content-length: {length}\r\n\r\n");
            socket.write_all(&[head.as_bytes(), &packed].concat()).expect("written");
        }
    });
    let mut client = Client::connect(&address, None).await.expect("connected");
    let get = async |client: &mut Client| {
        client.request(Method::GET, "/x", HeaderMap::new(), Vec::new()).await
    };
    match get(&mut client).await {
        Err(ClientError::Malformed(fault)) => {
            assert_eq!(fault, "it came as \"zstd\", which was not asked for");
        }
        other => panic!("{other:?}"),
    }
    client.set_zstd(true);
    client.set_answer_bytes(1 << 19);
    match get(&mut client).await {
        Err(ClientError::TooLong { limit_bytes }) => assert_eq!(limit_bytes, 1 << 19),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn an_answer_has_the_bound_that_was_set() {
    let long = |length: usize| reply("", &"x".repeat(length));
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_owned()
        + &format!("64\r\n{}\r\n", "x".repeat(100)).repeat(11)
        + "0\r\n\r\n";
    // Of the third only the length comes.
    let announced = "HTTP/1.1 200 OK\r\ncontent-length: 4000000000\r\n\r\n".to_owned();
    for (reply, is_read) in
        [(long(1000), true), (long(1001), false), (announced, false), (chunked, false)]
    {
        let (address, _closed) = scripted(vec![reply]);
        let mut client = Client::connect(&address, None).await.expect("connected");
        client.set_answer_bytes(1000);
        match client.send("{}").await {
            Ok(body) if is_read => assert_eq!(body.len(), 1000),
            Err(ClientError::TooLong { limit_bytes: 1000 }) if !is_read => {}
            other => panic!("{other:?}"),
        }
    }
}

/// A megabyte of what grows most when it is escaped.
#[tokio::test]
async fn an_error_repeats_the_start_of_an_answer_alone() {
    let long = "\u{7f}".repeat(1 << 20);
    let texts = [
        format!("\"{long}\""),
        long.clone(),
        format!(r#"{{"{long}":1}}"#),
        format!(r#"{{"id":1,"result":"{long}"}}"#),
        format!(r#"{{"id":1,"result":["{long}"]}}"#),
        format!(r#"{{"id":"{long}","result":"1"}}"#),
        format!(r#"{{"id":1,"error":"{long}"}}"#),
        format!(r#"{{"id":1,"error":{{"code":"{long}","message":""}}}}"#),
        format!(r#"{{"id":1,"error":{{"code":1,"message":"{long}","data":"{long}"}}}}"#),
        format!(r#"{{"id":1,"error":{{"code":1,"message":"","data":{{"err":"{long}"}}}}}}"#),
    ];
    let replies = texts.iter().map(|text| reply("", text));
    let refusals = [
        format!("HTTP/1.1 500 X\r\ncontent-length: {}\r\n\r\n{long}", long.len()),
        reply(&format!("content-encoding: {}\r\n", "x".repeat(5000)), ""),
    ];
    for reply in replies.chain(refusals) {
        let (address, _closed) = scripted(vec![reply.clone()]);
        let mut client = Client::connect(&address, None).await.expect("connected");
        let fault = client.call::<u64>("x", ()).await.expect_err("no number").to_string();
        let repeated = fault.matches(['\u{7f}', 'x']).count() + fault.matches("7f").count();
        assert!(repeated <= 2 * 200 + 10, "{repeated} characters: {reply:.60}");
        assert!(fault.len() < 3000, "{} bytes: {reply:.60}", fault.len());
        assert!(!fault.contains(char::is_control), "{reply:.60}");
    }
}

#[tokio::test]
async fn an_answer_to_something_else_is_malformed() {
    let replies = [
        (result(7), "its id is 7"),
        (reply("content-encoding: gzip\r\n", "x"), "gzip"),
        (reply("", "<html>"), "not an object: <html>"),
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
async fn a_connection_is_kept_until_the_client_hangs_up() {
    let server = Server::public();
    let mut client = client(&server).await;
    client.call::<Value>("echo", ()).await.expect("a result");
    let reply = client.request(Method::GET, "/", HeaderMap::new(), "").await.expect("a reply");
    assert_eq!((reply.status.as_u16(), client.connections()), (200, 1));
    client.hang_up();
    client.call::<Value>("echo", ()).await.expect("a result");
    assert_eq!(client.connections(), 2);
}
