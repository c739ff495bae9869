//! Tries whose nodes are kept by address and never change; see docs/design/state.md.
//!
//! A [`Version`] names a state that is kept as [`Records`]. [`account`] and [`slot`] read it, on
//! any thread; a [`BlockTrie`] makes the next version of it; [`sweep`] makes the same version
//! again with no node in an old place.

mod address;
mod base;
mod block;
mod captured;
mod cut;
mod hash;
pub(crate) mod key;
mod listing;
mod memory;
mod node;
mod overlay;
mod read;
pub(crate) mod record;
mod shard;
mod sweep;
mod unit;
mod verify;
mod write;

#[cfg(test)]
mod tests;

pub use address::{NodeAddress, RecordError, RecordReader, RecordSink, Records, Version};
pub use block::BlockTrie;
pub use listing::Lister;
pub use memory::MemoryRecords;
pub use read::{PathCache, Shortcuts, SlotRead, account, account_proof, slot, slot_with};
pub use shard::{Key, Shard};
pub use sweep::{Cursor, sweep};
pub use unit::{Unit, run_serially};
pub use verify::verify;
