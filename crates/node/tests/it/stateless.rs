//! A node without a state, beside sources of witnesses of all kinds.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::geth::Nodes;
use crate::support::{
    ALL_FORKS, Fork, OSAKA, TestNode, attributes, genesis_of_all_forks, genesis_of_osaka,
    new_payload, new_payload_call, raw, state, transactions, unwrap,
};
use alloy_primitives::{B256, Bytes, U64, hex};
use alloy_rpc_types_engine::{ExecutionPayload, ForkchoiceState};
use deponent_node::demo::World;
use deponent_node::{Node, NodeOptions, StatelessNode, StatelessOptions, WitnessSource};
use engine_api::NewPayload;
use execution::{ChainSpec, SealedBlock};
use rpc::rest::{HeaderMap, Method, StatusCode};
use rpc::{Client, Code, Error, Handler, Json, JwtSecret, Limits, RawValue, ServerOptions, serve};
use serde_json::{Value, json};
use witness::Witness;

/// Longest wait for something that happens soon.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

fn secret() -> JwtSecret {
    JwtSecret::from_hex(&"07".repeat(32)).expect("32 bytes")
}

fn source(text: &str) -> WitnessSource {
    WitnessSource::parse(text).unwrap_or_else(|fault| panic!("{text}: {fault}"))
}

/// A running node without a state, and a client on each port.
pub(crate) struct StatelessTest {
    pub(crate) node: StatelessNode,
    engine: Client,
    public: Client,
}

impl StatelessTest {
    pub(crate) async fn start(genesis: &Value, sources: &[&str]) -> Self {
        Self::start_with(genesis, sources, |_| ()).await
    }

    pub(crate) async fn start_with(
        genesis: &Value,
        sources: &[&str],
        set: impl FnOnce(&mut StatelessOptions),
    ) -> Self {
        let genesis = serde_json::from_value(genesis.clone()).expect("a genesis");
        let (chain, first) = StatelessOptions::of_genesis(&genesis).expect("rules");
        Self::of(chain, sources, |options| {
            options.genesis = Some(first);
            set(options);
        })
        .await
    }

    async fn of(
        chain: ChainSpec,
        sources: &[&str],
        set: impl FnOnce(&mut StatelessOptions),
    ) -> Self {
        let sources = sources.iter().map(|text| source(text)).collect();
        let mut options = StatelessOptions::new(chain, sources, secret());
        set(&mut options);
        let node = StatelessNode::start(options).await.expect("it starts");
        let address = node.engine_addr.to_string();
        let engine = Client::connect(&address, Some(secret())).await.expect("a connection");
        let address = node.http_addr.expect("a public port").to_string();
        let public = Client::connect(&address, None).await.expect("a connection");
        Self { node, engine, public }
    }

    pub(crate) async fn call(&mut self, method: &str, params: Value) -> Result<Value, Error> {
        unwrap(self.engine.call(method, params).await)
    }

    pub(crate) async fn public(&mut self, method: &str, params: Value) -> Result<Value, Error> {
        unwrap(self.public.call(method, params).await)
    }

    async fn status(&mut self) -> Value {
        self.public("deponent_status", json!([])).await.expect("an answer")
    }

    async fn send(&mut self, fork: Fork, envelope: &Value) -> Value {
        let method = format!("engine_newPayloadV{}", fork.new);
        self.call(&method, new_payload(fork.new, envelope)).await.expect("an answer")
    }

    /// Sends the payload until it has a verdict.
    async fn judged(&mut self, fork: Fork, envelope: &Value) -> Value {
        let end = Instant::now() + PATIENCE;
        loop {
            let status = self.send(fork, envelope).await;
            if status["status"] != "SYNCING" {
                return status;
            }
            assert!(Instant::now() < end, "no verdict: {}", self.status().await);
        }
    }

    pub(crate) async fn choose(&mut self, head: &Value) -> Value {
        self.choose_with(head, &json!(B256::ZERO)).await
    }

    async fn choose_with(&mut self, head: &Value, finalized: &Value) -> Value {
        let state = json!({
            "headBlockHash": head, "safeBlockHash": finalized, "finalizedBlockHash": finalized,
        });
        let answer = self.call("engine_forkchoiceUpdatedV3", json!([state, null])).await;
        answer.expect("an answer")["payloadStatus"].clone()
    }

