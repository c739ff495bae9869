//! The commands: what each is given, and which plan it makes of that.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use clap::{Args, Subcommand};
use rpc::JwtSecret;

use crate::args::{ClientArgs, Programs, WorldArgs};
use crate::chain::format::{Chain, Ground, Part};
use crate::chain::generate::generate;
use crate::chain::sizes::{self, Codes, Read, WitnessSizes};
use crate::chain::world::{ChainKind, Fork, World};
use crate::clients::client::Client;
use crate::clients::persisted::Persisted;
use crate::clients::port::Port;
use crate::clients::prepare;
use crate::clients::process::Usage;
use crate::extract;
use crate::load::{self, LoadArgs, OverheadArgs};
use crate::measure::{Comparison, LEAST_PAIRS};
use crate::number::count;
use crate::progress::say;
use crate::report::{Document, Ran, console};
use crate::run::course::Course;
use crate::run::crowd::{self, Crowd};
use crate::run::lane::{Lane, Wire};
use crate::run::plan::{Contender, Pace, Persistence, Plan, Stage, Start, duration};
use crate::run::sample::{Measured, Run, names, stages, unequal_work};
use crate::run::session::{Server, Session};
use crate::run::siblings::SizedChain;
use crate::run::sweep::Sweep;
use crate::run::tables::{self, Pairing, answer_beside, verdict_columns, verdict_rows};
use crate::saved::{self, ReportArgs};
use crate::soak::{self, SoakArgs};

/// A command of `deponent bench`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Compare Deponent and the other clients that are there, in a few minutes.
    Quick(QuickArgs),
    /// Make a chain: a large state, then full and empty blocks, or blocks with large witnesses.
    Generate(GenerateArgs),
    /// Make a payload file of the blocks of any JSON-RPC endpoint.
    Extract(extract::Args),
    /// Run a generated chain on all clients, block by block.
    State(StateArgs),
    /// Ask each client for witnesses of older blocks while it validates newer ones.
    Depths(DepthsArgs),
    /// Send blocks with witnesses of 17 to 500 MB over all wires.
    Transports(TransportsArgs),
    /// Take witnesses with the block's verdict and after it: by size, wire and depth.
    Witness(WitnessArgs),
    /// Make small calls with many clients while one is sent large witnesses.
    Crowd(CrowdArgs),
    /// Send payload files to one client, at a pace, with a flag of it at several values.
    Replay(ReplayArgs),
    /// Send payload files to several clients, interleaved, and say which one was faster.
    Compare(CompareArgs),
    /// Write saved reports again, several on one page.
    Report(ReportArgs),
    /// Make many small JSON-RPC calls to any endpoints.
    Rpc(LoadArgs),
    /// Measure what the instrument itself can do at most.
    Overhead(OverheadArgs),
    /// Run nodes of ours for hours, with troubles at random, and look for what is lost or grows.
    Soak(SoakArgs),
}

#[derive(Debug, Args)]
pub(crate) struct QuickArgs {
    #[command(flatten)]
    clients: ClientArgs,
    /// Blocks measured in each round.
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = count::<u64>)]
    blocks: u64,
    /// Rounds; six at least for verdicts on the programs.
    #[arg(long, value_name = "N", default_value_t = LEAST_PAIRS, value_parser = count::<usize>)]
    rounds: usize,
}

#[derive(Debug, Args)]
pub(crate) struct GenerateArgs {
    #[command(flatten)]
    world: WorldArgs,
    #[command(flatten)]
    programs: Programs,
    /// Sizes of the witnesses, in MB, of --kind witness-size.
    #[arg(long, value_delimiter = ',', value_name = "MB", default_value = "17,100,300,500")]
    sizes: Vec<u64>,
    /// The codes in them.
    #[arg(long, value_enum, default_value = "realistic")]
    codes: Codes,
    /// How they are read.
    #[arg(long, value_enum, default_value = "copy")]
    read: Read,
}

