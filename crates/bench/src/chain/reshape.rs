//! Other chains out of a chain: `gas-ramp` raises its gas limit with empty blocks, `merge` makes
//! large blocks of the transactions of several. A client builds them, with `testing_buildBlockV1`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use alloy_eips::eip4844::DATA_GAS_PER_BLOB;
use alloy_eips::eip7685::Requests;
use alloy_eips::eip7691::MAX_BLOBS_PER_BLOCK_ELECTRA;
use alloy_primitives::{Address, B256, Bytes, U64, keccak256};
use anyhow::{Context, ensure};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::chain::format::{About, Payload, PragueCall, Writer, count_of, payloads_of};
use crate::clients::client::Client;
use crate::clients::prepare::{self as sync, Ancestry};
use crate::clients::target::Targets;
use crate::progress;

/// A block's gas limit differs from its parent's by less than this part of it.
const LIMIT_PART: u64 = 1024;
const SECONDS_A_SLOT: u64 = 12;

/// What `gas-ramp` is given.
#[derive(Debug, clap::Args)]
pub struct RampArgs {
    #[command(flatten)]
    ground: Ground,
    /// The gas limit that the last block has: 5000 at least.
    #[arg(long, value_name = "GAS", value_parser = clap::value_parser!(u64).range(5_000..))]
    gas_limit: u64,
}

/// What `merge` is given.
#[derive(Debug, clap::Args)]
pub struct MergeArgs {
    /// Payload files of one branch, whose transactions run on what --setup leaves.
    #[arg(required = true)]
    payloads: Vec<PathBuf>,
    #[command(flatten)]
    ground: Ground,
    /// Blocks are put together until they have used at least so much gas.
    #[arg(long, value_name = "GAS", value_parser = clap::value_parser!(u64).range(1..))]
    gas: u64,
}

