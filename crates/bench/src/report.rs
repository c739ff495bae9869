//! The report in Markdown: one table a part, then the targets.

use std::collections::BTreeSet;
use std::fmt::{self, Write};

use crate::chain::Part;
use crate::run::{Measured, Sample};
use crate::stats::Sorted;

/// What the issue asks for, as bounds of ratios or of milliseconds.
const P50_RATIO: f64 = 0.7;
const P99_RATIO: f64 = 0.4;
const WITNESS_RATIO: f64 = 0.8;
const WITNESS_COST: f64 = 0.05;
const ROOT_SHARE: f64 = 0.08;
const FORKCHOICE_P99_MS: f64 = 1.0;
const REORGS_P99_RATIO: f64 = 1.2;

/// Parts of so many blocks show whether memory grows.
const LONG_PART_BLOCKS: usize = 1000;

const OURS: &str = "deponent";
const WITH_WITNESS: &str = "deponent+witness";

/// What was measured, as a text for people.
pub(crate) fn markdown(title: &str, measured: &Measured) -> String {
    let mut out = format!("# {title}\n");
    write_all(&mut out, measured).expect("a string takes everything");
    out
}

fn write_all(out: &mut String, measured: &Measured) -> fmt::Result {
    for part in Part::ALL {
        let rows = rows(measured, part);
        if !rows.is_empty() {
            table(out, part, &rows)?;
            memory(out, &rows)?;
            server_table(out, &rows)?;
            targets(out, part, &rows, measured)?;
        }
    }
    for remark in &measured.remarks {
        writeln!(out, "\n{remark}")?;
    }
    Ok(())
}

/// One client in one part.
struct Row<'a> {
    client: &'a str,
    samples: Vec<&'a Sample>,
    payload_ms: Sorted,
    forkchoice_ms: Sorted,
}

fn rows(measured: &Measured, part: Part) -> Vec<Row<'_>> {
    let counted = |sample: &&Sample| sample.part == part && !sample.warm_up;
    let samples: Vec<&Sample> = measured.samples.iter().filter(counted).collect();
    let mut clients: Vec<&str> = Vec::new();
    for sample in &samples {
        if !clients.contains(&sample.client.as_str()) {
            clients.push(&sample.client);
        }
    }
    let row = |client| {
        let samples: Vec<&Sample> =
            samples.iter().filter(|sample| sample.client == client).copied().collect();
        let ms = |read: fn(&Sample) -> f64| Sorted::new(samples.iter().map(|s| read(s) / 1e3));
        Row {
            client,
            payload_ms: ms(|sample| sample.new_payload_us),
            forkchoice_ms: ms(|sample| sample.forkchoice_us),
            samples,
        }
    };
    clients.into_iter().map(row).collect()
}

