//! `witness`: what a block's witness takes in one call (*coupled*, `engine_newPayloadWithWitness`)
//! and in two (*decoupled*, `engine_newPayload`, then `debug_executionWitness` on the public port),
//! by size, by transport, by depth, and asked for a second time.
//!
//! Turns are those of `transports`. A flow of a client has a block of its own in each round; the
//! second call of a turn asks for the same block again. For the depths each client starts anew in
//! each round, is sent a large block, and is asked for it by its number while empty ones follow.

mod report;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde::Serialize;

use super::payloads::Published;
use super::wires::{self, Named};
use super::{Lane, Memory, Sample, Server, TransportOptions, clean_up, start, turn_of, write};
use crate::args::{Common, count, published};
use crate::chain::format::{Chain, Part, Payload};
use crate::clients::client::{Client, Contender, Kind, Program};
use crate::clients::prepare::{self as sync, Ancestry};
use crate::clients::process;
use crate::progress;
use crate::report::{Document, console};
use crate::run::micros;
use crate::state::Outcome;
use crate::turns::whose;

/// What `witness` is given.
#[derive(Debug, clap::Args)]
pub struct WitnessArgs {
    #[command(flatten)]
    common: Common,
    /// A chain of witness sizes: a folder that `generate --kind witness-size` made, or that has
    /// genesis.json and payloads.jsonl; otherwise the folder witness-chain in DEPONENT_FIXTURES.
    #[arg(long, value_name = "DIR")]
    chain: Option<PathBuf>,
    /// Who runs; those without a program are left out.
    #[arg(long, value_delimiter = ',', value_name = "NAMES", default_value = "geth,deponent")]
    compare: Vec<Contender>,
    /// Sizes of the witnesses, in MB, for which the chain has blocks.
    #[arg(long, value_delimiter = ',', value_name = "MB", default_value = "17,100,300,500")]
    #[arg(value_parser = count::<u64>)]
    sizes: Vec<u64>,
    /// Measured rounds, after one that warms up; six at least for verdicts.
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = count::<usize>)]
    rounds: usize,
    /// Our transports of the coupled flow.
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "NAMES",
        default_value = "json,ipc,ws,ssz,ssz-unix,ssz-h2c,descriptor,held-codes,mapped-codes"
    )]
    transports: Vec<String>,
    /// The other clients' transports of the coupled flow.
    #[arg(long, value_delimiter = ',', value_name = "NAMES", default_value = "json,ipc")]
    peer_transports: Vec<String>,
    /// Blocks between the block and the head when it is asked for.
    #[arg(long, value_delimiter = ',', value_name = "N", default_value = "0,8,32,64,127,1000")]
    depths: Vec<usize>,
    /// Size of the witness that is asked for at the depths, in MB; 0: none.
    #[arg(long, value_name = "MB", default_value_t = 100)]
    depth_size: u64,
    /// Milliseconds that each client is left alone after a call.
    #[arg(long, value_name = "MS", default_value_t = 300)]
    pause: u64,
    /// After so many minutes no further round begins.
    #[arg(long, value_name = "MIN", default_value_t = 25, value_parser = count::<u64>)]
    minutes: u64,
    /// Where the report goes; otherwise a new folder below the directory.
    #[arg(long, value_name = "DIR")]
    results: Option<PathBuf>,
}

/// Runs `witness`, and prints its report.
pub(crate) fn run(args: &WitnessArgs) -> anyhow::Result<()> {
    let chain = published(args.chain.as_ref())?;
    let contenders = args.common.contenders(&args.compare)?;
    let options = WitnessOptions {
        programs: contenders.into_iter().map(|(_, program)| program).collect(),
        transports: args.transports.clone(),
        peer_transports: args.peer_transports.clone(),
        sizes: args.sizes.clone(),
        rounds: args.rounds,
        depths: args.depths.clone(),
        depth_size: args.depth_size,
        pause: Duration::from_millis(args.pause),
        most: Duration::from_secs(args.minutes * 60),
    };
    let results = args.common.results(args.results.as_ref())?;
    let outcome = witness(&options, &chain, &args.common.dir, &results)?;
    println!("{}\n{}", console(&[outcome.document]), outcome.folder.display());
    Ok(())
}

