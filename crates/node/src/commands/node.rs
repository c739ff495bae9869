//! `deponent node`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use engine::EngineOptions;
use files::read_genesis;
use rpc::AllowedOrigins;
use state::{JournalMode, Options as DatabaseOptions};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::storage::{StorageArgs, parse_bytes, with_default};
use crate::data_directory::Retention;
use crate::memory::DEFAULT_MEMORY;
use crate::{DiskFault, Node, NodeMemory, NodeOptions, limits};

const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// The arguments of `deponent node`; the names are those of geth and reth.
#[derive(Debug, Args)]
pub(crate) struct NodeArgs {
    /// The chain's rules and first block, a genesis.json in geth's form. Not needed once the data
    /// directory holds a chain.
    #[arg(long, value_name = "FILE")]
    chain: Option<PathBuf>,
    /// The data directory: chain, state, witnesses and secret. It is created if absent.
    #[arg(long, value_name = "DIR", required_unless_present = "print_limits")]
    datadir: Option<PathBuf>,
    /// The IP address on which the public JSON-RPC port listens.
    #[arg(long = "http.addr", value_name = "IP", value_parser = parse_ip,
          default_value_t = LOCALHOST)]
    http_addr: IpAddr,
    /// The public JSON-RPC port; 0 takes any free one.
    #[arg(long = "http.port", value_name = "PORT", default_value_t = 8545)]
    http_port: u16,
    /// Host names under which the public port may be called, between commas, besides IP addresses;
    /// * for any name.
    #[arg(
        long = "http.vhosts",
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "localhost"
    )]
    http_vhosts: Vec<String>,
    /// Web pages that may call the public port (CORS), between commas: https://NAME, NAME:PORT or
    /// NAME; * for any page.
    #[arg(long = "http.corsdomain", value_name = "PAGES", value_delimiter = ',')]
    http_corsdomain: Vec<String>,
    /// Web pages that may open a WebSocket to the public port, in the same forms.
    #[arg(long = "ws.origins", value_name = "PAGES", value_delimiter = ',')]
    ws_origins: Vec<String>,
    /// The IP address on which the Engine API's port listens.
    #[arg(long = "authrpc.addr", value_name = "IP", value_parser = parse_ip,
          default_value_t = LOCALHOST)]
    authrpc_addr: IpAddr,
    /// The Engine API's port; 0 takes any free one.
    #[arg(long = "authrpc.port", value_name = "PORT", default_value_t = 8551)]
    authrpc_port: u16,
    /// Host names under which the Engine API's port may be called, between commas, besides IP
    /// addresses; * for any name.
    #[arg(
        long = "authrpc.vhosts",
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "*"
    )]
    authrpc_vhosts: Vec<String>,
    /// The Unix socket that offers all methods of both ports, without tokens, to the user who runs
    /// the node [default: deponent.ipc in the data directory].
    #[arg(long = "ipcpath", value_name = "FILE")]
    ipc_path: Option<PathBuf>,
    /// Do not listen on a Unix socket.
    #[arg(long = "ipcdisable", conflicts_with = "ipc_path")]
    ipc_disable: bool,
    /// Never compress answers. Otherwise clients that accept zstd get it.
    #[arg(long = "zstddisable")]
    zstd_disable: bool,
    /// The file with the secret shared with the consensus client, 32 bytes in hex [default: jwt.hex
    /// in the data directory, created if absent].
    #[arg(long = "authrpc.jwtsecret", value_name = "FILE")]
    authrpc_jwtsecret: Option<PathBuf>,
    /// Offer testing_buildBlockV1 on the Engine API's port. Not for public networks.
    #[arg(long)]
    testing: bool,
    #[command(flatten)]
    storage: StorageArgs,
    #[arg(long = "cache.witness-bytes", value_name = "BYTES", value_parser = parse_bytes,
          help = with_default("Memory for the witnesses of the newest blocks, in bytes; 0 caches \
                               none", DEFAULT_MEMORY.witnesses))]
    witness_cache_bytes: Option<u64>,
    #[command(flatten)]
    memory: MemoryArgs,
    /// The number of blocks that may wait in memory before they are persisted.
    #[arg(long = "engine.persistence-threshold", value_name = "BLOCKS",
          default_value_t = EngineOptions::default().persistence_threshold)]
    persistence_threshold: usize,
    #[arg(long = "engine.unpersisted-bytes", value_name = "BYTES", value_parser = parse_bytes,
          help = with_default("The most bytes that may wait to be persisted. Beyond them \
                               newPayload waits for the disk; forkchoiceUpdated never does",
                              DEFAULT_MEMORY.unpersisted))]
    unpersisted_bytes: Option<u64>,
    /// Stop when the disk of the data directory has fewer free bytes, with exit status 74. Warn
    /// below twice as many. 0 never stops.
    #[arg(long = "datadir.min-free", value_name = "BYTES", value_parser = parse_bytes,
          default_value_t = limits::MIN_FREE_BYTES)]
    min_free_bytes: u64,
    /// Sync the journal before each VALID and each fork choice is answered, so that they outlast a
    /// power cut too. Without it they outlast the process, however it ends. It takes as long as the
    /// disk takes for a sync.
    #[arg(long = "journal.sync")]
    journal_sync: bool,
    /// The number of trie keys handed to a worker thread at a time.
    #[arg(long = "engine.multiproof-chunk-size", value_name = "KEYS",
          default_value_t = EngineOptions::default().multiproof_chunk_size,
          value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    multiproof_chunk_size: usize,
    /// The number of threads that run transactions speculatively in blocks without an access list.
    /// The default depends on the cores: 7 from 16 on, 3 on 8, 1 on 4, and 0 on fewer, where they
    /// would cost time.
    #[arg(long = "engine.ahead-threads", value_name = "THREADS",
          default_value_t = EngineOptions::default().ahead_threads)]
    ahead_threads: usize,
    /// The number of threads that load and update tries while a block runs [default: the cores
    /// besides the one that runs the block and those of --engine.ahead-threads].
    #[arg(long = "engine.trie-workers", value_name = "THREADS")]
    trie_workers: Option<usize>,
}

