//! Flags that commands share.

use std::path::PathBuf;

use anyhow::{Context, ensure};
use clap::Args;

use crate::chain::world::{ChainKind, Fork, World};
use crate::clients::bounds::Bounds;
use crate::clients::target::{Target, Targets};
use crate::number::count;
use crate::report::results_folder;
use crate::run::lane::Wire;
use crate::run::plan::Contender;

/// The programs of the clients, and where they run.
#[derive(Clone, Debug, Args)]
pub(crate) struct Programs {
    /// Our node; otherwise beside this program, or on the path.
    #[arg(long, value_name = "FILE")]
    deponent: Option<PathBuf>,
    /// geth; otherwise on the path, or in ~/go/bin.
    #[arg(long, value_name = "FILE")]
    geth: Option<PathBuf>,
    /// reth; otherwise on the path.
    #[arg(long, value_name = "FILE")]
    reth: Option<PathBuf>,
    /// Further arguments for our node, separated by spaces.
    #[arg(long, value_name = "ARGS", default_value = "", allow_hyphen_values = true)]
    deponent_args: String,
    /// Further arguments for geth, separated by spaces.
    #[arg(long, value_name = "ARGS", default_value = "", allow_hyphen_values = true)]
    geth_args: String,
    /// Further arguments for reth, separated by spaces.
    #[arg(long, value_name = "ARGS", default_value = "", allow_hyphen_values = true)]
    reth_args: String,
    /// The most memory of our node, in MiB: needs writable cgroups of version 1.
    #[arg(long, value_name = "MIB")]
    deponent_memory: Option<u64>,
    /// The most that our node may read, and write and sync, in bytes a second each: needs writable
    /// cgroups of version 1.
    #[arg(long, value_name = "N")]
    deponent_disk_bytes: Option<u64>,
    /// Clients beside those that are known, or other settings of these: see targets.toml.
    #[arg(long, value_name = "FILE")]
    targets: Option<PathBuf>,
    /// Where chains, prepared clients and running copies are kept.
    #[arg(long, value_name = "DIR", default_value = "target/bench")]
    pub(crate) dir: PathBuf,
}

/// Who takes part, and where the results go.
#[derive(Clone, Debug, Args)]
pub(crate) struct ClientArgs {
    /// The clients, between commas, each with or without a way to have witnesses:
    /// geth,deponent,deponent+witness,deponent+ssz-unix. Ratios are to the first one.
    #[arg(long, aliases = ["target", "compare"], value_delimiter = ',', value_name = "LIST")]
    clients: Vec<String>,
    #[command(flatten)]
    pub(crate) programs: Programs,
    /// Clients whose prepared directories are thrown away: they import the state again.
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    pub(crate) reimport: Vec<String>,
    /// Where the report goes; otherwise a new folder below the directory.
    #[arg(long, value_name = "DIR")]
    results: Option<PathBuf>,
    /// Give verdicts though the machine is busy with something else.
    #[arg(long)]
    pub(crate) ignore_load: bool,
}

/// A chain that is generated.
#[derive(Clone, Debug, Args)]
pub(crate) struct WorldArgs {
    /// Sizes of the chain: full (5 M accounts, 20 M slots), mid (a tenth), mini.
    #[arg(long, default_value = "mid")]
    preset: String,
    /// The purpose of the blocks.
    #[arg(long, value_enum, default_value = "mainnet")]
    pub(crate) kind: ChainKind,
    /// The rules of the blocks.
    #[arg(long, value_enum, default_value = "osaka")]
    pub(crate) fork: Fork,
    /// Full blocks to measure on warm caches, instead of the preset's.
    #[arg(long, value_name = "N", value_parser = count::<u64>)]
    warm_blocks: Option<u64>,
    /// Millions of gas of a measured block, at least and at most, instead of the preset's.
    #[arg(long, num_args = 2, value_names = ["LOW", "HIGH"], value_parser = count::<u64>)]
    block_mgas: Option<Vec<u64>>,
    /// Branches that reorganizations leave behind, instead of the preset's.
    #[arg(long, value_name = "N", value_parser = count::<u64>)]
    reorgs: Option<u64>,
    /// Blocks of these branches, in turns, with transactions of their own: 1,8,64,512. Otherwise 1
    /// to 3 blocks (hostile: to 32) with the transactions of the branch that stays. Where one is
    /// longer than 32, the safe and the finalized block are further back in `state`. geth takes
    /// none of more than 127.
    #[arg(long, value_delimiter = ',', value_name = "N", value_parser = count::<u64>)]
    branches: Vec<u64>,
    /// The client that builds blocks which are not there yet: deponent or geth.
    #[arg(long, value_name = "NAME", default_value = "deponent")]
    pub(crate) builder: String,
}

/// geth keeps the changes of 128 blocks, and takes no branch from below.
const GETH_BRANCH: u64 = 127;

