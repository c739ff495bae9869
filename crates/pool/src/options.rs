use std::time::Duration;

use crate::limits;

/// The settings of a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The least tip of a transaction, in wei of gas.
    pub minimum_tip: u128,
    /// How much higher both fees of a replacement are, in percent.
    pub price_bump_percent: u64,
    /// The same of a transaction with blobs, whose three fees count.
    pub blob_price_bump_percent: u64,
    /// Pending transactions of a sender that others cannot evict while some sender has more.
    pub account_slots: usize,
    /// The most queued transactions of a sender.
    pub account_queue: usize,
    /// The most transactions, pending and queued.
    pub transactions: usize,
    /// The most bytes of memory of all entries.
    pub memory_bytes: usize,
    /// The most bytes of memory of all sidecars.
    pub sidecar_bytes: usize,
    /// How long queued transactions of a sender wait after the last one that it sent.
    pub lifetime: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            minimum_tip: limits::MINIMUM_TIP,
            price_bump_percent: limits::PRICE_BUMP_PERCENT,
            blob_price_bump_percent: limits::BLOB_PRICE_BUMP_PERCENT,
            account_slots: limits::ACCOUNT_SLOTS,
            account_queue: limits::ACCOUNT_QUEUE,
            transactions: limits::TRANSACTIONS,
            memory_bytes: limits::MEMORY_BYTES,
            sidecar_bytes: limits::SIDECAR_BYTES,
            lifetime: limits::LIFETIME,
        }
    }
}
