//! `deponent verify`: runs one block on its witness, without any other state.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use alloy_primitives::keccak256;
use anyhow::{Context, anyhow, bail, ensure};
use clap::Args;
use engine_api::json::Data;
use execution::{BlockError, ChainSpec, SealedBlock, Verified, VerifyError};
use files::read_genesis_head;
use rpc::{quote, read_json};
use witness::{Items, Witness};

use crate::console::printed;
use crate::foreign_witness::{ForeignWitness, fields};
use crate::limits::VERIFY_FILE_BYTES;

/// The arguments of `deponent verify`.
#[derive(Debug, Args)]
#[command(
    after_help = "The first word of the output is the verdict, and the exit status says the same: \
                  VALID is 0; INVALID 1, the block breaks a rule; INCOMPLETE 3, the witness lacks \
                  something that the block reads; UNREADABLE 4, there is no verdict, as the input \
                  is no block with its witness, or its chain is unknown; NOT CANONICAL 5, with \
                  --strict alone, of a valid block."
)]
pub(crate) struct VerifyArgs {
    /// The block with its witness, as JSON: {"chainId": n, "block": "0x RLP", "witness": {"state":
    /// [], "codes": [], "headers": []}}; other members are ignored. The witness may be in the form
    /// of other tools: with headers in any order, or as objects, and in an answer of JSON-RPC. -
    /// reads the standard input.
    file: PathBuf,
    /// The chain's rules, a genesis.json in geth's form [default: those of the file's chainId, if
    /// that is 1, 11155111, 17000 or 560048].
    #[arg(long, value_name = "GENESIS")]
    chain: Option<PathBuf>,
    /// Refuse a witness that is not canonical, in its form or in its content.
    #[arg(long)]
    strict: bool,
    /// Take an account of which the witness lacks a node for absent, as geth does. That proves
    /// less: each such account is named.
    #[arg(long = "missing-is-absent", conflicts_with = "strict")]
    missing_is_absent: bool,
}

/// The outcome for a block that was read.
enum Outcome {
    Valid(String),
    Invalid(String),
    Incomplete(String),
    NotCanonical(String),
}

/// Verifies the file's block and prints the verdict.
pub(crate) fn run(args: &VerifyArgs) -> ExitCode {
    let (verdict, text, status) = match verify(args) {
        Ok(Outcome::Valid(report)) => ("VALID\n", report, 0),
        Ok(Outcome::Invalid(reason)) => ("INVALID: ", reason, 1),
        Ok(Outcome::Incomplete(reason)) => ("INCOMPLETE: ", reason, 3),
        Err(error) => ("UNREADABLE: ", printed(&error), 4),
        Ok(Outcome::NotCanonical(reason)) => ("NOT CANONICAL: ", reason, 5),
    };
    let out = format!("{verdict}{}\n", text.trim_end());
    if let Err(error) = std::io::stdout().write_all(out.as_bytes()) {
        eprintln!("deponent: cannot print the verdict: {error}");
        return ExitCode::FAILURE;
    }
    ExitCode::from(status)
}

fn verify(args: &VerifyArgs) -> anyhow::Result<Outcome> {
    let text = read(&args.file)?;
    let Document { chain_id, block, given } = Document::read(&text).with_context(|| {
        let file = args.file.display();
        format!("{file} is not a block with its witness (deponent verify --help has the form)")
    })?;
    let chain = chain(args, chain_id)?;
    let block = execution::decode_block(&block.0)?;
    let at = format!("block {} ({})", block.header.number, block.hash());
    let (parent, headers) = (block.header.parent_hash, &given.witness.headers);
    if headers.iter().all(|header| keccak256(header) != parent) {
        return Ok(Outcome::Incomplete(format!(
            "{at}: the header of its parent {parent} is missing"
        )));
    }
    let start = Instant::now();
    let outcome = match args.missing_is_absent {
        true => execution::verify_taking_missing_for_absent(&chain, &block, &given.witness),
        false => execution::verify(&chain, &block, None, &given.witness)
            .map(|verified| (verified, Vec::new())),
    };
    let (verified, absent) = match outcome {
        Ok(verified) => verified,
        Err(VerifyError::Block(BlockError::Invalid(reason))) => {
            return Ok(Outcome::Invalid(format!("{at}: {reason}")));
        }
        Err(error) if error.missing().is_some_and(is_missing) => {
            return Ok(Outcome::Incomplete(format!("{at}: {error}")));
        }
        Err(error) => bail!("{at}: {error}"),
    };
    let time = start.elapsed();
    let differences = || differences(&given, &verified.witness).join("; ");
    if args.strict && (given.witness != verified.witness || !given.differences.is_empty()) {
        return Ok(Outcome::NotCanonical(format!("{at}: {}", differences())));
    }
    let mut report = report(&chain, &block, &given, &verified, time);
    for address in absent {
        report += &format!("{:<14}account {address}: it is not proven\n", "taken absent");
    }
    Ok(Outcome::Valid(report))
}

