//! rsp-ethproofs: new heads over a WebSocket, then over HTTP what it takes to run each block: the
//! block, its parent, and the witness.

use super::{Recorded, Target, same};
use crate::support::*;
use rpc::{Notifications, SessionClient};
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn blocks_are_followed_and_their_witnesses_fetched() {
    let recorded = Recorded::new(genesis_of_osaka(), OSAKA).await;
    let mut answers = Vec::new();
    for mut target in recorded.targets().await {
        answers.push(run(&mut target, &recorded).await);
    }
    same(&answers);
}

async fn run(target: &mut Target, recorded: &Recorded) -> Vec<(String, Value)> {
    let mut answers = Vec::new();
    let mut ask = async |target: &mut Target, method: &str, params: Value| {
        let call = json!({"method": method, "params": params, "id": 0, "jsonrpc": "2.0"});
        let answer = target.web(&call.to_string()).await["result"].clone();
        answers.push((call.to_string(), answer.clone()));
        answer
    };
    let session = SessionClient::connect(&target.web, None).await.expect("a connection");
    assert_eq!(ask(target, "eth_blockNumber", json!([])).await, "0x0");
    let mut heads: Notifications<Value> =
        session.subscribe("eth_subscribe", json!(["newHeads"])).await.expect("subscribed");
    for (index, params) in recorded.payloads.iter().enumerate() {
        choose(target, recorded, index, params).await;
        let head = heads.next().await.expect("a header");
        assert_eq!(head["hash"], *recorded.hash(index));
        let number = head["number"].clone();
        let full = ask(target, "eth_getBlockByNumber", json!([number, true])).await;
        assert_eq!(full["hash"], head["hash"]);
        let parent = json!(format!("{index:#x}"));
        let before = ask(target, "eth_getBlockByNumber", json!([parent, true])).await;
        assert_eq!(before["hash"], full["parentHash"]);
        let call = json!({
            "method": "debug_executionWitness", "params": [number], "id": 0, "jsonrpc": "2.0",
        });
        let answer = target.web(&call.to_string()).await;
        check_witness(&answer["result"], &before, target.is_geth());
    }
    answers
}

async fn choose(target: &mut Target, recorded: &Recorded, index: usize, params: &Value) {
    let call =
        json!({"jsonrpc": "2.0", "method": "engine_newPayloadV4", "params": params, "id": 1});
    let answer = target.engine(&call.to_string()).await;
    assert_eq!(answer["result"]["status"], "VALID", "{answer}");
    let params = json!([state(recorded.hash(index)), null]);
    let call = json!({
        "jsonrpc": "2.0", "method": "engine_forkchoiceUpdatedV3", "params": params, "id": 1,
    });
    let answer = target.engine(&call.to_string()).await;
    assert_eq!(answer["result"]["payloadStatus"]["status"], "VALID", "{answer}");
}

/// It has the three lists that a prover reads, and ends with the header of the block's parent. The
/// content of geth's differs: it is not the canonical one.
fn check_witness(witness: &Value, parent: &Value, is_geth: bool) {
    for name in ["state", "codes", "headers"] {
        let list = witness[name].as_array().unwrap_or_else(|| panic!("{name}: {witness}"));
        assert!(!list.is_empty(), "{name}");
    }
    let headers = witness["headers"].as_array().expect("a list");
    let is_rlp = headers[0].is_string();
    assert!(is_rlp || is_geth, "alloy reads headers as RLP");
    if is_rlp {
        let last: alloy_primitives::Bytes =
            serde_json::from_value(headers[headers.len() - 1].clone()).expect("hex");
        assert_eq!(json!(alloy_primitives::keccak256(&last)), parent["hash"]);
    }
}
