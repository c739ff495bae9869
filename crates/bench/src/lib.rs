//! Measures execution clients over the wire, Deponent as the others: each block of a chain goes to
//! all of them, one after the other, and a report has what each took.
//!
//! This is the library of the program `deponent-bench`. [`main`] is what the program does, [`run`]
//! does the same for a caller. What a command finds out is a [`report`].
//!
//! ```
//! let help = deponent_bench::run(["deponent-bench", "compare", "--help"]);
//! assert!(help.expect_err("help is no run").to_string().contains("--clients"));
//! ```

mod args;
mod chain;
mod clients;
mod commands;
mod extract;
mod fault;
mod load;
mod measure;
mod number;
mod progress;
mod random;
pub mod report;
mod run;
mod saved;
mod soak;
mod turns;

pub use chain::format::{Chain, Part, Payload};
pub use chain::world::{ChainKind, Fork, World};

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Measures Ethereum execution clients side by side over the Engine API and JSON-RPC.
#[derive(Debug, Parser)]
#[command(name = "deponent-bench", version)]
struct CommandLine {
    #[command(subcommand)]
    command: commands::Command,
}

/// Runs the program with its process's arguments: what the binary does. An interrupt ends the
/// clients that it started, and then the process.
pub fn main() -> ExitCode {
    main_of(std::env::args_os()).into()
}

/// The same with a command line, of which the first argument is the program's name; the status with
/// which the process is to end. It ends at once where the arguments are not understood.
pub fn main_of(arguments: impl IntoIterator<Item: Into<OsString> + Clone>) -> u8 {
    let CommandLine { command } = CommandLine::parse_from(arguments);
    raise_open_files();
    let outcome =
        clients::process::end_children_on_interrupt().and_then(|()| commands::run(&command));
    if clients::process::interrupted() {
        eprintln!("interrupted");
        return clients::process::INTERRUPTED_STATUS;
    }
    match outcome {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("deponent-bench: {}", rpc::on_one_line(error.as_ref()));
            match files::is_write_failure(error.as_ref()) {
                true => files::WRITE_FAILURE_STATUS,
                false => 1,
            }
        }
    }
}

/// Runs a command line in this process; the first argument is the program's name. Signals are left
/// as they are.
///
/// # Errors
/// Arguments that are not understood, and what made the command fail, in words for its user.
pub fn run(arguments: impl IntoIterator<Item: Into<OsString> + Clone>) -> anyhow::Result<()> {
    commands::run(&CommandLine::try_parse_from(arguments)?.command)
}

/// Lets the process open as many files and sockets as it may: a shell's default of 1024 is less
/// than the connections of some commands.
fn raise_open_files() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // Some systems have a lower bound that they do not tell; the default stays then.
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).ok();
}
