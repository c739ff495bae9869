//! Many clients, and clients of ill will: the others are served, and nothing stays behind.

use std::io::{Read, Write};
use std::net::TcpStream;

use crate::support::{PATIENCE, Server, pattern, post};
use deponent_rpc::{Client, Limits};
use rand::rngs::StdRng;
use rand::{Rng, RngCore, SeedableRng};

/// Descriptors that this process, which has both ends, may open; what else it needs aside.
fn descriptors() -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).expect("up to the maximum");
    maximum.map_or(usize::MAX, |maximum| maximum as usize).saturating_sub(500)
}

#[test]
fn ten_thousand_idle_connections_are_in_nobodys_way() {
    let server = Server::public();
    let count = (descriptors() / 2).min(10_000);
    assert!(count >= 1000, "{count} connections are no crowd: raise the limit of open files");
    let connect = |_| TcpStream::connect(server.address).expect("somebody listens");
    let mut idle: Vec<_> = (0..count).map(connect).collect();
    // Some say a part of something.
    for socket in idle.iter_mut().step_by(10) {
        socket.write_all(b"POST / HTT").expect("sent");
    }
    server.check_alive();
    drop(idle);
    server.check_alive();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_small_calls_are_answered_beside_a_large_answer_that_nobody_reads() {
    let server = Server::public();
    let mut slow = server.connect();
    slow.post(r#"{"jsonrpc":"2.0","id":1,"method":"hex","params":[100000000]}"#);
    let address = server.address.to_string();
    let call = |number: u32| {
        let address = address.clone();
        async move {
            let mut client = Client::connect(&address, None).await.expect("connected");
            assert_eq!(
                client.call::<[u32; 1]>("echo", [number]).await.expect("answered"),
                [number]
            );
        }
    };
    let calls: Vec<_> = (0..1000).map(|number| tokio::spawn(call(number))).collect();
    for called in calls {
        tokio::time::timeout(PATIENCE, called).await.expect("in time").expect("no panic");
    }
    // It comes whole to who reads after all.
    let reply = tokio::task::spawn_blocking(move || slow.reply()).await.expect("no panic");
    assert_eq!(
        reply.body.len(),
        2 * 100_000_000 + r#"{"jsonrpc":"2.0","id":1,"result":"0x"}"#.len()
    );
}

/// Sends bytes, reads until the server ends the connection or says nothing for a while.
fn throw(server: &Server, bytes: &[u8]) {
    let mut socket = TcpStream::connect(server.address).expect("somebody listens");
    socket.set_read_timeout(Some(std::time::Duration::from_millis(1))).expect("set");
    // It may have ended the connection.
    socket.write_all(bytes).unwrap_or_default();
    socket.read(&mut [0; 4096]).map(drop).unwrap_or_default();
}

#[test]
fn whatever_bytes_come_the_next_client_is_served() {
    let mut random = StdRng::seed_from_u64(testing::seed());
    let server =
        Server::start(None, Limits { bodies_bytes: 16 << 20, sessions: 8, ..Limits::public() });
    let call = post("", r#"{"jsonrpc":"2.0","id":1,"method":"echo","params":[1,2]}"#);
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    let upgrade = crate::support::upgrade("").into_bytes();
    server.check_alive();
    let begun = server.threads();
    for round in 0..600 {
        let mut bytes = match round % 4 {
            0 => Vec::new(),
            1 => call.clone(),
            2 => preface.clone(),
            _ => upgrade.clone(),
        };
        if round % 2 == 1 {
            // Something that was right, cut and changed.
            bytes.truncate(random.random_range(0..=bytes.len()));
            if let Some(at) = (!bytes.is_empty()).then(|| random.random_range(0..bytes.len())) {
                bytes[at] = random.random();
            }
        }
        let mut noise = vec![0; random.random_range(0..200)];
        random.fill_bytes(&mut noise);
        bytes.extend(noise);
        throw(&server, &bytes);
    }
    server.check_alive();
    assert!(server.threads() <= begun + 40, "{begun} threads before, {} now", server.threads());
    assert_eq!(server.post(call_of_hex(5000)).body.len(), 10_000 + 38);
}

fn call_of_hex(length: usize) -> String {
    assert_eq!(pattern(length).len(), length);
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"hex","params":[{length}]}}"#)
}
