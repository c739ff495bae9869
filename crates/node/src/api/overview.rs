//! `deponent_overview` and `deponent_inspectWitness`: what the page at `GET /` shows.

use alloy_primitives::{Address, B256};
use engine::{BlockRecord, Heads, SyncProgress, Timings, WitnessBytes, WitnessSize};
use rpc::{Code, Error, Json, Params};
use serde_json::{Value, json};
use witness::{Inspection, Items};

use super::blocks::BlockId;
use super::{Api, identity, refusal};
use crate::inspect::{AccountNames, Rows, Summary};
use crate::limits::{INSPECTED_BYTES, INSPECTED_ITEMS, INSPECTED_ROWS, OVERVIEW_BLOCKS};

/// `deponent_overview`: the heads, the newest blocks, and where their time went.
pub(super) fn overview(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let count: Option<u64> = params.optional("number of blocks")?;
    params.end()?;
    let count = count.unwrap_or(OVERVIEW_BLOCKS / 2);
    if count > OVERVIEW_BLOCKS {
        let reason = format!("at most {OVERVIEW_BLOCKS} blocks are in an overview, not {count}");
        return Err(Error::invalid_params(reason));
    }
    let engine = &api.engine;
    let head = api.head()?;
    let Heads { safe, finalized, .. } = engine.heads();
    let named = |hash: Option<B256>| -> Result<Value, Error> {
        let Some(hash) = hash else { return Ok(Value::Null) };
        Ok(json!({"number": engine.number(&hash).map_err(refusal)?, "hash": hash}))
    };
    let syncing = match engine.progress().map_err(refusal)? {
        None => json!(false),
        Some(SyncProgress { current, highest, .. }) => {
            json!({"current": current, "highest": highest})
        }
    };
    let first = (head.number() + 1).saturating_sub(count);
    let range = engine.canonical_range(first, head.number() + 1).map_err(refusal)?;
    let mut blocks = Vec::new();
    for hash in range.into_iter().rev().flatten() {
        if let Some(record) = api.block(hash)? {
            blocks.push(block(api, &record));
        }
    }
    Json::of(&json!({
        "client": identity::client_name(),
        "chainId": engine.chain().chain_id(),
        "heads": {
            "head": named(Some(head.hash()))?,
            "safe": named(safe)?,
            "finalized": named(finalized)?,
            "persisted": named(Some(engine.persisted_heads().head))?,
        },
        "syncing": syncing,
        "blocks": blocks,
    }))
}

fn block(api: &Api, record: &BlockRecord) -> Value {
    let header = &record.block.header;
    let items = api.engine.witness_size(record).map(|size| {
        let WitnessSize { nodes_at_most, codes, headers, .. } = size;
        nodes_at_most + codes + headers
    });
    let micros = |time: std::time::Duration| time.as_micros() as u64;
    let timings = api.feed.as_ref().and_then(|feed| feed.timings(&record.hash()));
    let timings = timings.map(|timings| {
        let Timings { recovery, parent, execution, root, witness, .. } = timings;
        json!({
            "verdict": micros(recovery + parent + execution + root),
            "execution": micros(execution),
            "root": micros(root),
            "witness": micros(witness),
        })
    });
    json!({
        "number": header.number,
        "hash": record.hash(),
        "timestamp": header.timestamp,
        "transactions": record.block.body.transactions.len(),
        "gasUsed": header.gas_used,
        "gasLimit": header.gas_limit,
        "witnessItems": items,
        "timings": timings,
    })
}

/// `deponent_inspectWitness`: what is in the witness of a block, and whose it is.
pub(super) fn inspect(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let id: BlockId = params.next("block")?;
    params.end()?;
    let record = api.block_by_id(&id)?;
    let record = record.ok_or_else(|| refuse(format!("there is no {id}")))?;
    if let Some(size) = api.engine.witness_size(&record) {
        check_items(size.nodes_at_most + size.codes + size.headers)?;
        match size.bytes {
            Some(WitnessBytes::Exactly(bytes)) => check_bytes(bytes, "")?,
            Some(WitnessBytes::AtMost(bytes)) => check_bytes(bytes, "up to ")?,
            None => {}
        }
    }
    let witness = api.engine.witness(record.hash()).map_err(refusal)?;
    let witness = witness.ok_or_else(|| {
        refuse("genesis was not executed on a parent, so it has no witness".to_owned())
    })?;
    check_items(witness.lists().map(Items::len).iter().sum())?;
    check_bytes(witness.content_bytes(), "")?;
    let inspection = Inspection::new(&witness, record.block.header.parent_hash);
    let names = AccountNames::find(&inspection, &witness, &record.block, known(&record));
    let rows = Rows { accounts: INSPECTED_ROWS, items: INSPECTED_ROWS / 4 };
    Json::of(&Summary::new(&record.block, &inspection, &names, rows))
}

fn check_items(items: usize) -> Result<(), Error> {
    if items <= INSPECTED_ITEMS {
        return Ok(());
    }
    let most = format!("a witness of {items} items; at most {INSPECTED_ITEMS} are looked at here");
    Err(refuse(format!("{most}: use deponent witness inspect --rpc")))
}

fn check_bytes(bytes: usize, up_to: &str) -> Result<(), Error> {
    if bytes <= INSPECTED_BYTES {
        return Ok(());
    }
    let most = format!("a witness of {up_to}{bytes} bytes; at most {INSPECTED_BYTES} are looked");
    Err(refuse(format!("{most} at here: use deponent witness inspect --rpc")))
}

/// The addresses that the node knows of a block beside those in the block: senders, new contracts,
/// where logs come from, and the block access list.
fn known(record: &BlockRecord) -> impl Iterator<Item = Address> {
    let senders = record.senders.iter().copied();
    let transactions = record.block.body.transactions.iter();
    let created = transactions.zip(&record.senders);
    let created =
        created.map(|(tx, sender)| sender.create(alloy_consensus::Transaction::nonce(tx)));
    let logs = record.receipts.iter().flat_map(|receipt| receipt.logs());
    let logs = logs.map(|log| log.address);
    // Twenty bytes in RLP.
    let list = record.block_access_list.as_ref().map_or(&[][..], |list| list);
    let listed = list.windows(21).filter(|window| window[0] == 0x94);
    let listed = listed.map(|window| Address::from_slice(&window[1..]));
    senders.chain(created).chain(logs).chain(listed)
}

fn refuse(reason: String) -> Error {
    Error::new(Code::Server, reason)
}
