//! The command line.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use engine::EngineOptions;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use state::Options as DatabaseOptions;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

use crate::commands::{self, DbArgs, ExportArgs, ImportArgs, InitArgs};
use crate::demo::DemoArgs;
use crate::node::Retention;
use crate::verify::VerifyArgs;
use crate::{Node, NodeOptions, limits};
use files::read_genesis;

/// An Ethereum execution engine whose every validated block comes with its execution witness.
#[derive(Debug, Parser)]
#[command(name = "deponent", version)]
#[command(
    after_help = "RUST_LOG says what is logged to the standard error: info when not set; debug, \
                        or engine=debug, say more."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant)] // there is one
enum Command {
    /// Run a node: the Engine API on one port, the chain and its witnesses on another.
    Node(NodeArgs),
    /// Verify one block with its witness, and nothing else.
    Verify(VerifyArgs),
    /// Begin a chain in a new data directory, from a genesis or from a state dump.
    Init(InitArgs),
    /// Validate the blocks of chain files, and make the last one the head. What is there already is
    /// passed over, so an import that was stopped goes on. The seal of proof of work is not
    /// checked, everything else is.
    Import(ImportArgs),
    /// Write blocks of the canonical chain into a file. An export that was stopped goes on.
    Export(ExportArgs),
    /// Look after a data directory. The node must not be running.
    Db(DbArgs),
    /// Measure execution clients over the wire, this one and others, side by side: starts the
    /// program deponent-bench, which is built with `cargo build --release -p deponent-bench`.
    #[command(disable_help_flag = true)]
    Bench {
        /// What it is given; `deponent bench help` lists its commands.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Build and validate a chain on a temporary node, and measure how long its witnesses take.
    Demo(DemoArgs),
}

const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// The names are those of geth and reth.
#[derive(Debug, Args)]
struct NodeArgs {
    /// The chain: a genesis.json as geth reads it. Not needed once the data directory has a chain.
    #[arg(long, value_name = "FILE")]
    chain: Option<PathBuf>,
    /// The node's directory: the chain, its state and its witnesses, and the secret. Made when
    /// absent.
    #[arg(long, value_name = "DIR")]
    datadir: PathBuf,
    /// Address of the public port.
    #[arg(long = "http.addr", value_name = "IP", default_value_t = LOCALHOST)]
    http_addr: IpAddr,
    /// The public port; 0 is any free one.
    #[arg(long = "http.port", value_name = "PORT", default_value_t = 8545)]
    http_port: u16,
    /// Address of the Engine API's port.
    #[arg(long = "authrpc.addr", value_name = "IP", default_value_t = LOCALHOST)]
    authrpc_addr: IpAddr,
    /// The Engine API's port; 0 is any free one.
    #[arg(long = "authrpc.port", value_name = "PORT", default_value_t = 8551)]
    authrpc_port: u16,
    /// The Unix socket on which the node listens too, with all methods of both ports and without
    /// tokens, for the user who runs it alone. Without it, deponent.ipc in the data directory.
    #[arg(long = "ipcpath", value_name = "FILE")]
    ipc_path: Option<PathBuf>,
    /// Listen on no Unix socket.
    #[arg(long = "ipcdisable", conflicts_with = "ipc_path")]
    ipc_disable: bool,
    /// Compress no answers, also for clients that ask for zstd.
    #[arg(long = "zstddisable")]
    zstd_disable: bool,
    /// The secret shared with the consensus client, 32 bytes in hex. Without it, jwt.hex in the
    /// data directory, made when absent.
    #[arg(long = "authrpc.jwtsecret", value_name = "FILE")]
    authrpc_jwtsecret: Option<PathBuf>,
    /// Offer testing_buildBlockV1 on the Engine API's port. Not for real networks.
    #[arg(long)]
    testing: bool,
    #[command(flatten)]
    storage: StorageArgs,
    /// Bytes of memory for the trie nodes of the newest blocks' witnesses; 0 is none.
    #[arg(long = "cache.witness-bytes", value_name = "BYTES", value_parser = parse_bytes,
          default_value_t = EngineOptions::default().witness_cache_bytes as u64)]
    witness_cache_bytes: u64,
    /// Blocks that may wait in memory before they are persisted.
    #[arg(long = "engine.persistence-threshold", value_name = "BLOCKS",
          default_value_t = EngineOptions::default().persistence_threshold)]
    persistence_threshold: usize,
    /// Bytes that may wait to be persisted; beyond them newPayload waits for the disk, and
    /// forkchoiceUpdated does not.
    #[arg(long = "engine.unpersisted-bytes", value_name = "BYTES", value_parser = parse_bytes,
          default_value_t = EngineOptions::default().unpersisted_bytes)]
    unpersisted_bytes: u64,
    /// Keys handed to a trie worker at a time.
    #[arg(long = "engine.multiproof-chunk-size", value_name = "KEYS",
          default_value_t = EngineOptions::default().multiproof_chunk_size,
          value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    multiproof_chunk_size: usize,
    /// Threads that run transactions ahead of their turn in blocks without an access list, on a
    /// guess that is checked: 7 from 16 cores on, 3 on 8, 1 on 4, and 0 below, where they would
    /// cost time.
    #[arg(long = "engine.ahead-threads", value_name = "THREADS",
          default_value_t = EngineOptions::default().ahead_threads)]
    ahead_threads: usize,
    /// Threads that tend the tries while a block runs; when not given, as many as there are cores
    /// besides the block's and those that run transactions ahead.
    #[arg(long = "engine.trie-workers", value_name = "THREADS")]
    trie_workers: Option<usize>,
}

