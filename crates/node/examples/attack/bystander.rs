//! A client of the public port that does nothing wrong, from an address of its own.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use alloy_primitives::Address;
use alloy_rpc_types_engine::ForkchoiceState;
use anyhow::{Context, ensure};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::Payload;
use crate::attacks::request_text;

/// The addresses of all attackers, and of the bystander. Programs that connect from 127.0.0.1 would
/// not be told apart.
pub(crate) const ATTACKER: [u8; 4] = [127, 0, 0, 3];
const BYSTANDER: [u8; 4] = [127, 0, 0, 2];
/// Between two calls.
const PAUSE: Duration = Duration::from_millis(25);
/// The time after which a call counts as unanswered.
const PATIENCE: Duration = Duration::from_secs(5);
/// Calls over one connection.
const CALLS: usize = 10;

/// A method that a node answers without a turn, and one that needs a turn.
const METHODS: [&str; 2] = ["eth_chainId", "eth_getCode"];

/// Makes both calls without end, each ten of them over another connection.
pub(crate) struct Bystander {
    ended: Arc<AtomicBool>,
    unanswered: Arc<AtomicUsize>,
    calls: [JoinHandle<Vec<Duration>>; 2],
}

impl Bystander {
    pub(crate) fn start(port: SocketAddr) -> Self {
        let (ended, unanswered) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
        let calls = METHODS.map(|method| {
            let params =
                if method == METHODS[0] { json!([]) } else { json!([Address::ZERO, "latest"]) };
            let call = request_text(method, &params);
            let (ended, unanswered) = (Arc::clone(&ended), Arc::clone(&unanswered));
            tokio::spawn(async move {
                let mut times = Vec::new();
                while !ended.load(Ordering::Relaxed) {
                    let answered = timeout(PATIENCE, converse(port, &call, &mut times)).await;
                    if !matches!(answered, Ok(Ok(()))) {
                        if unanswered.fetch_add(1, Ordering::Relaxed) == 0 {
                            eprintln!("the first call without an answer: {answered:?}");
                        }
                        times.push(PATIENCE);
                    }
                }
                times
            })
        });
        Self { ended, unanswered, calls }
    }

    /// The 99th percentiles of calls without and with a turn, and how many were not answered.
    pub(crate) async fn end(self) -> (Duration, Duration, usize) {
        self.ended.store(true, Ordering::Relaxed);
        let [quick, turn] = self.calls;
        let (quick, turn) = (p99(quick.await), p99(turn.await));
        (quick, turn, self.unanswered.load(Ordering::Relaxed))
    }
}

fn p99<E>(times: Result<Vec<Duration>, E>) -> Duration {
    let mut times = times.unwrap_or_default();
    times.sort();
    times
        .get((times.len() * 99 / 100).min(times.len().saturating_sub(1)))
        .copied()
        .unwrap_or(PATIENCE)
}

/// Calls over one connection; the first one's time has that of the connection in it.
async fn converse(port: SocketAddr, call: &str, times: &mut Vec<Duration>) -> anyhow::Result<()> {
    let mut begun = Instant::now();
    let mut stream = connect_from(BYSTANDER, port).await?;
    let request = request(call.len() as u64, call);
    for _ in 0..CALLS {
        stream.write_all(request.as_bytes()).await?;
        let answer = answer(&mut stream).await?;
        ensure!(answer.contains("\"result\""), "{answer}");
        times.push(begun.elapsed());
        tokio::time::sleep(PAUSE).await;
        begun = Instant::now();
    }
    Ok(())
}

/// A request over HTTP/1.1 that announces so many bytes.
pub(crate) fn request(announced: u64, body: &str) -> String {
    format!(
        "POST / HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n\
         content-length: {announced}\r\n\r\n{body}"
    )
}

/// A short answer over HTTP/1.1.
async fn answer(stream: &mut TcpStream) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    loop {
        ensure!(stream.read_buf(&mut bytes).await? > 0, "the connection ended");
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            ensure!(head.starts_with("HTTP/1.1 200"), "{head}");
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.context("no length")?.parse()? {
                return Ok(body.into());
            }
        }
    }
}

/// A connection from an address of the loopback network.
pub(crate) async fn connect_from(address: [u8; 4], port: SocketAddr) -> anyhow::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind((address, 0).into())?;
    let stream = socket.connect(port).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// The fork choice that makes a payload the head.
pub(crate) fn heads(payload: &Payload) -> ForkchoiceState {
    ForkchoiceState { head_block_hash: payload.0.block_hash(), ..ForkchoiceState::default() }
}
