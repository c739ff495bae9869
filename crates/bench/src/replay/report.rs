//! What is said of runs: their tables, and the files that reth-bench wrote.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::{Block, Entrant, Feed, Run, file_name};
use crate::cells;
use crate::measure::Sorted;
use crate::report::{Axis, Cell, Document, Lines, Ran, Table, Unit};

/// The shares that tables of times have.
const SHARES: [(&str, f64); 5] =
    [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("max", 1.0)];

/// What the table of what went wrong is called.
pub(crate) const FAULTS: &str = "faults";

/// The names of the clients, in the order of their first runs.
pub(crate) fn names(runs: &[Run]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for run in runs {
        if !names.contains(&run.client.as_str()) {
            names.push(&run.client);
        }
    }
    names
}

/// The counted blocks of a client's runs.
pub(super) fn blocks<'a>(runs: &'a [Run], client: &str) -> Vec<&'a Block> {
    runs.iter().filter(|run| run.client == client).flat_map(Run::counted).collect()
}

/// The report of all runs of one client.
pub(super) fn document(title: String, feed: &Feed, runs: &[Run]) -> Document {
    let mut document = Document::new(title);
    document.text(sent(feed));
    document.table(latencies("newPayload", runs, |block| Some(block.new_payload)));
    document.table(latencies("forkchoiceUpdated", runs, |block| Some(block.forkchoice)));
    if let Some(slot) = feed.wait_time {
        document.table(latencies("queue wait", runs, |block| Some(block.queue_wait)));
        too_slow(&mut document, runs, slot.as_secs_f64());
    }
    document.table(latencies("persistence wait", runs, |block| block.persistence_wait));
    document.table(latencies("fork choice back", runs, |block| Some(block.reorg?[0])));
    document.table(latencies("fork choice forth", runs, |block| Some(block.reorg?[1])));
    document.table(speeds(runs)).chart(distribution(runs));
    faults(&mut document, runs);
    document
}

/// How long newPayload took, a curve a client.
pub(crate) fn distribution(runs: &[Run]) -> Lines {
    let mut chart = Lines::distribution("newPayload", Axis::new("time", Unit::Ms));
    for client in names(runs) {
        chart.values(client, blocks(runs, client).into_iter().map(|block| block.new_payload));
    }
    chart
}

/// What is sent, at which pace, and what is measured, in sentences.
pub(crate) fn sent(feed: &Feed) -> String {
    let files: Vec<String> = feed.payloads.iter().map(|path| path.display().to_string()).collect();
    let mut text = format!("The payloads of {}", files.join(", "));
    if feed.skip > 0 {
        text += &format!(" after the first {}", feed.skip);
    }
    text += &match feed.wait_time {
        Some(slot) => format!(
            ", one every {} ms: what a payload waits beyond the beginning of its slot is its queue \
             wait",
            slot.as_secs_f64() * 1e3
        ),
        None => ", each as soon as the last one was done".into(),
    };
    if let super::Persistence::Every(blocks) = feed.wait_for_persistence {
        text += &match blocks {
            1 => "; each is waited for until it is persisted".into(),
            _ => format!("; every {blocks}th is waited for until it is persisted"),
        };
    }
    if feed.warm_up > 0 {
        text += &format!("; the first {} warm the client up and are not counted", feed.warm_up);
    }
    text += ". Times are from before the first byte of the call is sent until its answer is read.";
    text
}

/// Says which clients took longer than a slot, in seconds, for a block.
fn too_slow(document: &mut Document, runs: &[Run], slot: f64) {
    for client in names(runs) {
        let blocks = blocks(runs, client);
        let is_late = |block: &&&Block| block.new_payload + block.forkchoice > slot;
        let late = blocks.iter().filter(is_late).count();
        if late > 0 {
            let (all, ms) = (blocks.len(), slot * 1e3);
            document.text(format!(
                "{client} is slow: {late} of {all} blocks took longer than the slot of {ms} ms."
            ));
        }
    }
}

/// How long something took, a row a client; without rows where nothing was measured.
pub(crate) fn latencies(title: &str, runs: &[Run], read: impl Fn(&Block) -> Option<f64>) -> Table {
    let mut table = Table::new(title).column("client", Unit::Text).column("blocks", Unit::Count);
    for (name, _) in SHARES {
        table = table.column(name, Unit::Ms);
    }
    table = table.column("mean", Unit::Ms);
    for client in names(runs) {
        let times = Sorted::new(blocks(runs, client).into_iter().filter_map(&read));
        if times.len() > 0 {
            let mut row: Vec<Cell> = cells![client, times.len()].into();
            row.extend(SHARES.map(|(_, share)| Cell::from(times.percentile(share))));
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
        .column("newPayload", Unit::MgasPerSecond)
        .column("both calls", Unit::MgasPerSecond)
        .column("wall clock", Unit::MgasPerSecond)
        .column("mean answer", Unit::Kb);
    for client in names(runs) {
        let blocks = blocks(runs, client);
        let sum = |read: fn(&Block) -> f64| blocks.iter().map(|block| read(block)).sum::<f64>();
        let gas = sum(|block| block.gas_used as f64);
        let payloads = sum(|block| block.new_payload);
        let both = payloads + sum(|block| block.forkchoice);
        let wall: f64 = runs.iter().filter(|run| run.client == client).map(wall).sum();
        table.row(cells![
            client,
            gas,
            gas / payloads,
            gas / both,
            gas / wall,
            sum(|block| block.answer_bytes as f64) / blocks.len() as f64,
        ]);
    }
    table
}

/// The time of the counted blocks, each from the end of the block before, in seconds.
fn wall(run: &Run) -> f64 {
    let before = std::iter::once(0.0).chain(run.blocks.iter().map(|block| block.ended));
    let blocks = run.blocks.iter().zip(before).filter(|(block, _)| block.counts());
    blocks.map(|(block, before)| block.ended - before).sum()
}

/// What went wrong, and the other remarks.
pub(crate) fn faults(document: &mut Document, runs: &[Run]) {
    let mut table = Table::new(FAULTS)
        .column("client", Unit::Text)
        .column("round", Unit::Count)
        .column("blocks before", Unit::Count)
        .column("at block", Unit::Count)
        .column("fault", Unit::Text)
        .column("what was seen", Unit::Text);
    for run in runs {
        if let Some(failure) = &run.failure {
            let said = failure.said.replace('\n', " ");
            let (fault, round) = (failure.fault.to_string(), run.round + 1);
            let row = cells![&*run.client, round, run.blocks.len(), failure.block, fault, said];
            table.row(row);
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

/// The programs, as they say themselves.
pub(crate) fn clients(entrants: &[Entrant]) -> anyhow::Result<Vec<Ran>> {
    let ran = entrants.iter().map(|Entrant { name, target }| {
        let (name, arguments) = (name.clone(), target.shown(false));
        Ok(Ran { name, version: target.version()?, arguments })
    });
    ran.collect()
}

/// Writes `combined_latency.csv` and `total_gas.csv` with reth-bench's columns, and ours behind
/// them; of several runs each has a folder.
pub(super) fn write_csv(runs: &[Run], results: &Path) -> anyhow::Result<()> {
    let is_alone = runs.len() == 1;
    for run in runs {
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
