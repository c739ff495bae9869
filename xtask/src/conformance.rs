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

/// `cargo xtask conformance --rpc DIR`: the published tests of the JSON-RPC methods, which are one
/// of the node's own tests.
pub(crate) fn run_rpc(directory: &str) -> Result<(), Failure> {
    let absolute = Path::new(directory).canonicalize();
    let absolute =
        absolute.map_err(|error| Failure::new(format!("cannot open {directory}: {error}")))?;
    if !absolute.join("execution-apis/tests").is_dir() {
        let words = "has no execution-apis/tests (docs/conformance.md says where they come from)";
        return Err(Failure::new(format!("{directory} {words}")));
    }
    let mut command = cargo(&["test", "--quiet", "-p", "deponent-node", "--test", "it"]);
    command.args(["--", "--nocapture", "published::"]).env("DEPONENT_FIXTURES", absolute);
    crate::run(command)
}
