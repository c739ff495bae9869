//! `deponent_status`: how the node is, for its operator.

use alloy_primitives::B256;
use engine::{CacheUse, Engine, SyncProgress};
use follow::{HeadStatus, UpstreamState};
use rpc::{Code, Error, Json, Params};
use serde_json::{Value, json};
use state::{CacheStats, Retained, Stats};

use super::{Api, refusal};
use crate::console::VERSION;
use crate::disk::free_bytes;
use crate::observe::{Detail, NodeCondition};

/// Numbers, bytes and seconds are numbers of JSON.
pub(super) fn status(api: &Api, params: Params<'_>) -> Result<Json, Error> {
    params.end()?;
    let condition = api.condition.as_deref();
    let condition =
        condition.ok_or_else(|| Error::new(Code::Internal, "this is the API of no node"))?;
    let (engine, database) = (&*api.engine, api.engine.database());
    let heads = engine.heads();
    // The database has been told of later ones, which a crash would lose.
    let stored = engine.persisted_head();
    let number = |hash: &B256| engine.number(hash).map_err(refusal);
    let named = |hash: Option<B256>| -> Result<Value, Error> {
        let Some(hash) = hash else { return Ok(Value::Null) };
        Ok(json!({"number": number(&hash)?, "hash": hash}))
    };
    let head = number(&heads.head)?.unwrap_or_default();
    let stats = database.stats().map_err(failed)?;
    let reasons = api.why_not_ready(Detail::Whole);
    let syncing = engine.progress().map_err(refusal)?.map(|progress| {
        let SyncProgress { starting, current, highest, .. } = progress;
        json!({"startingBlock": starting, "currentBlock": current, "highestBlock": highest})
    });
    let first = engine.first_number();
    let oldest_state = engine.oldest_state();
    Json::of(&json!({
        "version": VERSION,
        "uptime": condition.started.elapsed().as_secs(),
        "dataDir": condition.data_dir.display().to_string(),
        "chainId": engine.chain().chain_id(),
        "ready": reasons.is_empty(),
        "reasons": reasons,
        "head": named(Some(heads.head))?,
        "safe": named(heads.safe)?,
        "finalized": named(heads.finalized)?,
        "persisted": named(Some(stored))?,
        "unpersisted": {
            "blocks": stats.unpersisted_blocks,
            "bytes": stats.unpersisted_bytes,
        },
        "syncing": syncing.unwrap_or(Value::Bool(false)),
        "oldestState": oldest_state,
        "oldestWitness": oldest_witness(engine, first, head, oldest_state)?,
        "disk": disk(&stats, condition),
        "caches": caches(&engine.cache_use()),
        "consensusClient": consensus_client(condition),
        "headSource": head_source(condition),
        "upstreams": upstreams(api, condition),
    }))
}

/// The upstreams of `--follow`: those of the head, which are asked all the time, or of gaps.
fn upstreams(api: &Api, condition: &NodeCondition) -> Vec<Value> {
    let of_head = condition.head_source().map(|source| source.upstreams());
    let of_gaps = api.backfill.as_ref().map(|backfill| backfill.upstreams());
    let all = of_head.or(of_gaps).unwrap_or_default();
    let shown = all.iter().map(|upstream| {
        let state = upstream.state();
        let answers = state == UpstreamState::Answers;
        json!({"name": upstream.name(), "answers": answers, "state": state.to_string()})
    });
    shown.collect()
}

/// Bytes by part, and those that are free.
fn disk(stats: &Stats, condition: &NodeCondition) -> Value {
    json!({
        "nodes": stats.nodes.kept_bytes,
        "blocks": stats.blocks.kept_bytes,
        "codes": stats.codes.kept_bytes,
        "witnesses": stats.witnesses.kept_bytes,
        "index": stats.index_bytes,
        "free": free_bytes(&condition.data_dir).ok(),
    })
}

/// Bytes in use and at most, by cache.
fn caches(used: &CacheUse) -> Value {
    let CacheUse { pages, codes, stored_codes, witnesses } = used;
    let bytes = |stats: &CacheStats| json!({"bytes": stats.bytes, "limit": stats.most_bytes});
    json!({
        "pages": bytes(pages),
        "codes": bytes(codes),
        "storedCodes": bytes(stored_codes),
        "witnesses": bytes(witnesses),
    })
}

fn consensus_client(condition: &NodeCondition) -> Value {
    let (name, last) = condition.last_call();
    last.map_or(Value::Null, |last| {
        let seconds = last.at.elapsed().as_secs();
        json!({"name": name, "method": last.method, "secondsAgo": seconds})
    })
}

/// The upstream whose head is the head, which is trusted with that.
fn head_source(condition: &NodeCondition) -> Value {
    condition.head_source().map_or(Value::Null, |source| {
        let HeadStatus { upstream, head, problem } = source.status();
        let head = head.map(|(number, hash)| json!({"number": number, "hash": hash}));
        json!({
            "tag": source.tag().word(),
            "trusted": true,
            "upstream": upstream,
            "head": head,
            "problem": problem,
        })
    })
}

/// The lowest number of a canonical block whose witness is kept; `None` where none is. Witnesses
/// are deleted from the oldest on.
fn oldest_witness(
    engine: &Engine,
    first: u64,
    head: u64,
    oldest_state: u64,
) -> Result<Option<u64>, Error> {
    // The first block has none.
    let (mut low, mut high) = (first + 1, head + 1);
    while low < high {
        let middle = low + (high - low) / 2;
        match has_witness(engine, middle, oldest_state)? {
            true => high = middle,
            false => low = middle + 1,
        }
    }
    Ok((low <= head).then_some(low))
}

/// Whether the witness of a canonical block is kept: as a list of nodes whose state is, or a copy.
/// The index says so: neither is read.
fn has_witness(engine: &Engine, number: u64, oldest_state: u64) -> Result<bool, Error> {
    let Some(hash) = engine.canonical_hash(number).map_err(refusal)? else { return Ok(false) };
    let entry = engine.database().entry(&hash).map_err(failed)?;
    Ok(entry.is_some_and(|entry| {
        let is_kept = |part| part == Retained::Present(());
        (number > oldest_state && is_kept(entry.touched)) || is_kept(entry.witness)
    }))
}

fn failed(error: state::Error) -> Error {
    Error::new(Code::Internal, error)
}
