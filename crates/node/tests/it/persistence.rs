//! The chain outlives its node, and tools are told when a block is safe.

use std::convert::Infallible;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::support::*;
use alloy_eips::eip2718::Encodable2718;
use alloy_primitives::{Address, Bytes, keccak256};
use deponent_node::demo::World;
use deponent_node::{Node, NodeOptions};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rpc::{Client, JwtSecret, SessionClient};
use serde_json::{Value, json};

/// A `deponent node` in a process of its own.
struct Process {
    child: Child,
    engine: Client,
    public: String,
}

impl Process {
    async fn start(dir: &Path) -> Self {
        Self::start_with(dir, &["--history.retain-blocks", "8", "--witness.retain-blocks", "8"])
            .await
    }

    async fn start_with(dir: &Path, arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_deponent"));
        command.args(["node", "--testing", "--http.port", "0", "--authrpc.port", "0"]);
        let genesis = dir.join("genesis.json");
        if genesis.exists() {
            command.arg("--chain").arg(genesis);
        }
        let mut child = command
            .arg("--datadir")
            .arg(dir.join("data"))
            .args(arguments)
            .env("RUST_LOG", "info")
            .env("NO_COLOR", "1")
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program runs");
        let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
        let mut address = |words: &str, field: &str| {
            let mut lines = lines.by_ref().map_while(Result::ok);
            let line = lines.find(|line| line.contains(words)).expect("the node says where");
            let rest = line.split_once(field).expect("the field is there").1;
            rest.split_whitespace().next().expect("an address").to_owned()
        };
        let engine = address("Engine API", "engine=");
        let public = address("public JSON-RPC", "http=");
        // Its log must be read on, or it would wait for room in the pipe.
        std::thread::spawn(move || lines.for_each(drop));
        let jwt = JwtSecret::load(&dir.join("data/jwt.hex")).expect("a secret");
        let engine = Client::connect(&engine, Some(jwt)).await.expect("a connection");
        Self { child, engine, public }
    }

    async fn head(&mut self) -> Value {
        self.engine.call("eth_getBlockByNumber", json!(["latest", false])).await.expect("a head")
    }

    /// Adds a block with these withdrawals to `parent` and makes it the head and, when asked,
    /// finalized.
    async fn extend(&mut self, parent: &Value, withdrawals: Value, is_final: bool) -> Value {
        let hash = self.add(parent, withdrawals, json!([])).await;
        self.choose(&hash, is_final).await;
        self.head().await
    }

    /// Has a block with these withdrawals and transactions called valid.
    async fn add(&mut self, parent: &Value, withdrawals: Value, transactions: Value) -> Value {
        let number =
            |value: &Value| u64::from_str_radix(&value.as_str().unwrap()[2..], 16).unwrap();
        let attributes = json!({
            "timestamp": format!("{:#x}", number(&parent["timestamp"]) + 12),
            "prevRandao": parent["hash"],
            "suggestedFeeRecipient": format!("0x{}", "fe".repeat(20)),
            "withdrawals": withdrawals,
            "parentBeaconBlockRoot": parent["hash"],
        });
        let params = json!([parent["hash"], attributes, transactions, null]);
        let built: Value = self.engine.call("testing_buildBlockV1", params).await.expect("built");
        let payload = &built["executionPayload"];
        let params = json!([payload, [], parent["hash"], built["executionRequests"]]);
        let status: Value = self.engine.call("engine_newPayloadV4", params).await.expect("judged");
        assert_eq!(status["status"], "VALID", "{status}");
        payload["blockHash"].clone()
    }

    /// Makes a block the head and, when asked, finalized.
    async fn choose(&mut self, hash: &Value, is_final: bool) {
        let zero = format!("0x{}", "00".repeat(32));
        let finalized = if is_final { hash.clone() } else { json!(zero) };
        let state = json!({
            "headBlockHash": hash, "safeBlockHash": zero, "finalizedBlockHash": finalized,
        });
        let params = json!([state, null]);
        let answer: Value =
            self.engine.call("engine_forkchoiceUpdatedV3", params).await.expect("chosen");
        assert_eq!(answer["payloadStatus"]["status"], "VALID", "{answer}");
    }

    /// A block by its hash, whatever branch it is on.
    async fn block(&mut self, hash: &Value) -> Value {
        self.engine.call("eth_getBlockByHash", json!([hash, false])).await.expect("an answer")
    }

    /// As `kill -9` does it.
    fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn directory() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    let genesis = genesis_of_osaka().to_string();
    std::fs::write(dir.path().join("genesis.json"), genesis).expect("written");
    dir
}

fn number(block: &Value) -> u64 {
    u64::from_str_radix(&block["number"].as_str().expect("hex")[2..], 16).expect("hex")
}

/// Withdrawals to some of four thousand accounts, so that a block changes paths all over the state.
fn withdrawals(rng: &mut StdRng) -> Value {
    let withdrawal = |index: u64| {
        let account = keccak256([rng.random_range(0..16u8), rng.random()]);
        json!({
            "index": format!("{index:#x}"), "validatorIndex": "0x1",
            "address": Address::from_word(account), "amount": format!("{:#x}", index + 1),
        })
    };
    (0..60).map(withdrawal).collect()
}

