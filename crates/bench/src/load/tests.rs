//! Turns against servers that lie, break off, limit or never answer: each call counts for what
//! became of it, and the turn ends.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::tally::CallFailure;
use super::*;
use crate::fault::Fault;

/// The answer of a server, as it goes over the wire, to the message of this number on a
/// connection, from 0; none ends the connection.
type Odd = dyn Fn(usize, &Value) -> Option<String> + Send + Sync;

fn endpoint(url: &str) -> Arc<Endpoint> {
    Arc::new(Endpoint::new(url, &Access::default()).expect("an address"))
}

/// A server of HTTP on a free port.
fn odd(odd: impl Fn(usize, &Value) -> Option<String> + Send + Sync + 'static) -> Arc<Endpoint> {
    let port = listen(Arc::new(odd), Some);
    endpoint(&format!("http://127.0.0.1:{port}"))
}

fn listen<S: Read + Write + Send + 'static>(
    odd: Arc<Odd>,
    accept: fn(TcpStream) -> Option<S>,
) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("it has an address").port();
    std::thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            let odd = Arc::clone(&odd);
            std::thread::spawn(move || converse(accept(stream)?, &*odd));
        }
    });
    port
}

/// Answers requests until there are no more.
fn converse(stream: impl Read + Write, odd: &Odd) -> Option<()> {
    let mut stream = BufReader::new(stream);
    for number in 0.. {
        let (mut length, mut line) = (0, String::new());
        while line != "\r\n" {
            line.clear();
            stream.read_line(&mut line).ok().filter(|count| *count > 0)?;
            let lower = line.to_ascii_lowercase();
            let value = lower.strip_prefix("content-length:");
            length = value.map_or(Some(length), |value| value.trim().parse().ok())?;
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).ok()?;
        let answer = odd(number, &serde_json::from_slice(&body).expect("calls"))?;
        stream.get_mut().write_all(answer.as_bytes()).ok()?;
    }
    None
}

/// A server of bare JSON on a Unix socket.
fn odd_ipc(
    odd: impl Fn(usize, &Value) -> Option<String> + Send + 'static,
) -> (TempDir, Arc<Endpoint>) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("odd.ipc");
    let listener = UnixListener::bind(&path).expect("bound");
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let calls =
                serde_json::Deserializer::from_reader(stream.try_clone().expect("a socket"));
            for (number, call) in calls.into_iter::<Value>().enumerate() {
                let Some(answer) = call.ok().and_then(|call| odd(number, &call)) else { break };
                stream.write_all(answer.as_bytes()).ok();
            }
        }
    });
    (folder, endpoint(&path.display().to_string()))
}

fn http(status: &str, headers: &str, body: &str) -> Option<String> {
    let length = body.len();
    Some(format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\n\r\n{body}"))
}

fn result(id: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "result": {"id": 1, "error": "}"}}).to_string()
}

fn good(call: &Value) -> Option<String> {
    let calls = call.as_array().map(|calls| calls.iter().map(|call| result(&call["id"])));
    match calls {
        None => http("200 OK", "", &result(&call["id"])),
        Some(calls) => http("200 OK", "", &format!("[{}]", calls.collect::<Vec<_>>().join(","))),
    }
}

fn plan(mode: Mode, calls: u64) -> TurnPlan {
    TurnPlan {
        mode,
        connections: 1,
        depth: 4,
        threads: 1,
        duration: ENDLESS,
        calls: Some(calls),
        timeout: Duration::from_secs(20),
        max_rate: None,
    }
}

/// Calls for so long, at a hundred a second.
fn at_a_rate(millis: u64) -> TurnPlan {
    let duration = Duration::from_millis(millis);
    TurnPlan { duration, calls: None, max_rate: Some(100.0), ..plan(Mode::Sequential, 0) }
}

fn run(endpoint: &Arc<Endpoint>, plan: &TurnPlan) -> Tally {
    let mix = Arc::new(Mix::parse(&["2*a".into(), "b [1]".into()]).expect("calls"));
    let tally = turn::run(endpoint, &mix, plan).expect("a turn");
    let failed = tally.failures.values().sum::<u64>() - tally.count(CallFailure::Connect);
    assert_eq!(tally.latency().count() + failed, tally.sent + tally.unsent, "{:?}", tally.failures);
    tally
}

