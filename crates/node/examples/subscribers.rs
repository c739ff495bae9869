//! The time of `engine_newPayload` with and without 100 subscribers to
//! `deponent_subscribeWitnesses`, one of whom never reads.
//!
//! `cargo run --release --example subscribers`. Turns of 20 blocks with and without subscribers
//! follow each other, so both have the same noise.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use alloy_rpc_types_engine::{ExecutionPayload, ExecutionPayloadSidecar, ForkchoiceState};
use anyhow::ensure;
use client::EngineClient;
use deponent_node::demo::World;
use deponent_node::{Node, NodeOptions};
use rpc::SessionClient;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::runtime::{Builder, Handle};

/// Subscribers.
const SUBSCRIBERS: usize = 100;
/// Blocks of a turn.
const BLOCKS: usize = 20;
/// Turns with subscribers, and as many without.
const TURNS: usize = 15;
/// Contracts whose code each block reads: a witness of 2.5 MB.
const CONTRACTS: usize = 100;
/// Pause before each block.
const PAUSE: Duration = Duration::from_millis(30);

/// A payload and what is sent beside it.
type Payload = (ExecutionPayload, ExecutionPayloadSidecar);

pub(crate) fn main() -> anyhow::Result<()> {
    let runtime = Builder::new_multi_thread().enable_all().build()?;
    // Subscribers are on other machines as a rule: here they take only what is left.
    let last = || {
        rustix::process::setpriority_process(Some(rustix::thread::gettid()), 19)
            .unwrap_or_default();
    };
    let elsewhere = Builder::new_multi_thread().enable_all().on_thread_start(last).build()?;
    runtime.block_on(measure(elsewhere.handle()))
}

async fn measure(elsewhere: &Handle) -> anyhow::Result<()> {
    let files = tempfile::tempdir()?;
    let mut world = World::new(CONTRACTS)?;
    let start = |name: &str| {
        let mut options = NodeOptions::new(world.genesis.clone(), files.path().join(name));
        options.ports.ipc = Some(files.path().join(format!("{name}.ipc")));
        Node::start(options)
    };
    let (maker, node) = (start("maker").await?, start("node").await?);
    let mut payloads = Vec::new();
    for _ in 0..2 * TURNS * BLOCKS {
        let payload = world.build(maker.engine(), CONTRACTS)?;
        let mut client = connect(&maker).await?;
        validate(&mut client, &payload).await?;
        payloads.push(payload);
    }
    maker.stop().await;

    let mut times = [Vec::new(), Vec::new()];
    let (mut client, mut told) = (connect(&node).await?, 0);
    for (turn, payloads) in payloads.chunks(BLOCKS).enumerate() {
        let arm = turn % 2;
        let crowd = match arm {
            0 => None,
            _ => Some(Crowd::start(&node, elsewhere).await?),
        };
        for payload in payloads {
            tokio::time::sleep(PAUSE).await;
            times[arm].push(validate(&mut client, payload).await?);
        }
        if let Some(crowd) = crowd {
            told += crowd.end(payloads.len()).await?;
        }
    }
    node.stop().await;
    println!("{told} announcements were read");
    println!("| newPayload | without, ms | with {SUBSCRIBERS} subscribers, ms | ratio |");
    println!("|---|--:|--:|--:|");
    times.iter_mut().for_each(|times| times.sort_unstable());
    for (name, part) in [("p50", 0.5), ("p99", 0.99)] {
        let at = |times: &Vec<Duration>| {
            times[((times.len() - 1) as f64 * part).round() as usize].as_secs_f64() * 1e3
        };
        let [without, with] = [at(&times[0]), at(&times[1])];
        println!("| {name} | {without:.2} | {with:.2} | {:.2} |", with / without);
    }
    Ok(())
}

async fn connect(node: &Node) -> anyhow::Result<EngineClient> {
    Ok(EngineClient::connect(&node.engine_addr.to_string(), Some(node.jwt.clone())).await?)
}

/// Sends a payload and makes it the head. Returns the time of the first.
async fn validate(client: &mut EngineClient, payload: &Payload) -> anyhow::Result<Duration> {
    let begun = Instant::now();
    let status = client.new_payload(&payload.0, &payload.1).await?;
    let took = begun.elapsed();
    ensure!(status.is_valid(), "a payload of ours is {status:?}");
    let head_block_hash = payload.0.block_hash();
    let state = ForkchoiceState { head_block_hash, ..ForkchoiceState::default() };
    client.forkchoice_updated(state, None).await?;
    Ok(took)
}

/// Subscribers, all but one of which read.
struct Crowd {
    read: Arc<AtomicUsize>,
    readers: Vec<tokio::task::JoinHandle<()>>,
    _stalled: UnixStream,
}

impl Crowd {
    const METHOD: &str = "deponent_subscribeWitnesses";

    async fn start(node: &Node, elsewhere: &Handle) -> anyhow::Result<Self> {
        let path = node.ipc_path.as_ref().expect("it listens");
        let mut stalled = UnixStream::connect(path).await?;
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": Self::METHOD, "params": []});
        stalled.write_all(format!("{call}\n").as_bytes()).await?;
        let read = Arc::new(AtomicUsize::new(0));
        let mut readers = Vec::new();
        for _ in 1..SUBSCRIBERS {
            let subscribed = elsewhere.spawn(Self::subscribe(node.http_addr, read.clone()));
            readers.push(subscribed.await??);
        }
        Ok(Self { read, readers, _stalled: stalled })
    }

    /// Reads announcements of blocks that became valid, until it is aborted.
    async fn subscribe(
        port: SocketAddr,
        read: Arc<AtomicUsize>,
    ) -> anyhow::Result<tokio::task::JoinHandle<()>> {
        let session = SessionClient::connect(&format!("ws://{port}"), None).await?;
        let mut told = session.subscribe::<Value>(Self::METHOD, json!([])).await?;
        Ok(tokio::spawn(async move {
            while let Ok(value) = told.next().await {
                read.fetch_add(usize::from(value["status"] == "valid"), Ordering::Relaxed);
            }
        }))
    }

    /// Waits until all have read of so many blocks. Returns how many announcements that were.
    async fn end(self, blocks: usize) -> anyhow::Result<usize> {
        let all = blocks * self.readers.len();
        let begun = Instant::now();
        while self.read.load(Ordering::Relaxed) < all {
            let read = self.read.load(Ordering::Relaxed);
            ensure!(begun.elapsed() < Duration::from_secs(10), "{read} of {all} were read");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        self.readers.iter().for_each(|reader| reader.abort());
        Ok(all)
    }
}
