use crate::{Error, NodeSource, SparseTrie};
use alloy_primitives::{B256, Bytes, keccak256};
use std::cell::Cell;

#[cfg(test)]
mod tests;

/// Checks a proof as [`SparseTrie::proof`] makes it, root first, and returns the value that it
/// proves `key` to have in the trie with this root, or `None` where it proves `key` absent.
///
/// # Errors
/// If the proof is not exactly the nodes on the path of `key`: [`Error::ProofMismatch`] at the
/// first node that is another, [`Error::MissingNode`] where the proof ends early,
/// [`Error::ProofUnused`] where it goes on, [`Error::MalformedNode`] and [`Error::KeyTooLong`].
pub fn verify_proof(root: B256, key: &[u8], proof: &[Bytes]) -> Result<Option<Vec<u8>>, Error> {
    let source = InOrder { proof, used_count: Cell::new(0) };
    let mut trie = SparseTrie::new(root);
    let result = trie.get(key, &source).map(|value| value.map(<[u8]>::to_vec));
    let unused = &proof[source.used_count.get()..];
    match (result, unused) {
        (Err(Error::MissingNode { hash }), [next, ..]) => {
            Err(Error::ProofMismatch { expected: hash, got: keccak256(next) })
        }
        (Ok(_), [_, ..]) => Err(Error::ProofUnused { count: unused.len() }),
        (result, _) => result,
    }
}

/// The nodes of a proof, each to be used once and in its turn.
struct InOrder<'a> {
    proof: &'a [Bytes],
    used_count: Cell<usize>,
}

impl NodeSource for InOrder<'_> {
    fn node(&self, hash: &B256) -> Option<Bytes> {
        let next = self.proof.get(self.used_count.get())?;
        (keccak256(next) == *hash).then(|| {
            self.used_count.set(self.used_count.get() + 1);
            next.clone()
        })
    }
}
