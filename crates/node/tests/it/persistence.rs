//! The chain outlives its node, and tools are told when a block is safe.

use std::convert::Infallible;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::support::*;
use alloy_eips::eip2718::Encodable2718;
use alloy_primitives::{Address, Bytes, keccak256};
use deponent_node::demo::World;
use deponent_node::{Node, NodeOptions};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rpc::rest::{HeaderMap, Method};
use rpc::{Client, ClientError, JwtSecret, SessionClient};
use serde_json::{Value, json};

/// A `deponent node` in a process of its own.
pub(crate) struct Process {
    pub(crate) child: Child,
    pub(crate) engine: Client,
    /// The address of the public port.
    pub(crate) public: String,
    /// The rest of its log, once it has ended.
    log: JoinHandle<Vec<String>>,
}

impl Process {
    async fn start(dir: &Path) -> Self {
        Self::start_with(dir, &["--history.retain-blocks", "8", "--witness.retain-blocks", "8"])
            .await
    }

    pub(crate) async fn start_with(dir: &Path, arguments: &[&str]) -> Self {
        Self::start_by(Command::new(env!("CARGO_BIN_EXE_deponent")), dir, arguments).await
    }

    /// A node by a command that takes the program's arguments.
    async fn start_by(mut command: Command, dir: &Path, arguments: &[&str]) -> Self {
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
        let log = std::thread::spawn(move || lines.map_while(Result::ok).collect());
        let jwt = JwtSecret::load(&dir.join("data/jwt.hex")).expect("a secret");
        let engine = Client::connect(&engine, Some(jwt)).await.expect("a connection");
        Self { child, engine, public, log }
    }

    /// A node that runs already, and whose log is read elsewhere.
    pub(crate) fn of(child: Child, engine: Client, public: String) -> Self {
        Self { child, engine, public, log: std::thread::spawn(Vec::new) }
    }

    pub(crate) async fn head(&mut self) -> Value {
        self.engine.call("eth_getBlockByNumber", json!(["latest", false])).await.expect("a head")
    }

    /// Adds a block with these withdrawals to `parent` and makes it the head and, when asked,
    /// finalized.
    async fn extend(&mut self, parent: &Value, withdrawals: Value, is_final: bool) -> Value {
        let hash = self.add(parent, withdrawals, json!([])).await;
        self.choose(&hash, is_final).await;
        self.head().await
    }

    /// The same, as far as the node answers.
    async fn try_add(&mut self, parent: &Value) -> Result<Value, ClientError> {
        let payload = self.try_build(parent, json!([]), json!([])).await?;
        let params = json!([payload["executionPayload"], [], parent["hash"], []]);
        let status: Value = self.engine.call("engine_newPayloadV4", params).await?;
        assert_eq!(status["status"], "VALID", "{status}");
        let hash = &payload["executionPayload"]["blockHash"];
        self.engine.call("eth_getBlockByHash", json!([hash, false])).await
    }

    /// Has a block with these withdrawals and transactions called valid.
    pub(crate) async fn add(
        &mut self,
        parent: &Value,
        withdrawals: Value,
        transactions: Value,
    ) -> Value {
        let built = self.build(parent, withdrawals, transactions).await;
        let payload = &built["executionPayload"];
        let params = json!([payload, [], parent["hash"], built["executionRequests"]]);
        let status: Value = self.engine.call("engine_newPayloadV4", params).await.expect("judged");
        assert_eq!(status["status"], "VALID", "{status}");
        payload["blockHash"].clone()
    }

    async fn build(&mut self, parent: &Value, withdrawals: Value, transactions: Value) -> Value {
        self.try_build(parent, withdrawals, transactions).await.expect("built")
    }

    async fn try_build(
        &mut self,
        parent: &Value,
        withdrawals: Value,
        transactions: Value,
    ) -> Result<Value, ClientError> {
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
        self.engine.call("testing_buildBlockV1", params).await
    }

