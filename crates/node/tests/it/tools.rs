//! Other programs read from a node, over each transport that they have, what its engine says.
//!
//! viem, ethers and web3.py run where `DEPONENT_TOOLS` names their folder (docs/transports.md,
//! "With other libraries"), geth's console where there is a geth.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::*;
use alloy_consensus::transaction::SignerRecoverable;
use alloy_consensus::{SignableTransaction, Transaction as _, TxEip1559};
use alloy_eips::eip2718::Typed2718;
use alloy_primitives::{Address, B256, KECCAK256_EMPTY, TxKind, U256, hex};
use engine::BlockRecord;
use serde_json::{Value, json};
use testing::geth;

/// It stores 1 in slot 0, logs, and returns the slot that the call's data name.
const CODE: &str = "0x60015f55602a5f52600760205fa15f35545f5260205ff3";

/// A slot that the contract has from the start, and its value.
const SLOT: u64 = 5;
const VALUE: u64 = 0x1234;

#[tokio::test(flavor = "multi_thread")]
async fn viem_reads_over_http_websocket_and_ipc() {
    let Some(tools) = tools() else { return };
    let chain = Chain::start().await;
    let found = chain.run(Command::new("node").arg(script("viem.mjs")), &tools).await;
    chain.check(&found, &[("http", true), ("ipc", false), ("ws", false)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn ethers_reads_over_http_websocket_and_ipc() {
    let Some(tools) = tools() else { return };
    let chain = Chain::start().await;
    let found = chain.run(Command::new("node").arg(script("ethers.mjs")), &tools).await;
    chain.check(&found, &[("http", true), ("ipc", false), ("ws", false)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn web3_py_reads_over_http_websocket_and_ipc() {
    let Some(tools) = tools() else { return };
    let chain = Chain::start().await;
    let python = tools.join("venv/bin/python");
    let found = chain.run(Command::new(python).arg(script("web3_py.py")), &tools).await;
    let transports = ["http", "http async", "ipc", "ipc async", "ws"];
    chain.check(&found, &transports.map(|transport| (transport, true)));
}

#[tokio::test(flavor = "multi_thread")]
async fn geth_attaches_over_http_websocket_and_ipc() {
    let Some(geth) = geth::binary() else {
        println!("not run: no geth. `go install github.com/ethereum/go-ethereum/cmd/geth@v1.17.8`");
        return;
    };
    let chain = Chain::start().await;
    let read = |name| std::fs::read_to_string(script(name)).expect("a script");
    let program =
        format!("{}const given = {};\n{}", read("form.js"), chain.given, read("attach.js"));
    let mut found = json!({});
    for transport in ["http", "ipc", "ws"] {
        let mut attach = Command::new(&geth);
        attach.arg("attach").arg("--datadir").arg(chain.node.dir.path().join("geth"));
        attach.arg("--exec").arg(&program).arg(chain.given[transport].as_str().expect("a place"));
        found[transport] = output(attach).await;
    }
    chain.check(&found, &[("http", false), ("ipc", false), ("ws", false)]);
}

/// The folder with the libraries: `node_modules` and `venv`.
pub(crate) fn tools() -> Option<PathBuf> {
    let folder = std::env::var_os("DEPONENT_TOOLS").map(PathBuf::from);
    if folder.is_none() {
        assert!(std::env::var_os("CI").is_none(), "CI needs DEPONENT_TOOLS");
        println!(
            "not run: set DEPONENT_TOOLS to a folder with viem, ethers and web3.py; \
             docs/transports.md says how to fill it"
        );
    }
    folder
}

pub(crate) fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tools").join(name)
}

/// A node with some blocks, and what there is to be read from it.
struct Chain {
    node: TestNode,
    /// Where the node is, and what a program is to ask for.
    given: Value,
    /// The expected answers, except for those to its batch.
    expected: Value,
    batch: Value,
}

impl Chain {
    async fn start() -> Self {
        let creation = TxEip1559 {
            chain_id: 1337,
            max_fee_per_gas: 1_000_000_000,
            gas_limit: 200_000,
            to: TxKind::Create,
            value: U256::from(3),
            input: hex!("600160005360016000f3").into(),
            ..TxEip1559::default()
        };
        let creation = execution::Transaction::from(creation.into_signed(signature()));
        let creator = creation.recover_signer().expect("a point of the curve");
        let mut genesis = genesis_of_osaka();
        genesis["alloc"][creator.to_string()] = json!({"balance": "0xde0b6b3a7640000"});
        let contract = &mut genesis["alloc"][CONTRACT.to_string()];
        contract["code"] = json!(CODE);
        contract["storage"] = json!({word(SLOT).to_string(): word(VALUE)});

        let mut node = TestNode::start(genesis).await;
        let transactions = [transactions(), vec![creation]].concat();
        let blocks = [&[][..], &transactions[..2], &[], &transactions[2..]];
        for (time, transactions) in (1..).zip(blocks) {
            node.extend(OSAKA, time, transactions).await;
        }
        let engine = node.node.engine();
        let record = engine.block(engine.heads().head).expect("readable").expect("a valid block");
        let account = record.senders[0];
        let given = json!({
            "http": format!("http://{}", node.node.http_addr),
            "ws": format!("ws://{}/", node.node.http_addr),
            "ipc": node.node.ipc_path,
            "hash": record.hash(),
            "account": account,
            "contract": CONTRACT,
            "slot": format!("{SLOT:#x}"),
            "data": word(SLOT),
        });
        let expected = expected(&node, &record, account);
        let batch = json!([expected["balance"], expected["nonce"], expected["code"]]);
        Self { node, given, expected, batch }
    }

    /// Runs a program of the tools; returns its findings.
    async fn run(&self, program: &mut Command, tools: &Path) -> Value {
        let mut command = Command::new(program.get_program());
        command.args(program.get_args()).arg(self.given.to_string()).env("DEPONENT_TOOLS", tools);
        output(command).await
    }

    /// It has been found over each of these transports, by a batch too where it is said so.
    fn check(&self, found: &Value, transports: &[(&str, bool)]) {
        let mut expected = json!({});
        for (transport, batches) in transports {
            expected[transport] = self.expected.clone();
            if *batches {
                expected[transport]["batch"] = self.batch.clone();
            }
        }
        let expected = parse(&expected.to_string());
        let names = |value: &Value| -> Vec<String> {
            value.as_object().expect("an object").keys().cloned().collect()
        };
        assert_eq!(names(found), names(&expected));
        for transport in names(found) {
            let (found, expected) = (&found[&transport], &expected[&transport]);
            for name in names(found) {
                assert_eq!(found[&name], expected[&name], "{transport}: {name}");
            }
            assert_eq!(names(found), names(expected), "{transport}");
        }
    }
}

/// The JSON that a command prints in a line. Libraries may print before that: ethers tells of it
/// when it asks for a filter while it ends it.
pub(crate) async fn output(mut command: Command) -> Value {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = tokio::task::spawn_blocking(move || command.output()).await.expect("it returns");
    let output = output.unwrap_or_else(|error| panic!("{name} does not run: {error}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (printed, complaints) = (text(&output.stdout), text(&output.stderr));
    let line = printed.lines().find(|line| line.starts_with("{\""));
    match line {
        Some(line) if output.status.success() => parse(line),
        _ => panic!("{name}: {}\n{printed}\n{complaints}", output.status),
    }
}

/// Reads JSON in lower case: some libraries show addresses with EIP-55's capitals.
fn parse(json: &str) -> Value {
    serde_json::from_str(&json.to_lowercase()).expect("JSON")
}

fn word(number: u64) -> B256 {
    U256::from(number).into()
}

/// The expected findings about the block, the head, and the state after it.
fn expected(node: &TestNode, record: &BlockRecord, account: Address) -> Value {
    let engine = node.node.engine();
    let state = engine.state(record.hash()).expect("the state is kept");
    let sender = state.account(account).expect("readable").expect("it has sent something");
    let proof = state.proof(CONTRACT, &[U256::from(SLOT)]).expect("readable");
    let contract = proof.account.expect("a contract");
    assert_ne!(contract.code_hash, KECCAK256_EMPTY);
    let witness = engine.witness(record.hash()).expect("readable").expect("it has a parent");
    let mut written = Vec::new();
    witness::json::write(&witness, &mut written);
    let witness: Value = serde_json::from_slice(&written).expect("JSON");
    let count = record.block.body.transactions.len();
    let version = concat!("Deponent/v", env!("CARGO_PKG_VERSION"));
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    let commit = env!("DEPONENT_COMMIT");
    json!({
        "chainId": 1337,
        "blockNumber": 4,
        "latest": block(record, false),
        "latestFull": block(record, true),
        "byNumber": block(record, false),
        "byHash": block(record, false),
        "byHashFull": block(record, true),
        "transactionCount": count,
        "transaction": transaction(record, 1),
        "transactionByNumber": transaction(record, 3),
        "receipts": (0..count).map(|index| receipt(record, index)).collect::<Vec<_>>(),
        "balance": sender.balance.to_string(),
        "nonce": sender.nonce,
        "code": CODE,
        "storage": word(VALUE),
        "call": word(VALUE),
        "proof": {
            "accountProof": proof.proof,
            "balance": contract.balance.to_string(),
            "nonce": contract.nonce,
            "codeHash": contract.code_hash,
            "storageHash": contract.storage_root,
            "storageProof": [{"value": VALUE, "proof": proof.storage[0].proof}],
        },
        "syncing": false,
        "client": format!("{version}-{commit}/{os}-{arch}"),
        "witness": witness,
    })
}

fn block(record: &BlockRecord, full: bool) -> Value {
    let header = &record.block.header;
    let transactions = record.block.body.transactions.iter().enumerate();
    let transactions =
        transactions.map(
            |(index, signed)| if full { transaction(record, index) } else { json!(signed.hash()) },
        );
    json!({
        "number": header.number,
        "hash": record.hash(),
        "parentHash": header.parent_hash,
        "stateRoot": header.state_root,
        "miner": header.beneficiary,
        "timestamp": header.timestamp,
        "gasUsed": header.gas_used,
        "baseFeePerGas": header.base_fee_per_gas,
        "transactions": transactions.collect::<Vec<_>>(),
    })
}

fn transaction(record: &BlockRecord, index: usize) -> Value {
    let signed = &record.block.body.transactions[index];
    json!({
        "hash": signed.hash(),
        "type": signed.ty(),
        "index": index,
        "from": record.senders[index],
        "to": signed.to(),
        "nonce": signed.nonce(),
        "value": signed.value().to_string(),
        "gas": signed.gas_limit(),
        "input": signed.input(),
    })
}

/// No priority fee is paid, and every call of the contract logs once.
fn receipt(record: &BlockRecord, index: usize) -> Value {
    let signed = &record.block.body.transactions[index];
    let receipts = &record.receipts;
    let before = index.checked_sub(1).map_or(0, |index| receipts[index].cumulative_gas_used());
    let from = record.senders[index];
    let log = json!({
        "address": CONTRACT, "topics": [word(7)], "data": word(0x2a), "index": index,
    });
    let blobs = signed.blob_versioned_hashes().is_some();
    json!({
        "transactionHash": signed.hash(),
        "type": signed.ty(),
        "index": index,
        "from": from,
        "to": signed.to(),
        "contractAddress": signed.is_create().then(|| from.create(0)),
        "status": 1,
        "gasUsed": receipts[index].cumulative_gas_used() - before,
        "cumulativeGasUsed": receipts[index].cumulative_gas_used(),
        "effectiveGasPrice": record.block.header.base_fee_per_gas,
        "blobGasUsed": if blobs { 0x20000 } else { 0 },
        "blobGasPrice": u8::from(blobs),
        "logs": if signed.is_create() { json!([]) } else { json!([log]) },
    })
}
