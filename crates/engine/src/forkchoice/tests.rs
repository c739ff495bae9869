//! The events that listeners are told of.

use super::*;
use crate::samples::*;
use std::sync::{Arc, Mutex};

#[test]
fn listeners_are_told_of_each_change_in_order() {
    let engine = engine();
    let events = Arc::new(Mutex::new(Vec::new()));
    let told = events.clone();
    let genesis = engine.on_event(move |event| told.lock().unwrap().push(event.clone())).head;
    let check = |expected: &[ChainEvent]| {
        assert_eq!(std::mem::take(&mut *events.lock().unwrap()), expected);
    };
    let first = branch(&engine, genesis, 0, 3);
    check(&[0, 1, 2].map(|index| ChainEvent::Valid(first[index])));
    let heads = |head, safe, finalized| Heads { genesis, head, safe, finalized };
    let chosen = |before, now, left: &[B256], joined: &[B256]| {
        let (left, joined) = (left.to_vec(), joined.to_vec());
        ChainEvent::Chosen(HeadChange { before, now, left, joined })
    };
    let before = heads(genesis, None, None);
    let now = heads(first[2], None, None);
    assert_eq!(choose(&engine, first[2]), Verdict::Valid);
    check(&[chosen(before, now, &[], &first)]);
    // The same again is no change, and neither is a block that is known.
    assert_eq!(choose(&engine, first[2]), Verdict::Valid);
    let known = engine.block(first[1]).unwrap().unwrap().block.clone();
    assert_eq!(engine.new_block(known).unwrap(), Verdict::Valid);
    check(&[]);
    // Another branch from the first block on.
    let second = branch(&engine, first[0], 1, 1);
    check(&[ChainEvent::Valid(second[0])]);
    assert_eq!(choose(&engine, second[0]), Verdict::Valid);
    let (before, now) = (now, heads(second[0], None, None));
    check(&[chosen(before, now, &[first[2], first[1]], &second)]);
    // Back to an ancestor.
    assert_eq!(choose(&engine, first[0]), Verdict::Valid);
    let (before, now) = (now, heads(first[0], None, None));
    check(&[chosen(before, now, &second, &[])]);
    // A finalized block alone, and a head that is not known.
    let state = ForkchoiceState {
        head_block_hash: first[0],
        safe_block_hash: B256::ZERO,
        finalized_block_hash: first[0],
    };
    engine.forkchoice_updated(state, None).unwrap();
    let (before, now) = (now, heads(first[0], None, Some(first[0])));
    check(&[chosen(before, now, &[], &[])]);
    assert!(matches!(choose(&engine, B256::repeat_byte(7)), Verdict::Syncing(_)));
    check(&[ChainEvent::Behind]);
}
