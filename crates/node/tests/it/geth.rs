//! Deponent and geth agree: on every block that our node builds, on its roots, and on each other's
//! witnesses. Runs when a geth binary is there: `GETH`, on the path, or where `go install` puts it.

use std::time::Duration;

use crate::geth_pool::{self, Pools};
use crate::support::with_floats;
use crate::{geth_estimates, geth_methods, geth_simulations, geth_traces};
use alloy_eips::eip2718::Encodable2718;
use alloy_eips::eip4844::kzg_to_versioned_hash;
use alloy_genesis::GenesisAccount;
use alloy_primitives::{Address, B256, Bytes, TxKind, U256, address, bytes};
use deponent_node::demo::World;
use deponent_node::{CallBounds, Node, NodeOptions};
use rpc::{Client, ClientError, Notifications, SessionClient};
use serde_json::{Value, json};
use testing::geth::{Geth, path_text};
use testing::{Random, rounds};

/// Stores word 1 of the call's data in the slot that word 0 names.
const LEDGER_CODE: Bytes = bytes!("60203560003555");
pub(crate) const LEDGER: Address = address!("0x1ed6e40000000000000000000000000000000000");
pub(crate) const LEDGER_SLOTS: u64 = 40;

/// Logs word 0 of the call's data, with words 0 and 1 as topics.
const LOGGER_CODE: Bytes = bytes!("5f355f526020355f3560205fa2");
/// Two contracts with this code.
pub(crate) const LOGGERS: [Address; 2] = [Address::repeat_byte(0x5a), Address::repeat_byte(0x5b)];

/// An account that only an override creates.
const OTHER: Address = address!("0x00000000000000000000000000000000000000bb");

/// Contracts of the genesis: the demo's, about 100 MB of code.
const CONTRACTS: usize = 4_069;

/// Longer requests geth refuses (128 MiB, less room for the payload), so that its stateless
/// execution cannot be asked about the block of 100 MB.
const GETH_BODY_BYTES: usize = 127 << 20;

const BEACON_ROOT: B256 = B256::repeat_byte(0xbe);

/// How long a call may take: more than any of them takes on a busy machine.
const CALL_TIME: Duration = Duration::from_secs(60);

/// Deploys a contract of one byte, `STOP`.
const DEPLOY: Bytes = bytes!("600160005360016000f3");

