//! Traces, asked of both nodes over IPC: geth and we answer alike. Each opcode runs with operands,
//! without, with a full stack, with too little gas, and where the state may not change.

use crate::geth::LOGGERS;
use crate::geth_estimates::request;
use alloy_primitives::{Address, B256, hex};
use rpc::{ClientError, SessionClient};
use serde_json::{Value, json};
use testing::{Random, rounds};

const ONE: Address = Address::repeat_byte(0xaa);
const OTHER: Address = Address::repeat_byte(0xbb);
const CALLER: Address = Address::repeat_byte(0xdd);

/// The gas of a plain call before its first instruction.
const INTRINSIC_GAS: u64 = 21_000;

fn tracers() -> Vec<Value> {
    vec![
        json!({"enableMemory": true, "enableReturnData": true}),
        json!({"tracer": "callTracer", "tracerConfig": {"withLog": true}}),
    ]
}

fn more_tracers() -> Vec<Value> {
    vec![
        json!({}),
        json!({"disableStack": true, "disableStorage": true}),
        json!({"enableMemory": true, "limit": 500}),
        json!({"tracer": "callTracer"}),
        json!({"tracer": "callTracer", "tracerConfig": {"onlyTopCall": true, "withLog": true}}),
        json!({"tracer": "callTracer", "tracerConfig": null}),
        json!({"tracer": "4byteTracer"}),
        json!({"tracer": "noopTracer"}),
        json!({"tracer": "keccak256PreimageTracer"}),
        json!({"tracer": "muxTracer", "tracerConfig": {"callTracer": {}, "4byteTracer": null}}),
        json!({"tracer": "prestateTracer"}),
        json!({"tracer": "prestateTracer", "tracerConfig": {"includeEmpty": true}}),
        json!({"tracer": "prestateTracer", "tracerConfig": {"diffMode": true}}),
        json!({"tracer": "prestateTracer", "tracerConfig": {
            "diffMode": true, "disableCode": true, "disableStorage": true,
        }}),
        json!({"tracer": "flatCallTracer"}),
        json!({"tracer": "flatCallTracer", "tracerConfig": {
            "convertParityErrors": true, "includePrecompiles": true,
        }}),
        json!({"tracer": "callTracer", "timeout": "10s", "reexec": 5}),
        json!({"tracer": "erc7562Tracer"}),
        json!({"tracer": "erc7562Tracer", "tracerConfig": {
            "withLog": true, "ignoredOpcodes": ["0x5b", "0xf1"], "stackTopItemsSize": 1,
        }}),
        json!({"tracer": "muxTracer", "tracerConfig": {
            "erc7562Tracer": {"ignoredOpcodes": []}, "callTracer": null,
        }}),
    ]
}

fn with(tracer: &Value, overrides: &Value) -> Value {
    let mut config = tracer.clone();
    config["stateOverrides"] = overrides.clone();
    config
}

/// A call of a code, with so much gas.
fn run(code: &str, gas: u64, tracer: &Value) -> Value {
    let overrides = json!({ ONE.to_string(): {"code": format!("0x{code}"), "balance": "0x64"} });
    traced(json!({}), gas, overrides, tracer)
}

fn traced(mut call: Value, gas: u64, overrides: Value, tracer: &Value) -> Value {
    call["from"] = json!(CALLER);
    call["gas"] = json!(format!("{gas:#x}"));
    if call.get("to").is_none() {
        call["to"] = json!(ONE);
    }
    json!([call, "latest", with(tracer, &overrides)])
}

