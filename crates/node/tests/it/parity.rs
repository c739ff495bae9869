//! `trace_*` on a chain for tests: alloy's types read all answers and write the same, the calls are
//! those of `callTracer`, the instructions those of struct logs, and the changes of the state are
//! what the states before and after a block differ in.

use std::collections::{BTreeMap, BTreeSet};

use alloy_primitives::{Address, B256, Bytes, U64, U256, hex};
use alloy_rpc_types_trace::filter::{TraceFilter, TraceFilterMode};
use alloy_rpc_types_trace::parity::{
    AccountDiff, Delta, LocalizedTransactionTrace, StateDiff, TraceResults,
    TraceResultsWithTransactionHash, TransactionTrace, VmTrace,
};
use rpc::{ClientError, Code};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use testing::{Random, rounds};

use crate::dev::{Dev, WHO};
use crate::geth_estimates::{ACCOUNTS, call, code, request};

const ONE: Address = ACCOUNTS[0];
const ALL: [&str; 3] = ["trace", "stateDiff", "vmTrace"];

/// Reads an answer, and checks that its type writes it again.
#[track_caller]
fn read<T: DeserializeOwned + Serialize>(answer: &Value) -> T {
    let value: T =
        serde_json::from_value(answer.clone()).unwrap_or_else(|fault| panic!("{fault}: {answer}"));
    assert_eq!(&serde_json::to_value(&value).expect("JSON"), answer);
    value
}

/// An answer, an error as an object, or none where calls are nested too deep for the parser.
async fn ask(dev: &mut Dev, method: &str, params: &Value) -> Option<Value> {
    match dev.client.call(method, params.clone()).await {
        Ok(answer) => Some(answer),
        Err(ClientError::Rpc(error)) => Some(json!({"code": error.code, "words": error.message})),
        Err(error) if error.to_string().contains("recursion limit") => None,
        Err(error) => panic!("{method} {params}: {error}"),
    }
}

/// The traces of a tree of calls, but for the gas of the first.
fn flattened(call: &Value, address: &mut Vec<usize>, out: &mut Vec<Value>) {
    let is_listed = |call: &&Value| {
        let to: Address = serde_json::from_value(call["to"].clone()).unwrap_or(Address::ZERO);
        let is_precompiled = to.0[..18] == [0; 18] && !to.is_zero() && to.0[18..] <= [0, 0x11][..];
        let is_call = call["type"].as_str().is_some_and(|kind| kind.ends_with("CALL"))
            || call["type"] == "CALLCODE";
        let value = call["value"].as_str().unwrap_or("0x0");
        !(is_precompiled && is_call && value == "0x0")
    };
    let calls: Vec<&Value> = call["calls"].as_array().into_iter().flatten().collect();
    let calls: Vec<&Value> = calls.into_iter().filter(is_listed).collect();
    let kind = call["type"].as_str().expect("a type").to_lowercase();
    let value = call.get("value").cloned().unwrap_or(json!("0x0"));
    let output = call.get("output").cloned().unwrap_or(json!("0x"));
    let has_result = call.get("error").is_none_or(|error| error == "execution reverted");
    let (subtraces, place) = (calls.len(), json!(address));
    let (from, to) = (&call["from"], &call["to"]);
    let trace = match &*kind {
        "selfdestruct" => json!({
            "action": {"address": from, "refundAddress": to, "balance": value},
            "result": null, "type": "suicide",
        }),
        "create" | "create2" => json!({
            "action": {"creationMethod": kind, "from": from, "init": call["input"], "value": value},
            "result": has_result.then(|| json!({"code": output})),
            "type": "create",
        }),
        _ => json!({
            "action": {
                "callType": kind, "from": from, "to": to, "input": call["input"], "value": value,
            },
            "result": has_result.then(|| json!({"output": output})),
            "type": "call",
        }),
    };
    let mut trace = trace;
    if kind != "selfdestruct" && !address.is_empty() {
        trace["action"]["gas"] = call["gas"].clone();
        if has_result {
            trace["result"]["gasUsed"] = call["gasUsed"].clone();
        }
    }
    trace["hasError"] = json!(call.get("error").is_some());
    trace["subtraces"] = json!(subtraces);
    trace["traceAddress"] = place;
    out.push(trace);
    for (index, call) in calls.into_iter().enumerate() {
        address.push(index);
        flattened(call, address, out);
        address.pop();
    }
}

