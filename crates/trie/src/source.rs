use alloy_primitives::{
    B256, Bytes, keccak256,
    map::{B256Map, HashMap},
};
use std::{hash::BuildHasher, sync::Arc};

/// A source of RLP trie nodes by their Keccak-256 hash: a database, a witness, a map.
///
/// The source is trusted to return the preimage of the hash: a witness indexes its nodes by
/// hashing them (see [`by_hash`]), a database has checked them before writing. Builds with debug
/// assertions check it again. Nothing else about the node is trusted.
pub trait NodeSource {
    /// The RLP of the node whose Keccak-256 hash is `hash`; `None` where this source does not
    /// have it, which the tries turn into [`Error::MissingNode`](crate::Error::MissingNode) and
    /// never into absence.
    fn node(&self, hash: &B256) -> Option<Bytes>;
}

impl<T: NodeSource + ?Sized> NodeSource for &T {
    fn node(&self, hash: &B256) -> Option<Bytes> {
        (**self).node(hash)
    }
}

impl<T: NodeSource + ?Sized> NodeSource for Arc<T> {
    fn node(&self, hash: &B256) -> Option<Bytes> {
        (**self).node(hash)
    }
}

impl<S: BuildHasher> NodeSource for HashMap<B256, Bytes, S> {
    fn node(&self, hash: &B256) -> Option<Bytes> {
        self.get(hash).cloned()
    }
}

/// Nodes indexed by their Keccak-256 hash: the [`NodeSource`] that a witness or a multiproof is.
pub fn by_hash(nodes: impl IntoIterator<Item = Bytes>) -> B256Map<Bytes> {
    nodes.into_iter().map(|rlp| (keccak256(&rlp), rlp)).collect()
}
