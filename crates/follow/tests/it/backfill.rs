//! Gaps of all kinds, from honest upstreams.

use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::B256;
use deponent_follow::{Backfill, BackfillOptions, Stage, UpstreamOptions};
use engine::{Engine, Genesis, Verdict};
use execution::{ChainSpec, SealedBlock};
use state::DirectoryDisk;
use testing::world::Signer;

use crate::support::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_head_that_is_not_known_is_filled_and_the_next_payload_is_valid() {
    let blocks = chain(301);
    let (gap, next) = (&blocks[..300], &blocks[300]);
    let server = Server::with(gap);
    let engine = engine();
    let backfill = follow(&engine, &[&server]);
    assert!(matches!(choose(&engine, gap[299].hash()), Verdict::Syncing(_)));
    until_valid(&engine, &gap[299]).await;
    until_idle(&backfill).await;
    // The chosen block is the head, without another fork choice.
    assert_eq!(engine.heads().head, gap[299].hash());
    assert_eq!(engine.progress(), Ok(None));
    assert_eq!(give(&engine, next), Verdict::Valid);
    assert_eq!(choose(&engine, next.hash()), Verdict::Valid);
    let (_, figures) = backfill.figures()[0];
    assert_eq!((figures.headers, figures.blocks, figures.lies), (300, 300, 0));
    assert_eq!(server.asked().len(), 300);
    // Each block has its witness.
    assert!(engine.witness(gap[150].hash()).unwrap().is_some());
    backfill.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payload_whose_parent_is_missing_runs_when_the_gap_before_it_is_filled() {
    let blocks = chain(60);
    let server = Server::with(&blocks[..58]);
    let engine = engine();
    for block in &blocks[..10] {
        assert_eq!(give(&engine, block), Verdict::Valid);
    }
    assert_eq!(choose(&engine, blocks[9].hash()), Verdict::Valid);
    let backfill = follow(&engine, &[&server]);
    for block in &blocks[58..] {
        assert!(matches!(give(&engine, block), Verdict::Syncing(_)));
    }
    until_valid(&engine, &blocks[59]).await;
    until_idle(&backfill).await;
    assert_eq!(choose(&engine, blocks[59].hash()), Verdict::Valid);
    // Those that were there were not asked for.
    assert!(!server.asked().contains(&blocks[9].hash()));
    assert_eq!(server.asked().len(), 48);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_last_fork_choice_named_before_the_start_is_filled_at_once() {
    let blocks = chain(20);
    let server = Server::with(&blocks);
    let engine = engine();
    assert!(matches!(choose(&engine, blocks[19].hash()), Verdict::Syncing(_)));
    let _backfill = follow(&engine, &[&server]);
    until_valid(&engine, &blocks[19]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reorganisation_moves_the_target_and_keeps_the_hashes_that_both_have() {
    let maker = engine();
    let trunk = branch(&maker, maker.heads().genesis, 0, 200);
    let old = branch(&maker, trunk[199].hash(), 1, 30);
    let new = branch(&maker, trunk[199].hash(), 2, 40);
    let server = Server::with(&trunk);
    server.add(&old);
    server.be(Manner::HeldFrom(100));
    let engine = engine();
    let backfill = follow(&engine, &[&server]);
    choose(&engine, old[29].hash());
    until("blocks are fetched", || {
        backfill.progress().is_some_and(|progress| progress.stage == Stage::Blocks)
    })
    .await;
    let headers = server.headers();
    assert!(headers >= 230);
    server.add(&new);
    choose(&engine, new[39].hash());
    until("the other branch is followed", || {
        backfill.progress().is_some_and(|progress| {
            progress.target_hash == new[39].hash() && progress.stage == Stage::Blocks
        })
    })
    .await;
    // Of the 240 headers of the new branch those before the fork were known.
    assert!(server.headers() - headers < 150, "{}", server.headers() - headers);
    server.be(Manner::Honest);
    until_valid(&engine, &new[39]).await;
    until_idle(&backfill).await;
    assert_eq!(engine.heads().head, new[39].hash());
    assert_eq!(engine.number(&old[29].hash()), Ok(None));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_choice_to_a_known_head_ends_the_filling() {
    let blocks = chain(50);
    let server = Server::with(&blocks).and(Manner::HeldFrom(20));
    let engine = engine();
    for block in &blocks[..5] {
        give(&engine, block);
    }
    let backfill = follow(&engine, &[&server]);
    choose(&engine, blocks[49].hash());
    until("blocks are fetched", || {
        backfill.progress().is_some_and(|progress| progress.stage == Stage::Blocks)
    })
    .await;
    assert_eq!(choose(&engine, blocks[4].hash()), Verdict::Valid);
    until_idle(&backfill).await;
    assert_eq!(engine.heads().head, blocks[4].hash());
    server.be(Manner::Honest);
    choose(&engine, blocks[49].hash());
    until_valid(&engine, &blocks[49]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_syncing_answer_waits_neither_for_an_upstream_nor_for_a_block_that_runs() {
    let blocks = chain(40);
    let server = Server::with(&blocks).and(Manner::Stall);
    let engine = engine();
    let backfill = follow(&engine, &[&server]);
    // Its answers come while the upstream says nothing.
    for block in &blocks[20..40] {
        assert!(matches!(give(&engine, block), Verdict::Syncing(_)));
        assert!(matches!(choose(&engine, block.hash()), Verdict::Syncing(_)));
    }
    assert_eq!(give(&engine, &blocks[0]), Verdict::Valid);
    server.be(Manner::Honest);
    until_valid(&engine, &blocks[39]).await;
    until_idle(&backfill).await;
    assert_eq!(engine.heads().head, blocks[39].hash());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_starts_again_goes_on_where_it_was() {
    let blocks = chain(400);
    let folder = tempfile::tempdir().unwrap();
    let server = Server::with(&blocks).and(Manner::HeldFrom(200));
    let engine = engine_on(DirectoryDisk::open(folder.path()).unwrap());
    let backfill = follow(&engine, &[&server]);
    choose(&engine, blocks[399].hash());
    until_valid(&engine, &blocks[150]).await;
    backfill.stop().await;
    drop((backfill, engine));
    let before = server.asked().len();
    let again = engine_on(DirectoryDisk::open(folder.path()).unwrap());
    // Those that ran are there.
    assert!(again.number(&blocks[150].hash()).unwrap().is_some());
    let backfill = follow(&again, &[&server]);
    assert!(matches!(give(&again, &blocks[399]), Verdict::Syncing(_)));
    server.be(Manner::Honest);
    until_valid(&again, &blocks[399]).await;
    until_idle(&backfill).await;
    assert_eq!(choose(&again, blocks[399].hash()), Verdict::Valid);
    let asked = &server.asked()[before..];
    assert!(!asked.contains(&blocks[100].hash()), "{} blocks came again", asked.len());
}

/// The second upstream alone has the headers before block 200, with which the chain begins, and
/// says nothing until the block is to run that asks for one of their hashes.
#[tokio::test(flavor = "multi_thread")]
async fn a_gap_is_filled_while_headers_before_the_first_block_are_asked_for() {
    let mut file = genesis(0);
    // A block's transaction has the number of its parent for a nonce.
    file.alloc.get_mut(&Signer::new(1).address()).expect("it is there").nonce = Some(200);
    let rules = ChainSpec::from_config(&file.config).unwrap();
    let mut first = Genesis::new(&file, &rules).unwrap();
    let mut before: Vec<SealedBlock> = Vec::new();
    for number in 0..200 {
        let mut block = execution::Block::default();
        let parent_hash = before.last().map_or(B256::ZERO, |parent| parent.hash());
        (block.header.number, block.header.parent_hash) = (number, parent_hash);
        before.push(SealedBlock::new(block));
    }
    (first.header.number, first.header.parent_hash) = (200, before[199].hash());
    let maker = Engine::new(rules.clone(), first.clone()).unwrap();
    let headers = before.iter().rev().map(|block| block.header.clone()).collect();
    assert_eq!(maker.add_headers(headers), Ok(200));
    let mut blocks = branch(&maker, maker.heads().genesis, 0, 40);
    blocks.push(extend_with_call(&maker, blocks[39].hash(), 0, ASKER));
    blocks.extend(branch(&maker, blocks[40].hash(), 0, 40));

    let engine: Arc<Engine> = Engine::new(rules, first).unwrap().into();
    assert!(engine.wanted_header().is_some());
    let servers = [Server::with(&blocks), Server::with(&before).and(Manner::Stall)];
    let hours = Duration::from_secs(24 * 3600);
    let options = UpstreamOptions { request_time: hours, ..quick() };
    let upstreams = servers.iter().map(|server| server.upstream(options)).collect();
    // A gap that is wrongly given up stays.
    let options = BackfillOptions { first_retry: hours, most_retry: hours, ..Default::default() };
    let backfill = Backfill::start_with(engine.clone(), upstreams, options);
    choose(&engine, blocks[80].hash());
    until_valid(&engine, &blocks[39]).await;
    servers[1].be(Manner::Honest);
    until_valid(&engine, &blocks[80]).await;
    until_idle(&backfill).await;
    assert_eq!(engine.heads().head, blocks[80].hash());
    assert_eq!(engine.witness(blocks[40].hash()).unwrap().expect("kept").headers.len(), 91);
    backfill.stop().await;
}
