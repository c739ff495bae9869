//! Which blocks a client has persisted, as it tells those that subscribe.

use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use alloy_primitives::B256;
use anyhow::Context;
use rpc::{ClientError, JwtSecret, SessionClient};
use serde::Deserialize;
use serde_json::json;
use tokio::runtime::Runtime;

use crate::fault::Fault;

/// reth's subscription, which ours has as well.
const METHOD: &str = "reth_subscribePersistedBlock";

/// The notification of a block; it has the number, too.
#[derive(Deserialize)]
struct PersistedBlock {
    hash: B256,
}

/// A subscription to the blocks that a client persists.
#[derive(Debug)]
pub(crate) struct Persisted {
    /// Reads the notifications meanwhile.
    _runtime: Runtime,
    /// Blocks; the end of the subscription comes last.
    told: Receiver<Result<PersistedBlock, ClientError>>,
    last: B256,
}

impl Persisted {
    /// Subscribes over a WebSocket at `host:port`, with a token where that is the engine port.
    pub(crate) fn subscribe(address: &str, secret: Option<JwtSecret>) -> anyhow::Result<Self> {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(1).enable_all().build()?;
        let subscribed = runtime.block_on(async {
            let client = SessionClient::connect(address, secret).await?;
            client.subscribe::<PersistedBlock>(METHOD, json!([])).await
        });
        let mut blocks = subscribed.context(Fault::NotPersisting).with_context(|| {
            format!(
                "no subscription {METHOD} at {address}: leave out --wait-for-persistence where a \
                 client does not tell what it has persisted"
            )
        })?;
        let (sender, told) = channel();
        runtime.spawn(async move {
            let mut is_open = true;
            while is_open {
                let block = blocks.next().await;
                is_open = block.is_ok() & sender.send(block).is_ok();
            }
        });
        Ok(Self { _runtime: runtime, told, last: B256::ZERO })
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
            self.last = told.context(Fault::NotPersisting)?.hash;
        }
        Ok(())
    }
}