    /// Waits until a fork choice of this head is VALID.
    async fn reach(&mut self, head: &Value) {
        let end = Instant::now() + PATIENCE;
        while self.choose(head).await["status"] != "VALID" {
            assert!(Instant::now() < end, "not in step: {}", self.status().await);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Adds the next block, and makes it the head.
    pub(crate) async fn adopt(&mut self, fork: Fork, envelope: &Value) {
        let hash = &envelope["executionPayload"]["blockHash"];
        let status = self.judged(fork, envelope).await;
        assert_eq!((&status["status"], &status["latestValidHash"]), (&json!("VALID"), hash));
        assert_eq!(self.choose(hash).await["status"], "VALID");
        let number = self.public("eth_blockNumber", json!([])).await.expect("an answer");
        assert_eq!(number, envelope["executionPayload"]["blockNumber"]);
    }

    /// Witnesses of a source that were refused.
    async fn refused(&mut self, index: usize) -> u64 {
        self.status().await["sources"][index]["refused"].as_u64().expect("a number")
    }
}

/// A chain with a block of each fork, and their envelopes.
pub(crate) async fn chain_of_all_forks() -> (TestNode, Vec<(Fork, Value)>) {
    let mut node = TestNode::start(genesis_of_all_forks()).await;
    let mut blocks = Vec::new();
    for fork in ALL_FORKS {
        blocks.push((fork, node.extend(fork, fork.time, &[]).await));
    }
    let last = ALL_FORKS[5];
    blocks.push((last, node.extend(last, last.time + 1, &transactions()).await));
    (node, blocks)
}

pub(crate) async fn genesis_hash(node: &mut TestNode) -> Value {
    let first = node.public("eth_getBlockByNumber", json!(["0x0", false])).await;
    first.expect("a block")["hash"].clone()
}

async fn witness_of(node: &mut TestNode, hash: &Value) -> Witness {
    let witness = node.public("debug_executionWitnessByBlockHash", json!([hash])).await;
    serde_json::from_value(witness.expect("a witness")).expect("its form")
}

/// A witness in the form of `debug_executionWitness`.
fn json_of(witness: &Witness) -> Value {
    let [state, codes, headers] = witness.lists().map(|list| {
        list.iter().map(|item| json!(Bytes::copy_from_slice(item))).collect::<Vec<_>>()
    });
    json!({"state": state, "codes": codes, "headers": headers})
}

/// Answers of a source: by method and parameters, JSON text or an error.
type Script = dyn Fn(&str, &Value) -> Result<Value, Error> + Send + Sync;

/// A source that answers by a script.
struct ScriptedSource(Box<Script>);

impl Handler for ScriptedSource {
    fn call(&self, method: &str, params: Option<&RawValue>) -> Result<Json, Error> {
        let params = params.map_or(Value::Null, |params| {
            serde_json::from_str(params.get()).expect("it was read already")
        });
        Json::of(&(self.0)(method, &params)?)
    }
}

/// Begins to answer by a script; the source's URL.
async fn scripted(
    script: impl Fn(&str, &Value) -> Result<Value, Error> + Send + Sync + 'static,
) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("bound"));
    let options = ServerOptions::new(None, Limits::engine());
    let handler = Arc::new(ScriptedSource(Box::new(script)));
    tokio::spawn(serve(listener, options, handler, std::future::pending()));
    url
}

