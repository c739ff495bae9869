//! The report in Markdown: a table a size, then the targets.

use std::collections::BTreeSet;
use std::fmt::{self, Write};

use super::Sample;
use super::wires;
use crate::stats::Sorted;

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

/// The stages that make up the server's own time.
const STAGES: [&str; 5] = ["recovery", "parent", "execution", "root", "witness"];

/// What was measured, as a text for people.
pub(super) fn markdown(samples: &[Sample]) -> String {
    let mut out = String::from(
        "# Transports\n\nA payload with its witness, from the request until the witness's items \
         are slices in the caller's memory.\nEach call has a block of its own and a fresh \
         connection. Medians in milliseconds. `total` ends when the items are\nthere; `server` is \
         validation and listing, as the server says; `encode` is what else came before the first \
         byte;\n`transfer` lies between the first byte and the last, and encoding and decoding go \
         on in it; `decode` is the\ncaller's work, of which `after` came after the last byte. \
         Memory in MiB: of the server at most during the call,\nbeyond what it had when it was \
         started, how much of that are pages of mapped files on disk, which are the system's\n\
         cache of these files, and beyond what it had before the call; of the caller beyond \
         idle.\n",
    );
    write_all(&mut out, samples).expect("a string takes everything");
    out
}

fn write_all(out: &mut String, samples: &[Sample]) -> fmt::Result {
    let sizes: BTreeSet<u64> = samples.iter().map(|sample| sample.size).collect();
    let mut targets = Vec::new();
    for size in sizes {
        let of_size: Vec<&Sample> = samples.iter().filter(|sample| sample.size == size).collect();
        let rows = rows(&of_size);
        table(out, size, &of_size, &rows)?;
        collect_targets(&mut targets, size, &rows);
    }
    if !targets.is_empty() {
        writeln!(out, "\n## Targets\n\n| target | measured | bound | met |\n|---|--:|--:|---|")?;
    }
    for (name, value, bound, is_met) in targets {
        let met = if is_met { "yes" } else { "**no**" };
        writeln!(out, "| {name} | {value:.2} | {bound} | {met} |")?;
    }
    Ok(())
}

/// One client over one transport.
struct Row<'a> {
    client: &'a str,
    transport: &'a str,
    samples: Vec<&'a Sample>,
}

impl Row<'_> {
    fn median(&self, read: impl Fn(&Sample) -> f64) -> f64 {
        Sorted::new(self.samples.iter().map(|sample| read(sample))).median()
    }

    fn total_ms(&self) -> f64 {
        self.median(|sample| sample.whole_us / 1e3)
    }

    fn peak_kib(&self, base: impl Fn(&Sample) -> u64) -> f64 {
        let most = |sample: &Sample| sample.server_peak_kib + sample.server_files_kib;
        let beyond = |sample: &&Sample| most(sample).saturating_sub(base(sample)) as f64;
        Sorted::new(self.samples.iter().map(beyond)).max()
    }
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

fn peer_ms(rows: &[Row<'_>]) -> Option<f64> {
    let peer = rows.iter().find(|row| (row.client, row.transport) == PEER)?;
    Some(peer.total_ms())
}

fn table(out: &mut String, size: u64, samples: &[&Sample], rows: &[Row<'_>]) -> fmt::Result {
    let first = samples.first().expect("a size that was measured has samples");
    let equal = samples.iter().all(|sample| sample.digest == first.digest);
    let rounds = rows.iter().map(|row| row.samples.len()).max().unwrap_or_default();
    writeln!(
        out,
        "\n## {size} MB\n\n{} items, {:.1} MB; {rounds} rounds. All witnesses are equal: {}.\n",
        first.items,
        first.witness_bytes as f64 / 1e6,
        if equal { "yes" } else { "**no**" },
    )?;
    writeln!(
        out,
        "| client | transport | total | min | max | server | encode | first byte | transfer | \
         decode | after | MB sent | server MiB | of files | in the call | caller MiB | server CPU \
         | caller CPU | {} / this |\n|---|---|{}",
        PEER.0,
        "--:|".repeat(17)
    )?;
    for row in rows {
        let ms = |read: fn(&Sample) -> f64| row.median(|sample| read(sample) / 1e3);
        let total = Sorted::new(row.samples.iter().map(|sample| sample.whole_us / 1e3));
        let server = row.median(|sample| server_us(sample).map_or(f64::NAN, |us| us / 1e3));
        let encode = row.median(|sample| {
            server_us(sample).map_or(f64::NAN, |us| (sample.first_byte_us - us) / 1e3)
        });
        let ratio = peer_ms(rows).map_or(f64::NAN, |peer| peer / total.median());
        let numbers = [
            total.median(),
            total.percentile(0.0),
            total.max(),
            server,
            encode,
            ms(|sample| sample.first_byte_us),
            ms(|sample| sample.last_byte_us - sample.first_byte_us),
            ms(|sample| sample.decoding_us),
            ms(|sample| sample.whole_us - sample.last_byte_us),
            row.median(|sample| sample.answer_bytes as f64 / 1e6),
            row.peak_kib(|sample| sample.server_idle_kib) / 1024.0,
            row.median(|sample| sample.server_mapped_kib as f64 / 1024.0),
            row.peak_kib(|sample| sample.server_before_kib) / 1024.0,
            row.median(|sample| sample.client_peak_kib as f64 / 1024.0),
            row.median(|sample| sample.server_cpu_ms as f64),
            row.median(|sample| sample.client_cpu_ms as f64),
            ratio,
        ];
        write!(out, "| {} | {} |", row.client, row.transport)?;
        for number in numbers {
            match number {
                unknown if unknown.is_nan() => write!(out, " – |")?,
                small if small.abs() < 100.0 => write!(out, " {small:.1} |")?,
                large => write!(out, " {large:.0} |")?,
            }
        }
        writeln!(out)?;
    }
    Ok(())
}

/// What the server says of its own work, where it says something.
fn server_us(sample: &Sample) -> Option<f64> {
    let stages = STAGES.iter().filter_map(|stage| sample.server_us.get(*stage));
    (!sample.server_us.is_empty()).then(|| stages.sum())
}

fn collect_targets(targets: &mut Vec<(String, f64, f64, bool)>, size: u64, rows: &[Row<'_>]) {
    let ours = |name: &str| rows.iter().find(|row| (row.client, row.transport) == (OURS, name));
    for (of_size, name, bound) in TARGETS {
        if let (true, Some(row), Some(peer)) = (*of_size == size, ours(name), peer_ms(rows)) {
            let ratio = peer / row.total_ms();
            let words = format!("{size} MB, {name}: times as fast as {}, at least", PEER.0);
            targets.push((words, ratio, *bound, ratio >= *bound));
        }
    }
    if size != MEMORY_SIZE {
        return;
    }
    for row in rows.iter().filter(|row| row.client == OURS) {
        let witness = row.median(|sample| sample.witness_bytes as f64);
        let idle = |sample: &Sample| sample.server_idle_kib;
        let idle_and_mapped = |sample: &Sample| idle(sample) + sample.server_mapped_kib;
        let words = format!("{size} MB, {}: server memory in witnesses", row.transport);
        let ratios = [
            (format!("{words}, at most"), row.peak_kib(idle_and_mapped)),
            (format!("{words}, pages of files included, at most"), row.peak_kib(idle)),
        ];
        for (words, kib) in ratios {
            let ratio = kib * 1024.0 / witness;
            targets.push((words, ratio, MEMORY_RATIO, ratio <= MEMORY_RATIO));
        }
    }
}
