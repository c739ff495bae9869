//! What a run says: a table a size, then the targets.

use std::collections::BTreeSet;

use super::Sample;
use super::wires;
use crate::cells;
use crate::measure::Sorted;
use crate::report::{Axis, Bars, Cell, Document, Lines, Table, Unit};
use crate::run::STAGES;

/// What the wires have to be faster than.
const PEER: (&str, &str) = ("geth", "json");
const OURS: &str = "deponent";

/// How many times faster than [`PEER`] a transport has to be: size, transport, bound.
const TARGETS: &[(u64, &str, f64)] = &[
    (17, "json", 4.0),
    (17, "ssz", 8.0),
    (17, "ssz-unix", 8.0),
    (17, "descriptor", 8.0),
    (17, "held-codes", 8.0),
    (500, "json", 12.0),
    (500, "ssz", 25.0),
    (500, "ssz-unix", 28.0),
    (500, "descriptor", 40.0),
    (500, "held-codes", 55.0),
];
/// The server's peak memory beyond the idle process, in witnesses, at this size.
const MEMORY_RATIO: f64 = 1.3;
const MEMORY_SIZE: u64 = 500;

/// What the columns are.
const METHOD: &str = "\
    A payload with its witness, from the request until the witness's items are slices in the \
    caller's memory. Each call has a block of its own and a fresh connection; numbers are \
    medians. total ends when the items are there; server is validation and putting the witness \
    together, as the server says; encode is what else came before the first byte; transfer lies \
    between the first byte and the last, and encoding and decoding go on in it; decode is the \
    caller's work, of which after came after the last byte. Memory of the server is what it had \
    at most during the call, beyond what it had when it was started, how much of that are pages \
    of mapped files on disk, which are the system's cache of these files, and beyond what it had \
    before the call; that of the caller is beyond idle. Of the targets for memory, that of the \
    first call is beyond the idle process, and those of later calls are beyond right before.";

/// What stands where a server says nothing of its own work.
const UNKNOWN: &str = "not separable";

/// Writes what was measured into a document.
pub(super) fn fill(document: &mut Document, samples: &[Sample]) {
    document.text(METHOD);
    let sizes: BTreeSet<u64> = samples.iter().map(|sample| sample.size).collect();
    let mut targets = Table::new("Targets")
        .column("target", Unit::Text)
        .column("measured", Unit::Ratio)
        .column("bound", Unit::Ratio)
        .column("met", Unit::Text);
    let mut lanes: Vec<(String, Vec<[f64; 2]>)> = Vec::new();
    for size in sizes {
        let of_size: Vec<&Sample> = samples.iter().filter(|sample| sample.size == size).collect();
        let rows = rows(&of_size);
        table(document, size, &of_size, &rows);
        add_targets(&mut targets, size, &of_size, &rows);
        for row in &rows {
            let point = [row.median(|sample| sample.witness_bytes as f64), row.total()];
            match lanes.iter_mut().find(|(name, _)| *name == row.name()) {
                Some((_, points)) => points.push(point),
                None => lanes.push((row.name(), vec![point])),
            }
        }
    }
    let [x, y] = [Axis::new("witness", Unit::Mb), Axis::new("total", Unit::Ms)];
    let mut chart = Lines::new("Sizes", x.logarithmic(), y.logarithmic());
    for (name, points) in lanes {
        chart.series(name, points);
    }
    document.section("All sizes").chart(chart).table(targets);
}

/// One client over one transport. Times are in seconds.
struct Row<'a> {
    client: &'a str,
    transport: &'a str,
    samples: Vec<&'a Sample>,
}

impl Row<'_> {
    fn name(&self) -> String {
        format!("{}, {}", self.client, self.transport)
    }

    fn median(&self, read: impl Fn(&Sample) -> f64) -> f64 {
        Sorted::new(self.samples.iter().map(|sample| read(sample))).median()
    }

    /// The median of a time, of those samples that have it.
    fn time(&self, read: impl Fn(&Sample) -> Option<f64>) -> f64 {
        Sorted::new(self.samples.iter().filter_map(|sample| read(sample))).median() / 1e6
    }

    fn total(&self) -> f64 {
        self.time(|sample| Some(sample.whole_us))
    }

    fn peak_bytes(&self, base: impl Fn(&Sample) -> u64) -> f64 {
        peak_bytes(&self.samples, base)
    }
}

/// The most that the server had in any of these calls, beyond `base`.
fn peak_bytes(samples: &[&Sample], base: impl Fn(&Sample) -> u64) -> f64 {
    let most = |sample: &Sample| sample.server_peak_kib + sample.server_files_kib;
    let beyond = |sample: &&Sample| most(sample).saturating_sub(base(sample)) as f64;
    Sorted::new(samples.iter().map(beyond)).max() * 1024.0
}

fn rows<'a>(samples: &[&'a Sample]) -> Vec<Row<'a>> {
    let mut rows: Vec<Row<'a>> = Vec::new();
    for sample in samples.iter().filter(|sample| !sample.warm_up) {
        let (client, transport) = (sample.client.as_str(), sample.transport.as_str());
        let found = rows.iter_mut().find(|row| (row.client, row.transport) == (client, transport));
        match found {
            Some(row) => row.samples.push(sample),
            None => rows.push(Row { client, transport, samples: vec![sample] }),
        }
    }
    let order = |name: &str| wires::TRANSPORTS.iter().position(|named| named.name == name);
    rows.sort_by_key(|row| (row.client == OURS, order(row.transport)));
    rows
}