/// The calls are those of `callTracer`.
#[track_caller]
fn check_calls(traces: &[TransactionTrace], tree: &Value) {
    let mut expected = Vec::new();
    flattened(tree, &mut Vec::new(), &mut expected);
    let shown = traces.iter().map(|trace| {
        let mut shown = serde_json::to_value(trace).expect("JSON");
        let error = shown.as_object_mut().expect("an object").remove("error");
        shown["hasError"] = json!(error.is_some());
        if trace.trace_address.is_empty() {
            shown["action"].as_object_mut().expect("an object").remove("gas");
            shown["result"].as_object_mut().map(|result| result.remove("gasUsed"));
        }
        // Of one that failed, callTracer has no address.
        shown["result"].as_object_mut().map(|result| result.remove("address"));
        shown
    });
    assert_eq!(shown.collect::<Vec<_>>(), expected);
}

/// An instruction of a list of all, as struct logs have them.
#[derive(Debug)]
struct Flat<'a> {
    depth: u64,
    instruction: &'a alloy_rpc_types_trace::parity::VmInstruction,
}

fn instructions<'a>(trace: &'a VmTrace, depth: u64, out: &mut Vec<Flat<'a>>) {
    for instruction in &trace.ops {
        out.push(Flat { depth, instruction });
        if let Some(below) = &instruction.sub {
            instructions(below, depth + 1, out);
        }
    }
}

/// The instructions are those of struct logs with memory.
#[track_caller]
fn check_instructions(trace: &VmTrace, logs: &Value) {
    let mut found = Vec::new();
    instructions(trace, 1, &mut found);
    let logs = logs["structLogs"].as_array().expect("a list");
    let place = |index: usize| {
        let log = &logs[index];
        json!([log["depth"], log["pc"], log["op"], log["gasCost"]])
    };
    let ours = found.iter().map(|Flat { depth, instruction }| {
        json!([depth, instruction.pc, instruction.op, instruction.cost])
    });
    let expected: Vec<_> = (0..logs.len()).map(place).collect();
    assert_eq!(ours.collect::<Vec<_>>(), expected);
    let gas: u64 = logs.iter().filter_map(|log| log["gasCost"].as_u64()).sum();
    assert_eq!(found.iter().map(|flat| flat.instruction.cost).sum::<u64>(), gas);
    for (index, Flat { depth, instruction }) in found.iter().enumerate() {
        let Some(ex) = &instruction.ex else {
            let is_last =
                logs.get(index + 1).is_none_or(|next| next["depth"].as_u64() < Some(*depth));
            assert!(is_last, "{instruction:?} failed, but its frame goes on");
            continue;
        };
        assert!(logs[index].get("error").is_none(), "{instruction:?}");
        let next = logs[index + 1..].iter().find(|log| log["depth"].as_u64() <= Some(*depth));
        let Some(next) = next.filter(|log| log["depth"].as_u64() == Some(*depth)) else { continue };
        assert_eq!(Some(ex.used), next["gas"].as_u64(), "{instruction:?}");
        let stack: Vec<U256> = serde_json::from_value(next["stack"].clone()).expect("words");
        assert!(stack.ends_with(&ex.push), "{instruction:?}: {stack:?}");
        let before: Vec<U256> =
            serde_json::from_value(logs[index]["stack"].clone()).expect("words");
        if instruction.op.as_deref() == Some("SSTORE") {
            let store = ex.store.expect("a slot");
            assert!(before.ends_with(&[store.val, store.key]), "{instruction:?}");
        }
        if let Some(written) = &ex.mem {
            let memory: Vec<Bytes> = serde_json::from_value(next["memory"].clone()).expect("DATA");
            let memory = memory.concat();
            assert_eq!(memory[written.off..written.off + written.data.len()], written.data);
        }
    }
}

