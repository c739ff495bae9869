//! benchmarkoor's runner: the ready check, the bootstrap fork choice, and tests with a roll-back by
//! `debug_setHead` after each.

use super::{Recorded, Target, same};
use crate::support::*;
use serde_json::{Value, json};

const ZERO: &str = "0x0000000000000000000000000000000000000000000000000000000000000000";

/// Attempts of the bootstrap fork choice, as configured by default.
const BOOTSTRAP_ATTEMPTS: usize = 30;

const LATEST: &str =
    r#"{"jsonrpc":"2.0","method":"eth_getBlockByNumber","params":["latest",false],"id":1}"#;

/// The tests of a run.
const TESTS: usize = 100;

#[tokio::test(flavor = "multi_thread")]
async fn tests_run_and_are_rolled_back_a_hundred_times() {
    let recorded = Recorded::new(genesis_of_osaka(), OSAKA).await;
    let mut answers = Vec::new();
    for mut target in recorded.targets().await {
        // geth needs a state on disk to go back to, which the genesis is.
        answers.push(run(&mut target, &recorded).await);
    }
    same(&answers);
}

async fn run(target: &mut Target, recorded: &Recorded) -> Vec<(String, Value)> {
    let mut answers = Vec::new();
    let ready = r#"{"jsonrpc":"2.0","method":"web3_clientVersion","params":[],"id":1}"#;
    assert!(target.web(ready).await["result"].is_string());
    let genesis = target.web(LATEST).await["result"].clone();
    bootstrap(target, genesis["hash"].as_str().expect("a hash")).await;
    for test in 0..TESTS {
        let before = target.web(LATEST).await["result"].clone();
        for (number, params) in recorded.payloads.iter().enumerate() {
            let method = format!("engine_newPayloadV{}", recorded.fork.new);
            let call = json!({"jsonrpc": "2.0", "method": method, "params": params, "id": 1});
            let answer = target.engine(&call.to_string()).await;
            assert_eq!(answer["result"]["status"], "VALID", "test {test}, {number}: {answer}");
            let hash = recorded.hash(number);
            let state = json!({
                "headBlockHash": hash, "safeBlockHash": ZERO, "finalizedBlockHash": ZERO,
            });
            let method = format!("engine_forkchoiceUpdatedV{}", recorded.fork.forkchoice);
            let call =
                json!({"jsonrpc": "2.0", "method": method, "params": [state, null], "id": 1});
            let chosen = target.engine(&call.to_string()).await;
            assert_eq!(chosen["result"]["payloadStatus"]["status"], "VALID", "{chosen}");
            answers.extend([(method, chosen), (format!("payload {number}"), answer)]);
        }
        let head = target.web(LATEST).await;
        assert_eq!(head["result"]["hash"], *recorded.hash(recorded.payloads.len() - 1));
        answers.push((LATEST.into(), head));
        // As for geth and besu: the number in hex.
        let call = format!(
            r#"{{"jsonrpc":"2.0","method":"debug_setHead","params":[{}],"id":1}}"#,
            before["number"]
        );
        let answer = target.web(&call).await;
        assert_eq!(answer.get("error"), None, "{answer}");
        answers.push((call, answer));
        let after = target.web(LATEST).await;
        assert_eq!(after["result"]["hash"], before["hash"], "test {test}");
        answers.push((LATEST.into(), after));
    }
    answers
}

/// A fork choice on the head that the node has, until it is VALID.
async fn bootstrap(target: &mut Target, head: &str) {
    let state = format!(
        r#"{{"headBlockHash":"{head}","safeBlockHash":"{ZERO}","finalizedBlockHash":"{ZERO}"}}"#
    );
    let method = "engine_forkchoiceUpdatedV3";
    let call = format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":[{state},null],"id":1}}"#);
    let mut last = Value::Null;
    for _ in 0..BOOTSTRAP_ATTEMPTS {
        last = target.engine(&call).await;
        if last["result"]["payloadStatus"]["status"] == "VALID" {
            return;
        }
    }
    panic!("the bootstrap fork choice fails: {last}");
}

/// The other forms in which it rolls back: a number of JSON (reth), and a hash (Nethermind). geth
/// has neither.
#[tokio::test(flavor = "multi_thread")]
async fn all_forms_of_a_roll_back_are_taken() {
    let recorded = Recorded::new(genesis_of_osaka(), OSAKA).await;
    let mut target = Target::ours(&recorded.genesis).await;
    let genesis = target.web(LATEST).await["result"]["hash"].clone();
    for (method, param) in [("debug_setHead", json!(0)), ("debug_resetHead", genesis.clone())] {
        let params = &recorded.payloads[0];
        let call =
            json!({"jsonrpc": "2.0", "method": "engine_newPayloadV4", "params": params, "id": 1});
        target.engine(&call.to_string()).await;
        bootstrap(&mut target, recorded.hash(0).as_str().expect("a hash")).await;
        assert_eq!(target.web(LATEST).await["result"]["hash"], *recorded.hash(0));
        let call = json!({"jsonrpc": "2.0", "method": method, "params": [param], "id": 1});
        let answer = target.web(&call.to_string()).await;
        assert_eq!(answer.get("error"), None, "{answer}");
        assert_eq!(target.web(LATEST).await["result"]["hash"], genesis, "{method}");
    }
}
