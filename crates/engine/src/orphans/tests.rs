use super::*;
use crate::samples::*;
use alloy_rpc_types_engine::ForkchoiceState;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};

/// The blocks of a chain that another engine has made, each on the one before.
fn blocks(count: usize) -> Vec<SealedBlock> {
    let maker = engine();
    let hashes = branch(&maker, maker.heads().genesis, 0, count);
    hashes.iter().map(|hash| maker.block(*hash).unwrap().unwrap().block.clone()).collect()
}

fn give(engine: &Engine, block: &SealedBlock) -> Verdict {
    engine.new_payload(payload(block, None)).unwrap()
}

fn missing(block: &SealedBlock) -> Verdict {
    let (number, hash) = (block.header.number, block.hash());
    Verdict::Syncing(Missing::Block { number, hash })
}

#[test]
fn payloads_wait_for_a_missing_block_and_run_when_it_comes() {
    let blocks = blocks(6);
    let engine = engine();
    assert_eq!(engine.progress(), Ok(None));
    assert_eq!(give(&engine, &blocks[0]), Verdict::Valid);
    assert_eq!(choose(&engine, blocks[0].hash()), Verdict::Valid);
    for block in &blocks[2..] {
        assert_eq!(give(&engine, block), missing(&blocks[1]));
        let highest = block.header.number;
        let progress = SyncProgress { starting: 0, current: 1, highest, unknown_head: None };
        assert_eq!(engine.progress(), Ok(Some(progress)));
    }
    // A gap that is filled may end further up.
    for (target, highest) in [(Some(9), 9), (Some(3), 6), (None, 6)] {
        engine.set_gap_target(target);
        let highest_known = engine.progress().unwrap().map(|progress| progress.highest);
        assert_eq!(highest_known, Some(highest));
    }
    let last = blocks[5].hash();
    assert_eq!(choose(&engine, last), Verdict::Syncing(Missing::Head { hash: last }));
    assert_eq!(engine.chosen_head(), Ok((1, blocks[0].hash())));
    assert_eq!(give(&engine, &blocks[1]), Verdict::Valid);
    assert_eq!(engine.orphans().count(), 0);
    // The head stays, until a fork choice finds the block there.
    assert_eq!(engine.chosen_head(), Ok((6, last)));
    assert_eq!(engine.heads().head, blocks[0].hash());
    // The fork choice finds it run, and so does the same payload.
    assert_eq!(choose(&engine, last), Verdict::Valid);
    assert_eq!(engine.progress(), Ok(None));
    assert!(blocks.iter().all(|block| give(&engine, block) == Verdict::Valid));
    let (verdict, witness) = engine.new_payload_with_witness(payload(&blocks[4], None)).unwrap();
    assert!(verdict == Verdict::Valid && witness.is_some());
}

#[test]
fn an_invalid_block_among_those_that_wait_makes_the_later_ones_invalid() {
    let blocks = blocks(3);
    let bad = changed(&blocks[1], |block| block.header.state_root = B256::repeat_byte(9));
    let child = changed(&blocks[2], |block| block.header.parent_hash = bad.hash());
    let engine = engine();
    assert_eq!(give(&engine, &child), missing(&bad));
    assert_eq!(give(&engine, &bad), missing(&blocks[0]));
    assert_eq!(give(&engine, &blocks[0]), Verdict::Valid);
    for block in [&bad, &child] {
        let verdict = choose(&engine, block.hash());
        assert!(matches!(verdict, Verdict::Invalid { .. }), "{verdict:?}");
        assert_eq!(give(&engine, block), verdict);
    }
}

/// Those that an answer had no time for run with the next payload on them.
#[test]
fn payloads_that_could_have_run_do_with_the_next() {
    let blocks = blocks(4);
    let engine = engine();
    assert_eq!(give(&engine, &blocks[0]), Verdict::Valid);
    for block in &blocks[1..3] {
        engine.orphans().insert(block.clone());
    }
    assert_eq!(give(&engine, &blocks[3]), Verdict::Valid);
    assert_eq!(engine.orphans().count(), 0);
}

#[test]
fn a_block_off_the_finalized_one_is_not_chosen_when_it_comes() {
    let engine = engine();
    let genesis = engine.heads().genesis;
    let finalized = extend(&engine, genesis, 1);
    let state = ForkchoiceState {
        head_block_hash: finalized,
        finalized_block_hash: finalized,
        ..ForkchoiceState::default()
    };
    engine.forkchoice_updated(state, None).unwrap();
    let maker = self::engine();
    let side = extend(&maker, genesis, 2);
    let block = maker.block(side).unwrap().unwrap().block.clone();
    assert_eq!(choose(&engine, side), Verdict::Syncing(Missing::Head { hash: side }));
    assert_eq!(give(&engine, &block), Verdict::Valid);
    assert_eq!(engine.chosen_head(), Ok((1, finalized)));
}

#[test]
fn valid_blocks_that_no_fork_choice_follows_are_no_step() {
    let blocks = blocks(3);
    let engine = engine();
    let highest = blocks.iter().map(|block| {
        assert_eq!(give(&engine, block), Verdict::Valid);
        engine.progress().unwrap().map(|progress| progress.highest)
    });
    assert_eq!(highest.collect::<Vec<_>>(), [None, Some(2), Some(3)]);
    let unknown = B256::repeat_byte(7);
    assert_eq!(choose(&engine, blocks[2].hash()), Verdict::Valid);
    assert_eq!(engine.progress(), Ok(None));
    assert_eq!(choose(&engine, unknown), Verdict::Syncing(Missing::Head { hash: unknown }));
    let unknown_head = Some(unknown);
    let progress = SyncProgress { starting: 0, current: 3, highest: 3, unknown_head };
    assert_eq!(engine.progress(), Ok(Some(progress)));
    assert_eq!(choose(&engine, blocks[2].hash()), Verdict::Valid);
    assert_eq!(engine.progress(), Ok(None));
}

