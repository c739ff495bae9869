use super::*;
use crate::{
    by_hash,
    oracle::{
        Entries, NaiveTrie, deep_key, expected_revealed, hash_builder_root, list, prefix_key,
        short_key, value,
    },
};
use alloy_primitives::{keccak256, map::B256Map};
use proptest::prelude::*;
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
enum Op {
    Read,
    Insert(Vec<u8>),
    Remove,
}

/// The operations of one step, in canonical order: reads, insertions, removals.
type Batch = BTreeMap<Vec<u8>, Op>;

type Store = B256Map<Bytes>;

fn batches(key: impl Strategy<Value = Vec<u8>> + Clone) -> impl Strategy<Value = Vec<Batch>> {
    let op = prop_oneof![
        1 => Just(Op::Read),
        3 => value().prop_map(Op::Insert),
        3 => Just(Op::Remove),
    ];
    let first = prop::collection::btree_map(key.clone(), value().prop_map(Op::Insert), 0..40);
    let later = prop::collection::vec(prop::collection::btree_map(key, op, 0..12), 1..5);
    (first, later).prop_map(|(first, later)| [vec![first], later].concat())
}

fn perform(trie: &mut SparseTrie, batch: &Batch, nodes: &Store) -> Result<B256, Error> {
    for (key, _) in batch.iter().filter(|(_, op)| matches!(op, Op::Read)) {
        trie.get(key, nodes)?;
    }
    for (key, op) in batch {
        if let Op::Insert(value) = op {
            trie.insert(key, value.clone(), nodes)?;
        }
    }
    for (key, _) in batch.iter().filter(|(_, op)| matches!(op, Op::Remove)) {
        trie.remove(key, nodes)?;
    }
    Ok(trie.root())
}

fn apply_to_entries(entries: &Entries, batch: &Batch) -> Entries {
    let mut entries = entries.clone();
    for (key, op) in batch {
        match op {
            Op::Read => {}
            Op::Insert(value) => drop(entries.insert(key.clone(), value.clone())),
            Op::Remove => drop(entries.remove(key)),
        }
    }
    entries
}

fn take_new_nodes(trie: &mut SparseTrie, store: &mut Store) {
    trie.new_nodes(&mut |hash, rlp| {
        assert_eq!(keccak256(&rlp), hash);
        store.insert(hash, rlp);
    });
}

/// Performs the batches one after the other on a trie that is kept, and each batch on a trie
/// opened for it, and compares with the twin at each step.
fn check_batches(batches: &[Batch]) {
    let mut store = Store::default();
    let mut kept_store = Store::default();
    let mut kept = SparseTrie::empty();
    let mut entries = Entries::new();
    for batch in batches {
        let after = apply_to_entries(&entries, batch);
        let root = NaiveTrie::new(&after).root;
        check_kept(&mut kept, batch, &entries, &after);
        take_new_nodes(&mut kept, &mut kept_store);

        let mut opened = SparseTrie::new(NaiveTrie::new(&entries).root);
        assert_eq!(perform(&mut opened, batch, &store), Ok(root));
        let touched = batch.keys().cloned().collect();
        assert_eq!(opened.revealed(), expected_revealed(&entries, &touched, &after));
        check_witness(&NaiveTrie::new(&entries), batch, root, &opened.take_revealed());
        take_new_nodes(&mut opened, &mut store);
        entries = after;
    }
    // The store has exactly the nodes that the tries handed over.
    for store in [store, kept_store] {
        assert!(NaiveTrie::new(&entries).store().keys().all(|hash| store.contains_key(hash)));
        let mut trie = SparseTrie::new(kept.root());
        for (key, value) in &entries {
            assert_eq!(trie.get(key, &store), Ok(Some(value.as_slice())));
        }
    }
}

/// Operations in the order of the keys, on a trie that needs no source.
fn check_kept(kept: &mut SparseTrie, batch: &Batch, before: &Entries, after: &Entries) {
    let nothing = Store::default();
    for (key, op) in batch {
        let old = before.get(key).map(Vec::as_slice);
        match op {
            Op::Read => assert_eq!(kept.get(key, &nothing), Ok(old)),
            Op::Insert(value) => assert_eq!(kept.insert(key, value.clone(), &nothing), Ok(())),
            Op::Remove => assert_eq!(kept.remove(key, &nothing), Ok(old.is_some())),
        }
        assert_eq!(kept.get(key, &nothing), Ok(after.get(key).map(Vec::as_slice)));
    }
    assert_eq!(kept.root(), NaiveTrie::new(after).root);
    assert_eq!(kept.revealed(), [] as [Bytes; 0]);
}

