//! Blocks that are missing come from other execution clients: from geth over its three transports,
//! and real spans from a node of our own. Runs beside geth when a geth binary is there: `GETH`, on
//! the path, or where `go install` puts it.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use alloy_primitives::{B256, Bytes, TxKind, U64};
use alloy_rpc_types_engine::{ForkchoiceState, PayloadAttributes};
use alloy_rpc_types_eth::Header as RpcHeader;
use deponent_node::demo::World;
use engine::{ChainEvent, Engine, Genesis, Verdict};
use execution::{ChainSpec, SealedBlock};
use files::{BlockForm, BlockReader, BlockWriter, ExportBlock};
use rpc::Client;
use serde_json::{Value, json};
use sha2::Digest as _;
use testing::geth::{self, Geth};
use testing::rounds;

use crate::follow_head::Prepared;
use crate::geth::{LEDGER, world};
use crate::support::TestNode;

/// How long a test waits for what is to happen.
const PATIENCE: Duration = Duration::from_secs(580);

/// Blocks of a chain, each with a transaction that stores and three that only pay.
fn chain(world: &World, count: u32) -> Vec<SealedBlock> {
    chain_of(world, count, 3)
}

/// Blocks with so many transactions that only pay.
fn chain_of(world: &World, count: u32, payments: u8) -> Vec<SealedBlock> {
    let chain = ChainSpec::from_config(&world.genesis.config).expect("rules");
    let maker = Engine::new(chain.clone(), Genesis::new(&world.genesis, &chain).expect("a block"));
    let maker = maker.expect("an engine");
    let (mut parent, mut nonce) = (maker.heads().genesis, 0);
    let mut blocks = Vec::new();
    for number in 1..=u64::from(count) {
        let mut sign = |to, input: Bytes| {
            nonce += 1;
            world.sign(nonce - 1, to, input, 100_000).expect("signs")
        };
        let slot = [B256::with_last_byte(number as u8), B256::with_last_byte(7)].concat();
        let mut transactions = vec![sign(TxKind::Call(LEDGER), slot.into())];
        for account in 0..payments {
            let to = B256::with_last_byte(0x80 + account % 64);
            let to = alloy_primitives::Address::from_word(to);
            transactions.push(sign(TxKind::Call(to), Bytes::new()));
        }
        let attributes = PayloadAttributes {
            timestamp: world.genesis.timestamp + 12 * number,
            prev_randao: B256::repeat_byte(1),
            suggested_fee_recipient: LEDGER,
            withdrawals: Some(Vec::new()),
            parent_beacon_block_root: Some(B256::repeat_byte(2)),
            slot_number: world.genesis.config.amsterdam_time.map(|_| number),
            target_gas_limit: None,
        };
        let built = maker.build(parent, attributes, transactions, Bytes::new()).expect("builds");
        parent = built.block.hash();
        assert_eq!(maker.new_block(built.block.clone()).expect("a verdict"), Verdict::Valid);
        blocks.push(built.block);
    }
    blocks
}

