//! `deponent node --stateless`.

use std::path::Path;

use alloy_consensus::Header;
use anyhow::{Context, bail};
use execution::ChainSpec;
use files::read_genesis;

use super::node_args::NodeArgs;
use super::signals::StopSignals;
use super::stateless_args::StatelessArgs;
use crate::ports::given_secret;
use crate::verify::{NETWORKS, refuse_absent};
use crate::{StatelessNode, StatelessOptions, limits};

impl NodeArgs {
    /// Checks the flags that clap cannot.
    ///
    /// # Errors
    /// Says which flag is missing, or does not go with which other.
    pub(super) fn check_stateless(&self) -> Result<(), String> {
        let (node, StatelessArgs { stateless, witnesses, anchor }) = (self, &self.stateless);
        let alone =
            [("--witnesses", !witnesses.is_empty()), ("--stateless.anchor", anchor.is_some())];
        if !*stateless {
            let given = alone.iter().find(|(_, is_given)| *is_given);
            return given.map_or(Ok(()), |(flag, _)| Err(format!("{flag} is for --stateless")));
        }
        if node.datadir.is_some() {
            return Err("--stateless keeps no files: leave out --datadir".into());
        }
        if !node.follow.upstreams.is_empty() {
            let words = "--stateless fetches missing blocks from --witnesses: leave out --follow";
            return Err(words.into());
        }
        if node.journal_sync || node.authrpc.testing {
            let flag = if node.journal_sync { "--journal.sync" } else { "--testing" };
            return Err(format!("{flag} needs a state, and --stateless keeps none"));
        }
        let needed = [
            ("--witnesses SOURCES, where witnesses come from", !witnesses.is_empty()),
            ("--chain FILE, or the name of a public network", node.chain.is_some()),
            ("--authrpc.jwtsecret FILE", node.authrpc.authrpc_jwtsecret.is_some()),
        ];
        if let Some((what, _)) = needed.iter().find(|(_, is_given)| !is_given) {
            return Err(format!("--stateless needs {what}"));
        }
        let most = limits::STATELESS_SOURCES;
        if witnesses.len() > most {
            return Err(format!("--witnesses names more than {most} sources"));
        }
        Ok(())
    }
}

/// The beginnings of flags about what a node without a state does not have.
const WITHOUT_EFFECT: [&str; 10] = [
    "blobpool.",
    "builder.",
    "cache.",
    "datadir.",
    "debug.",
    "engine.",
    "history.",
    "otlp.",
    "txpool.",
    "witness.",
];

/// Says once which of the given flags have no effect.
fn warn_of(given: &[String]) {
    let is_idle = |flag: &&String| WITHOUT_EFFECT.iter().any(|start| flag.starts_with(start));
    let idle: Vec<_> = given.iter().filter(is_idle).map(|flag| format!("--{flag}")).collect();
    if !idle.is_empty() {
        let flags = idle.join(" ");
        tracing::warn!(flags, "these flags do nothing with --stateless");
    }
}

/// Runs a node without a state until a signal stops it. `given` are the flags of the command line.
pub(super) async fn run(args: NodeArgs, given: &[String]) -> anyhow::Result<()> {
    warn_of(given);
    // The handlers come first, so that no signal is lost during the start.
    let mut signals = StopSignals::new()?;
    let node = StatelessNode::start(options(args)?).await?;
    announce(&node);
    let name = signals.next().await;
    tracing::info!("{name}: stopping; a second signal ends the node at once");
    tokio::select! {
        () = node.stop() => Ok(()),
        name = signals.next() => bail!("{name}: ended at once"),
    }
}

/// The rules of `--chain`, and the first block where it is a genesis file.
fn chain_of(path: &Path) -> anyhow::Result<(ChainSpec, Option<Header>)> {
    let named = NETWORKS.iter().find(|(name, _)| path.as_os_str() == *name && !path.exists());
    if let Some((_, id)) = named {
        return Ok((ChainSpec::from_chain_id(*id)?, None));
    }
    refuse_absent(path)?;
    let genesis = read_genesis(path).context("--chain")?;
    let (chain, first) = StatelessOptions::of_genesis(&genesis).context("--chain")?;
    Ok((chain, Some(first)))
}

/// The options of a node whose flags are checked.
fn options(args: NodeArgs) -> anyhow::Result<StatelessOptions> {
    let ports = args.ports(args.port_memory(), None).map_err(anyhow::Error::msg)?;
    let (chain, genesis) = chain_of(&args.chain.context("the option --chain is missing")?)?;
    let jwt = given_secret(args.authrpc.authrpc_jwtsecret.as_deref())?;
    let jwt = jwt.context("the option --authrpc.jwtsecret is missing")?;
    Ok(StatelessOptions {
        genesis,
        anchor: args.stateless.anchor,
        ports,
        ..StatelessOptions::new(chain, args.stateless.witnesses, jwt)
    })
}

fn announce(node: &StatelessNode) {
    let (chain_id, sources) = (node.chain_id(), node.sources().collect::<Vec<_>>().join(","));
    tracing::info!(
        chain_id,
        sources,
        "Deponent {}, without a state: VALID is said of descendants of the anchor alone",
        crate::console::VERSION
    );
    let engine = node.engine_addr;
    tracing::info!(%engine, "Engine API");
    if let Some(http) = node.http_addr {
        tracing::info!(%http, "public JSON-RPC");
    }
    if let Some(websocket) = node.websocket_addr {
        tracing::info!(%websocket, "public JSON-RPC over WebSocket");
    }
    if let Some(metrics) = node.metrics_addr {
        tracing::info!(%metrics, "metrics for Prometheus, at /metrics");
    }
    if let Some(ipc) = &node.ipc_path {
        tracing::info!(ipc = %ipc.display(), "all methods, on a Unix socket");
    }
}
