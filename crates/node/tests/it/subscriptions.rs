//! Notifications of the chain to subscribers, over a WebSocket and over IPC.

use std::collections::HashSet;
use std::time::Instant;

use crate::support::*;
use alloy_eips::eip2718::Encodable2718;
use alloy_genesis::GenesisAccount;
use alloy_primitives::{Address, B256, Bytes, TxKind, address, bytes};
use deponent_node::demo::World;
use rpc::{Notifications, SessionClient};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

/// Logs twice, without data, with word 0 of the call's data as the topic.
const LOGGER_CODE: Bytes = bytes!("5f355f5fa15f355f5fa1");
pub(crate) const LOGGER: Address = address!("0x1099e40000000000000000000000000000000000");

/// The versions of Prague and Osaka: geth has the first methods, we both.
const VERSIONS: Fork = Fork { time: 0, forkchoice: 3, get: 5, new: 4 };

pub(crate) struct Chain {
    pub(crate) node: TestNode,
    world: World,
    time: u64,
    pub(crate) first_nonce: u64,
}

impl Chain {
    pub(crate) async fn start() -> Self {
        let mut world = World::new(1).expect("the world is made");
        let logger = GenesisAccount { code: Some(LOGGER_CODE), ..GenesisAccount::default() };
        world.genesis.alloc.insert(LOGGER, logger);
        let node = TestNode::start(json!(world.genesis)).await;
        let time = world.genesis.timestamp;
        Self { node, world, time, first_nonce: 0 }
    }

    /// Builds a block on `parent` whose transactions log these topics; `tag` makes it another one
    /// than its twins. The nonces begin as those of the parent's state are said to end.
    pub(crate) async fn build(&mut self, parent: &Value, topics: &[u8], tag: u8) -> Value {
        let sign = |(nonce, topic): (u64, &u8)| -> Bytes {
            let topic = B256::repeat_byte(*topic).into();
            let call = self.world.sign(nonce, TxKind::Call(LOGGER), topic, 100_000);
            call.expect("signs").encoded_2718().into()
        };
        let transactions: Vec<_> = (self.first_nonce..).zip(topics).map(sign).collect();
        self.build_of(parent, transactions, tag).await
    }

    /// Builds a block on `parent` of these transactions.
    pub(crate) async fn build_of(
        &mut self,
        parent: &Value,
        transactions: Vec<Bytes>,
        tag: u8,
    ) -> Value {
        self.time += 12;
        let attributes = attributes(self.time, VERSIONS.forkchoice);
        let params = json!([parent, attributes, transactions, Bytes::from(vec![tag])]);
        self.node.ok("testing_buildBlockV1", params).await
    }

    /// Has a block called valid, and gives its hash.
    pub(crate) async fn validate(&mut self, envelope: &Value) -> Value {
        let status = self.node.ok("engine_newPayloadV4", new_payload(4, envelope)).await;
        assert_eq!(status["status"], "VALID", "{status}");
        envelope["executionPayload"]["blockHash"].clone()
    }

    pub(crate) async fn choose(&mut self, hash: &Value) {
        let answer = self.node.ok("engine_forkchoiceUpdatedV3", json!([state(hash), null])).await;
        assert_eq!(answer["payloadStatus"]["status"], "VALID", "{answer}");
    }

    /// Builds a block, has it called valid and makes it the head.
    pub(crate) async fn extend(&mut self, parent: &Value, topics: &[u8], tag: u8) -> Value {
        let envelope = self.build(parent, topics, tag).await;
        let hash = self.validate(&envelope).await;
        self.choose(&hash).await;
        hash
    }

    /// A client over a WebSocket of the public port, and one over IPC.
    pub(crate) async fn sessions(&self) -> [SessionClient; 2] {
        let web = self.node.node.http_addr.to_string();
        let path = self.node.node.ipc_path.as_ref().expect("it listens");
        let ipc = format!("unix:{}", path.display());
        let connect = async |address: &str| {
            SessionClient::connect(address, None).await.expect("a connection")
        };
        [connect(&web).await, connect(&ipc).await]
    }
}

