//! Execution witnesses: the part of the state that a stateless verifier needs to run one block
//! again.
//!
//! A [`Witness`] holds the trie nodes, contract codes and ancestor headers that a block read. This
//! crate has the type, its encodings ([RLP](rlp), [JSON](json), [SSZ](ssz)) and the way to read a
//! witness as state: [`State`] is the trait through which a block reads, [`TrieState`] implements
//! it over any [`Source`] of nodes, and [`WitnessIndex`] makes a witness such a source. So a
//! witness is a very small state, and execution cannot tell the difference.
//!
//! ```
//! use alloy_consensus::Header;
//! use alloy_primitives::{Address, B256, KECCAK256_EMPTY, U256};
//! use deponent_witness::{AccountInfo, BlockState, Change, State, StateError, TrieState};
//! use deponent_witness::{Witness, WitnessIndex, json, rlp, ssz};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // A state with one account, made on the empty state of a first block.
//! let first = Header::default();
//! let empty = Witness { headers: vec![alloy_rlp::encode(&first).into()], ..Witness::default() };
//! let index = WitnessIndex::new(&empty, first.hash_slow())?;
//! let mut state = TrieState::new(index.state_root(), index);
//! let address = Address::repeat_byte(0xa1);
//! let account = AccountInfo { nonce: 1, balance: U256::from(10), code_hash: KECCAK256_EMPTY };
//! let account = Some(account);
//! let state_root =
//!     state.apply(&[Change { address, account, storage_wiped: false, slots: Vec::new() }])?;
//! let mut nodes = Vec::new();
//! state.new_nodes(&mut |_hash, rlp| nodes.push(rlp));
//!
//! // The witness of a block on that state, in its canonical order.
//! let parent = Header { number: 1, parent_hash: first.hash_slow(), state_root, ..first };
//! let headers = vec![alloy_rlp::encode(&parent).into()];
//! let mut witness = Witness { state: nodes.into(), codes: Vec::new(), headers };
//! witness.sort();
//!
//! // Three encodings of one content.
//! let mut text = Vec::new();
//! json::write(&witness, &mut text);
//! assert_eq!(json::decode(&text)?, witness);
//! assert_eq!(rlp::decode(&rlp::encode(&witness).into())?, witness);
//! assert_eq!(ssz::decode(&ssz::encode(&witness)?.into())?, witness);
//!
//! // The state that the block reads through the witness.
//! let index = WitnessIndex::new(&witness, parent.hash_slow())?;
//! let mut state = TrieState::new(index.state_root(), index);
//! assert_eq!(state.account(address)?.map(|account| account.balance), Some(U256::from(10)));
//! assert_eq!(state.account(Address::ZERO)?, None, "the nodes prove its absence");
//! let hash = B256::repeat_byte(1);
//! assert_eq!(state.code(hash), Err(StateError::MissingCode(hash)), "never an absence");
//! # Ok(())
//! # }
//! ```
//!
//! The content follows the canonical rules of EIP-8025 (execution-specs `projects/zkevm`,
//! `forks/amsterdam/stateless_host_exec_witness.py`); `docs/witness.md` restates them.

pub mod container;
mod error;
mod index;
mod inspect;
mod items;
pub mod json;
pub mod limits;
mod order;
mod parts;
pub mod rlp;
#[cfg(test)]
mod samples;
pub mod ssz;
mod state;
mod types;

pub use error::{DecodeError, StateError};
pub use index::WitnessIndex;
pub use inspect::{
    InspectedAccount, InspectedCode, InspectedHeader, InspectedKind, InspectedNode, Inspection,
    ItemCount, NodeUse,
};
pub use items::Items;
pub use order::HeaderOrder;
pub use state::{Ancestor, BlockState, Change, Source, State, TrieState};
pub use trie::{Account, AccountInfo, NodeList};
pub use types::{Code, Jumps, PublicKey, ReadCode, Witness};