/// What a run of the witness flows does.
#[derive(Clone, Debug)]
pub struct WitnessOptions {
    /// The clients that run; ours also builds the blocks that are not published.
    pub programs: Vec<Program>,
    /// Our transports of the coupled flow; empty: all.
    pub transports: Vec<String>,
    /// Those of the others, as far as they have them.
    pub peer_transports: Vec<String>,
    /// Witness sizes in megabytes, for which there are blocks labelled `w17`, `w100`..
    pub sizes: Vec<u64>,
    /// Measured rounds, after one that warms up.
    pub rounds: usize,
    /// Blocks between the block and the head when it is asked for.
    pub depths: Vec<usize>,
    /// The size of the witness that is asked for at the depths; 0: none.
    pub depth_size: u64,
    /// How long each client is left alone after a call.
    pub pause: Duration,
    /// When so much time has passed no further round begins.
    pub most: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Flow {
    Decoupled,
    Coupled,
}

impl Flow {
    const fn name(self) -> &'static str {
        match self {
            Self::Decoupled => "decoupled",
            Self::Coupled => "coupled",
        }
    }
}

/// One call for a witness.
#[derive(Debug, Serialize)]
struct Asked {
    client: String,
    flow: Flow,
    transport: &'static str,
    size: u64,
    /// Below the head; of the runs by depth alone.
    depth: Option<usize>,
    round: usize,
    warm_up: bool,
    /// Whether this block's witness had been asked for in the same way just before.
    repeated: bool,
    /// `engine_newPayload` before it, of the decoupled flow's first call.
    payload_us: Option<f64>,
    call: Option<Sample>,
    /// What happened instead.
    refusal: Option<String>,
}

#[derive(Default)]
struct Measured {
    asked: Vec<Asked>,
    /// What could not be done as planned, in sentences.
    remarks: Vec<String>,
}

/// Runs the flows on a published chain in `published`, and writes the report and `samples.jsonl`
/// into `results`. Prepared directories are kept in `folder`.
pub fn witness(
    options: &WitnessOptions,
    published: &Path,
    folder: &Path,
    results: &Path,
) -> anyhow::Result<Outcome> {
    let label = |size: &u64| format!("w{size}");
    let depth_size =
        Some(options.depth_size).filter(|size| *size > 0 && !options.depths.is_empty());
    let labels: Vec<String> = options.sizes.iter().chain(&depth_size).map(label).collect();
    let read = Published::read(published)?;
    let chain = read.chain(&labels, folder)?;
    let builder = options.programs.iter().find(|program| program.kind == Kind::Deponent);
    let builder = builder.context("our own node has to run: it builds blocks")?;
    let lanes = options.programs.iter().map(|program| options.lanes(program.kind));
    let lanes = lanes.collect::<anyhow::Result<Vec<_>>>()?;
    let most = lanes.iter().map(Vec::len).max().unwrap_or_default();
    eprintln!("{}", options.estimate(&lanes));
    let mut sizes = Vec::new();
    for size in &options.sizes {
        let count = (options.rounds + 1) * most;
        sizes.push((*size, read.enough(&label(size), count, &chain, folder, builder)?));
    }
    let deepest = options.depths.iter().max().copied().unwrap_or_default();
    let buried = depth_size
        .map(|size| read.buried(&label(&size), deepest, &chain, folder, builder))
        .transpose()?;
    for program in &options.programs {
        sync::prepared(program, &chain, folder)?;
    }
    let work = sync::working_folder(folder)?;
    let mut run = Run { options, chain: &chain, folder, work: &work, end: Instant::now() };
    run.end += options.most;
    let mut measured = Measured::default();
    let outcome = run.sizes(&sizes, &mut measured).and_then(|()| match &buried {
        Some(buried) => run.depths(buried, &mut measured),
        None => Ok(()),
    });
    clean_up(&options.programs, &work, results)?;
    if let Err(error) = outcome {
        if measured.asked.is_empty() {
            return Err(error);
        }
        measured.remarks.push(format!("It ended before its time: {error:#}"));
    }
    let mut document = Document::new("Witness flows");
    report::fill(&mut document, &measured);
    for program in &options.programs {
        program.enter(program.kind.name(), true, &mut document)?;
    }
    document.write(results)?;
    write(&measured.asked, &results.join("samples.jsonl"))?;
    Ok(Outcome { document, folder: results.into(), samples: measured.asked.len() })
}

