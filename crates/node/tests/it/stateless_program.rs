//! The program as a node without a state: its flags, its log and its status.

use alloy_primitives::hex;
use rpc::Client;
use serde_json::{Value, json};

use crate::stateless::{genesis_hash, text};
use crate::support::{OSAKA, TestNode, genesis_of_osaka, new_payload, state};

/// The program itself: its flags, its status over the socket, and its end.
#[tokio::test(flavor = "multi_thread")]
async fn the_program_runs_without_files() {
    let mut node = TestNode::start(genesis_of_osaka()).await;
    let envelope = node.extend(OSAKA, 1, &[]).await;
    let dir = tempfile::tempdir().expect("a directory");
    let place = |name: &str| dir.path().join(name).display().to_string();
    std::fs::write(place("genesis.json"), genesis_of_osaka().to_string()).expect("written");
    std::fs::write(place("jwt.hex"), hex::encode([7; 32])).expect("written");
    let url = format!("http://{}", node.node.http_addr);
    let program = env!("CARGO_BIN_EXE_deponent");
    let mut command = std::process::Command::new(program);
    command.args(["node", "--stateless", "--http=false", "--authrpc.port", "0"]);
    command.args(["--chain", &place("genesis.json"), "--authrpc.jwtsecret", &place("jwt.hex")]);
    command.args(["--ipcpath", &place("node.ipc"), "--witnesses", &url, "--txpool.memory", "1M"]);
    command.env("RUST_LOG", "info").env("NO_COLOR", "1").current_dir(dir.path());
    let mut child = command.stderr(std::process::Stdio::piped()).spawn().expect("it runs");
    let log = std::io::BufReader::new(child.stderr.take().expect("piped"));
    let mut lines = std::io::BufRead::lines(log).map_while(Result::ok);
    let warned = lines.by_ref().find(|line| line.contains("WARN")).expect("a warning");
    assert!(warned.contains("--txpool.memory"), "{warned}");
    let begun = lines.by_ref().find(|line| line.contains("without a state")).expect("a line");
    assert!(begun.contains(&format!("chain_id=1337 sources=\"{url}\"")), "{begun}");
    lines.by_ref().find(|line| line.contains("on a Unix socket")).expect("it listens");
    let log = std::thread::spawn(move || lines.collect::<Vec<_>>());

    let unix = format!("unix:{}", place("node.ipc"));
    let mut client = Client::connect(&unix, None).await.expect("a connection");
    let hash = envelope["executionPayload"]["blockHash"].clone();
    let genesis = genesis_hash(&mut node).await;
    for (method, params) in [
        ("engine_forkchoiceUpdatedV3", json!([state(&genesis), null])),
        ("engine_newPayloadV4", new_payload(4, &envelope)),
        ("engine_forkchoiceUpdatedV3", json!([state(&hash), null])),
    ] {
        let answer: Value = client.call(method, params).await.expect("an answer");
        assert!(answer.to_string().contains("\"VALID\""), "{method}: {answer}");
    }
    let shown = std::process::Command::new(program)
        .args(["status", "--ipcpath", &place("node.ipc")])
        .output()
        .expect("it runs");
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    for words in ["ready             yes", text(&hash), "anchor", "sources"] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    drop(client);
    let id = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(id, rustix::process::Signal::TERM).expect("a signal");
    assert!(child.wait().expect("it ends").success());
    let log = log.join().expect("it ends");
    // The names are those of a node with a state.
    let names =
        ["number=1 hash=0x", "txs=", "gas_used=", "mgas_per_s=", " ms=", "witness_mb=", "age="];
    let is_whole = |line: &String| {
        line.contains("block VALID") && names.iter().all(|name| line.contains(name))
    };
    assert!(log.iter().any(is_whole), "{log:?}");
    let mut left: Vec<_> = std::fs::read_dir(dir.path())
        .expect("a directory")
        .map(|file| file.expect("a file").file_name())
        .collect();
    left.sort();
    assert_eq!(left, ["genesis.json", "jwt.hex"], "it leaves no file");
}

#[test]
fn flags_that_make_no_sense_are_refused() {
    let check = |args: &[&str], words: &str| {
        let program = env!("CARGO_BIN_EXE_deponent");
        let output = std::process::Command::new(program).arg("node").args(args).output();
        let output = output.expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains(words), "{args:?}: {said}");
    };
    let url = "--witnesses=http://127.0.0.1:1";
    check(&["--stateless"], "--stateless needs --witnesses SOURCES");
    check(&["--stateless", url], "--stateless needs --chain");
    check(&["--stateless", url, "--chain", "sepolia"], "--authrpc.jwtsecret FILE");
    check(&["--stateless", url, "--datadir", "x"], "leave out --datadir");
    check(&["--stateless", url, "--testing"], "--testing needs a state");
    check(&["--stateless", url, "--follow", "http://127.0.0.1:1"], "leave out --follow");
    check(&["--stateless", url, "--journal.sync"], "--journal.sync needs a state");
    check(&[url, "--datadir", "x"], "--witnesses is for --stateless");
    check(&["--stateless", "--witnesses", "127.0.0.1"], "it has no port, as 127.0.0.1:8545 has");
    check(&["--stateless", "--witnesses", "ftp://x"], "expected a URL (http, https, ws or wss)");
    let anchor = "--stateless.anchor";
    check(&["--stateless", url, anchor, "0x12"], "expected the hash of a block");
    check(&[anchor, &format!("0x{}", "ab".repeat(32)), "--datadir", "x"], "is for --stateless");
}

#[test]
fn a_network_that_is_not_built_in_is_refused_with_those_that_are() {
    let dir = tempfile::tempdir().expect("a directory");
    let secret = dir.path().join("jwt.hex");
    std::fs::write(&secret, hex::encode([7; 32])).expect("written");
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_deponent"));
    command.args(["node", "--stateless", "--witnesses=http://127.0.0.1:1", "--chain=mainnett"]);
    let output = command.arg("--authrpc.jwtsecret").arg(&secret).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    let words =
        "there is no file mainnett, and the networks that are built in are mainnet, sepolia";
    assert!(!output.status.success() && said.contains(words), "{said}");
}
