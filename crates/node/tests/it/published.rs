//! The published tests of the public methods (execution-apis `tests`), as far as we have the
//! methods: what we answer to each request on their chain is the answer that they expect.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use crate::support::{published_chain, with_floats};
use alloy_rpc_types_engine::ForkchoiceState;
use deponent_node::Api;
use engine::{Engine, Genesis, Verdict};
use execution::ChainSpec;
use files::BlockReader;
use rpc::Limits;
use serde_json::Value;

/// Tests whose errors we put into other words: the code is the same.
const OTHER_WORDS: [&str; 6] = [
    "debug_getRawBlock/get-invalid-number.io",
    "debug_getRawHeader/get-invalid-number.io",
    "debug_getRawReceipts/get-invalid-number.io",
    "debug_getRawTransaction/get-invalid-hash.io",
    "eth_getStorageAt/get-storage-invalid-key-too-large.io",
    "eth_getStorageAt/get-storage-invalid-key.io",
];

/// Tests whose answers say what this node has and another has not: how long it keeps what, and that
/// it has no pool.
const OTHER_NODE: [&str; 2] =
    ["eth_capabilities/get-capabilities.io", "txpool_status/get-status.io"];

/// The hash of the forks of the published chain, and that of ours, which has one less
/// ([`published_chain`]). EIP-2124 gives both.
const FORK_IDS: [&str; 2] = ["0xe272ecbe", "0x57484525"];

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
                let found = with_floats(answer(&port, &request));
                let mut expected = with_floats(expected);
                if let Some(id) = expected.pointer_mut("/result/current/forkId") {
                    assert_eq!(*id, FORK_IDS[0]);
                    *id = FORK_IDS[1].into();
                }
                if found != expected {
                    println!("{name}: {request}\n    expected {expected}\n    found    {found}");
                    if !OTHER_NODE.contains(&&*name) {
                        assert!(found["error"]["code"].is_number(), "{name}");
                        assert_eq!(found["error"]["code"], expected["error"]["code"], "{name}");
                        others.push(name.clone());
                    }
                }
            }
        }
    }
    println!("{count} requests");
    assert!(count > 30);
    assert_eq!(others, OTHER_WORDS);
}
