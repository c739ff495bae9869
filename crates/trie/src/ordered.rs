//! The root of a list: of the transactions, receipts or withdrawals of a block.

use crate::{
    EMPTY_ROOT_HASH,
    keccak::keccak256_many,
    versioned::key::{hex_prefix, nibble, shared_nibbles},
};
use alloy_primitives::{B256, keccak256};
use alloy_rlp::{EMPTY_STRING_CODE, Encodable, Header};

/// The longest RLP of a node that is embedded in its parent.
const EMBEDDED_BYTES: usize = 31;

/// The root of the trie that has each value under the RLP of its index (yellow paper, section
/// 4.3.2), the leaves hashed several at a time.
pub fn ordered_root<V: AsRef<[u8]>>(values: &[V]) -> B256 {
    if values.is_empty() {
        return EMPTY_ROOT_HASH;
    }
    // In the order of the keys: one byte below 0x80, then index 0, which is 0x80, then the others.
    let count = values.len();
    let indices = (1..count.min(0x80)).chain([0]).chain(0x80..count);
    let (keys, values): (Vec<IndexKey>, Vec<&[u8]>) =
        indices.map(|index| (IndexKey::new(index), values[index].as_ref())).unzip();
    if count == 1 {
        let mut leaf = Vec::new();
        push_leaf(&keys[0], 0, values[0], &mut leaf);
        return keccak256(leaf);
    }
    // Each leaf is below the last nibble that its key shares with either neighbour's.
    let shared: Vec<usize> = keys.windows(2).map(|pair| pair[0].shared(&pair[1])).collect();
    let mut leaves = Vec::with_capacity(values.iter().map(|value| value.len() + 16).sum());
    let mut ends = Vec::with_capacity(count);
    for (at, (key, value)) in keys.iter().zip(&values).enumerate() {
        let before = at.checked_sub(1).map_or(0, |before| shared[before]);
        let depth = 1 + before.max(shared.get(at).copied().unwrap_or(0));
        push_leaf(key, depth, value, &mut leaves);
        ends.push(leaves.len());
    }
    let starts = std::iter::once(0).chain(ends.iter().copied());
    let leaves: Vec<&[u8]> = starts.zip(&ends).map(|(from, to)| &leaves[from..*to]).collect();
    let mut hashes = vec![B256::ZERO; count];
    keccak256_many(&leaves, &mut hashes);
    keccak256(ItemList { keys, leaves, hashes }.node(0, count, 0))
}

/// The RLP of an index.
struct IndexKey {
    bytes: B256,
    nibbles: usize,
}

impl IndexKey {
    fn new(index: usize) -> Self {
        let mut bytes = B256::ZERO;
        index.encode(&mut &mut bytes[..]);
        Self { bytes, nibbles: 2 * index.length() }
    }

    /// How many nibbles begin both. No key begins another one.
    fn shared(&self, other: &Self) -> usize {
        shared_nibbles(&self.bytes, &other.bytes)
    }
}

struct ItemList<'a> {
    /// In their order, as all of this.
    keys: Vec<IndexKey>,
    leaves: Vec<&'a [u8]>,
    hashes: Vec<B256>,
}

impl ItemList<'_> {
    /// The RLP of the node above several leaves, `depth` nibbles below the root.
    fn node(&self, from: usize, to: usize, depth: usize) -> Vec<u8> {
        let first = &self.keys[from];
        let shared = first.shared(&self.keys[to - 1]);
        let mut payload = Vec::with_capacity(17 * 33);
        if shared > depth {
            let (path, len) = hex_prefix(&first.bytes, depth, shared, false);
            path[..len].encode(&mut payload);
            push_child(&self.node(from, to, shared), &mut payload);
            return list_of(&payload);
        }
        let mut from = from;
        for digit in 0..16 {
            let has_digit = |key: &IndexKey| nibble(&key.bytes, depth) == digit;
            let count = self.keys[from..to].iter().take_while(|key| has_digit(key)).count();
            match count {
                0 => payload.push(EMPTY_STRING_CODE),
                1 if self.leaves[from].len() <= EMBEDDED_BYTES => {
                    payload.extend_from_slice(self.leaves[from]);
                }
                1 => self.hashes[from].encode(&mut payload),
                _ => push_child(&self.node(from, from + count, depth + 1), &mut payload),
            }
            from += count;
        }
        payload.push(EMPTY_STRING_CODE);
        list_of(&payload)
    }
}

fn push_leaf(key: &IndexKey, depth: usize, value: &[u8], out: &mut Vec<u8>) {
    let (path, len) = hex_prefix(&key.bytes, depth, key.nibbles, true);
    let path = &path[..len];
    Header { list: true, payload_length: path.length() + value.length() }.encode(out);
    path.encode(out);
    value.encode(out);
}

fn push_child(node: &[u8], payload: &mut Vec<u8>) {
    match node.len() {
        ..=EMBEDDED_BYTES => payload.extend_from_slice(node),
        _ => keccak256(node).encode(payload),
    }
}

fn list_of(payload: &[u8]) -> Vec<u8> {
    let mut node = Vec::with_capacity(payload.len() + 3);
    Header { list: true, payload_length: payload.len() }.encode(&mut node);
    node.extend_from_slice(payload);
    node
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_trie::root::ordered_trie_root_encoded;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    #[test]
    fn it_is_what_a_node_by_node_builder_makes() {
        let rng = &mut StdRng::seed_from_u64(testing::seed());
        let counts = (0..140).chain([255, 256, 257, 300, 1000, 70_000]);
        for count in counts {
            // Some are short enough to be embedded in their parents, and so are some parents.
            let longest = [3, 40, 700][rng.random_range(0..3)];
            let value = |_| {
                let mut value = vec![0; rng.random_range(1..longest)];
                rng.fill(&mut value[..]);
                value
            };
            let values: Vec<Vec<u8>> = (0..count).map(value).collect();
            let expected = ordered_trie_root_encoded(&values);
            assert_eq!(ordered_root(&values), expected, "{count} values up to {longest} bytes");
        }
    }
}
