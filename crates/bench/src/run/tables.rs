//! The tables and charts of runs, and files in the format of reth-bench.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::cells;
use crate::clients::prepare::file_name;
use crate::measure::{Comparison, Sorted};
use crate::report::{Answer, Axis, Bars, Cell, Document, Lines, Table, Unit};
use crate::run::sample::{Block, Measured, Run, WitnessCall, by_client, stages};

/// The shares that tables of times have.
const SHARES: [(&str, f64); 5] =
    [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("max", 1.0)];
/// The stages that make up our node's own time, in their order.
const STAGES: [&str; 5] = ["recovery", "parent", "execution", "root", "witness"];
/// The length to which a refusal is shortened.
const REFUSAL_CHARS: usize = 90;
/// The title of the table of what went wrong.
pub(crate) const FAULTS: &str = "faults";

/// The measurements that form a pair, and are drawn together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pairing {
    /// Each block, on both sides, in all rounds.
    Blocks,
    /// Each round, all its blocks on both sides.
    Rounds,
}

/// Writes what was measured into a document, stage by stage.
pub(crate) fn fill(document: &mut Document, measured: &Measured) {
    let runs = &measured.runs;
    for stage in stages(runs) {
        if !stage.is_empty() {
            document.section(stage);
        }
        let own = of_stage(runs, stage);
        document.table(latencies("newPayload", &own, |block| Some(block.new_payload)));
        document.chart(distribution(&own)).chart(medians(stage, &own));
        let chosen = |block: &Block| (block.forkchoice > 0.0).then_some(block.forkchoice);
        document.table(latencies("forkchoiceUpdated", &own, chosen));
        let waited = |block: &Block| (block.queue_wait > 0.001).then_some(block.queue_wait);
        document.table(latencies("queue wait", &own, waited));
        document.table(latencies("persistence wait", &own, |block| block.persistence_wait));
        document.table(latencies("fork choice back", &own, |block| Some(block.reorg?[0])));
        document.table(latencies("fork choice forth", &own, |block| Some(block.reorg?[1])));
        document.table(speeds(&own)).table(branches(&own));
        witnesses(document, &own);
        depths(document, &own);
        document.table(resources(&own));
        server_stages(document, &own);
    }
    faults(document, runs);
    for remark in &measured.remarks {
        document.text(remark);
    }
}

/// The runs with the blocks of one stage alone.
pub(crate) fn of_stage(runs: &[Run], stage: &str) -> Vec<Run> {
    let own = runs.iter().map(|run| Run {
        client: run.client.clone(),
        round: run.round,
        blocks: run.blocks.iter().filter(|block| block.stage == stage).cloned().collect(),
        failure: run.failure.clone(),
        remarks: Vec::new(),
    });
    own.filter(|run| !run.blocks.is_empty()).collect()
}

/// The columns of a table that [`verdict_rows`] fills.
pub(crate) fn verdict_columns() -> Table {
    let table = Table::new("verdicts on newPayload and forkchoiceUpdated together")
        .columns(Unit::Text, ["client", "against", "of"])
        .column("pairs", Unit::Count);
    Comparison::columns(table)
}

/// The answer that the medians of [`verdict_rows`] give, without sides yet.
pub(crate) fn answer_beside(base: &str, stage: &str) -> Answer {
    let of = "newPayload and forkchoiceUpdated together, p50";
    Answer::new(if stage.is_empty() { of.into() } else { format!("{stage}, {of}") }, base)
}

/// Adds the comparison of one client with another, and returns that of their medians.
pub(crate) fn verdict_rows(
    table: &mut Table,
    runs: &[Run],
    pairing: Pairing,
    sides: [&str; 2],
) -> Comparison {
    let [other, first] = sides;
    let pairs = pairs(runs, pairing, sides);
    let mut row = |name: &str, share: f64| {
        let compared = Comparison::new(&pairs, share);
        let mut row: Vec<Cell> = cells![other, first, name, pairs.len()].into();
        row.extend(compared.cells());
        table.row(row);
        compared
    };
    let median = row("p50", 0.5);
    row("p90", 0.9);
    row("p99", 0.99);
    median
}

