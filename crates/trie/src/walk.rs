//! A walk through all nodes of a trie.

use crate::{
    EMPTY_ROOT_HASH,
    nibbles::Nibbles,
    node::{NodeArena, NodePosition, SparseChild, SparseNode},
};
use alloy_primitives::B256;

/// A walk through a trie from its root: its nodes in the order of their paths, parents before
/// children.
///
/// The walk is an iterator over references to nodes. The caller looks up each node and
/// [enters](Self::enter) those that it has and wants to follow. So a caller that enters a node once
/// only is done after as many steps as there are references, whatever the nodes are.
///
/// ```
/// # use alloy_primitives::{B256, Bytes, keccak256, map::B256Map};
/// # use deponent_trie::{SparseTrie, TrieWalk};
/// # let nothing = B256Map::<Bytes>::default();
/// # let mut trie = SparseTrie::empty();
/// # for word in ["dog", "horse"] {
/// #     trie.insert(keccak256(word).as_slice(), word.into(), &nothing)?;
/// # }
/// # let root = trie.root();
/// # let mut nodes = B256Map::<Bytes>::default();
/// # trie.new_nodes(&mut |hash, rlp| drop(nodes.insert(hash, rlp)));
/// let (mut walk, mut values) = (TrieWalk::new(root), Vec::new());
/// while let Some(node) = walk.next() {
///     let Some(rlp) = nodes.get(&node.hash) else { continue };
///     values.extend(walk.enter(&node, rlp).expect("a node of the trie"));
/// }
/// assert!(values.contains(&(keccak256("dog"), b"dog".to_vec())));
/// # Ok::<(), deponent_trie::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct TrieWalk {
    /// The references that are still to come, the next one last.
    pending: Vec<WalkedNode>,
}

/// A reference to a node, as a [`TrieWalk`] comes by it.
#[derive(Clone, Debug)]
pub struct WalkedNode {
    /// The node's hash.
    pub hash: B256,
    /// How many nodes with a hash of their own are above it.
    pub depth: usize,
    path: Nibbles,
    position: NodePosition,
}

impl WalkedNode {
    /// The nibbles from the root to the node, each from 0 to 15.
    pub fn path(&self) -> &[u8] {
        &self.path
    }
}

impl TrieWalk {
    /// A walk through the trie with this root hash.
    pub fn new(root: B256) -> Self {
        let (path, position) = (Nibbles::from(&[][..]), NodePosition::Root);
        let root = WalkedNode { hash: root, depth: 0, path, position };
        let pending = if root.hash == EMPTY_ROOT_HASH { Vec::new() } else { vec![root] };
        Self { pending }
    }

    /// Goes below a node, whose RLP the caller has found by its hash, and returns the keys and
    /// values in it and in the nodes that are embedded in it, in the order of keys. The nodes that
    /// it refers to come next.
    ///
    /// # Errors
    /// The reason why this is no node of a trie in that place whose keys have 32 bytes. The walk
    /// goes on beside it.
    pub fn enter(
        &mut self,
        node: &WalkedNode,
        rlp: &[u8],
    ) -> Result<Vec<(B256, Vec<u8>)>, &'static str> {
        let mut arena = NodeArena::default();
        arena.has_equal_keys = true;
        let root = arena.decode(rlp, &node.hash, node.path.len(), node.position)?;
        let (mut values, mut below) = (Vec::new(), Vec::new());
        // Embedded nodes are few: all of them are part of the bytes of one node.
        let mut inside = vec![(root, node.path)];
        let depth = node.depth + 1;
        while let Some((id, path)) = inside.pop() {
            let mut child = |path, child: &SparseChild, position| match *child {
                SparseChild::Empty => {}
                SparseChild::Blinded(hash) => {
                    below.push(WalkedNode { hash, depth, path, position });
                }
                SparseChild::Node(id) => inside.push((id, path)),
            };
            match &arena.slot(id).node {
                SparseNode::Leaf { path: rest, value } => {
                    let key = packed(&Nibbles::join(&[&path, rest]));
                    values.push((key.ok_or(SHORT_KEY)?, value.clone()));
                }
                SparseNode::Extension { path: rest, child: end } => {
                    child(Nibbles::join(&[&path, rest]), end, NodePosition::BelowExtension);
                }
                SparseNode::Branch(branch) => {
                    for (nibble, end) in (0..16).zip(&branch.children).rev() {
                        let path = Nibbles::join(&[&path, &[nibble]]);
                        child(path, end, NodePosition::BelowBranch);
                    }
                }
            }
        }
        values.sort_unstable_by_key(|(key, _)| *key);
        below.sort_unstable_by(|a, b| b.path().cmp(a.path()));
        self.pending.extend(below);
        Ok(values)
    }
}

impl Iterator for TrieWalk {
    type Item = WalkedNode;

    fn next(&mut self) -> Option<WalkedNode> {
        self.pending.pop()
    }
}

const SHORT_KEY: &str = "key of fewer than 32 bytes";