/// Adds some blocks to `head`, one of them finalized, and notes which one the node calls final.
async fn add_blocks(
    node: &mut Process,
    rng: &mut StdRng,
    head: &mut Value,
    last_final: &mut Value,
) {
    for block in 0..3 {
        *head = node.extend(head, withdrawals(rng), block == 1).await;
    }
    let finalized = node.engine.call("eth_getBlockByNumber", json!(["finalized", false]));
    *last_final = finalized.await.expect("an answer");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_killed_comes_back_with_every_block_that_it_called_final() {
    let mut rng = StdRng::seed_from_u64(seed());
    let dir = directory();
    let mut last_final = Value::Null;
    for kill in 0..testing::rounds("DEPONENT_KILLS", 100, 500) {
        let mut node = Process::start(dir.path()).await;
        let mut head = node.head().await;
        if !last_final.is_null() {
            assert!(number(&head) >= number(&last_final), "kill {kill}: back at {head}");
            let id = json!([last_final["number"], false]);
            let kept: Value = node.engine.call("eth_getBlockByNumber", id).await.expect("kept");
            assert_eq!(kept["hash"], last_final["hash"], "kill {kill}");
        }
        // Of the newest blocks the state must be whole: the next ones are built on it.
        add_blocks(&mut node, &mut rng, &mut head, &mut last_final).await;
        // In the middle of whatever it does next.
        let moment = Duration::from_micros(rng.random_range(0..20_000));
        let blocks = async {
            loop {
                add_blocks(&mut node, &mut rng, &mut head, &mut last_final).await;
            }
        };
        let Err(_): Result<Infallible, _> = tokio::time::timeout(moment, blocks).await;
        node.kill();
        let verified = Command::new(env!("CARGO_BIN_EXE_deponent"))
            .args(["db", "verify", "--datadir"])
            .arg(dir.path().join("data"))
            .output()
            .expect("the program runs");
        let told = String::from_utf8_lossy(&verified.stderr);
        assert!(verified.status.success(), "kill {kill}: {told}");
    }
    assert!(!last_final.is_null(), "no block was called final");
}

/// Kills a node so long after it has called a block valid, or has taken it as the head. The node
/// that comes next has the block, and the head is no older.
async fn check_kills(dir: &Path, arguments: &[&str], transaction: impl Fn(u64) -> Value) {
    let after_ms = [0, 5, 20, 50, 100, 200, 400];
    let rounds = testing::rounds("DEPONENT_PROMPT_KILLS", 1, 50);
    let mut last: Option<(Value, bool)> = None;
    let mut nonce = 0;
    for (round, is_chosen) in (0..rounds).flat_map(|round| [(round, false), (round, true)]) {
        for wait_ms in after_ms {
            let mut node = Process::start_with(dir, arguments).await;
            let mut head = node.head().await;
            if let Some((hash, was_chosen)) = last {
                let context = format!("round {round}, chosen {is_chosen}, before {wait_ms} ms");
                let block = node.block(&hash).await;
                assert_eq!(block["hash"], hash, "{context}: a valid block is lost");
                let expected = if was_chosen { &block["hash"] } else { &block["parentHash"] };
                assert_eq!(&head["hash"], expected, "{context}: the head is another");
                node.choose(&hash, false).await;
                head = block;
            }
            let hash = node.add(&head, json!([]), transaction(nonce)).await;
            nonce += 1;
            if is_chosen {
                node.choose(&hash, false).await;
            }
            tokio::time::sleep(Duration::from_millis(wait_ms)).await;
            node.kill();
            last = Some((hash, is_chosen));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_block_that_was_called_valid_outlasts_a_kill_at_any_time_after() {
    check_kills(directory().path(), &[], |_| json!([])).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_block_with_a_large_witness_that_was_called_valid_outlasts_a_kill_at_any_time_after() {
    // 24 KB of witness each.
    let contracts = if std::env::var_os("DEPONENT_FULL").is_some() { 4_200 } else { 400 };
    let world = World::new(contracts).expect("a world");
    let dir = tempfile::tempdir().expect("a directory");
    let options = NodeOptions::new(world.genesis.clone(), dir.path().join("data"));
    Node::start(options).await.expect("begun").stop().await;
    let transaction = |nonce| {
        let transaction = world.read_codes(nonce, contracts).expect("signed");
        json!([Bytes::from(transaction.encoded_2718())])
    };
    check_kills(dir.path(), &["--journal.sync"], transaction).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_subscribes_is_told_of_each_head_that_is_persisted() {
    let dir = directory();
    let mut node = Process::start(dir.path()).await;
    for name in ["deponent", "reth"] {
        let client = SessionClient::connect(&node.public, None).await.expect("a connection");
        let method = format!("{name}_subscribePersistedBlock");
        let mut told = client.subscribe::<Value>(&method, json!([])).await.expect("begun");
        let head = node.head().await;
        let head = node.extend(&head, json!([]), false).await;
        loop {
            let block = told.next().await.expect("a notification");
            if block["number"] == json!(number(&head)) {
                assert_eq!(block["hash"], head["hash"]);
                break;
            }
        }
        let method = format!("{name}_unsubscribePersistedBlock");
        assert!(told.unsubscribe(&method).await.expect("an answer"));
    }
}