/// The chain that is built on, and who builds.
#[derive(Debug, clap::Args)]
struct Ground {
    /// The genesis, in geth's format: of Prague, Osaka or Amsterdam at the new blocks.
    #[arg(long, value_name = "FILE")]
    genesis: PathBuf,
    /// Payload files after it.
    #[arg(long, value_name = "FILES", value_delimiter = ',')]
    setup: Vec<PathBuf>,
    /// The client that builds: a table of the targets, with testing_buildBlockV1.
    #[arg(long, value_name = "NAME", default_value = "deponent")]
    builder: String,
    /// Targets beside those that we know, or instead of them: see targets.toml.
    #[arg(long, value_name = "FILE")]
    targets: Option<PathBuf>,
    /// Where the builder runs.
    #[arg(long, value_name = "DIR", default_value = "target/bench")]
    dir: PathBuf,
    /// Where the payloads go; packed with zstd if its name ends in .zst.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

/// Raises the gas limit, or lowers it.
pub(crate) fn ramp(args: &RampArgs) -> anyhow::Result<()> {
    let site = Site::open(&args.ground)?;
    let limits = limits(site.head.gas_limit.to(), args.gas_limit);
    ensure!(
        limits.last() == Some(&args.gas_limit),
        "the gas limit cannot go from {} to {}",
        site.head.gas_limit,
        args.gas_limit
    );
    let blocks =
        limits.into_iter().map(|limit| Planned { gas_limit: Some(limit), ..Planned::default() });
    site.write(&args.ground, blocks.collect(), &format!("gas-ramp --gas-limit {}", args.gas_limit))
}

/// Puts blocks together.
pub(crate) fn merge(args: &MergeArgs) -> anyhow::Result<()> {
    let blobs = Genesis::read(&args.ground.genesis)?.config.most_blobs();
    let blocks = merged(payloads_of(&args.payloads)?, args.gas, blobs)?;
    let site = Site::open(&args.ground)?;
    site.write(&args.ground, blocks, &format!("merge --gas {}", args.gas))
}

/// The gas limits from `now` to `wanted`, in steps as large as may be.
fn limits(now: u64, wanted: u64) -> Vec<u64> {
    let mut limits = Vec::new();
    let mut limit = now;
    while limit != wanted {
        let step = (limit / LIMIT_PART).saturating_sub(1);
        let next = wanted.clamp(limit - step, limit.saturating_add(step));
        if next == limit {
            break;
        }
        limit = next;
        limits.push(limit);
    }
    limits
}

/// A block that is to be built.
#[derive(Debug, Default, PartialEq)]
struct Planned {
    transactions: Vec<Bytes>,
    withdrawals: Vec<Value>,
    /// Where it is not what the builder takes.
    gas_limit: Option<u64>,
}

/// The blocks that are made of some: each of all transactions and withdrawals of as many as it
/// takes to use `gas`, or fewer where there would be more than so many blobs.
fn merged(
    payloads: impl Iterator<Item = anyhow::Result<Payload>>,
    gas: u64,
    most_blobs: u64,
) -> anyhow::Result<Vec<Planned>> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Body {
        blob_gas_used: Option<U64>,
        transactions: Vec<Bytes>,
        #[serde(default)]
        withdrawals: Vec<Value>,
    }
    let (mut blocks, mut block) = (Vec::new(), Planned::default());
    let (mut block_gas, mut blob_gas) = (0, 0);
    let mut head: Option<B256> = None;
    for payload in payloads {
        let payload = payload?;
        let follows = head.is_none_or(|head| head == payload.parent);
        ensure!(follows, "block {} is on another branch than the one before", payload.number);
        head = Some(payload.hash);
        let (body,): (Body,) = first_of(payload.params())?;
        let more_blobs: u64 = body.blob_gas_used.unwrap_or_default().to();
        if blob_gas + more_blobs > most_blobs * DATA_GAS_PER_BLOB && block_gas > 0 {
            blocks.push(std::mem::take(&mut block));
            (block_gas, blob_gas) = (0, 0);
        }
        blob_gas += more_blobs;
        block.transactions.extend(body.transactions);
        block.withdrawals.extend(body.withdrawals);
        block_gas += payload.gas_used;
        if block_gas >= gas {
            blocks.push(std::mem::take(&mut block));
            (block_gas, blob_gas) = (0, 0);
        }
    }
    if block != Planned::default() {
        blocks.push(block);
    }
    Ok(blocks)
}

/// The first of some parameters.
fn first_of<T: for<'a> Deserialize<'a>>(params: &str) -> anyhow::Result<(T,)> {
    let params: Vec<&rpc::RawValue> = serde_json::from_str(params)?;
    let first = params.first().context("a call without a payload")?;
    Ok((serde_json::from_str(first.get()).context("not a payload")?,))
}

/// The head that is built on.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head {
    hash: B256,
    number: U64,
    timestamp: U64,
    gas_limit: U64,
    /// From Amsterdam on.
    slot_number: Option<U64>,
}

/// A client that has the chain, and builds on it.
struct Site {
    client: Client,
    data: PathBuf,
    ancestry: Ancestry,
    head: Head,
    chain_id: u64,
    amsterdam_time: u64,
}

/// What a genesis says of the blocks after it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Genesis {
    gas_limit: U64,
    config: Config,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Config {
    amsterdam_time: Option<u64>,
    #[serde(default)]
    blob_schedule: BTreeMap<String, Blobs>,
}

#[derive(Debug, Deserialize)]
struct Blobs {
    max: u64,
}

impl Config {
    /// As many blobs as a block may have on all forks from Prague on.
    fn most_blobs(&self) -> u64 {
        let forks =
            self.blob_schedule.iter().filter(|(fork, _)| !fork.eq_ignore_ascii_case("cancun"));
        forks.map(|(_, blobs)| blobs.max).min().unwrap_or(MAX_BLOBS_PER_BLOCK_ELECTRA)
    }
}

impl Genesis {
    fn read(path: &Path) -> anyhow::Result<Self> {
        let place = || format!("cannot read {}", path.display());
        let text = std::fs::read(path).with_context(place)?;
        serde_json::from_slice(&text).with_context(place)
    }
}