#[tokio::test(flavor = "multi_thread")]
async fn geth_accepts_our_chain_and_each_verifies_the_others_witnesses() {
    let Some(nodes) = Nodes::start(world(CONTRACTS)).await else { return };
    let world = &nodes.world;
    let mut pair = nodes.pair().await;
    let blocks = blocks(world, &[40, 691, CONTRACTS]);
    for transactions in &blocks {
        pair.agree(transactions).await;
        pair.calls_agree(&calls()).await;
    }
    for depth in 0..8 {
        let block = json!(format!("{depth:#x}"));
        pair.call_agrees(&json!([{"to": LEDGER, "data": B256::ZERO}, block, reader(LEDGER)])).await;
    }
    let sessions = nodes.sessions().await;
    pair.differ.extend(geth_methods::differences(&sessions[0], &sessions[1]).await);
    pair.differ.extend(geth_estimates::differences(&sessions).await);
    pair.differ.extend(geth_simulations::differences(&sessions).await);
    pair.subscriptions_agree(&sessions).await;
    let nonce = blocks.iter().map(Vec::len).sum::<usize>() as u64;
    pair.logs_agree(&sessions, world, nonce).await;
    // Those of the blocks that have left the chain wait, too.
    pair.pending_agrees(&sessions, world, nonce + 4).await;
    let differ = std::mem::take(&mut pair.differ);
    assert!(differ.is_empty(), "{}", differ.join("\n"));
    nodes.ours.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn geth_and_we_trace_alike() {
    let Some(nodes) = Nodes::start(world(40)).await else { return };
    let mut pair = nodes.pair().await;
    for transactions in &blocks(&nodes.world, &[40]) {
        pair.agree(transactions).await;
    }
    let differ = geth_traces::differences(&nodes.sessions().await).await;
    assert!(differ.is_empty(), "{} differ:\n{}", differ.len(), differ.join("\n"));
    nodes.ours.stop().await;
}

/// They take more gas than calls have by default.
#[tokio::test(flavor = "multi_thread")]
async fn geth_and_we_trace_alike_what_is_too_deep() {
    let calls = CallBounds { gas: u64::MAX, time: Some(CALL_TIME) };
    let Some(nodes) = Nodes::start_with(world(40), calls).await else { return };
    nodes.pair().await.agree(&[]).await;
    let differ = geth_traces::differences_in_depth(&nodes.sessions().await).await;
    assert!(differ.is_empty(), "{}", differ.join("\n"));
    nodes.ours.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn geth_takes_the_same_transactions_and_accepts_what_we_build_of_them() {
    let mut world = world(40);
    geth_pool::fund(&mut world.genesis);
    let Some(nodes) = Nodes::start(world).await else { return };
    let mut pair = nodes.pair().await;
    pair.agree(&[]).await;
    let sessions = nodes.sessions().await;
    let mut random = Random::seeded();
    let mut pools = Pools::new(&sessions, nodes.world.genesis.config.chain_id);
    for _ in 0..4 {
        pools.send(&mut random, rounds("DEPONENT_TRANSACTIONS", 100, 500)).await;
        pools.compare().await;
        let params = pair.build_from_pool().await;
        println!("a block of {}", params[0]["transactions"].as_array().map_or(0, Vec::len));
        pair.agree_on(params).await;
        pools.compare().await;
    }
    println!("{:#?}", pools.answers);
    assert!(pools.differ.is_empty(), "{}", pools.differ.join("\n"));
    nodes.ours.stop().await;
}

/// Both nodes on the same genesis.
pub(crate) struct Nodes {
    pub(crate) directory: tempfile::TempDir,
    pub(crate) world: World,
    ours: Node,
    geth: testing::geth::RunningGeth,
}

impl Nodes {
    /// Starts them, if there is a geth.
    pub(crate) async fn start(world: World) -> Option<Self> {
        let calls = CallBounds { time: Some(CALL_TIME), ..CallBounds::default() };
        Self::start_with(world, calls).await
    }

    /// Starts them with this bound of gas, and both with [`CALL_TIME`].
    async fn start_with(world: World, calls: CallBounds) -> Option<Self> {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let genesis = directory.path().join("genesis.json");
        let geth = Geth::find(genesis.clone())?;
        std::fs::write(genesis, serde_json::to_vec(&world.genesis).expect("JSON"))
            .expect("written");
        let mut options = NodeOptions {
            testing: true,
            calls,
            ..NodeOptions::new(world.genesis.clone(), directory.path().join("ours"))
        };
        options.ports.ipc = Some(directory.path().join("ours.ipc"));
        let ours = Node::start(options).await.expect("our node starts");
        let jwt_file = directory.path().join("ours/jwt.hex");
        let geth_ipc = directory.path().join("geth.ipc");
        let (ipc, gas) = (path_text(&geth_ipc), calls.gas.to_string());
        // Without locals: else it answers some refusals with a hash, and tries again later.
        let arguments = [
            "--ipcpath",
            ipc,
            "--txpool.nolocals",
            "--rpc.gascap",
            &gas,
            "--rpc.evmtimeout",
            "60s",
        ];
        let geth = geth.start(&directory.path().join("geth"), &jwt_file, &arguments);
        Some(Self { directory, world, ours, geth })
    }

    pub(crate) async fn pair(&self) -> Pair<'_> {
        let secret = Some(self.ours.jwt.clone());
        let address = self.ours.engine_addr.to_string();
        Pair {
            ours: Client::connect(&address, secret.clone()).await.expect("ours answers"),
            geth: Client::connect(&self.geth.engine_address, secret).await.expect("geth answers"),
            node: &self.ours,
            timestamp: self.world.genesis.timestamp,
            head: self.ours.engine().heads().head,
            differ: Vec::new(),
        }
    }

    pub(crate) async fn stop(self) {
        self.ours.stop().await;
    }

    /// Connections to both over IPC.
    pub(crate) async fn sessions(&self) -> [SessionClient; 2] {
        let session = async |name: &str| {
            let address = format!("unix:{}", self.directory.path().join(name).display());
            SessionClient::connect(&address, None).await.expect("it listens")
        };
        [session("ours.ipc").await, session("geth.ipc").await]
    }
}

/// Blocks that touch what witnesses are made of: nothing, codes, new codes, slots written, read,
/// and deleted until branches collapse. The last ones read so many codes.
pub(crate) fn blocks(world: &World, codes_read: &[usize]) -> Vec<Vec<Bytes>> {
    let mut nonce = 0;
    let mut sign = |to, input: Bytes, gas| -> Bytes {
        nonce += 1;
        world.sign(nonce - 1, to, input, gas).expect("signs").encoded_2718().into()
    };
    let store = |slot: u64, value: u64| -> Bytes {
        [B256::from(U256::from(slot)), B256::from(U256::from(value))].concat().into()
    };
    let ledger = TxKind::Call(LEDGER);
    let mut blocks = vec![vec![]];
    blocks.push((0..LEDGER_SLOTS / 2).map(|s| sign(ledger, store(s * 2, 0), 100_000)).collect());
    blocks.push(vec![
        sign(TxKind::Create, DEPLOY, 200_000),
        sign(ledger, store(1_000, 7), 100_000),
        sign(ledger, store(1, 0), 100_000),
        sign(TxKind::Call(Address::repeat_byte(0x77)), Bytes::new(), 50_000),
    ]);
    blocks
        .push((0..LEDGER_SLOTS / 2).map(|s| sign(ledger, store(s * 2 + 1, 0), 100_000)).collect());
    blocks.extend(logging_blocks(&mut sign));
    for (nonce, &contracts) in (nonce..).zip(codes_read) {
        let transaction = world.read_codes(nonce, contracts).expect("signs");
        blocks.push(vec![transaction.encoded_2718().into()]);
    }
    blocks.push(vec![]);
    blocks
}

/// Blocks with logs: none, some, and two transactions that log.
fn logging_blocks(mut sign: impl FnMut(TxKind, Bytes, u64) -> Bytes) -> Vec<Vec<Bytes>> {
    let mut log = |logger: usize, topics: [u8; 2]| {
        let input = topics.map(B256::with_last_byte).concat();
        sign(TxKind::Call(LOGGERS[logger]), input.into(), 100_000)
    };
    vec![
        vec![log(0, [1, 2])],
        vec![log(0, [1, 3]), log(1, [1, 2]), log(1, [3, 1])],
        vec![],
        vec![log(1, [2, 2]), log(0, [2, 1])],
    ]
}

/// An override: returns the slot that word 0 of the call's data names.
fn reader(address: Address) -> Value {
    json!({address.to_string(): {"code": "0x5f35545f5260205ff3"}})
}

/// Calls on the latest block: all that can be said of one, and all ways in which one ends.
fn calls() -> Vec<Value> {
    let code = |code: &str| json!({OTHER.to_string(): {"code": format!("0x{code}")}});
    // An op's value, stored at 0 in memory and returned.
    let op = |op: &str| code(&format!("{op}5f5260205ff3"));
    let on = |call: Value, overrides: Value| {
        let mut call = call;
        call["to"] = json!(OTHER);
        json!([call, "latest", overrides])
    };
    let poor = Address::repeat_byte(0x99);
    let balance = json!({"balance": "0xde0b6b3a7640000"});
    let mut funded = op("3a");
    funded[poor.to_string()] = balance;
    let mut calls = vec![
        json!([{}]),
        json!([{"to": LEDGER, "data": "0x"}, "latest"]),
        json!([{"to": LEDGER, "gas": "0x5207"}, "latest"]),
        json!([{"to": OTHER, "value": "0x1"}, "latest"]),
        json!([{"to": OTHER, "from": poor, "gasPrice": "0x3b9aca00"}, "latest"]),
        json!([{"data": DEPLOY}, "latest"]),
        json!([{"to": Address::with_last_byte(4), "input": "0x1234"}, "latest"]),
        json!([{"to": Address::with_last_byte(1), "input": "0x1234"}, "latest"]),
        on(json!({"from": poor, "gasPrice": "0x3b9aca00"}), funded.clone()),
        on(json!({"from": poor, "gasPrice": "0x1"}), funded.clone()),
        on(json!({"from": poor, "maxFeePerGas": "0x3b9aca00"}), funded.clone()),
        on(
            json!({"from": poor, "maxFeePerGas": "0x3b9aca00", "maxPriorityFeePerGas": "0x5"}),
            funded.clone(),
        ),
        on(json!({"from": poor, "maxPriorityFeePerGas": "0x5"}), funded),
        on(json!({"from": OTHER, "gas": "0xffffffffffff"}), op("5a")),
    ];
    // NUMBER, TIMESTAMP, BASEFEE, GASLIMIT, COINBASE, PREVRANDAO, CHAINID, ORIGIN, BLOBBASEFEE,
    // the hashes of this block and the one before it.
    for ops in ["43", "42", "48", "45", "41", "44", "46", "32", "4a", "4340", "6001430340"] {
        calls.push(on(json!({}), op(ops)));
    }
    let word = |text: &str| B256::left_padding_from(text.as_bytes());
    for text in ["5f5ffd", "60015ffd", "fe", "0c", "50", "5f56", "5b5f56"] {
        calls.push(on(json!({}), code(text)));
    }
    // Panic(0x11), and Error("no").
    calls.push(on(json!({}), code("634e487b715f5260116020526024601cfd")));
    let error = "6308c379a05f5260206020526002604052616e6f60f01b6060526064601cfd";
    calls.push(on(json!({}), code(error)));
    let slots = json!({B256::ZERO.to_string(): word("seven")});
    for kind in ["state", "stateDiff"] {
        for slot in 0..3_u8 {
            let mut overrides = reader(LEDGER);
            overrides[LEDGER.to_string()][kind] = slots.clone();
            calls.push(
                json!([{"to": LEDGER, "input": B256::with_last_byte(slot)}, "latest", overrides]),
            );
        }
    }
    calls.extend(overridden_calls());
    calls
}

/// Calls that see what is overridden, where the EVM might not look.
fn overridden_calls() -> Vec<Value> {
    // CREATE2 of the input with the salt 0, and a call of what was created.
    let factory = Address::left_padding_from(&[0x0c, 0x0d, 0xe0]);
    let creates = json!({"code": "0x365f5f375f365f5ff55f5f5f5f5f855af1503d5f5f3e3d5ff3"});
    // Returns slot 0 from its init code, as its code.
    let init = bytes!("5f545f5260205ff3");
    let created = factory.create2_from_code(B256::ZERO, &init);
    // A STORE there first: what it costs shows the value before.
    let stores = bytes!("60055f555a5f5260205ff3");
    let stored = factory.create2_from_code(B256::ZERO, &stores);
    let slots = json!({B256::ZERO.to_string(): B256::with_last_byte(42)});
    let mut calls = Vec::new();
    for kind in ["state", "stateDiff"] {
        for (address, input) in [(created, &init), (stored, &stores)] {
            let mut overrides = json!({factory.to_string(): creates});
            overrides[address.to_string()] = json!({kind: slots});
            calls.push(json!([{"to": factory, "input": input}, "latest", overrides]));
        }
        // The same at the top.
        let from = Address::repeat_byte(0x98);
        let overrides = json!({from.create(0).to_string(): {kind: slots}});
        calls.push(json!([{"from": from, "input": init}, "latest", overrides]));
        calls.push(json!([{"from": from, "input": stores}, "latest", overrides]));
    }
    // The gas of BALANCE of a precompiled contract that is overridden, and of one that is not.
    for byte in [1, 2, 9] {
        for fields in [json!({}), json!({"balance": "0x1"}), json!({"code": "0x00"})] {
            let gas = json!({"code": format!("0x5a60{byte:02x}31505a90035f5260205ff3")});
            let mut overrides = json!({OTHER.to_string(): gas});
            overrides[Address::with_last_byte(2).to_string()] = fields;
            calls.push(json!([{"to": OTHER}, "latest", overrides]));
        }
    }
    // The last nonce, of an account that creates, at the top and below it.
    let from = Address::repeat_byte(0x98);
    for nonce in ["0xffffffffffffffff", "0xfffffffffffffffe"] {
        let last = json!({from.to_string(): {"nonce": nonce}});
        calls.push(json!([{"from": from, "input": init}, "latest", last]));
        calls.push(json!([{"from": from, "to": OTHER}, "latest", last]));
        let creator = json!({"nonce": nonce, "code": "0x5f5f5ff05f525a60205260405ff3"});
        calls.push(json!([{"to": OTHER}, "latest", {OTHER.to_string(): creator}]));
    }
    calls
}

pub(crate) fn world(contracts: usize) -> World {
    let mut world = World::new(contracts).expect("the world is made");
    let storage = (0..LEDGER_SLOTS).map(|s| (U256::from(s).into(), U256::from(s + 1).into()));
    let ledger = GenesisAccount {
        code: Some(LEDGER_CODE),
        storage: Some(storage.collect()),
        ..GenesisAccount::default()
    };
    world.genesis.alloc.insert(LEDGER, ledger);
    for logger in LOGGERS {
        let code = Some(LOGGER_CODE);
        world.genesis.alloc.insert(logger, GenesisAccount { code, ..GenesisAccount::default() });
    }
    // Without one geth has the zero address, and we mainnet's.
    world.genesis.config.deposit_contract_address = Some(Address::repeat_byte(0xde));
    world
}

/// An answer without what only geth says: which opcode, how many were on the stack, for what gas
/// was missing, and why a precompiled contract failed.
pub(crate) fn told(answer: &Value) -> String {
    let text = answer.to_string();
    let words = [
        ("invalid opcode", "invalid opcode"),
        ("not defined", "invalid opcode"),
        ("stack underflow", "stack underflow"),
        ("out of gas", "out of gas"),
        ("precompile error", "precompile error"),
        ("invalid input length", "precompile error"),
    ];
    let told = words.into_iter().find(|(words, _)| text.contains(words));
    told.map_or(text, |(_, ours)| ours.into())
}

pub(crate) struct Pair<'a> {
    ours: Client,
    geth: Client,
    node: &'a Node,
    timestamp: u64,
    head: B256,
    /// Calls that were answered in two ways.
    differ: Vec<String>,
}

