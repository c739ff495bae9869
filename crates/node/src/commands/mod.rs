//! The subcommands: `node`, and those that work on a data directory.

mod db;
mod dev;
mod dev_args;
mod export;
mod follow;
mod foreign_flags;
mod import;
mod init;
mod node;
mod node_args;
mod rpc_args;
mod signals;
mod stateless;
mod stateless_args;
mod status;
mod storage;
mod txpool_args;

use std::path::Path;

use alloy_primitives::B256;
use anyhow::{Context, bail};
use engine::Engine;
use files::read_genesis;

use crate::data_directory::{Retention, open_engine};
use crate::verify::NETWORKS;
use storage::StorageArgs;

pub(crate) use db::{DbArgs, db};
pub(crate) use dev::run_dev;
pub(crate) use dev_args::DevArgs;
pub(crate) use export::{ExportArgs, export};
pub(crate) use follow::{FollowerArgs, run_follow};
pub(crate) use foreign_flags::with_words;
pub(crate) use import::{ImportArgs, import};
pub(crate) use init::{InitArgs, init};
pub(crate) use node::run_node;
pub(crate) use node_args::{NodeArgs, flags_by_variable};
pub(crate) use status::{StatusArgs, status};

/// Reads the file of `--chain`, where it is given.
fn genesis_of(chain: Option<&Path>) -> anyhow::Result<Option<alloy_genesis::Genesis>> {
    chain.map_or(Ok(()), refuse_network)?;
    chain.map(read_genesis).transpose().context("--chain")
}

/// Opens the chain in a data directory, or begins it with the genesis in the file `chain`.
fn open(data_dir: &Path, chain: Option<&Path>, storage: &StorageArgs) -> anyhow::Result<Engine> {
    let genesis = genesis_of(chain)?;
    let options = |database: &_| Ok(storage.engine(Retention::noted(database)?));
    open_engine(data_dir, genesis.as_ref(), storage.database(), options)
}

/// Refuses the name of a public network where a file has to be: the genesis is not built in.
fn refuse_network(path: &Path) -> anyhow::Result<()> {
    // geth has no Holesky any more.
    let mut names = NETWORKS.iter().filter(|(name, _)| *name != "holesky");
    match names.find(|(name, _)| path.as_os_str() == *name && !path.exists()) {
        Some((name, _)) => bail!(
            "--chain names a genesis file, and there is no file {name}: `geth --{name} dumpgenesis \
             > genesis.json` writes that network's"
        ),
        None if !path.exists() => bail!(
            "--chain names a genesis file, and there is no file {}: `geth --sepolia dumpgenesis > \
             genesis.json` writes that of a public network",
            path.display()
        ),
        None => Ok(()),
    }
}

/// The number of a valid block.
fn number(engine: &Engine, hash: B256) -> anyhow::Result<u64> {
    let record = engine.block(hash)?.with_context(|| format!("block {hash} is unknown"))?;
    Ok(record.number())
}
