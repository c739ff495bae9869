//! Memory and time of a node without a state: over real blocks, and behind a node that makes a
//! chain. `docs/reports/stateless.md` has the figures.
//!
//! `cargo run --release -p deponent-node --example stateless -- PROGRAM FOLDER BLOCKS`: the program
//! `deponent`, a folder of files of blocks with their witnesses (`DEPONENT_FIXTURES/blocks`), and
//! how many blocks the chain has.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use alloy_consensus::Transaction as _;
use alloy_primitives::{B256, Bytes};
use alloy_rpc_types_engine::ExecutionPayload;
use anyhow::{Context, ensure};
use deponent_node::demo::World;
use deponent_node::{Node, NodeOptions};
use engine::Payload;
use engine_api::NewPayload;
use execution::{ChainSpec, decode_block, verify};
use rpc::Client;
use serde::Deserialize;
use serde_json::{Value, json};
use witness::Witness;

/// Contracts whose codes each block of the chain reads: a witness of 2.5 MB.
const CONTRACTS: usize = 100;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [program, folder, blocks] = &arguments[..] else {
        anyhow::bail!("give the program deponent, a folder of blocks, and a number of blocks");
    };
    real_blocks(Path::new(program), Path::new(folder)).await?;
    chain(Path::new(program), blocks.parse()?).await
}

/// A node without a state in a process of its own.
struct Follower {
    child: Child,
    client: Client,
    started: Duration,
    _directory: tempfile::TempDir,
}

impl Follower {
    async fn start(program: &Path, chain: &str, arguments: &[&str]) -> anyhow::Result<Self> {
        let directory = tempfile::tempdir()?;
        let place = |name: &str| directory.path().join(name);
        std::fs::write(place("jwt.hex"), "07".repeat(32))?;
        let begun = Instant::now();
        let child = Command::new(program)
            .args(["node", "--stateless", "--http=false", "--authrpc.port", "0", "--chain", chain])
            .arg("--authrpc.jwtsecret")
            .arg(place("jwt.hex"))
            .arg("--ipcpath")
            .arg(place("node.ipc"))
            .args(arguments)
            .stderr(Stdio::null())
            .spawn()?;
        let address = format!("unix:{}", place("node.ipc").display());
        let client = loop {
            match Client::connect(&address, None).await {
                Ok(client) => break client,
                Err(_) if begun.elapsed() < Duration::from_secs(20) => {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                Err(error) => return Err(error.into()),
            }
        };
        Ok(Self { child, client, started: begun.elapsed(), _directory: directory })
    }

    /// Sends a payload until it is VALID; how long that took.
    async fn judge(&mut self, call: &NewPayload) -> anyhow::Result<Duration> {
        let version = match call {
            NewPayload { parent_beacon_block_root: None, .. } => 2,
            NewPayload { execution_requests: None, .. } => 3,
            _ => 4,
        };
        let (begun, method) = (Instant::now(), format!("engine_newPayloadV{version}"));
        loop {
            let status: Value = self.client.call(&method, &call.to_json()?).await?;
            match status["status"].as_str() {
                Some("VALID") => return Ok(begun.elapsed()),
                Some("SYNCING") if begun.elapsed() < Duration::from_secs(60) => {}
                _ => anyhow::bail!("{status}"),
            }
        }
    }

    async fn choose(&mut self, head: B256) -> anyhow::Result<()> {
        let zero = B256::ZERO;
        let state =
            json!({"headBlockHash": head, "safeBlockHash": zero, "finalizedBlockHash": zero});
        let answer: Value =
            self.client.call("engine_forkchoiceUpdatedV3", json!([state, null])).await?;
        ensure!(answer["payloadStatus"]["status"] == "VALID", "{answer}");
        Ok(())
    }

    /// Megabytes that are resident now, and the most that were.
    fn resident(&self) -> anyhow::Result<[f64; 2]> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let kib = line.and_then(|rest| rest.split_whitespace().next());
            anyhow::Ok(kib.context("the field is there")?.parse::<f64>()? * 1024.0 / 1e6)
        };
        Ok([field("VmRSS:")?, field("VmHWM:")?])
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A file of a block with its witness.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RealBlock {
    name: String,
    chain_id: u64,
    block: Bytes,
    witness: Witness,
}

async fn real_blocks(program: &Path, folder: &Path) -> anyhow::Result<()> {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder)?.map(|file| Ok(file?.path())).collect::<anyhow::Result<_>>()?;
    files.sort();
    println!("| Block | Witness | Start | VALID after | Resident | At most |");
    println!("|---|--:|--:|--:|--:|--:|");
    for file in files {
        let real: RealBlock = serde_json::from_slice(&std::fs::read(&file)?)?;
        let (block, mut given) = (decode_block(&real.block)?, real.witness);
        given.sort_headers();
        let spec = ChainSpec::from_chain_id(real.chain_id)?;
        let verified = verify(&spec, &block, None, &given)?;
        let hashes =
            block.body.transactions.iter().filter_map(|tx| tx.blob_versioned_hashes()).flatten();
        let call = NewPayload {
            payload: ExecutionPayload::from_block_unchecked(block.hash(), &block).0,
            versioned_hashes: hashes.copied().collect(),
            parent_beacon_block_root: block.header.parent_beacon_block_root,
            execution_requests: block.header.requests_hash.map(|_| verified.requests.to_vec()),
        };
        let witnesses = tempfile::tempdir()?;
        std::fs::copy(&file, witnesses.path().join(format!("{}.json", block.hash())))?;
        let place = witnesses.path().display().to_string();
        let anchor = block.header.parent_hash.to_string();
        let names = [(1, "mainnet"), (11_155_111, "sepolia"), (560_048, "hoodi")];
        let name = names.iter().find(|(id, _)| *id == real.chain_id).context("a known chain")?.1;
        let arguments = ["--witnesses", &place, "--stateless.anchor", &anchor];
        let mut follower = Follower::start(program, name, &arguments).await?;
        let took = follower.judge(&call).await?;
        let [now, most] = follower.resident()?;
        println!(
            "| {} | {:.1} MB | {} ms | {} ms | {now:.0} MB | {most:.0} MB |",
            real.name,
            given.content_bytes() as f64 / 1e6,
            follower.started.as_millis(),
            took.as_millis(),
        );
    }
    Ok(())
}

