//! Random calls, asked of both nodes over IPC: geth and we answer alike.

use crate::geth::told;
use alloy_primitives::{Address, B256, hex};
use rpc::{ClientError, SessionClient};
use serde_json::{Value, json};
use testing::{Random, rounds};

/// Accounts that are overridden and called: some are there, some not, and none is precompiled, for
/// geth's estimates run a precompiled contract that is overridden.
pub(crate) const ACCOUNTS: [Address; 5] = [
    Address::repeat_byte(0xaa),
    Address::repeat_byte(0xbb),
    Address::repeat_byte(0xcc),
    Address::repeat_byte(0x5a),
    Address::ZERO,
];

/// Precompiled contracts: what costs least, and one that fails.
const PRECOMPILED: [u8; 4] = [1, 2, 4, 9];

fn push(number: u64) -> String {
    let bytes = number.to_be_bytes();
    let bytes = &bytes[bytes.iter().take_while(|byte| **byte == 0).count()..];
    format!("{:02x}{}", 0x5f + bytes.len(), hex::encode(bytes))
}

fn account(random: &mut Random) -> Address {
    match random.one_in(4) {
        true => Address::with_last_byte(random.pick(&PRECOMPILED)),
        false => random.pick(&ACCOUNTS),
    }
}

/// Folds what is on the stack into the word of memory that is returned.
const FOLD: &str = "60605118606052";

/// Some ops, which leave the stack as it was.
fn ops(random: &mut Random, depth: usize) -> String {
    let address = format!("73{}", hex::encode(account(random)));
    let (slot, value) = (push(random.below(4) as u64), push(random.pick(&[0, 0, 1, 42])));
    match random.below(14) {
        0 => format!("{address}31{FOLD}"),
        1 => format!("{address}3b{FOLD}"),
        2 => format!("{slot}54{FOLD}"),
        3..=5 => format!("{value}{slot}55"),
        6..=8 => {
            let op = random.pick(&["f1", "f2"]);
            let sent = push(random.pick(&[0, 0, 0, 1]));
            let gas = random.pick(&["5a", "5a", "61ffff", "6109c4"]);
            format!("60205f60205f{sent}{address}{gas}{op}{FOLD}3d{FOLD}")
        }
        9 => {
            let op = random.pick(&["f4", "fa"]);
            format!("60205f60205f{address}5a{op}{FOLD}")
        }
        10 if depth < 1 => {
            let mut init: Vec<u8> = hex::decode(ops(random, depth + 1)).expect("hex");
            let end = random.pick(&["5f5ff3", "60206060f3", "5f5ffd", "30ff"]);
            init.extend(hex::decode(end).expect("hex"));
            let words = init.chunks(32).zip(0..).map(|(word, at)| {
                let mut padded = [0; 32];
                padded[..word.len()].copy_from_slice(word);
                format!("7f{}{}52", hex::encode(padded), push(0x100 + 32 * at))
            });
            let stores: String = words.collect();
            format!("{stores}{}{}5ff0{FOLD}", push(init.len() as u64), push(0x100))
        }
        11 => format!("{value}{slot}5d{slot}5c{FOLD}"),
        // Memory that grows, as deep calls are dear.
        12 => format!("{}51{FOLD}", push(random.below(1 << 14) as u64)),
        _ => format!("{}{FOLD}", random.pick(&["32", "33", "34", "3a", "42", "43", "45", "48"])),
    }
}

pub(crate) fn code(random: &mut Random) -> String {
    let ops: String = (0..1 + random.below(8)).map(|_| ops(random, 0)).collect();
    let ends = ["60206060f3", "60206060f3", "60206060f3", "60206060f3", "00", "60206060fd", "fe"];
    format!("0x{ops}{}", random.pick(&ends))
}

fn slots(random: &mut Random) -> Value {
    let mut word = |below| B256::with_last_byte(random.below(below) as u8);
    (0..3).map(|_| (word(4).to_string(), json!(word(3)))).collect::<serde_json::Map<_, _>>().into()
}

