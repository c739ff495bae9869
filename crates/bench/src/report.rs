//! What a command found out: one document, which every form of report is written from.
//!
//! A [`Document`] says what was run, on what, and holds texts, [`Table`]s and charts in the order
//! of reading. Quantities go in as they are measured: times in seconds, sizes in bytes, work in
//! gas, speeds a second. The [`Unit`] of a column or an axis says what they are shown and kept in.
//!
//! ```
//! use deponent_bench::cells;
//! use deponent_bench::report::{Document, Lines, Axis, Table, Unit};
//!
//! let mut document = Document::new("Replay");
//! let mut table = Table::new("newPayload")
//!     .column("client", Unit::Text)
//!     .column("p50", Unit::Ms)
//!     .column("of which the root", Unit::Ms);
//! table.row(cells!["geth", 0.226, "not separable"]);
//! table.row(cells!["deponent", 0.059, 0.004]);
//! let mut curve = Lines::new("Size", Axis::new("witness", Unit::Mb), Axis::new("p50", Unit::Ms));
//! curve.series("geth", [[17e6, 0.2], [100e6, 0.7]]);
//! document.section("warm").text("300 blocks.").table(table).chart(curve);
//! let markdown = deponent_bench::report::markdown(&[document]);
//! assert!(markdown.contains("| deponent | 59.0 | 4.00 |"));
//! ```

mod chart;
mod console;
mod csv;
mod folder;
mod html;
mod machine;
mod markdown;
mod unit;

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};

pub use self::console::console;
pub use self::csv::csv;
pub(crate) use self::folder::results_folder;
pub use self::html::html;
pub use self::machine::Machine;
pub use self::markdown::markdown;
pub use self::unit::Unit;

/// The version of the files that are written, and the only one that is read.
const VERSION: u64 = 1;

/// The shares at which a distribution is kept, between its smallest value and its largest.
const DISTRIBUTION_STEPS: usize = 400;

/// What one run of a command found out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// What it is about.
    pub title: String,
    /// The command line that runs it again.
    pub command: String,
    /// When it was made: UTC, as RFC 3339 has it.
    pub made: String,
    /// What it ran on.
    pub machine: Machine,
    /// The programs that ran.
    pub clients: Vec<Ran>,
    /// Texts, tables and charts, in the order of reading.
    pub content: Vec<Content>,
}

/// A program that ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ran {
    /// As the tables call it.
    pub name: String,
    /// The program's own words.
    pub version: String,
    /// What it was started with; what each start has of its own is a `{place}`.
    pub arguments: Vec<String>,
}

/// A piece of a [`Document`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Content {
    /// A heading, which what follows is under.
    Section(String),
    /// A paragraph.
    Text(String),
    /// A table.
    Table(Table),
    /// A chart of curves.
    Lines(Lines),
    /// A chart of stacked bars.
    Bars(Bars),
}

/// Rows of typed cells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// What the rows say.
    pub title: String,
    /// What each cell of a row is.
    pub columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

/// A column of a [`Table`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Column {
    /// Its heading, without the unit.
    pub name: String,
    /// What its numbers are.
    pub unit: Unit,
}

/// A cell of a [`Table`]. A number that is not there is a cell of its own and never a zero: the
/// text that stands for it says why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Cell {
    /// A finite number.
    Number(f64),
    /// Whether something holds: a target that is met, answers that are equal.
    Answer(bool),
    /// A name, or in a column of numbers why there is none: "not separable", "refused".
    Text(String),
    /// Nothing was measured.
    Missing,
}

/// What is along an axis of a chart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Axis {
    /// Its title, without the unit.
    pub name: String,
    /// What its numbers are.
    pub unit: Unit,
    /// Whether equal distances are equal ratios.
    pub logarithmic: bool,
}

/// Curves: of a quantity along another, or of the share of values up to each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lines {
    /// What the chart shows.
    pub title: String,
    /// The quantity to the right.
    pub x: Axis,
    /// The quantity upwards.
    pub y: Axis,
    series: Vec<Series>,
}

/// One curve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Series {
    name: String,
    points: Vec<[f64; 2]>,
}

/// Bars that are made up of parts: what a call is spent on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bars {
    /// What the chart shows.
    pub title: String,
    /// The quantity along the bars.
    pub axis: Axis,
    bars: Vec<Bar>,
}

/// One bar.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Bar {
    name: String,
    parts: Vec<Part>,
}

/// A part of a bar. Parts of one name have one colour.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Part {
    name: String,
    value: f64,
}

impl Document {
    /// An empty document of the program that runs: its command line, now, on this machine.
    pub fn new(title: impl Into<String>) -> Self {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        Self {
            title: title.into(),
            command: machine::command_line("deponent", &arguments),
            made: machine::rfc3339(SystemTime::now()),
            machine: Machine::this(),
            clients: Vec::new(),
            content: Vec::new(),
        }
    }

