//! `compare`: two clients or more on the same payloads, interleaved, and who was faster.

use std::collections::HashMap;

use alloy_primitives::B256;
use anyhow::{Context, ensure};

use crate::args::count;
use crate::cells;
use crate::clients::target::Targets;
use crate::measure::{Comparison, LEAST_PAIRS};
use crate::replay::{self, Block, Course, Entrant, Feed, Run};
use crate::report::{Cell, Document, Table, Unit};

/// What `compare` is given.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    feed: Feed,
    /// The clients, each with or without +witness; ratios are to the first one.
    #[arg(long, value_delimiter = ',', value_name = "NAMES", default_value = "geth,deponent")]
    clients: Vec<String>,
    /// Interleave runs instead of blocks: A B A B, each on all payloads.
    #[arg(long)]
    by_run: bool,
    /// Rounds, in each of which all clients are started anew. Fewer than six say something of their
    /// processes, and not of the programs: two of one program differ too.
    #[arg(long, value_name = "N", value_parser = count::<usize>, default_value_t = LEAST_PAIRS)]
    rounds: usize,
}

/// Runs `compare`, and prints its report.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    ensure!(args.clients.len() > 1, "two clients at least: --clients geth,deponent");
    let targets = Targets::read(args.feed.targets.as_deref())?;
    let entrants = args.clients.iter().enumerate().map(|(index, name)| {
        ensure!(!args.clients[..index].contains(name), "{name} is there twice: give it a table");
        Ok(Entrant { name: name.clone(), target: targets.target(name)? })
    });
    let entrants = entrants.collect::<anyhow::Result<Vec<_>>>()?;
    let clients = replay::clients(&entrants)?;
    let mut course = Course::new(&args.feed)?;
    let results = course.results().to_owned();
    let documented = |runs: &[Run]| {
        let mut document = document(args, runs);
        document.clients.clone_from(&clients);
        document
    };
    let write = |runs: &[Run]| documented(runs).write(&results);
    let runs = course.heats(&entrants, args.rounds, !args.by_run, write)?;
    replay::finish(&documented(&runs), &results, &runs)?;
    match unequal_work(&runs) {
        Some(why) => Err(anyhow::Error::msg(why)).context("the work was unequal: no verdict"),
        None => Ok(()),
    }
}

fn document(args: &Args, runs: &[Run]) -> Document {
    let names = replay::names(runs);
    let mut document = Document::new(format!("Comparison of {}", names.join(", ")));
    document.text(replay::sent(&args.feed)).text(if args.by_run {
        "Runs are interleaved: each client runs all payloads, one client after the other, round \
         by round. A pair is a round of both."
    } else {
        "Blocks are interleaved: each block goes to all clients, one after the other, and who is \
         first changes; the others are stopped meanwhile."
    });
    let pairing = match args.by_run || args.rounds >= LEAST_PAIRS {
        true => Pairing::Rounds,
        false => Pairing::Blocks,
    };
    if !args.by_run {
        document.text(match pairing {
            Pairing::Rounds => {
                "A pair is a round of both, with its blocks: in each the clients were started \
                 anew, so the intervals know how far two processes of one program differ."
            }
            Pairing::Blocks => {
                "A pair is a block of both, with its times of all rounds. A verdict is on these \
                 processes and not on the programs, two of one of which differ too: six rounds \
                 have one on those."
            }
        });
    }
    match unequal_work(runs) {
        Some(why) => {
            document.text(format!("No verdict: the work was unequal. {why}"));
        }
        None => {
            document.text(Comparison::WORDS).table(verdicts(runs, pairing));
        }
    }
    document.table(replay::latencies("newPayload", runs, |block| Some(block.new_payload)));
    document.table(replay::latencies("forkchoiceUpdated", runs, |block| Some(block.forkchoice)));
    document.table(replay::speeds(runs)).chart(replay::distribution(runs));
    replay::faults(&mut document, runs);
    document
}

