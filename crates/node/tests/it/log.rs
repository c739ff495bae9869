//! The log of a running node, as an operator reads it.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::persistence::{Process, directory};
use crate::support::{genesis_of_all_forks, genesis_of_osaka};
use alloy_eips::eip8282::BUILDER_EXIT_CONTRACT_ADDRESS;
use rpc::{Client, JwtSecret};
use serde_json::{Value, json};

/// The file of a node's log.
struct Log {
    path: PathBuf,
    /// Lines that were looked at.
    seen: usize,
}

impl Log {
    fn of(dir: &Path) -> Self {
        Self { path: dir.join("node.log"), seen: 0 }
    }

    /// Waits for a line with all these words, and gives it and the lines before it that were not
    /// looked at yet.
    async fn until(&mut self, words: &[&str]) -> (Vec<String>, String) {
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            let text = std::fs::read_to_string(&self.path).expect("the log");
            let lines: Vec<_> = text.lines().skip(self.seen).map(str::to_owned).collect();
            let has_all = |line: &String| words.iter().all(|words| line.contains(words));
            if let Some(at) = lines.iter().position(has_all) {
                self.seen += at + 1;
                return (lines[..at].to_vec(), lines[at].clone());
            }
            assert!(Instant::now() < end, "{words:?} is not in {text}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// The value of a field in a line.
fn field<'a>(line: &'a str, name: &str) -> &'a str {
    let words = line.split_whitespace().filter_map(|word| word.split_once('='));
    let value = words.filter(|(found, _)| *found == name).map(|(_, value)| value).next();
    value.unwrap_or_else(|| panic!("{name} is not in {line}"))
}

/// A withdrawal, which makes a block another one than its twins.
fn withdrawal(amount: u64) -> Value {
    let address = format!("0x{}", "aa".repeat(20));
    json!([{
        "index": "0x0", "validatorIndex": "0x1", "address": address,
        "amount": format!("{amount:#x}"),
    }])
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_has_blocks_reorgs_fork_choices_and_failed_builds() {
    let dir = directory();
    let mut log = Log::of(dir.path());
    let file = log.path.display().to_string();
    let mut node = Process::start_with(dir.path(), &["--log.file", &file]).await;
    let genesis = node.head().await;
    // A block has its line, with all that an operator wants to know of it.
    let first = node.add(&genesis, json!([]), json!([])).await;
    let (_, line) = log.until(&["INFO", "block VALID", " number=1 "]).await;
    let hash = first.as_str().expect("a hash");
    assert_eq!(field(&line, "hash"), format!("{}..{}", &hash[..10], &hash[62..]));
    assert_eq!((field(&line, "txs"), field(&line, "gas_used")), ("0", "0"));
    for name in ["ms", "mgas_per_s"] {
        assert!(field(&line, name).parse::<f64>().is_ok(), "{line}");
    }
    assert!(line.contains("witness_mb") && line.contains("unpersisted=1"), "{line}");
    assert!(field(&line, "age").contains('d'), "the chain began in 1970: {line}");
    node.choose(&first, false).await;
    // Many at once are summed, and none is left out.
    let mut head = node.block(&first).await;
    for _ in 0..20 {
        let hash = node.add(&head, json!([]), json!([])).await;
        head = node.block(&hash).await;
    }
    let mut blocks = 0;
    while blocks < 20 {
        let (_, line) = log.until(&["INFO", " VALID "]).await;
        let count = if line.contains("blocks VALID") { field(&line, "blocks") } else { "1" };
        blocks += count.parse::<u64>().expect("a number");
    }
    assert_eq!(blocks, 20);
    // A head that jumps says so. The next block as head, and the same again, say nothing.
    node.choose(&head["hash"], false).await;
    log.until(&["INFO", " head number=21 ", "blocks=20"]).await;
    let next = node.add(&head, json!([]), json!([])).await;
    node.choose(&next, false).await;
    node.choose(&next, false).await;
    let (_, _) = log.until(&["block VALID", "number=22 "]).await;
    // A reorganisation.
    let parent = node.block(&first).await;
    let other = node.add(&parent, withdrawal(1), json!([])).await;
    node.choose(&other, false).await;
    let (before, line) = log.until(&["INFO", "reorg"]).await;
    assert!(before.iter().all(|line| line.contains("block VALID")), "{before:?}");
    let fields = ["number", "depth", "blocks", "old"].map(|name| field(&line, name));
    assert_eq!(fields, ["2", "21", "1", "22"]);
    node.choose(&first, false).await;
    let (_, line) = log.until(&["INFO", "head moved back"]).await;
    assert_eq!(["number", "depth", "old"].map(|name| field(&line, name)), ["1", "1", "2"]);
    node.choose(&first, true).await;
    log.until(&["INFO", "fork choice finalized=1", "head=1"]).await;
    // A build that cannot be, by its attributes and by its identifier.
    let state = json!({
        "headBlockHash": first, "safeBlockHash": format!("0x{}", "00".repeat(32)),
        "finalizedBlockHash": format!("0x{}", "00".repeat(32)),
    });
    let attributes = json!({
        "timestamp": "0x1", "prevRandao": first, "withdrawals": [],
        "suggestedFeeRecipient": format!("0x{}", "fe".repeat(20)), "parentBeaconBlockRoot": first,
    });
    let params = json!([state, attributes]);
    let refused = node.engine.call::<Value>("engine_forkchoiceUpdatedV3", params).await;
    refused.expect_err("its timestamp is not after the head's");
    log.until(&["WARN", "no payload could be built", "timestamp 1 is not after"]).await;
    let refused = node.engine.call::<Value>("engine_getPayloadV5", json!(["0x0000000000000001"]));
    refused.await.expect_err("no such build");
    log.until(&["WARN", "no payload could be built", "no build has the id"]).await;
}

/// A consensus client that catches up sends many blocks a second, chooses heads that jump and
/// finalizes them.
#[tokio::test(flavor = "multi_thread")]
async fn no_second_has_two_lines_about_blocks_however_fast_they_come() {
    let dir = directory();
    let file = dir.path().join("node.log").display().to_string();
    let mut node = Process::start_with(dir.path(), &["--log.file", &file]).await;
    let mut head = node.head().await;
    let mut sent = 0;
    let said = |text: String| -> Vec<String> {
        let is_said = |line: &&str| line.contains("INFO") && line.contains("block_log: ");
        text.lines().filter(is_said).map(str::to_owned).collect()
    };
    let end = Instant::now() + Duration::from_secs(60);
    // Until there are lines of four seconds, of which the last has all that came before it.
    let lines = loop {
        for _ in 0..3 {
            let hash = node.add(&head, json!([]), json!([])).await;
            head = node.block(&hash).await;
            sent += 1;
        }
        node.choose(&head["hash"], sent % 2 == 0).await;
        let lines = said(std::fs::read_to_string(&file).expect("the log"));
        if lines.len() >= 4 {
            break lines;
        }
        assert!(Instant::now() < end, "{lines:?}");
    };
    let seconds: Vec<_> = lines.iter().map(|line| line.split('.').next()).collect();
    let different: std::collections::BTreeSet<_> = seconds.iter().collect();
    assert_eq!(different.len(), seconds.len(), "{lines:#?}");
    // The sums have the changes of fork choices.
    let sum = lines.iter().find(|line| line.contains("blocks VALID")).expect("a sum");
    assert!(sum.contains(" head=") && sum.contains(" finalized="), "{lines:#?}");
    // And all of it is said in the end.
    node.choose(&head["hash"], true).await;
    let mut log = Log { path: file.into(), seen: 0 };
    log.until(&[&format!("head={sent}")]).await;
}

/// Sends SIGTERM.
fn terminate(id: u32) {
    let kill = Command::new("kill").arg(id.to_string()).status().expect("run");
    assert!(kill.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_has_the_consensus_client_slow_blocks_and_how_the_node_stopped() {
    let dir = directory();
    let mut log = Log::of(dir.path());
    let file = log.path.display().to_string();
    let flags = ["--log.file", &file, "--debug.logslowblock", "0"];
    let mut node = Process::start_with(dir.path(), &flags).await;
    log.until(&["INFO", "chain opened number=0"]).await;
    let genesis = node.head().await;
    let first = node.add(&genesis, json!([]), json!([])).await;
    let words = ["INFO", "a consensus client has called for the first time"];
    let (before, line) = log.until(&words).await;
    assert_eq!(field(&line, "method"), "\"engine_newPayloadV4\"");
    assert!(before.iter().all(|line| !line.contains("WARN")), "{before:?}");
    // The line of execution-specs' metrics, as tools find it.
    let (_, line) = log.until(&["WARN", r#"{"level":"warn","msg":"Slow block","block":{"#]).await;
    let figures: Value =
        serde_json::from_str(&line[line.find('{').expect("JSON")..]).expect("JSON");
    assert_eq!(figures["block"]["hash"], first);
    assert_eq!(figures["block"]["tx_count"], 0);
    assert!(figures["timing"]["total_ms"].as_f64() > Some(0.0), "{line}");
    assert!(figures["state_reads"]["accounts"].as_u64() > Some(0), "{line}");
    let client = json!([{
        "code": "LH", "name": "Lighthouse", "version": "v9.0.0", "commit": "0x01020304",
    }]);
    for _ in 0..2 {
        let ours = node.engine.call::<Value>("engine_getClientVersionV1", &client).await;
        assert_eq!(ours.expect("an answer")[0]["code"], "DP");
    }
    // A version that is told twice is said once.
    let words = ["INFO", "the consensus client name=\"Lighthouse v9.0.0\""];
    log.until(&words).await;
    node.choose(&first, false).await;
    terminate(node.child.id());
    let (before, _) = log.until(&["INFO", "SIGTERM: stopping"]).await;
    assert!(before.iter().all(|line| !line.contains("Lighthouse")), "{before:?}");
    let (_, line) = log.until(&["INFO", "stopped, and all is persisted number=1"]).await;
    assert!(line.contains(first.as_str().expect("a hash")), "{line}");
    assert_eq!(node.ended().await.0, Some(0));
}

/// The lines of a node's log in JSON, from the file and from the standard error, from its start to
/// its end.
fn json_lines(genesis: &Value, flags: &[&str]) -> [Vec<Value>; 2] {
    let dir = tempfile::tempdir().expect("a directory");
    let chain = dir.path().join("genesis.json");
    std::fs::write(&chain, genesis.to_string()).expect("written");
    let file = dir.path().join("logs");
    std::fs::create_dir(&file).expect("made");
    let mut node = Command::new(env!("CARGO_BIN_EXE_deponent"))
        .args(["node", "--http.port", "0", "--authrpc.port", "0", "--log.format", "json"])
        .args(flags)
        .arg("--chain")
        .arg(chain)
        .arg("--datadir")
        .arg(dir.path().join("data"))
        .arg("--log.file")
        .arg(&file)
        .env_remove("RUST_LOG")
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program runs");
    let mut lines = BufReader::new(node.stderr.take().expect("piped")).lines();
    let parse =
        |line: &str| serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}"));
    let mut printed: Vec<Value> = Vec::new();
    while printed.last().is_none_or(|line| line["message"] != "all methods, on a Unix socket") {
        printed.push(parse(&lines.next().expect("it goes on").expect("UTF-8")));
    }
    terminate(node.id());
    printed.extend(lines.map(|line| parse(&line.expect("UTF-8"))));
    assert!(node.wait().expect("it ends").success());
    let text = std::fs::read_to_string(file.join("deponent.log")).expect("the file");
    [printed, text.lines().map(parse).collect()]
}

#[test]
fn the_log_is_json_on_the_standard_error_and_in_the_file() {
    let [printed, file] = json_lines(&genesis_of_osaka(), &["--port", "30303", "--nodiscover"]);
    assert_eq!(printed.len(), file.len());
    for line in &file {
        for member in ["timestamp", "level", "target", "message"] {
            assert!(line[member].is_string(), "{line}");
        }
    }
    let find = |message: &str| {
        let found = file.iter().find(|line| line["message"].as_str().expect("text") == message);
        found.unwrap_or_else(|| panic!("{message:?} is not in {file:?}"))
    };
    assert_eq!(find("chain opened")["number"], 0);
    assert_eq!(find("stopped, and all is persisted")["number"], 0);
    // The flags of peer-to-peer networking have one warning.
    let warnings: Vec<_> = file.iter().filter(|line| line["level"] == "WARN").collect();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert_eq!(warnings[0]["flags"], "--port --nodiscover");
    let said = warnings[0]["message"].as_str().expect("text");
    assert!(said.starts_with("these flags do nothing"), "{said}");
}

#[test]
fn a_genesis_that_lacks_a_contract_of_amsterdam_has_a_warning() {
    let warnings = |genesis: &Value| {
        let [_, mut lines] = json_lines(genesis, &[]);
        lines.retain(|line| line["level"] == "WARN");
        lines
    };
    let mut genesis = genesis_of_all_forks();
    assert_eq!(warnings(&genesis), [] as [Value; 0]);
    let address = BUILDER_EXIT_CONTRACT_ADDRESS;
    let alloc = genesis["alloc"].as_object_mut().expect("an object");
    let count = alloc.len();
    alloc.retain(|name, _| name.parse() != Ok(address));
    assert_eq!(alloc.len(), count - 1);
    let found = warnings(&genesis);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0]["contract"], "builder exits");
    assert_eq!(found[0]["amsterdam"], 50);
}

/// A program that is killed where a test fails before it has been handed on.
struct KilledChild(Option<Child>);

impl Drop for KilledChild {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            child.kill().ok();
            child.wait().ok();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_whose_standard_error_is_full_and_not_read_answers_and_stops() {
    let dir = directory();
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let mut filler = writer.try_clone().expect("a descriptor");
    let filler = std::thread::spawn(move || while filler.write_all(&[b'.'; 4096]).is_ok() {});
    let mut log = Log::of(dir.path());
    let mut command = Command::new(env!("CARGO_BIN_EXE_deponent"));
    command.args(["node", "--testing", "--http.port", "0", "--authrpc.port", "0"]);
    command.arg("--chain").arg(dir.path().join("genesis.json"));
    command.arg("--datadir").arg(dir.path().join("data"));
    command.arg("--log.file").arg(&log.path).env("RUST_LOG", "info").stderr(writer);
    std::fs::write(&log.path, "").expect("a file");
    let mut child = KilledChild(Some(command.spawn().expect("the program runs")));
    drop(command);
    let (_, engine) = log.until(&["Engine API", "engine="]).await;
    let (_, public) = log.until(&["public JSON-RPC", "http="]).await;
    let jwt = JwtSecret::load(&dir.path().join("data/jwt.hex")).expect("a secret");
    let client = Client::connect(field(&engine, "engine"), Some(jwt)).await.expect("a connection");
    let mut node = Process::of(
        child.0.take().expect("it is there"),
        client,
        field(&public, "http").to_owned(),
    );
    let genesis = node.head().await;
    let hash = node.add(&genesis, json!([]), json!([])).await;
    node.choose(&hash, false).await;
    log.until(&["block VALID", "number=1 "]).await;
    terminate(node.child.id());
    let ended = tokio::time::timeout(Duration::from_secs(60), node.ended()).await;
    let (status, _) = ended.expect("it stops");
    assert_eq!(status, Some(0));
    drop(reader);
    filler.join().expect("no panic");
}
