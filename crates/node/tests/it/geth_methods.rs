//! The smaller methods, asked of both nodes over IPC: geth and we answer alike.

use crate::geth::LOGGERS;
use crate::schema;
use crate::support::{CONTRACT, with_floats};
use alloy_primitives::{Address, B256};
use rpc::{ClientError, SessionClient};
use serde_json::{Value, json};

const BY_NUMBER: [&str; 4] = [
    "eth_getHeaderByNumber",
    "eth_getUncleCountByBlockNumber",
    "eth_getUncleByBlockNumberAndIndex",
    "eth_getRawTransactionByBlockNumberAndIndex",
];

const BY_HASH: [&str; 4] = [
    "eth_getHeaderByHash",
    "eth_getUncleCountByBlockHash",
    "eth_getUncleByBlockHashAndIndex",
    "eth_getRawTransactionByBlockHashAndIndex",
];

/// Calls that both are to answer with the same result, on a chain of at least eight blocks whose
/// blocks have these hashes, from the first on.
fn calls(hashes: &[Value]) -> Vec<(&'static str, Value)> {
    let mut calls = vec![
        ("eth_gasPrice", json!([])),
        ("eth_maxPriorityFeePerGas", json!([])),
        ("eth_blobBaseFee", json!([])),
        ("eth_config", json!([])),
        ("eth_baseFee", json!([])),
        ("eth_accounts", json!([])),
        ("eth_getHeaderByNumber", json!(["pending"])),
        ("eth_getHeaderByNumber", json!(["latest"])),
        ("eth_getHeaderByNumber", json!(["finalized"])),
        ("eth_getHeaderByNumber", json!(["0xffff"])),
        ("eth_getHeaderByHash", json!([B256::repeat_byte(1)])),
        ("eth_getUncleCountByBlockNumber", json!(["0xffff"])),
        ("eth_getUncleCountByBlockHash", json!([B256::repeat_byte(1)])),
        ("eth_getRawTransactionByBlockNumberAndIndex", json!(["0xffff", "0x0"])),
        ("web3_sha3", json!(["0x"])),
        ("web3_sha3", json!(["0x68656c6c6f20776f726c64"])),
        ("eth_syncing", json!([])),
        ("net_peerCount", json!([])),
        ("net_version", json!([])),
        ("admin_peers", json!([])),
        ("txpool_status", json!([])),
        ("eth_feeHistory", json!(["0x0", "latest", []])),
        ("eth_feeHistory", json!(["0x1", "latest", []])),
        ("eth_feeHistory", json!(["0x400", "latest", [0, 25, 50.5, 100]])),
        ("eth_feeHistory", json!([3, "0x4", [50]])),
        ("eth_feeHistory", json!(["0x2", "earliest", [1]])),
    ];
    for (number, hash) in hashes.iter().enumerate() {
        let ids = [(json!(format!("{number:#x}")), BY_NUMBER), (hash.clone(), BY_HASH)];
        for (id, [header, uncles, uncle, transaction]) in ids {
            calls.push((header, json!([id])));
            calls.push((uncles, json!([id])));
            calls.push((uncle, json!([id, "0x0"])));
            calls.push((transaction, json!([id, "0x0"])));
            calls.push((transaction, json!([id, "0x400"])));
            calls.push(("debug_getRawHeader", json!([id])));
            calls.push(("debug_getRawReceipts", json!([id])));
            calls.push(("debug_getRawBlock", json!([id])));
        }
    }
    calls
}

/// Calls by the hash of each transaction, and of one that is not there.
fn transaction_calls(transactions: &[Value]) -> Vec<(&'static str, Value)> {
    let none = json!(B256::repeat_byte(1));
    let each = transactions.iter().chain([&none]).flat_map(|hash| {
        let methods = [
            "eth_getTransactionByHash",
            "eth_getTransactionReceipt",
            "eth_getRawTransactionByHash",
            "debug_getRawTransaction",
        ];
        methods.map(|method| (method, json!([hash])))
    });
    each.collect()
}

