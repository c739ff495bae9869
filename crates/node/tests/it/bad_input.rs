//! Input that must be refused: each time the node answers with the right code, keeps its head, and
//! goes on answering.

use std::io::{Read, Write};
use std::net::TcpStream;

use crate::support::*;
use alloy_primitives::{Address, B256, Bytes, TxKind};
use deponent_node::demo::World;
use engine_api::NewPayload;
use rpc::{Code, JwtSecret};
use serde_json::{Value, json};

/// A node in Osaka with one block, and a payload for the next.
async fn node_and_payload() -> (TestNode, Value) {
    let mut node = TestNode::start(genesis_of_osaka()).await;
    node.extend(OSAKA, 1, &transactions()).await;
    let id = node.begin(OSAKA, 2, false).await;
    let envelope = node.built(OSAKA, id).await;
    (node, new_payload(4, &envelope))
}

/// A list of parameters with one member of one of them changed; `null` takes it away.
fn with(params: &Value, index: usize, member: &str, value: Value) -> Value {
    let mut params = params.clone();
    let object = params[index].as_object_mut().expect("an object");
    match value {
        Value::Null => drop(object.remove(member)),
        value => drop(object.insert(member.into(), value)),
    }
    params
}

#[tokio::test]
async fn a_payload_whose_hash_is_wrong_is_invalid() {
    let (mut node, params) = node_and_payload().await;
    let head = node.head().await;
    // Nothing is known of what a wrong hash names.
    for (member, value) in [
        ("blockHash", json!(B256::repeat_byte(1))),
        ("stateRoot", json!(B256::ZERO)),
        ("gasUsed", json!("0x1")),
        ("transactions", json!(["0x"])),
        ("transactions", json!(["0x02c0"])),
        ("extraData", json!(format!("0x{}", "00".repeat(33)))),
        ("baseFeePerGas", json!(format!("0x1{}", "0".repeat(20)))),
    ] {
        for method in ["engine_newPayloadV4", "engine_newPayloadWithWitnessV4"] {
            let status = node.ok(method, with(&params, 0, member, value.clone())).await;
            assert_eq!(status["status"], "INVALID", "{member}: {status}");
            assert_eq!(status["latestValidHash"], Value::Null, "{member}: {status}");
            assert!(status["validationError"].is_string(), "{member}: {status}");
            assert_eq!(status.get("witness"), None, "{member}: {status}");
        }
    }
    // Blob hashes that are not the transactions'; requests and a beacon root that the hash denies.
    for (index, value) in [(1, json!([BLOB_HASH])), (2, json!(B256::ZERO)), (3, json!(["0x0000"]))]
    {
        let mut params = params.clone();
        params[index] = value;
        let status = node.ok("engine_newPayloadV4", params).await;
        assert_eq!(
            (&status["status"], &status["latestValidHash"]),
            (&json!("INVALID"), &Value::Null)
        );
    }
    assert_eq!(node.head().await, head);
    // The good one is still welcome.
    let status = node.ok("engine_newPayloadV4", params).await;
    assert_eq!(status["status"], "VALID", "{status}");
}

/// The same payload with the hash that its fields have.
fn reseal(params: Value) -> Value {
    reseal_as(4, params)
}

fn reseal_as(version: u8, mut params: Value) -> Value {
    let call = NewPayload::from_json(version, &params.to_string()).expect("a payload");
    let sidecar = call.sidecar();
    let block = call.payload.try_into_block_with_sidecar::<execution::Transaction>(&sidecar);
    let block = block.expect("a block");
    params[0]["blockHash"] = json!(block.header.hash_slow());
    params
}

