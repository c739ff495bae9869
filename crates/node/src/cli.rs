//! The command line.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tracing_subscriber::EnvFilter;

use crate::commands::{self, DbArgs, ExportArgs, ImportArgs, InitArgs, NodeArgs};
use crate::demo::DemoArgs;
use crate::verify::VerifyArgs;

/// An Ethereum execution engine whose every validated block comes with its execution witness.
#[derive(Debug, Parser)]
#[command(name = "deponent", version)]
#[command(
    after_help = "The environment variable RUST_LOG sets the level of the log on the standard \
                  error: error, warn, info (the default; warn for demo), debug or trace, also for \
                  single crates, as in engine=debug."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant)] // there is one
enum Command {
    /// Run a node: the Engine API on one port, the chain and its witnesses on another.
    Node(NodeArgs),
    /// Verify one block on its witness alone.
    Verify(VerifyArgs),
    /// Begin a chain in a new data directory, with a genesis or a state dump.
    Init(InitArgs),
    /// Validate the blocks of chain files, and make the last one the head. Blocks that the chain
    /// has already are skipped, so an interrupted import can be continued. Everything is checked
    /// but the seal of proof of work.
    Import(ImportArgs),
    /// Write blocks of the canonical chain to a file. An interrupted export can be continued.
    Export(ExportArgs),
    /// Inspect and maintain a data directory. Its node must not be running.
    Db(DbArgs),
    /// Measure execution clients over the wire, this one and others, side by side. It starts the
    /// program deponent-bench, which `cargo build --release -p deponent-bench` builds.
    #[command(disable_help_flag = true)]
    Bench {
        /// The arguments of deponent-bench; `deponent bench help` lists its commands.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Build and validate a chain on a temporary node, and measure how long witnesses take.
    Demo(DemoArgs),
}

/// Runs the program with the arguments of its process.
pub fn main() -> ExitCode {
    let Cli { command } = Cli::parse();
    // The demo prints a table, which no routine messages are to interrupt.
    let level = if matches!(command, Command::Demo(_)) { "warn" } else { "info" };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
    raise_open_files();
    let outcome = match command {
        Command::Node(args) => commands::run_node(args),
        Command::Verify(args) => crate::verify::run(&args),
        Command::Init(args) => commands::init(&args),
        Command::Import(args) => commands::import(&args),
        Command::Export(args) => commands::export(&args),
        Command::Db(args) => commands::db(&args),
        Command::Bench { arguments } => return crate::bench::run(&arguments),
        Command::Demo(args) => crate::demo::run(&args),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("deponent: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Raises the limit of open files and sockets to the highest that the process may set: a shell's
/// default of 1024 is less than the connections of a port.
fn raise_open_files() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    // Some systems enforce a lower bound than they report.
    if let Err(fault) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        tracing::debug!(%fault, ?current, ?maximum, "the limit of open files stays");
    }
}
