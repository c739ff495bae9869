//! The `deponent` program as a process.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::support::*;
use alloy_primitives::Bytes;
use serde_json::{Value, json};

fn deponent() -> Command {
    Command::new(env!("CARGO_BIN_EXE_deponent"))
}

fn write(dir: &Path, name: &str, value: &Value) -> String {
    let path = dir.join(name);
    std::fs::write(&path, value.to_string()).expect("written");
    path.to_str().expect("a path in UTF-8").into()
}

/// A block with its witness, as `deponent verify` reads it.
async fn document() -> Value {
    let mut node = TestNode::start(genesis_of_osaka()).await;
    let envelope = node.extend(OSAKA, 1, &transactions()).await;
    let hash = &envelope["executionPayload"]["blockHash"];
    let witness = node.public("debug_executionWitness", json!([hash])).await.expect("a witness");
    let hash = serde_json::from_value(hash.clone()).expect("a hash");
    let record = node.node.engine().block(hash).expect("readable").expect("a block");
    let block: Bytes = alloy_rlp::encode(&*record.block).into();
    json!({"name": "a test", "chainId": 1337, "block": block, "witness": witness})
}

#[track_caller]
fn check(output: Output, success: bool, words: &[&str]) {
    let (out, error) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(i32::from(!success)), "{out}{error}");
    let text = if success { &out } else { &error };
    for words in words {
        assert!(text.contains(words), "{words:?} is not in {text}");
    }
}

#[tokio::test]
async fn verify_says_what_it_verified_or_precisely_why_not() {
    let dir = tempfile::tempdir().expect("a directory");
    let chain = write(dir.path(), "genesis.json", &genesis_of_osaka());
    let good = document().await;
    let verify = |document: &Value| {
        let file = write(dir.path(), "block.json", document);
        deponent().args(["verify", &file, "--chain", &chain]).output().expect("run")
    };
    let lines = ["state root", "gas used", "nodes", "codes", "headers", "bytes", "ms"];
    check(verify(&good), true, &lines);

    let mut bad = good.clone();
    bad["witness"]["state"].as_array_mut().expect("a list").remove(0);
    check(verify(&bad), false, &["block 1"]);
    let mut bad = good.clone();
    bad["witness"]["codes"] = json!([]);
    check(verify(&bad), false, &["block 1", "code"]);
    let mut bad = good.clone();
    bad["witness"]["headers"] = json!([]);
    check(verify(&bad), false, &["header"]);
    let mut bad = good.clone();
    bad["block"] = json!("0xc0");
    check(verify(&bad), false, &["block RLP"]);
    let mut bad = good.clone();
    bad["chainId"] = json!(1);
    check(verify(&bad), false, &["chain 1"]);
    check(verify(&json!({"chainId": 1337})), false, &["missing field `block`"]);

    let mut unknown = deponent()
        .args(["verify", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("run");
    let mut stdin = unknown.stdin.take().expect("piped");
    stdin.write_all(good.to_string().as_bytes()).expect("written");
    drop(stdin);
    check(unknown.wait_with_output().expect("done"), false, &["chain 1337 is not built in"]);
    let absent = deponent().args(["verify", "/absent.json"]).output().expect("run");
    check(absent, false, &["/absent.json"]);
}

#[test]
fn a_node_says_where_it_listens_and_stops_on_a_signal() {
    let dir = tempfile::tempdir().expect("a directory");
    let chain = write(dir.path(), "genesis.json", &genesis_of_osaka());
    let data = dir.path().join("data");
    let mut node = Command::new("sh")
        .args(["-c", "ulimit -Sn 256; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_deponent")])
        .args(["node", "--chain", &chain, "--http.port", "0", "--authrpc.port", "0", "--datadir"])
        .arg(&data)
        .env_remove("RUST_LOG")
        .stderr(Stdio::piped())
        .spawn()
        .expect("run");
    let mut log = BufReader::new(node.stderr.take().expect("piped")).lines();
    let mut wait_for =
        |words: &str| log.by_ref().map_while(Result::ok).any(|line| line.contains(words));
    assert!(wait_for("chain opened"));
    assert!(wait_for("Engine API"));
    assert!(wait_for("public JSON-RPC"));
    assert!(data.join("jwt.hex").is_file());
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", node.id())).expect("Linux");
    let files = limits.lines().find(|line| line.starts_with("Max open files")).expect("a limit");
    let files: Vec<_> = files.split_whitespace().skip(3).take(2).collect();
    assert_eq!(files[0], files[1], "the limit that the shell set is not raised: {limits}");
    let kill = Command::new("kill").arg(node.id().to_string()).status().expect("run");
    assert!(kill.success());
    assert!(wait_for("SIGTERM"));
    assert!(node.wait().expect("ended").success());

    let mut bad = deponent();
    bad.args(["node", "--chain", "/absent.json", "--datadir"]).arg(&data);
    check(bad.output().expect("run"), false, &["/absent.json"]);
}

#[test]
fn a_value_of_rust_log_that_is_no_filter_is_named() {
    let output = deponent().args(["verify", "-"]).env("RUST_LOG", "info,engine=loud").output();
    let output = output.expect("run");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    for words in ["RUST_LOG", "\"loud\" is no level", "info,deponent_engine=debug"] {
        assert!(said.contains(words), "{said}");
    }
}

#[test]
fn bench_starts_the_program_beside_this_one_or_says_how_to_build_it() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let own = dir.path().join("deponent");
    std::fs::hard_link(env!("CARGO_BIN_EXE_deponent"), &own).expect("a link");
    let bench = || {
        let mut command = Command::new(&own);
        command.args(["bench", "state", "--help"]).env("PATH", dir.path().join("none"));
        command.output().expect("it runs")
    };
    let output = bench();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("cargo build --release -p deponent-bench"), "{said}");
    let program = dir.path().join("deponent-bench");
    std::fs::write(&program, "#!/bin/sh\necho \"given: $*\"\nexit 7\n").expect("written");
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).expect("it is ours");
    let output = bench();
    assert_eq!(output.status.code(), Some(7));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "given: state --help\n");
}
