//! `deponent bench extract` gives back what a node was fed: all forks and types of transactions
//! from ours, over a limited endpoint too, and Osaka from geth where it is.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output};

use crate::support::bench_program::bench_program;
use crate::support::{ALL_FORKS, Fork, OSAKA, TestNode, new_payload, transactions};
use crate::verify::{lines, verify};
use alloy_consensus::transaction::SignerRecoverable;
use alloy_consensus::{SignableTransaction, TxLegacy};
use alloy_eips::{eip6110, eip7002, eip7251};
use alloy_primitives::{Address, TxKind, U256, keccak256};
use execution::Transaction;
use rpc::{Client, JwtSecret};
use serde_json::{Value, json};
use testing::geth::Geth;

const SECRET: &str = "7365637265747365637265747365637265747365637265747365637265747365";

/// Logs the call's data as a deposit event.
const DEPOSIT_CODE: &str =
    "0x365f5f377f649bbc62d0e31342afea4e5cd82d4049e7e1ee912fc0889aa790803be39038c5365fa100";

/// More requests of each kind than a block takes: the rest comes in the next one.
const WITHDRAWALS: u8 = 18;
const CONSOLIDATIONS: u8 = 3;

fn bytes(len: usize, seed: u8) -> Vec<u8> {
    (0..len).map(|at| keccak256([seed, at as u8])[0]).collect()
}

/// Transactions that make execution requests of all kinds; the senders follow from what they say.
fn asking() -> Vec<Transaction> {
    let sign = |to: Address, input: Vec<u8>| -> Transaction {
        let legacy = TxLegacy {
            chain_id: Some(1337),
            gas_price: 1_000_000_000,
            gas_limit: 300_000,
            to: TxKind::Call(to),
            value: U256::from(10_000),
            input: input.into(),
            ..TxLegacy::default()
        };
        legacy.into_signed(crate::support::signature()).into()
    };
    let withdrawals = (0..WITHDRAWALS)
        .map(|seed| sign(eip7002::WITHDRAWAL_REQUEST_PREDEPLOY_ADDRESS, bytes(56, seed)));
    let consolidations = (0..CONSOLIDATIONS)
        .map(|seed| sign(eip7251::CONSOLIDATION_REQUEST_PREDEPLOY_ADDRESS, bytes(96, 99 + seed)));
    // As the ABI lays five byte strings out.
    let mut deposit = Vec::new();
    for offset in [160u64, 256, 320, 384, 512] {
        deposit.extend(U256::from(offset).to_be_bytes::<32>());
    }
    for (len, padded) in [(48usize, 64), (32, 32), (8, 32), (96, 96), (8, 32)] {
        deposit.extend(U256::from(len).to_be_bytes::<32>());
        let mut field = bytes(len, len as u8);
        field.resize(padded, 0);
        deposit.extend(field);
    }
    let deposit = sign(eip6110::MAINNET_DEPOSIT_CONTRACT_ADDRESS, deposit);
    withdrawals.chain(consolidations).chain([deposit]).collect()
}

fn genesis(osaka_only: bool) -> Value {
    let mut genesis = match osaka_only {
        true => crate::support::genesis_of_osaka(),
        false => crate::support::genesis_of_all_forks(),
    };
    let deposits = eip6110::MAINNET_DEPOSIT_CONTRACT_ADDRESS;
    genesis["alloc"][deposits.to_string()] = json!({"balance": "0x0", "code": DEPOSIT_CODE});
    genesis["config"]["depositContractAddress"] = json!(deposits);
    for transaction in asking() {
        let sender = transaction.recover_signer().expect("a point of the curve");
        genesis["alloc"][sender.to_string()] = json!({"balance": "0xde0b6b3a7640000"});
    }
    genesis
}

/// A node with blocks of these forks, and the calls that brought them.
async fn chain(osaka_only: bool) -> (TestNode, Vec<Value>) {
    let mut node = TestNode::start_with_secret(genesis(osaka_only), SECRET).await;
    let (all, asking) = (transactions(), asking());
    let blocks: Vec<(Fork, u64, Vec<Transaction>)> = if osaka_only {
        [all, asking, vec![], vec![]].into_iter().map(|txs| (OSAKA, 1, txs)).collect()
    } else {
        let [paris, shanghai, cancun, prague, osaka, amsterdam] = ALL_FORKS;
        vec![
            (paris, 1, all[..1].to_vec()),
            (shanghai, 11, all[1..2].to_vec()),
            (cancun, 21, all[2..4].to_vec()),
            (prague, 31, all[4..].to_vec()),
            (osaka, 41, asking),
            (osaka, 41, vec![]),
            (amsterdam, 51, vec![]),
        ]
    };
    let mut fed = Vec::new();
    for (index, (fork, time, transactions)) in (0..).zip(&blocks) {
        let envelope = node.extend(*fork, time + index % 8, transactions).await;
        let method = format!("engine_newPayloadV{}", fork.new);
        fed.push(json!({"method": method, "params": new_payload(fork.new, &envelope)}));
    }
    (node, fed)
}

fn extract(url: &str, numbers: [usize; 2], out: &Path, flags: &[&str]) -> Command {
    let mut command = bench_program();
    command.args(["extract", "--rpc", url]).args(flags);
    command.args(["--from", &numbers[0].to_string(), "--to", &numbers[1].to_string()]);
    command.arg("--out").arg(out);
    command
}