/// A source that has these witnesses, by hash, as geth names the method.
async fn source_of(witnesses: BTreeMap<String, Value>) -> String {
    scripted(move |method, params| match method {
        "debug_executionWitnessByHash" => {
            let hash = params[0].as_str().expect("a hash");
            witnesses.get(hash).cloned().ok_or_else(|| Error::new(Code::Server, "block not found"))
        }
        method => Err(Error::method_not_found(method)),
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_on_its_engine_port_alone_show_the_consensus_client() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("UTF-8");
    let mut node = StatelessTest::start(&genesis_of_osaka(), &[path]).await;
    node.public("eth_chainId", json!([])).await.expect("an answer");
    assert_eq!(node.status().await["consensusClient"], Value::Null);
    node.call("eth_chainId", json!([])).await.expect("an answer");
    assert_eq!(node.status().await["consensusClient"]["method"], "eth_chainId");
    let path = "/engine/v1/identity";
    let reply = node.engine.request(Method::GET, path, HeaderMap::new(), Vec::new()).await;
    assert_eq!(reply.expect("an answer").status, StatusCode::OK);
    assert_eq!(node.status().await["consensusClient"]["method"], path);
}

#[tokio::test(flavor = "multi_thread")]
async fn blocks_of_our_node_are_verified_over_every_way_to_it() {
    let (mut node, blocks) = chain_of_all_forks().await;
    let genesis = genesis_hash(&mut node).await;
    let folder = tempfile::tempdir().expect("a folder");
    for (index, (_, envelope)) in blocks.iter().enumerate() {
        let hash = &envelope["executionPayload"]["blockHash"];
        let witness = witness_of(&mut node, hash).await;
        let (name, content) = match index % 4 {
            0 => (format!("{}.json", text(hash)), json_of(&witness).to_string().into_bytes()),
            1 => {
                (format!("{}.ssz", text(hash)), parts(witness::ssz::parts(&witness).expect("SSZ")))
            }
            2 => (
                format!("{}-{}.rlp.gz", index + 1, &text(hash)[2..]),
                gzip(&parts(witness::rlp::parts(&witness))),
            ),
            _ => (text(hash).to_owned(), parts(witness::rlp::parts(&witness))),
        };
        std::fs::write(folder.path().join(name), content).expect("written");
    }
    let ipc = node.node.ipc_path.clone().expect("a socket");
    let http = node.node.http_addr;
    let sources = [
        format!("ws://{http}"),
        format!("http://{http}"),
        http.to_string(),
        ipc.display().to_string(),
        folder.path().display().to_string(),
    ];
    for from in sources {
        println!("from {from}");
        let mut test = StatelessTest::start(&genesis_of_all_forks(), &[&from]).await;
        assert_eq!(test.choose(&genesis).await["status"], "VALID", "the genesis is known");
        for (fork, envelope) in &blocks {
            test.adopt(*fork, envelope).await;
        }
        for (method, block) in [("eth_getBlockByNumber", json!("0x7")), {
            ("eth_getBlockByHash", blocks[6].1["executionPayload"]["blockHash"].clone())
        }] {
            for full in [true, false] {
                let params = json!([block, full]);
                let theirs = node.public(method, params.clone()).await;
                assert_eq!(test.public(method, params).await, theirs, "{method}");
            }
        }
        test.node.stop().await;
    }
}

pub(crate) fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

fn parts(parts: Vec<Bytes>) -> Vec<u8> {
    parts.iter().flat_map(|part| part.to_vec()).collect()
}

pub(crate) fn gzip(content: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(content).expect("memory");
    packed.finish().expect("memory")
}

#[tokio::test(flavor = "multi_thread")]
async fn blocks_are_verified_as_they_come_from_a_running_chain() {
    let mut node = TestNode::start(genesis_of_osaka()).await;
    let genesis = genesis_hash(&mut node).await;
    let url = format!("ws://{}", node.node.http_addr);
    let mut test = StatelessTest::start(&genesis_of_osaka(), &[&url]).await;
    assert_eq!(test.choose(&genesis).await["status"], "VALID");
    for time in 1..=20 {
        // The consensus client sends the payload to both at a time: the witness comes later.
        let attributes = attributes(time, 3);
        let sent = if time == 3 { raw(&transactions()[..3]) } else { Vec::new() };
        let params = json!([node.head().await, attributes, sent, "0x"]);
        let envelope = node.ok("testing_buildBlockV1", params).await;
        let (judged, ()) =
            tokio::join!(test.judged(OSAKA, &envelope), node.adopt(OSAKA, &envelope));
        assert_eq!(judged["status"], "VALID", "{judged}");
        test.adopt(OSAKA, &envelope).await;
    }
    assert_eq!(test.refused(0).await, 0);
    test.node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payload_without_a_witness_is_syncing_and_valid_once_it_came() {
    let mut node = TestNode::start(genesis_of_osaka()).await;
    let genesis = genesis_hash(&mut node).await;
    let envelope = node.extend(OSAKA, 1, &[]).await;
    let hash = envelope["executionPayload"]["blockHash"].clone();
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().to_str().expect("UTF-8");
    let free = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
    let set = |options: &mut StatelessOptions| options.ports.metrics = Some(free);
    let mut test = StatelessTest::start_with(&genesis_of_osaka(), &[place], set).await;
    let scraped = scraped(&test).await;
    for line in ["deponent_syncing 1", "deponent_head_timestamp_seconds 0"] {
        assert!(scraped.lines().any(|told| told.starts_with(line)), "{line}: {scraped}");
    }

    // Before the first fork choice nothing is known to be valid, and nothing waits.
    assert_eq!(test.send(OSAKA, &envelope).await["status"], "SYNCING");
    assert_eq!(
        test.public("eth_syncing", json!([])).await,
        Ok(json!({
            "startingBlock": "0x0", "currentBlock": "0x0", "highestBlock": "0x1",
        }))
    );
    assert_eq!(test.choose(&hash).await["status"], "SYNCING");
    let status = test.status().await;
    assert_eq!(status["anchor"]["hash"], genesis, "the parent of the first head: {status}");
    assert_eq!(test.send(OSAKA, &envelope).await["status"], "SYNCING");
    let witness = witness_of(&mut node, &hash).await;
    let file = folder.path().join(format!("{}.json", text(&hash)));
    std::fs::write(file, json_of(&witness).to_string().into_bytes()).expect("written");
    let scraped = self::scraped(&test).await;
    let highest = "deponent_block_number{block=\"highest_known\"} 1";
    assert!(scraped.lines().any(|told| told.starts_with(highest)), "{scraped}");
    test.adopt(OSAKA, &envelope).await;
    assert_eq!(test.public("eth_syncing", json!([])).await, Ok(json!(false)));
    let scraped = self::scraped(&test).await;
    for line in [
        "deponent_syncing 0",
        "deponent_head_timestamp_seconds 1",
        "deponent_block_number{block=\"head\"} 1",
        highest,
    ] {
        assert!(scraped.lines().any(|told| told.starts_with(line)), "{line}: {scraped}");
    }
    test.node.stop().await;
}

/// The metrics of a node that has a port of them.
async fn scraped(test: &StatelessTest) -> String {
    let address = test.node.metrics_addr.expect("a port");
    let (_, text) = crate::metrics::request(address, "GET", "/metrics", "", b"").await;
    String::from_utf8(text).expect("UTF-8")
}

/// All ways in which a witness can be no good, each once and each for good.
#[tokio::test(flavor = "multi_thread")]
async fn a_witness_that_is_no_good_is_refused_and_the_next_is_taken() {
    let mut node = TestNode::start(genesis_of_osaka()).await;
    let genesis = genesis_hash(&mut node).await;
    let first = node.extend(OSAKA, 1, &[]).await;
    let envelope = node.extend(OSAKA, 2, &transactions()[..3]).await;
    let hash = envelope["executionPayload"]["blockHash"].clone();
    let first_hash = first["executionPayload"]["blockHash"].clone();
    let other = witness_of(&mut node, &first_hash).await;
    let whole = witness_of(&mut node, &hash).await;
    let json = json_of;
    let mut bad = Vec::new();
    for index in 0..whole.state.len() {
        let mut less = whole.clone();
        less.state.remove(index);
        bad.push((format!("without node {index}"), json(&less)));
    }
    let mut less = whole.clone();
    less.headers.clear();
    bad.push(("without headers".into(), json(&less)));
    bad.push(("of another block".into(), json(&other)));
    bad.push(("that is none".into(), json!({"state": 1, "codes": [], "headers": []})));
    bad.push(("that is empty".into(), json!({"state": [], "codes": [], "headers": []})));
    let mut changed = json(&whole);
    changed["state"][0] = json!("0xc0");
    bad.push(("with a node that was changed".into(), changed));

    let whole = json(&whole);
    let other = json(&other);
    for (what, bad) in bad {
        println!("a witness {what}");
        let given = Arc::new(AtomicUsize::new(0));
        let (hash_text, whole_now) = (text(&hash).to_owned(), whole.clone());
        let (of_first, counted) = (other.clone(), given.clone());
        let url = scripted(move |method, params| match method {
            "debug_executionWitnessByBlockHash" if params[0] == hash_text.as_str() => {
                let is_first = counted.fetch_add(1, Ordering::Relaxed) == 0;
                Ok(if is_first { bad.clone() } else { whole_now.clone() })
            }
            "debug_executionWitnessByBlockHash" => Ok(of_first.clone()),
            method => Err(Error::method_not_found(method)),
        })
        .await;
        let mut test = StatelessTest::start(&genesis_of_osaka(), &[&url]).await;
        assert_eq!(test.choose(&genesis).await["status"], "VALID");
        test.adopt(OSAKA, &first).await;
        test.adopt(OSAKA, &envelope).await;
        assert!(given.load(Ordering::Relaxed) >= 2, "the bad one was taken");
        test.node.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_source_is_asked_where_one_lies_or_is_gone() {
    let (mut node, blocks) = chain_of_all_forks().await;
    let genesis = genesis_hash(&mut node).await;
    let mut less = BTreeMap::new();
    for (_, envelope) in &blocks {
        let hash = &envelope["executionPayload"]["blockHash"];
        let mut witness = witness_of(&mut node, hash).await;
        witness.headers.clear();
        less.insert(text(hash).to_owned(), json_of(&witness));
    }
    let liar = source_of(less).await;
    // Nothing listens there.
    let gone = "http://127.0.0.1:1";
    let honest = format!("http://{}", node.node.http_addr);
    let mut test = StatelessTest::start(&genesis_of_all_forks(), &[&liar, gone, &honest]).await;
    assert_eq!(test.choose(&genesis).await["status"], "VALID");
    for (fork, envelope) in &blocks {
        test.adopt(*fork, envelope).await;
    }
    let status = test.status().await;
    assert_eq!(status["sources"][2]["refused"], 0, "{status}");
    test.node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_comes_back_is_asked_again() {
    let mut node = TestNode::start(genesis_of_osaka()).await;
    let genesis = genesis_hash(&mut node).await;
    let envelope = node.extend(OSAKA, 1, &[]).await;
    let hash = envelope["executionPayload"]["blockHash"].clone();
    let witness = json_of(&witness_of(&mut node, &hash).await);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("bound"));
    let mut test = StatelessTest::start(&genesis_of_osaka(), &[&url]).await;
    assert_eq!(test.choose(&genesis).await["status"], "VALID");
    // It takes connections and hangs up on them, and then it answers.
    let hanging_up = std::thread::spawn(move || {
        for _ in 0..3 {
            drop(listener.accept().expect("a connection"));
        }
        listener
    });
    let early = test.send(OSAKA, &envelope).await;
    assert_eq!(early["status"], "SYNCING", "{early}");
    let listener = tokio::task::spawn_blocking(|| hanging_up.join().expect("it ends"));
    let listener = listener.await.expect("it ends");
    listener.set_nonblocking(true).expect("a socket");
    let listener = tokio::net::TcpListener::from_std(listener).expect("a socket");
    let handler = ScriptedSource(Box::new(move |method, _| match method {
        "debug_executionWitness" => Ok(witness.clone()),
        method => Err(Error::method_not_found(method)),
    }));
    let options = ServerOptions::new(None, Limits::engine());
    tokio::spawn(serve(listener, options, Arc::new(handler), std::future::pending()));
    test.adopt(OSAKA, &envelope).await;
    test.node.stop().await;
}

/// A payload with other fields and the hash that they give.
fn forged(version: u8, envelope: &Value, name: &str, value: Value) -> Value {
    let mut forged = envelope.clone();
    forged["executionPayload"][name] = value;
    let call: NewPayload = new_payload_call(version, &forged);
    let sidecar = call.sidecar();
    let block = execution::decode_payload(call.payload, &sidecar).expect("a block");
    forged["executionPayload"]["blockHash"] = json!(block.hash());
    forged
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_block_is_invalid_and_so_is_what_follows_it() {
    let mut node = TestNode::start(genesis_of_osaka()).await;
    let genesis = genesis_hash(&mut node).await;
    let first = node.extend(OSAKA, 1, &[]).await;
    let second = node.extend(OSAKA, 2, &transactions()[..2]).await;
    let [first_hash, second_hash] =
        [&first, &second].map(|envelope| envelope["executionPayload"]["blockHash"].clone());
    let wrong_root = forged(4, &second, "stateRoot", json!(B256::repeat_byte(9)));
    let wrong_gas = forged(4, &second, "gasUsed", json!("0x5208"));
    let wrong_limit = forged(4, &second, "gasLimit", json!("0x1"));
    let hash_of = |envelope: &Value| envelope["executionPayload"]["blockHash"].clone();
    let child = forged(4, &second, "parentHash", hash_of(&wrong_root));
    let witness = json_of(&witness_of(&mut node, &second_hash).await);
    let of_first = json_of(&witness_of(&mut node, &first_hash).await);
    let mut witnesses = BTreeMap::from([(text(&first_hash).to_owned(), of_first)]);
    // It says nothing about the gas limit: the header alone shows that.
    for envelope in [&second, &wrong_root, &wrong_gas] {
        witnesses.insert(text(&hash_of(envelope)).to_owned(), witness.clone());
    }
    let url = source_of(witnesses).await;
    let mut test = StatelessTest::start(&genesis_of_osaka(), &[&url]).await;
    assert_eq!(test.choose(&genesis).await["status"], "VALID");
    test.adopt(OSAKA, &first).await;
    for (wrong, words) in [
        (&wrong_root, "state root"),
        (&wrong_gas, "gas used"),
        (&wrong_limit, "gas limit"),
        (&child, "state root"),
    ] {
        for _ in 0..2 {
            let status = test.judged(OSAKA, wrong).await;
            assert_eq!(status["status"], "INVALID", "{status}");
            assert_eq!(status["latestValidHash"], first_hash, "{status}");
            assert!(text(&status["validationError"]).contains(words), "{status}");
        }
        assert_eq!(test.choose(&hash_of(wrong)).await["status"], "INVALID");
    }
    // The hash of other bytes: nothing is remembered of it.
    let mut misnamed = second.clone();
    misnamed["executionPayload"]["gasUsed"] = json!("0x1");
    let status = test.send(OSAKA, &misnamed).await;
    assert_eq!((&status["status"], &status["latestValidHash"]), (&json!("INVALID"), &Value::Null));
    test.adopt(OSAKA, &second).await;
    assert_eq!(test.refused(0).await, 0, "the witness was good");
    test.node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ancestors_that_were_missed_are_fetched_from_a_source() {
    let (mut node, blocks) = chain_of_all_forks().await;
    let genesis = genesis_hash(&mut node).await;
    let head = blocks[6].1["executionPayload"]["blockHash"].clone();
    let finalized = blocks[2].1["executionPayload"]["blockHash"].clone();
    let url = format!("http://{}", node.node.http_addr);

    // From the finalized block of the first fork choice on.
    let mut test = StatelessTest::start(&genesis_of_all_forks(), &[&url]).await;
    assert_eq!(test.choose_with(&head, &finalized).await["status"], "SYNCING");
    assert_eq!(test.status().await["anchor"]["hash"], finalized);
    test.reach(&head).await;
    assert_eq!(test.choose_with(&head, &finalized).await["status"], "VALID");
    let block = test.public("eth_getBlockByNumber", json!(["finalized", false])).await;
    // Of the anchor there is the header alone, where its child's witness came before itself.
    match block {
        Ok(block) => assert_eq!(block["hash"], finalized),
        Err(error) => assert!(error.is(Code::PrunedHistory), "{error}"),
    }
    let header = test.public("eth_getHeaderByNumber", json!(["finalized"])).await;
    assert_eq!(header.expect("a header")["number"], "0x3");
    // A block of before the anchor cannot be judged.
    let (fork, early) = &blocks[0];
    assert_eq!(test.send(*fork, early).await["status"], "SYNCING");
    test.node.stop().await;

    // From the block that the operator names.
    let anchor = serde_json::from_value(genesis).expect("a hash");
    let set = |options: &mut StatelessOptions| options.anchor = Some(anchor);
    let mut test = StatelessTest::start_with(&genesis_of_all_forks(), &[&url], set).await;
    let (fork, last) = &blocks[6];
    assert_eq!(test.send(*fork, last).await["status"], "SYNCING", "its parent is missing");
    test.reach(&head).await;
    test.adopt(*fork, last).await;

    // After a restart it begins anew, at the next fork choice.
    test.node.stop().await;
    let mut test = StatelessTest::start(&genesis_of_all_forks(), &[&url]).await;
    let before = blocks[4].1["executionPayload"]["blockHash"].clone();
    assert_eq!(test.choose_with(&head, &before).await["status"], "SYNCING");
    test.reach(&head).await;
    test.node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_gives_other_blocks_and_bodies_is_not_believed() {
    let (mut node, blocks) = chain_of_all_forks().await;
    let genesis = genesis_hash(&mut node).await;
    let hashes: Vec<_> = blocks
        .iter()
        .map(|(_, envelope)| envelope["executionPayload"]["blockHash"].clone())
        .collect();
    let mut raws = Vec::new();
    for hash in &hashes {
        let raw = node.public("debug_getRawBlock", json!([hash])).await.expect("a block");
        raws.push(raw);
    }
    // The header of the last, and the body of the one before.
    let [header, body] = [6, 5].map(|index| {
        let raw = hex::decode(text(&raws[index])).expect("hex");
        execution::decode_block(&raw).expect("a block").into_block()
    });
    let mixed = execution::Block { header: header.header, body: body.body };
    let mixed = json!(Bytes::from(alloy_rlp::encode(mixed)));
    let first = raws[0].clone();
    let wrong_block = scripted(move |method, _| match method {
        "debug_getRawBlock" => Ok(first.clone()),
        method => Err(Error::method_not_found(method)),
    });
    let wrong_body = scripted(move |method, _| match method {
        "debug_getRawBlock" => Ok(mixed.clone()),
        method => Err(Error::method_not_found(method)),
    });
    let honest = format!("http://{}", node.node.http_addr);
    let sources = [&*wrong_block.await, &*wrong_body.await, &*honest];
    let mut test = StatelessTest::start(&genesis_of_all_forks(), &sources).await;
    assert_eq!(test.choose(&genesis).await["status"], "VALID");
    test.reach(&hashes[6]).await;
    test.node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_head_moves_between_branches() {
    let mut node = TestNode::start(genesis_of_osaka()).await;
    let genesis = genesis_hash(&mut node).await;
    let url = format!("ws://{}", node.node.http_addr);
    let mut test = StatelessTest::start(&genesis_of_osaka(), &[&url]).await;
    assert_eq!(test.choose(&genesis).await["status"], "VALID");
    let first = node.extend(OSAKA, 1, &[]).await;
    let fork = node.head().await;
    test.adopt(OSAKA, &first).await;
    let mut branches = Vec::new();
    for times in [[2, 3], [4, 5]] {
        let answer = node.ok("engine_forkchoiceUpdatedV3", json!([state(&fork), null])).await;
        assert_eq!(answer["payloadStatus"]["status"], "VALID");
        let mut branch = Vec::new();
        for time in times {
            branch.push(node.extend(OSAKA, time, &[]).await);
        }
        for envelope in &branch {
            test.adopt(OSAKA, envelope).await;
        }
        branches.push(branch);
    }
    let hash_of = |envelope: &Value| envelope["executionPayload"]["blockHash"].clone();
    let [old, new] = [0, 1].map(|branch| hash_of(&branches[branch][1]));
    for head in [&old, &new, &fork, &old] {
        assert_eq!(test.choose(head).await["status"], "VALID");
        let told = test.public("eth_getBlockByNumber", json!(["latest", false])).await;
        assert_eq!(told.expect("a block")["hash"], *head);
    }
    let second = test.public("eth_getBlockByNumber", json!(["0x2", false])).await;
    assert_eq!(second.expect("a block")["hash"], hash_of(&branches[0][0]));
    // Safe and finalized blocks are ancestors of the head.
    let state =
        json!({"headBlockHash": old, "safeBlockHash": new, "finalizedBlockHash": B256::ZERO});
    let error = test.call("engine_forkchoiceUpdatedV3", json!([state, null])).await;
    assert!(error.expect_err("no ancestor").is(Code::InvalidForkchoiceState));
    test.node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_needs_a_state_is_refused_by_name() {
    let mut node = TestNode::start(genesis_of_osaka()).await;
    let genesis = genesis_hash(&mut node).await;
    let url = format!("http://{}", node.node.http_addr);
    let mut test = StatelessTest::start(&genesis_of_osaka(), &[&url]).await;
    let address = json!(["0x0000000000000000000000000000000000000000", "latest"]);
    for method in ["eth_getBalance", "eth_call", "eth_getLogs", "debug_executionWitness"] {
        let error = test.public(method, address.clone()).await.expect_err("it has no state");
        assert!(error.is(Code::MethodNotFound), "{error}");
        assert!(error.to_string().contains("--stateless"), "{error}");
    }
    let error = test.public("eth_unheardOf", json!([])).await.expect_err("there is none");
    assert!(error.is(Code::MethodNotFound) && !error.to_string().contains("--stateless"));
    let id = json!(["0x0000000000000001"]);
    let error = test.call("engine_getPayloadV5", id).await.expect_err("none was built");
    assert!(error.is(Code::UnknownPayload), "{error}");
    // The head is applied all the same.
    let choice = json!([state(&genesis), attributes(1, 3)]);
    let error = test.call("engine_forkchoiceUpdatedV3", choice).await.expect_err("no building");
    assert!(error.is(Code::InvalidPayloadAttributes), "{error}");
    assert_eq!(test.status().await["head"]["hash"], genesis);
    let known = test.call("engine_exchangeCapabilities", json!([[]])).await.expect("a list");
    let known: Vec<String> = serde_json::from_value(known).expect("texts");
    assert!(known.contains(&"engine_newPayloadV4".into()), "{known:?}");
    assert!(!known.iter().any(|name| name.starts_with("engine_getPayloadV")), "{known:?}");
    // A beacon node that is not offered these says so for each column of each block.
    let hashes = [B256::repeat_byte(1), B256::repeat_byte(2)];
    for version in 1..=4 {
        let method = format!("engine_getBlobsV{version}");
        let answer = if version == 1 { json!([null, null]) } else { Value::Null };
        let cells = hex::encode_prefixed([0xff; 16]);
        let params = if version == 4 { json!([hashes, cells]) } else { json!([hashes]) };
        assert!(known.contains(&method), "{known:?}");
        assert_eq!(test.call(&method, params).await.expect("an answer"), answer, "{method}");
        assert!(test.call(&method, json!([1])).await.is_err(), "{method}");
    }
    let ours = json!([{"code": "LH", "name": "a", "version": "b", "commit": "0x01020304"}]);
    let told = test.call("engine_getClientVersionV1", ours).await.expect("an answer");
    assert_eq!(told[0]["code"], "DP");
    for (method, answer) in [
        ("eth_chainId", json!("0x539")),
        ("net_version", json!("1337")),
        ("net_peerCount", json!("0x0")),
        ("net_listening", json!(false)),
        ("eth_syncing", json!(false)),
    ] {
        assert_eq!(test.public(method, json!([])).await, Ok(answer), "{method}");
    }
    test.node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_engine_api_is_there_over_rest_too() {
    let (mut node, blocks) = chain_of_all_forks().await;
    let genesis = genesis_hash(&mut node).await;
    let url = format!("http://{}", node.node.http_addr);
    let test = StatelessTest::start(&genesis_of_all_forks(), &[&url]).await;
    let options = client::ConnectOptions {
        secret: Some(secret()),
        wire: Some(client::Wire::Ssz),
        ..client::ConnectOptions::default()
    };
    let address = test.node.engine_addr.to_string();
    let mut client = client::EngineClient::connect_with(&address, options).await.expect("REST");
    let choice = |head: &Value| ForkchoiceState {
        head_block_hash: serde_json::from_value(head.clone()).expect("a hash"),
        safe_block_hash: B256::ZERO,
        finalized_block_hash: B256::ZERO,
    };
    let chosen = client.forkchoice_updated(choice(&genesis), None).await.expect("an answer");
    assert!(chosen.payload_status.is_valid(), "{chosen:?}");
    for (fork, envelope) in &blocks {
        let call = new_payload_call(fork.new, envelope);
        let end = Instant::now() + PATIENCE;
        loop {
            let status = client.new_payload(&call.payload, &call.sidecar()).await;
            let status = status.expect("an answer");
            if status.is_valid() {
                break;
            }
            assert!(status.is_syncing() && Instant::now() < end, "{status:?}");
        }
        let head = &envelope["executionPayload"]["blockHash"];
        let chosen = client.forkchoice_updated(choice(head), None).await.expect("an answer");
        assert!(chosen.payload_status.is_valid(), "{chosen:?}");
    }
    let forks = client.capabilities().await.expect("an answer").forks;
    assert!(forks.iter().any(|fork| fork == "amsterdam"), "{forks:?}");
    assert_eq!(client.identity().await.expect("an answer").len(), 1);
    test.node.stop().await;
}

/// An answer that never ends is given up, and the other source is asked.
#[tokio::test(flavor = "multi_thread")]
async fn an_endless_answer_is_given_up() {
    let mut node = TestNode::start(genesis_of_osaka()).await;
    let genesis = genesis_hash(&mut node).await;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let liar = format!("http://{}", listener.local_addr().expect("bound"));
    let sent = Arc::new(Mutex::new(0_usize));
    let counted = sent.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let counted = counted.clone();
            std::thread::spawn(move || {
                let mut request = [0; 4096];
                if std::io::Read::read(&mut stream, &mut request).is_err() {
                    return;
                }
                let head =
                    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{\"result\":\"";
                let mut sending = stream.write_all(head.as_bytes());
                let piece = [b'a'; 1 << 16];
                while sending.is_ok() {
                    sending = stream.write_all(&piece);
                    *counted.lock().expect("locked") += piece.len();
                }
            });
        }
    });
    let honest = format!("http://{}", node.node.http_addr);
    let mut test = StatelessTest::start(&genesis_of_osaka(), &[&liar, &honest]).await;
    assert_eq!(test.choose(&genesis).await["status"], "VALID");
    for time in 1..=3 {
        let envelope = node.extend(OSAKA, time, &[]).await;
        test.adopt(OSAKA, &envelope).await;
    }
    test.node.stop().await;
    println!("{} bytes were sent", sent.lock().expect("locked"));
}

/// A witness of 100 MB: longer than an ordinary answer, over HTTP and over a session.
#[tokio::test(flavor = "multi_thread")]
async fn a_witness_of_100_mb_is_taken() {
    const CONTRACTS: usize = 4_100;
    let mut world = World::new(CONTRACTS).expect("a world");
    let dir = tempfile::tempdir().expect("a directory");
    let mut options = NodeOptions::new(world.genesis.clone(), dir.path().join("data"));
    options.ports.ipc = Some(dir.path().join("node.ipc"));
    let node = Node::start(options).await.expect("a node");
    let (payload, sidecar) = world.build(node.engine(), CONTRACTS).expect("a block");
    let call = NewPayload::new(payload, &sidecar).expect("a call");
    let genesis = json!(node.engine().heads().head);
    let verdict =
        node.engine().new_payload(engine::Payload { execution: call.payload.clone(), sidecar });
    assert_eq!(verdict.expect("a verdict"), engine::Verdict::Valid);
    let params: Value = serde_json::from_str(call.to_json().expect("JSON").get()).expect("JSON");
    let document = serde_json::to_value(&world.genesis).expect("JSON");
    let ipc = node.ipc_path.as_ref().expect("a socket").display().to_string();
    for from in [format!("http://{}", node.http_addr), ipc] {
        let mut test = StatelessTest::start(&document, &[&from]).await;
        assert_eq!(test.choose(&genesis).await["status"], "VALID");
        let end = Instant::now() + PATIENCE;
        loop {
            let status = test.call("engine_newPayloadV4", params.clone()).await.expect("an answer");
            if status["status"] == "VALID" {
                break;
            }
            assert_eq!(status["status"], "SYNCING", "{status}");
            assert!(Instant::now() < end, "no verdict: {}", test.status().await);
        }
        test.node.stop().await;
    }
    node.stop().await;
}

/// A block of a public network with a witness that another tool made.
#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct RealBlock {
    name: String,
    chain_id: u64,
    block: Bytes,
    witness: Value,
}

impl RealBlock {
    fn all() -> Vec<Self> {
        let Some(folder) = testing::fixtures().map(|folder| folder.join("blocks")) else {
            println!("no real blocks: DEPONENT_FIXTURES is not set");
            return Vec::new();
        };
        let files = std::fs::read_dir(folder).expect("a folder");
        let mut files: Vec<_> = files.map(|file| file.expect("a file").path()).collect();
        files.sort();
        let read = |path: &std::path::PathBuf| std::fs::read(path).expect("a file");
        files.iter().map(|path| serde_json::from_slice(&read(path)).expect("a block")).collect()
    }

    fn block(&self) -> SealedBlock {
        execution::decode_block(&self.block).expect("a block")
    }

    /// The call of a consensus client for it.
    fn call(&self, chain: &ChainSpec) -> NewPayload {
        let block = self.block();
        let mut given: Witness = serde_json::from_value(self.witness.clone()).expect("a witness");
        given.sort_headers();
        // The block does not have its requests.
        let verified = execution::verify(chain, &block, None, &given).expect("it is valid");
        let (payload, _) = ExecutionPayload::from_block_unchecked(block.hash(), &block);
        let hashes = block.body.transactions.iter();
        let hashes = hashes.filter_map(alloy_consensus::Transaction::blob_versioned_hashes);
        NewPayload {
            payload,
            versioned_hashes: hashes.flatten().copied().collect(),
            parent_beacon_block_root: block.header.parent_beacon_block_root,
            execution_requests: block.header.requests_hash.map(|_| verified.requests.to_vec()),
        }
    }
}

/// Drives blocks that follow each other through a node without a state, which begins before the
/// first.
async fn drive_real(blocks: &[RealBlock]) {
    let chain = ChainSpec::from_chain_id(blocks[0].chain_id).expect("a public network");
    let witness = |real: &RealBlock| (real.block().hash().to_string(), real.witness.clone());
    let url = source_of(blocks.iter().map(witness).collect()).await;
    let mut test = StatelessTest::of(chain.clone(), &[&url], |options| {
        options.anchor = Some(blocks[0].block().header.parent_hash);
    })
    .await;
    for real in blocks {
        println!("{}", real.name);
        let (block, call) = (real.block(), real.call(&chain));
        let version = match &call {
            NewPayload { parent_beacon_block_root: None, .. } => 2,
            NewPayload { execution_requests: None, .. } => 3,
            _ => 4,
        };
        let params: Value = serde_json::from_str(call.to_json().expect("JSON").get()).unwrap();
        let method = format!("engine_newPayloadV{version}");
        let end = Instant::now() + PATIENCE;
        loop {
            let status = test.call(&method, params.clone()).await.expect("an answer");
            if status["status"] == "VALID" {
                break;
            }
            assert_eq!(status["status"], "SYNCING", "{status}");
            assert!(Instant::now() < end, "no verdict: {}", test.status().await);
        }
        assert_eq!(test.choose(&json!(block.hash())).await["status"], "VALID");
        let number = test.public("eth_blockNumber", json!([])).await.expect("an answer");
        assert_eq!(number, json!(U64::from(block.header.number)));
        assert_eq!(test.refused(0).await, 0);
    }
    test.node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn real_blocks_are_verified() {
    for real in RealBlock::all() {
        drive_real(&[real]).await;
    }
}

/// Two blocks of mainnet, of which one is the parent of the other.
#[tokio::test(flavor = "multi_thread")]
async fn real_blocks_are_verified_one_after_the_other() {
    let mut all = RealBlock::all();
    if all.is_empty() {
        return;
    }
    all.retain(|real| ["mainnet-24628607", "mainnet-24628608"].contains(&&*real.name));
    all.sort_by_key(|real| real.block().header.number);
    let [parent, child] = &all[..] else { panic!("{} of them are there", all.len()) };
    assert_eq!(child.block().header.parent_hash, parent.block().hash());
    drive_real(&all).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn geth_is_a_source_of_witnesses() {
    let Some(nodes) = Nodes::start(crate::geth::world(40)).await else { return };
    let mut pair = nodes.pair().await;
    for transactions in &crate::geth::blocks(&nodes.world, &[40]) {
        pair.agree(transactions).await;
    }
    let geth = nodes.directory.path().join("geth.ipc").display().to_string();
    let document = serde_json::to_value(&nodes.world.genesis).expect("JSON");
    let mut test = StatelessTest::start(&document, &[&geth]).await;
    let [ours, _] = nodes.sessions().await;
    let first: Value =
        ours.call("eth_getBlockByNumber", json!(["0x0", false])).await.expect("a block");
    let head: Value =
        ours.call("eth_getBlockByNumber", json!(["latest", false])).await.expect("a block");
    assert_eq!(test.choose(&first["hash"]).await["status"], "VALID");
    // All blocks and all witnesses are geth's.
    test.reach(&head["hash"]).await;
    println!("{} blocks with geth's witnesses: {}", head["number"], test.status().await);
    test.node.stop().await;
    nodes.stop().await;
}

/// The page for operators lists every metric of the port.
#[tokio::test(flavor = "multi_thread")]
async fn all_metrics_are_on_the_page() {
    let free = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
    let set = |options: &mut StatelessOptions| options.ports.metrics = Some(free);
    let test = StatelessTest::start_with(&genesis_of_osaka(), &["127.0.0.1:1"], set).await;
    let scraped = scraped(&test).await;
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/stateless-node.md");
    let page = std::fs::read_to_string(page).expect("a page");
    let mut on_page: Vec<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `deponent_stateless_"))
        .filter_map(|line| line.split('`').next())
        .map(|name| name.split('{').next().unwrap_or(name))
        .collect();
    let mut told: Vec<&str> = scraped
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE deponent_stateless_"))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    on_page.sort_unstable();
    told.sort_unstable();
    assert_eq!(on_page, told);
    test.node.stop().await;
}
