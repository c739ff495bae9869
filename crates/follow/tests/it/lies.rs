//! Upstreams that lie, stall, break off, contradict each other or vanish: the worst that one can do
//! is not to answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use alloy_primitives::B256;
use deponent_follow::{UpstreamOptions, UpstreamState};
use engine::Verdict;
use serde_json::{Value, json};
use testing::Random;

use crate::support::*;

/// A chain comes from an honest upstream, though a bad one is asked first. The bad one's figures:
/// lies and errors.
async fn beside_an_honest_one(manner: Manner, options: UpstreamOptions) -> (u64, u64) {
    let blocks = chain(80);
    let bad = Server::with(&blocks).and(manner);
    let good = Server::with(&blocks);
    let engine = engine();
    let backfill = follow_with(&engine, &[&bad, &good], options);
    choose(&engine, blocks[79].hash());
    until_valid(&engine, &blocks[79]).await;
    until_idle(&backfill).await;
    assert_eq!(engine.heads().head, blocks[79].hash());
    let figures = backfill.figures()[0].1;
    backfill.stop().await;
    // Whatever waits is let go.
    bad.be(Manner::Honest);
    (figures.lies, figures.errors)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_block_for_a_hash_is_a_lie() {
    let (lies, _) = beside_an_honest_one(Manner::WrongBlock, quick()).await;
    assert!(lies > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_right_header_with_a_wrong_body_is_a_lie() {
    let (lies, _) = beside_an_honest_one(Manner::WrongBody, quick()).await;
    assert!(lies > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_one_is_asked_before_the_time_of_one_that_says_nothing_is_over() {
    let options = UpstreamOptions { request_time: Duration::from_secs(24 * 3600), ..quick() };
    beside_an_honest_one(Manner::Stall, options).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_says_nothing_is_left_after_its_time() {
    let options = UpstreamOptions { request_time: Duration::from_millis(500), ..quick() };
    let (lies, errors) = beside_an_honest_one(Manner::Stall, options).await;
    assert!(lies == 0 && errors > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_breaks_off_is_an_error() {
    let (lies, errors) = beside_an_honest_one(Manner::Truncated(""), quick()).await;
    assert!(lies == 0 && errors > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_is_read_of_a_huge_answer_than_may_come() {
    let options = UpstreamOptions { answer_bytes: 1 << 20, ..quick() };
    let (lies, errors) = beside_an_honest_one(Manner::Huge(4 << 20), options).await;
    assert!(lies == 0 && errors > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_not_there_is_an_error() {
    let (lies, errors) = beside_an_honest_one(Manner::Gone, quick()).await;
    assert!(lies == 0 && errors > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_liar_is_left_alone() {
    let blocks = chain(80);
    let bad = Server::with(&blocks).and(Manner::WrongBody);
    let good = Server::with(&blocks).and(Manner::HeldFrom(81));
    let hour = Duration::from_secs(3600);
    let options = UpstreamOptions { first_pause: hour, most_pause: hour, ..quick() };
    let engine = engine();
    let backfill = follow_with(&engine, &[&bad, &good], options);
    choose(&engine, blocks[79].hash());
    until_valid(&engine, &blocks[79]).await;
    // Headers it tells truly; of blocks there are so many requests on their way at a time.
    assert!(
        bad.asked().len() <= deponent_follow::limits::REQUESTS * deponent_follow::limits::BLOCKS
    );
    let figures = backfill.figures()[0].1;
    assert!((1..=deponent_follow::limits::REQUESTS as u64).contains(&figures.lies), "{figures:?}");
    // The lie of an hour ago is not forgotten.
    let messages = bad.messages();
    let more = {
        let maker = crate::support::engine();
        blocks.iter().for_each(|block| {
            maker.new_block(block.clone()).unwrap();
        });
        branch(&maker, blocks[79].hash(), 0, 20)
    };
    good.add(&more);
    good.be(Manner::Honest);
    choose(&engine, more[19].hash());
    until_valid(&engine, &more[19]).await;
    assert_eq!(bad.messages(), messages);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_vanishes_half_way_and_comes_back_goes_on() {
    let blocks = chain(300);
    let server = Server::with(&blocks).and(Manner::HeldFrom(150));
    let engine = engine();
    let backfill = follow(&engine, &[&server]);
    choose(&engine, blocks[299].hash());
    until_valid(&engine, &blocks[100]).await;
    server.be(Manner::Gone);
    until("it is missed", || backfill.figures()[0].1.errors > 1).await;
    assert!(backfill.progress().is_some());
    server.be(Manner::Honest);
    until_valid(&engine, &blocks[299]).await;
}

/// Its blocks are there, so that it would be asked for them if it were not for its chain.
#[tokio::test(flavor = "multi_thread")]
async fn an_upstream_of_another_chain_is_asked_for_nothing_until_it_has_this_one() {
    let blocks = chain(60);
    let says = |method: &str, _: &Value| (method == "eth_chainId").then(|| json!("0x4d"));
    let other = Server::with(&blocks).and(Manner::Says(Box::new(says)));
    let own = Server::with(&blocks[..40]);
    {
        // Where there is no other one, the gap stays.
        let engine = engine();
        let backfill = follow(&engine, &[&other]);
        let state = || backfill.upstreams()[0].state();
        until("it has told its chain", || state() == UpstreamState::OtherChain(77)).await;
        choose(&engine, blocks[39].hash());
        let waits = || backfill.progress().is_some_and(|progress| progress.upstream.is_none());
        until("there is a gap", waits).await;
        assert_eq!(backfill.figures()[0].1.errors, 0);
    }
    let engine = engine();
    let backfill = follow(&engine, &[&other, &own]);
    let state = |place: usize| backfill.upstreams()[place].state();
    until("both have told their chains", || {
        [state(0), state(1)] == [UpstreamState::OtherChain(77), UpstreamState::Answers]
    })
    .await;
    choose(&engine, blocks[39].hash());
    until_valid(&engine, &blocks[39]).await;
    assert_eq!((other.headers(), other.asked()), (0, Vec::new()));
    // It is restarted with the right one, and the other one ends.
    own.be(Manner::Gone);
    other.be(Manner::Honest);
    choose(&engine, blocks[59].hash());
    until_valid(&engine, &blocks[59]).await;
    assert_eq!(state(0), UpstreamState::Answers);
    until("the other one is missed", || state(1) == UpstreamState::Fails).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_that_contradict_each_other_the_hash_decides() {
    let maker = engine();
    let trunk = branch(&maker, maker.heads().genesis, 0, 50);
    let left = branch(&maker, trunk[49].hash(), 1, 60);
    let right = branch(&maker, trunk[49].hash(), 2, 60);
    let servers = [Server::with(&trunk), Server::with(&trunk)];
    servers[0].add(&left);
    servers[1].add(&right);
    for (branch, other) in [(&left, &right), (&right, &left)] {
        let engine = engine();
        let backfill = follow(&engine, &[&servers[0], &servers[1]]);
        choose(&engine, branch[59].hash());
        until_valid(&engine, &branch[59]).await;
        until_idle(&backfill).await;
        assert_eq!(engine.heads().head, branch[59].hash());
        assert_eq!(engine.number(&other[0].hash()), Ok(None));
        assert!(backfill.figures().iter().all(|(_, figures)| figures.lies == 0));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_of_another_network_ends_at_the_first_block() {
    let blocks = chain(30);
    let foreign = {
        let maker = engine_of(7);
        branch(&maker, maker.heads().genesis, 0, 300)
    };
    let server = Server::with(&foreign);
    let engine = engine();
    let backfill = follow(&engine, &[&server]);
    choose(&engine, foreign[299].hash());
    until("all headers were asked for", || server.headers() >= 300).await;
    until_given_up(&backfill, "it is of another chain").await;
    assert!(server.asked().is_empty(), "no block of it");
    // The next gap is filled.
    server.add(&blocks);
    choose(&engine, blocks[29].hash());
    until_valid(&engine, &blocks[29]).await;
    until_idle(&backfill).await;
}

/// Each header has the hash that its child names, and its number never falls.
#[tokio::test(flavor = "multi_thread")]
async fn a_chain_without_end_has_one() {
    let first = chain(1).remove(0);
    let mut endless = vec![changed(&first, |block| block.header.number = 1_000)];
    for tag in 0..100_u8 {
        let parent = endless[endless.len() - 1].hash();
        endless.push(changed(&first, |block| {
            block.header.number = 1_000;
            block.header.parent_hash = parent;
            block.header.extra_data = vec![tag].into();
        }));
    }
    let server = Server::with(&endless);
    let engine = engine();
    let backfill = follow(&engine, &[&server]);
    choose(&engine, endless[100].hash());
    until("it was asked for", || server.headers() > 0).await;
    until_given_up(&backfill, "the chain above it is none").await;
    assert!(server.headers() < 20, "{}", server.headers());

    // Further than is followed back.
    let far = changed(&first, |block| block.header.number = 5_000_000);
    let server = Server::with(std::slice::from_ref(&far));
    let backfill = follow(&engine, &[&server]);
    choose(&engine, far.hash());
    until("it was asked for", || server.headers() > 0).await;
    until_given_up(&backfill, "import archives first").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_block_ends_the_filling_and_all_above_it_is_invalid() {
    let maker = engine();
    let mut blocks = branch(&maker, maker.heads().genesis, 0, 40);
    // With another state root; those above stand on it.
    for number in 20..40 {
        let parent = blocks[number - 1].hash();
        blocks[number] = changed(&blocks[number], |block| {
            if number == 20 {
                block.header.state_root = B256::repeat_byte(9);
            } else {
                block.header.parent_hash = parent;
            }
        });
    }
    let server = Server::with(&blocks[..39]);
    let engine = engine();
    let backfill = follow(&engine, &[&server]);
    assert!(matches!(give(&engine, &blocks[39]), Verdict::Syncing(_)));
    let last = blocks[39].hash();
    assert!(matches!(choose(&engine, last), Verdict::Syncing(_)));
    until("it is found invalid", || engine.is_invalid(&last)).await;
    let reason =
        format!("block 21, {}, is invalid, and so is all that stands on it: ", blocks[20].hash());
    until_given_up(&backfill, &reason).await;
    // It stays the reason while another head on it is named, and of how far that is.
    server.add(&blocks[39..]);
    let far = changed(&blocks[39], |block| {
        (block.header.number, block.header.parent_hash) = (41, last);
    });
    server.add(std::slice::from_ref(&far));
    let beyond = changed(&far, |block| {
        (block.header.number, block.header.parent_hash) = (42, far.hash());
    });
    server.add(std::slice::from_ref(&beyond));
    choose(&engine, beyond.hash());
    until("it is found invalid, too", || engine.is_invalid(&beyond.hash())).await;
    until_given_up(&backfill, &reason).await;
    let progress = backfill.progress().unwrap();
    assert_eq!((progress.target, progress.missing_blocks()), (Some(42), 22));
    let shown = engine.progress().unwrap().unwrap();
    assert_eq!((shown.current, shown.highest), (20, 42));
    for block in [&blocks[20], &blocks[38], &blocks[39]] {
        let Verdict::Invalid { latest_valid_hash, .. } = choose(&engine, block.hash()) else {
            panic!("block {} is not invalid", block.header.number)
        };
        assert_eq!(latest_valid_hash, Some(blocks[19].hash()));
    }
    assert_eq!(choose(&engine, blocks[19].hash()), Verdict::Valid);
    until_idle(&backfill).await;
}

/// A slow twin: an engine that is given all blocks in their order. Upstreams answer at random with
/// the truth, nothing, an error, another block, or the end of the connection.
#[tokio::test(flavor = "multi_thread")]
async fn random_chains_from_random_upstreams_end_as_they_do_in_the_chains() {
    let mut random = Random::seeded();
    for round in 0..testing::rounds("DEPONENT_FOLLOWS", 4, 40) {
        let new_engine = if round % 2 == 0 { engine } else { listed_engine };
        let maker = new_engine();
        let mut all = vec![];
        let mut hashes = vec![maker.heads().genesis];
        for tag in 0..40_u8 {
            let back = random.below(hashes.len().min(4));
            let block = extend(&maker, hashes[hashes.len() - 1 - back], tag);
            hashes.push(block.hash());
            all.push(block);
        }
        let servers: Vec<_> = (0..3)
            .map(|_| {
                let server = Server::with(&all);
                server.add_lists(&maker, &all);
                let (seed, calls) = (random.number(), Arc::new(AtomicUsize::new(0)));
                let blocks = all.clone();
                server.and(Manner::Says(Box::new(move |method, _| {
                    let call = calls.fetch_add(1, Ordering::Relaxed) as u64;
                    let mixed = (seed ^ call.wrapping_mul(0x9e37_79b9_7f4a_7c15)) >> 7;
                    fault(method, mixed % 8, &blocks[mixed as usize % blocks.len()])
                })))
            })
            .collect();
        let engine = new_engine();
        let backfill = follow(&engine, &[&servers[0], &servers[1], &servers[2]]);
        for _ in 0..4 {
            let target = &all[random.below(all.len())];
            choose(&engine, target.hash());
            until_valid(&engine, target).await;
            until_idle(&backfill).await;
            assert_eq!(engine.heads().head, target.hash());
            let mut block = target.hash();
            while block != engine.heads().genesis {
                let record = engine.block(block).unwrap().expect("an ancestor");
                assert_eq!(record.block, maker.block(block).unwrap().expect("made").block);
                assert_eq!(engine.witness(block).unwrap(), maker.witness(block).unwrap());
                block = record.block.header.parent_hash;
            }
        }
        backfill.stop().await;
    }
}

/// An answer that is not the right one, in five of eight cases.
fn fault(method: &str, kind: u64, other: &execution::SealedBlock) -> Option<Value> {
    match (kind, method) {
        (0, _) => Some(Value::Null),
        (1, _) => Some(json!({"error": {"code": -32005, "message": "too many requests"}})),
        (2, "debug_getRawBlock") => Some(json!("0xc0ff")),
        (3, "debug_getRawBlock") => {
            Some(json!(alloy_primitives::Bytes::from(alloy_rlp::encode(&**other))))
        }
        (2 | 3, _) => Some(shown_header(&other.header)),
        _ => None,
    }
}
