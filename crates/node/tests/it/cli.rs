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

/// Checks the verdict of `deponent verify`: the first word, and the exit status.
#[track_caller]
fn check_verdict(output: &Output, verdict: &str, words: &[&str]) {
    let out = String::from_utf8_lossy(&output.stdout);
    let statuses =
        [("VALID", 0), ("INVALID", 1), ("INCOMPLETE", 3), ("UNREADABLE", 4), ("NOT CANONICAL", 5)];
    let (_, status) = statuses.iter().find(|(name, _)| *name == verdict).expect("a verdict");
    assert_eq!(output.status.code(), Some(*status), "{out}");
    let first = out.strip_prefix(verdict).unwrap_or_else(|| panic!("not {verdict}: {out}"));
    assert!(first.starts_with([':', '\n']), "{out}");
    for words in words {
        assert!(out.contains(words), "{words:?} is not in {out}");
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
    let check = |document: &Value, verdict: &str, words: &[&str]| {
        check_verdict(&verify(document), verdict, words);
    };
    let lines = ["state root", "gas used", "nodes", "codes", "header", "bytes", "ms"];
    check(&good, "VALID", &lines);
    let with = |change: &dyn Fn(&mut Value)| {
        let mut document = good.clone();
        change(&mut document);
        document
    };
    // Each node is missed by somebody, who is named.
    let nodes = good["witness"]["state"].as_array().expect("a list").len();
    for at in 0..nodes {
        let bad = with(&|bad| drop(bad["witness"]["state"].as_array_mut().unwrap().remove(at)));
        check(&bad, "INCOMPLETE", &["block 1 (0x", "trie node 0x", "is missing: "]);
        let out = String::from_utf8(verify(&bad).stdout).expect("UTF-8");
        let owners = ["account 0x", "for the state root after the block"];
        assert!(owners.iter().any(|owner| out.contains(owner)), "{out}");
    }
    let bad = with(&|bad| bad["witness"]["codes"] = json!([]));
    check(&bad, "INCOMPLETE", &["block 1", "is missing: the code of account 0x"]);
    let bad = with(&|bad| bad["witness"]["codes"] = Value::Null);
    check(&bad, "INCOMPLETE", &["is missing: the code of account 0x"]);
    let bad = with(&|bad| bad["witness"]["headers"] = json!([]));
    check(&bad, "INCOMPLETE", &["the header of its parent 0x", "is missing"]);
    check(&with(&|bad| bad["block"] = json!("0xc0")), "UNREADABLE", &["block RLP"]);
    check(&with(&|bad| bad["chainId"] = json!(1)), "UNREADABLE", &["chain 1"]);
    check(&json!({"chainId": 1337}), "UNREADABLE", &["block is missing"]);
    check(&json!([1337, "0x", {}]), "UNREADABLE", &["not an object"]);

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
    let unknown = unknown.wait_with_output().expect("done");
    check_verdict(&unknown, "UNREADABLE", &["chain 1337 is not built in", "--chain FILE"]);
    let absent = deponent().args(["verify", "/absent.json"]).output().expect("run");
    check_verdict(&absent, "UNREADABLE", &["/absent.json"]);
    let usage = deponent().args(["verify", "/absent.json", "--unknown"]).output().expect("run");
    assert_eq!(usage.status.code(), Some(2));
    // A block of another chain says so, and not that its signatures are wrong.
    let block: Bytes = serde_json::from_value(good["block"].clone()).expect("RLP");
    let mut other: Value = genesis_of_osaka();
    other["config"]["chainId"] = json!(7331);
    let other = write(dir.path(), "other.json", &other);
    let foreign = with(&|foreign| drop(foreign.as_object_mut().unwrap().remove("chainId")));
    let file = write(dir.path(), "block.json", &foreign);
    let output = deponent().args(["verify", &file, "--chain", &other]).output().expect("run");
    assert!(!block.is_empty());
    check_verdict(&output, "UNREADABLE", &["is of chain 1337", "of 7331"]);
}

/// Headers newest first, as geth has them, and other forms.
#[tokio::test]
async fn verify_reads_the_witnesses_of_other_tools_and_is_strict_if_told() {
    let dir = tempfile::tempdir().expect("a directory");
    let chain = write(dir.path(), "genesis.json", &genesis_of_osaka());
    let mut node = TestNode::start(genesis_of_osaka()).await;
    node.extend(OSAKA, 1, &[]).await;
    node.extend(OSAKA, 2, &[]).await;
    let envelope = node.extend(OSAKA, 3, &transactions()).await;
    let hash = &envelope["executionPayload"]["blockHash"];
    let witness = node.public("debug_executionWitness", json!([hash])).await.expect("a witness");
    let engine = node.node.engine().clone();
    let record = |number: u64| {
        let hash = engine.canonical_hash(number).expect("readable").expect("a block");
        engine.block(hash).expect("readable").expect("a block")
    };
    let block: Bytes = alloy_rlp::encode(&*record(3).block).into();
    let good = json!({"chainId": "0x539", "block": block, "witness": witness});
    let verify = |document: &Value, strict: &[&str]| {
        let file = write(dir.path(), "block.json", document);
        deponent().args(["verify", &file, "--chain", &chain]).args(strict).output().expect("run")
    };
    check_verdict(&verify(&good, &["--strict"]), "VALID", &["block         3"]);
    let header = |number| record(number).block.header.clone();
    let rlp = |number| Bytes::from(alloy_rlp::encode(header(number)));
    let check = |change: &dyn Fn(&mut Value), words: &[&str]| {
        let mut other = good.clone();
        change(&mut other);
        check_verdict(&verify(&other, &[]), "VALID", &[]);
        check_verdict(&verify(&other, &["--strict"]), "NOT CANONICAL", words);
    };
    check(
        &|other| other["witness"]["headers"] = json!([rlp(2), rlp(1), rlp(0)]),
        &["headers reversed; 2 headers that the block does not read"],
    );
    check(
        &|other| other["witness"]["headers"] = json!([rlp(1), rlp(2), rlp(0), rlp(2)]),
        &["headers out of order", "2 headers that the block does not read"],
    );
    check(
        &|other| other["witness"]["headers"] = json!([header(2), header(1)]),
        &["headers as JSON objects; headers reversed"],
    );
    check(&|other| other["witness"]["keys"] = Value::Null, &["keys given"]);
    // An answer as it was saved: the envelope is no part of the witness.
    let mut saved = good.clone();
    saved["witness"] = json!({"id": 1, "result": good["witness"]});
    check_verdict(&verify(&saved, &["--strict"]), "VALID", &["inside \"result\""]);
    check(
        &|other| {
            let nodes = other["witness"]["state"].as_array_mut().expect("a list");
            nodes.reverse();
            nodes.push(nodes[0].clone());
            nodes.push(json!("0xc0ffee"));
        },
        &["state not sorted; 1 node given twice; 1 node that the block does not read"],
    );
}

#[test]
fn a_node_says_where_it_listens_and_stops_on_a_signal() {
    let dir = tempfile::tempdir().expect("a directory");
    let chain = write(dir.path(), "genesis.json", &genesis_of_osaka());
    let data = dir.path().join("data");
    let mut node = Command::new("sh")
        .args(["-c", "ulimit -Sn 256; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_deponent")])
        .args(["node", "--chain", &chain, "--http.port", "0", "--authrpc.port", "0"])
        .args(["--http.addr", "localhost", "--datadir"])
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
    let status = std::fs::read_to_string(format!("/proc/{}/status", node.id())).expect("Linux");
    assert!(status.lines().any(|line| line == "THP_enabled:\t0"), "huge pages: {status}");
    let kill = Command::new("kill").arg(node.id().to_string()).status().expect("run");
    assert!(kill.success());
    assert!(wait_for("SIGTERM"));
    assert!(node.wait().expect("ended").success());

    let mut bad = deponent();
    bad.args(["node", "--chain", "/absent.json", "--datadir"]).arg(&data);
    check(bad.output().expect("run"), false, &["/absent.json"]);
}