#[tokio::test]
async fn a_sealed_block_that_breaks_a_rule_names_its_valid_parent() {
    let (mut node, params) = node_and_payload().await;
    let head = node.head().await;
    let engine = node.node.engine().clone();
    let zero = B256::ZERO;
    let bloom = alloy_primitives::Bloom::repeat_byte(1);
    let mut last = Value::Null;
    for (member, value, reason) in [
        ("receiptsRoot", json!(zero), "receipts root"),
        ("logsBloom", json!(bloom), "logs bloom"),
        ("gasUsed", json!("0x1"), "gas used"),
        ("gasLimit", json!("0x1388"), "gas limit"),
        ("baseFeePerGas", json!("0x1"), "base fee"),
        ("blockNumber", json!("0x7"), "block number"),
        ("excessBlobGas", json!("0x20000"), "excess blob gas"),
        ("blobGasUsed", json!("0x20000"), "blob gas used"),
        ("stateRoot", json!(B256::repeat_byte(8)), "state root"),
    ] {
        let bad = reseal(with(&params, 0, member, value));
        for _ in 0..2 {
            let status = node.ok("engine_newPayloadWithWitnessV4", bad.clone()).await;
            assert_eq!((&status["status"], &status["latestValidHash"]), (&json!("INVALID"), &head));
            let error = status["validationError"].as_str().expect("a reason");
            assert!(error.contains(reason), "{member}: {error}");
        }
        last = bad[0]["blockHash"].clone();
    }
    let hash = last;
    // As a head it is refused too, and the attributes are not looked at.
    let params = json!([state(&hash), {"timestamp": "nonsense"}]);
    let answer = node.ok("engine_forkchoiceUpdatedV3", params).await;
    assert_eq!(answer["payloadStatus"]["status"], "INVALID", "{answer}");
    assert_eq!(answer["payloadStatus"]["latestValidHash"], head);
    assert_eq!(answer["payloadId"], Value::Null);
    assert_eq!(node.head().await, head);
    assert_eq!(json!(engine.heads().head), head);
}

/// The hash names what came as the list. execution-apis #869: null, and not the parent.
#[tokio::test]
async fn a_block_access_list_that_is_no_list_is_invalid_before_the_block_is_run() {
    let amsterdam = ALL_FORKS[5];
    let mut node = TestNode::start(genesis_of_all_forks()).await;
    let head = node.head().await;
    let id = node.begin(amsterdam, 51, false).await;
    let envelope = node.built(amsterdam, id).await;
    let good = new_payload(5, &envelope);
    for list in ["0x", "0x01", "0xc1", "0xc101", "0xc1c0", "0xc0c0"] {
        let bad = reseal_as(5, with(&good, 0, "blockAccessList", json!(list)));
        for _ in 0..2 {
            let status = node.ok("engine_newPayloadV5", bad.clone()).await;
            assert_eq!(status["status"], "INVALID", "{list}: {status}");
            assert_eq!(status["latestValidHash"], Value::Null, "{list}: {status}");
            let reason = status["validationError"].as_str().expect("a reason");
            assert!(reason.starts_with("block access list: "), "{list}: {reason}");
        }
    }
    // A list of other accounts is one: the block is run, and its parent is the latest valid block.
    let wrong = reseal_as(5, with(&good, 0, "blockAccessList", json!("0xc0")));
    let status = node.ok("engine_newPayloadV5", wrong).await;
    assert_eq!((&status["status"], &status["latestValidHash"]), (&json!("INVALID"), &head));
    let status = node.ok("engine_newPayloadV5", good).await;
    assert_eq!(status["status"], "VALID", "{status}");
}

#[tokio::test]
async fn the_first_version_tells_a_wrong_hash_from_other_faults() {
    let mut node = TestNode::start(genesis_of_all_forks()).await;
    let id = node.begin(ALL_FORKS[0], 1, false).await;
    let envelope = node.built(ALL_FORKS[0], id).await;
    let params = new_payload(1, &envelope);
    let wrong = with(&params, 0, "blockHash", json!(B256::repeat_byte(1)));
    for (version, expected) in [(1, "INVALID_BLOCK_HASH"), (2, "INVALID")] {
        let status = node.ok(&format!("engine_newPayloadV{version}"), wrong.clone()).await;
        assert_eq!(status["status"], expected, "{status}");
        assert_eq!(status["latestValidHash"], Value::Null, "{status}");
    }
    let empty = with(&params, 0, "extraData", json!(format!("0x{}", "00".repeat(33))));
    let status = node.ok("engine_newPayloadV1", empty).await;
    assert_eq!(status["status"], "INVALID", "{status}");
}

