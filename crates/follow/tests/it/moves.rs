//! Heads that move while the answers of upstreams are on their way.

use std::time::Duration;

use alloy_primitives::B256;
use deponent_follow::{Backfill, BackfillOptions, UpstreamOptions};
use engine::Verdict;
use testing::Random;

use crate::support::*;

const HOUR: Duration = Duration::from_secs(3600);

fn options() -> BackfillOptions {
    let look = Duration::from_millis(1);
    // A gap that is wrongly given up stays.
    let (first_retry, most_retry) = (HOUR, HOUR);
    let options = BackfillOptions { first_retry, most_retry, ..Default::default() };
    BackfillOptions { hold: Duration::ZERO, patience: HOUR, look, ..options }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gap_shrinks_though_the_head_moves_with_each_answer() {
    let blocks = chain(500);
    let server = Server::with(&blocks).and(Manner::Gated(0));
    let engine = engine();
    for block in &blocks[..50] {
        assert_eq!(give(&engine, block), Verdict::Valid);
    }
    let upstreams = vec![server.upstream(quick())];
    let backfill = Backfill::start_with(engine.clone(), upstreams, options());
    let is_known = |hash: B256| engine.number(&hash).unwrap().is_some();
    for head in &blocks[200..] {
        choose(&engine, head.hash());
        server.let_one(|| is_known(head.hash())).await;
    }
    until("the gap is shorter", || is_known(blocks[55].hash())).await;
    server.be(Manner::Honest);
    until_valid(&engine, &blocks[499]).await;
    until_idle(&backfill).await;
    assert_eq!(engine.heads().head, blocks[499].hash());
}

/// The slow twin is a chain that is given in its order. Heads move and answers come in any order,
/// on several branches, with holds of all lengths.
#[tokio::test(flavor = "multi_thread")]
async fn random_moves_of_the_head_end_at_the_newest_one() {
    let mut random = Random::seeded();
    let maker = engine();
    let trunk = branch(&maker, maker.heads().genesis, 0, 120);
    let mut branches = vec![trunk.clone()];
    for tag in 1..4 {
        let fork = 60 + random.below(60);
        let mut blocks = trunk[..fork].to_vec();
        blocks.extend(branch(&maker, trunk[fork - 1].hash(), tag, 160 - fork));
        branches.push(blocks);
    }
    for _ in 0..testing::rounds("DEPONENT_FOLLOW_MOVES", 8, 200) {
        let servers = [0, 1].map(|_| {
            let server = Server::with(&branches[0]).and(Manner::Gated(0));
            branches.iter().for_each(|branch| server.add(branch));
            server
        });
        let engine = engine();
        let [hold, patience] = [0, 1].map(|_| match random.below(3) {
            0 => Duration::ZERO,
            1 => Duration::from_millis(5),
            _ => HOUR,
        });
        let options = BackfillOptions { hold, patience, ..options() };
        let upstreams = servers.iter().map(|server| server.upstream(quick())).collect();
        let backfill = Backfill::start_with(engine.clone(), upstreams, options);
        let (mut branch, mut head) = (random.below(4), 40 + random.below(40));
        for _ in 0..60 {
            match random.below(4) {
                0 => {
                    if random.below(6) == 0 {
                        branch = random.below(4);
                    }
                    head = (head + random.below(3)).min(branches[branch].len() - 1);
                    choose(&engine, branches[branch][head].hash());
                }
                1 => tokio::time::sleep(Duration::from_millis(2)).await,
                _ => servers[random.below(2)].let_go(),
            }
        }
        let newest = &branches[branch][head];
        choose(&engine, newest.hash());
        servers.iter().for_each(|server| server.be(Manner::Honest));
        until_valid(&engine, newest).await;
        until_idle(&backfill).await;
        assert_eq!(engine.heads().head, newest.hash());
        backfill.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gap_that_cannot_be_filled_is_tried_again_and_its_number_is_known() {
    let foreign = {
        let maker = engine_of(7);
        branch(&maker, maker.heads().genesis, 0, 30)
    };
    let server = Server::with(&foreign);
    let engine = engine();
    let pause = Duration::from_millis(10);
    let options = BackfillOptions { first_retry: pause, most_retry: pause, ..options() };
    let upstreams = vec![server.upstream(quick())];
    let backfill = Backfill::start_with(engine.clone(), upstreams, options);
    choose(&engine, foreign[29].hash());
    until("it is tried again", || server.headers() > 50).await;
    until_given_up(&backfill, "it is of another chain").await;
    assert_eq!(backfill.progress().and_then(|progress| progress.target), Some(30));
    choose(&engine, engine.heads().genesis);
    until_idle(&backfill).await;
}

/// Those that do not have a block are not at fault: the next head is asked for at once.
#[tokio::test(flavor = "multi_thread")]
async fn after_a_head_that_no_one_has_the_next_one_is_filled() {
    let blocks = chain(30);
    let servers = [Server::with(&blocks), Server::with(&blocks)];
    let engine = engine();
    // A pause is for ever.
    let options = UpstreamOptions { first_pause: HOUR, most_pause: HOUR, ..quick() };
    let upstreams = servers.iter().map(|server| server.upstream(options)).collect();
    let backfill = Backfill::start_with(engine.clone(), upstreams, self::options());
    choose(&engine, B256::repeat_byte(7));
    until("both were asked", || servers.iter().all(|server| server.headers() > 0)).await;
    choose(&engine, blocks[29].hash());
    until_valid(&engine, &blocks[29]).await;
    until_idle(&backfill).await;
    for upstream in backfill.upstreams() {
        assert_eq!((upstream.failures(), upstream.figures().errors), (0, 0));
    }
}
