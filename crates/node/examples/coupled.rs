//! A consensus client's call that answers with the verdict and the witness together.
//!
//! `cargo run --example coupled`

mod chain;

use alloy_rpc_types_engine::ForkchoiceState;
use anyhow::{Context, ensure};
use client::EngineClient;

#[tokio::main]
pub(crate) async fn main() -> anyhow::Result<()> {
    let chain::Chain { node, payload, sidecar, .. } = &chain::start().await?;
    let hash = payload.block_hash();

    let address = node.engine_addr.to_string();
    let mut client = EngineClient::connect(&address, Some(node.jwt.clone())).await?;
    println!("{} over {:?}", client.identity().await?[0].name, client.wire());

    let (status, answer) = client.new_payload_with_witness(payload, sidecar).await?;
    ensure!(status.is_valid(), "{status:?}");
    let answer = answer.context("VALID answers have a witness")?;
    let witness = &answer.witness;
    println!("block {hash} is {}", status.status);
    println!(
        "its witness: {} nodes, {} codes, {} headers, {} bytes; {} public keys",
        witness.state.len(),
        witness.codes.len(),
        witness.headers.len(),
        witness.content_bytes(),
        answer.public_keys.len(),
    );
    println!("the node's time: {:?}", answer.timings.context("it was the last block")?);
    ensure!(witness.codes.len() > 30 && answer.public_keys.len() == 1);

    let state = ForkchoiceState { head_block_hash: hash, ..ForkchoiceState::default() };
    let updated = client.forkchoice_updated(state, None).await?;
    ensure!(updated.payload_status.is_valid() && node.engine().heads().head == hash);
    println!("it is the head");
    Ok(())
}
