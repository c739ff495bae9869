//! The chain's configuration, and what a node can say of its past.

use alloy_eips::eip7840::BlobParams;
use alloy_primitives::{Address, Bytes, U64};
use rpc::{Code, Error, Json, Params};
use serde_json::{Map, Value, json};

use super::{Api, refusal};
use crate::data_directory::CONFIG;
use crate::forks::{precompiles, system_contracts};

/// `eth_config` (EIP-7910): the fork of the head, the next one, and the last that is scheduled.
pub(super) fn forks(api: &Api, params: Params<'_>) -> Result<Json, Error> {
    params.end()?;
    let now = api.head()?.block.header.timestamp;
    let times = api.engine.chain().fork_times();
    let current = times.iter().rev().find(|time| **time <= now);
    let next = times.iter().find(|time| **time > now);
    let last = times.last().filter(|_| next.is_some());
    let fork = |time: Option<&u64>| time.map(|time| fork_config(api, *time)).transpose();
    Json::of(&json!({"current": fork(current)?, "next": fork(next)?, "last": fork(last)?}))
}

/// The fork that begins at `time`.
fn fork_config(api: &Api, time: u64) -> Result<Value, Error> {
    let chain = api.engine.chain();
    let genesis = api.block(api.engine.heads().genesis)?.expect("the first block is there");
    let genesis_time = genesis.block.header.timestamp;
    let fork = chain.fork_at(time);
    let schedule = |params: BlobParams| {
        json!({
            "baseFeeUpdateFraction": params.update_fraction,
            "max": params.max_blob_count,
            "target": params.target_blob_count,
        })
    };
    let named = |list: Vec<(&str, Address)>| {
        list.into_iter().map(|(name, address)| (name.into(), json!(address))).collect::<Map<_, _>>()
    };
    Ok(json!({
        // Of the first block, 0.
        "activationTime": if time <= genesis_time { 0 } else { time },
        "blobSchedule": chain.blob_params(time).map(schedule),
        "chainId": U64::from(chain.chain_id()),
        "forkId": Bytes::from(chain.fork_hash(genesis.hash(), genesis_time, time)),
        "precompiles": named(precompiles(fork)),
        "systemContracts": named(system_contracts(fork, chain.deposit_contract())),
    }))
}

/// `debug_chainConfig`: the configuration in the form of a genesis file.
pub(super) fn chain(api: &Api, params: Params<'_>) -> Result<Json, Error> {
    params.end()?;
    let stored = api.engine.database().meta(CONFIG);
    let stored = stored.map_err(|error| Error::new(Code::Internal, error))?;
    let stored = stored.ok_or_else(|| {
        Error::new(Code::Server, "the configuration is not in the database, but in the program")
    })?;
    let config: Value =
        serde_json::from_slice(&stored).map_err(|fault| Error::new(Code::Internal, fault))?;
    Json::of(&config)
}

/// `eth_capabilities` (execution-apis #755): the oldest block of which each kind of data is there.
pub(super) fn history(api: &Api, params: Params<'_>) -> Result<Json, Error> {
    params.end()?;
    let head = api.head()?;
    let first = api.block(api.engine.heads().genesis)?.expect("the first block is there");
    // Of a chain that begins with a state its first block has no body.
    let first_body = first.number() + u64::from(!first.has_body());
    let oldest = |number: u64| json!({"disabled": false, "oldestBlock": U64::from(number)});
    let mut state = oldest(api.engine.oldest_state());
    let blocks = api.engine.retained_states();
    if blocks < u64::MAX {
        let retention = U64::from(blocks);
        state["deleteStrategy"] = json!({"type": "window", "retentionBlocks": retention});
    }
    let from = api.engine.indexed_from().map_err(refusal)?;
    let indexed = match from > head.number() {
        true => json!({"disabled": true}),
        false => oldest(from.max(first_body)),
    };
    Json::of(&json!({
        "head": {"number": U64::from(head.number()), "hash": head.hash()},
        "state": state,
        "tx": indexed,
        "logs": indexed,
        "receipts": oldest(first_body),
        "blocks": oldest(first_body),
        "stateproofs": state,
    }))
}

/// `engine_getSyncStatus` (EIP-8379): a block is executed when it comes, so both heads are one.
pub(super) fn sync_status(api: &Api, params: Params<'_>) -> Result<Json, Error> {
    params.end()?;
    Json::of(&sync_status_of(api)?)
}

/// The members of the answer.
pub(crate) fn sync_status_of(api: &Api) -> Result<Value, Error> {
    let (number, hash) = api.engine.chosen_head().map_err(refusal)?;
    let number = U64::from(number);
    Ok(json!({
        "headBlockHash": hash,
        "headBlockNumber": number,
        "executedBlockHash": hash,
        "executedBlockNumber": number,
    }))
}
