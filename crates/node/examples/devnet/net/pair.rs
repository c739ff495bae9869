//! A beacon node of Prysm with the node of ours that executes for it, and its validators.

use std::fmt;
use std::net::{TcpListener, UdpSocket};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use alloy_primitives::{B256, U64};
use anyhow::{Context, bail, ensure};
use rpc::rest::{HeaderMap, Method, StatusCode};
use rpc::{Client, JwtSecret};
use serde_json::{Value, json};

use super::Options;
use super::chain::{CHAIN_ID, Chain, DEPOSITS, text};
use super::process::Program;

/// The time in which a program answers.
const PATIENCE: Duration = Duration::from_secs(5);
/// The folder of the node's chain.
const EXECUTION: &str = "execution";
/// The file of the secret that beacon node and node share.
const SECRET: &str = "jwt.hex";
/// The address that validators ask fees for.
const FEES: &str = "0x00000000000000000000000000000000000000fe";

/// Ports of 127.0.0.1 that were free. Nobody else is to get one while its program is away for
/// minutes, so they lie below those that the system gives to whoever asks for any, which begin at
/// 32,768.
#[derive(Debug)]
struct Ports {
    engine: u16,
    http: u16,
    /// Of the beacon node: for validators, for everybody, and for other beacon nodes.
    grpc: u16,
    rest: u16,
    peers: u16,
}

/// The ports among which such ones are looked for.
const OWN_PORTS: Range<u32> = 12_000..32_000;
/// Ports that this process has looked at.
static LOOKED_AT: AtomicU32 = AtomicU32::new(0);

/// A port that is free, and that no other process which looks in this way takes at the same time.
fn free_port() -> anyhow::Result<u16> {
    let count = OWN_PORTS.end - OWN_PORTS.start;
    let first = std::process::id().wrapping_mul(7919) % count;
    for _ in 0..count {
        let at = (first + LOOKED_AT.fetch_add(1, Ordering::Relaxed)) % count;
        let port = u16::try_from(OWN_PORTS.start + at)?;
        if TcpListener::bind(("127.0.0.1", port)).is_ok()
            && UdpSocket::bind(("127.0.0.1", port)).is_ok()
        {
            return Ok(port);
        }
    }
    bail!("no port from {} to {} is free", OWN_PORTS.start, OWN_PORTS.end)
}

impl Ports {
    fn find() -> anyhow::Result<Self> {
        Ok(Self {
            engine: free_port()?,
            http: free_port()?,
            grpc: free_port()?,
            rest: free_port()?,
            peers: free_port()?,
        })
    }
}

/// The three programs of a pair. Each keeps its files and ports over restarts.
#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) name: &'static str,
    chain: Chain,
    folder: PathBuf,
    ports: Ports,
    /// The indices of the validators' keys.
    keys: Range<u64>,
    pub(crate) node: Program,
    pub(crate) beacon: Program,
    pub(crate) validator: Program,
    /// Where the node has its witnesses from; it has a state where there is none.
    pub(crate) witnesses: Vec<String>,
    /// The beacon node of which a first start takes the finalized state.
    pub(crate) checkpoint: Option<String>,
    /// More arguments of the node, and of the beacon node.
    pub(crate) more: [Vec<String>; 2],
    /// Where other beacon nodes find this one, once it has run.
    pub(crate) address: Option<String>,
    /// The parts of the logs of beacon node and node in which each was without the other.
    absences: Vec<[Range<u64>; 2]>,
    /// Where such a part has begun.
    absent: Option<[u64; 2]>,
}

/// The state of a beacon node, in its own words.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Health {
    pub(crate) is_syncing: bool,
    pub(crate) is_optimistic: bool,
    pub(crate) is_execution_offline: bool,
}

impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { is_syncing, is_optimistic, is_execution_offline } = *self;
        let found = [
            (is_syncing, "syncing"),
            (is_optimistic, "optimistic"),
            (is_execution_offline, "without execution client"),
        ];
        let words: Vec<_> = found.into_iter().filter_map(|(is, word)| is.then_some(word)).collect();
        if words.is_empty() { f.write_str("well") } else { f.write_str(&words.join(", ")) }
    }
}