/// An account as `eth_get*` answer it, with its first slots.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Account {
    balance: U256,
    nonce: U64,
    code: Bytes,
    storage: BTreeMap<B256, B256>,
}

async fn account(dev: &mut Dev, address: Address, slots: &BTreeSet<B256>, block: u64) -> Account {
    let block = json!(format!("{block:#x}"));
    let balance = dev.ok("eth_getBalance", json!([address, block])).await;
    let nonce = dev.ok("eth_getTransactionCount", json!([address, block])).await;
    let code = dev.ok("eth_getCode", json!([address, block])).await;
    let mut storage = BTreeMap::new();
    for slot in slots {
        let value = dev.ok("eth_getStorageAt", json!([address, slot, block])).await;
        storage.insert(*slot, serde_json::from_value(value).expect("a word"));
    }
    Account {
        balance: serde_json::from_value(balance).expect("a number"),
        nonce: serde_json::from_value(nonce).expect("a number"),
        code: serde_json::from_value(code).expect("DATA"),
        storage,
    }
}

fn delta<T: PartialEq>(before: Option<T>, after: Option<T>) -> Delta<T> {
    match (before, after) {
        (Some(before), Some(after)) if before != after => Delta::changed(before, after),
        (Some(_), Some(_)) | (None, None) => Delta::Unchanged,
        (None, Some(after)) => Delta::Added(after),
        (Some(before), None) => Delta::Removed(before),
    }
}

/// The difference between two states of an account.
fn difference(before: &Account, after: &Account) -> AccountDiff {
    let there = |account: &Account| {
        let is_there =
            account.balance != U256::ZERO || account.nonce != U64::ZERO || !account.code.is_empty();
        is_there.then(|| account.clone())
    };
    let sides = [there(before), there(after)];
    let [one, other] = [&sides[0], &sides[1]];
    let balance = delta(one.as_ref().map(|it| it.balance), other.as_ref().map(|it| it.balance));
    let nonce = delta(one.as_ref().map(|it| it.nonce), other.as_ref().map(|it| it.nonce));
    let code =
        delta(one.as_ref().map(|it| it.code.clone()), other.as_ref().map(|it| it.code.clone()));
    let changed = before.storage.iter().filter(|(slot, value)| after.storage[*slot] != **value);
    let storage = changed.filter(|_| other.is_some()).map(|(slot, value)| {
        (*slot, delta(one.is_some().then_some(*value), Some(after.storage[slot])))
    });
    AccountDiff { balance, code, nonce, storage: storage.collect() }
}

/// The changes are all in which the states before and after the block differ, of these accounts.
async fn check_changes(dev: &mut Dev, diff: &StateDiff, block: u64, known: &[Address]) {
    let all: BTreeSet<Address> = known.iter().copied().chain(diff.keys().copied()).collect();
    for address in all {
        let mut slots: BTreeSet<_> = (0..5).map(B256::with_last_byte).collect();
        slots.extend(diff.get(&address).into_iter().flat_map(|account| account.storage.keys()));
        let before = account(dev, address, &slots, block - 1).await;
        let after = account(dev, address, &slots, block).await;
        let expected = difference(&before, &after);
        let found = diff.get(&address).cloned();
        let is_same = expected == AccountDiff::default();
        assert_eq!(found, (!is_same).then_some(expected), "{address} in block {block}");
    }
}

/// A chain with contracts that do something.
async fn chain(random: &mut Random) -> Dev {
    let mut dev = Dev::start(&["--quiet", "--rpc.evmtimeout", "0"]).await;
    for address in &ACCOUNTS[..4] {
        let code = code(random);
        dev.ok("anvil_setCode", json!([address, code])).await;
        dev.ok("anvil_setBalance", json!([address, "0x64"])).await;
        dev.ok("anvil_setStorageAt", json!([address, "0x1", B256::with_last_byte(9)])).await;
    }
    dev
}

/// A transaction of a random call.
fn transaction(random: &mut Random) -> Value {
    let mut transaction = call(random);
    transaction["from"] = json!(WHO);
    transaction["gas"] = json!("0x493e0");
    for name in ["gasPrice", "accessList"] {
        transaction.as_object_mut().expect("an object").remove(name);
    }
    transaction
}

