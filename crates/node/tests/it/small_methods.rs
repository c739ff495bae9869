//! Methods that tools ask before and beside the large ones. Those that geth has are compared with
//! it in `geth_methods.rs`.

use crate::subscriptions::Chain;
use crate::support::*;
use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use alloy_rlp::Decodable;
use deponent_node::{Node, NodeOptions};
use rpc::rest::{HeaderMap, Method};
use rpc::{Client, Code};
use serde_json::{Value, json};

/// The hashes of a chain of four blocks, the first of them finalized, the second safe.
async fn grown(chain: &mut Chain) -> Vec<Value> {
    let mut hashes = vec![chain.node.head().await];
    for _ in 0..4 {
        let envelope = chain.build(&hashes[hashes.len() - 1], &[], 0).await;
        let hash = chain.validate(&envelope).await;
        hashes.push(hash);
    }
    let state = json!({
        "headBlockHash": hashes[4], "safeBlockHash": hashes[2], "finalizedBlockHash": hashes[1],
    });
    let answer = chain.node.ok("engine_forkchoiceUpdatedV3", json!([state, null])).await;
    assert_eq!(answer["payloadStatus"]["status"], "VALID", "{answer}");
    hashes
}

async fn tag(chain: &mut Chain, tag: &str) -> Value {
    let block = chain.node.ok("eth_getBlockByNumber", json!([tag, false])).await;
    block["hash"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_head_is_set_back_and_forth_by_hand() {
    let mut chain = Chain::start().await;
    let hashes = grown(&mut chain).await;
    // Digits in hex, in decimal, and a number.
    for (number, index) in [(json!("0x3"), 3), (json!("2"), 2), (json!(3), 3)] {
        // A number above the head is none of the chain.
        chain.node.ok("debug_resetHead", json!([hashes[4]])).await;
        assert_eq!(chain.node.ok("debug_setHead", json!([number])).await, Value::Null);
        assert_eq!(chain.node.head().await, hashes[index]);
        assert_eq!(tag(&mut chain, "finalized").await, hashes[1]);
        let above = json!([format!("{:#x}", index + 1)]);
        let error = chain.node.call("debug_setHead", above).await.expect_err("refused");
        assert!(error.message.contains("no canonical block"), "{error}");
    }
    // Before the safe and the finalized block there are none of them.
    chain.node.ok("debug_setHead", json!(["0x0"])).await;
    assert_eq!(chain.node.head().await, hashes[0]);
    for name in ["safe", "finalized"] {
        assert_eq!(tag(&mut chain, name).await, Value::Null);
    }
    // It outlasts the node, and the blocks are still there.
    let options = NodeOptions {
        genesis: None,
        testing: true,
        ..NodeOptions::new(Default::default(), chain.node.dir.path().join("data"))
    };
    chain.node.node.stop().await;
    let node = Node::start(options).await.expect("it starts again");
    let address = node.http_addr.to_string();
    let mut public = Client::connect(&address, None).await.expect("a connection");
    let head: Value =
        public.call("eth_getBlockByNumber", json!(["latest", false])).await.expect("a block");
    assert_eq!(head["hash"], hashes[0]);
    // A node for tests has it on the public port too.
    let reset: bool = public.call("debug_resetHead", [&hashes[4]]).await.expect("reset");
    assert!(reset);
    let head: Value =
        public.call("eth_getBlockByNumber", json!(["latest", false])).await.expect("a block");
    assert_eq!(head["hash"], hashes[4]);
    let unknown = public.call::<bool>("debug_resetHead", [B256::ZERO]).await;
    assert!(unknown.expect_err("refused").to_string().contains("no valid block"));
    // A hash that an operator mistypes is no head that the consensus client waits for.
    let syncing: Value = public.call("eth_syncing", json!([])).await.expect("an answer");
    assert_eq!(syncing, json!(false));
    node.stop().await;
}

/// The list as OpenRPC has it, of the RLP: alloy's names are the same, but slots are quantities.
fn shown(rlp: &[u8]) -> Value {
    let list = Vec::<alloy_eip7928::AccountChanges>::decode(&mut &*rlp).expect("a list");
    let mut list = serde_json::to_value(list).expect("JSON");
    let pad = |value: &mut Value| {
        let number: U256 = serde_json::from_value(value.clone()).expect("a number");
        *value = json!(B256::from(number));
    };
    for account in list.as_array_mut().expect("a list") {
        account["storageReads"].as_array_mut().expect("a list").iter_mut().for_each(pad);
        for slot in account["storageChanges"].as_array_mut().expect("a list") {
            pad(&mut slot["key"]);
            let changes = slot["changes"].as_array_mut().expect("a list");
            changes.iter_mut().for_each(|change| pad(&mut change["value"]));
        }
    }
    list
}

#[tokio::test(flavor = "multi_thread")]
async fn a_block_access_list_is_told_as_json_and_as_rlp() {
    let mut node = TestNode::start(genesis_of_all_forks()).await;
    for fork in ALL_FORKS {
        let count = usize::from(fork.time == ALL_FORKS[5].time);
        node.extend(fork, fork.time, &transactions()[..count]).await;
    }
    let head = node.public("eth_getBlockByNumber", json!(["latest", false])).await.expect("a head");
    for id in [json!("latest"), json!("0x6"), head["hash"].clone()] {
        let raw = node.public("debug_getRawBlockAccessList", json!([id])).await.expect("RLP");
        let raw: Bytes = serde_json::from_value(raw).expect("DATA");
        assert_eq!(json!(keccak256(&raw)), head["blockAccessListHash"]);
        let list = node.public("eth_getBlockAccessList", json!([id])).await.expect("a list");
        assert_eq!(list, shown(&raw));
        // The contracts that every block calls, and the sender's nonce.
        assert!(list.as_array().expect("a list").len() > 4, "{list}");
        assert!(list.to_string().contains(r#""nonceChanges":[{"#), "{list}");
        assert!(list.to_string().contains(r#""changes":[{"#), "{list}");
    }
    for before in ["0x0", "0x5"] {
        for method in ["eth_getBlockAccessList", "debug_getRawBlockAccessList"] {
            let error = node.public(method, json!([before])).await.expect_err("refused");
            assert!(error.is(Code::ResourceNotFound), "{error}");
        }
    }
    for none in ["0x2710", "pending"] {
        let found = node.public("eth_getBlockAccessList", json!([none])).await;
        assert_eq!(found, Ok(Value::Null));
        let error = node.public("debug_getRawBlockAccessList", json!([none])).await;
        assert!(error.expect_err("refused").is(Code::ResourceNotFound));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_has_no_keys_and_no_coinbase() {
    let mut node = TestNode::start(genesis_of_all_forks()).await;
    assert_eq!(node.public("eth_accounts", json!([])).await, Ok(json!([])));
    assert_eq!(node.public("eth_coinbase", json!([])).await, Ok(json!(Address::ZERO)));
    let slots = vec![B256::ZERO; 1025];
    let error = node.public("eth_getStorageValues", json!([{CONTRACT.to_string(): slots}])).await;
    let error = error.expect_err("refused");
    assert!(error.is(Code::ClientLimit) && error.message.contains("max 1024"), "{error}");
}

/// As a benchmark's runner does: a block, and back.
#[tokio::test(flavor = "multi_thread")]
async fn a_block_is_run_and_taken_back_a_hundred_times() {
    let mut chain = Chain::start().await;
    let genesis = chain.node.head().await;
    for round in 0..100 {
        let envelope = chain.build(&genesis, &[1, 2], round).await;
        let hash = chain.validate(&envelope).await;
        chain.choose(&hash).await;
        assert_eq!(chain.node.head().await, hash);
        chain.node.ok("debug_setHead", json!(["0x0"])).await;
        assert_eq!(chain.node.head().await, genesis);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn not_everybody_sets_the_head() {
    let mut node =
        TestNode::start_with(genesis_of_all_forks(), |options| options.testing = false).await;
    for method in ["debug_setHead", "debug_resetHead"] {
        let error = node.public(method, json!(["0x0"])).await.expect_err("refused");
        assert!(error.is(Code::MethodNotFound), "{error}");
    }
    assert_eq!(node.ok("debug_setHead", json!(["0x0"])).await, Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn both_heads_of_the_sync_status_are_the_head() {
    let mut chain = Chain::start().await;
    let hashes = grown(&mut chain).await;
    let expected = json!({
        "headBlockHash": hashes[4], "headBlockNumber": "0x4",
        "executedBlockHash": hashes[4], "executedBlockNumber": "0x4",
    });
    assert_eq!(chain.node.ok("engine_getSyncStatus", json!([])).await, expected);
    let names = chain.node.ok("engine_exchangeCapabilities", json!([[]])).await;
    assert!(names.as_array().expect("names").contains(&json!("engine_getSyncStatus")));
    let path = "/engine/v1/syncstatus";
    let reply = chain.node.engine.request(Method::GET, path, HeaderMap::new(), Bytes::new()).await;
    let reply = reply.expect("an answer");
    assert_eq!(serde_json::from_slice::<Value>(&reply.body).expect("JSON"), expected);
    assert_eq!(reply.headers["cache-control"], "no-store");
}

#[tokio::test(flavor = "multi_thread")]
async fn there_are_no_cells_of_blobs() {
    let mut node = TestNode::start(genesis_of_all_forks()).await;
    let mask = format!("0x{}", "ff".repeat(16));
    let params = json!([[BLOB_HASH], mask]);
    assert_eq!(node.ok("engine_getBlobsV4", params).await, Value::Null);
    let refused = json!([[BLOB_HASH], "0xff"]);
    node.refused("engine_getBlobsV4", refused, Code::InvalidParams, "indicesBitarray").await;
    let many = json!([vec![BLOB_HASH; 129], mask]);
    node.refused("engine_getBlobsV4", many, Code::TooLargeRequest, "129").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_forks_around_the_head_are_told() {
    let mut node = TestNode::start(genesis_of_all_forks()).await;
    let config = node.public("eth_config", json!([])).await.expect("an answer");
    // The genesis is in Paris, which no time begins.
    assert_eq!(config["current"], Value::Null);
    assert_eq!(config["next"]["activationTime"], 10);
    assert_eq!(config["last"]["activationTime"], 50);
    assert!(config["last"]["precompiles"].get("P256VERIFY").is_some());
    assert_eq!(config["next"]["blobSchedule"], Value::Null);
    for (fork, time) in [(ALL_FORKS[1], 12), (ALL_FORKS[2], 24)] {
        node.extend(fork, time, &[]).await;
    }
    let config = node.public("eth_config", json!([])).await.expect("an answer");
    let times = ["current", "next", "last"].map(|name| config[name]["activationTime"].clone());
    assert_eq!(times, [json!(20), json!(30), json!(50)]);
    assert_eq!(config["current"]["blobSchedule"]["target"], 3);
    let names = config["current"]["systemContracts"].as_object().expect("an object");
    assert_eq!(names.len(), 1, "{names:?}");
    let names = config["last"]["systemContracts"].as_object().expect("an object");
    assert!(names.contains_key("DEPOSIT_CONTRACT_ADDRESS"), "{names:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_says_who_it_is_and_that_it_has_no_peers() {
    let mut node = TestNode::start(genesis_of_all_forks()).await;
    let info = node.public("admin_nodeInfo", json!([])).await.expect("an answer");
    let enode = info["enode"].as_str().expect("a text");
    assert!(enode.starts_with("enode://") && enode.ends_with("@127.0.0.1:0"), "{enode}");
    assert!(info["enr"].as_str().expect("a text").starts_with("enr:-"), "{info}");
    assert_eq!(node.public("net_listening", json!([])).await, Ok(json!(false)));
    let capabilities = node.public("eth_capabilities", json!([])).await.expect("an answer");
    assert_eq!(capabilities["head"]["number"], "0x0");
    for name in ["state", "stateproofs", "blocks", "receipts", "tx", "logs"] {
        assert_eq!(capabilities[name]["oldestBlock"], "0x0", "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_are_as_long_as_geths() {
    let mut node = TestNode::start(genesis_of_all_forks()).await;
    let params = serde_json::value::to_raw_value(&json!([])).expect("JSON");
    for (client, most) in [(&mut node.engine, 2000), (&mut node.public, 1000)] {
        for (count, is_taken) in [(most, true), (most + 1, false)] {
            let calls = vec![("eth_chainId", &*params); count];
            let (_, answer) = client.batch_raw(&calls).await.expect("an answer");
            let answer: Value = serde_json::from_slice(&answer).expect("JSON");
            let answers = answer.as_array().expect("a list");
            match is_taken {
                true => assert_eq!(answers.len(), count),
                false => assert_eq!(answers[0]["error"]["message"], "batch too large"),
            }
        }
    }
}