/// The ratios of all clients to the first one.
fn verdicts(runs: &[Run], pairing: Pairing) -> Table {
    let mut table = verdict_columns();
    let names = replay::names(runs);
    let Some((first, others)) = names.split_first() else { return table };
    for other in others {
        verdict_rows(&mut table, runs, pairing, [other, first]);
    }
    table
}

pub(crate) fn verdict_columns() -> Table {
    let table = Table::new("verdicts on newPayload and forkchoiceUpdated together")
        .column("client", Unit::Text)
        .column("against", Unit::Text)
        .column("of", Unit::Text)
        .column("pairs", Unit::Count);
    Comparison::columns(table)
}

/// What is to be said of one client against the first one.
pub(crate) fn verdict_rows(table: &mut Table, runs: &[Run], pairing: Pairing, sides: [&str; 2]) {
    let [other, first] = sides;
    let pairs = pairs(runs, pairing, sides);
    for (name, share) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99)] {
        let mut row: Vec<Cell> = cells![other, first, name, pairs.len()].into();
        row.extend(Comparison::new(&pairs, share).cells());
        table.row(row);
    }
}

/// What was measured next to each other, and is drawn together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pairing {
    /// Each block, on both sides, in all rounds.
    Blocks,
    /// Each round, all its blocks on both sides.
    Rounds,
}

/// The times of blocks that both sides ran in the same round, in seconds, the first side's before
/// the other's.
pub(crate) fn pairs(runs: &[Run], pairing: Pairing, sides: [&str; 2]) -> Vec<Vec<[f64; 2]>> {
    let total = |block: &Block| block.new_payload + block.forkchoice;
    let rounds = runs.iter().map(|run| run.round + 1).max().unwrap_or(0);
    let mut pairs = Vec::new();
    let mut places = HashMap::new();
    for round in 0..rounds {
        let of = |side: &str| {
            runs.iter().find(|r| r.client == side && r.round == round && r.failure.is_none())
        };
        let [Some(a), Some(b)] = sides.map(of) else { continue };
        let theirs: HashMap<B256, f64> = b.counted().map(|b| (b.hash, total(b))).collect();
        if pairing == Pairing::Rounds {
            pairs.push(Vec::new());
        }
        for block in a.counted() {
            let Some(theirs) = theirs.get(&block.hash) else { continue };
            let place = match pairing {
                Pairing::Rounds => pairs.len() - 1,
                Pairing::Blocks => *places.entry(block.hash).or_insert_with(|| {
                    pairs.push(Vec::new());
                    pairs.len() - 1
                }),
            };
            pairs[place].push([total(block), *theirs]);
        }
    }
    pairs
}

/// Why runs cannot be compared: other blocks, or a client that did something else with them.
pub(crate) fn unequal_work(runs: &[Run]) -> Option<String> {
    for run in runs {
        if let Some(failure) = run.failure.as_ref().filter(|it| it.fault.is_unequal_work()) {
            let (client, round) = (&run.client, run.round + 1);
            return Some(format!("{client}, round {round}: {}: {}", failure.fault, failure.said));
        }
    }
    let mut complete = runs.iter().filter(|run| run.failure.is_none());
    let first = complete.next()?;
    for run in complete {
        let of = |run: &Run| format!("{}, round {}", run.client, run.round + 1);
        let (a, b) = (of(first), of(run));
        if first.blocks.len() != run.blocks.len() {
            let (many, few) = (first.blocks.len(), run.blocks.len());
            return Some(format!("{a} ran {many} blocks, {b} {few}: give both the same files"));
        }
        for (x, y) in first.blocks.iter().zip(&run.blocks) {
            if (x.hash, x.state_root, x.gas_used) != (y.hash, y.state_root, y.gas_used) {
                return Some(format!(
                    "{a} ran block {} ({}, state {}) where {b} ran block {} ({}, state {}): give \
                     both the same files",
                    x.number, x.hash, x.state_root, y.number, y.hash, y.state_root
                ));
            }
        }
    }
    None
}
