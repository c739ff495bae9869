//! Turns against servers that lie, break off, limit or never answer: each call counts for what
//! became of it, and the turn ends.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::message::{Message, Messages, Wire, push_frame_head};
use super::tally::{Failure, Tally};
use super::target::{Mix, Target};
use super::*;
use crate::stream::Stream;
use crate::tls;

/// What an odd server does with the message of this number on a connection, from 0: it writes what
/// it wants, and `false` ends the connection.
type Odd = dyn Fn(usize, &str, &mut Vec<u8>) -> bool + Send + Sync;

/// A server on a free port: of HTTP what `odd` writes is the whole answer, over a WebSocket each
/// line of it is a message.
fn odd_server(
    wire: Wire,
    odd: impl Fn(usize, &str, &mut Vec<u8>) -> bool + Send + Sync + 'static,
) -> Target {
    let address = listen(wire, |stream| Ok(Stream::Tcp(stream)), odd);
    Target::parse(&format!("{}://{address}", wire.name()), &[], None, None).expect("an address")
}

/// The same over TLS, and the name of a file of certificates of those who are trusted.
fn secure_server(
    wire: Wire,
    trusted: &str,
    odd: impl Fn(usize, &str, &mut Vec<u8>) -> bool + Send + Sync + 'static,
) -> Target {
    let accept = |stream| Ok(Stream::Tls(Box::new(tls::tests::accept(stream, "localhost.pem")?)));
    let port = listen(wire, accept, odd).port();
    let (url, trusted) =
        (format!("{}s://localhost:{port}", wire.name()), tls::tests::file(trusted));
    Target::parse(&url, &[], None, Some(&trusted)).expect("an address")
}

fn listen(
    wire: Wire,
    accept: fn(TcpStream) -> std::io::Result<Stream>,
    odd: impl Fn(usize, &str, &mut Vec<u8>) -> bool + Send + Sync + 'static,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("it has an address");
    let odd: Arc<Odd> = Arc::new(odd);
    std::thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            let odd = Arc::clone(&odd);
            std::thread::spawn(move || converse(accept(stream)?, wire, &*odd));
        }
    });
    address
}

fn converse(mut stream: Stream, wire: Wire, odd: &Odd) -> std::io::Result<()> {
    let mut messages = Messages::new(Wire::Http);
    let (mut number, mut is_open) = (0, wire == Wire::Http);
    while messages.read(&mut stream)? > 0 {
        while let Some(Message { body, .. }) =
            messages.next().map_err(|_| ErrorKind::InvalidData)?
        {
            if !is_open {
                stream.write_all(b"HTTP/1.1 101 Yes\r\nUpgrade: websocket\r\n\r\n")?;
                (is_open, messages.wire) = (true, Wire::WebSocket);
                continue;
            }
            let mut said = Vec::new();
            let text = String::from_utf8_lossy(messages.bytes(&body)).into_owned();
            let goes_on = odd(number, &text, &mut said);
            number += 1;
            if wire == Wire::Http {
                stream.write_all(&said)?;
            } else {
                for line in said.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                    let mut frame = Vec::new();
                    push_frame_head(&mut frame, false, false, line.len());
                    frame.extend_from_slice(line);
                    stream.write_all(&frame)?;
                }
            }
            if !goes_on {
                return Ok(());
            }
        }
    }
    Ok(())
}

fn plan(mode: Mode, calls: u64) -> Plan {
    Plan {
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

fn run(target: &Target, plan: &Plan) -> Tally {
    let mix = Mix::parse(&["2*a".into(), "b [1]".into()]).expect("calls");
    let tally = turn::run(target, &mix, plan).expect("a turn");
    let no_calls = tally.count(Failure::Extra) + tally.count(Failure::Connect);
    let failed = tally.failures.values().sum::<u64>() - no_calls;
    assert_eq!(tally.latency().count() + failed, tally.sent + tally.unsent, "{:?}", tally.failures);
    tally
}

/// Makes the calls; so many have a result, and the others failed like this.
fn check(target: &Target, plan: &Plan, results: u64, failures: &[(Failure, u64)]) -> Tally {
    let tally = run(target, plan);
    let expected: BTreeMap<_, _> = failures.iter().copied().collect();
    assert_eq!((tally.latency().count(), &tally.failures), (results, &expected), "{plan:?}");
    tally
}

/// The ids in a message, as they stand there.
fn ids(text: &str) -> Vec<String> {
    let parts = text.split("\"id\":").skip(1);
    parts.map(|part| part.chars().take_while(char::is_ascii_digit).collect()).collect()
}

fn result(id: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"id":1,"error":"}}"}}}}"#)
}

