//! Bounds of what the engine keeps, each with its unit and its reason.

/// Bytes of witness content kept for repeated questions. Older witnesses are made again by running
/// their block again. Four worst-case blocks of 500 MB fit, or two hundred ordinary ones of 10 MB.
pub const WITNESS_BYTES: usize = 2 << 30;

/// Blocks remembered as invalid, so that their descendants are refused without running them. A
/// consensus client asks about few; an attacker can make many.
pub const INVALID_BLOCKS: usize = 1024;

/// Bytes of the reason why a block is invalid: a sentence or two, with what the block says.
pub const REASON_BYTES: usize = 1024;

/// Builds remembered. The consensus layer fetches a payload within its slot; geth keeps ten.
pub const BUILDS: usize = 32;

/// Ancestors that `BLOCKHASH` reaches.
pub const BLOCK_HASH_REACH: u64 = 256;
