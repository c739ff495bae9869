use super::*;
use crate::chain::sealed::Seal;
use alloy_consensus::{BlockBody, Header};
use alloy_eips::eip7685::Requests;
use alloy_primitives::U256;
use execution::SealedBlock;
use state::MemoryDisk;

fn hash(byte: u8) -> B256 {
    B256::repeat_byte(byte)
}

fn record(number: u64, parent_hash: B256, tag: u8) -> BlockRecord {
    let header = Header { number, parent_hash, extra_data: vec![tag].into(), ..Header::default() };
    BlockRecord {
        block: SealedBlock::new(alloy_consensus::Block { header, body: BlockBody::default() }),
        senders: Vec::new(),
        receipts: Vec::new(),
        requests: Requests::default(),
        block_access_list: None,
        total_difficulty: U256::ZERO,
        read_set: None,
        seal: Seal::default(),
    }
}

/// A tree whose first block has number 5, and in which each further block stands on the one with
/// the index given. Returns the hashes, the first block's first.
fn tree(parents: &[usize]) -> (BlockTree, Vec<B256>) {
    let database = Database::open(MemoryDisk::new(), &state::Options::default()).unwrap();
    let first = record(5, hash(1), 0);
    let mut hashes = vec![first.hash()];
    let heads = Heads { genesis: hashes[0], head: hashes[0], safe: None, finalized: None };
    let mut tree = BlockTree::new(Arc::new(database), heads).unwrap();
    tree.canonical.insert(5, Some(hashes[0]));
    assert!(tree.insert(Arc::new(first)).is_empty());
    for (index, parent) in parents.iter().enumerate() {
        let number = tree.recent(&hashes[*parent]).unwrap().number() + 1;
        let record = record(number, hashes[*parent], index as u8 + 1);
        hashes.push(record.hash());
        assert!(tree.insert(Arc::new(record)).is_empty());
    }
    (tree, hashes)
}

/// Two branches on the second block: 2, 3, 4 and 5, 6; and 7 on the first.
const PARENTS: [usize; 7] = [0, 1, 2, 3, 1, 5, 0];

/// The blocks from one to the first, by their indices, told from the parents alone.
fn line(mut index: usize) -> Vec<usize> {
    let mut line = vec![index];
    while index > 0 {
        index = PARENTS[index - 1];
        line.push(index);
    }
    line
}

#[test]
fn ancestors_are_found_whatever_the_head_is() {
    let (mut tree, hashes) = tree(&PARENTS);
    for head in 0..hashes.len() {
        tree.set_head(hashes[head]).unwrap();
        for descendant in 0..hashes.len() {
            for ancestor in 0..hashes.len() {
                let expected = line(descendant).contains(&ancestor);
                let got = tree.is_ancestor(&hashes[ancestor], &hashes[descendant]).unwrap();
                assert_eq!(got, expected, "{ancestor} of {descendant}, head {head}");
            }
        }
    }
    assert!(!tree.is_ancestor(&hash(9), &hashes[1]).unwrap());
    assert!(!tree.is_ancestor(&hashes[1], &hash(9)).unwrap());
}

#[test]
fn the_canonical_chain_is_the_line_of_the_head() {
    let (mut tree, hashes) = tree(&PARENTS);
    for from in 0..hashes.len() {
        for to in 0..hashes.len() {
            tree.set_head(hashes[from]).unwrap();
            let Branching { left, joined, .. } = tree.set_head(hashes[to]).unwrap();
            assert_eq!(tree.heads.head, hashes[to]);
            // From newest to oldest.
            let only = |one, other| {
                let other = line(other);
                let only = line(one).into_iter().filter(move |index| !other.contains(index));
                only.map(|index| hashes[index]).collect::<Vec<_>>()
            };
            assert_eq!(left, only(from, to), "from {from} to {to}");
            assert!(joined.iter().rev().eq(&only(to, from)), "from {from} to {to}");
            let mut line = line(to);
            line.reverse();
            for (number, index) in (5..).zip(&line) {
                assert_eq!(tree.canonical_hash(number).unwrap(), Some(hashes[*index]));
            }
            assert_eq!(tree.canonical_hash(4).unwrap(), None);
            assert_eq!(tree.canonical_hash(5 + line.len() as u64).unwrap(), None);
        }
    }
}

