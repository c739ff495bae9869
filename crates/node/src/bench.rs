//! `deponent bench`: starts the program `deponent-bench`, which measures clients, in place of this
//! one.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

const PROGRAM: &str = "deponent-bench";
/// The status for a program that is not there, as for a wrong command line.
const MISSING_STATUS: u8 = 2;

/// Becomes `deponent-bench` with these arguments: the one beside this program's file, otherwise the
/// one on the path. It returns only when that is impossible, and says why.
pub(crate) fn run(arguments: &[OsString]) -> ExitCode {
    let program = beside().unwrap_or_else(|| PROGRAM.into());
    let error = Command::new(&program).args(arguments).exec();
    match error.kind() {
        ErrorKind::NotFound => {
            eprintln!(
                "deponent: the benchmark is a program of its own, {PROGRAM}, and it is neither \
                 beside this one nor on the path; build it with: cargo build --release -p {PROGRAM}"
            );
            ExitCode::from(MISSING_STATUS)
        }
        _ => {
            eprintln!("deponent: cannot start {}: {error}", program.display());
            ExitCode::FAILURE
        }
    }
}

/// The program in the folder of this one.
fn beside() -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?.canonicalize().ok()?;
    Some(own.with_file_name(PROGRAM)).filter(|program| program.is_file())
}