/// Each opcode, in all situations.
fn opcodes() -> Vec<Value> {
    let [logs, calls] = &tracers()[..] else { unreachable!("there are two") };
    let stackless = json!({"disableStack": true});
    let mut all = Vec::new();
    // Seven operands: a call is of the identity contract, with value.
    let operands = "60076006602060056003600460ff";
    for op in 0..=255_u8 {
        let used = format!("{operands}{op:02x}60015500");
        all.push(run(&used, 100_000, logs));
        all.push(run(&used, 100_000, calls));
        all.push(run(&format!("{op:02x}"), 100_000, logs));
        all.push(run(&format!("{op:02x}"), 100_000, calls));
        for more in [0, 1, 2, 20, 99, 100, 400, 2_299, 2_300, 2_600, 9_100, 34_100] {
            all.push(run(&used, INTRINSIC_GAS + 21 + more, logs));
        }
        all.push(run(&used, INTRINSIC_GAS + 121, calls));
        let full = format!("{}{op:02x}", "5f".repeat(1_024));
        all.push(run(&full, 100_000, &json!({"tracer": "callTracer"})));
        if op % 16 == 0 {
            all.push(run(&full, 100_000, &stackless));
        }
        // Huge operands.
        let huge = format!("{}{op:02x}", format!("7f{}", "ff".repeat(32)).repeat(7));
        all.push(run(&huge, 100_000, logs));
        let large = format!("{}{op:02x}", "67ffffffffffffffff".repeat(7));
        all.push(run(&large, 100_000, logs));
        all.push(run(&large, 100_000, calls));
        for tracer in [logs, calls] {
            all.push(below("fa", &used, 60_000, tracer));
        }
    }
    all
}

/// A call of [`ONE`] which calls a code at [`OTHER`] with this op.
fn below(op: &str, code: &str, gas: u64, tracer: &Value) -> Value {
    let value = if matches!(op, "f1" | "f2") { "6003" } else { "" };
    let to = hex::encode(OTHER);
    let caller = format!("60205f60205f{value}73{to}5a{op}60205f5f3e3d5f5260205ff3");
    let overrides = json!({
        ONE.to_string(): {"code": format!("0x{caller}"), "balance": "0x64"},
        OTHER.to_string(): {"code": format!("0x{code}"), "balance": "0x5"},
    });
    traced(json!({"data": "0xa9059cbb00"}), gas, overrides, tracer)
}

/// Creates a contract of this init code, and one more where it is to be repeated.
fn creates(init: &str, op: &str, times: usize, balance: &str, nonce: &str) -> Value {
    let length = init.len() / 2;
    let salt = if op == "f5" { "6007" } else { "" };
    let once = format!("{salt}60{length:02x}60{:02x}6001{op}", 32 - length);
    let word = format!("7f{init:0>64}5f52");
    let code = format!("0x{word}{}00", once.repeat(times));
    json!({ ONE.to_string(): {"code": code, "balance": balance, "nonce": nonce} })
}

