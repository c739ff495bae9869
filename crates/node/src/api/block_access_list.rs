//! Block access lists (EIP-7928), as JSON and as RLP.

use std::sync::Arc;

use alloy_eip7928::AccountChanges;
use alloy_primitives::{B256, Bytes, U64};
use alloy_rlp::Decodable;
use engine::BlockRecord;
use rpc::{Code, Error, Json, Params, Pieces};
use serde_json::{Value, json};

use super::Api;
use super::blocks::BlockId;
use super::raw::data;
use super::transactions::whole;

/// `eth_getBlockAccessList`: `null` for an unknown block and for `pending`.
pub(super) fn shown(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let id: BlockId = params.next("block")?;
    params.end()?;
    match api.block_by_id(&id)? {
        Some(record) => accounts(&list(record)?),
        None => Json::of(&()),
    }
}

/// `debug_getRawBlockAccessList`: RLP.
pub(super) fn raw(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let id: BlockId = params.next("block")?;
    params.end()?;
    let record = api.block_by_id(&id)?;
    let record = record
        .ok_or_else(|| Error::new(Code::ResourceNotFound, format_args!("there is no {id}")))?;
    Ok(data(list(record)?))
}

/// The RLP of a block's list.
fn list(record: Arc<BlockRecord>) -> Result<Bytes, Error> {
    if record.block.header.block_access_list_hash.is_none() {
        let number = record.number();
        let detail = format_args!("block {number} is before Amsterdam and has no access list");
        return Err(Error::new(Code::ResourceNotFound, detail));
    }
    let record = whole(Some(record))?.expect("a block stays one");
    let list = record.block_access_list.clone();
    Ok(list.expect("a block of Amsterdam is kept with its list"))
}

/// A list as JSON, account by account: all of it may have some 30 MB, and more as values.
fn accounts(mut rlp: &[u8]) -> Result<Json, Error> {
    let internal = |fault: &dyn std::fmt::Display| Error::new(Code::Internal, fault);
    let accounts = Vec::<AccountChanges>::decode(&mut rlp).map_err(|fault| internal(&fault))?;
    let mut shown = Pieces::from(vec![b'[']);
    for (index, changes) in accounts.iter().enumerate() {
        let mut text = if index == 0 { Vec::new() } else { vec![b','] };
        serde_json::to_writer(&mut text, &account(changes)).map_err(|fault| internal(&fault))?;
        shown.push(text);
    }
    shown.push(vec![b']']);
    Ok(shown.into())
}

/// `AccountAccess` of the OpenRPC document: slots and their values are 32 bytes, the rest are
/// quantities.
fn account(changes: &AccountChanges) -> Value {
    let index = |index: u64| U64::from(index);
    let AccountChanges { storage_changes, storage_reads, .. } = changes;
    let storage = storage_changes.iter().map(|slot| {
        let changes = slot.changes.iter().map(|change| {
            json!({
                "index": index(change.block_access_index.0),
                "value": B256::from(change.new_value),
            })
        });
        json!({"key": B256::from(slot.slot), "changes": changes.collect::<Vec<_>>()})
    });
    let balances = changes.balance_changes.iter().map(
        |change| json!({"index": index(change.block_access_index.0), "value": change.post_balance}),
    );
    let nonces = changes.nonce_changes.iter().map(|change| {
        json!({"index": index(change.block_access_index.0), "value": index(change.new_nonce)})
    });
    let codes = changes.code_changes.iter().map(
        |change| json!({"index": index(change.block_access_index.0), "code": change.new_code}),
    );
    json!({
        "address": changes.address,
        "storageChanges": storage.collect::<Vec<_>>(),
        "storageReads": storage_reads.iter().map(|slot| B256::from(*slot)).collect::<Vec<_>>(),
        "balanceChanges": balances.collect::<Vec<_>>(),
        "nonceChanges": nonces.collect::<Vec<_>>(),
        "codeChanges": codes.collect::<Vec<_>>(),
    })
}