#[derive(Debug, Args)]
pub(crate) struct StateArgs {
    #[command(flatten)]
    clients: ClientArgs,
    #[command(flatten)]
    world: WorldArgs,
    /// The parts that run: empty, warm, reorgs, cold.
    #[arg(long, value_delimiter = ',', default_value = "empty,warm,reorgs,cold")]
    parts: Vec<String>,
    /// Blocks measured of each part, at most.
    #[arg(long, value_name = "N", value_parser = count::<usize>)]
    blocks: Option<usize>,
    /// Blocks of the warm part that are fed before the measurement begins: otherwise 30, or a
    /// quarter of a shorter part.
    #[arg(long, value_name = "N")]
    warm_up: Option<usize>,
    /// Rounds, in each of which all clients are started anew.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = count::<usize>)]
    rounds: usize,
    /// Milliseconds that each client is left alone after a block.
    #[arg(long, value_name = "MS", default_value_t = 100)]
    pause: u64,
    /// Let the other clients run during a client's turn.
    #[arg(long)]
    no_freeze: bool,
    /// Keep the system's cached files before the cold part: it is a restart alone then.
    #[arg(long)]
    keep_page_cache: bool,
    /// Ask for witnesses in half of the blocks alone.
    #[arg(long)]
    alternate: bool,
    /// Follow each block of the reorgs, before its fork choice, by one that is invalid: the same
    /// with another state root. It is executed, and not timed. Not with --fork amsterdam.
    #[arg(long)]
    invalid: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DepthsArgs {
    #[command(flatten)]
    clients: ClientArgs,
    #[command(flatten)]
    world: WorldArgs,
    /// Blocks of the warm part, at most.
    #[arg(long, value_name = "N", value_parser = count::<usize>)]
    blocks: Option<usize>,
    /// Blocks between the block and the head when its witness is asked for.
    #[arg(long, value_delimiter = ',', value_name = "N", default_value = "0,8,32,64,127,1000")]
    depths: Vec<usize>,
    /// Of each so many blocks one is asked for.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = count::<usize>)]
    every: usize,
}

/// A chain with large witnesses.
#[derive(Debug, Args)]
struct SizeArgs {
    /// A chain of witness sizes: a folder that `generate --kind witness-size` made, or that has
    /// genesis.json and payloads.jsonl; otherwise the folder witness-chain in DEPONENT_FIXTURES.
    #[arg(long, value_name = "DIR")]
    chain: Option<PathBuf>,
    /// The client that builds further siblings.
    #[arg(long, value_name = "NAME", default_value = "deponent")]
    builder: String,
    /// Sizes of the witnesses, in MB, for which the chain has blocks.
    #[arg(long, value_delimiter = ',', value_name = "MB", default_value = "17,100,300,500")]
    #[arg(value_parser = count::<u64>)]
    sizes: Vec<u64>,
    /// The wires to our node; otherwise all.
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    transports: Vec<String>,
    /// The wires to the other clients.
    #[arg(long, value_delimiter = ',', value_name = "NAMES", default_value = "json")]
    peer_transports: Vec<String>,
    /// Milliseconds that each client is left alone after a call.
    #[arg(long, value_name = "MS", default_value_t = 300)]
    pause: u64,
}

#[derive(Debug, Args)]
pub(crate) struct TransportsArgs {
    #[command(flatten)]
    clients: ClientArgs,
    #[command(flatten)]
    sizes: SizeArgs,
    /// Measured rounds of sizes below 200 MB, after one that warms up.
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = count::<usize>)]
    rounds: usize,
    /// Measured rounds of the other sizes.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = count::<usize>)]
    large_rounds: usize,
}

#[derive(Debug, Args)]
pub(crate) struct WitnessArgs {
    #[command(flatten)]
    clients: ClientArgs,
    #[command(flatten)]
    sizes: SizeArgs,
    /// Measured rounds, after one that warms up; six at least for verdicts.
    #[arg(long, value_name = "N", default_value_t = LEAST_PAIRS, value_parser = count::<usize>)]
    rounds: usize,
    /// Blocks between the block and the head when it is asked for.
    #[arg(long, value_delimiter = ',', value_name = "N", default_value = "0,8,32,64,127,1000")]
    depths: Vec<usize>,
    /// Size of the witness that is asked for at the depths, in MB; 0: none.
    #[arg(long, value_name = "MB", default_value_t = 100)]
    depth_size: u64,
    /// After so many minutes no further block begins.
    #[arg(long, value_name = "MIN", default_value_t = 25, value_parser = count::<u64>)]
    minutes: u64,
}

#[derive(Debug, Args)]
pub(crate) struct CrowdArgs {
    #[command(flatten)]
    clients: ClientArgs,
    #[command(flatten)]
    sizes: SizeArgs,
    /// Connections that call at the same time.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = count::<usize>)]
    connections: usize,
    /// Seconds for which they call, beside each wire.
    #[arg(long, value_name = "S", default_value_t = 20, value_parser = count::<u64>)]
    seconds: u64,
}

