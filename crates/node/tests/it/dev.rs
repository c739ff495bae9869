//! `deponent dev`, as tests of other people use it.

use std::io::{BufRead as _, BufReader, Lines};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rpc::{Client, Code, Error};
use serde_json::{Value, json};

use crate::commands::Anvil;
use crate::support::{checked, unwrap};
use crate::tools::{output, script, tools};

/// The first account.
pub(crate) const WHO: &str = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";
pub(crate) const OTHER: &str = "0x2222222222222222222222222222222222222222";

/// A program that runs until this is dropped.
pub(crate) struct Dev {
    program: Child,
    pub(crate) client: Client,
    pub(crate) address: String,
    /// The lines before its address.
    pub(crate) printed: Vec<String>,
    /// Those after it.
    out: Lines<BufReader<ChildStdout>>,
}

impl Dev {
    pub(crate) async fn start(given: &[&str]) -> Self {
        Self::start_with(given, &[]).await
    }

    /// With these variables of the environment.
    pub(crate) async fn start_with(given: &[&str], variables: &[(&str, &Path)]) -> Self {
        Self::start_on("0", given, variables).await
    }

    /// On this port.
    pub(crate) async fn start_on(port: &str, given: &[&str], variables: &[(&str, &Path)]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_deponent"));
        command.args(["dev", "--port", port]).args(given).stdout(Stdio::piped());
        command.envs(variables.iter().copied());
        let mut program = command.spawn().expect("it runs");
        let mut out = BufReader::new(program.stdout.take().expect("a pipe")).lines();
        let mut printed = Vec::new();
        let mut address = None;
        for line in &mut out {
            let line = line.expect("text");
            if let Some(at) = line.strip_prefix("Listening on ") {
                address = Some(at.to_owned());
                break;
            }
            printed.push(line);
        }
        let address = address.unwrap_or_else(|| panic!("it does not listen: {printed:?}"));
        let client = Client::connect(&address, None).await.expect("a connection");
        Self { program, client, address, printed, out }
    }

    /// The lines that it prints after its address, up to one that ends so.
    fn lines_to(&mut self, end: &str) -> String {
        let mut text = String::new();
        for line in &mut self.out {
            let line = line.expect("text");
            text += &format!("{line}\n");
            if line.ends_with(end) {
                return text;
            }
        }
        panic!("no line ends in {end}: {text}");
    }

