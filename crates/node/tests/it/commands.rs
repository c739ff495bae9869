//! The commands over an endpoint: on a node of this process, over each transport, and beside
//! Foundry's cast where that is installed (CONTRIBUTING.md).

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use crate::support::*;
use alloy_primitives::{Address, hex};
use serde_json::{Value, json};

/// It stores 1 in slot 0, logs with topic 7, and returns the slot that the call's data name.
const CODE: &str = "0x60015f55602a5f52600760205fa15f35545f5260205ff3";

/// It returns, or reverts with, its arguments.
const RETURNS: Address = Address::repeat_byte(0xc1);
const REVERTS: Address = Address::repeat_byte(0xc2);

/// Foundry's program of this name: the one in `DEPONENT_TOOLS`, else the one on `PATH`.
fn foundry(name: &str) -> Option<PathBuf> {
    let tools = std::env::var_os("DEPONENT_TOOLS").map(PathBuf::from);
    let packages = tools.and_then(|tools| tools.join("node_modules/@foundry-rs").read_dir().ok());
    let packages = packages.into_iter().flatten().flatten().map(|entry| entry.path());
    let installed = packages.map(|package| package.join("bin").join(name));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).map(|folder| folder.join(name)).collect::<Vec<_>>();
    let found = installed.chain(on_path).find(|file| file.is_file());
    if found.is_none() {
        assert!(std::env::var_os("CI").is_none(), "CI needs {name}");
        println!(
            "not run: no {name}. npm install --prefix $DEPONENT_TOOLS @foundry-rs/{name}, or put \
             it on PATH"
        );
    }
    found
}

