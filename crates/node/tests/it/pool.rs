//! Transactions that are sent to a node, wait for a block, and come back when it leaves the chain.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::dev::Dev;
use crate::persistence::Process;
use crate::subscriptions::Chain;
use alloy_consensus::TxEip1559;
use alloy_eips::eip2718::Encodable2718;
use alloy_primitives::{Address, Bytes, TxKind};
use deponent_node::Wallet;
use deponent_node::demo::World;
use rpc::{Client, Code, Error};
use serde_json::{Value, json};

/// Sends a transaction of the world's sender to the public port.
async fn send(chain: &mut Chain, nonce: u64) -> Result<Value, Error> {
    let raw = raw(&World::new(1).expect("the same world"), nonce);
    chain.node.public("eth_sendRawTransaction", json!([raw])).await
}

fn raw(world: &World, nonce: u64) -> Bytes {
    let to = TxKind::Call(Address::repeat_byte(7));
    world.sign(nonce, to, Bytes::new(), 100_000).expect("signs").encoded_2718().into()
}

/// Waits until the pool has so many transactions: it follows the head behind the fork choice.
async fn until(chain: &mut Chain, pending: u64, queued: u64) {
    let expected = json!({
        "pending": format!("{pending:#x}"), "queued": format!("{queued:#x}"),
    });
    let start = Instant::now();
    loop {
        let found = chain.node.public("txpool_status", json!([])).await.expect("an answer");
        if found == expected {
            return;
        }
        assert!(start.elapsed() < Duration::from_secs(30), "{found}, and not {expected}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn block_of(chain: &mut Chain, hash: &Value) -> Value {
    let found = chain.node.public("eth_getTransactionByHash", json!([hash])).await;
    let mut found = found.expect("an answer");
    assert_eq!(found["hash"], *hash, "{found}");
    if found["blockHash"].is_null() {
        for name in ["blockNumber", "blockTimestamp", "transactionIndex"] {
            assert_eq!(found.get(name), Some(&Value::Null), "{found}");
        }
    }
    found["blockHash"].take()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_waits_for_a_block_and_comes_back_when_the_block_leaves_the_chain() {
    let mut chain = Chain::start().await;
    let genesis = chain.node.head().await;
    let first = send(&mut chain, 0).await.expect("a hash");
    let gapped = send(&mut chain, 2).await.expect("a hash");
    until(&mut chain, 1, 1).await;
    assert_eq!(block_of(&mut chain, &first).await, Value::Null);
    assert_eq!(block_of(&mut chain, &gapped).await, Value::Null);
    let world = World::new(1).expect("the same world");
    let ask = async |chain: &mut Chain, method: &str, params: Value| {
        chain.node.public(method, params).await.expect("an answer")
    };
    for method in ["eth_getRawTransactionByHash", "debug_getRawTransaction"] {
        assert_eq!(ask(&mut chain, method, json!([first])).await, json!(raw(&world, 0)));
    }

    let found = ask(&mut chain, "eth_getTransactionByHash", json!([first])).await;
    let sender: Address = serde_json::from_value(found["from"].clone()).expect("an address");
    let nonce = async |chain: &mut Chain, tag: &str| {
        ask(chain, "eth_getTransactionCount", json!([sender, tag])).await
    };
    assert_eq!(nonce(&mut chain, "pending").await, "0x1");
    assert_eq!(nonce(&mut chain, "latest").await, "0x0");
    let gapped_found = ask(&mut chain, "eth_getTransactionByHash", json!([gapped])).await;
    let lists = json!({"pending": {"0": found}, "queued": {"2": gapped_found}});
    assert_eq!(ask(&mut chain, "txpool_contentFrom", json!([sender])).await, lists);
    let name = sender.to_checksum(None);
    let content = ask(&mut chain, "txpool_content", json!([])).await;
    assert_eq!(content["pending"], json!({name.clone(): lists["pending"]}));
    assert_eq!(content["queued"], json!({name.clone(): lists["queued"]}));
    let line = "0x0707070707070707070707070707070707070707: 0 wei + 100000 gas × 100000000000 wei";
    let inspected = ask(&mut chain, "txpool_inspect", json!([])).await;
    let line = json!({name.clone(): {"0": line}});
    assert_eq!(inspected["pending"], line);
    let nobody = ask(&mut chain, "txpool_contentFrom", json!([Address::ZERO])).await;
    assert_eq!(nobody, json!({"pending": {}, "queued": {}}));

    // A block with it, made of the same bytes.
    let envelope = chain.build_of(&genesis, vec![raw(&world, 0)], 0).await;
    let with = chain.validate(&envelope).await;
    chain.choose(&with).await;
    until(&mut chain, 0, 1).await;
    assert_eq!(block_of(&mut chain, &first).await, with);
    assert_eq!(nonce(&mut chain, "pending").await, "0x1");

    // A block without it in its place.
    let envelope = chain.build_of(&genesis, Vec::new(), 1).await;
    let without = chain.validate(&envelope).await;
    chain.choose(&without).await;
    until(&mut chain, 1, 1).await;
    assert_eq!(block_of(&mut chain, &first).await, Value::Null);

    // The one that was missing.
    send(&mut chain, 1).await.expect("a hash");
    until(&mut chain, 3, 0).await;
    assert_eq!(nonce(&mut chain, "pending").await, "0x3");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_transaction_that_was_answered_is_lost_when_the_process_is_killed() {
    let dir = tempfile::tempdir().expect("a directory");
    let world = World::new(1).expect("the world is made");
    let genesis = dir.path().join("genesis.json");
    std::fs::write(&genesis, json!(world.genesis).to_string()).expect("written");
    let mut hashes = Vec::new();
    for round in 0..3 {
        let node = Process::start_with(dir.path(), &[]).await;
        let mut public = Client::connect(&node.public, None).await.expect("a connection");
        for hash in &hashes {
            let found = public.call("eth_getTransactionByHash", json!([hash])).await;
            let found: Value = found.expect("an answer");
            assert_eq!(found["hash"], *hash, "{round}: {found}");
        }
        // The later ones first: they are queued until the last one comes.
        for nonce in [2, 1, 0].map(|nonce| round * 3 + nonce) {
            let raw = json!([raw(&world, nonce)]);
            let hash: Value = public.call("eth_sendRawTransaction", raw).await.expect("taken");
            hashes.push(hash);
        }
        node.kill();
    }
    let node = Process::start_with(dir.path(), &[]).await;
    let mut public = Client::connect(&node.public, None).await.expect("a connection");
    let status: Value = public.call("txpool_status", json!([])).await.expect("an answer");
    assert_eq!(status, json!({"pending": "0x9", "queued": "0x0"}));
    node.kill();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_is_refused_in_geths_words_on_both_ports() {
    let mut chain = Chain::start().await;
    send(&mut chain, 0).await.expect("a hash");
    let words = |error: Error| {
        assert!(error.is(Code::Server) && error.data.is_none(), "{error}");
        error.message.into_owned()
    };
    assert_eq!(words(send(&mut chain, 0).await.expect_err("known")), "already known");
    for (raw, expected) in [
        ("0x", "typed transaction too short"),
        ("0x05", "transaction type not supported"),
        ("0x02c0", "rlp: input too short"),
    ] {
        let error = chain.node.call("eth_sendRawTransaction", json!([raw])).await;
        assert_eq!(words(error.expect_err("no transaction")), expected);
        let error = chain.node.public("eth_sendRawTransaction", json!([raw])).await;
        assert_eq!(words(error.expect_err("no transaction")), expected);
    }
    let error = chain.node.public("eth_sendRawTransaction", json!(["0x0"])).await;
    assert!(error.expect_err("half a byte").is(Code::InvalidParams));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_is_waited_for_until_a_block_has_it() {
    let mut chain = Chain::start().await;
    let world = World::new(1).expect("the same world");
    let method = "eth_sendRawTransactionSync";
    // Sixty on each of two connections wait, more than there are turns and threads.
    let sessions = chain.sessions().await.map(Arc::new);
    let mut waiting = Vec::new();
    for nonce in 0..120 {
        let (session, params) = (sessions[nonce % 2].clone(), json!([raw(&world, nonce as u64)]));
        let call = tokio::spawn(async move { session.call::<Value>(method, params).await });
        waiting.push(call);
        until(&mut chain, nonce as u64 + 1, 0).await;
    }
    // Other calls are answered meanwhile.
    let price = chain.node.public("eth_gasPrice", json!([])).await;
    price.expect("it has a turn");
    let genesis = chain.node.head().await;
    let transactions = (0..120).map(|nonce| raw(&world, nonce)).collect();
    let block = chain.build_of(&genesis, transactions, 0).await;
    let hash = chain.validate(&block).await;
    chain.choose(&hash).await;
    let receipts = chain.node.public("eth_getBlockReceipts", json!([hash])).await;
    let receipts = receipts.expect("receipts");
    for (index, waiting) in waiting.into_iter().enumerate() {
        let receipt = waiting.await.expect("no panic").expect("a receipt");
        assert_eq!(receipt, receipts[index], "{index}");
    }

    // Nothing has it in time.
    for (nonce, time) in [(120, json!(50)), (121, json!("0x32"))] {
        let params = json!([raw(&world, nonce), time]);
        let error = chain.node.public(method, params).await.expect_err("no block");
        let words =
            "The transaction was added to the transaction pool but wasn't processed in 50ms";
        assert_eq!((error.code, &*error.message), (4, words));
        let hash = error.data.expect("its hash");
        assert_eq!(block_of(&mut chain, &hash).await, Value::Null);
    }
    let known = chain.node.public(method, json!([raw(&world, 120), 50])).await;
    assert_eq!(known.expect_err("known").message, "already known");
    let error = chain.node.public(method, json!(["0x"])).await.expect_err("no transaction");
    assert_eq!(error.message, "typed transaction too short");
    let error = chain.node.public(method, json!([raw(&world, 122), "soon"])).await;
    assert!(error.expect_err("no number").is(Code::InvalidParams));
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_chain_for_tests_the_receipt_is_there_at_once() {
    let mut dev = Dev::start(&["--quiet"]).await;
    let phrase = "test test test test test test test test test test test junk";
    let wallet = Wallet::from_mnemonic(phrase, 1).expect("a mnemonic");
    let transaction = TxEip1559 {
        chain_id: 31337,
        max_fee_per_gas: 10_000_000_000,
        gas_limit: 21_000,
        to: TxKind::Call(Address::repeat_byte(7)),
        ..TxEip1559::default()
    };
    let sender = wallet.keys()[0].0;
    let signed = wallet.sign_transaction(&sender, transaction.into()).expect("its key is there");
    let raw = Bytes::from(signed.encoded_2718());
    let receipt = dev.ok("eth_sendRawTransactionSync", json!([raw])).await;
    assert_eq!((&receipt["status"], &receipt["blockNumber"]), (&json!("0x1"), &json!("0x1")));
    let hash = json!([signed.tx_hash()]);
    assert_eq!(dev.ok("eth_getTransactionReceipt", hash).await, receipt);
}
