//! `deponent_subscribeWitnesses`: that a block has a witness, and whether the block stays.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use alloy_hardforks::EthereumHardfork;
use alloy_primitives::{B256, U64};
use engine::{BlockRecord, ChainEvent, Engine, HeadChange, Heads, WitnessBytes, WitnessSize};
use rpc::{Json, Subscription};
use serde::Serialize;
use serde_json::{Value, json};

use super::{Feed, FeedState};
use crate::limits::{FEED_ATTEMPTS, FEED_REPLAY_BLOCKS, FEED_WAIT};

/// The status of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum BlockStatus {
    /// It was validated, and its witness can be had.
    Valid,
    Canonical,
    Safe,
    Finalized,
    /// It is not canonical any more.
    Reorged,
}

/// Why a subscriber cannot be told what it missed.
#[derive(Debug)]
pub(crate) enum MissedError {
    /// No such block is kept.
    Unknown(B256),
    /// It is too many blocks back.
    TooFar(u64),
    /// Others are told already, or the chain changes too fast.
    Busy,
    Engine(engine::Error),
}

impl fmt::Display for MissedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(hash) => write!(
                f,
                "block {hash} is not kept, or never was: subscribe without it, and read what you \
                 miss by number"
            ),
            Self::TooFar(count) => write!(
                f,
                "{count} blocks came after it, {FEED_REPLAY_BLOCKS} are told at most: subscribe \
                 without a hash, and read what you miss by number"
            ),
            Self::Busy => f.write_str("busy: others are told what they missed, try again"),
            Self::Engine(error) => error.fmt(f),
        }
    }
}

impl Feed {
    /// The witnesses of blocks from now on; after a hash that was seen, what came since.
    ///
    /// # Errors
    /// Where it cannot be told what came since.
    pub(crate) fn witnesses(&self, seen: Option<B256>) -> Result<Subscription, MissedError> {
        let Some(seen) = seen else { return Ok(self.state().topics.witnesses.subscribe()) };
        let permit = self.replays.clone().try_acquire_owned().map_err(|_| MissedError::Busy)?;
        for _ in 0..FEED_ATTEMPTS {
            let (subscription, heads, rolled_back) = {
                let state = self.state();
                (state.topics.witnesses.subscribe(), state.heads, state.rolled_back.clone())
            };
            let Some(missed) = missed(&self.engine, seen, &heads, &rolled_back)? else {
                // The chain has moved on, and its event comes at once.
                self.wait_for_other_head(heads.head);
                continue;
            };
            let engine = self.engine.clone();
            let items = missed.into_iter().filter_map(move |(hash, status)| {
                let _until_all_are_told = &permit;
                let record = engine.block(hash).ok().flatten()?;
                Some(item(&engine, &record, status))
            });
            return Ok(subscription.after(Box::new(items)));
        }
        Err(MissedError::Busy)
    }

    /// Waits until subscribers were told of another head, as long as a caller may wait.
    fn wait_for_other_head(&self, head: B256) {
        let is_same = |state: &mut FeedState| state.heads.head == head;
        let waited = self.told.wait_timeout_while(self.state(), FEED_WAIT, is_same);
        drop(waited.expect("nothing panics while it is held"));
    }

    /// Tells of an event. The subscribers who come meanwhile are told of the next.
    pub(super) fn publish_witnesses(&self, event: &ChainEvent) {
        let mut state = self.state();
        let has_subscriptions = state.topics.witnesses.has_subscriptions();
        if let ChainEvent::Chosen(change) = event {
            state.heads = change.now;
            state.rolled_back.note(change);
            self.told.notify_all();
        }
        if !has_subscriptions {
            return;
        }
        for (hash, status) in changes(event) {
            if let Some(record) = self.block(hash) {
                state.topics.witnesses.publish(item(&self.engine, &record, status));
            }
        }
    }
}

/// The blocks that an event is of, with their status by then.
fn changes(event: &ChainEvent) -> Vec<(B256, BlockStatus)> {
    match event {
        ChainEvent::Valid(hash) => vec![(*hash, BlockStatus::Valid)],
        ChainEvent::Chosen(HeadChange { before, now, left, joined }) => {
            let with = |status| move |hash: &B256| (*hash, status);
            let mut all: Vec<_> = left.iter().map(with(BlockStatus::Reorged)).collect();
            all.extend(joined.iter().map(with(BlockStatus::Canonical)));
            all.extend(now.safe.iter().filter(|_| now.safe != before.safe).map(with(SAFE)));
            let is_new = now.finalized != before.finalized;
            all.extend(now.finalized.iter().filter(|_| is_new).map(with(FINALIZED)));
            all
        }
        _ => Vec::new(),
    }
}

const SAFE: BlockStatus = BlockStatus::Safe;
const FINALIZED: BlockStatus = BlockStatus::Finalized;

/// The newest blocks that left the canonical chain when its head moved back.
#[derive(Debug, Clone, Default)]
pub(super) struct RolledBack(VecDeque<B256>);

