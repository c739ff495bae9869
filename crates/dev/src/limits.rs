//! Every bound of this crate, with its unit and its reason.

use alloy_primitives::U256;

/// The gas limit of blocks: anvil's and hardhat's.
pub const GAS_LIMIT: u64 = 30_000_000;

/// The base fee of the first block, in wei: anvil's.
pub const BASE_FEE: u64 = 1_000_000_000;

/// The chain's identifier: anvil's and hardhat's.
pub const CHAIN_ID: u64 = 31_337;

/// The balance of each account at the beginning, in wei: 10,000 ether, as in anvil and hardhat.
pub const BALANCE: U256 = U256::from_limbs([0x19e0_c9ba_b240_0000, 0x21e, 0, 0]);

/// Blocks that one call may mine.
pub const BLOCKS_AT_ONCE: u64 = 100_000;

/// Blocks behind the head of which the last is safe, and finalized: an epoch and two.
pub const SAFE_DEPTH: u64 = 32;
/// See [`SAFE_DEPTH`].
pub const FINALIZED_DEPTH: u64 = 64;

/// Bytes of the traces of one block that name what it changed.
pub const TRACE_BYTES: usize = 1 << 30;

/// Snapshots that are kept; older ones are forgotten first.
pub const SNAPSHOTS: usize = 10_000;