/// Checks all that is told of a block with one transaction, unless its calls are too deep.
async fn check_block(dev: &mut Dev, block: u64, hash: &Value) -> bool {
    let number = json!(format!("{block:#x}"));
    let listed = dev.ok("trace_block", json!([number])).await;
    let traces: Vec<LocalizedTransactionTrace> = read(&listed);
    assert_eq!(dev.ok("trace_transaction", json!([hash])).await, listed);
    for trace in &traces {
        assert_eq!(json!(trace.transaction_hash), *hash);
        assert_eq!(trace.block_number, Some(block));
        let address: Vec<_> =
            trace.trace.trace_address.iter().map(|at| format!("{at:#x}")).collect();
        let one = dev.ok("trace_get", json!([hash, address])).await;
        assert_eq!(one, json!(trace));
    }
    let types = json!(ALL);
    let params = json!([number, types]);
    let replayed = ask(dev, "trace_replayBlockTransactions", &params).await;
    let tree = json!([hash, {"tracer": "callTracer"}]);
    let tree = ask(dev, "debug_traceTransaction", &tree).await;
    // Calls that are nested too deep for the parser.
    let (Some(replayed), Some(tree)) = (replayed, tree) else { return false };
    let mut replayed: Vec<TraceResultsWithTransactionHash> = read(&replayed);
    let results = replayed.pop().expect("a transaction").full_trace;
    assert!(replayed.is_empty());
    let alone = dev.ok("trace_replayTransaction", json!([hash, types])).await;
    assert_eq!(read::<TraceResults>(&alone), results);
    let calls: Vec<_> = traces.into_iter().map(|trace| trace.trace).collect();
    assert_eq!(results.trace, calls);
    check_calls(&results.trace, &tree);
    let logs = dev.ok("debug_traceTransaction", json!([hash, {"enableMemory": true}])).await;
    check_instructions(&results.vm_trace.expect("instructions"), &logs);
    assert_eq!(json!(results.output), logs["returnValue"]);
    let mut known = ACCOUNTS.to_vec();
    known.extend((0..=0x11).map(Address::with_last_byte));
    check_changes(dev, &results.state_diff.expect("changes"), block, &known).await;
    true
}

#[tokio::test(flavor = "multi_thread")]
async fn traces_of_blocks_agree_with_the_states_and_with_other_tracers() {
    let mut random = Random::seeded();
    let mut dev = chain(&mut random).await;
    let (count, mut checked) = (rounds("DEPONENT_CALLS", 300, 2_000) / 10, 0);
    for block in 1..=u64::from(count) {
        let mut transaction = transaction(&mut random);
        let hash = match dev.client.call("eth_sendTransaction", json!([transaction])).await {
            Ok(hash) => hash,
            // Too little gas for its input.
            Err(_) => {
                transaction = json!({"from": WHO, "to": ONE, "value": "0x1", "gas": "0xf4240"});
                dev.ok("eth_sendTransaction", json!([transaction])).await
            }
        };
        checked += u32::from(check_block(&mut dev, block, &hash).await);
    }
    assert!(checked > count / 2, "{checked} of {count}");
}

