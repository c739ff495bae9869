use crate::{Failure, cargo, root};
use std::fs;
use std::path::PathBuf;

/// `cargo xtask bench ..`: the node and the benchmark, optimised, then `deponent-bench ..`, which
/// finds the node beside itself.
pub(crate) fn run(arguments: &[&str]) -> Result<(), Failure> {
    let release = ["--release", "-p", "deponent-bench", "-p", "deponent-node", "--bins"];
    let mut build = cargo(&["build"]);
    build.args(release);
    crate::run(build)?;
    let mut bench = cargo(&["run", "--release", "-p", "deponent-bench", "--"]);
    bench.args(arguments);
    crate::run(bench)
}

/// `cargo xtask picture`: measures the picture of the README, for some minutes, and draws it. reth
/// is in it where it is on the path.
pub(crate) fn picture() -> Result<(), Failure> {
    let results = root().join("target/picture");
    if results.exists() {
        fs::remove_dir_all(&results)
            .map_err(|error| Failure::new(format!("cannot remove {results:?}: {error}")))?;
    }
    let reth = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
        .any(|folder| folder.join("reth").is_file());
    let clients = match reth {
        true => "geth,reth,deponent,deponent+ssz-unix",
        false => "geth,deponent,deponent+ssz-unix",
    };
    let state = ["state", "--preset", "mid", "--parts", "warm", "--warm-blocks", "220"];
    let blocks = ["--blocks", "200", "--warm-up", "20", "--pause", "40", "--clients", clients];
    let results_text = results.to_string_lossy();
    run(&[&state[..], &blocks, &["--results", &results_text]].concat())?;
    let charts = fs::read_dir(results.join("charts"))
        .map_err(|error| Failure::new(format!("no charts in {results:?}: {error}")))?;
    let is_wanted = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.contains("engine-newpayload-warm-blocks") && name.ends_with(".svg")
    };
    let chart = charts.flatten().map(|entry| entry.path()).find(is_wanted);
    let chart = chart.ok_or_else(|| Failure::new("the report has no chart of the medians"))?;
    let picture = root().join("docs/newpayload.svg");
    fs::copy(&chart, &picture)
        .map_err(|error| Failure::new(format!("cannot write {picture:?}: {error}")))?;
    println!("wrote {}; the report is in {}", picture.display(), results.display());
    Ok(())
}
