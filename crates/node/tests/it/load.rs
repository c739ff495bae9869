//! `deponent bench rpc` and `overhead` in miniature, as they are called.

use std::path::PathBuf;

use crate::support::TestNode;
use crate::support::bench_program::bench_program;
use serde_json::{Value, json};

/// Runs `deponent bench` with these arguments; the rows of its report's tables, by their titles.
async fn bench(arguments: Vec<String>, results: PathBuf) -> impl Fn(&str) -> Vec<Vec<Value>> {
    let mut command = bench_program();
    command.args(&arguments).arg("--results").arg(&results);
    let output = tokio::task::spawn_blocking(move || command.output()).await;
    let output = output.expect("it does not panic").expect("it runs");
    let [printed, said] = [output.stdout, output.stderr].map(String::from_utf8);
    let (printed, said) = (printed.expect("text"), said.expect("text"));
    assert!(output.status.success(), "{arguments:?}: {said}");
    let folder = results.display().to_string();
    assert!(printed.contains(&folder), "where the report is is printed: {printed}");
    let report = std::fs::read(results.join("report.json")).expect("it is written");
    let report: Value = serde_json::from_slice(&report).expect("JSON");
    let content = report["reports"][0]["content"].as_array().expect("a list").clone();
    move |title: &str| {
        let tables = content.iter().map(|piece| &piece["table"]);
        let table = tables.into_iter().find(|table| table["title"] == title);
        let rows = table.unwrap_or_else(|| panic!("no table {title}: {said}"))["rows"].clone();
        serde_json::from_value(rows).expect("rows")
    }
}

fn arguments(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

#[tokio::test]
async fn calls_are_made_over_every_wire_of_both_ports() {
    let secret = "7365637265747365637265747365637265747365637265747365637265747365";
    let genesis = crate::support::genesis_of_osaka();
    let node = TestNode::start_with_secret(genesis, secret).await;
    let (public, engine) = (node.node.http_addr, node.node.engine_addr);
    let folder = node.dir.path();
    let ipc = folder.join("node.ipc");
    let urls = [format!("http://{public}"), format!("ws://{public}"), ipc.display().to_string()];
    let usual = "rpc --calls 100 --rounds 2 --depth 5 --connections 2 --warm-up 0.05 --url";
    let mut given = arguments(usual);
    given.push(urls.join(","));
    let tables = bench(given, folder.join("public")).await;
    let rows = tables("Calls, bytes and the instrument");
    assert_eq!(rows.len(), 9, "{rows:?}");
    for row in &rows {
        // Sent, with a result, failed, and put off.
        assert_eq!(row[2..6], [200.0, 200.0, 0.0, 0.0].map(Value::from), "{row:?}");
        assert!(row[9].is_number(), "it is compared with the null server: {row:?}");
    }
    for url in &urls {
        let speeds = tables("Speed and latency");
        assert_eq!(speeds.iter().filter(|row| row[0] == **url).count(), 3, "{speeds:?}");
    }
    assert_eq!(tables("Latency by call").len(), 6 * 5);

    let mut given = arguments("rpc --calls 50 --rounds 1 --warm-up 0 --no-null --depth 5 --url");
    given.push(format!("http://{engine},ws://{engine}"));
    given.extend(["--jwt-secret".into(), folder.join("secret.hex").display().to_string()]);
    let method = "eth_getBlockByNumber [\"latest\", false]";
    given.extend(["--method".into(), method.into(), "--method".into(), "9*none".into()]);
    let tables = bench(given, folder.join("engine")).await;
    let failures = tables("Without a result");
    assert_eq!(failures.len(), 6, "{failures:?}");
    for row in failures {
        assert_eq!(row[2..], [json!("JSON-RPC error -32601"), json!(45.0)], "{row:?}");
    }
}

#[tokio::test]
async fn the_instrument_is_measured_itself() {
    let folder = tempfile::tempdir().expect("a directory");
    let given = arguments("overhead --duration 0.05");
    let tables = bench(given, folder.path().into()).await;
    let calls = tables("Calls");
    assert_eq!(calls.len(), 9);
    for row in calls {
        assert_eq!(row[7], 0.0, "{row:?}");
    }
}
