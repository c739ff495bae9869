use super::*;
use crate::{
    EMPTY_ROOT_HASH, by_hash,
    oracle::{Entries, NaiveTrie, deep_key, prefix_key, short_key, value},
};
use alloy_trie::Nibbles;
use proptest::prelude::*;

fn proof_of(entries: &Entries, key: &[u8]) -> (B256, Vec<Bytes>) {
    let naive = NaiveTrie::new(entries);
    let mut trie = SparseTrie::new(naive.root);
    let proof = trie.proof(key, &naive.store()).unwrap();
    (naive.root, proof)
}

fn check_proof(entries: &Entries, key: &[u8]) {
    let (root, proof) = proof_of(entries, key);
    assert_eq!(verify_proof(root, key, &proof), Ok(entries.get(key).cloned()));
}

/// Any proof other than the right one is an error.
fn check_tampering(entries: &Entries, key: &[u8], at: (usize, usize, u8)) {
    let (root, proof) = proof_of(entries, key);
    let node = at.0 % proof.len();
    let is_refused = |proof: &[Bytes]| assert!(verify_proof(root, key, proof).is_err());

    let mut altered = proof.clone();
    let mut rlp = altered[node].to_vec();
    let byte = at.1 % rlp.len();
    rlp[byte] ^= at.2;
    altered[node] = rlp.into();
    is_refused(&altered);
    let mut missing = proof.clone();
    missing.remove(node);
    is_refused(&missing);
    let mut extra = proof.clone();
    extra.insert(node, proof[node].clone());
    is_refused(&extra);
    is_refused(&[proof.clone(), vec![Bytes::from_static(&[0x80])]].concat());
    if proof.len() > 1 {
        is_refused(&proof.iter().rev().cloned().collect::<Vec<_>>());
    }
}

proptest! {
    #[test]
    fn proofs_prove_values_and_absence(
        deep in prop::collection::btree_map(deep_key(), value(), 0..40),
        deep_key in deep_key(),
        short in prop::collection::btree_map(short_key(), value(), 0..20),
        short_key in short_key(),
        prefix in prop::collection::btree_map(prefix_key(), value(), 0..20),
        prefix_key in prefix_key(),
    ) {
        check_proof(&deep, &deep_key);
        check_proof(&short, &short_key);
        check_proof(&prefix, &prefix_key);
        for key in deep.keys() {
            check_proof(&deep, key);
        }
    }

    #[test]
    fn alloy_accepts_the_proofs(
        entries in prop::collection::btree_map(deep_key(), value(), 0..40),
        key in deep_key(),
    ) {
        let (root, proof) = proof_of(&entries, &key);
        let value = entries.get(&key).cloned();
        let result = alloy_trie::proof::verify_proof(root, Nibbles::unpack(&key), value, &proof);
        prop_assert!(result.is_ok(), "{:?}", result);
    }

    #[test]
    fn other_proofs_are_refused(
        entries in prop::collection::btree_map(deep_key(), value(), 1..40),
        key in deep_key(),
        at in (any::<usize>(), any::<usize>(), 1..=255u8),
    ) {
        check_tampering(&entries, &key, at);
        check_tampering(&entries, entries.keys().next().unwrap(), at);
    }

    #[test]
    fn a_multiproof_is_the_set_of_the_proofs_and_a_source_for_the_keys(
        entries in prop::collection::btree_map(deep_key(), value(), 0..40),
        keys in prop::collection::vec(deep_key(), 0..10),
    ) {
        let naive = NaiveTrie::new(&entries);
        let multiproof =
            SparseTrie::new(naive.root).multiproof(&keys, &naive.store()).unwrap();
        let mut proofs: Vec<_> =
            keys.iter().flat_map(|key| proof_of(&entries, key).1).collect();
        proofs.sort();
        proofs.dedup();
        assert_eq!(multiproof, proofs);

        let source = by_hash(multiproof);
        let mut trie = SparseTrie::new(naive.root);
        for key in &keys {
            let value = entries.get(key).map(Vec::as_slice);
            assert_eq!(trie.get(key, &source), Ok(value));
        }
        assert_eq!(trie.revealed(), proofs);
    }

    #[test]
    fn a_changed_trie_proves_what_it_now_holds(
        entries in prop::collection::btree_map(deep_key(), value(), 0..20),
        inserted in prop::collection::btree_map(deep_key(), value(), 1..10),
    ) {
        let naive = NaiveTrie::new(&entries);
        let store = naive.store();
        let mut trie = SparseTrie::new(naive.root);
        for (key, value) in &inserted {
            trie.insert(key, value.clone(), &store).unwrap();
        }
        let all: Entries = entries.clone().into_iter().chain(inserted.clone()).collect();
        for (key, value) in &all {
            let proof = trie.proof(key, &store).unwrap();
            assert_eq!(verify_proof(trie.root(), key, &proof), Ok(Some(value.clone())));
            assert_eq!(proof, proof_of(&all, key).1);
        }
    }
}

#[test]
fn the_proof_of_a_trie_without_entries_is_empty() {
    assert_eq!(proof_of(&Entries::new(), &[1]), (EMPTY_ROOT_HASH, vec![]));
    assert_eq!(verify_proof(EMPTY_ROOT_HASH, &[1], &[]), Ok(None));
    let unused = [Bytes::from_static(&[0x80])];
    let result = verify_proof(EMPTY_ROOT_HASH, &[1], &unused);
    assert_eq!(result, Err(Error::ProofUnused { count: 1 }));
}

#[test]
fn an_error_says_what_is_wrong_with_a_proof() {
    let keys = [[0x00; 32], [0x10; 32], [0x11; 32]];
    let entries: Entries = keys.iter().map(|key| (key.to_vec(), key.to_vec())).collect();
    let (root, proof) = proof_of(&entries, &keys[1]);
    assert_eq!(proof.len(), 3);

    let missing = Error::MissingNode { hash: keccak256(&proof[2]) };
    assert_eq!(verify_proof(root, &keys[1], &proof[..2]), Err(missing));
    let mismatch = Error::ProofMismatch { expected: root, got: keccak256(&proof[1]) };
    assert_eq!(verify_proof(root, &keys[1], &proof[1..]), Err(mismatch));
    // The proof of another key ends early, or goes on too long.
    assert_eq!(verify_proof(root, &[0x20; 32], &proof), Err(Error::ProofUnused { count: 2 }));
}
