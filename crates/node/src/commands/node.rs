//! `deponent node`.

use std::net::SocketAddr;
use std::path::Path;

use alloy_eips::eip8282::{BUILDER_DEPOSIT_CONTRACT_ADDRESS, BUILDER_EXIT_CONTRACT_ADDRESS};
use alloy_hardforks::EthereumHardfork;
use anyhow::Context;
use engine::Engine;
use state::{JournalMode, Options as DatabaseOptions};
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::node_args::{NetworkArgs, NodeArgs};
use super::signals::StopSignals;
use super::{genesis_of, stateless};
use crate::console::say;
use crate::{DiskFault, Node, NodeOptions, limits};

/// Reads the level of the log again, and returns it or why it stays.
pub(super) type ReloadLevel = fn() -> Result<String, String>;

/// Runs a node until SIGINT, SIGTERM or SIGHUP, or a fault of the disk. At SIGUSR1 it calls
/// `reload`. `given` are the flags of the command line.
pub(crate) fn run_node(
    mut args: NodeArgs,
    given: &[String],
    reload: ReloadLevel,
) -> anyhow::Result<()> {
    let memory = args.memory();
    if args.prints_limits() {
        say!("{}", memory.table());
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
    warn_of_network(&args.network);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_keep_alive(limits::THREAD_KEPT)
        .build()?;
    let outcome = match args.stateless.stateless {
        true => runtime.block_on(async {
            let user = signal(SignalKind::user_defined1())?;
            tokio::spawn(reload_at(user, reload));
            stateless::run(args, given).await
        }),
        false => run_with_state(args, reload, &runtime),
    };
    // Without waiting for the name of a host that is looked up: nothing ends that.
    runtime.shutdown_background();
    outcome
}

/// Runs a node on its data directory.
fn run_with_state(args: NodeArgs, reload: ReloadLevel, runtime: &Runtime) -> anyhow::Result<()> {
    let data_dir = args.datadir.as_deref().context("the option --datadir is missing")?;
    let jwt_shown =
        args.authrpc.authrpc_jwtsecret.clone().unwrap_or_else(|| data_dir.join("jwt.hex"));
    let options = node_options(args)?;
    runtime.block_on(async {
        let user = signal(SignalKind::user_defined1())?;
        tokio::spawn(reload_at(user, reload));
        run_until_stopped(options, &jwt_shown).await
    })
}

/// The options of a node whose data directory and WebSocket flags are checked.
fn node_options(args: NodeArgs) -> anyhow::Result<NodeOptions> {
    let memory = args.memory();
    let engine_options = args.engine_options(memory);
    let data_dir = args.datadir.clone().unwrap_or_default();
    let ports = args.ports(memory, Some(data_dir.join("deponent.ipc")));
    Ok(NodeOptions {
        genesis: genesis_of(args.chain.as_deref())?,
        data_dir,
        ports: ports.map_err(anyhow::Error::msg)?,
        http_page: args.public.http_page,
        jwt_file: args.authrpc.authrpc_jwtsecret,
        testing: args.authrpc.testing,
        slow_block: args.debug.slow_block.0,
        min_free_bytes: args.min_free_bytes,
        calls: args.rpc.calls(),
        txpool: args.txpool.options(memory),
        follow: args.follow.upstreams,
        follow_head: args.follow.head,
        dev: None,
        traces: args.metrics.traces().map_err(anyhow::Error::msg)?,
        database: DatabaseOptions {
            journal: if args.journal_sync { JournalMode::Sync } else { JournalMode::Write },
            ..args.storage.database()
        },
        engine_options,
    })
}

/// Says that from Amsterdam on no block can be valid, where the contracts are missing that each
/// block calls then.
fn warn_of_builder_contracts(engine: &Engine) {
    let Some(time) = engine.chain().fork_time(EthereumHardfork::Amsterdam) else { return };
    let Ok(state) = engine.state(engine.heads().head) else { return };
    let contracts = [
        ("builder deposits", BUILDER_DEPOSIT_CONTRACT_ADDRESS),
        ("builder exits", BUILDER_EXIT_CONTRACT_ADDRESS),
    ];
    for (contract, address) in contracts {
        if state.code(address).is_ok_and(|code| code.is_empty()) {
            tracing::warn!(
                contract, %address, amsterdam = time,
                "a system contract of Amsterdam (EIP-8282) is missing: unless it is deployed \
                 before, no block is valid from Amsterdam on. Add it to the genesis"
            );
        }
    }
}

/// Says once that flags of peer-to-peer networking do nothing.
fn warn_of_network(network: &NetworkArgs) {
    let flags = network.given();
    if !flags.is_empty() {
        let flags = flags.join(" ");
        tracing::warn!(
            flags,
            "these flags do nothing: there is no peer-to-peer network, and the consensus client \
             brings every block"
        );
    }
}

/// Runs a node until it is told to stop, or has to.
async fn run_until_stopped(options: NodeOptions, jwt_shown: &Path) -> anyhow::Result<()> {
    // The handlers come first, so that no signal is lost during the start.
    let mut signals = StopSignals::new()?;
    // A write past the limit of a file's size is an error then, and does not end the process.
    let _file_limit = signal(SignalKind::from_raw(FILE_SIZE_SIGNAL))?;
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

/// Changes the level of the log each time that the signal comes.
async fn reload_at(mut signal: Signal, reload: ReloadLevel) {
    while signal.recv().await.is_some() {
        match reload() {
            Ok(level) => tracing::info!(level, "SIGUSR1: the level of the log was read again"),
            Err(fault) => tracing::warn!(fault, "SIGUSR1: the level of the log stays"),
        }
    }
}

/// SIGXFSZ, as a number.
const FILE_SIZE_SIGNAL: i32 = rustix::process::Signal::XFSZ.as_raw();

/// The exit status of a node that a second signal ends.
const FORCED: i32 = 130;

/// Stops the node. The error says what is wrong with the disk, also where only the last writes show
/// it.
async fn stop(node: Node, fault: Option<DiskFault>) -> anyhow::Result<()> {
    let engine = node.engine().clone();
    node.stop().await;
    let last = engine.persist().map_err(|error| DiskFault::Write { reason: error.to_string() });
    let heads = engine.heads();
    match (&fault, &last) {
        (None, Ok(())) => {
            let number = engine.number(&heads.head).ok().flatten();
            tracing::info!(number, hash = %heads.head, "stopped, and all is persisted");
        }
        _ => tracing::error!("stopped, for a fault of the disk: what was called VALID is kept"),
    }
    fault.map_or(Ok(()), Err).and(last).map_err(anyhow::Error::from)
}

fn announce(node: &Node, jwt: &Path) {
    let (engine, http) = (node.engine_addr, node.http_addr);
    let (chain_id, first_hash) = (node.engine().chain().chain_id(), node.engine().heads().genesis);
    match node.engine().first_number() {
        0 => {
            tracing::info!(chain_id, genesis = %first_hash, "Deponent {}", crate::console::VERSION)
        }
        // The chain begins with the state of this block.
        first_block => tracing::info!(
            chain_id, first_block, %first_hash, "Deponent {}", crate::console::VERSION
        ),
    }
    let head = node.engine().heads().head;
    let number = node.engine().number(&head).ok().flatten();
    tracing::info!(number, %head, "chain opened");
    warn_of_builder_contracts(node.engine());
    tracing::info!(%engine, jwt = %jwt.display(), "Engine API");
    if node.offers_http {
        tracing::info!(%http, "public JSON-RPC");
    }
    if let Some(websocket) = node.websocket_addr {
        tracing::info!(%websocket, "public JSON-RPC over WebSocket");
    }
    if let Some(metrics) = node.metrics_addr {
        tracing::info!(%metrics, "metrics for Prometheus, at /metrics");
    }
    let is_open = |address: &SocketAddr| !address.ip().is_loopback();
    let public = node.offers_http.then_some(http).into_iter().chain(node.websocket_addr);
    if let Some(address) = public.into_iter().find(is_open) {
        tracing::warn!(
            %address,
            "the public port can be reached from other machines, and asks for no token: put a \
             firewall or a proxy in front of it, or leave --http.addr at 127.0.0.1"
        );
    }
    if let Some(ipc) = &node.ipc_path {
        tracing::info!(ipc = %ipc.display(), "all methods, on a Unix socket");
    }
}
