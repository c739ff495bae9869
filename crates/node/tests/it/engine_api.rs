//! The calls of a consensus client and of a prover, over HTTP.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};

use crate::support::*;
use alloy_primitives::{Address, B256, Bytes, U64};
use client::ssz::{PayloadStatus, WithWitness};
use rpc::rest::{self, HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use rpc::{Client, Code};
use serde_json::{Value, json};
use witness::Witness;

fn decode(witness: &Value) -> Witness {
    let bytes: Bytes = serde_json::from_value(witness.clone()).expect("hex");
    witness::rlp::decode(&bytes).expect("a witness")
}

/// The witness is all that its block needs.
fn verify(node: &TestNode, hash: &Value, witness: &Witness) {
    let hash: B256 = serde_json::from_value(hash.clone()).expect("a hash");
    let engine = node.node.engine();
    let record = engine.block(hash).expect("readable").expect("a valid block");
    let verified =
        execution::verify(engine.chain(), &record.block, None, witness).expect("a whole witness");
    assert_eq!(verified.witness, *witness);
}

#[tokio::test]
async fn a_payload_is_built_validated_adopted_and_comes_with_its_witness() {
    let mut node = TestNode::start(genesis_of_osaka()).await;
    let id = node.begin(OSAKA, 1, false).await;
    assert_eq!(node.begin(OSAKA, 1, false).await, id, "one build for the same attributes");
    let envelope = node.built(OSAKA, id).await;
    assert_eq!(envelope["blobsBundle"], json!({"commitments": [], "proofs": [], "blobs": []}));
    assert_eq!(envelope["shouldOverrideBuilder"], false);
    assert_eq!(envelope["executionRequests"], json!([]));
    assert_eq!(envelope.get("witness"), None);

    let params = new_payload(4, &envelope);
    let hash = &envelope["executionPayload"]["blockHash"];
    let mut witnesses = Vec::new();
    // The second answer is a repeated one: the block is known by then.
    for _ in 0..2 {
        let status = node.ok("engine_newPayloadWithWitnessV4", params.clone()).await;
        let names: Vec<_> = status.as_object().expect("an object").keys().collect();
        assert_eq!(names, ["latestValidHash", "status", "validationError", "witness"]);
        assert_eq!(status["status"], "VALID");
        assert_eq!(status["latestValidHash"], *hash);
        assert_eq!(status["validationError"], Value::Null);
        witnesses.push(decode(&status["witness"]));
    }
    assert_eq!(witnesses[0], witnesses[1]);
    let text = node.text("engine_newPayloadWithWitnessV4", params.clone()).await;
    assert!(text.contains(r#""result":{"status":"VALID","witness":"0xf9"#), "{text:.200}");
    let end = format!(r#"","latestValidHash":{hash},"validationError":null}}}}"#);
    assert!(text.ends_with(&end), "the order of members is geth's");
    verify(&node, hash, &witnesses[0]);

    assert_ne!(node.head().await, *hash);
    node.adopt(OSAKA, &envelope).await;
    let shown = node.public("debug_executionWitness", json!(["latest"])).await.expect("shown");
    let shown: Witness = serde_json::from_value(shown).expect("a witness");
    assert_eq!(shown, witnesses[0]);
    node.node.stop().await;
}

#[tokio::test]
async fn a_payload_built_with_witness_carries_it_last() {
    let mut node = TestNode::start(genesis_of_all_forks()).await;
    for fork in ALL_FORKS {
        let id = node.begin(fork, fork.time, true).await;
        let plain = node.begin(fork, fork.time, false).await;
        assert_ne!(id, plain);
        let envelope = node.built(fork, plain).await;
        let of = |value: &Value| match fork.get {
            1 => value["executionPayload"]["witness"].clone(),
            _ => value["witness"].clone(),
        };
        assert_eq!(of(&envelope), Value::Null, "{fork:?}");
        let text = node.text(&format!("engine_getPayloadV{}", fork.get), json!([id])).await;
        let (_, last) = text.rsplit_once(r#","witness":"0xf9"#).expect("a witness");
        assert!(last.ends_with(r#""}}"#) && !last.contains(','), "the witness comes last");
        let with = node.built(fork, id).await;
        node.adopt(fork, &envelope).await;
        verify(&node, &envelope["executionPayload"]["blockHash"], &decode(&of(&with)));
    }
}

#[tokio::test]
async fn every_fork_has_its_versions_and_refuses_the_others() {
    let mut node = TestNode::start(genesis_of_all_forks()).await;
    for fork in ALL_FORKS {
        let id = node.begin(fork, fork.time, false).await;
        let envelope = node.built(fork, id.clone()).await;
        for get in 1..=6 {
            // The first two differ in their structure only, and so do Shanghai's two.
            if get == fork.get || (fork.get == 1 && get == 2) {
                continue;
            }
            let method = format!("engine_getPayloadV{get}");
            node.refused(&method, json!([id]), Code::UnsupportedFork, "").await;
        }
        for new in 1..=5 {
            let method = format!("engine_newPayloadV{new}");
            let params = new_payload(new, &envelope);
            let code = match (fork.new, new) {
                (1, 2) => continue,
                (of_fork, new) if of_fork == new => continue,
                // Payloads of these two look alike.
                (3, 4) | (4, 3) => Code::UnsupportedFork,
                _ => Code::InvalidParams,
            };
            node.refused(&method, params, code, "").await;
        }
        node.adopt(fork, &envelope).await;
    }
}

#[tokio::test]
async fn a_block_is_executed_from_its_witness_alone() {
    let mut node = TestNode::start(genesis_of_osaka()).await;
    let envelope = node.extend(OSAKA, 1, &transactions()).await;
    let mut params = new_payload(4, &envelope);
    let status = node.ok("engine_newPayloadWithWitnessV4", params.clone()).await;
    params.as_array_mut().expect("a list").push(status["witness"].clone());

    let payload = &envelope["executionPayload"];
    let good = json!({
        "status": "VALID", "stateRoot": payload["stateRoot"],
        "receiptsRoot": payload["receiptsRoot"], "validationError": null,
    });
    let answer = node.ok("engine_executeStatelessPayloadV4", params.clone()).await;
    assert_eq!(answer, good);
    // Neither block hash nor state root are looked at: the caller compares.
    params[0]["blockHash"] = json!(B256::ZERO);
    params[0]["stateRoot"] = json!(B256::ZERO);
    let answer = node.ok("engine_executeStatelessPayloadV4", params.clone()).await;
    assert_eq!(answer, good);

    for bad in ["0x", "0xc0", "0xc4c0c0c0c0", "0xdeadbeef"] {
        params[4] = json!(bad);
        let answer = node.ok("engine_executeStatelessPayloadV4", params.clone()).await;
        assert_eq!(answer["status"], "INVALID", "{bad}");
        assert_ne!(answer["validationError"], Value::Null, "{bad}");
    }
}

#[tokio::test]
async fn witnesses_are_shown_of_every_block_on_any_branch() {
    let mut node = TestNode::start(genesis_of_osaka()).await;
    let genesis_hash = node.head().await;
    let first = node.extend(OSAKA, 1, &[]).await["executionPayload"]["blockHash"].clone();
    let second = node.extend(OSAKA, 2, &[]).await["executionPayload"]["blockHash"].clone();
    let witness = |answer: Value| serde_json::from_value::<Witness>(answer).expect("a witness");
    let mut shown = Vec::new();
    for (method, params) in [
        ("debug_executionWitness", json!(["0x1"])),
        ("debug_executionWitness", json!([first])),
        ("debug_executionWitness", json!([{"blockNumber": "0x1"}, "canonical"])),
        (
            "debug_executionWitness",
            json!([{"blockHash": first, "requireCanonical": true}, "legacy"]),
        ),
        ("debug_executionWitnessByBlockHash", json!([first])),
        ("debug_executionWitnessByHash", json!([first, null])),
    ] {
        let answer = node.public(method, params).await.expect(method);
        let names: Vec<_> = answer.as_object().expect("an object").keys().cloned().collect();
        assert_eq!(names, ["codes", "headers", "state"]);
        shown.push(witness(answer));
    }
    assert!(shown.windows(2).all(|pair| pair[0] == pair[1]));
    verify(&node, &first, &shown[0]);

    // A second branch takes the head: the first one's blocks keep their witnesses.
    let params = json!([first, attributes(3, 3), [], "0x626f"]);
    let other = node.ok("testing_buildBlockV1", params).await;
    node.adopt(OSAKA, &other).await;
    let answer = node.public("debug_executionWitness", json!([second])).await.expect("a witness");
    verify(&node, &second, &witness(answer));

    for (params, words) in [
        (json!(["0x0"]), "genesis"),
        (json!(["earliest"]), "genesis"),
        (json!([genesis_hash]), "genesis"),
        (json!(["pending"]), "pending block has no witness"),
        (json!(["0x9"]), "there is no"),
        (json!(["finalized"]), "there is no"),
        (json!([B256::repeat_byte(9)]), "there is no"),
        (json!([{"blockHash": second, "requireCanonical": true}]), "there is no"),
    ] {
        let error = node.public("debug_executionWitness", params.clone()).await.expect_err("none");
        assert!(error.is(Code::Server) && error.to_string().contains(words), "{params}: {error}");
    }
    for params in [json!([]), json!(["0x01"]), json!(["0x1", "full"]), json!(["0x1", null, 1])] {
        let error = node.public("debug_executionWitness", params.clone()).await.expect_err("bad");
        assert!(error.is(Code::InvalidParams), "{params}: {error}");
    }
}

#[tokio::test]
async fn bodies_are_those_of_the_blocks() {
    let mut node = TestNode::start(genesis_of_all_forks()).await;
    let mut expected = Vec::new();
    for fork in ALL_FORKS {
        let transactions = if fork.time == 41 { transactions() } else { Vec::new() };
        let envelope = node.extend(fork, fork.time, &transactions).await;
        let payload = &envelope["executionPayload"];
        let body = json!({
            "transactions": payload["transactions"], "withdrawals": payload["withdrawals"],
            "blockAccessList": payload["blockAccessList"],
        });
        expected.push((payload["blockHash"].clone(), body));
    }
    let of_first_version = |body: &Value| {
        let mut body = body.clone();
        body.as_object_mut().expect("an object").remove("blockAccessList");
        body
    };
    let bodies: Vec<_> = expected.iter().map(|(_, body)| body.clone()).collect();
    let first: Vec<_> = bodies.iter().map(of_first_version).collect();
    assert_eq!(bodies[0]["withdrawals"], Value::Null);
    assert_ne!(bodies[5]["blockAccessList"], Value::Null);

    let range = node.ok("engine_getPayloadBodiesByRangeV1", json!(["0x1", "0x6"])).await;
    assert_eq!(range, json!(first));
    let range = node.ok("engine_getPayloadBodiesByRangeV2", json!(["0x2", "0x400"])).await;
    assert_eq!(range, json!(bodies[1..]), "no null for blocks after the head");
    let range = node.ok("engine_getPayloadBodiesByRangeV2", json!(["0x7", "0x1"])).await;
    assert_eq!(range, json!([]));

    let mut hashes: Vec<_> = expected.iter().map(|(hash, _)| hash.clone()).collect();
    hashes.insert(1, json!(B256::repeat_byte(9)));
    let mut with_null = bodies.clone();
    with_null.insert(1, Value::Null);
    let named = node.ok("engine_getPayloadBodiesByHashV2", json!([hashes])).await;
    assert_eq!(named, json!(with_null));
    let named = node.ok("engine_getPayloadBodiesByHashV1", json!([[hashes[0]]])).await;
    assert_eq!(named, json!(first[..1]));
}

#[tokio::test]
async fn capabilities_are_the_methods_of_the_engine_port() {
    let mut node = TestNode::start(genesis_of_osaka()).await;
    let theirs = json!([["engine_newPayloadV4"]]);
    let names = node.ok("engine_exchangeCapabilities", theirs).await;
    let names: Vec<String> = serde_json::from_value(names).expect("names");
    assert!(!names.contains(&"engine_exchangeCapabilities".into()));
    assert!(names.iter().all(|name| name.starts_with("engine_")));
    for (name, versions) in [
        ("engine_newPayload", 5),
        ("engine_newPayloadWithWitness", 5),
        ("engine_executeStatelessPayload", 5),
        ("engine_forkchoiceUpdated", 4),
        ("engine_forkchoiceUpdatedWithWitness", 4),
        ("engine_getPayload", 6),
        ("engine_getPayloadBodiesByHash", 2),
        ("engine_getPayloadBodiesByRange", 2),
        ("engine_getBlobs", 4),
        ("engine_getClientVersion", 1),
    ] {
        for version in 1..=versions {
            let name = format!("{name}V{version}");
            assert!(names.contains(&name), "{name}");
            // Each is there: it complains of missing parameters, and of nothing else.
            let error = node.call(&name, json!([])).await.expect_err("no parameters");
            assert!(error.is(Code::InvalidParams) && error.to_string().contains("missing"));
        }
    }
    assert!(names.contains(&"engine_getSyncStatus".into()));
    assert_eq!(names.len(), 39);
}

#[tokio::test]
async fn the_node_says_who_it_is() {
    let mut node = TestNode::start(genesis_of_osaka()).await;
    let theirs = json!([{"code": "ZZ", "name": "other", "version": "1", "commit": "0x00000000"}]);
    let ours = node.ok("engine_getClientVersionV1", theirs).await;
    assert_eq!(ours[0]["name"], "Deponent");
    assert_eq!(ours[0]["commit"].as_str().map(str::len), Some(10));
    assert_eq!(node.public("net_version", json!([])).await.expect("a version"), "1337");
    assert_eq!(node.public("eth_chainId", json!([])).await.expect("a chain"), "0x539");
    assert_eq!(node.ok("eth_chainId", json!([])).await, "0x539");
    assert_eq!(node.ok("eth_syncing", json!([])).await, false);
    assert_eq!(node.ok("eth_blockNumber", json!([])).await, "0x0");
    let client = node.public("web3_clientVersion", json!([])).await.expect("a client");
    assert!(client.as_str().is_some_and(|client| client.starts_with("Deponent/v")), "{client}");
    let modules = node.public("rpc_modules", json!([])).await.expect("modules");
    let names = ["admin", "debug", "deponent", "eth", "net", "rpc", "trace", "txpool", "web3"];
    assert_eq!(
        modules,
        json!(names.map(|name| (name, "1.0")).into_iter().collect::<BTreeMap<_, _>>())
    );
    let error = node.public("engine_newPayloadV4", json!([])).await.expect_err("another port");
    assert!(error.is(Code::MethodNotFound));
}

#[tokio::test]
async fn blobs_are_null_without_transactions_that_have_them() {
    let mut node = TestNode::start(genesis_of_all_forks()).await;
    let hashes = json!([[B256::ZERO, B256::ZERO]]);
    assert_eq!(node.ok("engine_getBlobsV1", hashes.clone()).await, json!([null, null]));
    assert_eq!(node.ok("engine_getBlobsV2", hashes.clone()).await, Value::Null);
    assert_eq!(node.ok("engine_getBlobsV3", hashes.clone()).await, Value::Null);
    for fork in &ALL_FORKS[..5] {
        node.extend(*fork, fork.time, &[]).await;
    }
    node.refused("engine_getBlobsV1", hashes.clone(), Code::UnsupportedFork, "Osaka").await;
    assert_eq!(node.ok("engine_getBlobsV2", hashes.clone()).await, Value::Null);
    assert_eq!(node.ok("engine_getBlobsV3", hashes).await, json!([null, null]));
    let cells = json!([[B256::ZERO], "0x00000000000000000000000000000003"]);
    assert_eq!(node.ok("engine_getBlobsV4", cells).await, json!([null]));
}

#[tokio::test]
async fn transactions_and_receipts_are_found_by_their_place() {
    let mut node = TestNode::start(genesis_of_osaka()).await;
    let transactions = transactions();
    let envelope = node.extend(OSAKA, 1, &transactions).await;
    let hash = &envelope["executionPayload"]["blockHash"];
    let full = node.ok("eth_getBlockByHash", json!([hash, true])).await;
    let receipts = node.public("eth_getBlockReceipts", json!([hash])).await.expect("receipts");
    for id in [json!("latest"), json!("0x1"), json!({"blockHash": hash})] {
        let named = node.public("eth_getBlockReceipts", json!([id])).await;
        assert_eq!(named.expect("receipts"), receipts, "{id}");
    }
    let mut gas_used = 0;
    for (index, transaction) in transactions.iter().enumerate() {
        let place = format!("{index:#x}");
        for (kind, id) in [("Hash", hash), ("Number", &json!("0x1")), ("Number", &json!("latest"))]
        {
            let method = format!("eth_getTransactionByBlock{kind}AndIndex");
            let found = node.public(&method, json!([id, place])).await.expect("a transaction");
            assert_eq!(found, full["transactions"][index]);
        }
        let receipt = &receipts[index];
        assert_eq!(receipt["transactionHash"], json!(transaction.hash()));
        assert_eq!(receipt["transactionIndex"], place);
        assert_eq!(receipt["blockHash"], *hash);
        assert_eq!(receipt["type"], place);
        assert_eq!(receipt["status"], "0x1");
        assert_eq!(receipt["contractAddress"], Value::Null);
        for name in ["from", "to"] {
            assert_eq!(receipt[name], full["transactions"][index][name]);
        }
        assert_eq!(receipt["effectiveGasPrice"], full["transactions"][index]["gasPrice"]);
        let blob = (index == 3).then(|| json!("0x20000"));
        assert_eq!(receipt.get("blobGasUsed"), blob.as_ref());
        assert_eq!(receipt.get("blobGasPrice").is_some(), blob.is_some());
        let used: U64 = serde_json::from_value(receipt["gasUsed"].clone()).expect("a number");
        gas_used += used.to::<u64>();
        assert_eq!(receipt["cumulativeGasUsed"], format!("{gas_used:#x}"));
    }
    assert_eq!(receipts.as_array().map(Vec::len), Some(transactions.len()));
    assert_eq!(full["gasUsed"], format!("{gas_used:#x}"));

    for (method, params, expected) in [
        ("eth_getBlockReceipts", json!(["0x0"]), json!([])),
        ("eth_getBlockReceipts", json!(["0x2"]), Value::Null),
        ("eth_getBlockReceipts", json!([B256::ZERO]), Value::Null),
        ("eth_getBlockTransactionCountByHash", json!([hash]), json!("0x5")),
        ("eth_getBlockTransactionCountByHash", json!([B256::ZERO]), Value::Null),
        ("eth_getBlockTransactionCountByNumber", json!(["latest"]), json!("0x5")),
        ("eth_getBlockTransactionCountByNumber", json!(["0x0"]), json!("0x0")),
        ("eth_getBlockTransactionCountByNumber", json!(["pending"]), json!("0x0")),
        ("eth_getTransactionByBlockHashAndIndex", json!([hash, "0x5"]), Value::Null),
        ("eth_getTransactionByBlockHashAndIndex", json!([B256::ZERO, "0x0"]), Value::Null),
        ("eth_getTransactionByBlockNumberAndIndex", json!(["0x2", "0x0"]), Value::Null),
        (
            "eth_getTransactionByBlockNumberAndIndex",
            json!(["0x1", "0xffffffffffffffff"]),
            Value::Null,
        ),
    ] {
        assert_eq!(node.public(method, params.clone()).await, Ok(expected), "{method}{params}");
    }
    for (method, params) in [
        ("eth_getBlockReceipts", json!([])),
        ("eth_getBlockReceipts", json!(["newest"])),
        ("eth_getBlockReceipts", json!(["latest", true])),
        ("eth_getBlockTransactionCountByHash", json!(["0x1"])),
        ("eth_getBlockTransactionCountByNumber", json!([1])),
        ("eth_getTransactionByBlockHashAndIndex", json!([hash])),
        ("eth_getTransactionByBlockHashAndIndex", json!([hash, 1])),
        ("eth_getTransactionByBlockNumberAndIndex", json!(["0x1", "0x01"])),
        ("eth_getTransactionByBlockNumberAndIndex", json!(["0x1", "0x1", true])),
        ("rpc_modules", json!([1])),
    ] {
        let error = node.public(method, params.clone()).await.expect_err("bad input");
        assert!(error.is(Code::InvalidParams), "{method}{params}: {error}");
    }
}

#[tokio::test]
async fn blocks_are_shown_with_every_type_of_transaction() {
    let mut node = TestNode::start(genesis_of_osaka()).await;
    let transactions = transactions();
    let envelope = node.extend(OSAKA, 1, &transactions).await;
    let payload = &envelope["executionPayload"];
    let params = |full| json!([payload["blockHash"], full]);
    let hashes = node.ok("eth_getBlockByHash", params(false)).await;
    let full = node.ok("eth_getBlockByHash", params(true)).await;
    for (name, expected) in [
        ("hash", &payload["blockHash"]),
        ("number", &json!("0x1")),
        ("miner", &payload["feeRecipient"]),
        ("mixHash", &payload["prevRandao"]),
        ("baseFeePerGas", &payload["baseFeePerGas"]),
        ("blobGasUsed", &json!("0x20000")),
        ("withdrawals", &payload["withdrawals"]),
        ("uncles", &json!([])),
    ] {
        assert_eq!(&full[name], expected, "{name}");
        assert_eq!(&hashes[name], expected, "{name}");
    }
    for (index, transaction) in transactions.iter().enumerate() {
        let shown = &full["transactions"][index];
        assert_eq!(hashes["transactions"][index], json!(transaction.hash()));
        assert_eq!(shown["hash"], json!(transaction.hash()));
        assert_eq!(shown["type"], json!(format!("{index:#x}")));
        assert_eq!(shown["transactionIndex"], json!(format!("{index:#x}")));
        let mut names =
            "blockHash blockNumber blockTimestamp from gas gasPrice input nonce r s to v \
            value chainId"
                .to_owned();
        names += ["", " accessList yParity"][usize::from(index > 0)];
        names += ["", " maxFeePerGas maxPriorityFeePerGas"][usize::from(index > 1)];
        for name in names.split(' ') {
            assert!(!shown[name].is_null(), "type {index} has no {name}: {shown}");
        }
    }
    let special = &full["transactions"];
    assert_eq!(special[3]["blobVersionedHashes"], json!([BLOB_HASH]));
    assert!(special[3]["maxFeePerBlobGas"].is_string());
    assert_eq!(special[4]["authorizationList"].as_array().map(Vec::len), Some(1));

    for (tag, expected) in [
        ("latest", payload["blockHash"].clone()),
        ("earliest", full["parentHash"].clone()),
        ("0x0", full["parentHash"].clone()),
        ("0x2", Value::Null),
        ("safe", Value::Null),
        ("finalized", Value::Null),
        ("pending", Value::Null),
    ] {
        let block = node.public("eth_getBlockByNumber", json!([tag, false])).await.expect(tag);
        assert_eq!(block["hash"], expected, "{tag}");
    }
    // Nothing waits, so the pending state is that of the head.
    for method in ["eth_getBalance", "eth_getTransactionCount", "eth_getCode"] {
        let of = |tag| json!([CONTRACT, tag]);
        let latest = node.public(method, of("latest")).await.expect(method);
        assert_eq!(node.public(method, of("pending")).await, Ok(latest), "{method}");
        // The message has the reason: other programs show nothing else.
        let error = node.public(method, of("0x99")).await.expect_err("above the head");
        assert_eq!((&*error.message, error.data), ("there is no block 153", None));
    }
    let error = node.public("eth_sendTransaction", json!([])).await.expect_err("there is none");
    assert_eq!(&*error.message, r#"there is no method "eth_sendTransaction" here"#);
    let block = node.ok("eth_getBlockByHash", json!([B256::ZERO, false])).await;
    assert_eq!(block, Value::Null);
    assert_eq!(node.ok("eth_blockNumber", json!([])).await, "0x1");
    // As a consensus client asks for deposits, on a chain that has none.
    let deposits = json!({"address": CONTRACT, "fromBlock": "0x0", "toBlock": "0x1"});
    assert_eq!(node.ok("eth_getLogs", json!([deposits])).await, json!([]));
}

#[tokio::test]
async fn safe_and_finalized_are_those_named_last() {
    let mut node = TestNode::start(genesis_of_osaka()).await;
    let first = node.extend(OSAKA, 1, &[]).await["executionPayload"]["blockHash"].clone();
    let second = node.extend(OSAKA, 2, &[]).await["executionPayload"]["blockHash"].clone();
    let state =
        json!({"headBlockHash": second, "safeBlockHash": second, "finalizedBlockHash": first});
    node.ok("engine_forkchoiceUpdatedV3", json!([state, null])).await;
    for (tag, hash) in [("safe", &second), ("finalized", &first), ("latest", &second)] {
        let block = node.ok("eth_getBlockByNumber", json!([tag, false])).await;
        assert_eq!(block["hash"], *hash, "{tag}");
    }
    // No fork choice goes back behind the finalized block, with or without a build.
    let finalized =
        json!({"headBlockHash": second, "safeBlockHash": second, "finalizedBlockHash": second});
    node.ok("engine_forkchoiceUpdatedV3", json!([finalized, null])).await;
    let zero = alloy_primitives::B256::ZERO;
    let bad = json!({"timestamp": "0xffff", "prevRandao": zero, "withdrawals": [],
        "suggestedFeeRecipient": alloy_primitives::Address::ZERO});
    let back = json!({"headBlockHash": first, "safeBlockHash": zero, "finalizedBlockHash": zero});
    let answer = node.ok("engine_forkchoiceUpdatedV3", json!([back, bad])).await;
    assert_eq!(
        (&answer["payloadStatus"]["status"], &answer["payloadId"]),
        (&json!("VALID"), &Value::Null)
    );
    let params = json!([finalized, bad]);
    node.refused("engine_forkchoiceUpdatedV3", params, Code::InvalidPayloadAttributes, "").await;
}

#[tokio::test]
async fn timings_are_those_of_the_last_block() {
    let mut node = TestNode::start(genesis_of_osaka()).await;
    assert_eq!(node.ok("deponent_lastTimings", json!([])).await, Value::Null);
    for number in 1..3 {
        let hash = node.extend(OSAKA, number, &[]).await["executionPayload"]["blockHash"].clone();
        let timings = node.ok("deponent_lastTimings", json!([])).await;
        assert_eq!(timings["blockHash"], hash);
        let stages =
            ["recovery", "parent", "execution", "root", "catchingUp", "witness", "forkchoice"];
        assert_eq!(timings.as_object().expect("an object").len(), 1 + stages.len());
        for stage in stages {
            assert!(timings[stage].is_u64(), "{stage}: {timings}");
        }
        // Both have been done, and neither in less than a microsecond.
        assert_ne!(timings["execution"], 0, "{timings}");
        assert_ne!(timings["forkchoice"], 0, "{timings}");
    }
}

/// One bare request, one line back.
fn bare(path: &std::path::Path, request: &Value) -> Value {
    let mut socket = std::os::unix::net::UnixStream::connect(path).expect("somebody listens");
    socket.write_all(request.to_string().as_bytes()).expect("sent");
    let mut line = String::new();
    BufReader::new(socket).read_line(&mut line).expect("a line");
    serde_json::from_str(&line).expect("JSON")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_unix_socket_answers_as_both_ports_do_without_a_token() {
    let mut node = TestNode::start(genesis_of_osaka()).await;
    let id = node.begin(OSAKA, 1, false).await;
    let envelope = node.built(OSAKA, id).await;
    let params = new_payload(4, &envelope);
    let path = node.node.ipc_path.clone().expect("it listens");
    let mut client = node.unix_client().await;
    let called: Value =
        client.call("engine_newPayloadWithWitnessV4", params.clone()).await.expect("a result");
    assert_eq!(called["status"], "VALID");
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "engine_newPayloadWithWitnessV4",
        "params": params});
    assert_eq!(bare(&path, &request)["result"], called);
    assert_eq!(node.ok("engine_newPayloadWithWitnessV4", params).await, called);
    let hash = &envelope["executionPayload"]["blockHash"];
    let request = json!({"jsonrpc": "2.0", "id": 2,
        "method": "debug_executionWitnessByBlockHash", "params": [hash]});
    let shown = node.public("debug_executionWitnessByBlockHash", json!([hash])).await.unwrap();
    assert_eq!(bare(&path, &request)["result"], shown);
    node.node.stop().await;
    assert!(!path.exists(), "a node that stops takes its socket away");
}

/// Asks for the verdict on a payload and its witness, with a further header.
async fn post_payload(
    client: &mut Client,
    sent: &[u8],
    more: Option<(&'static str, &'static str)>,
) -> (HeaderMap, Bytes) {
    let headers =
        [("content-type", "application/octet-stream"), ("eth-execution-version", "osaka")];
    let headers = headers
        .into_iter()
        .chain(more)
        .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
    let path = "/engine/v1/payloads/witness";
    let asked = client.request(Method::POST, path, headers.collect(), sent.to_vec());
    let reply = asked.await.expect("an answer");
    assert_eq!(reply.status, StatusCode::OK);
    (reply.headers, Bytes::from(reply.body))
}

/// Splits what a client that holds codes is answered.
fn held(body: &Bytes) -> (WithWitness<PayloadStatus>, Vec<u32>) {
    let offset = |at: usize| u32::from_le_bytes(body[at..at + 4].try_into().unwrap()) as usize;
    assert_eq!(offset(0), 8);
    let numbers = body[offset(4)..].chunks(4).map(|number| number.try_into().unwrap());
    let answer =
        WithWitness::<PayloadStatus>::decode(&body.slice(8..offset(4))).expect("an answer");
    (answer, numbers.map(u32::from_le_bytes).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_on_the_same_host_gets_each_code_once_and_large_answers_by_descriptor() {
    let mut node = TestNode::start(genesis_of_osaka()).await;
    let id = node.begin(OSAKA, 1, false).await;
    let built = node.built(OSAKA, id).await;
    let sent = new_payload_call(4, &built).to_ssz().expect("short");
    let mut client = node.unix_client().await;
    let mut ask = async |more: Option<&'static str>| {
        post_payload(&mut client, &sent, more.map(|name| (name, "1"))).await
    };
    let (_, whole) = ask(None).await;
    let whole = WithWitness::<PayloadStatus>::decode(&whole).expect("an answer");
    let witness = whole.witness.clone().expect("VALID");
    assert!(!witness.codes.is_empty());

    let (headers, first) = ask(Some("deponent-codes")).await;
    assert_eq!(headers["deponent-codes"], "0");
    assert_eq!(held(&first), (whole.clone(), Vec::new()));
    let (headers, second) = ask(Some("deponent-codes")).await;
    assert_eq!(headers["deponent-codes"], witness.codes.len().to_string());
    let (answer, numbers) = held(&second);
    let lacking = Witness { codes: Vec::new(), ..witness.clone() };
    assert_eq!(answer.witness, Some(lacking));
    assert_eq!(numbers, (0..witness.codes.len() as u32).collect::<Vec<_>>());

    // Too small to be worth a file.
    let (headers, small) = ask(Some("deponent-descriptor")).await;
    assert!(!headers.contains_key(rest::DESCRIPTOR));
    assert_eq!(WithWitness::<PayloadStatus>::decode(&small), Ok(whole));
    node.node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_on_the_same_host_reads_codes_in_the_nodes_files() {
    let mut node = TestNode::start(genesis_of_osaka()).await;
    let id = node.begin(OSAKA, 1, false).await;
    let built = node.built(OSAKA, id).await;
    let sent = new_payload_call(4, &built).to_ssz().expect("short");
    let file = async |client: &mut Client, segment: &str, is_asked_for: bool| {
        let name = HeaderName::from_static("deponent-descriptor");
        let header = is_asked_for.then_some((name, rest::OWN_FILE));
        let path = format!("/engine/v1/code-files/{segment}");
        let asked = client.request(Method::GET, &path, header.into_iter().collect(), Vec::new());
        asked.await.expect("an answer")
    };
    let mut client = node.unix_client().await;
    let (_, whole) = post_payload(&mut client, &sent, None).await;
    let whole = WithWitness::<PayloadStatus>::decode(&whole).expect("an answer");
    let witness = whole.witness.clone().expect("VALID");
    assert!(!witness.codes.is_empty());

    // A client that disconnects leaves nothing behind.
    drop(client);
    let mut client = node.unix_client().await;
    let mapped = Some(("deponent-codes", "mapped"));
    let (headers, body) = post_payload(&mut client, &sent, mapped).await;
    assert_eq!(headers["deponent-codes"], "mapped");
    let offset = |at: usize| u32::from_le_bytes(body[at..at + 4].try_into().unwrap()) as usize;
    let answer = WithWitness::<PayloadStatus>::decode(&body.slice(8..offset(4)));
    let lacking = Witness { codes: Vec::new(), ..witness.clone() };
    assert_eq!(answer, Ok(WithWitness { witness: Some(lacking), ..whole }));
    let mut codes = Vec::new();
    for place in body[offset(4)..].as_chunks::<20>().0 {
        let number = |at: usize| u64::from_le_bytes(place[at..at + 8].try_into().unwrap());
        let length = u32::from_le_bytes(place[16..].try_into().unwrap()) as usize;
        let file = file(&mut client, &number(0).to_string(), true).await;
        assert_eq!(file.status, StatusCode::OK);
        codes.push(Bytes::from(file.body).slice(number(8) as usize..).slice(..length));
    }
    assert_eq!(codes, witness.codes);

    let refusals =
        [("0", false, StatusCode::BAD_REQUEST), ("first", true, StatusCode::BAD_REQUEST)];
    let unknown = ("7", true, StatusCode::NOT_FOUND);
    for (segment, is_asked_for, status) in refusals.into_iter().chain([unknown]) {
        let refused = file(&mut client, segment, is_asked_for).await;
        assert_eq!(refused.status, status, "{segment}");
        assert_eq!(refused.headers["content-type"], "application/problem+json");
    }
    // Over TCP nothing can be mapped, and nothing is run to say so.
    let tcp = &mut node.engine;
    let headers = HeaderMap::from_iter([(HeaderName::from_static("deponent-codes"), "mapped")])
        .into_iter()
        .filter_map(|(name, value)| Some((name?, HeaderValue::from_static(value))));
    let path = "/engine/v1/payloads/witness";
    let refused = tcp.request(Method::POST, path, headers.collect(), sent.clone()).await;
    let refused = refused.expect("an answer");
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    let text = String::from_utf8_lossy(&refused.body);
    assert!(text.contains("invalid-request") && text.contains("Unix socket"), "{text}");
    let refused = file(tcp, "0", true).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);

    // Mapped memory outlives the node and its files.
    node.node.stop().await;
    drop((client, node.dir));
    assert_eq!(codes, witness.codes);
}

/// As in geth: an account that is not there has no hashes of code and storage.
#[tokio::test]
async fn the_proof_of_an_absent_account_has_zeroes_for_its_hashes() {
    let mut node = TestNode::start(genesis_of_osaka()).await;
    let absent = json!([Address::repeat_byte(0xab), ["0x1"], "latest"]);
    let proof = node.public("eth_getProof", absent).await.expect("a proof");
    for member in ["codeHash", "storageHash"] {
        assert_eq!(proof[member], json!(B256::ZERO), "{proof}");
    }
    assert_eq!((&proof["nonce"], &proof["balance"]), (&json!("0x0"), &json!("0x0")));
    assert_eq!(proof["storageProof"][0]["value"], "0x0");
    assert!(!proof["accountProof"].as_array().expect("nodes").is_empty(), "{proof}");
    let there = json!([CONTRACT, ["0x1"], "latest"]);
    let proof = node.public("eth_getProof", there).await.expect("a proof");
    assert_ne!(proof["codeHash"], json!(B256::ZERO), "{proof}");
    // It has no storage yet.
    assert_eq!(proof["storageHash"], json!(trie::EMPTY_ROOT_HASH), "{proof}");
}

/// A call of the Engine API's port under a User-Agent.
async fn call_as(node: &mut TestNode, agent: &'static str, method: &str, params: Value) {
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let mut headers = HeaderMap::new();
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    headers.insert("user-agent", HeaderValue::from_static(agent));
    let reply = node.engine.request(Method::POST, "/", headers, call.to_string()).await;
    assert_eq!(reply.expect("an answer").status, StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_agent_names_the_consensus_client_with_calls_of_one_alone() {
    let mut node = TestNode::start(genesis_of_osaka()).await;
    for method in ["eth_blockNumber", "engine_getPayloadBodiesByHashV1", "engine_getBlobsV1"] {
        call_as(&mut node, "prover/1", method, json!([[]])).await;
        let status = node.ok("deponent_status", json!([])).await;
        assert_eq!(status["consensusClient"]["name"], Value::Null, "{method}: {status}");
    }
    let head = state(&node.head().await);
    call_as(&mut node, "beacon/2", "engine_forkchoiceUpdatedV3", json!([head, null])).await;
    call_as(&mut node, "prover/1", "engine_getPayloadBodiesByHashV1", json!([[]])).await;
    let status = node.ok("deponent_status", json!([])).await;
    assert_eq!(status["consensusClient"]["name"], "beacon/2", "{status}");
}

/// Prysm asks for blocks by `eth_*` in slots without one, and makes no call of the Engine API then.
#[tokio::test(flavor = "multi_thread")]
async fn reads_on_the_engine_port_alone_are_signs_of_life_of_the_consensus_client() {
    let mut node = TestNode::start(genesis_of_osaka()).await;
    let latest = json!(["latest", false]);
    let mut local = node.unix_client().await;
    // Everybody reads there.
    local.call::<Value>("eth_getBlockByNumber", latest.clone()).await.expect("a block");
    node.public("eth_getBlockByNumber", latest.clone()).await.expect("a block");
    let status = node.ok("deponent_status", json!([])).await;
    assert_eq!(status["consensusClient"], Value::Null, "{status}");
    node.ok("eth_getBlockByNumber", latest).await;
    let status = node.ok("deponent_status", json!([])).await;
    assert_eq!(status["consensusClient"]["method"], "eth_getBlockByNumber", "{status}");
    let path = "/engine/v1/capabilities";
    let reply = node.engine.request(Method::GET, path, HeaderMap::new(), Vec::new()).await;
    assert_eq!(reply.expect("an answer").status, StatusCode::OK);
    let status = node.ok("deponent_status", json!([])).await;
    assert_eq!(status["consensusClient"]["method"], path, "{status}");
    local.call::<Value>("engine_exchangeCapabilities", json!([[]])).await.expect("names");
    let status = node.ok("deponent_status", json!([])).await;
    assert_eq!(status["consensusClient"]["method"], "engine_exchangeCapabilities", "{status}");
}

/// The answer to `engine_getSyncStatus`, which is the same twice: a number and a hash.
async fn sync_status(node: &mut TestNode) -> (u64, Value) {
    let status = node.ok("engine_getSyncStatus", json!([])).await;
    assert_eq!(node.ok("engine_getSyncStatus", json!([])).await, status);
    let (hash, number) = (&status["headBlockHash"], &status["headBlockNumber"]);
    let expected = json!({
        "headBlockHash": hash, "headBlockNumber": number,
        "executedBlockHash": hash, "executedBlockNumber": number,
    });
    assert_eq!(status, expected);
    let number: U64 = serde_json::from_value(number.clone()).expect("a quantity");
    (number.to(), hash.clone())
}

/// EIP-8379, top-up sync: a consensus client asks for the head, and gives the block after it.
#[tokio::test]
async fn a_chain_is_topped_up_by_the_sync_status_alone() {
    let mut maker = TestNode::start(genesis_of_osaka()).await;
    let mut envelopes = Vec::new();
    for time in 1..=6 {
        envelopes.push(maker.extend(OSAKA, time, &[]).await);
    }
    let hash = |number: usize| envelopes[number - 1]["executionPayload"]["blockHash"].clone();
    let mut node = TestNode::start(genesis_of_osaka()).await;
    let genesis = node.head().await;
    let give = |number: usize| new_payload(4, &envelopes[number - 1]);
    assert_eq!(sync_status(&mut node).await, (0, genesis.clone()));
    // Blocks without their ancestors, and a head that is not there, are not reported.
    for number in [5, 6] {
        let status = node.ok("engine_newPayloadV4", give(number)).await;
        assert_eq!(status["status"], "SYNCING");
    }
    for number in 1..=3 {
        let (head, at) = sync_status(&mut node).await;
        assert_eq!(head, number as u64 - 1);
        let mut wrong = give(number);
        wrong[0]["stateRoot"] = json!(B256::repeat_byte(7));
        let status = node.ok("engine_newPayloadV4", wrong).await;
        assert_eq!(status["status"], "INVALID", "{status}");
        let status = node.ok("engine_newPayloadV4", give(number)).await;
        assert_eq!(status["status"], "VALID", "a child of the reported head: {status}");
        assert_eq!(sync_status(&mut node).await, (head, at), "no fork choice has named it");
        let choice = json!([state(&hash(number)), null]);
        let answer = node.ok("engine_forkchoiceUpdatedV3", choice).await;
        assert_eq!(answer["payloadStatus"]["status"], "VALID");
    }
    // A fork choice that comes before its blocks is followed when they are there.
    let choice = json!([state(&hash(6)), null]);
    let answer = node.ok("engine_forkchoiceUpdatedV3", choice.clone()).await;
    assert_eq!(answer["payloadStatus"]["status"], "SYNCING");
    assert_eq!(sync_status(&mut node).await, (3, hash(3)));
    let status = node.ok("engine_newPayloadV4", give(4)).await;
    assert_eq!(status["status"], "VALID");
    assert_eq!(sync_status(&mut node).await, (6, hash(6)));
    let answer = node.ok("engine_forkchoiceUpdatedV3", choice).await;
    assert_eq!(answer["payloadStatus"]["status"], "VALID");
    assert_eq!((sync_status(&mut node).await, node.head().await), ((6, hash(6)), hash(6)));
    node.refused("engine_getSyncStatus", json!([1]), Code::InvalidParams, "").await;
}
