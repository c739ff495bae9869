//! What a run says: totals by size and flow, what each call is spent on, verdicts, depths.

use std::collections::BTreeSet;

use super::{Asked, Flow, Measured, Sample};
use crate::cells;
use crate::measure::{Comparison, Sorted};
use crate::report::{Axis, Bars, Cell, Document, Lines, Table, Unit};
use crate::run::STAGES;

const OURS: &str = "deponent";
/// The transport that all have, of the coupled flow.
const COMMON: &str = "json";
/// What stands where a client says nothing of its own work.
const UNKNOWN: &str = "not separable";
/// So much of what a client said instead is shown.
const WORDS: usize = 90;

const METHOD: &str = "\
    Decoupled is engine_newPayload, then debug_executionWitness by the block's hash on the \
    public port (JSON, HTTP); coupled is the one call that answers with both, over its \
    transport. Total ends when the items of the witness are slices in the caller's memory. \
    Each flow of a client has a block of its own in each round, on a fresh connection; rounds \
    are interleaved, the other clients are stopped meanwhile, and numbers are medians of the \
    rounds after the first. No answer is compressed. Connecting is not in the times.";

const COMPONENTS: &str = "\
    newPayload is that call where it is one of two. Execution (senders, the parent, execution, \
    the root) and collection (putting the witness together) are what the server says of itself. \
    Serialisation is what else came before the answer's first byte; more of it goes on during \
    the transfer, which lies between the first byte and the last. Decode is the caller's work \
    at whatever time, of which after came after the last byte. Repeated is the call for the \
    witness of the same block again.";

/// Writes what was measured into a document.
pub(super) fn fill(document: &mut Document, measured: &Measured) {
    let asked = &measured.asked;
    let sizes: BTreeSet<u64> =
        asked.iter().filter(|asked| asked.depth.is_none()).map(|asked| asked.size).collect();
    let sizes: Vec<Size<'_>> = sizes.into_iter().map(|size| Size::of(size, asked)).collect();
    if !sizes.is_empty() {
        document.section("Sizes").text(METHOD);
        totals(document, &sizes);
        verdicts(document, &sizes);
        document.text(COMPONENTS);
        for size in &sizes {
            components(document, size);
        }
    }
    depths(document, asked);
    for remark in &measured.remarks {
        document.text(remark);
    }
}

/// All calls of one size.
struct Size<'a> {
    size: u64,
    rows: Vec<Row<'a>>,
}

/// One flow of one client over one transport. Times are in seconds.
struct Row<'a> {
    client: &'a str,
    flow: Flow,
    transport: &'static str,
    first: Vec<&'a Asked>,
    repeated: Vec<&'a Asked>,
}

impl<'a> Size<'a> {
    fn of(size: u64, asked: &'a [Asked]) -> Self {
        let mut rows: Vec<Row<'a>> = Vec::new();
        let counted = |asked: &&Asked| asked.size == size && asked.depth.is_none();
        for asked in asked.iter().filter(counted) {
            let Asked { client, flow, transport, .. } = asked;
            let found = rows.iter().position(|row| {
                (row.client, row.flow, row.transport) == (client.as_str(), *flow, *transport)
            });
            let at = found.unwrap_or_else(|| {
                let (first, repeated) = (Vec::new(), Vec::new());
                rows.push(Row { client, flow: *flow, transport, first, repeated });
                rows.len() - 1
            });
            let row = &mut rows[at];
            if !asked.warm_up {
                if asked.repeated { &mut row.repeated } else { &mut row.first }.push(asked);
            }
        }
        Self { size, rows }
    }

    fn row(&self, client: &str, flow: Flow) -> Option<&Row<'a>> {
        let mut rows = self.rows.iter().filter(|row| row.client == client && row.flow == flow);
        let first = rows.clone().next();
        rows.find(|row| row.transport == COMMON).or(first)
    }

    /// Whether all witnesses have the same codes and nodes.
    fn is_equal(&self) -> bool {
        let calls = self.rows.iter().flat_map(|row| &row.first).filter_map(|a| a.call.as_ref());
        let contents: BTreeSet<u64> = calls.map(|call| call.content).collect();
        contents.len() <= 1
    }

    /// The median of the witnesses' lengths.
    fn witness_bytes(&self) -> f64 {
        let calls = self.rows.iter().flat_map(|row| &row.first).filter_map(|a| a.call.as_ref());
        Sorted::new(calls.map(|call| call.witness_bytes as f64)).median()
    }
}