fn table(out: &mut String, part: Part, rows: &[Row<'_>]) -> fmt::Result {
    let blocks = rows[0].payload_ms.len();
    let mean = |read: fn(&Sample) -> f64| {
        rows[0].samples.iter().map(|sample| read(sample)).sum::<f64>() / blocks as f64
    };
    writeln!(
        out,
        "\n## {}\n\n{blocks} blocks, on average {:.1} Mgas and {:.0} transactions. Milliseconds.\n",
        part.name(),
        mean(|sample| sample.gas_used as f64) / 1e6,
        mean(|sample| sample.transactions as f64),
    )?;
    writeln!(
        out,
        "| client | p50 | p90 | p99 | max | mean | Mgas/s | FCU p50 | FCU p99 | answer MB | \
         CPU ms | RSS MiB | peak MiB |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
    )?;
    for Row { client, samples, payload_ms, forkchoice_ms } in rows {
        let gas: f64 = samples.iter().map(|sample| sample.gas_used as f64).sum();
        let mean = |read: fn(&Sample) -> f64| {
            samples.iter().map(|sample| read(sample)).sum::<f64>() / samples.len() as f64
        };
        let resident = samples.last().map_or(0, |sample| sample.resident_kib) / 1024;
        let peak = samples.last().map_or(0, |sample| sample.peak_kib) / 1024;
        writeln!(
            out,
            "| {client} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} | {:.0} | {:.3} | {:.3} | {:.2} \
             | {:.0} | {resident} | {peak} |",
            payload_ms.median(),
            payload_ms.percentile(0.9),
            payload_ms.percentile(0.99),
            payload_ms.max(),
            payload_ms.mean(),
            gas / payload_ms.sum() / 1e3,
            forkchoice_ms.median(),
            forkchoice_ms.percentile(0.99),
            mean(|sample| sample.answer_bytes as f64) / 1e6,
            mean(|sample| sample.cpu_ms as f64),
        )?;
    }
    Ok(())
}

/// Resident memory along a long part: it should stay where it is.
fn memory(out: &mut String, rows: &[Row<'_>]) -> fmt::Result {
    let blocks = rows[0].samples.len();
    if blocks < LONG_PART_BLOCKS {
        return Ok(());
    }
    writeln!(out, "\nResident memory in MiB, after tenths of the blocks.\n")?;
    for row in rows {
        let after =
            |tenth: usize| row.samples[(blocks * tenth / 10).max(1) - 1].resident_kib / 1024;
        let all: Vec<String> = (1..=10).map(|tenth| after(tenth).to_string()).collect();
        writeln!(out, "- {}: {}", row.client, all.join(", "))?;
    }
    Ok(())
}

/// The stages that clients name themselves.
fn server_table(out: &mut String, rows: &[Row<'_>]) -> fmt::Result {
    for row in rows {
        let names: BTreeSet<&String> =
            row.samples.iter().flat_map(|sample| sample.server_us.keys()).collect();
        if names.is_empty() {
            continue;
        }
        writeln!(
            out,
            "\nStages of {}, in microseconds.\n\n| stage | p50 | p99 | mean |\n|---|--:|--:|--:|",
            row.client
        )?;
        for name in names {
            let values = row.stage(name);
            let [p50, p99] = [0.5, 0.99].map(|share| values.percentile(share));
            writeln!(out, "| {name} | {p50:.0} | {p99:.0} | {:.0} |", values.mean())?;
        }
    }
    Ok(())
}

impl Row<'_> {
    fn stage(&self, name: &str) -> Sorted {
        Sorted::new(self.samples.iter().filter_map(|sample| sample.server_us.get(name).copied()))
    }
}

fn targets(out: &mut String, part: Part, rows: &[Row<'_>], all: &Measured) -> fmt::Result {
    let row = |name: &str| rows.iter().find(|row| row.client == name);
    let peers = || rows.iter().filter(|row| !row.client.starts_with(OURS));
    let peers = || peers().filter(|row| !row.client.ends_with("+witness"));
    let fastest =
        |share: f64| peers().map(|row| row.payload_ms.percentile(share)).min_by(f64::total_cmp);
    let Some(ours) = row(OURS) else { return Ok(()) };
    let mut lines = Vec::new();
    for (name, share, bound) in [("p50", 0.5, P50_RATIO), ("p99", 0.99, P99_RATIO)] {
        if let Some(theirs) = fastest(share) {
            let ratio = ours.payload_ms.percentile(share) / theirs;
            lines.push((format!("newPayload {name} / fastest peer"), ratio, bound));
        }
    }
    if let (Some(witness), Some(theirs)) = (row(WITH_WITNESS), fastest(0.5)) {
        let ratio = witness.payload_ms.median() / theirs;
        lines.push(("with witness, p50 / fastest peer without".into(), ratio, WITNESS_RATIO));
    }
    if let Some(witness) = row(WITH_WITNESS) {
        let cost = paired(witness, ours) - 1.0;
        lines.push(("cost of the witness (median over blocks)".into(), cost, WITNESS_COST));
    }
    let (root, execution) = (ours.stage("root"), ours.stage("execution"));
    if root.len() > 0 && part != Part::Empty {
        let share = root.sum() / execution.sum();
        lines.push(("root after the last transaction / execution".into(), share, ROOT_SHARE));
    }
    let warm = self::rows(all, Part::Warm);
    if let (Part::Reorgs, Some(warm)) = (part, warm.iter().find(|row| row.client == OURS)) {
        let ratio = ours.payload_ms.percentile(0.99) / warm.payload_ms.percentile(0.99);
        lines.push(("newPayload p99 / that of the warm part".into(), ratio, REORGS_P99_RATIO));
    }
    let forkchoice = ours.forkchoice_ms.percentile(0.99);
    lines.push(("forkchoiceUpdated p99, ms".into(), forkchoice, FORKCHOICE_P99_MS));
    writeln!(out, "\n| target | measured | at most | met |\n|---|--:|--:|---|")?;
    for (name, value, bound) in lines {
        let met = if value <= bound { "yes" } else { "**no**" };
        writeln!(out, "| {name} | {value:.3} | {bound} | {met} |")?;
    }
    Ok(())
}

/// The median over blocks of how much longer `a` took than `b`.
fn paired(a: &Row<'_>, b: &Row<'_>) -> f64 {
    let pairs = a.samples.iter().zip(&b.samples).filter(|(a, b)| a.hash == b.hash);
    Sorted::new(pairs.map(|(a, b)| a.new_payload_us / b.new_payload_us)).median()
}