pub(crate) fn overridden(random: &mut Random) -> Value {
    let mut account = json!({});
    if random.one_in(3) {
        account["balance"] = json!(random.pick(&["0x0", "0x1", "0xf4240", "0x56bc75e2d63100000"]));
    }
    if random.one_in(5) {
        account["nonce"] = json!(random.pick(&["0x0", "0x1", "0x5"]));
    }
    if !random.one_in(3) {
        let delegation = format!("0xef0100{}", hex::encode(random.pick(&ACCOUNTS)));
        let code = code(random);
        account["code"] = json!(random.pick(&[code.clone(), code, delegation]));
    }
    match random.below(4) {
        0 => account["state"] = slots(random),
        1 => account["stateDiff"] = slots(random),
        _ => {}
    }
    account
}

/// A call.
pub(crate) fn call(random: &mut Random) -> Value {
    let mut call = json!({ "from": random.pick(&ACCOUNTS), "to": account(random) });
    if random.one_in(2) {
        let length = random.below(200);
        call["input"] = json!(format!("0x{}", "01".repeat(length)));
    }
    if random.one_in(6) {
        call["input"] = json!(code(random));
        call.as_object_mut().expect("an object").remove("to");
    }
    let mut put = |name: &str, values: &[&str]| {
        if random.one_in(4) {
            call[name] = json!(random.pick(values));
        }
    };
    put("value", &["0x0", "0x1", "0x64"]);
    put("gas", &["0x0", "0x5208", "0x7530", "0x186a0", "0xf4240", "0xffffffff"]);
    put("gasPrice", &["0x0", "0x1", "0x3b9aca00"]);
    if random.one_in(5) {
        let item = json!({ "address": random.pick(&ACCOUNTS), "storageKeys": [B256::ZERO] });
        call["accessList"] = json!([item]);
    }
    call
}

/// A call and its overrides.
pub(crate) fn request(random: &mut Random) -> Value {
    let mut overrides = json!({});
    for _ in 0..1 + random.below(4) {
        overrides[random.pick(&ACCOUNTS).to_string()] = overridden(random);
    }
    let call = call(random);
    if !random.one_in(3) {
        return json!([call, "latest", overrides]);
    }
    json!([call, "latest", overrides, block_overrides(random)])
}

/// Overrides of the block. Without a price of gas its base fee is zero.
fn block_overrides(random: &mut Random) -> Value {
    let mut block = json!({});
    let mut put = |name: &str, values: &[Value]| {
        if random.one_in(3) {
            block[name] = random.pick(values);
        }
    };
    put("number", &["0x0", "0x1", "0x6", "0xffff", "0xffffffffffff"].map(|number| json!(number)));
    put("time", &["0x6fffffff", "0xffffffff"].map(|time| json!(time)));
    put("gasLimit", &["0x5208", "0xf4240", "0xffffffff"].map(|gas| json!(gas)));
    put("feeRecipient", &ACCOUNTS.map(|account| json!(account)));
    put("prevRandao", &[json!(B256::repeat_byte(7))]);
    put("baseFeePerGas", &["0x0", "0x1", "0x3b9aca01"].map(|fee| json!(fee)));
    put("blobBaseFee", &["0x0", "0x1", "0xffff"].map(|fee| json!(fee)));
    put("difficulty", &[json!("0x7")]);
    block
}