/// All ways in which calls and creations end.
fn endings() -> Vec<(Value, u64, Value)> {
    let mut all = Vec::new();
    let code = |code: &str| json!({ ONE.to_string(): {"code": format!("0x{code}")} });
    // Reverts with nothing, a word, Error("no") and Panic(0x11); jumps to nowhere.
    let error = "6308c379a05f5260206020526002604052616e6f60f01b6060526064601cfd";
    let panic = "634e487b715f5260116020526024601cfd";
    for ending in ["5f5ffd", "60015f5260205ffd", error, panic, "60ff56", "600160ff57", "3d60013e"] {
        all.push((json!({}), 100_000, code(ending)));
    }
    for op in ["f0", "f5"] {
        // Deploys nothing, a byte, EF, too much, more than it can pay for; reverts; fails;
        // self-destructs; reads its own storage.
        for init in [
            "00",
            "60015ff3",
            "60ef5f5360015ff3",
            "6160015ff3",
            "61ea605ff3",
            "6001600055615dc05ff3",
            "60015f5260205ffd",
            "fe",
            "73bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbff",
            "30ff",
            "5f5f54",
        ] {
            for (times, balance, nonce) in
                [(1, "0x64", "0x1"), (2, "0x64", "0x1"), (1, "0x0", "0x1")]
            {
                let overrides = creates(init, op, times, balance, nonce);
                all.push((json!({}), 12_000_000, overrides.clone()));
                all.push((json!({}), 300_000, overrides));
            }
        }
        let last = creates("00", op, 1, "0x64", "0xffffffffffffffff");
        all.push((json!({}), 200_000, last));
        // Init code that is too long.
        let salt = if op == "f5" { "5f" } else { "" };
        all.push((json!({}), 1_000_000, code(&format!("{salt}62c0015f5f{op}00"))));
    }
    // A transaction that creates.
    for init in ["0x", "0x60015ff3", "0x60ef5f5360015ff3", "0x5f5ffd", "0xfe", "0x61ea605ff3"] {
        all.push((json!({"to": null, "input": init}), 500_000, json!({})));
    }
    // Self-destruction with and without money, to an account that is there or not, or to itself.
    for (heir, balance) in [(OTHER, "0x5"), (OTHER, "0x0"), (ONE, "0x5"), (CALLER, "0x5")] {
        let code = format!("0x73{}ff", hex::encode(heir));
        let overrides = json!({ ONE.to_string(): {"code": code, "balance": balance} });
        all.push((json!({}), 100_000, overrides));
    }
    // Logs, some of them undone; transient storage; blobs.
    let logs = "60aa5f5260015f60205fa160025f60205fa15f5fa0";
    all.push((json!({}), 100_000, code(&format!("{logs}00"))));
    all.push((json!({}), 100_000, code(&format!("{logs}5f5ffd"))));
    all.push((json!({}), 100_000, code("60015f5d5f5c60015c5f4960014960ff494a5f52")));
    all.push((json!({}), 100_000, code("5f5460015f555f5f5560015f556002600155600154")));
    all.push((json!({"value": "0x1"}), 100_000, code("00")));
    // Slots that are cleared, set back and set anew, with each sum of gas that is too little.
    let slot = |value: u8| json!({ B256::ZERO.to_string(): B256::with_last_byte(value) });
    for (value, stores) in [(1, "5f5f55"), (1, "5f5f5560015f55"), (0, "60015f555f5f55")] {
        for gas in [23_000, 24_000, 25_000, 26_000, 27_000, 28_500, 42_000, 43_200, 45_500] {
            let code = format!("0x{stores}00");
            let overrides = json!({ ONE.to_string(): {"code": code, "state": slot(value)} });
            all.push((json!({}), gas, overrides));
        }
    }
    // A static call, a call and a balance of an account that is not there.
    let absent = hex::encode(Address::repeat_byte(0xc7));
    all.push((json!({}), 100_000, code(&format!("5f5f5f5f73{absent}5afa00"))));
    all.push((json!({}), 100_000, code(&format!("5f5f5f5f5f73{absent}5af100"))));
    all.push((json!({}), 100_000, code(&format!("73{absent}3100"))));
    all.push((json!({"to": OTHER}), 21_000, json!({})));
    all.push((json!({}), 20_000, json!({})));
    all
}

/// Calls of precompiled contracts, directly and from a contract, some of which they refuse.
fn precompiled() -> Vec<(Value, u64, Value)> {
    let mut all = Vec::new();
    for contract in 1..=0x12_u8 {
        let to = Address::with_last_byte(contract);
        for length in [0, 1, 64, 128, 160, 192, 213, 256, 384] {
            for byte in ["00", "ff"] {
                let input = format!("0x{}", byte.repeat(length));
                all.push((json!({"to": to, "input": input}), 1_000_000, json!({})));
            }
        }
        for gas in ["5f", "6064", "5a"] {
            let code = format!("0x60205f60205f5f60{contract:02x}{gas}f100");
            all.push((json!({}), 200_000, json!({ ONE.to_string(): {"code": code} })));
        }
    }
    all
}

