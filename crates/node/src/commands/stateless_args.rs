//! The flags of `deponent node --stateless`.

use alloy_primitives::B256;
use clap::Args;

use crate::WitnessSource;

/// A node without a state.
#[derive(Debug, Args)]
#[command(next_help_heading = "Without a state")]
pub(super) struct StatelessArgs {
    /// Keep no state and no files: verify each block on its witness, which comes from elsewhere.
    /// It needs --witnesses, --chain (a genesis file, or mainnet, sepolia, holesky or hoodi) and
    /// --authrpc.jwtsecret, and takes no --datadir.
    #[arg(long)]
    pub(super) stateless: bool,
    /// Where --stateless gets witnesses, between commas, and blocks that the consensus client does
    /// not send: URLs of other nodes (http, https, ws or wss), paths of their Unix sockets, and
    /// folders of witnesses. None of them is trusted.
    #[arg(long, value_name = "SOURCES", value_delimiter = ',',
          value_parser = WitnessSource::parse)]
    pub(super) witnesses: Vec<WitnessSource>,
    /// The block whose descendants --stateless verifies: it is trusted [default: the finalized
    /// block of the first fork choice, or the parent of its head].
    #[arg(long = "stateless.anchor", value_name = "HASH", value_parser = parse_hash)]
    pub(super) anchor: Option<B256>,
}

/// The hash of a block.
fn parse_hash(text: &str) -> Result<B256, String> {
    let hash = text.strip_prefix("0x").and_then(|digits| digits.parse().ok());
    hash.ok_or_else(|| "expected the hash of a block: 0x and 64 hex digits".into())
}
