//! hive: its start script, run as the container runs it, in a folder of its own and on free ports.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::{Recorded, post};
use crate::support::*;
use alloy_primitives::hex;
use rpc::{Client, JwtSecret};
use serde_json::{Value, json};

/// The secret that hive's simulators sign with.
const SECRET: &[u8; 32] = b"secretsecretsecretsecretsecretse";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../integrations/hive")
}

/// Whether the tools of the script are there; CI has them.
fn has_tools() -> bool {
    let answers = |tool: &str| Command::new(tool).arg("--version").output().is_ok();
    let missing: Vec<_> =
        ["bash", "jq", "curl"].into_iter().filter(|tool| !answers(tool)).collect();
    if !missing.is_empty() {
        assert!(std::env::var_os("CI").is_none(), "CI needs {missing:?}");
        println!("not run: no {missing:?}");
    }
    missing.is_empty()
}

/// The files of a container, and the variables that hive sets.
struct Container {
    root: tempfile::TempDir,
    variables: Vec<(String, String)>,
}

impl Container {
    fn new(genesis: &Value, variables: Value) -> Self {
        let root = tempfile::tempdir().expect("a directory");
        std::fs::copy(folder().join("mapper.jq"), root.path().join("mapper.jq")).expect("copied");
        let container = Self { root, variables: Vec::new() };
        container.write("genesis.json", genesis.to_string().as_bytes());
        let variables = variables.as_object().expect("an object").iter();
        let variables = variables
            .map(|(name, value)| (name.clone(), value.as_str().expect("a text").to_owned()));
        Self { variables: variables.collect(), ..container }
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        let path = self.root.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a directory");
        std::fs::write(path, bytes).expect("written");
    }

