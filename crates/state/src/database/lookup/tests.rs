//! Stores that a version of the program without the tables has written: they have none, or old
//! ones.

use crate::index::put_state;
use crate::{Database, Heads, MemoryDisk, NewBlock, NewCanonical, Options};
use alloy_primitives::{B256, Bloom, keccak256};

const SMALL: Options = Options {
    cache_bytes: 64 << 10,
    code_cache_bytes: 64 << 10,
    index_cache_bytes: 64 << 10,
    segment_bytes: 64 << 10,
    witness_segment_bytes: 64 << 10,
    journal: crate::JournalMode::Off,
    journal_file_bytes: 64 << 10,
};

fn hash(number: u64) -> B256 {
    keccak256(number.to_le_bytes())
}

/// A block with one transaction, which has the same hash.
fn canonical(number: u64) -> NewCanonical {
    NewCanonical::new(hash(number), Bloom::repeat_byte(number as u8), [hash(number)])
}

fn add(store: &Database, number: u64) {
    let parent_hash = number.checked_sub(1).map(hash).unwrap_or_default();
    let block = NewBlock { hash: hash(number), number, parent_hash, ..NewBlock::default() };
    store.add(block).expect("memory");
    let heads = Heads { genesis: Some(hash(0)), head: Some(hash(number)), ..Heads::default() };
    store.set_canonical([(number, Some(canonical(number)))], heads).expect("memory");
}

fn with_blocks(count: u64) -> Database {
    let store = Database::open(MemoryDisk::new(), &SMALL).expect("memory");
    (0..count).for_each(|number| add(&store, number));
    store.persist().expect("memory");
    store
}

/// Which of these blocks are found by their bloom; `None` when some cannot be.
fn found(store: &Database, from: u64, to: u64) -> Option<Vec<u64>> {
    let any = store.blocks_by_bloom(from..=to, &|_| true).expect("memory")?;
    for (number, block) in &any {
        assert_eq!(*block, hash(*number));
        let one = Bloom::repeat_byte(*number as u8);
        let only = store.blocks_by_bloom(from..=to, &|bloom| *bloom == one).expect("memory");
        assert_eq!(only, Some(vec![(*number, *block)]));
        assert_eq!(store.transaction_blocks(block).expect("memory"), [*number]);
    }
    Some(any.into_iter().map(|(number, _)| number).collect())
}

#[test]
fn a_store_without_the_tables_finds_new_blocks_and_says_which_it_cannot() {
    let store = with_blocks(10);
    assert_eq!(found(&store, 0, 20), Some((0..10).collect()));
    store.drop_lookup().expect("memory");
    assert_eq!(store.indexed_from().expect("memory"), None);
    assert_eq!(found(&store, 9, 9), None);
    assert!(store.transaction_blocks(&hash(3)).expect("memory").is_empty());
    add(&store, 10);
    assert_eq!(found(&store, 10, 10), Some(vec![10]), "it waits");
    assert_eq!(found(&store, 9, 10), None);
    store.persist().expect("memory");
    assert_eq!(store.indexed_from().expect("memory"), Some(10));
    assert_eq!(found(&store, 10, 20), Some(vec![10]));
    assert_eq!(found(&store, 9, 20), None);
    assert_eq!(store.verify(&mut |_| ()).expect("memory").damaged, 0);
}

#[test]
fn old_blocks_are_added_in_steps() {
    let store = with_blocks(10);
    store.drop_lookup().expect("memory");
    for (first, next) in [(7, 10), (2, 7), (0, 2)] {
        let blocks: Vec<_> = (first..next).rev().map(|at| (at, canonical(at))).collect();
        store.index_below(&blocks).expect("memory");
        assert_eq!(store.indexed_from().expect("memory"), Some(first));
        assert_eq!(found(&store, first, 9), Some((first..10).collect()));
    }
    add(&store, 10);
    store.persist().expect("memory");
    assert_eq!(found(&store, 0, 10), Some((0..=10).collect()));
}

#[test]
#[should_panic(expected = "without a gap")]
fn old_blocks_with_a_gap_are_a_fault_of_the_caller() {
    let store = with_blocks(3);
    store.drop_lookup().expect("memory");
    let _ = store.index_below(&[(1, canonical(1))]);
}

/// It moves the head and leaves the number that says where the tables begin.
#[test]
fn what_another_version_has_written_last_is_not_taken_for_whole() {
    let store = with_blocks(5);
    let mut state = store.persisted().clone();
    state.sequence += 1;
    let heads = store.heads();
    let written = store.index.write(|transaction| put_state(transaction, &state, &heads.into()));
    written.expect("memory");
    assert_eq!(store.indexed_from().expect("memory"), None);
    assert_eq!(found(&store, 4, 4), None);
}

#[test]
fn what_is_dropped_is_not_found() {
    let store = with_blocks(10);
    store.unwind(6, &mut |_| ()).expect("memory");
    assert_eq!(found(&store, 0, 20), Some((0..=6).collect()));
    assert_eq!(store.indexed_from().expect("memory"), Some(0));
    // The entry of its transaction stays.
    assert_eq!(store.transaction_blocks(&hash(8)).expect("memory"), [8]);
    (7..=8).for_each(|number| add(&store, number));
    store.persist().expect("memory");
    assert_eq!(found(&store, 0, 20), Some((0..=8).collect()));
    assert_eq!(store.verify(&mut |_| ()).expect("memory").damaged, 0);
}
