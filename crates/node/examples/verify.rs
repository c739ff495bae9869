//! Verifies a block on the witness received, without any state.
//!
//! `cargo run --example verify`

mod chain;

use alloy_primitives::Bytes;
use anyhow::{Context, ensure};
use client::EngineClient;
use execution::{SealedBlock, Transaction, verify};

#[tokio::main]
pub(crate) async fn main() -> anyhow::Result<()> {
    let chain::Chain { node, payload, sidecar, .. } = &chain::start().await?;
    let address = node.engine_addr.to_string();
    let mut client = EngineClient::connect(&address, Some(node.jwt.clone())).await?;
    let (status, answer) = client.new_payload_with_witness(payload, sidecar).await?;
    ensure!(status.is_valid(), "{status:?}");
    let answer = answer.context("VALID answers have a witness")?;

    // The block by the caller's own payload, the rules by the caller's own knowledge of the chain.
    let block = payload.clone().try_into_block_with_sidecar::<Transaction>(sidecar)?;
    let block = SealedBlock::new(block);
    ensure!(block.hash() == payload.block_hash());
    let rules = node.engine().chain();
    let keys = answer.public_keys.iter().map(|key| Bytes::copy_from_slice(key.as_slice()));
    let keys: Vec<_> = keys.collect();

    let verified = verify(rules, &block, Some(&keys), &answer.witness)?;
    println!(
        "block {} is valid, by its witness of {} bytes: it used {} gas",
        block.hash(),
        answer.witness.content_bytes(),
        verified.gas_used
    );
    ensure!(verified.witness == answer.witness, "nothing in it is superfluous");

    // Without any one of its nodes the witness says nothing, which is not to say no.
    for index in 0..answer.witness.state.len() {
        let mut witness = answer.witness.clone();
        witness.state.remove(index);
        let error = verify(rules, &block, Some(&keys), &witness).err().context("a node is gone")?;
        println!("without node {index}: {error}");
    }
    Ok(())
}
