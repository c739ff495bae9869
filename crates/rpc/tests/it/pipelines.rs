//! Many messages under way on one connection: each is answered once, as if it were alone.

use std::collections::BTreeMap;
use std::time::Duration;

use deponent_rpc::Limits;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::support::{PATIENCE, Server, call, pattern};

/// A message of random kind, and what it is answered.
fn message(random: &mut StdRng, id: usize) -> (String, Option<Value>) {
    let request = json!({"jsonrpc": "2.0", "id": id});
    let of = |method: &str, params: Value| {
        let mut request = request.clone();
        request["method"] = method.into();
        request["params"] = params;
        request
    };
    let is = |result: Value| Some(json!({"jsonrpc": "2.0", "id": id, "result": result}));
    match random.random_range(0..8) {
        // Quick ones, and those that have turns.
        0 | 1 => (of("echo", json!(["quick"])).to_string(), is(json!(["quick"]))),
        2 | 3 => (of("echo", json!(["slow", id])).to_string(), is(json!(["slow", id]))),
        // A long answer, of each kind of answers.
        4 => {
            let bytes = *[600, 20_000, 200_000].get(random.random_range(0..3)).expect("three");
            let hex = format!("0x{}", const_hex::encode(pattern(bytes)));
            (of("digits", json!([bytes])).to_string(), is(json!(hex)))
        }
        5 => {
            let params = json!(["x".repeat(random.random_range(900..4000))]);
            (of("echo", params.clone()).to_string(), is(params))
        }
        6 => {
            let batch = [of("echo", json!([id])), of("echo", json!(["quick"]))];
            let answers: Vec<_> = batch
                .iter()
                .map(|of| json!({"jsonrpc": "2.0", "id": id, "result": of["params"]}))
                .collect();
            (json!(batch).to_string(), Some(answers.into()))
        }
        _ => {
            let mut notification = of("echo", json!(["slow"]));
            notification.as_object_mut().expect("an object").remove("id");
            (notification.to_string(), None)
        }
    }
}

/// The id of an answer, or of the first one of a batch.
fn id(answer: &Value) -> usize {
    let first = answer.get(0).unwrap_or(answer);
    first["id"].as_u64().unwrap_or_else(|| panic!("no id: {answer}")) as usize
}

/// Messages, and how many answers they have.
type Part = (Vec<String>, usize);

/// Messages in parts, with the number of their answers: at most as many as both ends have buffers
/// for.
fn parts(random: &mut StdRng) -> (Vec<Part>, BTreeMap<usize, Value>) {
    let (mut parts, mut expected) = (Vec::new(), BTreeMap::new());
    for first in (0..400).step_by(40) {
        let (mut part, before) = (Vec::new(), expected.len());
        for id in first..first + 40 {
            let (message, answer) = message(random, id);
            part.push(message);
            expected.extend(answer.map(|answer| (id, answer)));
        }
        parts.push((part, expected.len() - before));
    }
    (parts, expected)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_over_a_websocket_are_answered_as_if_alone() {
    let server = Server::start_on(2, None, Limits::public());
    let mut random = StdRng::seed_from_u64(testing::seed());
    for _ in 0..5 {
        let (parts, mut expected) = parts(&mut random);
        let mut client = server.websocket();
        for (part, answers) in parts {
            for message in part {
                client.send(message).await;
            }
            for _ in 0..answers {
                let answer = client.json().await;
                assert_eq!(expected.remove(&id(&answer)), Some(answer));
            }
        }
        assert!(expected.is_empty(), "not answered: {:?}", expected.keys());
    }
}

#[test]
fn messages_over_a_bare_connection_are_answered_as_if_alone() {
    let server = Server::start(None, Limits::public());
    let mut random = StdRng::seed_from_u64(testing::seed());
    let (parts, mut expected) = parts(&mut random);
    let mut client = server.connect_unix();
    for (part, answers) in parts {
        client.send(part.join("\n"));
        for answer in client.lines(answers) {
            assert_eq!(expected.remove(&id(&answer)), Some(answer));
        }
    }
    assert!(expected.is_empty(), "not answered: {:?}", expected.keys());
}

/// One that takes its time holds up none behind it.
#[tokio::test]
async fn a_long_call_holds_up_no_short_one() {
    let server = Server::start(None, Limits { running_calls: 8, ..Limits::public() });
    let mut client = server.websocket();
    client.send(call("wait", "[]")).await;
    server.began.recv_timeout(PATIENCE).expect("it runs");
    for number in 0..100 {
        let answer = client.call("echo", &format!("[\"slow\",{number}]")).await;
        assert_eq!(answer["result"], json!(["slow", number]));
    }
    server.go.send(()).expect("it waits");
    assert_eq!(client.json().await["result"], json!(true));
}

/// Those of a client that is gone are not made.
#[tokio::test]
async fn calls_end_with_their_client() {
    let server = Server::start(None, Limits { running_calls: 2, ..Limits::public() });
    let mut gone = server.websocket();
    for _ in 0..50 {
        gone.send(call("wait", "[]")).await;
    }
    server.began.recv_timeout(PATIENCE).expect("one has the turn of its connection");
    drop(gone);
    server.go.send(()).expect("it waits");
    // The next one has the turn, at the latest once the server knows that the client is gone.
    let mut next = server.websocket();
    next.send(call("wait", "[]")).await;
    let (mut begun, pause) = (1, Duration::from_millis(50));
    let answer = loop {
        if server.began.recv_timeout(pause).is_ok() {
            begun += 1;
            server.go.send(()).expect("it waits");
        }
        if let Ok(answer) = timeout(pause, next.json()).await {
            break answer;
        }
        assert!(begun < 50, "all calls of the client that is gone were made");
    };
    assert_eq!(answer["result"], json!(true));
}
