//! Calls of the public port: their priority and their memory, in a node of its own process.

use crate::persistence::Process;
use crate::support::genesis_of_osaka;
use deponent_node::limits::{CALL_GAS, OVERRIDDEN_ACCOUNTS, PUBLIC_NICE};
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
    let most = Limits::public().call_bytes;
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
        // The program's own pages are there before.
        let mut small = json!([{ "to": CALLED }, "latest"]);
        if params.to_string().len() < 100_000 {
            small = params.clone();
            small[0]["gas"] = json!("0x30d40");
        }
        public.call_raw("eth_call", small).await.expect("an answer");
        let (_, before) = memory(process.child.id());
        let text_bytes = params.to_string().len();
        let outcome = match public.call_raw("eth_call", params).await {
            Ok(answer) => String::from_utf8_lossy(&answer[..answer.len().min(300)]).into_owned(),
            Err(ClientError::Rpc(error)) => error.to_string(),
            Err(fault) => panic!("{name}: {fault}"),
        };
        let (peak, _) = memory(process.child.id());
        // The body has memory of its own, in a buffer that doubles.
        let taken = (peak - before).saturating_sub(text_bytes.next_power_of_two());
        println!("{name}: {} MiB, {text_bytes} bytes sent, {outcome}", taken >> 20);
        assert!(taken <= most, "{name}: {taken} bytes, {most} are counted");
    }
}
