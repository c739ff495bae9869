//! `deponent verify`: runs one block on its witness, without any other state.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use alloy_consensus::Transaction;
use alloy_primitives::{Bytes, keccak256};
use anyhow::{Context, anyhow, bail, ensure};
use clap::Args;
use engine_api::json::Data;
use execution::stateless::{ProtocolFork, REVISION, REVISION_WITH_KEYS, StatelessInput};
use execution::{BlockError, ChainSpec, SealedBlock, VerifyError};
use files::{BlockReader, read_genesis_head, unhexed};
use rpc::{quote, read_json};
use witness::Witness;

use crate::console::{counted, printed as printed_error};
use crate::disk::DiskFault;
use crate::foreign_witness::{ForeignWitness, fields, without_result};
use crate::limits::VERIFY_FILE_BYTES;

mod endpoint;
mod report;

pub(crate) use endpoint::BlockSource;
use report::Report;

/// The arguments of `deponent verify`.
#[derive(Debug, Args)]
#[command(
    after_help = "The first word of the output is the verdict, and the exit status says the same: \
                  VALID is 0; INVALID 1, the block breaks a rule; INCOMPLETE 3, the witness lacks \
                  something that the block reads; UNREADABLE 4, there is no verdict, as the input \
                  is no block with its witness, or its chain is unknown; NOT CANONICAL 5, with \
                  --strict alone, of a valid block. Of several blocks, each has a line, and the \
                  status is that of the first one that is not VALID."
)]
pub(crate) struct VerifyArgs {
    /// Files of a block with its witness; - reads the standard input. A file is JSON: {"chainId":
    /// n, "block": ..., "witness": {"state": [], "codes": [], "headers": []}}; other members are
    /// ignored. The block is its RLP in hex, a request of engine_newPayload, or an answer of
    /// eth_getBlockByNumber or debug_getRawBlock. The witness may be in the form of other tools:
    /// RLP in hex, with headers in any order, or as objects, and in an answer of JSON-RPC. Or the
    /// file is a stateless input of EIP-8025, as it is or in hex. With --block, these are files of
    /// witnesses alone: JSON, RLP or SSZ. All files may be packed, with gzip or zstd. With --rpc,
    /// these are blocks instead: a number, a range with both ends as 100..120, a hash, or latest,
    /// safe or finalized.
    #[arg(required = true, value_name = "FILE|BLOCK|RANGE")]
    what: Vec<String>,
    /// The file of the blocks, where the others are of their witnesses, in the same order: requests
    /// of engine_newPayload, answers of eth_getBlockByNumber or debug_getRawBlock, RLP, or what
    /// else import reads.
    #[arg(long, value_name = "FILE", conflicts_with = "rpc")]
    block: Option<PathBuf>,
    /// Fetch block and witness from this endpoint: http://HOST:PORT, https://HOST/PATH, ws or wss,
    /// or the path of a Unix socket, with debug_executionWitness and either debug_getRawBlock or
    /// eth_getBlockByNumber. A range is fetched and verified four blocks at a time, and printed in
    /// order.
    #[arg(long, value_name = "URL")]
    rpc: Option<String>,
    /// Certificates in PEM of the authorities that may sign the certificate of an endpoint,
    /// instead of the system's.
    #[arg(long, value_name = "FILE", requires = "rpc")]
    cacert: Option<PathBuf>,
    /// The chain's rules, a genesis.json in geth's form or mainnet, sepolia, holesky or hoodi
    /// [default: of these four, that of the chain's id in the file, or else in a transaction; with
    /// --rpc else those of debug_chainConfig].
    #[arg(long, value_name = "GENESIS")]
    chain: Option<PathBuf>,
    /// Refuse a witness that is not canonical, in its form or in its content. The envelope of an
    /// answer around it does not count.
    #[arg(long)]
    strict: bool,
    /// Take an account of which the witness lacks a node for absent, as geth does. That proves
    /// less: each such account is named.
    #[arg(long = "missing-is-absent", conflicts_with = "strict")]
    missing_is_absent: bool,
    /// Print one JSON object a block, on a line of its own.
    #[arg(long)]
    json: bool,
}