#[tokio::test(flavor = "multi_thread")]
async fn traces_of_calls_agree_with_other_tracers() {
    let mut random = Random::seeded();
    let mut dev = chain(&mut random).await;
    let count = rounds("DEPONENT_CALLS", 300, 2_000);
    let (mut checked, mut refused) = (0, 0);
    for _ in 0..count {
        let mut asked = request(&mut random);
        // So little that few traces are too long.
        let gas = asked[0]["gas"].as_str().filter(|gas| gas.len() < 8);
        asked[0]["gas"] = json!(gas.unwrap_or("0xf4240"));
        let mut config = json!({"tracer": "callTracer", "stateOverrides": asked[2]});
        let params = json!([asked[0], ALL, "latest", asked[2], asked[3]]);
        if let Some(block) = asked.get(3) {
            config["blockOverrides"] = block.clone();
        }
        let traced = json!([asked[0], "latest", config]);
        let Some(tree) = ask(&mut dev, "debug_traceCall", &traced).await else { continue };
        let Some(answer) = ask(&mut dev, "trace_call", &params).await else { continue };
        if tree.get("code").is_some() {
            assert_eq!(answer, tree, "{params}");
            refused += 1;
            continue;
        }
        config["tracer"] = Value::Null;
        config["enableMemory"] = json!(true);
        let traced = json!([asked[0], "latest", config]);
        let Some(logs) = ask(&mut dev, "debug_traceCall", &traced).await else { continue };
        // The memory at each instruction may be more than an answer can have.
        if logs["code"] == -32005 {
            continue;
        }
        let results: TraceResults = read(&answer);
        check_calls(&results.trace, &tree);
        check_instructions(&results.vm_trace.expect("instructions"), &logs);
        assert_eq!(json!(results.output), logs["returnValue"], "{params}");
        // Other types are not there.
        let params = json!([asked[0], ["trace"], "latest", asked[2], asked[3]]);
        let answer = ask(&mut dev, "trace_call", &params).await.expect("an answer");
        let alone: TraceResults = read(&answer);
        assert_eq!(alone.trace, results.trace);
        assert!(alone.vm_trace.is_none() && alone.state_diff.is_none());
        checked += 1;
    }
    assert!(checked > count / 4, "{checked} of {count}, {refused} refused");
}

/// A call before a transaction of a block is that transaction.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_traced_before_a_transaction_of_its_block() {
    let mut random = Random::seeded();
    let mut dev = chain(&mut random).await;
    dev.ok("evm_setAutomine", json!([false])).await;
    let mut sent = Vec::new();
    for _ in 0..40 {
        let transaction = transaction(&mut random);
        let hash = dev.client.call::<Value>("eth_sendTransaction", json!([transaction])).await;
        sent.extend(hash.ok().map(|hash| (hash, transaction)));
    }
    dev.ok("evm_mine", json!([])).await;
    let mut checked = 0;
    for (hash, mut call) in sent {
        let mined = dev.ok("eth_getTransactionByHash", json!([hash])).await;
        if mined["blockNumber"].is_null() {
            continue;
        }
        for name in ["maxFeePerGas", "maxPriorityFeePerGas"] {
            call[name] = mined[name].clone();
        }
        for tracer in ["callTracer", "prestateTracer"] {
            let mut config = json!({"tracer": tracer});
            let traced = ask(&mut dev, "debug_traceTransaction", &json!([hash, config])).await;
            config["txIndex"] = mined["transactionIndex"].clone();
            let params = json!([call, mined["blockNumber"], config]);
            assert_eq!(ask(&mut dev, "debug_traceCall", &params).await, traced, "{params}");
            checked += u32::from(traced.is_some());
        }
    }
    assert!(checked > 20, "{checked} traces");
    let to = json!({"to": ONE});
    let past = json!([to, "latest", {"txIndex": "0x28"}]);
    dev.refused("debug_traceCall", past, Code::Server, "transaction index 40 out of range").await;
    let first = json!([to, "0x0", {"txIndex": "0x0"}]);
    dev.refused("debug_traceCall", first, Code::Server, "no transaction in genesis").await;
    // With no transaction, before the first one is the beginning of the block.
    dev.ok("evm_mine", json!([])).await;
    dev.ok("debug_traceCall", json!([to, "latest", {"txIndex": "0x0"}])).await;
}

