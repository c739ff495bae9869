//! Calls that wait until a transaction is in a canonical block.

use std::time::Duration;

use alloy_primitives::B256;
use engine::Engine;
use rpc::{Code, Error, Json, Later};
use serde_json::json;

use super::lenient::HexOrDecimal;
use super::{Api, refusal};
use crate::limits::{INCLUSION_TIME, LONGEST_INCLUSION_TIME};
use crate::receipts::receipt;

/// Has a transaction sent, and waits until it is in a canonical block, `most` milliseconds at most.
pub(super) fn wait_for(
    api: &Api,
    hash: B256,
    most: Option<HexOrDecimal>,
    send: impl FnOnce() -> Result<(), Error>,
) -> Result<Later, Error> {
    let most = most.map(|HexOrDecimal(most)| Duration::from_millis(most));
    let most = most.filter(|most| !most.is_zero()).unwrap_or(INCLUSION_TIME);
    let most = most.min(LONGEST_INCLUSION_TIME);
    let feed = api.pending_feed.as_ref();
    let feed = feed.ok_or_else(|| Error::new(Code::Server, "there is no transaction pool"))?;
    let mut inclusion = feed.inclusions.wait_for(hash);
    send()?;
    if let Some(receipt) = receipt_of(&api.engine, &hash)? {
        return Ok(Box::pin(std::future::ready(Ok(receipt))));
    }
    let engine = api.engine.clone();
    Ok(Box::pin(async move {
        let included = async {
            loop {
                inclusion.next().await;
                let engine = engine.clone();
                let found = tokio::task::spawn_blocking(move || receipt_of(&engine, &hash)).await;
                let found = found.map_err(|fault| Error::new(Code::Internal, fault))?;
                // Its block may have left the chain meanwhile.
                if let Some(receipt) = found? {
                    return Ok(receipt);
                }
            }
        };
        let waited = tokio::time::timeout(most, included).await;
        waited.unwrap_or_else(|_| Err(not_included(hash, most)))
    }))
}

/// The error of geth where a transaction is in no block in time: with its hash.
fn not_included(hash: B256, most: Duration) -> Error {
    let words = "The transaction was added to the transaction pool but wasn't processed in";
    let error = Error::of_call(Code::NotIncluded, format!("{words} {most:?}"));
    Error { data: Some(json!(hash)), ..error }
}

/// The receipt of a transaction in a canonical block.
fn receipt_of(engine: &Engine, hash: &B256) -> Result<Option<Json>, Error> {
    match engine.find_transaction(hash) {
        Ok(Some((record, index))) => Json::of(&receipt(engine.chain(), &record, index)).map(Some),
        // It is new, and so in no old block.
        Ok(None) | Err(engine::Error::NotIndexed(_)) => Ok(None),
        Err(error) => Err(refusal(error)),
    }
}