async fn next(told: &mut Notifications<Value>) -> Value {
    told.next().await.expect("a notification")
}

async fn subscribe(client: &SessionClient, method: &str, params: Value) -> Notifications<Value> {
    client.subscribe(method, params).await.expect("subscribed")
}

#[tokio::test(flavor = "multi_thread")]
async fn new_heads_and_logs_follow_the_chain_through_a_reorganisation() {
    let mut chain = Chain::start().await;
    let genesis = chain.node.head().await;
    for client in chain.sessions().await {
        let mut heads = subscribe(&client, "eth_subscribe", json!(["newHeads"])).await;
        let mut logs = subscribe(&client, "eth_subscribe", json!(["logs"])).await;
        let filter = json!({"address": LOGGER, "topics": [[B256::repeat_byte(2)]]});
        let mut twos = subscribe(&client, "eth_subscribe", json!(["logs", filter])).await;
        let other = json!({"address": Address::ZERO});
        let none = subscribe(&client, "eth_subscribe", json!(["logs", other])).await;

        let one = chain.extend(&genesis, &[1], 0).await;
        let one_head = next(&mut heads).await;
        let block = chain.node.ok("eth_getBlockByHash", json!([one, false])).await;
        for (name, value) in one_head.as_object().expect("a header") {
            assert_eq!(*value, block[name], "{name}");
        }
        let beside = HashSet::from(["size", "transactions", "uncles", "withdrawals"]);
        let missing = block.as_object().expect("a block").keys();
        let missing: HashSet<_> =
            missing.filter(|name| one_head.get(*name).is_none()).map(String::as_str).collect();
        assert_eq!(missing, beside);
        for index in ["0x0", "0x1"] {
            let log = next(&mut logs).await;
            assert_eq!(log["blockHash"], one);
            assert_eq!(log["logIndex"], index);
            assert_eq!(log["topics"], json!([B256::repeat_byte(1)]));
            assert_eq!(log["removed"], false);
        }

        // A second branch of two blocks, chosen at once.
        let first = chain.build(&genesis, &[2], 1).await;
        let first = chain.validate(&first).await;
        chain.first_nonce = 1;
        let second = chain.build(&first, &[3], 1).await;
        let second = chain.validate(&second).await;
        chain.first_nonce = 0;
        chain.choose(&second).await;
        for hash in [&first, &second] {
            assert_eq!(next(&mut heads).await["hash"], *hash);
        }
        let mut told = Vec::new();
        for _ in 0..6 {
            let log = next(&mut logs).await;
            let parts = ["removed", "blockHash", "logIndex"].map(|name| log[name].clone());
            told.push(parts);
        }
        let log =
            |removed: bool, hash: &Value, index: &str| [json!(removed), hash.clone(), json!(index)];
        let expected = [
            log(true, &one, "0x1"),
            log(true, &one, "0x0"),
            log(false, &first, "0x0"),
            log(false, &first, "0x1"),
            log(false, &second, "0x0"),
            log(false, &second, "0x1"),
        ];
        assert_eq!(told, expected);
        for _ in 0..2 {
            let log = next(&mut twos).await;
            assert_eq!((&log["blockHash"], &log["removed"]), (&first, &json!(false)));
        }

        // Back to the genesis: its header, and the logs that are gone, those first that came last.
        chain.choose(&genesis).await;
        assert_eq!(next(&mut heads).await["hash"], genesis);
        assert_eq!(next(&mut logs).await["blockHash"], second);
        for index in ["0x1", "0x0"] {
            let log = next(&mut twos).await;
            assert_eq!((&log["logIndex"], &log["removed"]), (&json!(index), &json!(true)));
        }
        assert!(none.unsubscribe("eth_unsubscribe").await.expect("an answer"));
        assert!(heads.unsubscribe("eth_unsubscribe").await.expect("an answer"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pending_transactions_are_told_as_hashes_or_whole() {
    let mut chain = Chain::start().await;
    let raw = |nonce| -> Bytes {
        let world = World::new(1).expect("the same world");
        let call = world.sign(nonce, TxKind::Call(LOGGER), B256::ZERO.into(), 100_000);
        call.expect("signs").encoded_2718().into()
    };
    let [web, ipc] = chain.sessions().await;
    let mut hashes = subscribe(&web, "eth_subscribe", json!(["newPendingTransactions"])).await;
    let name = "newPendingTransactions";
    let mut short = subscribe(&ipc, "eth_subscribe", json!([name, false])).await;
    let mut whole = subscribe(&ipc, "eth_subscribe", json!([name, true])).await;
    let mut sent = Vec::new();
    // The second one waits for the third.
    for nonce in [0, 2, 1] {
        let hash = chain.node.public("eth_sendRawTransaction", json!([raw(nonce)])).await;
        sent.push(hash.expect("a hash"));
    }
    for hash in [&sent[0], &sent[2], &sent[1]] {
        assert_eq!(next(&mut hashes).await, *hash);
        assert_eq!(next(&mut short).await, *hash);
        let found = chain.node.public("eth_getTransactionByHash", json!([hash])).await;
        assert_eq!(next(&mut whole).await, found.expect("it waits"));
    }
    let error = web.subscribe::<Value>("eth_subscribe", json!([name, "yes"])).await;
    assert!(error.expect_err("no boolean").to_string().contains("whole transactions"));

    // Their receipts, in one block: of the second, of all.
    let filter = json!({"transactionHashes": [sent[2], B256::ZERO]});
    let name = "transactionReceipts";
    let mut one = subscribe(&web, "eth_subscribe", json!([name, filter])).await;
    let mut all = subscribe(&web, "eth_subscribe", json!([name])).await;
    let genesis = chain.node.head().await;
    let block = chain.build_of(&genesis, vec![raw(0), raw(1), raw(2)], 0).await;
    let hash = chain.validate(&block).await;
    chain.choose(&hash).await;
    let receipts = chain.node.public("eth_getBlockReceipts", json!([hash])).await;
    let receipts = receipts.expect("receipts");
    assert_eq!(next(&mut one).await, json!([receipts[1]]));
    assert_eq!(next(&mut all).await, receipts);
    let many = json!({"transactionHashes": vec![B256::ZERO; 201]});
    let error = web.subscribe::<Value>("eth_subscribe", json!([name, many])).await;
    assert!(error.expect_err("too many").to_string().contains("exceed max number"));
}

#[tokio::test(flavor = "multi_thread")]
async fn syncing_is_told_when_it_begins_and_ends() {
    let mut chain = Chain::start().await;
    let genesis = chain.node.head().await;
    let first = chain.build(&genesis, &[], 0).await;
    // The second is built where the first is known, and given to a node that does not know it.
    let mut other = Chain::start().await;
    let first_hash = other.validate(&first).await;
    other.time = chain.time;
    let second = other.build(&first_hash, &[], 0).await;
    let [client, _] = chain.sessions().await;
    let mut told = subscribe(&client, "eth_subscribe", json!(["syncing"])).await;
    let status = chain.node.ok("engine_newPayloadV4", new_payload(4, &second)).await;
    assert_eq!(status["status"], "SYNCING");
    let now = json!({"startingBlock": "0x0", "currentBlock": "0x0", "highestBlock": "0x2"});
    assert_eq!(next(&mut told).await, json!({"syncing": true, "status": now}));
    chain.validate(&first).await;
    chain.choose(&second["executionPayload"]["blockHash"]).await;
    assert_eq!(next(&mut told).await, json!(false));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_that_is_not_offered_is_refused_with_the_reason() {
    let chain = Chain::start().await;
    for client in chain.sessions().await {
        for (method, params, words) in [
            ("eth_subscribe", json!([]), "subscription name"),
            ("eth_subscribe", json!(["newBlocks"]), "newHeads, logs, newPending"),
            ("eth_subscribe", json!([null]), "subscription name"),
            ("eth_subscribe", json!(["newPendingTransactions", 1]), "whole transactions"),
            ("eth_subscribe", json!(["newHeads", {}]), "takes 1"),
            ("eth_subscribe", json!(["logs", {"address": "0x1"}]), "address"),
            ("eth_subscribe", json!(["logs", {"topics": [1]}]), "topics[0]"),
            ("deponent_subscribeWitnesses", json!(["0x1"]), "last hash seen"),
            ("deponent_subscribeWitnesses", json!([B256::ZERO]), "not kept"),
        ] {
            let refused = client.subscribe::<Value>(method, &params).await;
            let error = refused.expect_err("refused").to_string();
            assert!(error.contains(words), "{method}{params}: {error}");
        }
    }
}

fn status_of(item: &Value) -> (Value, String) {
    (item["hash"].clone(), item["status"].as_str().expect("a status").to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn witnesses_are_told_of_with_what_becomes_of_their_blocks() {
    let mut chain = Chain::start().await;
    let genesis = chain.node.head().await;
    let [client, _] = chain.sessions().await;
    let method = "deponent_subscribeWitnesses";
    let mut told = subscribe(&client, method, json!([])).await;
    let envelope = chain.build(&genesis, &[1], 0).await;
    let params = new_payload(4, &envelope);
    let answer = chain.node.ok("engine_newPayloadWithWitnessV4", params).await;
    let one = answer["latestValidHash"].clone();
    let item = next(&mut told).await;
    assert_eq!(status_of(&item), (one.clone(), "valid".into()));
    assert_eq!((&item["number"], &item["parentHash"]), (&json!("0x1"), &genesis));
    // The sizes are bounds until the witness is put together, and exact then.
    let rlp = answer["witness"].as_str().expect("a witness").len() as u64 / 2 - 1;
    let method_of_json = item["urls"]["json"]["method"].as_str().expect("a method").to_owned();
    let params = &item["urls"]["json"]["params"];
    let json = chain.node.unix_client().await.call::<Value>(&method_of_json, params).await;
    let json = json.expect("a witness").to_string().len() as u64;
    let path = item["urls"]["ssz"].as_str().expect("a path");
    let (headers, get) = (rpc::rest::HeaderMap::new(), rpc::rest::Method::GET);
    let reply = chain.node.engine.request(get, path, headers, Bytes::new()).await;
    let ssz = reply.expect("an answer").body.len() as u64;
    let check_sizes = |item: &Value, is_exact: Option<bool>| {
        let sizes = &item["sizes"];
        let exact = sizes["exact"].as_bool().expect("a boolean");
        assert!(is_exact.is_none_or(|expected| expected == exact), "{sizes}");
        for (name, bytes) in [("ssz", ssz), ("rlp", rlp), ("json", json)] {
            let told = sizes[name].as_u64().expect("bytes");
            assert!(if exact { told == bytes } else { told >= bytes }, "{name}: {bytes}, {sizes}");
        }
    };
    check_sizes(&item, None);
    for name in ["ssz", "rlp"] {
        let path = item["urls"][name].as_str().expect("a path");
        let headers = rpc::rest::HeaderMap::new();
        let get = rpc::rest::Method::GET;
        let reply = chain.node.engine.request(get, path, headers, Bytes::new()).await;
        assert_eq!(reply.expect("an answer").status, 200, "{path}");
    }
    chain.choose(&one).await;
    let item = next(&mut told).await;
    assert_eq!(status_of(&item), (one.clone(), "canonical".into()));
    check_sizes(&item, Some(true));
    let choice =
        json!({"headBlockHash": one, "safeBlockHash": one, "finalizedBlockHash": B256::ZERO});
    chain.node.ok("engine_forkchoiceUpdatedV3", json!([choice, null])).await;
    assert_eq!(status_of(&next(&mut told).await), (one.clone(), "safe".into()));
    let choice = json!({"headBlockHash": one, "safeBlockHash": one, "finalizedBlockHash": genesis});
    chain.node.ok("engine_forkchoiceUpdatedV3", json!([choice, null])).await;
    let item = next(&mut told).await;
    assert_eq!(status_of(&item), (genesis.clone(), "finalized".into()));
    assert_eq!(item.get("sizes"), None, "genesis has no witness");
    // An unchanged block is not told again.
    let back =
        json!({"headBlockHash": one, "safeBlockHash": genesis, "finalizedBlockHash": genesis});
    chain.node.ok("engine_forkchoiceUpdatedV3", json!([back, null])).await;
    assert_eq!(status_of(&next(&mut told).await), (genesis.clone(), "safe".into()));
    chain.node.ok("engine_forkchoiceUpdatedV3", json!([choice, null])).await;
    assert_eq!(status_of(&next(&mut told).await), (one.clone(), "safe".into()));
    assert!(told.unsubscribe("deponent_unsubscribeWitnesses").await.expect("an answer"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscriber_that_comes_back_is_told_what_it_missed() {
    let mut chain = Chain::start().await;
    let method = "deponent_subscribeWitnesses";
    let [early, _] = chain.sessions().await;
    let mut earlier = subscribe(&early, method, json!([])).await;
    let genesis = chain.node.head().await;
    let one = chain.extend(&genesis, &[1], 0).await;
    chain.first_nonce = 1;
    let two = chain.extend(&one, &[2], 0).await;
    // The second block is left for a longer branch.
    let mut branch = vec![one.clone()];
    for (nonce, tag) in (1..).zip([1, 1, 1]) {
        chain.first_nonce = nonce;
        let parent = branch[branch.len() - 1].clone();
        let envelope = chain.build(&parent, &[3], tag).await;
        let hash = chain.validate(&envelope).await;
        branch.push(hash);
    }
    let last = branch[3].clone();
    chain.choose(&last).await;
    // A block on the head never left the chain.
    chain.first_nonce = 4;
    let above = chain.build(&last, &[], 2).await;
    let above = chain.validate(&above).await;
    // Subscribers are told of it some time after it was answered.
    while status_of(&next(&mut earlier).await) != (above.clone(), "valid".into()) {}
    let cases = [
        (&genesis, vec![], &branch[..]),
        (&one, vec![], &branch[1..]),
        (&two, vec![&two], &branch[1..]),
        (&branch[2], vec![], &branch[3..]),
        (&last, vec![], &[]),
        (&above, vec![], &[]),
    ];
    let mut followers = Vec::new();
    for (seen, left, joined) in cases {
        for client in chain.sessions().await {
            let mut told = subscribe(&client, method, json!([seen])).await;
            for hash in &left {
                assert_eq!(status_of(&next(&mut told).await), ((*hash).clone(), "reorged".into()));
            }
            for hash in joined {
                let item = next(&mut told).await;
                assert_eq!(status_of(&item), (hash.clone(), "canonical".into()));
            }
            followers.push(told);
        }
    }
    // And then what happens from now on.
    chain.first_nonce = 4;
    let next_hash = chain.extend(&last, &[4], 0).await;
    for told in &mut followers {
        for status in ["valid", "canonical"] {
            assert_eq!(status_of(&next(told).await), (next_hash.clone(), status.into()));
        }
    }
    // The head moves back, and no other block takes the place of those that leave.
    let mut choice = state(&next_hash);
    (choice["safeBlockHash"], choice["finalizedBlockHash"]) = (one.clone(), one.clone());
    chain.node.ok("engine_forkchoiceUpdatedV3", json!([choice, null])).await;
    chain.node.ok("debug_setHead", json!([2])).await;
    for client in chain.sessions().await {
        let mut told = subscribe(&client, method, json!([next_hash])).await;
        let left = [&next_hash, &branch[3], &branch[2]];
        for hash in left {
            assert_eq!(status_of(&next(&mut told).await), (hash.clone(), "reorged".into()));
        }
        for status in ["safe", "finalized"] {
            assert_eq!(status_of(&next(&mut told).await), (one.clone(), status.into()));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_witness_can_be_had_as_a_stateless_input() {
    let mut node = TestNode::start(genesis_of_all_forks()).await;
    let address = node.node.http_addr.to_string();
    let client = SessionClient::connect(&address, None).await.expect("a connection");
    let mut told = subscribe(&client, "deponent_subscribeWitnesses", json!([])).await;
    for fork in [ALL_FORKS[0], ALL_FORKS[4], ALL_FORKS[5]] {
        node.extend(fork, fork.time, &[]).await;
        let urls = next(&mut told).await["urls"].clone();
        let path = urls["statelessInput"].as_str().expect("a path");
        let (headers, get) = (rpc::rest::HeaderMap::new(), rpc::rest::Method::GET);
        let reply = node.engine.request(get, path, headers, Bytes::new()).await;
        assert_eq!(reply.expect("an answer").status, 200, "{path}");
        assert_eq!(next(&mut told).await["status"], "canonical");
    }
}

/// A client that has subscribed sixty times, and reads nothing more.
struct Stalled {
    stream: UnixStream,
    since: Instant,
}

impl Stalled {
    async fn start(chain: &Chain, method: &str, params: Value) -> Self {
        let path = chain.node.node.ipc_path.clone().expect("it listens");
        let mut stream = UnixStream::connect(path).await.expect("a connection");
        for id in 0..60 {
            let call = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
            stream.write_all(format!("{call}\n").as_bytes()).await.expect("written");
        }
        // All have begun before there is something to be told.
        let mut text = Vec::new();
        while String::from_utf8_lossy(&text).matches("\"result\"").count() < 60 {
            assert_ne!(stream.read_buf(&mut text).await.expect("answers"), 0);
        }
        Self { stream, since: Instant::now() }
    }

    /// The connection has ended, with the reason. On a machine so slow that nothing was read for as
    /// long as a client may take to read, it is cut without one.
    async fn ends(mut self) {
        let was_cut = self.since.elapsed() > rpc::Limits::engine().write_idle;
        let mut text = Vec::new();
        self.stream.read_to_end(&mut text).await.expect("it ends");
        let text = String::from_utf8_lossy(&text);
        let end = &text[text.len().saturating_sub(500)..];
        assert!(text.contains("fell behind") || was_cut, "{end}");
    }
}

/// Sending does not wait for subscribers, and other subscribers are told of everything.
#[tokio::test(flavor = "multi_thread")]
async fn a_subscriber_to_pending_transactions_that_never_reads_is_ended() {
    let mut chain = Chain::start().await;
    let world = World::new(1).expect("the same world");
    let params = json!(["newPendingTransactions", true]);
    let stalled = Stalled::start(&chain, "eth_subscribe", params).await;
    let [client, _] = chain.sessions().await;
    let mut told = subscribe(&client, "eth_subscribe", json!(["newPendingTransactions"])).await;
    // Each is one value of a kilobyte, sixty times: more than a socket holds by far.
    for nonce in 0..1_500 {
        let call = world.sign(nonce, TxKind::Call(LOGGER), Bytes::new(), 100_000);
        let raw = Bytes::from(call.expect("signs").encoded_2718());
        let sent = chain.node.public("eth_sendRawTransaction", json!([raw])).await;
        assert_eq!(next(&mut told).await, sent.expect("a hash"), "{nonce}");
    }
    stalled.ends().await;
}

/// A block and a fork choice do not wait for subscribers, and neither do other subscribers.
#[tokio::test(flavor = "multi_thread")]
async fn a_subscriber_that_never_reads_is_ended_and_harms_no_other() {
    let mut chain = Chain::start().await;
    let genesis = chain.node.head().await;
    let one = chain.extend(&genesis, &[1], 0).await;
    let two = chain.build(&genesis, &[2], 1).await;
    let two = chain.validate(&two).await;
    let stalled = Stalled::start(&chain, "deponent_subscribeWitnesses", json!([])).await;
    let [client, _] = chain.sessions().await;
    let mut told = subscribe(&client, "deponent_subscribeWitnesses", json!([])).await;
    // Each has two values of half a kilobyte, sixty times: more than a socket holds by far.
    for round in 0..350 {
        for (hash, other) in [(&two, &one), (&one, &two)] {
            chain.choose(hash).await;
            assert_eq!(status_of(&next(&mut told).await), (other.clone(), "reorged".into()));
            let item = next(&mut told).await;
            assert_eq!(status_of(&item), (hash.clone(), "canonical".into()), "{round}");
        }
    }
    stalled.ends().await;
}
