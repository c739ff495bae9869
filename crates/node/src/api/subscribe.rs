//! The subscriptions that clients may begin.

use std::sync::Arc;

use alloy_primitives::B256;
use alloy_rpc_types_eth::Log;
use engine_api::json::FixedData;
use rpc::{Code, Error, Params, Subscription, SubscriptionMethods};

use super::log_filter::LogFilter;
use super::refusal;
use crate::feed::{Feed, MissedError};

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
    feed: &Feed,
    method: &str,
    mut params: Params<'_>,
) -> Result<Subscription, Error> {
    match method {
        "eth_subscribe" => by_name(feed, params),
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
fn by_name(feed: &Feed, mut params: Params<'_>) -> Result<Subscription, Error> {
    let name: String = params.next("subscription name")?;
    let filter: Option<LogFilter> = match &*name {
        "logs" => params.optional("filter")?,
        _ => None,
    };
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
        "newPendingTransactions" => {
            Err(Error::new(Code::Server, "there is no transaction pool, so none are pending"))
        }
        _ => Err(Error::invalid_params("the subscription is newHeads, logs or syncing")),
    }
}

fn missed(error: MissedError) -> Error {
    match error {
        MissedError::Engine(error) => refusal(error),
        MissedError::Busy => Error::new(Code::Server, error),
        MissedError::Unknown(_) | MissedError::TooFar(_) => Error::new(Code::PrunedHistory, error),
    }
}
