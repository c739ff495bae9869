//! `deponent bench`: what the commands are given, and what they call.

use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::{Args, Subcommand};

use crate::clients::target::Targets;
use crate::load::{LoadArgs, OverheadArgs};
use crate::report::console;
use crate::saved::{self, ReportArgs};
use crate::transports::WitnessArgs;
use crate::{
    Chain, ChainKind, Codes, Contender, CrowdOptions, Fork, Kind, Options, Part, Program, Read,
    TransportOptions, WitnessSizes, World,
};

/// A command of `deponent bench`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make a chain: a large state, then full and empty blocks, or blocks with large witnesses.
    Generate(GenerateArgs),
    /// Make a payload file of the blocks of any JSON-RPC endpoint.
    Extract(crate::extract::Args),
    /// Raise the gas limit of a chain step by step, with empty blocks.
    GasRamp(crate::chain::reshape::RampArgs),
    /// Make large blocks of the transactions of several.
    Merge(crate::chain::reshape::MergeArgs),
    /// Run the chain on all clients, block by block, and report.
    State(StateArgs),
    /// Ask each client for witnesses of older blocks while it validates newer ones.
    Depths(DepthsArgs),
    /// Send blocks with witnesses of 17 to 500 MB over all transports, and report.
    Transports(TransportsArgs),
    /// Take witnesses with the block's verdict and after it: by size, transport and depth.
    Witness(WitnessArgs),
    /// Make small calls with many clients while one is sent large witnesses, and report.
    Crowd(CrowdArgs),
    /// Send payload files to one client, at a pace, with a flag of it at several values.
    Replay(crate::replay::Args),
    /// Send payload files to several clients, interleaved, and say which one was faster.
    Compare(crate::compare::Args),
    /// Write saved reports again, several on one page.
    Report(ReportArgs),
    /// Make many small JSON-RPC calls to any endpoints, and report.
    Rpc(LoadArgs),
    /// Measure what the instrument itself can do at most.
    Overhead(OverheadArgs),
}

/// What `generate` is given.
#[derive(Debug, Args)]
pub struct GenerateArgs {
    #[command(flatten)]
    common: Common,
    /// Sizes of the witnesses, in MB, of --kind witness-size.
    #[arg(long, value_delimiter = ',', value_name = "MB", default_value = "17,100,300,500")]
    sizes: Vec<u64>,
    /// What the codes in them are.
    #[arg(long, value_enum, default_value = "realistic")]
    codes: Codes,
    /// How they are read.
    #[arg(long, value_enum, default_value = "copy")]
    read: Read,
}

/// Which chain, where, and the programs.
#[derive(Debug, Args)]
pub struct Common {
    /// Sizes of the chain: full (5 M accounts, 20 M slots), mid (a tenth), mini.
    #[arg(long, default_value = "full")]
    preset: String,
    /// What the blocks are for.
    #[arg(long, value_enum, default_value = "mainnet")]
    kind: ChainKind,
    /// The rules of the blocks.
    #[arg(long, value_enum, default_value = "osaka")]
    fork: Fork,
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
    /// Where chains, prepared clients and running copies are kept.
    #[arg(long, value_name = "DIR", default_value = "target/bench")]
    pub(crate) dir: PathBuf,
    /// The client that builds blocks which are not there yet: deponent or geth.
    #[arg(long, default_value = "deponent")]
    builder: Contender,
    /// Our program; otherwise beside this one, or on the path.
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
}