fn peer_total(rows: &[Row<'_>]) -> Option<f64> {
    let peer = rows.iter().find(|row| (row.client, row.transport) == PEER)?;
    Some(peer.total())
}

fn table(document: &mut Document, size: u64, samples: &[&Sample], rows: &[Row<'_>]) {
    let first = samples.first().expect("a size that was measured has samples");
    let rounds = rows.iter().map(|row| row.samples.len()).max().unwrap_or_default();
    document.section(format!("{size} MB")).text(format!(
        "{} items, {:.1} MB; {rounds} rounds. All witnesses are equal: {}.",
        first.items,
        first.witness_bytes as f64 / 1e6,
        if samples.iter().all(|sample| sample.digest == first.digest) { "yes" } else { "NO" },
    ));
    let mut table = Table::new("A call").column("client", Unit::Text);
    table = table.column("transport", Unit::Text);
    for name in ["total", "min", "max", "server", "encode", "first byte", "transfer", "decode"] {
        table = table.column(name, Unit::Ms);
    }
    table = table.column("after", Unit::Ms).column("sent", Unit::Mb);
    for name in ["server", "of files", "in the call", "caller"] {
        table = table.column(name, Unit::Mib);
    }
    table = table.column("server CPU", Unit::Ms).column("caller CPU", Unit::Ms);
    table = table.column(format!("{} / this", PEER.0), Unit::Ratio);
    let mut chart = Bars::new("What a call is spent on", Axis::new("median", Unit::Ms));
    for row in rows {
        let time = |read: fn(&Sample) -> f64| row.time(|sample| Some(read(sample)));
        let all = Sorted::new(row.samples.iter().map(|sample| sample.whole_us / 1e6));
        let [server, encode] = [
            row.time(server_us),
            row.time(|sample| Some(sample.first_byte_us - server_us(sample)?)),
        ];
        let known = |time: f64| if time.is_nan() { Cell::from(UNKNOWN) } else { time.into() };
        let first_byte = time(|sample| sample.first_byte_us);
        let transfer = time(|sample| sample.last_byte_us - sample.first_byte_us);
        let after = time(|sample| sample.whole_us - sample.last_byte_us);
        table.row(cells![
            row.client,
            row.transport,
            all.median(),
            all.percentile(0.0),
            all.max(),
            known(server),
            known(encode),
            first_byte,
            transfer,
            time(|sample| sample.decoding_us),
            after,
            row.median(|sample| sample.answer_bytes as f64),
            row.peak_bytes(|sample| sample.server_idle_kib),
            row.median(|sample| sample.server_mapped_kib as f64 * 1024.0),
            row.peak_bytes(|sample| sample.server_before_kib),
            row.median(|sample| sample.client_peak_kib as f64 * 1024.0),
            row.median(|sample| sample.server_cpu_ms as f64 / 1e3),
            row.median(|sample| sample.client_cpu_ms as f64 / 1e3),
            peer_total(rows).map(|peer| peer / all.median()),
        ]);
        let whole = if server.is_nan() { first_byte } else { f64::NAN };
        let before = [("server and encode", whole), ("server", server), ("encode", encode)];
        chart.bar(row.name(), before.into_iter().chain([("transfer", transfer), ("after", after)]));
    }
    document.table(table).chart(chart);
}

/// What the server says of its own work, where it says something.
fn server_us(sample: &Sample) -> Option<f64> {
    let stages = STAGES.iter().filter_map(|stage| sample.server_us.get(*stage));
    (!sample.server_us.is_empty()).then(|| stages.sum())
}

fn add_targets(targets: &mut Table, size: u64, samples: &[&Sample], rows: &[Row<'_>]) {
    let ours = |name: &str| rows.iter().find(|row| (row.client, row.transport) == (OURS, name));
    for (of_size, name, bound) in TARGETS {
        if let (true, Some(row), Some(peer)) = (*of_size == size, ours(name), peer_total(rows)) {
            let ratio = peer / row.total();
            let words = format!("{size} MB, {name}: times as fast as {}, at least", PEER.0);
            targets.row(cells![words, ratio, *bound, ratio >= *bound]);
        }
    }
    if size != MEMORY_SIZE {
        return;
    }
    let ours: Vec<&Sample> = samples.iter().copied().filter(|s| s.client == OURS).collect();
    let Some((first, others)) = ours.split_first() else { return };
    // What was mapped by the end of the first call is what was before the second.
    let mapped_kib = others.first().map_or(0, |second| second.server_mapped_kib);
    let words = format!("{size} MB, {}, first call: server memory in witnesses", first.transport);
    let idle = |sample: &Sample| sample.server_idle_kib;
    add_memory(targets, format!("{words}, pages of files included"), &[first], idle);
    add_memory(targets, words, &[first], |sample| sample.server_idle_kib + mapped_kib);
    for row in rows.iter().filter(|row| row.client == OURS) {
        let words = format!("{size} MB, {}, later calls: beyond right before", row.transport);
        let later: Vec<&Sample> =
            others.iter().copied().filter(|sample| sample.transport == row.transport).collect();
        add_memory(targets, words, &later, |sample| sample.server_before_kib);
    }
}

/// What the server had at most beyond `base`, in any of these calls.
fn add_memory(
    targets: &mut Table,
    words: String,
    samples: &[&Sample],
    base: impl Fn(&Sample) -> u64,
) {
    let Some(first) = samples.first() else { return };
    let ratio = peak_bytes(samples, base) / first.witness_bytes as f64;
    let words = format!("{words}, at most");
    targets.row(cells![words, ratio, MEMORY_RATIO, ratio <= MEMORY_RATIO]);
}
