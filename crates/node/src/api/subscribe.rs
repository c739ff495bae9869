//! The subscriptions that clients may begin.

use std::collections::HashSet;
use std::sync::Arc;

use alloy_primitives::B256;
use alloy_rpc_types_eth::Log;
use engine_api::json::{FixedData, Object};
use rpc::{Code, Error, Params, Subscription, SubscriptionMethods};
use serde::Deserialize;

use super::log_filter::LogFilter;
use super::refusal;
use crate::feed::{Feed, MissedError};
use crate::limits::RECEIPT_HASHES;
use crate::pending_feed::PendingFeed;

/// The kinds of subscriptions, each with its three names.
pub(crate) const SUBSCRIPTIONS: &[SubscriptionMethods] = &[
    SubscriptionMethods {
        subscribe: "eth_subscribe",
        unsubscribe: "eth_unsubscribe",
        notification: "eth_subscription",
    },
    SubscriptionMethods {
        subscribe: "deponent_subscribeWitnesses",
        unsubscribe: "deponent_unsubscribeWitnesses",
        notification: "deponent_subscribeWitnesses",
    },
    SubscriptionMethods {
        subscribe: "deponent_subscribePersistedBlock",
        unsubscribe: "deponent_unsubscribePersistedBlock",
        notification: "deponent_subscribePersistedBlock",
    },
    SubscriptionMethods {
        subscribe: "reth_subscribePersistedBlock",
        unsubscribe: "reth_unsubscribePersistedBlock",
        notification: "reth_subscribePersistedBlock",
    },
];

/// Begins a subscription by one of these methods.
///
/// # Errors
/// Where the parameters are wrong, or what is asked for is not offered.
pub(crate) fn subscribe(
    (feed, pending): (&Feed, Option<&PendingFeed>),
    method: &str,
    mut params: Params<'_>,
) -> Result<Subscription, Error> {
    match method {
        "eth_subscribe" => by_name(feed, pending, params),
        "deponent_subscribeWitnesses" => {
            let seen: Option<FixedData<32>> = params.optional("last hash seen")?;
            params.end()?;
            feed.witnesses(seen.map(B256::from)).map_err(missed)
        }
        "deponent_subscribePersistedBlock" | "reth_subscribePersistedBlock" => {
            params.end()?;
            Ok(feed.persisted())
        }
        method => Err(Error::method_not_found(method)),
    }
}

/// `eth_subscribe`.
fn by_name(
    feed: &Feed,
    pending: Option<&PendingFeed>,
    mut params: Params<'_>,
) -> Result<Subscription, Error> {
    let name: String = params.next("subscription name")?;
    let (mut filter, mut whole, mut receipts) = (None, None, None);
    match &*name {
        "logs" => filter = params.optional::<LogFilter>("filter")?,
        "newPendingTransactions" => whole = params.optional("whole transactions")?,
        "transactionReceipts" => receipts = params.optional("filter")?,
        _ => {}
    }
    params.end()?;
    match &*name {
        "newHeads" => Ok(feed.heads()),
        "syncing" => Ok(feed.syncing()),
        "logs" => {
            let filter = filter.unwrap_or_default();
            Ok(feed.logs().filtered(Arc::new(move |logs, index| {
                let logs: &Vec<Log> = logs.downcast_ref().expect("the source of logs");
                filter.matches(&logs[index].inner)
            })))
        }
        "newPendingTransactions" => match pending {
            Some(pending) => Ok(pending.subscribe(whole.unwrap_or(false))),
            None => {
                Err(Error::new(Code::Server, "there is no transaction pool, so none are pending"))
            }
        },
        "transactionReceipts" => of_receipts(feed, receipts),
        _ => Err(Error::invalid_params(
            "the subscription is newHeads, logs, newPendingTransactions, transactionReceipts or \
             syncing",
        )),
    }
}

/// The filter of `transactionReceipts`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ReceiptFilter {
    transaction_hashes: Option<Vec<FixedData<32>>>,
}

/// The receipts of these transactions once they are in a canonical block, each as a list of one; or
/// those of each block as one list.
fn of_receipts(feed: &Feed, filter: Option<Object<ReceiptFilter>>) -> Result<Subscription, Error> {
    let hashes = filter.and_then(|Object(filter)| filter.transaction_hashes).unwrap_or_default();
    if hashes.len() > RECEIPT_HASHES {
        let words = "exceed max number of transaction hashes allowed per transactionReceipts \
                     subscription";
        return Err(Error::failed_call(words.into()));
    }
    if hashes.is_empty() {
        return Ok(feed.block_receipts());
    }
    let wanted: HashSet<B256> = hashes.into_iter().map(B256::from).collect();
    Ok(feed.receipts().filtered(Arc::new(move |hashes, index| {
        let hashes: &Vec<B256> = hashes.downcast_ref().expect("the source of receipts");
        wanted.contains(&hashes[index])
    })))
}

fn missed(error: MissedError) -> Error {
    match error {
        MissedError::Engine(error) => refusal(error),
        MissedError::Busy => Error::new(Code::Server, error),
        MissedError::Unknown(_) | MissedError::TooFar(_) => Error::new(Code::PrunedHistory, error),
    }
}