/// Whether the witness has nothing where it should have something, and not something else.
const fn is_missing(error: &witness::StateError) -> bool {
    use witness::StateError::{MissingCode, MissingHeader, Trie};
    let is_node = matches!(error, Trie(trie::Error::MissingNode { .. }));
    is_node || matches!(error, MissingCode(_) | MissingHeader(_))
}

/// The content of the file.
struct Document {
    chain_id: Option<u64>,
    block: Data,
    given: ForeignWitness,
}

impl Document {
    fn read(text: &str) -> anyhow::Result<Self> {
        let text = text.trim_start_matches('\u{feff}').trim();
        let members = fields(text, ["chainId", "block", "witness"]);
        let [chain_id, block, witness] = members.map_err(|fault| anyhow!("{fault}"))?;
        let chain_id = chain_id.map(number).transpose().context("chainId")?.flatten();
        let block = read_json(block.context("block is missing")?).context("block")?;
        let given = ForeignWitness::read(witness.context("witness is missing")?);
        Ok(Self { chain_id, block, given: given.map_err(|fault| anyhow!("{fault}"))? })
    }
}

/// A number, in JSON's form or as a quantity; `None` for `null`.
fn number(json: &str) -> anyhow::Result<Option<u64>> {
    let Some(digits) = json.strip_prefix("\"0x").and_then(|text| text.strip_suffix('"')) else {
        return Ok(read_json(json)?);
    };
    let number = u64::from_str_radix(digits, 16);
    Ok(Some(number.with_context(|| format!("{} is no number of 64 bits", quote(json)))?))
}

fn read(path: &Path) -> anyhow::Result<String> {
    let mut text = Vec::new();
    let read = if path.as_os_str() == "-" {
        std::io::stdin().lock().take(VERIFY_FILE_BYTES + 1).read_to_end(&mut text)
    } else {
        File::open(path).and_then(|file| file.take(VERIFY_FILE_BYTES + 1).read_to_end(&mut text))
    };
    read.with_context(|| format!("cannot read {}", path.display()))?;
    let too_long = text.len() as u64 > VERIFY_FILE_BYTES;
    ensure!(!too_long, "{} is longer than {VERIFY_FILE_BYTES} bytes", path.display());
    String::from_utf8(text).with_context(|| format!("{} is no text in UTF-8", path.display()))
}

/// The rules of `--chain`, or the built-in ones of the file's chain.
fn chain(args: &VerifyArgs, chain_id: Option<u64>) -> anyhow::Result<ChainSpec> {
    let Some(path) = &args.chain else {
        let chain_id = chain_id.context("the file has no chainId: give --chain GENESIS")?;
        return Ok(ChainSpec::from_chain_id(chain_id)?);
    };
    let chain = ChainSpec::from_config(&read_genesis_head(path)?.config)?;
    match chain_id {
        Some(chain_id) if chain_id != chain.chain_id() => {
            bail!("the file is of chain {chain_id}, {} of {}", path.display(), chain.chain_id())
        }
        _ => Ok(chain),
    }
}

/// How a witness that was given is not the canonical one.
fn differences(given: &ForeignWitness, canonical: &Witness) -> Vec<String> {
    let mut differences = given.differences.clone();
    let names = [("state", "nodes"), ("codes", "codes"), ("headers", "headers")];
    let lists = given.witness.lists().into_iter().zip(canonical.lists());
    for ((list, items), (given, canonical)) in names.into_iter().zip(lists) {
        let all: Vec<_> = given.iter().collect();
        let mut unique = all.clone();
        unique.sort_unstable();
        unique.dedup();
        if list != "headers" && !all.is_sorted() {
            differences.push(format!("{list} not sorted"));
        }
        for (count, problem) in [
            (all.len() - unique.len(), "given twice"),
            (unique.len().saturating_sub(canonical.len()), "that the block does not read"),
        ] {
            if count > 0 {
                differences.push(format!("{count} {items} {problem}"));
            }
        }
    }
    differences
}

fn report(
    chain: &ChainSpec,
    block: &SealedBlock,
    given: &ForeignWitness,
    verified: &Verified,
    time: Duration,
) -> String {
    let header = &block.header;
    let fork = chain.fork_of(header);
    let mut out = String::new();
    let mut line = |name: &str, value: String| {
        out += &format!("{name:<14}{value}\n");
    };
    line("block", format!("{} of chain {}, {fork}", header.number, chain.chain_id()));
    line("block hash", block.hash().to_string());
    line("state root", verified.state_root.to_string());
    line("receipts root", verified.receipts_root.to_string());
    line("transactions", block.body.transactions.len().to_string());
    line("gas used", verified.gas_used.to_string());
    line("witness", content(&given.witness));
    if !given.differences.is_empty() {
        line("normalised", given.differences.join("; "));
    }
    line("read of it", content(&verified.witness));
    line("time", format!("{:.3} ms", time.as_secs_f64() * 1000.0));
    out
}

fn content(witness: &Witness) -> String {
    let [state, codes, headers] = witness.lists().map(Items::len);
    let bytes = witness.content_bytes();
    format!("{state} nodes, {codes} codes, {headers} headers, {bytes} bytes")
}
