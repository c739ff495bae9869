//! Small calls of many clients while one of them is sent large witnesses, again and again.
//!
//! Each client has a connection of its own. All of them call at the same moment, and again once all
//! have their answers; a call takes from its first byte written to its last byte read.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use rpc::JwtSecret;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::decode::Memory;
use super::osaka_time;
use super::payloads::Published;
use super::wires::named;
use crate::cells;
use crate::chain::format::Part;
use crate::clients::client::Program;
use crate::clients::prepare as sync;
use crate::measure::Sorted;
use crate::report::{Axis, Document, Lines, Table, Unit};

/// 99 of 100 calls beside a large answer take no longer than this, in milliseconds.
const P99_MS: f64 = 50.0;
/// Connections that are opened at a time: the rest would wait in the listener's queue.
const CONNECTING: usize = 100;

/// What a run does.
#[derive(Clone, Debug)]
pub struct CrowdOptions {
    /// Our node.
    pub program: Program,
    /// The witness's size in megabytes, for which there is a block labelled `w500`..
    pub size: u64,
    /// The transports over which the witness is sent.
    pub transports: Vec<String>,
    /// Clients that call at the same time.
    pub clients: usize,
    /// For how long they call, over each transport.
    pub time: Duration,
}

/// What became of the calls beside one transport.
struct Beside {
    name: String,
    /// Seconds, a call each.
    calls: Sorted,
    /// The large answers: seconds, each.
    large: Sorted,
    /// Which part of the time one of them was on its way.
    share: f64,
}

/// Runs it on a published chain in `published`, whose prepared directory is in `folder`, and
/// returns the report, which is written into `results` too.
pub fn crowd(
    options: &CrowdOptions,
    published: &Path,
    folder: &Path,
    results: &Path,
) -> anyhow::Result<Document> {
    let label = format!("w{}", options.size);
    let read = Published::read(published)?;
    let chain = read.chain(std::slice::from_ref(&label), folder)?;
    let payload = read.siblings(&label).next().context("it was there")?;
    let osaka_time = osaka_time(&chain)?;

    let work = sync::working_folder(folder)?;
    let data = work.join(options.program.kind.name());
    sync::copy_prepared(&sync::prepared(&options.program, &chain, folder)?, &data)?;
    let mut client = options.program.start_with_socket(&data, &chain.genesis())?;
    sync::catch_up(&mut client, &chain, Part::Empty)?;
    client.new_payload(payload, true)?;
    let (address, secret) = client.engine.endpoint();
    let secret = secret.context("the engine port has no secret")?;

    let mut rows = vec![];
    let mut memory = Memory::touched((2 * options.size as usize) << 20);
    for name in [None].into_iter().chain(options.transports.iter().map(Some)) {
        let mut transport =
            name.map(|name| named(name)?.open(&client, osaka_time, false)).transpose()?;
        if let Some(transport) = &mut transport {
            transport.call(payload, &mut memory)?;
        }
        let (address, secret) = (address.clone(), secret.clone());
        let (clients, time) = (options.clients, options.time);
        let begun = Instant::now();
        let calling = std::thread::spawn(move || call_all(clients, time, &address, &secret));
        let mut large = Vec::new();
        while let (Some(transport), false) = (&mut transport, calling.is_finished()) {
            large.push(transport.call(payload, &mut memory)?.whole.as_secs_f64());
        }
        let calls = calling.join().expect("a panic was printed")?;
        let elapsed = begun.elapsed().as_secs_f64();
        let name = name.map_or("nothing", String::as_str).to_owned();
        let share = large.iter().sum::<f64>() / elapsed;
        rows.push(Beside { name, calls: Sorted::new(calls), large: Sorted::new(large), share });
    }
    client.process.stop()?;
    std::fs::remove_dir_all(&work).or_else(sync::absent)?;
    let mut document = Document::new("A crowd beside a large answer");
    fill(&mut document, options, &rows);
    options.program.enter(options.program.kind.name(), true, &mut document)?;
    document.write(results)?;
    Ok(document)
}

/// Writes what was measured into a document.
fn fill(document: &mut Document, options: &CrowdOptions, rows: &[Beside]) {
    let CrowdOptions { size, clients, .. } = options;
    document.text(format!(
        "eth_blockNumber of {clients} clients at the same moment, again and again, on the engine \
         port, while another client is sent a witness of {size} MB without a pause. Clients and \
         node are on the same machine."
    ));
    let mut table = Table::new("Small calls")
        .column("beside", Unit::Text)
        .column("calls", Unit::Count)
        .column("p50", Unit::Ms)
        .column("p99", Unit::Ms)
        .column("most", Unit::Ms)
        .column("large answers", Unit::Count)
        .column("median", Unit::Ms)
        .column("of the time", Unit::Percent)
        .column(format!("p99 < {P99_MS}"), Unit::Text);
    let mut chart = Lines::distribution("Small calls", Axis::new("a call", Unit::Ms));
    for Beside { name, calls, large, share } in rows {
        let p99 = calls.percentile(0.99);
        table.row(cells![
            name.as_str(),
            calls.len(),
            calls.median(),
            p99,
            calls.max(),
            large.len(),
            large.median(),
            *share,
            p99 * 1e3 < P99_MS,
        ]);
        chart.values(name, calls.values());
    }
    document.table(table).chart(chart);
}

/// Calls with all clients for so long, and gives the seconds of each call.
fn call_all(
    clients: usize,
    time: Duration,
    address: &str,
    secret: &JwtSecret,
) -> anyhow::Result<Vec<f64>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
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

fn request(host: &str, secret: &JwtSecret) -> bytes::Bytes {
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}"#;
    let request = format!(
        "POST / HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\n\
         authorization: Bearer {}\r\ncontent-length: {}\r\n\r\n{body}",
        secret.token(),
        body.len()
    );
    request.into()
}

/// One call, and its seconds.
async fn call(mut socket: TcpStream, request: bytes::Bytes) -> anyhow::Result<(TcpStream, f64)> {
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