/// The payloads for a client, and their pace.
#[derive(Clone, Debug, Args)]
struct Feed {
    /// Payload files, one after the other: lines {"method": .., "params": [..]}, plain, gzip, zstd.
    #[arg(required = true)]
    payloads: Vec<PathBuf>,
    /// The genesis, in geth's format, of a client that is started.
    #[arg(long, value_name = "FILE")]
    genesis: Option<PathBuf>,
    /// Payload files before the measured ones: fed once to each client, whose directory is kept.
    #[arg(long, value_name = "FILES", value_delimiter = ',')]
    setup: Vec<PathBuf>,
    /// A slot: payloads are sent so far apart, however long answers take. 400ms, 12s.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    wait_time: Option<Duration>,
    /// Wait until a block is persisted before the next one is sent: always, never, or after each
    /// N blocks.
    #[arg(long, value_name = "WHEN", default_value = "never", default_missing_value = "always")]
    #[arg(num_args = 0..=1, require_equals = true)]
    wait_for_persistence: Persistence,
    /// How long a block may take until it is persisted.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "120s")]
    persistence_timeout: Duration,
    /// Payloads left out: the client has them.
    #[arg(long, value_name = "N", default_value_t = 0)]
    skip: usize,
    /// Payloads sent and not counted, after those left out.
    #[arg(long, value_name = "N", default_value_t = 0)]
    warm_up: usize,
    /// Payloads counted, at most; otherwise all.
    #[arg(long, value_name = "N", value_parser = count::<usize>)]
    count: Option<usize>,
    /// After each DEPTH blocks the fork choice goes back by as many, and forth again: 32 at most,
    /// where the safe block is. Branches that are in the files are switched to in any case.
    #[arg(long, value_name = "DEPTH", value_parser = clap::value_parser!(u64).range(1..=32))]
    reorg: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    #[command(flatten)]
    feed: Feed,
    #[command(flatten)]
    clients: ClientArgs,
    /// The Engine API of a client that runs, instead: host:port. It has its chain already, and is
    /// not started again, so that nothing goes with it that says how.
    #[arg(long, value_name = "URL", requires = "jwt_secret")]
    #[arg(conflicts_with_all = ["genesis", "targets", "clients", "rounds"])]
    engine_url: Option<String>,
    /// Its secret: 64 hex digits in a file.
    #[arg(long, value_name = "FILE", requires = "engine_url")]
    jwt_secret: Option<PathBuf>,
    /// Its WebSocket, for --wait-for-persistence: host:port.
    #[arg(long, value_name = "URL", requires = "engine_url")]
    ws_url: Option<String>,
    /// Ask the client that runs for witnesses.
    #[arg(long, requires = "engine_url")]
    witness: bool,
    /// Seconds in which a client that runs may come back after it closed the connection.
    #[arg(long, value_name = "S", default_value_t = 60, requires = "engine_url")]
    reconnect: u64,
    /// Seconds that an answer of a client that runs may take.
    #[arg(long, value_name = "S", default_value_t = 60, requires = "engine_url")]
    #[arg(value_parser = count::<u64>)]
    answer_time: u64,
    /// Restart the client with --KEY VALUE for each value, as many times as there are rounds:
    /// engine.multiproof-chunk-size=15,30,60.
    #[arg(long, value_name = "KEY=V1,V2,..", conflicts_with = "engine_url")]
    sweep: Option<Sweep>,
    /// Rounds of each client or value, interleaved; one unless it is a sweep, which has six.
    #[arg(long, value_name = "N", value_parser = count::<usize>)]
    rounds: Option<usize>,
}

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    #[command(flatten)]
    feed: Feed,
    #[command(flatten)]
    clients: ClientArgs,
    /// Interleave runs instead of blocks: A B A B, each on all payloads.
    #[arg(long)]
    by_run: bool,
    /// Rounds, in each of which all clients are started anew. Fewer than six say something of their
    /// processes, and not of the programs: two of one program differ too.
    #[arg(long, value_name = "N", value_parser = count::<usize>, default_value_t = LEAST_PAIRS)]
    rounds: usize,
}

/// Runs a command, and prints its report.
///
/// # Errors
/// The fault, in words for the program's user.
pub(crate) fn run(command: &Command) -> anyhow::Result<()> {
    match command {
        Command::Quick(args) => quick(args),
        Command::Generate(args) => make(args),
        Command::Extract(args) => extract::run(args),
        Command::State(args) => state(args),
        Command::Depths(args) => depths(args),
        Command::Transports(args) => transports(args),
        Command::Witness(args) => witness(args),
        Command::Crowd(args) => crowd(args),
        Command::Replay(args) => replay(args),
        Command::Compare(args) => compare(args),
        Command::Report(args) => saved::run(args),
        Command::Rpc(args) => load::load(args),
        Command::Overhead(args) => load::overhead(args),
        Command::Soak(args) => soak::run(args),
    }
}

/// The comparison of clients with the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compared {
    No,
    /// On blocks that have to be the same for all.
    OnSameBlocks,
    /// Each on blocks of its own.
    OnOwnBlocks,
}

/// The parts of a report beside its tables.
struct Words<'a> {
    title: String,
    /// The method, in sentences.
    method: Vec<String>,
    compared: Compared,
    sweep: Option<&'a Sweep>,
}

impl Words<'_> {
    fn new(title: impl Into<String>, method: &[&str], compared: Compared) -> Self {
        let method = method.iter().map(|text| (*text).to_owned()).collect();
        Self { title: title.into(), method, compared, sweep: None }
    }
}

/// Checks a plan, says how long it takes, runs it, and writes the report after each part of it.
/// No folder is left if nothing was measured.
fn run_plan(
    plan: &Plan,
    contenders: &[Contender],
    clients: &ClientArgs,
    words: &Words<'_>,
) -> anyhow::Result<()> {
    let outcome = run_checked(plan, contenders, clients, words);
    if outcome.is_err() {
        // It is removed if it is empty.
        std::fs::remove_dir(&plan.results).ok();
    }
    outcome
}