impl Health {
    pub(crate) const fn is_good(self) -> bool {
        !(self.is_syncing || self.is_optimistic || self.is_execution_offline)
    }
}

impl Pair {
    /// A pair that does not run yet. Its files are in a folder of its own, its logs in the
    /// network's.
    pub(crate) fn new(
        options: &Options,
        chain: &Chain,
        name: &'static str,
        keys: Range<u64>,
    ) -> anyhow::Result<Self> {
        let folder = options.files.join(name);
        std::fs::create_dir_all(&folder)?;
        JwtSecret::load_or_create(&folder.join(SECRET))?;
        let program =
            |of: &str, path: PathBuf| Program::new(format!("{of}-{name}"), path, &options.files);
        Ok(Self {
            name,
            chain: chain.clone(),
            node: program("node", options.program.clone()),
            beacon: program("beacon", options.prysm.join("beacon-chain")),
            validator: program("validator", options.prysm.join("validator")),
            folder,
            ports: Ports::find()?,
            keys,
            witnesses: Vec::new(),
            checkpoint: None,
            more: [Vec::new(), Vec::new()],
            address: None,
            absences: Vec::new(),
            absent: None,
        })
    }

    /// The address of the node's public port.
    pub(crate) fn http(&self) -> String {
        format!("127.0.0.1:{}", self.ports.http)
    }

    /// The address of the beacon node's REST port.
    pub(crate) fn rest(&self) -> String {
        format!("127.0.0.1:{}", self.ports.rest)
    }

    /// The node's Unix socket.
    pub(crate) fn socket(&self) -> anyhow::Result<String> {
        Ok(text(&self.folder.join(EXECUTION).join("deponent.ipc"))?.into())
    }

    /// Seconds of a slot.
    pub(crate) const fn slot_seconds(&self) -> u64 {
        self.chain.slot_seconds
    }

    /// Starts the node.
    pub(crate) fn start_node(&mut self) -> anyhow::Result<()> {
        let Ports { engine, http, .. } = self.ports;
        let mut arguments = if self.is_stateless() {
            vec![
                "node".into(),
                "--stateless".into(),
                "--witnesses".into(),
                self.witnesses.join(","),
            ]
        } else {
            let folder = self.folder.join(EXECUTION);
            vec!["node".into(), "--testing".into(), "--datadir".into(), text(&folder)?.into()]
        };
        arguments.push(format!("--chain={}", text(&self.chain.execution_genesis())?));
        arguments.push(format!("--authrpc.jwtsecret={}", text(&self.secret())?));
        arguments.extend([format!("--authrpc.port={engine}"), format!("--http.port={http}")]);
        arguments.extend(self.more[0].iter().cloned());
        self.node.start(&arguments)
    }

    /// Whether its node has no state.
    pub(crate) const fn is_stateless(&self) -> bool {
        !self.witnesses.is_empty()
    }

    /// Deletes the chain of a node that does not run.
    pub(crate) fn lose_chain(&self) -> anyhow::Result<()> {
        ensure!(!self.node.runs(), "{} runs", self.node.name);
        Ok(std::fs::remove_dir_all(self.folder.join(EXECUTION))?)
    }

    /// Has the beacon node, which does not run, begin at the finalized state of the one at `url`.
    pub(crate) fn begin_at_checkpoint(&mut self, url: String) -> anyhow::Result<()> {
        ensure!(!self.beacon.runs(), "{} runs", self.beacon.name);
        self.checkpoint = Some(url);
        // It has the genesis from the run in which it was given its name.
        Ok(std::fs::remove_dir_all(self.folder.join("beacon/beaconchaindata"))?)
    }

