//! The bounds of the containers: the `MAX_*` constants of execution-apis #793 and #885.

use witness::container::Limits;

/// Bytes of a request's body, `MAX_REQUEST_BODY_SIZE`: 64 MiB.
pub const REQUEST_BYTES: usize = 1 << 26;

/// Bytes of a block's extra data, `MAX_EXTRA_DATA_BYTES`.
pub const EXTRA_DATA_BYTES: usize = 32;

/// Transactions in a payload, `MAX_TXS_PER_PAYLOAD`, and bytes of each, `MAX_BYTES_PER_TX`.
pub const TRANSACTIONS: Limits = Limits { items: 1 << 20, item_bytes: 1 << 30 };

/// Withdrawals in a payload, `MAX_WITHDRAWALS_PER_PAYLOAD`.
pub const WITHDRAWALS: usize = 16;

/// Withdrawals in a payload or in attributes over JSON-RPC, where no document has a bound, and test
/// networks have had more than SSZ takes.
pub const JSON_WITHDRAWALS: usize = 1 << 16;

/// Bytes of a block access list, `MAX_BAL_BYTES`: what a transaction may have, until EIP-7928 has a
/// number of its own.
pub const ACCESS_LIST_BYTES: usize = 1 << 30;

/// Requests in a payload, `MAX_EXECUTION_REQUESTS_PER_PAYLOAD`, and bytes of each,
/// `MAX_BYTES_PER_EXECUTION_REQUEST`.
pub const REQUESTS: Limits = Limits { items: 1 << 8, item_bytes: 1 << 30 };

/// Bytes of a validation error, `MAX_ERROR_BYTES`. Longer ones are cut.
pub const ERROR_BYTES: usize = 1024;

/// Bodies in one request and one answer, `MAX_BODIES_REQUEST`.
pub const BODIES: usize = 32;

/// Versioned hashes in one request for blobs, `MAX_VERSIONED_HASHES_PER_REQUEST`.
pub const BLOB_HASHES: usize = 128;

/// Commitments in a bundle of blobs, `MAX_BLOB_COMMITMENTS_PER_BLOCK`.
pub const COMMITMENTS: usize = 1 << 12;

/// Proofs for each blob of a bundle from Osaka on, `CELLS_PER_EXT_BLOB`.
pub const CELLS: usize = 128;

/// Bytes of a blob, `BYTES_PER_BLOB`.
pub const BLOB_BYTES: usize = 1 << 17;

/// Items in `state` and in `codes`, and bytes of each (#885).
pub const WITNESS_ITEMS: Limits =
    Limits { items: witness::limits::ITEMS, item_bytes: witness::limits::ITEM_BYTES };

/// Headers in a witness, and bytes of each (#885, and the reach of `BLOCKHASH`).
pub const WITNESS_HEADERS: Limits =
    Limits { items: witness::limits::HEADERS, item_bytes: witness::limits::ITEM_BYTES };