#[tokio::test]
async fn a_payload_of_an_unknown_parent_is_syncing() {
    let (mut node, _) = node_and_payload().await;
    let head = node.head().await;
    // A payload whose parent another node has built.
    let mut other = TestNode::start(genesis_of_osaka()).await;
    other.extend(OSAKA, 3, &[]).await;
    let id = other.begin(OSAKA, 4, false).await;
    let envelope = other.built(OSAKA, id).await;
    for method in ["engine_newPayloadV4", "engine_newPayloadWithWitnessV4"] {
        let status = node.ok(method, new_payload(4, &envelope)).await;
        let expected =
            json!({"status": "SYNCING", "latestValidHash": null, "validationError": null});
        assert_eq!(status, expected);
    }
    let hash = &envelope["executionPayload"]["blockHash"];
    let params = json!([state(hash), {"any": "thing"}]);
    let answer = node.ok("engine_forkchoiceUpdatedV3", params).await;
    assert_eq!(answer["payloadStatus"]["status"], "SYNCING");
    assert_eq!(node.head().await, head);
}

#[tokio::test]
async fn parameters_of_a_payload_are_taken_strictly() {
    let (mut node, params) = node_and_payload().await;
    let method = "engine_newPayloadV4";
    let list = params.as_array().expect("a list");
    for count in 0..4 {
        let words = [
            "executionPayload",
            "expectedBlobVersionedHashes",
            "parentBeaconBlockRoot",
            "executionRequests",
        ][count];
        let fewer = json!(list[..count]);
        node.refused(method, fewer, Code::InvalidParams, &format!("({words}) is missing")).await;
        let mut null = params.clone();
        null[count] = Value::Null;
        node.refused(method, null, Code::InvalidParams, &format!("({words}): invalid type")).await;
    }
    let more = json!([list[0], list[1], list[2], list[3], null]);
    node.refused(method, more, Code::InvalidParams, "5 params").await;
    for name in list[0].as_object().expect("a payload").keys() {
        let fewer = with(&params, 0, name, Value::Null);
        node.refused(method, fewer, Code::InvalidParams, name).await;
        let mut null = params.clone();
        null[0][name] = Value::Null;
        node.refused(method, null, Code::InvalidParams, "").await;
        for bad in [json!(1), json!("zz"), json!("0xz"), json!({"a": []}), json!("0x001")] {
            node.refused(method, with(&params, 0, name, bad), Code::InvalidParams, "").await;
        }
    }
    for (name, value) in [("blockAccessList", "0xc0"), ("slotNumber", "0x1"), ("unheardOf", "0x1")]
    {
        let more = with(&params, 0, name, json!(value));
        node.refused(method, more, Code::InvalidParams, name).await;
    }
    for (requests, words) in [
        (json!(["0x0101", "0x0002"]), "lower type"),
        (json!(["0x0101", "0x0102"]), "has the type"),
        (json!(["0x01"]), "at least one byte"),
        (json!(["0x"]), "at least one byte"),
        (json!("0x0101"), "executionRequests"),
    ] {
        let mut params = params.clone();
        params[3] = requests;
        node.refused(method, params, Code::InvalidParams, words).await;
    }
    node.refused(method, json!({"executionPayload": {}}), Code::InvalidParams, "by position").await;
}