fn run_checked(
    plan: &Plan,
    contenders: &[Contender],
    clients: &ClientArgs,
    words: &Words<'_>,
) -> anyhow::Result<()> {
    eprintln!("{}", plan.check(contenders)?);
    for name in &clients.reimport {
        prepare::forget(&clients.programs.target(name)?, &plan.ground, &plan.dir)?;
    }
    let ran = versions(contenders)?;
    let document = |measured: &Measured| documented(measured, contenders, &ran, words);
    let course = Course::new(plan)?;
    let measured = course.run(contenders, |measured| document(measured).write(&plan.results))?;
    finish(&document(&measured), &plan.results, &measured)?;
    match unequal_work(&measured.runs).filter(|_| words.compared == Compared::OnSameBlocks) {
        Some(why) => Err(anyhow::Error::msg(why)).context("the work was unequal: no verdict"),
        None => Ok(()),
    }
}

/// The programs, as they say themselves.
fn versions(contenders: &[Contender]) -> anyhow::Result<Vec<Ran>> {
    let ran = contenders.iter().map(|Contender { name, target, wire }| {
        let arguments = target.shown(wire.is_unix());
        Ok(Ran { name: name.clone(), version: target.version()?, arguments })
    });
    ran.collect()
}

fn documented(
    measured: &Measured,
    contenders: &[Contender],
    ran: &[Ran],
    words: &Words<'_>,
) -> Document {
    let mut document = Document::new(words.title.clone());
    document.clients = ran.to_vec();
    document.machine.busy.clone_from(&measured.busy);
    if words.compared != Compared::No {
        verdicts(&mut document, measured, words.compared);
    }
    for text in &words.method {
        document.method(text.clone());
    }
    for Contender { name, target, .. } in contenders {
        if let Some(bounds) = target.bounds.words() {
            document.text(format!("{name} had {bounds}."));
        }
    }
    tables::fill(&mut document, measured);
    if let Some(sweep) = words.sweep {
        sweep.add(&mut document, &measured.runs);
    }
    document
}

/// The ratios of all clients to the first one, or why there are none.
fn verdicts(document: &mut Document, measured: &Measured, compared: Compared) {
    let runs = &measured.runs;
    if let Some(why) = unequal_work(runs).filter(|_| compared == Compared::OnSameBlocks) {
        document.text(format!("No verdict: the work was unequal. {why}"));
        return;
    }
    let rounds = runs.iter().map(|run| run.round + 1).max().unwrap_or(0);
    let pairing = if rounds >= LEAST_PAIRS { Pairing::Rounds } else { Pairing::Blocks };
    document.method(match pairing {
        Pairing::Rounds => {
            "A pair is a round of both, with its blocks: in each the clients were started anew, so \
             the intervals know how far two processes of one program differ."
        }
        Pairing::Blocks => {
            "A pair is a block of both, with its times of all rounds. A verdict is on these \
             processes and not on the programs, two of one of which differ too: six rounds have \
             one on those."
        }
    });
    document.method(Comparison::WORDS);
    for stage in stages(runs) {
        let own = tables::of_stage(runs, stage);
        let mut table = verdict_columns();
        if !stage.is_empty() {
            table.title = format!("{stage}: {}", table.title);
        }
        let names = names(&own);
        let mut answer = answer_beside(names.first().copied().unwrap_or_default(), stage);
        for other in names.iter().skip(1) {
            let medians = verdict_rows(&mut table, &own, pairing, [other, names[0]]);
            answer.side(*other, &medians);
        }
        document.answer(answer).table(table);
    }
}

/// Writes and prints a report; runs that all failed are an error.
fn finish(document: &Document, results: &Path, measured: &Measured) -> anyhow::Result<()> {
    let failures = || measured.runs.iter().filter_map(|run| Some((run, run.failure.as_ref()?)));
    let has_blocks = measured.runs.iter().any(|run| !run.blocks.is_empty());
    if has_blocks {
        document.write(results)?;
        let text = console(std::slice::from_ref(document));
        say(format_args!("{text}\n{}", results.display()))?;
    }
    if let (Some((run, failure)), true) =
        (failures().next(), failures().count() == measured.runs.len())
    {
        bail!("{}: {}: {}", run.client, failure.fault, failure.said);
    }
    ensure!(has_blocks, "nothing was measured: {}", measured.remarks.join(" "));
    Ok(())
}

fn make(args: &GenerateArgs) -> anyhow::Result<()> {
    let builder = args.programs.needed(&args.world.builder)?;
    if args.world.kind != ChainKind::WitnessSize {
        return generate(&args.world.world()?, &args.programs.dir, &builder).map(drop);
    }
    let (sizes, codes, read) = (args.sizes.clone(), args.codes, args.read);
    let world = WitnessSizes { seed: 1, fork: args.world.fork, sizes, codes, read };
    sizes::generate(&world, &args.programs.dir, &builder).map(drop)
}

/// The chain of these sizes, which is made if it is not there.
fn chain(world: &World, builder: &str, clients: &ClientArgs) -> anyhow::Result<Chain> {
    generate(world, &clients.programs.dir, &clients.programs.needed(builder)?)
}