impl Pair<'_> {
    /// Builds a block on our node and lets both judge it, and each other's witness of it.
    pub(crate) async fn agree(&mut self, transactions: &[Bytes]) {
        let params = self.build(transactions).await;
        self.agree_on(params).await;
    }

    /// Lets both judge a payload, the parameters of `engine_newPayloadV4`, and each other's witness
    /// of it, and makes it the head.
    async fn agree_on(&mut self, mut params: Value) {
        let block = params[0]["blockNumber"].clone();
        let ours: Value =
            self.ours.call("engine_newPayloadWithWitnessV4", &params).await.expect("ours answers");
        let geth: Value =
            self.geth.call("engine_newPayloadWithWitnessV4", &params).await.expect("geth answers");
        assert_eq!(ours["status"], "VALID", "block {block}: {ours}");
        assert_eq!(geth["status"], "VALID", "block {block}: {geth}");
        assert_eq!(ours["latestValidHash"], geth["latestValidHash"]);
        let hash: B256 = serde_json::from_value(ours["latestValidHash"].clone()).expect("a hash");

        let record = self.node.engine().block(hash).unwrap().expect("a valid block is known");
        let blob: Bytes = serde_json::from_value(geth["witness"].clone()).expect("geth's witness");
        let witness = witness::rlp::decode(&blob).expect("geth's witness decodes");
        let chain = self.node.engine().chain();
        let verified = execution::verify(chain, &record.block, None, &witness)
            .unwrap_or_else(|error| panic!("block {block}, geth's witness: {error}"));
        assert_eq!(json!(verified.state_root), params[0]["stateRoot"]);

        if ours["witness"].as_str().expect("our witness").len() < GETH_BODY_BYTES {
            params.as_array_mut().expect("parameters").push(ours["witness"].clone());
            self.geth_verifies(&params).await;
        }

        let state = json!({
            "headBlockHash": hash, "safeBlockHash": hash, "finalizedBlockHash": B256::ZERO,
        });
        for client in [&mut self.ours, &mut self.geth] {
            let updated: Value = client
                .call("engine_forkchoiceUpdatedV3", json!([state, null]))
                .await
                .expect("an answer");
            assert_eq!(updated["payloadStatus"]["status"], "VALID", "block {block}: {updated}");
        }
        self.head = hash;
    }

    /// Our witness, the last of `params`, is enough for geth.
    async fn geth_verifies(&mut self, params: &Value) {
        let method = "engine_executeStatelessPayloadV4";
        let stateless: Value = self.geth.call(method, params).await.expect("geth answers");
        let block = &params[0]["blockNumber"];
        assert_eq!(stateless["status"], "VALID", "block {block}, our witness: {stateless}");
        for root in ["stateRoot", "receiptsRoot"] {
            assert_eq!(stateless[root], params[0][root], "block {block}");
        }
    }

    async fn calls_agree(&mut self, calls: &[Value]) {
        for call in calls {
            self.call_agrees(call).await;
        }
    }

    /// Both answer a call alike, be it with an error.
    async fn call_agrees(&mut self, params: &Value) {
        let mut answers = Vec::new();
        for client in [&mut self.ours, &mut self.geth] {
            answers.push(match client.call::<Value>("eth_call", params).await {
                Ok(output) => output,
                Err(ClientError::Rpc(error)) => json!([error.code, error.message, error.data]),
                Err(error) => panic!("{params}: {error}"),
            });
        }
        if told(&answers[0]) != told(&answers[1]) {
            self.differ.push(format!("{params}: ours {}, geth's {}", answers[0], answers[1]));
        }
    }

    /// Both tell subscribers the same of a block, in the same form.
    async fn subscriptions_agree(&mut self, sessions: &[SessionClient; 2]) {
        let mut told: Vec<Notifications<Value>> = Vec::new();
        for session in sessions {
            let params = json!(["newHeads"]);
            told.push(session.subscribe("eth_subscribe", params).await.expect("subscribed"));
        }
        self.agree(&[]).await;
        let mut heads = Vec::new();
        for told in &mut told {
            heads.push(told.next().await.expect("a header"));
        }
        // geth gives a member of a later fork as null.
        heads[1].as_object_mut().expect("a header").retain(|_, value| !value.is_null());
        if heads[0] != heads[1] {
            self.differ.push(format!("newHeads: ours {}, geth's {}", heads[0], heads[1]));
        }
    }

    /// Both tell subscribers the same logs while two blocks are added and then removed for another
    /// one.
    async fn logs_agree(&mut self, sessions: &[SessionClient; 2], world: &World, nonce: u64) {
        let filters = [json!({}), json!({"address": LOGGERS[1]})];
        let mut told: Vec<Vec<Notifications<Value>>> = Vec::new();
        for filter in &filters {
            let mut both = Vec::new();
            for session in sessions {
                let params = json!(["logs", filter]);
                both.push(session.subscribe("eth_subscribe", params).await.expect("subscribed"));
            }
            told.push(both);
        }
        let mut filters_told = self.filters(sessions, &filters).await;
        let parent = self.head;
        let log = |nonce: u64, logger: usize, topics: [u8; 2]| -> Bytes {
            let input = topics.map(B256::with_last_byte).concat().into();
            let call = world.sign(nonce, TxKind::Call(LOGGERS[logger]), input, 100_000);
            call.expect("signs").encoded_2718().into()
        };
        self.agree(&[log(nonce, 0, [1, 2]), log(nonce + 1, 1, [3, 1])]).await;
        self.agree(&[log(nonce + 2, 1, [1, 1]), log(nonce + 3, 0, [2, 1])]).await;
        self.filters_agree(sessions, &mut filters_told, [4, 2]).await;
        self.head = parent;
        self.agree(&[log(nonce, 1, [2, 2])]).await;
        self.filters_agree(sessions, &mut filters_told, [5, 3]).await;
        // Each of the four logs is added and removed, and the last one is added; half of them and
        // that one are the other logger's.
        for ((filter, count), both) in filters.iter().zip([9, 5]).zip(&mut told) {
            let mut logs = [Vec::new(), Vec::new()];
            for (told, logs) in both.iter_mut().zip(&mut logs) {
                while logs.len() < count {
                    let next = tokio::time::timeout(Duration::from_secs(60), told.next());
                    let log =
                        next.await.unwrap_or_else(|_| panic!("{filter}: no more than {logs:?}"));
                    logs.push(log.expect("a log"));
                }
            }
            let [mut ours, geth] = logs;
            // We tell of what leaves the newest first, as it is undone; geth the oldest first.
            let removed = &mut ours[count / 2..count - 1];
            assert!(removed.iter().all(|log| log["removed"] == true), "{removed:?}");
            removed.reverse();
            if ours != geth {
                self.differ.push(format!("logs {filter}: ours {ours:?}, geth's {geth:?}"));
            }
        }
    }

    /// Both show a transaction that waits, the block that would have it, and the state after that.
    async fn pending_agrees(&mut self, sessions: &[SessionClient; 2], world: &World, nonce: u64) {
        let to = LOGGERS[0];
        let input = [1, 2].map(B256::with_last_byte).concat().into();
        let signed = world.sign(nonce, TxKind::Call(to), input, 100_000).expect("signs");
        let (hash, raw) = (*signed.tx_hash(), Bytes::from(signed.encoded_2718()));
        let record = self.node.engine().block(self.head).expect("readable").expect("the head");
        let sender = record.senders[0];
        // NUMBER, as a call in the block sees it.
        let code = json!({to.to_string(): {"code": "0x435f5260205ff3"}});
        let calls = [
            ("eth_getTransactionByHash", json!([hash])),
            ("eth_getTransactionCount", json!([sender, "pending"])),
            ("eth_getBlockTransactionCountByNumber", json!(["pending"])),
            ("eth_getUncleCountByBlockNumber", json!(["pending"])),
            ("eth_getRawTransactionByBlockNumberAndIndex", json!(["pending", "0x0"])),
            ("eth_feeHistory", json!(["0x2", "pending", [50]])),
            ("eth_getStorageAt", json!([LEDGER, "0x1", "pending"])),
            ("eth_getCode", json!([LEDGER, "pending"])),
            ("eth_call", json!([{"to": to}, "pending", code])),
            ("eth_estimateGas", json!([{"to": to, "data": B256::ZERO}, "pending"])),
            ("eth_getBlockByNumber", json!(["pending", false])),
        ];
        let (mut told, mut ids, mut answers) = (Vec::new(), Vec::new(), Vec::new());
        for session in sessions {
            let params = json!(["newPendingTransactions", true]);
            let params = session.subscribe::<Value>("eth_subscribe", params).await;
            told.push(params.expect("subscribed"));
            let made = session.call::<Value>("eth_newPendingTransactionFilter", json!([])).await;
            ids.push(made.expect("a filter"));
            let sent = session.call::<B256>("eth_sendRawTransaction", json!([raw])).await;
            assert_eq!(sent.expect("it is taken"), hash);
        }
        for (session, (told, id)) in sessions.iter().zip(told.iter_mut().zip(&ids)) {
            // geth may tell of those that came back.
            let mut found = Vec::new();
            while found.is_empty() {
                let whole = told.next().await.expect("a transaction");
                found.extend(Some(whole).filter(|whole| whole["hash"] == json!(hash)));
            }
            let changes = "eth_getFilterChanges";
            let hashes = session.call::<Vec<Value>>(changes, json!([id])).await.expect("hashes");
            found.push(json!(hashes.contains(&json!(hash))));
            let count = json!([sender, "pending"]);
            loop {
                let count = session.call::<U256>("eth_getTransactionCount", &count).await;
                if count.expect("a nonce") == U256::from(nonce + 1) {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            for (method, params) in &calls {
                let answer = session.call::<Value>(method, params).await;
                let answer = answer.unwrap_or_else(|error| panic!("{method}{params}: {error}"));
                found.push(with_floats(answer));
            }
            let block = found.last_mut().expect("a block").as_object_mut().expect("an object");
            // These follow from the second in which it is made, and from the client's name.
            let beside = ["timestamp", "extraData", "size", "stateRoot", "parentBeaconBlockRoot"];
            block.retain(|name, value| {
                let is_absent = value.is_null() && !["hash", "nonce", "miner"].contains(&&**name);
                !is_absent && !beside.contains(&&**name)
            });
            answers.push(found);
        }
        let names = ["newPendingTransactions", "eth_getFilterChanges"].into_iter();
        for (index, name) in names.chain(calls.iter().map(|(method, _)| *method)).enumerate() {
            let (ours, geth) = (&answers[0][index], &answers[1][index]);
            if ours != geth {
                self.differ.push(format!("{name} pending: ours {ours}, geth's {geth}"));
            }
        }
    }

    /// Makes a filter of blocks and these of logs at both.
    async fn filters(&self, sessions: &[SessionClient; 2], logs: &[Value]) -> Vec<[Value; 2]> {
        let of_logs = logs.iter().map(|filter| ("eth_newFilter", json!([filter])));
        let mut made = Vec::new();
        for (method, params) in [("eth_newBlockFilter", json!([]))].into_iter().chain(of_logs) {
            let [ours, geth] = sessions.each_ref().map(|session| session.call(method, &params));
            made.push([ours.await.expect("a filter"), geth.await.expect("a filter")]);
        }
        made
    }

    /// Both filters tell the same of blocks, and of so many logs.
    async fn filters_agree(
        &mut self,
        sessions: &[SessionClient; 2],
        filters: &mut [[Value; 2]],
        logs: [usize; 2],
    ) {
        let heads = if logs[0] == 4 { 2 } else { 1 };
        for (ids, count) in filters.iter().zip([heads].into_iter().chain(logs)) {
            let mut told = [Vec::new(), Vec::new()];
            for ((session, id), told) in sessions.iter().zip(ids).zip(&mut told) {
                // geth collects them in the background.
                while told.len() < count {
                    let more = session.call::<Vec<Value>>("eth_getFilterChanges", json!([id]));
                    told.extend(more.await.expect("changes"));
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
            let [mut ours, geth] = told;
            // As in `logs_agree`.
            let removed = ours.iter().take_while(|log| log["removed"] == true).count();
            ours[..removed].reverse();
            if ours != geth {
                self.differ.push(format!("filters: ours {ours:?}, geth's {geth:?}"));
            }
        }
    }

    /// Builds a block out of our pool as a consensus client has it built.
    async fn build_from_pool(&mut self) -> Value {
        let hash = self.head;
        let state = json!({
            "headBlockHash": hash, "safeBlockHash": hash, "finalizedBlockHash": B256::ZERO,
        });
        // The first payload may be asked for before the pool has been looked at.
        for _ in 0..100 {
            let choice = json!([state, self.attributes()]);
            let chosen: Value =
                self.ours.call("engine_forkchoiceUpdatedV3", choice).await.expect("an answer");
            tokio::time::sleep(Duration::from_millis(50)).await;
            let id = [&chosen["payloadId"]];
            let mut built: Value =
                self.ours.call("engine_getPayloadV5", id).await.expect("a payload");
            if built["executionPayload"]["transactions"] != json!([]) {
                let commitments = built["blobsBundle"]["commitments"].as_array().cloned();
                let commitments = commitments.expect("a list").into_iter();
                let hashes = commitments.map(|commitment| {
                    let bytes: Bytes = serde_json::from_value(commitment).expect("bytes");
                    kzg_to_versioned_hash(&bytes)
                });
                let hashes: Vec<_> = hashes.collect();
                let payload = built["executionPayload"].take();
                return json!([payload, hashes, BEACON_ROOT, built["executionRequests"].take()]);
            }
        }
        panic!("the pool has transactions, and no block has one");
    }

    /// The attributes of the next block.
    fn attributes(&mut self) -> Value {
        self.timestamp += 12;
        json!({
            "timestamp": format!("{:#x}", self.timestamp),
            "prevRandao": B256::with_last_byte(9),
            "suggestedFeeRecipient": Address::repeat_byte(0xfe),
            "withdrawals": [{
                "index": "0x0", "validatorIndex": "0x1",
                "address": Address::repeat_byte(0x11), "amount": "0x64",
            }],
            "parentBeaconBlockRoot": BEACON_ROOT,
        })
    }

    async fn build(&mut self, transactions: &[Bytes]) -> Value {
        let attributes = self.attributes();
        let mut built: Value = self
            .ours
            .call("testing_buildBlockV1", json!([self.head, attributes, transactions]))
            .await
            .expect("the block builds");
        json!([
            built["executionPayload"].take(),
            [],
            BEACON_ROOT,
            built["executionRequests"].take()
        ])
    }
}
