//! `deponent status` and the probes of monitors.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::{Command, Output};

use crate::persistence::{Process, directory};
use serde_json::{Value, json};

fn status(dir: &Path, flags: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_deponent"));
    command.args(["status", "--datadir"]).arg(dir.join("data")).args(flags);
    command.output().expect("the program runs")
}

fn text(output: Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[tokio::test(flavor = "multi_thread")]
async fn status_says_how_a_node_is_or_that_there_is_none() {
    let dir = directory();
    let mut node = Process::start_with(dir.path(), &["--witness.retain-blocks", "2"]).await;
    // A stranger on the public port is no consensus client, whatever it calls.
    let mut public = rpc::Client::connect(&node.public, None).await.expect("a connection");
    public.call::<Value>("engine_newPayloadV4", json!([])).await.expect_err("not here");
    let shown = text(status(dir.path(), &[]));
    for words in [
        "ready             no: no consensus client has named a head since the start",
        "head              0",
        "oldest witness    none",
        "consensus client  none has called since the start",
    ] {
        assert!(shown.contains(words), "{words:?} is not in {shown}");
    }
    let mut head = node.head().await;
    for _ in 0..3 {
        let hash = node.add(&head, json!([]), json!([])).await;
        head = node.block(&hash).await;
        node.choose(&hash, false).await;
    }
    let shown = text(status(dir.path(), &[]));
    let hash = head["hash"].as_str().expect("a hash");
    for words in ["ready             yes\n", &format!("head              3          {hash}\n")] {
        assert!(shown.contains(words), "{words:?} is not in {shown}");
    }
    assert!(shown.contains(": engine_forkchoiceUpdatedV3, "), "{shown}");
    let told: Value = serde_json::from_str(&text(status(dir.path(), &["--json"]))).expect("JSON");
    assert_eq!(told["head"], json!({"number": 3, "hash": head["hash"]}));
    let null = Value::Null;
    assert_eq!(
        (&told["safe"], &told["finalized"], &told["syncing"]),
        (&null, &null, &json!(false))
    );
    assert_eq!((&told["chainId"], &told["oldestState"]), (&json!(1337), &json!(0)));
    assert!(
        told["oldestWitness"].as_u64().is_some_and(|oldest| (1..=3).contains(&oldest)),
        "{told}"
    );
    assert!(told["disk"]["free"].as_u64() > Some(0), "{told}");
    for part in ["nodes", "blocks", "codes", "witnesses", "index"] {
        assert!(told["disk"][part].is_u64(), "{part}: {told}");
    }
    assert_eq!(told["caches"]["pages"]["limit"], 1 << 30);
    assert!(told["caches"]["pages"]["bytes"].as_u64() < Some(1 << 30), "{told}");
    let data = std::path::absolute(dir.path().join("data")).expect("a path");
    assert_eq!(told["dataDir"].as_str(), data.to_str());
    assert_eq!(told["consensusClient"]["method"], "engine_forkchoiceUpdatedV3");
    // A relative path is one as good.
    let mut relative = Command::new(env!("CARGO_BIN_EXE_deponent"));
    relative.args(["status", "--datadir", "data"]).current_dir(dir.path());
    assert!(text(relative.output().expect("run")).contains("ready             yes"));
    // So is one that is not UTF-8.
    let odd = dir.path().join(OsStr::from_bytes(b"odd\xff"));
    std::os::unix::fs::symlink(dir.path().join("data"), &odd).expect("a link");
    let mut at_odd = Command::new(env!("CARGO_BIN_EXE_deponent"));
    at_odd.args(["status", "--datadir"]).arg(&odd);
    assert!(text(at_odd.output().expect("run")).contains("ready             yes"));
    // The socket of a node that was killed is still there.
    node.kill();
    let refused = status(dir.path(), &[]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(said.contains("no node answers at") && said.contains("deponent.ipc"), "{said}");
    assert!(said.contains("Is the node running") && said.contains("--ipcpath"), "{said}");
}

/// A socket that takes connections, and behind which nothing answers.
#[test]
fn a_node_that_does_not_answer_is_not_waited_for_long() {
    let dir = directory();
    let socket = dir.path().join("deaf.ipc");
    let _deaf = std::os::unix::net::UnixListener::bind(&socket).expect("a socket");
    let mut command = Command::new(env!("CARGO_BIN_EXE_deponent"));
    let output = command.args(["status", "--ipcpath"]).arg(&socket).output().expect("run");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("has not answered within 5 seconds"), "{said}");
}
