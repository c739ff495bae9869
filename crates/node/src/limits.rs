//! Every bound of this crate, with its unit and its reason.

use std::time::Duration;

/// How long a thread that calls run on is kept when there is no call: five slots. One that had
/// ended would be started while a block waits.
pub const THREAD_KEPT: Duration = Duration::from_secs(60);

/// Bodies that one `engine_getPayloadBodies` call may ask for. The specification demands 32; geth
/// and reth take 1024.
pub const BODIES: u64 = 1024;

/// Bytes of blocks in one answer of bodies, before they become hex: thirty-two of the largest,
/// which the specification demands.
pub const BODIES_BYTES: usize = 256 << 20;

/// Versioned hashes that one `engine_getBlobs` call may ask for: what the specification demands.
pub const BLOB_HASHES: usize = 128;

/// Slots that one `eth_getProof` call may ask for: a proof has about 4 KB. geth takes 1024.
pub const PROOF_SLOTS: usize = 1024;

/// Gas that one `eth_call` may use, whatever it asks for: geth's default, about a second of work.
pub const CALL_GAS: u64 = 50_000_000;

/// Longest file that `deponent verify` reads, in bytes: a witness of 1 GB, in hex, and its block.
pub const VERIFY_FILE_BYTES: u64 = 3 << 30;

/// Codes that a client may hold by their numbers on one connection: beyond that it begins anew. A
/// full block of 60 million gas reads some 20,000.
pub const HELD_CODES: usize = 1 << 18;

/// Bytes of a body with a witness up to which it is put together in one buffer: to have so few
/// items sent from where they are takes longer than to copy them. An empty block's has 16 KB, a
/// full one's megabytes.
pub const JOINED_BODY_BYTES: usize = 64 << 10;

/// Descriptors that connections leave to files and all else: the logs of a chain of 200 GB have
/// some hundred segments.
pub(crate) const OTHER_DESCRIPTORS: usize = 512;
