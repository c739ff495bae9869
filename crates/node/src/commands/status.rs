//! `deponent status`.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Args;
use rpc::{Client, quote};
use serde_json::{Value, json};
use tokio::runtime::Builder;

use crate::console::say;
use crate::limits::STATUS_TIME;

/// The arguments of `deponent status`.
#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// The data directory of the node.
    #[arg(long, value_name = "DIR", required_unless_present = "ipc_path")]
    datadir: Option<PathBuf>,
    /// The Unix socket of the node [default: deponent.ipc in the data directory].
    #[arg(long = "ipcpath", value_name = "FILE")]
    ipc_path: Option<PathBuf>,
    /// Print the answer of deponent_status, a JSON object.
    #[arg(long)]
    json: bool,
}

/// Runs `deponent status`.
pub(crate) fn status(args: &StatusArgs) -> anyhow::Result<()> {
    let in_datadir = || args.datadir.as_ref().map(|directory| directory.join("deponent.ipc"));
    let path = args.ipc_path.clone().or_else(in_datadir).context("name --datadir or --ipcpath")?;
    let path = std::path::absolute(&path).context("no current directory")?;
    let status = Builder::new_current_thread().enable_all().build()?.block_on(async {
        let address = format!("unix:{}", path.display());
        let mut client = Client::connect(&address, None).await?;
        client.set_timeout(STATUS_TIME);
        client.call::<Value>("deponent_status", json!([])).await
    });
    let status = match status {
        Ok(status) => status,
        Err(fault) => bail!(
            "no node answers at {}: {fault}. Is one running, with this data directory, without \
             --ipcdisable, and as this user?",
            path.display()
        ),
    };
    if args.json {
        say!("{}", serde_json::to_string_pretty(&status)?);
    } else {
        say!("{}", table(&status).trim_end());
    }
    Ok(())
}

/// The answer, a line a fact.
fn table(status: &Value) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        writeln!(text, "{name:<18}{value}").expect("a string takes all");
    };
    let bytes = |value: &Value| shown(value.as_u64().unwrap_or(0));
    line("version", format!("{}, up {}", word(&status["version"]), time(&status["uptime"])));
    line("data directory", word(&status["dataDir"]));
    line("chain", word(&status["chainId"]));
    line("ready", ready(status));
    for name in ["head", "safe", "finalized", "persisted"] {
        line(name, block(&status[name]));
    }
    let waiting = &status["unpersisted"];
    let blocks = word(&waiting["blocks"]);
    line("not persisted", format!("{blocks} blocks, {}", bytes(&waiting["bytes"])));
    line("syncing", syncing(&status["syncing"]));
    line("oldest state", word(&status["oldestState"]));
    line("oldest witness", word(&status["oldestWitness"]));
    line("disk", listed(&status["disk"]));
    line("caches", listed(&status["caches"]));
    line("consensus client", consensus_client(&status["consensusClient"]));
    text
}

fn ready(status: &Value) -> String {
    let reasons = status["reasons"].as_array().map(Vec::as_slice).unwrap_or_default();
    let reasons: Vec<_> = reasons.iter().map(word).collect();
    if reasons.is_empty() { "yes".into() } else { format!("no: {}", reasons.join("; ")) }
}

fn block(block: &Value) -> String {
    match block {
        Value::Null => "none".into(),
        block => format!("{:<10} {}", word(&block["number"]), word(&block["hash"])),
    }
}

fn syncing(syncing: &Value) -> String {
    match syncing {
        Value::Object(progress) => {
            let member = |name: &str| progress.get(name).map(word).unwrap_or_default();
            format!("block {} of {}", member("currentBlock"), member("highestBlock"))
        }
        _ => "no".into(),
    }
}

/// Members of bytes.
fn listed(members: &Value) -> String {
    let members = members.as_object().into_iter().flatten();
    let listed = members.map(|(name, value)| match value.as_u64() {
        Some(bytes) => format!("{name} {}", shown(bytes)),
        None => format!("{name} unknown"),
    });
    listed.collect::<Vec<_>>().join(", ")
}

fn consensus_client(client: &Value) -> String {
    if client.is_null() {
        return "none has called since the start".into();
    }
    let name = client["name"].as_str().map_or_else(|| "without a name".into(), quote);
    let (method, ago) = (word(&client["method"]), time(&client["secondsAgo"]));
    format!("{name}: {method}, {ago} ago")
}

/// A text or a number, without control characters.
fn word(value: &Value) -> String {
    match value {
        Value::Null => "none".into(),
        Value::String(text) => rpc::shortened(text),
        value => rpc::shortened(value.to_string()),
    }
}

/// Seconds, in two units.
fn time(seconds: &Value) -> String {
    let seconds = seconds.as_u64().unwrap_or(0);
    match (seconds / 86400, seconds / 3600, seconds / 60) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, minutes) => format!("{minutes}m{}s", seconds % 60),
        (0, hours, minutes) => format!("{hours}h{}m", minutes % 60),
        (days, hours, _) => format!("{days}d{}h", hours % 24),
    }
}

/// Bytes in the largest unit of which there is one, to one place.
fn shown(bytes: u64) -> String {
    let units = [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    let found = units.iter().find(|(unit, _)| bytes as f64 >= *unit);
    found.map_or_else(
        || format!("{bytes} B"),
        |(unit, name)| format!("{:.1} {name}", bytes as f64 / unit),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_says_how_a_node_is() {
        let hash = format!("0x{}", "12".repeat(32));
        let head = json!({"number": 21_000_000, "hash": hash});
        let mut status = json!({
            "version": "0.1.0-12345678", "uptime": 3_700, "dataDir": "/data", "chainId": 1,
            "ready": false, "reasons": ["the node is stopping", "not in step"],
            "head": head, "safe": null, "finalized": null, "persisted": head,
            "unpersisted": {"blocks": 2, "bytes": 12_345_678},
            "syncing": {"startingBlock": 1, "currentBlock": 5, "highestBlock": 9},
            "oldestState": 3, "oldestWitness": null,
            "disk": {"nodes": 1_500_000_000, "free": null}, "caches": {"pages": 1024},
            "consensusClient": {
                "name": "Lighthouse v8", "method": "engine_newPayloadV4", "secondsAgo": 3,
            },
        });
        let expected = format!(
            "version           0.1.0-12345678, up 1h1m\n\
             data directory    /data\n\
             chain             1\n\
             ready             no: the node is stopping; not in step\n\
             head              21000000   {hash}\n\
             safe              none\n\
             finalized         none\n\
             persisted         21000000   {hash}\n\
             not persisted     2 blocks, 12.3 MB\n\
             syncing           block 5 of 9\n\
             oldest state      3\n\
             oldest witness    none\n\
             disk              free unknown, nodes 1.5 GB\n\
             caches            pages 1.0 kB\n\
             consensus client  Lighthouse v8: engine_newPayloadV4, 3s ago\n"
        );
        assert_eq!(table(&status), expected);
        (status["reasons"], status["consensusClient"]) = (json!([]), Value::Null);
        let text = table(&status);
        assert!(text.contains("ready             yes\n"), "{text}");
        assert!(text.contains("none has called since the start\n"), "{text}");
    }
}
