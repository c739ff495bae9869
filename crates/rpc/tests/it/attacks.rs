//! Attacks of clients, in miniature: others are served, and the holder that does nothing is ended.

use std::time::Duration;

use crate::support::{PATIENCE, Server, call, frame, post, upgrade};
use deponent_rpc::{Client, JwtSecret, Limits};
use serde_json::json;

/// Announced lengths and unfinished bodies hold no memory that others need: each has sent one byte
/// of what would fill the whole share.
#[test]
fn announced_bodies_that_do_not_come_hold_no_memory() {
    let bytes = 1 << 20;
    let limits = Limits {
        bodies_bytes: bytes,
        small_bodies_bytes: bytes / 16,
        body_bytes: bytes,
        // None is ended for want of progress, and none waits for long.
        room_time: PATIENCE,
        turn_wait: Duration::from_secs(5),
        ..Limits::public()
    };
    let server = Server::start(None, limits);
    let request = post("", call("echo", &format!("[\"{}\"]", "x".repeat(200_000))));
    let head = request.len() - 200_000;
    let mut silent: Vec<_> = (0..100).map(|_| server.connect()).collect();
    for raw in &mut silent {
        raw.send(&request[..head]);
    }
    server.check_alive();
    server.post(call("echo", &format!("[\"{}\"]", "x".repeat(200_000)))).check(200, "xxx");
}

/// Idle connections without a token have all slots, and come again when they are ended.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_valid_token_finds_a_slot_among_idle_connections_without_one() {
    let secret = JwtSecret::random();
    let limits = Limits { connections: 8, ..Limits::engine() };
    let server = Server::start(Some(secret.clone()), limits);
    let mut idle: Vec<_> = (0..8).map(|_| server.connect()).collect();
    let address = server.address.to_string();
    let connected = tokio::time::timeout(PATIENCE, Client::connect(&address, Some(secret))).await;
    let mut client = connected.expect("in time").expect("connected");
    for round in 0..20_u64 {
        let called = client.call::<[u64; 1]>("echo", [round]).await;
        assert_eq!(called.expect("answered"), [round]);
        idle.extend((0..8).map(|_| server.connect()));
    }
    assert_eq!(client.connections(), 1, "it was never ended");
}

/// The one that has been idle for longest is ended for a newcomer.
#[test]
fn idle_connections_make_room_on_the_public_port() {
    let server = Server::start(None, Limits { connections: 4, ..Limits::public() });
    let idle: Vec<_> = (0..4).map(|_| server.connect()).collect();
    for _ in 0..20 {
        server.check_alive();
    }
    drop(idle);
}

/// One connection has no more than its share of the turns.
#[tokio::test]
async fn one_connection_leaves_turns_to_others() {
    let server = Server::start(None, Limits { running_calls: 8, ..Limits::public() });
    let mut greedy = server.websocket();
    for _ in 0..20 {
        greedy.send(call("wait", "[]")).await;
    }
    for _ in 0..2 {
        server.began.recv_timeout(PATIENCE).expect("two of them run");
    }
    // It needs a turn.
    server.check_alive();
    assert!(server.began.try_recv().is_err(), "a third runs");
    for _ in 0..20 {
        server.go.send(()).expect("they wait");
    }
}

/// The queue for turns is full, and quick calls go on; so do calls of those who have none there.
#[tokio::test]
async fn a_full_queue_is_in_the_way_of_who_filled_it_alone() {
    let limits = Limits { running_calls: 8, waiting_calls: 4, ..Limits::public() };
    let server = Server::start(None, limits);
    let mut greedy = server.websocket();
    for _ in 0..10 {
        greedy.send(call("wait", "[]")).await;
    }
    for _ in 0..4 {
        // Two run, four wait, the rest is refused.
        let refused = greedy.json().await;
        assert_eq!(refused["error"]["code"], -32000, "{refused}");
    }
    server.post(call("echo", "[\"quick\"]")).check(200, "quick");
    server.check_alive();
    for _ in 0..6 {
        server.go.send(()).expect("they wait");
    }
}