impl Site {
    fn open(ground: &Ground) -> anyhow::Result<Self> {
        ensure!(!ground.out.exists(), "{} is there", ground.out.display());
        let building = ground.dir.join("building");
        sync::remove_left(&building)?;
        let data = building.join(std::process::id().to_string());
        let targets = Targets::read(ground.targets.as_deref())?;
        let Genesis { gas_limit, config } = Genesis::read(&ground.genesis)?;
        let mut target = targets.target(&ground.builder)?.importing();
        if ground.builder == "geth" {
            // It would move the limit to its own.
            let last = payloads_of(&ground.setup)?.last().transpose()?;
            let gas_limit = last.map_or(gas_limit.to(), |payload| payload.gas_limit);
            target.arguments.push(format!("--miner.gaslimit={gas_limit}"));
        }
        let mut client = target.start(&data, &ground.genesis)?;
        let mut ancestry = Ancestry::default();
        let setup = payloads_of(&ground.setup)?.map(|payload| {
            let payload = payload?;
            ancestry.push(&payload);
            Ok(payload)
        });
        sync::feed(&mut client, Ancestry::default(), count_of(&ground.setup)?, setup)?;
        let (_, head) = client.public.call("eth_getBlockByNumber", r#"["latest",false]"#)?;
        let head: Head = serde_json::from_str(head.get()).context("no head")?;
        let (_, chain_id) = client.public.call("eth_chainId", "[]")?;
        let chain_id: U64 = serde_json::from_str(chain_id.get()).context("no chain id")?;
        let amsterdam_time = config.amsterdam_time.unwrap_or(u64::MAX);
        Ok(Self { client, data, ancestry, head, chain_id: chain_id.to(), amsterdam_time })
    }

    /// Builds the blocks, and writes their payloads.
    fn write(mut self, ground: &Ground, blocks: Vec<Planned>, made: &str) -> anyhow::Result<()> {
        let number: u64 = self.head.number.to();
        let numbers = number + 1..=number + blocks.len() as u64;
        let made_by = format!("deponent bench {made}");
        let mut writer = Writer::create(ground.out.clone())?;
        writer.about(&About::new(self.chain_id, self.head.hash, numbers, None, &made_by))?;
        let bar = progress::bar("build", blocks.len());
        for block in &blocks {
            let next = self.head.number.to::<u64>() + 1;
            let payload = self.next(block).with_context(|| format!("block {next}"))?;
            writer.push(&payload)?;
            bar.inc(1);
        }
        writer.end()?;
        self.client.process.stop()?;
        std::fs::remove_dir_all(&self.data)?;
        let (blocks, limit) = (blocks.len(), self.head.gas_limit);
        eprintln!("{} has {blocks} blocks; the gas limit is {limit}", ground.out.display());
        Ok(())
    }

    /// Builds the next block and makes it the head.
    fn next(&mut self, block: &Planned) -> anyhow::Result<Payload> {
        let number = self.head.number.to::<u64>() + 1;
        let timestamp = self.head.timestamp.to::<u64>() + SECONDS_A_SLOT;
        let beacon_root = keccak256(format!("beacon block {number}"));
        let mut attributes = json!({
            "timestamp": format!("{timestamp:#x}"),
            "prevRandao": keccak256(format!("randao {number}")),
            "suggestedFeeRecipient": Address::from_word(keccak256("proposer")),
            "withdrawals": block.withdrawals,
            "parentBeaconBlockRoot": beacon_root,
        });
        // From Amsterdam on the consensus layer says where the gas limit goes.
        let slot = (timestamp >= self.amsterdam_time)
            .then(|| self.head.slot_number.map_or(number, |slot| slot.to::<u64>() + 1));
        if let Some(slot) = slot {
            let limit = block.gas_limit.unwrap_or(self.head.gas_limit.to());
            attributes["slotNumber"] = json!(U64::from(slot));
            attributes["targetGasLimit"] = json!(U64::from(limit));
        }
        let params = json!([self.head.hash, attributes, block.transactions]);
        let built = self.client.build(&params)?;
        let payload = match block.gas_limit {
            Some(limit) if slot.is_none() => limited(built, limit, beacon_root)?,
            _ => Payload::built(built, &json!(beacon_root))?,
        };
        let (taken, planned) = (payload.transactions, block.transactions.len());
        ensure!(taken == planned, "the builder took {taken} of {planned} transactions");
        let (limit, planned) = (payload.gas_limit, block.gas_limit);
        ensure!(planned.is_none_or(|planned| planned == limit), "the builder's limit is {limit}");
        self.client.new_payload_patiently(&payload)?;
        self.ancestry.push(&payload);
        self.client.forkchoice_updated(self.ancestry.heads(payload.hash))?;
        self.head = Head {
            hash: payload.hash,
            number: U64::from(number),
            timestamp: U64::from(timestamp),
            gas_limit: U64::from(payload.gas_limit),
            slot_number: slot.map(U64::from),
        };
        Ok(payload)
    }
}

/// What the builder made before Amsterdam, with another gas limit and the block hash that comes of
/// it: nothing else of a block without transactions depends on the limit.
fn limited(mut built: Value, gas_limit: u64, beacon_root: B256) -> anyhow::Result<Payload> {
    let [payload, requests] =
        ["executionPayload", "executionRequests"].map(|name| built[name].take());
    let payload = serde_json::from_value(payload).context("not a payload of Prague or Osaka")?;
    let requests: Option<Vec<Bytes>> = serde_json::from_value(requests)?;
    let requests = Requests::new(requests.unwrap_or_default());
    let mut call = PragueCall { payload, versioned_hashes: Vec::new(), beacon_root, requests };
    let fields = &mut call.payload.payload_inner.payload_inner;
    ensure!(fields.transactions.is_empty(), "it has transactions, which may see the limit");
    fields.gas_limit = gas_limit;
    call.hashed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_merged_block_ends_at_its_gas_or_before_its_blobs_are_too_many() {
        let payload = |number: u64, blobs: u64| {
            let payload = Payload::of(
                "engine_newPayloadV4",
                &[json!({
                    "blockNumber": U64::from(number),
                    "blockHash": B256::with_last_byte(number as u8),
                    "parentHash": B256::with_last_byte(number as u8 - 1),
                    "stateRoot": B256::ZERO,
                    "timestamp": "0x1",
                    "gasLimit": "0x10",
                    "gasUsed": "0xa",
                    "blobGasUsed": U64::from(blobs * DATA_GAS_PER_BLOB),
                    "transactions": [format!("0x{number:02x}")],
                })],
            );
            Ok(payload.expect("a payload"))
        };
        let payloads = [3, 3, 3, 1, 0, 0, 0, 9].into_iter().zip(1u64..);
        let payloads = payloads.map(|(blobs, number)| payload(number, blobs));
        let blocks = merged(payloads, 40, 9).expect("blocks that follow each other");
        let lens: Vec<_> = blocks.iter().map(|block| block.transactions.len()).collect();
        assert_eq!(lens, [3, 4, 1]);
    }

    #[test]
    fn gas_limits_go_to_the_target_in_steps_that_are_allowed() {
        for [now, wanted] in [[30_000_000, 60_000_000], [60_000_000, 30_000_000], [5_000, 6_000]] {
            let limits = limits(now, wanted);
            assert_eq!(limits.last(), Some(&wanted));
            let pairs = std::iter::once(&now).chain(&limits).zip(&limits);
            assert!(
                pairs
                    .clone()
                    .all(|(parent, limit)| { parent.abs_diff(*limit) < parent / LIMIT_PART })
            );
            // None but the last could be larger.
            let whole = pairs.take(limits.len() - 1);
            assert!(
                whole
                    .into_iter()
                    .all(|(parent, limit)| { parent.abs_diff(*limit) == parent / LIMIT_PART - 1 })
            );
        }
        assert!(limits(30_000_000, 30_000_000).is_empty());
        // Where no step is allowed, there is none.
        assert!(limits(1_500, 9_000).is_empty());
    }
}
