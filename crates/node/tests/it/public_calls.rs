//! Calls of the public port: their priority and their memory, in a node of its own process.

use crate::persistence::Process;
use crate::support::{genesis_of_osaka, raw};
use alloy_genesis::GenesisAccount;
use alloy_primitives::{Address, Bytes, TxKind, U256, address, hex};
use deponent_node::demo::World;
use deponent_node::limits::{
    BLOCK_LOGS_BYTES, CALL_GAS, OVERRIDDEN_ACCOUNTS, PUBLIC_NICE, SIMULATED_SLOTS,
};
use std::process::Command;

use rpc::{Client, ClientError, Limits};
use serde_json::{Map, Value, json};

/// The account whose code is called.
const CALLED: &str = "0x00000000000000000000000000000000000ca11e";

async fn start() -> (Process, Client, tempfile::TempDir) {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::write(dir.path().join("genesis.json"), genesis_of_osaka().to_string())
        .expect("a file");
    let process = Process::start_with(dir.path(), &[]).await;
    let public = Client::connect(&process.public, None).await.expect("a connection");
    (process, public, dir)
}

/// The nice values of the threads with this name.
fn nice_values(process: u32, name: &str) -> Vec<i32> {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).expect("it runs").flatten();
    let stats = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("stat")).ok());
    let nice = |stat: String| {
        let (before, rest) = stat.rsplit_once(") ")?;
        let is_named = before.split_once('(').is_some_and(|(_, found)| found == name);
        // The nineteenth field, the third being the first one here.
        is_named.then(|| rest.split(' ').nth(16).expect("it has more").parse().expect("a number"))
    };
    stats.filter_map(nice).collect()
}

#[tokio::test]
async fn calls_of_the_public_port_run_below_blocks() {
    let (mut process, mut public, _dir) = start().await;
    let id = process.child.id();
    let own = nice_values(id, "deponent");
    let threads = || nice_values(id, "public");
    let before = threads();
    let call = json!([{ "to": CALLED }, "latest"]);
    let _: Value = process.engine.call("eth_call", &call).await.expect("an answer");
    assert_eq!(threads().len(), before.len(), "a call of the engine's port runs there");
    let _: Value = public.call("eth_call", &call).await.expect("an answer");
    let after = threads();
    assert!(after.len() > before.len(), "the call has a thread there");
    assert!(after.iter().all(|nice| *nice == PUBLIC_NICE), "{after:?}");
    assert!(own.iter().all(|nice| *nice < PUBLIC_NICE), "{own:?}");
}

/// The peak of a process's resident memory since this was last called, and what it is now, in
/// bytes.
fn memory(process: u32) -> (usize, usize) {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("it runs");
    let bytes = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a line");
        line.trim_end_matches("kB").trim().parse::<usize>().expect("a number") << 10
    };
    std::fs::write(format!("/proc/{process}/clear_refs"), "5").expect("Linux");
    (bytes("VmHWM:"), bytes("VmRSS:"))
}

/// An `eth_call` of this code, with these members beside.
fn call(code: &str, beside: &[(&str, Value)]) -> Value {
    let mut call = json!({ "to": CALLED, "gas": format!("{CALL_GAS:#x}") });
    for (name, value) in beside {
        call[*name] = value.clone();
    }
    json!([call, "latest", { CALLED: { "code": code } }])
}

/// Sets new transient slots until the gas is used up: `GAS GAS TSTORE`, and again.
fn transient_slots() -> Value {
    call(&format!("0x5b{}600056", "5a5a5d".repeat(8000)), &[])
}

/// Calls itself as deep as the gas goes. Each frame has memory, and as much data that another
/// contract returned; 640,000 bytes at first, and 63/64 of that in the next frame, which is the
/// most by the prices of both.
fn deep_memory() -> Value {
    call(DEEP, &[("data", json!(format!("0x{:064x}", 640_000)))])
}

const DEEP: &str = concat!(
    // The size, of which the last byte is written.
    "0x6000356000816001900353",
    // As much is returned by the contract that returns its input.
    "6000600082600060045afa50",
    // The next frame.
    "603f0260061c60005260006000602060006000305af100",
);

