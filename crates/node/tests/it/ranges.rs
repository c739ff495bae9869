//! The state by parts, on a chain for tests: pages of accounts and slots hold what single reads
//! answer, modified accounts are those that differ, and roots are those of the blocks.

use std::collections::{BTreeMap, BTreeSet};

use alloy_primitives::{Address, B256, U256, keccak256};
use rpc::Code;
use serde_json::{Value, json};
use testing::Random;

use crate::dev::{Dev, WHO};
use crate::geth_estimates::{ACCOUNTS, code};

const ONE: Address = ACCOUNTS[0];

/// Stores its input's first word in the slot of its second.
const STORE: &str = "0x5f356020355500";

fn word(value: u64) -> B256 {
    B256::from(U256::from(value))
}

/// All slots of a storage before a transaction of a block, page by page.
async fn slots(dev: &mut Dev, block: &Value, index: u64, most: u64) -> BTreeMap<B256, B256> {
    let (mut all, mut next) = (BTreeMap::new(), json!("0x"));
    loop {
        let params = json!([block, index, ONE, next, most]);
        let page = dev.ok("debug_storageRangeAt", params).await;
        let Some(slots) = page["storage"].as_object() else { return all };
        assert!(slots.len() as u64 <= most.min(256));
        for (key, slot) in slots {
            assert_eq!(slot["key"], Value::Null);
            let value = serde_json::from_value(slot["value"].clone()).expect("a word");
            assert!(all.insert(key.parse().expect("a hash"), value).is_none(), "{key} again");
        }
        next = page["nextKey"].clone();
        if next.is_null() {
            return all;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn slots_are_told_page_by_page_before_each_transaction() {
    let mut random = Random::seeded();
    let mut dev = Dev::start(&["--quiet"]).await;
    let latest = json!("latest");
    dev.ok("anvil_setCode", json!([ONE, STORE])).await;
    let mut expected = BTreeMap::new();
    let mut store = |slot: u64, value: u64| {
        let key = keccak256(word(slot));
        match value {
            0 => drop(expected.remove(&key)),
            value => drop(expected.insert(key, word(value))),
        }
        let input = [word(value), word(slot)].concat();
        let input = alloy_primitives::hex::encode_prefixed(input);
        let sent = json!({"from": WHO, "to": ONE, "gas": "0x186a0", "input": input});
        (sent, expected.clone())
    };
    dev.ok("evm_mine", json!([])).await;
    assert_eq!(
        dev.ok("debug_storageRangeAt", json!([latest, 0, ONE, "0x", 9])).await,
        json!({"storage": null, "nextKey": null})
    );
    dev.ok("evm_setAutomine", json!([false])).await;
    let mut states = vec![BTreeMap::new()];
    for _ in 0..6 {
        let before = states.pop().expect("the state before the block");
        states = vec![before];
        for _ in 0..40 {
            let slot = random.below(30) as u64 + 1_000 * random.below(3) as u64;
            let value = random.pick(&[0, 1, 1, 7]);
            let (sent, after) = store(slot, value);
            dev.ok("eth_sendTransaction", json!([sent])).await;
            states.push(after);
        }
        dev.ok("evm_mine", json!([])).await;
        for (index, expected) in states[..40].iter().enumerate() {
            let most = random.pick(&[1, 2, 7, 256, 1_000]);
            let found = slots(&mut dev, &latest, index as u64, most).await;
            assert_eq!(found, *expected, "before transaction {index}, {most} a page");
        }
    }
    let refused = json!([latest, 40, ONE, "0x", 9]);
    let words = "transaction index 40 out of range for block";
    dev.refused("debug_storageRangeAt", refused, Code::Server, words).await;
    let genesis = json!(["0x0", 0, ONE, "0x", 9]);
    dev.refused("debug_storageRangeAt", genesis, Code::Server, "no transaction in genesis").await;
    let hash = keccak256(ONE);
    let words = "its hash is taken for block 0 alone";
    dev.refused(
        "debug_storageRangeAt",
        json!([latest, 0, hash, "0x", 9]),
        Code::InvalidParams,
        words,
    )
    .await;
    assert_eq!(
        dev.ok("debug_storageRangeAt", json!(["0x0", 0, hash, "0x", 9])).await,
        json!({"storage": null, "nextKey": null})
    );
    let long = json!([latest, 0, ONE, format!("0x{}", "00".repeat(33)), 9]);
    dev.refused("debug_storageRangeAt", long, Code::InvalidParams, "at most 32").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn accounts_are_told_page_by_page_and_modified_ones_by_address() {
    let mut random = Random::seeded();
    let mut dev = Dev::start(&["--quiet"]).await;
    for address in &ACCOUNTS[..4] {
        dev.ok("anvil_setCode", json!([address, code(&mut random)])).await;
        dev.ok("anvil_setBalance", json!([address, "0x64"])).await;
    }
    let mut known: BTreeSet<Address> = ACCOUNTS.into_iter().collect();
    known.extend((0..=0x11).map(Address::with_last_byte));
    known.insert(WHO.parse().expect("an address"));
    let mut heads = Vec::new();
    for count in 0..12_u64 {
        let to = match random.one_in(3) {
            true => Address::from_word(keccak256(word(count))),
            false => random.pick(&ACCOUNTS),
        };
        known.insert(to);
        let sent = json!({"from": WHO, "to": to, "value": "0x1", "gas": "0xf4240"});
        dev.ok("eth_sendTransaction", json!([sent])).await;
        let block = dev.ok("eth_getBlockByNumber", json!(["latest", false])).await;
        known.insert(serde_json::from_value(block["miner"].clone()).expect("an address"));
        let roots = dev.ok("debug_intermediateRoots", json!([block["hash"]])).await;
        assert_eq!(roots.as_array().map(Vec::len), Some(1));
        if count > 0 {
            assert_eq!(roots[0], block["stateRoot"], "nothing follows the transaction");
        }
        heads.push(block["hash"].clone());
    }
    // The accounts that differ, by proofs of all.
    let shown = async |dev: &mut Dev, address: &Address, block: u64| {
        let params = json!([address, [], format!("{block:#x}")]);
        let proof = dev.ok("eth_getProof", params).await;
        let part = |name: &str| proof[name].clone();
        ["balance", "nonce", "codeHash", "storageHash"].map(part)
    };
    for _ in 0..8 {
        let start = random.below(11) as u64 + 1;
        let end = start + 1 + random.below(12 - start as usize) as u64;
        let params = json!([start, end]);
        let found = dev.ok("debug_getModifiedAccountsByNumber", params).await;
        let found: Vec<Address> = serde_json::from_value(found).expect("addresses");
        assert!(found.is_sorted_by_key(keccak256), "{found:?}");
        let hashes = json!([heads[start as usize - 1], heads[end as usize - 1]]);
        let by_hash = dev.ok("debug_getModifiedAccountsByHash", hashes).await;
        assert_eq!(by_hash, json!(found));
        let found: BTreeSet<Address> = found.into_iter().collect();
        for address in known.union(&found) {
            let before = shown(&mut dev, address, start).await;
            let after = shown(&mut dev, address, end).await;
            assert_eq!(before != after, found.contains(address), "{address}: {start} to {end}");
        }
    }
    let one = dev.ok("debug_getModifiedAccountsByNumber", json!(["0xc"])).await;
    assert_eq!(one, dev.ok("debug_getModifiedAccountsByNumber", json!([11, 12])).await);
    accounts_page_by_page(&mut dev, &known).await;
    let code = Code::Server;
    let method = "debug_getModifiedAccountsByNumber";
    dev.refused(method, json!([3, 3]), code, "must be less than end block height (3)").await;
    dev.refused(method, json!([65535]), code, "start block ffff not found").await;
    dev.refused(method, json!([0]), code, "block 0 has no parent").await;
    dev.refused(method, json!([1, 65535]), code, "end block 65535 not found").await;
    // An amendment is in no transaction.
    dev.ok("anvil_setBalance", json!([Address::repeat_byte(0x77), "0x77"])).await;
    dev.refused(method, json!([11, 12]), code, "no preimage found for hash").await;
    dev.refused("debug_intermediateRoots", json!([B256::ZERO]), code, "not found").await;
}

async fn accounts_page_by_page(dev: &mut Dev, known: &BTreeSet<Address>) {
    let block = dev.ok("eth_getBlockByNumber", json!(["latest", false])).await;
    let (mut accounts, mut next) = (BTreeMap::new(), json!("0x"));
    loop {
        let params = json!([block["hash"], next, 3, false, true, true]);
        let page = dev.ok("debug_accountRange", params).await;
        assert_eq!(format!("0x{}", page["root"].as_str().expect("hex")), block["stateRoot"]);
        let found = page["accounts"].as_object().expect("an object");
        assert!((1..=3).contains(&found.len()));
        for (name, account) in found {
            let key: B256 = serde_json::from_value(account["key"].clone()).expect("a hash");
            assert_eq!(*name, format!("pre({key})"));
            accounts.insert(key, account.clone());
        }
        next = page["next"].clone();
        if next.is_null() {
            break;
        }
    }
    let all = json!([block["hash"], "0x", 1_000, false, true, true]);
    let all = dev.ok("debug_accountRange", all).await;
    assert_eq!(all["accounts"].as_object().map(serde_json::Map::len), Some(accounts.len()));
    for address in known {
        let proof = dev.ok("eth_getProof", json!([address, [], "latest"])).await;
        let Some(account) = accounts.get(&keccak256(address)) else {
            assert_eq!([&proof["balance"], &proof["nonce"]], ["0x0", "0x0"], "{address}");
            continue;
        };
        let balance: U256 = serde_json::from_value(proof["balance"].clone()).expect("a number");
        assert_eq!(account["balance"], balance.to_string());
        assert_eq!(account["root"], proof["storageHash"]);
        assert_eq!(account["codeHash"], proof["codeHash"]);
        let code = dev.ok("eth_getCode", json!([address, "latest"])).await;
        assert_eq!(account.get("code").unwrap_or(&json!("0x")), &code);
        let by_hash = dev.ok("debug_codeByHash", json!([account["codeHash"]])).await;
        assert!(by_hash == code || by_hash.is_null() && code == "0x", "{by_hash}");
    }
    // Without addresses there is none of them.
    let params = json!(["latest", "0x", 3, false, true, false]);
    let none = dev.ok("debug_accountRange", params).await;
    assert_eq!(none["accounts"], json!({}));
    let unknown = dev.ok("debug_codeByHash", json!([B256::repeat_byte(1)])).await;
    assert_eq!(unknown, Value::Null);
}
