//! `deponent witness inspect` and `deponent witness diff`, on files and on endpoints.

use std::path::Path;
use std::process::{Command, Output};

use crate::support::{OSAKA, TestNode, attributes, new_payload, raw};
use crate::verify::{certificate, lines, stateless_input, tls_proxy};
use alloy_genesis::GenesisAccount;
use alloy_primitives::{Address, B256, Bytes, TxKind, U256};
use deponent_node::demo::World;
use serde_json::{Value, json};

/// Reads the slots below the number in its call data.
const READ_SLOTS: [u8; 19] = [
    0x5f, 0x35, 0x5b, 0x60, 0x01, 0x90, 0x03, 0x80, 0x54, 0x50, 0x80, 0x60, 0x02, 0x57, 0x80, 0x55,
    0x00, 0x00, 0x00,
];

/// A contract of [`chain`].
pub(crate) fn contract(index: u8) -> Address {
    let mut address = Address::with_last_byte(index);
    address[0] = 0xc0;
    address
}

/// A node with `blocks` blocks that read and write slots of twelve contracts, more of each than of
/// the one before, and the codes of six others.
pub(crate) async fn chain(blocks: u64) -> TestNode {
    let mut world = World::new(30).expect("a world");
    for index in 0..12 {
        let slots = u64::from(index) * u64::from(index) * 20;
        let slot = |slot| (B256::from(U256::from(slot)), B256::from(U256::from(slot + 7)));
        let mut code = READ_SLOTS.to_vec();
        code.resize(300 + 997 * usize::from(index), index);
        let account = GenesisAccount::default()
            .with_code(Some(code.into()))
            .with_storage(Some((0..slots).map(slot).collect()));
        world.genesis.alloc.insert(contract(index), account);
    }
    let start = world.genesis.timestamp;
    let mut node = TestNode::start(serde_json::to_value(&world.genesis).expect("JSON")).await;
    let mut nonce = 0;
    for number in 1..=blocks {
        let mut transactions = Vec::new();
        for index in 0..12 {
            let slots = 1 + u64::from(index) * u64::from(index) * (1 + number % 3) / 2;
            let input: Bytes = U256::from(slots).to_be_bytes::<32>().into();
            let to = TxKind::Call(contract(index));
            transactions.push(world.sign(nonce, to, input, 450_000).expect("signed"));
            nonce += 1;
        }
        transactions.push(world.read_codes(nonce, 6).expect("signed"));
        nonce += 1;
        let attributes = attributes(start + 12 * number, 3);
        let params = json!([node.head().await, attributes, raw(&transactions), "0x"]);
        let envelope = node.ok("testing_buildBlockV1", params).await;
        node.ok("engine_newPayloadWithWitnessV4", new_payload(4, &envelope)).await;
        node.adopt(OSAKA, &envelope).await;
    }
    node
}

fn witness(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_deponent")).arg("witness").args(args).output().expect("run")
}

fn json_of(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("no JSON: {output:?}"))
}