/// The witness suffices for the batch, without any one of its nodes it does not, and however
/// often nodes are missing, an operation tried again goes on as if they had not been.
fn check_witness(before: &NaiveTrie, batch: &Batch, root: B256, witness: &[Bytes]) {
    let mut nodes = by_hash(witness.to_vec());
    assert_eq!(perform(&mut SparseTrie::new(before.root), batch, &nodes), Ok(root));
    for rlp in witness {
        let hash = keccak256(rlp);
        nodes.remove(&hash);
        let result = perform(&mut SparseTrie::new(before.root), batch, &nodes);
        assert_eq!(result, Err(Error::MissingNode { hash }));
        nodes.insert(hash, rlp.clone());
    }
    let mut found = Store::default();
    let mut trie = SparseTrie::new(before.root);
    let result = loop {
        match perform(&mut trie, batch, &found) {
            Err(Error::MissingNode { hash }) => found.insert(hash, nodes[&hash].clone()),
            result => break result,
        };
    };
    assert_eq!(result, Ok(root));
    assert_eq!(trie.revealed(), witness);
}

proptest! {
    #[test]
    fn tries_with_long_shared_prefixes_agree_with_the_twin(batches in batches(deep_key())) {
        check_batches(&batches);
    }

    #[test]
    fn tries_with_embedded_nodes_agree_with_the_twin(batches in batches(short_key())) {
        check_batches(&batches);
    }

    #[test]
    fn tries_with_values_in_branches_agree_with_the_twin(batches in batches(prefix_key())) {
        check_batches(&batches);
    }

    #[test]
    fn the_twin_agrees_with_the_hash_builder(
        deep in prop::collection::btree_map(deep_key(), value(), 0..60),
        short in prop::collection::btree_map(short_key(), value(), 0..20),
    ) {
        assert_eq!(NaiveTrie::new(&deep).root, hash_builder_root(&deep));
        assert_eq!(NaiveTrie::new(&short).root, hash_builder_root(&short));
    }

    #[test]
    fn random_keys_in_any_order_agree_with_the_hash_builder(
        entries in prop::collection::vec((any::<[u8; 32]>(), value()), 0..200),
        removed in prop::collection::vec(any::<prop::sample::Index>(), 0..50),
    ) {
        let nothing = Store::default();
        let mut trie = SparseTrie::empty();
        let mut expected = Entries::new();
        for (key, value) in &entries {
            trie.insert(key, value.clone(), &nothing).unwrap();
            expected.insert(key.to_vec(), value.clone());
        }
        for index in removed.iter().filter(|_| !entries.is_empty()) {
            let key = &index.get(&entries).0;
            let was_there = expected.remove(&key[..]).is_some();
            assert_eq!(trie.remove(key, &nothing), Ok(was_there));
        }
        assert_eq!(trie.root(), hash_builder_root(&expected));
    }

    #[test]
    fn arbitrary_bytes_never_panic(
        rlp in prop::collection::vec(any::<u8>(), 0..120),
        key in prop_oneof![deep_key(), short_key(), prefix_key()],
    ) {
        check_untrusted(&rlp.into(), &key, &Store::default());
    }

    #[test]
    fn altered_nodes_never_panic_and_are_never_encoded_in_two_ways(
        entries in prop::collection::btree_map(prefix_key(), value(), 1..20),
        key in prefix_key(),
        altered in any::<(prop::sample::Index, prop::sample::Index, u8)>(),
    ) {
        let trie = NaiveTrie::new(&entries);
        let nodes: Vec<_> = trie.nodes.values().collect();
        let mut rlp = altered.0.get(&nodes).to_vec();
        let at = altered.1.index(rlp.len());
        rlp[at] = altered.2;
        check_untrusted(&rlp.into(), &key, &trie.store());
    }
}

