//! `deponent dev --fork-url`: a chain that begins with a block of another one.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use rpc::{Client, Code, Error, Handler, Json, Limits, RawValue, ServerOptions, serve};
use rustix::process::Signal;
use serde_json::{Value, json};
use testing::Random;

use crate::commands::Anvil;
use crate::dev::{Dev, OTHER, WHO};
use crate::geth::{LEDGER, LEDGER_SLOTS, Nodes, blocks, world};
use crate::support::unwrap;

/// The init code of a contract with this code.
fn init_code() -> String {
    let code = CODE.trim_start_matches("0x");
    let length = code.len() / 2;
    format!("0x60{length:02x}600c60003960{length:02x}6000f3{code}")
}

/// `PUSH1 0 CALLDATALOAD SLOAD PUSH1 0 MSTORE`, then the slot is set, `LOG0` of the old value, and
/// the old value and the hash of a block are returned.
const CODE: &str = "0x600035546000526020356000355560206000a0604035406020526040\
                    6000f3";

/// The root of a storage without slots.
const NO_STORAGE: &str = "0x56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421";

fn word(number: u64) -> String {
    format!("{number:064x}")
}

/// A call of the contract.
fn input(slot: u64, value: u64, block: u64) -> String {
    format!("0x{}{}{}", word(slot), word(value), word(block))
}

/// The address in the first receipt's `contractAddress`.
async fn deployed(dev: &mut Dev) -> String {
    let creation = json!({"from": WHO, "data": init_code()});
    let hash = dev.ok("eth_sendTransaction", json!([creation])).await;
    let receipt = dev.ok("eth_getTransactionReceipt", json!([hash])).await;
    assert_eq!(receipt["status"], "0x1", "{receipt}");
    receipt["contractAddress"].as_str().expect("an address").to_owned()
}

async fn send(dev: &mut Dev, to: &str, data: &str) -> Value {
    let call = json!({"from": WHO, "to": to, "data": data, "gas": "0x30d40"});
    let hash = dev.ok("eth_sendTransaction", json!([call])).await;
    let receipt = dev.ok("eth_getTransactionReceipt", json!([hash])).await;
    assert_eq!(receipt["status"], "0x1", "{receipt}");
    receipt
}

