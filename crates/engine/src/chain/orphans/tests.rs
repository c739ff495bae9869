use super::*;
use execution::Block;
use std::time::Duration;

/// A block with this number, on a parent, with so many extra bytes.
fn orphan(number: u64, parent_hash: B256, extra_bytes: usize) -> SealedBlock {
    let mut block = Block::default();
    (block.header.number, block.header.parent_hash) = (number, parent_hash);
    block.header.extra_data = vec![0; extra_bytes].into();
    SealedBlock::new(block)
}

#[test]
fn the_newest_are_kept_within_a_count_and_bytes() {
    for (extra_bytes, most) in [(0, ORPHANS), (1 << 20, ORPHAN_BYTES / (2 << 20))] {
        let mut orphans = Orphans::default();
        let mut parent = B256::ZERO;
        for number in 1..=2 * ORPHANS as u64 {
            let next = orphan(number, parent, extra_bytes);
            parent = next.hash();
            orphans.insert(next);
            assert!(orphans.count() <= most && orphans.bytes <= ORPHAN_BYTES);
            assert_eq!(orphans.highest(), Some(number));
        }
        assert!(orphans.count() + 2 > most, "{}", orphans.count());
        while let Some(hash) = orphans.order.front().copied() {
            orphans.take(&hash).expect("it is kept");
        }
        assert_eq!((orphans.bytes, orphans.by_hash.len()), (0, 0));
    }
    // One that is longer than all may be is kept alone.
    let mut orphans = Orphans::default();
    orphans.insert(orphan(1, B256::ZERO, ORPHAN_BYTES));
    assert_eq!(orphans.count(), 1);
}

#[test]
fn the_missing_block_is_the_first_before_those_that_are_kept() {
    let mut orphans = Orphans::default();
    let first = orphan(7, B256::repeat_byte(6), 0);
    let second = orphan(8, first.hash(), 0);
    let third = orphan(9, second.hash(), 0);
    assert_eq!(orphans.missing_before(&third), (8, second.hash()));
    let (first_hash, second_hash) = (first.hash(), second.hash());
    orphans.insert(second);
    assert_eq!(orphans.missing_before(&third), (7, first_hash));
    orphans.insert(first);
    assert_eq!(orphans.missing_before(&third), (6, B256::repeat_byte(6)));
    assert_eq!(orphans.children_of(&first_hash), [second_hash]);
    assert!(orphans.children_of(&third.hash()).is_empty());
}

#[test]
fn a_gap_is_said_at_once_and_then_seldom() {
    let mut orphans = Orphans::default();
    let start = Instant::now();
    let first = orphan(7, B256::repeat_byte(6), 0);
    let hash = first.hash();
    orphans.insert(first);
    let mut at = |seconds| orphans.is_log_due(start + Duration::from_secs(seconds));
    assert_eq!([0, 1, 59, 60, 61, 200].map(&mut at), [true, false, false, true, false, true]);
    orphans.take(&hash);
    assert!(orphans.is_log_due(start + Duration::from_secs(201)), "another gap");
}
