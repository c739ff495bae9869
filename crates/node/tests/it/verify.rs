//! `deponent verify` on an endpoint, and on stateless inputs.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use crate::support::{
    ALL_FORKS, TestNode, genesis_of_all_forks, raw as raw_transactions, transactions,
};
use alloy_consensus::Transaction as _;
use alloy_primitives::{Bytes, hex};
use execution::Block;
use execution::stateless::{NewPayloadRequest, ProtocolFork, StatelessInput};
use flate2::Compression;
use flate2::write::GzEncoder;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use witness::Witness;

/// Runs `deponent verify`, with these arguments.
pub(crate) fn verify(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_deponent")).arg("verify").args(args).output().expect("run")
}

pub(crate) fn lines(output: &Output) -> Vec<String> {
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

/// A node with a block of each fork, and a file of its genesis.
async fn chain(dir: &Path) -> (TestNode, String) {
    let genesis = genesis_of_all_forks();
    let file = dir.join("genesis.json");
    std::fs::write(&file, genesis.to_string()).expect("written");
    let mut node = TestNode::start(genesis).await;
    for fork in ALL_FORKS {
        node.extend(fork, fork.time, &[]).await;
    }
    let last = ALL_FORKS[5];
    node.extend(last, last.time + 1, &transactions()).await;
    (node, file.to_str().expect("UTF-8").to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn blocks_of_an_endpoint_are_verified_in_order() {
    let dir = tempfile::tempdir().expect("a directory");
    let (mut node, chain) = chain(dir.path()).await;
    let head = node.head().await;
    let head = head.as_str().expect("a hash");
    let url = format!("http://{}", node.node.http_addr);
    let on_node = |args: &[&str]| verify(&[&["--rpc", &url, "--chain", &chain], args].concat());

    let output = on_node(&["1..7"]);
    let printed = lines(&output);
    assert_eq!((output.status.code(), printed.len()), (Some(0), 7), "{printed:?}");
    for (number, line) in (1..).zip(&printed) {
        assert!(line.starts_with(&format!("VALID: block {number} (0x")), "{line}");
    }
    for what in ["latest", "7", "0x7", head] {
        let output = on_node(&[what]);
        let printed = lines(&output);
        assert_eq!((output.status.code(), printed[0].as_str()), (Some(0), "VALID"), "{what}");
        assert!(printed[2].ends_with(head), "{printed:?}");
    }
    // A missing block has a line, too, and the others are verified nevertheless.
    let output = on_node(&["--json", "6..8", "3..2", "x"]);
    assert_eq!(output.status.code(), Some(4));
    let printed: Vec<Value> =
        lines(&output).iter().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let verdicts: Vec<_> = printed.iter().map(|line| line["verdict"].as_str()).collect();
    let [valid, unreadable] = ["VALID", "UNREADABLE"].map(Some);
    assert_eq!(verdicts, [unreadable, unreadable, valid, valid, unreadable], "{printed:?}");
    assert_eq!(printed[0]["reason"], "the range ends before it begins");
    assert_eq!((&printed[3]["hash"], &printed[3]["number"]), (&head.into(), &7.into()));
    assert_eq!(printed[3]["fork"], "Amsterdam");
    assert_eq!(printed[3]["witness"], printed[3]["canonical"]);
    assert_eq!(printed[4]["input"], "8");
    assert_eq!(printed[4]["reason"], "the head of the endpoint is block 7");
    // The part of a range behind the head is one line, however long.
    for (range, valid, missing) in [("6..900", 2, "8..900"), ("8..900", 0, "8..900")] {
        let output = on_node(&[range]);
        let printed = lines(&output);
        assert_eq!((output.status.code(), printed.len()), (Some(4), valid + 1), "{printed:?}");
        let expected = format!("UNREADABLE: {missing}: the head of the endpoint is block 7");
        assert_eq!(printed[valid], expected);
    }
    let output = on_node(&["99"]);
    let reason = &lines(&output)[0];
    assert!(reason.contains("debug_getRawBlock") && reason.contains("eth_getBlockByNumber: "));

    node.node.stop().await;
    let output = on_node(&["1..7"]);
    let printed = lines(&output);
    assert_eq!((output.status.code(), printed.len()), (Some(4), 1), "{printed:?}");
    assert!(printed[0].contains("no answer from http://"), "{printed:?}");
}

#[test]
fn a_mistyped_block_is_refused_before_anything_is_asked_for() {
    // Nothing listens there.
    let url = "http://127.0.0.1:1";
    let short = format!("0x{}", "ab".repeat(31));
    let blocks = ["0xzz", "lates", "pending", "", "0x", "-1", &short, "1..x", "5.."];
    for block in blocks {
        let output = verify(&["--rpc", url, "--", block]);
        let printed = lines(&output);
        assert_eq!((output.status.code(), printed.len()), (Some(4), 1), "{block}: {printed:?}");
        let words = if block.contains("..") { "FIRST..LAST" } else { "latest, safe or finalized" };
        let [line] = &printed[..] else { unreachable!("one line") };
        assert!(line.contains(&format!("\"{block}\"")) && line.contains(words), "{line}");
        assert!(!line.contains("no answer"), "{line}");
        let inspect = Command::new(env!("CARGO_BIN_EXE_deponent"))
            .args(["witness", "inspect", "--rpc", url, "--", block])
            .output();
        let printed = lines(&inspect.expect("run"));
        assert!(printed[0].contains("latest, safe or finalized"), "{block}: {printed:?}");
    }
}

/// The URL of a server that answers everything with this.
fn server_of(status: &str, body: &str) -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            let mut request = [0; 4096];
            std::io::Read::read(&mut stream, &mut request).expect("a request");
            stream.write_all(answer.as_bytes()).expect("an answer");
        }
    });
    format!("http://{address}")
}

