//! What a run says: tables a part, then the targets.

use std::collections::{BTreeMap, BTreeSet};

use crate::cells;
use crate::chain::format::Part;
use crate::measure::{Comparison, Sorted};
use crate::report::{Axis, Bars, Document, Lines, Table, Unit};
use crate::run::{Measured, STAGES, Sample};

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

/// Writes what was measured into a document.
pub(super) fn fill(document: &mut Document, measured: &Measured) {
    document.text(
        "Times are from before the first byte of a call is sent until its answer is read. CPU and \
         memory are the client's: CPU a block, from the call to the end of the pause; RSS and its \
         peak after the last block.",
    );
    document.text(Comparison::WORDS);
    for part in Part::ALL {
        let rows = rows(measured, part);
        if rows.is_empty() {
            continue;
        }
        document.section(part.name());
        times(document, &rows);
        comparisons(document, &rows);
        changes(document, &rows);
        memory(document, &rows);
        stages(document, &rows);
        within_one_process(document, &rows);
        document.table(targets(part, &rows, measured));
    }
    for remark in &measured.remarks {
        document.text(remark);
    }
}

/// One client in one part. Times are in seconds.
struct Row<'a> {
    client: &'a str,
    /// Of a client that is asked for witnesses, those with one.
    samples: Vec<&'a Sample>,
    /// Those without one, of the same client.
    unasked: Vec<&'a Sample>,
    payload: Sorted,
    forkchoice: Sorted,
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
        let all = samples.iter().filter(|sample| sample.client == client).copied();
        let is_asked = all.clone().any(|sample| sample.with_witness);
        let (samples, unasked): (Vec<_>, _) = all.partition(|s| s.with_witness == is_asked);
        let seconds = |read: fn(&Sample) -> f64| {
            Sorted::new(samples.iter().map(|sample: &&Sample| read(sample) / 1e6))
        };
        Row {
            client,
            payload: seconds(|sample| sample.new_payload_us),
            forkchoice: seconds(|sample| sample.forkchoice_us),
            samples,
            unasked,
        }
    };
    clients.into_iter().map(row).collect()
}

impl Row<'_> {
    fn mean(&self, read: fn(&Sample) -> f64) -> f64 {
        Sorted::new(self.samples.iter().map(|sample| read(sample))).mean()
    }

    /// What a stage that the client names took, in seconds.
    fn stage(&self, name: &str) -> Sorted {
        let said = self.samples.iter().filter_map(|sample| sample.server_us.get(name));
        Sorted::new(said.map(|us| us / 1e6))
    }

    /// The times of blocks that both have, this one's first.
    fn pairs(&self, other: &Self) -> impl Iterator<Item = [f64; 2]> {
        pairs(&self.samples, &other.samples)
    }

    /// By what part a witness makes a block's time longer, beside a client without any: the median
    /// over blocks, and where some blocks came without one, beside the median of those.
    fn witness_cost(&self, without: &Self) -> f64 {
        let median = |samples: &[&Sample]| {
            let ratios = pairs(samples, &without.samples).map(|[ours, theirs]| ours / theirs);
            Sorted::new(ratios).median()
        };
        let unasked = if self.unasked.is_empty() { 1.0 } else { median(&self.unasked) };
        median(&self.samples) / unasked - 1.0
    }
}

/// A client that is asked for witnesses in some blocks alone, and names its stages: medians over
/// the blocks with a witness and over those without, in seconds.
#[derive(Debug)]
struct Within {
    /// Of a call, outside of these stages.
    elsewhere: f64,
    elsewhere_unasked: f64,
    assembling: f64,
    call_unasked: f64,
}

impl Within {
    /// What has to be done for a block, with its witness or without: the tries note what is read.
    const ANYHOW: [&str; 4] = ["recovery", "parent", "execution", "root"];

    fn of(row: &Row<'_>) -> Option<Self> {
        let says =
            |sample: &&Sample| Self::ANYHOW.iter().all(|s| sample.server_us.contains_key(*s));
        if row.unasked.is_empty() || !row.samples.iter().chain(&row.unasked).all(says) {
            return None;
        }
        let median = |samples: &[&Sample], us: fn(&Sample) -> f64| {
            Sorted::new(samples.iter().map(|sample| us(sample) / 1e6)).median()
        };
        let elsewhere = |sample: &Sample| {
            let stages: f64 = Self::ANYHOW.iter().map(|stage| sample.server_us[*stage]).sum();
            sample.new_payload_us - stages
        };
        Some(Self {
            elsewhere: median(&row.samples, elsewhere),
            elsewhere_unasked: median(&row.unasked, elsewhere),
            assembling: row.stage("witness").median(),
            call_unasked: median(&row.unasked, |sample| sample.new_payload_us),
        })
    }

