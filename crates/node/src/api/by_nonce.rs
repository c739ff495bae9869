//! `eth_getTransactionBySenderAndNonce`, by a search in the nonces that the sender had.

use std::sync::Arc;

use alloy_consensus::Transaction as _;
use alloy_primitives::{Address, B256};
use engine::BlockRecord;
use engine_api::json::{FixedData, Quantity};
use rpc::{Code, Error, Json, Params};

use super::transactions::{transaction, whole};
use super::{Api, refusal};
use crate::unmined::Unmined;

/// `eth_getTransactionBySenderAndNonce`: in a canonical block, or in the pool; `null` where there
/// is none.
pub(super) fn transaction_by_nonce(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let sender: FixedData<20> = params.next("sender")?;
    let Quantity(nonce): Quantity = params.next("nonce")?;
    params.end()?;
    let (sender, nonce) = (Address::from(sender), nonce);
    if let Some(record) = block_with(api, sender, nonce)? {
        let record = whole(Some(record))?.expect("a block stays one");
        return Json::of(&place_in(&record, sender, nonce).and_then(|it| transaction(&record, it)));
    }
    match api.waiting_of(sender, nonce) {
        Some(pooled) => Json::of(&Unmined::new(&pooled)),
        None => Json::of(&()),
    }
}

/// The place of the transaction in a block. There is none where the nonce was used by an
/// authorization (EIP-7702), or by a contract that created another.
fn place_in(record: &BlockRecord, sender: Address, nonce: u64) -> Option<usize> {
    let transactions = record.block.body.transactions.iter().zip(&record.senders);
    transactions
        .into_iter()
        .position(|(transaction, found)| *found == sender && transaction.nonce() == nonce)
}

/// The canonical block that used a sender's nonce: the first one after which its account has a
/// higher one. `None` where no block has used it.
///
/// # Errors
/// [`Code::PrunedHistory`] where that was before the oldest state that is kept.
fn block_with(api: &Api, sender: Address, nonce: u64) -> Result<Option<Arc<BlockRecord>>, Error> {
    let is_used_after = |hash: B256| {
        let account = api.engine.state(hash).and_then(|state| state.account(sender));
        let account = account.map_err(refusal)?;
        Ok::<_, Error>(account.is_some_and(|account| account.nonce > nonce))
    };
    let head = api.head()?;
    if !is_used_after(head.hash())? {
        return Ok(None);
    }
    let (mut unused, mut used) = (api.engine.oldest_state(), head.number());
    if unused >= used || is_used_after(canonical(api, unused)?)? {
        return at_the_oldest(api, unused.min(used), sender, nonce);
    }
    while used - unused > 1 {
        let middle = unused + (used - unused) / 2;
        match is_used_after(canonical(api, middle)?)? {
            true => used = middle,
            false => unused = middle,
        }
    }
    api.block(canonical(api, used)?)
}

/// The answer where the nonce was used by the time of the oldest state: in its block, from the
/// start of the chain on, or nobody knows where.
fn at_the_oldest(
    api: &Api,
    oldest: u64,
    sender: Address,
    nonce: u64,
) -> Result<Option<Arc<BlockRecord>>, Error> {
    let hash = canonical(api, oldest)?;
    let record = api.block(hash)?;
    let is_there = record.as_ref().is_some_and(|it| place_in(it, sender, nonce).is_some());
    if is_there || hash == api.engine.heads().genesis && oldest == 0 {
        return Ok(record.filter(|_| is_there));
    }
    let detail = format!(
        "the nonce was used before block {oldest}, the oldest whose state is kept; \
         --history.retain-blocks says how many are"
    );
    Err(Error::new(Code::PrunedHistory, detail))
}

fn canonical(api: &Api, number: u64) -> Result<B256, Error> {
    let hash = api.engine.canonical_hash(number).map_err(refusal)?;
    hash.ok_or_else(|| Error::failed_call("the head moved meanwhile: ask again".into()))
}
