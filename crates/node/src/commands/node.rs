//! `deponent node`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use clap::Args;
use engine::EngineOptions;
use files::read_genesis;
use state::{JournalMode, Options as DatabaseOptions};
use tokio::signal::unix::{SignalKind, signal};

use super::storage::{StorageArgs, parse_bytes};
use crate::data_directory::Retention;
use crate::{DiskFault, Node, NodeOptions, limits};

const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// The arguments of `deponent node`; the names are those of geth and reth.
#[derive(Debug, Args)]
pub(crate) struct NodeArgs {
    /// The chain's rules and first block, a genesis.json in geth's form. Not needed once the data
    /// directory holds a chain.
    #[arg(long, value_name = "FILE")]
    chain: Option<PathBuf>,
    /// The data directory: chain, state, witnesses and secret. It is created if absent.
    #[arg(long, value_name = "DIR")]
    datadir: PathBuf,
    /// The IP address on which the public JSON-RPC port listens.
    #[arg(long = "http.addr", value_name = "IP", value_parser = parse_ip,
          default_value_t = LOCALHOST)]
    http_addr: IpAddr,
    /// The public JSON-RPC port; 0 takes any free one.
    #[arg(long = "http.port", value_name = "PORT", default_value_t = 8545)]
    http_port: u16,
    /// The IP address on which the Engine API's port listens.
    #[arg(long = "authrpc.addr", value_name = "IP", value_parser = parse_ip,
          default_value_t = LOCALHOST)]
    authrpc_addr: IpAddr,
    /// The Engine API's port; 0 takes any free one.
    #[arg(long = "authrpc.port", value_name = "PORT", default_value_t = 8551)]
    authrpc_port: u16,
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
    /// Memory for the witnesses of the newest blocks, in bytes; 0 caches none.
    #[arg(long = "cache.witness-bytes", value_name = "BYTES", value_parser = parse_bytes,
          default_value_t = EngineOptions::default().witness_cache_bytes as u64)]
    witness_cache_bytes: u64,
    /// The number of blocks that may wait in memory before they are persisted.
    #[arg(long = "engine.persistence-threshold", value_name = "BLOCKS",
          default_value_t = EngineOptions::default().persistence_threshold)]
    persistence_threshold: usize,
    /// The most bytes that may wait to be persisted. Beyond them newPayload waits for the disk;
    /// forkchoiceUpdated never does.
    #[arg(long = "engine.unpersisted-bytes", value_name = "BYTES", value_parser = parse_bytes,
          default_value_t = EngineOptions::default().unpersisted_bytes)]
    unpersisted_bytes: u64,
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

/// Runs a node until SIGINT or SIGTERM, or a fault of the disk.
pub(crate) fn run_node(args: NodeArgs) -> anyhow::Result<()> {
    // A panic is a broken invariant: no later answer could be trusted.
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        report(panic);
        std::process::abort();
    }));
    let jwt_shown = args.authrpc_jwtsecret.clone().unwrap_or_else(|| args.datadir.join("jwt.hex"));
    let ipc = args.ipc_path.unwrap_or_else(|| args.datadir.join("deponent.ipc"));
    let options = NodeOptions {
        ipc: (!args.ipc_disable).then_some(ipc),
        genesis: args.chain.as_deref().map(read_genesis).transpose()?,
        data_dir: args.datadir,
        http: SocketAddr::new(args.http_addr, args.http_port),
        engine: SocketAddr::new(args.authrpc_addr, args.authrpc_port),
        jwt_file: args.authrpc_jwtsecret,
        zstd: !args.zstd_disable,
        testing: args.testing,
        min_free_bytes: args.min_free_bytes,
        database: DatabaseOptions {
            journal: if args.journal_sync { JournalMode::Sync } else { JournalMode::Write },
            ..args.storage.database()
        },
        engine_options: EngineOptions {
            persistence_threshold: args.persistence_threshold,
            unpersisted_bytes: args.unpersisted_bytes,
            multiproof_chunk_size: args.multiproof_chunk_size,
            ahead_threads: args.ahead_threads,
            trie_workers: args.trie_workers,
            read_ahead_bytes: args.storage.cache_bytes,
            witness_cache_bytes: args.witness_cache_bytes as usize,
            ..args.storage.engine(Retention::default())
        },
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_keep_alive(limits::THREAD_KEPT)
        .build()?;
    runtime.block_on(async {
        // The handlers come first, so that no signal is lost during the start.
        let (mut interrupt, mut terminate) =
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        let node = tokio::select! {
            node = Node::start(options) => node?,
            _ = interrupt.recv() => return Ok(()),
            _ = terminate.recv() => return Ok(()),
        };
        announce(&node, &jwt_shown);
        let fault = tokio::select! {
            _ = interrupt.recv() => {
                tracing::info!("SIGINT: stopping");
                None
            }
            _ = terminate.recv() => {
                tracing::info!("SIGTERM: stopping");
                None
            }
            fault = node.disk_fault() => {
                tracing::error!("stopping, for a fault of the disk");
                Some(fault)
            }
        };
        stop(node, fault).await
    })
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
