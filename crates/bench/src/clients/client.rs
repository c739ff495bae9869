//! A client that runs: its ports and its process.

use std::path::PathBuf;

use alloy_consensus::{EthereumTxEnvelope, TxEip4844};
use alloy_primitives::{B256, Bytes, U64};
use alloy_rpc_types_engine::PayloadAttributes;
use anyhow::bail;
use engine_api::{BuiltPayload, NewPayload};
use serde::Deserialize;

use crate::chain::format::Payload;
use crate::clients::port::Port;
use crate::clients::process::Process;
use crate::fault::Fault;

/// Attempts with a payload that takes too long; each time takes ten minutes.
const PATIENCE: usize = 2;

/// The port that has `testing_buildBlockV1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum BuilderPort {
    Engine,
    Public,
}

/// A running client.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) name: String,
    /// The port that has `testing_buildBlockV1`.
    pub(crate) builds_on: Option<BuilderPort>,
    pub(crate) engine: Port,
    pub(crate) public: Port,
    /// The address for WebSockets.
    pub(crate) websocket: String,
    /// The Unix socket on which it was told to listen.
    pub(crate) socket: Option<PathBuf>,
    /// `None` if it was not started by this program.
    pub(crate) process: Option<Process>,
}

impl Client {
    /// `engine_newPayload` again while the client gives up on it: at the end of its time geth says
    /// so, or hangs up, and goes on with the block all the same.
    pub(crate) fn new_payload_patiently(&mut self, payload: &Payload) -> anyhow::Result<()> {
        for _ in 0..PATIENCE {
            let outcome = self.engine.new_payload(payload, false);
            let gave_up = |error: &anyhow::Error| match Fault::of(error) {
                Some(Fault::HungUp | Fault::Truncated) => true,
                _ => format!("{error:#}").contains("timed out"),
            };
            if !outcome.as_ref().is_err_and(gave_up) {
                return outcome.map(drop);
            }
        }
        bail!("block {} takes too long", payload.number)
    }

    /// Stops its threads where they are, until [`Client::thaw`].
    pub(crate) fn freeze(&mut self) -> anyhow::Result<()> {
        self.process.as_mut().map_or(Ok(()), Process::freeze)
    }

    /// Has them go on, if they were stopped, and leaves them a moment for it.
    pub(crate) fn thaw(&mut self) -> anyhow::Result<()> {
        self.process.as_mut().map_or(Ok(()), Process::thaw)
    }

    /// Tells it to stop, and waits until it has written all that it wants to keep.
    pub(crate) fn stop(self) -> anyhow::Result<()> {
        self.process.map_or(Ok(()), Process::stop)
    }

    /// `error` of a connection to it, or that it has ended.
    pub(crate) fn blame(&mut self, error: anyhow::Error) -> anyhow::Error {
        match &mut self.process {
            Some(process) => process.blame(error),
            None => error,
        }
    }

    /// The number of the head.
    pub(crate) fn block_number(&mut self) -> anyhow::Result<u64> {
        let number: U64 = self.public.read("eth_blockNumber", [(); 0])?;
        Ok(number.to())
    }

    /// A block on `parent` that `testing_buildBlockV1` makes, with what is sent beside it.
    pub(crate) fn build(
        &mut self,
        parent: B256,
        attributes: &PayloadAttributes,
        transactions: &[Bytes],
        extra_data: Option<&Bytes>,
    ) -> anyhow::Result<NewPayload> {
        let port = match self.builds_on {
            Some(BuilderPort::Engine) => &mut self.engine,
            Some(BuilderPort::Public) => &mut self.public,
            None => bail!("{} builds no blocks for us", self.name),
        };
        let params = (parent, attributes, transactions, extra_data);
        let built: BuiltPayload = port.read("testing_buildBlockV1", params)?;
        call_of(built, attributes.parent_beacon_block_root)
    }
}

/// The call of `engine_newPayload` with a payload that a client has built.
pub(crate) fn call_of(
    built: BuiltPayload,
    parent_beacon_block_root: Option<B256>,
) -> anyhow::Result<NewPayload> {
    let block = built.payload.clone().try_into_block::<EthereumTxEnvelope<TxEip4844>>()?;
    Ok(NewPayload {
        payload: built.payload,
        versioned_hashes: block.body.blob_versioned_hashes_iter().copied().collect(),
        parent_beacon_block_root,
        execution_requests: Some(built.execution_requests.unwrap_or_default()),
    })
}