/// The chains that are known by name.
pub(crate) const NETWORKS: [(&str, u64); 4] =
    [("mainnet", 1), ("sepolia", 11155111), ("holesky", 17000), ("hoodi", 560048)];

/// Refuses a value of `--chain` that is no file and no network whose rules are built in.
pub(crate) fn refuse_absent(path: &Path) -> anyhow::Result<()> {
    if path.exists() {
        return Ok(());
    }
    let names = NETWORKS.map(|(name, _)| name).join(", ");
    bail!(
        "--chain: there is no file {}, and the networks that are built in are {names}",
        path.display()
    )
}

/// The outcome for a block that was read.
enum Outcome {
    Valid(Box<Report>),
    Invalid(String),
    Incomplete(String),
    NotCanonical(String),
}

/// Verifies the blocks and prints the verdicts.
pub(crate) fn run(args: &VerifyArgs) -> ExitCode {
    let mut status = 0;
    let mut print = |name: &str, outcome: anyhow::Result<Outcome>| {
        let (of_this, text) = printed_outcome(args, name, outcome);
        status = if status == 0 { of_this } else { status };
        std::io::stdout().write_all(text.as_bytes()).context("cannot print the verdict")
    };
    let printed = match &args.rpc {
        Some(url) => endpoint::verify_all(args, url, &mut print),
        None => verify_files(args, &mut print),
    };
    match printed {
        Ok(()) => ExitCode::from(status),
        Err(error) => {
            eprintln!("deponent: {}", printed_error(&error));
            // Lower statuses are verdicts.
            ExitCode::from(DiskFault::EXIT_STATUS)
        }
    }
}

/// The exit status of an outcome, and what is printed of it.
fn printed_outcome(
    args: &VerifyArgs,
    name: &str,
    outcome: anyhow::Result<Outcome>,
) -> (u8, String) {
    let (verdict, text, status) = match outcome {
        Ok(Outcome::Valid(report)) if args.json => return (0, report.json(name)),
        Ok(Outcome::Valid(report)) if args.is_of_many() => return (0, report.line()),
        Ok(Outcome::Valid(report)) => return (0, format!("VALID\n{}", report.text())),
        Ok(Outcome::Invalid(reason)) => ("INVALID", reason, 1),
        Ok(Outcome::Incomplete(reason)) => ("INCOMPLETE", reason, 3),
        Err(error) => ("UNREADABLE", printed_error(&error), 4),
        Ok(Outcome::NotCanonical(reason)) => ("NOT CANONICAL", reason, 5),
    };
    let text = text.trim_end();
    let printed = match (args.json, args.is_of_many() && status == 4) {
        (true, _) => report::failure(verdict, name, text),
        // A block's number may be in any text by chance.
        (false, true) if name.parse::<u64>().is_ok() || !text.contains(name) => {
            format!("{verdict}: {name}: {text}\n")
        }
        (false, _) => format!("{verdict}: {text}\n"),
    };
    (status, printed)
}

impl VerifyArgs {
    /// Whether several blocks are asked for.
    fn is_of_many(&self) -> bool {
        let is_range = self.rpc.is_some() && self.what.iter().any(|what| what.contains(".."));
        is_range || self.what.len() > 1
    }
}

