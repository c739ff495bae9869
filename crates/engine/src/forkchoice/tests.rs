//! The events that listeners are told of.

use super::*;
use crate::chain::events::BuildStep;
use crate::chain::figures::{BlockFigures, StateReads, StateWrites};
use crate::chain::persisted::PersistedBlock;
use crate::chain::timings::Timings;
use crate::samples::*;
use crate::world;
use alloy_rpc_types_engine::PayloadAttributes;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// All events from now on, and the head before them.
fn listen(engine: &Engine) -> (Arc<Mutex<Vec<ChainEvent>>>, B256) {
    let events = Arc::new(Mutex::new(Vec::new()));
    let told = events.clone();
    let head = engine.on_event(move |event| told.lock().unwrap().push(event.clone())).head;
    (events, head)
}

fn is_change(event: &ChainEvent) -> bool {
    use ChainEvent::{Behind, Chosen, Invalid, Valid};
    matches!(event, Valid(_) | Invalid(..) | Chosen(_) | Behind)
}

#[test]
fn listeners_are_told_of_each_change_in_order() {
    let engine = engine();
    let (events, genesis) = listen(&engine);
    let check = |expected: &[ChainEvent]| {
        let mut events = std::mem::take(&mut *events.lock().unwrap());
        events.retain(is_change);
        assert_eq!(events, expected);
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

#[test]
fn listeners_are_told_what_a_block_cost_and_what_it_read_and_wrote() {
    // Before Cancun no system contract is called.
    let engine = engine_of(world::config("shanghai"));
    let (events, genesis) = listen(&engine);
    let built = build(&engine, genesis, vec![count(&engine, genesis)], 0).block;
    let header = built.header.clone();
    engine.new_payload_with_witness(payload(&built, None)).unwrap();
    let told = std::mem::take(&mut *events.lock().unwrap());
    let [ChainEvent::Valid(hash), ChainEvent::Ran(figures)] = &told[..] else { panic!("{told:?}") };
    let BlockFigures { timings, total, waited, unpersisted_bytes, .. } = *figures;
    // The sender, the contract and the fee recipient.
    let writes = StateWrites { accounts: 3, slots: 1, ..StateWrites::default() };
    let expected = BlockFigures {
        hash: *hash,
        number: 1,
        timestamp: header.timestamp,
        gas_used: header.gas_used,
        transactions: 1,
        reads: StateReads { accounts: 3, slots: 1, codes: 1, code_bytes: 3, uncached_codes: 0 },
        writes,
        timings,
        total,
        waited,
        is_listed: false,
        unpersisted_bytes,
    };
    assert_eq!((*hash, figures), (built.hash(), &expected));
    let Timings { recovery, parent, execution, root, witness, journal, .. } = timings;
    let parts = recovery + parent + execution + root + witness + journal;
    assert!(!execution.is_zero() && !root.is_zero() && !witness.is_zero(), "{timings:?}");
    assert!(waited + parts <= total, "{figures:?}");
    // A block that is known runs no more.
    engine.new_payload(payload(&built, None)).unwrap();
    assert_eq!(*events.lock().unwrap(), []);
}

#[test]
fn listeners_are_told_of_invalid_payloads_fork_choices_builds_and_persistence() {
    let engine = engine();
    let (events, genesis) = listen(&engine);
    // Another thread persists blocks, and tells of it at any time.
    let take = || -> Vec<ChainEvent> {
        let told = std::mem::take(&mut *events.lock().unwrap());
        told.into_iter().filter(|event| !matches!(event, ChainEvent::Persisted(_))).collect()
    };
    let only = |told: Vec<ChainEvent>| match <[ChainEvent; 1]>::try_from(told) {
        Ok([event]) => event,
        Err(told) => panic!("{told:?}"),
    };
    let answer = |event| match event {
        ChainEvent::Forkchoice(ForkchoiceFigures { head, answer, took }) if !took.is_zero() => {
            (head, answer)
        }
        other => panic!("{other:?}"),
    };
    // A wrong root, its child, and a hash that names other bytes.
    let good = build(&engine, genesis, vec![count(&engine, genesis)], 0).block;
    let bad = changed(&good, |block| block.header.state_root = B256::ZERO);
    let child = changed(&good, |block| block.header.parent_hash = bad.hash());
    for block in [&bad, &child] {
        engine.new_block(block.clone()).unwrap();
        let ChainEvent::Invalid(hash, reason) = only(take()) else { panic!("another event") };
        assert!(hash == block.hash() && reason.contains("state root"), "{reason}");
        engine.new_block(block.clone()).unwrap();
        assert_eq!(take(), []);
    }
    let mut misnamed = payload(&good, None);
    misnamed.execution.as_v1_mut().block_hash = B256::repeat_byte(9);
    engine.new_payload(misnamed).unwrap();
    assert!(matches!(only(take()), ChainEvent::Invalid(hash, _) if hash[0] == 9));
    // Fork choices.
    assert_eq!(choose(&engine, genesis), Verdict::Valid);
    assert_eq!(answer(only(take())), (genesis, ForkchoiceAnswer::Applied));
    choose(&engine, bad.hash());
    assert_eq!(answer(only(take())), (bad.hash(), ForkchoiceAnswer::Invalid));
    let unknown = B256::repeat_byte(7);
    choose(&engine, unknown);
    assert_eq!(answer(take().pop().unwrap()), (unknown, ForkchoiceAnswer::Syncing));
    engine.forkchoice_updated(heads(genesis, unknown, B256::ZERO), None).unwrap_err();
    assert_eq!(answer(only(take())), (genesis, ForkchoiceAnswer::Failed));
    // Builds.
    let id = choose_and_build(&engine, genesis).unwrap().payload_id.unwrap();
    engine.built(id).unwrap().unwrap();
    // The payload can be had before the listeners are told.
    let is_built =
        |event: &ChainEvent| matches!(event, ChainEvent::Build(BuildStep::Built { number: 1, .. }));
    let (begun, mut told) = (Instant::now(), Vec::new());
    while !told.iter().any(is_built) {
        told.extend(take());
        assert!(begun.elapsed() < Duration::from_secs(60), "{told:?}");
        std::thread::yield_now();
    }
    told.retain(|event| !is_built(event));
    assert_eq!(told[0], ChainEvent::Build(BuildStep::Begun { parent: genesis }));
    assert_eq!(answer(only(told.split_off(1))), (genesis, ForkchoiceAnswer::Applied));
    let attributes = PayloadAttributes { timestamp: 0, ..attributes(&engine, genesis) };
    let request = BuildRequest { attributes, version: 3, with_witness: false };
    let state = heads(genesis, B256::ZERO, B256::ZERO);
    engine.forkchoice_updated(state, Some(request)).unwrap_err();
    let told = take();
    let ChainEvent::Build(BuildStep::Failed(reason)) = &told[0] else { panic!("{told:?}") };
    assert!(reason.contains("timestamp 0"), "{reason}");
    assert_eq!(answer(told[1].clone()), (genesis, ForkchoiceAnswer::Applied));
    // Persistence.
    let hash = extend(&engine, genesis, 1);
    choose(&engine, hash);
    engine.persist().unwrap();
    let persisted = ChainEvent::Persisted(PersistedBlock { number: 1, hash });
    assert!(events.lock().unwrap().contains(&persisted));
}

#[test]
fn the_head_moves_with_a_gap_along_its_branch_or_to_the_one_that_was_chosen() {
    let maker = engine();
    let genesis = maker.heads().genesis;
    let [old, new] = [(0, 3), (1, 4)].map(|(tag, count)| branch(&maker, genesis, tag, count));
    let engine = engine();
    let add = |hash: &B256| {
        let block = maker.block(*hash).unwrap().unwrap().block.clone();
        assert_eq!(engine.new_block(block), Ok(Verdict::Valid));
    };
    old.iter().for_each(add);
    let target = new[3];
    // Along the branch of the head.
    assert_eq!(engine.advance_head(old[1], target), Ok(true));
    assert_eq!(engine.advance_head(old[2], target), Ok(true));
    assert_eq!(engine.advance_head(old[1], target), Ok(false), "it is before the head");
    add(&new[0]);
    assert_eq!(engine.advance_head(new[0], target), Ok(false), "nobody chose the branch");
    assert!(matches!(choose(&engine, target), Verdict::Syncing(_)));
    assert_eq!(engine.advance_head(new[0], new[2]), Ok(false), "the head waits for another block");
    assert_eq!(engine.advance_head(new[0], target), Ok(true));
    assert_eq!(engine.heads().head, new[0]);
    let unknown = engine.progress().unwrap().and_then(|progress| progress.unknown_head);
    assert_eq!(unknown, Some(target), "it is still waited for");
    assert_eq!(engine.choose_awaited(), Ok(false));
    new[1..].iter().for_each(add);
    assert_eq!(engine.choose_awaited(), Ok(true));
    assert_eq!(engine.heads().head, target);
    assert_eq!(engine.progress(), Ok(None));
}