/// Filters of logs; some of them both refuse in the same words.
fn log_calls(hashes: &[Value]) -> Vec<(&'static str, Value)> {
    let [one, two] = LOGGERS;
    let topic = B256::with_last_byte;
    let all = |filter: Value| {
        let mut filter = filter;
        (filter["fromBlock"], filter["toBlock"]) = (json!("earliest"), json!("latest"));
        filter
    };
    let mut filters = vec![
        json!({}),
        all(json!({})),
        all(json!({"address": one})),
        all(json!({"address": [one, two], "topics": []})),
        all(json!({"address": []})),
        all(json!({"address": B256::ZERO.to_string()[..42], "topics": [topic(1)]})),
        all(json!({"topics": [topic(1)]})),
        all(json!({"topics": [null, topic(2)]})),
        all(json!({"topics": [[topic(1), topic(2)], [topic(2), topic(3)]]})),
        all(json!({"topics": [[null, topic(9)], topic(2)]})),
        all(json!({"topics": [null, null, null]})),
        all(json!({"address": two, "topics": [topic(3)]})),
        json!({"fromBlock": "0x5", "toBlock": "0x6"}),
        json!({"fromBlock": "0x6"}),
        json!({"fromBlock": "safe", "toBlock": "safe"}),
        json!({"fromBlock": "earliest", "toBlock": "finalized"}),
        json!({"fromBlock": "0x6", "toBlock": "0x5"}),
        json!({"fromBlock": "0x6", "toBlock": "0xffff"}),
        json!({"fromBlock": "0xffff"}),
        json!({"fromBlock": "pending", "toBlock": "pending"}),
        json!({"blockHash": B256::ZERO}),
        json!({"blockHash": hashes[0], "fromBlock": "0x1"}),
    ];
    for hash in hashes {
        filters.push(json!({"blockHash": hash}));
        filters.push(json!({"blockHash": hash, "address": one, "topics": [topic(1)]}));
    }
    filters.into_iter().map(|filter| ("eth_getLogs", json!([filter]))).collect()
}

/// Slots, with some that both refuse in the same words.
fn slot_calls(hashes: &[Value]) -> Vec<(&'static str, Value)> {
    let slots = |count: u8| (0..count).map(B256::with_last_byte).collect::<Vec<_>>();
    let many = vec![B256::ZERO; 513];
    let [one, two] = LOGGERS;
    let mut calls = vec![
        ("eth_getStorageValues", json!([{}])),
        ("eth_getStorageValues", json!([{CONTRACT.to_string(): []}, "latest"])),
        ("eth_getStorageValues", json!([{one.to_string(): many, two.to_string(): many}])),
        ("eth_getStorageAt", json!([one, format!("0x{}", "0".repeat(65))])),
        ("eth_getStorageAt", json!([one, "0xasdf", "latest"])),
        ("eth_getStorageAt", json!([one, "0x", "latest"])),
        ("eth_getStorageAt", json!([one, "0x1", "latest"])),
    ];
    for hash in hashes {
        let asked = json!({
            CONTRACT.to_string(): slots(20), one.to_string(): slots(3), two.to_string(): [],
        });
        calls.push(("eth_getStorageValues", json!([asked, hash])));
    }
    calls
}