/// What `state` is given.
#[derive(Debug, Args)]
pub struct StateArgs {
    #[command(flatten)]
    common: Common,
    /// Who runs; those without a program are left out.
    #[arg(long, value_delimiter = ',', default_value = "geth,reth,deponent,deponent+ssz-unix")]
    clients: Vec<Contender>,
    /// What runs: empty, warm, reorgs, cold.
    #[arg(long, value_delimiter = ',', default_value = "empty,warm,reorgs,cold")]
    parts: Vec<String>,
    /// Blocks measured of each part, at most.
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = count::<usize>)]
    blocks: usize,
    /// Blocks of the warm part that are fed before the measurement begins.
    #[arg(long, value_name = "N", default_value_t = 30)]
    warm_up: usize,
    /// Milliseconds that each client is left alone after a block.
    #[arg(long, value_name = "MS", default_value_t = 100)]
    pause: u64,
    /// Clients whose prepared directories are thrown away: they import the state again.
    #[arg(long, value_delimiter = ',', value_name = "CLIENTS")]
    reimport: Vec<Contender>,
    /// Let the other clients run during a client's turn.
    #[arg(long)]
    no_freeze: bool,
    /// Keep the system's cached files before the cold part: it is a restart alone then.
    #[arg(long)]
    keep_page_cache: bool,
    /// Ask for witnesses in half of the blocks alone: what they cost is then compared within one
    /// process, where two of the same program differ by more than that.
    #[arg(long)]
    alternate: bool,
    /// Follow each block of the reorgs, before its fork choice, by one that is invalid: the same
    /// with another state root. It is executed, and not timed. Not with --fork amsterdam.
    #[arg(long)]
    invalid: bool,
    /// Where the report goes; otherwise a new folder below the directory.
    #[arg(long, value_name = "DIR")]
    results: Option<PathBuf>,
}

/// What `depths` is given.
#[derive(Debug, Args)]
pub struct DepthsArgs {
    #[command(flatten)]
    common: Common,
    /// Who runs, one after the other; those without a program are left out.
    #[arg(long, value_delimiter = ',', default_value = "geth,deponent")]
    clients: Vec<Contender>,
    /// Blocks of the warm part, at most.
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = count::<usize>)]
    blocks: usize,
    /// Where the report goes; otherwise a new folder below the directory.
    #[arg(long, value_name = "DIR")]
    results: Option<PathBuf>,
}

/// What `transports` is given.
#[derive(Debug, Args)]
pub struct TransportsArgs {
    #[command(flatten)]
    common: Common,
    /// A chain of witness sizes: a folder that `generate --kind witness-size` made, or that has
    /// genesis.json and payloads.jsonl; otherwise the folder witness-chain in DEPONENT_FIXTURES.
    #[arg(long, value_name = "DIR")]
    chain: Option<PathBuf>,
    /// Who runs; those without a program are left out.
    #[arg(long, value_delimiter = ',', default_value = "geth,deponent")]
    clients: Vec<Contender>,
    /// Sizes of the witnesses, in MB, for which the chain has blocks.
    #[arg(long, value_delimiter = ',', default_value = "17,100,300,500")]
    #[arg(value_parser = count::<u64>)]
    sizes: Vec<u64>,
    /// Measured rounds of sizes below 200 MB, after one that warms up.
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = count::<usize>)]
    rounds: usize,
    /// Measured rounds of the other sizes.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = count::<usize>)]
    large_rounds: usize,
    /// Our transports; otherwise all.
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    transports: Vec<String>,
    /// The other clients' transports.
    #[arg(long, value_delimiter = ',', value_name = "NAMES", default_value = "json")]
    peer_transports: Vec<String>,
    /// Milliseconds that each client is left alone after a call.
    #[arg(long, value_name = "MS", default_value_t = 300)]
    pause: u64,
    /// Where the report goes; otherwise a new folder below the directory.
    #[arg(long, value_name = "DIR")]
    results: Option<PathBuf>,
}

/// What `crowd` is given.
#[derive(Debug, Args)]
pub struct CrowdArgs {
    #[command(flatten)]
    common: Common,
    /// The chain, as for `transports`.
    #[arg(long, value_name = "DIR")]
    chain: Option<PathBuf>,
    /// Size of the witness, in MB, for which the chain has a block.
    #[arg(long, default_value_t = 500, value_parser = count::<u64>)]
    size: u64,
    /// The transports over which it is sent.
    #[arg(long, value_delimiter = ',', value_name = "NAMES", default_value = "json,ssz,ssz-unix")]
    transports: Vec<String>,
    /// Clients that call at the same time.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = count::<usize>)]
    clients: usize,
    /// Seconds for which they call, over each transport.
    #[arg(long, value_name = "S", default_value_t = 20, value_parser = count::<u64>)]
    seconds: u64,
    /// Where the report goes; otherwise a new folder below the directory.
    #[arg(long, value_name = "DIR")]
    results: Option<PathBuf>,
}

