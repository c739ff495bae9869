//! Random simulations, asked of both nodes over IPC: geth and we answer alike, down to the state
//! roots and hashes of the blocks.

use crate::geth::told;
use crate::geth_estimates::{ACCOUNTS, answer, call, overridden};
use alloy_primitives::{Address, B256};
use rpc::SessionClient;
use serde_json::{Value, json};
use testing::{Random, rounds};

/// A block's overrides; numbers ascend, and may leave some out.
fn block_overrides(random: &mut Random, number: &mut u64, time: &mut u64) -> Value {
    let mut block = json!({});
    *number += 1 + random.pick(&[0, 0, 0, 1, 3]);
    if random.one_in(2) {
        block["number"] = json!(format!("{number:#x}"));
    } else {
        *number += 1_000;
    }
    *time += 1_000 + random.below(100) as u64;
    let mut put = |name: &str, values: &[Value]| {
        if random.one_in(4) {
            block[name] = random.pick(values);
        }
    };
    put("time", &[json!(format!("{time:#x}"))]);
    put("gasLimit", &["0xf4240", "0x1c9c380", "0xffffffff"].map(|gas| json!(gas)));
    put("feeRecipient", &ACCOUNTS.map(|account| json!(account)));
    put("prevRandao", &[json!(B256::repeat_byte(7))]);
    put("baseFeePerGas", &["0x0", "0x1", "0x7"].map(|fee| json!(fee)));
    put("blobBaseFee", &["0x0", "0x1", "0xffff"].map(|fee| json!(fee)));
    put("beaconRoot", &[json!(B256::repeat_byte(8))]);
    let paid = |address: Address, amount: &str| {
        let (index, validator) = ("0x1", "0x2");
        json!({"index": index, "validatorIndex": validator, "address": address, "amount": amount})
    };
    let withdrawals = [
        json!([paid(ACCOUNTS[0], "0x7"), paid(ACCOUNTS[0], "0x1")]),
        json!([paid(Address::repeat_byte(0x31), "0x0")]),
    ];
    put("withdrawals", &withdrawals);
    block
}

/// A request.
fn request(random: &mut Random, head: &Value) -> Value {
    let quantity = |value: &Value| {
        let text = value.as_str().expect("a quantity").trim_start_matches("0x");
        u64::from_str_radix(text, 16).expect("a number")
    };
    let (mut number, mut time) = (quantity(&head["number"]), quantity(&head["timestamp"]));
    let is_numbered = random.one_in(2);
    let mut blocks = Vec::new();
    for _ in 0..1 + random.below(4) {
        let mut block = json!({});
        let mut overrides = block_overrides(random, &mut number, &mut time);
        if !is_numbered {
            overrides.as_object_mut().expect("an object").remove("number");
        }
        if number < quantity(&head["number"]) + 200 || !is_numbered {
            block["blockOverrides"] = overrides;
        }
        let mut accounts = json!({});
        if blocks.is_empty() && random.one_in(2) {
            for account in ACCOUNTS {
                accounts[account.to_string()] = json!({ "balance": "0xde0b6b3a7640000" });
            }
        }
        for _ in 0..random.below(3) {
            accounts[random.pick(&ACCOUNTS).to_string()] = overridden(random);
        }
        if random.one_in(8) {
            let contract = Address::with_last_byte(random.pick(&[1, 2, 4]));
            accounts[contract.to_string()] = match random.one_in(2) {
                true => json!({"movePrecompileToAddress": Address::repeat_byte(0x77)}),
                false => overridden(random),
            };
        }
        block["stateOverrides"] = accounts;
        let mut calls: Vec<Value> = Vec::new();
        for _ in 0..random.below(4) {
            let mut made = call(random);
            // One that cannot begin ends the simulation.
            for name in ["gas", "gasPrice", "value"] {
                if !random.one_in(5) {
                    made.as_object_mut().expect("an object").remove(name);
                }
            }
            if random.one_in(10) {
                made["nonce"] = json!(random.pick(&["0x0", "0x1", "0x5"]));
            }
            if random.one_in(8) {
                made["maxFeePerGas"] = json!(random.pick(&["0x1", "0x3b9aca00"]));
                made.as_object_mut().expect("an object").remove("gasPrice");
            }
            // Of equal transactions, geth puts the logs of all into the receipt of each.
            let input = made["input"].as_str().or(made["data"].as_str()).unwrap_or("0x");
            made["input"] = json!(format!("{input}{:02x}{:02x}", blocks.len(), calls.len()));
            made.as_object_mut().expect("an object").remove("data");
            calls.push(made);
        }
        block["calls"] = json!(calls);
        blocks.push(block);
    }
    let (mut simulation, flags) = (json!({ "blockStateCalls": blocks }), [2, 6, 2]);
    let names = ["traceTransfers", "validation", "returnFullTransactions"];
    for (name, one_in) in names.into_iter().zip(flags) {
        if random.one_in(one_in) {
            simulation[name] = json!(true);
        }
    }
    json!([simulation, "latest"])
}

/// An answer with what both say of the errors of its calls.
fn told_of_calls(answer: &Value) -> Value {
    let mut answer = answer.clone();
    for block in answer.as_array_mut().into_iter().flatten() {
        let calls = block.get_mut("calls").and_then(Value::as_array_mut);
        for call in calls.into_iter().flatten() {
            if let Some(message) = call.get_mut("error").and_then(|error| error.get_mut("message"))
            {
                *message = json!(told(message));
            }
        }
    }
    answer
}

/// The requests that are answered in two ways.
pub(crate) async fn differences([ours, geth]: &[SessionClient; 2]) -> Vec<String> {
    let mut random = Random::seeded();
    let latest = json!(["latest", false]);
    let head = answer(ours, "eth_getBlockByNumber", &latest).await;
    let (mut differ, mut simulated) = (Vec::new(), 0);
    let count = rounds("DEPONENT_SIMULATIONS", 150, 2_000);
    for _ in 0..count {
        let params = request(&mut random, &head);
        let one = answer(ours, "eth_simulateV1", &params).await;
        let other = answer(geth, "eth_simulateV1", &params).await;
        if told_of_calls(&one) != told_of_calls(&other) {
            differ.push(format!("eth_simulateV1{params}: ours {one}, geth's {other}"));
        }
        simulated += u32::from(one[0].is_object());
    }
    assert!(simulated > count / 4, "{simulated} simulations of {count}");
    differ
}