/// Calls of calls: each kind, with logs, errors, and codes that are delegations.
fn nested() -> Vec<Value> {
    let mut all = Vec::new();
    for tracer in tracers().iter().chain(&more_tracers()) {
        for op in ["f1", "f2", "f4", "fa"] {
            for code in [
                "00",
                "60aa5f5260015f60205fa1005f",
                "60aa5f5260205ffd",
                "fe",
                "5b5f56",
                "01",
                "600160015500",
                "600160015560005f5500",
                "60205f60205f5f60045af15f5ff3",
                "ef0100aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
                "ef0100cccccccccccccccccccccccccccccccccccccccc",
                "33ff",
            ] {
                // A code that calls itself does so as long as there is gas.
                let most = if code.starts_with("ef0100aa") { 40_000 } else { 100_000 };
                for gas in [30_000, 36_000, most] {
                    all.push(below(op, code, gas, tracer));
                }
            }
        }
    }
    all
}

/// Where two answers differ first.
pub(crate) fn difference(at: &str, ours: &Value, geth: &Value) -> Option<String> {
    match (ours, geth) {
        (Value::Object(one), Value::Object(other)) => {
            let names = one.keys().chain(other.keys().filter(|name| !one.contains_key(*name)));
            names.into_iter().find_map(|name| {
                let (one, other) = (one.get(name), other.get(name));
                let null = Value::Null;
                let at = format!("{at}/{name}");
                if one.is_some() == other.is_some() {
                    return difference(&at, one.unwrap_or(&null), other.unwrap_or(&null));
                }
                Some(format!("{at}: ours {one:?}, geth's {other:?}"))
            })
        }
        (Value::Array(one), Value::Array(other)) => {
            let both = one.iter().zip(other).enumerate();
            both.into_iter()
                .find_map(|(index, (one, other))| difference(&format!("{at}/{index}"), one, other))
                .or_else(|| {
                    (one.len() != other.len())
                        .then(|| format!("{at}: ours {}, geth's {} items", one.len(), other.len()))
                })
        }
        _ => (ours != geth).then(|| format!("{at}: ours {ours}, geth's {geth}")),
    }
}

pub(crate) async fn answer(session: &SessionClient, method: &str, params: &Value) -> Value {
    match session.call::<Value>(method, params).await {
        Ok(answer) => answer,
        Err(ClientError::Rpc(error)) => json!({"code": error.code, "message": error.message}),
        // Calls that are nested too deep for the parser.
        Err(error) if error.to_string().contains("recursion limit") => json!("too deep"),
        Err(error) => panic!("{method} {params}: {error}"),
    }
}

/// The requests that both answer in two ways.
pub(crate) async fn differences(sessions: &[SessionClient; 2]) -> Vec<String> {
    let mut requests: Vec<(&str, Value)> = Vec::new();
    let mut call = |params: Value| requests.push(("debug_traceCall", params));
    opcodes().into_iter().for_each(&mut call);
    nested().into_iter().for_each(&mut call);
    for (asked, gas, overrides) in endings().into_iter().chain(precompiled()) {
        for tracer in tracers().iter().chain(&more_tracers()) {
            let mut params = traced(asked.clone(), gas, overrides.clone(), tracer);
            if asked.get("to").is_some_and(Value::is_null) {
                params[0].as_object_mut().expect("an object").remove("to");
            }
            call(params);
        }
    }
    let mut random = Random::seeded();
    for _ in 0..rounds("DEPONENT_CALLS", 300, 2_000) {
        let asked = request(&mut random);
        let mut config = random.pick(&[tracers(), more_tracers()].concat());
        config["stateOverrides"] = asked[2].clone();
        if let Some(block) = asked.get(3) {
            // There geth's hashes of blocks are counted from the overridden number.
            if block["number"] != "0x6" {
                config["blockOverrides"] = block.clone();
            }
        }
        call(json!([asked[0], asked[1], config]));
    }
    // Before a transaction of a block, and where there is none.
    for _ in 0..rounds("DEPONENT_CALLS", 300, 2_000) / 4 {
        let asked = request(&mut random);
        let mut config = random.pick(&[tracers(), more_tracers()].concat());
        config["txIndex"] = json!(format!("{:#x}", random.below(4)));
        call(json!([asked[0], format!("{:#x}", random.below(9)), config]));
    }
    // The logs of a block are numbered through.
    for index in ["0x0", "0x1", "0x2"] {
        let logged = json!({"to": LOGGERS[0], "input": "0x01"});
        let config =
            json!({"tracer": "callTracer", "tracerConfig": {"withLog": true}, "txIndex": index});
        call(json!([logged, "0x6", config]));
    }
    requests.extend(of_blocks(&sessions[0]).await);
    let (mut differ, mut too_long) = (Vec::new(), 0);
    for (method, params) in &requests {
        let [ours, geth] = [&sessions[0], &sessions[1]];
        let [ours, geth] = [answer(ours, method, params).await, answer(geth, method, params).await];
        // geth has no bound but time, which a busy machine may not have.
        if ours["code"] == -32005 || geth["message"] == "execution timeout" {
            too_long += 1;
            continue;
        }
        if let Some(found) = difference("", &ours, &geth) {
            differ.push(format!("{method} {params}: {found}"));
        }
    }
    assert!(too_long < 20, "{too_long} answers are too long");
    differ
}

