//! `deponent bench overhead`: what the instrument itself can do at most.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::Args;

use super::message::Wire;
use super::tally::Tally;
use super::target::Mix;
use super::turn;
use super::{Mode, Plan, null_contender, usual_threads, write};
use crate::args::count;
use crate::cells;
use crate::report::{Document, Table, Unit};

/// What `overhead` is given.
#[derive(Debug, Args)]
pub struct OverheadArgs {
    /// Seconds of each measurement of calls.
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0)]
    duration: f64,
    /// Connections.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = count::<usize>)]
    connections: usize,
    /// Calls on their way when pipelined, and calls of a batch.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = count::<usize>)]
    depth: usize,
    /// The size of the witnesses, in MB.
    #[arg(long, value_name = "MB", default_value_t = 100, value_parser = count::<usize>)]
    witness: usize,
    /// Witnesses that are received in each encoding over each transport.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = count::<usize>)]
    witnesses: usize,
    /// Where the report goes; otherwise a new folder below target/bench/results.
    #[arg(long, value_name = "DIR")]
    results: Option<PathBuf>,
}

/// Measures our own part against a server that does nothing, prints the report and writes it.
pub(crate) fn overhead(args: &OverheadArgs) -> anyhow::Result<()> {
    let mut document = Document::new("The instrument's own overhead");
    document.text(
        "Against a server of this program that does nothing, on another thread. Calls: the usual \
         mix of `deponent bench rpc`. Witnesses: received and decoded to slices of memory that was \
         touched before, by the code of `deponent bench transports`.",
    );
    document.table(calls(args)?);
    println!("{}", write(&document, args.results.as_ref())?.display());
    Ok(())
}

fn calls(args: &OverheadArgs) -> anyhow::Result<Table> {
    ensure!(args.duration > 0.0, "--duration is {} seconds", args.duration);
    let mix = Mix::parse(&[])?;
    let mut table = Table::new("Calls")
        .column("transport", Unit::Text)
        .column("mode", Unit::Text)
        .column("calls", Unit::PerSecond)
        .column("p50", Unit::Us)
        .column("p99", Unit::Us)
        .column("our busiest thread", Unit::Percent)
        .column("our processor time a call", Unit::Us)
        .column("failed", Unit::Count);
    for wire in Wire::ALL {
        for mode in Mode::ALL {
            let connections = args.connections;
            let plan = Plan {
                mode,
                connections,
                depth: args.depth,
                threads: usual_threads().min(connections),
                duration: Duration::try_from_secs_f64(args.duration).context("--duration")?,
                calls: None,
                timeout: Duration::from_secs(10),
                max_rate: None,
            };
            let null = null_contender(wire)?;
            let tally: Tally = turn::run(&null.target, &mix, &plan)?;
            let latency = tally.latency();
            let [p50, p99] = [0.5, 0.99].map(|share| latency.percentile(share) / 1e9);
            let (rate, busiest) = (tally.rate(), tally.busiest);
            let threads = plan.threads as f64;
            let row = cells![
                wire.name(),
                mode.name(),
                rate,
                p50,
                p99,
                busiest,
                busiest * threads / rate,
                tally.failed()
            ];
            table.row(row);
        }
    }
    Ok(table)
}