impl WitnessOptions {
    /// The flows of a client: the decoupled one, then the coupled one over its transports.
    fn lanes(&self, kind: Kind) -> anyhow::Result<Vec<&'static Named>> {
        let coupled = TransportOptions {
            programs: Vec::new(),
            transports: self.transports.clone(),
            peer_transports: self.peer_transports.clone(),
            sizes: Vec::new(),
            rounds: [self.rounds; 2],
            pause: self.pause,
        };
        Ok([vec![&wires::LATER], coupled.lanes(kind)?].concat())
    }

    /// How long a run takes, in words: from what two cores need for a megabyte.
    fn estimate(&self, lanes: &[Vec<&Named>]) -> String {
        let mut seconds = 0.0;
        for (program, lanes) in self.programs.iter().zip(lanes) {
            let of_megabyte = if program.kind == Kind::Deponent { 0.003 } else { 0.03 };
            let call = |size: u64| self.pause.as_secs_f64() + of_megabyte * size as f64;
            let sizes: f64 = self.sizes.iter().map(|size| call(*size)).sum();
            seconds += sizes * (2 * lanes.len() * (self.rounds + 1)) as f64;
            if self.depth_size > 0 {
                let blocks = self.depths.iter().max().copied().unwrap_or_default() as f64;
                let asked = 2.0 * self.depths.len() as f64 * call(self.depth_size);
                seconds += self.rounds as f64 * (10.0 + blocks * 0.01 + asked);
            }
        }
        format!(
            "It takes about {:.0} minutes, and some more where clients or blocks have to be made \
             first; after {:.0} minutes no further round begins.",
            (seconds / 60.0).ceil(),
            self.most.as_secs_f64() / 60.0
        )
    }
}

/// A run, and where it is.
struct Run<'a> {
    options: &'a WitnessOptions,
    chain: &'a Chain,
    folder: &'a Path,
    work: &'a Path,
    /// No round begins after it.
    end: Instant,
}

