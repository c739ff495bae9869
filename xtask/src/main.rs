//! The repository's own commands: `cargo xtask help` lists them.

mod bench;
mod conformance;
mod dist;
mod java;
mod test;
mod tidy;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use test::Extent;

const HELP: &str = "\
cargo xtask test                       formatting, tidy, clippy, then every test, those of sdk/java
                                       too where there is a JDK
cargo xtask java                       compiles the SDK for Java and runs its tests alone
cargo xtask tidy                       the rules of the house, in a second (CONTRIBUTING.md)
cargo xtask ci [--full]                all of CI: the same, and before the tests packages,
                                       cargo-deny and rustdoc; no test may be left out; --full
                                       repeats the random tests more often (CONTRIBUTING.md)
cargo xtask conformance DIR [FILTER]   the published consensus tests in DIR (docs/conformance.md);
                                       FILTER: a part of a test file's path
cargo xtask conformance --rpc DIR      the published tests of the JSON-RPC methods in DIR
cargo xtask bench state [..]           clients side by side on a large state: latencies, targets;
cargo xtask bench depths [..]          witnesses of older blocks;
cargo xtask bench transports [..]      blocks with large witnesses over all transports, beside geth;
cargo xtask bench crowd [..]           a thousand small calls beside a witness of 500 MB;
                                       `cargo xtask bench help` says more
cargo xtask attack [NAME..]            attacks on a node over loopback: the memory and the times
                                       they reach, beside its bounds (docs/design/limits.md)
cargo xtask devnet [--help | ..]       beacon nodes of Prysm with nodes of ours: a fork, absences,
                                       kills (integrations/consensus/README.md)
cargo xtask dist [--binary FILE] [--check | --files]
                                       the archive of a release and the Debian package, in
                                       target/dist, of a release build or of FILE; --check looks at
                                       them, at the Dockerfiles and at the systemd unit; --files
                                       looks at the latter two alone
cargo xtask picture                    measures and draws docs/newpayload.svg, beside geth
cargo xtask help                       this text

The exit status is 0 when all is well, that of the command that failed, or 2 for a wrong call.";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments.as_slice() {
        ["test"] if std::env::var_os("CI").is_none() => test::run_all(Extent::Tests),
        ["test" | "ci"] => test::run_all(Extent::Ci),
        ["ci", "--full"] => test::run_all(Extent::Full),
        ["java"] => {
            java::Toolchain::find().and_then(|java| java.verify(std::env::var_os("CI").is_some()))
        }
        ["tidy"] => tidy::check(),
        ["conformance", "--rpc", directory] => conformance::run_rpc(directory),
        ["conformance", directory] => conformance::run(directory, None),
        ["conformance", directory, filter] => conformance::run(directory, Some(filter)),
        ["bench", rest @ ..] => bench::run(rest),
        ["attack", names @ ..] => example("attack", names),
        ["devnet", rest @ ..] => example("devnet", rest),
        ["dist", rest @ ..] => dist::run_with(rest),
        ["picture"] => bench::picture(),
        ["help" | "--help" | "-h"] => {
            println!("{HELP}");
            Ok(())
        }
        _ => Err(Failure { message: HELP.into(), status: 2 }),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure { message, status }) => {
            eprintln!("{message}");
            status.into()
        }
    }
}

/// `cargo xtask attack` and `devnet`: the program, and an example of its package that runs it.
fn example(name: &str, arguments: &[&str]) -> Result<(), Failure> {
    run(cargo(&["build", "--release", "--package", "deponent-node"]))?;
    let example = ["run", "--release", "--package", "deponent-node", "--example", name, "--"];
    run(cargo(&[&example, arguments].concat()))
}

/// Why a command ends, and with which exit status.
#[derive(Debug)]
struct Failure {
    message: String,
    status: u8,
}

impl Failure {
    fn new(message: impl Into<String>) -> Self {
        Self { message: format!("xtask: {}", message.into()), status: 1 }
    }
}

/// The repository's root: that of the checkout in which cargo runs, since a copied one may run the
/// program that was built in another.
fn root() -> PathBuf {
    root_above(std::env::var_os("CARGO_MANIFEST_DIR"))
}

fn root_above(xtask: Option<OsString>) -> PathBuf {
    let xtask = xtask.unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    Path::new(&xtask).parent().expect("xtask is a folder of the repository").into()
}

/// The program as the tests build it.
fn built_program() -> PathBuf {
    let folder =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    folder.join("debug/deponent")
}

fn cargo(arguments: &[&str]) -> Command {
    let mut cargo = Command::new("cargo");
    cargo.args(arguments).current_dir(root());
    cargo
}

/// Runs `command`, its output being ours; its exit status becomes ours when it fails.
fn run(mut command: Command) -> Result<(), Failure> {
    let arguments = command.get_args().map(|argument| argument.to_string_lossy());
    let program = command.get_program().to_string_lossy();
    let shown = format!("{program} {}", arguments.collect::<Vec<_>>().join(" "));
    println!("$ {shown}");
    let outcome: io::Result<_> = command.status();
    let status = outcome.map_err(|error| Failure::new(format!("cannot run {shown}: {error}")))?;
    if status.success() {
        return Ok(());
    }
    let code = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
    Err(Failure { status: code, ..Failure::new(format!("{shown} failed: {status}")) })
}

/// Whether `command` runs and ends well; its output is dropped.
fn answers(command: &mut Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_is_that_of_the_checkout_that_runs() {
        assert_eq!(root_above(Some("/copy/xtask".into())), Path::new("/copy"));
        assert!(root_above(None).join("ARCHITECTURE.md").is_file());
    }
}
