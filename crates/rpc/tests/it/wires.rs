//! The same cases over each wire: clients that read nothing, read too slowly, or are gone.

use std::time::Duration;

use crate::support::{PATIENCE, Raw, Server, call, frame, post, upgrade};
use deponent_rpc::Limits;
use proptest::prelude::*;

const BRIEF: Duration = Duration::from_millis(50);

#[derive(Clone, Copy, Debug)]
enum Wire {
    Http,
    WebSocket,
    /// JSON-RPC alone, on a Unix socket.
    Bare,
}

const WIRES: [Wire; 3] = [Wire::Http, Wire::WebSocket, Wire::Bare];

impl Wire {
    fn connect(self, server: &Server) -> Raw {
        let mut raw = match self {
            Self::Http | Self::WebSocket => server.connect(),
            Self::Bare => server.connect_unix(),
        };
        if let Self::WebSocket = self {
            raw.send(upgrade(""));
            assert_eq!(raw.reply().status, 101);
        }
        raw
    }

    /// A message as it is sent.
    fn message(self, text: &str) -> Vec<u8> {
        match self {
            Self::Http => post("", text),
            Self::WebSocket => frame(0x81, text),
            Self::Bare => text.into(),
        }
    }
}

#[test]
fn a_client_that_does_not_read_is_cut_off() {
    for wire in WIRES {
        // Room for one answer: the second waits until the first connection is given up.
        let limits = Limits { write_idle: BRIEF, answers_bytes: 1 << 20, ..Limits::public() };
        let server = Server::start(None, limits);
        let mut stalled = wire.connect(&server);
        stalled.send(wire.message(&call("hex", "[50000000]")));
        stalled.until("0x");
        let mut other = wire.connect(&server);
        other.send(wire.message(&call("hex", "[100000]")));
        other.until("0x");
        assert!(stalled.rest().len() < 100_000_000, "{wire:?}");
    }
}

#[test]
fn who_reads_slowly_is_cut_off_when_others_have_no_room() {
    for wire in WIRES {
        let limits = Limits { room_time: BRIEF, answers_bytes: 1 << 20, ..Limits::public() };
        let server = Server::start(None, limits);
        let [mut stalled, mut other] = [(); 2].map(|()| wire.connect(&server));
        stalled.send(wire.message(&call("hex", "[20000000]")));
        stalled.until("0x");
        // No client is evicted for a small one, which has memory of its own.
        server.check_alive();
        other.send(wire.message(&call("hex", "[100000]")));
        other.until("0x");
        assert!(stalled.rest().len() < 40_000_000, "{wire:?}");
    }
}

#[test]
fn a_batch_ends_when_its_client_hangs_up() {
    for wire in WIRES {
        let server = Server::public();
        let mut raw = wire.connect(&server);
        raw.send(wire.message(&format!("[{0},{0},{0}]", call("wait", "[]"))));
        if let Wire::Bare = wire {
            // One that has asked everything still waits for its answers, as long as it is there.
            raw.finish();
        }
        server.began.recv_timeout(PATIENCE).expect("it runs");
        drop(raw);
        std::thread::sleep(10 * BRIEF);
        server.go.send(()).expect("it waits");
        server.check_alive();
        let second = server.began.recv_timeout(2 * BRIEF);
        assert!(second.is_err(), "{wire:?}: nobody waits for the second");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_bytes_are_survived(
        noise in prop::collection::vec(any::<u8>(), 0..500),
        valid in 0..120usize,
        bit in 0..960usize,
    ) {
        let server = Server::public();
        for wire in WIRES {
            let mut message = wire.message(&call("echo", "[]"));
            if let Some(byte) = message.get_mut(bit / 8) {
                *byte ^= 1 << (bit % 8);
            }
            message.truncate(valid);
            let mut raw = wire.connect(&server);
            raw.try_send([&message[..], &noise].concat());
            raw.finish();
            raw.rest();
            server.check_alive();
        }
    }
}
