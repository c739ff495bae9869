//! The folder of a command's results.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, ensure};

/// Makes the folder of a command's results: `given`, or a new one below `dir`, named after the
/// time.
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