/// A file with a block and a witness, in the form that `verify` documents.
fn file(dir: &Path, name: &str, block: &Value, witness: &Value) -> String {
    let path = dir.join(name);
    let document = json!({"chainId": 1, "block": block, "witness": witness});
    std::fs::write(&path, document.to_string()).expect("written");
    path.to_str().expect("UTF-8").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_witness_is_summed_up_by_kind_and_by_account() {
    let mut node = chain(3).await;
    let url = format!("http://{}", node.node.http_addr);
    let given = node.public("debug_executionWitness", json!(["latest"])).await.expect("a witness");
    let output = witness(&["inspect", "--rpc", &url, "latest", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let found = json_of(&output);
    let bytes = |list: &str| -> usize {
        let items = given[list].as_array().expect("a list");
        items.iter().map(|item| item.as_str().expect("hex").len() / 2 - 1).sum()
    };
    let number = |value: &Value| value.as_u64().expect("a number") as usize;
    let kinds = &found["kinds"];
    let kind = |name: &str| number(&kinds[name]["bytes"]);
    assert_eq!(kind("accountNodes") + kind("storageNodes"), bytes("state"));
    assert_eq!(
        (kind("codes"), kind("headers"), kind("unreached")),
        (bytes("codes"), bytes("headers"), 0)
    );
    assert_eq!(
        number(&found["bytes"]),
        ["state", "codes", "headers"].map(bytes).iter().sum::<usize>()
    );
    let depths = |name: &str| -> usize {
        let depths = found["depths"][name].as_array().expect("a list");
        depths.iter().map(|depth| number(&depth["bytes"])).sum()
    };
    assert_eq!(
        [depths("account"), depths("storage")],
        [kind("accountNodes"), kind("storageNodes")]
    );
    // The addresses of six contracts are nowhere: they are computed.
    let accounts = &found["accounts"];
    assert!(number(&accounts["named"]) + 6 >= number(&accounts["total"]), "{accounts}");
    let list = accounts["list"].as_array().expect("a list");
    for index in 0..12 {
        let of = list.iter().find(|account| account["address"] == json!(contract(index)));
        let of = of.unwrap_or_else(|| panic!("no {index} in {accounts}"));
        assert_eq!(of["codeBytes"], 300 + 997 * u64::from(index));
        assert_eq!(number(&of["storageNodes"]) > 0, index > 0, "{of}");
    }
    let sum: usize = list.iter().map(|account| number(&account["bytes"])).sum();
    let upper = number(&accounts["upperNodes"]["bytes"]);
    assert_eq!(sum + upper + kind("headers"), number(&found["bytes"]));
    assert_eq!(accounts["others"]["items"], 0);

    let output = witness(&["inspect", "--rpc", &url, "3", "--rows", "5"]);
    let printed = lines(&output);
    assert_eq!(printed[0], format!("block           3 ({})", found["hash"].as_str().expect("one")));
    let has = |words: &str| printed.iter().any(|line| line.contains(words));
    for words in ["nodes of storages", " other accounts", &contract(11).to_string(), "largest item"]
    {
        assert!(has(words), "{words}: {printed:#?}");
    }
    assert!(printed.iter().all(|line| line.chars().count() <= 140), "{printed:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn witnesses_are_compared_by_their_items_and_then_by_their_order() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut node = chain(2).await;
    let url = format!("http://{}", node.node.http_addr);
    let block = node.public("debug_getRawBlock", json!(["0x2"])).await.expect("a block");
    let given = node.public("debug_executionWitness", json!(["0x2"])).await.expect("a witness");
    let canonical = file(dir.path(), "canonical.json", &block, &given);
    let endpoint = format!("{url}#2");
    let output = witness(&["diff", &endpoint, &canonical]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(lines(&output)[0], "SAME: items and order are the same");

    // As geth has it: nodes in any order, and headers the newest first.
    let mut geth = given.clone();
    for list in ["state", "codes", "headers"] {
        geth[list].as_array_mut().expect("a list").reverse();
    }
    let reversed = file(dir.path(), "reversed.json", &block, &geth);
    let output = witness(&["diff", &canonical, &reversed]);
    let printed = lines(&output);
    assert_eq!((output.status.code(), printed.len()), (Some(0), 8), "{printed:#?}");
    assert_eq!(printed[0], "SAME: the items are the same, and order or form alone differ");
    assert_eq!(printed[3], "        order and form: canonical");
    assert!(printed[6].ends_with("form: state not sorted; codes not sorted"), "{printed:#?}");
    let output = witness(&["diff", "--strict", &canonical, &reversed]);
    assert_eq!(output.status.code(), Some(1));
    assert!(lines(&output)[0].starts_with("DIFFERENT: order or form alone"), "{output:?}");

    // A code that the block made, as geth has those, a node too many, and one that is missing.
    let mut other = geth.clone();
    other["codes"].as_array_mut().expect("a list").push(json!("0xfeed"));
    let nodes = other["state"].as_array_mut().expect("a list");
    let longest = nodes.iter().map(|node| node.as_str().expect("hex").len()).max();
    let at = nodes.iter().position(|node| node.as_str().map(str::len) == longest).expect("one");
    let removed = nodes.remove(at);
    nodes.push(json!(format!("0xf8{}", "44".repeat(69))));
    let other = file(dir.path(), "other.json", &block, &other);
    let output = witness(&["diff", &canonical, &other]);
    let printed = lines(&output);
    assert_eq!(output.status.code(), Some(1), "{printed:#?}");
    assert_eq!(printed[0], "DIFFERENT: items that only one of them has");
    let text = printed.join("\n");
    assert!(text.contains("only in A: 1 item, ") && text.contains("only in B: 2 items"), "{text}");
    assert!(text.contains("of no account in the witness"), "{text}");
    assert!(text.contains("no path leads to it"), "{text}");
    let found = json_of(&witness(&["diff", "--json", &canonical, &other]));
    assert_eq!((&found["verdict"], &found["sameItems"]), (&json!("DIFFERENT"), &json!(false)));
    let only = &found["a"]["only"][0];
    assert_eq!(only["bytes"], removed.as_str().expect("hex").len() / 2 - 1);
    assert!(only["kind"].as_str().expect("one").ends_with("node") && only["path"].is_string());
    let kinds: Vec<_> = found["b"]["only"].as_array().expect("two").iter().collect();
    assert_eq!([&kinds[0]["kind"], &kinds[1]["kind"]], ["node", "code"]);
    // The same is left over in the one file.
    let found = json_of(&witness(&["inspect", "--json", &other]));
    assert!(found["kinds"]["unreached"]["items"].as_u64() >= Some(2), "{found}");

    let output = witness(&["diff", &format!("{url}#1"), &endpoint]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        lines(&output).contains(&"note    these are different blocks".to_owned()),
        "{output:?}"
    );
    for args in [&["diff", &canonical, "none.json"][..], &["inspect", "none.json"]] {
        let output = witness(args);
        assert_eq!(output.status.code(), Some(4), "{args:?}");
        assert!(lines(&output)[0].starts_with("UNREADABLE: "), "{output:?}");
    }
}

/// Files in all forms, and an endpoint over TLS: each is summed up as the block of the endpoint in
/// the clear is, and none differs from it.
#[tokio::test(flavor = "multi_thread")]
async fn whatever_the_form_and_the_endpoint_the_witness_is_the_same() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut node = chain(2).await;
    let plain = format!("http://{}", node.node.http_addr);
    let secure = format!("https://localhost:{}", tls_proxy(node.node.http_addr).await);
    let cacert = certificate("localhost.pem");
    let cacert = ["--cacert", cacert.to_str().expect("UTF-8")];
    let input = stateless_input(&node, 2);
    let block: Bytes = serde_json::from_value(
        node.public("debug_getRawBlock", json!(["0x2"])).await.expect("a block"),
    )
    .expect("bytes");
    let given = node.public("debug_executionWitness", json!(["0x2"])).await.expect("a witness");
    let write = |name: &str, content: &[u8]| {
        let path = dir.path().join(name);
        std::fs::write(&path, content).expect("written");
        path.to_str().expect("UTF-8").to_owned()
    };
    let whole = write("whole.ssz", &input.encode().expect("within the limits"));
    let block = write("block.rlp", &block);
    let ssz = write("witness.ssz", &witness::ssz::encode(&input.witness).expect("short"));
    let json = write("witness.json", given.to_string().as_bytes());
    let inspected = |args: &[&str]| {
        let output = witness(&[&["inspect", "--json"], args].concat());
        assert_eq!(output.status.code(), Some(0), "{args:?}: {output:?}");
        let mut found = json_of(&output);
        found["input"].take();
        found
    };
    let expected = inspected(&["--rpc", &plain, "2"]);
    let (plain, endpoint) = (format!("{plain}#2"), format!("{secure}#2"));
    let block = ["--block", &block];
    assert_eq!(inspected(&[&["--rpc", &secure, "2"], &cacert[..]].concat()), expected);
    for (what, args) in [
        (&plain, &[][..]),
        (&endpoint, &cacert[..]),
        (&whole, &[]),
        (&ssz, &block[..]),
        (&json, &block[..]),
    ] {
        assert_eq!(inspected(&[&[what.as_str()], args].concat()), expected, "{what}");
        let output = witness(&[&["diff", "--strict", &plain, what], args].concat());
        assert_eq!(output.status.code(), Some(0), "{what}: {output:?}");
        assert_eq!(lines(&output)[0], "SAME: items and order are the same", "{what}");
    }
    // Another block's witness beside this block; and an authority that it does not know.
    let output = witness(&["diff", &format!("{plain}#1"), &whole]);
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    let other = certificate("other.pem");
    let output = witness(&["inspect", &endpoint, "--cacert", other.to_str().expect("UTF-8")]);
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    assert!(lines(&output)[0].contains("--cacert FILE"), "{output:?}");
}