impl RolledBack {
    fn note(&mut self, change: &HeadChange) {
        let Self(blocks) = self;
        if change.joined.is_empty() {
            blocks.extend(&change.left);
        } else if !blocks.is_empty() {
            blocks.retain(|hash| !change.joined.contains(hash));
        }
        let surplus = blocks.len().saturating_sub(FEED_REPLAY_BLOCKS as usize);
        blocks.drain(..surplus);
    }

    fn contains(&self, hash: &B256) -> bool {
        self.0.contains(hash)
    }
}

/// The changes after `seen` on the chain that ends with the head: the branch of `seen` that is not
/// canonical, the newest block first, the canonical blocks, and the safe and the finalized block.
/// `None` when the chain does not end with that head any more.
fn missed(
    engine: &Engine,
    seen: B256,
    heads: &Heads,
    rolled_back: &RolledBack,
) -> Result<Option<Vec<(B256, BlockStatus)>>, MissedError> {
    let head = heads.head;
    let failed = MissedError::Engine;
    let last = engine.number(&head).map_err(failed)?.ok_or(MissedError::Unknown(head))?;
    let mut left = Vec::new();
    let mut next = seen;
    let fork = loop {
        let record = engine.block(next).map_err(failed)?.ok_or(MissedError::Unknown(seen))?;
        let number = record.number();
        if number <= last && engine.canonical_hash(number).map_err(failed)? == Some(next) {
            break number;
        }
        if left.len() as u64 == FEED_REPLAY_BLOCKS {
            return Err(MissedError::TooFar(FEED_REPLAY_BLOCKS));
        }
        left.push((next, BlockStatus::Reorged));
        next = record.block.header.parent_hash;
    };
    if last - fork > FEED_REPLAY_BLOCKS {
        return Err(MissedError::TooFar(last - fork));
    }
    let canonical = engine.canonical_range(fork, last + 1).map_err(failed)?;
    if canonical.first() != Some(&Some(next)) || canonical.last() != Some(&Some(head)) {
        return Ok(None);
    }
    if fork == last {
        // A block on the head has left the chain, or was not chosen yet.
        left.retain(|(hash, _)| rolled_back.contains(hash));
    }
    let joined = canonical.into_iter().skip(1).flatten();
    left.extend(joined.map(|hash| (hash, BlockStatus::Canonical)));
    left.extend(heads.safe.map(|hash| (hash, SAFE)));
    left.extend(heads.finalized.map(|hash| (hash, FINALIZED)));
    Ok(Some(left))
}

/// The value that a subscriber gets of a block.
fn item(engine: &Engine, record: &Arc<BlockRecord>, status: BlockStatus) -> Json {
    let hash = record.hash();
    let header = &record.block.header;
    let mut item = json!({
        "hash": hash,
        "number": U64::from(header.number),
        "parentHash": header.parent_hash,
        "status": status,
        "urls": urls(engine, record),
    });
    if let Some(size) = engine.witness_size(record) {
        let WitnessSize { nodes_at_most, codes, headers, .. } = size;
        item["items"] = json!({"nodes": nodes_at_most, "codes": codes, "headers": headers});
        item["sizes"] = sizes(engine, hash, size);
    }
    super::json(&item)
}

/// The bytes of a witness in each encoding: exact where it was put together already, else upper
/// bounds; `null` where even these take reading its nodes.
fn sizes(engine: &Engine, hash: B256, size: WitnessSize) -> Value {
    let count = size.nodes_at_most + size.codes + size.headers;
    match size.bytes {
        None => Value::Null,
        Some(WitnessBytes::Exactly(ssz)) => {
            // It is in memory.
            let Ok(Some(witness)) = engine.witness(hash) else { return Value::Null };
            let (rlp, json) =
                (witness::rlp::encoded_len(&witness), witness::json::encoded_len(&witness));
            json!({"exact": true, "ssz": ssz, "rlp": rlp, "json": json})
        }
        Some(WitnessBytes::AtMost(ssz)) => {
            // SSZ has an offset of four bytes a list and an item, RLP a prefix of at most so many;
            // JSON has two digits a byte, and quotes, prefix and comma of each item.
            let content = ssz.saturating_sub(4 * (3 + count));
            let rlp = content + 4 * count + RLP_LISTS_BYTES;
            let json = 2 * content + 5 * count + JSON_NAMES_BYTES;
            json!({"exact": false, "ssz": ssz, "rlp": rlp, "json": json})
        }
    }
}

/// Prefixes of four lists and the one around them.
const RLP_LISTS_BYTES: usize = 5 * 9;
/// `{"state":[],"codes":[],"headers":[]}`.
const JSON_NAMES_BYTES: usize = 36;

/// Where the witness can be had: paths of the Engine API over REST, and a call of JSON-RPC.
fn urls(engine: &Engine, record: &BlockRecord) -> Value {
    let hash = record.hash();
    let mut urls = json!({
        "ssz": format!("/engine/v1/witnesses/{hash}"),
        "rlp": format!("/engine/v1/witnesses/{hash}.rlp"),
        "json": {"method": "debug_executionWitnessByBlockHash", "params": [hash]},
    });
    if engine.chain().fork_at(record.block.header.timestamp) >= EthereumHardfork::Paris {
        urls["statelessInput"] = json!(format!("/engine/v1/stateless-inputs/{hash}"));
    }
    urls
}