impl Row<'_> {
    fn name(&self) -> String {
        format!("{}, {}, {}", self.client, self.flow.name(), self.transport)
    }

    /// The median over the first calls, of those that have it, in seconds.
    fn time(&self, read: impl Fn(&Asked) -> Option<f64>) -> f64 {
        Sorted::new(self.first.iter().filter_map(|asked| read(asked))).median() / 1e6
    }

    fn median(&self, read: fn(&Sample) -> f64) -> f64 {
        let calls = self.first.iter().filter_map(|asked| asked.call.as_ref());
        Sorted::new(calls.map(read)).median()
    }

    fn totals(&self) -> Sorted {
        Sorted::new(self.first.iter().filter_map(|asked| total(asked)))
    }
}

/// From the first request until the items are there, in seconds.
fn total(asked: &Asked) -> Option<f64> {
    Some((asked.payload_us.unwrap_or_default() + asked.call.as_ref()?.whole_us) / 1e6)
}

/// The median of totals; or why there is none.
fn shown(asked: &[&Asked]) -> Cell {
    let totals = Sorted::new(asked.iter().filter_map(|asked| total(asked)));
    match asked.iter().find_map(|asked| asked.refusal.as_ref()) {
        Some(refusal) => refused(refusal),
        None => totals.median().into(),
    }
}

/// What was said after an error's contexts: all of it, or how it begins and ends.
fn refused(refusal: &str) -> Cell {
    let words: Vec<char> = refusal.rsplit(": ").next().unwrap_or(refusal).chars().collect();
    if words.len() <= WORDS {
        return words.into_iter().collect::<String>().into();
    }
    let (start, end) = (&words[..WORDS / 2], &words[words.len() - WORDS / 2..]);
    format!("{} … {}", start.iter().collect::<String>(), end.iter().collect::<String>()).into()
}

/// What the server says of its own stages of these names, in microseconds.
fn stages(asked: &Asked, names: &[&str]) -> Option<f64> {
    let server_us = &asked.call.as_ref()?.server_us;
    let said = names.iter().filter_map(|name| server_us.get(*name));
    (!server_us.is_empty()).then(|| said.sum())
}

/// All but the last of them are execution.
fn execution(asked: &Asked) -> Option<f64> {
    stages(asked, &STAGES[..STAGES.len() - 1])
}

fn collection(asked: &Asked) -> Option<f64> {
    stages(asked, &STAGES[STAGES.len() - 1..])
}

/// Before the first byte, apart from what the server says that it did in this call.
fn serialisation(asked: &Asked) -> Option<f64> {
    let (own, call) = (stages(asked, &STAGES)?, asked.call.as_ref()?);
    Some(if asked.flow == Flow::Coupled { call.first_byte_us - own } else { call.first_byte_us })
}

fn totals(document: &mut Document, sizes: &[Size<'_>]) {
    let columns = |title: &str| {
        let mut table = Table::new(title).column("client", Unit::Text).column("flow", Unit::Text);
        table = table.column("transport", Unit::Text);
        for size in sizes {
            table = table.column(format!("{} MB,", size.size), Unit::Ms);
        }
        table
    };
    let mut first = columns("Total, by size and flow");
    let mut repeated = columns("The witness asked for again");
    let [x, y] = [Axis::new("witness", Unit::Mb), Axis::new("total", Unit::Ms)];
    let mut chart = Lines::new("Size and latency", x.logarithmic(), y.logarithmic());
    for row in &sizes[0].rows {
        let same = |size: &Size<'_>, read: fn(&Row<'_>) -> Cell| {
            size.rows.iter().find(|other| other.name() == row.name()).map(read).into()
        };
        let who = || cells![row.client, row.flow.name(), row.transport].into_iter();
        first.row(who().chain(sizes.iter().map(|size| same(size, |row| shown(&row.first)))));
        if row.flow == Flow::Decoupled {
            for (name, read) in PARTS {
                let who = cells!["", "", format!("of which {name}")].into_iter();
                let of_size = |size: &Size<'_>| {
                    let row = size.rows.iter().find(|other| other.name() == row.name());
                    row.map(|row| row.time(read)).into()
                };
                first.row(who.chain(sizes.iter().map(of_size)));
            }
        }
        repeated.row(who().chain(sizes.iter().map(|size| same(size, |row| shown(&row.repeated)))));
        let points = sizes.iter().filter_map(|size| {
            let row = size.rows.iter().find(|other| other.name() == row.name())?;
            Some([size.witness_bytes(), row.totals().median()])
        });
        chart.series(row.name(), points);
    }
    document.table(first).chart(chart).table(repeated);
}

