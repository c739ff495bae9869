//! How fast witnesses are received and decoded here, whatever the server does.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::hex;
use anyhow::ensure;
use rpc::JwtSecret;

use super::connection::{Connection, Endpoint, Framing, Request};
use super::decode::{Memory, Timing};
use super::encode::{self, Items};
use crate::load::{NullServer, Says, Wire, thread_cpu};
use crate::random::Random;

/// Sizes of what is in a witness, about those of a real one.
const NODE_BYTES: u64 = 1_000;
const CODE_BYTES: u64 = 24_576;

/// What one witness took, at the median.
#[derive(Debug)]
pub(crate) struct Speed {
    pub(crate) encoding: &'static str,
    pub(crate) transport: &'static str,
    pub(crate) witness_bytes: usize,
    /// From the request until the items were there.
    pub(crate) wall: Duration,
    /// Processor time of the thread that received and decoded it.
    pub(crate) cpu: Duration,
}

/// Has a null server send a witness of this size over each transport, `count` times after one that
/// warms up.
pub(crate) fn receive_witnesses(bytes: usize, count: usize) -> anyhow::Result<Vec<Speed>> {
    let items = made_up(bytes);
    let witness_bytes = items.iter().flatten().map(Vec::len).sum();
    let digits = hex::encode_prefixed(encode::as_rlp(&items, false));
    let result = format!(r#"{{"status":"VALID","witness":"{digits}"}}"#);
    let json = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#);
    drop(result);
    drop(digits);
    let (json, ssz) = (Arc::new(json.into_bytes()), Arc::new(encode::as_ssz(&items, false)));
    let expected = items.each_ref().map(Vec::len);
    drop(items);
    let mut speeds = Vec::new();
    for (encoding, body, wires) in
        [("JSON", json, &Wire::ALL[..]), ("SSZ", ssz, &[Wire::Http, Wire::WebSocket][..])]
    {
        for wire in wires {
            let server = NullServer::start(*wire, Says::Body(Arc::clone(&body)))?;
            let mut memory = Memory::touched(bytes * 5 / 4);
            let mut taken = Vec::new();
            for _ in 0..=count {
                taken.push(receive(&server, *wire, encoding == "SSZ", &mut memory)?);
                let lists = &memory.lists;
                let got = [&lists.headers, &lists.codes, &lists.state].map(Vec::len);
                ensure!(got == expected, "{got:?} items came of {expected:?}");
            }
            taken.remove(0);
            let (mut walls, mut cpus): (Vec<_>, Vec<_>) = taken.into_iter().unzip();
            walls.sort_unstable();
            cpus.sort_unstable();
            let (wall, cpu) = (walls[count / 2], cpus[count / 2]);
            speeds.push(Speed { encoding, transport: wire.name(), witness_bytes, wall, cpu });
        }
    }
    Ok(speeds)
}

/// Receives one witness; the time and the processor time that it took.
fn receive(
    server: &NullServer,
    wire: Wire,
    is_ssz: bool,
    memory: &mut Memory,
) -> anyhow::Result<(Duration, Duration)> {
    let (address, secret) = (server.address().to_owned(), Some(JwtSecret::random()));
    let (framing, endpoint) = match wire {
        Wire::Http => (Framing::Http1, Endpoint::Tcp { address, secret }),
        Wire::WebSocket => (Framing::WebSocket, Endpoint::Tcp { address, secret }),
        Wire::Ipc => (Framing::Bare, Endpoint::Unix { path: PathBuf::from(address) }),
    };
    let mut connection = Connection::open(framing, &endpoint)?;
    let cpu = thread_cpu();
    let mut timing = Timing::start();
    connection.send(&Request { method: "POST", path: "/", headers: &[], body: b"{}" })?;
    let mut body = connection.body()?;
    if is_ssz {
        memory.read_ssz(&mut *body, &mut timing)?;
    } else {
        memory.read_json(&mut *body, &mut timing)?;
    }
    Ok((timing.whole, thread_cpu() - cpu))
}

/// Half of it nodes, half codes.
fn made_up(bytes: usize) -> Items {
    let mut random = Random::new(1);
    let mut list = |item_bytes: u64| {
        let (mut items, mut left) = (Vec::new(), bytes / 2);
        while left > 0 {
            let len = left.min(random.between(item_bytes / 2, item_bytes) as usize);
            items.push(random.bytes(len));
            left -= len;
        }
        items
    };
    [Vec::new(), list(CODE_BYTES), list(NODE_BYTES)]
}