/// Waits until a block is the head of a node.
async fn until_head(engine: &Engine, head: B256) {
    let start = Instant::now();
    while engine.heads().head != head {
        assert!(start.elapsed() < PATIENCE, "block {head} never became the head");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn write_chain(path: &Path, blocks: &[SealedBlock]) {
    let mut writer = BlockWriter::create(path, BlockForm::Rlp).expect("a file");
    for block in blocks {
        let export = ExportBlock { block, requests: None, access_list: None };
        writer.write(export).expect("written");
    }
    writer.finish().expect("written");
}

/// A node of ours that follows this upstream, told of a head and of the next payload. The time that
/// it took.
async fn caught_up(world: &World, url: &str, blocks: &[SealedBlock]) -> Duration {
    let genesis = serde_json::to_value(&world.genesis).expect("JSON");
    let follow = vec![url.to_owned()];
    let mut node = TestNode::start_with(genesis, |options| options.follow = follow).await;
    let (next, gap) = blocks.split_last().expect("there are blocks");
    let head = gap.last().expect("there are blocks").hash();
    let start = Instant::now();
    let params = json!([crate::support::state(&json!(head)), null]);
    let answer = node.ok("engine_forkchoiceUpdatedV3", params).await;
    assert_eq!(answer["payloadStatus"]["status"], "SYNCING", "{answer}");
    until_head(node.node.engine(), head).await;
    let took = start.elapsed();
    assert_eq!(node.public("eth_syncing", json!([])).await.expect("an answer"), json!(false));
    let params = payload_params(next);
    let status = node.ok("engine_newPayloadV4", params).await;
    assert_eq!(status["status"], "VALID", "{url}: {status}");
    node.node.stop().await;
    took
}

/// The parameters of `engine_newPayloadV4` for a block without requests.
fn payload_params(block: &SealedBlock) -> Value {
    use alloy_rpc_types_engine::ExecutionPayloadV3;
    let payload = ExecutionPayloadV3::from_block_unchecked(block.hash(), block);
    let root = block.header.parent_beacon_block_root;
    json!([payload, [], root, []])
}

#[tokio::test(flavor = "multi_thread")]
async fn geth_is_followed_over_http_websocket_and_ipc() {
    let folder = tempfile::tempdir().expect("a directory");
    let path = |name: &str| folder.path().join(name);
    let Some(geth) = Geth::find(path("genesis.json")) else { return };
    let world = world(0);
    let count = rounds("DEPONENT_FOLLOW_BLOCKS", 300, 5_000);
    let blocks = chain(&world, count + 1);
    std::fs::write(path("genesis.json"), serde_json::to_vec(&world.genesis).expect("JSON"))
        .expect("written");
    std::fs::write(path("secret.hex"), "7".repeat(64)).expect("written");
    write_chain(&path("chain.rlp"), &blocks[..count as usize]);
    geth.import(&path("geth"), &path("chain.rlp"));
    let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
    let port = port.expect("a free port").port().to_string();
    let ipc = path("geth.ipc").display().to_string();
    let public = ["--http", "--http.api", "eth,debug", "--http.port", &port, "--ipcpath", &ipc];
    let websocket = ["--ws", "--ws.api", "eth,debug", "--ws.port", &port];
    // It answers longer batches with one error in a list, as public endpoints do.
    let limits = ["--rpc.batch-request-limit", "20", "--gcmode", "archive"];
    let arguments = [&public[..], &websocket, &limits].concat();
    let _running = geth.start(&path("geth"), &path("secret.hex"), &arguments);
    let imported = {
        let start = Instant::now();
        let mut import = Command::new(env!("CARGO_BIN_EXE_deponent"));
        import.arg("import").arg("--chain").arg(path("genesis.json"));
        import.arg("--datadir").arg(path("imported")).arg(path("chain.rlp"));
        let output = import.output().expect("it runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        start.elapsed()
    };
    let rate = |took: Duration| (f64::from(count) / took.as_secs_f64()).round();
    println!("{count} blocks: import {} blocks/s", rate(imported));
    for url in [format!("http://127.0.0.1:{port}"), format!("ws://127.0.0.1:{port}"), ipc.clone()] {
        let took = caught_up(&world, &url, &blocks).await;
        println!("{count} blocks: {url} {} blocks/s", rate(took));
    }
}

/// Published chains, hive's and geth's: our own node has them, and another one follows it.
#[tokio::test(flavor = "multi_thread")]
async fn recorded_chains_come_over_from_a_node_of_ours() {
    let Some(fixtures) = testing::fixtures() else { return };
    for name in ["execution-apis/tests", "geth-ethtest", "hivechain-osaka-200", "hive-sync"] {
        let folder = fixtures.join(name);
        let genesis = std::fs::read_to_string(folder.join("genesis.json")).expect("a file");
        let genesis: Value = serde_json::from_str(&genesis).expect("JSON");
        let upstream = TestNode::start(genesis.clone()).await;
        let mut last = upstream.node.engine().heads().genesis;
        let mut count = 0;
        for found in BlockReader::open(&folder.join("chain.rlp")).expect("a file") {
            let block = found.expect("a block").block;
            if block.header.number == 0 {
                continue;
            }
            last = block.hash();
            count += 1;
            let verdict = upstream.node.engine().new_block(block).expect("a verdict");
            assert_eq!(verdict, Verdict::Valid, "{name}");
        }
        choose(upstream.node.engine(), last);
        let address = upstream.node.http_addr.to_string();
        let node = TestNode::start_with(genesis, |options| options.follow = vec![address]).await;
        let state = ForkchoiceState { head_block_hash: last, ..ForkchoiceState::default() };
        let verdict = node.node.engine().forkchoice_updated(state, None).expect("an answer");
        assert!(matches!(verdict.verdict, Verdict::Syncing(_)), "{name}: {verdict:?}");
        until_head(node.node.engine(), last).await;
        assert!(node.node.engine().witness(last).expect("kept").is_some(), "{name}");
        println!("{name}: {count} blocks");
        node.node.stop().await;
        upstream.node.stop().await;
    }
}

/// The first 8,192 blocks of Sepolia, of proof of work, go out of an era1 file into a node of ours,
/// and from that, and from a geth that has imported the file without a state, to others.
#[tokio::test(flavor = "multi_thread")]
async fn the_first_blocks_of_sepolia_come_over_from_a_node_of_ours_and_from_geth() {
    let folder = tempfile::tempdir().expect("a directory");
    let path = |name: &str| folder.path().join(name);
    let Some(geth) = Geth::find(path("genesis.json")) else { return };
    let Some(archive) = geth::archive("sepolia-00000-643a00f7.era1") else { return };
    let genesis = geth.run(&path("geth"), &["--sepolia", "dumpgenesis"]);
    std::fs::write(path("genesis.json"), &genesis).expect("written");
    let genesis: Value = serde_json::from_str(&genesis).expect("JSON");
    let ours = TestNode::start(genesis.clone()).await;
    let mut last = ours.node.engine().heads().genesis;
    for found in BlockReader::open(&archive).expect("a file") {
        let block = found.expect("a block").block;
        if block.header.number == 0 {
            assert_eq!(block.hash(), last);
            continue;
        }
        last = block.hash();
        assert_eq!(ours.node.engine().new_block(block).expect("a verdict"), Verdict::Valid);
    }
    choose(ours.node.engine(), last);
    let text = std::fs::read(&archive).expect("a file");
    std::fs::create_dir(path("archives")).expect("made");
    std::fs::write(path("archives").join(archive.file_name().expect("a name")), &text)
        .expect("written");
    let digest = format!("0x{}\n", alloy_primitives::hex::encode(sha2::Sha256::digest(&text)));
    std::fs::write(path("archives/checksums.txt"), digest).expect("written");
    let archives = path("archives").display().to_string();
    let import = ["--sepolia", "import-history", "--era.format", "era1", &archives];
    geth.run(&path("geth"), &import);
    std::fs::write(path("secret.hex"), "7".repeat(64)).expect("written");
    let public = ["--sepolia", "--http", "--http.api", "eth,debug", "--http.port", "0"];
    let running = geth.start(&path("geth"), &path("secret.hex"), &public);
    let http = running.http_address.clone().expect("it offers HTTP");
    for address in [ours.node.http_addr.to_string(), http] {
        let follow = vec![address.clone()];
        let node = TestNode::start_with(genesis.clone(), |options| options.follow = follow).await;
        let state = ForkchoiceState { head_block_hash: last, ..ForkchoiceState::default() };
        let start = Instant::now();
        let verdict = node.node.engine().forkchoice_updated(state, None).expect("an answer");
        assert!(matches!(verdict.verdict, Verdict::Syncing(_)), "{address}: {verdict:?}");
        until_head(node.node.engine(), last).await;
        assert_eq!(node.node.engine().number(&last), Ok(Some(8_191)));
        println!("{address}: 8191 blocks in {:.1?}", start.elapsed());
        node.node.stop().await;
    }
    ours.node.stop().await;
}

/// A node that has not run a block has its list from the upstream alone.
#[tokio::test(flavor = "multi_thread")]
async fn access_lists_come_over_from_a_node_of_ours() {
    let mut world = world(0);
    world.genesis.config.amsterdam_time = Some(0);
    // With the contracts that its blocks call.
    let forks: alloy_genesis::Genesis =
        serde_json::from_value(crate::support::genesis_of_all_forks()).expect("a genesis");
    for (address, account) in forks.alloc {
        world.genesis.alloc.entry(address).or_insert(account);
    }
    // Smaller blocks run without.
    let blocks = chain_of(&world, 40, 250);
    assert!(blocks.iter().all(|block| block.header.gas_used >= engine::limits::PARALLEL_GAS));
    let genesis = serde_json::to_value(&world.genesis).expect("JSON");
    let upstream = TestNode::start(genesis.clone()).await;
    for block in &blocks {
        let verdict = upstream.node.engine().new_block(block.clone()).expect("a verdict");
        assert_eq!(verdict, Verdict::Valid);
    }
    let last = blocks[39].hash();
    choose(upstream.node.engine(), last);
    let http = upstream.node.http_addr.to_string();
    let ipc = upstream.node.ipc_path.as_ref().expect("it listens").display().to_string();
    for address in [http, ipc] {
        let start = Instant::now();
        // On a machine that is very busy lists may be given up.
        while listed_from(&genesis, &address, last).await == 0 {
            assert!(start.elapsed() < PATIENCE, "no list came from {address}");
        }
    }
    upstream.node.stop().await;
}

/// How many of the 40 blocks up to this one ran with their lists on a node that follows an
/// upstream.
async fn listed_from(genesis: &Value, address: &str, last: B256) -> usize {
    let follow = vec![address.to_owned()];
    let node = TestNode::start_with(genesis.clone(), |options| {
        options.follow = follow;
        options.ports.metrics = Some(([127, 0, 0, 1], 0).into());
    })
    .await;
    let listed = Arc::<AtomicUsize>::default();
    let told = listed.clone();
    node.node.engine().on_event(move |event| {
        if let ChainEvent::Ran(figures) = event {
            told.fetch_add(figures.is_listed.into(), Ordering::Relaxed);
        }
    });
    let state = ForkchoiceState { head_block_hash: last, ..ForkchoiceState::default() };
    let verdict = node.node.engine().forkchoice_updated(state, None).expect("an answer");
    assert!(matches!(verdict.verdict, Verdict::Syncing(_)), "{verdict:?}");
    until_head(node.node.engine(), last).await;
    let listed = listed.load(Ordering::Relaxed);
    let metrics = node.node.metrics_addr.expect("it is offered");
    let (_, text) = crate::metrics::request(metrics, "GET", "/metrics", "", b"").await;
    let text = String::from_utf8(text).expect("text");
    for (name, count) in [("access_lists", listed), ("lies", 0), ("blocks", 40)] {
        let line = format!("deponent_follow_{name}_total{{upstream=\"{address}\"}} {count}.0");
        assert!(text.lines().any(|found| found == line), "{line}: {text}");
    }
    node.node.stop().await;
    listed
}

/// Of an upstream that is not there the answer has no name, and its metrics count errors.
#[tokio::test(flavor = "multi_thread")]
async fn eth_syncing_says_how_far_a_gap_is_filled() {
    let world = world(0);
    let genesis = serde_json::to_value(&world.genesis).expect("JSON");
    let free = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
    let address = free.expect("a free port").to_string();
    let follow = vec![address.clone()];
    let mut node = TestNode::start_with(genesis, |options| {
        options.follow = follow;
        options.ports.metrics = Some(([127, 0, 0, 1], 0).into());
    })
    .await;
    let head = json!(B256::repeat_byte(7));
    let params = json!([crate::support::state(&head), null]);
    let answer = node.ok("engine_forkchoiceUpdatedV3", params).await;
    assert_eq!(answer["payloadStatus"]["status"], "SYNCING", "{answer}");
    let metrics = node.node.metrics_addr.expect("it is offered");
    let errors = format!("deponent_follow_errors_total{{upstream=\"{address}\"}} ");
    let start = Instant::now();
    loop {
        let syncing: Value = node.public.call("eth_syncing", ()).await.expect("an answer");
        let (_, text) = crate::metrics::request(metrics, "GET", "/metrics", "", b"").await;
        let text = String::from_utf8(text).expect("text");
        let value = text.lines().find_map(|line| line.strip_prefix(&errors)).map(str::to_owned);
        let has_failed = value.is_some_and(|value| value.parse::<f64>().expect("a number") > 0.0);
        if syncing["stage"] == "headers" && syncing["upstream"].is_null() && has_failed {
            assert_eq!(syncing["currentBlock"], "0x0", "{syncing}");
            break;
        }
        assert!(start.elapsed() < PATIENCE, "{syncing} {text}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    node.node.stop().await;
}

/// The upstream has all headers and not all blocks: wherever the node is asked, the gap ends at the
/// same block.
#[tokio::test(flavor = "multi_thread")]
async fn every_answer_says_how_far_a_gap_goes() {
    let (world, upstream) = (world(0), Arc::<Prepared>::default());
    let blocks = chain(&world, 130);
    blocks.iter().for_each(|block| add_header(&upstream, block));
    blocks[..70].iter().for_each(|block| add_body(&upstream, block));
    let follow = vec![upstream.serve().await.to_string()];
    let genesis = serde_json::to_value(&world.genesis).expect("JSON");
    let mut node = TestNode::start_with(genesis, |options| {
        options.follow = follow;
        options.ports.metrics = Some(([127, 0, 0, 1], 0).into());
    })
    .await;
    let head = blocks[129].hash();
    let params = json!([crate::support::state(&json!(head)), null]);
    let answer = node.ok("engine_forkchoiceUpdatedV3", params).await;
    assert_eq!(answer["payloadStatus"]["status"], "SYNCING", "{answer}");
    until_head(node.node.engine(), blocks[63].hash()).await;
    let start = Instant::now();
    while node.node.engine().number(&blocks[69].hash()).expect("read").is_none() {
        assert!(start.elapsed() < PATIENCE, "block 70 never ran");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let syncing: Value = node.public.call("eth_syncing", ()).await.expect("an answer");
    let numbers = [&syncing["currentBlock"], &syncing["highestBlock"], &syncing["stage"]];
    assert_eq!(numbers, [&json!("0x40"), &json!("0x82"), &json!("blocks")]);
    let status: Value =
        node.unix_client().await.call("deponent_status", json!([])).await.expect("an answer");
    let syncing = &status["syncing"];
    assert_eq!((&syncing["currentBlock"], &syncing["highestBlock"]), (&json!(64), &json!(130)));
    let (_, ready) = crate::metrics::request(node.node.http_addr, "GET", "/ready", "", b"").await;
    let ready: Value = serde_json::from_slice(&ready).expect("JSON");
    let expected = [
        format!("the head that the consensus client chose is not known yet: {head}"),
        "not in step: the head is block 64, the highest block heard of 130".into(),
    ];
    assert_eq!(ready["reasons"], json!(expected));
    let metrics = node.node.metrics_addr.expect("it is offered");
    let (_, text) = crate::metrics::request(metrics, "GET", "/metrics", "", b"").await;
    let text = String::from_utf8(text).expect("text");
    for line in ["deponent_block_number{block=\"highest_known\"} 130", "missing_blocks 60"] {
        assert!(text.contains(line), "{line}: {text}");
    }
    node.node.stop().await;
}

fn choose(engine: &Engine, head: B256) {
    let state = ForkchoiceState { head_block_hash: head, ..ForkchoiceState::default() };
    assert!(engine.choose_head(state).expect("an answer").is_applied);
}

/// A process that is killed, and the files that it leaves.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        self.0.kill().unwrap_or_default();
        self.0.wait().expect("it ends");
    }
}

/// Starts the program on a data directory, and connects to its engine port.
async fn started(folder: &Path, upstream: &str) -> (Killed, Client, PathBuf) {
    let data = folder.join("data");
    let log = folder.join("log");
    let ipc = data.join("deponent.ipc");
    let mut command = Command::new(env!("CARGO_BIN_EXE_deponent"));
    command.arg("node").arg("--chain").arg(folder.join("genesis.json"));
    command.arg("--datadir").arg(&data).args(["--follow", upstream]);
    command.args(["--authrpc.port", "0", "--http.port", "0", "--log.file"]).arg(&log);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let process = Killed(command.spawn().expect("it starts"));
    let start = Instant::now();
    let address = format!("unix:{}", ipc.display());
    let client = loop {
        match Client::connect(&address, None).await {
            Ok(client) => break client,
            Err(error) => assert!(start.elapsed() < PATIENCE, "it does not start: {error}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    (process, client, log)
}

/// The upstream has a further part of the blocks in each round, so each kill but the last one comes
/// while blocks are missing.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_killed_half_way_goes_on() {
    let world = world(0);
    let blocks = chain(&world, 600);
    let folder = tempfile::tempdir().expect("a directory");
    let genesis = serde_json::to_value(&world.genesis).expect("JSON");
    std::fs::write(folder.path().join("genesis.json"), genesis.to_string()).expect("written");
    let upstream = Arc::<Prepared>::default();
    upstream.set("eth_chainId", &json!([]), json!(U64::from(world.genesis.config.chain_id)));
    blocks.iter().for_each(|block| add_header(&upstream, block));
    let last = blocks[599].hash();
    let address = upstream.serve().await.to_string();
    let number = async |client: &mut Client| -> u64 {
        let number: String = client.call("eth_blockNumber", ()).await.expect("an answer");
        u64::from_str_radix(&number[2..], 16).expect("a number")
    };
    let fork_choice = json!([crate::support::state(&json!(last)), null]);
    let mut reached = 0;
    for parts in 1..=6 {
        let there = 100 * parts;
        blocks[there - 100..there].iter().for_each(|block| add_body(&upstream, block));
        let (process, mut client, log) = started(folder.path(), &address).await;
        let at_start = number(&mut client).await;
        assert!(at_start >= reached, "what was the head is lost: {at_start}, {reached}");
        let method = "engine_forkchoiceUpdatedV3";
        let answer: Value = client.call(method, fork_choice.clone()).await.expect("an answer");
        assert_eq!(answer["payloadStatus"]["status"], "SYNCING", "{answer}");
        // The head follows in steps of 64 blocks, and at the end of the gap.
        let wanted = if there == 600 { 600 } else { there as u64 - 63 };
        let start = Instant::now();
        while number(&mut client).await < wanted {
            assert!(start.elapsed() < PATIENCE, "{}", read(&log));
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        reached = number(&mut client).await;
        assert!(reached <= there as u64, "{reached} of {there}");
        let syncing: Value = client.call("eth_syncing", ()).await.expect("an answer");
        assert_eq!(syncing != json!(false), there < 600, "{there}: {syncing}");
        // Without a word: as a power cut of the process.
        drop(process);
    }
    let (_process, mut client, log) = started(folder.path(), &address).await;
    let answer: Value =
        client.call("engine_forkchoiceUpdatedV3", fork_choice).await.expect("an answer");
    assert_eq!(answer["payloadStatus"]["status"], "VALID", "{answer}, {}", read(&log));
    // The log does not ask for anything while the blocks are fetched.
    let log = read(&log);
    let hash = last;
    let begun =
        format!("filling a gap from=1 to=600 hash={hash} blocks=600 upstreams=\"{address}\"");
    assert!(log.contains(&begun), "{log}");
    for words in ["a block is missing", "names a head that is not known"] {
        assert!(!log.contains(words), "{log}");
    }
}

/// Prepares the answers about a block's header.
fn add_header(upstream: &Prepared, block: &SealedBlock) {
    let (hash, inner) = (block.hash(), block.header.clone());
    let header = RpcHeader { hash, inner, total_difficulty: None, size: None };
    upstream.add_header(&serde_json::to_value(header).expect("JSON"));
}

/// Prepares the answer to a question for a block.
fn add_body(upstream: &Prepared, block: &SealedBlock) {
    let rlp = json!(Bytes::from(alloy_rlp::encode(&**block)));
    upstream.set("debug_getRawBlock", &json!([block.hash()]), rlp);
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}