/// SIGUSR1 reads `log.level` again: what is not valid changes nothing, and the command line wins.
#[test]
fn a_signal_changes_the_level_of_the_log() {
    let dir = tempfile::tempdir().expect("a directory");
    let chain = write(dir.path(), "genesis.json", &genesis_of_osaka());
    let file = dir.path().join("deponent.toml");
    let configure = |level: &str| {
        let text = format!("\"log.level\" = {level:?}\n\"http.port\" = 0\n\"authrpc.port\" = 0\n");
        std::fs::write(&file, text).expect("written");
    };
    configure("info");
    let mut command = deponent();
    command.arg("node").arg("--config").arg(&file).args(["--chain", &chain, "--datadir"]);
    command.arg(dir.path().join("data"));
    let mut node = command.stderr(Stdio::piped()).spawn().expect("run");
    let lines = BufReader::new(node.stderr.take().expect("piped")).lines();
    let mut lines = lines.map(|line| line.expect("UTF-8"));
    let mut wait = |words: &str| {
        lines.find(|line| line.contains(words)).unwrap_or_else(|| panic!("{words} is not said"))
    };
    let signal = |name: &str| {
        let id = node.id().to_string();
        assert!(Command::new("kill").args([name, &id]).status().expect("run").success());
    };
    let public = wait("public JSON-RPC");
    let address = public.rsplit("http=").next().expect("an address").to_owned();
    wait("ipc=");
    configure("loud");
    signal("-USR1");
    let line = wait("SIGUSR1");
    assert!(line.contains("the level of the log stays") && line.contains("loud"), "{line}");
    configure("debug");
    signal("-USR1");
    let line = wait("SIGUSR1");
    assert!(line.contains("was read again") && line.contains("debug"), "{line}");
    // A refused request is told at this level alone.
    let mut client = std::net::TcpStream::connect(address).expect("a connection");
    client.write_all(b"GET /absent HTTP/1.1\r\nhost: localhost\r\n\r\n").expect("written");
    wait("DEBUG");
    signal("-TERM");
    lines.for_each(drop);
    assert_eq!(node.wait().expect("it ends").code(), Some(0));
}

