//! Merkle-Patricia tries of Ethereum, revealed node by node from any store of nodes.
//!
//! A [`SparseTrie`] begins as nothing but a root hash. Each key that is read or written reveals
//! the nodes on its path from a [`NodeSource`]; every other subtree stays blinded behind its
//! hash. The nodes revealed this way are the *witness*: with them alone the same reads and
//! writes can be repeated, and lead to the same root. A [`StateTrie`] is the two-level trie of
//! the Ethereum state: accounts, and one storage trie in each.
//!
//! ```
//! use alloy_primitives::{B256, Bytes, keccak256, map::B256Map};
//! use deponent_trie::{SparseTrie, by_hash};
//!
//! // Build a trie and store its nodes.
//! let nothing = B256Map::<Bytes>::default();
//! let mut built = SparseTrie::empty();
//! for word in ["do", "dog", "doge", "horse"] {
//!     built.insert(keccak256(word).as_slice(), word.into(), &nothing)?;
//! }
//! let root = built.root();
//! let mut store = B256Map::<Bytes>::default();
//! built.new_nodes(&mut |hash, rlp| drop(store.insert(hash, rlp)));
//!
//! // Open it again, read one key, and repeat the read from the revealed nodes alone.
//! let key = keccak256("dog");
//! let mut opened = SparseTrie::new(root);
//! assert_eq!(opened.get(key.as_slice(), &store)?, Some(b"dog".as_slice()));
//! let witness = by_hash(opened.take_revealed());
//! assert_eq!(SparseTrie::new(root).get(key.as_slice(), &witness)?, Some(b"dog".as_slice()));
//! # Ok::<(), deponent_trie::Error>(())
//! ```
//!
//! [`versioned`] is the persistent kind, with immutable node records by address, and makes
//! witnesses of whole blocks; [`bulk`] builds a state from sorted accounts; [`keccak`] hashes many
//! inputs at once. All keys are Keccak-256 hashes, in 32 bytes; values are RLP; amounts are in wei.
//!
//! The crate has no features, does no input or output, starts no thread and reads no clock. No
//! content of a source or of a proof can cause a panic.

mod account;
pub mod bulk;
mod error;
pub mod keccak;
mod limits;
mod list;
mod nibbles;
mod node;
mod ordered;
mod proof;
mod source;
mod sparse;
mod state;
mod value;
pub mod versioned;
mod walk;

#[cfg(test)]
mod vectors;

pub use account::Account;
pub use error::Error;
pub use limits::MAX_KEY_BYTES;
pub use list::{NodeIter, NodeList};
pub use ordered::ordered_root;
pub use proof::verify_proof;
pub use source::{NodeSource, by_hash};
pub use sparse::SparseTrie;
pub use state::{AccountChange, AccountInfo, AccountProof, StateChanges, StateTrie, StorageProof};
pub use value::hashed_slot;
pub use walk::{TrieWalk, WalkedNode};

use alloy_primitives::{B256, b256};
#[cfg(test)]
use testing::oracle;

/// The root hash of a trie without entries: the Keccak-256 hash of the RLP empty string, `0x80`.
pub const EMPTY_ROOT_HASH: B256 =
    b256!("0x56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421");