#[tokio::test]
async fn the_structure_of_a_payload_goes_by_its_version_and_fork() {
    let mut node = TestNode::start(genesis_of_all_forks()).await;
    let mut envelopes = Vec::new();
    for fork in ALL_FORKS {
        let id = node.begin(fork, fork.time, false).await;
        let envelope = node.built(fork, id).await;
        node.adopt(fork, &envelope).await;
        envelopes.push(envelope);
    }
    let of = |version, index: usize| new_payload(version, &envelopes[index]);
    let moved =
        |version, index: usize, time: &str| with(&of(version, index), 0, "timestamp", json!(time));
    use Code::{InvalidParams, UnsupportedFork};
    for (version, params, code, words) in [
        (1, of(1, 1), InvalidParams, "withdrawals is not part of ExecutionPayloadV1"),
        (2, of(2, 2), InvalidParams, "blobGasUsed is not part of ExecutionPayloadV2"),
        // Shanghai's payload at the wrong times.
        (2, moved(2, 1, "0x5"), InvalidParams, "withdrawals is not part of ExecutionPayloadV1"),
        (2, moved(2, 0, "0xf"), InvalidParams, "withdrawals is missing"),
        (2, moved(2, 1, "0x15"), UnsupportedFork, "Cancun"),
        (2, moved(2, 0, "0x15"), UnsupportedFork, "Cancun"),
        // Structure before fork.
        (3, of(3, 1), InvalidParams, "blobGasUsed is missing"),
        (3, moved(3, 2, "0xf"), UnsupportedFork, "Shanghai"),
        (3, moved(3, 2, "0x1f"), UnsupportedFork, "Prague"),
        (4, moved(4, 4, "0x15"), UnsupportedFork, "Cancun"),
        (4, moved(4, 4, "0x33"), UnsupportedFork, "Amsterdam"),
        (4, of(4, 5), InvalidParams, "blockAccessList is not part of ExecutionPayloadV3"),
        (5, of(5, 4), InvalidParams, "blockAccessList is missing"),
        (5, moved(5, 5, "0x29"), UnsupportedFork, "Osaka"),
    ] {
        for kind in ["newPayload", "newPayloadWithWitness", "executeStatelessPayload"] {
            let mut params = params.clone();
            if kind == "executeStatelessPayload" {
                params.as_array_mut().expect("a list").push(json!("0x"));
            }
            node.refused(&format!("engine_{kind}V{version}"), params, code, words).await;
        }
    }
}

#[tokio::test]
async fn attributes_are_looked_at_once_the_head_is_applied() {
    let mut node = TestNode::start(genesis_of_all_forks()).await;
    use Code::{InvalidPayloadAttributes as Invalid, UnsupportedFork};
    let bad = [
        (1, json!(5), Invalid, "invalid type"),
        (1, json!({}), Invalid, "missing field"),
        (1, attributes(5, 2), Invalid, "withdrawals is not part"),
        (1, attributes(15, 1), Invalid, "needs withdrawals"),
        (1, attributes(0, 1), Invalid, "timestamp"),
        (2, attributes(15, 1), Invalid, "withdrawals is missing"),
        (2, attributes(5, 2), Invalid, "withdrawals is not part"),
        (2, attributes(15, 3), Invalid, "parentBeaconBlockRoot is not part"),
        (2, attributes(25, 2), UnsupportedFork, "Cancun"),
        (3, attributes(25, 2), Invalid, "parentBeaconBlockRoot is missing"),
        (3, attributes(25, 4), Invalid, "slotNumber is not part"),
        (3, attributes(15, 3), UnsupportedFork, "Shanghai"),
        (3, attributes(55, 3), UnsupportedFork, "Amsterdam"),
        (4, attributes(55, 3), Invalid, "slotNumber is missing"),
        (4, attributes(45, 4), UnsupportedFork, "Osaka"),
    ];
    let head = node.head().await;
    for (version, attributes, code, words) in &bad {
        for kind in ["forkchoiceUpdated", "forkchoiceUpdatedWithWitness"] {
            let params = json!([state(&head), attributes]);
            node.refused(&format!("engine_{kind}V{version}"), params, *code, words).await;
        }
    }
    // The new head stays, though its attributes are bad.
    let params = json!([head, attributes(1, 1), [], null]);
    let envelope = node.ok("testing_buildBlockV1", params).await;
    node.ok("engine_newPayloadV1", new_payload(1, &envelope)).await;
    let hash = &envelope["executionPayload"]["blockHash"];
    let params = json!([state(hash), attributes(1, 1)]);
    let error = node.call("engine_forkchoiceUpdatedV1", params).await.expect_err("not after");
    assert!(error.is(Invalid), "{error}");
    assert_eq!(node.head().await, *hash);
}