/// Parts of the states, and refusals in the same words.
fn range_calls(hashes: &[Value]) -> Vec<(&'static str, Value)> {
    let middle = format!("0x80{}", "00".repeat(31));
    let mut calls = vec![
        ("debug_accountRange", json!(["0xffff", "0x", 1, false, false, true])),
        ("debug_accountRange", json!([B256::repeat_byte(1), "0x", 1, false, false, true])),
        ("debug_accountRange", json!(["latest", "0x", 2, false, true, false])),
        ("debug_accountRange", json!(["latest", "0x12", 300, true, true, true])),
        ("debug_intermediateRoots", json!([B256::repeat_byte(1)])),
        ("debug_getModifiedAccountsByNumber", json!([3, 3])),
        ("debug_getModifiedAccountsByNumber", json!([4, 3])),
        ("debug_getModifiedAccountsByNumber", json!([0])),
        ("debug_getModifiedAccountsByNumber", json!([65535])),
        ("debug_getModifiedAccountsByNumber", json!([1, 65535])),
        ("debug_getModifiedAccountsByHash", json!([B256::repeat_byte(1)])),
        ("debug_getModifiedAccountsByHash", json!([hashes[1], B256::repeat_byte(1)])),
        ("debug_getModifiedAccountsByHash", json!([hashes[2], hashes[1]])),
    ];
    for (number, hash) in hashes.iter().enumerate() {
        let number = json!(format!("{number:#x}"));
        calls.push(("debug_intermediateRoots", json!([hash])));
        for (start, most) in [("0x", 3), (&*middle, 4), ("0x", 256), (&*middle, 1)] {
            for id in [hash, &number] {
                let params = json!([id, start, most, most == 4, true, true]);
                calls.push(("debug_accountRange", params));
            }
            for address in [LOGGERS[0], CONTRACT, Address::repeat_byte(0x99)] {
                calls.push(("debug_storageRangeAt", json!([hash, 0, address, start, most])));
            }
        }
        calls.push(("debug_storageRangeAt", json!([number, 10_000, CONTRACT, "0x", 5])));
    }
    calls
}

/// Transactions to be filled in; some are refused in the same words.
fn fill_calls() -> Vec<(&'static str, Value)> {
    let [to, other] = LOGGERS;
    let from = B256::repeat_byte(7).to_string()[..42].to_owned();
    let blob = B256::with_last_byte(1).to_string().replacen("0x00", "0x01", 1);
    let authorization = json!({
        "chainId": "0x0", "address": other, "nonce": "0x1", "yParity": "0x1", "r": "0x1",
        "s": "0x2",
    });
    let list = json!([{ "address": other, "storageKeys": [B256::with_last_byte(1)] }]);
    let requests = [
        json!({ "from": from, "to": to, "gas": "0x5208" }),
        json!({ "from": from, "to": to, "gas": "0x5208", "nonce": "0x9", "value": "0x1" }),
        json!({ "from": from, "to": to, "gas": "0x5208", "gasPrice": "0x12a05f200" }),
        json!({ "from": from, "to": to, "gas": "0x5208", "maxFeePerGas": "0x12a05f200" }),
        json!({ "from": from, "to": to, "gas": "0x5208", "maxPriorityFeePerGas": "0x12a05f200" }),
        json!({ "from": from, "to": to, "gas": "0x5208", "maxFeePerGas": "0x0" }),
        json!({ "from": from, "to": to, "gas": "0x5208", "gasPrice": "0x0" }),
        json!({ "from": from, "to": to, "gasPrice": "0x1", "maxFeePerGas": "0x1" }),
        json!({ "from": from, "to": to, "gas": "0x186a0", "accessList": list }),
        json!({ "from": from, "to": to, "gas": "0x186a0", "accessList": list, "gasPrice": "0xff" }),
        json!({ "from": from, "to": to, "gas": "0x186a0", "blobVersionedHashes": [blob] }),
        json!({ "from": from, "to": to, "gas": "0x186a0", "blobVersionedHashes": [] }),
        json!({ "from": from, "to": to, "gas": "0x186a0", "blobVersionedHashes": vec![blob; 7] }),
        json!({ "from": from, "to": to, "gas": "0x186a0", "authorizationList": [authorization] }),
        json!({ "from": from, "gas": "0x186a0", "data": "0x6001" }),
        json!({ "from": from, "authorizationList": [authorization], "data": "0x01" }),
        json!({ "from": from, "gas": "0x186a0" }),
        json!({ "from": from, "to": to, "gas": "0x186a0", "data": "0x01", "input": "0x02" }),
        json!({ "from": from, "to": to, "gas": "0x186a0", "data": "0x01", "input": "0x01" }),
        json!({ "from": from, "to": to, "value": "0x1" }),
        json!({ "from": from, "to": to, "gas": "0x5208", "chainId": "0x1" }),
    ];
    requests.into_iter().map(|request| ("eth_fillTransaction", json!([request]))).collect()
}

