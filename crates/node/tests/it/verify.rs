//! `deponent verify` on an endpoint, and on stateless inputs.

use std::path::Path;
use std::process::{Command, Output};

use crate::support::{ALL_FORKS, TestNode, genesis_of_all_forks, transactions};
use alloy_primitives::{Bytes, hex};
use execution::stateless::{NewPayloadRequest, ProtocolFork, StatelessInput};
use serde_json::Value;

/// Runs `deponent verify`, with these arguments.
pub(crate) fn verify(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_deponent")).arg("verify").args(args).output().expect("run")
}

pub(crate) fn lines(output: &Output) -> Vec<String> {
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

/// A node with a block of each fork, and a file of its genesis.
async fn chain(dir: &Path) -> (TestNode, String) {
    let genesis = genesis_of_all_forks();
    let file = dir.join("genesis.json");
    std::fs::write(&file, genesis.to_string()).expect("written");
    let mut node = TestNode::start(genesis).await;
    for fork in ALL_FORKS {
        node.extend(fork, fork.time, &[]).await;
    }
    let last = ALL_FORKS[5];
    node.extend(last, last.time + 1, &transactions()).await;
    (node, file.to_str().expect("UTF-8").to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn blocks_of_an_endpoint_are_verified_in_order() {
    let dir = tempfile::tempdir().expect("a directory");
    let (mut node, chain) = chain(dir.path()).await;
    let head = node.head().await;
    let head = head.as_str().expect("a hash");
    let url = format!("http://{}", node.node.http_addr);
    let on_node = |args: &[&str]| verify(&[&["--rpc", &url, "--chain", &chain], args].concat());

    let output = on_node(&["1..7"]);
    let printed = lines(&output);
    assert_eq!((output.status.code(), printed.len()), (Some(0), 7), "{printed:?}");
    for (number, line) in (1..).zip(&printed) {
        assert!(line.starts_with(&format!("VALID: block {number} (0x")), "{line}");
    }
    for what in ["latest", "7", "0x7", head] {
        let output = on_node(&[what]);
        let printed = lines(&output);
        assert_eq!((output.status.code(), printed[0].as_str()), (Some(0), "VALID"), "{what}");
        assert!(printed[2].ends_with(head), "{printed:?}");
    }
    // A missing block has a line, too, and the others are verified nevertheless.
    let output = on_node(&["--json", "6..8", "3..2", "x"]);
    assert_eq!(output.status.code(), Some(4));
    let printed: Vec<Value> =
        lines(&output).iter().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let verdicts: Vec<_> = printed.iter().map(|line| line["verdict"].as_str()).collect();
    let [valid, unreadable] = ["VALID", "UNREADABLE"].map(Some);
    assert_eq!(verdicts, [unreadable, valid, valid, unreadable, unreadable], "{printed:?}");
    assert_eq!(printed[0]["reason"], "the range ends before it begins");
    assert_eq!((&printed[2]["hash"], &printed[2]["number"]), (&head.into(), &7.into()));
    assert_eq!(printed[2]["fork"], "Amsterdam");
    assert_eq!(printed[2]["witness"], printed[2]["canonical"]);
    let reason = printed[3]["reason"].as_str().expect("text");
    assert!(reason.contains("debug_getRawBlock") && reason.contains("eth_getBlockByNumber: "));

    node.node.stop().await;
    let output = on_node(&["1..7"]);
    let printed = lines(&output);
    assert_eq!((output.status.code(), printed.len()), (Some(4), 1), "{printed:?}");
    assert!(printed[0].contains("no answer from http://"), "{printed:?}");
}

#[tokio::test]
async fn a_stateless_input_is_verified_as_it_is_and_in_hex() {
    let dir = tempfile::tempdir().expect("a directory");
    let (node, chain) = chain(dir.path()).await;
    let engine = node.node.engine();
    let mut files = Vec::new();
    for number in 1..=7 {
        let hash = engine.canonical_hash(number).expect("readable").expect("a block");
        let record = engine.block(hash).expect("readable").expect("a block");
        let fork = ProtocolFork::of(engine.chain().fork_of(&record.block.header)).expect("one");
        let requests: Vec<_> = record.requests.iter().cloned().collect();
        let list = record.block_access_list.clone().unwrap_or_default();
        let request = NewPayloadRequest::of_block(fork, &record.block, &requests, list);
        let witness = engine.witness(hash).expect("kept").expect("executed");
        let input = StatelessInput {
            new_payload_request: request.expect("made"),
            witness: (*witness).clone(),
            chain_id: engine.chain().chain_id(),
            public_keys: None,
        };
        let bytes = Bytes::from(input.encode().expect("within the limits"));
        for (name, content) in [
            (format!("{number}.ssz"), bytes.to_vec()),
            (format!("{number}.hex"), format!("{}\n", hex::encode_prefixed(&bytes)).into_bytes()),
        ] {
            let path = dir.path().join(name);
            std::fs::write(&path, content).expect("written");
            files.push(path.to_str().expect("UTF-8").to_owned());
        }
        let mut wrong = input;
        wrong.new_payload_request.execution_payload.gas_used += 1;
        let path = dir.path().join("wrong.ssz");
        std::fs::write(&path, wrong.encode().expect("within the limits")).expect("written");
        let output = verify(&["--chain", &chain, path.to_str().expect("UTF-8")]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(lines(&output)[0].starts_with("INVALID: block hash mismatch"), "{output:?}");
    }
    let files: Vec<_> = files.iter().map(String::as_str).collect();
    let output = verify(&[&["--chain", &chain, "--strict"], &files[..]].concat());
    let printed = lines(&output);
    assert_eq!((output.status.code(), printed.len()), (Some(0), 14), "{printed:?}");
    assert!(printed.iter().all(|line| line.starts_with("VALID: block ")), "{printed:?}");
}
