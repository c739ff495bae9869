//! `deponent bench report`: saved reports, written again or compared.

mod compare;

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;

use crate::progress::say;
use crate::report;

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Saved reports: the folders of other commands' results, or their report.json.
    #[arg(required_unless_present = "compare", value_name = "DIR")]
    files: Vec<PathBuf>,
    /// Where all of them are written as one: report.html, report.md, report.json and the tables.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Compare two earlier runs of replay or of compare on the same payloads, by their folders:
    /// ratios are to the first. They were not interleaved; `compare` does that.
    #[arg(long, num_args = 2, value_names = ["FOLDER", "FOLDER"], conflicts_with = "files")]
    compare: Option<Vec<PathBuf>>,
}

/// Prints saved reports, and writes them as one where that is asked for.
///
/// # Errors
/// A file cannot be read, is no report or one of another version, or cannot be written; runs cannot
/// be compared.
pub(crate) fn run(args: &ReportArgs) -> anyhow::Result<()> {
    let mut documents = Vec::new();
    if let Some([a, b]) = args.compare.as_deref() {
        documents.push(compare::compare([a, b].map(PathBuf::as_path))?);
    }
    for path in &args.files {
        let path = &if path.is_dir() { path.join("report.json") } else { path.clone() };
        let text = std::fs::read_to_string(path);
        let text = text.with_context(|| format!("cannot read {}", path.display()))?;
        documents.extend(report::read(&text).with_context(|| path.display().to_string())?);
    }
    say(report::console(&documents).trim_end_matches('\n'))?;
    if let Some(folder) = &args.out {
        report::write(&documents, folder)?;
        say(format_args!("{}", folder.join("report.html").display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Document;

    #[test]
    fn saved_reports_become_one() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let path = |name: &str| folder.path().join(name);
        let documents = ["one", "two"].map(Document::new);
        for document in &documents {
            document.write(&path(&document.title)).expect("written");
        }
        let files = ["one", "two"].map(|name| path(name).join("report.json")).to_vec();
        let out = Some(path("both"));
        run(&ReportArgs { files: files.clone(), out: out.clone(), compare: None })
            .expect("both are reports");
        let text = |name: &str| std::fs::read_to_string(path("both").join(name)).expect(name);
        assert_eq!(report::read(&text("report.json")).expect("a report"), documents);
        assert_eq!(text("report.html"), report::html(&documents));
        // And again, from what was written.
        run(&ReportArgs { files: vec![path("both")], out, compare: None }).expect("a report");
        assert_eq!(text("report.md"), report::markdown(&documents));

        std::fs::write(&files[1], r#"{"version": 2}"#).expect("written");
        let error =
            run(&ReportArgs { files, out: None, compare: None }).expect_err("another version");
        let (error, file) = (format!("{error:#}"), path("two/report.json"));
        assert!(error.starts_with(&format!("{}: ", file.display())), "{error}");
        assert!(error.contains("version 2"), "{error}");
        let files = vec![path("three")];
        let error = run(&ReportArgs { files, out: None, compare: None }).expect_err("no such file");
        assert!(format!("{error:#}").contains("cannot read"), "{error:#}");
    }
}
