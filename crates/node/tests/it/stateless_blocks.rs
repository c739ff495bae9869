//! The blocks that a node without a state gives to callers.

use std::time::{Duration, Instant};

use alloy_primitives::B256;
use deponent_node::StatelessOptions;
use rpc::Code;
use serde_json::{Value, json};

use crate::stateless::{PATIENCE, StatelessTest, chain_of_all_forks, genesis_hash};
use crate::support::genesis_of_all_forks;

/// Prysm and operators ask for it when they connect.
#[tokio::test(flavor = "multi_thread")]
async fn the_latest_block_before_the_first_fork_choice_is_the_one_it_begins_with() {
    let (mut node, blocks) = chain_of_all_forks().await;
    let genesis = genesis_hash(&mut node).await;
    let url = format!("http://{}", node.node.http_addr);
    let mut test = StatelessTest::start(&genesis_of_all_forks(), &[&url]).await;
    let theirs = node.public("eth_getBlockByNumber", json!(["0x0", true])).await;
    for tag in ["latest", "earliest", "0x0"] {
        let ours = test.public("eth_getBlockByNumber", json!([tag, true])).await;
        assert_eq!(ours, theirs, "{tag}");
    }
    assert_eq!(test.public("eth_blockNumber", json!([])).await, Ok(json!("0x0")));
    assert_eq!(test.choose(&genesis).await["status"], "VALID");
    let ours = test.public("eth_getBlockByNumber", json!(["latest", true])).await;
    assert_eq!(ours, theirs);
    test.node.stop().await;

    let without = |anchor: Option<Value>| {
        |options: &mut StatelessOptions| {
            options.genesis = None;
            options.anchor = anchor.map(|hash| serde_json::from_value(hash).expect("a hash"));
        }
    };
    let genesis = genesis_of_all_forks();
    let mut test = StatelessTest::start_with(&genesis, &[&url], without(None)).await;
    for (method, params) in [("eth_getBlockByNumber", json!(["latest", false])), {
        ("eth_getHeaderByNumber", json!(["latest"]))
    }] {
        let error = test.public(method, params).await.expect_err("no block is known");
        assert!(error.is(Code::Server), "{error}");
        assert!(error.to_string().contains("no block is verified yet"), "{error}");
    }
    assert_eq!(test.public("eth_blockNumber", json!([])).await, Ok(json!("0x0")));
    test.node.stop().await;

    // The anchor is fetched from the sources.
    let anchor = blocks[2].1["executionPayload"]["blockHash"].clone();
    let set = without(Some(anchor.clone()));
    let mut test = StatelessTest::start_with(&genesis, &[&url], set).await;
    let theirs = node.public("eth_getBlockByHash", json!([anchor, true])).await;
    let end = Instant::now() + PATIENCE;
    loop {
        let ours = test.public("eth_getBlockByNumber", json!(["latest", true])).await;
        if ours == theirs {
            break;
        }
        assert!(ours.is_err_and(|error| error.is(Code::Server)) && Instant::now() < end);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(test.public("eth_blockNumber", json!([])).await, Ok(json!("0x3")));
    test.node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_bodies_of_blocks_that_are_kept_are_those_of_a_node_with_a_state() {
    let (mut node, blocks) = chain_of_all_forks().await;
    let genesis = genesis_hash(&mut node).await;
    let url = format!("http://{}", node.node.http_addr);
    let mut test = StatelessTest::start(&genesis_of_all_forks(), &[&url]).await;
    assert_eq!(test.choose(&genesis).await["status"], "VALID");
    for (fork, envelope) in &blocks {
        test.adopt(*fork, envelope).await;
    }
    let hash = |index: usize| blocks[index].1["executionPayload"]["blockHash"].clone();
    let known = test.call("engine_exchangeCapabilities", json!([[]])).await.expect("a list");
    for (method, params) in [
        ("engine_getPayloadBodiesByHash", json!([[hash(6), B256::repeat_byte(7), hash(0)]])),
        ("engine_getPayloadBodiesByHash", json!([[]])),
        ("engine_getPayloadBodiesByRange", json!(["0x1", "0x7"])),
        ("engine_getPayloadBodiesByRange", json!(["0x6", "0x400"])),
        ("engine_getPayloadBodiesByRange", json!(["0x8", "0x1"])),
        ("engine_getPayloadBodiesByRange", json!(["0xffffffffffffffff", "0x400"])),
    ] {
        for version in [1, 2] {
            let method = format!("{method}V{version}");
            assert!(known.as_array().is_some_and(|known| known.contains(&json!(method))));
            let mut theirs = node.ok(&method, params.clone()).await;
            for body in theirs.as_array_mut().expect("a list").iter_mut() {
                // Access lists are not kept.
                if let Some(list) = body.get_mut("blockAccessList") {
                    *list = Value::Null;
                }
            }
            assert_eq!(test.call(&method, params.clone()).await, Ok(theirs), "{method} {params}");
        }
    }
    for (params, code) in [
        (json!(["0x0", "0x1"]), Code::InvalidParams),
        (json!(["0x1", "0x0"]), Code::InvalidParams),
        (json!(["0x1", "0x401"]), Code::TooLargeRequest),
    ] {
        let refused = test.call("engine_getPayloadBodiesByRangeV1", params.clone()).await;
        assert!(refused.is_err_and(|error| error.is(code)), "{params}");
    }
    test.node.stop().await;
}