/// A derived reader would take the list of an object's values for the object.
#[tokio::test]
async fn the_values_of_an_object_are_not_the_object() {
    let (mut node, params) = node_and_payload().await;
    let head = node.head().await;
    let zero = B256::ZERO;
    let words = "invalid type: sequence, expected an object";
    let list = |object: &Value, names: &[&str]| -> Value {
        names.iter().map(|name| object.get(name).cloned().unwrap_or_default()).collect()
    };
    let method = "engine_forkchoiceUpdatedV3";
    node.refused(method, json!([[head, zero, zero]]), Code::InvalidParams, words).await;
    let names = ["timestamp", "prevRandao", "suggestedFeeRecipient", "withdrawals"];
    let names = [&names[..], &["parentBeaconBlockRoot", "slotNumber", "targetGasLimit"]].concat();
    let given = json!([state(&head), list(&attributes(100, 3), &names)]);
    node.refused(method, given, Code::InvalidPayloadAttributes, words).await;
    let withdrawals = json!([["0x0", "0x0", alloy_primitives::Address::ZERO, "0x0"]]);
    let mut given = json!([state(&head), attributes(100, 3)]);
    given[1]["withdrawals"] = withdrawals.clone();
    node.refused(method, given, Code::InvalidPayloadAttributes, words).await;
    let method = "engine_newPayloadV4";
    let given = with(&params, 0, "withdrawals", withdrawals);
    node.refused(method, given, Code::InvalidParams, words).await;
    let names = "parentHash feeRecipient stateRoot receiptsRoot logsBloom prevRandao blockNumber \
        gasLimit gasUsed timestamp extraData baseFeePerGas blockHash transactions withdrawals \
        blobGasUsed excessBlobGas blockAccessList slotNumber";
    let mut given = params.clone();
    given[0] = list(&params[0], &names.split(' ').collect::<Vec<_>>());
    node.refused(method, given, Code::InvalidParams, words).await;
    let client = json!([["CL", "a client", "1", "0x00000000"]]);
    node.refused("engine_getClientVersionV1", client, Code::InvalidParams, words).await;
}

#[tokio::test]
async fn a_fork_choice_state_is_taken_strictly() {
    let (mut node, _) = node_and_payload().await;
    let head = node.head().await;
    let other = B256::repeat_byte(9);
    let full = |safe: Value, finalized: Value| {
        let mut state = state(&head);
        (state["safeBlockHash"], state["finalizedBlockHash"]) = (safe, finalized);
        json!([state])
    };
    let bad_attributes = json!({"timestamp": 1});
    for version in 1..=4 {
        let method = format!("engine_forkchoiceUpdatedV{version}");
        let zero = json!(B256::ZERO);
        for params in [full(json!(other), zero.clone()), full(zero, json!(other))] {
            node.refused(&method, params.clone(), Code::InvalidForkchoiceState, "ancestor").await;
            let params = json!([params[0], bad_attributes]);
            node.refused(&method, params, Code::InvalidForkchoiceState, "ancestor").await;
        }
        let invalid = Code::InvalidParams;
        node.refused(&method, json!([]), invalid, "forkchoiceState").await;
        node.refused(&method, json!([null]), invalid, "forkchoiceState").await;
        for name in ["headBlockHash", "safeBlockHash", "finalizedBlockHash"] {
            let params = json!([state(&head), null]);
            let fewer = with(&params, 0, name, Value::Null);
            node.refused(&method, fewer, invalid, name).await;
            node.refused(&method, with(&params, 0, name, json!("0x1")), invalid, "odd").await;
        }
        let extra = json!([state(&head), null, null, null]);
        node.refused(&method, extra, invalid, "params").await;
    }
    let custody = |columns: Value| json!([state(&head), null, columns]);
    let method = "engine_forkchoiceUpdatedV4";
    for good in [json!(null), json!(format!("0x{}", "ff".repeat(16)))] {
        node.ok(method, custody(good)).await;
    }
    for bad in [json!("0x"), json!(format!("0x{}", "ff".repeat(17))), json!([])] {
        node.refused(method, custody(bad), Code::InvalidParams, "custodyColumns").await;
    }
}

