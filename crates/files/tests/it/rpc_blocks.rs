//! Blocks of JSON-RPC answers are those that were answered, and nothing that a server adds or
//! changes gets in.

use alloy_consensus::{
    BlockBody, Header, SignableTransaction, TxEip1559, TxEip2930, TxEip4844, TxEip7702, TxLegacy,
    proofs,
};
use alloy_eips::eip4895::{Withdrawal, Withdrawals};
use alloy_eips::eip7685::{EMPTY_REQUESTS_HASH, Requests};
use alloy_eips::eip7702::Authorization;
use alloy_primitives::{Address, B256, Bytes, Signature, TxKind, U256, hex, keccak256, uint};
use deponent_files::{AnswerError, raw_block, rpc_access_list, rpc_block, rpc_requests};
use execution::{SealedBlock, Transaction};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use testing::fixtures;

/// The x of the curve's generator is some key's `r` for any hash.
fn signature() -> Signature {
    let r = uint!(0x79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798_U256);
    Signature::new(r, U256::from(7), false)
}

/// One of each type, and a legacy one of no chain.
fn transactions() -> Vec<Transaction> {
    let to = Address::repeat_byte(7);
    let authorization = Authorization { chain_id: U256::ZERO, address: to, nonce: 0 };
    let legacy = TxLegacy { to: TxKind::Create, input: vec![0x60].into(), ..Default::default() };
    vec![
        legacy.clone().into_signed(signature()).into(),
        TxLegacy { chain_id: Some(1), ..legacy }.into_signed(signature()).into(),
        TxEip2930 { chain_id: 1, to: to.into(), ..Default::default() }
            .into_signed(signature())
            .into(),
        TxEip1559 { chain_id: 1, max_fee_per_gas: 9, ..Default::default() }
            .into_signed(signature())
            .into(),
        TxEip4844 {
            to,
            blob_versioned_hashes: vec![B256::with_last_byte(1)],
            ..Default::default()
        }
        .into_signed(signature())
        .into(),
        TxEip7702 {
            to,
            authorization_list: vec![authorization.into_signed(signature())],
            ..Default::default()
        }
        .into_signed(signature())
        .into(),
    ]
}

fn made() -> SealedBlock {
    let transactions = transactions();
    let withdrawal = Withdrawal { index: 1, validator_index: 2, amount: 3, ..Default::default() };
    let withdrawals = Withdrawals::new(vec![withdrawal]);
    let header = Header {
        number: 5,
        transactions_root: proofs::calculate_transaction_root(&transactions),
        withdrawals_root: Some(proofs::calculate_withdrawals_root(&withdrawals)),
        base_fee_per_gas: Some(7),
        blob_gas_used: Some(131_072),
        excess_blob_gas: Some(0),
        parent_beacon_block_root: Some(B256::repeat_byte(3)),
        requests_hash: Some(EMPTY_REQUESTS_HASH),
        ..Default::default()
    };
    let body = BlockBody { transactions, ommers: vec![], withdrawals: Some(withdrawals) };
    SealedBlock::new(execution::Block { header, body })
}

/// The block as `eth_getBlockByHash` answers it.
fn shown(block: &SealedBlock) -> Value {
    type Shown = alloy_rpc_types_eth::Block<alloy_rpc_types_eth::Transaction<Transaction>>;
    let (hash, block) = (block.hash(), (**block).clone());
    let header = alloy_consensus::Sealed::new_unchecked(block.header.clone(), hash);
    let base_fee = block.header.base_fee_per_gas;
    let place = |index: usize| alloy_rpc_types_eth::TransactionInfo {
        hash: None,
        index: Some(index as u64),
        block_hash: Some(hash),
        block_number: Some(header.number),
        base_fee,
        ..Default::default()
    };
    let transactions = block.body.transactions.iter().enumerate().map(|(index, transaction)| {
        let sender = Address::repeat_byte(1);
        let signed =
            alloy_consensus::transaction::Recovered::new_unchecked(transaction.clone(), sender);
        alloy_rpc_types_eth::Transaction::from_transaction(signed, place(index))
    });
    let shown = Shown {
        transactions: alloy_rpc_types_eth::BlockTransactions::Full(transactions.collect()),
        header: alloy_rpc_types_eth::Header::from_consensus(header.clone(), None, None),
        uncles: vec![],
        withdrawals: block.body.withdrawals.clone(),
    };
    serde_json::to_value(shown).expect("JSON")
}

fn raw(block: &SealedBlock) -> String {
    json!(hex::encode_prefixed(alloy_rlp::encode(&**block))).to_string()
}

#[track_caller]
fn check(block: &SealedBlock) {
    let found = rpc_block(&shown(block).to_string()).expect("it fits together").expect("a block");
    assert_eq!(found, *block);
    let hashes = |block: &SealedBlock| -> Vec<B256> {
        block.body.transactions.iter().map(|transaction| *transaction.hash()).collect()
    };
    assert_eq!(hashes(&found), hashes(block));
    assert_eq!(raw_block(&raw(block)).expect("RLP").expect("a block"), *block);
}