/// The times of blocks that both sides ran in the same round, in seconds, the first side's before
/// the other's: of both calls, or of the calls that it takes to have the witness.
pub(crate) fn pairs(runs: &[Run], pairing: Pairing, sides: [&str; 2]) -> Vec<Vec<[f64; 2]>> {
    let total = |block: &Block| {
        block.counts().then(|| block.with_later()).flatten().map(|time| time + block.forkchoice)
    };
    let rounds = runs.iter().map(|run| run.round + 1).max().unwrap_or(0);
    let (mut of_rounds, mut of_blocks) = (Vec::new(), BTreeMap::<usize, Vec<[f64; 2]>>::new());
    for round in 0..rounds {
        let of = |side: &str| {
            runs.iter().find(|r| r.client == side && r.round == round && r.failure.is_none())
        };
        let [Some(a), Some(b)] = sides.map(of) else { continue };
        let mut own = Vec::new();
        for (index, (a, b)) in a.blocks.iter().zip(&b.blocks).enumerate() {
            if let (Some(a), Some(b)) = (total(a), total(b)) {
                own.push([a, b]);
                of_blocks.entry(index).or_default().push([a, b]);
            }
        }
        of_rounds.push(own);
    }
    match pairing {
        Pairing::Rounds => of_rounds,
        Pairing::Blocks => of_blocks.into_values().collect(),
    }
}

/// How long newPayload took, a curve a client.
pub(crate) fn distribution(runs: &[Run]) -> Lines {
    let mut chart = Lines::distribution("newPayload", Axis::new("time", Unit::Ms));
    for (client, blocks) in by_client(runs) {
        chart.values(client, blocks.into_iter().map(|block| block.new_payload));
    }
    chart
}

/// The median of newPayload, a bar a client.
fn medians(stage: &str, runs: &[Run]) -> Bars {
    let of_all: Vec<&Block> = by_client(runs).flat_map(|(_, blocks)| blocks).collect();
    let gas = of_all.iter().map(|block| block.gas_used as f64).sum::<f64>() / of_all.len() as f64;
    let title = format!("engine_newPayload, {stage} blocks of {:.0} Mgas", gas / 1e6);
    let mut chart = Bars::new(title, Axis::new("median, less is better", Unit::Ms));
    for (client, blocks) in by_client(runs) {
        let times = Sorted::new(blocks.into_iter().map(|block| block.new_payload));
        chart.bar(client, [(client, times.median())]);
    }
    chart
}

/// How long something took, a row a client; without rows where nothing was measured.
pub(crate) fn latencies(title: &str, runs: &[Run], read: impl Fn(&Block) -> Option<f64>) -> Table {
    let table = Table::new(title).column("client", Unit::Text).column("blocks", Unit::Count);
    let mut table = table.columns(Unit::Ms, SHARES.map(|(name, _)| name)).column("mean", Unit::Ms);
    for (client, blocks) in by_client(runs) {
        let times = Sorted::new(blocks.into_iter().filter_map(&read));
        if times.len() > 0 {
            let mut row: Vec<Cell> = cells![client, times.len()].into();
            row.extend(SHARES.map(|(_, share)| times.tail(share)));
            row.push(times.mean().into());
            table.row(row);
        }
    }
    table
}

/// Gas a second: in newPayload, in both calls (the fork choice's, too) as reth-bench has it, and by
/// the clock on the wall.
pub(crate) fn speeds(runs: &[Run]) -> Table {
    let mut table = Table::new("gas a second")
        .column("client", Unit::Text)
        .column("gas", Unit::Mgas)
        .columns(Unit::MgasPerSecond, ["newPayload", "both calls", "wall clock"])
        .column("mean answer", Unit::Kb);
    for (client, blocks) in by_client(runs) {
        let sum = |read: fn(&Block) -> f64| blocks.iter().map(|block| read(block)).sum::<f64>();
        let gas = sum(|block| block.gas_used as f64);
        let payloads = sum(|block| block.new_payload);
        let both = payloads + sum(|block| block.forkchoice);
        let wall: f64 = runs.iter().filter(|run| run.client == client).map(wall).sum();
        if gas > 0.0 {
            let mean_bytes = sum(|block| block.answer_bytes as f64) / blocks.len() as f64;
            table.row(cells![client, gas, gas / payloads, gas / both, gas / wall, mean_bytes]);
        }
    }
    table
}