/// The failures have OpenEthereum's words.
#[tokio::test(flavor = "multi_thread")]
async fn failures_are_told_in_openethereums_words() {
    let mut dev = Dev::start(&["--quiet"]).await;
    let other = hex::encode(ACCOUNTS[1]);
    let static_call = format!("5f5f5f5f73{other}5afa00");
    for (code, below, words) in [
        ("5f5ffd", "", "Reverted"),
        ("fe", "", "Bad instruction"),
        ("0c", "", "Bad instruction"),
        ("60ff56", "", "Bad jump destination"),
        ("01", "", "Stack underflow"),
        ("5b5f600056", "", "Out of stack"),
        ("5b600056", "", "Out of gas"),
        ("62ffffff62ffffff20", "", "Out of gas"),
        ("60013d5f3e", "", "Out of bounds"),
        (&*static_call, "5f5f55", "Mutable Call In Static Context"),
        (&*static_call, "5f5f5f5f6001335af1", "Mutable Call In Static Context"),
        ("5f5f5f5f60ff60095af1", "", "Insufficient balance for transfer"),
        ("5f5f5f5f600160095af1", "", "Built-in failed"),
        (&*format!("7f{:0<64}5f5260085f5ff0", "60ef5f5360015ff3"), "", "Invalid code"),
        ("6961ea605ff300000000005f52600a60165ff0", "", "Out of gas"),
    ] {
        let overrides = json!({
            ONE.to_string(): {"code": format!("0x{code}"), "balance": "0x10"},
            ACCOUNTS[1].to_string(): {"code": format!("0x{below}")},
        });
        let call = json!({"from": ACCOUNTS[2], "to": ONE, "gas": "0x186a0"});
        let answer = dev.ok("trace_call", json!([call, ["trace"], "latest", overrides])).await;
        let results: TraceResults = read(&answer);
        let error = results.trace.iter().filter_map(|trace| trace.error.as_deref()).next_back();
        assert_eq!(error.unwrap_or_default(), words, "{code}: {answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_are_traced_one_on_the_other_and_raw_transactions_before_they_are_sent() {
    let mut dev = Dev::start(&["--quiet"]).await;
    // Counts in slot zero, and returns the count.
    dev.ok("anvil_setCode", json!([ONE, "0x5f5460010180 5f555f5260205ff3".replace(' ', "")])).await;
    let call = json!([{"from": WHO, "to": ONE}, ["stateDiff"]]);
    let answer = dev.ok("trace_callMany", json!([[call, call, call], "latest"])).await;
    let results: Vec<TraceResults> = read(&answer);
    for (count, results) in results.iter().enumerate() {
        assert_eq!(results.output[..], B256::with_last_byte(count as u8 + 1)[..]);
        let diff = results.state_diff.as_ref().expect("changes");
        let [from, to] = [count, count + 1].map(|count| B256::with_last_byte(count as u8));
        assert_eq!(diff[&ONE].storage[&B256::ZERO], Delta::changed(from, to));
        let who: Address = WHO.parse().expect("an address");
        let nonces = [count, count + 1].map(|nonce| U64::from(nonce));
        assert_eq!(diff[&who].nonce, Delta::changed(nonces[0], nonces[1]));
    }
    let slot = dev.ok("eth_getStorageAt", json!([ONE, "0x0", "latest"])).await;
    assert_eq!(slot, json!(B256::ZERO));
    let sent = json!({"from": WHO, "to": ONE, "gas": "0x186a0"});
    let hash = dev.ok("eth_sendTransaction", json!([sent])).await;
    let raw = dev.ok("eth_getRawTransactionByHash", json!([hash])).await;
    let before = dev.ok("trace_rawTransaction", json!([raw, ["trace", "vmTrace"], "0x0"])).await;
    read::<TraceResults>(&before);
    let replayed = dev.ok("trace_replayTransaction", json!([hash, ["vmTrace", "trace"]])).await;
    assert_eq!(before, replayed);
    let again = json!([raw, ["trace"]]);
    dev.refused("trace_rawTransaction", again, Code::Server, "nonce too low").await;
    let params = json!(["0x01", ["trace"]]);
    dev.refused("trace_rawTransaction", params, Code::Server, "").await;
    let params = json!([{"to": ONE}, ["logs"]]);
    dev.refused("trace_call", params, Code::InvalidParams, "unknown variant").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trace_that_is_too_long_is_refused() {
    let mut dev = Dev::start(&["--quiet"]).await;
    // Copies three megabytes of its input to memory, for ever: the bytes are over before the time
    // is looked at.
    let overrides = json!({ ONE.to_string(): {"code": "0x5b623000005f5f375f56"} });
    for types in [json!(["vmTrace"]), json!(ALL)] {
        let params = json!([{"to": ONE}, types, "latest", overrides]);
        let code = Code::LimitExceeded;
        dev.refused("trace_call", params, code, "the answer has more than 64 MiB").await;
    }
    let many = json!([vec![json!([{"to": ONE}, []]); 1_001]]);
    dev.refused("trace_callMany", many, Code::InvalidParams, "").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_filter_finds_what_a_search_of_all_blocks_finds() {
    let mut random = Random::seeded();
    let mut dev = chain(&mut random).await;
    let mut all: Vec<LocalizedTransactionTrace> = Vec::new();
    dev.ok("evm_setAutomine", json!([false])).await;
    for block in 1..=8_u64 {
        for _ in 0..3 {
            // One with too little gas for its input is refused, which is as well.
            let transaction = json!([transaction(&mut random)]);
            let _ = ask(&mut dev, "eth_sendTransaction", &transaction).await;
        }
        dev.ok("evm_mine", json!([])).await;
        let traces = dev.ok("trace_block", json!([format!("{block:#x}")])).await;
        all.extend(read::<Vec<_>>(&traces));
    }
    assert!(all.len() > 8, "{}", all.len());
    let mut found = 0;
    for _ in 0..60 {
        let mut addresses = || -> Vec<Address> {
            let count = random.below(3);
            let mut one = || match random.one_in(3) {
                true => WHO.parse().expect("an address"),
                false => random.pick(&ACCOUNTS),
            };
            (0..count).map(|_| one()).collect()
        };
        let mut filter = TraceFilter::default().from_address(addresses()).to_address(addresses());
        if random.one_in(2) {
            filter = filter.mode(TraceFilterMode::Union);
        }
        let first = random.below(8) as u64;
        let last = first + random.below(9 - usize::try_from(first).expect("small")) as u64;
        filter = filter.from_block(first).to_block(last);
        filter.after = random.one_in(2).then(|| random.below(12) as u64);
        filter.count = random.one_in(2).then(|| random.below(12) as u64);
        let answer = dev.ok("trace_filter", json!([filter])).await;
        let matcher = filter.matcher();
        let wanted = all.iter().filter(|trace| {
            let block = trace.block_number.expect("a number");
            (first..=last).contains(&block) && matcher.matches(&trace.trace)
        });
        let skipped = wanted.skip(filter.after.unwrap_or(0) as usize);
        let expected: Vec<_> = skipped.take(filter.count.unwrap_or(u64::MAX) as usize).collect();
        found += expected.len();
        assert_eq!(answer, json!(expected), "{filter:?}");
    }
    assert!(found > 0);
    let every = dev.ok("trace_filter", json!([{}])).await;
    assert_eq!(every, json!(all));
    let code = Code::InvalidParams;
    let backwards = json!([{"fromBlock": "0x3", "toBlock": "0x2"}]);
    dev.refused("trace_filter", backwards, code, "after toBlock").await;
    dev.refused("trace_filter", json!([{"address": []}]), code, "unknown field").await;
    dev.ok("anvil_mine", json!(["0x64"])).await;
    dev.refused("trace_filter", json!([{}]), code, "at most 100 are allowed").await;
    let above = json!([{"toBlock": "0xffff"}]);
    dev.refused("trace_filter", above, Code::Server, "block 65535 not found").await;
    // The genesis, an unknown block and an unknown transaction.
    assert_eq!(dev.ok("trace_block", json!(["0x0"])).await, json!([]));
    assert_eq!(dev.ok("trace_replayBlockTransactions", json!(["0x0", ALL])).await, json!([]));
    dev.refused("trace_block", json!(["0xffff"]), Code::Server, "block 65535 not found").await;
    let nowhere = json!([B256::repeat_byte(1)]);
    assert_eq!(dev.ok("trace_transaction", nowhere.clone()).await, Value::Null);
    let nowhere = json!([B256::repeat_byte(1), []]);
    assert_eq!(dev.ok("trace_get", nowhere.clone()).await, Value::Null);
    dev.refused("trace_replayTransaction", nowhere, Code::Server, "transaction not found").await;
}
