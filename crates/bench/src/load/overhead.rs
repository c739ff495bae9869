//! `deponent bench overhead`: what the instrument itself can do at most.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::Args;

use super::endpoint::Transport;
use super::mix::Mix;
use super::{Mode, TurnPlan, null_endpoint, turn, usual_threads, write};
use crate::cells;
use crate::number::count;
use crate::progress::say;
use crate::report::{Document, Table, Unit};

#[derive(Debug, Args)]
pub(crate) struct OverheadArgs {
    /// Seconds of each measurement.
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0)]
    duration: f64,
    /// Connections.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = count::<usize>)]
    connections: usize,
    /// Calls on their way when pipelined, and calls of a batch.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = count::<usize>)]
    depth: usize,
    /// Where the report goes; otherwise a new folder below target/bench/results.
    #[arg(long, value_name = "DIR")]
    results: Option<PathBuf>,
}

/// Measures our own part against a server that does nothing, prints the report and writes it.
pub(crate) fn overhead(args: &OverheadArgs) -> anyhow::Result<()> {
    ensure!(args.duration > 0.0, "--duration is {} seconds", args.duration);
    let mix = Arc::new(Mix::parse(&[])?);
    let mut table = Table::new("Calls")
        .column("transport", Unit::Text)
        .column("mode", Unit::Text)
        .column("calls", Unit::PerSecond)
        .column("p50", Unit::Us)
        .column("p99", Unit::Us)
        .column("our busiest thread", Unit::Percent)
        .column("our processor time a call", Unit::Us)
        .column("failed", Unit::Count);
    let transports = Transport::ALL.into_iter();
    for (transport, mode) in transports.flat_map(|it| Mode::ALL.map(|mode| (it, mode))) {
        let plan = TurnPlan {
            mode,
            connections: args.connections,
            depth: args.depth,
            threads: usual_threads(),
            duration: Duration::try_from_secs_f64(args.duration).context("--duration")?,
            calls: None,
            timeout: Duration::from_secs(10),
            max_rate: None,
        };
        let (_server, endpoint) = null_endpoint(transport)?;
        let tally = turn::run(&endpoint, &mix, &plan)?;
        let latency = tally.latency();
        let [p50, p99] = [0.5, 0.99].map(|share| latency.percentile(share) / 1e9);
        let (rate, busiest) = (tally.rate(), tally.busiest);
        let threads = plan.threads.min(plan.connections_over(transport)) as f64;
        let cpu = busiest * threads / rate;
        let names = [transport.name(), mode.name()];
        table.row(cells![names[0], names[1], rate, p50, p99, busiest, cpu, tally.failed()]);
    }
    let mut document = Document::new("The instrument's own overhead");
    document.text(
        "The usual mix of `deponent bench rpc` against a server of this program that does nothing, \
         on another thread.",
    );
    document.table(table);
    say(format_args!("{}", write(&document, args.results.as_ref())?.display()))?;
    Ok(())
}
