//! The server at its WebSocket: what it answers, what it refuses, what it survives.

use std::time::Duration;

use crate::support::{PATIENCE, Server, call, frame, pattern, upgrade};
use deponent_rpc::{JwtSecret, Limits};
use serde_json::json;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{CloseCode, Data, OpCode};

const BRIEF: Duration = Duration::from_millis(50);

#[tokio::test]
async fn messages_are_answered_as_over_http() {
    let server = Server::public();
    let mut ws = server.websocket();
    ws.send(call("echo", "[1]")).await;
    let expected = r#"{"jsonrpc":"2.0","id":1,"result":[1]}"#;
    assert_eq!(ws.next().await, Message::text(expected));
    ws.send(Message::binary(call("echo", "[1]"))).await;
    assert_eq!(ws.next().await, Message::text(expected));
    ws.send(format!("[{},{}]", call("echo", "[1]"), call("nothing", "[]"))).await;
    let answer = ws.json().await;
    assert_eq!((&answer[0]["result"], &answer[1]["error"]["code"]), (&json!([1]), &json!(-32601)));
    for (message, code) in [
        ("{", -32700),
        ("", -32700),
        ("[]", -32600),
        (&call("echo", "7"), -32602),
        (&call("nothing", "[]"), -32601),
        (&call("panic", "[]"), -32603),
    ] {
        ws.send(message).await;
        assert_eq!(ws.json().await["error"]["code"], code, "{message}");
    }
    // Nothing to say to a notification: the next answer is another's.
    ws.send(r#"{"jsonrpc":"2.0","method":"echo"}"#).await;
    assert_eq!(ws.call("echo", "[2]").await["result"], json!([2]));
}

#[tokio::test]
async fn a_quick_call_overtakes_a_slow_one() {
    let server = Server::public();
    let mut ws = server.websocket();
    ws.send(call("wait", "[]")).await;
    server.began.recv_timeout(PATIENCE).expect("it runs");
    for i in 0..100 {
        assert_eq!(ws.call("echo", &format!("[{i}]")).await["result"], json!([i]));
    }
    server.go.send(()).expect("it waits");
    assert_eq!(ws.json().await["result"], true);
}

#[tokio::test]
async fn calls_that_are_made_in_order_are_made_in_the_order_in_which_they_come() {
    let server = Server::public();
    let mut ws = server.websocket();
    for n in 0..200 {
        // By itself and in a batch, with others between.
        let padding = " ".repeat(n % 5 * 1000);
        let turn = call("turn", &format!("[{padding}{n}]"));
        ws.send(if n % 3 == 0 { format!("[{turn}]") } else { turn }).await;
        ws.send(call("echo", "[\"quick\"]")).await;
    }
    for _ in 0..400 {
        ws.json().await;
    }
    assert_eq!(*server.turns.lock().expect("no panic"), (0..200).collect::<Vec<u64>>());
    // A message that is lost keeps no other waiting.
    ws.send(call("turn", "[\"not a number\"]")).await;
    assert_eq!(ws.json().await["error"]["code"], -32602);
    assert_eq!(ws.call("turn", "[200]").await["result"], true);
}

#[tokio::test]
async fn with_all_places_taken_the_next_message_has_to_wait() {
    let server = Server::start(None, Limits { messages: 1, ..Limits::public() });
    let mut ws = server.websocket();
    ws.send(call("wait", "[]")).await;
    for i in 0..50 {
        ws.send(call("echo", &format!("[{i}]"))).await;
    }
    server.began.recv_timeout(PATIENCE).expect("it runs");
    server.go.send(()).expect("it waits");
    assert_eq!(ws.json().await["result"], true);
    for i in 0..50 {
        assert_eq!(ws.json().await["result"], json!([i]));
    }
}

#[tokio::test]
async fn messages_under_way_hold_no_more_bytes_than_one_may_have() {
    let server = Server::start(None, Limits { body_bytes: 10_000, ..Limits::public() });
    let mut ws = server.websocket();
    let long = |method: &str| call(method, &format!("[{:?}]", "x".repeat(6000)));
    ws.send(long("wait")).await;
    ws.send(long("wait")).await;
    server.began.recv_timeout(PATIENCE).expect("it runs");
    server.check_alive();
    assert!(server.began.try_recv().is_err(), "two long messages are under way");
    for _ in 0..2 {
        server.go.send(()).expect("it waits");
        assert_eq!(ws.json().await["result"], true);
    }
}

#[tokio::test]
async fn a_call_too_many_is_told_that_the_server_is_busy() {
    let limits = Limits { running_calls: 1, turn_wait: BRIEF, ..Limits::public() };
    let server = Server::start(None, limits);
    let mut ws = server.websocket();
    ws.send(call("wait", "[]")).await;
    server.began.recv_timeout(PATIENCE).expect("it runs");
    let batch = r#"[{"jsonrpc":"2.0","id":7,"method":"echo"},{"jsonrpc":"2.0","method":"echo"}]"#;
    ws.send(batch).await;
    let answer = ws.json().await;
    assert_eq!(answer.as_array().map(Vec::len), Some(1), "{answer}");
    assert_eq!((&answer[0]["id"], &answer[0]["error"]["code"]), (&json!(7), &json!(-32000)));
    assert!(answer[0]["error"]["data"]["err"].to_string().contains("busy"), "{answer}");
    server.go.send(()).expect("it waits");
    assert_eq!(ws.json().await["result"], true);
}

#[tokio::test]
async fn a_long_answer_and_a_long_message_come_as_they_are() {
    let server = Server::start(None, Limits { body_bytes: 50 << 20, ..Limits::public() });
    let mut ws = server.websocket();
    let answer = ws.call("hex", "[20000000]").await;
    let expected = format!("0x{}", const_hex::encode(pattern(20_000_000)));
    assert!(answer["result"] == expected);
    let text = "ab".repeat(10 << 20);
    let answer = ws.call("echo", &format!("[{text:?}]")).await;
    assert!(answer["result"][0] == text);
}

#[test]
fn a_handshake_is_that_of_the_rfc() {
    let server = Server::public();
    let mut raw = server.connect();
    // Bytes that come with the handshake are not lost.
    raw.send([upgrade("").as_bytes(), &frame(0x81, call("echo", "[1]"))].concat());
    let reply = raw.reply();
    assert_eq!(reply.status, 101);
    for header in [
        "upgrade: websocket\r\n",
        "connection: upgrade\r\n",
        // As in RFC 6455 section 1.3, in small letters.
        "sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo=\r\n",
    ] {
        assert!(reply.head.contains(header), "{}", reply.head);
    }
    assert!(!reply.head.contains("sec-websocket-extensions"), "{}", reply.head);
    raw.until(r#""result":[1]"#);
}

#[test]
fn a_handshake_of_another_kind_is_refused() {
    let server = Server::public();
    let check = |change: (&str, &str), status: u16, part: &str| {
        let request = upgrade("");
        assert!(request.contains(change.0), "{change:?}");
        let mut raw = server.connect();
        raw.send(request.replace(change.0, change.1));
        let reply = raw.reply();
        reply.check(status, part);
        reply
    };
    check(("upgrade: websocket", "upgrade: h2c, WebSocket"), 101, "");
    check(("connection: upgrade", "connection: keep-alive, Upgrade"), 101, "");
    check(("host: x\r\n", "host: x\r\norigin: http://elsewhere\r\n"), 403, "origin");
    let reply = check(("version: 13", "version: 8"), 426, "not 13");
    assert!(reply.head.contains("sec-websocket-version: 13\r\n"), "{}", reply.head);
    check(("key: dGhl", "key: "), 400, "16 bytes in base64");
    check(("sec-websocket-key", "x"), 400, "16 bytes in base64");
    check(("connection: upgrade", "x: y"), 400, "connection: upgrade");
    check(("HTTP/1.1", "HTTP/1.0"), 400, "HTTP/1.1");
    check(("GET /", "GET /eth"), 404, "path /");
    check(("upgrade: websocket", "upgrade: h2c"), 405, "POST");
    check(("GET", "PUT"), 405, "POST");
    server.check_alive();
}

#[test]
fn a_websocket_needs_a_token_when_it_is_opened() {
    let secret = JwtSecret::random();
    let server = Server::start(Some(secret.clone()), Limits::engine());
    let check = |headers: &str, status: u16, part: &str| {
        let mut raw = server.connect();
        raw.send(upgrade(headers));
        raw.reply().check(status, part);
    };
    let bearer = |secret: &JwtSecret| format!("authorization: Bearer {}\r\n", secret.token());
    check("", 401, "missing token");
    check(&bearer(&JwtSecret::random()), 401, "wrong signature");
    check("authorization: Bearer x\r\n", 401, "malformed token");
    check(&bearer(&secret), 101, "");
}

#[tokio::test]
async fn fragments_are_one_message_and_pings_may_come_between() {
    let server = Server::public();
    let mut ws = server.websocket();
    let text = call("echo", r#"["é"]"#);
    let count = text.len();
    for (place, byte) in text.into_bytes().into_iter().enumerate() {
        let kind = if place == 0 { Data::Text } else { Data::Continue };
        let frame = Frame::message(vec![byte], OpCode::Data(kind), place + 1 == count);
        ws.send(Message::Frame(frame)).await;
        if place % 10 == 5 {
            ws.send(Message::Ping(vec![byte].into())).await;
            assert_eq!(ws.next().await, Message::Pong(vec![byte].into()));
        }
    }
    assert_eq!(ws.json().await["result"], json!(["é"]));
}

#[tokio::test]
async fn a_message_over_the_limit_ends_the_connection() {
    let limits = Limits { body_bytes: 1000, ..Limits::public() };
    let server = Server::start(None, limits);
    let mut ws = server.websocket();
    assert_eq!(ws.call("echo", "[1]").await["result"], json!([1]));
    ws.send(" ".repeat(1000)).await;
    assert_eq!(ws.json().await["error"]["code"], -32700);
    ws.send(" ".repeat(1001)).await;
    ws.check_goodbye(1009, "at most 1000 bytes").await;
    let mut ws = server.websocket();
    let fragment = |kind| Frame::message(vec![b' '; 600], OpCode::Data(kind), false);
    ws.send(Message::Frame(fragment(Data::Text))).await;
    ws.send(Message::Frame(fragment(Data::Continue))).await;
    ws.check_goodbye(1009, "at most 1000 bytes").await;
    // And where all of it is sent nevertheless, the reason can still be read.
    let mut ws = server.websocket();
    ws.send("x".repeat(10 << 20)).await;
    ws.check_goodbye(1009, "at most 1000 bytes").await;
    // A length alone is believed, without waiting for the bytes.
    let mut raw = server.connect();
    let head = [&[0x81, 0xff], &1001u64.to_be_bytes()[..], &[0; 4]].concat();
    raw.send([upgrade("").as_bytes(), &head].concat());
    assert_eq!(raw.reply().status, 101);
    raw.finish();
    assert_eq!(raw.rest()[2..4], 1009u16.to_be_bytes());
    server.check_alive();
}

#[test]
fn what_is_no_websocket_ends_the_connection_with_its_code() {
    let server = Server::public();
    let check = |bytes: &[u8], code: u16, part: &str| {
        let mut raw = server.connect();
        raw.send([upgrade("").as_bytes(), bytes].concat());
        assert_eq!(raw.reply().status, 101);
        raw.finish();
        let rest = raw.rest();
        assert_eq!(rest[0], 0x88, "{rest:?}");
        assert_eq!(rest[2..4], code.to_be_bytes(), "{bytes:?}: {rest:?}");
        let reason = String::from_utf8_lossy(&rest[4..]).to_ascii_lowercase();
        assert!(reason.contains(part), "{reason:?} lacks {part:?}");
    };
    check(&frame(0x81, b"\xff"), 1007, "utf-8");
    check(&frame(0x82, b"\xff"), 1007, "utf-8");
    check(&[frame(0x01, b"\xc3"), frame(0x80, b"x")].concat(), 1007, "utf-8");
    check(&[0x81, 0x02, b'{', b'}'], 1002, "unmasked");
    check(&frame(0xc1, "{}"), 1002, "reserved");
    check(&frame(0x83, "{}"), 1002, "opcode");
    check(&frame(0x80, "{}"), 1002, "continue");
    check(&[frame(0x01, "{"), frame(0x81, "}")].concat(), 1002, "fragment");
    check(&frame(0x09, ""), 1002, "fragmented control");
    check(&frame(0x89, "x".repeat(126)), 1002, "control frame too big");
    check(&frame(0x88, [0x03]), 1002, "close");
    server.check_alive();
}

#[tokio::test]
async fn a_goodbye_is_answered_and_a_call_under_way_runs_on() {
    let server = Server::start(None, Limits { running_calls: 1, ..Limits::public() });
    let mut ws = server.websocket();
    ws.send(call("wait", "[]")).await;
    server.began.recv_timeout(PATIENCE).expect("it runs");
    let why = CloseFrame { code: CloseCode::Away, reason: "lunch".into() };
    ws.send(Message::Close(Some(why))).await;
    assert_eq!(ws.goodbye().await, (1001, "lunch".into()));
    server.go.send(()).expect("it waits still");
    server.check_alive();
}

#[test]
fn a_connection_cut_without_goodbye_gives_its_place_back() {
    let server = Server::start(None, Limits { connections: 1, ..Limits::public() });
    for _ in 0..3 {
        let mut raw = server.connect();
        raw.send([upgrade("").as_bytes(), &frame(0x81, "half")[..3]].concat());
        assert_eq!(raw.reply().status, 101);
        drop(raw);
        server.check_alive();
    }
}

#[tokio::test]
async fn a_silent_client_is_pinged_and_then_cut_off() {
    // This one answers while it reads, for which it has a second.
    let server = Server::start(None, Limits { silence: 20 * BRIEF, ..Limits::public() });
    let mut ws = server.websocket();
    for _ in 0..2 {
        assert_eq!(ws.next().await, Message::Ping(Vec::new().into()));
    }
    assert_eq!(ws.call("echo", "[1]").await["result"], json!([1]));
    // This one does not.
    let server = Server::start(None, Limits { silence: BRIEF, ..Limits::public() });
    let mut raw = server.connect();
    raw.send(upgrade(""));
    assert_eq!(raw.reply().status, 101);
    let rest = raw.rest();
    assert_eq!(rest[..4], [0x89, 0, 0x88, rest[3]], "{rest:?}");
    assert_eq!(rest[4..6], 1011u16.to_be_bytes());
    assert!(String::from_utf8_lossy(&rest).contains("no answer to a ping"), "{rest:?}");
}

#[tokio::test]
async fn a_client_that_waits_for_an_answer_may_be_silent() {
    let server = Server::start(None, Limits { silence: BRIEF, ..Limits::public() });
    let mut raw = server.connect();
    raw.send([upgrade("").as_bytes(), &frame(0x81, call("wait", "[]"))].concat());
    assert_eq!(raw.reply().status, 101);
    server.began.recv_timeout(PATIENCE).expect("it runs");
    // As long as it takes to cut another one off.
    let mut silent = server.connect();
    silent.send(upgrade(""));
    assert_eq!(silent.reply().status, 101);
    silent.rest();
    server.go.send(()).expect("it waits");
    raw.until(r#""result":true"#);
}

/// Small answers, each of which it takes soon enough, do not keep the room of a large one.
#[test]
fn who_reads_small_answers_slowly_is_cut_off_too() {
    let limits =
        Limits { room_time: 4 * BRIEF, answers_bytes: 1 << 20, messages: 1024, ..Limits::public() };
    let server = Server::start(None, limits);
    let mut slow = open(&server);
    // More than the system takes at once.
    for _ in 0..400 {
        slow.send(frame(0x81, call("hex", "[25000]")));
    }
    slow.send(frame(0x81, call("hex", "[20000000]")));
    let reads = std::thread::spawn(move || {
        while slow.more() {
            std::thread::sleep(2 * BRIEF);
        }
    });
    std::thread::sleep(10 * BRIEF);
    let mut other = server.connect();
    other.post(call("hex", "[100000]"));
    other.reply().check(200, "0x");
    reads.join().expect("its connection ended");
}

fn open(server: &Server) -> crate::support::Raw {
    let mut raw = server.connect();
    raw.send(upgrade(""));
    assert_eq!(raw.reply().status, 101);
    raw
}

#[test]
fn long_messages_share_their_room() {
    let bytes = 1 << 20;
    let limits = Limits { bodies_bytes: bytes, body_bytes: bytes, ..Limits::public() };
    let long = frame(0x81, call("echo", &format!("[\"{}\"]", "x".repeat(bytes - 100))));
    // A client that sends no more of a message is evicted for another.
    let server = Server::start(None, Limits { room_time: 20 * BRIEF, ..limits.clone() });
    let mut slow = open(&server);
    slow.send(&long[..long.len() - 10]);
    std::thread::sleep(8 * BRIEF);
    for _ in 0..3 {
        let mut other = open(&server);
        other.send(&long);
        other.until("x\"]");
    }
    slow.until("too slowly");
    // As long as that may take, the other one is told to try again.
    let server = Server::start(None, Limits { room_time: PATIENCE, turn_wait: BRIEF, ..limits });
    let mut slow = open(&server);
    slow.send(&long[..long.len() - 10]);
    std::thread::sleep(8 * BRIEF);
    let mut other = open(&server);
    other.send(&long);
    other.until("busy");
    // Short ones need none of it, whatever comes between them.
    let mut short = open(&server);
    for _ in 0..200 {
        for _ in 0..10 {
            short.send(frame(0x89, [7; 100]));
        }
    }
    short.send(frame(0x81, call("echo", "[1]")));
    short.until("[1]}");
    slow.send(&long[long.len() - 10..]);
    slow.until("x\"]");
}

/// They are answered, and only their answers wait.
#[test]
fn messages_that_are_answered_take_no_room() {
    let bytes = 1 << 20;
    let limits =
        Limits { bodies_bytes: bytes, body_bytes: bytes, turn_wait: BRIEF, ..Limits::public() };
    let server = Server::start(None, limits);
    let mut stalled = open(&server);
    stalled.send(frame(0x81, call("hex", "[50000000]")));
    stalled.until("0x");
    let long = call("none", &format!("[\"{}\"]", "x".repeat(bytes - 100)));
    stalled.send(frame(0x81, &long));
    std::thread::sleep(8 * BRIEF);
    let mut other = open(&server);
    other.send(frame(0x81, &long));
    other.until("-32601");
}

/// Of many answers on one connection all but one wait, which is not their client's fault.
#[tokio::test]
async fn who_reads_goes_on_however_much_waits_for_it() {
    let limits = Limits { room_time: 8 * BRIEF, answers_bytes: 1 << 20, ..Limits::public() };
    let server = Server::start(None, limits);
    let mut ws = server.websocket();
    // One is being read, and eight may wait.
    for _ in 0..9 {
        ws.send(call("hex", "[1000000]")).await;
    }
    for _ in 0..9 {
        tokio::time::sleep(BRIEF * 3 / 2).await;
        let answer = ws.json().await;
        assert_eq!(answer["result"].as_str().map(str::len), Some(2_000_002));
    }
}

#[tokio::test]
async fn a_batch_without_memory_for_one_of_its_answers_has_the_others() {
    let limits = Limits { answers_bytes: 1 << 20, turn_wait: BRIEF, ..Limits::public() };
    let server = Server::start(None, limits);
    let mut stalled = server.connect();
    stalled.post(call("hex", "[20000000]"));
    assert!(stalled.more());
    let mut ws = server.websocket();
    let (subscribe, large) = (call("test_subscribe", "[\"news\"]"), call("hex", "[100000]"));
    ws.send(format!("[{subscribe},{large}]")).await;
    let answer = ws.json().await;
    assert!(answer[0]["result"].is_string(), "{answer}");
    let why = answer[1]["error"]["data"]["err"].to_string();
    assert!(why.contains("called, and its answer is lost: busy"), "{answer}");
    server.publish(json!(1));
    assert_eq!(ws.json().await["params"]["result"], 1);
}

#[test]
fn pings_of_a_client_that_does_not_read_are_answered_with_bounds() {
    let server = Server::public();
    let mut raw = server.connect();
    raw.send(upgrade(""));
    assert_eq!(raw.reply().status, 101);
    let pings = frame(0x89, "x".repeat(125)).repeat(1000);
    // All of it is read: pings are answered as far as the answers are read.
    for _ in 0..400 {
        raw.send(&pings);
    }
    raw.send(frame(0x88, 1000u16.to_be_bytes()));
    let rest = raw.rest();
    assert_eq!(rest[..2], [0x8a, 125]);
    assert!(rest.len() < 127 * 400_000, "no pong was left out");
    server.check_alive();
}

#[tokio::test]
async fn a_websocket_takes_a_place_among_the_connections() {
    let server = Server::start(None, Limits { connections: 1, ..Limits::public() });
    let mut ws = server.websocket();
    ws.send(call("wait", "[]")).await;
    server.began.recv_timeout(PATIENCE).expect("it runs");
    let mut second = server.connect();
    second.post(call("echo", "[\"quick\"]"));
    server.go.send(()).expect("it waits");
    assert_eq!(ws.json().await["result"], true);
    second.reply().check(200, "quick");
}

#[tokio::test]
async fn a_stop_answers_what_was_asked_and_says_goodbye() {
    let mut server = Server::public();
    let mut idle = server.websocket();
    let mut busy = server.websocket();
    busy.send(call("wait", "[]")).await;
    server.began.recv_timeout(PATIENCE).expect("it runs");
    drop(server.stop.take());
    idle.check_goodbye(1001, "stopping").await;
    assert!(server.ended.try_recv().is_err());
    server.go.send(()).expect("it waits");
    assert_eq!(busy.json().await["result"], true);
    busy.check_goodbye(1001, "stopping").await;
    server.ended.recv_timeout(PATIENCE).expect("serve returned");
}