fn stage_of(chain: &Chain, part: Part) -> Stage {
    Stage { files: vec![chain.part(part)], ..Stage::default() }
}

fn plan_of(ground: Ground, stages: Vec<Stage>, clients: &ClientArgs) -> anyhow::Result<Plan> {
    Ok(Plan {
        ground,
        stages,
        rounds: 1,
        together: true,
        shared: false,
        pace: Pace::default(),
        until: None,
        ignores_load: clients.ignore_load,
        dir: clients.programs.dir.clone(),
        results: clients.results()?,
    })
}

const INTERLEAVED: &str = "Blocks are interleaved: each block goes to all clients, one after the \
    other, and who is first changes; the others are stopped meanwhile. Times are from before the \
    first byte of a call is sent until its answer is read.";

/// Blocks that `quick` does not count.
const QUICK_WARM_UP: usize = 10;

fn quick(args: &QuickArgs) -> anyhow::Result<()> {
    let clients = &args.clients;
    let contenders = clients.contenders(&["geth", "reth", "deponent", "deponent+witness"])?;
    let mini = World::preset("mini").context("mini is a preset")?;
    let warm_blocks = args.blocks + QUICK_WARM_UP as u64;
    let world = World { warm_blocks, block_gas: [4_000_000, 12_000_000], ..mini };
    eprintln!("A small chain, {} rounds: some minutes.", args.rounds);
    let chain = chain(&world, "deponent", clients)?;
    let warm = Stage { warm_up: QUICK_WARM_UP, ..stage_of(&chain, Part::Warm) };
    let stages = vec![Stage { is_fed: true, ..stage_of(&chain, Part::Empty) }, warm];
    let mut plan = plan_of(chain.ground(), stages, clients)?;
    plan.rounds = args.rounds;
    plan.pace.pause = Duration::from_millis(20);
    let method = "Full blocks of 4 to 12 million gas on a small state that fits into memory. For \
                  blocks like those of a network: deponent bench state.";
    let words = Words::new("Quick comparison", &[method, INTERLEAVED], compared(&contenders));
    run_plan(&plan, &contenders, clients, &words)?;
    let page = plan.results.join("report.html");
    say(format_args!("{}", page.display()))?;
    show(&page);
    Ok(())
}

/// Clients that are compared if there are several.
fn compared(contenders: &[Contender]) -> Compared {
    if contenders.len() > 1 { Compared::OnSameBlocks } else { Compared::No }
}

/// The names of clients, between commas.
fn listed(contenders: &[Contender]) -> String {
    contenders.iter().map(|contender| &*contender.name).collect::<Vec<_>>().join(", ")
}

/// Opens a page where there is a screen.
fn show(page: &Path) {
    let has_screen = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|it| std::env::var_os(it).is_some());
    if std::io::stdout().is_terminal() && has_screen {
        std::process::Command::new("xdg-open").arg(page).status().ok();
    }
}

fn state(args: &StateArgs) -> anyhow::Result<()> {
    let StateArgs { clients, world, .. } = args;
    let usual = ["geth", "reth", "deponent", "deponent+ssz-unix"];
    let contenders = clients.contenders(&usual)?;
    for contender in &contenders {
        world.check_branches(&contender.target.table)?;
    }
    let measured = args.parts.iter().map(|name| {
        let known = Part::MEASURED.into_iter().find(|part| part.name() == name);
        known.with_context(|| format!("no part {name}: empty, warm, reorgs, cold"))
    });
    let measured = measured.collect::<anyhow::Result<Vec<Part>>>()?;
    if args.invalid {
        ensure!(world.fork == Fork::Osaka, "--invalid goes with --fork osaka alone");
        ensure!(measured.contains(&Part::Reorgs), "--invalid is for --parts reorgs");
    }
    let chain = chain(&world.world()?, &world.builder, clients)?;
    let mut stages = Vec::new();
    let last = measured.iter().max().copied().context("no part to run")?;
    for part in Part::MEASURED.into_iter().filter(|part| *part <= last) {
        let cold = if args.keep_page_cache { Start::Again } else { Start::Cold };
        let blocks = chain.count(part)?;
        let warm_up = args.warm_up.unwrap_or_else(|| 30.min(blocks / 4));
        let warm_up = if part == Part::Warm { warm_up } else { 0 };
        stages.push(Stage {
            name: part.name().into(),
            warm_up,
            count: args.blocks,
            start: if part == Part::Cold { cold } else { Start::Running },
            twins: args.invalid && part == Part::Reorgs,
            is_fed: !measured.contains(&part),
            ..stage_of(&chain, part)
        });
        // The next part begins where all blocks of this one end.
        let rest = args.blocks.map(|count| count + warm_up).filter(|sent| *sent < blocks);
        if let Some(skip) = rest.filter(|_| part < last && measured.contains(&part)) {
            stages.push(Stage { is_fed: true, skip, ..stage_of(&chain, part) });
        }
    }
    let mut plan = plan_of(chain.ground(), stages, clients)?;
    plan.rounds = args.rounds;
    plan.pace.pause = Duration::from_millis(args.pause);
    plan.pace.freeze = !args.no_freeze;
    plan.pace.alternate = args.alternate;
    let name = chain.state.file_name().unwrap_or_default().to_string_lossy();
    let frozen = if args.no_freeze { "idle" } else { "stopped" };
    let pause = args.pause;
    let pause = format!("Pause after each block: {pause} ms; the others were {frozen}.");
    let invalid = "Each block of the reorgs was followed by one that is invalid, before its fork \
                   choice: its time is nowhere, CPU and memory include it.";
    let method = [INTERLEAVED, &pause, invalid];
    let method = if args.invalid { &method[..] } else { &method[..2] };
    let title = format!("State benchmark: {name}");
    let words = Words::new(title, method, compared(&contenders));
    run_plan(&plan, &contenders, clients, &words)
}