fn http(status: &str, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\n\r\n{body}").into_bytes()
}

fn good(text: &str) -> Vec<u8> {
    http("200 OK", "", &result(&ids(text)[0]))
}

#[test]
fn the_null_server_answers_everything_over_every_wire() {
    for wire in Wire::ALL {
        let null = null_contender(wire).expect("a server");
        for mode in Mode::ALL {
            for (connections, threads) in [(1, 1), (3, 2)] {
                let plan = Plan { connections, threads, ..plan(mode, 1_000) };
                let tally = check(&null.target, &plan, 1_000, &[]);
                let counts = tally.latencies.iter().map(|one| one.count());
                let [a, b] = counts.collect::<Vec<_>>()[..] else { panic!("two kinds") };
                assert!(a.abs_diff(2 * b) <= 3 * connections as u64, "{a} and {b} calls");
                assert!(tally.sent_bytes > 1_000 * 50 && tally.received_bytes > 1_000 * 40);
            }
        }
        assert!(null.target.version().is_ok_and(|version| version == "0x1"));
    }
}

#[test]
fn odd_answers_over_http_count_for_what_they_are() {
    let server = |bad: fn(&str) -> Vec<u8>| {
        odd_server(Wire::Http, move |number, text, out| {
            out.extend(if number % 3 == 2 { bad(text) } else { good(text) });
            true
        })
    };
    let wrong_id = server(|_| http("200 OK", "", &result("7")));
    let broken = server(|_| http("500 No", "", "<html>"));
    let malformed = server(|_| http("200 OK", "", "{\"id\":1000000002,"));
    let refused = server(|text| {
        let id = &ids(text)[0];
        let body = format!(r#"{{"id":{id},"error":{{"code":-32601,"message":"no"}}}}"#);
        http("200 OK", "", &body)
    });
    for mode in [Mode::Sequential, Mode::Pipelined] {
        let plan = plan(mode, 30);
        check(&wrong_id, &plan, 20, &[(Failure::WrongId, 10)]);
        check(&broken, &plan, 20, &[(Failure::Status(500), 10)]);
        check(&malformed, &plan, 20, &[(Failure::Malformed, 10)]);
        check(&refused, &plan, 20, &[(Failure::Code(-32601), 10)]);
    }
}

#[test]
fn a_connection_that_ends_takes_its_calls_along_and_another_is_opened() {
    for (body, expected) in [
        ("", Failure::Closed),
        ("HTTP/1.1 200 OK\r\nContent-Le", Failure::Closed),
        ("?\r\n\r\n", Failure::Malformed),
    ] {
        let target = odd_server(Wire::Http, move |number, text, out| {
            out.extend(if number < 4 { good(text) } else { body.into() });
            number < 4
        });
        check(&target, &plan(Mode::Sequential, 10), 8, &[(expected, 2)]);
    }
    // Said politely, it costs nothing.
    let target = odd_server(Wire::Http, |_, text, out| {
        out.extend(http("200 OK", "Connection: close\r\n", &result(&ids(text)[0])));
        false
    });
    check(&target, &plan(Mode::Sequential, 10), 10, &[]);
    // A server that only ever hangs up is left in the end, and so is one that is not there.
    let target = odd_server(Wire::Http, |_, _, _| false);
    let tally = run(&target, &plan(Mode::Sequential, 1_000_000));
    assert_eq!((tally.given_up, tally.count(Failure::Closed)), (1, 10));
    let port = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("one");
    let target = Target::parse(&format!("http://{port}"), &[], None, None).expect("an address");
    let tally = check(&target, &plan(Mode::Sequential, 1_000_000), 0, &[(Failure::Connect, 10)]);
    assert_eq!((tally.given_up, tally.sent), (1, 0));
}

#[test]
fn a_call_without_an_answer_is_given_up() {
    let timeout = Duration::from_secs(1);
    let target = odd_server(Wire::Http, |number, text, out| {
        out.extend(if number == 2 { Vec::new() } else { good(text) });
        true
    });
    let plan_of = |mode, calls| Plan { timeout, ..plan(mode, calls) };
    check(&target, &plan_of(Mode::Sequential, 5), 4, &[(Failure::Timeout, 1)]);
    let target = odd_server(Wire::WebSocket, |number, text, out| {
        out.extend(if number == 2 { String::new() } else { result(&ids(text)[0]) }.bytes());
        true
    });
    check(&target, &plan_of(Mode::Sequential, 5), 4, &[(Failure::Timeout, 1)]);
    check(&target, &plan_of(Mode::Pipelined, 20), 19, &[(Failure::Timeout, 1)]);
    // Nothing at all: the turn ends all the same.
    let target = odd_server(Wire::WebSocket, |_, _, _| true);
    let duration = Duration::from_millis(100);
    let plan = Plan { duration, calls: None, ..plan_of(Mode::Pipelined, 0) };
    check(&target, &plan, 0, &[(Failure::Timeout, 4)]);
}

#[test]
fn answers_over_a_websocket_come_in_any_order_and_perhaps_twice() {
    // Each second message brings the answers to two, the later one first, and then a third.
    let held = std::sync::Mutex::new(String::new());
    let target = odd_server(Wire::WebSocket, move |number, text, out| {
        let (mut held, id) = (held.lock().expect("nobody panics"), ids(text)[0].clone());
        if number % 2 == 1 {
            let lines = [result(&id), result(&held), result(&held)].join("\n");
            out.extend(lines.bytes());
        }
        *held = id;
        true
    });
    check(&target, &plan(Mode::Pipelined, 20), 20, &[(Failure::Extra, 10)]);
    let target = odd_server(Wire::WebSocket, |number, text, out| {
        let id = if number == 3 { "7".into() } else { ids(text)[0].clone() };
        out.extend(result(&id).bytes());
        true
    });
    check(&target, &plan(Mode::Pipelined, 20), 19, &[(Failure::WrongId, 1)]);
}

#[test]
fn batches_are_shuffled_short_or_refused_as_a_whole() {
    for wire in [Wire::Http, Wire::WebSocket] {
        let target = odd_server(wire, move |number, text, out| {
            let mut answers: Vec<_> = ids(text).iter().rev().map(|id| result(id)).collect();
            answers.truncate(if number == 1 { 3 } else { 4 });
            let body = match number {
                2 => r#"{"id":null,"error":{"code":-32600,"message":"too long"}}"#.into(),
                _ => format!("[{}]", answers.join(",")),
            };
            out.extend(if wire == Wire::Http { http("200 OK", "", &body) } else { body.into() });
            true
        });
        let failures = [(Failure::Missing, 1), (Failure::Code(-32600), 4)];
        check(&target, &plan(Mode::Batched, 15), 10, &failures);
    }
}

#[test]
fn a_server_that_asks_for_patience_is_left_alone_and_counted_apart() {
    let target = odd_server(Wire::Http, |number, text, out| {
        let limited = || http("429 Too Many", "Retry-After: 1\r\n", "");
        out.extend(if number == 3 { limited() } else { good(text) });
        true
    });
    let start = Instant::now();
    let tally = check(&target, &plan(Mode::Sequential, 8), 7, &[(Failure::Limited, 1)]);
    assert!(start.elapsed() >= Duration::from_secs(1) && tally.failed() == 0);
    assert!(tally.paused > Duration::from_millis(900), "{:?}", tally.paused);
    let target = odd_server(Wire::WebSocket, |number, text, out| {
        let id = &ids(text)[0];
        let error = format!(r#"{{"id":{id},"error":{{"code":-32005,"message":"slow down"}}}}"#);
        out.extend(if (2..4).contains(&number) { error } else { result(id) }.bytes());
        true
    });
    // Two calls of the first window are refused.
    let tally = check(&target, &plan(Mode::Pipelined, 8), 6, &[(Failure::Limited, 2)]);
    assert!(tally.paused >= Duration::from_secs(1), "{:?}", tally.paused);
}

#[test]
fn at_a_rate_a_stall_is_charged_to_every_call_that_it_kept_waiting() {
    // The first answer takes half a second, in which 50 calls are due: half of them then wait for
    // more than a quarter of a second.
    let target = odd_server(Wire::Http, |number, text, out| {
        if number == 0 {
            std::thread::sleep(Duration::from_millis(500));
        }
        out.extend(good(text));
        true
    });
    let plan = Plan { max_rate: Some(100.0), ..plan(Mode::Sequential, 60) };
    let latency = check(&target, &plan, 60, &[]).latency();
    let quick = latency.distribution().into_iter().rfind(|(nanos, _)| *nanos < 250e6);
    let quick = quick.map_or(0.0, |(_, share)| share * 60.0);
    assert!(quick < 36.0, "{quick} calls waited less than a quarter of a second");
}

#[test]
fn who_answers_null_is_not_compared_with_who_has_a_result() {
    let outcome = |body: &'static str| {
        let target = odd_server(Wire::Http, move |_, text, out| {
            let id = &ids(text)[0];
            let member = if body.starts_with('{') { "error" } else { "result" };
            out.extend(http("200 OK", "", &format!(r#"{{"id":{id},"{member}":{body}}}"#)));
            true
        });
        let plan = plan(Mode::Sequential, 9);
        let rounds = (0..6).map(|_| run(&target, &plan)).collect();
        Outcome { name: body.into(), mode: Mode::Sequential, rounds, null_rate: None }
    };
    let report_at = |has_rate: bool, bodies: [&'static str; 2]| {
        let mix = Mix::parse(&["2*a".into(), "b [1]".into()]).expect("calls");
        let mut document = Document::new("calls");
        report::describe(&mix, &[Mode::Sequential], &bodies.map(outcome), has_rate, &mut document);
        crate::report::markdown(&[document])
    };
    let report = |bodies| report_at(false, bodies);
    const UNEQUAL: &str = "| the work was unequal |";
    const ERROR: &str = r#"{"code":-32601,"message":"no such method"}"#;
    assert!(report([ERROR, "7"]).contains(UNEQUAL));
    assert!(!report([ERROR, ERROR]).contains(UNEQUAL));
    // At a rate that both keep up with, their latencies are compared.
    let at_a_rate = report_at(true, ["8", "7"]);
    assert!(at_a_rate.contains("| latency p99 |") && !at_a_rate.contains("| time a call |"));
    assert!(report(["null", "7"]).contains(UNEQUAL));
    assert!(!report(["null", "null"]).contains(UNEQUAL));
    assert!(!report(["8", "7"]).contains(UNEQUAL));
}

fn at_a_hundred_a_second(millis: u64) -> Plan {
    let duration = Duration::from_millis(millis);
    Plan { duration, calls: None, max_rate: Some(100.0), ..plan(Mode::Sequential, 0) }
}

#[test]
fn at_a_rate_calls_that_a_lost_server_kept_from_being_sent_have_waited_too() {
    let target = odd_server(Wire::Http, |_, _, _| false);
    let tally = run(&target, &at_a_hundred_a_second(2_500));
    assert_eq!((tally.given_up, tally.count(Failure::Closed)), (1, 10));
    assert!((230..=240).contains(&tally.unsent), "{}", tally.unsent);
    assert_eq!(tally.latency().count(), tally.unsent);
}

#[test]
fn at_a_rate_what_was_not_sent_has_waited_too() {
    // It never answers: of 50 calls that are due half have waited for more than a quarter of it.
    let target = odd_server(Wire::Http, |number, text, out| {
        if number > 0 {
            std::thread::sleep(Duration::from_secs(1));
        }
        out.extend(good(text));
        true
    });
    let tally = run(&target, &at_a_hundred_a_second(500));
    assert!((40..=49).contains(&tally.unsent), "{}", tally.unsent);
    let latency = tally.latency();
    assert_eq!(latency.count(), tally.sent + tally.unsent);
    assert!(latency.percentile(0.5) > 200e6, "{}", latency.percentile(0.5));
}

#[test]
fn a_batch_goes_when_its_last_call_is_due() {
    let target = odd_server(Wire::Http, |_, text, out| {
        let answers: Vec<_> = ids(text).iter().map(|id| result(id)).collect();
        out.extend(http("200 OK", "", &format!("[{}]", answers.join(","))));
        true
    });
    let plan = Plan {
        duration: Duration::from_millis(450),
        calls: None,
        max_rate: Some(20.0),
        ..plan(Mode::Batched, 0)
    };
    // Nine calls are due, and four go at a time.
    let tally = run(&target, &plan);
    assert_eq!((tally.sent, tally.unsent), (8, 0));
}

/// While one connection is opened, the calls of others go on.
#[test]
fn who_connects_again_keeps_nobody_waiting() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("it has an address");
    std::thread::spawn(move || {
        for (number, accepted) in (0..).zip(listener.incoming()) {
            std::thread::spawn(move || {
                // From the third one on, it takes its time to become a WebSocket.
                if number >= 2 {
                    std::thread::sleep(Duration::from_millis(400));
                }
                let odd = move |at: usize, text: &str, out: &mut Vec<u8>| {
                    out.extend(result(&ids(text)[0]).bytes());
                    number != 0 || at < 3
                };
                converse(Stream::Tcp(accepted?), Wire::WebSocket, &odd)
            });
        }
    });
    let target = Target::parse(&format!("ws://{address}"), &[], None, None).expect("an address");
    let plan = Plan {
        connections: 2,
        duration: Duration::from_millis(600),
        calls: None,
        ..plan(Mode::Sequential, 0)
    };
    let slowest = run(&target, &plan).latency().max();
    assert!(slowest < 200e6, "{slowest}");
}

#[test]
fn a_caller_waits_connects_again_and_gives_up_on_a_refusal_alone() {
    let limits = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let seen = Arc::clone(&limits);
    let target = odd_server(Wire::Http, move |_, text, out| {
        let count = seen.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        let refusal = r#"{"id":1,"error":{"code":-32601,"message":"no such method"}}"#;
        match count {
            0 => return false,
            1 => out.extend(http("429 Too Many", "Retry-After: 1\r\n", "")),
            2 => out.extend(http("200 OK", "", r#"{"id":1,"result":7}"#)),
            _ if text.contains("forbidden") => out.extend(http("403 Forbidden", "", "no")),
            _ => out.extend(http("200 OK", "", refusal)),
        }
        true
    });
    let mut caller = Caller::on(target, Duration::from_secs(20), Duration::ZERO);
    let start = Instant::now();
    assert_eq!(caller.call("a", "[]").expect("a result").get(), "7");
    assert!(start.elapsed() >= Duration::from_secs(1));
    for (method, words) in [("unknown", "no such method"), ("forbidden", "HTTP 403")] {
        let error = caller.call(method, "[]").expect_err("a refusal");
        assert_eq!(crate::fault::Fault::of(&error), Some(crate::fault::Fault::Refusing));
        assert!(format!("{error:#}").contains(words), "{error:#}");
    }
    assert_eq!(limits.load(std::sync::atomic::Ordering::SeqCst), 5);
}

#[test]
fn calls_over_tls_are_answered_as_those_without() {
    let odd = |_: usize, text: &str, out: &mut Vec<u8>| {
        let answers: Vec<_> = ids(text).iter().map(|id| result(id)).collect();
        let body = match text.starts_with('[') {
            true => format!("[{}]", answers.join(",")),
            false => answers[0].clone(),
        };
        out.extend(body.bytes());
        true
    };
    let http = move |number: usize, text: &str, out: &mut Vec<u8>| {
        let mut body = Vec::new();
        odd(number, text, &mut body);
        out.extend(self::http("200 OK", "", &String::from_utf8_lossy(&body)));
        true
    };
    for wire in [Wire::Http, Wire::WebSocket] {
        let targets = match wire {
            Wire::Http => [odd_server(wire, http), secure_server(wire, "localhost.pem", http)],
            _ => [odd_server(wire, odd), secure_server(wire, "localhost.pem", odd)],
        };
        assert!(targets[1].to_string().starts_with(&format!("{}s://", wire.name())));
        for mode in Mode::ALL {
            // Batches of megabytes go out in parts.
            let many = if mode == Mode::Batched { 60_000 } else { 3_000 };
            for (connections, depth, calls) in [(1, 4, 500), (3, 20_000, many)] {
                let plan = Plan { connections, depth, ..plan(mode, calls) };
                let [plain, secure] =
                    targets.each_ref().map(|target| check(target, &plan, calls, &[]));
                assert_eq!(plain.received_bytes, secure.received_bytes, "{plan:?}");
            }
        }
    }
}

#[test]
fn a_server_that_is_not_trusted_is_asked_once() {
    for wire in [Wire::Http, Wire::WebSocket] {
        let target = secure_server(wire, "other.pem", |_, _, _| panic!("nothing is said to it"));
        let error = format!("{:#}", target.version().expect_err("not trusted"));
        assert!(error.contains("--cacert FILE names who did"), "{error}");
        let tally = check(&target, &plan(Mode::Sequential, 10), 0, &[(Failure::Connect, 10)]);
        assert_eq!((tally.given_up, tally.sent), (1, 0));
        // It would be for minutes if it were tried again.
        let mut caller = Caller::on(target, Duration::from_secs(20), Duration::ZERO);
        let error = format!("{:#}", caller.call("a", "[]").expect_err("not trusted"));
        assert!(error.contains("--cacert FILE names who did"), "{error}");

        let target = secure_server(wire, "localhost.pem", |_, text, out| {
            let answer = result(&ids(text)[0]);
            let is_http = text.contains("over http");
            out.extend(if is_http { http("200 OK", "", &answer) } else { answer.into() });
            true
        });
        let mut caller = Caller::on(target, Duration::from_secs(20), Duration::ZERO);
        let params = format!("[\"over {}\"]", wire.name());
        let answer = caller.call("a", &params).expect("a result");
        assert_eq!(answer.get(), r#"{"id":1,"error":"}"}"#);
    }
}
