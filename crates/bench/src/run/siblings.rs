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

/// A published chain: `genesis.json`, and `payloads.jsonl` with one payload a line and its label;
/// or one that `generate` made, with a file for what is built on and one for each size.
#[derive(Debug)]
pub(crate) struct Published {
    genesis: PathBuf,
    payloads: Vec<(String, Payload)>,
}

/// A chain to the parent of the siblings, below a folder in which further blocks are kept.
pub(crate) struct Parent {
    pub(crate) ground: Ground,
    folder: PathBuf,
}

/// The client that builds further blocks, and the folder in which it runs.
pub(crate) struct Builder<'a> {
    pub(crate) target: &'a Target,
    pub(crate) dir: &'a Path,
}

impl Published {
    pub(crate) fn read(folder: &Path) -> anyhow::Result<Self> {
        let path = folder.join("payloads.jsonl");
        if !path.is_file() && folder.join(GENERATED).is_file() {
            return Self::read_generated(folder);
        }
        #[derive(Deserialize)]
        struct Labelled {
            label: String,
            params: Box<RawValue>,
        }
        let file = File::open(&path).with_context(|| format!("no {}", path.display()))?;
        let payloads = BufReader::new(file).lines().map(|line| {
            let labelled: Labelled = serde_json::from_str(&line?).context("not a payload")?;
            Ok((labelled.label, Payload::of("engine_newPayloadV4", &labelled.params)?))
        });
        let payloads = payloads.collect::<anyhow::Result<_>>()?;
        Ok(Self { genesis: folder.join("genesis.json"), payloads })
    }

    /// The labels are the names of the files.
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

    /// The blocks up to the parent of those with these labels, as a chain below `dir`.
    pub(crate) fn parent(&self, labels: &[String], dir: &Path) -> anyhow::Result<Parent> {
        let parents = labels.iter().map(|label| Ok(self.like(label)?.parent));
        let parents = parents.collect::<anyhow::Result<Vec<B256>>>()?;
        let parent = *parents.first().context("no size to measure")?;
        ensure!(parents.iter().all(|other| *other == parent), "the blocks have several parents");
        let name = format!("transports-{}", &parent.to_string()[2..10]);
        let folder = dir.join("chains").join(name);
        let (genesis, state) = (folder.join("genesis.json"), folder.join("state.jsonl"));
        if !state.is_file() {
            std::fs::create_dir_all(&folder)?;
            std::fs::copy(&self.genesis, &genesis)
                .with_context(|| format!("no {}", self.genesis.display()))?;
            let by_hash: HashMap<B256, &Payload> =
                self.payloads.iter().map(|(_, payload)| (payload.hash, payload)).collect();
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
        Ok(Parent { ground: Ground { genesis, setup: vec![state], longest_branch: 0 }, folder })
    }

    pub(crate) fn siblings(&self, label: &str) -> impl Iterator<Item = &Payload> {
        let called = move |(name, payload)| (name == label).then_some(payload);
        self.payloads.iter().map(|(name, payload)| (name.as_str(), payload)).filter_map(called)
    }

    fn like(&self, label: &str) -> anyhow::Result<&Payload> {
        self.siblings(label).next().with_context(|| format!("no block is called {label}"))
    }

    /// A file of at least `count` siblings with a label: the published ones, and others that are
    /// built and kept for the next time.
    pub(crate) fn enough(
        &self,
        label: &str,
        count: usize,
        parent: &Parent,
        builder: &Builder<'_>,
    ) -> anyhow::Result<PathBuf> {
        let path = parent.folder.join(format!("{label}.jsonl"));
        if has(&path, count)? {
            return Ok(path);
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
            builder.run(&parent.ground, |client| {
                for number in published..count {
                    writer.push(&sibling(client, like, number)?)?;
                }
                Ok(())
            })?;
        }
        writer.end()?;
        Ok(path)
    }

    /// A file of a block with a label and at least `count` blocks without transactions after it,
    /// which are built and kept for the next time.
    pub(crate) fn buried(
        &self,
        label: &str,
        count: usize,
        parent: &Parent,
        builder: &Builder<'_>,
    ) -> anyhow::Result<PathBuf> {
        let path = parent.folder.join(format!("buried-{label}.jsonl"));
        if has(&path, count + 1)? {
            return Ok(path);
        }
        eprintln!("{count} blocks after {label} are built");
        let like = self.like(label)?;
        let mut writer = Writer::create(path.clone())?;
        let mut ancestry = Ancestry::of(&parent.ground.setup, 0)?;
        builder.run(&parent.ground, |client| {
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
}

impl Builder<'_> {
    /// Starts it for `build` on a copy that has the ground.
    fn run(
        &self,
        ground: &Ground,
        build: impl FnOnce(&mut Client) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let work = prepare::working_folder(self.dir, "building")?;
        let data = work.join("builder");
        prepare::place(self.target, ground, self.dir, &data)?;
        let mut client = prepare::start(self.target, ground, &data, false)?;
        build(&mut client)?;
        client.stop()?;
        Ok(std::fs::remove_dir_all(&work)?)
    }
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
