//! A node in this process, on free ports of 127.0.0.1, with one client on each.

pub(crate) mod bench_program;
pub(crate) mod browser;

use std::path::PathBuf;

use alloy_consensus::{SignableTransaction, TxEip1559, TxEip2930, TxEip4844, TxEip7702, TxLegacy};
use alloy_eips::eip2718::Encodable2718;
use alloy_eips::eip7702::Authorization;
use alloy_primitives::{Address, B256, Bytes, Signature, TxKind, U256, address, uint};
use deponent_node::{Node, NodeOptions};
use engine_api::NewPayload;
use execution::Transaction;
use rpc::{Client, ClientError, Code, Error};
use serde_json::{Value, json};

use crate::schema;

/// The folder of the published chain, with its genesis, if there are fixtures.
pub(crate) fn published_chain() -> Option<(PathBuf, String)> {
    let folder = testing::fixtures()?.join("execution-apis/tests");
    let genesis = std::fs::read_to_string(folder.join("genesis.json")).expect("a file");
    Some((folder, genesis))
}

/// An answer with numbers that JSON writes as 0 or 0.0 in one form.
pub(crate) fn with_floats(answer: Value) -> Value {
    match answer {
        Value::Number(number) => json!(number.as_f64()),
        Value::Array(list) => list.into_iter().map(with_floats).collect(),
        Value::Object(members) => {
            members.into_iter().map(|(name, value)| (name, with_floats(value))).collect()
        }
        other => other,
    }
}

/// `10` seconds a fork, from Paris at 0 to Amsterdam at 50.
pub(crate) const ALL_FORKS: [Fork; 6] = [
    Fork { time: 1, forkchoice: 1, get: 1, new: 1 },
    Fork { time: 11, forkchoice: 2, get: 2, new: 2 },
    Fork { time: 21, forkchoice: 3, get: 3, new: 3 },
    Fork { time: 31, forkchoice: 3, get: 4, new: 4 },
    Fork { time: 41, forkchoice: 3, get: 5, new: 4 },
    Fork { time: 51, forkchoice: 4, get: 6, new: 5 },
];

/// A fork's time, and the versions of the methods for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fork {
    pub(crate) time: u64,
    pub(crate) forkchoice: u8,
    pub(crate) get: u8,
    pub(crate) new: u8,
}

pub(crate) const OSAKA: Fork = Fork { time: 1, forkchoice: 3, get: 5, new: 4 };

/// A genesis with the system contracts, [`CONTRACT`], and funds for the sender of each of
/// [`transactions`]. Its forks are [`ALL_FORKS`].
pub(crate) fn genesis_of_all_forks() -> Value {
    serde_json::from_str(include_str!("../../fuzz/genesis.json")).expect("JSON")
}

/// The same, in Osaka from the start.
pub(crate) fn genesis_of_osaka() -> Value {
    let mut genesis = genesis_of_all_forks();
    let config = genesis["config"].as_object_mut().expect("an object");
    config.remove("amsterdamTime");
    config["blobSchedule"].as_object_mut().expect("an object").remove("amsterdam");
    for name in ["shanghaiTime", "cancunTime", "pragueTime", "osakaTime"] {
        config[name] = json!(0);
    }
    genesis
}

/// A contract of the genesis, which stores 1 in slot 0.
pub(crate) const CONTRACT: Address = address!("00000000000000000000000000000000c0de0001");

/// One transaction of each type; each signature is made up, and so is the sender that it gives.
pub(crate) fn transactions() -> Vec<Transaction> {
    let to = TxKind::Call(CONTRACT);
    let (gas_limit, max_fee_per_gas) = (100_000, 1_000_000_000);
    let legacy =
        TxLegacy { chain_id: Some(1337), gas_price: max_fee_per_gas, gas_limit, to, ..def() };
    let list = TxEip2930 { chain_id: 1337, gas_price: max_fee_per_gas, gas_limit, to, ..def() };
    let fees = TxEip1559 { chain_id: 1337, max_fee_per_gas, gas_limit, to, ..TxEip1559::default() };
    let blob = TxEip4844 {
        chain_id: 1337,
        max_fee_per_gas,
        gas_limit,
        to: CONTRACT,
        blob_versioned_hashes: vec![BLOB_HASH],
        max_fee_per_blob_gas: max_fee_per_gas,
        ..def()
    };
    let authorization = Authorization { chain_id: U256::ZERO, address: CONTRACT, nonce: 0 };
    let code = TxEip7702 {
        chain_id: 1337,
        max_fee_per_gas,
        gas_limit,
        to: CONTRACT,
        authorization_list: vec![authorization.into_signed(signature())],
        ..def()
    };
    vec![
        legacy.into_signed(signature()).into(),
        list.into_signed(signature()).into(),
        fees.into_signed(signature()).into(),
        blob.into_signed(signature()).into(),
        code.into_signed(signature()).into(),
    ]
}

