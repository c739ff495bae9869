//! Where reports go, and `deponent bench report`: saved ones, written again.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, ensure};
use clap::Args;

use crate::compare::compare_saved;
use crate::document;

/// What `report` is given.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Saved reports: the report.json of other commands.
    #[arg(required_unless_present = "compare", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Where all of them are written as one: report.html, report.md, report.json and the tables.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Compare two earlier runs of replay or of compare on the same payloads, by their folders:
    /// ratios are to the first. They were not interleaved; `compare` does that.
    #[arg(long, num_args = 2, value_names = ["FOLDER", "FOLDER"], conflicts_with = "files")]
    compare: Option<Vec<PathBuf>>,
}

/// Where the results of a command go, which is made: `given`, or a new folder below `dir`, named
/// after the time.
pub(crate) fn results_folder(given: Option<&PathBuf>, dir: &Path) -> anyhow::Result<PathBuf> {
    let cannot = |folder: &Path| format!("cannot make {}", folder.display());
    if let Some(folder) = given {
        std::fs::create_dir_all(folder).with_context(|| cannot(folder))?;
        // Some files of one would stay beside those of the other.
        ensure!(
            !folder.join("report.json").exists(),
            "{} has the report of another run: remove it, or name another folder",
            folder.display()
        );
        return Ok(folder.clone());
    }
    let seconds = SystemTime::UNIX_EPOCH.elapsed()?.as_secs();
    let results = dir.join("results");
    std::fs::create_dir_all(&results).with_context(|| cannot(&results))?;
    let mut folder = results.join(seconds.to_string());
    for run in 2.. {
        match std::fs::create_dir(&folder) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                folder = results.join(format!("{seconds}-{run}"));
            }
            made => {
                made.with_context(|| cannot(&folder))?;
                break;
            }
        }
    }
    Ok(folder)
}

/// Prints saved reports, and writes them as one where that is asked for.
///
/// # Errors
/// A file cannot be read, is no report or one of another version, or cannot be written; runs cannot
/// be compared.
pub(crate) fn run(args: &ReportArgs) -> anyhow::Result<()> {
    let mut documents = Vec::new();
    if let Some([a, b]) = args.compare.as_deref() {
        documents.push(compare_saved([a, b].map(PathBuf::as_path))?);
    }
    for path in &args.files {
        let text = std::fs::read_to_string(path);
        let text = text.with_context(|| format!("cannot read {}", path.display()))?;
        documents.extend(document::read(&text).with_context(|| path.display().to_string())?);
    }
    print!("{}", document::console(&documents));
    if let Some(folder) = &args.out {
        document::write(&documents, folder)?;
        println!("{}", folder.join("report.html").display());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Document;

    #[test]
    fn no_two_runs_have_one_folder() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let new = || results_folder(None, dir.path()).expect("made");
        let mut folders = [new(), new(), new()].to_vec();
        assert!(folders.iter().all(|folder| folder.is_dir()), "{folders:?}");
        folders.dedup();
        assert_eq!(folders.len(), 3);
        let given = dir.path().join("a/b");
        for _ in 0..2 {
            assert_eq!(results_folder(Some(&given), dir.path()).expect("made"), given);
        }
        let file = given.join("file");
        std::fs::write(&file, "").expect("written");
        let error = results_folder(Some(&file), dir.path()).expect_err("a file");
        assert!(error.to_string().contains("cannot make"), "{error:#}");
    }

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
        assert_eq!(document::read(&text("report.json")).expect("a report"), documents);
        assert_eq!(text("report.html"), document::html(&documents));
        // And again, from what was written.
        run(&ReportArgs { files: vec![path("both/report.json")], out, compare: None })
            .expect("a report");
        assert_eq!(text("report.md"), document::markdown(&documents));

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
