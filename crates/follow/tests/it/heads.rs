//! The head of an upstream, where upstreams say nothing or are behind.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use alloy_rpc_types_engine::ForkchoiceState;
use deponent_follow::{Backfill, HeadSource, HeadTag, UpstreamOptions};
use engine::{Engine, Genesis};
use execution::{ChainSpec, SealedBlock};
use serde_json::Value;

use crate::support::*;

/// Its own first block, which upstreams are asked for.
fn first(engine: &Engine) -> SealedBlock {
    engine.block(engine.heads().genesis).unwrap().expect("it begins so").block.clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_one_is_followed_where_one_says_nothing_for_a_while() {
    let (engine, blocks) = (engine(), chain(10));
    let servers = [Server::with(&blocks), Server::with(&blocks)];
    servers.iter().for_each(|server| server.add(&[first(&engine)]));
    servers[0].be(Manner::Stall);
    let options = UpstreamOptions { request_time: Duration::from_secs(24 * 3600), ..quick() };
    let upstreams = || servers.iter().map(|server| server.upstream(options)).collect();
    let backfill = Backfill::start(engine.clone(), upstreams());
    let source = HeadSource::start(engine.clone(), upstreams(), HeadTag::Latest);
    until("the head is theirs", || engine.heads().head == blocks[9].hash()).await;
    assert_eq!(source.status().upstream.as_deref(), Some(backfill.upstreams()[1].name()));
    servers[0].be(Manner::Honest);
    source.stop().await;
    backfill.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_before_the_first_block_is_waited_for() {
    let mut file = genesis(0);
    // A block's transaction has the number of its parent for a nonce.
    file.alloc.values_mut().for_each(|account| account.nonce = Some(200));
    let rules = ChainSpec::from_config(&file.config).unwrap();
    let mut begin = Genesis::new(&file, &rules).unwrap();
    begin.header.number = 200;
    let maker: Arc<Engine> = Engine::new(rules.clone(), begin.clone()).unwrap().into();
    let engine: Arc<Engine> = Engine::new(rules, begin).unwrap().into();
    let server = Server::with(&chain(50));
    let source = HeadSource::start(engine.clone(), vec![server.upstream(quick())], HeadTag::Latest);
    let problem = || source.status().problem.unwrap_or_default();
    until("it is waited for", || problem().contains("and this chain begins at block 200")).await;
    server.add(&[first(&engine)]);
    let next = branch(&maker, maker.heads().genesis, 0, 1);
    server.add(&next);
    until("the head is its", || engine.heads().head == next[0].hash()).await;
    source.stop().await;
}

/// Each of its heads is missing for ever. It is asked for one over and over, 0.2 s after the last
/// time at the latest: so the number of these questions says whether the next head waits.
#[tokio::test(flavor = "multi_thread")]
async fn a_newer_head_does_not_wait_for_the_one_before() {
    let (engine, blocks) = (engine(), chain(40));
    let begin = shown_header(&first(&engine).header);
    let named = Arc::<Mutex<Vec<usize>>>::default();
    let (heads, asked) = (blocks.clone(), named.clone());
    let says = move |method: &str, params: &Value| {
        let mut asked = asked.lock().expect("no panic");
        match (method, params[0].as_str()) {
            ("eth_getBlockByNumber", Some("latest")) => {
                asked.push(0);
                Some(shown_header(&heads[(10 + asked.len()).min(39)].header))
            }
            (_, Some(hash)) if begin["hash"] == hash => Some(begin.clone()),
            ("eth_getBlockByHash", _) => {
                asked.iter_mut().next_back().into_iter().for_each(|count| *count += 1);
                Some(Value::Null)
            }
            ("eth_chainId", _) => None,
            _ => Some(Value::Null),
        }
    };
    let server = Server::with(&[]).and(Manner::Says(Box::new(says)));
    let backfill = follow(&engine, &[&server]);
    let source = HeadSource::start(engine.clone(), vec![server.upstream(quick())], HeadTag::Latest);
    until("some heads are named", || named.lock().unwrap().len() > 4).await;
    source.stop().await;
    let named = named.lock().unwrap().clone();
    assert!(named.iter().all(|count| *count < 30), "{named:?}");
    // The last one may have been named while it was stopped.
    let target = engine.missing().unwrap().expect("a block is missing").hash;
    let last = (10 + named.len()).min(39);
    assert!(blocks[last - 1..=last].iter().any(|block| block.hash() == target), "{named:?}");
    backfill.stop().await;
}

/// The upstream has left the finalized block, and its head is a gap away, or before that block.
#[tokio::test(flavor = "multi_thread")]
async fn a_head_behind_the_finalized_block_is_followed_over_a_gap_too() {
    let blocks = chain(40);
    for (shared, ahead) in [(20, 40), (29, 25), (0, 20), (7, 2)] {
        let (engine, maker) = (engine(), engine());
        for block in &blocks {
            give(&engine, block);
            give(&maker, block);
        }
        let state = ForkchoiceState {
            head_block_hash: blocks[39].hash(),
            safe_block_hash: blocks[34].hash(),
            finalized_block_hash: blocks[29].hash(),
        };
        engine.forkchoice_updated(state, None).expect("it is valid");
        let parent = blocks[..shared].last().map_or(engine.heads().genesis, SealedBlock::hash);
        let next = branch(&maker, parent, 1, ahead);
        let server = Server::with(&[&[first(&engine)], &blocks[..shared], &next].concat());
        let backfill = follow(&engine, &[&server]);
        let upstreams = vec![server.upstream(quick())];
        let source = HeadSource::start(engine.clone(), upstreams, HeadTag::Latest);
        let head = next[ahead - 1].hash();
        until("the head is its", || engine.heads().head == head).await;
        assert_eq!(engine.heads().finalized, None, "{shared}");
        source.stop().await;
        backfill.stop().await;
    }
}