pub(crate) const BLOB_HASH: B256 = B256::with_last_byte(1).bit_or(B256::new({
    let mut version = [0; 32];
    version[0] = 1;
    version
}));

fn def<T: Default>() -> T {
    T::default()
}

/// `r` is the curve's generator, so that some key fits any hash.
pub(crate) fn signature() -> Signature {
    let r = uint!(0x79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798_U256);
    Signature::new(r, U256::from(7), false)
}

pub(crate) fn raw(transactions: &[Transaction]) -> Vec<Bytes> {
    transactions.iter().map(|transaction| transaction.encoded_2718().into()).collect()
}

/// A running node and a client on each port.
pub(crate) struct TestNode {
    pub(crate) node: Node,
    pub(crate) dir: tempfile::TempDir,
    pub(crate) engine: Client,
    pub(crate) public: Client,
}

impl TestNode {
    pub(crate) async fn start(genesis: Value) -> Self {
        Self::start_with(genesis, |_| ()).await
    }

    /// With a secret of the test's, in the file `secret.hex`.
    pub(crate) async fn start_with_secret(genesis: Value, secret: &str) -> Self {
        let set = |options: &mut NodeOptions| {
            let file = options.data_dir.with_file_name("secret.hex");
            std::fs::write(&file, secret).expect("written");
            options.jwt_file = Some(file);
        };
        Self::start_with(genesis, set).await
    }

    pub(crate) async fn start_with(genesis: Value, set: impl FnOnce(&mut NodeOptions)) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let genesis = serde_json::from_value(genesis).expect("a genesis");
        let mut options = NodeOptions::new(genesis, dir.path().join("data"));
        options.ports.ipc = Some(dir.path().join("node.ipc"));
        options.testing = true;
        set(&mut options);
        let node = Node::start(options).await.expect("a node");
        let connect = async |address: std::net::SocketAddr, jwt| {
            Client::connect(&address.to_string(), jwt).await.expect("a connection")
        };
        let engine = connect(node.engine_addr, Some(node.jwt.clone())).await;
        let public = connect(node.http_addr, None).await;
        Self { node, dir, engine, public }
    }

    /// A client of the Unix socket.
    pub(crate) async fn unix_client(&self) -> Client {
        let path = self.node.ipc_path.as_ref().expect("it listens");
        Client::connect(&format!("unix:{}", path.display()), None).await.expect("a connection")
    }

    /// Calls a method of the engine port.
    pub(crate) async fn call(&mut self, method: &str, params: Value) -> Result<Value, Error> {
        checked(method, self.engine.call(method, params).await)
    }

    /// Calls a method of the public port.
    pub(crate) async fn public(&mut self, method: &str, params: Value) -> Result<Value, Error> {
        checked(method, self.public.call(method, params).await)
    }

    pub(crate) async fn ok(&mut self, method: &str, params: Value) -> Value {
        self.call(method, params).await.unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// The answer as it came, for those who look at the order of members.
    pub(crate) async fn text(&mut self, method: &str, params: Value) -> String {
        let answer = self.engine.call_raw(method, params).await.expect("an answer");
        String::from_utf8(answer.to_vec()).expect("UTF-8")
    }

    pub(crate) async fn head(&mut self) -> Value {
        let params = json!(["latest", false]);
        self.public("eth_getBlockByNumber", params).await.expect("a block")["hash"].clone()
    }

    /// The call is refused with this code and these words, and nothing else happens.
    pub(crate) async fn refused(&mut self, method: &str, params: Value, code: Code, words: &str) {
        let head = self.head().await;
        let shown: String = params.to_string().chars().take(300).collect();
        let error = match self.call(method, params).await {
            Err(error) => error,
            Ok(result) => panic!("{method}({shown}) gave {result}"),
        };
        assert!(error.is(code), "{method}({shown}): {error}, not {code:?}");
        assert!(error.to_string().contains(words), "{method}({shown}): {error}, not {words:?}");
        assert_eq!(self.head().await, head, "{method}({shown}) moved the head");
    }

    /// Begins a build on the head with the versions of `fork`, and returns its identifier.
    pub(crate) async fn begin(&mut self, fork: Fork, time: u64, with_witness: bool) -> Value {
        let name = if with_witness { "WithWitness" } else { "" };
        let method = format!("engine_forkchoiceUpdated{name}V{}", fork.forkchoice);
        let head = self.head().await;
        let params = json!([state(&head), attributes(time, attributes_version(fork))]);
        let answer = self.ok(&method, params).await;
        assert_eq!(answer["payloadStatus"]["status"], "VALID", "{answer}");
        answer["payloadId"].clone()
    }

    /// The payload built under this identifier, as an envelope, also for the first version.
    pub(crate) async fn built(&mut self, fork: Fork, id: Value) -> Value {
        let answer = self.ok(&format!("engine_getPayloadV{}", fork.get), json!([id])).await;
        if fork.get == 1 { json!({ "executionPayload": answer }) } else { answer }
    }

    /// Makes the payload's block the head.
    pub(crate) async fn adopt(&mut self, fork: Fork, envelope: &Value) {
        let method = format!("engine_newPayloadV{}", fork.new);
        let status = self.ok(&method, new_payload(fork.new, envelope)).await;
        assert_eq!(status["status"], "VALID", "{status}");
        let hash = &envelope["executionPayload"]["blockHash"];
        let method = format!("engine_forkchoiceUpdatedV{}", fork.forkchoice);
        let answer = self.ok(&method, json!([state(hash), null])).await;
        assert_eq!(answer["payloadStatus"]["status"], "VALID", "{answer}");
        assert_eq!(self.head().await, *hash);
    }

    /// Extends the chain by a block with these transactions.
    pub(crate) async fn extend(
        &mut self,
        fork: Fork,
        time: u64,
        transactions: &[Transaction],
    ) -> Value {
        let attributes = attributes(time, attributes_version(fork));
        let params = json!([self.head().await, attributes, raw(transactions), "0x"]);
        let mut envelope = self.ok("testing_buildBlockV1", params).await;
        envelope["versionedHashes"] = json!(versioned_hashes(transactions));
        self.adopt(fork, &envelope).await;
        envelope
    }
}