    /// Starts the beacon node, which looks for those at `peers`.
    pub(crate) fn start_beacon(&mut self, peers: &[String]) -> anyhow::Result<()> {
        let Ports { engine, grpc, rest, peers: own, .. } = self.ports;
        let mut arguments = words(&["--accept-terms-of-use", "--disable-monitoring"]);
        arguments.extend(words(&["--disable-quic", "--p2p-static-id"]));
        arguments.push("--subscribe-all-subnets".to_owned());
        arguments.extend(words(&["--supernode", "--log-format=json", "--min-sync-peers=1"]));
        arguments.extend(words(&["--minimum-peers-per-subnet=0", "--contract-deployment-block=0"]));
        arguments.extend(words(&["--p2p-local-ip=127.0.0.1", "--p2p-host-ip=127.0.0.1"]));
        arguments.extend(words(&["--rpc-host=127.0.0.1", "--http-host=127.0.0.1"]));
        arguments.extend([
            format!("--datadir={}", text(&self.folder.join("beacon"))?),
            format!("--chain-config-file={}", text(&self.chain.config())?),
            format!("--genesis-state={}", text(&self.chain.beacon_genesis())?),
            format!("--bootstrap-node={}", text(&self.chain.bootstrap())?),
            format!("--jwt-secret={}", text(&self.secret())?),
            format!("--execution-endpoint=http://127.0.0.1:{engine}"),
            format!("--deposit-contract={DEPOSITS}"),
            format!("--chain-id={CHAIN_ID}"),
            format!("--network-id={CHAIN_ID}"),
            format!("--suggested-fee-recipient={FEES}"),
            format!("--rpc-port={grpc}"),
            format!("--http-port={rest}"),
            format!("--p2p-tcp-port={own}"),
            format!("--p2p-udp-port={own}"),
        ]);
        arguments.extend(peers.iter().map(|peer| format!("--peer={peer}")));
        if self.is_stateless() {
            // Else it asks its node for the contents of old blocks, for its peers.
            arguments.push("--save-full-execution-payloads".to_owned());
        }
        arguments.extend(self.checkpoint.iter().map(|of| format!("--checkpoint-sync-url={of}")));
        arguments.extend(self.more[1].iter().cloned());
        self.beacon.start(&arguments)
    }

    pub(crate) fn start_validator(&mut self) -> anyhow::Result<()> {
        let Ports { grpc, rest, .. } = self.ports;
        let Range { start, end } = self.keys;
        let mut arguments = words(&["--accept-terms-of-use", "--disable-monitoring"]);
        arguments.extend([
            "--log-format=json".to_owned(),
            format!("--datadir={}", text(&self.folder.join("validator"))?),
            format!("--chain-config-file={}", text(&self.chain.config())?),
            format!("--beacon-rpc-provider=127.0.0.1:{grpc}"),
            format!("--beacon-rest-api-provider=http://127.0.0.1:{rest}"),
            format!("--interop-start-index={start}"),
            format!("--interop-num-validators={}", end - start),
            format!("--suggested-fee-recipient={FEES}"),
        ]);
        self.validator.start(&arguments)
    }

    fn secret(&self) -> PathBuf {
        self.folder.join(SECRET)
    }

    /// Fails if one of the programs has ended by itself.
    pub(crate) fn check(&mut self) -> anyhow::Result<()> {
        [&mut self.node, &mut self.beacon, &mut self.validator]
            .into_iter()
            .try_for_each(Program::check)
    }

    /// From now on beacon node and node are without each other: what they say of it is excused.
    pub(crate) fn begin_absence(&mut self) {
        let here = [self.beacon.position(), self.node.position()];
        self.absent.get_or_insert(here);
    }

    /// They have each other again.
    pub(crate) fn end_absence(&mut self) {
        if let Some([beacon, node]) = self.absent.take() {
            let here = [beacon..self.beacon.position(), node..self.node.position()];
            self.absences.push(here);
        }
    }

    /// The lines of the beacon node's log (0) or the node's (1), without those of absences.
    pub(crate) fn lines(&self, of: usize) -> Vec<String> {
        let program = if of == 0 { &self.beacon } else { &self.node };
        let log = program.words_from(0);
        let mut from = 0;
        let mut lines = Vec::new();
        for line in log.split_inclusive('\n') {
            let at = from as u64;
            from += line.len();
            if !self.absences.iter().any(|absence| absence[of].contains(&at)) {
                lines.push(line.trim_end().to_owned());
            }
        }
        lines
    }

