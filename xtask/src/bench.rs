use crate::{Failure, cargo};

/// `cargo xtask bench ..`: the node, optimised, then `deponent bench ..`.
pub(crate) fn run(arguments: &[&str]) -> Result<(), Failure> {
    let node = ["run", "--release", "-p", "deponent-node", "--bin", "deponent", "--", "bench"];
    let mut command = cargo(&node);
    command.args(arguments);
    crate::run(command)
}