/// A chain with a contract, some of whose slots are set, and a chain that begins with its head.
async fn pair(given: &[&str], cache: &Path) -> (Dev, Dev, String) {
    let mut far = Dev::start(&["--quiet"]).await;
    let contract = deployed(&mut far).await;
    for slot in 0..12 {
        send(&mut far, &contract, &input(slot, slot + 1, 1)).await;
    }
    let url = format!("http://{}", far.address.trim_start_matches("http://"));
    let arguments = [&["--fork-url", &url], given].concat();
    let near = Dev::start_with(&arguments, &[("XDG_CACHE_HOME", cache)]).await;
    (far, near, contract)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_reads_what_its_endpoint_has_and_goes_on_by_itself() {
    let cache = tempfile::tempdir().expect("a directory");
    let (mut far, mut near, contract) = pair(&[], cache.path()).await;
    let words = near.printed.join("\n");
    for part in
        ["Block number:   13", "Hardfork:       osaka, by the endpoint's eth_config", "31337"]
    {
        assert!(words.contains(part), "{part}: {words}");
    }
    let head = json!("0xd");
    // Checked: the state after the block.
    for (method, params) in [
        ("eth_chainId", json!([])),
        ("eth_blockNumber", json!([])),
        ("eth_getCode", json!([contract, head])),
        ("eth_getBalance", json!([contract, head])),
        ("eth_getBalance", json!([OTHER, head])),
        ("eth_getTransactionCount", json!([WHO, head])),
        ("eth_getStorageAt", json!([contract, "0x5", head])),
        ("eth_getStorageAt", json!([contract, "0xff", head])),
        ("eth_call", json!([{"to": contract, "data": input(3, 0, 2)}, head])),
        // Not checked: all that came before.
        ("eth_getBlockByNumber", json!([head, true])),
        ("eth_getBlockByNumber", json!(["0x3", false])),
        ("eth_getBlockByNumber", json!(["earliest", false])),
        ("eth_getBlockReceipts", json!(["0x4"])),
        ("eth_getStorageAt", json!([contract, "0x5", "0x2"])),
        ("eth_getBalance", json!([WHO, "0x1"])),
        ("eth_getLogs", json!([{"fromBlock": "0x1", "toBlock": "0x5"}])),
        ("eth_feeHistory", json!(["0x2", "0x4", []])),
    ] {
        let answer = near.ok(method, params.clone()).await;
        assert_eq!(answer, far.ok(method, params.clone()).await, "{method} {params}");
    }
    // The accounts are rich again.
    let balance = near.ok("eth_getBalance", json!([WHO, "latest"])).await;
    assert_eq!(balance, "0x21e19e0c9bab2400000");
    let block = near.ok("eth_getBlockByNumber", json!([head, false])).await;
    let older = far.ok("eth_getBlockByNumber", json!(["0x2", true])).await;
    let by_hash = near.ok("eth_getBlockByHash", json!([older["hash"], true])).await;
    assert_eq!(by_hash, older);
    let hash = &older["transactions"][0]["hash"];
    for method in ["eth_getTransactionByHash", "eth_getTransactionReceipt"] {
        let answer = near.ok(method, json!([hash])).await;
        assert_eq!(answer, far.ok(method, json!([hash])).await);
        assert_ne!(answer, Value::Null);
    }
    assert_eq!(near.ok("eth_getTransactionByHash", json!([block["hash"]])).await, Value::Null);
    // It goes on by itself: the endpoint's chain stays as it is.
    let receipt = send(&mut near, &contract, &input(3, 99, 2)).await;
    assert_eq!(receipt["blockNumber"], "0xe");
    assert_eq!(receipt["logs"][0]["data"], format!("0x{}", word(4)));
    assert_eq!(far.ok("eth_blockNumber", json!([])).await, "0xd");
    let slot = near.ok("eth_getStorageAt", json!([contract, "0x3", "latest"])).await;
    assert_eq!(slot, format!("0x{}", word(99)));
    let slot = near.ok("eth_getStorageAt", json!([contract, "0x3", "0xd"])).await;
    assert_eq!(slot, format!("0x{}", word(4)));
    // Blocks and logs of both, and a later block of the endpoint that is none of this chain.
    let logs = near.ok("eth_getLogs", json!([{"fromBlock": "0xc", "toBlock": "latest"}])).await;
    let numbers: Vec<_> = logs.as_array().expect("a list").iter().collect();
    let numbers: Vec<_> = numbers.iter().map(|log| log["blockNumber"].clone()).collect();
    assert_eq!(numbers, ["0xc", "0xd", "0xe"]);
    let later = send(&mut far, &contract, &input(1, 2, 1)).await;
    for (method, params) in [
        ("eth_getBlockByHash", json!([later["blockHash"], false])),
        ("eth_getTransactionReceipt", json!([later["transactionHash"]])),
    ] {
        assert_eq!(near.ok(method, params).await, Value::Null, "{method}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn helpers_work_on_a_fork() {
    let cache = tempfile::tempdir().expect("a directory");
    let (far, mut near, contract) = pair(&["--quiet"], cache.path()).await;
    assert!(near.printed.is_empty());
    let zero = format!("0x{}", word(0));
    let storage = json!([contract, "0x2", "latest"]);
    assert_eq!(near.ok("evm_snapshot", json!([])).await, "0x0");
    near.ok("anvil_setStorageAt", json!([contract, "0x2", zero])).await;
    assert_eq!(near.ok("eth_getStorageAt", storage.clone()).await, zero);
    near.ok("anvil_setBalance", json!([OTHER, "0xde0b6b3a7640000"])).await;
    near.ok("anvil_impersonateAccount", json!([OTHER])).await;
    let call = json!({"from": OTHER, "to": contract, "data": input(7, 0, 0), "gas": "0x30d40"});
    let hash = near.ok("eth_sendTransaction", json!([call])).await;
    let receipt = near.ok("eth_getTransactionReceipt", json!([hash])).await;
    assert_eq!(receipt["logs"][0]["data"], format!("0x{}", word(8)));
    // The block after an amendment begins with a root that no header has; the next one does not.
    near.ok("evm_mine", json!([])).await;
    for slot in 0..12 {
        send(&mut near, &contract, &input(slot, 0, 12)).await;
    }
    let witness = near.ok("debug_executionWitness", json!(["latest"])).await;
    assert!(!witness["headers"].as_array().expect("headers").is_empty());
    let proof = near.ok("eth_getProof", json!([contract, [], "latest"])).await;
    assert_eq!(proof["storageHash"], NO_STORAGE);
    assert_eq!(near.ok("evm_revert", json!(["0x0"])).await, true);
    assert_eq!(near.ok("eth_getStorageAt", storage.clone()).await, format!("0x{}", word(3)));
    assert_eq!(near.ok("eth_blockNumber", json!([])).await, "0xd");
    send(&mut near, &contract, &input(2, 5, 0)).await;
    let url = format!("http://{}", far.address.trim_start_matches("http://"));
    let same = json!([{"forking": {"jsonRpcUrl": url, "blockNumber": 13}}]);
    near.ok("anvil_reset", same).await;
    assert_eq!(near.ok("eth_getStorageAt", storage).await, format!("0x{}", word(3)));
    let info = near.ok("anvil_nodeInfo", json!([])).await;
    assert_eq!(info["forkConfig"]["forkBlockNumber"], 13);
    // Another block, before and after, of another endpoint too.
    near.ok("anvil_reset", json!([{"forking": {"blockNumber": "0x5"}}])).await;
    assert_eq!(near.ok("eth_blockNumber", json!([])).await, "0x5");
    let storage = |slot: &str| json!([contract, slot, "latest"]);
    assert_eq!(near.ok("eth_getStorageAt", storage("0x3")).await, format!("0x{}", word(4)));
    assert_eq!(near.ok("eth_getStorageAt", storage("0x4")).await, zero);
    let receipt = send(&mut near, &contract, &input(3, 77, 4)).await;
    assert_eq!(receipt["blockNumber"], "0x6");
    assert_eq!(near.ok("evm_revert", json!(["0x0"])).await, false, "snapshots are gone");
    near.ok("evm_mine", json!([{"blocks": 3}])).await;
    assert!(near.ok("debug_executionWitness", json!(["latest"])).await.is_object());
    let head = json!([{"forking": {"jsonRpcUrl": far.address}}]);
    near.ok("hardhat_reset", head).await;
    assert_eq!(near.ok("eth_blockNumber", json!([])).await, "0xd");
    assert_eq!(near.ok("eth_getStorageAt", storage("0x3")).await, format!("0x{}", word(4)));
    send(&mut near, &contract, &input(3, 0, 12)).await;
    assert!(near.ok("eth_getBlockByNumber", json!(["0x6", false])).await.is_object());
    assert_eq!(near.ok("eth_getBalance", json!([WHO, "0xd"])).await, "0x21e19e0c9bab2400000");
    let none = json!([{"forking": {"blockNumber": 99}}]);
    near.refused("anvil_reset", none, Code::InvalidParams, "has no block 99").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_fetched_is_kept_on_disk() {
    let cache = tempfile::tempdir().expect("a directory");
    let (far, mut near, contract) = pair(&["--quiet"], cache.path()).await;
    let call = json!([{"to": contract, "data": input(3, 0, 2)}, "0xd"]);
    let answer = near.ok("eth_call", call.clone()).await;
    send(&mut near, &contract, &input(4, 0, 2)).await;
    drop(near);
    let url = format!("http://{}", far.address.trim_start_matches("http://"));
    let variables = [("XDG_CACHE_HOME", cache.path())];
    let mut again = Dev::start_with(&["--quiet", "--fork-url", &url], &variables).await;
    drop(far);
    // The endpoint is gone.
    assert_eq!(again.ok("eth_call", call.clone()).await, answer);
    let other = json!([{"to": contract, "data": input(5, 0, 2)}, "0xd"]);
    let gone = "eth_getProof: no connection";
    again.refused("eth_call", other.clone(), Code::Server, gone).await;
    send(&mut again, &contract, &input(4, 0, 2)).await;
    drop(again);
    // It starts without the endpoint, too, where the block is named.
    let arguments = ["--fork-url", &url, "--fork-block-number", "13"];
    let mut alone = Dev::start_with(&arguments, &variables).await;
    let words = alone.printed.join("\n");
    for part in ["Kept on disk:", "no connection", "Hardfork:       osaka, by the endpoint's"] {
        assert!(words.contains(part), "{part}: {words}");
    }
    assert_eq!(alone.ok("eth_call", call).await, answer);
    alone.refused("eth_call", other, Code::Server, gone).await;
    let earlier = json!([WHO, "0x5"]);
    alone.refused("eth_getBalance", earlier, Code::Server, "eth_getBalance: no connection").await;
    send(&mut alone, &contract, &input(4, 0, 2)).await;
    drop(alone);
    for (more, words) in [
        (&["--fork-block-number", "12"][..], "block 12 of it has not been kept on disk"),
        (&["--fork-block-number", "13", "--no-storage-caching"], "no connection"),
        (&[], "eth_chainId: no connection"),
    ] {
        let arguments = [&["--fork-url", &url][..], more].concat();
        let said = refused_with(&arguments, &variables);
        assert!(said.contains(words), "{words}: {said}");
    }
}

/// An endpoint that is there, and does not answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_waits_for_its_endpoint_as_long_as_calls_may_take() {
    let cache = tempfile::tempdir().expect("a directory");
    let given = ["--quiet", "--no-storage-caching", "--rpc.evmtimeout", "300ms"];
    let (far, mut near, contract) = pair(&given, cache.path()).await;
    far.signal(Signal::STOP);
    let call = json!({"to": contract, "data": input(3, 0, 2)});
    for (method, params) in [
        ("eth_call", json!([call, "latest"])),
        ("eth_estimateGas", json!([call, "latest"])),
        ("debug_traceCall", json!([call, "latest", {}])),
        ("eth_getStorageAt", json!([contract, "0x5", "latest"])),
        ("eth_getProof", json!([contract, [], "latest"])),
    ] {
        let words = "eth_getProof: no answer in the time of the call (--rpc.evmtimeout)";
        near.refused(method, params, Code::Server, words).await;
    }
    far.signal(Signal::CONT);
    // A transaction waits as long as it takes.
    send(&mut near, &contract, &input(3, 0, 2)).await;
}

/// The same calls and transactions on the chain that has the whole state, by chance.
#[tokio::test(flavor = "multi_thread")]
async fn a_fork_does_what_the_whole_chain_does() {
    let cache = tempfile::tempdir().expect("a directory");
    let random = &mut Random::seeded();
    let (mut far, mut near, contract) =
        pair(&["--quiet", "--no-storage-caching"], cache.path()).await;
    assert!(!cache.path().join("deponent").exists(), "nothing is kept");
    // The far account has paid already.
    let mut time = near.ok("eth_getBlockByNumber", json!(["latest", false])).await["timestamp"]
        .as_str()
        .and_then(|time| u64::from_str_radix(&time[2..], 16).ok())
        .expect("a time");
    for _ in 0..20 {
        time += 1 + random.below(20) as u64;
        let value = if random.one_in(2) { 0 } else { random.number() % 99 };
        let data = input(random.below(16) as u64, value, random.below(14) as u64);
        let mut receipts = Vec::new();
        for dev in [&mut near, &mut far] {
            dev.ok("evm_setNextBlockTimestamp", json!([time])).await;
            receipts.push(send(dev, &contract, &data).await);
        }
        for name in ["gasUsed", "logs", "status", "effectiveGasPrice", "type"] {
            let [near, far] = [&receipts[0], &receipts[1]].map(|receipt| {
                let mut value = receipt[name].clone();
                for log in value.as_array_mut().into_iter().flatten() {
                    // The hash of the block: the accounts differ, of which the far ones have paid.
                    log["blockHash"] = Value::Null;
                }
                value
            });
            assert_eq!(near, far, "{name}");
        }
        let slots: Vec<_> = (0..16).map(|slot| format!("0x{slot:x}")).collect();
        let params = json!([contract, slots, "latest"]);
        let proofs = [&mut near, &mut far].map(|dev| dev.ok("eth_getProof", params.clone()));
        let [near, far] = proofs;
        let (near, far) = (near.await, far.await);
        assert_eq!(near["storageHash"], far["storageHash"]);
        assert_eq!(near["storageProof"], far["storageProof"]);
    }
}

/// Deletions on the state of geth, until nothing is left of a storage.
#[tokio::test(flavor = "multi_thread")]
async fn geth_is_an_endpoint() {
    let Some(nodes) = Nodes::start(world(40)).await else { return };
    let mut pair = nodes.pair().await;
    for transactions in &blocks(&nodes.world, &[40]) {
        pair.agree(transactions).await;
    }
    let socket = nodes.directory.path().join("geth.ipc");
    let url = testing::geth::path_text(&socket);
    // Before the slots of the contract are cleared.
    let arguments = ["--no-storage-caching", "--fork-url", url, "--fork-block-number", "1"];
    let mut near = Dev::start(&arguments).await;
    let words = near.printed.join("\n");
    assert!(words.contains("by the endpoint's eth_config"), "{words}");
    let [_, geth] = nodes.sessions().await;
    let block = "0x1";
    let proven: Vec<_> = (0..LEDGER_SLOTS).step_by(7).map(|slot| format!("0x{slot:x}")).collect();
    for (method, params) in [
        ("eth_getBlockByNumber", json!([block, true])),
        ("eth_getProof", json!([LEDGER, proven, block])),
        ("eth_getCode", json!([LEDGER, block])),
        ("eth_getBalance", json!([OTHER, block])),
    ] {
        let expected: Value = unwrap(geth.call(method, params.clone()).await).expect(method);
        let mut answer = near.ok(method, params).await;
        if method == "eth_getProof" {
            // Other accounts were given their money.
            answer["accountProof"] = expected["accountProof"].clone();
        }
        assert_eq!(answer, expected, "{method}");
    }
    for slot in 0..LEDGER_SLOTS {
        let params = json!([LEDGER, format!("0x{slot:x}"), block]);
        let method = "eth_getStorageAt";
        let expected: Value = unwrap(geth.call(method, params.clone()).await).expect(method);
        assert_eq!(near.ok(method, params).await, expected, "{slot}");
        send(&mut near, &LEDGER.to_string(), &input(slot, 0, 0)).await;
    }
    let left = near.ok("eth_getProof", json!([LEDGER, [], "latest"])).await;
    assert_eq!(left["storageHash"], NO_STORAGE);
}

/// An endpoint without proofs.
struct NoProofs;

impl Handler for NoProofs {
    fn call(&self, method: &str, _: Option<&RawValue>) -> Result<Json, Error> {
        let header = alloy_consensus::Header { number: 7, gas_limit: 30_000_000, ..header() };
        match method {
            "eth_chainId" => Json::of(&"0x7"),
            "eth_blockNumber" => Json::of(&"0x7"),
            "eth_getBlockByNumber" => {
                let hash = header.hash_slow();
                Json::of(&alloy_rpc_types_eth::Header {
                    hash,
                    inner: header,
                    total_difficulty: None,
                    size: None,
                })
            }
            _ => Err(Error::method_not_found(method)),
        }
    }
}

fn header() -> alloy_consensus::Header {
    // By default it is that of an empty state, of which nobody has to be asked.
    let state_root = alloy_primitives::B256::repeat_byte(1);
    let default = alloy_consensus::Header::default();
    alloy_consensus::Header { base_fee_per_gas: Some(7), state_root, ..default }
}

/// The words with which `deponent dev` does not start.
fn refused(arguments: &[&str]) -> String {
    refused_with(arguments, &[])
}

/// The same, with these variables of the environment.
fn refused_with(arguments: &[&str], variables: &[(&str, &Path)]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_deponent"));
    command.args(["dev", "--port", "0"]).args(arguments).envs(variables.iter().copied());
    let output = command.output().expect("it runs");
    assert!(!output.status.success(), "{arguments:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// It has none of the contracts that blocks of Prague call.
#[tokio::test(flavor = "multi_thread")]
async fn anvil_is_an_endpoint() {
    let Some(anvil) = Anvil::start() else { return };
    let url = format!("{}@0", anvil.url);
    let mut dev = Dev::start(&["--quiet", "--no-storage-caching", "--fork-url", &url]).await;
    for next in ["0x1", "0x2"] {
        let hash = dev.ok("eth_sendTransaction", json!([{"to": OTHER, "value": "0x5"}])).await;
        let receipt = dev.ok("eth_getTransactionReceipt", json!([hash])).await;
        assert_eq!((&receipt["status"], &receipt["blockNumber"]), (&json!("0x1"), &json!(next)));
        let witness = dev.ok("debug_executionWitness", json!(["latest"])).await;
        assert!(!witness["state"].as_array().expect("nodes").is_empty());
        // So it is where it begins anew with another block.
        let mut client = Client::connect(&anvil.url, None).await.expect("a connection");
        unwrap(client.call("evm_mine", json!([])).await).expect("mined");
        let forking = json!({"jsonRpcUrl": anvil.url, "blockNumber": 1});
        dev.ok("anvil_reset", json!([{"forking": forking}])).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_does_not_do_is_named() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let options = ServerOptions::new(None, Limits::public());
    tokio::spawn(serve(listener, options, Arc::new(NoProofs), std::future::pending()));
    let check = |arguments: Vec<String>, words: &str| {
        let words = words.to_owned();
        tokio::task::spawn_blocking(move || {
            let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
            let said = refused(&arguments);
            assert!(said.contains(&words), "{words}: {said}");
        })
    };
    let fork = |more: &[&str]| {
        let first = ["--no-storage-caching".to_owned(), "--fork-url".to_owned(), address.clone()];
        first.into_iter().chain(more.iter().map(|word| (*word).to_owned())).collect::<Vec<_>>()
    };
    check(fork(&[]), "has no eth_getProof").await.expect("as said");
    check(fork(&["--hardfork", "cancun", "--fork-block-number", "7"]), "has no eth_getProof")
        .await
        .expect("as said");
    check(fork(&["--fork-block-number", "8"]), "gave block 7 for 8").await.expect("as said");
    let closed = vec!["--fork-url".to_owned(), "http://127.0.0.1:1/secret".to_owned()];
    check(closed, "http://127.0.0.1:1: eth_chainId: no connection").await.expect("as said");
    check(fork(&["--datadir", "x"]), "--datadir").await.expect("as said");
    let number = vec!["--fork-block-number".to_owned(), "8".to_owned()];
    check(number, "--fork-url").await.expect("as said");
}
