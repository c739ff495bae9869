//! `pending`: the next block as it would be built out of the pool, and the state after it.

use alloy_eips::eip2718::Encodable2718;
use alloy_primitives::{Address, B256, Bytes, TxKind};
use deponent_node::demo::World;
use rpc::Code;
use serde_json::{Value, json};

use crate::dev::{Dev, OTHER, WHO};
use crate::subscriptions::{Chain, LOGGER};

#[tokio::test(flavor = "multi_thread")]
async fn the_pending_block_has_what_the_pool_has() {
    let mut chain = Chain::start().await;
    let world = World::new(1).expect("the same world");
    let genesis = chain.node.head().await;
    let block = async |chain: &mut Chain, full: bool| {
        let params = json!(["pending", full]);
        chain.node.public("eth_getBlockByNumber", params).await.expect("a block")
    };
    let empty = block(&mut chain, false).await;
    for name in ["hash", "nonce", "miner"] {
        assert_eq!(empty.get(name), Some(&Value::Null), "{empty}");
    }
    assert_eq!((&empty["number"], &empty["parentHash"]), (&json!("0x1"), &genesis));
    assert_eq!((&empty["transactions"], &empty["gasUsed"]), (&json!([]), &json!("0x0")));
    // A block of the chain has all of its members.
    let latest = chain.node.public("eth_getBlockByNumber", json!(["latest", false])).await;
    let latest = latest.expect("a block");
    let names = |block: &Value| -> Vec<String> {
        block.as_object().expect("an object").keys().cloned().collect()
    };
    let missing: Vec<_> =
        names(&latest).into_iter().filter(|name| empty.get(name).is_none()).collect();
    assert_eq!(missing, Vec::<String>::new());

    let raw = |nonce| -> Bytes {
        let call = world.sign(nonce, TxKind::Call(LOGGER), B256::ZERO.into(), 100_000);
        call.expect("signs").encoded_2718().into()
    };
    let mut sent = Vec::new();
    for nonce in [0, 1, 3] {
        let hash = chain.node.public("eth_sendRawTransaction", json!([raw(nonce)])).await;
        sent.push(hash.expect("a hash"));
    }
    // A block with nothing moves the head, so that another one is made.
    let head = chain.extend(&genesis, &[], 0).await;
    let full = block(&mut chain, true).await;
    assert_eq!((&full["number"], &full["parentHash"]), (&json!("0x2"), &head));
    let transactions = full["transactions"].as_array().expect("a list");
    let hashes: Vec<_> = transactions.iter().map(|it| it["hash"].clone()).collect();
    assert_eq!(hashes, sent[..2]);
    let count = json!(["pending"]);
    let count = chain.node.public("eth_getBlockTransactionCountByNumber", count).await;
    assert_eq!(count, Ok(json!("0x2")));
    let sender = transactions[0]["from"].clone();
    for (tag, nonce) in [("latest", "0x0"), ("pending", "0x2")] {
        let count = chain.node.public("eth_getTransactionCount", json!([sender, tag])).await;
        assert_eq!(count, Ok(json!(nonce)), "{tag}");
    }
    // NUMBER, in the block.
    let code = json!({LOGGER.to_string(): {"code": "0x435f5260205ff3"}});
    let params = json!([{"to": LOGGER}, "pending", code]);
    let number = chain.node.public("eth_call", params).await.expect("a word");
    assert_eq!(number, json!(B256::with_last_byte(2)));
    let simulation = json!([{"blockStateCalls": [{}]}, "pending"]);
    let simulated = chain.node.public("eth_simulateV1", simulation).await.expect("a block");
    assert_eq!(simulated[0]["number"], "0x3");
    let error = chain.node.public("eth_getProof", json!([sender, [], "pending"])).await;
    let error = error.expect_err("no proof");
    assert!(error.is(Code::InvalidParams) && error.message.contains("no proofs"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_and_reads_see_what_waits_on_a_chain_for_tests() {
    let mut dev = Dev::start(&["--quiet", "--no-mining"]).await;
    // Stores 42 in slot 0, and has the code that returns slot 0.
    let creation = "0x602a5f5568 5f545f5260205ff300 5f5260096017f3".replace(' ', "");
    let created = json!({"from": WHO, "data": creation, "gas": "0x30d40"});
    dev.ok("eth_sendTransaction", json!([created])).await;
    dev.ok("eth_sendTransaction", json!([{"from": WHO, "to": OTHER, "value": "0x5"}])).await;
    let contract = WHO.parse::<Address>().expect("an address").create(0);
    let word = json!(B256::with_last_byte(42));
    let zero = json!(B256::ZERO);
    let call = json!({"to": contract});
    let (code, code_of) = (json!("0x5f545f5260205ff300"), json!([contract]));
    let with = |params: &Value, tag: &str| {
        let mut params = params.as_array().expect("a list").clone();
        params.push(json!(tag));
        json!(params)
    };
    let cases = [
        ("eth_getCode", code_of, json!("0x"), code),
        ("eth_getStorageAt", json!([contract, "0x0"]), zero.clone(), word.clone()),
        ("eth_getBalance", json!([OTHER]), json!("0x0"), json!("0x5")),
        ("eth_getTransactionCount", json!([WHO]), json!("0x0"), json!("0x2")),
        ("eth_call", json!([call]), json!("0x"), word.clone()),
        ("eth_getBlockTransactionCountByNumber", json!([]), json!("0x0"), json!("0x2")),
        (
            "eth_getStorageValues",
            json!([{contract.to_string(): [B256::ZERO]}]),
            json!({format!("{contract:?}"): [zero]}),
            json!({format!("{contract:?}"): [word]}),
        ),
    ];
    for (method, params, latest, pending) in &cases {
        assert_eq!(dev.ok(method, with(params, "latest")).await, *latest, "{method}");
        assert_eq!(dev.ok(method, with(params, "pending")).await, *pending, "{method}");
    }
    let estimate = async |dev: &mut Dev, tag| {
        let gas = dev.ok("eth_estimateGas", json!([call, tag])).await;
        u64::from_str_radix(&gas.as_str().expect("a quantity")[2..], 16).expect("hex")
    };
    assert_eq!(estimate(&mut dev, "latest").await, 21_000);
    assert!(estimate(&mut dev, "pending").await > 23_000);
    let list = dev.ok("eth_createAccessList", json!([call, "pending"])).await;
    assert_eq!(list["accessList"][0]["storageKeys"], json!([B256::ZERO]), "{list}");
    let simulation = json!([{"blockStateCalls": [{"calls": [call]}]}, "pending"]);
    let simulated = dev.ok("eth_simulateV1", simulation).await;
    assert_eq!(simulated[0]["calls"][0]["returnData"], cases[4].3);

    let mut asked = Vec::new();
    for (method, mut params) in of_its_transactions() {
        params.insert(0, json!("pending"));
        let answer = dev.ok(method, json!(params)).await;
        asked.push((method, params, answer));
    }

    // The change of a helper is seen at once.
    dev.ok("anvil_setBalance", json!([OTHER, "0x10"])).await;
    assert_eq!(dev.ok("eth_getBalance", json!([OTHER, "pending"])).await, "0x15");
    dev.ok("evm_setNextBlockTimestamp", json!([4_000_000_000_u64])).await;
    dev.ok("anvil_setNextBlockBaseFeePerGas", json!(["0x7"])).await;
    let pending = dev.ok("eth_getBlockByNumber", json!(["pending", true])).await;
    assert_eq!(pending["timestamp"], "0xee6b2800");
    assert_eq!(pending["baseFeePerGas"], "0x7");

    // The block that is mined then is that one.
    dev.ok("evm_mine", json!([])).await;
    let mined = dev.ok("eth_getBlockByNumber", json!(["latest", true])).await;
    for (name, value) in pending.as_object().expect("an object") {
        if !["hash", "nonce", "miner"].contains(&name.as_str()) {
            assert_eq!(*value, mined[name], "{name}");
        }
    }
    for (method, params, _, pending) in &cases {
        let pending = if *method == "eth_getBalance" { &json!("0x15") } else { pending };
        assert_eq!(dev.ok(method, with(params, "latest")).await, *pending, "{method}");
    }
    check_mined(&mut dev, asked).await;
    let empty = dev.ok("eth_getBlockByNumber", json!(["pending", false])).await;
    assert_eq!((&empty["number"], &empty["transactions"]), (&json!("0x2"), &json!([])));
}

/// Methods that say something of a block's transactions, and what they are asked beside the block.
fn of_its_transactions() -> Vec<(&'static str, Vec<Value>)> {
    vec![
        ("eth_getTransactionByBlockNumberAndIndex", vec![json!("0x1")]),
        ("eth_getTransactionByBlockNumberAndIndex", vec![json!("0x2")]),
        ("eth_getRawTransactionByBlockNumberAndIndex", vec![json!("0x0")]),
        ("eth_getBlockReceipts", vec![]),
        ("debug_traceBlockByNumber", vec![json!({"tracer": "callTracer"})]),
        ("eth_getUncleCountByBlockNumber", vec![]),
        ("eth_getUncleByBlockNumberAndIndex", vec![json!("0x0")]),
    ]
}

/// The mined block has what the pending one had, but for its fees, its time and its hash.
async fn check_mined(dev: &mut Dev, asked: Vec<(&str, Vec<Value>, Value)>) {
    let of_block = ["blockHash", "blockTimestamp", "effectiveGasPrice", "gasPrice"];
    for (method, mut params, pending) in asked {
        assert_eq!(
            pending.is_null(),
            method.contains("Uncle") && params.len() > 1 || params.get(1) == Some(&json!("0x2")),
            "{method}"
        );
        params[0] = json!("latest");
        let mined = dev.ok(method, json!(params)).await;
        let without = |answer: Value| match answer {
            Value::Object(members) => {
                members.into_iter().filter(|(name, _)| !of_block.contains(&name.as_str())).collect()
            }
            other => other,
        };
        let without_all = |answer: Value| match answer {
            Value::Array(list) => list.into_iter().map(without).collect(),
            other => without(other),
        };
        assert_eq!(without_all(pending), without_all(mined), "{method}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_history_of_fees_ends_with_the_pending_block() {
    let mut dev = Dev::start(&["--quiet", "--no-mining"]).await;
    dev.ok("anvil_mine", json!(["0x2"])).await;
    let fee = json!({"from": WHO, "to": OTHER, "maxPriorityFeePerGas": "0x7"});
    dev.ok("eth_sendTransaction", json!([fee])).await;
    let pending = dev.ok("eth_feeHistory", json!(["0x2", "pending", [50]])).await;
    assert_eq!(
        (&pending["oldestBlock"], &pending["reward"]),
        (&json!("0x2"), &json!([["0x0"], ["0x7"]]))
    );
    dev.ok("evm_mine", json!([])).await;
    assert_eq!(dev.ok("eth_feeHistory", json!(["0x2", "latest", [50]])).await, pending);
    let whole = dev.ok("eth_feeHistory", json!(["0x400", "pending", []])).await;
    let ratios = whole["gasUsedRatio"].as_array().expect("a list");
    assert_eq!((&whole["oldestBlock"], ratios.len()), (&json!("0x0"), 5));
}
