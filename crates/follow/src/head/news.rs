//! The moments at which an upstream may have another head.

use std::time::Duration;

use rpc::{ClientError, Notifications};
use serde::de::IgnoredAny;
use tokio::time::{sleep, timeout};

use crate::error::Error;
use crate::limits::HEAD_POLL;
use crate::upstream::Upstream;

const SUBSCRIBE: &str = "eth_subscribe";

/// Tells that an upstream may have another head: by its subscription `newHeads`, or, over HTTP and
/// where it has no such subscription, once a second.
#[derive(Debug)]
pub(crate) enum HeadNews {
    Subscribed(Notifications<IgnoredAny>),
    Polled,
}

impl HeadNews {
    /// Subscribes where that can be done.
    pub(crate) async fn open(upstream: &Upstream) -> Result<Self, Error> {
        let Some(session) = upstream.session().await? else { return Ok(Self::Polled) };
        match session.subscribe(SUBSCRIBE, ["newHeads"]).await {
            Ok(notifications) => Ok(Self::Subscribed(notifications)),
            Err(ClientError::Rpc(error)) => {
                let upstream = upstream.name();
                tracing::info!(upstream, %error, "it has no subscription, and is asked instead");
                Ok(Self::Polled)
            }
            Err(error) => Err(Error::Unanswered { method: SUBSCRIBE, error }),
        }
    }

    /// How it tells, for the log.
    pub(crate) const fn word(&self) -> &'static str {
        match self {
            Self::Subscribed(_) => "subscription",
            Self::Polled => "polling",
        }
    }

    /// Waits for the next moment, for so long at most: a notification may be lost, and the safe and
    /// the finalized block have none.
    pub(crate) async fn next(&mut self, most: Duration) -> Result<(), Error> {
        let Self::Subscribed(notifications) = self else {
            sleep(most.min(HEAD_POLL)).await;
            return Ok(());
        };
        let mut left = most;
        // Those that have waited tell of the same head.
        while let Ok(next) = timeout(left, notifications.next()).await {
            match next {
                Ok(IgnoredAny) | Err(ClientError::Malformed(_)) => left = Duration::ZERO,
                Err(error) => return Err(Error::Unanswered { method: SUBSCRIBE, error }),
            }
        }
        Ok(())
    }
}
