//! The public vectors of `ethereum/tests`.

use crate::{Error, SparseTrie, by_hash};
use alloy_primitives::{B256, Bytes, hex, keccak256, map::B256Map};
use serde_json::Value;
use std::{env, fs, path::PathBuf};

/// The folder with the vectors. Without one a test passes by saying what it needs, but not
/// where all of CI has to run.
fn fixtures() -> Option<PathBuf> {
    if let Some(folder) = env::var_os("DEPONENT_FIXTURES") {
        return Some(PathBuf::from(folder).join("ethereum-tests"));
    }
    let advice = "set DEPONENT_FIXTURES=DIR, with the TrieTests and RLPTests folders of \
                  https://github.com/ethereum/tests in DIR/ethereum-tests";
    assert!(env::var_os("CI").is_none(), "{advice}");
    eprintln!("skipped: {advice}");
    None
}

fn read(path: &PathBuf) -> serde_json::Map<String, Value> {
    let json = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let Value::Object(tests) = serde_json::from_slice(&json).unwrap() else {
        panic!("{} is not an object", path.display())
    };
    assert!(!tests.is_empty());
    tests
}

fn bytes(text: &str) -> Vec<u8> {
    match text.strip_prefix("0x") {
        Some(digits) => hex::decode(digits).unwrap(),
        None => text.as_bytes().to_vec(),
    }
}

/// The operations of a test in the order it gives them; no value removes the key.
fn operations(test: &Value) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
    match &test["in"] {
        Value::Object(entries) => {
            entries.iter().map(|(key, value)| (bytes(key), value.as_str().map(bytes))).collect()
        }
        Value::Array(steps) => steps
            .iter()
            .map(|step| (bytes(step[0].as_str().unwrap()), step[1].as_str().map(bytes)))
            .collect(),
        other => panic!("{other} is no operation"),
    }
}

fn check(name: &str, operations: &[(Vec<u8>, Option<Vec<u8>>)], is_secure: bool, root: B256) {
    let nothing = B256Map::<Bytes>::default();
    let mut trie = SparseTrie::empty();
    for (key, value) in operations {
        let key = if is_secure { keccak256(key).to_vec() } else { key.clone() };
        match value {
            Some(value) => trie.insert(&key, value.clone(), &nothing).unwrap(),
            None => drop(trie.remove(&key, &nothing).unwrap()),
        }
    }
    assert_eq!(trie.root(), root, "{name}");
}

#[test]
fn trie_tests_give_the_published_roots() {
    let Some(folder) = fixtures() else { return };
    for (file, is_secure, is_any_order) in [
        ("trietest", false, false),
        ("trieanyorder", false, true),
        ("trietest_secureTrie", true, false),
        ("trieanyorder_secureTrie", true, true),
        ("hex_encoded_securetrie_test", true, true),
    ] {
        for (name, test) in read(&folder.join(format!("TrieTests/{file}.json"))) {
            let root = test["root"].as_str().unwrap().parse().unwrap();
            let mut operations = operations(&test);
            check(&name, &operations, is_secure, root);
            if is_any_order {
                operations.reverse();
                check(&name, &operations, is_secure, root);
            }
        }
    }
}

#[test]
fn published_invalid_rlp_is_no_node() {
    let Some(folder) = fixtures() else { return };
    for (name, test) in read(&folder.join("RLPTests/invalidRLPTest.json")) {
        let rlp = Bytes::from(hex::decode(test["out"].as_str().unwrap()).unwrap());
        let hash = keccak256(&rlp);
        let result = SparseTrie::new(hash).get(&[0; 32], &by_hash([rlp])).map(drop);
        assert!(matches!(result, Err(Error::MalformedNode { .. })), "{name}: {result:?}");
    }
}