#[test]
fn in_any_order_payloads_end_as_they_do_in_the_chains() {
    let mut random = StdRng::seed_from_u64(testing::seed());
    for _ in 0..10 {
        let maker = engine();
        let mut hashes = vec![maker.heads().genesis];
        let mut blocks = Vec::new();
        for tag in 0..20 {
            let parent = hashes[random.random_range(hashes.len().saturating_sub(4)..hashes.len())];
            let hash = extend(&maker, parent, tag);
            blocks.push(maker.block(hash).unwrap().unwrap().block.clone());
            hashes.push(hash);
        }
        blocks.shuffle(&mut random);
        let engine = engine();
        for block in &blocks {
            let verdict = give(&engine, block);
            let parent_is_known = engine.block(block.header.parent_hash).unwrap().is_some();
            assert_eq!(verdict == Verdict::Valid, parent_is_known, "{verdict:?}");
        }
        for block in &blocks {
            let hash = block.hash();
            assert!(engine.block(hash).unwrap().is_some());
            assert_eq!(engine.witness(hash).unwrap(), maker.witness(hash).unwrap());
        }
    }
}

#[test]
fn the_missing_block_is_that_of_the_chosen_head_else_of_the_newest_payload() {
    let blocks = blocks(6);
    let engine = engine();
    let missing = |block: &SealedBlock, chosen_head| {
        let (number, hash) = (Some(block.header.number), block.hash());
        Ok(Some(MissingBlock { number, hash, chosen_head }))
    };
    assert_eq!(engine.missing(), Ok(None));
    for block in &blocks[2..4] {
        give(&engine, block);
        assert_eq!(engine.missing(), missing(&blocks[1], None));
    }
    let waiting = blocks[3].hash();
    choose(&engine, waiting);
    assert_eq!(engine.missing(), missing(&blocks[1], Some(waiting)));
    // Of a head whose payload has not come there is no more than the hash.
    let unknown = blocks[5].hash();
    choose(&engine, unknown);
    let expected = MissingBlock { number: None, hash: unknown, chosen_head: Some(unknown) };
    assert_eq!(engine.missing(), Ok(Some(expected)));
    choose(&engine, engine.heads().genesis);
    assert_eq!(engine.missing(), missing(&blocks[1], None));
    give(&engine, &blocks[1]);
    assert_eq!(engine.missing(), missing(&blocks[0], None));
    give(&engine, &blocks[0]);
    assert_eq!(engine.missing(), Ok(None));
}

#[test]
fn payloads_run_when_the_block_that_they_wait_for_came_otherwise() {
    let blocks = blocks(5);
    let engine = engine();
    for block in &blocks[1..] {
        give(&engine, block);
    }
    assert_eq!(engine.run_waiting(), Ok(false));
    assert_eq!(engine.orphans().count(), 4);
    // They have not run with it.
    let waiting = std::mem::take(&mut *engine.orphans());
    assert_eq!(engine.new_checked_block(blocks[0].clone(), None), Ok(Verdict::Valid));
    *engine.orphans() = waiting;
    assert_eq!(engine.missing(), Ok(None));
    assert_eq!(engine.run_waiting(), Ok(false));
    assert_eq!(engine.orphans().count(), 0);
    assert_eq!(choose(&engine, blocks[4].hash()), Verdict::Valid);
}

#[test]
fn descendants_of_an_invalid_block_are_invalid_though_those_between_never_came() {
    let blocks = blocks(4);
    let bad = changed(&blocks[0], |block| block.header.state_root = B256::repeat_byte(9));
    let between = B256::repeat_byte(7);
    let waiting = changed(&blocks[3], |block| block.header.parent_hash = between);
    let engine = engine();
    assert!(matches!(give(&engine, &waiting), Verdict::Syncing(_)));
    let refuse = || engine.refuse_descendant(&bad.hash(), between, "its ancestor is".into());
    refuse();
    assert!(!engine.is_invalid(&between), "the ancestor is not known as invalid");
    assert!(matches!(give(&engine, &bad), Verdict::Invalid { .. }));
    refuse();
    assert!(engine.is_invalid(&between) && engine.is_invalid(&waiting.hash()));
    assert_eq!(engine.missing(), Ok(None));
    let Verdict::Invalid { latest_valid_hash, .. } = choose(&engine, bad.hash()) else { panic!() };
    let expected = Verdict::Invalid { latest_valid_hash, reason: "its ancestor is".into() };
    assert_eq!(give(&engine, &waiting), expected);
    assert_eq!(engine.invalid_reason(&between).as_deref(), Some("its ancestor is"));
}

/// The turn to run belongs to another one, for as long as the test has it.
#[test]
fn a_payload_whose_parent_is_missing_is_answered_while_a_block_runs() {
    let blocks = blocks(3);
    let engine = engine();
    let _runs = engine.running();
    assert_eq!(give(&engine, &blocks[2]), missing(&blocks[1]));
    assert_eq!(give(&engine, &blocks[1]), missing(&blocks[0]));
}
