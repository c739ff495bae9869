//! The findings of a command: one document, from which every form of report is written.
//!
//! A [`Document`] says what was run, on what, has an [`Answer`] first, and holds texts, [`Table`]s
//! and charts in the order of reading. Quantities go in as they are measured: times in seconds,
//! sizes in bytes, work in gas, speeds a second. The [`Unit`] of a column or an axis says what they
//! are shown and kept in.
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

mod answer;
mod chart;
mod comparison;
mod console;
mod csv;
mod document;
mod draw;
mod folder;
mod html;
mod machine;
mod markdown;
mod png;
mod svg;
mod table;
mod unit;

use std::path::{Path, PathBuf};

use anyhow::Context;

pub use self::answer::{Answer, Side};
pub use self::chart::{Axis, Bars, Lines};
pub use self::console::console;
pub use self::csv::csv;
pub use self::document::{Content, Document, Ran, json, read};
pub(crate) use self::folder::results_folder;
pub use self::html::html;
pub use self::machine::Machine;
pub use self::markdown::markdown;
pub use self::table::{Cell, Column, Table};
pub use self::unit::Unit;
pub use crate::measure::Verdict;

/// Writes documents as [`Document::write`] does, all of them into one report.
///
/// # Errors
/// A file cannot be written.
pub fn write(documents: &[Document], folder: &Path) -> anyhow::Result<()> {
    let mut files: Vec<(PathBuf, Vec<u8>)> = csv::files(documents)
        .into_iter()
        .map(|(name, table)| (Path::new("tables").join(name), table.into()))
        .collect();
    for (name, scene) in charts(documents) {
        let path = Path::new("charts").join(name);
        files.push((path.with_extension("svg"), svg::file(&scene).into()));
        files.push((path.with_extension("png"), png::file(&scene)));
    }
    files.push(("report.json".into(), json(documents).into()));
    files.push(("report.md".into(), markdown(documents).into()));
    files.push(("report.html".into(), html(documents).into()));
    for (name, content) in files {
        let path = folder.join(name);
        let parent = path.parent().unwrap_or(folder);
        std::fs::create_dir_all(parent)
            .with_context(|| format!("cannot make {}", parent.display()))?;
        std::fs::write(&path, content)
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// The charts of documents, with names for their files.
fn charts(documents: &[Document]) -> Vec<(String, draw::Scene)> {
    let mut charts = Vec::new();
    for document in documents {
        let answers = document.answers.iter().map(|answer| draw::ratios(answer, draw::WIDE));
        charts.extend(answers.flatten().map(|scene| ("answer", scene)));
        let mut section = "";
        for piece in &document.content {
            let scene = match piece {
                Content::Section(heading) => {
                    section = heading;
                    None
                }
                Content::Lines(chart) => draw::lines(chart, draw::WIDE),
                Content::Bars(chart) => draw::bars(chart, draw::WIDE),
                _ => None,
            };
            charts.extend(scene.map(|scene| (section, scene)));
        }
    }
    let named = charts.into_iter().enumerate().map(|(at, (section, scene))| {
        (file_name(at + 1, &format!("{section} {}", scene.title)), scene)
    });
    named.collect()
}

/// A name for the file of what has this place in a report and is called like this.
fn file_name(place: usize, words: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { ' ' };
    let words: String = format!("{place:02} {words}").chars().take(80).map(plain).collect();
    words.split_whitespace().collect::<Vec<_>>().join("-").to_lowercase()
}

#[cfg(test)]
mod tests;
