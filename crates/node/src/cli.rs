//! The command line.

use std::env::{VarError, var};
use std::ffi::OsString;
use std::io::IsTerminal;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::commands::{self, DbArgs, ExportArgs, ImportArgs, InitArgs, NodeArgs};
use crate::console::{VERSION, printed};
use crate::demo::DemoArgs;
use crate::disk::DiskFault;
use crate::verify::VerifyArgs;

/// An Ethereum execution engine whose every validated block comes with its execution witness.
#[derive(Debug, Parser)]
#[command(name = "deponent", version = VERSION, propagate_version = true)]
#[command(
    after_help = "The environment variable RUST_LOG sets the level of the log on the standard \
                  error: off, error, warn, info (the default; warn for demo), debug or trace. A \
                  single crate or module has its own level by CRATE=LEVEL; a comma separates \
                  several, as in info,deponent_engine=debug."
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

/// The exit status where the program is called wrongly; clap's too.
const USAGE_STATUS: u8 = 2;

/// Runs the program with the arguments of its process.
pub fn main() -> ExitCode {
    let Cli { command } = Cli::parse();
    // The demo prints a table, which no routine messages are to interrupt.
    let is_demo = matches!(command, Command::Demo(_));
    let level = if is_demo { LevelFilter::WARN } else { LevelFilter::INFO };
    let filter = match log_filter(level) {
        Ok(filter) => filter,
        Err(problem) => {
            eprintln!(
                "deponent: RUST_LOG {problem}. It takes a level (off, error, warn, info, debug or \
                 trace), CRATE=LEVEL, or several of them with commas between, as in \
                 info,deponent_engine=debug. Correct it or unset it"
            );
            return ExitCode::from(USAGE_STATUS);
        }
    };
    let log = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    tracing_subscriber::registry().with(filter).with(log).init();
    raise_open_files();
    let outcome = match command {
        Command::Node(args) => commands::run_node(args),
        Command::Verify(args) => return crate::verify::run(&args),
        Command::Init(args) => commands::init(&args),
        Command::Import(args) => commands::import(&args),
        Command::Export(args) => commands::export(&args),
        Command::Db(args) => commands::db(&args),
        Command::Bench { arguments } => return crate::bench::run(&arguments),
        Command::Demo(args) => crate::demo::run(&args),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => match error.downcast_ref::<DiskFault>() {
            Some(fault) => {
                eprintln!("deponent: {fault}");
                ExitCode::from(DiskFault::EXIT_STATUS)
            }
            None => {
                eprintln!("deponent: {}", printed(&error));
                ExitCode::FAILURE
            }
        },
    }
}

/// The filter of the log: that of `RUST_LOG`, else `default` for all. The error says what is wrong
/// with the variable.
fn log_filter(default: LevelFilter) -> Result<Targets, String> {
    match var("RUST_LOG") {
        Err(VarError::NotPresent) => Ok(Targets::new().with_default(default)),
        Ok(text) if text.trim().is_empty() => Ok(Targets::new().with_default(default)),
        Ok(text) => parse_log_filter(&text),
        Err(VarError::NotUnicode(_)) => Err("is not text in UTF-8".into()),
    }
}

/// Reads levels and `TARGET=LEVEL` with commas between. `Targets` itself reads any other word as a
/// target, so that a misspelt level would switch the log off.
fn parse_log_filter(text: &str) -> Result<Targets, String> {
    let is_of_path = |byte: u8| byte.is_ascii_alphanumeric() || b"_:-".contains(&byte);
    let mut targets = Targets::new();
    for item in text.split(',').map(str::trim).filter(|item| !item.is_empty()) {
        let (target, level) = match item.split_once('=') {
            Some((target, level)) => (Some(target), level),
            None => (None, item),
        };
        let parsed = level.parse::<LevelFilter>().ok().filter(|_| !level.is_empty());
        let level = parsed.ok_or_else(|| format!("has {item:?}, and {level:?} is no level"))?;
        targets = match target {
            None => targets.with_default(level),
            Some(target) if !target.is_empty() && target.bytes().all(is_of_path) => {
                targets.with_target(target, level)
            }
            Some(target) => {
                return Err(format!("has {item:?}, and {target:?} is no crate or module"));
            }
        };
    }
    Ok(targets)
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

#[cfg(test)]
mod tests {
    use super::*;
    use tracing::Level;

    #[test]
    fn levels_are_set_for_all_and_for_single_crates() {
        let filter = parse_log_filter(" warn, deponent_engine::after=trace ,hyper=OFF,").unwrap();
        let logs = |target, level| filter.would_enable(target, &level);
        assert!(logs("deponent_node", Level::WARN) && !logs("deponent_node", Level::INFO));
        assert!(logs("deponent_engine::after::seal", Level::TRACE) && !logs("hyper", Level::ERROR));
    }

    #[test]
    fn what_is_no_level_is_named() {
        for (text, problem) in [
            ("debgu", r#"has "debgu", and "debgu" is no level"#),
            ("info,engine=loud", r#"has "engine=loud", and "loud" is no level"#),
            ("engine=", r#"and "" is no level"#),
            ("=info", r#"and "" is no crate or module"#),
            ("engine[block]=info", r#"and "engine[block]" is no crate or module"#),
        ] {
            let found = parse_log_filter(text).expect_err(text);
            assert!(found.contains(problem), "{found}");
        }
    }
}
