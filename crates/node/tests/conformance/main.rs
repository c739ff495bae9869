//! Runs the published consensus tests through the engine. Every valid block's witness is verified
//! statelessly, and compared with the one that the second judge gives.
//!
//! `cargo xtask conformance DIR` runs them all; without arguments (as `cargo test` does) a fixed
//! sample of the folder that `DEPONENT_FIXTURES` names.

mod blocks;
mod draft;
mod fixture;
mod judge;
#[allow(dead_code)]
#[path = "../../../trie/src/oracle.rs"]
mod oracle;
mod payloads;
mod real;
mod report;

pub(crate) use trie::{EMPTY_ROOT_HASH, by_hash};

use fixture::Test;
use rayon::prelude::*;
use real::RealBlock;
use report::{Outcome, Report};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The folder of real blocks.
const REAL_BLOCKS: &str = "blocks";

/// Of the files sorted by name, each one at a multiple of this is in the sample.
const SAMPLE: usize = 25;

fn main() -> ExitCode {
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let (directory, filter, step) = match arguments.as_slice() {
        [directory] => (directory.clone(), None, 1),
        [directory, filter] => (directory.clone(), Some(filter.clone()), 1),
        _ => match std::env::var("DEPONENT_FIXTURES") {
            Ok(directory) => (directory, None, SAMPLE),
            Err(_) => return report::no_fixtures(),
        },
    };
    let files = files(Path::new(&directory), filter.as_deref(), step);
    if files.is_empty() {
        eprintln!("no tests under {directory}; see docs/conformance.md for the layout");
        return ExitCode::FAILURE;
    }
    let report = files.par_iter().map(|file| run_file(file)).reduce(Report::default, Report::merge);
    report.print()
}

/// Every JSON file of consensus tests, large ones first so that no thread ends with one.
fn files(directory: &Path, filter: Option<&str>, step: usize) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![directory.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = path.to_string_lossy();
            match path.is_dir() {
                true => folders.push(path),
                false if name.ends_with(".json") && is_suite(directory, &path) => files.push(path),
                false => {}
            }
        }
    }
    files.sort();
    let mut files: Vec<_> = files
        .into_iter()
        .filter(|file| filter.is_none_or(|filter| file.to_string_lossy().contains(filter)))
        .enumerate()
        // Real blocks are few: all of them are in the sample.
        .filter(|(index, file)| {
            index % step == 0 || file.parent() == Some(&directory.join(REAL_BLOCKS))
        })
        .map(|(_, file)| file)
        .collect();
    files.sort_by_key(|file| std::cmp::Reverse(file.metadata().map_or(0, |data| data.len())));
    files
}

fn is_suite(directory: &Path, file: &Path) -> bool {
    const SUITES: [&str; 9] = [
        REAL_BLOCKS,
        "blockchain_tests_devnet",
        "blockchain_tests_zkevm",
        "blockchain_tests",
        "benchmark",
        "eest-engine-filled",
        "witness-size",
        "ethereum-tests/BlockchainTests",
        "legacytests/Cancun/BlockchainTests",
    ];
    let name = file.strip_prefix(directory).unwrap_or(file);
    !name.to_string_lossy().contains("/.meta/")
        && SUITES.iter().any(|suite| name.starts_with(suite))
}

fn run_file(file: &Path) -> Report {
    let mut report = Report::default();
    if file.parent().is_some_and(|folder| folder.ends_with(REAL_BLOCKS)) {
        let (name, outcome) = run_real(file);
        report.add("real blocks", &name, outcome);
        return report;
    }
    let tests = std::fs::read(file).map_err(|error| error.to_string()).and_then(|text| {
        serde_json::from_slice::<BTreeMap<String, Test>>(&text).map_err(|error| error.to_string())
    });
    let tests = match tests {
        Ok(tests) => tests,
        Err(error) => {
            report.add("unreadable", &file.to_string_lossy(), Outcome::Failed(error));
            return report;
        }
    };
    for (name, test) in tests {
        if test.blocks.iter().any(|block| block.execution_witness.is_some()) {
            let chain = test.chain().expect("Amsterdam");
            let outcome = match draft::run(&test, &chain, &mut report.witnesses) {
                Ok(()) => Outcome::Passed,
                Err(error) => Outcome::Failed(error),
            };
            report.add("published witnesses", &name, outcome);
        }
        let run = std::panic::AssertUnwindSafe(|| run_test(&test, &mut report.witnesses));
        let outcome = std::panic::catch_unwind(run)
            .unwrap_or_else(|_| Outcome::Failed("panicked; the message is above".into()));
        report.add(&test.network, &name, outcome);
    }
    report
}

fn run_real(file: &Path) -> (String, Outcome) {
    let name = file.to_string_lossy().into_owned();
    let text = std::fs::read(file).map_err(|error| error.to_string());
    let block = text.and_then(|text| {
        serde_json::from_slice::<RealBlock>(&text).map_err(|error| error.to_string())
    });
    match block.and_then(|block| real::run(&block).map(|()| block.name)) {
        Ok(name) => (name, Outcome::Passed),
        Err(error) => (name, Outcome::Failed(error)),
    }
}

fn run_test(test: &Test, witnesses: &mut report::Witnesses) -> Outcome {
    let Some(chain) = test.chain() else { return Outcome::NotRun };
    let run = match test.engine_new_payloads.is_empty() {
        true => blocks::run(test, chain, witnesses),
        false => payloads::run(test, chain, witnesses),
    };
    match run {
        Ok(()) => Outcome::Passed,
        Err(error) => Outcome::Failed(error),
    }
}
