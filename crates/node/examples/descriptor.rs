//! The verdict first and the witness second, on the same machine: the node lends the memory that it
//! wrote the witness into, and nothing of it is copied.
//!
//! `cargo run --example descriptor`

mod chain;

use std::time::Instant;

use anyhow::{Context, ensure};
use client::{EngineClient, Wire};

#[tokio::main]
pub(crate) async fn main() -> anyhow::Result<()> {
    let chain::Chain { node, payload, sidecar, .. } = &chain::start().await?;
    let hash = payload.block_hash();

    // The socket's file is its owner's alone, so there is no token.
    let path = node.ipc_path.as_ref().context("it was asked for")?;
    let mut client = EngineClient::connect(&format!("unix:{}", path.display()), None).await?;
    ensure!(client.wire() == Wire::Descriptor);

    let status = client.new_payload(payload, sidecar).await?;
    ensure!(status.is_valid(), "{status:?}");
    println!("block {hash} is {}", status.status);

    // The first transfer maps the memory; once the witness is dropped, the next one uses it again.
    for round in 1..=3 {
        let start = Instant::now();
        let witness = client.witness(hash).await?;
        println!("witness {round}: {} bytes in {:?}", witness.content_bytes(), start.elapsed());
        let expected = node.engine().witness(hash)?.context("it is kept")?;
        ensure!(witness == *expected);
        let maps = std::fs::read_to_string("/proc/self/maps")?;
        ensure!(is_in_a_memory_file(&maps, witness.codes[0].as_ptr() as usize), "{maps}");
    }
    Ok(())
}

fn is_in_a_memory_file(maps: &str, address: usize) -> bool {
    maps.lines().filter(|line| line.contains("memfd:")).any(|line| {
        let range = line.split(' ').next().and_then(|range| range.split_once('-'));
        let number = |digits| usize::from_str_radix(digits, 16).unwrap_or_default();
        range.is_some_and(|(start, end)| (number(start)..number(end)).contains(&address))
    })
}
