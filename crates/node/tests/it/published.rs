//! The published tests of the public methods (execution-apis `tests`), as far as we have the
//! methods: what we answer to each request on their chain is the answer that they expect.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use crate::support::published_chain;
use alloy_rpc_types_engine::ForkchoiceState;
use deponent_node::Api;
use engine::{Engine, Genesis, Verdict};
use execution::ChainSpec;
use files::BlockReader;
use rpc::Limits;
use serde_json::Value;

/// Tests that are answered otherwise. Errors are put into other words, with the same code; a ratio
/// is 0.0 for 0; there is no index and no pool. The fork id of `eth_config` is a fault of ours.
const OTHER_WORDS: [&str; 9] = [
    "debug_getRawBlock/get-invalid-number.io",
    "debug_getRawHeader/get-invalid-number.io",
    "debug_getRawReceipts/get-invalid-number.io",
    "eth_capabilities/get-capabilities.io",
    "eth_config/get-config.io",
    "eth_feeHistory/fee-history.io",
    "eth_getStorageAt/get-storage-invalid-key-too-large.io",
    "eth_getStorageAt/get-storage-invalid-key.io",
    "txpool_status/get-status.io",
];

/// The published chain, and its public port.
fn port(fixtures: &Path, genesis: &str) -> Api {
    let genesis: alloy_genesis::Genesis = serde_json::from_str(genesis).expect("a genesis");
    let chain = ChainSpec::from_config(&genesis.config).expect("a chain");
    let first = Genesis::new(&genesis, &chain).expect("a genesis");
    let engine = Engine::new(chain, first).expect("an engine");
    let blocks = BlockReader::open(&fixtures.join("chain.rlp")).expect("a chain");
    for block in blocks {
        let block = block.expect("a block").block;
        assert_eq!(engine.new_block(block).expect("an answer"), Verdict::Valid);
    }
    let head: Value = serde_json::from_str(&read(&fixtures.join("headfcu.json"))).expect("JSON");
    let state: ForkchoiceState = serde_json::from_value(head["params"][0].clone()).expect("heads");
    engine.forkchoice_updated(state, None).expect("an answer");
    Api::public_port(Arc::new(engine))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The port's answer to a request, as on the wire.
fn answer(port: &Api, request: &Value) -> Value {
    let message = request.to_string().into_bytes();
    let answer = rpc::answer(&message, port, &Limits::public()).expect("it is a request");
    serde_json::from_slice(&answer.to_vec()).expect("JSON")
}

/// The requests of a test with their answers.
fn exchanges(test: &str) -> Vec<(Value, Value)> {
    let with = |sign: &str| -> Vec<Value> {
        let lines = test.lines().filter_map(|line| line.strip_prefix(sign));
        lines.map(|line| serde_json::from_str(line).expect("JSON")).collect()
    };
    let (requests, answers) = (with(">> "), with("<< "));
    assert_eq!(requests.len(), answers.len());
    requests.into_iter().zip(answers).collect()
}

#[test]
fn the_published_answers_are_ours() {
    let Some((fixtures, genesis)) = published_chain() else { return };
    let port = port(&fixtures, &genesis);
    let (mut count, mut others) = (0, Vec::new());
    let mut methods: Vec<_> = port.methods().collect();
    methods.sort_unstable();
    for method in methods {
        let Ok(folder) = fs::read_dir(fixtures.join(method)) else { continue };
        let mut tests: Vec<_> = folder.map(|entry| entry.expect("an entry").path()).collect();
        tests.sort();
        for test in tests {
            let name = test.strip_prefix(&fixtures).expect("below").display().to_string();
            for (request, expected) in exchanges(&read(&test)) {
                count += 1;
                let found = answer(&port, &request);
                if found != expected {
                    println!("{name}: {request}\n    expected {expected}\n    found    {found}");
                    assert_eq!(found["error"]["code"], expected["error"]["code"], "{name}");
                    others.push(name.clone());
                }
            }
        }
    }
    println!("{count} requests");
    assert!(count > 30);
    assert_eq!(others, OTHER_WORDS);
}
