//! Stand-ins for other tools, which send what those send to a node: the same calls in the same
//! order with the same bodies, to ours and to geth, where there is one. `integrations/` has a
//! folder for each tool.

mod benchmarkoor;
mod ethereum_package;
mod files;
mod hive;
mod metrics_exporter;
mod rsp_ethproofs;
mod zkboost;

use crate::support::*;
use alloy_primitives::Bytes;
use rpc::rest::{HeaderMap, Method};
use rpc::{Client, JwtSecret};
use serde_json::{Value, json};
use testing::geth::{Geth, RunningGeth, path_text};

/// Blocks of one chain, and the rules under which all of them are.
struct Recorded {
    genesis: Value,
    fork: Fork,
    /// The parameters of `engine_newPayload`, block by block.
    payloads: Vec<Value>,
    /// The blocks as RLP.
    blocks: Vec<Vec<u8>>,
}

impl Recorded {
    /// A chain of three blocks with transactions of two types.
    async fn new(genesis: Value, fork: Fork) -> Self {
        let mut builder = TestNode::start(genesis.clone()).await;
        let sent = transactions();
        let (mut payloads, mut blocks) = (Vec::new(), Vec::new());
        for (time, transactions) in (1..).zip([&sent[..1], &sent[1..2], &[]]) {
            let envelope = builder.extend(fork, time, transactions).await;
            payloads.push(new_payload(fork.new, &envelope));
            let engine = builder.node.engine();
            let record = engine.block(engine.heads().head).expect("readable").expect("a block");
            blocks.push(alloy_rlp::encode(&*record.block));
        }
        Self { genesis, fork, payloads, blocks }
    }

    fn hash(&self, block: usize) -> &Value {
        &self.payloads[block][0]["blockHash"]
    }

    /// Our node, and geth if there is one, both with the genesis alone.
    async fn targets(&self) -> Vec<Target> {
        let mut targets = vec![Target::ours(&self.genesis).await];
        targets.extend(Target::geth(&self.genesis).await);
        targets
    }
}

/// Amsterdam from the first block on.
const AMSTERDAM: Fork = Fork { time: 1, forkchoice: 4, get: 6, new: 5 };

fn genesis_of_amsterdam() -> Value {
    let mut genesis = genesis_of_all_forks();
    let config = genesis["config"].as_object_mut().expect("an object");
    for name in ["shanghaiTime", "cancunTime", "pragueTime", "osakaTime", "amsterdamTime"] {
        config[name] = json!(0);
    }
    genesis
}

/// A node in front of a tool.
struct Target {
    public: Client,
    /// It has no secret: the tools make the tokens, or pass them on.
    engine: Client,
    secret: JwtSecret,
    /// The address of WebSockets.
    web: String,
    /// Each runs until it is dropped.
    _runs: Run,
}

enum Run {
    Ours { _node: Box<TestNode> },
    Geth { _geth: RunningGeth, _files: tempfile::TempDir },
}

impl Target {
    async fn ours(genesis: &Value) -> Self {
        let node = TestNode::start(genesis.clone()).await;
        let (web, engine) = (node.node.http_addr.to_string(), node.node.engine_addr.to_string());
        let secret = node.node.jwt.clone();
        Self::connect(web, &engine, secret, Run::Ours { _node: Box::new(node) }).await
    }

    async fn geth(genesis: &Value) -> Option<Self> {
        let files = tempfile::tempdir().expect("a directory");
        let file = |name: &str| files.path().join(name);
        let geth = Geth::find(file("genesis.json"))?;
        std::fs::write(file("genesis.json"), genesis.to_string()).expect("written");
        let secret = JwtSecret::load_or_create(&file("jwt.hex")).expect("written");
        let ipc = file("geth.ipc");
        let namespaces = "admin,debug,eth,net,txpool,web3";
        let web = ["--http", "--http.port", "0", "--http.api", namespaces];
        let socket = ["--ws", "--ws.port", "0", "--ws.api", namespaces];
        let arguments = [&["--ipcpath", path_text(&ipc)], &web[..], &socket].concat();
        let geth = geth.start(&file("data"), &file("jwt.hex"), &arguments);
        let (web, engine) = (geth.http_address.clone(), geth.engine_address.clone());
        let web = web.expect("it was asked for").replace("localhost", "127.0.0.1");
        let runs = Run::Geth { _geth: geth, _files: files };
        Some(Self::connect(web, &engine, secret, runs).await)
    }

    async fn connect(web: String, engine: &str, secret: JwtSecret, runs: Run) -> Self {
        let public = Client::connect(&web, None).await.expect("a connection");
        let engine = Client::connect(engine, None).await.expect("a connection");
        Self { public, engine, secret, web, _runs: runs }
    }

    fn is_geth(&self) -> bool {
        matches!(self._runs, Run::Geth { .. })
    }

    /// Sends a body to the public port.
    async fn web(&mut self, body: &str) -> Value {
        post(&mut self.public, &[], body).await.1
    }

    /// Sends a body to the engine port with a token of its own.
    async fn engine(&mut self, body: &str) -> Value {
        let token = format!("Bearer {}", self.secret.token());
        post(&mut self.engine, &[("authorization", &token)], body).await.1
    }
}

/// Posts JSON as it is, and gives the status and the answer, `null` if that is no JSON.
async fn post(client: &mut Client, headers: &[(&'static str, &str)], body: &str) -> (u16, Value) {
    let mut all = HeaderMap::new();
    for (name, value) in [("content-type", "application/json")].iter().chain(headers) {
        all.insert(*name, value.parse().expect("a header"));
    }
    let body = Bytes::copy_from_slice(body.as_bytes());
    let reply = client.request(Method::POST, "/", all, body).await.expect("an answer");
    (reply.status.as_u16(), serde_json::from_slice(&reply.body).unwrap_or_default())
}

/// The answers of both nodes to the same calls, where there are two.
#[track_caller]
fn same(answers: &[Vec<(String, Value)>]) {
    let [ours, geth] = answers else { return };
    for ((sent, one), (_, other)) in ours.iter().zip(geth) {
        assert_eq!(with_floats(one.clone()), with_floats(other.clone()), "{sent}");
    }
    assert_eq!(ours.len(), geth.len());
}
