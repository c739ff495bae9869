//! A client that keeps the codes of the witnesses that it receives, and is sent each code once.
//!
//! `cargo run --example held`

mod chain;

use anyhow::{Context, ensure};
use client::{CodeCache, ConnectOptions, EngineClient};

/// Bytes of codes that the client may keep.
const CODES_BYTES: usize = 1 << 30;

#[tokio::main]
pub(crate) async fn main() -> anyhow::Result<()> {
    let chain::Chain { node, payload, sidecar, .. } = &chain::start().await?;
    let expected = |hash| anyhow::Ok(node.engine().witness(hash)?.context("it is kept")?);

    let address = node.engine_addr.to_string();
    let options = ConnectOptions {
        secret: Some(node.jwt.clone()),
        codes: CodeCache::Held { most_bytes: CODES_BYTES },
        ..ConnectOptions::default()
    };
    let mut client = EngineClient::connect_with(&address, options).await?;

    for round in 1..=3 {
        let (status, answer) = client.new_payload_with_witness(payload, sidecar).await?;
        ensure!(status.is_valid(), "{status:?}");
        let answer = answer.context("VALID answers have a witness")?;
        let witness_bytes = answer.witness.content_bytes();
        println!("{round}: {} bytes came, of a witness of {witness_bytes}", answer.received_bytes);
        ensure!(answer.witness == *expected(payload.block_hash())?);
        ensure!(round == 1 || 20 * answer.received_bytes < witness_bytes, "its codes are held");
    }
    Ok(())
}