    /// Adds a program that ran.
    pub fn client(&mut self, name: &str, version: &str, arguments: &[String]) -> &mut Self {
        let (name, version) = (name.to_owned(), version.to_owned());
        self.clients.push(Ran { name, version, arguments: arguments.to_vec() });
        self
    }

    /// Adds a heading.
    pub fn section(&mut self, heading: impl Into<String>) -> &mut Self {
        self.content.push(Content::Section(heading.into()));
        self
    }

    /// Adds a paragraph: what a reader of the next table has to know, a remark.
    pub fn text(&mut self, text: impl Into<String>) -> &mut Self {
        self.content.push(Content::Text(text.into()));
        self
    }

    /// Adds a table, unless it has no row.
    pub fn table(&mut self, table: Table) -> &mut Self {
        if !table.rows.is_empty() {
            self.content.push(Content::Table(table));
        }
        self
    }

    /// Adds [`Lines`] or [`Bars`], unless there are none.
    pub fn chart(&mut self, chart: impl Into<Content>) -> &mut Self {
        let chart = chart.into();
        let is_empty = match &chart {
            Content::Lines(chart) => chart.series.is_empty(),
            Content::Bars(chart) => chart.bars.is_empty(),
            _ => false,
        };
        if !is_empty {
            self.content.push(chart);
        }
        self
    }

    /// Writes `report.json`, `report.md`, the page `report.html` and a file a table,
    /// `tables/*.csv`, into a folder, which is made if need be.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write(&self, folder: &Path) -> anyhow::Result<()> {
        write(std::slice::from_ref(self), folder)
    }
}

/// Writes documents as [`Document::write`] does, all of them into one report.
///
/// # Errors
/// A file cannot be written.
pub fn write(documents: &[Document], folder: &Path) -> anyhow::Result<()> {
    let mut files: Vec<(PathBuf, String)> = csv::files(documents)
        .into_iter()
        .map(|(name, table)| (Path::new("tables").join(name), table))
        .collect();
    files.push(("report.json".into(), json(documents)));
    files.push(("report.md".into(), markdown(documents)));
    files.push(("report.html".into(), html(documents)));
    std::fs::create_dir_all(folder.join("tables"))
        .with_context(|| format!("cannot make {}", folder.display()))?;
    for (name, text) in files {
        let path = folder.join(name);
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// The file that [`read`] reads.
#[derive(Serialize, Deserialize)]
struct File<Reports> {
    version: u64,
    reports: Reports,
}

/// Documents as JSON: `{"version": 1, "reports": [..]}`.
pub fn json(documents: &[Document]) -> String {
    let file = File { version: VERSION, reports: documents };
    serde_json::to_string_pretty(&file).expect("names and numbers are JSON") + "\n"
}

/// Reads what [`json`] gives.
///
/// # Errors
/// The text is no report, or one of a version that is not known here.
pub fn read(text: &str) -> anyhow::Result<Vec<Document>> {
    #[derive(Deserialize)]
    struct Versioned {
        version: u64,
    }
    let Versioned { version } =
        serde_json::from_str(text).context("no report of deponent bench")?;
    ensure!(
        version == VERSION,
        "the report has version {version}, this program reads version {VERSION}"
    );
    let file: File<Vec<Document>> = serde_json::from_str(text).context("no report")?;
    for table in file.reports.iter().flat_map(|report| &report.content) {
        if let Content::Table(table) = table {
            let columns = table.columns.len();
            let as_wide = table.rows.iter().all(|row| row.len() == columns);
            ensure!(as_wide, "the table {:?} has rows of not {columns} cells", table.title);
        }
    }
    Ok(file.reports)
}

impl Table {
    /// A table without columns.
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), columns: Vec::new(), rows: Vec::new() }
    }

    /// With a further column, to the right.
    #[must_use]
    pub fn column(mut self, name: impl Into<String>, unit: Unit) -> Self {
        assert!(self.rows.is_empty(), "columns come before rows");
        self.columns.push(Column { name: name.into(), unit });
        self
    }

    /// All rows.
    pub(crate) fn rows(&self) -> &[Vec<Cell>] {
        &self.rows
    }

    /// Adds a row, of as many cells as there are columns: see [`cells!`](crate::cells).
    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        let mut cells: Vec<Cell> = cells.into_iter().collect();
        assert_eq!(cells.len(), self.columns.len(), "a cell a column: {}", self.title);
        for (cell, column) in cells.iter_mut().zip(&self.columns) {
            if let Cell::Number(value) = cell {
                *value = column.unit.of(*value);
            }
        }
        self.rows.push(cells);
    }
}

