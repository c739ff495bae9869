//! Execution witnesses: what a stateless verifier needs to run one block again.
//!
//! A [`Witness`] holds the trie nodes, contract codes and ancestor headers that a block read. This
//! crate has the type, its encodings ([RLP](rlp), [JSON](json), [SSZ](ssz)) and the way to read a
//! witness as state: [`State`] is the trait through which a block reads, [`TrieState`] implements
//! it over any [`Source`] of nodes, and [`WitnessIndex`] makes a witness such a source. So a
//! witness is a very small state, and execution cannot tell the difference.
//!
//! The content follows the canonical rules of EIP-8025 (execution-specs `projects/zkevm`,
//! `forks/amsterdam/stateless_host_exec_witness.py`); `docs/witness.md` restates them.

pub mod container;
mod error;
mod index;
mod items;
pub mod json;
pub mod limits;
mod parts;
pub mod rlp;
#[cfg(test)]
mod samples;
pub mod ssz;
mod state;
mod types;

pub use error::{DecodeError, StateError};
pub use index::WitnessIndex;
pub use items::Items;
pub use state::{Ancestor, BlockState, Change, Source, State, TrieState};
pub use trie::{Account, AccountInfo, NodeList};
pub use types::{Code, Jumps, PublicKey, ReadCode, Witness};
