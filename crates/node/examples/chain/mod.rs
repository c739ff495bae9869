//! What the examples run against: a node in this process, and a block that it does not know yet.

use alloy_eips::Decodable2718;
use alloy_primitives::{Address, B256, Bytes};
use alloy_rpc_types_engine::{
    CancunPayloadFields, ExecutionPayload, ExecutionPayloadSidecar, PayloadAttributes,
    PraguePayloadFields,
};
use deponent_node::demo::World;
use deponent_node::{Node, NodeOptions};
use execution::Transaction;

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
    let world = World::new(CONTRACTS)?;
    let ipc = Some(files.path().join("deponent.ipc"));
    let options = NodeOptions::new(world.genesis.clone(), files.path().join("data"));
    let node = Node::start(NodeOptions { ipc, ..options }).await?;
    let root = B256::repeat_byte(6);
    let attributes = PayloadAttributes {
        timestamp: world.genesis.timestamp + 12,
        prev_randao: B256::repeat_byte(3),
        suggested_fee_recipient: Address::repeat_byte(4),
        withdrawals: Some(Vec::new()),
        parent_beacon_block_root: Some(root),
        ..PayloadAttributes::default()
    };
    let transaction = Transaction::decode_2718_exact(&world.read_codes(0, CONTRACTS)?)?;
    let head = node.engine().heads().head;
    let built = node.engine().build(head, attributes, vec![transaction], Bytes::new())?;
    let (payload, _) = ExecutionPayload::from_block_unchecked(built.block.hash(), &built.block);
    let sidecar = ExecutionPayloadSidecar::v4(
        CancunPayloadFields::new(root, Vec::new()),
        PraguePayloadFields::new(built.requests),
    );
    Ok(Chain { node, payload, sidecar, _files: files })
}
