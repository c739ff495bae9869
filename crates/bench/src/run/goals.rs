//! The bounds that this project wants Deponent to stay within. Reports have them where they are
//! asked for, with a hidden flag: users compare clients, and these are no clients' promises.

use crate::cells;
use crate::measure::Sorted;
use crate::report::{Table, Unit};
use crate::run::sample::{Block, Run, blocks, names};
use crate::run::tables::of_stage;

const OURS: &str = "deponent";
/// Times of `newPayload` over those of the fastest peer, with a witness and without.
const P50_RATIO: f64 = 0.7;
const P99_RATIO: f64 = 0.4;
const WITNESS_RATIO: f64 = 0.8;
/// How much longer a block may take with its witness.
const WITNESS_COST: f64 = 0.05;
/// The root after the last transaction, over execution.
const ROOT_SHARE: f64 = 0.08;
const FORKCHOICE_P99_MS: f64 = 1.0;
/// Memory beyond the idle process, in witnesses.
const MEMORY_RATIO: f64 = 1.3;
/// A wire's time is so many times shorter than that of geth over JSON: size, wire, bound.
const WIRES: [(&str, &str, f64); 10] = [
    ("17 MB", "json", 4.0),
    ("17 MB", "ssz", 8.0),
    ("17 MB", "ssz-unix", 8.0),
    ("17 MB", "descriptor", 8.0),
    ("17 MB", "held-codes", 8.0),
    ("500 MB", "json", 12.0),
    ("500 MB", "ssz", 25.0),
    ("500 MB", "ssz-unix", 28.0),
    ("500 MB", "descriptor", 40.0),
    ("500 MB", "held-codes", 55.0),
];

/// Each bound beside the measured value.
pub(crate) fn table(runs: &[Run]) -> Table {
    let mut table = Table::new("Targets")
        .column("target", Unit::Text)
        .column("measured", Unit::Ratio)
        .column("bound", Unit::Ratio)
        .column("met", Unit::Text);
    let mut stages: Vec<&str> =
        runs.iter().flat_map(|run| &run.blocks).map(|block| &*block.stage).collect();
    stages.dedup();
    stages.sort_unstable();
    stages.dedup();
    for stage in stages {
        of_chain(&mut table, stage, &of_stage(runs, stage));
        of_wires(&mut table, stage, &of_stage(runs, stage));
    }
    table
}

fn times(runs: &[Run], client: &str, read: impl Fn(&Block) -> Option<f64>) -> Sorted {
    Sorted::new(blocks(runs, client).into_iter().filter_map(read))
}

/// Adds a value that has to be at most its bound.
fn most(table: &mut Table, name: String, value: f64, bound: f64) {
    if !value.is_nan() {
        table.row(cells![name, value, bound, value <= bound]);
    }
}

/// Blocks that all clients were sent.
fn of_chain(table: &mut Table, stage: &str, runs: &[Run]) {
    let payload = |client: &str| times(runs, client, |block| Some(block.new_payload));
    let all = names(runs);
    let peers = || all.iter().filter(|name| !name.starts_with(OURS) && !name.contains('+'));
    let fastest =
        |share: f64| peers().map(|name| payload(name).percentile(share)).fold(f64::NAN, f64::min);
    let ours = payload(OURS);
    if ours.len() == 0 {
        return;
    }
    for (name, share, bound) in [("p50", 0.5, P50_RATIO), ("p99", 0.99, P99_RATIO)] {
        let ratio = ours.percentile(share) / fastest(share);
        most(table, format!("{stage}: newPayload {name} / fastest peer"), ratio, bound);
    }
    for name in all.iter().filter(|name| name.starts_with("deponent+")) {
        let own = payload(name).median();
        let words = format!("{stage}: {name}, p50 / fastest peer without witness");
        most(table, words, own / fastest(0.5), WITNESS_RATIO);
        let words = format!("{stage}: {name}, p50 beyond that without a witness");
        most(table, words, own / ours.median() - 1.0, WITNESS_COST);
    }
    let of = |name: &'static str| {
        times(runs, OURS, move |block| block.server_us.get(name).copied()).sum()
    };
    if stage != "empty" {
        let share = of("root") / of("execution");
        most(table, format!("{stage}: root / execution"), share, ROOT_SHARE);
    }
    let choices = times(runs, OURS, |block| Some(block.forkchoice)).percentile(0.99) * 1e3;
    most(table, format!("{stage}: forkchoiceUpdated p99, ms"), choices, FORKCHOICE_P99_MS);
}

/// Large witnesses.
fn of_wires(table: &mut Table, stage: &str, runs: &[Run]) {
    let total = |client: &str| times(runs, client, Block::with_later).median();
    for (size, wire, bound) in WIRES {
        let ratio = total("geth+json") / total(&format!("{OURS}+{wire}"));
        if size == stage && !ratio.is_nan() {
            let words = format!("{size}, {wire}: times as fast as geth's json, at least");
            table.row(cells![words, ratio, bound, ratio >= bound]);
        }
    }
    for client in names(runs).into_iter().filter(|name| name.starts_with("deponent+")) {
        let ratio = |block: &Block| {
            let (own, items) = (block.resources?, block.witness?);
            let beyond = (own.peak_kib + own.files_kib).saturating_sub(own.idle_kib);
            Some(beyond as f64 * 1024.0 / items.bytes as f64)
        };
        let words = format!("{stage}, {client}: server memory in witnesses");
        most(table, words, times(runs, client, ratio).max(), MEMORY_RATIO);
    }
}