/// Requests for one method alone: moved precompiled contracts, which geth's estimates leave where
/// they are, hashes of blocks, which they count from the overridden number, and refusals.
fn calls() -> Vec<Value> {
    let [one, other, ..] = ACCOUNTS;
    let over = |call: Value, state: Value, block: Value| json!([call, "latest", state, block]);
    let mut calls = Vec::new();
    let contract = Address::with_last_byte(4);
    let moved = |to: Address| json!({ contract.to_string(): {"movePrecompileToAddress": to} });
    for to in [one, other, contract, Address::with_last_byte(2), Address::with_last_byte(0x99)] {
        for called in [one, contract, to] {
            let call = json!({ "to": called, "input": "0x1234" });
            calls.push(over(call, moved(to), json!(null)));
        }
        let mut both = moved(to);
        both[one.to_string()] =
            json!({ "code": "0x5a7355555555555555555555555555555555555555553150" });
        calls.push(over(json!({ "to": one }), both, json!(null)));
    }
    // The gas of BALANCE of both places.
    for byte in [4, 0x99] {
        let code = format!("0x5a60{byte:02x}31505a90035f5260205ff3");
        let mut state = moved(Address::with_last_byte(0x99));
        state[one.to_string()] = json!({ "code": code });
        calls.push(over(json!({ "to": one }), state, json!(null)));
    }
    calls.push(over(
        json!({}),
        json!({ one.to_string(): {"movePrecompileToAddress": other} }),
        json!(null),
    ));
    for number in [0, 1, 3, 5, 9, 200, 1_000] {
        for asked in 0..8 {
            let code = format!("0x60{asked:02x}405f5260205ff3");
            let state = json!({ one.to_string(): {"code": code} });
            calls.push(over(
                json!({ "to": one }),
                state,
                json!({"number": format!("{number:#x}")}),
            ));
        }
    }
    calls.push(over(json!({}), json!({}), json!({"beaconRoot": B256::ZERO})));
    calls.push(over(json!({}), json!({}), json!({"withdrawals": []})));
    let both = json!({ one.to_string(): {"state": {}, "stateDiff": {}} });
    calls.push(over(json!({}), both, json!(null)));
    for call in [
        json!({"input": "0x01", "data": "0x02", "to": contract}),
        json!({"gasPrice": "0x1", "maxFeePerGas": "0x1"}),
        json!({"chainId": "0x1", "to": one}),
        json!({"blobVersionedHashes": []}),
        json!({"authorizationList": []}),
        json!({"blobVersionedHashes": [], "to": one}),
        json!({"authorizationList": [], "to": one}),
        json!({"from": other, "to": one, "value": "0x1", "gas": "0x1"}),
        json!({"from": other, "to": one, "gasPrice": "0x3b9aca00", "gas": "0x1"}),
        json!({"to": one, "gas": "0x1"}),
    ] {
        calls.push(json!([call, "latest"]));
    }
    calls
}

pub(crate) async fn answer(client: &SessionClient, method: &str, params: &Value) -> Value {
    match client.call(method, params).await {
        Ok(answer) => answer,
        Err(ClientError::Rpc(error)) => json!([error.code, error.message, error.data]),
        Err(error) => panic!("{method}{params}: {error}"),
    }
}

/// An answer with what both say of its `error`.
fn told_beside(answer: &Value) -> String {
    let mut answer = answer.clone();
    match answer.get_mut("error") {
        Some(error) => *error = json!(told(error)),
        None => return told(&answer),
    }
    answer.to_string()
}

/// The requests that are answered in two ways.
pub(crate) async fn differences([ours, geth]: &[SessionClient; 2]) -> Vec<String> {
    let mut random = Random::seeded();
    let (mut differ, mut estimated, mut listed) = (Vec::new(), 0, 0);
    let count = rounds("DEPONENT_CALLS", 300, 2_000);
    for _ in 0..count {
        let params = request(&mut random);
        for method in ["eth_estimateGas", "eth_call"] {
            let one = answer(ours, method, &params).await;
            let other = answer(geth, method, &params).await;
            // The EVM does not tell the gas of storing a code from other gas, and geth does.
            let stores = other.to_string().contains("contract creation code storage out of gas")
                && one.to_string().contains("gas required exceeds allowance");
            if told(&one) != told(&other) && !stores {
                differ.push(format!("{method}{params}: ours {one}, geth's {other}"));
            }
            estimated += u32::from(method == "eth_estimateGas" && one.is_string());
        }
        let params = json!([params[0], params[1], params[2]]);
        let one = answer(ours, "eth_createAccessList", &params).await;
        // geth goes on for ever where a list costs the gas to touch what is in it.
        if one.to_string().contains("the call touches another list") {
            continue;
        }
        let other = answer(geth, "eth_createAccessList", &params).await;
        if told_beside(&one) != told_beside(&other) {
            differ.push(format!("eth_createAccessList{params}: ours {one}, geth's {other}"));
        }
        listed += u32::from(one["accessList"].as_array().is_some_and(|list| !list.is_empty()));
    }
    for params in calls() {
        let (one, other) = (answer(ours, "eth_call", &params), answer(geth, "eth_call", &params));
        let (one, other) = (one.await, other.await);
        if told(&one) != told(&other) {
            differ.push(format!("eth_call{params}: ours {one}, geth's {other}"));
        }
    }
    assert!(estimated > count / 4, "{estimated} estimates of {count}");
    assert!(listed > count / 10, "{listed} lists of {count}");
    differ
}