/// The time of the counted blocks, each from the end of the block before, in seconds.
fn wall(run: &Run) -> f64 {
    let before = std::iter::once(0.0).chain(run.blocks.iter().map(|block| block.ended));
    let blocks = run.blocks.iter().zip(before).filter(|(block, _)| block.counts());
    blocks.map(|(block, before)| block.ended - before).sum()
}

/// The first blocks of branches, by how many blocks are left for them.
fn branches(runs: &[Run]) -> Table {
    let mut table = Table::new("First blocks of another branch")
        .column("client", Unit::Text)
        .columns(Unit::Count, ["blocks left", "times"])
        .columns(Unit::Ms, ["newPayload p50", "max", "FCU p50", "FCU max"]);
    for (client, blocks) in by_client(runs) {
        let depths: BTreeSet<u64> = blocks.iter().map(|block| block.left).collect();
        for left in depths.into_iter().filter(|left| *left > 0) {
            let of = |read: fn(&Block) -> f64| {
                Sorted::new(blocks.iter().filter(|b| b.left == left).map(|block| read(block)))
            };
            let [calls, choices] = [of(|block| block.new_payload), of(|block| block.forkchoice)];
            let count = calls.len();
            let times = [calls.median(), calls.max(), choices.median(), choices.max()];
            table.row(cells![client, left, count].into_iter().chain(times.map(Cell::from)));
        }
    }
    table
}

/// Adds the times of witnesses that were decoded, or asked for after the block.
fn witnesses(document: &mut Document, runs: &[Run]) {
    let times = ["total", "min", "max", "newPayload", "first byte", "transfer", "decode", "again"];
    let mut table = Table::new("What a witness is spent on")
        .column("client", Unit::Text)
        .columns(Unit::Ms, times)
        .columns(Unit::Mb, ["sent", "witness"]);
    let mut chart = Bars::new("What a witness is spent on", Axis::new("median", Unit::Ms));
    let mut contents = BTreeSet::new();
    for (client, blocks) in by_client(runs) {
        let items = |block: &Block| block.witness.or_else(|| block.later_call()?.witness);
        if !blocks.iter().any(|block| items(block).is_some() || block.later_call().is_some()) {
            continue;
        }
        contents.extend(blocks.iter().filter_map(|block| items(block)).map(|it| it.content));
        let of = |read: &dyn Fn(&Block) -> Option<f64>| {
            Sorted::new(blocks.iter().filter_map(|block| read(block)))
        };
        // The median time of the call that brings the witness.
        let of_call = |read: fn([f64; 3]) -> f64| {
            let times = |block: &Block| match block.later_call() {
                Some(call) => Some(read([call.first_byte, call.last_byte, call.seconds?])),
                None => Some(read([block.first_byte, block.last_byte, block.new_payload])),
            };
            of(&times).median()
        };
        let totals = of(&Block::with_later);
        let payload = of(&|block| block.later_call().map(|_| block.new_payload)).median();
        let first_byte = of_call(|[first, ..]| first);
        let transfer = of_call(|[first, last, _]| last - first);
        let decode = of_call(|[_, last, whole]| whole - last);
        let bytes = |block: &Block| {
            let answer_bytes = block.later_call().map_or(block.answer_bytes, |it| it.answer_bytes);
            Some(answer_bytes as f64)
        };
        let later: Vec<_> = blocks.iter().filter_map(|block| block.later_call()).collect();
        let own = blocks.iter().flat_map(|block| &block.asked).filter(|it| it.depth.is_none());
        let again: Vec<_> = own.filter(|call| call.repeated).collect();
        table.row(cells![
            client,
            refused(&later).unwrap_or_else(|| totals.median().into()),
            totals.percentile(0.0),
            totals.max(),
            payload,
            first_byte,
            transfer,
            decode,
            median_of(&again),
            of(&bytes).median(),
            of(&|block| Some(items(block)?.bytes as f64)).median(),
        ]);
        let parts = [("newPayload", payload), ("until the first byte", first_byte)];
        let after = [("transfer", transfer), ("decoding after it", decode)];
        chart.bar(client, parts.into_iter().chain(after));
    }
    document.table(table).chart(chart);
    if contents.len() > 1 {
        document.text(
            "The witnesses do NOT all have the same codes and nodes; some clients give codes that \
             the block itself created.",
        );
    }
}