/// Makes the calls; so many have a result, and the others failed like this.
fn check(
    endpoint: &Arc<Endpoint>,
    plan: &TurnPlan,
    results: u64,
    failures: &[(CallFailure, u64)],
) -> Tally {
    let tally = run(endpoint, plan);
    let expected: BTreeMap<_, _> = failures.iter().copied().collect();
    assert_eq!((tally.latency().count(), &tally.failures), (results, &expected), "{plan:?}");
    tally
}

#[test]
fn the_null_server_answers_everything_over_every_wire() {
    for transport in Transport::ALL {
        let (_server, endpoint) = null_endpoint(transport).expect("a server");
        for mode in Mode::ALL {
            for (connections, threads) in [(1, 1), (3, 2)] {
                let plan = TurnPlan { connections, threads, ..plan(mode, 600) };
                let tally = check(&endpoint, &plan, 600, &[]);
                let counts = tally.latencies.iter().map(|one| one.count());
                let [a, b] = counts.collect::<Vec<_>>()[..] else { panic!("two kinds") };
                assert!(
                    a.abs_diff(2 * b) <= 3 * plan.connections_over(transport) as u64,
                    "{a} and {b} calls"
                );
                assert!(tally.sent_bytes > 600 * 45 && tally.received_bytes > 600 * 30);
            }
        }
    }
}

#[test]
fn pipelined_calls_over_http_use_their_connections_again() {
    let opened = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&opened);
    let server = odd(move |number, call| {
        counted.fetch_add(usize::from(number == 0), Ordering::SeqCst);
        good(call)
    });
    check(&server, &TurnPlan { connections: 2, ..plan(Mode::Pipelined, 400) }, 400, &[]);
    assert!(opened.load(Ordering::SeqCst) <= 8);
}

#[test]
fn odd_answers_count_for_what_they_are() {
    let sequential = plan(Mode::Sequential, 30);
    for (bad, failure) in [
        (http("500 No", "", "<html>"), CallFailure::Status(500)),
        (http("200 OK", "", &result(&json!(7_000))), CallFailure::WrongId),
        (http("200 OK", "", "{\"id\":1000000002,"), CallFailure::Malformed),
        // Every third message of a connection ends it, or is no HTTP.
        (None, CallFailure::Closed),
        (Some("nonsense\r\n\r\n".into()), CallFailure::Malformed),
    ] {
        let server =
            odd(move |number, call| if number % 3 == 2 { bad.clone() } else { good(call) });
        check(&server, &sequential, 20, &[(failure, 10)]);
    }
    // A server that only ever hangs up is left in the end, and so is one that is not there.
    let endless = plan(Mode::Sequential, 1_000_000);
    let tally = run(&odd(|_, _| None), &endless);
    assert_eq!((tally.given_up, tally.count(CallFailure::Closed)), (1, 10));
    let port = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("one");
    let nobody = endpoint(&format!("http://{port}"));
    let tally = check(&nobody, &endless, 0, &[(CallFailure::Connect, 10)]);
    assert_eq!((tally.given_up, tally.sent), (1, 0));
}

#[test]
fn a_call_without_an_answer_is_given_up() {
    let timeout = Duration::from_secs(1);
    let plan_of = |mode, calls| TurnPlan { timeout, ..plan(mode, calls) };
    let silent = odd(|number, call| if number == 2 { Some(String::new()) } else { good(call) });
    check(&silent, &plan_of(Mode::Sequential, 5), 4, &[(CallFailure::Timeout, 1)]);
    // Over a socket, the other calls have their answers, in any order and perhaps twice.
    let held = std::sync::Mutex::new(Value::Null);
    let (_folder, ipc) = odd_ipc(move |number, call| {
        let before = std::mem::replace(&mut *held.lock().expect("no panic"), call["id"].clone());
        let both = || [result(&call["id"]), result(&before), result(&before)].concat();
        Some(if number % 2 == 1 { both() } else { String::new() })
    });
    check(&ipc, &plan_of(Mode::Pipelined, 21), 20, &[(CallFailure::Timeout, 1)]);
}

#[test]
fn batches_are_shuffled_short_or_refused_as_a_whole() {
    let answer = |number: usize, calls: &Value| {
        let calls = calls.as_array().expect("a batch").iter().rev();
        let mut answers: Vec<_> = calls.map(|call| result(&call["id"])).collect();
        answers.truncate(if number == 1 { 3 } else { 4 });
        match number {
            2 => r#"{"id":null,"error":{"code":-32600,"message":"too long"}}"#.to_owned(),
            _ => format!("[{}]", answers.join(",")),
        }
    };
    let failures = [(CallFailure::Missing, 1), (CallFailure::Code(-32600), 4)];
    let over_http = odd(move |number, calls| http("200 OK", "", &answer(number, calls)));
    check(&over_http, &plan(Mode::Batched, 15), 10, &failures);
    let (_folder, ipc) = odd_ipc(move |number, calls| Some(answer(number, calls)));
    check(&ipc, &plan(Mode::Batched, 15), 10, &failures);
}

