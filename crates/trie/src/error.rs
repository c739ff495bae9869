use crate::{
    MAX_KEY_BYTES,
    versioned::{NodeAddress, RecordError},
};
use alloy_primitives::B256;

/// Why a trie could not answer. Absence is never an error, and an error never means absence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The source does not have a node that the operation needs. The same operation goes on when
    /// it is called again with a source that has the node.
    #[error("trie node {hash} is missing")]
    MissingNode {
        /// The Keccak-256 hash of the missing node.
        hash: B256,
    },
    /// A node is not a node of any Merkle-Patricia trie with keys of at most
    /// [`MAX_KEY_BYTES`] bytes.
    #[error("trie node {hash} is malformed: {reason}")]
    MalformedNode {
        /// The Keccak-256 hash of the malformed node, or of the node that embeds it.
        hash: B256,
        /// The reason.
        reason: &'static str,
    },
    /// The trie holds a value under this key that is not an account or a storage slot.
    #[error("value at key {key} is malformed: {reason}")]
    MalformedValue {
        /// The hashed address, or the hashed slot.
        key: B256,
        /// The reason.
        reason: alloy_rlp::Error,
    },
    /// The key is longer than [`MAX_KEY_BYTES`] bytes.
    #[error("key of {bytes} bytes is longer than {MAX_KEY_BYTES} bytes")]
    KeyTooLong {
        /// The length of the key, in bytes.
        bytes: usize,
    },
    /// The next node of a proof is not the one that the nodes before it, or the root, commit to.
    #[error("proof node hashes to {got}, expected {expected}")]
    ProofMismatch {
        /// The hash that the proof's next node should have.
        expected: B256,
        /// The hash that it has.
        got: B256,
    },
    /// A proof has nodes beyond the end of the proven path.
    #[error("proof has {count} unused nodes")]
    ProofUnused {
        /// How many nodes are left over.
        count: usize,
    },
    /// The store could not give a record of a versioned trie.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The bytes at this address are no record of a trie node, or not of the expected one.
    #[error("record at {} is malformed: {reason}", address.offset())]
    MalformedRecord {
        /// Where the record stands, or the one in which the node is embedded.
        address: NodeAddress,
        /// The reason.
        reason: &'static str,
    },
    /// A node does not hash to what the node above it says.
    #[error("record at {} hashes to {got}, expected {expected}", address.offset())]
    HashMismatch {
        /// Where the record stands.
        address: NodeAddress,
        /// The hash in the node above.
        expected: B256,
        /// The hash of the node.
        got: B256,
    },
}
