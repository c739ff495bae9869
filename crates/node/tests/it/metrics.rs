//! The port of metrics: what is counted, and the table of it in `docs/metrics.md`.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::time::Duration;

use client::{CodeCache, ConnectOptions, EngineClient, Wire};
use deponent_node::NodeOptions;
use deponent_node::demo::World;
use engine_api::ssz::ExecutionPayloadEnvelope;
use rpc::Code;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::*;

/// A node with a port of metrics.
pub(crate) async fn node_with_metrics(genesis: Value) -> TestNode {
    let set = |options: &mut NodeOptions| {
        options.ports.metrics = Some(([127, 0, 0, 1], 0).into());
        options.follow = vec!["127.0.0.1:1".into()];
    };
    TestNode::start_with(genesis, set).await
}

/// The status line, the headers and the body of an answer over HTTP.
pub(crate) async fn request(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &str,
    body: &[u8],
) -> (String, Vec<u8>) {
    request_as("localhost", address, method, path, headers, body).await
}

/// As [`request`], calling the port by this name.
async fn request_as(
    name: &str,
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &str,
    body: &[u8],
) -> (String, Vec<u8>) {
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n{headers}\
         Content-Length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.expect("sent");
    stream.write_all(body).await.expect("sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.expect("answered");
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("headers end");
    (String::from_utf8(answer[..end].to_vec()).expect("ASCII"), answer[end + 4..].to_vec())
}

/// All metrics of a node, as text.
async fn scrape(node: &TestNode) -> String {
    let address = node.node.metrics_addr.expect("it is offered");
    let (head, body) = request(address, "GET", "/metrics", "", b"").await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert!(head.to_lowercase().contains("content-type: text/plain; version=0.0.4"), "{head}");
    String::from_utf8(body).expect("UTF-8")
}

/// A text of metrics, read.
struct Exposition {
    /// The type of each metric by its name.
    types: BTreeMap<String, String>,
    /// The value of each series, by its name and labels as they are written.
    series: BTreeMap<String, f64>,
}

impl Exposition {
    fn read(text: &str) -> Self {
        let (mut types, mut series) = (BTreeMap::new(), BTreeMap::new());
        for line in text.lines() {
            if let Some(typed) = line.strip_prefix("# TYPE ") {
                let (name, kind) = typed.split_once(' ').expect("a name and a type");
                assert!(types.insert(name.to_owned(), kind.to_owned()).is_none(), "{name} twice");
            } else if !line.starts_with('#') {
                let (name, value) = line.rsplit_once(' ').expect("a series and a value");
                let value = value.parse().expect("a number");
                assert!(series.insert(name.to_owned(), value).is_none(), "{name} twice");
            }
        }
        Self { types, series }
    }

    #[track_caller]
    fn value(&self, series: &str) -> f64 {
        *self.series.get(series).unwrap_or_else(|| panic!("no {series}: {:#?}", self.series))
    }
}

/// A chain of `blocks` blocks, one payload of which is bad; the last comes with its witness on each
/// wire. Returns its payload.
async fn run_blocks(node: &mut TestNode, blocks: u64) -> Value {
    node.extend(OSAKA, 1, &transactions()[..3]).await;
    for number in 2..blocks {
        node.extend(OSAKA, number, &[]).await;
    }
    let params = json!([node.head().await, attributes(blocks, 3), [], "0x"]);
    let envelope = node.ok("testing_buildBlockV1", params).await;
    let mut bad = envelope.clone();
    bad["executionPayload"]["stateRoot"] = json!(alloy_primitives::B256::repeat_byte(7));
    let status = node.ok("engine_newPayloadV4", new_payload(4, &bad)).await;
    assert_eq!(status["status"], "INVALID");
    let status = node.ok("engine_newPayloadWithWitnessV4", new_payload(4, &envelope)).await;
    assert_eq!(status["status"], "VALID", "{status}");
    node.adopt(OSAKA, &envelope).await;
    envelope
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_counted_is_what_was_done_and_every_metric_is_in_the_table() {
    let mut node = node_with_metrics(genesis_of_osaka()).await;
    let before = Exposition::read(&scrape(&node).await);
    assert_eq!(before.value("deponent_block_number{block=\"head\"}"), 0.0);
    let envelope = run_blocks(&mut node, 5).await;
    node.refused(
        "engine_getPayloadV5",
        json!(["0x0102030405060708"]),
        Code::UnknownPayload,
        "build",
    )
    .await;
    node.refused("engine_none", json!([]), Code::MethodNotFound, "engine_none").await;
    over_rest(&node, &envelope).await;

    let text = scrape(&node).await;
    promtool(&text);
    let found = Exposition::read(&text);
    let value = |series: &str| found.value(series);
    // Five blocks of one payload each; the last one came with its witness, again, and over REST.
    let payloads = |status| {
        value(&format!("deponent_new_payload_duration_seconds_count{{status=\"{status}\"}}"))
    };
    assert_eq!(["valid", "known", "invalid"].map(payloads), [5.0, 2.0, 1.0]);
    let calls =
        |method| value(&format!("deponent_rpc_call_duration_seconds_count{{method=\"{method}\"}}"));
    assert_eq!(calls("engine_newPayloadV4"), 6.0);
    assert_eq!(calls("engine_newPayloadWithWitnessV4"), 1.0);
    assert_eq!(calls("engine_forkchoiceUpdatedV3"), 5.0);
    assert_eq!(calls("unknown"), 1.0);
    let stages = "deponent_block_stage_duration_seconds_count{stage=\"execution\"}";
    assert_eq!(value(stages), 5.0, "of blocks that ran");
    assert_eq!(value("deponent_forkchoice_duration_seconds_count{status=\"applied\"}"), 5.0);
    assert_eq!(
        (value("deponent_transactions_total"), value("deponent_invalid_blocks_total")),
        (3.0, 1.0)
    );
    assert_eq!(value("deponent_witness_nodes_count"), 5.0);
    // Witnesses of small blocks are told apart: none of these has 1 KiB, all have less than 64 KiB.
    let bytes = |most: &str| value(&format!("deponent_witness_size_bytes_bucket{{le=\"{most}\"}}"));
    assert_eq!(["1024", "65536"].map(bytes), [0.0, 5.0]);
    let codes = |most: &str| value(&format!("deponent_witness_codes_bucket{{le=\"{most}\"}}"));
    assert_eq!(["1", "16"].map(codes), [0.0, 5.0]);
    assert_eq!(value("deponent_events_lost_total"), 0.0);
    assert!(value("deponent_gas_used_total") > 63_000.0);
    let error = "deponent_rpc_errors_total{method=\"unknown\",code=\"method_not_found\"}";
    assert_eq!(value(error), 1.0);
    let request = "deponent_rest_request_duration_seconds_count{endpoint=\"payloads/witness\"}";
    assert_eq!(value(request), 1.0);
    for wire in ["json", "ssz"] {
        let labels = format!("{{wire=\"{wire}\",codes=\"whole\"}}");
        for name in ["assembly_duration_seconds", "transport_duration_seconds", "answer_bytes"] {
            assert_eq!(value(&format!("deponent_witness_{name}_count{labels}")), 1.0, "{name}");
        }
        assert!(value(&format!("deponent_witness_answer_bytes_sum{labels}")) > 1000.0);
    }
    assert_eq!(value("deponent_block_number{block=\"head\"}"), 5.0);
    assert_eq!(value("deponent_syncing"), 0.0);
    assert_eq!(value("deponent_head_timestamp_seconds"), 5.0);
    assert_eq!(value("deponent_refused_total{port=\"engine\",reason=\"unauthorized\"}"), 1.0);
    assert!(value("deponent_connections{port=\"engine\"}") >= 1.0);
    assert!(value("deponent_cache_hits_total{cache=\"codes\"}") > 0.0);
    assert!(value("deponent_disk_bytes{part=\"index\"}") > 0.0);
    assert!(value("process_cpu_seconds_total") > 0.0);
    compare_with_table(&found);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_pool_is_counted() {
    let world = World::new(0).expect("a world");
    let mut node = node_with_metrics(serde_json::to_value(&world.genesis).expect("JSON")).await;
    let to = alloy_primitives::TxKind::Call(CONTRACT);
    let sign = |nonce, gas| world.sign(nonce, to, Default::default(), gas).expect("signed");
    let sent = raw(&[sign(0, 50_000), sign(2, 50_000), sign(0, 50_001), sign(1, 20_000)]);
    for (raw, is_taken) in sent.iter().zip([true, true, false, false]).chain([(&sent[0], false)]) {
        let answer = node.public("eth_sendRawTransaction", json!([raw])).await;
        assert_eq!(answer.is_ok(), is_taken, "{answer:?}");
    }
    let found = Exposition::read(&scrape(&node).await);
    let value = |name: &str| found.value(&format!("deponent_txpool_{name}"));
    for (name, expected) in [
        ("transactions{state=\"pending\"}", 1.0),
        ("transactions{state=\"queued\"}", 1.0),
        ("bytes{part=\"blobs\"}", 0.0),
        ("added_total", 2.0),
        ("refused_total{reason=\"underpriced\"}", 1.0),
        ("refused_total{reason=\"gas\"}", 1.0),
        ("refused_total{reason=\"known\"}", 1.0),
        ("refused_total{reason=\"funds\"}", 0.0),
        ("evicted_total{reason=\"room\"}", 0.0),
    ] {
        assert_eq!(value(name), expected, "{name}");
    }
    assert!(value("bytes{part=\"transactions\"}") > 100.0);
}

/// One answer over each wire, which its own series count and no others.
#[tokio::test(flavor = "multi_thread")]
async fn each_wire_counts_its_answers_and_their_bytes() {
    let world = World::new(6).expect("a world");
    let mut node = node_with_metrics(serde_json::to_value(&world.genesis).expect("JSON")).await;
    // More than goes through the socket where a descriptor is asked for.
    let transactions = [world.read_codes(0, 6).expect("signed")];
    let attributes = attributes(world.genesis.timestamp + 12, 3);
    let params = json!([node.head().await, attributes, raw(&transactions), "0x"]);
    let envelope = node.ok("testing_buildBlockV1", params).await;
    let call = new_payload_call(4, &envelope);
    let sidecar = call.sidecar();
    let tcp = node.node.engine_addr.to_string();
    let unix = format!("unix:{}", node.node.ipc_path.as_ref().expect("it listens").display());
    let wires = [
        ("json", Wire::Json, &tcp),
        ("json_unix", Wire::Json, &unix),
        ("ssz", Wire::Ssz, &tcp),
        ("ssz_unix", Wire::Ssz, &unix),
        ("descriptor", Wire::Descriptor, &unix),
    ];
    for (at, (label, wire, address)) in wires.into_iter().enumerate() {
        let secret = (address == &tcp).then(|| node.node.jwt.clone());
        let options = ConnectOptions { secret, wire: Some(wire), codes: CodeCache::Off };
        let mut client = EngineClient::connect_with(address, options).await.expect("connects");
        let answer = client.new_payload_with_witness(&call.payload, &sidecar).await;
        let received = answer.expect("an answer").1.expect("VALID").received_bytes as f64;
        let name =
            |name: &str| format!("deponent_witness_{name}{{wire=\"{label}\",codes=\"whole\"}}");
        // The time is taken once the server has let go of what it sent.
        let found = loop {
            let found = Exposition::read(&scrape(&node).await);
            let count = name("transport_duration_seconds_count");
            if found.series.get(&count).is_some_and(|count| *count > 0.0) {
                break found;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        };
        for counted in ["assembly_duration_seconds", "transport_duration_seconds", "answer_bytes"] {
            assert_eq!(found.value(&name(&format!("{counted}_count"))), 1.0, "{label}, {counted}");
            let prefix = format!("deponent_witness_{counted}_count{{");
            let all = found.series.iter().filter(|(series, _)| series.starts_with(&prefix));
            assert_eq!(all.map(|(_, count)| count).sum::<f64>(), (at + 1) as f64, "{counted}");
        }
        // JSON-RPC has some bytes around it.
        let around = received - found.value(&name("answer_bytes_sum"));
        let most = if wire == Wire::Json { 100.0 } else { 0.0 };
        assert!((0.0..=most).contains(&around), "{label}: {around} bytes of {received}");
    }
}

/// The same payload over REST with its witness; and a request without a token.
pub(crate) async fn over_rest(node: &TestNode, envelope: &Value) {
    let call = new_payload_call(4, envelope);
    let body = ExecutionPayloadEnvelope {
        payload: call.payload,
        parent_beacon_block_root: call.parent_beacon_block_root,
        execution_requests: call.execution_requests,
    };
    let body = body.encode().expect("encoded");
    let path = "/engine/v1/payloads/witness";
    let kind = "Content-Type: application/octet-stream\r\nEth-Execution-Version: osaka\r\n";
    let (head, _) = request(node.node.engine_addr, "POST", path, kind, &body).await;
    assert!(head.starts_with("HTTP/1.1 401"), "{head}");
    let token = format!("{kind}Authorization: Bearer {}\r\n", node.node.jwt.token());
    let (head, _) = request(node.node.engine_addr, "POST", path, &token, &body).await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    let (head, _) = request(node.node.engine_addr, "GET", "/engine/v1/none", &token, b"").await;
    assert!(head.starts_with("HTTP/1.1 404"), "{head}");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_number_of_a_block_is_under_its_own_name() {
    let mut node = node_with_metrics(genesis_of_osaka()).await;
    run_blocks(&mut node, 5).await;
    let mut hashes = Vec::new();
    for number in 0..=5 {
        let params = json!([format!("{number:#x}"), false]);
        hashes.push(node.ok("eth_getBlockByNumber", params).await["hash"].clone());
    }
    let choice = json!({
        "headBlockHash": hashes[5], "safeBlockHash": hashes[4], "finalizedBlockHash": hashes[3],
    });
    node.ok("engine_forkchoiceUpdatedV3", json!([choice, null])).await;
    node.node.engine().persist().expect("a disk");
    let found = Exposition::read(&scrape(&node).await);
    let numbers = [
        ("head", 5.0),
        ("safe", 4.0),
        ("finalized", 3.0),
        ("persisted", 5.0),
        ("oldest_state", 0.0),
        ("highest_known", 5.0),
    ];
    for (block, number) in numbers {
        let series = format!("deponent_block_number{{block=\"{block}\"}}");
        assert_eq!(found.value(&series), number, "{block}");
    }
}

/// Each file of the chain's directory is counted once, with its length.
#[tokio::test(flavor = "multi_thread")]
async fn the_parts_of_the_disk_are_all_files_of_the_chain() {
    let mut node = node_with_metrics(genesis_of_osaka()).await;
    run_blocks(&mut node, 5).await;
    node.node.engine().persist().expect("a disk");
    let chain = node.dir.path().join("data/chain");
    let files = || -> Vec<(String, u64)> {
        let files = std::fs::read_dir(&chain).expect("a directory").map(|file| {
            let file = file.expect("it is there");
            let name = file.file_name().into_string().expect("UTF-8");
            (name, file.metadata().expect("it is there").len())
        });
        let mut files: Vec<_> = files.collect();
        files.sort_unstable();
        files
    };
    // No file has changed meanwhile.
    let (found, files) = loop {
        let before = files();
        let found = Exposition::read(&scrape(&node).await);
        if files() == before {
            break (found, before);
        }
    };
    let all = |name: &str| -> f64 {
        let series = found.series.iter().filter(|(series, _)| series.starts_with(name));
        series.map(|(_, value)| value).sum()
    };
    assert_eq!(all("deponent_disk_files{"), files.len() as f64);
    let bytes: u64 = files.iter().map(|(_, bytes)| bytes).sum();
    assert_eq!(all("deponent_disk_bytes{"), bytes as f64);
    let index = files.iter().find(|(name, _)| name == "index").expect("the index");
    assert_eq!(found.value("deponent_disk_bytes{part=\"index\"}"), index.1 as f64);
    // The version of the format, and the lock.
    assert_eq!(found.value("deponent_disk_files{part=\"other\"}"), 2.0, "{files:?}");
}

#[test]
fn the_rules_for_alerts_are_valid_and_ask_for_metrics_that_there_are() {
    let rules = include_str!("../../../../etc/prometheus/alerts.yml");
    let page = include_str!("../../../../docs/metrics.md");
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let names = rules.lines().filter_map(|line| line.trim().strip_prefix("expr: "));
    let names = names.flat_map(|expression| expression.split(|c| !is_name(c)));
    let names = names.filter(|name| name.starts_with("deponent_") || name.starts_with("process_"));
    let names: Vec<_> = names.collect();
    assert!(names.len() >= 10, "{names:?}");
    for name in names {
        assert!(page.contains(&format!("| `{name}` |")), "there is no {name}");
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../etc/prometheus/alerts.yml");
    let Ok(output) = Command::new("promtool").args(["check", "rules", path]).output() else {
        assert!(std::env::var_os("CI").is_none(), "promtool is missing: install `prometheus`");
        return;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Prometheus' own check of a text of metrics, where it is installed: in CI it is.
fn promtool(text: &str) {
    let child = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut child) = child else {
        assert!(std::env::var_os("CI").is_none(), "promtool is missing: install `prometheus`");
        println!("promtool is not installed (Debian: prometheus); its check is left out");
        return;
    };
    child.stdin.take().expect("piped").write_all(text.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}");
}

/// Every metric is a row of a table in docs/metrics.md with its type, and every row is a metric.
fn compare_with_table(found: &Exposition) {
    let page = include_str!("../../../../docs/metrics.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")).filter_map(|row| {
        let (name, rest) = row.split_once("` | ")?;
        let (kind, _) = rest.split_once(" | ")?;
        Some((name.to_owned(), kind.to_owned()))
    });
    let documented: BTreeMap<_, _> = rows.collect();
    assert_eq!(documented, found.types);
}

#[tokio::test]
async fn scrapes_are_answered_at_two_paths_and_nothing_else_is() {
    let node = node_with_metrics(genesis_of_osaka()).await;
    let address = node.node.metrics_addr.expect("it is offered");
    let get = async |method, path| request(address, method, path, "", b"").await;
    let (head, body) = get("GET", "/debug/metrics/prometheus").await;
    assert!(head.starts_with("HTTP/1.1 200") && !body.is_empty(), "{head}");
    let (head, body) = get("HEAD", "/metrics").await;
    assert!(head.starts_with("HTTP/1.1 200") && body.is_empty(), "{head}");
    for (method, path, status) in
        [("GET", "/", "404"), ("POST", "/", "404"), ("POST", "/metrics", "405")]
    {
        let (head, body) = get(method, path).await;
        assert!(head.starts_with(&format!("HTTP/1.1 {status}")), "{method} {path}: {head}");
        let said = String::from_utf8(body).expect("text");
        assert!(said.contains("metrics"), "{said}");
    }
    let (head, _) = get("GET", "/metrics?collect=all").await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    let plain = TestNode::start(genesis_of_osaka()).await;
    assert_eq!(plain.node.metrics_addr, None);
}

/// A web page could let its own name lead to the port.
#[tokio::test]
async fn the_port_of_metrics_has_names_as_the_public_port_has() {
    let usual = node_with_metrics(genesis_of_osaka()).await;
    let named = TestNode::start_with(genesis_of_osaka(), |options: &mut NodeOptions| {
        options.ports.metrics = Some(([127, 0, 0, 1], 0).into());
        options.ports.metrics_origins.hosts = vec!["node".into()];
    })
    .await;
    for (node, name, status) in [
        (&usual, "localhost:6060", 200),
        (&usual, "127.0.0.1", 200),
        (&usual, "[::1]:6060", 200),
        (&usual, "node:6060", 403),
        (&named, "node:6060", 200),
        (&named, "10.0.0.1", 200),
        (&named, "localhost", 403),
    ] {
        let address = node.node.metrics_addr.expect("it is offered");
        let (head, body) = request_as(name, address, "GET", "/metrics", "", b"").await;
        assert!(head.starts_with(&format!("HTTP/1.1 {status}")), "{name}: {head}");
        let said = String::from_utf8(body).expect("text");
        assert_eq!(said.contains("--metrics.vhosts"), status == 403, "{name}: {said}");
    }
}