    pub(crate) async fn ok(&mut self, method: &str, params: Value) -> Value {
        let answer = checked(method, self.client.call(method, params).await);
        answer.unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    pub(crate) async fn refused(&mut self, method: &str, params: Value, code: Code, words: &str) {
        let error = checked(method, self.client.call(method, params).await).expect_err(method);
        assert_eq!(error.code, Error::new(code, "").code, "{method}: {error}");
        let said = format!("{error}");
        assert!(said.contains(words), "{method}: {said}, not {words}");
    }

    /// Sends the program a signal.
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.program);
        rustix::process::kill_process(pid, signal).expect("it is told");
    }

    async fn height(&mut self) -> Value {
        self.ok("eth_blockNumber", json!([])).await
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        self.signal(rustix::process::Signal::TERM);
        assert!(self.program.wait().expect("it ends").success() || std::thread::panicking());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_of_the_node_sends_and_each_block_has_its_witness() {
    let mut dev = Dev::start(&[]).await;
    let words = dev.printed.join("\n");
    for part in
        ["(9) 0xa0Ee7A142d267C1f36714E4a8F75612F20a79720 (10000", "0xac0974bec39a17", "junk"]
    {
        assert!(words.contains(part), "{part}: {words}");
    }
    let accounts = dev.ok("eth_accounts", json!([])).await;
    assert_eq!(accounts.as_array().expect("a list").len(), 10);
    let transfer = json!({"from": WHO, "to": OTHER, "value": "0x5"});
    let hash = dev.ok("eth_sendTransaction", json!([transfer])).await;
    let receipt = dev.ok("eth_getTransactionReceipt", json!([hash])).await;
    assert_eq!((&receipt["status"], &receipt["blockNumber"]), (&json!("0x1"), &json!("0x1")));
    let witness = dev.ok("debug_executionWitness", json!(["latest"])).await;
    assert!(!witness["state"].as_array().expect("nodes").is_empty());
    // Init code that reverts with a reason of Solidity's kind is an error before it is sent.
    let creation = json!({"from": WHO, "data": "0x60006000fd"});
    dev.refused("eth_sendTransaction", json!([creation]), Code::Reverted, "execution reverted")
        .await;
    dev.refused(
        "eth_sendTransaction",
        json!([{"from": OTHER, "to": WHO, "gas": "0x5208"}]),
        Code::InvalidParams,
        "No Signer available",
    )
    .await;
    // It is an account that is not known, whatever else is wrong with the transaction.
    let too_much = json!([{"from": OTHER, "to": WHO, "value": "0x5"}]);
    dev.refused("eth_sendTransaction", too_much, Code::InvalidParams, "No Signer").await;
    let cheap = json!([{"from": WHO, "to": OTHER, "gas": "0x5208", "gasPrice": "0x1"}]);
    dev.refused("eth_sendTransaction", cheap.clone(), Code::Server, "less than block base").await;
    let bytes = dev.ok("eth_signTransaction", cheap).await;
    dev.refused("eth_sendRawTransaction", json!([bytes]), Code::Server, "less than block").await;
    assert_eq!(dev.height().await, "0x1");
    // The first account sends where none is named, as on anvil's chain.
    let hash = dev.ok("eth_sendTransaction", json!([{"to": OTHER, "value": "0x5"}])).await;
    assert_eq!(dev.ok("eth_getTransactionByHash", json!([hash])).await["from"], WHO);
    dev.ok("anvil_impersonateAccount", json!([OTHER])).await;
    for method in ["eth_accounts", "eth_requestAccounts"] {
        let accounts = dev.ok(method, json!([])).await;
        let accounts = accounts.as_array().expect("a list");
        assert_eq!((accounts.len(), &accounts[10]), (11, &json!(OTHER)), "{method}");
    }
}

/// The newest block of a chain has the members of its fork.
async fn check_fork(dev: &mut Dev, fork: &str) {
    const FORKS: [(&str, &str); 6] = [
        ("paris", "mixHash"),
        ("shanghai", "withdrawalsRoot"),
        ("cancun", "blobGasUsed"),
        ("prague", "requestsHash"),
        ("osaka", "requestsHash"),
        ("amsterdam", "blockAccessListHash"),
    ];
    let block = dev.ok("eth_getBlockByNumber", json!(["latest", false])).await;
    let at = FORKS.iter().position(|(name, _)| *name == fork).expect("a fork");
    for (index, (_, member)) in FORKS.iter().enumerate() {
        let has = index <= at || FORKS[..=at].iter().any(|(_, earlier)| earlier == member);
        assert_eq!(block.get(member).is_some(), has, "{fork}: {member}");
    }
    // The contract of EIP-7951 takes gas, and nothing else tells Osaka from Prague here.
    let call = json!([{"from": WHO, "to": format!("0x{:040x}", 0x100)}]);
    let estimate = dev.ok("eth_estimateGas", call).await;
    assert_eq!(estimate == "0x5208", at < 4, "{fork}: {estimate}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_has_the_fork_that_is_asked_for_and_those_to_come() {
    let transfer = json!([{"from": WHO, "to": OTHER, "value": "0x5"}]);
    for fork in ["paris", "shanghai", "cancun", "prague", "osaka", "amsterdam"] {
        let mut dev = Dev::start(&["--quiet", "--hardfork", fork]).await;
        dev.ok("eth_sendTransaction", transfer.clone()).await;
        check_fork(&mut dev, fork).await;
    }
    let later = ["--fork-at", "osaka=+1000", "--fork-at", "amsterdam=+2000"];
    let flags = [&["--quiet", "--hardfork", "prague"][..], &later].concat();
    let mut dev = Dev::start(&flags).await;
    for (fork, seconds) in [("prague", 0), ("osaka", 1_000), ("amsterdam", 1_000)] {
        dev.ok("evm_increaseTime", json!([seconds])).await;
        let hash = dev.ok("eth_sendTransaction", transfer.clone()).await;
        let receipt = dev.ok("eth_getTransactionReceipt", json!([hash])).await;
        assert_eq!(receipt["status"], "0x1", "{fork}");
        check_fork(&mut dev, fork).await;
        let witness = dev.ok("debug_executionWitness", json!(["latest"])).await;
        assert!(!witness["state"].as_array().expect("nodes").is_empty(), "{fork}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn blocks_are_mined_at_intervals_or_on_demand() {
    let transfer = json!([{"from": WHO, "to": OTHER, "value": "0x5"}]);
    let mut dev = Dev::start(&["--quiet", "--no-mining"]).await;
    let hash = dev.ok("eth_sendTransaction", transfer.clone()).await;
    let receipt = json!([hash]);
    assert_eq!(dev.ok("eth_getTransactionReceipt", receipt.clone()).await, Value::Null);
    dev.ok("evm_mine", json!([])).await;
    assert_eq!(dev.ok("eth_getTransactionReceipt", receipt).await["blockNumber"], "0x1");

    let mut dev = Dev::start(&["--quiet", "--block-time", "100ms"]).await;
    let hash = dev.ok("eth_sendTransaction", transfer).await;
    let sent = Instant::now();
    while dev.ok("eth_getTransactionReceipt", json!([hash])).await.is_null() {
        assert!(sent.elapsed() < Duration::from_secs(60), "no block comes");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_node_signs_for_its_accounts_alone() {
    let mut dev = Dev::start(&["--quiet"]).await;
    let signature = dev.ok("eth_sign", json!([WHO, "0x01"])).await;
    assert_eq!(signature, dev.ok("personal_sign", json!(["0x01", WHO])).await);
    let data = json!({
        "types": {"EIP712Domain": [], "Bill": [{"name": "amount", "type": "uint256"}]},
        "primaryType": "Bill",
        "domain": {},
        "message": {"amount": "5"},
    });
    let signature = dev.ok("eth_signTypedData_v4", json!([WHO, data])).await;
    let of_text = dev.ok("eth_signTypedData_v4", json!([WHO, data.to_string()])).await;
    assert_eq!(signature, of_text);

    // It is sent by another call, and is the transaction that was asked for.
    let transfer = json!({"from": WHO, "to": OTHER, "value": "0x5"});
    let bytes = dev.ok("eth_signTransaction", json!([transfer])).await;
    assert_eq!(dev.height().await, "0x0");
    let hash = dev.ok("eth_sendRawTransaction", json!([bytes])).await;
    let sent = dev.ok("eth_getTransactionByHash", json!([hash])).await;
    assert_eq!((&sent["from"], &sent["value"]), (&json!(WHO), &json!("0x5")));

    let from_other = json!({"from": OTHER, "to": WHO, "gas": "0x5208"});
    for (method, params) in [
        ("eth_sign", json!([OTHER, "0x01"])),
        ("personal_sign", json!(["0x01", OTHER])),
        ("eth_signTypedData_v4", json!([OTHER, data])),
        ("eth_signTransaction", json!([from_other])),
    ] {
        dev.refused(method, params, Code::InvalidParams, "No Signer available").await;
    }
    let no_data = json!([WHO, {"types": {}}]);
    dev.refused("eth_signTypedData_v4", no_data, Code::InvalidParams, "primaryType").await;
}

/// The shapes are anvil's, as measured.
#[tokio::test(flavor = "multi_thread")]
async fn helpers_answer_as_those_of_anvil() {
    let mut dev = Dev::start(&["--quiet"]).await;
    assert!(dev.printed.is_empty(), "{:?}", dev.printed);
    for (method, params, answer) in [
        ("evm_snapshot", json!([]), json!("0x0")),
        ("evm_mine", json!([]), json!("0x0")),
        ("evm_mine", json!([{"blocks": 2}]), json!("0x0")),
        ("anvil_mine", json!(["0x2", "0x5"]), Value::Null),
        ("hardhat_mine", json!([]), Value::Null),
        ("eth_blockNumber", json!([]), json!("0x6")),
        ("anvil_setBlockTimestampInterval", json!([1]), Value::Null),
        ("anvil_removeBlockTimestampInterval", json!([]), json!(true)),
        ("anvil_removeBlockTimestampInterval", json!([]), json!(false)),
        ("anvil_setBalance", json!([OTHER, "0xde0b6b3a7640000"]), Value::Null),
        ("anvil_addBalance", json!([OTHER, "1"]), Value::Null),
        ("eth_getBalance", json!([OTHER, "latest"]), json!("0xde0b6b3a7640001")),
        ("hardhat_setNonce", json!([OTHER, "0x7"]), Value::Null),
        ("eth_getTransactionCount", json!([OTHER, "latest"]), json!("0x7")),
        ("anvil_setStorageAt", json!([OTHER, "0x0", format!("0x{:064x}", 5)]), json!(true)),
        ("eth_getStorageAt", json!([OTHER, "0x0", "latest"]), json!(format!("0x{:064x}", 5))),
        ("evm_setBlockGasLimit", json!(["0x1c9c380"]), json!(true)),
        ("anvil_getAutomine", json!([]), json!(true)),
        ("evm_setAutomine", json!([false]), Value::Null),
        ("anvil_getIntervalMining", json!([]), Value::Null),
        ("anvil_autoImpersonateAccount", json!([true]), Value::Null),
        ("anvil_dropTransaction", json!([format!("0x{:064x}", 1)]), Value::Null),
        ("hardhat_dropTransaction", json!([format!("0x{:064x}", 1)]), json!(false)),
        ("evm_revert", json!(["0x0"]), json!(true)),
        ("evm_revert", json!(["0x0"]), json!(false)),
        ("eth_blockNumber", json!([]), json!("0x0")),
        ("eth_getBalance", json!([OTHER, "latest"]), json!("0x0")),
        ("anvil_reset", json!([{"forking": {}}]), Value::Null),
    ] {
        assert_eq!(dev.ok(method, params).await, answer, "{method}");
    }
    assert!(dev.ok("evm_increaseTime", json!([10])).await.as_u64() >= Some(10));
    let code = Code::InvalidParams;
    dev.refused("evm_setNextBlockTimestamp", json!([1]), code, "Timestamp error: 1 is lower").await;
    dev.refused(
        "anvil_reset",
        json!([{"forking": {"jsonRpcUrl": "http://x"}}]),
        code,
        "--fork-url",
    )
    .await;
    dev.refused("anvil_rollback", json!([9]), code, "blocks to go back").await;
    let blocks = dev.ok("evm_mine_detailed", json!([])).await;
    assert_eq!(blocks[0]["number"], "0x1");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_of_a_reorganisation_are_filled_in_on_the_blocks_before_them() {
    let mut dev = Dev::start(&["--quiet"]).await;
    let paid = format!("0x{}", "09".repeat(20));
    let pay = json!({"from": WHO, "to": paid, "value": "0x7"});
    for _ in 0..3 {
        dev.ok("eth_sendTransaction", json!([pay])).await;
    }
    // The sender's nonce is 1 again, and then 2, 3.
    let more = json!([2, [[pay, 0], [pay, 0], [pay, 1]]]);
    assert_eq!(dev.ok("anvil_reorg", more).await, Value::Null);
    assert_eq!(dev.height().await, "0x3");
    for (method, answer) in [("eth_getBalance", "0x1c"), ("eth_getTransactionCount", "0x0")] {
        assert_eq!(dev.ok(method, json!([paid, "latest"])).await, answer, "{method}");
    }
    assert_eq!(dev.ok("eth_getTransactionCount", json!([WHO, "pending"])).await, "0x4");
    let last = dev.ok("eth_getBlockByNumber", json!(["latest", false])).await;
    assert_eq!(last["transactions"].as_array().map(Vec::len), Some(1));

    // A request that is refused leaves the chain as it was.
    let code = Code::InvalidParams;
    dev.refused("anvil_reorg", json!([2, [[pay, 2]]]), code, "Block number 2 must not exceed")
        .await;
    let much = json!({"from": WHO, "to": paid, "value": "0xffffffffffffffffffffffff"});
    dev.refused("anvil_reorg", json!([2, [[pay, 0], [much, 1]]]), Code::Server, "insufficient")
        .await;
    assert_eq!(dev.ok("eth_getBlockByNumber", json!(["latest", false])).await, last);
    for limit in ["0x0", "0x8000000000000000"] {
        dev.refused("evm_setBlockGasLimit", json!([limit]), code, "5000 to 2^63-1").await;
    }
    dev.ok("evm_mine", json!([])).await;
    for tag in ["safe", "finalized"] {
        let balance = dev.ok("eth_getBalance", json!([WHO, tag])).await;
        assert_eq!(balance, "0x21e19e0c9bab2400000", "at first: {tag}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fees_that_a_request_names_are_kept_and_others_fit_the_next_block() {
    let mut dev = Dev::start(&["--quiet"]).await;
    for (base_fee, fees) in [
        ("0x0", json!({"gasPrice": "0x0"})),
        ("0x0", json!({"maxFeePerGas": "0x0"})),
        ("0x5", json!({"maxPriorityFeePerGas": "0x7"})),
        ("0x174876e800", json!({})),
        ("0x174876e800", json!({"maxPriorityFeePerGas": "0x0"})),
    ] {
        dev.ok("anvil_setNextBlockBaseFeePerGas", json!([base_fee])).await;
        let mut request = json!({"from": WHO, "to": OTHER});
        let members = request.as_object_mut().expect("an object");
        members.extend(fees.as_object().expect("an object").clone());
        let hash = dev.ok("eth_sendTransaction", json!([request])).await;
        let sent = dev.ok("eth_getTransactionByHash", json!([hash])).await;
        assert!(sent["blockNumber"].is_string(), "{request} waits: {sent}");
        for (name, fee) in fees.as_object().expect("an object") {
            assert_eq!(&sent[name], fee, "{name}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_has_the_type_that_its_request_says() {
    let mut dev = Dev::start(&["--quiet"]).await;
    let list = json!([{"address": OTHER, "storageKeys": []}]);
    let price = "0x77359400";
    for (members, kind) in [
        (json!({}), "0x2"),
        (json!({"gasPrice": price}), "0x0"),
        (json!({"gasPrice": price, "accessList": []}), "0x1"),
        (json!({"gasPrice": price, "type": "0x1"}), "0x1"),
        (json!({"gasPrice": price, "accessList": list}), "0x1"),
        (json!({"accessList": list}), "0x2"),
    ] {
        let mut request = json!({"from": WHO, "to": OTHER});
        request.as_object_mut().expect("an object").extend(members.as_object().unwrap().clone());
        for method in ["eth_sendTransaction", "eth_sendUnsignedTransaction"] {
            let hash = dev.ok(method, json!([request])).await;
            let sent = dev.ok("eth_getTransactionByHash", json!([hash])).await;
            assert_eq!(sent["type"], kind, "{method} {members}");
            let given = members.get("accessList").cloned();
            let shown = sent["accessList"].as_array().map(Vec::len);
            assert_eq!(
                shown.unwrap_or(0),
                given.and_then(|it| it.as_array().map(Vec::len)).unwrap_or(0)
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_in_a_directory_goes_on_with_what_was_changed() {
    let directory = tempfile::tempdir().expect("a directory");
    let place = directory.path().join("dev");
    let start = async |place: &Path| {
        Dev::start(&["--quiet", "--datadir", place.to_str().expect("UTF-8")]).await
    };
    let mut dev = start(&place).await;
    dev.ok("anvil_mine", json!(["0x3"])).await;
    dev.ok("anvil_setBalance", json!([OTHER, "0x7"])).await;
    dev.ok("anvil_impersonateAccount", json!([OTHER])).await;
    drop(dev);
    let mut dev = start(&place).await;
    assert_eq!(dev.height().await, "0x3");
    assert_eq!(dev.ok("eth_getBalance", json!([OTHER, "latest"])).await, "0x7");
    dev.ok("eth_sendTransaction", json!([{"from": WHO, "to": OTHER, "value": "0x1"}])).await;
    assert_eq!(dev.ok("eth_getBalance", json!([OTHER, "latest"])).await, "0x8");
}

/// A sidecar beside the hashes of its blobs changes nothing.
#[tokio::test(flavor = "multi_thread")]
async fn blocks_are_printed_with_what_contracts_say() {
    let mut dev = Dev::start(&[]).await;
    dev.ok("eth_sendTransaction", json!([{"to": OTHER, "value": "0x5"}])).await;
    let text = dev.lines_to("Block Number: 1");
    assert!(text.contains("    Transaction: 0x") && text.contains("Gas used: 21000"), "{text}");
    // It calls the console with its input from the fifth byte on, and reverts with the rest of it.
    let code = "0x366000600037600060006024600060006a636f6e736f6c652e6c6f675af160206024fd";
    dev.ok("anvil_setCode", json!([OTHER, code])).await;
    let number = format!("{:064x}", 7);
    let log = format!("0xf82c50f1{number}{}", "ff".repeat(32));
    let call = json!([{"to": OTHER, "input": log, "gas": "0x30d40"}]);
    dev.ok("eth_sendTransaction", call).await;
    let text = dev.lines_to("Block Number: 2");
    let reverted = format!("    Error: reverted with: 0x{}\n", "ff".repeat(32));
    assert!(text.contains("\n7\n") && text.contains(&reverted), "{text}");
    dev.ok("eth_sendTransaction", json!([{"data": "0x", "gas": "0x30d40"}])).await;
    let text = dev.lines_to("Block Number: 3");
    assert!(text.contains("Contract created: 0x"), "{text}");
    // Nobody reads any more, and the chain goes on.
    let Dev { client, .. } = &mut dev;
    let mined = unwrap(client.call("anvil_mine", json!([3000])).await);
    mined.expect("mined");
}

#[tokio::test(flavor = "multi_thread")]
async fn accounts_are_kept_in_a_file_of_anvils_form() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("state.json");
    let file = file.to_str().expect("UTF-8");
    let mut dev = Dev::start(&["-q", "--state", file]).await;
    change(&mut dev.client).await;
    drop(dev);
    for given in [["--state", file], ["--load-state", file]] {
        let mut dev = Dev::start(&["-q", given[0], given[1]]).await;
        check_changed(&mut dev.client).await;
    }
    let folder = directory.path().to_str().expect("UTF-8");
    drop(Dev::start(&["-q", "--dump-state", folder]).await);
    refused(&["--load-state", "/absent.json"], "cannot read the state in /absent.json").await;
    std::fs::write(file, "{}").expect("written");
    refused(&["--state", file], "expected a state as anvil_dumpState gives it").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn it_begins_with_the_accounts_of_a_genesis_file() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name).to_str().expect("UTF-8").to_owned();
    let [file, config, state] = ["genesis.json", "config.json", "state.json"].map(path);
    let genesis = json!({
        "config": {"chainId": 77},
        "difficulty": "0x0",
        "gasLimit": "0x2625a00",
        "timestamp": "0x65000000",
        "alloc": {OTHER: {
            "balance": "0x7",
            "code": "0x60015f5260205ff3",
            "storage": {format!("0x{:064x}", 5): format!("0x{:064x}", 9)},
        }},
    });
    std::fs::write(&file, genesis.to_string()).expect("written");
    let given = ["-q", "--init", &file, "--config-out", &config, "--dump-state", &state];
    let mut dev = Dev::start(&given).await;
    for (method, params, answer) in [
        ("eth_chainId", json!([]), json!("0x4d")),
        ("eth_getBalance", json!([OTHER, "latest"]), json!("0x7")),
        ("eth_getCode", json!([OTHER, "latest"]), json!("0x60015f5260205ff3")),
        ("eth_getStorageAt", json!([OTHER, "0x5", "latest"]), json!(format!("0x{:064x}", 9))),
    ] {
        assert_eq!(dev.ok(method, params).await, answer, "{method}");
    }
    let first = dev.ok("eth_getBlockByNumber", json!(["0x0", false])).await;
    assert_eq!(
        (&first["timestamp"], &first["gasLimit"]),
        (&json!("0x65000000"), &json!("0x2625a00"))
    );
    dev.ok("eth_sendTransaction", json!([{"to": OTHER, "value": "0x1"}])).await;
    // It is dumped, slots included.
    drop(dev);
    let mut dev = Dev::start(&["-q", "--load-state", &state]).await;
    let slot = dev.ok("eth_getStorageAt", json!([OTHER, "0x5", "latest"])).await;
    assert_eq!(slot, json!(format!("0x{:064x}", 9)));
    let config = std::fs::read_to_string(config).expect("written");
    let config: Value = serde_json::from_str(&config).expect("JSON");
    assert_eq!((&config["chain_id"], &config["gas_limit"]), (&json!(77), &json!("40000000")));
    assert_eq!(config["available_accounts"][0], WHO);
    refused(&["--init", "/absent.json"], "--init").await;
}

/// Runs it with flags that it refuses.
async fn refused(given: &[&str], words: &str) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_deponent"));
    let command = command.args(["dev", "--port", "0"]).args(given);
    let output = command.output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains(words) && !output.status.success(), "{given:?}: {said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_in_a_directory_is_what_it_began_as() {
    let directory = tempfile::tempdir().expect("a directory");
    let directory = directory.path().to_str().expect("UTF-8");
    let mut dev = Dev::start(&["--datadir", directory, "--chain-id", "0x7"]).await;
    dev.ok("eth_sendTransaction", json!([{"to": OTHER, "value": "0xde0b6b3a7640000"}])).await;
    drop(dev);
    for (flag, value, there) in [
        ("--chain-id", "5", "7"),
        ("--hardfork", "prague", "osaka"),
        ("--gas-limit", "5000000", "30000000"),
        ("--base-fee", "1", "1000000000"),
        ("--timestamp", "1", "1"),
    ] {
        let words = format!("{flag} {value}: the chain in {directory} began with {there}");
        refused(&["--datadir", directory, flag, value], &words).await;
    }
    let same = ["--datadir", directory, "--chain-id", "7", "--hardfork", "osaka"];
    let dev = Dev::start(&same).await;
    let words = dev.printed.join("\n");
    // The accounts have what they have now.
    for part in ["(0) 0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266 (9998.99", "\n7\n", "\n1 of "] {
        assert!(words.contains(part), "{part}: {words}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_take_the_members_that_cast_sends_with_blobs() {
    let mut dev = Dev::start(&["--quiet", "--client-version", "anvil/v1.7.1"]).await;
    let call = json!({
        "from": WHO,
        "to": OTHER,
        "blobs": ["0x00"],
        "commitments": ["0x00"],
        "proofs": ["0x00"],
        "cellProofs": ["0x00"],
    });
    assert_eq!(dev.ok("eth_estimateGas", json!([call])).await, "0x5208");
    assert_eq!(dev.ok("eth_call", json!([call])).await, "0x");
    assert_eq!(dev.ok("web3_clientVersion", json!([])).await, "anvil/v1.7.1");
}

/// A state with a contract that has code, money and a slot, and an account with a nonce.
async fn change(client: &mut Client) {
    for (method, params) in [
        ("anvil_setCode", json!([OTHER, "0x60015f5260205ff3"])),
        ("anvil_setStorageAt", json!([OTHER, "0x5", format!("0x{:064x}", 9)])),
        ("eth_sendTransaction", json!([{"from": WHO, "to": OTHER, "value": "0x7"}])),
    ] {
        unwrap(client.call(method, params).await).unwrap_or_else(|error| panic!("{error}"));
    }
}

async fn check_changed(client: &mut Client) {
    for (method, params, answer) in [
        ("eth_getCode", json!([OTHER, "latest"]), json!("0x60015f5260205ff3")),
        ("eth_getStorageAt", json!([OTHER, "0x5", "latest"]), json!(format!("0x{:064x}", 9))),
        ("eth_getBalance", json!([OTHER, "latest"]), json!("0x7")),
        ("eth_getTransactionCount", json!([WHO, "latest"]), json!("0x1")),
    ] {
        let found = unwrap(client.call(method, params).await);
        assert_eq!(found.unwrap_or_else(|error| panic!("{method}: {error}")), answer, "{method}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_is_loaded_by_another_chain() {
    let directory = tempfile::tempdir().expect("a directory");
    let place = directory.path().join("dev");
    let place = place.to_str().expect("UTF-8");
    let mut first = Dev::start(&["--quiet", "--datadir", place]).await;
    change(&mut first.client).await;
    let state = first.ok("anvil_dumpState", json!([])).await;
    let mut second = Dev::start(&["--quiet"]).await;
    assert_eq!(second.ok("anvil_loadState", json!([state])).await, true);
    check_changed(&mut second.client).await;
    let again = second.ok("hardhat_dumpState", json!([false])).await;
    assert_eq!(second.ok("hardhat_loadState", json!([again])).await, true);

    let code = Code::InvalidParams;
    second.refused("anvil_dumpState", json!([true]), code, "earlier blocks").await;
    second.refused("anvil_loadState", json!(["0x1f8b00"]), code, "state: ").await;
    let no_accounts = json!(["0x7b7d"]);
    second.refused("anvil_loadState", no_accounts, code, "as anvil_dumpState gives it").await;

    // The slot that a helper set has no name any more.
    drop(first);
    let mut first = Dev::start(&["--quiet", "--datadir", place]).await;
    first.refused("anvil_dumpState", json!([]), Code::Server, "names are not known").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn anvil_and_we_load_each_others_states() {
    let Some(anvil) = Anvil::start() else { return };
    let mut anvil_client = Client::connect(&anvil.url, None).await.expect("a connection");
    let mut dev = Dev::start(&["--quiet"]).await;
    change(&mut dev.client).await;
    let state = dev.ok("anvil_dumpState", json!([])).await;
    let loaded = unwrap(anvil_client.call("anvil_loadState", json!([state])).await);
    assert_eq!(loaded.expect("anvil takes it"), true);
    check_changed(&mut anvil_client).await;

    let state = unwrap(anvil_client.call("anvil_dumpState", json!([])).await).expect("a state");
    let mut dev = Dev::start(&["--quiet"]).await;
    assert_eq!(dev.ok("anvil_loadState", json!([state])).await, true);
    check_changed(&mut dev.client).await;
    dev.ok("eth_sendTransaction", json!([{"from": WHO, "to": OTHER, "value": "0x1"}])).await;
}

/// As alloy's types of anvil have it.
#[tokio::test(flavor = "multi_thread")]
async fn a_receipt_is_waited_for_and_a_reorganisation_is_asked_for_by_name() {
    let mut dev = Dev::start(&["--quiet"]).await;
    let transfer = json!({"from": WHO, "to": OTHER, "value": "0x5"});
    let receipt = dev.ok("eth_sendTransactionSync", json!([transfer])).await;
    assert_eq!((&receipt["status"], &receipt["blockNumber"]), (&json!("0x1"), &json!("0x1")));
    dev.refused(
        "eth_sendTransactionSync",
        json!([{"from": OTHER, "to": WHO, "gas": "0x5208"}]),
        Code::InvalidParams,
        "No Signer available",
    )
    .await;
    let snapshot = dev.ok("evm_snapshot", json!([])).await;
    let metadata = dev.ok("anvil_metadata", json!([])).await;
    let snapshots = json!({snapshot.as_str().expect("an id"): [1, receipt["blockHash"]]});
    assert_eq!(metadata["snapshots"], snapshots);
    let other = json!({"from": WHO, "to": OTHER, "value": "0x6"});
    let pairs = json!([[other, 0]]);
    dev.ok("anvil_reorg", json!({"depth": 1, "tx_block_pairs": pairs})).await;
    assert_eq!(
        dev.ok("eth_getTransactionReceipt", json!([receipt["transactionHash"]])).await,
        Value::Null
    );
    assert_eq!(dev.ok("eth_getBalance", json!([OTHER, "latest"])).await, "0x6");
    let unknown = json!({"depth": 1, "blocks": []});
    dev.refused("anvil_reorg", unknown, Code::InvalidParams, "unknown field \"blocks\"").await;

    // Without a block it is waited for.
    dev.ok("evm_setAutomine", json!([false])).await;
    let soon = json!([transfer, 10]);
    dev.refused("eth_sendTransactionSync", soon, Code::NotIncluded, "wasn't processed").await;
    let params = serde_json::value::to_raw_value(&json!([transfer])).expect("JSON");
    let answer = dev.client.batch_raw(&[("eth_sendTransactionSync", &params)]).await;
    let (_, answer) = answer.expect("an answer");
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.contains("eth_sendTransactionSync waits for a block"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn viems_test_client_has_its_day() {
    let done = json!(["anvil", "hardhat"]);
    day("node", "dev_viem.mjs", &["--quiet"], &done).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn viem_and_ethers_have_their_days() {
    let done = json!(["errors", "events", "transactions", "accounts", "dropped", "turns"]);
    for script in ["dev_viem_user.mjs", "dev_ethers.mjs"] {
        day("node", script, &["--quiet"], &done).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn web3_py_has_its_day() {
    let done = json!(["errors", "events", "transactions", "accounts", "turns", "dropped"]);
    day("python", "dev_web3.py", &["--quiet"], &done).await;
}

/// Of version 6 where there is a Java for it, of version 4 elsewhere.
#[tokio::test(flavor = "multi_thread")]
async fn web3j_has_its_day() {
    let Some(tools) = tools() else { return };
    let newer = tools.join("web3j-6");
    let java = newest_java().filter(|(version, _)| *version >= 22 && newer.is_dir());
    let (java, jars, name, done) = match java {
        Some((_, java)) => (java, newer, "web3j/Newer.java", json!(["web3j", "newer"])),
        None => {
            println!("not run: web3j 6, for which there are no jars, or no Java 22");
            ("java".into(), tools.join("web3j"), "web3j/Day.java", json!(["web3j"]))
        }
    };
    if !jars.is_dir() {
        println!("not run: no web3j in DEPONENT_TOOLS; docs/dev.md says how it gets there");
        return;
    }
    let dev = Dev::start(&["--quiet"]).await;
    let mut command = Command::new(java);
    command.arg("-cp").arg(jars.join("*")).arg(script(name));
    command.arg(format!("http://{}", dev.address)).arg(script("Till.json"));
    assert_eq!(output(command).await, json!({ "done": done }));
}

/// The version and the program of the newest Java, of `JAVA_HOME` and those in `/usr/lib/jvm`.
fn newest_java() -> Option<(u32, PathBuf)> {
    let named = std::env::var_os("JAVA_HOME").map(PathBuf::from);
    let all = std::fs::read_dir("/usr/lib/jvm").into_iter().flatten().flatten();
    let homes = named.into_iter().chain(all.map(|entry| entry.path()));
    let found = homes.filter_map(|home| {
        let release = std::fs::read_to_string(home.join("release")).ok()?;
        let version = release.lines().find_map(|line| line.strip_prefix("JAVA_VERSION=\""))?;
        let version = version.split(['.', '"', '-', '+']).next()?.parse().ok()?;
        let java = home.join("bin/java");
        java.is_file().then_some((version, java))
    });
    found.max()
}

#[tokio::test(flavor = "multi_thread")]
async fn alloy_has_its_day() {
    let Some(tools) = tools() else { return };
    let program = tools.join("alloy/debug/alloy-day");
    if !program.is_file() {
        assert!(std::env::var_os("CI").is_none(), "CI needs alloy-day in DEPONENT_TOOLS");
        println!("not run: no alloy in DEPONENT_TOOLS; docs/dev.md says how it gets there");
        return;
    }
    let dev = Dev::start(&["--quiet"]).await;
    let mut command = Command::new(program);
    command.arg(format!("http://{}", dev.address));
    let done = json!(["errors", "events", "transactions", "accounts", "dropped", "anvil", "turns"]);
    assert_eq!(output(command).await, json!({ "done": done }));
}

#[tokio::test(flavor = "multi_thread")]
async fn hardhats_helpers_have_their_day() {
    let flags = ["--quiet", "--client-version", "anvil/v1.7.1"];
    let done = json!(["blocks", "accounts", "snapshots"]);
    day("node", "dev_hardhat.mjs", &flags, &done).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cast_has_its_day() {
    day("bash", "dev_cast.sh", &["--quiet"], &json!(["cast"])).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_of_forge_has_its_day() {
    day("bash", "dev_forge.sh", &["--quiet"], &json!(["forge"])).await;
}

/// Runs a script of `tests/tools` on a chain of its own; Python is that of the folder of tools.
async fn day(program: &str, name: &str, flags: &[&str], done: &Value) {
    let Some(tools) = tools() else { return };
    let dev = Dev::start(flags).await;
    let python = tools.join("venv/bin/python");
    let program = if program == "python" { python.as_path() } else { Path::new(program) };
    let mut command = Command::new(program);
    command.arg(script(name)).arg(format!("http://{}", dev.address));
    command.env("DEPONENT_TOOLS", tools);
    assert_eq!(output(command).await, json!({ "done": done }));
}