/// Whatever the root node is, operations end, and a node that is accepted is the only encoding
/// of what it holds.
fn check_untrusted(rlp: &Bytes, key: &[u8], others: &Store) {
    let hash = keccak256(rlp);
    let mut nodes = others.clone();
    nodes.insert(hash, rlp.clone());
    let mut trie = SparseTrie::new(hash);
    if let Ok(proof) = trie.proof(key, &nodes) {
        // The root of the empty trie stands for no node.
        assert_eq!(proof.first(), (hash != EMPTY_ROOT_HASH).then_some(rlp));
    }
    let before = trie.root();
    if trie.insert(key, vec![1; 33], &nodes).is_ok() {
        assert_eq!(trie.get(key, &nodes), Ok(Some(&[1; 33][..])));
        let _ = trie.remove(key, &nodes);
        trie.root();
    }
    let mut trie = SparseTrie::new(hash);
    if trie.remove(key, &nodes) != Ok(true) {
        assert_eq!(trie.root(), before);
    }
    trie.root();
}

#[test]
fn the_node_of_the_empty_trie_is_no_special_input() {
    check_untrusted(&Bytes::from_static(&[0x80]), &[0; 32], &Store::default());
}

/// Ten entries of which two end up alone below a branch, deep in the trie.
fn some_entries() -> Entries {
    let keys = [0x00, 0x01, 0x10, 0x22, 0x23, 0x30, 0x31, 0x40, 0x50, 0x60u8];
    keys.iter().map(|&byte| (vec![byte; 32], vec![byte + 1; 32])).collect()
}

#[test]
fn a_value_written_again_unchanged_reveals_its_path_and_changes_no_node() {
    let entries = some_entries();
    let root = NaiveTrie::new(&entries).root;
    let (mut written, mut read) = (SparseTrie::new(root), SparseTrie::new(root));
    let store = NaiveTrie::new(&entries).store();
    for (key, value) in &entries {
        written.insert(key, value.clone(), &store).unwrap();
        read.get(key, &store).unwrap();
        assert_eq!(written.revealed(), read.revealed());
    }
    written.new_nodes(&mut |hash, _| panic!("{hash} is not new"));
    assert_eq!(written.root(), root);
}

#[test]
fn nodes_are_handed_over_once() {
    let entries = some_entries();
    let nothing = Store::default();
    let mut trie = SparseTrie::empty();
    for (key, value) in &entries {
        trie.insert(key, value.clone(), &nothing).unwrap();
    }
    let mut store = Store::default();
    take_new_nodes(&mut trie, &mut store);
    assert_eq!(store, NaiveTrie::new(&entries).store());
    trie.new_nodes(&mut |hash, _| panic!("{hash} is not new"));
}

#[test]
fn opening_a_trie_reveals_nothing() {
    let root = B256::repeat_byte(7);
    let mut trie = SparseTrie::new(root);
    assert_eq!(trie.root(), root);
    assert_eq!(trie.revealed(), [] as [Bytes; 0]);
    trie.new_nodes(&mut |hash, _| panic!("{hash} is not new"));
}

#[test]
fn a_missing_node_is_never_an_absent_key() {
    let hash = B256::repeat_byte(7);
    let nothing = Store::default();
    let missing = Error::MissingNode { hash };
    let mut trie = SparseTrie::new(hash);
    assert_eq!(trie.get(&[1], &nothing), Err(missing.clone()));
    assert_eq!(trie.insert(&[1], vec![1], &nothing), Err(missing.clone()));
    assert_eq!(trie.remove(&[1], &nothing), Err(missing));
    assert_eq!(trie.root(), hash);
}

#[test]
fn a_removal_that_lacks_the_sibling_changes_nothing_and_can_be_tried_again() {
    let [a, b] = [vec![0x00; 32], vec![0x10; 32]];
    let entries = Entries::from([(a.clone(), vec![1; 32]), (b.clone(), vec![2; 32])]);
    let before = NaiveTrie::new(&entries);
    let sibling = keccak256(&before.nodes[&vec![1]]);
    let mut nodes = before.store();
    let withheld = nodes.remove(&sibling).unwrap();

    let mut trie = SparseTrie::new(before.root);
    assert_eq!(trie.remove(&a, &nodes), Err(Error::MissingNode { hash: sibling }));
    assert_eq!(trie.root(), before.root);
    assert_eq!(trie.get(&a, &nodes), Ok(Some(&[1; 32][..])));
    nodes.insert(sibling, withheld);
    assert_eq!(trie.remove(&a, &nodes), Ok(true));
    assert_eq!(trie.root(), NaiveTrie::new(&Entries::from([(b, vec![2; 32])])).root);
}

