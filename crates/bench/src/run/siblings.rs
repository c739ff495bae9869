//! Blocks with large witnesses: siblings on one parent, which differ in their random value alone. A
//! block that is sent a second time is not executed again, and geth then gives no witness.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use alloy_primitives::{B256, keccak256};
use alloy_rpc_types_engine::PayloadAttributes;
use anyhow::{Context, ensure};
use engine_api::NewPayload;
use rpc::RawValue;
use serde::Deserialize;

use crate::chain::format::{Ground, Payload, Writer, count_of, payloads_of};
use crate::chain::world::SECONDS_A_SLOT;
use crate::clients::client::Client;
use crate::clients::prepare::{self, Ancestry};
use crate::clients::target::Target;

/// The file of what a generated chain is built on.
const GENERATED: &str = "state.jsonl.zst";

/// A chain with large witnesses: a published one, `genesis.json` and `payloads.jsonl` with one
/// payload a line and its label, or one that `generate` made, with a file for what is built on and
/// one for each size.
pub(crate) struct SizedChain {
    payloads: Vec<(String, Payload)>,
    /// The blocks up to the parent of the siblings.
    pub(crate) ground: Ground,
    /// The folder in which further blocks are kept.
    folder: PathBuf,
    /// The client that builds them.
    builder: Target,
    dir: PathBuf,
}

impl SizedChain {
    /// Reads the chain in `folder`. The blocks up to the parent of those with these labels are put
    /// below `dir`, in which the builder runs, too.
    pub(crate) fn open(
        folder: &Path,
        labels: &[String],
        builder: Target,
        dir: &Path,
    ) -> anyhow::Result<Self> {
        let payloads = match folder.join("payloads.jsonl") {
            path if path.is_file() || !folder.join(GENERATED).is_file() => published(&path)?,
            _ => generated(folder)?,
        };
        let parents = labels.iter().map(|label| Ok(like(&payloads, label)?.parent));
        let parents = parents.collect::<anyhow::Result<Vec<B256>>>()?;
        let parent = *parents.first().context("no size to measure")?;
        ensure!(parents.iter().all(|other| *other == parent), "the blocks have several parents");
        let name = format!("transports-{}", &parent.to_string()[2..10]);
        let own = dir.join("chains").join(name);
        let (genesis, state) = (own.join("genesis.json"), own.join("state.jsonl"));
        if !state.is_file() {
            std::fs::create_dir_all(&own)?;
            let source = folder.join("genesis.json");
            std::fs::copy(&source, &genesis).with_context(|| format!("no {}", source.display()))?;
            let by_hash: HashMap<B256, &Payload> =
                payloads.iter().map(|(_, payload)| (payload.hash, payload)).collect();
            let mut ancestors = Vec::new();
            let mut at = parent;
            while let Some(payload) = by_hash.get(&at) {
                ancestors.push(*payload);
                at = payload.parent;
            }
            let mut writer = Writer::create(state.clone())?;
            ancestors.iter().rev().try_for_each(|payload| writer.push(payload))?;
            writer.end()?;
        }
        let ground = Ground { genesis, setup: vec![state], longest_branch: 0 };
        Ok(Self { payloads, ground, folder: own, builder, dir: dir.into() })
    }

    /// The first block with a label.
    pub(crate) fn like(&self, label: &str) -> anyhow::Result<&Payload> {
        like(&self.payloads, label)
    }

    /// A file of at least `count` siblings with a label: those of the chain, and others that are
    /// built and kept for the next time.
    pub(crate) fn enough(&self, label: &str, count: usize) -> anyhow::Result<PathBuf> {
        let path = self.folder.join(format!("{label}.jsonl"));
        if has(&path, count)? {
            return Ok(path);
        }
        let mut writer = Writer::create(path.clone())?;
        let own = self.payloads.iter().filter(|(name, _)| name == label);
        let mut published = 0;
        for (_, payload) in own {
            writer.push(payload)?;
            published += 1;
        }
        if published < count {
            eprintln!("{} more blocks like {label} are built", count - published);
            let like = self.like(label)?;
            self.build(|client| {
                (published..count)
                    .try_for_each(|number| writer.push(&sibling(client, like, number)?))
            })?;
        }
        writer.end()?;
        Ok(path)
    }