    /// Asks the beacon node for a resource.
    pub(crate) async fn beacon_get(&self, path: &str) -> anyhow::Result<Value> {
        let mut client = Client::connect(&self.rest(), None).await?;
        client.set_timeout(PATIENCE);
        let reply = client.request(Method::GET, path, HeaderMap::new(), "").await?;
        let body = String::from_utf8_lossy(&reply.body);
        ensure!(reply.status == StatusCode::OK, "{} {path}: {} {body}", self.name, reply.status);
        Ok(serde_json::from_str(&body)?)
    }

    /// Calls a method on the node's public port.
    pub(crate) async fn call(&self, method: &str, params: Value) -> anyhow::Result<Value> {
        let mut client = Client::connect(&self.http(), None).await?;
        client.set_timeout(PATIENCE);
        client.call(method, params).await.with_context(|| format!("{} {method}", self.name))
    }

    /// Learns from its log where other beacon nodes find this one; whether it says so.
    pub(crate) fn learn_address(&mut self) -> bool {
        let log = self.beacon.words_from(0);
        let named = log.split("Running node with peer id of ").nth(1);
        let peer = named.and_then(|rest| rest.split_whitespace().next());
        self.address =
            peer.map(|peer| format!("/ip4/127.0.0.1/tcp/{}/p2p/{peer}", self.ports.peers));
        self.address.is_some()
    }

    pub(crate) async fn health(&self) -> anyhow::Result<Health> {
        let found = self.beacon_get("/eth/v1/node/syncing").await?;
        let is = |name: &str| found["data"][name].as_bool().with_context(|| format!("no {name}"));
        Ok(Health {
            is_syncing: is("is_syncing")?,
            is_optimistic: is("is_optimistic")?,
            is_execution_offline: is("el_offline")?,
        })
    }

    /// The finalized epoch.
    pub(crate) async fn finalized(&self) -> anyhow::Result<u64> {
        let path = "/eth/v1/beacon/states/head/finality_checkpoints";
        number(&self.beacon_get(path).await?["data"]["finalized"]["epoch"])
    }

    /// The slot of the beacon node's head, and the hash of the execution block in it.
    pub(crate) async fn beacon_head(&self) -> anyhow::Result<(u64, B256)> {
        let block = self.beacon_get("/eth/v2/beacon/blocks/head").await?;
        let block = &block["data"]["message"];
        let hash = block["body"]["execution_payload"]["block_hash"].clone();
        Ok((number(&block["slot"])?, serde_json::from_value(hash)?))
    }

    /// The oldest block that the node vouches for: its anchor, where it has no state.
    pub(crate) async fn oldest(&self) -> anyhow::Result<u64> {
        if !self.is_stateless() {
            return Ok(0);
        }
        let status = self.call("deponent_status", json!([])).await?;
        let number = status["anchor"]["number"].as_u64();
        number.with_context(|| format!("{} has no anchor: {status}", self.name))
    }

    /// The hash of a block by its number, `null` where there is none.
    pub(crate) async fn hash(&self, number: u64) -> anyhow::Result<Value> {
        let header = self.call("eth_getHeaderByNumber", json!([U64::from(number)])).await?;
        Ok(header["hash"].clone())
    }

    /// Number and hash of one of the node's blocks.
    pub(crate) async fn block(&self, tag: &str) -> anyhow::Result<(u64, B256)> {
        let block = self.call("eth_getBlockByNumber", json!([tag, false])).await?;
        let number: U64 = serde_json::from_value(block["number"].clone())?;
        Ok((number.to(), serde_json::from_value(block["hash"].clone())?))
    }
}

fn words(of: &[&str]) -> Vec<String> {
    of.iter().map(|word| (*word).to_owned()).collect()
}

/// A number as the API of beacon nodes writes it.
fn number(value: &Value) -> anyhow::Result<u64> {
    let text = value.as_str().with_context(|| format!("{value} is no number"))?;
    Ok(text.parse()?)
}

/// The programs of Prysm that a folder lacks.
pub(crate) fn missing_programs(prysm: &Path) -> Vec<&'static str> {
    let needed = ["beacon-chain", "validator", "prysmctl"];
    needed.into_iter().filter(|name| !prysm.join(name).is_file()).collect()
}
