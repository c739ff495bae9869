//! Small calls of many clients while one of them is sent a large witness, again and again.
//!
//! Each client has a connection of its own. All of them call at the same moment, and again once all
//! have their answers; a call takes from its first byte written to its last byte read.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use bytes::Bytes;
use rpc::JwtSecret;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::cells;
use crate::chain::format::{Ground, Payload};
use crate::clients::port::runtime;
use crate::clients::prepare;
use crate::measure::Sorted;
use crate::report::{Axis, Document, Lines, Table, Unit};
use crate::run::lane::{Lane, Wire};
use crate::run::plan::Contender;

/// Connections that are opened at a time: the rest would wait in the listener's queue.
const CONNECTING: usize = 100;

/// The parameters of a run.
pub(crate) struct Crowd<'a> {
    pub(crate) ground: &'a Ground,
    /// The block whose witness is sent.
    pub(crate) payload: &'a Payload,
    /// Clients that call at the same time.
    pub(crate) clients: usize,
    /// For how long they call, beside each contender.
    pub(crate) time: Duration,
    pub(crate) dir: &'a std::path::Path,
}

/// Calls beside nothing, then beside witnesses over each wire of one client, and fills a document.
pub(crate) fn run(
    crowd: &Crowd<'_>,
    contenders: &[Contender],
    document: &mut Document,
) -> anyhow::Result<()> {
    let first = contenders.first().context("a client has to be named")?;
    let work = prepare::working_folder(crowd.dir, "running")?;
    let data = work.join("crowd");
    prepare::place(&first.target, crowd.ground, crowd.dir, &data)?;
    let mut client = prepare::start(&first.target, crowd.ground, &data, true)?;
    client.engine.new_payload(crowd.payload, false)?;
    let mut table = Table::new("Small calls")
        .column("beside", Unit::Text)
        .column("calls", Unit::Count)
        .columns(Unit::Ms, ["p50", "p99", "most"])
        .column("large answers", Unit::Count)
        .column("median", Unit::Ms)
        .column("of the time", Unit::Percent);
    let mut chart = Lines::distribution("Small calls", Axis::new("a call", Unit::Ms));
    for contender in [None].into_iter().chain(contenders.iter().map(Some)) {
        let wire = contender.map_or(Wire::Verdict, |contender| contender.wire);
        let mut lane = Lane::open(wire, &client)?;
        let ready = lane.ready(crowd.payload)?;
        let (address, secret) = client.engine.endpoint();
        let (address, secret) = (address.to_owned(), secret.context("it has no secret")?);
        let (clients, time) = (crowd.clients, crowd.time);
        let begun = Instant::now();
        let calling = std::thread::spawn(move || call_all(clients, time, &address, &secret));
        let mut large = Vec::new();
        while contender.is_some() && !calling.is_finished() {
            let (timing, _witness) = lane.new_payload(&mut client, &ready, true)?;
            large.push(timing.whole);
        }
        let calls = calling.join().expect("a panic was printed")?;
        let share = large.iter().sum::<f64>() / begun.elapsed().as_secs_f64();
        let (calls, large) = (Sorted::new(calls), Sorted::new(large));
        let name = contender.map_or("nothing", |contender| &*contender.name);
        let times = [0.5, 0.99, 1.0].map(|share| calls.percentile(share).into());
        let own = cells![name, calls.len()].into_iter().chain(times);
        table.row(own.chain(cells![large.len(), large.median(), share]));
        chart.values(name, calls.values());
    }
    client.stop()?;
    std::fs::remove_dir_all(&work)?;
    document.text(format!(
        "eth_blockNumber of {} clients at the same moment, again and again, on the engine port, \
         while another client is sent the witness of block {} without a pause. Clients and node \
         are on the same machine.",
        crowd.clients, crowd.payload.number
    ));
    document.table(table).chart(chart);
    Ok(())
}

/// Calls with all clients for so long, and gives the seconds of each call.
fn call_all(
    clients: usize,
    time: Duration,
    address: &str,
    secret: &JwtSecret,
) -> anyhow::Result<Vec<f64>> {
    runtime()?.block_on(async {
        let mut idle = Vec::with_capacity(clients);
        while idle.len() < clients {
            let mut opening = JoinSet::new();
            for _ in 0..CONNECTING.min(clients - idle.len()) {
                opening.spawn(TcpStream::connect(address.to_owned()));
            }
            for opened in opening.join_all().await {
                let socket = opened?;
                socket.set_nodelay(true)?;
                idle.push(socket);
            }
        }
        let (begun, mut calls) = (Instant::now(), Vec::new());
        while begun.elapsed() < time {
            let request = request(address, secret);
            let mut calling = JoinSet::new();
            for socket in idle.drain(..) {
                calling.spawn(call(socket, request.clone()));
            }
            for called in calling.join_all().await {
                let (socket, seconds) = called?;
                idle.push(socket);
                calls.push(seconds);
            }
        }
        Ok(calls)
    })
}

fn request(host: &str, secret: &JwtSecret) -> Bytes {
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}"#;
    let (token, length) = (secret.token(), body.len());
    let request = format!(
        "POST / HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\n\
         authorization: Bearer {token}\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    request.into()
}

/// One call, and its seconds.
async fn call(mut socket: TcpStream, request: Bytes) -> anyhow::Result<(TcpStream, f64)> {
    let begun = Instant::now();
    socket.write_all(&request).await?;
    // Such an answer is short, and comes at once.
    let (mut answer, mut length) = ([0; 1024], 0);
    while !answer[..length].ends_with(b"}") {
        let count = socket.read(&mut answer[length..]).await?;
        ensure!(count > 0, "cut off after {:?}", String::from_utf8_lossy(&answer[..length]));
        length += count;
    }
    let seconds = begun.elapsed().as_secs_f64();
    let text = String::from_utf8_lossy(&answer[..length]);
    ensure!(text.contains(r#""result":"0x"#), "an answer of another kind: {text}");
    Ok((socket, seconds))
}