fn words(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

/// The header of a file, and its calls.
#[track_caller]
fn read(path: &Path) -> (Value, Vec<Value>) {
    let text = std::fs::read_to_string(path).expect("a file");
    let mut lines = text.lines().map(|line| serde_json::from_str(line).expect("JSON"));
    (lines.next().expect("a head"), lines.collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_our_node_was_fed_comes_back() {
    let (node, fed) = chain(false).await;
    let folder = tempfile::tempdir().expect("a directory");
    let secret = node.dir.path().join("secret.hex").display().to_string();
    let engine = format!("http://{}", node.node.engine_addr);
    let public = format!("http://{}", node.node.http_addr);
    let requests = |call: &Value| call["params"][3].as_array().map_or(0, Vec::len);
    assert_eq!(fed.iter().map(requests).collect::<Vec<_>>(), [0, 0, 0, 0, 3, 2, 0]);

    let out = folder.path().join("public.jsonl");
    let output = extract(&public, [1, 6], &out, &[]).output().expect("it runs");
    assert!(output.status.success(), "{}", words(&output));
    let (head, calls) = read(&out);
    assert_eq!(calls, fed[..6]);
    assert_eq!(
        (&head["from"], &head["to"], &head["chain_id"]),
        (&json!(1), &json!(6), &json!(1337))
    );
    assert_eq!(head["parent"], fed[0]["params"][0]["parentHash"]);
    assert!(!folder.path().join("public.jsonl.part").exists());
    let again = extract(&public, [1, 6], &out, &[]).output().expect("it runs");
    assert!(!again.status.success() && words(&again).contains("is there"), "{}", words(&again));

    // A block access list comes from engine ports alone.
    let out = folder.path().join("list.jsonl");
    let output = extract(&public, [7, 7], &out, &[]).output().expect("it runs");
    assert!(words(&output).contains("an engine port is needed"), "{}", words(&output));
    let flags = ["--jwt-secret", &secret];
    let output = extract(&engine, [7, 7], &out, &flags).output().expect("it runs");
    assert!(output.status.success(), "{}", words(&output));
    assert_eq!(read(&out).1, fed[6..]);
    // And what an engine port does not tell is said.
    let out = folder.path().join("requests.jsonl");
    let output = extract(&engine, [3, 6], &out, &flags).output().expect("it runs");
    let said = words(&output);
    assert!(said.contains("block 5") && said.contains("execution requests"), "{said}");
    // An earlier file is continued, even if its last line was cut short.
    let part = folder.path().join("requests.jsonl.part");
    let text = std::fs::read_to_string(&part).expect("a file");
    assert_eq!(text.lines().count(), 3);
    std::fs::write(&part, &text[..text.len() - 9]).expect("written");
    let output = extract(&public, [3, 7], &out, &[]).output().expect("it runs");
    assert!(words(&output).contains("of other blocks"), "{}", words(&output));
    let output = extract(&public, [3, 6], &out, &[]).output().expect("it runs");
    assert!(words(&output).contains("goes on with block 4"), "{}", words(&output));
    assert_eq!(read(&out).1, fed[2..6]);
    node.node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_geth_was_fed_comes_back() {
    let folder = tempfile::tempdir().expect("a directory");
    let path = |name: &str| folder.path().join(name);
    let Some(geth) = Geth::find(path("genesis.json")) else { return };
    let (node, fed) = chain(true).await;
    std::fs::write(path("genesis.json"), genesis(true).to_string()).expect("written");
    std::fs::write(path("secret.hex"), SECRET).expect("written");
    let ipc = path("geth.ipc").display().to_string();
    let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
    let port = port.expect("a free port").port().to_string();
    let public = ["--ipcpath", &ipc, "--http", "--http.api", "eth,debug", "--http.port", &port];
    let geth = geth.start(&path("data"), &path("secret.hex"), &public);
    let secret = JwtSecret::load(&path("secret.hex")).expect("a secret");
    let mut client =
        Client::connect(&geth.engine_address, Some(secret)).await.expect("geth answers");
    for call in &fed {
        let method = call["method"].as_str().expect("a name");
        let status: Value = client.call(method, call["params"].clone()).await.expect("an answer");
        assert_eq!(status["status"], "VALID", "{status}");
        let state = crate::support::state(&call["params"][0]["blockHash"]);
        let chosen = client.call("engine_forkchoiceUpdatedV3", json!([state, null])).await;
        let chosen: Value = chosen.expect("an answer");
        assert_eq!(chosen["payloadStatus"]["status"], "VALID", "{chosen}");
    }
    let ours = node.dir.path().join("node.ipc").display().to_string();
    // From both, packed: the same bytes.
    let files = [("geth.jsonl.zst", &ipc), ("ours.jsonl.zst", &ours)].map(|(name, url)| {
        let output = extract(url, [1, 4], &path(name), &["--max-rate", "500"]).output().unwrap();
        assert!(output.status.success(), "{}", words(&output));
        std::fs::read(path(name)).expect("a file")
    });
    assert_eq!(files[0], files[1]);
    let out = path("plain.jsonl");
    let output = extract(&ipc, [2, 4], &out, &[]).output().expect("it runs");
    assert!(output.status.success(), "{}", words(&output));
    assert_eq!(read(&out).1, fed[1..]);
    // geth has its blocks as RLP.
    let (rules, url) = (path("genesis.json"), format!("http://127.0.0.1:{port}"));
    let output = verify(&["--chain", rules.to_str().expect("text"), "--rpc", &url, "1..4"]);
    let printed = lines(&output);
    assert_eq!((output.status.code(), printed.len()), (Some(0), 4), "{printed:?}");
    assert!(printed.iter().all(|line| line.starts_with("VALID: block ")), "{printed:?}");
    node.node.stop().await;
}
