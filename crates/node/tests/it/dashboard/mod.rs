//! The dashboard for Grafana, against a real Prometheus: every query of every panel has data of a
//! node that runs blocks, and the panels are drawn with it.
//!
//! Prometheus is a package of Debian (`apt-get install prometheus`), and a single file to download
//! elsewhere. In CI the test fails without it.

mod draw;

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use alloy_primitives::B256;
use deponent_node::demo::World;
use serde_json::{Value, json};

use crate::metrics::{node_with_metrics, over_rest, request};
use crate::support::*;
use draw::{Panel, Series};

const DASHBOARD: &str = include_str!("../../../../../etc/grafana/deponent.json");
const PAGE: &str = include_str!("../../../../../docs/metrics.md");

/// Contracts that there are to read.
const CONTRACTS: usize = 100;

/// Points of a line in the picture: ten seconds.
const POINTS: usize = 40;

/// How long panels may wait for their data: a guard against a hang, not a bound on speed.
const PATIENCE: Duration = Duration::from_secs(120);

/// The panels of the dashboard, rows aside.
fn panels() -> Vec<Value> {
    let dashboard: Value = serde_json::from_str(DASHBOARD).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("a list").clone();
    panels.into_iter().filter(|panel| panel["type"] != "row").collect()
}

fn text<'v>(value: &'v Value, member: &str) -> &'v str {
    value[member].as_str().unwrap_or_else(|| panic!("no {member} in {value}"))
}

#[test]
fn the_page_says_of_each_panel_what_it_shows() {
    let shown = panels();
    let shown = shown.iter().map(|panel| (text(panel, "title"), text(panel, "description")));
    let (_, section) = PAGE.split_once("\n## Dashboard\n").expect("a section");
    let rows = section.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    let rows = rows.filter_map(|row| row.split_once(" | ")).filter(|(title, _)| *title != "Panel");
    assert_eq!(rows.collect::<Vec<_>>(), shown.collect::<Vec<_>>());
}