#[test]
fn keys_longer_than_the_limit_are_refused() {
    let nothing = Store::default();
    let mut trie = SparseTrie::empty();
    let too_long = Error::KeyTooLong { bytes: 33 };
    assert_eq!(trie.get(&[0; 33], &nothing), Err(too_long.clone()));
    assert_eq!(trie.insert(&[0; 33], vec![1], &nothing), Err(too_long.clone()));
    assert_eq!(trie.remove(&[0; 33], &nothing), Err(too_long));
}

fn string(bytes: &[u8]) -> Vec<u8> {
    alloy_rlp::encode(bytes)
}

/// A branch with these first children, the rest and the value empty.
fn branch(children: &[Vec<u8>]) -> Vec<u8> {
    let mut items = children.to_vec();
    items.resize(17, string(&[]));
    list(&items)
}

fn check_root_node(rlp: Vec<u8>, expected: Option<&'static str>) {
    let hash = keccak256(&rlp);
    let nodes = by_hash([Bytes::from(rlp.clone())]);
    let result = SparseTrie::new(hash).get(&[0xff; 32], &nodes).map(drop);
    let expected = match expected {
        Some(reason) => Err(Error::MalformedNode { hash, reason }),
        None => Ok(()),
    };
    assert_eq!(result, expected, "{}", Bytes::from(rlp));
}

#[test]
fn malformed_nodes_are_errors() {
    let hash = string(&[7; 32]);
    let leaf = list(&[string(&[0x30]), string(&[1])]);
    let extension = |path: &[u8], child: &[u8]| list(&[string(path), child.to_vec()]);
    let small_branch = branch(&[leaf.clone(), leaf.clone()]);

    check_root_node(leaf.clone(), None);
    check_root_node(branch(&[hash.clone(), leaf.clone()]), None);
    check_root_node(extension(&[0x11], &hash), None);
    check_root_node(extension(&[0x00, 0x11], &small_branch), None);
    check_root_node(list(&[string(&[[0x20].as_slice(), &[0; 32]].concat()), string(&[1])]), None);

    let invalid = Some("invalid RLP");
    check_root_node(vec![], invalid);
    check_root_node(vec![0xc2, 0x30], invalid);
    check_root_node(vec![0xf8, 0x02, 0x30, 0x01], invalid);
    check_root_node(vec![0xc3, 0x81, 0x30, 0x01], invalid);
    check_root_node(vec![0xc3, 0x30, 0x81, 0x01], invalid);
    check_root_node(vec![0xc2, 0x30, 0xb8], invalid);
    check_root_node([leaf.clone(), vec![0]].concat(), Some("trailing bytes"));
    check_root_node(string(&[0x80]), Some("not a list"));
    check_root_node(string(&[1; 40]), Some("not a list"));
    let wrong_length = Some("list of neither 2 nor 17 items");
    check_root_node(list(&[]), wrong_length);
    check_root_node(list(&[string(&[0x30])]), wrong_length);
    check_root_node(list(&vec![hash.clone(); 3]), wrong_length);
    check_root_node(list(&vec![hash.clone(); 16]), wrong_length);
    check_root_node(list(&vec![hash.clone(); 18]), wrong_length);

    let leaf_with_path = |path: &[u8]| list(&[string(path), string(&[1])]);
    check_root_node(leaf_with_path(&[]), Some("path without hex prefix"));
    check_root_node(leaf_with_path(&[0x21]), Some("hex prefix with padding other than zero"));
    check_root_node(extension(&[0x01], &hash), Some("hex prefix with padding other than zero"));
    check_root_node(leaf_with_path(&[0x40]), Some("hex prefix with unknown flags"));
    check_root_node(leaf_with_path(&[0xf0]), Some("hex prefix with unknown flags"));
    check_root_node(leaf_with_path(&[0x3f; 33]), Some("path longer than a key"));
    check_root_node(leaf_with_path(&[0x20; 34]), Some("path longer than a key"));
    let not_a_string = Some("list in the place of a path or a value");
    check_root_node(list(&[list(&[]), string(&[1])]), not_a_string);
    check_root_node(list(&[string(&[0x30]), list(&[])]), not_a_string);
    check_root_node(list(&[string(&[0x30]), string(&[])]), Some("leaf with an empty value"));

    check_root_node(extension(&[0x00], &hash), Some("extension with an empty path"));
    check_root_node(extension(&[0x11], &string(&[])), Some("extension to nothing"));
    let not_a_branch = Some("extension to a node other than a branch");
    check_root_node(extension(&[0x11], &leaf), not_a_branch);
    check_root_node(extension(&[0x11], &extension(&[0x11], &small_branch)), not_a_branch);
    let not_a_child = Some("child that is neither a hash nor a node");
    check_root_node(extension(&[0x11], &string(&[7; 31])), not_a_child);
    check_root_node(extension(&[0x11], &string(&[7; 33])), not_a_child);
    check_root_node(branch(&[hash.clone(), string(&[1])]), not_a_child);

    let too_few = Some("branch with fewer than two entries");
    check_root_node(branch(&[]), too_few);
    check_root_node(branch(std::slice::from_ref(&hash)), too_few);
    let with_value = [vec![string(&[]); 16], vec![string(&[1])]].concat();
    check_root_node(list(&with_value), too_few);
    let with_list = [vec![hash.clone(); 16], vec![list(&[])]].concat();
    check_root_node(list(&with_list), not_a_string);
    let big = list(&[string(&[0x30]), string(&[1; 29])]);
    assert_eq!(big.len(), 32);
    let too_big = Some("embedded node of 32 bytes or more");
    check_root_node(branch(&[hash.clone(), big]), too_big);
    check_root_node(branch(&[hash.clone(), list(&[string(&[])])]), wrong_length);
    check_root_node(extension(&[0x11], &branch(&[leaf])), too_few);
}

