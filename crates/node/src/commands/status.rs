//! `deponent status`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, anyhow};
use clap::Args;
use rpc::{Client, ClientError, ConnectOptions, Dial, Dialing, quote};
use serde_json::{Value, json};
use tokio::net::UnixStream;
use tokio::runtime::Builder;

use crate::console::{counted, say};
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
    let called = Builder::new_current_thread().enable_all().build()?.block_on(async {
        let address = format!("unix:{}", path.display());
        let dial = Some(Arc::new(SocketDial(path.clone())) as _);
        let options = ConnectOptions { dial, ..ConnectOptions::default() };
        let mut client = Client::connect_with(&address, options).await?;
        client.set_timeout(STATUS_TIME);
        client.call::<Value>("deponent_status", json!([])).await
    });
    let status = called.map_err(|fault| unanswered(&path, &fault))?;
    if args.json {
        say!("{}", serde_json::to_string_pretty(&status)?);
    } else {
        say!("{}", table(&status).trim_end());
    }
    Ok(())
}

/// A Unix socket, whose path need not be UTF-8 as an address is.
#[derive(Debug)]
struct SocketDial(PathBuf);

impl Dial for SocketDial {
    fn dial(&self) -> Dialing<'_> {
        Box::pin(UnixStream::connect(&self.0))
    }
}

/// Why there is no status, and what to do.
fn unanswered(path: &Path, fault: &ClientError) -> anyhow::Error {
    let path = path.display();
    match fault {
        ClientError::Rpc(error) => anyhow!("the node at {path} refuses: {error}"),
        ClientError::Timeout { limit, .. } => anyhow!(
            "the node at {path} has not answered within {} seconds: it is stopped or overloaded. \
             Its log says more; try again, or restart it",
            limit.as_secs()
        ),
        fault => anyhow!(
            "no node answers at {path}: {fault}. Is the node running, without --ipcdisable, and as \
             this user? --datadir names its data directory, --ipcpath a socket elsewhere"
        ),
    }
}

/// The answer, a line a fact.
fn table(status: &Value) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        writeln!(text, "{name:<18}{value}").expect("a string takes all");
    };
    line("version", format!("{}, up {}", word(&status["version"]), time(&status["uptime"])));
    if status["stateless"] == true {
        stateless_lines(status, line);
        return text;
    }
    line("data directory", word(&status["dataDir"]));
    line("chain", word(&status["chainId"]));
    line("ready", ready(status));
    for name in ["head", "safe", "finalized", "persisted"] {
        line(name, block(&status[name]));
    }
    line("not persisted", unpersisted(&status["unpersisted"]));
    line("syncing", syncing(&status["syncing"]));
    line("oldest state", word(&status["oldestState"]));
    line("oldest witness", word(&status["oldestWitness"]));
    line("disk", listed(&status["disk"]));
    line("caches", listed(&status["caches"]));
    let upstreams = upstreams(&status["upstreams"]);
    let needs_none = status["consensusClient"].is_null() && !status["headSource"].is_null();
    line(
        "consensus client",
        match needs_none {
            true => "none needed: an upstream names the head".into(),
            false => consensus_client(&status["consensusClient"]),
        },
    );
    if !status["headSource"].is_null() {
        line("head from", head_source(&status["headSource"], &upstreams));
    }
    if !upstreams.is_empty() {
        line("upstreams", upstreams);
    }
    text
}

