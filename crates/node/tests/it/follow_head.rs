//! The head of another execution client is followed: a chain for tests over all transports, through
//! reorganisations and restarts of both sides, an upstream that lies, and geth where it is.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use alloy_primitives::{B256, U64, hex};
use alloy_rlp::Encodable as _;
use alloy_rpc_types_eth::Header as RpcHeader;
use execution::Block;
use rpc::{
    Client, Code, Error, Handler, Json, Limits, RawValue, ServerOptions, SessionClient, serve,
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use testing::geth;
use tokio::io::{AsyncReadExt as _, copy};
use tokio::net::{TcpListener, TcpStream};

use crate::dev::{Dev, OTHER, WHO};
use crate::support::{checked, state};

/// How long a test waits for what is to happen.
const PATIENCE: Duration = Duration::from_secs(300);

/// `deponent follow`, until this is dropped.
struct Follower {
    program: Child,
    client: Client,
    address: String,
    log: PathBuf,
    ipc: PathBuf,
}

impl Follower {
    /// Starts it on a directory, with a log beside the chain.
    async fn start(dir: &Path, upstream: &str, given: &[&str]) -> Self {
        let (log, ipc) = (dir.join("follow.log"), dir.join("follow.ipc"));
        let before = std::fs::read_to_string(&log).unwrap_or_default().len();
        let mut command = Command::new(env!("CARGO_BIN_EXE_deponent"));
        command.args(["follow", "--rpc", upstream, "--http.port", "0", "--authrpc.port", "0"]);
        command.arg("--datadir").arg(dir.join("data")).arg("--log.file").arg(&log);
        command.arg("--ipcpath").arg(&ipc).args(["--datadir.min-free", "0"]).args(given);
        let mut program =
            command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it runs");
        let line = until_log(&mut program, &log, before, &["public JSON-RPC", "http="]).await;
        let address = line.split("http=").nth(1).and_then(|rest| rest.split_whitespace().next());
        let address = address.expect("an address").to_owned();
        let client = Client::connect(&address, None).await.expect("a connection");
        Self { program, client, address, log, ipc }
    }

    /// Waits for a line of the log with these words.
    async fn until_log(&mut self, words: &[&str]) -> String {
        until_log(&mut self.program, &self.log, 0, words).await
    }

    async fn ok(&mut self, method: &str, params: Value) -> Value {
        let answer = checked(method, self.client.call(method, params).await);
        answer.unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    async fn hash(&mut self, block: &str) -> Value {
        self.ok("eth_getBlockByNumber", json!([block, false])).await["hash"].clone()
    }

    /// Waits until a block has this hash.
    async fn until(&mut self, block: &str, hash: &Value) {
        let start = Instant::now();
        while self.hash(block).await != *hash {
            let log = || std::fs::read_to_string(&self.log).unwrap_or_default();
            assert!(start.elapsed() < PATIENCE, "{block} is never {hash}: {}", log());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until the head is that of a chain for tests.
    async fn until_step(&mut self, dev: &mut Dev) -> Value {
        let head = dev.ok("eth_getBlockByNumber", json!(["latest", false])).await;
        self.until("latest", &head["hash"]).await;
        head["number"].clone()
    }

    async fn session(&self) -> SessionClient {
        SessionClient::connect(&self.address, None).await.expect("a connection")
    }

    /// A client of all methods.
    async fn all_methods(&self) -> SessionClient {
        let address = format!("unix:{}", self.ipc.display());
        SessionClient::connect(&address, None).await.expect("a connection")
    }

    async fn status(&self) -> Value {
        let status = self.all_methods().await.call("deponent_status", json!([])).await;
        status.expect("a status")
    }

    /// Ends it as an operator does.
    fn stop(mut self) {
        self.end(Signal::TERM);
    }

    fn end(&mut self, signal: Signal) {
        kill_process(Pid::from_child(&self.program), signal).ok();
        self.program.wait().expect("it ends");
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        if matches!(self.program.try_wait(), Ok(None)) {
            self.end(Signal::KILL);
        }
    }
}

/// Waits for a line with these words in the log of a program, after so many bytes.
async fn until_log(program: &mut Child, log: &Path, offset: usize, words: &[&str]) -> String {
    let start = Instant::now();
    loop {
        let text = std::fs::read_to_string(log).unwrap_or_default();
        let found = text.get(offset..).unwrap_or_default().lines();
        let mut found = found.filter(|line| words.iter().all(|words| line.contains(words)));
        if let Some(line) = found.next() {
            return line.to_owned();
        }
        let ended = program.try_wait().expect("it is asked");
        assert!(ended.is_none(), "it has ended: {text}");
        assert!(start.elapsed() < PATIENCE, "{words:?} is not in {text}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a directory")
}

async fn pay(dev: &mut Dev, value: &str) {
    let transfer = json!({"from": WHO, "to": OTHER, "value": value});
    dev.ok("eth_sendTransaction", json!([transfer])).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_for_tests_is_followed_over_every_transport_with_witnesses() {
    let dir = folder();
    let ipc = dir.path().join("dev.ipc").display().to_string();
    let mut dev = Dev::start(&["--quiet", "--ipc", &ipc]).await;
    // Blocks from before the start: no new head is needed for them.
    pay(&mut dev, "0x1").await;
    pay(&mut dev, "0x2").await;
    let urls = [format!("http://{}", dev.address), format!("ws://{}", dev.address), ipc];
    for url in urls {
        let dir = folder();
        let mut follower = Follower::start(dir.path(), &url, &[]).await;
        follower.until_step(&mut dev).await;
        let session = follower.session().await;
        let heads = session.subscribe::<Value>("eth_subscribe", json!(["newHeads"])).await;
        let mut heads = heads.expect("subscribed");
        let witnesses = session.subscribe::<Value>("deponent_subscribeWitnesses", json!([])).await;
        let mut witnesses = witnesses.expect("subscribed");
        pay(&mut dev, "0x3").await;
        let number = follower.until_step(&mut dev).await;
        let hash = follower.hash("latest").await;
        let head = heads.next().await.expect("a new head");
        assert_eq!(head["hash"], hash);
        let told = witnesses.next().await.expect("a witness").to_string();
        assert!(told.contains(hash.as_str().expect("a hash")), "{told}");
        let last = number.as_str().and_then(|text| text.strip_prefix("0x"));
        let last = u64::from_str_radix(last.expect("hex"), 16).expect("a number");
        for number in 1..=last {
            let number = json!([format!("{number:#x}")]);
            let ours = follower.ok("debug_executionWitness", number.clone()).await;
            assert_eq!(ours, dev.ok("debug_executionWitness", number).await);
        }
        let all = follower.all_methods().await;
        let status = follower.status().await;
        let source = &status["headSource"];
        assert_eq!((&source["tag"], &source["trusted"]), (&json!("latest"), &json!(true)));
        assert_eq!((&source["problem"], &source["head"]["hash"]), (&Value::Null, &hash));
        assert_eq!(status["reasons"], json!([]), "{status}");
        // A consensus client has nothing to say.
        let head = json!([state(&hash), null]);
        let refused = all.call::<Value>("engine_forkchoiceUpdatedV3", head).await;
        let refused = checked("engine_forkchoiceUpdatedV3", refused).expect_err("refused");
        assert_eq!(refused.code, Error::new(Code::Server, "").code);
        assert!(refused.to_string().contains("--follow.head latest"), "{refused}");
        follower.until_log(&["WARN", "which is trusted with it", "latest"]).await;
        // A node of ours is followed as well.
        let second_dir = folder();
        let own = format!("ws://{}", follower.address);
        let mut second = Follower::start(second_dir.path(), &own, &[]).await;
        second.until_step(&mut dev).await;
        follower.stop();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn branches_are_followed_and_so_is_a_head_that_goes_back() {
    let (dir, mut dev) = (folder(), Dev::start(&["--quiet"]).await);
    let url = format!("ws://{}", dev.address);
    let mut follower = Follower::start(dir.path(), &url, &[]).await;
    pay(&mut dev, "0x1").await;
    let snapshot = dev.ok("evm_snapshot", json!([])).await;
    for value in ["0x2", "0x3", "0x4"] {
        pay(&mut dev, value).await;
    }
    follower.until_step(&mut dev).await;
    dev.ok("evm_revert", json!([snapshot])).await;
    follower.until_step(&mut dev).await;
    pay(&mut dev, "0x5").await;
    pay(&mut dev, "0x6").await;
    assert_eq!(follower.until_step(&mut dev).await, "0x3");
    dev.ok("anvil_reorg", json!({"depth": 2, "tx_block_pairs": []})).await;
    follower.until_step(&mut dev).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn either_side_may_be_restarted() {
    let (dir, chain) = (folder(), folder());
    let data = chain.path().join("dev").display().to_string();
    let mut dev = Dev::start(&["--quiet", "--datadir", &data]).await;
    let port = dev.address.rsplit(':').next().expect("a port").to_owned();
    let url = format!("ws://{}", dev.address);
    let mut follower = Follower::start(dir.path(), &url, &[]).await;
    pay(&mut dev, "0x1").await;
    follower.until_step(&mut dev).await;
    drop(dev);
    follower.until_log(&["an upstream has not given what it was asked for"]).await;
    let down = json!([{"name": url, "answers": false, "state": "does not answer"}]);
    let start = Instant::now();
    loop {
        let status = follower.status().await;
        if status["headSource"]["upstream"].is_null() && status["upstreams"] == down {
            break;
        }
        assert!(start.elapsed() < PATIENCE, "{status}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let mut dev = Dev::start_on(&port, &["--quiet", "--datadir", &data], &[]).await;
    // Nothing new has to come for it to be followed again.
    follower.until_step(&mut dev).await;
    pay(&mut dev, "0x2").await;
    follower.until_step(&mut dev).await;
    // Without us the chain goes on; after that it is not too far away.
    for signal in [Signal::TERM, Signal::KILL] {
        follower.end(signal);
        dev.ok("anvil_mine", json!(["0x28"])).await;
        follower = Follower::start(dir.path(), &url, &[]).await;
        follower.until_step(&mut dev).await;
    }
    pay(&mut dev, "0x3").await;
    follower.until_step(&mut dev).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_safe_and_the_finalized_block_may_be_the_head() {
    let mut dev = Dev::start(&["--quiet"]).await;
    dev.ok("anvil_mine", json!(["0x46"])).await;
    let url = format!("http://{}", dev.address);
    for tag in ["safe", "finalized"] {
        let dir = folder();
        let mut follower = Follower::start(dir.path(), &url, &["--follow.head", tag]).await;
        for _ in 0..2 {
            let expected = dev.ok("eth_getBlockByNumber", json!([tag, false])).await;
            follower.until("latest", &expected["hash"]).await;
            dev.ok("anvil_mine", json!(["0x3"])).await;
        }
        let finalized = dev.ok("eth_getBlockByNumber", json!(["finalized", false])).await;
        follower.until("finalized", &finalized["hash"]).await;
    }
}

/// A server that gives prepared answers.
#[derive(Debug, Default)]
pub(crate) struct Prepared(Mutex<HashMap<String, Value>>);

impl Prepared {
    pub(crate) fn set(&self, method: &str, params: &Value, answer: Value) {
        self.0.lock().expect("no panic").insert(format!("{method} {params}"), answer);
    }

    /// Prepares the answers to all that may be asked about a block.
    fn add(&self, block: &Block, shown: &Value) {
        let mut rlp = Vec::new();
        block.encode(&mut rlp);
        self.set("debug_getRawBlock", &json!([shown["hash"]]), json!(hex::encode_prefixed(rlp)));
        self.add_header(shown);
    }

    /// Prepares the answers about a header alone.
    pub(crate) fn add_header(&self, shown: &Value) {
        let (hash, number) = (&shown["hash"], &shown["number"]);
        self.set("eth_getBlockByHash", &json!([hash, false]), shown.clone());
        self.set("eth_getBlockByNumber", &json!([number, false]), shown.clone());
    }

    /// Serves it until the test ends; where it listens.
    pub(crate) async fn serve(self: &Arc<Self>) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let options = ServerOptions::new(None, Limits::public());
        tokio::spawn(serve(listener, options, self.clone(), std::future::pending()));
        address
    }
}

impl Handler for Prepared {
    fn call(&self, method: &str, params: Option<&RawValue>) -> Result<Json, Error> {
        let params = params.map_or("[]", RawValue::get);
        let params: Value = serde_json::from_str(params).expect("JSON");
        let answers = self.0.lock().expect("no panic");
        let answer = answers.get(&format!("{method} {params}"));
        answer.map_or_else(|| Err(Error::method_not_found(method)), Json::of)
    }
}

/// A block of a chain for tests, as it is and as it is shown.
async fn block_of(dev: &mut Dev, number: &str) -> (Block, Value) {
    let raw = dev.ok("debug_getRawBlock", json!([number])).await;
    let raw = hex::decode(raw.as_str().expect("hex")).expect("hex");
    let block = execution::decode_block(&raw).expect("a block");
    ((*block).clone(), dev.ok("eth_getBlockByNumber", json!([number, false])).await)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_that_is_no_valid_block_is_refused_until_there_is_another() {
    let mut dev = Dev::start(&["--quiet"]).await;
    let upstream = Arc::<Prepared>::default();
    for (method, params) in [
        ("eth_chainId", json!([])),
        ("debug_chainConfig", json!([])),
        ("debug_accountRange", json!(["0x0", B256::ZERO, 256, false, false, true])),
    ] {
        let answer = dev.ok(method, params.clone()).await;
        upstream.set(method, &params, answer);
    }
    let (genesis, shown) = block_of(&mut dev, "0x0").await;
    upstream.add(&genesis, &shown);
    let first = shown["hash"].clone();
    pay(&mut dev, "0x1").await;
    pay(&mut dev, "0x2").await;
    // The first block with another state than its transactions give: its hash is right.
    let (one, mut shown) = block_of(&mut dev, "0x1").await;
    let mut lie = one.clone();
    lie.header.state_root = B256::repeat_byte(7);
    let lie_hash = lie.header.hash_slow();
    (shown["stateRoot"], shown["hash"]) = (json!(lie.header.state_root), json!(lie_hash));
    upstream.add(&lie, &shown);
    let name = |shown: &Value| {
        for tag in ["latest", "safe", "finalized"] {
            upstream.set("eth_getBlockByNumber", &json!([tag, false]), shown.clone());
        }
    };
    name(&shown);
    let address = upstream.serve().await;
    let dir = folder();
    let mut follower = Follower::start(dir.path(), &format!("http://{address}"), &[]).await;
    let hash = lie_hash.to_string();
    follower.until_log(&["ERROR", "the head of the upstream is no valid block", &hash]).await;
    assert_eq!(follower.hash("latest").await, first);
    let status = follower.status().await;
    let problem = status["headSource"]["problem"].as_str().expect("a problem").to_owned();
    assert!(problem.contains(&hash) && problem.contains("invalid"), "{problem}");
    assert_eq!(status["ready"], false);
    // Blocks that stand on it are not waited for: each answer says which one is invalid.
    for count in 1..=2_u64 {
        let (number, parent) = (1 + count, shown["hash"].clone());
        let mut above = lie.header.clone();
        above.number = number;
        above.timestamp += count;
        above.parent_hash = serde_json::from_value(parent).expect("a hash");
        let hash = above.hash_slow();
        shown = serde_json::to_value(RpcHeader {
            hash,
            inner: above,
            total_difficulty: None,
            size: None,
        })
        .expect("JSON");
        upstream.add_header(&shown);
        name(&shown);
        let invalid = format!("block 1, {lie_hash}, is invalid, and so is all that stands on it");
        let shown_problem =
            format!("block {number} of http://{address}, {hash}, is invalid: {invalid}");
        let start = Instant::now();
        let status = loop {
            let status = follower.status().await;
            let problem = status["headSource"]["problem"].as_str().unwrap_or_default();
            if problem.starts_with(&shown_problem) {
                break status;
            }
            assert!(start.elapsed() < PATIENCE, "{status}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        let reasons = status["reasons"].as_array().expect("a list");
        assert!(reasons[0].as_str().expect("text").starts_with(&shown_problem), "{status}");
        let text = status["reasons"].to_string();
        assert!(!text.contains("consensus client"), "{text}");
        assert_eq!(status["syncing"]["currentBlock"], 0, "{status}");
        assert_eq!(status["syncing"]["highestBlock"], number, "{status}");
    }
    let log = std::fs::read_to_string(&follower.log).expect("a log");
    assert!(log.contains("a gap cannot be filled"), "{log}");
    assert!(!log.contains("the fork choice names a head that is not known"), "{log}");
    // Two blocks further it is right again, and the way there is filled.
    for number in ["0x1", "0x2"] {
        let (block, shown) = block_of(&mut dev, number).await;
        upstream.add(&block, &shown);
        name(&shown);
    }
    follower.until_step(&mut dev).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upstream_of_another_chain_is_refused_and_the_next_one_is_followed() {
    let mut dev = Dev::start(&["--quiet"]).await;
    let other = Dev::start(&["--quiet", "--chain-id", "77"]).await;
    pay(&mut dev, "0x1").await;
    let dir = folder();
    let url = format!("http://{}", dev.address);
    let mut follower = Follower::start(dir.path(), &url, &[]).await;
    follower.until_step(&mut dev).await;
    follower.stop();
    let urls = format!("http://{},ws://{}", other.address, dev.address);
    let mut follower = Follower::start(dir.path(), &urls, &[]).await;
    follower.until_log(&["the head of the upstream is not taken", "chain 77"]).await;
    let other_chain = ["WARN", "an upstream of --follow has another chain", "chain_id=77 ours="];
    follower.until_log(&other_chain).await;
    let own = format!("upstream=\"ws://{}\" chain_id=", dev.address);
    follower.until_log(&["INFO", "an upstream of --follow answers", &own]).await;
    // Those of the head are shown, which are asked by themselves.
    let start = Instant::now();
    loop {
        let status = follower.status().await;
        let states = [0, 1].map(|place| status["upstreams"][place]["state"].clone());
        if states == [json!("has another chain, 77"), json!("answers")] {
            break;
        }
        assert!(start.elapsed() < PATIENCE, "{status}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    pay(&mut dev, "0x2").await;
    follower.until_step(&mut dev).await;
}

/// No client keeps the keys of slots: they come by their hashes, page by page.
#[tokio::test(flavor = "multi_thread")]
async fn a_first_state_with_storage_is_taken_from_a_deponent() {
    let dir = folder();
    let slots = (1..=600).map(|slot| (format!("0x{slot:064x}"), json!(format!("0x{slot:064x}"))));
    let slots: serde_json::Map<String, Value> = slots.collect();
    let genesis = json!({
        "config": {"chainId": 77},
        "difficulty": "0x0",
        "gasLimit": "0x2625a00",
        "alloc": {OTHER: {"balance": "0x7", "code": "0x60015f5260205ff3", "storage": slots}},
    });
    let file = dir.path().join("genesis.json");
    std::fs::write(&file, genesis.to_string()).expect("written");
    let mut dev = Dev::start(&["-q", "--init", file.to_str().expect("UTF-8")]).await;
    let url = format!("http://{}", dev.address);
    let mut follower = Follower::start(dir.path(), &url, &[]).await;
    pay(&mut dev, "0x1").await;
    follower.until_step(&mut dev).await;
    let slot = follower.ok("eth_getStorageAt", json!([OTHER, "0x258", "latest"])).await;
    assert_eq!(slot, json!(format!("0x{:064x}", 600)));
}

/// A relay to a server: of its first connections each is cut after so many bytes of answers.
async fn cutting_relay(server: String, cuts: Vec<u64>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let mut cuts = cuts.into_iter();
    tokio::spawn(async move {
        loop {
            let (mut caller, _) = listener.accept().await.expect("a connection");
            let mut called = TcpStream::connect(&server).await.expect("the server");
            let cut = cuts.next();
            tokio::spawn(async move {
                let (calls, mut answers) = caller.split();
                let (given, mut taken) = called.split();
                let (mut calls, mut given) = (calls, given.take(cut.unwrap_or(u64::MAX)));
                tokio::select! {
                    _ = copy(&mut calls, &mut taken) => {}
                    _ = copy(&mut given, &mut answers) => {}
                }
            });
        }
    });
    address
}

/// The log says so without the secrets of an address.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_breaks_at_the_start_is_tried_again() {
    let mut dev = Dev::start(&["--quiet"]).await;
    for scheme in ["ws", "http"] {
        let cuts = vec![0, 60, 250, 600, 1500, 3000, 5000];
        let relay = cutting_relay(dev.address.clone(), cuts).await;
        let dir = folder();
        let url = format!("{scheme}://me:word@{relay}/?KEY");
        let mut follower = Follower::start(dir.path(), &url, &[]).await;
        pay(&mut dev, "0x1").await;
        follower.until_step(&mut dev).await;
        let log = std::fs::read_to_string(&follower.log).expect("a log");
        assert!(log.contains("no upstream answers yet"), "{log}");
        assert!(!log.contains("deleted") && !log.contains("KEY"), "{log}");
        assert!(!log.contains("word@") && !log.contains("me:"), "{log}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn geth_is_followed_over_every_transport() {
    let Some(binary) = geth::binary() else {
        println!("not run: no geth");
        return;
    };
    let dir = folder();
    let chain = DevGeth::start(&binary, dir.path(), true);
    for url in [&chain.http, &chain.websocket, &chain.ipc] {
        let dir = folder();
        let mut follower = Follower::start(dir.path(), url, &[]).await;
        let geth = chain.session().await;
        // A contract of one zero byte: its gas tells the rules of forks apart.
        create(&geth, "0x60016000f3").await;
        for _ in 0..2 {
            let latest = json!(["latest", false]);
            let head: Value = geth.call("eth_getBlockByNumber", latest).await.expect("a block");
            let number = head["number"].as_str().expect("a number").to_owned();
            let start = Instant::now();
            let block = json!([number, false]);
            while follower.ok("eth_getBlockByNumber", block.clone()).await["hash"] != head["hash"] {
                let log = std::fs::read_to_string(&follower.log).unwrap_or_default();
                assert!(start.elapsed() < PATIENCE, "{url}: {number}: {log}");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            tokio::time::sleep(Duration::from_secs(2)).await;
        }
        let witness = follower.ok("debug_executionWitness", json!(["latest"])).await;
        assert!(!witness["state"].as_array().expect("nodes").is_empty());
    }
}

/// geth's own chain of `--dev` begins with a fork that is newer than Amsterdam.
#[test]
fn rules_that_are_not_implemented_are_refused_at_the_start() {
    let Some(binary) = geth::binary() else {
        println!("not run: no geth");
        return;
    };
    let dir = folder();
    let chain = DevGeth::start(&binary, dir.path(), false);
    let mut command = Command::new(env!("CARGO_BIN_EXE_deponent"));
    command.args(["follow", "--rpc", &chain.http, "--datadir"]).arg(dir.path().join("follower"));
    command.args(["--http.port", "0", "--authrpc.port", "0"]);
    let output = command.output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("a later fork"), "{said}");
    assert!(said.contains("BUILDER_EXIT_CONTRACT_ADDRESS"), "{said}");
}

/// The account that geth's chain for tests signs for, and its key.
const DEVELOPER: &str = "71562b71999873db5b286df957af199ec94617f7";
const DEVELOPER_KEY: &str = "b71c71a67e1177ad4e901695e1b4b9ee17ae16c6668d313eac2f96dbcda3f291";

/// geth with a block a second, and where it listens.
struct DevGeth {
    http: String,
    websocket: String,
    ipc: String,
    program: Killed,
}

impl DevGeth {
    /// With the genesis of `--dev`, which `is_osaka` has end with that fork.
    fn start(binary: &Path, dir: &Path, is_osaka: bool) -> Self {
        if is_osaka {
            init_osaka(binary, dir);
        }
        Self::run(binary, dir, is_osaka)
    }

    fn run(binary: &Path, dir: &Path, with_data: bool) -> Self {
        let ipc = dir.join("geth.ipc");
        let mut command = Command::new(binary);
        if with_data {
            command.arg("--datadir").arg(dir.join("geth"));
        }
        command.args(["--dev", "--dev.period", "1", "--authrpc.addr", "127.0.0.1"]);
        command.args(["--authrpc.port", "0", "--port", "0", "--ipcpath"]).arg(&ipc);
        command.args(["--http", "--http.port", "0", "--http.api", "eth,debug"]);
        command.args(["--ws", "--ws.port", "0", "--ws.api", "eth,debug"]);
        let program = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
        let mut program = Killed(program.expect("geth starts"));
        let (mut http, mut websocket) = (None, None);
        let mut lines = BufReader::new(program.0.stderr.take().expect("a pipe")).lines();
        while http.is_none() || websocket.is_none() {
            let line = lines.next().expect("geth says where it listens").expect("text");
            let url = |scheme: &str| {
                let rest = line.split(&format!("{scheme}://")).nth(1)?;
                Some(format!("{scheme}://{}", rest.split([' ', '/']).next()?))
            };
            if line.contains("WebSocket enabled") {
                websocket = websocket.or_else(|| url("ws"));
            }
            if line.contains("HTTP server started") && line.contains("auth=false") {
                let rest = line.split("endpoint=").nth(1);
                let endpoint = rest.and_then(|rest| rest.split(' ').next());
                http = http.or_else(|| endpoint.map(|endpoint| format!("http://{endpoint}")));
            }
        }
        // Its log must be read on, or geth would wait for room in the pipe.
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        Self {
            http: http.expect("a port"),
            websocket: websocket.expect("a port"),
            ipc: ipc.display().to_string(),
            program,
        }
    }

    async fn session(&self) -> SessionClient {
        SessionClient::connect(&format!("unix:{}", self.ipc), None).await.expect("geth")
    }

    /// Ends it by its own will, so that its state is whole.
    fn stop(mut self) {
        kill_process(Pid::from_child(&self.program.0), Signal::TERM).expect("it runs");
        self.program.0.wait().expect("ended");
    }
}

/// Begins geth's chain of `--dev`, ending with Osaka, in the folder `geth`, by `genesis.json`.
fn init_osaka(binary: &Path, dir: &Path) {
    let dumped = Command::new(binary).args(["--dev", "dumpgenesis"]).output();
    let dumped = dumped.expect("geth runs").stdout;
    let mut genesis: Value = serde_json::from_slice(&dumped).expect("a genesis");
    genesis["config"].as_object_mut().expect("rules").remove("bogotaTime");
    genesis["alloc"][DEVELOPER] = json!({"balance": "0xffffffffffffffffffff"});
    let [file, data, key, password] =
        ["genesis.json", "geth", "key", "password"].map(|name| dir.join(name));
    std::fs::write(&file, genesis.to_string()).expect("written");
    std::fs::write(&key, DEVELOPER_KEY).expect("written");
    std::fs::write(&password, "").expect("written");
    let run = |arguments: &[&str]| {
        let mut command = Command::new(binary);
        command.arg("--datadir").arg(&data).args(["--state.scheme", "path"]).args(arguments);
        assert!(command.output().expect("geth runs").status.success(), "{arguments:?}");
    };
    run(&["init", geth::path_text(&file)]);
    let [key, password] = [&key, &password].map(|path| geth::path_text(path));
    run(&["account", "import", "--lightkdf", "--password", password, key]);
}

/// Sends a transaction that creates a contract by these instructions.
async fn create(geth: &SessionClient, code: &str) -> String {
    let creation = json!([{"from": format!("0x{DEVELOPER}"), "data": code}]);
    geth.call("eth_sendTransaction", creation).await.expect("taken")
}

/// The first blocks after a state ask for hashes from before it, and their witnesses have the
/// headers.
#[tokio::test(flavor = "multi_thread")]
async fn a_chain_that_begins_with_a_state_has_the_hashes_from_before_it() {
    let Some(binary) = geth::binary() else {
        println!("not run: no geth");
        return;
    };
    let dir = folder();
    let chain = DevGeth::start(&binary, dir.path(), true);
    let geth = chain.session().await;
    let number = async |geth: &SessionClient| -> u64 {
        let number: U64 = geth.call("eth_blockNumber", json!([])).await.expect("a number");
        number.to()
    };
    let start = Instant::now();
    while number(&geth).await < 12 {
        assert!(start.elapsed() < PATIENCE);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    chain.stop();
    let mut dump = Command::new(&binary);
    dump.arg("--datadir").arg(dir.path().join("geth")).args(["snapshot", "dump"]);
    let dump = dump.output().expect("geth runs").stdout;
    let line = dump.split(|byte| *byte == b'\n').next().expect("lines");
    let root: Value = serde_json::from_slice(line).expect("JSON");
    let chain = DevGeth::run(&binary, dir.path(), true);
    let geth = chain.session().await;
    // The hash of block 5, in slot 0.
    let transaction = create(&geth, "0x6005405f5500").await;
    let mut first = number(&geth).await;
    loop {
        let block = json!([U64::from(first), false]);
        let block: Value = geth.call("eth_getBlockByNumber", block).await.expect("a block");
        if block["stateRoot"] == root["root"] {
            break;
        }
        first -= 1;
    }
    let header: String =
        geth.call("debug_getRawHeader", json!([U64::from(first)])).await.expect("a header");
    std::fs::write(dir.path().join("header"), header).expect("written");
    std::fs::write(dir.path().join("dump"), dump).expect("written");
    let mut init = Command::new(env!("CARGO_BIN_EXE_deponent"));
    init.arg("init").arg("--chain").arg(dir.path().join("genesis.json"));
    init.arg("--state").arg(dir.path().join("dump")).arg("--header").arg(dir.path().join("header"));
    let output = init.arg("--datadir").arg(dir.path().join("data")).output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut receipt = Value::Null;
    while receipt.is_null() {
        assert!(start.elapsed() < PATIENCE);
        tokio::time::sleep(Duration::from_millis(100)).await;
        receipt = geth
            .call("eth_getTransactionReceipt", json!([transaction]))
            .await
            .expect("a receipt or null");
    }
    let asking: U64 = serde_json::from_value(receipt["blockNumber"].clone()).expect("a number");
    assert!(first > 6, "it asks for a hash from before the parent of {first}");
    let mut follower = Follower::start(dir.path(), &chain.http, &[]).await;
    follower.until_log(&["the headers before the first block are there"]).await;
    let block = receipt["blockNumber"].as_str().expect("a number");
    follower.until(block, &receipt["blockHash"]).await;
    let slot = json!([receipt["contractAddress"], "0x0", receipt["blockNumber"]]);
    let earlier = json!(["0x5", false]);
    let earlier: Value = geth.call("eth_getBlockByNumber", earlier).await.expect("a block");
    assert_eq!(follower.ok("eth_getStorageAt", slot).await, earlier["hash"]);
    let witness = follower.ok("debug_executionWitness", json!([receipt["blockNumber"]])).await;
    assert_eq!(witness["headers"].as_array().expect("headers").len(), asking.to::<usize>() - 5);
}

#[test]
fn upstreams_that_make_no_sense_are_refused() {
    let check = |args: &[&str], words: &str| {
        let mut program = Command::new(env!("CARGO_BIN_EXE_deponent"));
        let output = program.args(args).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{args:?}: {said}");
        assert!(said.contains(words), "{args:?}: {said}");
    };
    let many = ["http://127.0.0.1:1"; 17].join(",");
    check(&["node", "--datadir", "x", "--follow", &many], "17 execution clients");
    check(&["follow", "--rpc", &many], "17 execution clients");
    let one = "http://127.0.0.1:1";
    check(&["follow", "--rpc", one, "--follow", one], "leave out --follow");
    for (command, flag) in [("node", "--follow"), ("follow", "--rpc"), ("node", "--witnesses")] {
        for empty in ["", ","] {
            check(&[command, &format!("{flag}={empty}")], "it has no port");
        }
        check(&[command, flag, "http://127.0.0.1:99999/"], "no number up to 65535");
        check(&[command, flag, "http://h h/x"], "a name of a host has letters");
    }
}

/// That a data directory cannot be made is no fault of the upstream.
#[tokio::test(flavor = "multi_thread")]
async fn a_data_directory_that_is_a_file_is_named_as_such() {
    let dev = Dev::start(&["--quiet"]).await;
    let file = tempfile::NamedTempFile::new().expect("a file");
    let mut command = Command::new(env!("CARGO_BIN_EXE_deponent"));
    let command = command.args(["follow", "--rpc", &dev.address, "--datadir"]).arg(file.path());
    let output = command.output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("--datadir: ") && said.contains("could not create the directory: "));
    assert!(!said.contains("--rpc: ") && !output.status.success(), "{said}");
}

/// A program that is killed when this is dropped.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

#[test]
fn the_help_has_the_default_of_the_command_and_an_address_needs_a_port() {
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_deponent"));
        let output = command.args(arguments).output().expect("it runs");
        let said = [output.stdout, output.stderr].concat();
        String::from_utf8(said).expect("UTF-8").split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let help = run(&["follow", "--help"]);
    let of_head = help.split("--follow.head <TAG>").nth(1).expect("the flag");
    let default = of_head.split("[default: ").nth(1).expect("a default");
    assert!(default.starts_with("latest]"), "{of_head}");
    let help = run(&["node", "--help"]);
    let of_head = help.split("--follow.head <TAG>").nth(1).expect("the flag");
    let default = of_head.split("[default: ").nth(1).expect("a default");
    assert!(default.starts_with("none]"), "{of_head}");
    for arguments in [["node", "--follow", "127.0.0.1"], ["follow", "--rpc", "localhost"]] {
        let said = run(&arguments);
        assert!(said.contains("expected http(s):// or ws(s)://, HOST:PORT"), "{said}");
        assert!(said.contains("it has no port, as 127.0.0.1:8545 has"), "{said}");
    }
}
