//! The report of a long run.

use crate::cells;
use crate::measure::Sorted;
use crate::report::{Axis, Document, Lines, Ran, Table, Unit};
use crate::soak::Soak;
use crate::soak::gap::Filled;
use crate::soak::remains::is_expected;
use crate::soak::tally::Record;
use crate::soak::watch::{Reading, Trend};

/// A process that is younger fills its caches.
const GROWN_UP_SECONDS: f64 = 300.0;
/// Slots of a run in whose second half all caches of a node are taken to be full: after 5,000
/// blocks memory still rose.
const SETTLED_SLOTS: u64 = 10_000;

/// A quantity of a reading.
struct Quantity {
    name: &'static str,
    unit: Unit,
    of: fn(&Reading) -> f64,
    /// Whether a node has a bound for it; its disk has all bodies of the chain.
    is_bounded: bool,
}

const QUANTITIES: [Quantity; 4] = [
    Quantity {
        name: "resident memory",
        unit: Unit::Mib,
        of: |reading| reading.resident_kib as f64 * 1024.0,
        is_bounded: true,
    },
    Quantity {
        name: "open descriptors",
        unit: Unit::Count,
        of: |reading| reading.descriptors as f64,
        is_bounded: true,
    },
    Quantity {
        name: "disk",
        unit: Unit::Mib,
        of: |reading| reading.disk_bytes as f64,
        is_bounded: false,
    },
    Quantity {
        name: "files",
        unit: Unit::Count,
        of: |reading| reading.files as f64,
        is_bounded: false,
    },
];

impl Soak<'_> {
    /// Writes the report as far as the run has come.
    pub(crate) fn write(&self) -> anyhow::Result<()> {
        self.document()?.write(&self.folder)
    }

    pub(crate) fn document(&self) -> anyhow::Result<Document> {
        let mut document = Document::new("A long run");
        let tally = &self.tally;
        let target = &tally.target;
        let (name, version) = (target.name.clone(), target.version()?);
        document.clients.push(Ran { name, version, arguments: target.shown(false) });
        document.text(match &tally.fault {
            Some(fault) => format!("The run ended early: {fault}"),
            None => format!("No block was lost in {} slots.", tally.slots),
        });
        for complaint in tally.complaints().into_iter().chain(self.growth()) {
            document.text(complaint);
        }
        document.method(format!(
            "{} nodes, a slot of {:?}, seed {}. A node that came back had to have its head, and \
             each block that it had called VALID with its witness, as far as it is kept. Each node \
             had the public ports of the others as `--follow`; after a `gap` it was given the \
             newest block alone, and had to have all blocks before it once that was VALID. At the \
             end all blocks were looked for, `deponent db verify` read each directory, and all \
             heads and states were compared in each slot.",
            self.nodes.len(),
            self.args.slot,
            tally.seed
        ));
        document.table(counts(tally, self.store.height()));
        document.table(troubles(tally));
        document.section("Resources");
        document.method(format!(
            "Trends are straight lines by least squares through the second half of the run, \
             without processes younger than {GROWN_UP_SECONDS} s. A rise is growth if it is more \
             than 5 % of the median, and the line explains more than half of the variance."
        ));
        for quantity in QUANTITIES {
            document.table(self.resources(&quantity));
            document.chart(self.curve(&quantity));
        }
        document.section("What is left");
        document.table(files(tally));
        document.table(log(tally));
        document.table(refusals(tally));
        Ok(document)
    }

    fn readings(&self, node: usize) -> impl Iterator<Item = &Reading> {
        self.tally.readings.iter().filter(move |reading| reading.node == node)
    }

    /// The line through the second half of a node's readings.
    fn trend(&self, node: usize, quantity: &Quantity) -> Option<Trend> {
        let half = self.tally.readings.last().map_or(0.0, |reading| reading.seconds / 2.0);
        let late = self
            .readings(node)
            .filter(|reading| reading.seconds >= half && reading.age_seconds >= GROWN_UP_SECONDS);
        let late: Vec<[f64; 2]> =
            late.map(|reading| [reading.seconds / 3600.0, (quantity.of)(reading)]).collect();
        Trend::of(&late)
    }

    /// The nodes whose memory or descriptors grow, in a run so long that all caches are full.
    pub(crate) fn growth(&self) -> Vec<String> {
        if self.tally.slots < SETTLED_SLOTS {
            return Vec::new();
        }
        let kept = QUANTITIES.iter().filter(|quantity| quantity.is_bounded);
        let nodes = |quantity| {
            let growing = self.nodes.iter().enumerate().filter(move |(index, _)| {
                self.trend(*index, quantity).is_some_and(|trend| trend.is_growth())
            });
            growing.map(move |(_, node)| format!("the {} of {} grows", quantity.name, node.name))
        };
        kept.flat_map(nodes).collect()
    }

    fn resources(&self, quantity: &Quantity) -> Table {
        let per_hour = format!("{} an hour", quantity.name);
        let mut table = Table::new(quantity.name)
            .column("node", Unit::Text)
            .column("starts", Unit::Count)
            .columns(quantity.unit, ["first", "median", "most", "last", "rise"])
            .column(per_hour, quantity.unit)
            .column("explained", Unit::Percent)
            .column("growth", Unit::Text);
        for (index, node) in self.nodes.iter().enumerate() {
            let all: Vec<f64> = self.readings(index).map(quantity.of).collect();
            let sorted = Sorted::new(all.iter().copied());
            let trend = self.trend(index, quantity);
            table.row(cells![
                node.name.clone(),
                node.starts,
                all.first().copied(),
                sorted.median(),
                sorted.max(),
                all.last().copied(),
                trend.map(|trend| trend.rise),
                trend.map(|trend| trend.slope),
                trend.map(|trend| trend.explained),
                trend.map(|trend| trend.is_growth()),
            ]);
        }
        table
    }

    fn curve(&self, quantity: &Quantity) -> Lines {
        let axes = (Axis::new("time", Unit::Seconds), Axis::new(quantity.name, quantity.unit));
        let mut lines = Lines::new(quantity.name, axes.0, axes.1);
        for (index, node) in self.nodes.iter().enumerate() {
            let points = self.readings(index);
            let points = points.map(|reading| [reading.seconds, (quantity.of)(reading)]);
            lines.series(node.name.clone(), points);
        }
        lines
    }
}

