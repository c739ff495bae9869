//! `deponent verify`: runs one block on its witness, without any other state.

use std::fs::File;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use clap::Args;
use engine_api::json::Data;
use execution::{ChainSpec, SealedBlock, Verified};
use rpc::read_json_bytes;
use serde::Deserialize;
use witness::Witness;

use crate::limits::VERIFY_FILE_BYTES;
use files::read_genesis_head;

/// The arguments of `deponent verify`.
#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// The block with its witness, as JSON: {"chainId": n, "block": "0x RLP", "witness": {"state":
    /// [], "codes": [], "headers": []}}; other members are ignored. - reads the standard input.
    file: PathBuf,
    /// The chain's rules, a genesis.json in geth's form [default: those of the file's chainId, if
    /// that is 1, 11155111, 17000 or 560048].
    #[arg(long, value_name = "GENESIS")]
    chain: Option<PathBuf>,
}

/// The content of the file.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    chain_id: Option<u64>,
    block: Data,
    witness: Witness,
}

/// Verifies the file's block and prints a report.
pub(crate) fn run(args: &VerifyArgs) -> anyhow::Result<()> {
    let text = read(&args.file)?;
    let Document { chain_id, block, witness } = read_json_bytes(&text).with_context(|| {
        let file = args.file.display();
        format!("{file} is not a block with its witness (deponent verify --help has the form)")
    })?;
    drop(text);
    let chain = chain(args, chain_id)?;
    let block = execution::decode_block(&block.0)?;
    let start = Instant::now();
    let verified = execution::verify(&chain, &block, None, &witness)
        .map_err(|reason| anyhow!("block {} ({}): {reason}", block.header.number, block.hash()))?;
    let time = start.elapsed();
    let report = report(&chain, &block, &witness, &verified, time);
    std::io::stdout().write_all(report.as_bytes()).context("cannot print the report")
}

fn read(path: &PathBuf) -> anyhow::Result<Vec<u8>> {
    let mut text = Vec::new();
    let read = if path.as_os_str() == "-" {
        std::io::stdin().lock().take(VERIFY_FILE_BYTES + 1).read_to_end(&mut text)
    } else {
        File::open(path).and_then(|file| file.take(VERIFY_FILE_BYTES + 1).read_to_end(&mut text))
    };
    read.with_context(|| format!("cannot read {}", path.display()))?;
    if text.len() as u64 > VERIFY_FILE_BYTES {
        bail!("{} is longer than {VERIFY_FILE_BYTES} bytes", path.display());
    }
    Ok(text)
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

fn report(
    chain: &ChainSpec,
    block: &SealedBlock,
    given: &Witness,
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
    line("witness", content(given));
    line("read of it", content(&verified.witness));
    line("time", format!("{:.3} ms", time.as_secs_f64() * 1000.0));
    out
}

fn content(witness: &Witness) -> String {
    let Witness { state, codes, headers } = witness;
    let (state, codes, headers) = (state.len(), codes.len(), headers.len());
    let bytes = witness.content_bytes();
    format!("{state} nodes, {codes} codes, {headers} headers, {bytes} bytes")
}
