//! A node in this process, and a block that it does not know yet, for the other examples.

use alloy_rpc_types_engine::{ExecutionPayload, ExecutionPayloadSidecar};
use deponent_node::demo::World;
use deponent_node::{Node, NodeOptions};

/// Contracts that the block reads, 24 KB each.
const CONTRACTS: usize = 30;

pub(crate) struct Chain {
    pub(crate) node: Node,
    pub(crate) payload: ExecutionPayload,
    pub(crate) sidecar: ExecutionPayloadSidecar,
    _files: tempfile::TempDir,
}

pub(crate) async fn start() -> anyhow::Result<Chain> {
    let files = tempfile::tempdir()?;
    let mut world = World::new(CONTRACTS)?;
    let mut options = NodeOptions::new(world.genesis.clone(), files.path().join("data"));
    options.ports.ipc = Some(files.path().join("deponent.ipc"));
    let node = Node::start(options).await?;
    let (payload, sidecar) = world.build(node.engine(), CONTRACTS)?;
    Ok(Chain { node, payload, sidecar, _files: files })
}