#[test]
fn a_server_that_asks_for_patience_is_left_alone_and_counted_apart() {
    let limited = odd(|number, call| match number {
        3 => http("429 Too Many", "Retry-After: 1\r\n", ""),
        _ => good(call),
    });
    let start = Instant::now();
    let tally = check(&limited, &plan(Mode::Sequential, 8), 7, &[(CallFailure::Limited, 1)]);
    assert!(start.elapsed() >= Duration::from_secs(1) && tally.failed() == 0);
    assert!(tally.paused > Duration::from_millis(900), "{:?}", tally.paused);
    // Two calls of the first window are refused, which is one time.
    let (_folder, limited) = odd_ipc(|number, call| {
        let error = json!({"id": call["id"], "error": {"code": -32005, "message": "slow down"}});
        Some(if (2..4).contains(&number) { error.to_string() } else { result(&call["id"]) })
    });
    let tally = check(&limited, &plan(Mode::Pipelined, 8), 6, &[(CallFailure::Limited, 2)]);
    assert!(tally.paused >= Duration::from_secs(1), "{:?}", tally.paused);
}

#[test]
fn at_a_rate_a_stall_is_charged_to_every_call_that_it_kept_waiting() {
    // The first answer takes half a second, in which 50 calls are due: half of them then wait for
    // more than a quarter of a second.
    let stalls = odd(|number, call| {
        if number == 0 {
            std::thread::sleep(Duration::from_millis(500));
        }
        good(call)
    });
    let plan_of = TurnPlan { max_rate: Some(100.0), ..plan(Mode::Sequential, 60) };
    let latency = check(&stalls, &plan_of, 60, &[]).latency();
    let quick = latency.distribution().into_iter().rfind(|(nanos, _)| *nanos < 250e6);
    let quick = quick.map_or(0.0, |(_, share)| share * 60.0);
    assert!(quick < 36.0, "{quick} calls waited less than a quarter of a second");
    // Calls that a lost server, or a slow one, kept from being sent have waited too.
    let tally = run(&odd(|_, _| None), &at_a_rate(2_500));
    assert_eq!((tally.given_up, tally.count(CallFailure::Closed)), (1, 10));
    assert!((230..=240).contains(&tally.unsent), "{}", tally.unsent);
    let slow = odd(|number, call| {
        if number > 0 {
            std::thread::sleep(Duration::from_secs(1));
        }
        good(call)
    });
    let tally = run(&slow, &at_a_rate(500));
    assert!((40..=49).contains(&tally.unsent), "{}", tally.unsent);
    assert_eq!(tally.latency().count(), tally.sent + tally.unsent);
    assert!(tally.latency().percentile(0.5) > 200e6, "{:?}", tally.latency().percentile(0.5));
    // A batch goes when its last call is due: nine are, and four go at a time.
    let batches = TurnPlan { mode: Mode::Batched, max_rate: Some(20.0), ..at_a_rate(450) };
    let tally = run(&odd(|_, calls| good(calls)), &batches);
    assert_eq!((tally.sent, tally.unsent), (8, 0));
}

#[test]
fn an_answer_of_null_is_not_compared_with_a_result() {
    let outcome = |member: &'static str, value: Value| {
        let server = odd(move |_, call| {
            http("200 OK", "", &json!({"id": call["id"], member: value}).to_string())
        });
        let rounds = (0..6).map(|_| run(&server, &plan(Mode::Sequential, 9))).collect();
        Outcome { name: "x".into(), mode: Mode::Sequential, rounds, null_rate: None }
    };
    let report = |has_rate, outcomes: [Outcome; 2]| {
        let mix = Mix::parse(&["2*a".into(), "b [1]".into()]).expect("calls");
        let mut document = Document::new("calls");
        report::describe(&mix, &[Mode::Sequential], &outcomes, has_rate, &mut document);
        crate::report::markdown(&[document])
    };
    const UNEQUAL: &str = "| the work was unequal |";
    let error = || outcome("error", json!({"code": -32601, "message": "no such method"}));
    let (null, seven) = (|| outcome("result", Value::Null), || outcome("result", json!(7)));
    assert!(report(false, [error(), seven()]).contains(UNEQUAL));
    assert!(report(false, [null(), seven()]).contains(UNEQUAL));
    for same in [[error(), error()], [null(), null()], [seven(), seven()]] {
        assert!(!report(false, same).contains(UNEQUAL));
    }
    // At a rate that both keep up with, their latencies are compared.
    let paced = report(true, [seven(), seven()]);
    assert!(paced.contains("| latency p99 |") && !paced.contains("| time a call |"));
}