async fn chain(program: &Path, blocks: usize) -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let mut world = World::new(CONTRACTS)?;
    let genesis = directory.path().join("genesis.json");
    std::fs::write(&genesis, serde_json::to_vec(&world.genesis)?)?;
    let data = directory.path().join("data");
    let node = Node::start(NodeOptions::new(world.genesis.clone(), data)).await?;
    let url = format!("ws://{}", node.http_addr);
    let genesis = genesis.display().to_string();
    let mut follower = Follower::start(program, &genesis, &["--witnesses", &url]).await?;
    follower.choose(node.engine().heads().head).await?;
    println!("\n| Blocks | VALID after, p50 | p99 | Resident | At most |\n|--:|--:|--:|--:|--:|");
    let mut times = Vec::new();
    for number in 1..=blocks {
        let (execution, sidecar) = world.build(node.engine(), CONTRACTS)?;
        let hash = execution.block_hash();
        let call = NewPayload::new(execution.clone(), &sidecar)?;
        node.engine().new_payload(Payload { execution, sidecar })?;
        times.push(follower.judge(&call).await?);
        let state = alloy_rpc_types_engine::ForkchoiceState {
            head_block_hash: hash,
            safe_block_hash: hash,
            finalized_block_hash: hash,
        };
        node.engine().forkchoice_updated(state, None)?;
        follower.choose(hash).await?;
        if number % (blocks / 10).max(1) == 0 {
            times.sort_unstable();
            let [now, most] = follower.resident()?;
            let at = |percent: usize| times[(times.len() - 1) * percent / 100].as_millis();
            println!("| {number} | {} ms | {} ms | {now:.0} MB | {most:.0} MB |", at(50), at(99));
            times.clear();
        }
    }
    node.stop().await;
    Ok(())
}