#[test]
fn an_endpoint_that_answers_otherwise_is_quoted() {
    let error = json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32005, "message": "pay us"}});
    for (status, body, words) in [
        ("200 OK", "<html>", "the answer is malformed: not an object: <html>"),
        ("200 OK", "", "the answer is malformed: not an object"),
        ("200 OK", r#"{"id":1,"jsonrpc":"2.0"}"#, "neither result nor error"),
        ("200 OK", &error.to_string(), "the server answered: pay us (-32005)"),
        ("503 Service Unavailable", "later", "HTTP status 503: later"),
        ("200 OK", r#"{"id":1,"result":"0x539"}"#, "debug_chainConfig: invalid type"),
    ] {
        let url = server_of(status, body);
        for args in [&["verify"][..], &["witness", "inspect"]] {
            let output = Command::new(env!("CARGO_BIN_EXE_deponent"))
                .args(args)
                .args(["--rpc", &url, "1"])
                .output()
                .expect("run");
            let printed = lines(&output);
            assert_eq!((output.status.code(), printed.len()), (Some(4), 1), "{printed:?}");
            let of_chain = args.len() == 1 || !words.contains("chainConfig");
            assert!(!of_chain || printed[0].contains(words), "{words}: {printed:?}");
            let begin = format!("UNREADABLE: {url}: ");
            assert!(printed[0].starts_with(&begin), "{words}: {printed:?}");
        }
    }
}

#[test]
fn a_file_that_is_no_block_with_its_witness_says_what_it_is() {
    let dir = tempfile::tempdir().expect("a directory");
    let error = json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32000, "message": "busy"}});
    let null = json!({"jsonrpc": "2.0", "id": 1, "result": null});
    let none = json!({"jsonrpc": "2.0", "id": 1, "result": {"status": "SYNCING", "witness": null}});
    let (lists, block) = (json!({"state": [], "codes": [], "headers": []}), Block::default());
    let rlp = Bytes::from(alloy_rlp::encode(&block));
    let old = [&[20, 0, 0, 0][..], &[7; 40]].concat();
    let says_error = "an answer of JSON-RPC that is an error: busy (-32000)";
    let says_null = "an answer of JSON-RPC whose result is null";
    let alone = "is a witness without its block: give the block with --block FILE";
    let block_alone = "is a block without its witness";
    let witness = Witness::default();
    let mut cases = vec![
        (vec![], "is empty"),
        (b" \n".to_vec(), "is empty"),
        (lists.to_string().into_bytes(), alone),
        (witness::rlp::encode(&witness), alone),
        (hex::encode(witness::rlp::encode(&witness)).into_bytes(), alone),
        (witness::ssz::encode(&witness).expect("small"), alone),
        (rlp.to_vec(), block_alone),
        (json!(rlp).to_string().into_bytes(), block_alone),
        (hex::encode(&old).into_bytes(), "without a schema id"),
        (old, "without a schema id"),
    ];
    for (answer, words) in [(&error, says_error), (&null, says_null)] {
        cases.push((answer.to_string().into_bytes(), words));
        for document in
            [json!({"block": answer, "witness": lists}), json!({"block": rlp, "witness": answer})]
        {
            cases.push((document.to_string().into_bytes(), words));
        }
    }
    for (content, words) in &cases {
        let path = file(dir.path(), "input", content);
        let output = verify(&[&path]);
        let printed = lines(&output);
        assert_eq!((output.status.code(), printed.len()), (Some(4), 1), "{printed:?}");
        assert!(
            printed[0].starts_with("UNREADABLE: ") && printed[0].contains(words),
            "{printed:?}"
        );
    }
    let bomb = crate::stateless::gzip(&[b' '].repeat(65 << 20));
    let bomb = verify(&[&file(dir.path(), "bomb", bomb)]);
    assert_eq!(bomb.status.code(), Some(4), "{bomb:?}");
    assert!(lines(&bomb)[0].contains("unpack it first"), "{bomb:?}");
    // The same where they are files of their own.
    let block = file(dir.path(), "block", &rlp);
    let lists = file(dir.path(), "witness", lists.to_string());
    for (answer, words) in [
        (error.to_string(), says_error),
        (null.to_string(), says_null),
        (none.to_string(), "the witness is null"),
        (String::new(), "empty"),
    ] {
        let answer_file = file(dir.path(), "answer", &answer);
        for (block, witness) in [(&block, &answer_file), (&answer_file, &lists)] {
            let output = verify(&["--chain", "mainnet", "--block", block, witness]);
            let printed = lines(&output);
            assert_eq!((output.status.code(), printed.len()), (Some(4), 1), "{printed:?}");
            let is_status = block == &answer_file && words.contains("witness");
            assert!(is_status || printed[0].contains(words), "{words}: {printed:?}");
        }
    }
}

