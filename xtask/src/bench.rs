use crate::{Failure, cargo};

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
