//! Blocks from Amsterdam on come with their access lists, or run without.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use alloy_primitives::{B256, Bytes};
use deponent_follow::{UpstreamFigures, UpstreamOptions};
use engine::{ChainEvent, Engine};
use execution::SealedBlock;
use serde_json::{Value, json};

use crate::support::*;

const RAW: &str = "debug_getRawBlockAccessList";
const BODIES: &str = "engine_getPayloadBodiesByHashV2";

/// A chain from Amsterdam on, and the engine that made it.
fn listed_chain(count: usize) -> (Arc<Engine>, Vec<SealedBlock>) {
    let maker = listed_engine();
    let blocks = branch(&maker, maker.heads().genesis, 0, count);
    assert!(blocks.iter().all(|block| block.header.block_access_list_hash.is_some()));
    (maker, blocks)
}

/// Has an engine follow a chain from an upstream, which comes over in any case. The blocks that ran
/// with the help of their lists, and the upstream's figures.
async fn followed(server: &Server, blocks: &[SealedBlock]) -> (usize, UpstreamFigures) {
    followed_with(server, blocks, quick()).await
}

async fn followed_with(
    server: &Server,
    blocks: &[SealedBlock],
    options: UpstreamOptions,
) -> (usize, UpstreamFigures) {
    let engine = listed_engine();
    let listed = Arc::<Mutex<usize>>::default();
    let told = listed.clone();
    engine.on_event(move |event| {
        if let ChainEvent::Ran(figures) = event {
            *told.lock().unwrap() += usize::from(figures.is_listed);
        }
    });
    let backfill = follow_with(&engine, &[server], options);
    let last = blocks.last().expect("there are blocks");
    choose(&engine, last.hash());
    until_valid(&engine, last).await;
    until_idle(&backfill).await;
    assert_eq!(engine.heads().head, last.hash());
    backfill.stop().await;
    let listed = *listed.lock().unwrap();
    (listed, backfill.figures()[0].1)
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_are_fetched_in_batches_and_used() {
    let (maker, blocks) = listed_chain(200);
    let server = Server::with(&blocks);
    server.add_lists(&maker, &blocks);
    let (listed, figures) = followed(&server, &blocks).await;
    assert_eq!((listed, figures.access_lists, figures.blocks), (200, 200, 200));
    assert_eq!((figures.lies, figures.errors), (0, 0));
    assert!(server.messages() < 100, "{}", server.messages());
}

#[tokio::test(flavor = "multi_thread")]
async fn blocks_run_without_lists_that_an_upstream_does_not_have() {
    let (maker, blocks) = listed_chain(60);
    let none = json!({"error": {"code": -32601, "message": "no such method"}});
    let absent = json!({"error": {"code": 4444, "message": "pruned"}});
    for answer in [none, absent, Value::Null] {
        let server = Server::with(&blocks);
        server.add_lists(&maker, &blocks);
        let given = answer.clone();
        let says = move |method: &str, _: &Value| (method == RAW).then(|| given.clone());
        let server = server.and(Manner::Says(Box::new(says)));
        let (listed, figures) = followed(&server, &blocks).await;
        assert_eq!((listed, figures.access_lists), (0, 0), "{answer}");
        assert_eq!((figures.lies, figures.errors), (0, 0), "{answer}");
    }
    // Of some blocks alone.
    let server = Server::with(&blocks);
    server.add_lists(&maker, &blocks[..5]);
    let upstream = server.upstream(quick());
    let lists = upstream.access_lists(&blocks, 0).await;
    let numbers = blocks
        .iter()
        .zip(&lists)
        .filter_map(|(block, list)| list.as_ref().map(|_| block.header.number));
    assert_eq!(numbers.collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    let most = blocks.iter().map(|block| block.header.gas_used).max().expect("blocks");
    let none = upstream.access_lists(&blocks, most + 1).await;
    assert!(none.len() == blocks.len() && none.iter().all(Option::is_none));
    let figures = upstream.figures();
    assert_eq!((figures.access_lists, figures.lies, figures.errors), (5, 0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_false_list_is_a_lie_and_the_block_runs_without() {
    let (maker, blocks) = listed_chain(60);
    let other = maker.block(blocks[7].hash()).unwrap().unwrap().block_access_list.clone();
    for given in [json!("0xc0"), json!("0x"), json!(other)] {
        let server = Server::with(&blocks);
        let answer = given.clone();
        let says = move |method: &str, _: &Value| (method == RAW).then(|| answer.clone());
        let (listed, figures) = followed(&server.and(Manner::Says(Box::new(says))), &blocks).await;
        // The right one for its own block alone.
        assert!(listed <= 1, "{given}: {listed}");
        assert!(figures.lies > 0, "{given}: {figures:?}");
    }
    // One that cannot be read is no lie.
    let says = |method: &str, _: &Value| (method == RAW).then(|| json!("0xzz"));
    let server = Server::with(&blocks).and(Manner::Says(Box::new(says)));
    let (listed, figures) = followed(&server, &blocks).await;
    assert!(listed == 0 && figures.lies == 0 && figures.errors > 0, "{figures:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn blocks_run_without_lists_that_break_off_or_never_come() {
    let (maker, blocks) = listed_chain(60);
    for manner in [Manner::Truncated(RAW), Manner::HeldLists] {
        let server = Server::with(&blocks).and(manner);
        server.add_lists(&maker, &blocks);
        let options = UpstreamOptions { list_time: Duration::from_millis(200), ..quick() };
        let (listed, figures) = followed_with(&server, &blocks, options).await;
        assert_eq!((listed, figures.access_lists, figures.lies), (0, 0, 0));
        assert!(figures.errors > 0, "{figures:?}");
        // Whatever waits is let go.
        server.be(Manner::Honest);
    }
}

/// As geth's socket has it.
#[tokio::test(flavor = "multi_thread")]
async fn lists_come_with_bodies_where_there_is_no_other_method() {
    let (maker, blocks) = listed_chain(60);
    let lists = move |params: &Value| -> Value {
        let hashes = params[0].as_array().expect("hashes").iter();
        let list = hashes.map(|hash| -> Option<Bytes> {
            let hash: B256 = serde_json::from_value(hash.clone()).expect("a hash");
            maker.block(hash).unwrap().expect("it was made").block_access_list.clone()
        });
        let body = |list| json!({"transactions": [], "withdrawals": [], "blockAccessList": list});
        list.map(body).collect()
    };
    let says = move |method: &str, params: &Value| match method {
        RAW => Some(json!({"error": {"code": -32601, "message": "no such method"}})),
        BODIES => Some(lists(params)),
        _ => None,
    };
    let server = Server::with(&blocks).and(Manner::Says(Box::new(says)));
    let (listed, figures) = followed(&server, &blocks).await;
    assert_eq!((listed, figures.access_lists), (60, 60));
    assert_eq!((figures.lies, figures.errors), (0, 0));
}