/// Messages of less than 64 KiB are counted too: with their share used up, the next one is not
/// read, and short ones are answered all the same.
#[tokio::test]
async fn messages_of_all_sizes_are_counted() {
    let limits = Limits {
        small_bodies_bytes: 256 << 10,
        running_calls: 8,
        turn_wait: Duration::from_millis(50),
        ..Limits::public()
    };
    let server = Server::start(None, limits);
    let mut greedy = server.websocket();
    let long = call("wait", &format!("[\"{}\"]", "x".repeat(50_000)));
    for _ in 0..2 {
        greedy.send(long.clone()).await;
    }
    // The second one is more than a quarter of the share.
    greedy.check_goodbye(1013, "busy").await;
    server.check_alive();
    server.go.send(()).expect("one waits");
}

/// So are long messages over a bare connection, on the Engine API's port, before they are complete:
/// the next one finds no memory.
#[test]
fn messages_over_bare_connections_are_counted() {
    let bytes = 1 << 20;
    let limits = Limits {
        bodies_bytes: bytes,
        body_bytes: bytes,
        room_time: PATIENCE,
        // Longer than the others have the memory for which the first one waits, too.
        turn_wait: Duration::from_secs(3),
        ..Limits::engine()
    };
    let server = Server::start(None, limits);
    let message = call("echo", &format!("[\"{}\"]", "x".repeat(700_000)));
    let (begun, rest) = message.split_at(600_000);
    let mut first = server.connect_unix();
    first.send(begun);
    // The first one may not have been read yet.
    let is_refused = (0..100).any(|_| {
        let mut second = server.connect_unix();
        second.try_send(&message);
        let answer = second.lines(1)[0].to_string();
        assert!(answer.contains("xxx") || answer.contains("busy"), "{answer:.300}");
        answer.contains("busy")
    });
    assert!(is_refused, "there is memory for both");
    // On a slow machine the first one may have waited too long as well.
    first.try_send(rest);
}

/// HTTP/2 connections take their windows of one share; the idle one is ended for the next.
#[test]
fn windows_of_http2_have_one_share() {
    let public = Limits::public();
    let limits = Limits { protocols_bytes: 5 << 20, room_time: Duration::ZERO, ..public };
    let server = Server::start(None, limits);
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    let mut raws: Vec<_> = (0..12).map(|_| server.connect()).collect();
    for raw in &mut raws {
        raw.send(preface);
        assert!(raw.more(), "it is greeted");
    }
    // Four have room at a time.
    raws.remove(0).rest();
    server.check_alive();
}

/// A batch ends where its answers have no more memory, and says so of each call that is left.
#[test]
fn a_batch_stops_where_its_answers_have_no_memory() {
    let server = Server::start(None, Limits { answers_bytes: 1 << 20, ..Limits::public() });
    let calls = vec![call("hex", "[150000]"); 20].join(",");
    let reply = server.post(format!("[{calls}]"));
    assert_eq!(reply.status, 200);
    assert!(reply.body.len() < 2 << 20, "{} bytes", reply.body.len());
    let answers: Vec<serde_json::Value> = serde_json::from_slice(&reply.body).expect("JSON");
    assert_eq!(answers.len(), 20);
    assert!(answers[0]["result"].is_string());
    let last = answers[19]["error"]["data"]["err"].to_string();
    assert!(last.contains("not called: busy"), "{last}");
}

/// The subscriptions of a port are bounded, whatever connections have them.
#[tokio::test]
async fn subscriptions_are_bounded_over_all_connections() {
    let server = Server::start(None, Limits { all_subscriptions: 10, ..Limits::public() });
    let mut first = server.websocket();
    for _ in 0..10 {
        first.subscribe().await;
    }
    let mut second = server.websocket();
    let refused = second.call("test_subscribeNews", "[]").await;
    let why = refused["error"]["data"]["err"].to_string();
    assert!(why.contains("all 10 subscriptions"), "{refused}");
    server.publish(json!(1));
    for _ in 0..10 {
        assert_eq!(first.json().await["params"]["result"], 1);
    }
}

