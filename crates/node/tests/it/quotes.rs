//! Errors, and lines of the log, repeat the start of a foreign text, whichever door it came
//! through.

use std::process::Command;

use crate::support::*;
use serde_json::{Value, json};

/// Characters that an error may repeat.
const QUOTED: usize = 200;

/// A megabyte of what grows most when it is escaped.
fn long() -> String {
    "\u{7f}".repeat(1 << 20)
}

/// Checks an answer or a text of the program.
#[track_caller]
fn check(door: &str, text: &str) {
    let repeated = text.matches("7f").count().max(text.matches('\u{7f}').count());
    assert!(repeated <= QUOTED, "{door}: {repeated} characters, {} bytes", text.len());
    assert!(text.len() < QUOTED * "\\\\u{7f}".len() + 1000, "{door}: {} bytes", text.len());
}

/// Calls with the text in each place of the parameters.
fn calls(method: &str) -> Vec<Value> {
    let (text, plain) = (long(), json!("0x0000000000000000000000000000000000000001"));
    let hostile = [
        json!(text),
        json!([text]),
        json!({ &*text: 1 }),
        json!({ "to": text, "timestamp": text, "code": text, "blockHash": text }),
        json!({ "accessList": text }),
        json!({ "0x0000000000000000000000000000000000000001": text }),
    ];
    let mut calls = vec![json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": text})];
    for place in 0..4 {
        for hostile in &hostile {
            let mut params = vec![plain.clone(), json!("latest"), json!([]), json!({})];
            params.truncate(place);
            params.push(hostile.clone());
            calls.push(json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}));
        }
    }
    calls
}

#[tokio::test]
async fn every_method_repeats_the_start_of_a_parameter_alone() {
    let mut node = TestNode::start(genesis_of_osaka()).await;
    let engine = [
        "engine_newPayloadV4",
        "engine_newPayloadWithWitnessV4",
        "engine_executeStatelessPayloadV4",
        "engine_forkchoiceUpdatedV3",
        "engine_getPayloadV4",
        "engine_getPayloadBodiesByHashV1",
        "engine_getPayloadBodiesByRangeV1",
        "engine_getBlobsV1",
        "engine_exchangeCapabilities",
        "engine_getClientVersionV1",
    ];
    let public = [
        "eth_call",
        "eth_createAccessList",
        "eth_simulateV1",
        "eth_estimateGas",
        "eth_getBalance",
        "eth_getBlockByHash",
        "eth_getBlockByNumber",
        "eth_getBlockReceipts",
        "eth_getCode",
        "eth_getLogs",
        "eth_getProof",
        "eth_getStorageAt",
        "eth_getTransactionByBlockHashAndIndex",
        "eth_getTransactionByHash",
        "eth_getTransactionCount",
        "eth_getTransactionReceipt",
        "debug_executionWitness",
        "debug_executionWitnessByHash",
        "debug_getRawTransaction",
        "eth_chainId",
    ];
    for (methods, is_engine) in [(&engine[..], true), (&public[..], false)] {
        for method in methods {
            for call in calls(method) {
                let client = if is_engine { &mut node.engine } else { &mut node.public };
                let answer = client.send(call.to_string()).await.expect("an answer");
                check(method, std::str::from_utf8(&answer).expect("UTF-8"));
            }
        }
    }
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": long()}).to_string();
    let answer = node.public.send(call).await.expect("an answer");
    check("a method", std::str::from_utf8(&answer).expect("UTF-8"));
    let call = json!({"jsonrpc": long(), "id": 1, "method": "eth_chainId"}).to_string();
    let answer = node.public.send(call).await.expect("an answer");
    check("a version", std::str::from_utf8(&answer).expect("UTF-8"));
}

#[tokio::test]
async fn an_invalid_block_is_not_repeated_in_the_reason() {
    let mut node = TestNode::start(genesis_of_osaka()).await;
    let id = node.begin(OSAKA, 1, false).await;
    let envelope = node.built(OSAKA, id).await;
    let mut params = new_payload(4, &envelope);
    params[0]["extraData"] = json!(format!("0x{}", "7f".repeat(1 << 20)));
    let status = node.ok("engine_newPayloadV4", params).await;
    assert_eq!(status["validationError"], "extra data of 1048576 bytes, at most 32 allowed");
}

#[test]
fn the_program_repeats_the_start_of_a_file_alone() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = |name: &str| dir.path().join(name).to_str().expect("UTF-8").to_owned();
    let genesis = genesis_of_osaka();
    std::fs::write(path("genesis.json"), genesis.to_string()).expect("written");
    let run = |door: &str, arguments: &[&str], content: Value| {
        std::fs::write(path("file"), content.to_string()).expect("written");
        let mut program = Command::new(env!("CARGO_BIN_EXE_deponent"));
        let output = program.args(arguments).arg(path("file")).output().expect("it runs");
        // A verdict is no error.
        let said = String::from_utf8([output.stdout, output.stderr].concat()).expect("UTF-8");
        assert!(!output.status.success() && !said.is_empty(), "{door}");
        // Nothing that a terminal would obey, either.
        assert!(!said.trim_end().contains(char::is_control), "{door}: {said:?}");
        check(door, &said);
    };
    let text = long();
    for content in [
        json!(text),
        json!({ "chainId": text }),
        json!({ "block": text }),
        json!({ "witness": { "state": text } }),
        json!({ "witness": { "state": [text] } }),
    ] {
        run("verify", &["verify"], content);
    }
    let (datadir, chain) = (path("data"), path("genesis.json"));
    let import = ["import", "--datadir", &datadir, "--chain", &chain];
    for content in [
        json!({ "method": text, "params": [] }),
        json!({ "method": "engine_newPayloadV4", "params": [text] }),
        json!({ "method": "engine_newPayloadV4", "params": [{ "parentHash": text }] }),
        json!({ "blockHash": text }),
        json!({ "deponent": text }),
        json!({ "hash": text }),
    ] {
        run("import", &import, content);
    }
    let datadir = path("other");
    let init = ["init", "--datadir", &datadir, "--chain"];
    let with = |member: &str, value: Value| {
        let mut genesis = genesis.clone();
        genesis[member] = value;
        genesis
    };
    for content in [
        json!(text),
        with("gasLimit", json!(text)),
        with("config", json!(text)),
        with("alloc", json!({ &*text: {} })),
        with("alloc", json!({ "00000000000000000000000000000000000000aa": { "code": text } })),
    ] {
        run("init", &init, content);
    }
}
