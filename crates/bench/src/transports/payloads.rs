//! The blocks that are sent: siblings on one parent, which differ in their random value alone. A
//! block that is sent a second time is not executed again, and geth then gives no witness.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use alloy_primitives::{B256, U64, keccak256};
use anyhow::{Context, ensure};
use rpc::RawValue;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::chain::format::{Chain, Part, Payload, Writer, payloads_of};
use crate::clients::client::{Client, Program};
use crate::clients::prepare::{self as sync, Ancestry};

/// A published chain: `genesis.json`, and `payloads.jsonl` with one payload a line and what it is
/// called; or one that `generate` made, with a file for what is built on and one for each size.
#[derive(Debug)]
pub(super) struct Published {
    genesis: PathBuf,
    payloads: Vec<(String, Payload)>,
}

/// The file of what is built on.
const GENERATED: &str = "state.jsonl.zst";

#[derive(Deserialize)]
struct Line {
    label: String,
    params: Box<RawValue>,
}

impl Published {
    pub(super) fn read(folder: &Path) -> anyhow::Result<Self> {
        let path = folder.join("payloads.jsonl");
        if !path.is_file() && folder.join(GENERATED).is_file() {
            return Self::read_generated(folder);
        }
        let file = File::open(&path).with_context(|| format!("no {}", path.display()))?;
        let payloads = BufReader::new(file).lines().map(|line| {
            let Line { label, params } = serde_json::from_str(&line?).context("not a payload")?;
            Ok((label, Payload::of("engine_newPayloadV4", &params)?))
        });
        let payloads = payloads.collect::<anyhow::Result<_>>()?;
        Ok(Self { genesis: folder.join("genesis.json"), payloads })
    }

    /// The files are called as their payloads are.
    fn read_generated(folder: &Path) -> anyhow::Result<Self> {
        let mut payloads = Vec::new();
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let Some(label) = name.strip_suffix(".jsonl.zst") else { continue };
            for payload in payloads_of(std::slice::from_ref(&path))? {
                payloads.push((label.to_owned(), payload?));
            }
        }
        Ok(Self { genesis: folder.join("genesis.json"), payloads })
    }

    /// The blocks up to the parent of those with these labels, as a chain below `folder`.
    pub(super) fn chain(&self, labels: &[String], folder: &Path) -> anyhow::Result<Chain> {
        let mut parents = labels.iter().map(|label| {
            let mut siblings = self.siblings(label);
            anyhow::Ok(
                siblings.next().with_context(|| format!("no block is called {label}"))?.parent,
            )
        });
        let parent = parents.next().context("no size to measure")??;
        for other in parents {
            ensure!(other? == parent, "the blocks have more than one parent");
        }
        let folder =
            folder.join("chains").join(format!("transports-{}", &parent.to_string()[2..10]));
        let chain = Chain { state: folder.clone(), folder, longest_branch: 0 };
        if chain.has(Part::State) {
            return Ok(chain);
        }
        std::fs::create_dir_all(&chain.folder)?;
        std::fs::copy(&self.genesis, chain.genesis())
            .with_context(|| format!("no {}", self.genesis.display()))?;
        let by_hash: HashMap<B256, &Payload> =
            self.payloads.iter().map(|(_, payload)| (payload.hash, payload)).collect();
        let mut ancestors = Vec::new();
        let mut at = parent;
        while let Some(payload) = by_hash.get(&at) {
            ancestors.push(*payload);
            at = payload.parent;
        }
        let mut writer = Writer::create(chain.part(Part::State))?;
        ancestors.iter().rev().try_for_each(|payload| writer.push(payload))?;
        writer.end()?;
        Ok(chain)
    }

    pub(super) fn siblings(&self, label: &str) -> impl Iterator<Item = &Payload> {
        let called = move |(name, payload)| (name == label).then_some(payload);
        self.payloads.iter().map(|(name, payload)| (name.as_str(), payload)).filter_map(called)
    }

    /// At least `count` siblings with a label: the published ones, and others that `builder` makes
    /// and that are kept for the next time.
    pub(super) fn enough(
        &self,
        label: &str,
        count: usize,
        chain: &Chain,
        folder: &Path,
        builder: &Program,
    ) -> anyhow::Result<Vec<Payload>> {
        let path = chain.folder.join(format!("{label}.jsonl"));
        if let Some(kept) = kept(&path, count)? {
            return Ok(kept);
        }
        let mut writer = Writer::create(path.clone())?;
        let mut published = 0;
        for payload in self.siblings(label) {
            writer.push(payload)?;
            published += 1;
        }
        if published < count {
            eprintln!("{} more blocks like {label} are built", count - published);
            let like = self.like(label)?;
            building(chain, folder, builder, |client| {
                for number in published..count {
                    writer.push(&build(client, like, number)?)?;
                }
                Ok(())
            })?;
        }
        writer.end()?;
        payloads_of(&[path])?.collect()
    }

    /// A block with a label, and at least `count` blocks without transactions after it, which
    /// `builder` makes and which are kept for the next time.
    pub(super) fn buried(
        &self,
        label: &str,
        count: usize,
        chain: &Chain,
        folder: &Path,
        builder: &Program,
    ) -> anyhow::Result<Vec<Payload>> {
        let path = chain.folder.join(format!("buried-{label}.jsonl"));
        if let Some(kept) = kept(&path, count + 1)? {
            return Ok(kept);
        }
        eprintln!("{count} blocks after {label} are built");
        let like = self.like(label)?;
        let mut writer = Writer::create(path.clone())?;
        let mut ancestry = Ancestry::before(chain, Part::Empty)?;
        building(chain, folder, builder, |client| {
            writer.push(like)?;
            let mut parent = None;
            for number in 0..=count {
                let payload = parent.as_ref().unwrap_or(like);
                ancestry.push(payload);
                client.new_payload(payload, false)?;
                client.forkchoice_updated(ancestry.heads(payload.hash))?;
                if number < count {
                    let child = build_child(client, payload)?;
                    writer.push(&child)?;
                    parent = Some(child);
                }
            }
            Ok(())
        })?;
        writer.end()?;
        payloads_of(&[path])?.collect()
    }

    fn like(&self, label: &str) -> anyhow::Result<&Payload> {
        self.siblings(label).next().with_context(|| format!("no block is called {label}"))
    }
}