impl Column {
    /// Its heading with the unit.
    fn heading(&self) -> String {
        self.unit.after(&self.name)
    }
}

impl Cell {
    /// As people read it, in a column of this unit.
    fn show(&self, unit: Unit) -> String {
        match self {
            Self::Number(value) => unit.show(*value),
            Self::Answer(true) => "yes".into(),
            Self::Answer(false) => "no".into(),
            Self::Text(text) => text.clone(),
            Self::Missing => "–".into(),
        }
    }
}

/// The cells of a row of a [`Table`](crate::report::Table), from numbers, durations, texts and
/// whether something holds; `None` and NaN are missing.
#[macro_export]
macro_rules! cells {
    ($($cell:expr),* $(,)?) => { [$($crate::report::Cell::from($cell)),*] };
}

impl From<f64> for Cell {
    fn from(value: f64) -> Self {
        // The sum of nothing is a negative zero.
        if value.is_finite() { Self::Number(value + 0.0) } else { Self::Missing }
    }
}

impl From<u64> for Cell {
    fn from(value: u64) -> Self {
        Self::Number(value as f64)
    }
}

impl From<usize> for Cell {
    fn from(value: usize) -> Self {
        Self::Number(value as f64)
    }
}

impl From<Duration> for Cell {
    fn from(value: Duration) -> Self {
        Self::Number(value.as_secs_f64())
    }
}

impl From<bool> for Cell {
    fn from(holds: bool) -> Self {
        Self::Answer(holds)
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl<Value: Into<Self>> From<Option<Value>> for Cell {
    fn from(value: Option<Value>) -> Self {
        value.map_or(Self::Missing, Into::into)
    }
}

impl Axis {
    /// An axis whose distances are differences.
    pub fn new(name: impl Into<String>, unit: Unit) -> Self {
        Self { name: name.into(), unit, logarithmic: false }
    }

    /// The axis with distances that are ratios: what is not above zero is left out.
    #[must_use]
    pub fn logarithmic(self) -> Self {
        Self { logarithmic: true, ..self }
    }
}

impl Lines {
    /// A chart without curves.
    pub fn new(title: impl Into<String>, x: Axis, y: Axis) -> Self {
        Self { title: title.into(), x, y, series: Vec::new() }
    }

    /// A chart of how values are distributed, for [`Self::values`]: the share of them up to each.
    pub fn distribution(title: impl Into<String>, x: Axis) -> Self {
        Self::new(title, x.logarithmic(), Axis::new("share of all", Unit::Percent))
    }

    /// Adds a curve through points, from left to right; what is not finite is left out.
    pub fn series(
        &mut self,
        name: impl Into<String>,
        points: impl IntoIterator<Item = [f64; 2]>,
    ) -> &mut Self {
        let points = points.into_iter().map(|[x, y]| [self.x.unit.of(x), self.y.unit.of(y)]);
        let mut points: Vec<_> =
            points.filter(|point| point.iter().all(|value| value.is_finite())).collect();
        points.sort_by(|a, b| a[0].total_cmp(&b[0]));
        self.series.push(Series { name: name.into(), points });
        self
    }

    /// Adds the curve of a distribution; of many values so many are kept that none is missed.
    pub fn values(
        &mut self,
        name: impl Into<String>,
        values: impl IntoIterator<Item = f64>,
    ) -> &mut Self {
        let mut values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        let steps = values.len().min(DISTRIBUTION_STEPS);
        let points = (1..=steps).map(|step| {
            let count = values.len() * step / steps;
            [values[count - 1], count as f64 / values.len() as f64]
        });
        let smallest = values.first().map(|value| [*value, 0.0]);
        self.series(name, smallest.into_iter().chain(points))
    }
}

impl Bars {
    /// A chart without bars.
    pub fn new(title: impl Into<String>, axis: Axis) -> Self {
        Self { title: title.into(), axis, bars: Vec::new() }
    }

    /// Adds a bar of named parts; what is not finite is left out.
    pub fn bar<'a>(
        &mut self,
        name: impl Into<String>,
        parts: impl IntoIterator<Item = (&'a str, f64)>,
    ) -> &mut Self {
        let parts = parts.into_iter().filter(|(_, value)| value.is_finite());
        let parts =
            parts.map(|(name, value)| Part { name: name.into(), value: self.axis.unit.of(value) });
        self.bars.push(Bar { name: name.into(), parts: parts.collect() });
        self
    }
}

impl From<Lines> for Content {
    fn from(chart: Lines) -> Self {
        Self::Lines(chart)
    }
}

impl From<Bars> for Content {
    fn from(chart: Bars) -> Self {
        Self::Bars(chart)
    }
}

#[cfg(test)]
mod tests;