#[tokio::test]
async fn unknown_builds_and_large_requests_are_refused() {
    let (mut node, _) = node_and_payload().await;
    for version in 1..=6 {
        let method = format!("engine_getPayloadV{version}");
        let unknown = json!(["0x0102030405060708"]);
        node.refused(&method, unknown, Code::UnknownPayload, "0x0102030405060708").await;
        for bad in [json!(["0x01"]), json!([1]), json!([]), json!(["0x0102030405060708", 1])] {
            node.refused(&method, bad, Code::InvalidParams, "").await;
        }
    }
    for version in 1..=2 {
        let method = format!("engine_getPayloadBodiesByHashV{version}");
        let many = json!([vec![B256::ZERO; 1025]]);
        node.refused(&method, many, Code::TooLargeRequest, "1024").await;
        node.ok(&method, json!([vec![B256::ZERO; 1024]])).await;
        let method = format!("engine_getPayloadBodiesByRangeV{version}");
        let many = json!(["0x1", "0x401"]);
        node.refused(&method, many, Code::TooLargeRequest, "1024").await;
        for bad in [json!(["0x0", "0x1"]), json!(["0x1", "0x0"]), json!([1, 1]), json!(["0x1"])] {
            node.refused(&method, bad, Code::InvalidParams, "").await;
        }
        let far = json!(["0xffffffffffffffff", "0x400"]);
        assert_eq!(node.ok(&method, far).await, json!([]));
    }
    for version in 1..=3 {
        let method = format!("engine_getBlobsV{version}");
        let many = json!([vec![B256::ZERO; 129]]);
        node.refused(&method, many, Code::TooLargeRequest, "128").await;
    }
    let authorized = |member: &str, value: Value| {
        let mut entry = json!({
            "chainId": "0x1", "address": CONTRACT, "nonce": "0x0", "yParity": "0x0",
            "r": "0x1", "s": "0x1"
        });
        entry[member] = value;
        json!([{"to": CONTRACT, "authorizationList": [entry]}])
    };
    node.ok("eth_call", authorized("nonce", json!("0x1"))).await;
    for (method, params) in [
        ("eth_getBlockByNumber", json!(["latest"])),
        ("eth_getBlockByNumber", json!(["0x00", true])),
        ("eth_getBlockByHash", json!(["0x00", true])),
        ("eth_getBlockByHash", json!([B256::ZERO, "true"])),
        ("eth_blockNumber", json!([1])),
        ("eth_call", json!([])),
        ("eth_call", json!([{"to": "0x00"}])),
        ("eth_call", json!([{"gas": 7}])),
        ("eth_call", json!([{"gas": "0x007"}])),
        ("eth_call", json!([{"gasPrice": format!("0x1{}", "0".repeat(32))}])),
        ("eth_call", json!([{}, "newest"])),
        ("eth_call", json!([{}, "latest", {CONTRACT.to_string(): {"storage": {}}}])),
        ("eth_call", json!([{}, "latest", {"0x01": {"nonce": "0x1"}}])),
        ("eth_call", json!([{}, "latest", {&CONTRACT.to_string()[2..]: {"nonce": "0x1"}}])),
        (
            "eth_call",
            json!([{}, "latest", {CONTRACT.to_string(): [null, "0x1", null, null, null]}]),
        ),
        ("eth_call", json!([{}, "latest", {CONTRACT.to_string(): {"state": {"0x1": "0x2"}}}])),
        ("eth_call", json!([vec![Value::Null; 16]])),
        ("eth_call", json!([{"accessList": [{"address": CONTRACT, "storageKeys": ["0x1"]}]}])),
        ("eth_call", json!([{"accessList": [[CONTRACT, []]]}])),
        ("eth_call", authorized("r", json!("10"))),
        ("eth_call", authorized("chainId", json!(1))),
        ("eth_call", authorized("address", json!(&CONTRACT.to_string()[2..]))),
        ("eth_call", json!([{}, "latest", {}, {"number": "0x10000000000000000"}])),
        ("eth_call", json!([{}, "latest", {}, {"nubmer": "0x1"}])),
        ("eth_call", json!([{}, "latest", {}, null, null])),
        ("engine_exchangeCapabilities", json!([])),
        ("engine_exchangeCapabilities", json!(["engine_newPayloadV1"])),
        ("engine_getClientVersionV1", json!([{"code": "ZZ"}])),
    ] {
        node.refused(method, params, Code::InvalidParams, "").await;
    }
    for slot in ["0x_", "0x1_0"] {
        let params = json!([CONTRACT, slot, "latest"]);
        let error = node.public("eth_getStorageAt", params).await.expect_err("no slot");
        assert!(error.is(Code::InvalidParams), "{error}");
    }
    refused_calls(&mut node).await;
    node.refused("eth_call", json!([{}, "0x99"]), Code::Server, "no block 153").await;
    node.refused("engine_newPayloadV6", json!([]), Code::MethodNotFound, "").await;
}

