//! The slow, obvious twin of the tries: the whole trie from a sorted map, and the nodes that an
//! operation has to reveal, told from their locations.

use alloy_primitives::{B256, Bytes, keccak256, map::B256Map};
use alloy_rlp::Header;
use alloy_trie::{EMPTY_ROOT_HASH, HashBuilder, Nibbles};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// The content of a trie: values by key.
pub type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

/// A trie built at once from all its entries.
#[derive(Debug, Default)]
pub struct NaiveTrie {
    /// The RLP of each node that is not embedded, by its location: the nibbles above it.
    pub nodes: BTreeMap<Vec<u8>, Bytes>,
    /// The locations of the branches.
    pub branches: Vec<Vec<u8>>,
    /// The root hash.
    pub root: B256,
}

/// The nibbles of a key.
pub fn unpack(key: &[u8]) -> Vec<u8> {
    key.iter().flat_map(|byte| [byte >> 4, byte & 0xf]).collect()
}

fn string(bytes: &[u8]) -> Vec<u8> {
    alloy_rlp::encode(bytes)
}

/// An RLP list of encoded items.
pub fn list(items: &[Vec<u8>]) -> Vec<u8> {
    let payload = items.concat();
    let mut rlp = Vec::new();
    Header { list: true, payload_length: payload.len() }.encode(&mut rlp);
    [rlp, payload].concat()
}

/// The RLP of a hex-prefix path, written out from the yellow paper.
fn path(nibbles: &[u8], is_leaf: bool) -> Vec<u8> {
    let flag = if is_leaf { 2 } else { 0 };
    let mut digits = if nibbles.len().is_multiple_of(2) { vec![flag, 0] } else { vec![flag + 1] };
    digits.extend(nibbles);
    string(&digits.chunks(2).map(|pair| pair[0] * 16 + pair[1]).collect::<Vec<_>>())
}

impl NaiveTrie {
    /// The trie with these entries.
    pub fn new(entries: &Entries) -> Self {
        let mut trie = Self { root: EMPTY_ROOT_HASH, ..Self::default() };
        if !entries.is_empty() {
            let entries: Vec<_> = entries.iter().map(|(k, v)| (unpack(k), v.clone())).collect();
            let rlp = trie.node(&entries, 0);
            trie.root = keccak256(&rlp);
            trie.nodes.insert(Vec::new(), rlp.into());
        }
        trie
    }

    /// The RLP of the node for these sorted entries, which share the first `depth` nibbles.
    fn node(&mut self, entries: &[(Vec<u8>, Vec<u8>)], depth: usize) -> Vec<u8> {
        let (first, last) = (&entries[0].0, &entries[entries.len() - 1].0);
        if entries.len() == 1 {
            return list(&[path(&first[depth..], true), string(&entries[0].1)]);
        }
        let shared = first[depth..].iter().zip(&last[depth..]).take_while(|(a, b)| a == b).count();
        if shared > 0 {
            let child = self.reference(entries, depth + shared);
            return list(&[path(&first[depth..depth + shared], false), child]);
        }
        self.branches.push(first[..depth].to_vec());
        let (ending, going_on): (Vec<_>, Vec<_>) =
            entries.iter().cloned().partition(|(key, _)| key.len() == depth);
        let mut items = Vec::new();
        for nibble in 0..16 {
            let below: Vec<_> =
                going_on.iter().filter(|(key, _)| key[depth] == nibble).cloned().collect();
            items.push(match below.as_slice() {
                [] => string(&[]),
                below => self.reference(below, depth + 1),
            });
        }
        items.push(string(ending.first().map_or(&[], |(_, value)| value)));
        list(&items)
    }

    fn reference(&mut self, entries: &[(Vec<u8>, Vec<u8>)], depth: usize) -> Vec<u8> {
        let rlp = self.node(entries, depth);
        if rlp.len() < 32 {
            return rlp;
        }
        let hash = keccak256(&rlp);
        self.nodes.insert(entries[0].0[..depth].to_vec(), rlp.into());
        string(hash.as_slice())
    }

