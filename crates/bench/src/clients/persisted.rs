//! Which blocks a client has persisted, as it tells those that subscribe.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use alloy_primitives::B256;
use anyhow::Context;
use rpc::{JwtSecret, SessionClient};
use serde::Deserialize;
use serde_json::json;

use crate::fault::Fault;

/// reth's subscription, which ours has as well.
const METHOD: &str = "reth_subscribePersistedBlock";

/// The notification of a block; it has the number, too.
#[derive(Deserialize)]
struct Block {
    hash: B256,
}

/// A subscription to the blocks that a client persists.
#[derive(Debug)]
pub(crate) struct Persisted {
    /// Hashes; what ended the subscription comes last.
    told: Receiver<anyhow::Result<B256>>,
    last: B256,
}

impl Persisted {
    /// Subscribes over a WebSocket at `host:port`, with a token where that is the engine port.
    pub(crate) fn subscribe(address: &str, secret: Option<JwtSecret>) -> anyhow::Result<Self> {
        let (sender, told) = channel();
        let (begun, beginning) = channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let to = address.to_owned();
        std::thread::spawn(move || runtime.block_on(follow(&to, secret, &begun, &sender)));
        let began = beginning.recv().context("the subscribing thread ended")?;
        began.context(Fault::NotPersisting).with_context(|| {
            format!(
                "no subscription {METHOD} at {address}: leave out --wait-for-persistence where a \
                 client does not tell what it has persisted"
            )
        })?;
        Ok(Self { told, last: B256::ZERO })
    }

    /// Waits until a block is persisted that was chosen as the head.
    pub(crate) fn wait_for(&mut self, hash: B256, patience: Duration) -> anyhow::Result<()> {
        let end = Instant::now() + patience;
        while self.last != hash {
            let left = end.saturating_duration_since(Instant::now());
            let told = self.told.recv_timeout(left).map_err(|_| {
                let (seconds, last) = (patience.as_secs(), self.last);
                Fault::NotPersisting.error(format!(
                    "block {hash} is not persisted after {seconds} s; the last one is {last}"
                ))
            })?;
            self.last = told.context(Fault::NotPersisting)?;
        }
        Ok(())
    }
}

async fn follow(
    address: &str,
    secret: Option<JwtSecret>,
    begun: &Sender<anyhow::Result<()>>,
    sender: &Sender<anyhow::Result<B256>>,
) {
    let subscribed = async {
        let client = SessionClient::connect(address, secret).await?;
        client.subscribe::<Block>(METHOD, json!([])).await
    };
    let mut blocks = match subscribed.await {
        Ok(blocks) => blocks,
        Err(error) => return drop(begun.send(Err(error.into()))),
    };
    begun.send(Ok(())).ok();
    loop {
        let told = blocks.next().await.map_err(anyhow::Error::from);
        let hash = told.map(|Block { hash }| hash);
        let is_end = hash.is_err();
        // The receiver is gone once the run is over.
        if sender.send(hash).is_err() || is_end {
            return;
        }
    }
}