/// The lines of a node without a state.
fn stateless_lines(status: &Value, mut line: impl FnMut(&str, String)) {
    line("state", "none: blocks are verified on witnesses".into());
    line("chain", word(&status["chainId"]));
    line("ready", ready(status));
    for name in ["anchor", "head", "safe", "finalized"] {
        line(name, block(&status[name]));
    }
    line("syncing", syncing(&status["syncing"]));
    let waiting = &status["waiting"];
    let [blocks, bytes] =
        ["blocks", "witnessBytes"].map(|name| waiting[name].as_u64().unwrap_or(0));
    line("waiting", format!("{}, {} of witnesses", counted(blocks, "block"), shown(bytes)));
    let sources = status["sources"].as_array().map(Vec::as_slice).unwrap_or_default();
    let sources = sources
        .iter()
        .map(|source| format!("{} ({} refused)", word(&source["name"]), word(&source["refused"])));
    line("sources", sources.collect::<Vec<_>>().join(", "));
    line("consensus client", consensus_client(&status["consensusClient"]));
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

fn unpersisted(waiting: &Value) -> String {
    let [blocks, bytes] = ["blocks", "bytes"].map(|name| waiting[name].as_u64().unwrap_or(0));
    match (blocks, bytes) {
        (0, 0) => "nothing".into(),
        // Heads, witnesses, nodes and what is to be deleted wait, too.
        (0, bytes) => format!("no block, {} of other data", shown(bytes)),
        (blocks, bytes) => format!("{}, {}", counted(blocks, "block"), shown(bytes)),
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

/// Members of bytes, or of bytes with their limit.
fn listed(members: &Value) -> String {
    let members = members.as_object().into_iter().flatten();
    let listed = members.map(|(name, value)| {
        let bytes = |value: &Value| value.as_u64().map_or_else(|| "unknown".into(), shown);
        match value.get("limit") {
            Some(limit) => format!("{name} {} of {}", bytes(&value["bytes"]), bytes(limit)),
            None => format!("{name} {}", bytes(value)),
        }
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

/// The upstreams, each with how it is unless it answers.
fn upstreams(upstreams: &Value) -> String {
    let upstreams = upstreams.as_array().map(Vec::as_slice).unwrap_or_default();
    let shown = upstreams.iter().map(|upstream| match upstream["answers"].as_bool() {
        Some(true) => word(&upstream["name"]),
        _ => format!("{} ({})", word(&upstream["name"]), word(&upstream["state"])),
    });
    shown.collect::<Vec<_>>().join(", ")
}

fn head_source(source: &Value, upstreams: &str) -> String {
    let upstream = source["upstream"].as_str().map_or_else(|| upstreams.to_owned(), quote);
    let problem = source["problem"].as_str().map(|problem| format!("; {}", quote(problem)));
    format!("{} of {upstream}, trusted{}", word(&source["tag"]), problem.unwrap_or_default())
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
            "disk": {"nodes": 1_500_000_000, "free": null},
            "caches": {"pages": {"bytes": 1024, "limit": 1_000_000}},
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
             caches            pages 1.0 kB of 1.0 MB\n\
             consensus client  Lighthouse v8: engine_newPayloadV4, 3s ago\n"
        );
        assert_eq!(table(&status), expected);
        (status["reasons"], status["consensusClient"]) = (json!([]), Value::Null);
        for (waiting, shown) in [
            (json!({"blocks": 0, "bytes": 0}), "not persisted     nothing\n"),
            (
                json!({"blocks": 0, "bytes": 600}),
                "not persisted     no block, 600 B of other data\n",
            ),
            (json!({"blocks": 1, "bytes": 600}), "not persisted     1 block, 600 B\n"),
        ] {
            status["unpersisted"] = waiting;
            let text = table(&status);
            assert!(text.contains(shown), "{text}");
        }
        let text = table(&status);
        assert!(text.contains("none has called since the start\n"), "{text}");
        status["upstreams"] = json!([
            {"name": "ws://one:1", "answers": true, "state": "answers"},
            {"name": "ws://two:1", "answers": false, "state": "does not answer"},
        ]);
        status["headSource"] =
            json!({"tag": "latest", "upstream": null, "problem": "ws://one:1: no"});
        let text = table(&status);
        let all = "ws://one:1, ws://two:1 (does not answer)";
        let expected = format!(
            "head from         latest of {all}, trusted; ws://one:1: no\nupstreams         {all}\n"
        );
        assert!(text.ends_with(&expected), "{text}");
        assert!(text.contains("ready             yes\n"), "{text}");
        let none = "consensus client  none needed: an upstream names the head\n";
        assert!(text.contains(none), "{text}");
    }
}