async fn answer(client: &SessionClient, method: &str, params: &Value) -> Result<Value, String> {
    match client.call(method, params).await {
        Ok(answer) => {
            schema::check(method, &answer);
            Ok(with_floats(answer))
        }
        Err(ClientError::Rpc(error)) => Err(error.message.into()),
        Err(error) => panic!("{method}{params}: {error}"),
    }
}

/// The calls that are answered in two ways.
pub(crate) async fn differences(ours: &SessionClient, geth: &SessionClient) -> Vec<String> {
    let (mut hashes, mut transactions) = (Vec::new(), Vec::new());
    let head: String = ours.call("eth_blockNumber", [(); 0]).await.expect("a number");
    let head = u64::from_str_radix(&head[2..], 16).expect("hex");
    for number in 0..=head {
        let params = json!([format!("{number:#x}"), false]);
        let block: Value = ours.call("eth_getBlockByNumber", params).await.expect("a block");
        hashes.push(block["hash"].clone());
        transactions.extend(block["transactions"].as_array().expect("a list").iter().cloned());
    }
    let mut differ = Vec::new();
    let words = log_calls(&hashes).into_iter().chain(slot_calls(&hashes)).chain(fill_calls());
    let words = words.chain(range_calls(&hashes));
    for (method, params) in words {
        let [one, other] = [ours, geth].map(|client| answer(client, method, &params));
        let (one, other) = (one.await, other.await);
        if one != other {
            differ.push(format!("{method}{params}: ours {one:?}, geth's {other:?}"));
        }
    }
    let calls = calls(&hashes).into_iter().chain(transaction_calls(&transactions));
    for (method, params) in calls {
        let [one, other] = [ours, geth].map(|client| answer(client, method, &params));
        let (one, other) = (one.await, other.await);
        if one != other || one.is_err() {
            differ.push(format!("{method}{params}: ours {one:?}, geth's {other:?}"));
        }
    }
    // Both refuse.
    for (method, params) in [
        ("eth_feeHistory", json!(["0x1", "0xffff", []])),
        ("eth_feeHistory", json!(["0x1", "finalized", []])),
        ("eth_feeHistory", json!(["0x1", "latest", [101]])),
        ("eth_feeHistory", json!(["0x1", "latest", [50, 20]])),
    ] {
        let (one, other) = (answer(ours, method, &params), answer(geth, method, &params));
        let (one, other) = (one.await, other.await);
        if one.is_ok() || other.is_ok() {
            differ.push(format!("{method}{params}: ours {one:?}, geth's {other:?}"));
        }
    }
    differ.extend(shapes_differ(ours, geth).await);
    differ
}

/// Of answers that cannot be the same all members of geth's are ours too, with values of the same
/// kind; the chain's configuration is the same.
async fn shapes_differ(ours: &SessionClient, geth: &SessionClient) -> Vec<String> {
    let mut differ = Vec::new();
    let ask = async |client, method| answer(client, method, &json!([])).await.expect("an answer");
    let theirs = ask(geth, "admin_nodeInfo").await;
    let config = &theirs["protocols"]["eth"]["config"];
    let own_config = ask(ours, "debug_chainConfig").await;
    for (name, value) in config.as_object().expect("an object") {
        let own = &own_config[name];
        // geth leaves out entries of forks that it has the parameters of.
        let is_part = name == "blobSchedule"
            && value.as_object().expect("an object").iter().all(|(fork, it)| own[fork] == *it);
        if own != value && !is_part {
            differ.push(format!("config.{name}: ours {}, geth's {value}", own_config[name]));
        }
    }
    for method in ["admin_nodeInfo", "eth_capabilities"] {
        let (one, other) = (ask(ours, method).await, ask(geth, method).await);
        for (name, value) in other.as_object().expect("an object") {
            if std::mem::discriminant(&one[name]) != std::mem::discriminant(value) {
                differ.push(format!("{method}.{name}: ours {}, geth's {value}", one[name]));
            }
        }
    }
    differ
}