    /// Its nodes by hash.
    pub fn store(&self) -> B256Map<Bytes> {
        self.nodes.values().map(|rlp| (keccak256(rlp), rlp.clone())).collect()
    }
}

/// The root by alloy's hash builder; of keys none of which is the beginning of another.
pub fn hash_builder_root(entries: &Entries) -> B256 {
    let mut builder = HashBuilder::default();
    for (key, value) in entries {
        builder.add_leaf(Nibbles::unpack(key), value);
    }
    builder.root()
}

/// The nodes that have to be revealed of the trie with the entries `before`, when first the
/// `touched` keys are read and then the entries become `after`, insertions and updates before
/// removals:
/// 1. each node located on the path of a key that is touched, written or removed,
/// 2. each node alone below a branch of the trie that has all insertions, but no removals yet.
pub fn expected_revealed(
    before: &Entries,
    touched: &BTreeSet<Vec<u8>>,
    after: &Entries,
) -> Vec<Bytes> {
    let trie = NaiveTrie::new(before);
    let changed = before.iter().filter(|(key, value)| after.get(*key) != Some(*value));
    let added = after.iter().filter(|(key, value)| before.get(*key) != Some(*value));
    let mut keys: BTreeSet<_> = changed.chain(added).map(|(key, _)| key.clone()).collect();
    keys.extend(touched.iter().cloned());
    let paths: Vec<_> = keys.iter().map(|key| unpack(key)).collect();
    let is_on_path = |at: &[u8]| paths.iter().any(|path| path.starts_with(at));

    let mut between = before.clone();
    between.extend(after.clone());
    let surviving: Vec<_> = after.keys().map(|key| unpack(key)).collect();
    let mut alone = BTreeSet::new();
    for branch in NaiveTrie::new(&between).branches {
        let below = surviving.iter().filter(|path| path.starts_with(&branch));
        let entries: BTreeSet<_> = below.map(|path| path.get(branch.len()).copied()).collect();
        if let [Some(nibble)] = entries.into_iter().collect::<Vec<_>>()[..] {
            alone.insert([branch, vec![nibble]].concat());
        }
    }
    let nodes = trie.nodes.iter().filter(|(at, _)| is_on_path(at) || alone.contains(*at));
    let nodes: BTreeSet<_> = nodes.map(|(_, rlp)| rlp.clone()).collect();
    nodes.into_iter().collect()
}

/// 32-byte keys of which many share long prefixes, and some differ in the last nibble only.
pub fn deep_key() -> impl Strategy<Value = Vec<u8>> + Clone {
    let position = prop_oneof![0..4usize, 0..64usize, 62..64usize];
    (0..3u8, position, 0..4u8).prop_map(|(base, position, digit)| {
        let mut key = vec![base * 0x11; 32];
        let byte = &mut key[position / 2];
        *byte = if position % 2 == 0 { *byte & 0xf | digit << 4 } else { *byte & 0xf0 | digit };
        key
    })
}

/// Keys of two bytes, so that small nodes are embedded in their parents.
pub fn short_key() -> impl Strategy<Value = Vec<u8>> + Clone {
    let byte = prop::sample::select(&[0x00, 0x01, 0x10, 0x11, 0xf1][..]);
    prop::collection::vec(byte, 2)
}

/// Keys of up to four bytes, many of them the beginning of others.
pub fn prefix_key() -> impl Strategy<Value = Vec<u8>> + Clone {
    let byte = prop::sample::select(&[0x00, 0x01, 0x12][..]);
    prop::collection::vec(byte, 0..5)
}

/// Values from a single byte to ones that make any node too long to be embedded.
pub fn value() -> impl Strategy<Value = Vec<u8>> + Clone {
    prop_oneof![
        prop::collection::vec(1..4u8, 1),
        prop::collection::vec(any::<u8>(), 1..8),
        prop::collection::vec(any::<u8>(), 30..40),
    ]
}