/// The key with these nibbles, if they are all that it has.
fn packed(nibbles: &[u8]) -> Option<B256> {
    let mut key = B256::ZERO;
    if nibbles.len() != 2 * key.len() {
        return None;
    }
    for (byte, pair) in key.iter_mut().zip(nibbles.chunks_exact(2)) {
        *byte = pair[0] << 4 | pair[1];
    }
    Some(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SparseTrie, by_hash};
    use alloy_primitives::{Bytes, keccak256, map::B256Map};
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};
    use std::collections::BTreeMap;

    /// The nodes of a trie with these values.
    fn nodes(values: &BTreeMap<B256, Vec<u8>>) -> (B256, B256Map<Bytes>) {
        let (nothing, mut trie) = (B256Map::<Bytes>::default(), SparseTrie::empty());
        for (key, value) in values {
            trie.insert(key.as_slice(), value.clone(), &nothing).expect("nothing is missing");
        }
        let (root, mut nodes) = (trie.root(), Vec::new());
        trie.new_nodes(&mut |_, rlp| nodes.push(rlp));
        (root, by_hash(nodes))
    }

    /// Against the map that the trie was made of, and paths looked up from the root.
    #[test]
    fn a_walk_finds_all_values_and_all_nodes_in_order() {
        let rng = &mut StdRng::seed_from_u64(testing::seed());
        for _ in 0..60 {
            // Keys that begin alike, so that there are extensions, and ends alike, so that nodes
            // are embedded.
            let same = rng.random_range(0..62);
            let values: BTreeMap<B256, Vec<u8>> = (0..rng.random_range(0..40))
                .map(|_| {
                    let mut key = B256::ZERO;
                    for at in same / 2..rng.random_range(same / 2..=32) {
                        key[at] = rng.random_range(0..4) * rng.random_range(1..64);
                    }
                    (key, vec![rng.random_range(1..9); rng.random_range(1..40)])
                })
                .collect();
            let (root, nodes) = nodes(&values);
            let (mut walk, mut found, mut reached) = (TrieWalk::new(root), Vec::new(), Vec::new());
            while let Some(node) = walk.next() {
                found.extend(walk.enter(&node, &nodes[&node.hash]).expect("a node"));
                reached.push(node);
            }
            assert_eq!((found.len(), found.into_iter().collect()), (values.len(), values));
            assert!(reached.is_sorted_by(|a, b| a.path() <= b.path()));
            for node in &reached {
                let mut key = node.path.to_vec();
                key.resize(64, 0);
                let proof = SparseTrie::new(root).proof(packed(&key).unwrap().as_slice(), &nodes);
                let proof = proof.expect("nothing is missing");
                let at = proof.iter().position(|rlp| keccak256(rlp) == node.hash);
                assert_eq!(at, Some(node.depth), "{node:?}");
            }
            let mut hashes: Vec<_> = reached.iter().map(|node| node.hash).collect();
            hashes.sort_unstable();
            hashes.dedup();
            assert_eq!(hashes.len(), nodes.len());
        }
    }

    #[test]
    fn bytes_that_are_no_node_are_refused_and_the_walk_goes_on() {
        let values = (0..40u8).map(|i| (keccak256([i]), vec![i; 40])).collect();
        let (root, nodes) = nodes(&values);
        let mut walk = TrieWalk::new(root);
        let root = walk.next().expect("the root");
        assert!(walk.enter(&root, &[0x80]).is_err());
        assert!(walk.enter(&root, &[0xc2, 0x20, 0x01]).is_err(), "a key of no bytes");
        assert!(walk.next().is_none());
        walk.enter(&root, &nodes[&root.hash]).expect("the root");
        let rest = walk.by_ref().count();
        assert!(rest > 10, "{rest}");
        assert!(TrieWalk::new(EMPTY_ROOT_HASH).next().is_none());
    }

    /// Each branch has the next one in all its places: 16^63 paths, and 64 nodes.
    #[test]
    fn branches_that_are_their_parents_siblings_end_after_as_many_steps_as_references() {
        let mut below = vec![0xf8, 0x64, 0xa0];
        below.extend([&[1; 32][..], &[0xb8, 0x40], &[7; 64]].concat());
        let mut nodes = B256Map::<Bytes>::default();
        for _ in 0..64 {
            let hash = keccak256(&below);
            nodes.insert(hash, below.into());
            let child = [&[0xa0][..], hash.as_slice()].concat();
            below = [&[0xf9, 0x02, 0x11][..], &child.repeat(16), &[0x80]].concat();
        }
        let (mut walk, mut steps, mut entered) = (TrieWalk::new(keccak256(&below)), 0, 0);
        nodes.insert(keccak256(&below), below.into());
        while let Some(node) = walk.next() {
            steps += 1;
            if let Some(rlp) = nodes.remove(&node.hash) {
                entered += 1;
                _ = walk.enter(&node, &rlp);
            }
        }
        assert_eq!((entered, steps), (65, 1 + 64 * 16));
    }
}
