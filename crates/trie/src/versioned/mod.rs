//! Persistent tries: immutable node records, by address; see docs/design/state.md.
//!
//! A [`Version`] names a state in a store of [`Records`]. [`account`] and [`slot`] read it, on any
//! thread; a [`BlockTrie`] makes the next version; [`sweep`] copies a version step by step, so that
//! no node is left below an address.

mod address;
mod block;
mod captured;
mod cut;
mod hash;
pub(crate) mod key;
mod listing;
mod memory;
mod node;
mod overlay;
mod range;
mod read;
pub(crate) mod record;
mod record_arena;
mod remote;
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
pub use range::{accounts_from, changed_accounts, slots_from};
pub use read::{Shortcuts, SlotRead, account, account_proof, slot};
pub use remote::{NamedNode, NodePlace, remote_record};
pub use shard::{Shard, StateKey};
pub use sweep::{SweepCursor, sweep};
pub use unit::{WorkUnit, run_serially};
pub use verify::verify;