#[test]
fn panels_are_where_no_other_is_and_have_an_id_of_their_own() {
    let (mut cells, mut ids) = (std::collections::HashSet::new(), std::collections::HashSet::new());
    for panel in panels() {
        assert!(ids.insert(panel["id"].as_u64().expect("a number")), "{panel}");
        let at = |side: &str| panel["gridPos"][side].as_u64().expect("a number");
        assert!(at("x") + at("w") <= 24, "{panel}");
        for x in at("x")..at("x") + at("w") {
            for y in at("y")..at("y") + at("h") {
                assert!(cells.insert((x, y)), "{panel} lies over another");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_query_of_every_panel_has_data_in_prometheus() {
    let directory = tempfile::tempdir().expect("a directory");
    let world = World::new(CONTRACTS).expect("a world");
    let mut node = node_with_metrics(serde_json::to_value(&world.genesis).expect("JSON")).await;
    let target = node.node.metrics_addr.expect("it is offered");
    let Some(prometheus) = Prometheus::start(directory.path(), target) else { return };
    let begun = Instant::now();
    let mut nonce = 0;
    let first = loop {
        work(&mut node, &world, nonce).await;
        nonce += 1;
        let missing = prometheus.first_without_data().await;
        let is_over = missing.is_none() && prometheus.points_of_blocks().await >= POINTS;
        if is_over || begun.elapsed() > PATIENCE {
            break missing;
        }
    };
    assert_eq!(first, None, "the query has no data");
    let drawn = prometheus.drawn().await;
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("dashboard.svg");
    std::fs::write(&file, draw::dashboard(&drawn)).expect("written");
    println!("drawn: {}", file.display());
}

/// Something of everything that is counted: a block that reads codes, one that leaves the chain
/// again, a build, a bad payload, a payload with its witness in JSON and SSZ, wrong calls.
async fn work(node: &mut TestNode, world: &World, nonce: u64) {
    let time = world.genesis.timestamp + 3 * nonce;
    let contracts = 1 + nonce as usize * 7 % CONTRACTS;
    let reads = world.read_codes(nonce, contracts).expect("a transaction");
    node.extend(OSAKA, time + 1, &[reads]).await;
    let kept = node.head().await;
    node.extend(OSAKA, time + 2, &[]).await;
    node.ok("engine_forkchoiceUpdatedV3", json!([state(&kept), null])).await;
    let id = node.begin(OSAKA, time + 3, true).await;
    let built = node.built(OSAKA, id).await;
    node.ok("engine_newPayloadWithWitnessV4", new_payload(4, &built)).await;
    node.adopt(OSAKA, &built).await;
    let mut bad = built.clone();
    bad["executionPayload"]["stateRoot"] = json!(B256::repeat_byte(7));
    node.ok("engine_newPayloadV4", new_payload(4, &bad)).await;
    node.call("engine_getPayloadV5", json!(["0x0102030405060708"])).await.expect_err("no build");
    over_rest(node, &built).await;
}

/// A Prometheus that scrapes one node, until it is dropped.
struct Prometheus {
    process: Child,
    address: SocketAddr,
    begun: SystemTime,
}

impl Prometheus {
    /// `None` where it is not installed.
    fn start(directory: &Path, target: SocketAddr) -> Option<Self> {
        let config = format!(
            "global:\n  scrape_interval: 250ms\nscrape_configs:\n  - job_name: deponent\n    \
             static_configs:\n      - targets: [\"{target}\"]\n"
        );
        let file = directory.join("prometheus.yml");
        std::fs::write(&file, config).expect("written");
        let free = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = free.local_addr().expect("an address");
        drop(free);
        let started = Command::new("prometheus")
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", directory.join("tsdb").display()))
            .arg(format!("--web.listen-address={address}"))
            .arg("--log.level=error")
            .stdout(Stdio::null())
            .spawn();
        let Ok(process) = started else {
            assert!(std::env::var_os("CI").is_none(), "no prometheus: apt-get install prometheus");
            println!("not run: prometheus is not installed (Debian: apt-get install prometheus)");
            return None;
        };
        Some(Self { process, address, begun: SystemTime::now() })
    }

    /// The first query of a panel that has no number yet.
    async fn first_without_data(&self) -> Option<String> {
        for panel in panels() {
            for target in panel["targets"].as_array().expect("a list") {
                let series = self.range(&filled(text(target, "expr"))).await;
                if !series.iter().any(|(_, points)| points.iter().any(|at| at.1.is_finite())) {
                    return Some(format!("{}: {}", text(&panel, "title"), text(target, "expr")));
                }
            }
        }
        None
    }

    /// The number of times at which blocks have been counted.
    async fn points_of_blocks(&self) -> usize {
        let series = self.range("deponent_witness_nodes_count").await;
        series.first().map_or(0, |(_, points)| points.len())
    }

    /// All panels with their data.
    async fn drawn(&self) -> Vec<Panel> {
        let mut drawn = Vec::new();
        for panel in panels() {
            let mut series = Vec::new();
            for target in panel["targets"].as_array().expect("a list") {
                for (labels, points) in self.range(&filled(text(target, "expr"))).await {
                    let name = named(text(target, "legendFormat"), &labels);
                    series.push(Series { name, points });
                }
            }
            let defaults = &panel["fieldConfig"]["defaults"];
            drawn.push(Panel {
                title: text(&panel, "title").into(),
                unit: text(defaults, "unit").into(),
                is_stat: panel["type"] == "stat",
                place: ["x", "y", "w", "h"].map(|side| panel["gridPos"][side].as_f64().expect("n")),
                series,
            });
        }
        drawn
    }

    /// The series of a query since the start: labels, and values by time.
    async fn range(&self, query: &str) -> Vec<(Value, Vec<(f64, f64)>)> {
        let since =
            |time: SystemTime| time.duration_since(UNIX_EPOCH).expect("later").as_secs_f64();
        let (start, end) = (since(self.begun), since(SystemTime::now()));
        let form = [
            ("query", query.to_owned()),
            ("start", start.to_string()),
            ("end", end.to_string()),
            ("step", "0.25".to_owned()),
        ];
        let form = form.map(|(name, value)| format!("{name}={}", escaped(&value))).join("&");
        let kind = "Content-Type: application/x-www-form-urlencoded\r\n";
        if tokio::net::TcpStream::connect(self.address).await.is_err() {
            return Vec::new();
        }
        let (head, body) =
            request(self.address, "POST", "/api/v1/query_range", kind, form.as_bytes()).await;
        if head.starts_with("HTTP/1.1 503") {
            // It is starting.
            return Vec::new();
        }
        let answer: Value = serde_json::from_slice(&unchunked(&head, body)).expect("JSON");
        assert_eq!(answer["status"], "success", "{query}: {answer}");
        let series = answer["data"]["result"].as_array().expect("a list").iter();
        let point = |pair: &Value| {
            let value = pair[1].as_str().expect("text").parse().expect("a number");
            (pair[0].as_f64().expect("a time") - start, value)
        };
        let points =
            |one: &Value| one["values"].as_array().expect("a list").iter().map(point).collect();
        series.map(|one| (one["metric"].clone(), points(one))).collect()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        self.process.kill().unwrap_or_default();
        self.process.wait().expect("it was started");
    }
}

/// A query as Grafana sends it.
fn filled(query: &str) -> String {
    query.replace("$__rate_interval", "5s").replace("$instance", ".*")
}

/// A legend with the values of labels.
fn named(format: &str, labels: &Value) -> String {
    let labels = labels.as_object().expect("an object").iter();
    labels.fold(format.to_owned(), |name, (label, value)| {
        name.replace(&format!("{{{{{label}}}}}"), value.as_str().unwrap_or_default())
    })
}

/// A value of a form.
fn escaped(value: &str) -> String {
    let escape = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'_' => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    value.bytes().map(escape).collect()
}

/// A body without the lengths of its chunks, if it is chunked.
fn unchunked(head: &str, body: Vec<u8>) -> Vec<u8> {
    if !head.to_lowercase().contains("transfer-encoding: chunked") {
        return body;
    }
    let (mut left, mut whole) = (&body[..], Vec::new());
    loop {
        let end = left.windows(2).position(|two| two == b"\r\n").expect("a length");
        let length = std::str::from_utf8(&left[..end]).expect("digits");
        let length = usize::from_str_radix(length, 16).expect("a length in hex");
        if length == 0 {
            return whole;
        }
        whole.extend_from_slice(&left[end + 2..][..length]);
        left = &left[end + 2 + length + 2..];
    }
}