/// The same answer, whose result fits the published schema of its method.
pub(crate) fn checked(method: &str, answer: Result<Value, ClientError>) -> Result<Value, Error> {
    let answer = unwrap(answer);
    if let Ok(result) = &answer {
        schema::check(method, result);
    }
    answer
}

pub(crate) fn unwrap(answer: Result<Value, ClientError>) -> Result<Value, Error> {
    match answer {
        Ok(result) => Ok(result),
        Err(ClientError::Rpc(error)) => Err(error),
        Err(fault) => panic!("{fault}"),
    }
}

fn versioned_hashes(transactions: &[Transaction]) -> Vec<B256> {
    use alloy_consensus::Transaction as _;
    let hashes = transactions.iter().filter_map(|tx| tx.blob_versioned_hashes());
    hashes.flatten().copied().collect()
}

/// The version of the attributes: the second from Shanghai, the third from Cancun.
fn attributes_version(fork: Fork) -> u8 {
    fork.forkchoice
}

pub(crate) fn state(head: &Value) -> Value {
    json!({"headBlockHash": head, "safeBlockHash": B256::ZERO, "finalizedBlockHash": B256::ZERO})
}

/// `PayloadAttributesV1` to `V4`.
pub(crate) fn attributes(time: u64, version: u8) -> Value {
    let mut attributes = json!({
        "timestamp": format!("{time:#x}"),
        "prevRandao": B256::repeat_byte(3),
        "suggestedFeeRecipient": Address::repeat_byte(4),
    });
    let withdrawal = json!({
        "index": "0x0", "validatorIndex": "0x1", "address": Address::repeat_byte(5),
        "amount": "0x2",
    });
    let optional = [
        ("withdrawals", json!([withdrawal]), 2),
        ("parentBeaconBlockRoot", json!(BEACON_ROOT), 3),
        ("slotNumber", json!(format!("{time:#x}")), 4),
        ("targetGasLimit", json!("0x2faf080"), 4),
    ];
    for (name, value, _) in optional.into_iter().filter(|(_, _, since)| version >= *since) {
        attributes[name] = value;
    }
    attributes
}

pub(crate) const BEACON_ROOT: B256 = B256::repeat_byte(6);

/// The call for an envelope.
pub(crate) fn new_payload_call(version: u8, envelope: &Value) -> NewPayload {
    let params = new_payload(version, envelope).to_string();
    NewPayload::from_json(version, &params).expect("a payload")
}

/// The parameters of `engine_newPayload` for an envelope.
pub(crate) fn new_payload(version: u8, envelope: &Value) -> Value {
    let mut params = vec![envelope["executionPayload"].clone()];
    if version >= 3 {
        params.push(envelope.get("versionedHashes").cloned().unwrap_or(json!([])));
        params.push(json!(BEACON_ROOT));
    }
    if version >= 4 {
        params.push(envelope.get("executionRequests").cloned().unwrap_or(json!([])));
    }
    json!(params)
}