fn depths(args: &DepthsArgs) -> anyhow::Result<()> {
    let clients = &args.clients;
    let mut contenders = clients.contenders(&["geth", "deponent"])?;
    contenders.iter_mut().for_each(|contender| contender.wire = Wire::Later);
    let chain = chain(&args.world.world()?, &args.world.builder, clients)?;
    let warm = Stage { count: args.blocks, ..stage_of(&chain, Part::Warm) };
    let stages = vec![Stage { is_fed: true, ..stage_of(&chain, Part::Empty) }, warm];
    let mut plan = plan_of(chain.ground(), stages, clients)?;
    plan.together = false;
    plan.pace.depths.clone_from(&args.depths);
    plan.pace.every = args.every;
    plan.pace.asks = false;
    let method = "debug_executionWitness between blocks that are validated without a pause. The \
                  ratio is that of the same block's witness to the first depth, the median over \
                  blocks.";
    let words = Words::new("Witnesses of older blocks", &[method], Compared::No);
    run_plan(&plan, &contenders, clients, &words)
}

/// Sizes from here on, in megabytes, have fewer rounds in `transports`.
const LARGE_MB: u64 = 200;

const WITNESSES: &str = "A payload with its witness, from the request until the witness's items \
    are slices in the caller's memory, over the client library and its connections: what a user \
    gets. Each call has a block of its own; the first round warms up. The transfer lies between \
    the first byte and the last; decode is what comes after. public-port is engine_newPayload, \
    then debug_executionWitness; the other wires have both in one call.";

impl SizeArgs {
    /// The chain up to the parent of the blocks of these sizes.
    fn chain(&self, clients: &ClientArgs, sizes: &[u64]) -> anyhow::Result<SizedChain> {
        let usual = || {
            let fixtures = std::env::var_os("DEPONENT_FIXTURES")?;
            Some(PathBuf::from(fixtures).join("witness-chain"))
        };
        let folder = self.chain.clone().or_else(usual);
        let folder =
            folder.context("no chain: --chain, or DEPONENT_FIXTURES in the environment")?;
        let labels: Vec<String> = sizes.iter().map(label).collect();
        let Programs { dir, .. } = &clients.programs;
        SizedChain::open(&folder, &labels, clients.programs.target(&self.builder)?, dir)
    }

    /// The clients over their wires; `first` comes before those that are named.
    fn contenders(
        &self,
        clients: &ClientArgs,
        first: Option<&str>,
    ) -> anyhow::Result<Vec<Contender>> {
        const ALL: &str = "json,json-unix,ipc,ws,ssz,ssz-unix,descriptor,held-codes,mapped-codes";
        let names = clients.names(&["geth", "deponent"])?.into_iter().map(|name| {
            let own = match clients.programs.target(&name)?.rest {
                true if self.transports.is_empty() => ALL.split(',').map(str::to_owned).collect(),
                true => self.transports.clone(),
                false => self.peer_transports.clone(),
            };
            let wires = first.map(str::to_owned).into_iter().chain(own).collect();
            anyhow::Ok((name, wires))
        });
        clients.over(&names.collect::<anyhow::Result<Vec<_>>>()?)
    }

    /// A plan with a stage for each size, of so many rounds after one that warms up.
    fn plan(
        &self,
        clients: &ClientArgs,
        contenders: &[Contender],
        rounds: impl Fn(u64) -> usize,
    ) -> anyhow::Result<Plan> {
        clients.programs.needed(&self.builder)?;
        let chain = self.chain(clients, &self.sizes)?;
        let of = |table: &str| contenders.iter().filter(|c| c.target.table == table).count();
        let most = contenders.iter().map(|c| of(&c.target.table)).max().unwrap_or(1);
        let mut stages = Vec::new();
        for size in &self.sizes {
            let steps = rounds(*size) + 1;
            let file = chain.enough(&label(size), steps * most)?;
            stages.push(Stage {
                name: format!("{size} MB"),
                files: vec![file],
                siblings: most,
                warm_up: 1,
                count: Some(steps - 1),
                // Or memory would be what blocks of another size left there.
                start: if stages.is_empty() { Start::Running } else { Start::Again },
                ..Stage::default()
            });
        }
        let mut plan = plan_of(chain.ground, stages, clients)?;
        plan.shared = true;
        plan.pace.pause = Duration::from_millis(self.pause);
        plan.pace.chooses = false;
        plan.pace.compares = true;
        Ok(plan)
    }
}

