use super::*;
use alloy_primitives::{Bytes, U256};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

fn some(rng: &mut StdRng) -> NodeList {
    let count = rng.random_range(0..200);
    // As long as nodes are, none at all, and longer than a piece.
    let len = |rng: &mut StdRng| match rng.random_range(0..100) {
        0 => 0,
        1 => PIECE_BYTES + rng.random_range(0..2),
        _ => rng.random_range(1..600),
    };
    let node = |_| Bytes::from_iter((0..len(rng)).map(|_| rng.random::<u8>()));
    (0..count).map(node).collect()
}

#[test]
fn the_newest_are_there_as_they_were_and_no_more_than_the_limit() {
    let rng = &mut StdRng::seed_from_u64(testing::seed());
    let recent = RecentWitnesses::new(1 << 20);
    let mut kept = Vec::new();
    for number in 0..300u64 {
        let (hash, listed) = (B256::from(U256::from(number)), some(rng));
        recent.insert(hash, listed.compact(PIECE_BYTES));
        kept.push((hash, listed));
    }
    let there: Vec<_> = kept.iter().map(|(hash, _)| recent.nodes(hash)).collect();
    let first = there.iter().position(Option::is_some).unwrap();
    assert!(first > 0 && there[first..].iter().all(Option::is_some));
    let mut there_bytes = 0;
    for ((_, listed), nodes) in kept[first..].iter().zip(there[first..].iter().flatten()) {
        assert_eq!(**nodes, *listed);
        there_bytes += bytes_of(nodes);
    }
    assert_eq!(there_bytes, recent.ring().bytes);
    let next_bytes = bytes_of(&kept[first - 1].1.compact(PIECE_BYTES));
    assert!(there_bytes <= 1 << 20 && there_bytes + next_bytes > 1 << 20);
}

#[test]
fn a_witness_is_not_counted_twice_and_one_that_is_too_large_evicts_nothing() {
    let recent = RecentWitnesses::new(1_000);
    let nodes = |len: usize| NodeList::from(vec![Bytes::from(vec![7; len])]);
    let (one, other) = (B256::with_last_byte(1), B256::with_last_byte(2));
    recent.insert(one, nodes(100));
    let bytes = recent.ring().bytes;
    recent.insert(one, nodes(100));
    recent.insert(other, nodes(2_000));
    assert_eq!(recent.ring().bytes, bytes);
    assert!(recent.nodes(&one).is_some() && recent.nodes(&other).is_none());
    assert_eq!(recent.ring().order.len(), 1);
}

#[test]
fn a_witness_that_others_share_is_not_waited_for() {
    let recent = RecentWitnesses::new(0);
    let witness =
        Witness { state: vec![Bytes::new()].into(), codes: Vec::new(), headers: Vec::new() };
    let assembled = Assembled { witness: Arc::new(witness), code_hashes: Arc::default() };
    let (one, other) = (B256::with_last_byte(1), B256::with_last_byte(2));
    let first = RecentWitness::new(one, Weak::new(), Vec::new());
    assert!(recent.begin(first.clone()).is_none() && recent.assembled(&one).is_none());
    let got = first.get_or_assemble(|| Ok::<_, ()>(Some(assembled.clone()))).unwrap().unwrap();
    assert!(Arc::ptr_eq(&got.witness, &recent.assembled(&one).unwrap().witness));
    let held = first.assembled.lock().unwrap();
    assert!(recent.assembled(&one).is_none(), "it waits for nobody");
    let before = recent.begin(RecentWitness::new(other, Weak::new(), Vec::new())).unwrap();
    recent.recycle(before);
    drop(held);
    assert!(recent.newest(&one).is_none() && recent.newest(&other).is_some());
}