impl Programs {
    /// A client with these programs and arguments: a table of the targets.
    pub(crate) fn target(&self, name: &str) -> anyhow::Result<Target> {
        let mut target = Targets::read(self.targets.as_deref())?.target(name)?;
        let (file, arguments) = match &*target.table {
            "deponent" => (&self.deponent, &self.deponent_args),
            "geth" => (&self.geth, &self.geth_args),
            "reth" => (&self.reth, &self.reth_args),
            _ => return Ok(target),
        };
        if let Some(file) = file {
            ensure!(file.is_file(), "--{name} {} is no file", file.display());
            target = target.with_binary(file);
        }
        target.arguments.extend(arguments.split_whitespace().map(str::to_owned));
        if target.table == "deponent" {
            let memory_bytes = self.deponent_memory.map(|mib| mib << 20);
            target.bounds = Bounds { memory_bytes, disk_bytes: self.deponent_disk_bytes };
        }
        Ok(target)
    }

    /// A client whose program is there.
    pub(crate) fn needed(&self, name: &str) -> anyhow::Result<Target> {
        let target = self.target(name)?;
        ensure!(
            target.binary().is_some(),
            "no program of {name}: name it with --{name} FILE, or in a table of --targets FILE"
        );
        std::fs::create_dir_all(&self.dir)
            .with_context(|| format!("cannot make {}", self.dir.display()))?;
        Ok(target)
    }

    /// A client, and a wire to it: `name+wire`.
    fn contender(&self, name: &str) -> anyhow::Result<Contender> {
        let (table, wire) = match name.split_once('+') {
            Some((table, wire)) => (table, Wire::named(wire)?),
            None => (name, Wire::Verdict),
        };
        let target = self.target(table)?;
        ensure!(
            target.witness || matches!(wire, Wire::Verdict | Wire::Later),
            "{table} has no witnesses: leave out +, or set witness = true in its table"
        );
        ensure!(
            target.rest || !wire.is_rest(),
            "{table} has no Engine API over REST: leave out {name}, or set rest = true in its table"
        );
        Ok(Contender { name: name.into(), target, wire })
    }
}

impl ClientArgs {
    /// Those that are named, all of which have to be there; otherwise those of `usual` that are.
    pub(crate) fn contenders(&self, usual: &[&str]) -> anyhow::Result<Vec<Contender>> {
        let mut contenders: Vec<Contender> = Vec::new();
        for name in &self.clients {
            ensure!(
                contenders.iter().all(|other| other.name != *name),
                "{name} is there twice: give it a table"
            );
            let contender = self.programs.contender(name)?;
            self.programs.needed(&contender.target.name)?;
            contenders.push(contender);
        }
        if self.clients.is_empty() {
            for name in usual {
                let contender = self.programs.contender(name)?;
                match contender.target.binary() {
                    Some(_) => contenders.push(contender),
                    None => eprintln!("{name} is left out: there is no such program"),
                }
            }
        }
        ensure!(!contenders.is_empty(), "none of the clients has a program: --deponent FILE");
        Ok(contenders)
    }

    /// The clients without their wires.
    pub(crate) fn names(&self, usual: &[&str]) -> anyhow::Result<Vec<String>> {
        let contenders = self.contenders(usual)?;
        let mut names: Vec<String> = Vec::new();
        for contender in contenders {
            if !names.contains(&contender.target.name) {
                names.push(contender.target.name);
            }
        }
        Ok(names)
    }

    /// These clients over these wires.
    pub(crate) fn over(&self, names: &[(String, Vec<String>)]) -> anyhow::Result<Vec<Contender>> {
        let named = names.iter().flat_map(|(name, wires)| {
            wires.iter().map(move |wire| self.programs.contender(&format!("{name}+{wire}")))
        });
        named.collect()
    }

    /// The folder of the results: the given one, or a new one named after the time.
    pub(crate) fn results(&self) -> anyhow::Result<PathBuf> {
        results_folder(self.results.as_ref(), &self.programs.dir)
    }
}

impl WorldArgs {
    /// The sizes of the chain.
    pub(crate) fn world(&self) -> anyhow::Result<World> {
        ensure!(
            self.kind != ChainKind::WitnessSize,
            "chains of witness-size are run by `witness` and `transports`"
        );
        let mut world = World::preset(&self.preset).context("presets are full, mid and mini")?;
        (world.kind, world.fork) = (self.kind, self.fork);
        world.warm_blocks = self.warm_blocks.unwrap_or(world.warm_blocks);
        world.reorgs = self.reorgs.unwrap_or(world.reorgs);
        world.branches.clone_from(&self.branches);
        if let Some([low, high]) = self.block_mgas.as_deref() {
            ensure!(low <= high, "--block-mgas {low} {high}: the smaller one comes first");
            world.block_gas = [low, high].map(|mgas| mgas.saturating_mul(1_000_000));
        }
        self.check_branches(&self.builder)?;
        Ok(world)
    }

    /// Refuses branches that a client does not take.
    pub(crate) fn check_branches(&self, client: &str) -> anyhow::Result<()> {
        let longest = self.branches.iter().copied().max().unwrap_or_default();
        ensure!(
            client != "geth" || longest <= GETH_BRANCH,
            "geth takes no branch of {longest} blocks: give --branches of {GETH_BRANCH} at most, \
             or leave geth out of --clients and --builder"
        );
        Ok(())
    }
}