/// Runs a program with the endpoint in its environment.
async fn run(program: impl Into<PathBuf>, url: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(program.into());
    command.args(arguments).env("ETH_RPC_URL", url).env_remove("RUST_LOG");
    let output = tokio::task::spawn_blocking(move || command.output()).await.expect("it returns");
    output.expect("it runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

/// The standard output of a command that succeeds.
async fn deponent(url: &str, arguments: &[&str]) -> String {
    let output = run(env!("CARGO_BIN_EXE_deponent"), url, arguments).await;
    let error = text(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {error}");
    text(&output.stdout)
}

/// The command fails with this status and these words.
async fn refused(url: &str, arguments: &[&str], status: i32, words: &str) {
    let output = run(env!("CARGO_BIN_EXE_deponent"), url, arguments).await;
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {error}");
    assert!(error.contains(words), "{arguments:?}: {error}");
}

/// A node whose second block has a transaction of each type.
async fn node() -> TestNode {
    let mut genesis = genesis_of_osaka();
    genesis["alloc"][CONTRACT.to_string()]["code"] = json!(CODE);
    for (address, last) in [(RETURNS, "f3"), (REVERTS, "fd")] {
        let code = format!("0x36600490038060045f375f{last}");
        genesis["alloc"][address.to_string()] = json!({"balance": "0x0", "code": code});
    }
    let mut node = TestNode::start(genesis).await;
    node.extend(OSAKA, 1, &[]).await;
    node.extend(OSAKA, 2, &transactions()).await;
    node
}

fn url(node: &TestNode) -> String {
    format!("http://{}", node.node.http_addr)
}

fn hashes() -> Vec<String> {
    transactions().iter().map(|transaction| transaction.hash().to_string()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_read_a_node_over_each_transport() {
    let mut node = node().await;
    let ipc = node.node.ipc_path.clone().expect("it listens").display().to_string();
    let (contract, hash) = (CONTRACT.to_string(), &hashes()[2]);
    for url in [url(&node), format!("ws://{}", node.node.http_addr), ipc] {
        let check = async |arguments: &[&str], expected: &str| {
            assert_eq!(deponent(&url, arguments).await, format!("{expected}\n"), "{arguments:?}");
        };
        check(&["chain", "chainId"], "1337").await;
        check(&["block", "-f", "number"], "2").await;
        check(&["block", "1", "--field", "timestamp"], "1 (Thu, 1 Jan 1970 00:00:01 +0000)").await;
        check(&["tx", hash, "type"], "2").await;
        check(&["receipt", hash, "status"], "1 (success)").await;
        check(&["code", &contract], CODE).await;
        let zero = format!("0x{}", "0".repeat(64));
        check(&["storage", &contract, "0", "-b", "1"], &zero).await;
        check(&["call", &contract, "f(uint256)", "0", "-b", "0x1"], &zero).await;
    }
    let url = url(&node);
    let proved = deponent(&url, &["storage", &contract, "0", "5", "--proof"]).await;
    assert!(proved.contains(&format!("slot 0               0x{}1\n", "0".repeat(63))), "{proved}");
    assert!(proved.contains("\nproof                valid ("), "{proved}");
    let proved = deponent(&url, &["storage", &contract, "0", "--proof", "--json"]).await;
    let proved: Value = serde_json::from_str(&proved).expect("JSON");
    assert_eq!(proved["blockHash"], node.head().await);
    assert_eq!(proved["slots"][0]["value"], json!(format!("0x{}1", "0".repeat(63))));

    let event = "Seen(uint256 indexed kind,uint256 place)";
    let logs = deponent(&url, &["logs", "--from", "0", "--address", &contract]).await;
    assert_eq!(logs.matches("- address: ").count(), transactions().len(), "{logs}");
    let none = deponent(&url, &["logs", "--from", "0", event]).await;
    assert_eq!(none, "");
    let newest = run(env!("CARGO_BIN_EXE_deponent"), &url, &["logs", event]).await;
    assert!(newest.status.success() && newest.stdout.is_empty());
    assert!(text(&newest.stderr).contains("--from 0 looks at all blocks"), "{newest:?}");
    // The answers of the node are printed as they came.
    for (arguments, method, params) in [
        (&["block", "2", "--full"][..], "eth_getBlockByNumber", json!(["0x2", true])),
        (&["tx", hash], "eth_getTransactionByHash", json!([hash])),
        (&["receipt", hash], "eth_getTransactionReceipt", json!([hash])),
        (&["balance", &contract], "eth_getBalance", json!([contract, "latest"])),
        (&["logs", "--from", "0"], "eth_getLogs", json!([{"fromBlock": "0x0"}])),
    ] {
        let printed = deponent(&url, &[arguments, &["--json"]].concat()).await;
        let printed: Value = serde_json::from_str(&printed).expect("JSON");
        assert_eq!(printed, node.public(method, params).await.expect("an answer"), "{arguments:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_decoded_and_so_is_its_revert() {
    let node = node().await;
    let (url, returns, reverts) = (url(&node), RETURNS.to_string(), REVERTS.to_string());
    let signature = "f(string,(int8,bool)[])(string,(int8,bool)[])";
    let call = ["call", &returns, signature, "a b", "[(-5,true)]"];
    assert_eq!(deponent(&url, &call).await, "\"a b\"\n[(-5, true)]\n");
    let json = deponent(&url, &[&call[..], &["--json"]].concat()).await;
    assert_eq!(json, "[\"a b\",[[-5,true]]]\n");
    // An override that the call sees: the code is gone.
    let overrides = node.dir.path().join("overrides.json");
    std::fs::write(&overrides, json!({(RETURNS.to_string()): {"code": "0x"}}).to_string())
        .expect("written");
    let overrides = overrides.display().to_string();
    let call = [&call[..], &["--override", &overrides]].concat();
    refused(&url, &call, 1, "the call returned nothing").await;

    let data = |signature: &str, argument: &str| {
        let arguments = ["deponent", "abi", "calldata", signature, argument];
        let output = Command::new(env!("CARGO_BIN_EXE_deponent")).args(&arguments[1..]).output();
        let encoded = text(&output.expect("it runs").stdout);
        format!("0x00000000{}", hex::encode(hex::decode(encoded.trim()).expect("hex")))
    };
    let money = data("Error(string)", "no money");
    refused(&url, &["call", &reverts, &money], 1, "the call reverted: no money").await;
    refused(&url, &["estimate", &reverts, &money], 1, "the call reverted: no money").await;
    let low = data("Low(uint256)", "7");
    refused(&url, &["call", &reverts, &low], 1, "reverted with 0x").await;
    let known = ["call", &reverts, &low, "--error", "Low(uint256)"];
    refused(&url, &known, 1, "the call reverted: Low(7)").await;
    let call = ["call", &reverts, &money, "--json"];
    let output = run(env!("CARGO_BIN_EXE_deponent"), &url, &call);
    let printed: Value = serde_json::from_slice(&output.await.stdout).expect("JSON");
    assert_eq!(printed["error"]["code"], 3);
    assert_eq!(printed["reason"], "the call reverted: no money");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_command_says_what_to_do_and_shows_no_password() {
    let node = node().await;
    let url = url(&node);
    let address = CONTRACT.to_string();
    refused(&url, &["block", "9"], 1, "the endpoint has no block 9").await;
    refused(&url, &["tx", &"0".repeat(64)], 1, "knows no transaction").await;
    refused(&url, &["balance", "0x12"], 2, "40 hex digits").await;
    refused(&url, &["call", &address, "f(uint256", "1"], 2, "no signature of a function").await;
    refused(&url, &["call", &address, "f(bool)", "7"], 2, "argument 1: \"7\" is no bool").await;
    refused(&url, &["rpc", "eth_noSuch"], 1, "eth_noSuch").await;
    refused(&url, &["block", "-f", "nothing"], 2, "there is no nothing here, but ").await;
    refused(&url, &["logs", "E(uint256)", "7"], 2, "that are indexed").await;
    let secret = "http://user:sesame@127.0.0.1:1";
    for arguments in [
        &["balance", &address, "--rpc", secret][..],
        &["balance", &address, "--rpc", "ftp://user:sesame@node"],
        &["verify", "--rpc", secret, "latest"],
        &["verify", "--rpc", "ftp://user:sesame@node", "latest"],
        &["verify", "--json", "--rpc", secret, "latest"],
        &["witness", "diff", "http://user:sesame@127.0.0.1:1#1", "ftp://user:sesame@node#1"],
        &["witness", "inspect", "http://user:sesame@127.0.0.1:1#1"],
    ] {
        let output = run(env!("CARGO_BIN_EXE_deponent"), &url, arguments).await;
        let printed = text(&output.stdout) + &text(&output.stderr);
        assert!(!output.status.success() && !printed.contains("sesame"), "{printed}");
        assert!(printed.contains("127.0.0.1:1") || printed.contains("ftp://node"), "{printed}");
    }
}

/// Lines of cast's that are its own: a member that the node does not answer, and lists of objects,
/// whose members we sort.
const CAST_ALONE: [&str; 4] = ["totalDifficulty", "logs ", "authorizationList", "{"];

/// Each other line of cast's with a value is one of ours, in its order.
async fn check_cast(cast: &PathBuf, url: &str, of_cast: &[&str], of_ours: &[&str]) {
    let output = run(cast, url, of_cast).await;
    let (expected, error) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "cast {of_cast:?}: {error}");
    let found = deponent(url, of_ours).await;
    if !expected.trim().contains(' ') {
        assert_eq!(found.trim(), expected.trim(), "{of_ours:?}");
        return;
    }
    let ours: Vec<_> = found.lines().map(str::trim_end).collect();
    let is_shared = |line: &&str| {
        let text = line.trim_start();
        text.contains(' ') && !CAST_ALONE.iter().any(|name| text.starts_with(name))
    };
    let mut next = 0;
    let lost = expected.lines().map(str::trim_end).filter(is_shared).filter(|line| {
        let place = ours[next..].iter().position(|one| one == line);
        next += place.map_or(0, |place| place + 1);
        place.is_none()
    });
    let lost: Vec<_> = lost.collect();
    assert!(lost.is_empty(), "{of_ours:?}: not in their place: {lost:#?} in\n{found}");
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_print_what_cast_prints() {
    let Some(cast) = foundry("cast") else { return };
    let node = node().await;
    let (url, contract, returns) = (url(&node), CONTRACT.to_string(), RETURNS.to_string());
    let hashes = hashes();
    let mut same: Vec<Vec<&str>> = vec![
        vec!["block", "0"],
        vec!["block", "2"],
        vec!["block", "2", "--full"],
        vec!["block", "latest", "-f", "stateRoot"],
        vec!["balance", &contract],
        vec!["balance", &contract, "--ether"],
        vec!["nonce", &contract],
        vec!["code", &contract],
        vec!["storage", &contract, "0"],
        vec!["gas-price"],
        vec!["logs", "--from-block", "0"],
        vec!["rpc", "eth_getBalance", &contract, "latest"],
        vec!["call", &contract, "0x"],
        vec!["call", &returns, "f(uint256,bytes)(uint256,bytes)", "123456789", "0x12"],
        vec!["estimate", &returns, "f(uint256)", "1ether"],
    ];
    same.extend(hashes.iter().map(|hash| vec!["tx", hash]));
    same.extend(hashes.iter().map(|hash| vec!["receipt", hash]));
    for arguments in same {
        check_cast(&cast, &url, &arguments, &arguments).await;
    }
    let transfer = "transfer(address,uint256)";
    for (of_cast, of_ours) in [
        (&["abi-encode", transfer, &contract, "7"][..], &["encode", transfer, &contract, "7"][..]),
        (&["calldata", transfer, &contract, "7"], &["calldata", transfer, &contract, "7"]),
        (&["sig", transfer], &["selector", transfer]),
        (&["sig-event", "T(address indexed,bytes)"], &["event", "T(address indexed,bytes)"]),
    ] {
        check_cast(&cast, &url, of_cast, &[&["abi"], of_ours].concat()).await;
    }
}

/// The first account of Foundry's mnemonic, which anvil has funds for, and two others.
const KEY: &str = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";
const FUNDED: &str = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";
const OTHER_KEY: &str = "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d";
const OTHER: &str = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";

/// Anvil on a free port, killed on drop.
pub(crate) struct Anvil {
    process: Child,
    pub(crate) url: String,
}

impl Anvil {
    pub(crate) fn start() -> Option<Self> {
        let mut command = Command::new(foundry("anvil")?);
        command.args(["--port", "0", "--host", "127.0.0.1"]).stdout(Stdio::piped());
        let mut process = command.spawn().expect("it starts");
        let mut lines = BufReader::new(process.stdout.take().expect("piped")).lines();
        let address = lines.by_ref().map_while(Result::ok).find_map(|line| {
            line.strip_prefix("Listening on ").map(|address| address.trim().to_owned())
        });
        // Its output must be read on, or it would wait for room in the pipe.
        std::thread::spawn(move || lines.for_each(drop));
        let url = format!("http://{}", address.expect("it says where it listens"));
        Some(Self { process, url })
    }
}

impl Drop for Anvil {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// Sends with the first key, and returns the receipt.
async fn sent(url: &str, arguments: &[&str]) -> Value {
    let arguments = [&["send", "--json", "--private-key", KEY][..], arguments].concat();
    serde_json::from_str(&deponent(url, &arguments).await).expect("JSON")
}

#[tokio::test(flavor = "multi_thread")]
async fn transactions_of_each_type_are_sent_to_anvil() {
    let Some(anvil) = Anvil::start() else { return };
    let url = &*anvil.url;
    let check = async |arguments: &[&str], kind: &str| {
        let receipt = sent(url, arguments).await;
        assert_eq!(receipt["status"], "0x1", "{arguments:?}: {receipt}");
        assert_eq!(receipt["type"], kind, "{arguments:?}");
        receipt
    };
    check(&[OTHER, "--value", "1gwei"], "0x2").await;
    check(&[OTHER, "--legacy"], "0x0").await;
    let slots = json!([{"address": OTHER, "storageKeys": [format!("0x{}", "0".repeat(64))]}]);
    let list = ["--access-list", &slots.to_string()];
    check(&[&[OTHER, "--legacy"][..], &list].concat(), "0x1").await;
    let receipt = check(&[&[OTHER][..], &list].concat(), "0x2").await;
    let hash = receipt["transactionHash"].as_str().expect("a hash").to_owned();
    let declared = deponent(url, &["tx", &hash, "accessList", "--json"]).await.to_lowercase();
    assert_eq!(declared.trim(), slots.to_string().to_lowercase());
    check(&[OTHER, "--access-list", "auto", "--gas-price", "5gwei"], "0x2").await;

    let created =
        check(&["--create", "0x600c600a5f39600c5ff336600490038060045f375ffd"], "0x2").await;
    let reverts = created["contractAddress"].as_str().expect("a contract").to_owned();
    let receipt = check(&[OTHER, "--auth", &reverts], "0x4").await;
    assert_eq!(receipt["from"], FUNDED.to_lowercase());
    let code = deponent(url, &["code", FUNDED]).await;
    assert_eq!(code.trim(), format!("0xef0100{}", &reverts[2..]));
    assert_eq!(deponent(url, &["nonce", FUNDED]).await, "8\n");

    // Estimates refuse what reverts; with gas it is sent, and fails.
    let data = deponent(url, &["abi", "calldata", "Error(string)", "no money"]).await;
    let data = format!("0x00000000{}", data.trim().trim_start_matches("0x"));
    let send = ["send", "--private-key", OTHER_KEY, &reverts, &data];
    refused(url, &send, 1, "the call reverted: no money").await;
    let send = [&send[..], &["--gas", "100000"]].concat();
    let output = run(env!("CARGO_BIN_EXE_deponent"), url, &send).await;
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("status               0 (failed)\n"));
    assert!(text(&output.stderr).contains("the transaction failed: no money"));
}

#[tokio::test(flavor = "multi_thread")]
async fn blobs_of_a_file_are_sent_to_anvil_with_their_proofs() {
    let Some(anvil) = Anvil::start() else { return };
    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("data");
    std::fs::write(&file, vec![0xff; 200_000]).expect("written");
    let file = file.display().to_string();
    let receipt = sent(&anvil.url, &[OTHER, "--blob", &file]).await;
    assert_eq!((&receipt["status"], &receipt["type"]), (&json!("0x1"), &json!("0x3")));
    assert_eq!(receipt["blobGasUsed"], "0x40000", "two blobs");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_key_comes_from_a_keystore_the_environment_or_the_endpoint() {
    let Some(anvil) = Anvil::start() else { return };
    let url = &*anvil.url;
    let send = ["send", OTHER, "--value", "1", "--json"];
    let from = |printed: &str| {
        let receipt: Value = serde_json::from_str(printed).expect("JSON");
        receipt["from"].as_str().expect("an account").to_owned()
    };
    let unlocked = [&send[..], &["--unlocked", "--from", FUNDED]].concat();
    assert_eq!(from(&deponent(url, &unlocked).await), FUNDED.to_lowercase());

    let mut command = Command::new(env!("CARGO_BIN_EXE_deponent"));
    command.args(send).env("ETH_RPC_URL", url).env("DEPONENT_PRIVATE_KEY", OTHER_KEY);
    let output = tokio::task::spawn_blocking(move || command.output()).await.expect("it returns");
    assert_eq!(from(&text(&output.expect("it runs").stdout)), OTHER.to_lowercase());
    refused(url, &send, 2, "no account to send from").await;
    let wrong = [&send[..], &["--private-key", "0xbeef"]].concat();
    refused(url, &wrong, 2, "64 hex digits").await;
    let wrong = [&send[..], &["--private-key", KEY, "--from", OTHER]].concat();
    refused(url, &wrong, 2, "the key is that of 0xf39Fd6e5").await;

    // One that cast makes.
    let Some(cast) = foundry("cast") else { return };
    let folder = tempfile::tempdir().expect("a directory");
    let keys = folder.path().display().to_string();
    let import = ["wallet", "import", "mine", "--keystore-dir", &keys, "--private-key", KEY];
    let import = [&import[..], &["--unsafe-password", "sesame"]].concat();
    let output = run(cast, url, &import).await;
    assert!(output.status.success(), "{}", text(&output.stderr));
    let password = folder.path().join("password");
    std::fs::write(&password, "sesame\n").expect("written");
    let (keystore, password) = (format!("{keys}/mine"), password.display().to_string());
    let send = [&send[..], &["--keystore", &keystore, "--password-file"]].concat();
    let sent = deponent(url, &[&send[..], &[&password]].concat()).await;
    assert_eq!(from(&sent), FUNDED.to_lowercase());
    refused(url, &[&send[..], &[&keystore]].concat(), 2, "the password is wrong").await;
    let hash = deponent(url, &[&send[..4], &send[5..], &[&password, "--async"]].concat()).await;
    let status = deponent(url, &["receipt", hash.trim(), "status", "--wait"]).await;
    assert_eq!(status, "1 (success)\n");
}
