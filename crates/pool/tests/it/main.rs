//! The pool beside a slow one on random transactions, heads and reorganisations; geth's words.

mod blobs;
mod slow;
mod twin;
mod words;

use alloy_consensus::Header;

/// A header with the usual gas limit and this base fee.
fn header(base_fee: u64) -> Header {
    Header { gas_limit: 36_000_000, base_fee_per_gas: Some(base_fee), ..Header::default() }
}