/// Reads how many of something there are to be: one at least.
pub(crate) fn count<T: FromStr<Err: Display> + PartialOrd + From<u8>>(
    text: &str,
) -> Result<T, String> {
    match text.parse() {
        Ok(count) if count >= T::from(1) => Ok(count),
        Ok(_) => Err("it has to be 1 at least".into()),
        Err(error) => Err(error.to_string()),
    }
}

/// Runs a command, and prints its report.
///
/// # Errors
/// What was wrong, in words for the program's user.
pub fn run(command: &Command) -> anyhow::Result<()> {
    match command {
        Command::Generate(args) => args.run(),
        Command::Extract(args) => crate::extract::run(args),
        Command::GasRamp(args) => crate::chain::reshape::ramp(args),
        Command::Merge(args) => crate::chain::reshape::merge(args),
        Command::State(args) => state(args),
        Command::Depths(args) => depths(args),
        Command::Transports(args) => transports(args),
        Command::Witness(args) => crate::transports::run_witness(args),
        Command::Crowd(args) => crowd(args),
        Command::Replay(args) => crate::replay::run(args),
        Command::Compare(args) => crate::compare::run(args),
        Command::Report(args) => saved::run(args),
        Command::Rpc(args) => crate::load::load(args),
        Command::Overhead(args) => crate::load::overhead(args),
    }
}

impl GenerateArgs {
    fn run(&self) -> anyhow::Result<()> {
        let Self { common, .. } = self;
        if common.kind != ChainKind::WitnessSize {
            return generate(common).map(drop);
        }
        let (sizes, codes, read) = (self.sizes.clone(), self.codes, self.read);
        let world = WitnessSizes { seed: 1, fork: common.fork, sizes, codes, read };
        crate::generate_sizes(&world, &common.dir, &common.builder()?).map(drop)
    }
}

fn generate(common: &Common) -> anyhow::Result<Chain> {
    ensure!(common.kind != ChainKind::WitnessSize, "chains of witness-size are run by `witness`");
    let mut world = World::preset(&common.preset).context("presets are full, mid and mini")?;
    (world.kind, world.fork) = (common.kind, common.fork);
    world.warm_blocks = common.warm_blocks.unwrap_or(world.warm_blocks);
    world.reorgs = common.reorgs.unwrap_or(world.reorgs);
    world.branches.clone_from(&common.branches);
    if let Some([low, high]) = common.block_mgas.as_deref() {
        ensure!(low <= high, "--block-mgas {low} {high}: the smaller one comes first");
        world.block_gas = [low, high].map(|mgas| mgas.saturating_mul(1_000_000));
    }
    ensure_branches(common.longest_branch(), common.builder.kind)?;
    crate::generate(&world, &common.dir, &common.builder()?)
}

/// geth keeps the changes of 128 blocks, and takes no branch from below.
const GETH_BRANCH: u64 = 127;

fn ensure_branches(longest: u64, kind: Kind) -> anyhow::Result<()> {
    ensure!(
        kind != Kind::Geth || longest <= GETH_BRANCH,
        "geth takes no branch of {longest} blocks: give --branches of {GETH_BRANCH} at most, or \
         leave geth out of --clients and --builder"
    );
    Ok(())
}