/// Sessions have their own bound, and the idle one is ended.
#[test]
fn an_idle_session_makes_room_for_another() {
    let limits = Limits { sessions: 1, room_time: Duration::ZERO, ..Limits::public() };
    let server = Server::start(None, limits);
    let [mut first, mut second] = [(); 2].map(|()| server.connect());
    for raw in [&mut first, &mut second] {
        raw.send([upgrade("").as_bytes(), &frame(0x81, call("echo", "[1]"))].concat());
        raw.until("[1]}");
    }
    first.rest();
}

/// Connections that begin a request, or ask for little all the time, keep no newcomer out: as many
/// as there is memory for, and several times as many that come again when they are ended.
#[test]
fn a_newcomer_waits_for_no_connection_that_is_not_busy() {
    for secret in [None, Some(JwtSecret::random())] {
        let is_public = secret.is_none();
        let limits = if is_public { Limits::public() } else { Limits::engine() };
        // None is due to be ended while the test runs.
        let limits = Limits { protocols_bytes: 4 << 20, room_time: PATIENCE, ..limits };
        let server = Server::start(secret, Limits { http2_window_bytes: 1 << 16, ..limits });
        let begun = if is_public { post("", call("echo", "[1]")) } else { b"POST / HT".to_vec() };
        let mut holders: Vec<_> = (0..150).map(|_| server.connect()).collect();
        for raw in &mut holders {
            raw.send(&begun);
            if is_public {
                raw.until("[1]}");
            }
        }
        let mut newcomer = server.connect();
        newcomer.send(post("", call("echo", "[1]")));
        newcomer.until(if is_public { "[1]}" } else { "401" });
    }
}

/// A call that waits for its turn keeps no newcomer out either: calls of a few others, all turns
/// taken, are as many as there is memory for connections.
#[test]
fn a_newcomer_waits_for_no_call_that_has_no_turn() {
    let limits = Limits {
        protocols_bytes: 4 << 20,
        running_calls: 1,
        turn_wait: PATIENCE,
        room_time: PATIENCE,
        http2_window_bytes: 1 << 16,
        ..Limits::public()
    };
    let server = Server::start(None, limits);
    let mut running = server.connect();
    running.post(call("wait", "[]"));
    server.began.recv_timeout(PATIENCE).expect("it runs");
    let mut holders: Vec<_> = (0..150).map(|_| server.connect()).collect();
    for raw in &mut holders {
        raw.post(call("echo", "[1]"));
    }
    let mut newcomer = server.connect();
    newcomer.post(call("echo", r#"["quick"]"#));
    newcomer.reply().check(200, "quick");
    server.go.send(()).expect("it waits");
    running.reply().check(200, "true");
}

/// A port serves all protocols with as little memory as the program lets it have.
#[tokio::test]
async fn a_port_works_with_little_memory() {
    for limits in [Limits::public(), Limits::engine()] {
        let server = Server::start(None, limits.with_memory(64 << 20));
        server.check_alive();
        let mut ws = server.websocket();
        assert_eq!(ws.call("echo", "[1]").await["result"], json!([1]));
        let mut raw = server.connect();
        raw.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0");
        assert!(raw.more(), "it is greeted");
    }
}

/// A client that reads nothing of its answer does not hold up a stop.
#[test]
fn an_answer_that_is_not_read_does_not_delay_the_stop() {
    let mut server = Server::public();
    let mut raw = server.connect();
    raw.post(call("hex", "[8000000]"));
    assert!(raw.more(), "the answer begins");
    drop(server.stop.take());
    let stopped = server.ended.recv_timeout(Limits::public().write_idle / 2);
    stopped.expect("before the client is ended for reading nothing");
}