/// The refusal of a client that gave no witness: its beginning and its end.
fn refused(calls: &[&WitnessCall]) -> Option<Cell> {
    let refusal = calls.iter().find_map(|call| call.refusal.as_ref())?;
    let words = refusal.rsplit(": ").next().unwrap_or(refusal);
    let count = words.chars().count();
    if count <= REFUSAL_CHARS {
        return Some(words.into());
    }
    let start: String = words.chars().take(REFUSAL_CHARS / 2).collect();
    let end: String = words.chars().skip(count - REFUSAL_CHARS / 2).collect();
    Some(format!("{start} … {end}").into())
}

/// The median time of calls for witnesses, or why there is none.
fn median_of(calls: &[&WitnessCall]) -> Cell {
    let times = Sorted::new(calls.iter().filter_map(|call| call.seconds));
    refused(calls).unwrap_or_else(|| times.median().into())
}

/// Witnesses of older blocks, by how far below the head they are.
fn depths(document: &mut Document, runs: &[Run]) {
    let mut table = Table::new("Witnesses of older blocks")
        .column("client", Unit::Text)
        .columns(Unit::Count, ["depth", "witnesses"])
        .columns(Unit::Ms, ["p50", "min", "max", "again"])
        .column("sent", Unit::Mb)
        .column("ratio to the first depth", Unit::Ratio)
        .column("equal", Unit::Text);
    let x = Axis::new("blocks below the head", Unit::Count);
    let mut chart = Lines::new("Time by depth", x, Axis::new("p50", Unit::Ms));
    for (client, blocks) in by_client(runs) {
        let all = blocks.into_iter().flat_map(|block| &block.asked);
        let mut levels = BTreeMap::<usize, [Vec<&WitnessCall>; 2]>::new();
        for call in all {
            if let Some(depth) = call.depth {
                levels.entry(depth).or_default()[usize::from(call.repeated)].push(call);
            }
        }
        let Some(base) = levels.values().next().map(|[first, _]| first.clone()) else { continue };
        let mut points = Vec::new();
        for (depth, [first, again]) in &levels {
            let of = |call: &WitnessCall| base.iter().find(|base| base.hash == call.hash);
            let ratios = first.iter().filter_map(|call| Some(call.seconds? / of(call)?.seconds?));
            let content = |call: &WitnessCall| call.witness.map(|items| items.content);
            let is_equal =
                |call: &&WitnessCall| of(call).is_some_and(|it| content(it) == content(call));
            let times = Sorted::new(first.iter().filter_map(|call| call.seconds));
            let bytes = Sorted::new(first.iter().map(|call| call.answer_bytes as f64));
            let equal = refused(first).is_none().then(|| first.iter().all(is_equal));
            table.row(cells![
                client,
                *depth,
                first.len(),
                median_of(first),
                times.percentile(0.0),
                times.max(),
                median_of(again),
                bytes.median(),
                Sorted::new(ratios).median(),
                equal,
            ]);
            points.push([*depth as f64, times.median()]);
        }
        chart.series(client, points);
    }
    document.table(table).chart(chart);
}

/// Memory and processor time of the clients.
fn resources(runs: &[Run]) -> Table {
    let mut table = Table::new("memory and processor time of the clients")
        .column("client", Unit::Text)
        .columns(Unit::Mib, ["at the start", "at the end", "peak", "peak beyond the start"])
        .column("CPU a block", Unit::Ms);
    for (client, blocks) in by_client(runs) {
        let own: Vec<_> = blocks.iter().filter_map(|block| block.resources).collect();
        let (Some(first), Some(last)) = (own.first(), own.last()) else { continue };
        let peak = own.iter().map(|it| it.peak_kib + it.files_kib).max().unwrap_or_default();
        let cpu_ms = own.iter().map(|it| it.cpu_ms as f64).sum::<f64>() / own.len() as f64;
        let bytes = [first.idle_kib, last.resident_kib, peak, peak.saturating_sub(first.idle_kib)];
        let cells = bytes.map(|kib| Cell::from(kib as f64 * 1024.0));
        table.row(cells![client].into_iter().chain(cells).chain(cells![cpu_ms / 1e3]));
    }
    table
}