/// A canonical block and its witness as a stateless input.
pub(crate) fn stateless_input(node: &TestNode, number: u64) -> StatelessInput {
    let engine = node.node.engine();
    let hash = engine.canonical_hash(number).expect("readable").expect("a block");
    let record = engine.block(hash).expect("readable").expect("a block");
    let fork = ProtocolFork::of(engine.chain().fork_of(&record.block.header)).expect("one");
    let requests: Vec<_> = record.requests.iter().cloned().collect();
    let list = record.block_access_list.clone().unwrap_or_default();
    let request = NewPayloadRequest::of_block(fork, &record.block, &requests, list);
    let witness = engine.witness(hash).expect("kept").expect("executed");
    StatelessInput {
        new_payload_request: request.expect("made"),
        witness: (*witness).clone(),
        chain_id: engine.chain().chain_id(),
        public_keys: None,
    }
}

#[tokio::test]
async fn a_stateless_input_is_verified_as_it_is_and_in_hex() {
    let dir = tempfile::tempdir().expect("a directory");
    let (node, chain) = chain(dir.path()).await;
    let mut files = Vec::new();
    for number in 1..=7 {
        let input = stateless_input(&node, number);
        let bytes = Bytes::from(input.encode().expect("within the limits"));
        for (name, content) in [
            (format!("{number}.ssz"), bytes.to_vec()),
            (format!("{number}.hex"), format!("{}\n", hex::encode_prefixed(&bytes)).into_bytes()),
        ] {
            let path = dir.path().join(name);
            std::fs::write(&path, content).expect("written");
            files.push(path.to_str().expect("UTF-8").to_owned());
        }
        let mut wrong = input;
        wrong.new_payload_request.execution_payload.gas_used += 1;
        let path = dir.path().join("wrong.ssz");
        std::fs::write(&path, wrong.encode().expect("within the limits")).expect("written");
        let output = verify(&["--chain", &chain, path.to_str().expect("UTF-8")]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(lines(&output)[0].starts_with("INVALID: block hash mismatch"), "{output:?}");
    }
    let files: Vec<_> = files.iter().map(String::as_str).collect();
    let output = verify(&[&["--chain", &chain, "--strict"], &files[..]].concat());
    let printed = lines(&output);
    assert_eq!((output.status.code(), printed.len()), (Some(0), 14), "{printed:?}");
    assert!(printed.iter().all(|line| line.starts_with("VALID: block ")), "{printed:?}");
}

/// A file of this content in the directory.
fn file(dir: &Path, name: &str, content: impl AsRef<[u8]>) -> String {
    let path = dir.join(name);
    std::fs::write(&path, content).expect("written");
    path.to_str().expect("UTF-8").to_owned()
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(content).expect("in memory");
    packed.finish().expect("in memory")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_block_and_its_witness_are_files_in_all_forms_that_nodes_answer() {
    let dir = tempfile::tempdir().expect("a directory");
    let (mut node, chain) = chain(dir.path()).await;
    let head = node.head().await;
    let envelope = |result: Value| json!({"jsonrpc": "2.0", "id": 1, "result": result});
    let public = "the node answers";
    let raw = node.public("debug_getRawBlock", json!([head])).await.expect(public);
    let rlp: Bytes = serde_json::from_value(raw.clone()).expect("hex");
    let block = node.public("eth_getBlockByHash", json!([head, true])).await.expect(public);
    let bodies = node.ok("engine_getPayloadBodiesByHashV2", json!([[head]])).await;
    let witness = node.public("debug_executionWitness", json!(["latest"])).await.expect(public);
    let engine = node.node.engine();
    let hash = serde_json::from_value(head.clone()).expect("a hash");
    let record = engine.block(hash).expect("readable").expect("a block");
    let kept = engine.witness(hash).expect("kept").expect("executed");
    let requests: Vec<_> = record.requests.iter().collect();
    let payload = payload_of(&block, &record.block, &bodies[0]["blockAccessList"]);
    let parent_root = &block["parentBeaconBlockRoot"];
    let transactions = record.block.body.transactions.iter();
    let hashes: Vec<_> =
        transactions.filter_map(|it| it.blob_versioned_hashes()).flatten().collect();
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "engine_newPayloadV5",
        "params": [payload, hashes, parent_root, requests]});
    let witness_rlp: Vec<u8> =
        witness::rlp::parts(&kept).into_iter().flat_map(|part| part.to_vec()).collect();

    let blocks = [
        ("raw.json", raw.to_string().into_bytes()),
        ("raw-answer.json", envelope(raw.clone()).to_string().into_bytes()),
        ("block.rlp", rlp.to_vec()),
        ("block.hex", hex::encode(&rlp).into_bytes()),
        ("block.json", block.to_string().into_bytes()),
        ("block-answer.json", envelope(block.clone()).to_string().into_bytes()),
        ("request.json", request.to_string().into_bytes()),
        ("request.json.gz", gzip(request.to_string().as_bytes())),
    ];
    let witnesses = [
        ("witness.json", witness.to_string().into_bytes()),
        ("answer.json", envelope(witness.clone()).to_string().into_bytes()),
        ("witness.rlp", witness_rlp.clone()),
        ("witness.hex", format!("{}\n", hex::encode_prefixed(&witness_rlp)).into_bytes()),
        (
            "status.json",
            envelope(json!({"status": "VALID",
            "witness": hex::encode_prefixed(&witness_rlp)}))
            .to_string()
            .into_bytes(),
        ),
        ("witness.ssz", witness::ssz::encode(&kept).expect("within the limits")),
        ("witness.ssz.gz", gzip(&witness::ssz::encode(&kept).expect("within the limits"))),
    ];
    let files = |list: &[(&str, Vec<u8>)]| -> Vec<String> {
        list.iter().map(|(name, content)| file(dir.path(), name, content)).collect()
    };
    let (blocks, witnesses) = (files(&blocks), files(&witnesses));
    for (at, block) in blocks.iter().enumerate() {
        let witness = &witnesses[at % witnesses.len()];
        let output = verify(&["--chain", &chain, "--block", block, witness]);
        assert_eq!(output.status.code(), Some(0), "{block}, {witness}: {:?}", lines(&output));
        assert!(lines(&output)[2].ends_with(head.as_str().expect("a hash")));
    }
    // In one document: whatever form the block has. The chain is that of the transactions.
    for block in [raw, block.clone(), request, payload_with(&payload, parent_root, &requests)] {
        let document = json!({"block": block, "witness": witness}).to_string();
        let document = file(dir.path(), "document.json.gz", gzip(document.as_bytes()));
        let output = verify(&["--chain", &chain, &document]);
        assert_eq!(output.status.code(), Some(0), "{:?}", lines(&output));
    }
    let [first, second] = [&blocks[2], &witnesses[2]];
    let output = verify(&["--chain", &chain, "--block", first, second, second]);
    let printed = lines(&output);
    assert_eq!(output.status.code(), Some(4), "{printed:?}");
    assert!(printed[1].contains("has 1 block, fewer than witnesses"), "{printed:?}");
    // Blocks without a witness are not taken for verified.
    let twice = file(dir.path(), "twice.rlp", [&rlp[..], &rlp[..]].concat());
    let output = verify(&["--chain", &chain, "--block", &twice, second]);
    let printed = lines(&output);
    assert_eq!((output.status.code(), &*printed[0]), (Some(4), "VALID"), "{printed:?}");
    let last = printed.last().expect("lines");
    assert!(last.contains("more blocks than there are witnesses"), "{printed:?}");
    // A file of blocks that has none.
    let output = verify(&["--chain", &chain, "--block", second, second]);
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    let output = verify(&["--chain", "mainnet", "--block", first, second]);
    assert_ne!(output.status.code(), Some(0), "{output:?}");
    let output = verify(&["--block", first, second]);
    let printed = lines(&output);
    assert!(printed[0].contains("chain 1337") || output.status.code() != Some(0), "{printed:?}");
}