fn state(args: &StateArgs) -> anyhow::Result<()> {
    let contenders = args.common.contenders(&args.clients)?;
    for (contender, _) in &contenders {
        ensure_branches(args.common.longest_branch(), contender.kind)?;
    }
    if args.invalid {
        let reorgs = Part::Reorgs.name();
        ensure!(args.common.fork == Fork::Osaka, "--invalid goes with --fork osaka alone");
        ensure!(args.parts.iter().any(|part| part == reorgs), "--invalid is for --parts {reorgs}");
    }
    let chain = generate(&args.common)?;
    for contender in &args.reimport {
        if let Some(program) = args.common.program(contender.kind) {
            crate::clients::prepare::forget(&program, &chain, &args.common.dir)?;
        }
    }
    let part = |name: &String| {
        let known = Part::MEASURED.into_iter().find(|part| part.name() == name);
        known.with_context(|| format!("no part {name}: empty, warm, reorgs, cold"))
    };
    let mut parts = args.parts.iter().map(part).collect::<anyhow::Result<Vec<Part>>>()?;
    parts.sort();
    let options = Options {
        contenders,
        parts,
        blocks: args.blocks,
        warm_up: args.warm_up,
        pause: Duration::from_millis(args.pause),
        freeze: !args.no_freeze,
        drop_page_cache: !args.keep_page_cache,
        alternate: args.alternate,
        invalid: args.invalid,
    };
    let results = args.common.results(args.results.as_ref())?;
    let outcome = crate::state(&options, &chain, &args.common.dir, &results)?;
    println!("{}\n{}", console(&[outcome.document]), outcome.folder.display());
    Ok(())
}

fn depths(args: &DepthsArgs) -> anyhow::Result<()> {
    let chain = generate(&args.common)?;
    let contenders = args.common.contenders(&args.clients)?;
    let results = args.common.results(args.results.as_ref())?;
    let report = crate::depths(&contenders, args.blocks, &chain, &args.common.dir, &results)?;
    println!("{}\n{}", console(&[report]), results.display());
    Ok(())
}

fn transports(args: &TransportsArgs) -> anyhow::Result<()> {
    let chain = published(args.chain.as_ref())?;
    let contenders = args.common.contenders(&args.clients)?;
    let options = TransportOptions {
        programs: contenders.into_iter().map(|(_, program)| program).collect(),
        transports: args.transports.clone(),
        peer_transports: args.peer_transports.clone(),
        sizes: args.sizes.clone(),
        rounds: [args.rounds, args.large_rounds],
        pause: Duration::from_millis(args.pause),
    };
    let results = args.common.results(args.results.as_ref())?;
    let outcome = crate::transports(&options, &chain, &args.common.dir, &results)?;
    println!("{}\n{}", console(&[outcome.document]), outcome.folder.display());
    Ok(())
}

fn crowd(args: &CrowdArgs) -> anyhow::Result<()> {
    let chain = published(args.chain.as_ref())?;
    let options = CrowdOptions {
        program: args.common.needed(Kind::Deponent)?,
        size: args.size,
        transports: args.transports.clone(),
        clients: args.clients,
        time: Duration::from_secs(args.seconds),
    };
    let results = args.common.results(args.results.as_ref())?;
    let report = crate::crowd(&options, &chain, &args.common.dir, &results)?;
    println!("{}\n{}", console(&[report]), results.display());
    Ok(())
}

/// The published chain: `given`, or the fixtures'.
pub(crate) fn published(given: Option<&PathBuf>) -> anyhow::Result<PathBuf> {
    let usual = || {
        let fixtures = std::env::var_os("DEPONENT_FIXTURES")?;
        Some(PathBuf::from(fixtures).join("witness-chain"))
    };
    let chain = given.cloned().or_else(usual);
    chain.context("no chain: --chain, or DEPONENT_FIXTURES in the environment")
}

impl Common {
    /// The longest of `--branches`.
    fn longest_branch(&self) -> u64 {
        self.branches.iter().copied().max().unwrap_or_default()
    }

    /// Those of `clients` that are there.
    pub(crate) fn contenders(
        &self,
        clients: &[Contender],
    ) -> anyhow::Result<Vec<(Contender, Program)>> {
        let mut contenders = Vec::new();
        for (index, contender) in clients.iter().enumerate() {
            ensure!(!clients[..index].contains(contender), "{contender} is there twice");
            match self.program(contender.kind) {
                Some(program) => contenders.push((*contender, program)),
                None if self.given(contender.kind).0.is_some() => {
                    self.needed(contender.kind)?;
                }
                None => eprintln!("{contender} is left out: there is no such program"),
            }
        }
        ensure!(!contenders.is_empty(), "none of --clients has a program");
        Ok(contenders)
    }