/// Memory of ports and caches together, and of each port.
#[derive(Debug, Args)]
struct MemoryArgs {
    /// Memory of the node, in bytes, from which all ports and caches have their parts that are not
    /// given: as much of it as they have of 8 GiB by default.
    #[arg(long = "memory", value_name = "BYTES", value_parser = parse_node_bytes)]
    total: Option<u64>,
    #[arg(long = "http.memory", value_name = "BYTES", value_parser = parse_port_bytes,
          help = with_default("Memory of all requests, answers and connections of the public \
                               port, in bytes, calls that run aside", DEFAULT_MEMORY.http))]
    http: Option<u64>,
    #[arg(long = "authrpc.memory", value_name = "BYTES", value_parser = parse_port_bytes,
          help = with_default("The same of the Engine API's port and the Unix socket together",
                              DEFAULT_MEMORY.authrpc))]
    authrpc: Option<u64>,
    /// Print the bounds of all memory that ports and caches may take with these options, and their
    /// sum, and exit.
    #[arg(long = "print-limits")]
    print_limits: bool,
}

/// Parses the memory of a port.
fn parse_port_bytes(text: &str) -> Result<u64, String> {
    at_least(limits::LEAST_PORT_BYTES, "a port", parse_bytes(text)?)
}

/// Parses the memory of a node.
fn parse_node_bytes(text: &str) -> Result<u64, String> {
    at_least(limits::LEAST_NODE_BYTES, "a node", parse_bytes(text)?)
}

fn at_least(least: u64, what: &str, bytes: u64) -> Result<u64, String> {
    match bytes >= least {
        true => Ok(bytes),
        false => Err(format!("{what} needs {} MiB at least", least >> 20)),
    }
}

impl NodeArgs {
    /// The options that were given, and else the parts of `--memory`.
    fn memory(&self) -> NodeMemory {
        let all = self.memory.total.map_or_else(NodeMemory::default, NodeMemory::of);
        NodeMemory {
            http: self.memory.http.unwrap_or(all.http),
            authrpc: self.memory.authrpc.unwrap_or(all.authrpc),
            pages: self.storage.cache_bytes.unwrap_or(all.pages),
            codes: self.storage.code_cache_bytes.unwrap_or(all.codes),
            witnesses: self.witness_cache_bytes.unwrap_or(all.witnesses),
            unpersisted: self.unpersisted_bytes.unwrap_or(all.unpersisted),
        }
    }

    fn engine_options(&self, memory: NodeMemory) -> EngineOptions {
        EngineOptions {
            persistence_threshold: self.persistence_threshold,
            unpersisted_bytes: memory.unpersisted,
            multiproof_chunk_size: self.multiproof_chunk_size,
            ahead_threads: self.ahead_threads,
            trie_workers: self.trie_workers,
            read_ahead_bytes: memory.pages,
            witness_cache_bytes: memory.witnesses as usize,
            ..self.storage.engine(Retention::default())
        }
    }
}