    /// A file of a block with a label and at least `count` blocks without transactions after it,
    /// which are built and kept for the next time.
    pub(crate) fn buried(&self, label: &str, count: usize) -> anyhow::Result<PathBuf> {
        let path = self.folder.join(format!("buried-{label}.jsonl"));
        if has(&path, count + 1)? {
            return Ok(path);
        }
        eprintln!("{count} blocks after {label} are built");
        let like = self.like(label)?;
        let mut writer = Writer::create(path.clone())?;
        let mut ancestry = Ancestry::of(&self.ground.setup, 0)?;
        self.build(|client| {
            writer.push(like)?;
            let mut last = None;
            for number in 0..=count {
                let payload = last.as_ref().unwrap_or(like);
                ancestry.push(payload);
                client.engine.new_payload(payload, false)?;
                client.engine.forkchoice_updated(ancestry.heads(payload.hash))?;
                if number < count {
                    let child = child(client, payload)?;
                    writer.push(&child)?;
                    last = Some(child);
                }
            }
            Ok(())
        })?;
        writer.end()?;
        Ok(path)
    }

    /// Starts the builder for `build` on a copy that has the ground.
    fn build(&self, build: impl FnOnce(&mut Client) -> anyhow::Result<()>) -> anyhow::Result<()> {
        let work = prepare::working_folder(&self.dir, "building")?;
        let data = work.join("builder");
        prepare::place(&self.builder, &self.ground, &self.dir, &data)?;
        let mut client = prepare::start(&self.builder, &self.ground, &data, false)?;
        build(&mut client)?;
        client.stop()?;
        Ok(std::fs::remove_dir_all(&work)?)
    }
}

fn published(path: &Path) -> anyhow::Result<Vec<(String, Payload)>> {
    #[derive(Deserialize)]
    struct Labelled {
        label: String,
        params: Box<RawValue>,
    }
    let file = File::open(path).with_context(|| format!("no {}", path.display()))?;
    let payloads = BufReader::new(file).lines().map(|line| {
        let labelled: Labelled = serde_json::from_str(&line?).context("not a payload")?;
        Ok((labelled.label, Payload::of("engine_newPayloadV4", &labelled.params)?))
    });
    payloads.collect()
}

/// The labels are the names of the files.
fn generated(folder: &Path) -> anyhow::Result<Vec<(String, Payload)>> {
    let mut payloads = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let Some(label) = name.strip_suffix(".jsonl.zst") else { continue };
        for payload in payloads_of(std::slice::from_ref(&path))? {
            payloads.push((label.to_owned(), payload?));
        }
    }
    Ok(payloads)
}

fn like<'a>(payloads: &'a [(String, Payload)], label: &str) -> anyhow::Result<&'a Payload> {
    let found = payloads.iter().find(|(name, _)| name == label);
    found.map(|(_, payload)| payload).with_context(|| format!("no block is called {label}"))
}

/// A sibling of `like`.
fn sibling(client: &mut Client, like: &Payload, number: usize) -> anyhow::Result<Payload> {
    let call = like.call()?;
    let block = call.payload.as_v1();
    let attributes = PayloadAttributes {
        prev_randao: keccak256(format!("sibling {number} of {}", like.hash)),
        ..attributes_like(&call)
    };
    let extra_data = Some(&block.extra_data);
    let built = client.build(like.parent, &attributes, &block.transactions, extra_data)?;
    let other = built.payload.as_v1();
    ensure!(
        (other.gas_used, other.gas_limit, &other.transactions)
            == (block.gas_used, block.gas_limit, &block.transactions),
        "a sibling of block {} has other gas or transactions",
        like.hash
    );
    Payload::sending(&built)
}

/// A block without transactions on `parent`, which is the head.
fn child(client: &mut Client, parent: &Payload) -> anyhow::Result<Payload> {
    let call = parent.call()?;
    let like = attributes_like(&call);
    let attributes = PayloadAttributes {
        timestamp: like.timestamp + SECONDS_A_SLOT,
        withdrawals: Some(Vec::new()),
        slot_number: like.slot_number.map(|slot| slot + 1),
        ..like
    };
    let extra_data = Some(&call.payload.as_v1().extra_data);
    Payload::sending(&client.build(parent.hash, &attributes, &[], extra_data)?)
}

/// The attributes of a block as that of a call.
fn attributes_like(call: &NewPayload) -> PayloadAttributes {
    let (block, amsterdam) = (call.payload.as_v1(), call.payload.as_v4());
    PayloadAttributes {
        timestamp: block.timestamp,
        prev_randao: block.prev_randao,
        suggested_fee_recipient: block.fee_recipient,
        withdrawals: call.payload.as_v2().map(|payload| payload.withdrawals.clone()),
        parent_beacon_block_root: call.parent_beacon_block_root,
        slot_number: amsterdam.map(|payload| payload.slot_number),
        target_gas_limit: amsterdam.map(|_| block.gas_limit),
    }
}

/// Whether a file is there and has at least so many payloads.
fn has(path: &PathBuf, count: usize) -> anyhow::Result<bool> {
    Ok(path.is_file() && count_of(std::slice::from_ref(path))? >= count)
}