/// The ExecutionPayloadV4 of a block of Amsterdam.
fn payload_of(block: &Value, sealed: &execution::SealedBlock, access_list: &Value) -> Value {
    let transactions = raw_transactions(&sealed.body.transactions);
    let mut payload = json!({"transactions": transactions, "blockAccessList": access_list});
    for (name, member) in [
        ("parentHash", "parentHash"),
        ("feeRecipient", "miner"),
        ("stateRoot", "stateRoot"),
        ("receiptsRoot", "receiptsRoot"),
        ("logsBloom", "logsBloom"),
        ("prevRandao", "mixHash"),
        ("blockNumber", "number"),
        ("gasLimit", "gasLimit"),
        ("gasUsed", "gasUsed"),
        ("timestamp", "timestamp"),
        ("extraData", "extraData"),
        ("baseFeePerGas", "baseFeePerGas"),
        ("blockHash", "hash"),
        ("withdrawals", "withdrawals"),
        ("blobGasUsed", "blobGasUsed"),
        ("excessBlobGas", "excessBlobGas"),
        ("slotNumber", "slotNumber"),
    ] {
        payload[name] = block[member].clone();
    }
    payload
}

/// The payload with the other parameters beside its fields.
fn payload_with(payload: &Value, parent_root: &Value, requests: &[&Bytes]) -> Value {
    let mut all = payload.clone();
    all["parentBeaconBlockRoot"] = parent_root.clone();
    all["executionRequests"] = json!(requests);
    all
}

