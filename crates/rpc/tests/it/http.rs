//! The server at its socket: what it answers, what it refuses, what it survives.

use std::time::{Duration, Instant};

use crate::support::{PATIENCE, Server, call, post, upgrade};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use deponent_rpc::{JwtSecret, Limits};
use hmac::Mac;
use proptest::prelude::*;
use serde_json::Value;

const BRIEF: Duration = Duration::from_millis(50);

#[test]
fn a_call_is_answered_with_json_of_known_length() {
    let server = Server::public();
    let reply = server.post(call("echo", "[1]"));
    reply.check(200, r#"{"jsonrpc":"2.0","id":1,"result":[1]}"#);
    assert!(reply.head.contains("content-type: application/json\r\n"), "{}", reply.head);
    assert!(reply.head.contains("content-length: 37\r\n"), "{}", reply.head);
    assert!(!reply.head.contains("access-control"), "{}", reply.head);
    // A probe is answered, and other requests have to be POST.
    let mut raw = server.connect();
    raw.send("HEAD / HTTP/1.1\r\nhost: x\r\n\r\n");
    raw.reply().check(200, "");
    for (path, status) in [("/", 200), ("/?x=1", 200), ("/eth", 404)] {
        let mut raw = server.connect();
        raw.send(format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n"));
        raw.reply().check(status, "");
    }
}

#[test]
fn batches_notifications_and_errors_are_answered_as_the_message_deserves() {
    let server = Server::public();
    let batch = format!("[{},{}]", call("echo", "[1]"), call("nothing", "[]"));
    let reply = server.post(batch);
    reply.check(200, r#"[{"jsonrpc":"2.0","id":1,"result":[1]},{"jsonrpc":"2.0","id":1,"error":{"#);
    let reply = server.post(r#"{"jsonrpc":"2.0","method":"echo"}"#);
    assert_eq!((reply.status, reply.text()), (204, ""));
    server.post("{").check(200, "-32700");
    server.post("").check(200, "the message is empty");
    server.post(call("echo", "7")).check(200, "-32602");
    server.post(call("nothing", "[]")).check(200, "-32601");
    server.post(call("hex", r#"{"length":1}"#)).check(200, "-32602");
}

#[test]
fn a_panic_in_a_method_is_answered_and_survived() {
    let server = Server::public();
    let mut raw = server.connect();
    raw.post(call("panic", "[]"));
    raw.reply().check(200, "-32603");
    raw.post(call("echo", "[]"));
    raw.reply().check(200, "result");
}

#[test]
fn a_quick_call_is_answered_as_any_other_and_its_panic_survived() {
    let server = Server::public();
    let mut raw = server.connect();
    raw.post(call("panic", r#"["quick"]"#));
    raw.reply().check(200, "-32603");
    raw.post(call("echo", r#"["quick"]"#));
    raw.reply().check(200, r#"{"jsonrpc":"2.0","id":1,"result":["quick"]}"#);
    raw.post(call("nothing", r#"["quick"]"#));
    raw.reply().check(200, "-32601");
    raw.post(r#"{"jsonrpc":"2.0","method":"echo","params":["quick"]}"#);
    assert_eq!(raw.reply().status, 204);
    server.check_alive();
}

#[test]
fn nesting_without_end_is_a_parse_error() {
    let limits = Limits { body_bytes: 32 << 20, ..Limits::public() };
    let server = Server::start(None, limits);
    server.post("[".repeat(20 << 20)).check(200, "-32700");
    server.check_alive();
}

#[test]
fn a_body_over_the_limit_is_refused_before_it_is_sent() {
    let limits = Limits { body_bytes: 1000, ..Limits::public() };
    let server = Server::start(None, limits);
    let head = "POST / HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n";
    let mut raw = server.connect();
    raw.send(format!("{head}content-length: 1001\r\n\r\n"));
    raw.reply().check(413, "at most 1000 bytes");
    // And where it is sent nevertheless, the refusal can still be read.
    server.post("x".repeat(10 << 20)).check(413, "at most 1000 bytes");
    let mut raw = server.connect();
    raw.send(format!("{head}transfer-encoding: chunked\r\n\r\n3e8\r\n{}\r\n", "x".repeat(1000)));
    raw.send("1\r\nx\r\n0\r\n\r\n");
    raw.reply().check(413, "at most 1000 bytes");
    server.post(" ".repeat(1000)).check(200, "the message is empty");
}

#[test]
fn only_a_json_body_posted_to_the_root_is_taken() {
    let server = Server::public();
    let check = |line: &str, kind: &str, status: u16, part: &str| {
        let mut raw = server.connect();
        let body = call("echo", "[]");
        let length = body.len();
        raw.send(format!("{line} HTTP/1.1\r\nhost: x\r\n{kind}content-length: {length}\r\n\r\n"));
        raw.send(body);
        let reply = raw.reply();
        reply.check(status, part);
        reply
    };
    let json = "content-type: application/json\r\n";
    check("POST /?x=1", json, 200, "result");
    check("POST /", "Content-Type: Application/JSON; charset=utf-8\r\n", 200, "result");
    check("POST /", "content-type: application/json-rpc\r\n", 200, "result");
    check("POST /", "", 415, "the content-type is none");
    check("POST /", "content-type: text/plain\r\n", 415, "text/plain");
    check("POST /", "content-type: application/jsonx\r\n", 415, "application/json is taken");
    check("POST /", &format!("{json}content-encoding: gzip\r\n"), 415, "gzip");
    check("POST /eth", json, 404, "path /");
    check("PUT /", json, 405, "POST");
    let reply = check("GET /", json, 405, "JSON-RPC needs POST");
    assert!(reply.head.contains("allow: get, head, post\r\n"), "{}", reply.head);
    let origin = "origin: http://elsewhere\r\naccess-control-request-method: POST\r\n";
    let reply = check("OPTIONS /", origin, 405, "POST");
    assert!(!reply.head.contains("access-control"), "{}", reply.head);
}

const SECRET: [u8; 32] = [7; 32];

fn token(secret: &[u8], alg: &str, age_secs: i64) -> String {
    let now = std::time::UNIX_EPOCH.elapsed().expect("after 1970").as_secs() as i64;
    let part = |text: String| BASE64_URL_SAFE_NO_PAD.encode(text);
    let header = part(format!(r#"{{"alg":"{alg}"}}"#));
    let signed = format!("{header}.{}", part(format!(r#"{{"iat":{}}}"#, now - age_secs)));
    let mac = hmac::Hmac::<sha2::Sha256>::new_from_slice(secret).expect("a key");
    let signature = mac.chain_update(&signed).finalize().into_bytes();
    format!("{signed}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature))
}

#[test]
fn each_request_needs_a_fresh_token_of_the_same_secret() {
    let secret = JwtSecret::from_hex(&const_hex::encode(SECRET)).expect("a secret");
    let server = Server::start(Some(secret), Limits::engine());
    let mut raw = server.connect();
    let mut check = |headers: &str, status: u16, part: &str| {
        raw.send(post(headers, call("echo", "[]")));
        let reply = raw.reply();
        reply.check(status, part);
        // A client without a token does not keep the connection.
        assert_eq!(reply.head.contains("connection: close\r\n"), status == 401, "{}", reply.head);
        if status == 401 {
            raw = server.connect();
        }
    };
    let bearer = |token: String| format!("authorization: Bearer {token}\r\n");
    check(&bearer(token(&SECRET, "HS256", 0)), 200, "result");
    check("", 401, "missing token");
    check(&bearer(token(&SECRET, "HS256", 50)), 200, "result");
    check(&bearer(token(&SECRET, "HS256", 70)), 401, "stale token: iat");
    check(&bearer(token(&SECRET, "HS256", -70)), 401, "future token: iat");
    check(&bearer(token(&[8; 32], "HS256", 0)), 401, "wrong signature");
    check(&bearer(token(&SECRET, "none", 0)), 401, "wrong algorithm");
    check(&bearer("garbage".into()), 401, "malformed token");
    check("authorization: \u{e9}\r\n", 401, "malformed token");
    check("authorization: Basic eDp5\r\n", 401, "not Bearer <JWT>");
    let good = bearer(token(&SECRET, "HS256", 0));
    check(&format!("{good}{good}"), 401, "more than one");
    check(&good.replace("Bearer", "bearer"), 200, "result");
}

#[test]
fn a_request_without_token_is_refused_before_its_body_is_read() {
    let server = Server::start(Some(JwtSecret::random()), Limits::engine());
    let mut raw = server.connect();
    raw.send("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000000\r\n\r\n{");
    let reply = raw.reply();
    reply.check(401, "missing token");
    assert!(reply.head.contains("www-authenticate: bearer\r\n"), "{}", reply.head);
    let mut raw = server.connect();
    raw.send("GET /secret HTTP/1.1\r\nhost: x\r\n\r\n");
    raw.reply().check(401, "missing token");
}

/// Two readers, one of them perhaps a proxy, could understand them in two ways.
#[test]
fn headers_that_contradict_each_other_are_refused() {
    let server = Server::public();
    let body = call("echo", "[]");
    let chunked = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    let check = |headers: &str, body: &str, status, part: &str| {
        let mut raw = server.connect();
        raw.send(format!("POST / HTTP/1.1\r\nhost: x\r\n{headers}\r\n{body}"));
        raw.reply().check(status, part);
    };
    let json = "content-type: application/json\r\n";
    let length = format!("content-length: {}\r\n", body.len());
    check(&format!("{json}Transfer-Encoding: Chunked\r\n"), &chunked, 200, "result");
    for coding in ["gzip, chunked", "chunked, chunked", "identity, chunked"] {
        let headers = format!("{json}transfer-encoding: {coding}\r\n");
        check(&headers, &chunked, 501, "not chunked alone");
    }
    let twice = format!("{json}transfer-encoding: gzip\r\ntransfer-encoding: chunked\r\n");
    check(&twice, &chunked, 501, "not chunked alone");
    let other = "content-type: text/plain\r\n";
    check(&format!("{json}{other}{length}"), &body, 400, "more than one content-type");
    check(&format!("{other}{json}{length}"), &body, 400, "more than one content-type");
    let coding = "content-encoding: identity\r\n";
    check(&format!("{json}{coding}{length}"), &body, 200, "result");
    let codings = format!("{json}{coding}content-encoding: gzip\r\n{length}");
    check(&codings, &body, 400, "more than one content-encoding");
}

#[test]
fn a_client_that_asks_before_sending_gets_an_answer_first() {
    let limits = Limits { body_bytes: 1000, ..Limits::public() };
    let server = Server::start(None, limits);
    let body = call("echo", "[]");
    let request = String::from_utf8(post("expect: 100-continue\r\n", &body)).expect("text");
    let (head, body) = request.split_at(request.len() - body.len());
    let mut raw = server.connect();
    raw.send(head);
    assert_eq!(raw.reply().status, 100);
    raw.send(body);
    raw.reply().check(200, "result");
    let mut raw = server.connect();
    raw.send(head.replace(&format!("length: {}", body.len()), "length: 2000"));
    raw.reply().check(413, "too long");
}

#[test]
fn headers_that_never_end_end_the_connection() {
    let limits = Limits { header_read: BRIEF, ..Limits::public() };
    let server = Server::start(None, limits);
    let mut raw = server.connect();
    raw.send("POST / HTTP/1.1\r\nhost: x\r\ncontent-ty");
    assert!(!String::from_utf8_lossy(&raw.rest()).contains("200 OK"));
    // The same bound ends idle connections.
    server.connect().rest();
    server.check_alive();
}

#[test]
fn headers_without_bound_are_refused() {
    let server = Server::public();
    let mut raw = server.connect();
    raw.try_send(format!("POST / HTTP/1.1\r\nhost: {}\r\n", "x".repeat(100_000)));
    let rest = raw.rest();
    assert!(rest.is_empty() || rest.starts_with(b"HTTP/1.1 431"), "{rest:?}");
    server.check_alive();
}

#[test]
fn a_body_that_stops_is_given_up() {
    let limits = Limits { body_idle: BRIEF, ..Limits::public() };
    let server = Server::start(None, limits);
    let mut raw = server.connect();
    let request = post("", call("echo", "[]"));
    raw.send(&request[..request.len() - 1]);
    raw.reply().check(408, "the body stopped");
    assert!(raw.rest().is_empty());
}

#[test]
fn a_body_cut_short_is_not_called() {
    let server = Server::public();
    let mut raw = server.connect();
    let request = post("", call("wait", "[]"));
    raw.send(&request[..request.len() - 1]);
    raw.finish();
    let rest = raw.rest();
    assert!(rest.is_empty() || rest.starts_with(b"HTTP/1.1 400"), "{rest:?}");
    server.check_alive();
    assert!(server.began.try_recv().is_err());
}

#[test]
fn bodies_that_come_slowly_make_room_for_others() {
    // Sixteen of 64 KiB.
    let limits = Limits { room_time: BRIEF, small_bodies_bytes: 16 << 16, ..Limits::public() };
    let server = Server::start(None, limits);
    let request = post("", call("echo", &format!("[\"{}\"]", "x".repeat(60_000))));
    let mut slow: Vec<_> = (0..16).map(|_| server.connect()).collect();
    for raw in &mut slow {
        raw.send(&request[..request.len() - 1]);
    }
    std::thread::sleep(2 * BRIEF);
    for _ in 0..20 {
        let mut other = server.connect();
        other.send(&request);
        other.reply().check(200, "xxx");
        // They come again and again.
        let mut raw = server.connect();
        raw.send(&request[..request.len() - 1]);
        slow.push(raw);
    }
    slow.remove(0).reply().check(408, "too slowly");
}

/// Each needs what the others hold: one after the other is ended, and the rest come through.
#[test]
fn long_bodies_that_have_no_room_together_do_not_wait_for_ever() {
    let bytes = 4 << 20;
    let limits = Limits {
        room_time: 20 * BRIEF,
        bodies_bytes: bytes,
        body_bytes: bytes,
        ..Limits::public()
    };
    let server = Server::start(None, limits);
    let long = call("echo", &format!("[\"{}\"]", "x".repeat(2_000_000)));
    let request = post("", long);
    let mut raws: Vec<_> = (0..3).map(|_| server.connect()).collect();
    for raw in &mut raws {
        raw.send(&request[..1_800_000]);
    }
    // Small ones have room of their own.
    server.check_alive();
    let replies = raws.into_iter().map(|mut raw| {
        let rest = request[1_800_000..].to_vec();
        std::thread::spawn(move || {
            raw.try_send(rest);
            raw.reply().status
        })
    });
    let replies: Vec<_> = replies.collect();
    let mut statuses: Vec<_> = replies.into_iter().map(|it| it.join().expect("no panic")).collect();
    statuses.sort_unstable();
    assert_eq!((statuses[0], statuses[1]), (200, 200), "{statuses:?}");
    assert!(matches!(statuses[2], 200 | 408), "{statuses:?}");
}

/// The refusal comes in the middle of the body, and no reset before it.
#[test]
fn who_has_no_room_for_a_body_may_write_to_its_end() {
    let bytes = 32 << 20;
    let limits = Limits {
        turn_wait: 20 * BRIEF,
        room_time: PATIENCE,
        bodies_bytes: bytes,
        body_bytes: bytes,
        ..Limits::public()
    };
    let server = Server::start(None, limits);
    let request = post("", call("echo", &format!("[\"{}\"]", "x".repeat(24_000_000))));
    let [mut first, mut second] = [(); 2].map(|()| server.connect());
    first.send(&request[..23_000_000]);
    // Bytes that the system still holds are read by then.
    std::thread::sleep(20 * BRIEF);
    second.send(&request);
    second.reply().check(503, "busy");
    first.send(&request[23_000_000..]);
    first.reply().check(200, "xxx");
}

#[test]
fn small_answers_wait_for_no_larger_one() {
    // However busy the machine is, the one that is being read is not evicted.
    let room_time = PATIENCE;
    let limits = Limits { running_calls: 1, answers_bytes: 1 << 20, room_time, ..Limits::public() };
    let server = Server::start(None, limits);
    // One is being read, if slowly; another waits for the room that it takes.
    let [mut slow, mut waiting] = [(); 2].map(|()| server.connect());
    slow.post(call("hex", "[50000000]"));
    assert!(slow.more());
    waiting.post(call("hex", "[60000000]"));
    // It has its turn before the calls that follow.
    std::thread::sleep(20 * BRIEF);
    server.check_alive();
    server.post(call("echo", "[\"quick\"]")).check(200, "quick");
    // A third would hold memory too, as soon as the second one waits.
    let third = || server.post(call("hex", "[100000]"));
    let begun = Instant::now();
    let refused = std::iter::repeat_with(third)
        .find(|reply| reply.status == 503 || begun.elapsed() > PATIENCE)
        .expect("the iterator does not end");
    refused.check(503, "too many requests wait");
    assert_eq!(slow.reply().body.len(), 100_000_000 + 38);
    assert_eq!(waiting.reply().body.len(), 120_000_000 + 38);
}

#[test]
fn a_quick_call_needs_no_turn() {
    let server = Server::start(None, Limits { running_calls: 1, ..Limits::public() });
    let mut first = server.connect();
    first.post(call("wait", "[]"));
    server.began.recv_timeout(PATIENCE).expect("it runs");
    server.post(call("echo", "[\"quick\"]")).check(200, "quick");
    server.go.send(()).expect("it waits");
    first.reply().check(200, "true");
}

#[test]
fn a_long_call_holds_up_nobody_where_one_thread_reads_from_all() {
    let server = Server::start_on(1, None, Limits::public());
    let long = |method: &str| call(method, "[]") + &" ".repeat(1 << 10);
    let [mut first, mut second] = [(); 2].map(|()| server.connect());
    for waiting in [&mut first, &mut second] {
        waiting.post(long("wait"));
        server.began.recv_timeout(PATIENCE).expect("it runs");
        server.check_alive();
        server.post(call("echo", "[\"quick\"]")).check(200, "quick");
        server.post(long("panic")).check(200, "-32603");
    }
    // Whichever of them takes the word.
    (0..2).for_each(|_| server.go.send(()).expect("they wait"));
    for waiting in [&mut first, &mut second] {
        waiting.reply().check(200, "true");
        // The thread that read its request is not lost to others.
        waiting.post(long("panic"));
        waiting.reply().check(200, "-32603");
    }
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let server = Server::public();
    let mut raw = server.connect();
    let all: Vec<u8> = (0..50).flat_map(|i| post("", call("echo", &format!("[{i}]")))).collect();
    raw.send(all);
    for i in 0..50 {
        raw.reply().check(200, &format!(r#""result":[{i}]"#));
    }
}

#[test]
fn a_request_of_two_lengths_hides_no_second_request() {
    let server = Server::public();
    let hidden = String::from_utf8(post("", call("wait", "[]"))).expect("text");
    let check = |headers: &str, body: &str, expected: &str| {
        let mut raw = server.connect();
        let head = "POST / HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n";
        raw.try_send(format!("{head}{headers}\r\n{body}"));
        let rest = String::from_utf8(raw.rest()).expect("text");
        assert!(rest.starts_with(expected), "{rest}");
        assert_eq!(rest.matches("HTTP/1.1 ").count(), 1, "{rest}");
    };
    // RFC 9112 section 6.3: chunks win, and the connection ends after the answer.
    let chunks = format!("0\r\n\r\n{hidden}");
    let length = chunks.len();
    let (te, cl) = ("transfer-encoding: chunked\r\n", format!("content-length: {length}\r\n"));
    check(&format!("{te}{cl}"), &chunks, "HTTP/1.1 200");
    check(&format!("{cl}{te}"), &chunks, "HTTP/1.1 200");
    let bad = "HTTP/1.1 400";
    check("content-length: 2\r\ncontent-length: 200\r\n", &format!("{{}}{hidden}"), bad);
    check("content-length: 2, 200\r\n", &format!("{{}}{hidden}"), bad);
    check("content-length: +2\r\n", &format!("{{}}{hidden}"), bad);
    check("content-length: -1\r\n", &hidden, bad);
    check("content-length : 2\r\n", &format!("{{}}{hidden}"), bad);
    check("transfer-encoding: chunked, gzip\r\n", &chunks, bad);
    check("transfer-encoding: xchunked\r\n", &chunks, bad);
    check(te, &format!("zz\r\n{hidden}"), bad);
    assert!(server.began.try_recv().is_err());
    server.check_alive();
}

#[test]
fn a_request_has_one_host() {
    let server = Server::public();
    for hosts in ["", "host: x\r\nhost: y\r\n"] {
        let mut raw = server.connect();
        raw.send(format!("GET / HTTP/1.1\r\n{hosts}\r\n"));
        raw.reply().check(400, "one Host header");
    }
    let mut old = server.connect();
    old.send("GET / HTTP/1.0\r\n\r\n");
    old.reply().check(200, "");
}

#[test]
fn a_chunked_body_is_a_body() {
    let server = Server::public();
    let mut raw = server.connect();
    raw.send(
        "POST / HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n\
         transfer-encoding: chunked\r\n\r\n",
    );
    for byte in call("echo", "[3]").bytes() {
        raw.send(format!("1\r\n{}\r\n", byte as char));
    }
    raw.send("0\r\n\r\n");
    raw.reply().check(200, r#""result":[3]"#);
}

#[test]
fn a_connection_too_many_waits_for_one_to_end() {
    let limits = Limits { connections: 1, ..Limits::public() };
    let server = Server::start(None, limits);
    let mut first = server.connect();
    first.post(call("wait", "[]"));
    server.began.recv_timeout(PATIENCE).expect("it runs");
    let mut second = server.connect();
    second.post(call("echo", "[2]"));
    server.go.send(()).expect("it waits");
    first.reply().check(200, "true");
    drop(first);
    second.reply().check(200, "[2]");
}

#[test]
fn a_call_too_many_is_told_that_the_server_is_busy() {
    let limits = Limits { running_calls: 1, turn_wait: BRIEF, ..Limits::public() };
    let server = Server::start(None, limits);
    let mut first = server.connect();
    first.post(call("wait", "[]"));
    server.began.recv_timeout(PATIENCE).expect("it runs");
    server.post(call("echo", "[]")).check(503, "busy");
    server.go.send(()).expect("it waits");
    first.reply().check(200, "true");
    server.check_alive();
}

#[test]
fn a_client_that_hangs_up_does_not_end_its_call() {
    let limits = Limits { running_calls: 1, ..Limits::public() };
    let server = Server::start(None, limits);
    let mut raw = server.connect();
    raw.post(call("wait", "[]"));
    server.began.recv_timeout(PATIENCE).expect("it runs");
    drop(raw);
    let mut next = server.connect();
    next.post(call("echo", "[]"));
    server.go.send(()).expect("it waits still");
    next.reply().check(200, "result");
}

#[test]
fn a_shutdown_lets_the_running_call_finish() {
    let mut server = Server::public();
    let idle = server.connect();
    let mut raw = server.connect();
    raw.post(call("wait", "[]"));
    server.began.recv_timeout(PATIENCE).expect("it runs");
    drop(server.stop.take());
    // The idle connection ends at once, the busy one when it has its answer.
    idle.rest();
    assert!(std::net::TcpStream::connect(server.address).is_err());
    assert!(server.ended.try_recv().is_err());
    server.go.send(()).expect("it waits");
    raw.reply().check(200, "true");
    assert!(raw.rest().is_empty());
    server.ended.recv_timeout(PATIENCE).expect("serve returned");
}

#[test]
fn a_stop_waits_for_no_connection_without_a_call() {
    let mut server = Server::public();
    let halves = ["", "POST / HT", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "{"];
    let announced = "POST / HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n\
                     content-length: 100\r\n\r\n{";
    let _held: Vec<_> = halves
        .iter()
        .chain([&announced])
        .map(|half| {
            let mut raw = server.connect();
            raw.send(half);
            raw
        })
        .collect();
    let mut websocket = server.connect();
    websocket.send(upgrade(""));
    websocket.until("\r\n\r\n");
    server.check_alive();
    drop(server.stop.take());
    // The grace of the public port is longer.
    server.ended.recv_timeout(PATIENCE).expect("serve returned");
}

#[test]
fn a_stop_refuses_the_rest_of_a_batch() {
    let mut server = Server::public();
    let mut raw = server.connect();
    raw.post(format!("[{0},{0},{0}]", call("wait", "[]")));
    server.began.recv_timeout(PATIENCE).expect("it runs");
    drop(server.stop.take());
    while std::net::TcpStream::connect(server.address).is_ok() {}
    // The first one alone: others would wait for a word of their own.
    server.go.send(()).expect("it waits");
    raw.reply().check(200, "the server stops");
    server.ended.recv_timeout(PATIENCE).expect("serve returned");
}

#[test]
fn a_port_is_called_by_the_names_that_it_has() {
    let server = Server::public();
    for (host, status) in [("127.0.0.1:8545", 200), ("localhost", 200), ("evil.example:8545", 403)]
    {
        let mut raw = server.connect();
        let named = String::from_utf8(post("", call("echo", "[1]"))).expect("text");
        raw.send(named.replace("host: x", &format!("host: {host}")));
        raw.reply().check(status, if status == 200 { "[1]" } else { "not served as evil.example" });
    }
}

#[test]
fn a_web_page_that_is_allowed_may_call() {
    let server = Server::public();
    let ask = |request: &[u8]| {
        let mut raw = server.connect();
        raw.send(request);
        raw.reply()
    };
    let preflight = "OPTIONS / HTTP/1.1\r\nhost: x\r\norigin: https://app.example\r\n\
                     access-control-request-method: POST\r\n\r\n";
    let reply = ask(preflight.as_bytes());
    assert_eq!(reply.status, 204, "{}", reply.head);
    assert!(reply.head.contains("access-control-allow-methods: post, get"), "{}", reply.head);
    for (origin, is_allowed) in [("https://app.example", true), ("https://other.example", false)] {
        let reply = ask(&post(&format!("origin: {origin}\r\n"), call("echo", "[1]")));
        let header = format!("access-control-allow-origin: {origin}");
        assert_eq!(reply.head.contains(&header), is_allowed, "{}", reply.head);
    }
    let reply = ask(upgrade("origin: http://app.example:8080\r\n").as_bytes());
    assert_eq!(reply.status, 101, "{}", reply.head);
}

#[test]
fn a_shutdown_waits_no_longer_than_its_grace() {
    let limits = Limits { shutdown_grace: BRIEF, ..Limits::public() };
    let mut server = Server::start(None, limits);
    let mut raw = server.connect();
    raw.post(call("wait", "[]"));
    server.began.recv_timeout(PATIENCE).expect("it runs");
    drop(server.stop.take());
    server.ended.recv_timeout(PATIENCE).expect("serve returned");
    server.go.send(()).expect("it waits still");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_bodies_are_answered_with_json(
        bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..100), 20),
    ) {
        let server = Server::public();
        let mut raw = server.connect();
        for body in bodies {
            raw.post(&body);
            let reply = raw.reply();
            prop_assert_eq!(reply.status, 200);
            let answer: Value = serde_json::from_slice(&reply.body).expect("JSON");
            prop_assert!(answer["error"]["code"].is_i64(), "{}", answer);
        }
    }
}