/// A third of the gas for transient slots, the rest for memory.
fn slots_and_memory() -> Value {
    let rest = "ca11ed";
    let slots = format!("5b{}63{:08x}5a11600057", "5a5a5d".repeat(1000), 33_300_000);
    let code = format!("0x{slots}6209c4006000526000600060206000600062{rest}5af1");
    let mut params = call(&code, &[]);
    params[2][format!("0x{rest:0>40}")] = json!({ "code": DEEP });
    params
}

/// Returns memory that takes all gas.
fn returned() -> Value {
    call("0x624c4b406000f3", &[])
}

fn logs() -> Value {
    call(&format!("0x5b{}600056", "5f5fa0".repeat(8000)), &[])
}

/// The largest simulations: those of one call, of calls that return most for their gas, of the
/// most calls and blocks, and of the most that is overridden.
fn simulations() -> Vec<(&'static str, Value)> {
    let code = |code: &str| json!({ CALLED: { "code": code } });
    let of = |state: Value, calls: Vec<Value>| {
        let block = json!({ "stateOverrides": state, "calls": calls });
        json!([{ "blockStateCalls": [block] }])
    };
    let one = || vec![json!({ "to": CALLED })];
    let logs = format!("0x5b{}600056", "5f5fa0".repeat(8000));
    let slots = |at| (format!("0x{at:064x}"), json!(format!("0x{at:064x}")));
    let slots: Map<String, Value> = (0..SIMULATED_SLOTS).map(slots).collect();
    let transient = format!("0x5b{}600056", "5a5a5d".repeat(8000));
    let blocks = json!([{ "blockStateCalls": vec![json!({}); 256] }]);
    vec![
        ("simulated logs", of(code(&logs), one())),
        ("simulated transient slots", of(code(&transient), one())),
        ("simulated data", of(code("0x620199a06000f3"), vec![one()[0].clone(); 900])),
        ("simulated calls", of(json!({}), vec![json!({}); 2_300])),
        ("simulated blocks", blocks),
        ("simulated slots", of(json!({ CALLED: { "state": slots } }), one())),
    ]
}

/// So many items, as many as a body has room for.
fn many<T: FromIterator<I>, I>(bytes_each: usize, item: impl Fn(usize) -> I) -> T {
    (0..(16 << 20) / bytes_each - 20).map(item).collect()
}

fn access_list() -> Value {
    let keys: Vec<Value> = many(69, |at| json!(format!("0x{at:064x}")));
    call("0x", &[("accessList", json!([{ "address": CALLED, "storageKeys": keys }]))])
}

fn authorizations() -> Value {
    let item = json!({
        "chainId": "0x0", "address": CALLED, "nonce": "0x0", "yParity": "0x0", "r": "0x0",
        "s": "0x0",
    });
    let list: Vec<Value> = many(item.to_string().len() + 1, |_| item.clone());
    call("0x", &[("authorizationList", json!(list))])
}

fn overridden(accounts: Map<String, Value>) -> Value {
    json!([{ "to": CALLED }, "latest", accounts])
}

fn overridden_accounts(count: usize) -> Value {
    overridden((0..count).map(|at| (format!("0x{at:040x}"), json!({ "nonce": "0x1" }))).collect())
}

fn overridden_slots() -> Value {
    let slot = |at| (format!("0x{at:064x}"), json!(format!("0x{at:064x}")));
    let slots: Map<String, Value> = many(138, slot);
    overridden(Map::from_iter([(CALLED.to_owned(), json!({ "state": slots }))]))
}

fn overridden_code() -> Value {
    let code = format!("0x{}", "5b".repeat((8 << 20) - 500));
    call(&code, &[])
}