/// A certificate of `localhost`, and its key.
pub(crate) fn certificate(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../bench/src/load/tls").join(name)
}

/// The port of a proxy with TLS in front of this address.
pub(crate) async fn tls_proxy(to: std::net::SocketAddr) -> u16 {
    let chain = CertificateDer::pem_file_iter(certificate("localhost.pem")).expect("a file");
    let config =
        ServerConfig::builder_with_provider(rustls::crypto::ring::default_provider().into())
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(
                chain.map(|it| it.expect("PEM")).collect(),
                PrivateKeyDer::from_pem_file(certificate("localhost.key")).expect("a key"),
            );
    let acceptor = TlsAcceptor::from(Arc::new(config.expect("the certificate's key")));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("bound").port();
    tokio::spawn(async move {
        while let Ok((near, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let mut near = acceptor.accept(near).await.ok()?;
                let mut far = TcpStream::connect(to).await.ok()?;
                copy_bidirectional(&mut near, &mut far).await.ok()
            });
        }
    });
    port
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_is_called_over_https_websocket_and_a_unix_socket() {
    let dir = tempfile::tempdir().expect("a directory");
    let (node, chain) = chain(dir.path()).await;
    let port = tls_proxy(node.node.http_addr).await;
    let cacert = certificate("localhost.pem");
    let cacert = cacert.to_str().expect("UTF-8");
    let ipc = node.node.ipc_path.as_ref().expect("it listens").to_str().expect("UTF-8");
    for url in [
        &format!("https://localhost:{port}"),
        &format!("wss://localhost:{port}"),
        &format!("ws://{}", node.node.http_addr),
        ipc,
    ] {
        let args = ["--chain", &chain, "--cacert", cacert, "--rpc", url, "1..7"];
        let output = verify(&args);
        let printed = lines(&output);
        assert_eq!((output.status.code(), printed.len()), (Some(0), 7), "{url}: {printed:?}");
    }
    let output = verify(&["--chain", &chain, "--rpc", ipc, "1..18446744073709551615"]);
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    assert!(lines(&output)[0].contains("verify it in parts"), "{output:?}");
    // Its certificate is signed by another authority.
    let url = format!("https://localhost:{port}");
    let other = certificate("other.pem");
    let other = other.to_str().expect("UTF-8");
    let output = verify(&["--chain", &chain, "--cacert", other, "--rpc", &url, "7"]);
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    let printed = lines(&output);
    assert!(printed[0].contains("--cacert FILE"), "{printed:?}");
    // The path is the server's to judge.
    let with_path = format!("{url}/key");
    for (url, words) in [
        ("ftp://localhost", "neither http(s)://"),
        ("https://", "no host"),
        (&with_path, "HTTP status 404"),
    ] {
        let output = verify(&["--chain", &chain, "--cacert", cacert, "--rpc", url, "7"]);
        assert!(lines(&output)[0].contains(words), "{output:?}");
    }
}