#[test]
fn a_caller_waits_connects_again_and_gives_up_on_a_refusal_alone() {
    let seen = AtomicUsize::new(0);
    let server = odd(move |_, call| match seen.fetch_add(1, Ordering::SeqCst) {
        0 => None,
        1 => http("429 Too Many", "Retry-After: 1\r\n", ""),
        2 => http("200 OK", "", &json!({"id": call["id"], "result": 7}).to_string()),
        3 => {
            http("200 OK", "", r#"{"id":null,"error":{"code":-32601,"message":"no such method"}}"#)
        }
        _ => http("403 Forbidden", "", "no"),
    });
    let caller = Caller::to(server, Duration::from_secs(20));
    let (mut caller, start) = (caller.expect("a runtime"), Instant::now());
    assert_eq!(caller.call("a", "[]").expect("a result").get(), "7");
    assert!(start.elapsed() >= Duration::from_secs(1));
    for words in ["no such method", "HTTP status 403: no"] {
        let error = caller.call("x", "[]").expect_err("a refusal");
        assert_eq!(Fault::of(&error), Some(Fault::Refusing));
        assert!(format!("{error:#}").contains(words), "{error:#}");
    }
    assert!(caller.version().is_err_and(|error| format!("{error:#}").contains("--jwt-secret")));
}

/// A file of these tests: certificates of `localhost`, one signed by nobody known, and an
/// authority.
fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/load/tls").join(name)
}

fn secure(tcp: TcpStream) -> Option<StreamOwned<ServerConnection, TcpStream>> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let certificates = CertificateDer::pem_file_iter(file("localhost.pem")).expect("a file");
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(
            certificates.map(|it| it.expect("PEM")).collect(),
            PrivateKeyDer::from_pem_file(file("localhost.key")).expect("a key"),
        );
    let config = config.expect("the key is that of the certificate");
    Some(StreamOwned::new(ServerConnection::new(Arc::new(config)).ok()?, tcp))
}

#[test]
fn calls_over_tls_are_answered_and_an_untrusted_server_is_asked_once() {
    let port = listen(Arc::new(|_: usize, call: &Value| good(call)), secure);
    let to = |url: &str, trusted: &str| {
        let access = AccessArgs { cacert: Some(file(trusted)), ..AccessArgs::default() };
        Endpoint::new(url, &access.read().expect("flags")).map(Arc::new)
    };
    let url = format!("https://localhost:{port}/key");
    let trusted = to(&url, "localhost.pem").expect("an address");
    assert_eq!(trusted.shown, format!("https://localhost:{port}"));
    for mode in Mode::ALL {
        // Batches of megabytes go out in parts.
        let depth = if mode == Mode::Batched { 20_000 } else { 4 };
        check(&trusted, &TurnPlan { depth, ..plan(mode, 500) }, 500, &[]);
    }
    let plain = TcpListener::bind("127.0.0.1:0").expect("a port");
    let plain_port = plain.local_addr().expect("it has an address").port();
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = plain.accept() {
            stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").ok();
        }
    });
    for (url, cacert, words) in [
        (&url, "other.pem", "--cacert FILE names another"),
        (&format!("https://127.0.0.1:{port}"), "localhost.pem", "certificate is not good"),
        (&format!("https://127.0.0.1:{plain_port}"), "localhost.pem", "speaks no TLS"),
    ] {
        let other = to(url, cacert).expect("an address");
        let mut caller = Caller::to(Arc::clone(&other), Duration::from_secs(20)).expect("one");
        // It would be for minutes if it were tried again.
        let error = format!("{:#}", caller.call("a", "[]").expect_err("not trusted"));
        assert!(error.contains(words), "{error}");
        let tally = check(&other, &plan(Mode::Sequential, 10), 0, &[(CallFailure::Connect, 10)]);
        assert_eq!((tally.given_up, tally.sent), (1, 0));
    }
    for (cacert, words) in [("localhost.key", "has no certificates"), ("none.pem", "none.pem")] {
        let error = format!("{:#}", to(&url, cacert).expect_err(cacert));
        assert!(error.contains("--cacert") && error.contains(words), "{error}");
    }
}
