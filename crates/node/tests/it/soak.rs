//! `deponent bench soak` in miniature: what it measures means nothing here; that nothing is lost,
//! and that a loss is noticed, does.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Runs nodes of the program at `program`, whose results are in `results` below `dir`.
fn soak(program: &Path, dir: &Path, flags: &str) -> anyhow::Result<()> {
    let seed = testing::seed().to_string();
    let [program, folder] = [program, dir].map(|path| path.display().to_string());
    let results = dir.join("results").display().to_string();
    let own = ["deponent-bench", "soak", "--deponent", &program, "--dir", &folder];
    let given = ["--results", &results, "--seed", &seed];
    bench::run(own.into_iter().chain(given).chain(flags.split_whitespace()))
}

#[test]
fn nodes_lose_nothing_in_a_short_run_of_all_troubles() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let flags = "--for 6s --slot 150ms --every 2 --longest 8 --read-every 4 --transactions 6";
    let program = Path::new(env!("CARGO_BIN_EXE_deponent"));
    soak(program, dir.path(), flags).unwrap_or_else(|error| panic!("{error:#}"));
    let read = |name: &str| {
        std::fs::read_to_string(dir.path().join("results").join(name)).expect("written")
    };
    let report = read("report.md");
    assert!(report.contains("No block was lost in 40 slots"), "{report}");
    assert!(!report.contains("| no |"), "unknown files or lines: {report}");
    let troubles = read("troubles.jsonl");
    assert!(troubles.lines().count() > 2, "{troubles}");
    assert!(read("samples.jsonl").lines().count() > 3);
}

#[test]
fn nodes_fill_gaps_from_each_other_in_a_short_run() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let flags = "--for 6s --slot 150ms --every 2 --longest 8 --transactions 6 --troubles gap,kill";
    let program = Path::new(env!("CARGO_BIN_EXE_deponent"));
    soak(program, dir.path(), flags).unwrap_or_else(|error| panic!("{error:#}"));
    let report = std::fs::read_to_string(dir.path().join("results/report.md")).expect("written");
    let row = report.lines().find(|line| line.contains("gaps filled by --follow")).expect("a row");
    assert!(row.chars().any(|c| matches!(c, '1'..='9')), "{report}");
}

/// A program that does these lines of a shell before, at `deponent` in a directory.
fn after(script: &str, dir: &Path) -> PathBuf {
    let program = dir.join("deponent");
    let script = format!("#!/bin/sh\n{script}\nexec {} \"$@\"\n", env!("CARGO_BIN_EXE_deponent"));
    std::fs::write(&program, script).expect("written");
    let permissions = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&program, permissions).expect("set");
    program
}

#[test]
fn a_node_that_does_not_fill_its_gap_ends_the_run() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    // Nobody listens where it looks for blocks.
    let script = "n=$#; while [ $n -gt 0 ]; do a=$1; shift; n=$((n - 1))\n\
                  [ \"$b\" = --follow ] && a=127.0.0.1:1; set -- \"$@\" \"$a\"; b=$a; done";
    let program = after(script, dir.path());
    let flags = "--for 60s --slot 150ms --every 1 --troubles gap --fill-within 1s";
    let error = soak(&program, dir.path(), flags).expect_err("a gap");
    let said = format!("{error:#}");
    assert!(said.contains("still answers SYNCING") && said.contains("--follow"), "{said}");
}

/// A program that deletes its database when it is started again.
#[test]
fn a_node_that_lost_its_chain_ends_the_run() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let script = "for a; do [ \"$b\" = --datadir ] && rm -rf \"$a/chain\"; b=$a; done";
    let program = after(script, dir.path());
    let flags = "--for 60s --slot 150ms --every 1 --longest 1 --troubles end,kill";
    let error = soak(&program, dir.path(), flags).expect_err("a loss");
    let said = format!("{error:#}");
    // Where a gap was filled as it ended, its head may be any block on the way, the first too.
    let lost = ["lost its head", "lost block"].into_iter().find(|lost| said.contains(lost));
    let lost = lost.expect(&said);
    let report = std::fs::read_to_string(dir.path().join("results/report.md")).expect("written");
    assert!(report.contains("The run ended early") && report.contains(lost), "{report}");
}

/// It is not said of a client that it refuses connections, where its process has ended.
#[test]
fn a_node_that_ends_by_itself_ends_the_run_with_its_status_and_its_last_words() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    // The second node aborts once it has a block; its log is beside its database.
    let script = "for a; do [ \"$b\" = --datadir ] && d=$a; b=$a; done\n\
                  case $d in *node-1) (until grep -q VALID \"$d/bench.log\"; do sleep 0.1; done\n\
                  kill -ABRT $$) & ;; esac";
    let program = after(script, dir.path());
    let flags = "--for 300s --slot 150ms --troubles drops";
    let error = soak(&program, dir.path(), flags).expect_err("it ended");
    let said = format!("{error:#}");
    let ended = "node-1 ended by itself: it was killed by signal 6; see ";
    assert!(said.contains(ended) && said.contains("VALID"), "{said}");
    let report = std::fs::read_to_string(dir.path().join("results/report.md")).expect("written");
    assert!(report.contains(ended), "{report}");
}