/// The label of a block with a witness of so many megabytes.
fn label(size: &u64) -> String {
    format!("w{size}")
}

fn transports(args: &TransportsArgs) -> anyhow::Result<()> {
    let contenders = args.sizes.contenders(&args.clients, None)?;
    let rounds = |size| if size < LARGE_MB { args.rounds } else { args.large_rounds };
    let plan = args.sizes.plan(&args.clients, &contenders, rounds)?;
    let words = Words::new("Transports", &[WITNESSES], Compared::OnOwnBlocks);
    run_plan(&plan, &contenders, &args.clients, &words)
}

fn witness(args: &WitnessArgs) -> anyhow::Result<()> {
    let WitnessArgs { clients, sizes, .. } = args;
    let until = Instant::now() + Duration::from_secs(args.minutes * 60);
    let contenders = sizes.contenders(clients, Some("public-port"))?;
    let mut plan = sizes.plan(clients, &contenders, |_| args.rounds)?;
    (plan.pace.repeats, plan.until) = (true, Some(until));
    eprintln!("{}", plan.check(&contenders)?);
    let mut measured = Course::new(&plan)?.run(&contenders, |_| Ok(()))?;
    if args.depth_size > 0 && !args.depths.is_empty() {
        let deepest = args.depths.iter().max().copied().unwrap_or_default();
        let chain = sizes.chain(clients, &[args.depth_size])?;
        let file = chain.buried(&label(&args.depth_size), deepest)?;
        let names = clients.names(&["geth", "deponent"])?;
        let over: Vec<_> =
            names.into_iter().map(|name| (name, vec!["public-port".to_owned()])).collect();
        let lanes = clients.over(&over)?;
        let name = format!("depths of {} MB", args.depth_size);
        let stage = Stage { name, files: vec![file], ..Stage::default() };
        let results = plan.results.join("depths");
        let mut buried = Plan { stages: vec![stage], results, rounds: args.rounds, ..plan.clone() };
        (buried.shared, buried.together, buried.pace.chooses) = (false, false, true);
        buried.pace.depths.clone_from(&args.depths);
        buried.pace.asks = false;
        let deep = Course::new(&buried)?.run(&lanes, |_| Ok(()))?;
        measured.runs.extend(deep.runs);
        measured.remarks.extend(deep.remarks);
        measured.busy = measured.busy.or(deep.busy);
    }
    let words = Words::new("Witness flows", &[WITNESSES], Compared::OnOwnBlocks);
    let ran = versions(&contenders)?;
    finish(&documented(&measured, &contenders, &ran, &words), &plan.results, &measured)
}

fn crowd(args: &CrowdArgs) -> anyhow::Result<()> {
    let CrowdArgs { clients, sizes, .. } = args;
    let size = sizes.sizes.iter().max().copied().unwrap_or_default();
    let chain = sizes.chain(clients, &[size])?;
    let name = clients.names(&["deponent"])?.remove(0);
    let wires = match sizes.transports.is_empty() {
        true => ["json", "ssz", "ssz-unix"].map(str::to_owned).to_vec(),
        false => sizes.transports.clone(),
    };
    let contenders = clients.over(&[(name, wires)])?;
    let crowd = Crowd {
        ground: &chain.ground,
        payload: chain.like(&label(&size))?,
        clients: args.connections,
        time: Duration::from_secs(args.seconds),
        dir: &clients.programs.dir,
    };
    let mut document = Document::new("A crowd beside a large answer");
    document.clients = versions(&contenders)?;
    crowd::run(&crowd, &contenders, &mut document)?;
    let results = clients.results()?;
    document.write(&results)?;
    say(format_args!("{}\n{}", console(&[document]), results.display()))?;
    Ok(())
}

impl Feed {
    fn plan(&self, clients: &ClientArgs) -> anyhow::Result<Plan> {
        let stage = Stage {
            files: self.payloads.clone(),
            skip: self.skip,
            warm_up: self.warm_up,
            count: self.count,
            ..Stage::default()
        };
        let (genesis, setup) = (self.genesis.clone().unwrap_or_default(), self.setup.clone());
        let mut plan = plan_of(Ground { genesis, setup, longest_branch: 0 }, vec![stage], clients)?;
        plan.pace.wait_time = self.wait_time;
        plan.pace.persistence = self.wait_for_persistence;
        plan.pace.persistence_timeout = self.persistence_timeout;
        plan.pace.reorg = self.reorg;
        Ok(plan)
    }