impl Run<'_> {
    fn sizes(&self, sizes: &[(u64, Vec<Payload>)], measured: &mut Measured) -> anyhow::Result<()> {
        if sizes.is_empty() {
            return Ok(());
        }
        let Self { options, chain, folder, work, end } = *self;
        let (mut servers, mut lanes) = (Vec::new(), Vec::new());
        let mut most = 0;
        for program in &options.programs {
            let named = options.lanes(program.kind)?;
            most = most.max(named.len());
            let (server, own) = start(program, named, servers.len(), chain, folder, work)?;
            std::thread::sleep(options.pause);
            servers.push(server.idle()?);
            lanes.extend(own);
        }
        let bar = progress::bar("flows", sizes.len() * (options.rounds + 1) * lanes.len());
        for round in 0..=options.rounds {
            for (size, payloads) in sizes {
                if Instant::now() > end || process::interrupted() {
                    let said = format!("The time was over before round {round} of {size} MB.");
                    measured.remarks.push(said);
                    continue;
                }
                ensure!(payloads.len() >= most * (options.rounds + 1), "too few blocks");
                for turn in 0..lanes.len() {
                    let index = whose(round, turn, lanes.len());
                    let lane = &mut lanes[index];
                    let server = &mut servers[lane.server];
                    // The same block for the first flow of each client, another for the second..
                    let payload = &payloads[round * most + lane.place];
                    let asked = ask(lane, server, payload, options.pause, None);
                    measured.asked.extend(asked?.map(|asked| Asked {
                        size: *size,
                        round,
                        warm_up: round == 0,
                        ..asked
                    }));
                    bar.inc(1);
                }
            }
        }
        drop(lanes);
        for server in servers {
            let name = server.name;
            if let Err(error) = server.client.process.stop() {
                measured.remarks.push(format!("{name}: {error:#}"));
            }
        }
        Ok(())
    }

    fn depths(&self, buried: &[Payload], measured: &mut Measured) -> anyhow::Result<()> {
        let Self { options, chain, folder, work, end } = *self;
        let bar = progress::bar("depths", options.rounds * options.programs.len());
        for round in 0..options.rounds {
            for turn in 0..options.programs.len() {
                let program = &options.programs[whose(round, turn, options.programs.len())];
                let name = program.kind.name();
                if Instant::now() > end || process::interrupted() {
                    measured.remarks.push(format!("No time for the depths of {name}, {round}."));
                    continue;
                }
                std::fs::remove_dir_all(work.join(name)).or_else(sync::absent)?;
                let named = vec![&wires::LATER_BY_NUMBER];
                let (server, mut lanes) = start(program, named, 0, chain, folder, work)?;
                let mut server = server.idle()?;
                let lane = lanes.first_mut().context("it was asked for")?;
                if let Err(error) = self.bury(buried, lane, &mut server, round, measured) {
                    measured.remarks.push(format!("{name}, depths, round {round}: {error:#}"));
                }
                drop(lanes);
                server.client.process.stop()?;
                bar.inc(1);
            }
        }
        Ok(())
    }

    /// Sends the blocks, and asks for the witness of the first one of them at each depth.
    fn bury(
        &self,
        buried: &[Payload],
        lane: &mut Lane,
        server: &mut Server,
        round: usize,
        measured: &mut Measured,
    ) -> anyhow::Result<()> {
        let Self { options, chain, .. } = *self;
        let mut ancestry = Ancestry::before(chain, Part::Empty)?;
        let first = buried.first().context("there are no blocks")?;
        let deepest = options.depths.iter().max().copied().unwrap_or_default();
        for (depth, payload) in buried.iter().enumerate().take(deepest + 1) {
            ancestry.push(payload);
            server.client.process.thaw()?;
            server.client.new_payload(payload, false)?;
            server.client.forkchoice_updated(ancestry.heads(payload.hash))?;
            if options.depths.contains(&depth) {
                let asked = ask(lane, server, first, options.pause, Some(depth))?;
                let size = options.depth_size;
                measured.asked.extend(asked.map(|asked| Asked { size, round, ..asked }));
            }
        }
        Ok(())
    }
}

/// A turn of a flow: the call, and the same again. At a depth the block was sent before.
fn ask(
    lane: &mut Lane,
    server: &mut Server,
    payload: &Payload,
    pause: Duration,
    depth: Option<usize>,
) -> anyhow::Result<[Asked; 2]> {
    let is_later = lane.named.is_later();
    let flow = if is_later { Flow::Decoupled } else { Flow::Coupled };
    // Between both calls nothing is done that the server could use.
    let mut ready = Some(Memory::touched(lane.room));
    let mut sent = Ok(None);
    if is_later && depth.is_none() {
        server.client.process.thaw()?;
        sent = send(&mut server.client, payload).map(Some);
    }
    let asked = [false, true].map(|repeated| {
        let (payload_us, outcome) = match &sent {
            Ok(payload_us) => {
                let payload_us = payload_us.filter(|_| !repeated);
                let memory = ready.take().unwrap_or_else(|| Memory::touched(lane.room));
                (payload_us, turn_of(lane, server, payload, pause, memory))
            }
            Err(error) => (None, Err(anyhow::Error::msg(format!("{error:#}")))),
        };
        let (call, refusal) = match outcome {
            Ok(call) => (Some(call), None),
            Err(error) => (None, Some(format!("{error:#}"))),
        };
        Asked {
            client: server.name.into(),
            flow,
            transport: lane.named.name,
            size: 0,
            depth,
            round: 0,
            warm_up: false,
            repeated,
            payload_us,
            call,
            refusal,
        }
    });
    // After a call that failed it still runs.
    server.client.process.freeze()?;
    Ok(asked)
}

fn send(client: &mut Client, payload: &Payload) -> anyhow::Result<f64> {
    Ok(micros(client.new_payload(payload, false)?.whole))
}