    /// What the flags say of a client: its program, and further arguments.
    const fn given(&self, kind: Kind) -> (&Option<PathBuf>, &String) {
        match kind {
            Kind::Deponent => (&self.deponent, &self.deponent_args),
            Kind::Geth => (&self.geth, &self.geth_args),
            Kind::Reth => (&self.reth, &self.reth_args),
        }
    }

    /// The client that builds, and the directory for it.
    fn builder(&self) -> anyhow::Result<Program> {
        let builder = self.needed(self.builder.kind)?;
        std::fs::create_dir_all(&self.dir)
            .with_context(|| format!("cannot make {}", self.dir.display()))?;
        Ok(builder)
    }

    /// A client's program, or an error that says where it was looked for.
    fn needed(&self, kind: Kind) -> anyhow::Result<Program> {
        let name = kind.name();
        self.program(kind).with_context(|| match self.given(kind).0 {
            Some(file) => format!("no program of {name}: --{name} {} is no file", file.display()),
            None => format!("no program of {name}: name it with --{name} FILE"),
        })
    }

    /// Where results go: `given`, or a folder named after the time.
    pub(crate) fn results(&self, given: Option<&PathBuf>) -> anyhow::Result<PathBuf> {
        crate::report::results_folder(given, &self.dir)
    }

    /// A client's program, when there is one.
    fn program(&self, kind: Kind) -> Option<Program> {
        let (given, arguments) = self.given(kind);
        let known = || Targets::read(None).ok()?.target(kind.name()).ok()?.binary();
        let binary = given.clone().or_else(known).filter(|binary| binary.is_file())?;
        let ours = kind == Kind::Deponent;
        Some(Program {
            kind,
            binary,
            arguments: arguments.split_whitespace().map(str::to_owned).collect(),
            memory_bytes: self.deponent_memory.filter(|_| ours).map(|mib| mib << 20),
            disk_bytes: self.deponent_disk_bytes.filter(|_| ours),
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(subcommand)]
        _command: Command,
    }

    fn parse(line: &str) -> Result<Line, clap::Error> {
        Line::try_parse_from(std::iter::once("bench").chain(line.split(' ')))
    }

    #[test]
    fn what_would_measure_nothing_is_refused() {
        for line in [
            "replay p --rounds",
            "replay p --count",
            "replay p --engine-url u --jwt-secret f --answer-time",
            "compare p --rounds",
            "state --blocks",
            "depths --blocks",
            "generate --warm-blocks",
            "generate --block-mgas 1",
            "generate --reorgs",
            "generate --branches",
            "state --branches 1,",
            "transports --rounds",
            "transports --large-rounds",
            "transports --sizes 17,",
            "witness --rounds",
            "witness --minutes",
            "crowd --clients",
            "crowd --seconds",
            "rpc --rounds",
            "rpc --calls",
            "rpc --connections",
            "rpc --depth",
            "rpc --threads",
            "overhead --connections",
            "extract --from 1 --to 2 --out o --timeout",
        ] {
            let with = |count| parse(&format!("{line} {count}").replace(", ", ","));
            let said = with("0").expect_err(line).to_string();
            assert!(said.contains("it has to be 1 at least"), "{line}: {said}");
            with("1").unwrap_or_else(|error| panic!("{line}: {error}"));
            with("x").expect_err(line);
        }
    }

    #[test]
    fn what_does_not_go_with_a_client_that_runs_is_refused() {
        let running = "replay p --engine-url u --jwt-secret f";
        for flag in ["--genesis g", "--targets t", "--target geth", "--rounds 2", "--sweep k=1,2"] {
            let said = parse(&format!("{running} {flag}")).expect_err(flag).to_string();
            let name = flag.split(' ').next().expect("a name");
            assert!(said.contains(name) && said.contains("cannot be used with"), "{said}");
            parse(&format!("replay p {flag}")).unwrap_or_else(|error| panic!("{flag}: {error}"));
        }
        for flag in ["--witness", "--ws-url u", "--reconnect 5", "--answer-time 5"] {
            let said = parse(&format!("replay p {flag}")).expect_err(flag).to_string();
            assert!(said.contains("--engine-url"), "{said}");
            parse(&format!("{running} {flag}")).unwrap_or_else(|error| panic!("{flag}: {error}"));
        }
    }
}