/// Calls that contradict themselves or the chain are refused in geth's words.
async fn refused_calls(node: &mut TestNode) {
    let over = |state: Value, block: Value| json!([{}, "latest", state, block]);
    let account = |fields: Value| json!({ CONTRACT.to_string(): fields });
    for (params, words) in [
        (json!([{"gasPrice": "0x1", "maxFeePerGas": "0x1"}]), "both gasPrice and (maxFeePerGas or"),
        (json!([{"chainId": "0x1"}]), "chainId does not match node's (have=1, want="),
        (json!([{"blobVersionedHashes": []}]), "blob transaction of type create"),
        (json!([{"to": CONTRACT, "blobVersionedHashes": []}]), "missing blob hashes"),
        (json!([{"authorizationList": []}]), "cannot be used to create contract"),
        (json!([{"to": CONTRACT, "authorizationList": []}]), "with empty auth list (sender 0x00"),
        (over(account(json!({"state": {}, "stateDiff": {}})), json!(null)), "both 'state' and"),
        (
            over(account(json!({"movePrecompileToAddress": CONTRACT})), json!(null)),
            "is not a precompile",
        ),
        (
            over(json!({}), json!({"beaconRoot": B256::ZERO})),
            "block override \"beaconRoot\" is not supported for this RPC method",
        ),
        (over(json!({}), json!({"withdrawals": []})), "block override \"withdrawals\" is not"),
    ] {
        node.refused("eth_call", params, Code::Server, words).await;
    }
    node.ok("eth_call", json!([{"input": "0x00", "data": "0x02"}])).await;
}

#[tokio::test]
async fn a_block_that_cannot_be_built_changes_nothing() {
    let (mut node, _) = node_and_payload().await;
    let head = node.head().await;
    let method = "testing_buildBlockV1";
    let with = |index: usize, value: Value| {
        let mut params = json!([head, attributes(2, 3), [], null]);
        params[index] = value;
        params
    };
    let used = json!(raw(&transactions()[..1]));
    node.refused(method, with(2, used), Code::Server, "nonce").await;
    for (index, value) in [
        (0, json!(B256::repeat_byte(9))),
        (1, attributes(1, 3)),
        (1, attributes(2, 2)),
        (1, json!({})),
        (2, json!(["0x02"])),
        (2, json!("0x")),
        (3, json!(7)),
    ] {
        node.refused(method, with(index, value), Code::InvalidParams, "").await;
    }
    node.ok(method, with(2, Value::Null)).await;
    assert_eq!(node.head().await, head);
}

/// From Amsterdam on a transaction has at most 2^32 - 1 gas; a block may have more.
#[tokio::test]
async fn a_block_with_a_transaction_of_too_much_gas_is_not_built() {
    const MOST: u64 = u32::MAX as u64;
    let amsterdam = ALL_FORKS[5];
    let world = World::new(0).expect("a world");
    let mut genesis = genesis_of_all_forks();
    genesis["config"]["chainId"] = json!(world.genesis.config.chain_id);
    genesis["gasLimit"] = json!(format!("{:#x}", 3 * MOST));
    let accounts = serde_json::to_value(&world.genesis.alloc).expect("JSON");
    let alloc = genesis["alloc"].as_object_mut().expect("an object");
    alloc.extend(accounts.as_object().expect("an object").clone());
    let mut node = TestNode::start(genesis).await;
    let head = node.head().await;
    let with = |gas: &[u64]| {
        let to = TxKind::Call(Address::ZERO);
        let signed = |(nonce, gas): (usize, &u64)| world.sign(nonce as u64, to, Bytes::new(), *gas);
        let transactions: Result<Vec<_>, _> = gas.iter().enumerate().map(signed).collect();
        let transactions = raw(&transactions.expect("signed"));
        json!([head, attributes(amsterdam.time, amsterdam.forkchoice), transactions, "0x"])
    };
    let method = "testing_buildBlockV1";
    for gas in [MOST + 1, 2 * MOST - (1 << 28)] {
        let words = format!("transaction 1 has a gas limit of {gas}, at most {MOST} allowed");
        node.refused(method, with(&[MOST, gas]), Code::Server, &words).await;
    }
    node.refused(method, with(&[4 * MOST]), Code::Server, "transaction gas limit").await;
    let built = node.ok(method, with(&[MOST, MOST])).await;
    node.adopt(amsterdam, &built).await;
}

