//! Filters whose owners ask for what is new, over each transport and on a chain for tests.

use std::process::Command;

use alloy_eips::eip2718::Encodable2718;
use alloy_primitives::{Address, B256, Bytes, TxKind};
use deponent_node::demo::World;
use rpc::SessionClient;
use serde_json::{Value, json};

use crate::dev::{Dev, OTHER, WHO};
use crate::subscriptions::{Chain, LOGGER};
use crate::support::{checked, unwrap};
use crate::tools::{output, script, tools};

async fn ask(client: &SessionClient, method: &str, params: Value) -> Value {
    let answer = checked(method, client.call(method, params).await);
    answer.unwrap_or_else(|error| panic!("{method}: {error}"))
}

/// Of each log whether it was removed, its block and its place there.
fn parts(logs: &Value) -> Vec<[Value; 3]> {
    let logs = logs.as_array().expect("a list").iter();
    logs.map(|log| ["removed", "blockHash", "logIndex"].map(|name| log[name].clone())).collect()
}

fn part(removed: bool, hash: &Value, index: u8) -> [Value; 3] {
    [json!(removed), hash.clone(), json!(format!("{index:#x}"))]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_filter_is_asked_over_any_connection_and_sees_a_reorganisation() {
    let mut chain = Chain::start().await;
    let genesis = chain.node.head().await;
    let [web, ipc] = chain.sessions().await;
    let mut ids = Vec::new();
    // One that is made over HTTP is asked over a WebSocket of the same port.
    for params in [json!([{}]), json!([{"topics": [B256::repeat_byte(2)]}])] {
        let made = chain.node.public("eth_newFilter", params.clone()).await;
        ids.push((made.expect("an identifier"), ask(&ipc, "eth_newFilter", params).await));
    }
    let blocks = chain.node.public("eth_newBlockFilter", json!([])).await.expect("an identifier");
    let ipc_blocks = ask(&ipc, "eth_newBlockFilter", json!([])).await;

    let changes = "eth_getFilterChanges";
    let one = chain.extend(&genesis, &[1], 0).await;
    for (client, id) in [(&web, &ids[0].0), (&ipc, &ids[0].1)] {
        let logs = ask(client, changes, json!([id])).await;
        assert_eq!(parts(&logs), [part(false, &one, 0), part(false, &one, 1)]);
        let all = ask(client, "eth_getFilterLogs", json!([id])).await;
        assert_eq!(all, logs);
        assert_eq!(ask(client, changes, json!([id])).await, json!([]));
    }
    // A branch of two blocks in its place.
    let first = chain.build(&genesis, &[2], 1).await;
    let first = chain.validate(&first).await;
    chain.first_nonce = 1;
    let second = chain.build(&first, &[3], 1).await;
    let second = chain.validate(&second).await;
    chain.choose(&second).await;
    for (client, [all, twos], blocks) in
        [(&web, [&ids[0].0, &ids[1].0], &blocks), (&ipc, [&ids[0].1, &ids[1].1], &ipc_blocks)]
    {
        let logs = ask(client, changes, json!([all])).await;
        let expected = [
            part(true, &one, 1),
            part(true, &one, 0),
            part(false, &first, 0),
            part(false, &first, 1),
            part(false, &second, 0),
            part(false, &second, 1),
        ];
        assert_eq!(parts(&logs), expected);
        let logs = ask(client, changes, json!([twos])).await;
        assert_eq!(parts(&logs), [part(false, &first, 0), part(false, &first, 1)]);
        // The first block was canonical between two calls.
        assert_eq!(ask(client, changes, json!([blocks])).await, json!([first, second]));
        assert_eq!(ask(client, "eth_uninstallFilter", json!([all])).await, json!(true));
        let error = client.call::<Value>(changes, json!([all])).await.expect_err("it has ended");
        assert!(error.to_string().contains("filter not found (-32000)"), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_filter_tells_of_transactions_that_become_pending() {
    let mut chain = Chain::start().await;
    let world = World::new(1).expect("the same world");
    let raw = |nonce| -> Bytes {
        let to = TxKind::Call(Address::repeat_byte(7));
        world.sign(nonce, to, Bytes::new(), 100_000).expect("signs").encoded_2718().into()
    };
    let made = "eth_newPendingTransactionFilter";
    let mut ids = Vec::new();
    for params in [json!([]), json!([true])] {
        ids.push(chain.node.public(made, params).await.expect("an identifier"));
    }
    let mut hashes = Vec::new();
    // The second one waits for the third.
    for nonce in [0, 2, 1] {
        let sent = chain.node.public("eth_sendRawTransaction", json!([raw(nonce)])).await;
        hashes.push(sent.expect("a hash"));
    }
    let mut whole = Vec::new();
    for index in [0, 2, 1] {
        let found = chain.node.public("eth_getTransactionByHash", json!([hashes[index]])).await;
        whole.push(found.expect("it waits"));
    }
    // One of them is in a block before the filters are asked.
    let genesis = chain.node.head().await;
    let block = chain.build_of(&genesis, vec![raw(0)], 0).await;
    let hash = chain.validate(&block).await;
    chain.choose(&hash).await;
    let expected = [json!([hashes[0], hashes[2], hashes[1]]), json!(whole)];
    for (id, expected) in ids.iter().zip(expected) {
        // The document has no filters of whole transactions.
        let told = chain.node.public.call("eth_getFilterChanges", json!([id])).await;
        assert_eq!(unwrap(told).expect("transactions"), expected);
        let told = chain.node.public("eth_getFilterChanges", json!([id])).await;
        assert_eq!(told.expect("nothing"), json!([]));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_see_what_helpers_do_to_a_chain_for_tests() {
    let mut dev = Dev::start(&["--quiet"]).await;
    dev.ok("anvil_setCode", json!([LOGGER, "0x5f355f5fa1"])).await;
    let logs = dev.ok("eth_newFilter", json!([{"address": LOGGER}])).await;
    let blocks = dev.ok("eth_newBlockFilter", json!([])).await;
    let pending = dev.ok("eth_newPendingTransactionFilter", json!([])).await;
    let snapshot = dev.ok("evm_snapshot", json!([])).await;
    let call = json!({"from": WHO, "to": LOGGER, "data": B256::repeat_byte(1)});
    let mut sent = Vec::new();
    for _ in 0..2 {
        sent.push(dev.ok("eth_sendTransaction", json!([call])).await);
    }
    let changes = "eth_getFilterChanges";
    assert_eq!(dev.ok(changes, json!([pending])).await, json!(sent));
    let told = dev.ok(changes, json!([logs])).await;
    let hashes = dev.ok(changes, json!([blocks])).await;
    let at = |index: usize| hashes[index].clone();
    assert_eq!(parts(&told), [part(false, &at(0), 0), part(false, &at(1), 0)]);

    assert_eq!(dev.ok("evm_revert", json!([snapshot])).await, json!(true));
    let told = dev.ok(changes, json!([logs])).await;
    assert_eq!(parts(&told), [part(true, &at(1), 0), part(true, &at(0), 0)]);
    let head = dev.ok("eth_getBlockByNumber", json!(["latest", false])).await;
    assert_eq!(dev.ok(changes, json!([blocks])).await, json!([head["hash"]]));

    // A block, which anvil_reorg replaces by one without the log.
    dev.ok("eth_sendTransaction", json!([call])).await;
    let before = dev.ok(changes, json!([blocks])).await;
    assert_eq!(parts(&dev.ok(changes, json!([logs])).await), [part(false, &before[0], 0)]);
    dev.ok("anvil_reorg", json!([1, []])).await;
    assert_eq!(parts(&dev.ok(changes, json!([logs])).await), [part(true, &before[0], 0)]);
    let after = dev.ok(changes, json!([blocks])).await;
    let head = dev.ok("eth_getBlockByNumber", json!(["latest", false])).await;
    assert_eq!(after, json!([head["hash"]]));
    assert_ne!(after, before);
    dev.ok("eth_sendTransaction", json!([{"from": WHO, "to": OTHER, "value": "0x1"}])).await;
    assert_eq!(dev.ok(changes, json!([logs])).await, json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn viem_and_web3_py_follow_a_chain_by_filters() {
    let Some(tools) = tools() else { return };
    let dev = Dev::start(&["--quiet"]).await;
    let address = format!("http://{}", dev.address);
    let mut viem = Command::new("node");
    viem.arg(script("filters_viem.mjs")).arg(&address).env("DEPONENT_TOOLS", &tools);
    let done = json!({"done": ["blocks", "logs", "pending"]});
    assert_eq!(output(viem).await, done);
    let mut web3 = Command::new(tools.join("venv/bin/python"));
    web3.arg(script("filters_web3.py")).arg(&address);
    assert_eq!(output(web3).await, done);
}