/// Starts `builder` for `build` on a copy that has the blocks of the chain.
fn building(
    chain: &Chain,
    folder: &Path,
    builder: &Program,
    build: impl FnOnce(&mut Client) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let data = folder.join("building").join(std::process::id().to_string());
    sync::copy_prepared(&sync::prepared(builder, chain, folder)?, &data)?;
    let mut client = builder.start(&data, &chain.genesis())?;
    sync::catch_up(&mut client, chain, Part::Empty)?;
    build(&mut client)?;
    client.process.stop()?;
    Ok(std::fs::remove_dir_all(&data)?)
}

/// A sibling of `like`.
fn build(client: &mut Client, like: &Payload, number: usize) -> anyhow::Result<Payload> {
    let mut params: Value = serde_json::from_str(like.params())?;
    let beacon_root = &params[2];
    let payload = &params[0];
    let mut attributes = json!({
        "timestamp": payload["timestamp"],
        "prevRandao": keccak256(format!("sibling {number} of {}", like.hash)),
        "suggestedFeeRecipient": payload["feeRecipient"],
        "withdrawals": payload["withdrawals"],
        "parentBeaconBlockRoot": beacon_root,
    });
    add_slot(&mut attributes, payload, 0)?;
    let transactions = &payload["transactions"];
    let mut built =
        client.build(&json!([like.parent, attributes, transactions, payload["extraData"]]))?;
    let built = built["executionPayload"].take();
    for name in ["gasUsed", "gasLimit", "transactions"] {
        ensure!(built[name] == payload[name], "{name} of a sibling is {}", built[name]);
    }
    params[0] = built;
    Payload::of(&like.method(false), &params)
}

/// A block without transactions on `parent`, which is the head.
fn build_child(client: &mut Client, parent: &Payload) -> anyhow::Result<Payload> {
    /// Of a slot.
    const SECONDS: u64 = 12;
    let params: Value = serde_json::from_str(parent.params())?;
    let payload = &params[0];
    let time: U64 = serde_json::from_value(payload["timestamp"].clone())?;
    let mut attributes = json!({
        "timestamp": U64::from(time.to::<u64>() + SECONDS),
        "prevRandao": payload["prevRandao"],
        "suggestedFeeRecipient": payload["feeRecipient"],
        "withdrawals": [],
        "parentBeaconBlockRoot": params[2],
    });
    add_slot(&mut attributes, payload, 1)?;
    let built = client.build(&json!([parent.hash, attributes, [], payload["extraData"]]))?;
    Payload::built(built, &params[2])
}

/// What attributes of Amsterdam have beside, if `payload` is of Amsterdam: the block is so many
/// slots after it.
fn add_slot(attributes: &mut Value, payload: &Value, slots: u64) -> anyhow::Result<()> {
    if let Some(slot) = payload.get("slotNumber") {
        let slot: U64 = serde_json::from_value(slot.clone())?;
        attributes["slotNumber"] = json!(U64::from(slot.to::<u64>() + slots));
        attributes["targetGasLimit"] = payload["gasLimit"].clone();
    }
    Ok(())
}

/// The payloads of a file, if it is there and has at least `count`.
fn kept(path: &PathBuf, count: usize) -> anyhow::Result<Option<Vec<Payload>>> {
    if !path.is_file() {
        return Ok(None);
    }
    let kept = payloads_of(std::slice::from_ref(path))?.collect::<anyhow::Result<Vec<_>>>()?;
    Ok((kept.len() >= count).then_some(kept))
}