    fn cost(&self) -> f64 {
        self.elsewhere - self.elsewhere_unasked
    }
}

/// The times of blocks that are in both lists, in seconds; both are in the order of blocks.
fn pairs(some: &[&Sample], others: &[&Sample]) -> impl Iterator<Item = [f64; 2]> {
    let mut others = others.iter();
    some.iter().filter_map(move |sample| {
        let other = others.find(|other| other.hash == sample.hash)?;
        Some([sample.new_payload_us / 1e6, other.new_payload_us / 1e6])
    })
}

fn times(document: &mut Document, rows: &[Row<'_>]) {
    document.text(format!(
        "{} blocks, on average {:.1} Mgas and {:.0} transactions.",
        rows[0].samples.len(),
        rows[0].mean(|sample| sample.gas_used as f64) / 1e6,
        rows[0].mean(|sample| sample.transactions as f64),
    ));
    let mut table = Table::new("newPayload and forkchoiceUpdated").column("client", Unit::Text);
    for name in ["p50", "p90", "p95", "p99", "max", "mean"] {
        table = table.column(name, Unit::Ms);
    }
    table = table
        .column("gas", Unit::MgasPerSecond)
        .column("FCU p50", Unit::Ms)
        .column("FCU p99", Unit::Ms)
        .column("mean answer", Unit::Kb)
        .column("CPU", Unit::Ms)
        .column("RSS", Unit::Mib)
        .column("peak", Unit::Mib);
    let mut chart = Lines::distribution("newPayload", Axis::new("newPayload", Unit::Ms));
    for row in rows {
        let Row { client, samples, payload, forkchoice, .. } = row;
        let [p50, p90, p95, p99] = [0.5, 0.9, 0.95, 0.99].map(|share| payload.percentile(share));
        let gas: f64 = samples.iter().map(|sample| sample.gas_used as f64).sum();
        let last = samples.last();
        table.row(cells![
            *client,
            p50,
            p90,
            p95,
            p99,
            payload.max(),
            payload.mean(),
            gas / payload.sum(),
            forkchoice.median(),
            forkchoice.percentile(0.99),
            row.mean(|sample| sample.answer_bytes as f64),
            row.mean(|sample| sample.cpu_ms as f64 / 1e3),
            last.map(|sample| sample.resident_kib * 1024),
            last.map(|sample| sample.peak_kib * 1024),
        ]);
        chart.values(*client, samples.iter().map(|sample| sample.new_payload_us / 1e6));
    }
    document.table(table).chart(chart);
}

/// Each of our rows beside each of the others, block by block.
fn comparisons(document: &mut Document, rows: &[Row<'_>]) {
    let table = Table::new("newPayload, each block a pair")
        .column("client", Unit::Text)
        .column("against", Unit::Text)
        .column("of", Unit::Text);
    let mut table = Comparison::columns(table);
    for ours in rows.iter().filter(|row| row.client.starts_with(OURS)) {
        for other in rows.iter().take_while(|other| other.client != ours.client) {
            let pairs: Vec<_> = ours.pairs(other).map(|pair| vec![pair]).collect();
            for (name, share) in [("p50", 0.5), ("p99", 0.99)] {
                let who = cells![ours.client, other.client, name];
                table.row(who.into_iter().chain(Comparison::new(&pairs, share).cells()));
            }
        }
    }
    document.table(table);
}

/// The first blocks of branches, by how many blocks are left for them.
fn changes(document: &mut Document, rows: &[Row<'_>]) {
    let mut table = Table::new("First blocks of another branch")
        .column("client", Unit::Text)
        .column("blocks left", Unit::Count)
        .column("times", Unit::Count)
        .column("newPayload p50", Unit::Ms)
        .column("max", Unit::Ms)
        .column("FCU p50", Unit::Ms)
        .column("FCU max", Unit::Ms);
    let mut is_empty = true;
    for row in rows {
        let mut by_depth = BTreeMap::<u64, Vec<&Sample>>::new();
        for sample in row.samples.iter().filter(|sample| sample.left > 0) {
            by_depth.entry(sample.left).or_default().push(sample);
        }
        for (left, samples) in by_depth {
            let seconds =
                |us: fn(&Sample) -> f64| Sorted::new(samples.iter().map(|sample| us(sample) / 1e6));
            let payload = seconds(|sample| sample.new_payload_us);
            let choice = seconds(|sample| sample.forkchoice_us);
            let times = [payload.median(), payload.max(), choice.median(), choice.max()];
            let who = cells![row.client, left, samples.len()];
            table.row(who.into_iter().chain(times.map(Into::into)));
            is_empty = false;
        }
    }
    if !is_empty {
        document.table(table);
    }
}

/// Resident memory along a long part: it should stay where it is.
fn memory(document: &mut Document, rows: &[Row<'_>]) {
    let blocks = rows[0].samples.len();
    if blocks < LONG_PART_BLOCKS {
        return;
    }
    let mut table = Table::new("Resident memory along the blocks").column("client", Unit::Text);
    for tenth in 1..=10 {
        table = table.column(format!("{tenth}0%"), Unit::Mib);
    }
    for row in rows {
        let after = |tenth: usize| row.samples[(blocks * tenth / 10).max(1) - 1].resident_kib;
        let resident = (1..=10).map(|tenth| (after(tenth) * 1024).into());
        table.row(cells![row.client].into_iter().chain(resident));
    }
    document.table(table);
}

/// The stages that clients name themselves.
fn stages(document: &mut Document, rows: &[Row<'_>]) {
    let mut chart = Bars::new("Stages of newPayload", Axis::new("mean", Unit::Ms));
    for row in rows {
        let names: BTreeSet<&String> =
            row.samples.iter().flat_map(|sample| sample.server_us.keys()).collect();
        if names.is_empty() {
            continue;
        }
        let mut table = Table::new(format!("Stages of {}", row.client))
            .column("stage", Unit::Text)
            .column("p50", Unit::Us)
            .column("p99", Unit::Us)
            .column("mean", Unit::Us);
        for name in names {
            let values = row.stage(name);
            let [p50, p99] = [0.5, 0.99].map(|share| values.percentile(share));
            table.row(cells![name.as_str(), p50, p99, values.mean()]);
        }
        document.table(table);
        chart.bar(row.client, STAGES.map(|name| (name, row.stage(name).mean())));
    }
    document.chart(chart);
}

/// What a witness costs where the same process is asked for it in some blocks alone.
fn within_one_process(document: &mut Document, rows: &[Row<'_>]) {
    let mut table = Table::new("The witness within one process, medians over blocks")
        .column("client", Unit::Text)
        .column("with it", Unit::Count)
        .column("without", Unit::Count)
        .column("elsewhere, with", Unit::Us)
        .column("elsewhere, without", Unit::Us)
        .column("putting together", Unit::Us)
        .column("transport", Unit::Us)
        .column("cost", Unit::Percent);
    let mut is_empty = true;
    for row in rows {
        let Some(within) = Within::of(row) else { continue };
        is_empty = false;
        table.row(cells![
            row.client,
            row.samples.len(),
            row.unasked.len(),
            within.elsewhere,
            within.elsewhere_unasked,
            within.assembling,
            within.cost() - within.assembling,
            within.cost() / within.call_unasked,
        ]);
    }
    if !is_empty {
        document.text(
            "Elsewhere is newPayload without recovery, parent, execution and root, which are the \
             same with a witness and without. The cost is what is more of it with one, as a part \
             of newPayload without.",
        );
        document.table(table);
    }
}

fn targets(part: Part, rows: &[Row<'_>], all: &Measured) -> Table {
    let mut table = Table::new("Targets")
        .column("target", Unit::Text)
        .column("measured", Unit::Ratio)
        .column("at most", Unit::Ratio)
        .column("met", Unit::Text);
    let row = |name: &str| rows.iter().find(|row| row.client == name);
    let peers = || rows.iter().filter(|row| !row.client.starts_with(OURS));
    let peers = || peers().filter(|row| !row.client.contains('+'));
    let fastest =
        |share: f64| peers().map(|row| row.payload.percentile(share)).min_by(f64::total_cmp);
    let Some(ours) = row(OURS) else { return table };
    let mut target = |name: &str, value: f64, bound: f64| {
        table.row(cells![name, value, bound, value <= bound]);
    };
    for (name, share, bound) in [("p50", 0.5, P50_RATIO), ("p99", 0.99, P99_RATIO)] {
        if let Some(theirs) = fastest(share) {
            let ratio = ours.payload.percentile(share) / theirs;
            target(&format!("newPayload {name} / fastest peer"), ratio, bound);
        }
    }
    let with_witness = rows.iter().filter(|row| row.client.starts_with(OURS) && row.client != OURS);
    for witness in with_witness {
        let name = witness.client;
        if let Some(theirs) = fastest(0.5) {
            let ratio = witness.payload.median() / theirs;
            target(&format!("{name}, p50 / fastest peer without witness"), ratio, WITNESS_RATIO);
        }
        let cost = witness.witness_cost(ours);
        target(&format!("{name}, cost of the witness (median over blocks)"), cost, WITNESS_COST);
    }
    let (root, execution) = (ours.stage("root"), ours.stage("execution"));
    if root.len() > 0 && part != Part::Empty {
        let share = root.sum() / execution.sum();
        target("root after the last transaction / execution", share, ROOT_SHARE);
    }
    let warm = self::rows(all, Part::Warm);
    if let (Part::Reorgs, Some(warm)) = (part, warm.iter().find(|row| row.client == OURS)) {
        let ratio = ours.payload.percentile(0.99) / warm.payload.percentile(0.99);
        target("newPayload p99 / that of the warm part", ratio, REORGS_P99_RATIO);
    }
    let forkchoice_ms = ours.forkchoice.percentile(0.99) * 1e3;
    target("forkchoiceUpdated p99, ms", forkchoice_ms, FORKCHOICE_P99_MS);
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::B256;

    fn samples(times: &[(u8, f64, bool)]) -> Vec<Sample> {
        let sample = |(block, new_payload_us, with_witness): &(u8, f64, bool)| Sample {
            part: Part::Warm,
            client: "of it".into(),
            number: 0,
            hash: B256::repeat_byte(*block),
            gas_used: 0,
            transactions: 0,
            place: 0,
            warm_up: false,
            left: 0,
            with_witness: *with_witness,
            new_payload_us: *new_payload_us,
            first_byte_us: 0.0,
            answer_bytes: 0,
            forkchoice_us: 0.0,
            resident_kib: 0,
            peak_kib: 0,
            cpu_ms: 0,
            server_us: Default::default(),
        };
        times.iter().map(sample).collect()
    }

    fn row(samples: &[Sample]) -> Row<'_> {
        let (asked, unasked) = samples.iter().partition(|sample| sample.with_witness);
        let empty = || Sorted::new([]);
        Row { client: "", samples: asked, unasked, payload: empty(), forkchoice: empty() }
    }

    #[test]
    fn what_a_witness_costs_by_hand() {
        let plain: Vec<_> = (1..=6).map(|block| (block, 100.0, true)).collect();
        let plain = samples(&plain);
        // Ratios 1.1, 1.3, 1.5 with it.
        let always = [(1, 110.0, true), (3, 130.0, true), (6, 150.0, true)];
        let cost = row(&samples(&always)).witness_cost(&row(&plain));
        assert!((cost - 0.3).abs() < 1e-9, "{cost}");
        // This process is slower by a quarter without it too: 1.3 to 1.25.
        let half = [always[0], (2, 120.0, false), always[1], (4, 125.0, false), always[2]];
        let half = [&half[..], &[(5, 140.0, false)]].concat();
        let mut ordered = half;
        ordered.sort_by_key(|(block, ..)| *block);
        let cost = row(&samples(&ordered)).witness_cost(&row(&plain));
        assert!((cost - 0.04).abs() < 1e-9, "{cost}");
    }

    #[test]
    fn what_a_witness_costs_within_one_process_by_hand() {
        let mut of_both =
            samples(&[(1, 100.0, true), (2, 90.0, false), (3, 120.0, true), (4, 70.0, false)]);
        assert!(Within::of(&row(&of_both)).is_none(), "no stages");
        for (sample, execution) in of_both.iter_mut().zip([60.0, 62.0, 78.0, 44.0]) {
            let stages = [("recovery", 1.0), ("parent", 2.0), ("execution", execution)];
            let stages = stages.into_iter().chain([("root", 3.0), ("witness", 5.0)]);
            sample.server_us = stages.map(|(name, us)| (name.to_owned(), us)).collect();
        }
        // 34 and 36 us elsewhere with it, 22 and 20 without.
        let within = Within::of(&row(&of_both)).expect("all stages");
        let Within { elsewhere, elsewhere_unasked, assembling, call_unasked } = within;
        let found = [elsewhere, elsewhere_unasked, assembling, call_unasked, within.cost()];
        let expected = [35e-6, 21e-6, 5e-6, 80e-6, 14e-6];
        for (found, expected) in found.into_iter().zip(expected) {
            assert!((found - expected).abs() < 1e-12, "{within:?}");
        }
        of_both.retain(|sample| sample.with_witness);
        assert!(Within::of(&row(&of_both)).is_none(), "none without");
    }
}