/// The tree's database has none of its blocks, so what it answers it has in memory.
#[test]
fn what_the_database_was_told_is_still_in_memory() {
    let (mut tree, hashes) = tree(&PARENTS);
    for head in 0..hashes.len() {
        tree.set_head(hashes[head]).unwrap();
        let changes = tree.canonical_changes().unwrap();
        tree.set_head(hashes[7]).unwrap();
        tree.forget_changes(&changes);
        tree.set_head(hashes[head]).unwrap();
        tree.forget_changes(&tree.canonical_changes().unwrap());
        assert!(tree.canonical_changes().is_none() && tree.canonical.is_empty());
        let canonical: Vec<_> =
            (5..10).map_while(|number| tree.canonical_hash(number).unwrap()).collect();
        let line: Vec<_> = line(head).iter().rev().map(|index| hashes[*index]).collect();
        assert_eq!(canonical, line);
    }
}

#[test]
fn no_block_that_is_there_is_new() {
    let (mut tree, mut hashes) = tree(&[]);
    let mut links = Vec::new();
    for index in 1..limits::LINKS + 100 {
        // On one of the newest twenty.
        let parent = hashes[index - 1 - (7 * index % 20).min(index - 1)];
        let record = record(tree.recent(&parent).unwrap().number() + 1, parent, index as u8);
        links.push((record.hash(), parent));
        hashes.push(record.hash());
        assert!(tree.add_validated(Arc::new(record)).is_empty());
        assert!(links.iter().all(|(hash, parent)| !tree.is_new(hash, parent)));
    }
    let children_are_new: Vec<_> = hashes.iter().map(|on| tree.is_new(&hash(9), on)).collect();
    // The first block was not added, and then come 99 that others have followed since.
    assert_eq!(children_are_new, [[false; 100].as_slice(), &[true; limits::LINKS]].concat());
}

#[test]
fn a_bounded_map_forgets_its_oldest_entries() {
    let mut map = Bounded::new(3);
    for byte in 0..3 {
        map.insert(hash(byte), byte);
    }
    // A new value for an old key makes it no younger.
    map.insert(hash(0), 10);
    assert_eq!([0, 1, 2].map(|byte| map.get(&hash(byte)).copied()), [Some(10), Some(1), Some(2)]);
    map.insert(hash(3), 3);
    let left = [0, 1, 2, 3].map(|byte| map.get(&hash(byte)).copied());
    assert_eq!(left, [None, Some(1), Some(2), Some(3)]);
}

#[test]
fn the_newest_blocks_are_kept_and_all_that_are_not_sealed() {
    let mut recent = Recent::default();
    let kept = |recent: &Recent| recent.by_hash.len();
    let open = Arc::new(record(1, hash(1), 1));
    let bytes = open.bytes();
    assert!(recent.insert(open.clone()).is_empty());
    recent.bytes += limits::RECENT_BYTES;
    assert!(recent.insert(Arc::new(record(2, hash(2), 2))).is_empty());
    assert_eq!(kept(&recent), 2, "the oldest is not sealed");
    open.seal.keep(Err(Error::Pruned(open.hash())));
    let left = recent.insert(Arc::new(record(3, hash(3), 3)));
    assert!(left.len() == 1 && Arc::ptr_eq(&left[0], &open));
    assert_eq!(kept(&recent), 2);
    assert!(!recent.by_hash.contains_key(&open.hash()));
    assert_eq!(recent.bytes, limits::RECENT_BYTES + 2 * bytes);
}