/// Checks what reading `key` says of a node that the root refers to by its hash.
fn check_child_node(parent: impl Fn(Vec<u8>) -> Vec<u8>, child: Vec<u8>, reason: &'static str) {
    let hash = keccak256(&child);
    let parent = parent(string(hash.as_slice()));
    let root = keccak256(&parent);
    let nodes = by_hash([Bytes::from(parent), Bytes::from(child)]);
    let result = SparseTrie::new(root).get(&[0x11; 32], &nodes).map(drop);
    assert_eq!(result, Err(Error::MalformedNode { hash, reason }));
}

#[test]
fn nodes_in_the_wrong_place_are_errors() {
    let below_branch = |child| branch(&[string(&[]), child, string(&[7; 32])]);
    let below_extension = |child| list(&[string(&[0x11]), child]);
    let leaf_of = |path: &[u8]| list(&[string(path), string(&[1; 32])]);

    let short = list(&[string(&[0x30]), string(&[1])]);
    check_child_node(below_branch, short, "shorter than 32 bytes, but not embedded");
    let not_a_branch = "extension to a node other than a branch";
    check_child_node(below_extension, leaf_of(&[0x30]), not_a_branch);
    let extension = list(&[string(&[0x11]), string(&[7; 32])]);
    check_child_node(below_extension, extension, not_a_branch);
    // 64 nibbles below one is one too many.
    let too_deep = leaf_of(&[[0x20].as_slice(), &[0x11; 32]].concat());
    check_child_node(below_branch, too_deep, "path longer than a key");
}

#[test]
fn a_branch_below_a_whole_key_is_an_error() {
    let below = branch(&[string(&[7; 32]), string(&[7; 32])]);
    let hash = keccak256(&below);
    let path = [[0x00].as_slice(), &[0x11; 32]].concat();
    let above = list(&[string(&path), string(hash.as_slice())]);
    let root = keccak256(&above);
    let nodes = by_hash([Bytes::from(above), Bytes::from(below)]);
    let reason = "path longer than a key";
    let result = SparseTrie::new(root).get(&[0x11; 32], &nodes).map(drop);
    assert_eq!(result, Err(Error::MalformedNode { hash, reason }));
}