/// The same for calls and creations that are too deep: in lists, since JSON is not so deep.
pub(crate) async fn differences_in_depth(sessions: &[SessionClient; 2]) -> Vec<String> {
    let lists = [
        json!({"disableStack": true, "disableStorage": true}),
        json!({"tracer": "flatCallTracer"}),
        json!({"tracer": "callTracer", "tracerConfig": {"onlyTopCall": true}}),
        json!({"tracer": "4byteTracer"}),
        json!({"tracer": "prestateTracer", "tracerConfig": {"diffMode": true}}),
    ];
    let mut differ = Vec::new();
    // Each kind of call of the contract itself, and init code that creates with itself.
    for code in [
        "5f5f5f5f5f305af100",
        "5f5f5f5f5f305af200",
        "5f5f5f5f305af400",
        "5f5f5f5f305afa00",
        "385f5f39385f5ff000",
        "38385f5f395f385f5ff500",
    ] {
        for tracer in &lists {
            let params = run(code, 1 << 50, tracer);
            let [ours, geth] = sessions.each_ref().map(|it| answer(it, "debug_traceCall", &params));
            let (ours, geth) = (ours.await, geth.await);
            if let Some(found) = difference("", &ours, &geth) {
                differ.push(format!("{code} {tracer}: {found}"));
            }
            let is_list = tracer["tracer"] == "flatCallTracer";
            let is_deep = geth.to_string().contains("max call depth exceeded");
            assert!(is_deep || !is_list, "{code}: {geth:.300}");
        }
    }
    differ
}

/// Requests for the transactions and blocks of the chain; the last blocks run too much for struct
/// logs.
async fn of_blocks(session: &SessionClient) -> Vec<(&'static str, Value)> {
    let mut requests = Vec::new();
    for number in 1..=8 {
        let number = json!(format!("{number:#x}"));
        let block = answer(session, "eth_getBlockByNumber", &json!([number, false])).await;
        let raw = answer(session, "debug_getRawBlock", &json!([number])).await;
        for tracer in tracers().iter().chain(&more_tracers()) {
            requests.push(("debug_traceBlockByNumber", json!([number, tracer])));
            requests.push(("debug_traceBlockByHash", json!([block["hash"], tracer])));
            requests.push(("debug_traceBlock", json!([raw, tracer])));
            for hash in block["transactions"].as_array().expect("a list").iter().take(3) {
                requests.push(("debug_traceTransaction", json!([hash, tracer])));
            }
        }
    }
    requests.push(("debug_traceTransaction", json!([B256::repeat_byte(1)])));
    requests.push(("debug_traceBlockByHash", json!([B256::repeat_byte(1)])));
    requests.push(("debug_traceBlockByNumber", json!(["0xffff"])));
    requests.push(("debug_traceBlockByNumber", json!(["0x0"])));
    requests
}