/// What the commands on a data directory have in common.
#[derive(Debug, Args)]
pub(crate) struct StorageArgs {
    /// Bytes of memory for pages of the state; K, M and G are powers of 1024.
    #[arg(long = "cache.bytes", value_name = "BYTES", value_parser = parse_bytes,
          default_value_t = DatabaseOptions::default().cache_bytes)]
    cache_bytes: u64,
    /// Bytes of memory for what codes need to run, besides their files, and a quarter as many for
    /// codes as they are stored.
    #[arg(long = "cache.code-bytes", value_name = "BYTES", value_parser = parse_bytes,
          default_value_t = EngineOptions::default().code_cache_bytes as u64)]
    code_cache_bytes: u64,
    #[arg(long = "history.retain-blocks", value_name = "BLOCKS",
          help = of_the_node("Blocks before the head whose state is kept",
                             Retention::default().history))]
    retain_history: Option<u64>,
    #[arg(long = "witness.retain-blocks", value_name = "BLOCKS",
          help = of_the_node("Blocks whose witness is kept as a copy of its own, so that it \
                              outlives the state", Retention::default().witness_blocks))]
    retain_witness_blocks: Option<u64>,
    #[arg(long = "witness.retain-bytes", value_name = "BYTES", value_parser = parse_bytes,
          help = of_the_node("Bytes on disk of such copies, the newest kept",
                             Retention::default().witness_bytes))]
    retain_witness_bytes: Option<u64>,
}

/// What an option means of which the node's own value is known.
fn of_the_node(what: &str, default: u64) -> String {
    format!("{what} [default: {default}; other commands than node: what it was told last]")
}

impl StorageArgs {
    pub(crate) fn database(&self) -> DatabaseOptions {
        DatabaseOptions {
            cache_bytes: self.cache_bytes,
            code_cache_bytes: self.code_cache_bytes / 4,
            ..DatabaseOptions::default()
        }
    }

    /// The options of a command, where `kept` is what is kept unless something else was said.
    pub(crate) fn engine(&self, kept: Retention) -> EngineOptions {
        let options = EngineOptions {
            code_cache_bytes: self.code_cache_bytes as usize,
            // Nobody asks a command for a witness.
            witness_cache_bytes: 0,
            ..EngineOptions::default()
        };
        let kept = Retention {
            history: self.retain_history.unwrap_or(kept.history),
            witness_blocks: self.retain_witness_blocks.unwrap_or(kept.witness_blocks),
            witness_bytes: self.retain_witness_bytes.unwrap_or(kept.witness_bytes),
        };
        kept.apply(options)
    }
}

/// A number of bytes: digits, and perhaps K, M, G or T, powers of 1024.
fn parse_bytes(text: &str) -> Result<u64, String> {
    let (digits, shift) = match text.char_indices().last() {
        Some((at, 'K' | 'k')) => (&text[..at], 10),
        Some((at, 'M' | 'm')) => (&text[..at], 20),
        Some((at, 'G' | 'g')) => (&text[..at], 30),
        Some((at, 'T' | 't')) => (&text[..at], 40),
        _ => (text, 0),
    };
    let number: Option<u64> = digits.parse().ok();
    let bytes = number.and_then(|number| number.checked_mul(1 << shift));
    bytes.ok_or_else(|| "expected a number of bytes, such as 4096, 512M or 4G".into())
}

/// Runs the program with its process's arguments.
pub fn main() -> ExitCode {
    let Cli { command } = Cli::parse();
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
    raise_open_files();
    let outcome = match command {
        Command::Node(args) => run_node(args),
        Command::Verify(args) => crate::verify::run(&args),
        Command::Init(args) => commands::init(&args),
        Command::Import(args) => commands::import(&args),
        Command::Export(args) => commands::export(&args),
        Command::Db(args) => commands::db(&args),
        Command::Bench { arguments } => return crate::bench::run(&arguments),
        Command::Demo(args) => crate::demo::run(&args),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("deponent: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Lets the process open as many files and sockets as it may: a shell's default of 1024 is less
/// than a port has connections.
fn raise_open_files() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    // Some systems know a lower bound that they do not tell.
    if let Err(fault) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        tracing::debug!(%fault, ?current, ?maximum, "the limit of open files stays");
    }
}

fn run_node(args: NodeArgs) -> anyhow::Result<()> {
    // A panic is a broken invariant: nothing that the node says after it could be trusted.
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
        database: args.storage.database(),
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
        // Listening for signals first: one that comes while starting is not lost.
        let (mut interrupt, mut terminate) =
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        let node = tokio::select! {
            node = Node::start(options) => node?,
            _ = interrupt.recv() => return Ok(()),
            _ = terminate.recv() => return Ok(()),
        };
        announce(&node, &jwt_shown);
        tokio::select! {
            _ = interrupt.recv() => tracing::info!("SIGINT: stopping"),
            _ = terminate.recv() => tracing::info!("SIGTERM: stopping"),
        }
        node.stop().await;
        Ok(())
    })
}

fn announce(node: &Node, jwt: &Path) {
    let (engine, http) = (node.engine_addr, node.http_addr);
    let (chain_id, genesis) = (node.engine().chain().chain_id(), node.engine().heads().genesis);
    tracing::info!(chain_id, %genesis, "Deponent {}", env!("CARGO_PKG_VERSION"));
    let head = node.engine().heads().head;
    tracing::info!(%head, "chain opened");
    tracing::info!(%engine, jwt = %jwt.display(), "Engine API");
    tracing::info!(%http, "public JSON-RPC");
    if let Some(ipc) = &node.ipc_path {
        tracing::info!(ipc = %ipc.display(), "all of it, on a Unix socket");
    }
}
