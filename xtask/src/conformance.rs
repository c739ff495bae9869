use crate::{Failure, cargo};
use std::path::Path;

/// `cargo xtask conformance DIR [FILTER]`: the conformance runner of the node, optimised.
pub(crate) fn run(directory: &str, filter: Option<&str>) -> Result<(), Failure> {
    let absolute = Path::new(directory)
        .canonicalize()
        .map_err(|error| Failure::new(format!("cannot open {directory}: {error}")))?;
    let mut command = cargo(&["test", "--release", "-p", "deponent-node"]);
    command.args(["--test", "conformance", "--"]).arg(absolute).args(filter);
    crate::run(command)
}