    /// Makes a block the head and, when asked, finalized.
    pub(crate) async fn choose(&mut self, hash: &Value, is_final: bool) {
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
    pub(crate) async fn block(&mut self, hash: &Value) -> Value {
        self.engine.call("eth_getBlockByHash", json!([hash, false])).await.expect("an answer")
    }

    /// The length of a block's witness in SSZ.
    async fn witness_bytes(&mut self, hash: &Value) -> u64 {
        let path = format!("/engine/v1/witnesses/{}", hash.as_str().expect("a hash"));
        let reply = self.engine.request(Method::HEAD, &path, HeaderMap::new(), Bytes::new()).await;
        let reply = reply.expect("an answer");
        assert_eq!(reply.status, 200, "{path}");
        reply.headers["content-length"].to_str().expect("text").parse().expect("a number")
    }

    /// Waits until it ends by itself. Gives its exit status and the rest of its log.
    pub(crate) async fn ended(mut self) -> (Option<i32>, String) {
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("it can be waited for") {
                break status;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        let log = std::mem::replace(&mut self.log, std::thread::spawn(Vec::new));
        (status.code(), log.join().expect("a thread that reads").join("\n"))
    }

    /// As `kill -9` does it.
    pub(crate) fn kill(mut self) {
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

pub(crate) fn directory() -> tempfile::TempDir {
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
    let mut rng = StdRng::seed_from_u64(testing::seed());
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
/// that comes next has the block with its witness of so many bytes or more, and the head is no
/// older. Every other node syncs its journal.
async fn check_kills(dir: &Path, witness_bytes: u64, transaction: impl Fn(u64) -> Value) {
    // Seven, so that each comes with and without a sync.
    let after_ms = [0, 5, 20, 50, 100, 200, 400];
    let rounds = testing::rounds("DEPONENT_PROMPT_KILLS", 1, 50);
    let mut last: Option<(Value, bool)> = None;
    let mut nonce = 0;
    for (round, is_chosen) in (0..rounds).flat_map(|round| [(round, false), (round, true)]) {
        for wait_ms in after_ms {
            let arguments: &[&str] = if nonce % 2 == 0 { &[] } else { &["--journal.sync"] };
            let mut node = Process::start_with(dir, arguments).await;
            let mut head = node.head().await;
            if let Some((hash, was_chosen)) = last {
                let context = format!("round {round}, chosen {is_chosen}, before {wait_ms} ms");
                let block = node.block(&hash).await;
                assert_eq!(block["hash"], hash, "{context}: a valid block is lost");
                let expected = if was_chosen { &block["hash"] } else { &block["parentHash"] };
                assert_eq!(&head["hash"], expected, "{context}: the head is another");
                let found = node.witness_bytes(&hash).await;
                assert!(found >= witness_bytes, "{context}: a witness of {found} bytes");
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
    check_kills(directory().path(), 1, |_| json!([])).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_block_with_a_large_witness_that_was_called_valid_outlasts_a_kill_at_any_time_after() {
    // 24,576 bytes of witness each.
    let contracts = 4_200;
    let world = World::new(contracts).expect("a world");
    let dir = tempfile::tempdir().expect("a directory");
    let options = NodeOptions::new(world.genesis.clone(), dir.path().join("data"));
    Node::start(options).await.expect("begun").stop().await;
    let transaction = |nonce| {
        let transaction = world.read_codes(nonce, contracts).expect("signed");
        json!([Bytes::from(transaction.encoded_2718())])
    };
    check_kills(dir.path(), 100_000_000, transaction).await;
}

/// `deponent` with files of at most so many blocks of 512 bytes: later writes fail, as on a full
/// disk.
fn with_short_files(blocks: u64) -> Command {
    let mut command = Command::new("sh");
    let script = format!(r#"trap "" XFSZ; ulimit -f {blocks}; exec "$0" "$@""#);
    command.args(["-c", &script, env!("CARGO_BIN_EXE_deponent")]);
    command
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_write_stops_the_node_with_its_own_status_and_loses_nothing() {
    let dir = directory();
    let mut node = Process::start(dir.path()).await;
    let head = node.head().await;
    node.extend(&head, json!([]), false).await;
    node.kill();
    let files = std::fs::read_dir(dir.path().join("data/chain")).expect("a directory");
    let longest = files.map(|file| file.unwrap().metadata().unwrap().len()).max().expect("files");
    // Half a mebibyte more than the longest has, in the unit of the shell.
    let limit = (longest + (512 << 10)) / 512;
    let mut node = Process::start_by(with_short_files(limit), dir.path(), &[]).await;
    let mut last = node.head().await;
    for _ in 0..100_000 {
        match node.try_add(&last).await {
            Ok(block) => last = block,
            Err(_) => break,
        }
    }
    let (status, log) = node.ended().await;
    assert_eq!(status, Some(74), "{log}");
    assert!(log.contains("a write has failed") && log.contains("start the node again"), "{log}");
    let mut node = Process::start(dir.path()).await;
    let block = node.block(&last["hash"]).await;
    assert_eq!(block["hash"], last["hash"], "the last valid block is lost");
    node.extend(&last, json!([]), false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_with_too_little_room_is_refused_with_its_own_status() {
    let dir = directory();
    let refused = Command::new(env!("CARGO_BIN_EXE_deponent"))
        .args(["node", "--datadir.min-free", "1000T", "--http.port", "0", "--authrpc.port", "0"])
        .arg("--chain")
        .arg(dir.path().join("genesis.json"))
        .arg("--datadir")
        .arg(dir.path().join("data"))
        .output()
        .expect("the program runs");
    let told = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(74), "{told}");
    assert!(told.contains("--datadir.min-free") && told.contains("Make room"), "{told}");
    assert!(!dir.path().join("data/chain").exists(), "nothing is begun");
}

/// The status of `GET path` on the public port, and the answer.
async fn probe(node: &Process, path: &str) -> (u16, String) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(&node.public).await.expect("a connection");
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("read");
    let status = answer.split(' ').nth(1).expect("a status").parse().expect("a number");
    (status, answer)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gap_is_told_by_eth_syncing_and_ready_until_it_is_filled() {
    let dir = directory();
    let mut node = Process::start(dir.path()).await;
    assert_eq!((probe(&node, "/health").await.0, probe(&node, "/live").await.0), (200, 200));
    let (status, answer) = probe(&node, "/ready").await;
    let reason =
        r#"{"ready":false,"reasons":["no consensus client has named a head since the start"]}"#;
    assert!(status == 503 && answer.contains("application/json"), "{answer}");
    assert!(answer.ends_with(reason), "{answer}");
    assert_eq!(probe(&node, "/other").await.0, 404);
    let genesis = node.head().await;
    let first = node.extend(&genesis, json!([]), false).await;
    let (status, answer) = probe(&node, "/ready").await;
    assert_eq!(status, 200, "{answer}");
    assert!(answer.ends_with(r#"{"ready":true,"reasons":[]}"#), "{answer}");
    let second = node.build(&first, json!([]), json!([])).await;
    // Another chain has the blocks after that.
    let other_dir = directory();
    let mut other = Process::start(other_dir.path()).await;
    let mut head = other.extend(&genesis, json!([]), false).await;
    assert_eq!(head, first);
    let mut params = Vec::new();
    for _ in 0..3 {
        let built = other.build(&head, json!([]), json!([])).await;
        params.push(json!([built["executionPayload"], [], head["hash"], []]));
        head = other.extend(&head, json!([]), false).await;
    }
    assert_eq!(params[0][0], second["executionPayload"]);
    for params in &params[1..] {
        let status: Value = node.engine.call("engine_newPayloadV4", params).await.expect("judged");
        assert_eq!(status["status"], "SYNCING", "{status}");
    }
    let syncing = node.engine.call::<Value>("eth_syncing", json!([])).await.expect("an answer");
    let expected = json!({"startingBlock": "0x0", "currentBlock": "0x1", "highestBlock": "0x4"});
    assert_eq!(syncing, expected);
    let (status, answer) = probe(&node, "/ready").await;
    assert!(status == 503 && answer.contains("not in step: the head is block 1"), "{answer}");
    assert_eq!(probe(&node, "/health").await.0, 200);
    let status: Value = node.engine.call("engine_newPayloadV4", &params[0]).await.expect("judged");
    assert_eq!(status["status"], "VALID", "{status}");
    node.choose(&head["hash"], false).await;
    assert_eq!(node.head().await, head);
    let syncing = node.engine.call::<Value>("eth_syncing", json!([])).await.expect("an answer");
    assert_eq!((syncing, probe(&node, "/ready").await.0), (json!(false), 200));
    // A query says nothing.
    for path in ["/", "/health", "/live", "/ready"] {
        assert_eq!(probe(&node, &format!("{path}?x=1")).await.0, 200, "{path}");
    }
    // A head that no payload has brought yet.
    let [unknown, zero] = ["77", "00"].map(|digits| format!("0x{}", digits.repeat(32)));
    let state = json!({"headBlockHash": unknown, "safeBlockHash": zero,
        "finalizedBlockHash": zero});
    let answer: Value =
        node.engine.call("engine_forkchoiceUpdatedV3", json!([state, null])).await.expect("judged");
    assert_eq!(answer["payloadStatus"]["status"], "SYNCING", "{answer}");
    let (status, answer) = probe(&node, "/ready").await;
    let reason = "the head that the consensus client chose is not known yet";
    assert_eq!(status, 503, "{answer}");
    assert!(answer.ends_with(&format!(r#""reasons":["{reason}: {unknown}"]}}"#)), "{answer}");
    node.child.kill().expect("it runs");
    let (_, log) = node.ended().await;
    let missing = format!("missing=2 missing_hash={}", params[0][0]["blockHash"].as_str().unwrap());
    assert_eq!(log.matches("a block is missing").count(), 1, "{log}");
    assert!(log.contains(&missing), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_public_port_does_not_say_where_a_damaged_file_is() {
    let dir = directory();
    // The codes of the genesis are read from the disk by the second one.
    Process::start(dir.path()).await.kill();
    let mut node = Process::start(dir.path()).await;
    let entries = std::fs::read_dir(dir.path().join("data/chain")).expect("a directory");
    let paths = entries.map(|entry| entry.expect("readable").path());
    for path in paths.filter(|path| path.to_str().is_some_and(|path| path.contains("/codes"))) {
        let bytes = std::fs::metadata(&path).expect("a file").len();
        let file = std::fs::OpenOptions::new().write(true).open(&path).expect("a file");
        file.write_all_at(&vec![0xff; bytes as usize - 64], 64).expect("written");
    }
    let mut public = Client::connect(&node.public, None).await.expect("a connection");
    let params = json!(["0x000F3df6D732807Ef1319fB7B8bB8522d0Beac02", "latest"]);
    let said = public.call::<Value>("eth_getCode", &params).await;
    let said = said.expect_err("damaged").to_string();
    let path = dir.path().to_str().expect("UTF-8");
    assert!(said.contains("chain/codes-0") && !said.contains(path), "{said}");
    // A caller with the secret may know.
    let whole = node.engine.call::<Value>("eth_getCode", &params).await;
    let whole = whole.expect_err("damaged").to_string();
    assert!(whole.contains(&format!("{path}/data/chain/codes-0")), "{whole}");
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
