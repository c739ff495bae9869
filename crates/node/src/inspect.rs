//! `deponent witness`: what is in a witness, and how two of them differ.

mod diff;
mod names;
mod summary;
mod table;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use alloy_primitives::Address;
use anyhow::Context as _;
use clap::{Args, Subcommand};
use serde_json::json;
use witness::Inspection;

use crate::console::printed;
use crate::disk::DiskFault;
use crate::flags::values::count;
use crate::verify::{GivenBlock, form_differences};
use diff::Difference;

pub(crate) use names::AccountNames;
pub(crate) use summary::{Rows, Summary};

/// The arguments of `deponent witness`.
#[derive(Debug, Args)]
pub(crate) struct WitnessArgs {
    #[command(subcommand)]
    command: WitnessCommand,
}

#[derive(Debug, Subcommand)]
enum WitnessCommand {
    /// Say what is in a witness: nodes, codes and headers, and whose they are.
    #[command(after_help = "The exit status is 0, or 4 where the input is no block with its \
                            witness.")]
    Inspect(InspectArgs),
    /// Say how two witnesses differ: which items only one of them has, and whose they are.
    #[command(
        after_help = "The first words of the output are SAME or DIFFERENT, and the exit status \
                      says the same: SAME is 0; DIFFERENT 1; UNREADABLE 4, an input is no block \
                      with its witness."
    )]
    Diff(DiffArgs),
}

