//! `deponent follow`.

use anyhow::{Context as _, ensure};
use clap::Args;
use follow::HeadTag;

use super::node::{ReloadLevel, run_node};
use super::node_args::{NodeArgs, parse_upstream};
use crate::console::say;
use crate::upstream_chain::UpstreamChain;

const HEAD_HELP: &str = "The block of the first client of --rpc that answers which becomes the \
                         head: its latest, safe or finalized one. That client is trusted: blocks \
                         are validated, but which branch counts is its word [default: latest]";

/// The arguments of `deponent follow`.
#[derive(Debug, Args)]
#[command(
    // The upstream is often on the same machine, and has the usual ports.
    mut_arg("http_port", |arg| arg.default_value("8645")),
    mut_arg("authrpc_port", |arg| arg.default_value("8651")),
    mut_arg("head", |arg| arg.help(HEAD_HELP))
)]
pub(crate) struct FollowerArgs {
    /// The execution clients to follow, between commas, in the forms of --follow. The first one
    /// that answers is trusted with the head; missing blocks come from all of them.
    #[arg(long, value_name = "URLS", value_delimiter = ',', value_parser = parse_upstream,
          required = true, help_heading = "The chain to follow")]
    rpc: Vec<String>,
    #[command(flatten)]
    node: NodeArgs,
}

/// Runs a node that begins as the chain of an upstream does, and follows its head. `given` are the
/// flags of the command line.
pub(crate) fn run_follow(
    args: FollowerArgs,
    given: &[String],
    reload: ReloadLevel,
) -> anyhow::Result<()> {
    let FollowerArgs { rpc, mut node } = args;
    ensure!(
        !node.stateless.stateless,
        "--stateless needs a consensus client, and follows no head: run `deponent node` with it"
    );
    ensure!(
        node.follow.upstreams.is_empty(),
        "--rpc names the execution clients to follow, all of which give missing blocks: leave out \
         --follow, and add its URLs to --rpc"
    );
    let temporary = match node.datadir {
        Some(_) => None,
        None => Some(tempfile::tempdir().context("no temporary directory")?),
    };
    let directory = temporary.as_ref().map(|directory| directory.path().to_owned());
    let directory = node.datadir.get_or_insert(directory.unwrap_or_default()).clone();
    node.follow.head.get_or_insert(HeadTag::Latest);
    node.follow.upstreams.clone_from(&rpc);
    node.check().map_err(anyhow::Error::msg)?;
    if node.chain.is_none() && !node.prints_limits() && !directory.join("chain").exists() {
        let options = node.storage.database();
        UpstreamChain::ask(&rpc).context("--rpc")?.begin(&directory, &options)?;
    }
    if temporary.is_some() && !node.prints_limits() {
        say!("The chain is in {} until this ends; --datadir keeps one", directory.display());
    }
    run_node(node, given, reload)
}