/// Sends a request as it is and returns the status line's number and the body.
async fn post(node: &TestNode, authorization: Option<&str>, body: &[u8]) -> (u16, String) {
    let address = node.node.engine_addr;
    let authorization = authorization.map_or(String::new(), |a| format!("Authorization: {a}\r\n"));
    let head = format!(
        "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{authorization}\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let request = [head.as_bytes(), body].concat();
    let exchange = tokio::task::spawn_blocking(move || {
        let mut socket = TcpStream::connect(address).expect("open");
        socket.write_all(&request).expect("sent");
        let mut answer = String::new();
        socket.read_to_string(&mut answer).expect("an answer");
        answer
    });
    let answer = exchange.await.expect("no panic");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    (head[9..12].parse().expect("a status"), body.into())
}

/// Two tokens of this secret, issued in November 2023 and in January 2100, made with Python's
/// `hmac` module.
const SECRET: &str = "0xf79ae8046bc11c9927afe911db7143c51a806c4a537cc08e0d37140b0192f430";
const STALE: &str = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpYXQiOjE3MDAwMDAwMDB9\
    .jUNXo1aiZEeuRkrtHwS1_HN2hS3hvb9ygVYt-YaLIg0";
const FUTURE: &str = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpYXQiOjQxMDI0NDQ4MDB9\
    .5BhFyc_YUcWBbBYKPCUXKbGRv_ARiKdN8TYeEc0q7kQ";

#[tokio::test]
async fn the_engine_port_needs_a_fresh_token_of_its_secret() {
    let mut node = TestNode::start_with_secret(genesis_of_osaka(), SECRET).await;
    let body = br#"{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}"#;
    let ours = JwtSecret::from_hex(SECRET).expect("a secret");
    assert_eq!(node.node.jwt, ours);
    let (status, text) = post(&node, Some(&format!("Bearer {}", ours.token())), body).await;
    assert_eq!(status, 200, "{text}");
    for (authorization, words) in [
        (None, "missing token"),
        (Some(format!("Bearer {STALE}")), "stale token"),
        (Some(format!("Bearer {FUTURE}")), "future token"),
        (Some(format!("Bearer {}", JwtSecret::random().token())), "wrong signature"),
        (Some("Bearer nonsense".into()), "malformed token"),
        (Some("Basic eDp5".into()), "malformed token"),
    ] {
        let (status, text) = post(&node, authorization.as_deref(), body).await;
        assert_eq!(status, 401, "{authorization:?}: {text}");
        assert!(text.starts_with(words), "{authorization:?}: {text}");
    }
    assert_eq!(node.ok("eth_chainId", json!([])).await, "0x539");
}

#[tokio::test]
async fn twenty_megabytes_of_nested_json_are_an_error_and_no_more() {
    let (mut node, params) = node_and_payload().await;
    let head = node.head().await;
    let token = format!("Bearer {}", node.node.jwt.token());
    let half = 10 << 20;
    let nested = [vec![b'['; half], vec![b']'; half]].concat();
    let objects = [br#"{"a":"#.repeat(half / 5), b"1".to_vec(), vec![b'}'; half / 5]].concat();
    for deep in [nested, objects] {
        for (before, after) in [
            (&b""[..], &b""[..]),
            (br#"{"jsonrpc":"2.0","id":1,"method":"engine_newPayloadV4","params":"#, b"}"),
            (br#"{"jsonrpc":"2.0","id":1,"method":"engine_newPayloadV4","params":["#, b"]}"),
            (br#"{"jsonrpc":"2.0","id":1,"method":"engine_newPayloadV1","params":[{"x":"#, b"}]}"),
        ] {
            let body = [before, &deep, after].concat();
            let (status, text) = post(&node, Some(&token), &body).await;
            assert!(status == 200 && text.contains("\"error\""), "{status}: {text:.300}");
            assert!(text.len() < 2000, "{text:.300}");
        }
    }
    assert_eq!(node.head().await, head);
    let status = node.ok("engine_newPayloadV4", params).await;
    assert_eq!(status["status"], "VALID");
}
