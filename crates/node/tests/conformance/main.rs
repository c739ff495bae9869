//! Runs the published consensus tests through the engine. Every valid block's witness is verified
//! statelessly, and compared with the one that the second judge gives.
//!
//! `cargo xtask conformance DIR` runs them all; without arguments (as `cargo test` does) a fixed
//! sample of the folder that `DEPONENT_FIXTURES` names.

mod access_lists;
mod blocks;
mod draft;
mod fixture;
mod followed;
mod inputs;
mod judge;
mod payloads;
mod plain;
mod random_blocks;
mod real;
mod report;
mod wires;

use fixture::Test;
use real::RealBlock;
use report::{Outcome, Report};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Seeds that have found something, run each time.
const FOUND: [u64; 9] = [
    1795726188, 1795727078, 1795727964, 1795731467, 1795734823, 4000000174, 4000002652, 5300001706,
    5300003412,
];

/// The folder of real blocks.
const REAL_BLOCKS: &str = "blocks";

/// The folder of tests with published witnesses.
const WITNESSES: &str = "blockchain_tests_zkevm";

/// Of the files sorted by name, each one at a multiple of this is in the sample.
const SAMPLE: usize = 25;

fn main() -> ExitCode {
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let (directory, filter, step) = match arguments.as_slice() {
        // `cargo test NAME` hands every target a part of a test's name.
        [name] if !Path::new(name).is_dir() => return report::nothing_asked(name),
        [directory] => (directory.clone(), None, 1),
        [directory, filter] => (directory.clone(), Some(filter.clone()), 1),
        _ => match std::env::var("DEPONENT_FIXTURES") {
            Ok(directory) => (directory, None, SAMPLE),
            Err(_) if std::env::var_os("CI").is_some() => return report::no_fixtures(),
            Err(_) => {
                _ = report::no_fixtures();
                return run_random().print();
            }
        },
    };
    let files = files(Path::new(&directory), filter.as_deref(), step);
    if files.is_empty() {
        eprintln!("no tests under {directory}; see docs/conformance.md for the layout");
        return ExitCode::FAILURE;
    }
    let report = side_by_side(&files, |file| run_file(file));
    match filter {
        Some(_) => report.print(),
        None => report.merge(run_random()).print(),
    }
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
        .filter(|(index, file)| index % step == 0 || is_rare(directory, file))
        .map(|(_, file)| file)
        .collect();
    files.sort_by_key(|file| std::cmp::Reverse(file.metadata().map_or(0, |data| data.len())));
    files
}

/// Small groups are entirely in the sample: real blocks, published witnesses, transitions.
fn is_rare(directory: &Path, file: &Path) -> bool {
    let name = file.strip_prefix(directory).unwrap_or(file);
    let transition = name.to_string_lossy().contains("attime15k");
    transition || name.starts_with(REAL_BLOCKS) || name.starts_with(WITNESSES)
}

fn is_suite(directory: &Path, file: &Path) -> bool {
    const SUITES: [&str; 10] = [
        REAL_BLOCKS,
        "blockchain_tests_devnet",
        WITNESSES,
        "blockchain_tests",
        "benchmark",
        "eest-engine-filled",
        "witness-size",
        "ethereum-tests/BlockchainTests",
        "legacytests/Cancun/BlockchainTests",
        "legacytests/Constantinople/BlockchainTests",
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
            let outcome = caught(|| run_published(&name, &test, &mut report.witnesses));
            report.add("published witnesses", &name, outcome);
        }
        if test.blocks.iter().any(|block| block.block_access_list.is_some()) {
            let outcome = caught(|| run_access_lists(&test, &mut report.access_lists));
            report.add("access lists", &name, outcome);
        }
        let outcome = caught(|| run_test(&test, &mut report));
        report.add(&test.network, &name, outcome);
    }
    report
}

fn caught(run: impl FnOnce() -> Outcome) -> Outcome {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(run))
        .unwrap_or_else(|_| Outcome::Failed("panicked; the message is above".into()))
}

fn run_published(name: &str, test: &Test, witnesses: &mut report::Witnesses) -> Outcome {
    let chain = test.chain();
    match draft::run(name, test, &chain, witnesses) {
        Ok(()) => Outcome::Passed,
        Err(error) => Outcome::Failed(error),
    }
}

fn run_access_lists(test: &Test, counts: &mut access_lists::Counts) -> Outcome {
    let chain = test.chain();
    match access_lists::run(test, &chain, counts) {
        Ok(()) => Outcome::Passed,
        Err(error) => Outcome::Failed(error),
    }
}

/// Random chains of up to five blocks, judged as the published ones are.
fn run_random() -> Report {
    let seed = testing::seed();
    let chains = u64::from(testing::rounds("DEPONENT_CHAINS", 400, 4_000));
    println!("random chains: {chains}, of this seed and those that follow");
    let seeds: Vec<u64> = (0..chains).map(|index| seed.wrapping_add(index)).chain(FOUND).collect();
    side_by_side(&seeds, |&seed| {
        let mut report = Report::default();
        let outcome = match random_blocks::run(seed) {
            Ok(blocks) => {
                report.witnesses.verified += blocks;
                Outcome::Passed
            }
            Err(error) => Outcome::Failed(error),
        };
        report.add("random chains", &format!("DEPONENT_SEED={seed}"), outcome);
        report
    })
}

/// Runs each item, as many at a time as there are cores.
fn side_by_side<T: Sync>(items: &[T], run: impl Fn(&T) -> Report + Sync) -> Report {
    let next = AtomicUsize::new(0);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let work = || {
            let items = std::iter::from_fn(|| items.get(next.fetch_add(1, Ordering::Relaxed)));
            items.map(&run).fold(Report::default(), Report::merge)
        };
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        let reports = threads.into_iter().map(|thread| thread.join().expect("run catches panics"));
        reports.fold(Report::default(), Report::merge)
    })
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

fn run_test(test: &Test, report: &mut Report) -> Outcome {
    let witnesses = &mut report.witnesses;
    let chain = test.chain();
    let run = match test.engine_new_payloads.is_empty() {
        true if chain.is_merged_at(1) != Some(true) => plain::run(test, chain, witnesses),
        true => blocks::run(test, chain, witnesses),
        false => payloads::run(test, chain, witnesses, &mut report.wires),
    };
    match run {
        Ok(()) => Outcome::Passed,
        Err(error) => Outcome::Failed(error),
    }
}