fn counts(tally: &Record, height: u64) -> Table {
    let mut table = Table::new("The run").column("what", Unit::Text).column("number", Unit::Count);
    let starts = Sorted::new(tally.start_seconds.iter().copied());
    let gaps = Sorted::new(tally.gaps.iter().copied());
    let slots = Sorted::new(tally.slot_seconds.iter().copied());
    let filled =
        |of: fn(&Filled) -> u64| Sorted::new(tally.filled.iter().map(of).map(|n| n as f64));
    let (fetched, waited) = (filled(|gap| gap.blocks), filled(|gap| gap.slots));
    let syncing = Sorted::new(tally.syncing_seconds.iter().copied());
    let rows: [(&str, f64); 23] = [
        ("slots", tally.slots as f64),
        ("slots that took longer than a slot", tally.late_slots as f64),
        ("ms of the work of a slot, median", slots.median() * 1e3),
        ("ms of the work of a slot, most", slots.max() * 1e3),
        ("blocks of the chain", height as f64),
        ("blocks built, with branches", tally.blocks as f64),
        ("transactions in them", tally.transactions as f64),
        ("Mgas in them", tally.gas as f64 / 1e6),
        ("transactions handed to pools", tally.sent as f64),
        ("starts after an end", starts.len() as f64),
        ("ms of such a start, median", starts.median() * 1e3),
        ("ms of such a start, most", starts.max() * 1e3),
        ("gaps filled by payloads", gaps.len() as f64),
        ("blocks of the longest of them", gaps.max()),
        ("gaps filled by --follow", fetched.len() as f64),
        ("blocks of the longest of them", fetched.max()),
        ("slots until the head was VALID, median", waited.median()),
        ("slots until the head was VALID, most", waited.max()),
        ("ms until SYNCING was answered to both calls, most", syncing.max() * 1e3),
        ("most blocks that a reorganization took off", Sorted::new(tally.reorgs.clone()).max()),
        ("comparisons of heads and proofs", tally.compared as f64),
        ("VALID blocks looked for and found", tally.found.blocks as f64),
        ("witnesses looked for and found", tally.found.witnesses as f64),
    ];
    for (what, number) in rows {
        table.row(cells![what, number]);
    }
    table
}

fn troubles(tally: &Record) -> Table {
    let mut table =
        Table::new("Troubles").column("trouble", Unit::Text).column("times", Unit::Count);
    for (trouble, times) in &tally.troubles {
        table.row(cells![trouble.name(), *times]);
    }
    table
}

fn files(tally: &Record) -> Table {
    let mut table = Table::new("Files of the stopped nodes")
        .columns(Unit::Text, ["node", "file"])
        .column("files", Unit::Count)
        .column("size", Unit::Mib)
        .column("expected", Unit::Text);
    for (node, files) in &tally.files {
        for (name, kept) in files {
            table.row(cells![
                node.clone(),
                name.clone(),
                kept.count,
                kept.bytes,
                is_expected(name)
            ]);
        }
    }
    table
}

fn log(tally: &Record) -> Table {
    let mut table = Table::new("Lines of the logs above INFO")
        .column("line", Unit::Text)
        .column("times", Unit::Count)
        .column("designed", Unit::Text);
    for (text, (count, is_designed)) in &tally.warnings {
        table.row(cells![text.clone(), *count, *is_designed]);
    }
    table
}

fn refusals(tally: &Record) -> Table {
    let mut table = Table::new("Transactions that pools refused")
        .column("reason", Unit::Text)
        .column("times", Unit::Count);
    for (reason, times) in &tally.refusals {
        table.row(cells![reason.clone(), *times]);
    }
    table
}