/// A time of a call, in microseconds.
type Read = fn(&Asked) -> Option<f64>;

/// What the decoupled flow consists of.
const PARTS: [(&str, Read); 4] = [
    ("newPayload", |asked| asked.payload_us),
    ("until the first byte", |asked| Some(asked.call.as_ref()?.first_byte_us)),
    ("transfer", transfer),
    ("decoding after it", after),
];

fn transfer(asked: &Asked) -> Option<f64> {
    let call = asked.call.as_ref()?;
    Some(call.last_byte_us - call.first_byte_us)
}

fn after(asked: &Asked) -> Option<f64> {
    let call = asked.call.as_ref()?;
    Some(call.whole_us - call.last_byte_us)
}

/// The totals of rounds that both rows have, in pairs.
fn pairs(row: &Row<'_>, other: &Row<'_>) -> Vec<Vec<[f64; 2]>> {
    let of_round = |asked: &&&Asked| {
        let other = other.first.iter().find(|other| other.round == asked.round)?;
        Some(vec![[total(asked)?, total(other)?]])
    };
    row.first.iter().filter_map(|asked| of_round(&asked)).collect()
}

fn verdicts(document: &mut Document, sizes: &[Size<'_>]) {
    let table = Table::new("Totals beside each other, each round a pair")
        .column("size", Unit::Text)
        .column("this", Unit::Text)
        .column("beside", Unit::Text);
    let mut table = Comparison::columns(table);
    for size in sizes {
        if !size.is_equal() {
            document.text(format!(
                "No verdict for {} MB: the witnesses do not have the same codes and nodes.",
                size.size
            ));
            continue;
        }
        let mut add = |row: Option<&Row<'_>>, other: Option<&Row<'_>>| {
            let (Some(row), Some(other)) = (row, other) else { return };
            if row.name() != other.name() {
                let who = cells![format!("{} MB", size.size), row.name(), other.name()];
                let compared = Comparison::new(&pairs(row, other), 0.5);
                table.row(who.into_iter().chain(compared.cells()));
            }
        };
        let mut clients: Vec<&str> = Vec::new();
        for row in &size.rows {
            if !clients.contains(&row.client) {
                clients.push(row.client);
            }
        }
        for client in &clients {
            add(size.row(client, Flow::Decoupled), size.row(client, Flow::Coupled));
        }
        for peer in clients.iter().filter(|client| **client != OURS) {
            add(size.row(OURS, Flow::Decoupled), size.row(peer, Flow::Decoupled));
            for ours in size.rows.iter().filter(|row| row.client == OURS) {
                if ours.flow == Flow::Coupled {
                    add(Some(ours), size.row(peer, Flow::Coupled));
                }
            }
        }
    }
    document.table(table);
}

fn components(document: &mut Document, size: &Size<'_>) {
    let rounds = size.rows.iter().map(|row| row.first.len()).max().unwrap_or_default();
    let equal = if size.is_equal() { "yes" } else { "NO" };
    document.section(format!("{} MB", size.size)).text(format!(
        "{:.1} MB of items; {rounds} rounds. All witnesses have the same codes and nodes: {equal}.",
        size.witness_bytes() / 1e6
    ));
    let mut table = Table::new("What a flow is spent on").column("client", Unit::Text);
    table = table.column("flow", Unit::Text).column("transport", Unit::Text);
    for name in [
        "total",
        "min",
        "max",
        "newPayload",
        "execution",
        "collection",
        "serialisation",
        "first byte",
        "transfer",
        "decode",
        "after",
        "repeated",
    ] {
        table = table.column(name, Unit::Ms);
    }
    table = table.column("sent", Unit::Mb).column("server CPU", Unit::Ms);
    let mut chart = Bars::new("What a flow is spent on", Axis::new("median", Unit::Ms));
    for row in &size.rows {
        let totals = row.totals();
        let call = |read: fn(&Sample) -> f64| row.time(|asked| Some(read(asked.call.as_ref()?)));
        let known = |time: f64| if time.is_nan() { Cell::from(UNKNOWN) } else { time.into() };
        let payload = row.time(|asked| asked.payload_us);
        let [of_execution, of_collection, of_serialisation] =
            [execution, collection, serialisation].map(|read| row.time(read));
        let first_byte = call(|call| call.first_byte_us);
        let (of_transfer, of_after) = (row.time(transfer), row.time(after));
        table.row(cells![
            row.client,
            row.flow.name(),
            row.transport,
            shown(&row.first),
            totals.percentile(0.0),
            totals.max(),
            if row.flow == Flow::Coupled { Cell::from("in the call") } else { payload.into() },
            known(of_execution),
            known(of_collection),
            known(of_serialisation),
            first_byte,
            of_transfer,
            call(|call| call.decoding_us),
            of_after,
            shown(&row.repeated),
            row.median(|call| call.answer_bytes as f64),
            row.median(|call| call.server_cpu_ms as f64 / 1e3),
        ]);
        let is_known = !of_execution.is_nan();
        // In the decoupled flow execution is within newPayload.
        let in_call =
            if row.flow == Flow::Coupled { of_execution + of_collection } else { f64::NAN };
        let parts = [
            ("newPayload", payload),
            ("execution and collection", in_call),
            ("serialisation", of_serialisation),
            ("until the first byte", if is_known { f64::NAN } else { first_byte }),
            ("transfer", of_transfer),
            ("decoding after it", of_after),
        ];
        chart.bar(row.name(), parts);
    }
    document.table(table).chart(chart);
}

fn depths(document: &mut Document, asked: &[Asked]) {
    let of_depths = || asked.iter().filter(|asked| asked.depth.is_some());
    let Some(size) = of_depths().map(|asked| asked.size).next() else { return };
    document.section("Depths").text(format!(
        "debug_executionWitness of a block of {size} MB by its number, when so many blocks without \
         transactions are on top of it: the first call at this depth, and the next. In each round \
         the clients start anew, and the same block is asked for at one depth after the other. The \
         ratio is that of first calls to those at the least depth, the pairs are the rounds."
    ));
    let table = Table::new("Time by depth")
        .column("client", Unit::Text)
        .column("depth", Unit::Count)
        .column("first call", Unit::Ms)
        .column("min", Unit::Ms)
        .column("max", Unit::Ms)
        .column("repeated", Unit::Ms)
        .column("sent", Unit::Mb)
        .column("equal", Unit::Text);
    let mut table = Comparison::columns(table);
    let x = Axis::new("blocks below the head", Unit::Count);
    let mut chart = Lines::new("Depth and latency", x, Axis::new("first call", Unit::Ms));
    let clients: BTreeSet<&str> = of_depths().map(|asked| asked.client.as_str()).collect();
    for client in clients {
        let of_client = || of_depths().filter(|asked| asked.client == client);
        let all: BTreeSet<usize> = of_client().filter_map(|asked| asked.depth).collect();
        let row = |depth: usize| {
            let at = |repeated| {
                let is_it = move |a: &&Asked| a.depth == Some(depth) && a.repeated == repeated;
                of_client().filter(is_it).collect::<Vec<_>>()
            };
            let (flow, transport) = (Flow::Decoupled, "");
            Row { client, flow, transport, first: at(false), repeated: at(true) }
        };
        let Some(base) = all.first().map(|depth| row(*depth)) else { continue };
        let mut points = Vec::new();
        for depth in &all {
            let row = row(*depth);
            let totals = row.totals();
            let calls = || row.first.iter().filter_map(|asked| asked.call.as_ref());
            let content: BTreeSet<u64> = calls()
                .chain(base.first.iter().filter_map(|a| a.call.as_ref()))
                .map(|call| call.content)
                .collect();
            let equal = (calls().count() > 0).then_some(content.len() == 1);
            let compared = Comparison::new(&pairs(&row, &base), 0.5).cells();
            let compared = match (*depth == all.first().copied().unwrap_or_default(), equal) {
                (false, Some(true)) => compared,
                _ => [const { Cell::Missing }; 5],
            };
            let cells = cells![
                client,
                *depth,
                shown(&row.first),
                totals.percentile(0.0),
                totals.max(),
                shown(&row.repeated),
                row.median(|call| call.answer_bytes as f64),
                equal,
            ];
            table.row(cells.into_iter().chain(compared));
            points.push([*depth as f64, totals.median()]);
        }
        chart.series(client, points);
    }
    document.table(table).chart(chart);
}
