use crate::{Failure, cargo};

/// `cargo xtask bench ..`: the node and the benchmark, optimised, then `deponent-bench ..`.
pub(crate) fn run(arguments: &[&str]) -> Result<(), Failure> {
    crate::run(cargo(&["build", "--release", "-p", "deponent-node", "--bin", "deponent"]))?;
    let mut command = cargo(&["run", "--release", "-p", "deponent-bench", "--"]);
    command.args(arguments);
    crate::run(command)
}
