//! Every bound of this crate, with its unit and its reason.

use std::time::Duration;

/// Bytes of a transaction as it is sent, without blobs: geth's, four slots of 32 KiB.
pub(crate) const TRANSACTION_BYTES: usize = 128 << 10;

/// Bytes of a transaction as it is sent, with blobs: geth's.
pub(crate) const BLOB_TRANSACTION_BYTES: usize = 1 << 20;

/// Blobs of a transaction (EIP-7594).
pub(crate) const BLOBS: usize = 6;

/// Transactions with blobs of a sender: geth's.
pub(crate) const ACCOUNT_BLOB_TRANSACTIONS: usize = 16;

/// Transactions whose blob proofs are replaced, and that wait for it: of the largest, half a minute
/// of work of one processor.
pub(crate) const CONVERSIONS: usize = 16;

/// Bytes of all sidecars in memory, of transactions in the pool and in blocks that are not
/// finalized: 240 blobs. Without a network all of them are of this node's own users.
pub(crate) const SIDECAR_BYTES: usize = 32 << 20;

/// How much higher all fees of a replacement with blobs are, in percent: geth's, since its blobs
/// are sent and verified again.
pub(crate) const BLOB_PRICE_BUMP_PERCENT: u64 = 100;

/// Hashes of transactions that became pending which are remembered, 2 MiB: six pools full.
pub(crate) const BECAME_PENDING: usize = 1 << 16;

/// The gas limit of a transaction in Osaka (EIP-7825).
pub(crate) const TRANSACTION_GAS_OSAKA: u64 = 1 << 24;

/// The gas limit of a transaction from Amsterdam on (EIP-8037), so that it fits in 32 bits.
pub(crate) const TRANSACTION_GAS_AMSTERDAM: u64 = u32::MAX as u64;

/// Bytes of init code from Shanghai on (EIP-3860).
pub(crate) const INIT_CODE_BYTES: usize = 2 * 0x6000;

/// Bytes of init code from Amsterdam on (EIP-7954).
pub(crate) const INIT_CODE_BYTES_AMSTERDAM: usize = 2 * 0x10000;

/// Bytes of memory that an entry takes beside its calldata and lists: the decoded transaction, its
/// places in the maps by hash and by sender, and in the order of eviction.
pub(crate) const ENTRY_BYTES: usize = 1024;

/// Bytes of the log from which it is written anew when less than half of it is of use: as much as a
/// full pool takes.
pub(crate) const LOG_BYTES: u64 = 64 << 20;

/// The least tip, in wei of gas: geth's.
pub(crate) const MINIMUM_TIP: u128 = 1;

/// How much higher both fees of a replacement are, in percent: geth's. Less would let a sender
/// change a transaction again and again at no cost.
pub(crate) const PRICE_BUMP_PERCENT: u64 = 10;

/// Pending transactions of a sender that others cannot evict while some sender has more: geth's.
pub(crate) const ACCOUNT_SLOTS: usize = 16;

/// Queued transactions of a sender: geth's.
pub(crate) const ACCOUNT_QUEUE: usize = 64;

/// Transactions in the pool, pending and queued: half a minute of full blocks of plain transfers.
pub(crate) const TRANSACTIONS: usize = 10_000;

/// Bytes of memory of all entries: 10,000 of the usual size, with room for large ones.
pub(crate) const MEMORY_BYTES: usize = 64 << 20;

/// How long a queued transaction waits for the ones before it: geth's.
pub(crate) const LIFETIME: Duration = Duration::from_secs(3 * 60 * 60);
