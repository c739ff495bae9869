//! The command line.

use std::io::IsTerminal;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Parser, Subcommand};
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

use crate::demo::DemoArgs;
use crate::verify::VerifyArgs;
use crate::{Node, NodeOptions};

/// An Ethereum execution engine whose every validated block comes with its execution witness.
#[derive(Debug, Parser)]
#[command(name = "deponent", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a node: the Engine API on one port, the chain and its witnesses on another.
    Node(NodeArgs),
    /// Verify one block with its witness, and nothing else.
    Verify(VerifyArgs),
    /// Build and validate a chain on a temporary node, and measure how long its witnesses take.
    Demo(DemoArgs),
}

const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// The names are those of geth and reth.
#[derive(Debug, Args)]
struct NodeArgs {
    /// The chain: a genesis.json as geth reads it.
    #[arg(long, value_name = "FILE")]
    chain: PathBuf,
    /// The node's directory, made when absent. So far it holds the secret alone: the chain is
    /// kept in memory.
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
    /// The secret shared with the consensus client, 32 bytes in hex. Without it, jwt.hex in the
    /// data directory, made when absent.
    #[arg(long = "authrpc.jwtsecret", value_name = "FILE")]
    authrpc_jwtsecret: Option<PathBuf>,
    /// Offer testing_buildBlockV1 on the Engine API's port. Not for real networks.
    #[arg(long)]
    testing: bool,
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
    let outcome = match command {
        Command::Node(args) => run_node(args),
        Command::Verify(args) => crate::verify::run(&args),
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

fn run_node(args: NodeArgs) -> anyhow::Result<()> {
    // A panic is a broken invariant: nothing that the node says after it could be trusted.
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        report(panic);
        std::process::abort();
    }));
    let jwt_shown = args.authrpc_jwtsecret.clone().unwrap_or_else(|| args.datadir.join("jwt.hex"));
    let options = NodeOptions {
        genesis: read_genesis(&args.chain)?,
        data_dir: args.datadir,
        http: SocketAddr::new(args.http_addr, args.http_port),
        engine: SocketAddr::new(args.authrpc_addr, args.authrpc_port),
        jwt_file: args.authrpc_jwtsecret,
        testing: args.testing,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
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
    tracing::warn!("the chain is kept in memory: it starts from genesis, and ends with the node");
    tracing::info!(%engine, jwt = %jwt.display(), "Engine API");
    tracing::info!(%http, "public JSON-RPC");
}

/// Reads a geth-style `genesis.json`.
pub(crate) fn read_genesis(path: &Path) -> anyhow::Result<alloy_genesis::Genesis> {
    let text = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_slice(&text)
        .with_context(|| format!("{} is not a genesis.json", path.display()))
}