    /// The payloads, their pace and the measurement, in sentences.
    fn words(&self) -> String {
        let files: Vec<String> = self.payloads.iter().map(|it| it.display().to_string()).collect();
        let mut text = format!("The payloads of {}", files.join(", "));
        if self.skip > 0 {
            text += &format!(" after the first {}", self.skip);
        }
        text += &match self.wait_time {
            Some(slot) => format!(
                ", one every {} ms: what a payload waits beyond the beginning of its slot is its \
                 queue wait",
                slot.as_secs_f64() * 1e3
            ),
            None => ", each as soon as the last one was done".into(),
        };
        if let Persistence::Every(blocks) = self.wait_for_persistence {
            text += &match blocks {
                1 => "; each is waited for until it is persisted".into(),
                _ => format!("; every {blocks}th is waited for until it is persisted"),
            };
        }
        if self.warm_up > 0 {
            text += &format!("; the first {} warm the client up and are not counted", self.warm_up);
        }
        text + ". Times are from before a call's first byte is sent until its answer is read."
    }
}

fn replay(args: &ReplayArgs) -> anyhow::Result<()> {
    let ReplayArgs { feed, clients, .. } = args;
    let mut plan = feed.plan(clients)?;
    plan.together = false;
    if let Some(url) = &args.engine_url {
        // Its work is what others use.
        plan.ignores_load = true;
        return replay_to(args, url, &plan);
    }
    ensure!(feed.genesis.is_some(), "a client is started from a genesis: --genesis FILE");
    let mut contenders = clients.contenders(&["deponent"])?;
    let mut title = format!("Replay to {}", listed(&contenders));
    if let Some(sweep) = &args.sweep {
        ensure!(contenders.len() == 1, "a sweep is of one client: --clients NAME");
        (title, contenders) = (sweep.title(&contenders[0]), sweep.contenders(&contenders[0]));
    }
    let usual = if args.sweep.is_some() { LEAST_PAIRS } else { 1 };
    plan.rounds = args.rounds.unwrap_or(usual);
    let mut words = Words::new(title, &[&feed.words()], Compared::No);
    words.sweep = args.sweep.as_ref();
    run_plan(&plan, &contenders, clients, &words)
}

/// Replays to a client that runs already.
fn replay_to(args: &ReplayArgs, url: &str, plan: &Plan) -> anyhow::Result<()> {
    let secret = args.jwt_secret.as_ref().context("--jwt-secret FILE")?;
    let secret = JwtSecret::load(secret).context("--jwt-secret")?;
    let (scheme, address) = url.split_once("://").unwrap_or(("http", url));
    let shown = rpc::shown_address(url);
    ensure!(scheme == "http", "--engine-url {shown}: host:port, or http://host:port");
    let address = address.trim_end_matches('/');
    let mut client = Client {
        name: shown.clone(),
        builds_on: None,
        engine: Port::open(address, Some(secret.clone()))?,
        public: Port::open(address, Some(secret.clone()))?,
        websocket: args.ws_url.clone().unwrap_or_default(),
        socket: None,
        process: None,
    };
    client.engine.set_patience(Duration::from_secs(args.answer_time));
    let waits = plan.pace.persistence != Persistence::Never;
    ensure!(!waits || args.ws_url.is_some(), "--wait-for-persistence needs --ws-url");
    let persisted =
        waits.then(|| Persisted::subscribe(&client.websocket, Some(secret))).transpose()?;
    let version = client.engine.client_version();
    let version = version.unwrap_or_else(|| "does not tell its version".into());
    let wire = if args.witness { Wire::Plain } else { Wire::Verdict };
    let session = Session {
        lane: Lane::open(wire, &client)?,
        server: 0,
        place: 0,
        reconnect: Duration::from_secs(args.reconnect),
        persisted,
        run: Run::of(&shown, 0),
    };
    let (client, idle) = (Some(client), Usage::default());
    let server = Server { client, owner: None, idle, knows_timings: true };
    let measured = Course::new(plan)?.run_on(session, server)?;
    let ran = [Ran { name: shown.clone(), version, arguments: Vec::new() }];
    let words = Words::new(format!("Replay to {shown}"), &[&args.feed.words()], Compared::No);
    let document = documented(&measured, &[], &ran, &words);
    finish(&document, &plan.results, &measured)
}

fn compare(args: &CompareArgs) -> anyhow::Result<()> {
    let CompareArgs { feed, clients, .. } = args;
    ensure!(feed.genesis.is_some(), "a client is started from a genesis: --genesis FILE");
    let contenders = clients.contenders(&["geth", "deponent"])?;
    ensure!(contenders.len() > 1, "two clients at least: --clients geth,deponent");
    let mut plan = feed.plan(clients)?;
    (plan.rounds, plan.together) = (args.rounds, !args.by_run);
    let by_run = "Runs are interleaved: each client runs all payloads, one client after the other, \
                  round by round.";
    let interleaved = if args.by_run { by_run } else { INTERLEAVED };
    let title = format!("Comparison of {}", listed(&contenders));
    let words = Words::new(title, &[&feed.words(), interleaved], Compared::OnSameBlocks);
    run_plan(&plan, &contenders, clients, &words)
}

#[cfg(test)]
mod tests;