/// Verifies the blocks of all files.
fn verify_files(
    args: &VerifyArgs,
    print: &mut impl FnMut(&str, anyhow::Result<Outcome>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let Some(path) = &args.block else {
        return args.what.iter().try_for_each(|file| print(file, verify_file(args, file)));
    };
    let mut blocks = match block_reader(path) {
        Ok(blocks) => blocks,
        Err(error) => return print(&path.display().to_string(), Err(error)),
    };
    for (index, file) in args.what.iter().enumerate() {
        let too_few = || {
            let blocks = counted(index, "block");
            format!("{} has {blocks}, fewer than witnesses", path.display())
        };
        let block = blocks.next().with_context(too_few).and_then(|block| Ok(block?.block));
        print(file, block.and_then(|block| verify_pair(args, &block, file)))?;
    }
    if blocks.next().is_none() {
        return Ok(());
    }
    let file = path.display().to_string();
    let more = anyhow!("{file} has more blocks than there are witnesses: they are not verified");
    print(&file, Err(more))
}

/// Verifies a block with the witness of a file.
fn verify_pair(args: &VerifyArgs, block: &SealedBlock, file: &str) -> anyhow::Result<Outcome> {
    let content = read_file(file)?;
    let given = ForeignWitness::read_file(&content).map_err(|fault| anyhow!("{file}: {fault}"))?;
    judge(args, &chain_of(args, None, block)?, block, &given)
}

fn verify_file(args: &VerifyArgs, file: &str) -> anyhow::Result<Outcome> {
    let content = read_file(file)?;
    if let Some(input) = stateless_input(&content) {
        return verify_input(args, &input);
    }
    let Document { chain_id, block, given } = Document::of_file(file, &content)?;
    judge(args, &chain_of(args, chain_id, &block)?, &block, &given)
}

/// The blocks of a file, which may be in hex, too.
fn block_reader(path: &Path) -> anyhow::Result<BlockReader> {
    let content = files::read_file(path, VERIFY_FILE_BYTES)?;
    blocks_of(path, &content)
}

/// The blocks of the content of a file.
fn blocks_of(path: &Path, content: &[u8]) -> anyhow::Result<BlockReader> {
    let bytes = unhexed(content).unwrap_or_else(|| content.to_vec());
    Ok(BlockReader::from_bytes(path, bytes)?)
}

/// Reads a file that is not empty, or the standard input for `-`.
fn read_file(file: &str) -> anyhow::Result<Vec<u8>> {
    let content = files::read_file(Path::new(file), VERIFY_FILE_BYTES)?;
    let name = if file == "-" { "the standard input" } else { file };
    ensure!(!content.trim_ascii().is_empty(), "{name} is empty");
    Ok(content)
}

/// A block with the witness that was given with it, before anything is verified.
pub(crate) struct GivenBlock {
    pub(crate) block: SealedBlock,
    pub(crate) given: ForeignWitness,
}

impl GivenBlock {
    /// Reads a file of any form that `verify` takes, or the standard input for `-`; where `block`
    /// is a file of its own, with the first block there.
    pub(crate) fn read(file: &str, block: Option<&Path>) -> anyhow::Result<Self> {
        let content = read_file(file)?;
        if let Some(path) = block {
            let no_block = || format!("{} has no block", path.display());
            let block = block_reader(path)?.next().with_context(no_block)??.block;
            let given = ForeignWitness::read_file(&content);
            return Ok(Self { block, given: given.map_err(|fault| anyhow!("{file}: {fault}"))? });
        }
        if let Some(input) = stateless_input(&content) {
            let input = StatelessInput::decode(&input).context("the stateless input")?;
            let block = execution::stateless::block_of(&input.new_payload_request)?;
            return Ok(Self { block, given: of_input(input.witness) });
        }
        let Document { block, given, .. } = Document::of_file(file, &content)?;
        Ok(Self { block, given })
    }

    /// Fetches a block and its witness from an endpoint; the certificates of `--cacert` are in
    /// `cacert`.
    pub(crate) fn fetch(url: &str, cacert: Option<&Path>, block: &str) -> anyhow::Result<Self> {
        endpoint::fetch(url, cacert, block)
    }
}

/// The witness of a stateless input, whose form is always canonical.
const fn of_input(witness: Witness) -> ForeignWitness {
    ForeignWitness { witness, differences: Vec::new(), envelopes: Vec::new(), keys: Vec::new() }
}

/// The stateless input that a file holds, as it is or in hex: those begin with the id of a schema,
/// a fork's number and the revision, and nothing else does.
fn stateless_input(content: &[u8]) -> Option<Bytes> {
    let is_schema = |bytes: &[u8]| {
        let Some(id) = bytes.first_chunk() else { return false };
        let revisions = [REVISION, REVISION_WITH_KEYS];
        let mut ids =
            ProtocolFork::ALL.into_iter().flat_map(|fork| revisions.map(|it| fork.schema_id(it)));
        ids.any(|it| it == u16::from_be_bytes(*id))
    };
    if is_schema(content) {
        return Some(content.to_vec().into());
    }
    unhexed(content).filter(|bytes| is_schema(bytes)).map(Bytes::from)
}

/// Whether a file is a stateless input of before schemas had an id: it begins with an offset.
const fn is_old_input(content: &[u8]) -> bool {
    matches!(content, [16..=20, 0, 0, 0, ..])
}

/// Verifies a stateless input as a prover's guest does, and then as any other block, for a report.
fn verify_input(args: &VerifyArgs, input: &Bytes) -> anyhow::Result<Outcome> {
    let input = StatelessInput::decode(input).context("the stateless input")?;
    let chain = chain(args, Some(input.chain_id))?;
    let block = match execution::stateless::block_of(&input.new_payload_request) {
        Ok(block) => block,
        Err(reason) => return Ok(Outcome::Invalid(reason.to_string())),
    };
    let at = format!("block {} ({})", block.header.number, block.hash());
    if let Err(VerifyError::Block(BlockError::Invalid(reason))) =
        execution::stateless::verify_input(&chain, &input)
    {
        return Ok(Outcome::Invalid(format!("{at}: {reason}")));
    }
    judge(args, &chain, &block, &of_input(input.witness))
}

fn judge(
    args: &VerifyArgs,
    chain: &ChainSpec,
    block: &SealedBlock,
    given: &ForeignWitness,
) -> anyhow::Result<Outcome> {
    let at = format!("block {} ({})", block.header.number, block.hash());
    let (parent, headers) = (block.header.parent_hash, &given.witness.headers);
    if headers.iter().all(|header| keccak256(header) != parent) {
        return Ok(Outcome::Incomplete(format!(
            "{at}: the header of its parent {parent} is missing"
        )));
    }
    let start = Instant::now();
    let outcome = match args.missing_is_absent {
        true => execution::verify_taking_missing_for_absent(chain, block, &given.witness),
        false => execution::verify(chain, block, None, &given.witness)
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
    if args.strict && (given.witness != verified.witness || !given.differences.is_empty()) {
        let differences = differences(given, &verified.witness).join("; ");
        return Ok(Outcome::NotCanonical(format!("{at}: {differences}")));
    }
    Ok(Outcome::Valid(Box::new(Report::new(chain, block, given, &verified, time, absent))))
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
    block: SealedBlock,
    given: ForeignWitness,
}

impl Document {
    fn of_file(file: &str, content: &[u8]) -> anyhow::Result<Self> {
        let text = std::str::from_utf8(content).ok();
        let read = text.map_or_else(|| Err(anyhow!("it is no text in UTF-8")), Self::read);
        read.map_err(|error| unfit(file, content, error))
    }

    fn read(text: &str) -> anyhow::Result<Self> {
        let text = text.trim_start_matches('\u{feff}').trim();
        let members = fields(text, ["chainId", "block", "witness", "result", "error"]);
        let [chain_id, block, witness, result, error] = members.map_err(|fault| anyhow!(fault))?;
        if let (None, Some(reason)) = (block, without_result(result, error)) {
            bail!(reason);
        }
        let chain_id = chain_id.map(number).transpose().context("chainId")?.flatten();
        let block = read_block(block.context("block is missing")?).context("block")?;
        let given = ForeignWitness::read(witness.context("witness is missing")?);
        Ok(Self { chain_id, block, given: given.map_err(|fault| anyhow!("{fault}"))? })
    }
}

/// Why the content of a file is no block with its witness; half of it is said to be that.
fn unfit(file: &str, content: &[u8], error: anyhow::Error) -> anyhow::Error {
    let binary = unhexed(content);
    let content = binary.as_deref().unwrap_or(content);
    if is_old_input(content) {
        return anyhow!(
            "{file} is a stateless input without a schema id, as tests-zkevm up to v0.6 have it: \
             make it anew, with one of 0x0e01 to 0x1501 in front"
        );
    }
    let has_block = std::str::from_utf8(content)
        .is_ok_and(|text| fields(text, ["block"]).is_ok_and(|[block]| block.is_some()));
    if !has_block && ForeignWitness::read_file(content).is_ok() {
        return anyhow!("{file} is a witness without its block: give the block with --block FILE");
    }
    let mut blocks = blocks_of(Path::new(file), content).into_iter().flatten();
    if let Some(Ok(_)) = blocks.next() {
        return anyhow!(
            "{file} is a block without its witness: give the witness, and this with --block {file}"
        );
    }
    let form = "is not a block with its witness (deponent verify --help has the form)";
    error.context(format!("{file} {form}"))
}

/// A number, in JSON's form or as a quantity; `None` for `null`.
fn number(json: &str) -> anyhow::Result<Option<u64>> {
    let Some(digits) = json.strip_prefix("\"0x").and_then(|text| text.strip_suffix('"')) else {
        return Ok(read_json(json)?);
    };
    let number = u64::from_str_radix(digits, 16);
    Ok(Some(number.with_context(|| format!("{} is no number of 64 bits", quote(json)))?))
}

/// The block in a file of a block with its witness; `None` where it has none.
///
/// # Errors
/// If there is something in its place that is no block.
pub(crate) fn block_of_file(content: &[u8]) -> anyhow::Result<Option<SealedBlock>> {
    let Ok(text) = std::str::from_utf8(content) else { return Ok(None) };
    match fields(text.trim_start_matches('\u{feff}').trim(), ["block"]) {
        Ok([Some(block)]) => read_block(block).context("block").map(Some),
        _ => Ok(None),
    }
}

/// A block as RLP in hex, or as an object that a file of blocks may have.
fn read_block(json: &str) -> anyhow::Result<SealedBlock> {
    if json.starts_with('"') {
        let Data(rlp) = read_json(json)?;
        return Ok(execution::decode_block(&rlp)?);
    }
    let mut blocks = BlockReader::from_bytes(Path::new("block"), json.as_bytes().to_vec())?;
    Ok(blocks.next().context("no block is in it")??.block)
}

/// The rules for a block: those of the chain that the file names, or else of its transactions.
fn chain_of(
    args: &VerifyArgs,
    chain_id: Option<u64>,
    block: &SealedBlock,
) -> anyhow::Result<ChainSpec> {
    let signed = || block.body.transactions.iter().find_map(|transaction| transaction.chain_id());
    chain(args, chain_id.or_else(signed))
}

/// The rules of `--chain`, or the built-in ones of the file's chain.
fn chain(args: &VerifyArgs, chain_id: Option<u64>) -> anyhow::Result<ChainSpec> {
    let Some(path) = &args.chain else {
        let chain_id = chain_id
            .context("neither the file nor a transaction names the chain: give --chain GENESIS")?;
        let built_in = ChainSpec::from_chain_id(chain_id);
        return built_in.map_err(|fault| anyhow!("{fault} (--chain FILE)"));
    };
    let named = NETWORKS.iter().find(|(name, _)| path.as_os_str() == *name);
    let chain = match named {
        Some((_, chain_id)) => ChainSpec::from_chain_id(*chain_id)?,
        None => {
            refuse_absent(path)?;
            let genesis = read_genesis_head(path).context("--chain")?;
            ChainSpec::from_config(&genesis.config).context("--chain")?
        }
    };
    match chain_id {
        Some(chain_id) if chain_id != chain.chain_id() => {
            bail!("the block is of chain {chain_id}, {} of {}", path.display(), chain.chain_id())
        }
        _ => Ok(chain),
    }
}

/// How the order and the form of a witness that was given are not the canonical ones.
pub(crate) fn form_differences(given: &ForeignWitness) -> Vec<String> {
    differences(given, &given.witness)
}

/// How a witness that was given is not the canonical one.
fn differences(given: &ForeignWitness, canonical: &Witness) -> Vec<String> {
    let mut differences = given.differences.clone();
    let names = [("state", "node"), ("codes", "code"), ("headers", "header")];
    let lists = given.witness.lists().into_iter().zip(canonical.lists());
    for ((list, noun), (given, canonical)) in names.into_iter().zip(lists) {
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
                differences.push(format!("{} {problem}", counted(count, noun)));
            }
        }
    }
    differences
}
