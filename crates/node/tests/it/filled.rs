//! Transactions that are filled in, found by their nonces, and of blocks that are invalid.

use alloy_consensus::{Transaction as _, TxEip1559};
use alloy_primitives::{Address, B256, Bytes, TxKind, keccak256};
use alloy_rlp::Decodable as _;
use deponent_node::demo::World;
use rpc::Code;
use serde_json::{Value, json};

use crate::support::*;

/// An account of the genesis with money.
fn rich(genesis: &Value) -> Value {
    let accounts = genesis["alloc"].as_object().expect("accounts");
    let is_rich = |account: &Value| account["balance"].as_str().is_some_and(|it| it.len() > 13);
    let found = accounts.iter().find(|(_, account)| is_rich(account));
    let address: Address = found.expect("one is rich").0.parse().expect("an address");
    json!(address)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_is_filled_in_and_not_signed() {
    let genesis = genesis_of_osaka();
    let from = rich(&genesis);
    let mut node = TestNode::start(genesis).await;
    let to = json!(Address::repeat_byte(9));
    let params = json!([{ "from": from, "to": to, "value": "0x5" }]);
    let filled = node.public("eth_fillTransaction", params).await.expect("filled");
    let (raw, tx) = (filled["raw"].as_str().expect("hex"), &filled["tx"]);
    let raw: Bytes = raw.parse().expect("hex");
    assert_eq!(tx["hash"], json!(keccak256(&raw)));
    // The bytes are those of the members, with a signature of zeroes behind them.
    assert_eq!(raw[0], 2);
    let (read, signature) = read_unsigned(&raw[1..]);
    assert_eq!(signature, [0, 0, 0]);
    assert_eq!((json!(read.to), &tx["to"]), (to.clone(), &to));
    for (name, value) in [
        ("type", 2),
        ("chainId", 1337),
        ("nonce", 0),
        ("gas", 21_000),
        ("value", 5),
        ("maxPriorityFeePerGas", read.max_priority_fee_per_gas),
        ("maxFeePerGas", read.max_fee_per_gas),
        ("v", 0),
        ("yParity", 0),
    ] {
        assert_eq!(tx[name], json!(format!("{value:#x}")), "{name}: {tx}");
    }
    assert_eq!((read.nonce, read.gas_limit, read.chain_id), (0, 21_000, 1337));
    let block = node.public("eth_getBlockByNumber", json!(["latest", false])).await.expect("one");
    let base_fee = block["baseFeePerGas"].as_str().expect("hex");
    let base_fee = u128::from_str_radix(&base_fee[2..], 16).expect("hex");
    assert_eq!(read.max_fee_per_gas, 2 * base_fee + read.max_priority_fee_per_gas);
    assert_eq!((&tx["gasPrice"], &tx["accessList"]), (&Value::Null, &json!([])));
    assert_eq!(tx["input"], "0x");
    // Members that are given stay as they are.
    let given = json!([{ "from": from, "to": to, "gasPrice": "0x77359400", "nonce": "0x7",
                         "gas": "0x186a0", "data": "0x1234" }]);
    let legacy = node.public("eth_fillTransaction", given).await.expect("filled")["tx"].clone();
    for (name, value) in
        [("type", "0x0"), ("nonce", "0x7"), ("gas", "0x186a0"), ("gasPrice", "0x77359400")]
    {
        assert_eq!(legacy[name], value, "{name}: {legacy}");
    }
    assert_eq!((&legacy["maxFeePerGas"], legacy.get("chainId")), (&Value::Null, None));
    let blobs = json!([{ "from": from, "to": to, "blobVersionedHashes": [BLOB_HASH] }]);
    let blobs = node.public("eth_fillTransaction", blobs).await.expect("filled")["tx"].clone();
    let price = node.public("eth_blobBaseFee", json!([])).await.expect("a price");
    let price = u128::from_str_radix(&price.as_str().expect("hex")[2..], 16).expect("hex");
    assert_eq!(blobs["maxFeePerBlobGas"], json!(format!("{:#x}", 2 * price)), "{blobs}");
    assert_eq!(
        (&blobs["type"], &blobs["blobVersionedHashes"]),
        (&json!("0x3"), &json!([BLOB_HASH]))
    );
}

/// The members of a transaction, and the three parts of its signature.
fn read_unsigned(mut rlp: &[u8]) -> (TxEip1559, [u64; 3]) {
    use alloy_consensus::transaction::RlpEcdsaDecodableTx as _;
    let header = alloy_rlp::Header::decode(&mut rlp).expect("a list");
    assert!(header.list && header.payload_length == rlp.len());
    let read = TxEip1559::rlp_decode_fields(&mut rlp).expect("its members");
    let part = |rlp: &mut &[u8]| u64::decode(rlp).expect("a part of the signature");
    let signature = [part(&mut rlp), part(&mut rlp), part(&mut rlp)];
    assert!(rlp.is_empty());
    (read, signature)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_cannot_be_is_not_filled_in() {
    let genesis = genesis_of_osaka();
    let from = rich(&genesis);
    let mut node = TestNode::start(genesis).await;
    let to = json!(Address::repeat_byte(9));
    let poor = json!(Address::repeat_byte(8));
    let reverts = json!({ "from": from, "data": "0x60006000fd" });
    for (request, words) in [
        (json!({ "from": from }), "contract creation without any data provided"),
        (json!({ "from": from, "blobVersionedHashes": [BLOB_HASH] }), "missing \"to\" in blob"),
        (json!({ "from": from, "to": to, "blobVersionedHashes": [] }), "need at least 1 blob"),
        (
            json!({ "from": from, "to": to, "blobVersionedHashes": vec![BLOB_HASH; 7] }),
            "too many blobs in transaction (have=7, max=6)",
        ),
        (json!({ "from": from, "to": to, "data": "0x", "input": "0x01" }), "are set and not equal"),
        (json!({ "from": from, "to": to, "gasPrice": "0x0" }), "gasPrice must be non-zero"),
        (json!({ "from": from, "to": to, "chainId": "0x1" }), "chainId does not match node's"),
        (json!({ "from": poor, "to": to, "value": "0x1" }), "insufficient funds for transfer"),
        (reverts, "execution reverted"),
    ] {
        let refused = node.public("eth_fillTransaction", json!([request])).await;
        let refused = refused.expect_err("refused").message;
        assert!(refused.contains(words), "{request}: {refused}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_is_found_by_its_sender_and_nonce() {
    let world = World::new(0).expect("a world");
    let genesis = serde_json::to_value(&world.genesis).expect("JSON");
    let mut node = TestNode::start_with(genesis, |options| {
        options.engine_options.retain_history = 8;
    })
    .await;
    let to = TxKind::Call(Address::repeat_byte(9));
    let sign = |nonce| world.sign(nonce, to, Bytes::new(), 50_000).expect("signed");
    let mut nonce = 0;
    let mut mined = Vec::new();
    // Blocks with none, one, two and three transactions, and again.
    for block in 1..=10 {
        let transactions: Vec<_> = (nonce..nonce + (block - 1) % 4).map(sign).collect();
        nonce += transactions.len() as u64;
        node.extend(OSAKA, world.genesis.timestamp + 12 * block, &transactions).await;
        mined.extend(transactions.iter().map(|transaction| (block, *transaction.hash())));
    }
    let hash = json!([mined[0].1]);
    let sender = node.public("eth_getTransactionByHash", hash).await.expect("one")["from"].clone();
    let find = |nonce: usize| json!([sender, format!("{nonce:#x}")]);
    for (nonce, (block, hash)) in mined.iter().enumerate() {
        let found = node.public("eth_getTransactionBySenderAndNonce", find(nonce)).await;
        // The states of eight blocks before the head are there.
        let Ok(found) = found else {
            assert!(*block < 3 && found.expect_err("pruned").is(Code::PrunedHistory), "{nonce}");
            continue;
        };
        assert_eq!(found["hash"], json!(hash), "{nonce}");
        assert_eq!(found["blockNumber"], json!(format!("{block:#x}")), "{nonce}");
    }
    // One in the pool, and one that nobody has sent.
    let raw = &raw(&[sign(nonce)])[0];
    let hash = node.public("eth_sendRawTransaction", json!([raw])).await.expect("taken");
    let waiting = node.public("eth_getTransactionBySenderAndNonce", find(mined.len())).await;
    let waiting = waiting.expect("found");
    assert_eq!((&waiting["hash"], &waiting["blockHash"]), (&hash, &Value::Null));
    let none = node.public("eth_getTransactionBySenderAndNonce", find(mined.len() + 1)).await;
    assert_eq!(none.expect("an answer"), Value::Null);
    let nobody = json!([Address::repeat_byte(0xab), "0x0"]);
    let none = node.public("eth_getTransactionBySenderAndNonce", nobody).await;
    assert_eq!(none.expect("an answer"), Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_newest_invalid_blocks_are_told_whole() {
    let mut node = TestNode::start(genesis_of_osaka()).await;
    assert_eq!(node.public("debug_getBadBlocks", json!([])).await.expect("a list"), json!([]));
    let head = node.head().await;
    let transactions = &transactions()[..3];
    let params = json!([head, attributes(1, 3), raw(transactions), "0x"]);
    let envelope = node.ok("testing_buildBlockV1", params).await;
    let mut hashes = Vec::new();
    for byte in 0..18 {
        let mut bad = envelope.clone();
        let payload = &mut bad["executionPayload"];
        payload["stateRoot"] = json!(B256::repeat_byte(byte));
        // With another hash than its fields have, it is none.
        for is_new in [true, false] {
            let status = node.ok("engine_newPayloadV4", new_payload(4, &bad)).await;
            assert_eq!(status["status"], "INVALID", "{status}");
            let said = status["validationError"].as_str().expect("a reason");
            let right = said.split("hash to ").nth(1).map(|rest| rest[..66].to_owned());
            match right {
                Some(hash) if is_new => bad["executionPayload"]["blockHash"] = json!(hash),
                _ => {}
            }
        }
        // Once more: it is known.
        node.ok("engine_newPayloadV4", new_payload(4, &bad)).await;
        hashes.push(bad["executionPayload"]["blockHash"].clone());
    }
    let told = node.public("debug_getBadBlocks", json!([])).await.expect("a list");
    let told = told.as_array().expect("a list");
    let found: Vec<_> = told.iter().map(|block| block["hash"].clone()).collect();
    assert_eq!(found, hashes.into_iter().rev().take(16).collect::<Vec<_>>());
    for block in told {
        assert_eq!(block["block"]["hash"], block["hash"]);
        let count = block["block"]["transactions"].as_array().expect("a list").len();
        assert_eq!(count, transactions.len());
        let rlp: Bytes = serde_json::from_value(block["rlp"].clone()).expect("hex");
        let decoded = execution::decode_block(&rlp).expect("a block");
        assert_eq!(json!(decoded.hash()), block["hash"]);
        assert_eq!(decoded.body.transactions[0].nonce(), transactions[0].nonce());
    }
}