/// The largest calls known, with their answers, take no more than [`Limits::call_bytes`].
#[tokio::test]
async fn no_call_takes_more_memory_than_is_counted() {
    let cases = [
        ("transient slots", transient_slots()),
        ("memory of many frames", deep_memory()),
        ("transient slots and memory", slots_and_memory()),
        ("returned data", returned()),
        ("logs", logs()),
        ("an access list", access_list()),
        ("authorizations", authorizations()),
        ("overridden accounts", overridden_accounts(OVERRIDDEN_ACCOUNTS)),
        ("more overridden accounts", overridden_accounts(200_000)),
        ("overridden slots", overridden_slots()),
        ("an overridden code", overridden_code()),
    ];
    for (name, params) in cases {
        let (process, mut public, _dir) = start().await;
        let mut small = json!([{ "to": CALLED }, "latest"]);
        if params.to_string().len() < 100_000 {
            small = params.clone();
            small[0]["gas"] = json!("0x30d40");
        }
        // The program's own pages are there before.
        public.call_raw("eth_call", small).await.expect("an answer");
        measure(name, &process, &mut public, ("eth_call", params)).await;
    }
    for (name, params) in [
        ("estimated transient slots", transient_slots()),
        ("estimated memory of many frames", deep_memory()),
        ("estimated slots and memory", slots_and_memory()),
        ("an estimate with overridden slots", overridden_slots()),
    ] {
        let (process, mut public, _dir) = start().await;
        let small = json!([{ "to": CALLED }, "latest"]);
        public.call_raw("eth_estimateGas", small).await.expect("an answer");
        measure(name, &process, &mut public, ("eth_estimateGas", params)).await;
    }
    for (name, simulated) in simulations() {
        let (process, mut public, _dir) = start().await;
        let small = json!([{ "blockStateCalls": [{ "calls": [{}] }] }]);
        public.call_raw("eth_simulateV1", small).await.expect("an answer");
        measure(name, &process, &mut public, ("eth_simulateV1", simulated)).await;
    }
    let filter = json!([{ "fromBlock": "latest" }]);
    let logs = |params: &Value| ("eth_getLogs", params.clone());
    let (process, mut public, _dir) = start_with_logs(60_000_000).await;
    let answer = measure("logs of a block", &process, &mut public, logs(&filter)).await;
    let bytes = answer.len();
    assert!((BLOCK_LOGS_BYTES / 2..BLOCK_LOGS_BYTES).contains(&bytes), "{bytes} bytes");
    let (process, mut public, _dir) = start_with_logs(120_000_000).await;
    let answer = measure("logs of a larger block", &process, &mut public, logs(&filter)).await;
    assert!(text(&answer).contains("too much of one block"), "{}", text(&answer));
    let (process, mut public, _dir) = start_with_witness().await;
    let inspect = ("deponent_inspectWitness", json!(["latest"]));
    let answer = measure("a witness is inspected", &process, &mut public, inspect).await;
    assert!(text(&answer).contains(r#""stateRoot""#), "{}", text(&answer));
}

/// The beginning of an answer.
fn text(answer: &[u8]) -> String {
    String::from_utf8_lossy(&answer[..answer.len().min(300)]).into_owned()
}

/// Makes a call, and compares its memory with what is counted. Returns the answer.
async fn measure(
    name: &str,
    process: &Process,
    public: &mut Client,
    (method, params): (&str, Value),
) -> Bytes {
    let most = Limits::public().call_bytes;
    let (_, before) = memory(process.child.id());
    let text_bytes = params.to_string().len();
    let answer: Bytes = match public.call_raw(method, params).await {
        Ok(answer) => answer.into(),
        Err(ClientError::Rpc(error)) => error.to_string().into_bytes().into(),
        Err(fault) => panic!("{name}: {fault}"),
    };
    let (peak, _) = memory(process.child.id());
    // The body has memory of its own, in a buffer that doubles.
    let taken = (peak - before).saturating_sub(text_bytes.next_power_of_two());
    println!("{name}: {} MiB, {text_bytes} bytes sent, {}", taken >> 20, text(&answer));
    assert!(taken <= most, "{name}: {taken} bytes, {most} are counted");
    answer
}

/// The most gas of a transaction (EIP-7825).
const TRANSACTION_GAS: u64 = 1 << 24;

/// A contract of the chains below.
const CONTRACT: Address = address!("00000000000000000000000000000000c0de0002");

/// A node that has its head on the disk alone, a block with these calls of [`CONTRACT`].
async fn start_with_block(
    mut world: World,
    code: Vec<u8>,
    inputs: Vec<Bytes>,
) -> (Process, Client, tempfile::TempDir) {
    let dir = tempfile::tempdir().expect("a directory");
    let account = GenesisAccount::default().with_code(Some(code.into()));
    world.genesis.alloc.insert(CONTRACT, account);
    let genesis = serde_json::to_string(&world.genesis).expect("JSON");
    std::fs::write(dir.path().join("genesis.json"), genesis).expect("a file");
    let mut process = Process::start_with(dir.path(), &[]).await;
    let last_gas = world.genesis.gas_limit % TRANSACTION_GAS;
    let count = inputs.len() as u64;
    let transactions = (0..).zip(inputs).map(|(nonce, input)| {
        let gas = if nonce + 1 == count { last_gas } else { TRANSACTION_GAS };
        world.sign(nonce, TxKind::Call(CONTRACT), input, gas).expect("signed")
    });
    let transactions: Vec<_> = transactions.collect();
    let parent = process.head().await;
    let hash = process.add(&parent, json!([]), json!(raw(&transactions))).await;
    process.choose(&hash, false).await;
    let id = process.child.id().to_string();
    assert!(Command::new("kill").arg(id).status().expect("it runs").success());
    let (status, log) = process.ended().await;
    assert_eq!(status, Some(0), "{log}");
    let process = Process::start_with(dir.path(), &[]).await;
    let mut public = Client::connect(&process.public, None).await.expect("a connection");
    let latest = json!(["latest", false]);
    let head: Value = public.call("eth_getBlockByNumber", &latest).await.expect("a head");
    assert_eq!(head["hash"], hash);
    (process, public, dir)
}

/// With a block of so much gas that does nothing but log.
async fn start_with_logs(gas: u64) -> (Process, Client, tempfile::TempDir) {
    let mut world = World::new(0).expect("a world");
    world.genesis.gas_limit = gas;
    // A thousand logs without topics and data, and again while there is gas for as many.
    let code = [&[0x5b][..], &hex!("5f5fa0").repeat(1000), &hex!("62061a805a115f57")].concat();
    let count = gas.div_ceil(TRANSACTION_GAS) as usize;
    start_with_block(world, code, vec![Bytes::new(); count]).await
}

/// With a block whose witness has almost as many items and bytes as may be looked at: as many
/// accounts as possible, since these take most, and codes for the rest.
async fn start_with_witness() -> (Process, Client, tempfile::TempDir) {
    const FIRST: u64 = 0x1_0000_0000;
    const CODES: u64 = 44;
    const READ: u64 = 6_000;
    const TRANSACTIONS: u64 = 13;
    let mut world = World::new(0).expect("a world");
    world.genesis.gas_limit = (TRANSACTIONS + 1) * TRANSACTION_GAS - 1_000_000;
    for index in 0..1 << 17 {
        let account = GenesisAccount::default().with_balance(U256::from(index + 1));
        let code = vec![index as u8; 1 << 20];
        let code = (index < CODES).then(|| code.into());
        world.genesis.alloc.insert(numbered(FIRST + index), account.with_code(code));
    }
    // From the first word of the input up to the second: the balance, and the size of the code.
    let code = hex!("5f355b803150803b50600101806020351160025700").to_vec();
    let words = |from: u64, to: u64| {
        [U256::from(FIRST + from), U256::from(FIRST + to)].map(|word| word.to_be_bytes::<32>())
    };
    let inputs = (0..TRANSACTIONS).map(|at| words(at * READ, (at + 1) * READ).concat().into());
    let inputs = inputs.chain([words(0, 1).concat().into()]).collect();
    start_with_block(world, code, inputs).await
}

fn numbered(number: u64) -> Address {
    Address::left_padding_from(&number.to_be_bytes())
}
