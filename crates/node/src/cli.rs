//! The command line.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::error::ErrorKind;
use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use clap_complete::Shell;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tracing_subscriber::filter::LevelFilter;

use files::is_write_failure;

use crate::allocator;
use crate::commands::{
    self, DbArgs, DevArgs, ExportArgs, FollowerArgs, ImportArgs, InitArgs, NodeArgs, StatusArgs,
};
use crate::commands::{flags_by_variable, with_words};
use crate::console::{VERSION, printed};
use crate::demo::DemoArgs;
use crate::disk::DiskFault;
use crate::flags;
use crate::inspect::WitnessArgs;
use crate::logging::LogArgs;
use crate::verify::VerifyArgs;

/// An Ethereum execution engine whose every validated block comes with its execution witness.
#[derive(Debug, Parser)]
#[command(name = "deponent", version = VERSION, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    log: LogArgs,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a node: the Engine API on one port, the chain and its witnesses on another.
    Node(Box<NodeArgs>),
    /// Run a node that follows the head of another execution client. It needs no consensus client
    /// and, for a devnet, no genesis file, and has all flags of deponent node.
    Follow(Box<FollowerArgs>),
    /// Run a chain for tests, with accounts that have money: it mines a block for each transaction,
    /// at intervals or on demand, and has the methods of anvil and hardhat for tests.
    Dev(Box<DevArgs>),
    /// Print the configuration of deponent node that these flags and the file of --config make, as
    /// TOML that --config reads.
    Config(Box<NodeArgs>),
    /// Print completions for a shell.
    Completions {
        /// The shell.
        shell: Shell,
    },
    /// Print a man page: deponent man | man -l -
    Man {
        /// One of the commands, for its page.
        command: Option<String>,
    },
    /// Say how a running node is: its heads, what is kept, its disk, and who calls it.
    Status(StatusArgs),
    /// Verify one block on its witness alone.
    Verify(VerifyArgs),
    /// Say what is in a witness and whose it is, or how two witnesses differ.
    Witness(WitnessArgs),
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
    #[command(flatten)]
    Tool(tools::Command),
}

/// The commands by what they are for, as `--help` lists them.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Run a node", &["node", "follow", "dev", "config", "status"]),
    ("Chains and their files", &["init", "import", "export", "db"]),
    ("Witnesses", &["verify", "witness", "demo", "bench"]),
    (
        "Ask any endpoint of JSON-RPC",
        &[
            "call",
            "estimate",
            "send",
            "block",
            "tx",
            "receipt",
            "logs",
            "balance",
            "nonce",
            "code",
            "storage",
            "chain",
            "gas-price",
            "rpc",
            "abi",
        ],
    ),
    ("This program", &["completions", "man", "help"]),
];

/// Has `--help` list the commands by [`GROUPS`], each with the first sentence about it.
fn grouped(command: clap::Command) -> clap::Command {
    let about = |name: &str| {
        let found = command.get_subcommands().find(|command| command.get_name() == name);
        let about = found.and_then(clap::Command::get_about).map(ToString::to_string);
        let about = about.unwrap_or_else(|| "Print help, of a command too".into());
        let end = [". ", ": deponent", ", as TOML"].into_iter().filter_map(|end| about.find(end));
        about[..end.min().unwrap_or(about.len())].trim_end_matches('.').to_owned()
    };
    let mut text = String::new();
    for (heading, names) in GROUPS {
        text += &format!("{heading}:\n");
        for name in names {
            text += &format!("  {name:<12} {}\n", about(name));
        }
        text.push('\n');
    }
    let template = "{about-with-newline}\n{usage-heading} {usage}\n\n";
    command.help_template(format!("{template}{text}Options:\n{{options}}"))
}

/// The exit status where the program is called wrongly; clap's too.
const USAGE_STATUS: u8 = 2;

/// The command `node`, for errors that show its usage.
fn usage_of_node() -> clap::Command {
    let mut usage = Cli::command();
    usage.build();
    usage.find_subcommand("node").expect("it is a command").clone()
}

/// The command that a command line names.
fn named(given: &[OsString]) -> Option<&str> {
    let names: Vec<_> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
    let mut words = given.iter().skip(1).filter_map(|word| word.to_str());
    words.find(|word| names.contains(word))
}

