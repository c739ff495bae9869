//! The findings of a command, and their form in JSON.

use std::borrow::Cow;
use std::path::Path;
use std::time::SystemTime;

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};

use super::machine::{command_line, rfc3339};
use super::{Answer, Bars, Lines, Machine, Table};

/// The version of the files that are written, and the only one that is read.
const VERSION: u64 = 1;
/// The heading of columns of verdicts.
pub(super) const VERDICT: &str = "verdict";

/// The findings of one run of a command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// Its subject.
    pub title: String,
    /// The command line that runs it again.
    pub command: String,
    /// When it was made: UTC, as RFC 3339 has it.
    pub made: String,
    /// The machine of the run.
    pub machine: Machine,
    /// The programs that ran.
    pub clients: Vec<Ran>,
    /// The first words of a report: the faster side.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<Answer>,
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
    /// Its arguments; values that differ from start to start are a `{place}`.
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
    /// A paragraph on how something was measured, which a page has folded below.
    Method(String),
    /// A table.
    Table(Table),
    /// A chart of curves.
    Lines(Lines),
    /// A chart of stacked bars.
    Bars(Bars),
}

impl Document {
    /// An empty document of the program that runs: its command line, now, on this machine.
    pub fn new(title: impl Into<String>) -> Self {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        Self {
            title: title.into(),
            command: command_line("deponent bench", &arguments),
            made: rfc3339(SystemTime::now()),
            machine: Machine::this(),
            clients: Vec::new(),
            answers: Vec::new(),
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

    /// Adds a paragraph on how something was measured.
    pub fn method(&mut self, text: impl Into<String>) -> &mut Self {
        self.content.push(Content::Method(text.into()));
        self
    }

    /// Adds an answer, unless it has no side.
    pub fn answer(&mut self, answer: Answer) -> &mut Self {
        if !answer.sides.is_empty() {
            self.answers.push(answer);
        }
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

    /// Writes `report.json`, `report.md`, the page `report.html`, a file a table, `tables/*.csv`,
    /// and two a chart, `charts/*.svg` and `charts/*.png`, into a folder, which is made if need be.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write(&self, folder: &Path) -> anyhow::Result<()> {
        super::write(std::slice::from_ref(self), folder)
    }

    /// The document without its verdicts, if the machine was busy.
    pub(super) fn as_shown(&self) -> Cow<'_, Self> {
        if self.machine.busy.is_none() {
            return Cow::Borrowed(self);
        }
        let mut shown = self.clone();
        for piece in &mut shown.content {
            let Content::Table(table) = piece else { continue };
            let verdicts = table.columns.iter().position(|column| column.name == VERDICT);
            for row in &mut table.rows {
                if let Some(cell) = verdicts.and_then(|verdicts| row.get_mut(verdicts)) {
                    *cell = "withheld".into();
                }
            }
        }
        Cow::Owned(shown)
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

/// The file that [`read`] reads.
#[derive(Serialize, Deserialize)]
struct File<Reports> {
    version: u64,
    reports: Reports,
}

/// Documents as JSON: `{"version": 1, "reports": [..]}`.
#[expect(clippy::missing_panics_doc, reason = "names and numbers are JSON")]
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

/// The words before everything else: the answers, and that the machine was busy.
pub(super) fn first_words(document: &Document) -> Vec<String> {
    let busy = document.machine.busy.as_ref();
    let answers = document.answers.iter().map(|answer| answer.sentence(busy.is_some()));
    busy.map(|busy| format!("The machine was busy: {busy}")).into_iter().chain(answers).collect()
}