#[track_caller]
fn refused(answer: &Value, word: &str) {
    let error = rpc_block(&answer.to_string()).expect_err("refused").to_string();
    assert!(error.contains(word), "{error}");
}

#[test]
fn a_block_with_all_types_of_transactions_comes_back() {
    check(&made());
    check(&SealedBlock::new(execution::Block::default()));
}

#[test]
fn real_blocks_come_back() {
    let Some(fixtures) = fixtures() else { return };
    let mut found = 0;
    for file in fixtures.join("blocks").read_dir().expect("a folder") {
        let text = std::fs::read(file.expect("a file").path()).expect("it is read");
        let document: Value = serde_json::from_slice(&text).expect("JSON");
        let rlp = hex::decode(document["block"].as_str().expect("hex")).expect("hex");
        check(&execution::decode_block(&rlp).expect("a block"));
        found += 1;
    }
    assert!(found >= 10, "{found}");
}

#[test]
fn what_a_server_changes_does_not_get_in() {
    let block = made();
    let good = shown(&block);
    let changed = |pointer: &str, value: Value| {
        let mut answer = good.clone();
        *answer.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")) = value;
        answer
    };
    // A change of what its hash commits to is refused.
    refused(&changed("/stateRoot", json!(B256::ZERO)), "its fields give");
    refused(&changed("/hash", json!(B256::ZERO)), "its fields give");
    refused(&changed("/transactions/2/nonce", json!("0x9")), "transactions root");
    refused(&changed("/withdrawals/0/amount", json!("0x9")), "withdrawals root");
    refused(&changed("/withdrawals", Value::Null), "withdrawals root");
    refused(&changed("/transactions", json!([B256::ZERO])), "only the hashes");
    refused(&changed("/transactions", json!([])), "transactions root");
    refused(&changed("/uncles", json!([B256::ZERO])), "ommers");
    for other in [json!([]), json!("0x"), json!({}), json!(7)] {
        rpc_block(&other.to_string()).expect_err("no block");
    }
    // The rest is not taken from the answer.
    for index in 0..6 {
        let lie = changed(&format!("/transactions/{index}/hash"), json!(B256::ZERO));
        let found = rpc_block(&lie.to_string()).expect("it fits together").expect("a block");
        let own = block.body.transactions[index].hash();
        assert_eq!(found.body.transactions[index].hash(), own);
    }
    assert!(rpc_block(" null").expect("an answer").is_none());
    assert!(raw_block("null").expect("an answer").is_none());
    let mut cut = (*block).clone();
    cut.body.transactions.pop();
    let cut = raw(&SealedBlock::new(cut));
    let error = raw_block(&cut).expect_err("another body").to_string();
    assert!(error.contains("block 5: transactions root"), "{error}");
    raw_block(&cut.replace("0xf9", "0xf8")).expect_err("no block");
}

fn answer(value: &Value) -> Box<RawValue> {
    RawValue::from_string(value.to_string()).expect("JSON")
}

#[test]
fn what_no_block_has_is_asked_for_and_checked() {
    let list = Bytes::from_static(b"list");
    let mut block = (*made()).clone();
    let plain = SealedBlock::new(block.clone());
    let none = rpc_access_list::<AnswerError>(&plain, |_, _| panic!("there is nothing to ask for"));
    assert_eq!(none.expect("none"), None);
    block.header.block_access_list_hash = Some(keccak256(&list));
    let block = SealedBlock::new(block);
    let of = |bodies: Value| {
        rpc_access_list::<AnswerError>(&block, |method, params| {
            assert_eq!(method, "engine_getPayloadBodiesByHashV2");
            assert_eq!(params, json!([[block.hash()]]).to_string());
            Ok(answer(&bodies))
        })
    };
    let body = |list: &Bytes| json!([{"transactions": [], "blockAccessList": list}]);
    assert_eq!(of(body(&list)).expect("its list"), Some(list));
    of(body(&Bytes::from_static(b"lies"))).expect_err("another list");
    of(json!([null])).expect_err("no body");
    of(json!(7)).expect_err("no bodies");

    let empty = rpc_requests::<AnswerError>(5, EMPTY_REQUESTS_HASH, |_, _| {
        panic!("there is nothing to ask for")
    });
    assert_eq!(empty.expect("none"), Requests::default());
    // A queue that begins beyond all slots, and receipts that are none.
    let far = json!({"storageProof": [{"value": U256::from(u64::MAX)}]});
    for proof in [far, json!({"storageProof": []}), json!(7)] {
        let asked = rpc_requests::<AnswerError>(5, B256::ZERO, |method, _| match method {
            "eth_getBlockReceipts" => Ok(answer(&json!([]))),
            _ => Ok(answer(&proof)),
        });
        asked.expect_err("no requests");
    }
}