/// Runs the program with the arguments of its process.
pub fn main() -> ExitCode {
    let given: Vec<OsString> = std::env::args_os().collect();
    let matches = flags::read(grouped(Cli::command()), &given);
    let matches = matches.unwrap_or_else(|fault| with_words(fault, named(&given)).exit());
    let Cli { command, log } = Cli::from_arg_matches(&matches).unwrap_or_else(|fault| fault.exit());
    if let Command::Node(args) = &command
        && let Err(fault) = args.check()
    {
        usage_of_node().error(ErrorKind::MissingRequiredArgument, fault).exit()
    }
    // The demo prints a table, which no routine messages are to interrupt.
    let is_demo = matches!(command, Command::Demo(_) | Command::Dev(_));
    let level = if is_demo { LevelFilter::WARN } else { LevelFilter::INFO };
    if let Err(problem) = log.begin(level) {
        eprintln!("deponent: {problem}");
        return ExitCode::from(USAGE_STATUS);
    }
    raise_open_files();
    // Other clients that the benchmark starts keep their own way.
    if !matches!(command, Command::Bench { .. }) {
        allocator::use_small_pages();
    }
    let outcome = match command {
        Command::Node(args) => {
            let given = flags::given(&Cli::command(), &matches);
            commands::run_node(*args, &given, reload_log_level)
        }
        Command::Follow(args) => {
            let given = flags::given(&Cli::command(), &matches);
            commands::run_follow(*args, &given, reload_log_level)
        }
        Command::Dev(args) => commands::run_dev(*args),
        Command::Config(args) => print_config(&args, &matches),
        Command::Completions { shell } => {
            let mut completed = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "deponent", &mut completed);
            written(&completed)
        }
        Command::Man { command } => print_man(command.as_deref()),
        Command::Verify(args) => return crate::verify::run(&args),
        Command::Witness(args) => return crate::inspect::run(&args),
        Command::Status(args) => commands::status(&args),
        Command::Init(args) => commands::init(&args),
        Command::Import(args) => commands::import(&args),
        Command::Export(args) => commands::export(&args),
        Command::Db(args) => commands::db(&args),
        Command::Bench { arguments } => return crate::bench::run(&arguments),
        Command::Demo(args) => crate::demo::run(&args),
        Command::Tool(command) => return run_tool(&command),
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
                match is_write_failure(error.as_ref()) {
                    true => ExitCode::from(DiskFault::EXIT_STATUS),
                    false => ExitCode::FAILURE,
                }
            }
        },
    }
}

/// Runs a command over an endpoint, and prints its output.
fn run_tool(command: &tools::Command) -> ExitCode {
    let outcome = tools::run(command).and_then(|output| {
        written(output.text.as_bytes())?;
        if let Some(note) = output.note {
            eprintln!("deponent: {note}");
        }
        Ok(output.failure)
    });
    let (words, status) = match outcome {
        Ok(None) => return ExitCode::SUCCESS,
        Ok(Some(failure)) => (failure, 1),
        Err(error) if is_write_failure(error.as_ref()) => (printed(&error), DiskFault::EXIT_STATUS),
        Err(error) => (printed(&error), tools::exit_status(&error)),
    };
    eprintln!("deponent: {words}");
    ExitCode::from(status)
}

/// Reads the level of the log again, from the file of `--config` and the same command line, and
/// logs at it from now on. Returns it.
fn reload_log_level() -> Result<String, String> {
    let given: Vec<OsString> = std::env::args_os().collect();
    let matches = flags::read(Cli::command(), &given);
    let cli = matches.and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = cli.map_err(|fault| fault.to_string().trim_end().to_owned())?;
    cli.log.change_level(LevelFilter::INFO)
}

/// Prints the configuration in effect.
fn print_config(args: &NodeArgs, matches: &ArgMatches) -> anyhow::Result<()> {
    let (_, matches) = matches.subcommand().expect("it is that of this command");
    let (computed, variables) = (args.computed(), flags_by_variable());
    written(flags::effective(&Cli::command(), matches, &computed, &variables).as_bytes())
}

/// Prints the man page of the program, or of one of its commands.
fn print_man(name: Option<&str>) -> anyhow::Result<()> {
    let mut command = Cli::command();
    command.build();
    let command = match name {
        None => command,
        Some(name) => {
            let found = command.find_subcommand(name).cloned();
            let found = found.with_context(|| format!("there is no command {name:?}"))?;
            // As git's pages: deponent-node(1).
            found.display_name(format!("deponent-{name}"))
        }
    };
    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page)?;
    written(&page)
}

fn written(text: &[u8]) -> anyhow::Result<()> {
    use std::io::Write as _;
    std::io::stdout().write_all(text).context("cannot write to the standard output")
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
mod tests;