/// Adds the times of stages, of clients that tell them.
fn server_stages(document: &mut Document, runs: &[Run]) {
    let mut table = Table::new("stages, as the client says")
        .columns(Unit::Text, ["client", "stage"])
        .columns(Unit::Us, ["p50", "p99", "mean"]);
    let mut chart = Bars::new("stages, as the client says", Axis::new("mean", Unit::Us));
    for (client, blocks) in by_client(runs) {
        let all: BTreeSet<&String> =
            blocks.iter().flat_map(|block| block.server_us.keys()).collect();
        let of = |name: &str| {
            let said = blocks.iter().filter_map(|block| block.server_us.get(name));
            Sorted::new(said.map(|us| us / 1e6))
        };
        for name in &all {
            let values = of(name);
            let [p50, p99] = [0.5, 0.99].map(|share| values.percentile(share));
            table.row(cells![client, name.as_str(), p50, p99, values.mean()]);
        }
        if !all.is_empty() {
            chart.bar(client, STAGES.map(|name| (name, of(name).mean())));
        }
    }
    document.table(table).chart(chart);
}

/// Adds failures and other remarks.
pub(crate) fn faults(document: &mut Document, runs: &[Run]) {
    let mut table = Table::new(FAULTS)
        .column("client", Unit::Text)
        .columns(Unit::Count, ["round", "blocks before", "at block"])
        .columns(Unit::Text, ["fault", "what was seen"]);
    for run in runs {
        if let Some(failure) = &run.failure {
            let said = failure.said.replace('\n', " ");
            let (fault, round) = (failure.fault.to_string(), run.round + 1);
            table.row(cells![&*run.client, round, run.blocks.len(), failure.block, fault, said]);
        }
    }
    document.table(table);
    for run in runs {
        for remark in &run.remarks {
            let (client, round) = (&run.client, run.round + 1);
            document.text(format!("{client}, round {round}: {}", remark.replace('\n', " ")));
        }
    }
}

/// Writes `combined_latency.csv` and `total_gas.csv` with reth-bench's columns, and ours behind
/// them; of several runs each has a folder.
pub(crate) fn write_csv(runs: &[Run], results: &Path) -> anyhow::Result<()> {
    let is_alone = runs.len() == 1;
    for run in runs.iter().filter(|run| is_alone || !run.blocks.is_empty()) {
        let folder = format!("{}-{}", file_name(&run.client), run.round + 1);
        let folder = if is_alone { results.to_owned() } else { results.join(folder) };
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("combined_latency.csv"), combined_latency(run))?;
        fs::write(folder.join("total_gas.csv"), total_gas(run))?;
    }
    Ok(())
}

fn combined_latency(run: &Run) -> String {
    let mut text = String::from(
        "block_number,gas_limit,transaction_count,gas_used,new_payload_latency,fcu_latency,\
         total_latency,persistence_wait,queue_wait,first_byte,answer_bytes,block_hash\n",
    );
    for block in run.counted() {
        let Block { number, gas_limit, transactions, gas_used, .. } = block;
        let [payload, forkchoice] = [block.new_payload, block.forkchoice].map(micros);
        let [persistence, queue, first_byte] =
            [block.persistence_wait.unwrap_or(0.0), block.queue_wait, block.first_byte].map(micros);
        let (total, bytes, hash) = (payload + forkchoice, block.answer_bytes, block.hash);
        writeln!(
            text,
            "{number},{gas_limit},{transactions},{gas_used},{payload},{forkchoice},{total},\
             {persistence},{queue},{first_byte},{bytes},{hash}"
        )
        .expect("a string takes everything");
    }
    text
}

fn total_gas(run: &Run) -> String {
    let mut text = String::from("block_number,transaction_count,gas_used,time\n");
    for Block { number, transactions, gas_used, ended, .. } in run.counted() {
        writeln!(text, "{number},{transactions},{gas_used},{}", micros(*ended))
            .expect("a string takes everything");
    }
    text
}

/// Seconds, in whole microseconds.
fn micros(seconds: f64) -> u64 {
    (seconds * 1e6).round() as u64
}