    fn script(&self, name: &str) -> Command {
        let program = Path::new(env!("CARGO_BIN_EXE_deponent"));
        let path = std::env::var("PATH").expect("a path");
        let folder_of_program = program.parent().expect("a folder").display();
        let mut command = Command::new("bash");
        command.arg(folder().join(name)).env("PATH", format!("{folder_of_program}:{path}"));
        command.env("DEPONENT_TEST_ROOT", self.root.path());
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Starts the script, and waits until the node listens.
    fn start(&self) -> Running {
        let mut command = self.script("deponent.sh");
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("run");
        let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
        let mut log = String::new();
        let mut found = [None, None];
        let names = ["http=", "engine="];
        while found.iter().any(Option::is_none) {
            let line = lines.next().unwrap_or_else(|| panic!("it ended: {log}")).expect("UTF-8");
            for (found, name) in found.iter_mut().zip(names) {
                let address = line.split_whitespace().find_map(|word| word.strip_prefix(name));
                *found = found.take().or(address.map(str::to_owned));
            }
            log.extend([&line, "\n"]);
        }
        // The log must be read on, or the node would wait for room in the pipe.
        std::thread::spawn(move || lines.for_each(drop));
        let [public, engine] = found.map(|address| address.expect("it was found"));
        Running { child, public, engine }
    }
}

struct Running {
    child: Child,
    public: String,
    engine: String,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

async fn result(client: &mut Client, method: &str, params: Value) -> Value {
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let (status, answer) = post(client, &[], &call.to_string()).await;
    assert_eq!((status, answer.get("error")), (200, None), "{method}: {answer}");
    answer["result"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_start_script_takes_what_hive_puts_into_the_container() {
    if !has_tools() {
        return;
    }
    let recorded = Recorded::new(genesis_of_osaka(), OSAKA).await;
    let mut genesis = recorded.genesis.clone();
    // hive's genesis has no rules of its own that count.
    genesis["config"] = json!({"chainId": 7, "londonBlock": 99});
    let variables = json!({
        "HIVE_CHAIN_ID": "1337", "HIVE_NETWORK_ID": "1337", "HIVE_LOGLEVEL": "4",
        "HIVE_NODETYPE": "archive", "HIVE_BOOTNODE": "enode://00@127.0.0.1:1",
        "HIVE_FORK_HOMESTEAD": "0", "HIVE_FORK_TANGERINE": "0", "HIVE_FORK_SPURIOUS": "0",
        "HIVE_FORK_BYZANTIUM": "0", "HIVE_FORK_CONSTANTINOPLE": "0", "HIVE_FORK_PETERSBURG": "0",
        "HIVE_FORK_ISTANBUL": "0", "HIVE_FORK_BERLIN": "0", "HIVE_FORK_LONDON": "0",
        "HIVE_TERMINAL_TOTAL_DIFFICULTY": "0", "HIVE_SHANGHAI_TIMESTAMP": "0",
        "HIVE_CANCUN_TIMESTAMP": "0", "HIVE_PRAGUE_TIMESTAMP": "0", "HIVE_OSAKA_TIMESTAMP": "0",
    });
    let container = Container::new(&genesis, variables);
    let blocks = &recorded.blocks;
    let mut refused = blocks[1].clone();
    let last = refused.len() - 1;
    refused[last] ^= 1;
    container.write("chain.rlp", &blocks[0]);
    // In the order of their numbers, and on after those that are refused.
    container.write("blocks/9.rlp", &refused);
    container.write("blocks/10.rlp", &blocks[1]);
    container.write("blocks/100.rlp", &blocks[2]);
    let mut running = container.start();
    let mut public = Client::connect(&running.public, None).await.expect("a connection");
    let head = result(&mut public, "eth_getBlockByNumber", json!(["latest", false])).await;
    assert_eq!(head["hash"], *recorded.hash(2));
    for (method, expected) in [
        ("eth_chainId", json!("0x539")),
        ("net_version", json!("1337")),
        ("admin_peers", json!([])),
        ("txpool_status", json!({"pending": "0x0", "queued": "0x0"})),
    ] {
        assert_eq!(result(&mut public, method, json!([])).await, expected, "{method}");
    }
    result(&mut public, "debug_getRawHeader", json!(["0x1"])).await;
    result(&mut public, "web3_clientVersion", json!([])).await;

    // The simulator's secret opens the engine port.
    let secret = JwtSecret::from_hex(&hex::encode(SECRET)).expect("a secret");
    let mut engine = Client::connect(&running.engine, Some(secret)).await.expect("a connection");
    let choice = json!([state(recorded.hash(1)), null]);
    let answer = result(&mut engine, "engine_forkchoiceUpdatedV3", choice).await;
    assert_eq!(answer["payloadStatus"]["status"], "VALID", "{answer}");

    let port = running.public.rsplit(':').next().expect("a port");
    let enode = container.script("enode.sh").env("DEPONENT_TEST_PORT", port).output().expect("run");
    assert!(enode.stdout.starts_with(b"enode://"), "{enode:?}");

    // `exec`: the container's signal reaches the node.
    let id = running.child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().expect("run").success());
    assert_eq!(running.child.wait().expect("it ends").code(), Some(0));
}

/// The chains that hive's own tools have made, with the head that geth has of them.
#[tokio::test(flavor = "multi_thread")]
async fn hives_chains_end_in_their_heads() {
    let Some(fixtures) = testing::fixtures() else { return };
    if !has_tools() {
        return;
    }
    for (name, head) in [("hivechain-osaka-200", "headfcu.json"), ("hive-sync", "headfcu.json")] {
        let read = |file: &str| std::fs::read(fixtures.join(name).join(file)).expect("a file");
        let json = |file: &str| serde_json::from_slice::<Value>(&read(file)).expect("JSON");
        let container = Container::new(&json("genesis.json"), json("forkenv.json"));
        container.write("chain.rlp", &read("chain.rlp"));
        let running = container.start();
        let mut public = Client::connect(&running.public, None).await.expect("a connection");
        let latest = result(&mut public, "eth_getBlockByNumber", json!(["latest", false])).await;
        assert_eq!(latest["hash"], json(head)["params"][0]["headBlockHash"], "{name}");
    }
}

#[test]
fn what_this_client_cannot_do_is_refused_with_a_reason() {
    if !has_tools() {
        return;
    }
    for (variables, words) in [
        (json!({"HIVE_NODETYPE": "snap"}), "HIVE_NODETYPE=snap"),
        (json!({"HIVE_CLIQUE_PERIOD": "1"}), "HIVE_CLIQUE_PERIOD"),
        (json!({"HIVE_MINER": "0x00"}), "HIVE_MINER"),
        (json!({"HIVE_LOGLEVEL": "9"}), "HIVE_LOGLEVEL=9"),
    ] {
        let container = Container::new(&genesis_of_osaka(), variables);
        let output = container.script("deponent.sh").output().expect("run");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(1) && text.contains(words), "{words}: {text}");
    }
}
