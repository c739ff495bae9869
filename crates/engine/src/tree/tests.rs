use super::*;
use alloy_consensus::{BlockBody, Header};

fn hash(byte: u8) -> B256 {
    B256::repeat_byte(byte)
}

fn record(number: u64, parent_hash: B256, tag: u8) -> BlockRecord {
    let header = Header { number, parent_hash, extra_data: vec![tag].into(), ..Header::default() };
    BlockRecord {
        block: SealedBlock::new(alloy_consensus::Block { header, body: BlockBody::default() }),
        senders: Vec::new(),
        requests: Requests::default(),
        block_access_list: None,
    }
}

/// A tree whose first block has number 5, and in which each further block stands on the one with
/// the index given. Returns the hashes, the first block's first.
fn tree(parents: &[usize]) -> (BlockTree, Vec<B256>) {
    let first = record(5, hash(1), 0);
    let mut hashes = vec![first.block.hash()];
    let mut tree = BlockTree::new(first);
    for (index, parent) in parents.iter().enumerate() {
        let number = tree.block(&hashes[*parent]).unwrap().block.header.number + 1;
        let record = record(number, hashes[*parent], index as u8 + 1);
        hashes.push(record.block.hash());
        tree.insert(record);
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
                let got = tree.is_ancestor(&hashes[ancestor], &hashes[descendant]);
                assert_eq!(got, expected, "{ancestor} of {descendant}, head {head}");
            }
        }
    }
    assert!(!tree.is_ancestor(&hash(9), &hashes[1]));
    assert!(!tree.is_ancestor(&hashes[1], &hash(9)));
}

#[test]
fn the_canonical_chain_is_the_line_of_the_head() {
    let (mut tree, hashes) = tree(&PARENTS);
    for from in 0..hashes.len() {
        for to in 0..hashes.len() {
            tree.set_head(hashes[from]).unwrap();
            tree.set_head(hashes[to]).unwrap();
            assert_eq!(tree.heads.head, hashes[to]);
            let mut line = line(to);
            line.reverse();
            for (number, index) in (5..).zip(&line) {
                assert_eq!(tree.canonical_hash(number), Some(hashes[*index]));
            }
            assert_eq!(tree.canonical_hash(4), None);
            assert_eq!(tree.canonical_hash(5 + line.len() as u64), None);
            for (index, hash) in hashes.iter().enumerate() {
                assert_eq!(tree.is_canonical(tree.block(hash).unwrap()), line.contains(&index));
            }
        }
    }
}

#[test]
fn an_unknown_head_changes_nothing() {
    let (mut tree, hashes) = tree(&PARENTS);
    tree.set_head(hashes[4]).unwrap();
    assert!(matches!(tree.set_head(hash(9)), Err(Error::UnknownBlock(got)) if got == hash(9)));
    assert_eq!(tree.heads.head, hashes[4]);
    assert_eq!(tree.canonical_hash(9), Some(hashes[4]));
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

fn witness(bytes: usize) -> Arc<Witness> {
    Arc::new(Witness { state: vec![vec![0; bytes].into()], ..Witness::default() })
}

#[test]
fn witnesses_are_kept_within_the_budget_newest_first() {
    let third = limits::WITNESS_BYTES / 3;
    let mut witnesses = Witnesses::default();
    let kept = |witnesses: &Witnesses| {
        let kept: Vec<_> = (0..9).filter(|b| witnesses.by_hash.contains_key(&hash(*b))).collect();
        let bytes: usize = witnesses.by_hash.values().map(|(_, bytes)| bytes).sum();
        assert_eq!((witnesses.order.len(), witnesses.bytes), (kept.len(), bytes));
        kept
    };
    for byte in 0..3 {
        witnesses.insert(hash(byte), witness(third));
    }
    assert_eq!(kept(&witnesses), [0, 1, 2]);
    // The same witness again counts once.
    witnesses.insert(hash(0), witness(third));
    assert_eq!(kept(&witnesses), [0, 1, 2]);
    witnesses.insert(hash(3), witness(third));
    assert_eq!(kept(&witnesses), [1, 2, 3]);
    // The newest stays, even when it is over the budget by itself.
    witnesses.insert(hash(4), witness(limits::WITNESS_BYTES + 1));
    assert_eq!(kept(&witnesses), [4]);
    witnesses.insert(hash(5), witness(1));
    assert_eq!(kept(&witnesses), [5]);
}