#[test]
fn every_command_has_the_version_with_its_commit() {
    let shown = |arguments: &[&str]| {
        let output = deponent().args(arguments).output().expect("run");
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let version = shown(&["--version"]);
    let commit = env!("DEPONENT_COMMIT_SHOWN");
    assert_eq!(version, format!("deponent {}-{commit}\n", env!("CARGO_PKG_VERSION")));
    let node = shown(&["node", "--version"]);
    assert!(node.ends_with(version.strip_prefix("deponent").expect("its name")), "{node}");
    let is_commit = commit.len() == 8 && commit.bytes().all(|digit| digit.is_ascii_hexdigit());
    assert!(is_commit || commit == "nogit" && env!("DEPONENT_COMMIT") == "00000000", "{commit}");
}

#[test]
fn man_pages_have_the_commands_and_their_flags() {
    let page = |arguments: &[&str]| {
        let output = deponent().arg("man").args(arguments).output().expect("run");
        (output.status.code(), String::from_utf8(output.stdout).expect("UTF-8"))
    };
    let (status, program) = page(&[]);
    assert_eq!(status, Some(0));
    for words in [".TH deponent 1", ".SH NAME", "deponent\\-node(1)", "deponent\\-status(1)"] {
        assert!(program.contains(words), "{words:?} is not in {program}");
    }
    let (status, node) = page(&["node"]);
    assert_eq!(status, Some(0));
    for words in [".TH deponent-node 1", "\\-\\-debug.logslowblock", "\\-\\-datadir"] {
        assert!(node.contains(words), "{words:?} is not in {node}");
    }
    assert_eq!(page(&["unknown"]).0, Some(1));
}

#[test]
fn a_command_that_is_called_wrongly_ends_with_2() {
    for arguments in [
        &["db", "stats"][..],
        &["db", "verify"],
        &["node"],
        &["node", "--datadir", "x", "--http.addr", "example.org"],
        &["unknown"],
    ] {
        let output = deponent().args(arguments).output().expect("run");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    }
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

/// A full disk and a reader that has gone are errors, and no panics.
#[test]
fn an_output_that_cannot_be_written_is_an_error() {
    for to in ["/dev/full", "closed"] {
        let mut command = deponent();
        command.args(["node", "--print-limits"]).stderr(Stdio::piped());
        let output = if to == "closed" {
            let (reader, writer) = std::io::pipe().expect("a pipe");
            drop(reader);
            command.stdout(writer).output()
        } else {
            let full = std::fs::OpenOptions::new().write(true).open(to).expect("Linux");
            command.stdout(full).output()
        };
        let output = output.expect("the program runs");
        let said = String::from_utf8_lossy(&output.stderr);
        // A reader that has gone is no fault of a disk.
        let status = if to == "closed" { 1 } else { 74 };
        assert_eq!(output.status.code(), Some(status), "{to}: {said}");
        assert!(said.contains("cannot write to the standard output"), "{to}: {said}");
    }
    // Where lower statuses are verdicts.
    for command in [&["verify"][..], &["witness", "inspect"], &["witness", "diff", "/dev/null"]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("Linux");
        let output = deponent().args(command).arg("/dev/null").stdout(full).output();
        assert_eq!(output.expect("the program runs").status.code(), Some(74), "{command:?}");
    }
}

#[test]
fn the_configuration_shows_the_variables_that_stand_in_for_flags() {
    let config = |flags: &[&str]| {
        let mut command = deponent();
        command.args(["config", "--datadir", "x"]).args(flags);
        command.env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318");
        command.env("OTEL_SERVICE_NAME", "").output().expect("run")
    };
    let variable = "# \"otlp.endpoint\" is not set, and OTEL_EXPORTER_OTLP_ENDPOINT in the \
                    environment is \"http://127.0.0.1:4318\"\n";
    check(config(&[]), true, &[variable, "# \"otlp.service-name\" is not set\n"]);
    check(config(&["--otlp.endpoint", "http://a"]), true, &["\"otlp.endpoint\" = \"http://a\"\n"]);
    let late = config(&["--otlp.endpoint", "http://a:65536"]);
    assert_eq!(late.status.code(), Some(2), "{late:?}");
    assert!(String::from_utf8_lossy(&late.stderr).contains("from 1 to 65535"), "{late:?}");
}

/// Hosted endpoints have a key in the path.
#[test]
fn an_error_about_an_address_does_not_show_what_is_secret_in_it() {
    let address = |scheme: &str| format!("{scheme}://me:word@127.0.0.1:1/KEY");
    let (other, closed) = (address("ftp"), address("http"));
    let block = format!("{closed}#7");
    for arguments in [
        &["node", "--follow", &other][..],
        &["node", "--stateless", "--witnesses", &other],
        &["follow", "--rpc", &other],
        &["dev", "--fork-url", &other],
        &["dev", "--fork-url", &closed],
        &["verify", "--rpc", &other, "1"],
        &["verify", "--rpc", &closed, "1"],
        &["witness", "inspect", "--rpc", &closed, "1"],
        &["witness", "diff", &block, &block],
        &["chain", "--rpc-url", &other],
        &["chain", "--rpc-url", &closed],
    ] {
        let output = deponent().args(arguments).output().expect("run");
        let said = String::from_utf8([output.stdout, output.stderr].concat()).expect("UTF-8");
        assert!(!output.status.success() && said.contains("127.0.0.1:1"), "{arguments:?}: {said}");
        for secret in ["me:", "word", "KEY"] {
            assert!(!said.contains(secret), "{arguments:?}: {said}");
        }
    }
}

#[test]
fn a_source_of_witnesses_that_is_neither_a_folder_nor_a_socket_is_refused() {
    for source in ["/nonexistent", "/dev/null", env!("CARGO_BIN_EXE_deponent")] {
        let output = deponent().args(["node", "--stateless", "--witnesses", source]).output();
        let output = output.expect("run");
        assert_eq!(output.status.code(), Some(2), "{source}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains("the path of a Unix socket or a folder"), "{source}: {said}");
    }
}