/// Runs a node until SIGINT, SIGTERM or SIGHUP, or a fault of the disk.
pub(crate) fn run_node(mut args: NodeArgs) -> anyhow::Result<()> {
    let memory = args.memory();
    if args.memory.print_limits {
        println!("{}", memory.table());
        return Ok(());
    }
    // The storage's part of it.
    args.storage.cache_bytes = Some(memory.pages);
    args.storage.code_cache_bytes = Some(memory.codes);
    // A panic is a broken invariant: no later answer could be trusted.
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        report(panic);
        std::process::abort();
    }));
    let engine_options = args.engine_options(memory);
    let data_dir = args.datadir.context("the option --datadir is missing")?;
    let jwt_shown = args.authrpc_jwtsecret.clone().unwrap_or_else(|| data_dir.join("jwt.hex"));
    let ipc = args.ipc_path.unwrap_or_else(|| data_dir.join("deponent.ipc"));
    let options = NodeOptions {
        ipc: (!args.ipc_disable).then_some(ipc),
        genesis: args.chain.as_deref().map(read_genesis).transpose()?,
        data_dir,
        http: SocketAddr::new(args.http_addr, args.http_port),
        engine: SocketAddr::new(args.authrpc_addr, args.authrpc_port),
        http_origins: AllowedOrigins {
            hosts: args.http_vhosts,
            http: args.http_corsdomain,
            websocket: args.ws_origins,
        },
        engine_origins: AllowedOrigins { hosts: args.authrpc_vhosts, ..AllowedOrigins::default() },
        jwt_file: args.authrpc_jwtsecret,
        zstd: !args.zstd_disable,
        testing: args.testing,
        min_free_bytes: args.min_free_bytes,
        memory,
        database: DatabaseOptions {
            journal: if args.journal_sync { JournalMode::Sync } else { JournalMode::Write },
            ..args.storage.database()
        },
        engine_options,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_keep_alive(limits::THREAD_KEPT)
        .build()?;
    runtime.block_on(run_until_stopped(options, &jwt_shown))
}

/// Runs a node until it is told to stop, or has to.
async fn run_until_stopped(options: NodeOptions, jwt_shown: &Path) -> anyhow::Result<()> {
    // The handlers come first, so that no signal is lost during the start.
    let mut signals = StopSignals::new()?;
    let node = tokio::select! {
        node = Node::start(options) => node?,
        _ = signals.next() => return Ok(()),
    };
    announce(&node, jwt_shown);
    let fault = tokio::select! {
        name = signals.next() => {
            tracing::info!("{name}: stopping; a second signal ends the node at once");
            None
        }
        fault = node.disk_fault() => {
            tracing::error!("stopping, for a fault of the disk");
            Some(fault)
        }
    };
    tokio::select! {
        stopped = stop(node, fault) => stopped,
        name = signals.next() => {
            tracing::warn!("{name}: ended at once; what was called VALID is in the journal");
            std::process::exit(FORCED)
        }
    }
}

/// The exit status of a node that a second signal ends.
const FORCED: i32 = 130;

/// The signals that stop a node.
struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl StopSignals {
    fn new() -> std::io::Result<Self> {
        let [interrupt, terminate, hangup] =
            [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()].map(signal);
        Ok(Self { interrupt: interrupt?, terminate: terminate?, hangup: hangup? })
    }

    /// Waits for the next one; its name.
    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.hangup.recv() => "SIGHUP",
        }
    }
}

/// An IP address; `localhost` is 127.0.0.1.
fn parse_ip(text: &str) -> Result<IpAddr, String> {
    match text {
        "localhost" => Ok(LOCALHOST),
        text => text.parse().map_err(|_| "not an IP address, nor localhost".to_owned()),
    }
}

/// Stops the node. The error says what is wrong with the disk, also where only the last writes show
/// it.
async fn stop(node: Node, fault: Option<DiskFault>) -> anyhow::Result<()> {
    let engine = node.engine().clone();
    node.stop().await;
    let last = engine.persist().map_err(|error| DiskFault::Write { reason: error.to_string() });
    fault.map_or(Ok(()), Err).and(last).map_err(anyhow::Error::from)
}

fn announce(node: &Node, jwt: &Path) {
    let (engine, http) = (node.engine_addr, node.http_addr);
    let (chain_id, genesis) = (node.engine().chain().chain_id(), node.engine().heads().genesis);
    tracing::info!(chain_id, %genesis, "Deponent {}", crate::console::VERSION);
    let head = node.engine().heads().head;
    tracing::info!(%head, "chain opened");
    tracing::info!(%engine, jwt = %jwt.display(), "Engine API");
    tracing::info!(%http, "public JSON-RPC");
    if !http.ip().is_loopback() {
        tracing::warn!(
            %http,
            "the public port can be reached from other machines, and asks for no token: put a \
             firewall or a proxy in front of it, or leave --http.addr at 127.0.0.1"
        );
    }
    if let Some(ipc) = &node.ipc_path {
        tracing::info!(ipc = %ipc.display(), "all methods, on a Unix socket");
    }
}