#[derive(Debug, Args)]
struct InspectArgs {
    /// A file of a block with its witness, in any form that deponent verify reads; - reads the
    /// standard input. With --rpc a block instead: a number, a hash, or latest, safe or finalized.
    /// URL#BLOCK does the same without --rpc.
    #[arg(value_name = "FILE|BLOCK")]
    what: String,
    /// Fetch block and witness from this endpoint: http://HOST:PORT, or another that deponent
    /// verify takes.
    #[arg(long, value_name = "URL", conflicts_with = "block")]
    rpc: Option<String>,
    #[command(flatten)]
    source: SourceArgs,
    /// The most accounts and items that are printed [default: 20, and all with --json].
    #[arg(long, value_name = "ROWS", value_parser = count::<usize>)]
    rows: Option<usize>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct DiffArgs {
    /// A file in any form that deponent verify reads, or URL#BLOCK, as
    /// http://127.0.0.1:8545#latest, for a block of an endpoint.
    #[arg(value_name = "FILE|URL#BLOCK")]
    a: String,
    /// The other one.
    #[arg(value_name = "FILE|URL#BLOCK")]
    b: String,
    #[command(flatten)]
    source: SourceArgs,
    /// Take witnesses for different whose items are in another order or form.
    #[arg(long)]
    strict: bool,
    /// The most items of each side that are printed [default: 20, and all with --json].
    #[arg(long, value_name = "ROWS", value_parser = count::<usize>)]
    rows: Option<usize>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// The flags that say where blocks and witnesses are.
#[derive(Debug, Args)]
struct SourceArgs {
    /// The file of the block, where a file has its witness alone, as for deponent verify.
    #[arg(long, value_name = "FILE")]
    block: Option<PathBuf>,
    /// Certificates in PEM of the authorities that may sign the certificate of an endpoint,
    /// instead of the system's.
    #[arg(long, value_name = "FILE")]
    cacert: Option<PathBuf>,
}

/// A witness, and whose its items are.
struct Inspected {
    given: GivenBlock,
    inspection: Inspection,
    names: AccountNames,
    /// How its order and form differ from the canonical ones.
    form: Vec<String>,
}

/// Runs the command.
pub(crate) fn run(args: &WitnessArgs) -> ExitCode {
    let outcome = match &args.command {
        WitnessCommand::Inspect(args) => inspect(args),
        WitnessCommand::Diff(args) => compare(args),
    };
    let (text, status) = outcome.unwrap_or_else(|error| {
        let reason = printed(&error);
        let json = match &args.command {
            WitnessCommand::Inspect(args) => args.json,
            WitnessCommand::Diff(args) => args.json,
        };
        let text = match json {
            true => json!({"verdict": "UNREADABLE", "reason": reason}).to_string(),
            false => format!("UNREADABLE: {reason}"),
        };
        (text + "\n", 4)
    });
    match std::io::stdout().write_all(text.as_bytes()).context("cannot print the result") {
        Ok(()) => ExitCode::from(status),
        Err(error) => {
            eprintln!("deponent: {}", printed(&error));
            // Lower statuses are verdicts.
            ExitCode::from(DiskFault::EXIT_STATUS)
        }
    }
}

fn inspect(args: &InspectArgs) -> anyhow::Result<(String, u8)> {
    let given = match &args.rpc {
        Some(url) => GivenBlock::fetch(url, args.source.cacert.as_deref(), &args.what)?,
        None => args.source.read(&args.what)?,
    };
    let Inspected { given, inspection, names, form } = Inspected::new(given);
    let rows = printed_rows(args.rows, args.json);
    let rows = Rows { accounts: rows, items: rows };
    let summary = Summary::new(&given.block, &inspection, &names, rows);
    let text = match args.json {
        true => {
            let mut json = serde_json::to_value(&summary)?;
            (json["input"], json["form"]) = (json!(shown_input(&args.what)), json!(form));
            format!("{json}\n")
        }
        false => table::text(&summary, &form),
    };
    Ok((text, 0))
}

fn compare(args: &DiffArgs) -> anyhow::Result<(String, u8)> {
    let inspected = |what: &String| {
        args.source
            .read(what)
            .map(Inspected::new)
            .with_context(|| format!("{} cannot be compared", shown_input(what)))
    };
    let sides = [inspected(&args.a)?, inspected(&args.b)?];
    let names = [&args.a, &args.b].map(|name| shown_input(name));
    let difference = Difference::new(sides.each_ref(), [&names[0], &names[1]]);
    let is_same = match args.strict {
        true => difference.is_same() && difference.has_same_form(),
        false => difference.is_same(),
    };
    let rows = printed_rows(args.rows, args.json);
    let text = match args.json {
        true => difference.json(is_same, rows),
        false => difference.text(is_same, rows),
    };
    Ok((text, u8::from(!is_same)))
}

/// A file, or `URL#BLOCK` without what may be secret in the URL.
fn shown_input(what: &str) -> String {
    match what.split_once('#') {
        Some((url, block)) if url.contains("://") => {
            format!("{}#{}", rpc::shown_address(url), rpc::quote(block))
        }
        _ => rpc::shown_address(what),
    }
}

/// The most rows that are printed: of JSON all, unless `--rows` says how many.
fn printed_rows(given: Option<usize>, json: bool) -> usize {
    given.unwrap_or(if json { usize::MAX } else { 20 })
}

impl SourceArgs {
    /// Reads a file, or fetches the block of an endpoint that `URL#BLOCK` names.
    fn read(&self, what: &str) -> anyhow::Result<GivenBlock> {
        match what.split_once('#') {
            Some((url, block)) if !Path::new(what).exists() => {
                GivenBlock::fetch(url, self.cacert.as_deref(), block)
            }
            _ => GivenBlock::read(what, self.block.as_deref()),
        }
    }
}

impl Inspected {
    fn new(given: GivenBlock) -> Self {
        let inspection = Inspection::new(&given.given.witness, given.block.header.parent_hash);
        let senders =
            execution::recover_senders(&given.block.body.transactions).unwrap_or_default();
        let created = given.block.body.transactions.iter().zip(&senders);
        let created =
            created.map(|(tx, sender)| sender.create(alloy_consensus::Transaction::nonce(tx)));
        let keys = given.given.keys.iter().filter(|key| key.len() == 20);
        let keys = keys.map(|key| Address::from_slice(key));
        let known = senders.iter().copied().chain(created).chain(keys);
        let names = AccountNames::find(&inspection, &given.given.witness, &given.block, known);
        let form = form_differences(&given.given);
        Self { given, inspection, names, form }
    }
}
