//! `deponent bench soak` in miniature: what it measures means nothing here; that nothing is lost,
//! and that a loss is noticed, does.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

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

/// A program that deletes its database when it is started again.
#[test]
fn a_node_that_lost_its_chain_ends_the_run() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let program = dir.path().join("forgetful");
    let script = format!(
        "#!/bin/sh\nfor a; do [ \"$b\" = --datadir ] && rm -rf \"$a/chain\"; b=$a; done\n\
         exec {} \"$@\"\n",
        env!("CARGO_BIN_EXE_deponent")
    );
    std::fs::write(&program, script).expect("written");
    let permissions = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&program, permissions).expect("set");
    let flags = "--for 60s --slot 150ms --every 1 --longest 1 --troubles end,kill";
    let error = soak(&program, dir.path(), flags).expect_err("a loss");
    let said = format!("{error:#}");
    assert!(said.contains("lost its head"), "{said}");
    let report = std::fs::read_to_string(dir.path().join("results/report.md")).expect("written");
    assert!(report.contains("The run ended early") && report.contains("lost its head"), "{report}");
}
