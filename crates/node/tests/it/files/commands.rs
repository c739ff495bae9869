//! The commands on a data directory, as processes, on the published chain: what they fill, copy,
//! check and cut, and that they go on where they were stopped.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use alloy_primitives::{Address, B256, Bytes, U256, hex};
use alloy_rpc_types_engine::PayloadAttributes;
use deponent_node::{Node, NodeOptions};
use engine::{Engine, EngineOptions, Genesis, Verdict};
use execution::{ChainSpec, SealedBlock};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rpc::Client;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use state::{Database, DirectoryDisk, MemoryDisk};
use trie::versioned::RecordSink;

use super::{blocks, read};
use crate::support::published_chain;
use testing::geth::path_text as text;
use testing::{Folder, geth};

/// Blocks of proof of work in the chain, the genesis not counted.
const MINED: usize = 35;

/// The published chain with its genesis, and a place to work.
struct Chain {
    folder: Folder,
    genesis: PathBuf,
    file: PathBuf,
}

impl Chain {
    fn new() -> Option<Self> {
        let ((fixtures, genesis), folder) = (published_chain()?, Folder::new());
        let genesis = folder.write("genesis.json", genesis);
        Some(Self { folder, genesis, file: fixtures.join("chain.rlp") })
    }

    /// A command on the data directory of this name.
    fn command(&self, data: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_deponent"));
        command.args(arguments).arg("--datadir").arg(self.folder.path(data));
        command
    }

    /// Runs a command to its end: whether it succeeded, and what it has said.
    fn try_run(&self, data: &str, arguments: &[&str]) -> (bool, String) {
        let output = self.command(data, arguments).output().expect("run");
        let said = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(said).expect("UTF-8"))
    }

    #[track_caller]
    fn run(&self, data: &str, arguments: &[&str], words: &str) {
        let (done, said) = self.try_run(data, arguments);
        assert!(done && said.contains(words), "{arguments:?}: {words:?} is not in {said}");
    }

    #[track_caller]
    fn refused(&self, data: &str, arguments: &[&str], words: &str) {
        let (done, said) = self.try_run(data, arguments);
        assert!(!done && said.contains(words), "{arguments:?}: {words:?} is not in {said}");
    }

    fn import(&self, data: &str, words: &str) {
        let (genesis, file) = (text(&self.genesis), text(&self.file));
        self.run(data, &["import", "--chain", genesis, file], words);
    }
}

#[test]
fn a_data_directory_is_filled_checked_cut_and_filled_again() {
    let Some(chain) = Chain::new() else { return };
    let imported = read(&chain.file);
    let last = &imported.last().expect("blocks").block;
    chain.import("data", "54 blocks imported");
    chain.import("data", "0 blocks imported; the head is block 54");
    chain.run("data", &["db", "stats"], "55 blocks, 55 canonical");
    let whole = last.header.state_root.to_string();
    chain.run("data", &["db", "verify"], &format!("nodes is {whole}"));

    chain.run("data", &["db", "index"], "0 blocks indexed; transactions and logs are indexed from");
    chain.run("data", &["db", "index", "--anew"], "55 blocks indexed");
    chain.run("data", &["db", "stats"], "transactions and logs are indexed from block 0");
    chain.run("data", &["db", "verify"], &whole);

    chain.run("data", &["db", "unwind", "--to", "40"], "14 canonical blocks dropped");
    let root = imported[39].block.header.state_root.to_string();
    chain.run("data", &["db", "verify"], &format!("nodes is {root}"));
    chain.refused("data", &["db", "unwind", "--to", "41"], "there is no block 41");
    chain.import("data", "14 blocks imported; the head is block 54");
    chain.run("data", &["db", "verify"], &whole);

    // Copying takes nothing away, whatever is to be kept.
    let copy = chain.folder.path("copy.rlp");
    let little = ["export", text(&copy), "--history.retain-blocks", "1"];
    chain.run("data", &little, "blocks 1 to 54 are in");
    assert_eq!(fs::read(&copy).expect("a file"), fs::read(&chain.file).expect("a file"));
    chain.run("data", &["db", "stats"], "states are kept from block 0");

    chain.run("data", &["db", "prune", "--history.retain-blocks", "5"], "after block 49");
    chain.run("data", &["db", "verify"], &whole);
    chain.refused("data", &["db", "unwind", "--to", "48"], "states are kept from block 49");
    chain.run("data", &["db", "unwind", "--to", "49"], "the head is block 49");
    chain.run("data", &["db", "verify"], "block 49");
    let out = chain.folder.path("out");
    let export = ["export", text(&out)];
    for command in [
        &["db", "stats"][..],
        &["db", "index"],
        &["db", "prune"],
        &export,
        &["import", "-"],
        &["node"],
    ] {
        chain.refused("none", command, "holds no chain");
        assert!(!chain.folder.path("none").exists(), "{command:?}");
    }
}

/// Blocks on `parent`, so many; `tag` makes them others than their twins.
fn branch(engine: &Engine, parent: B256, tag: u8, count: u64) -> Vec<SealedBlock> {
    let mut parent = parent;
    let next = |_| {
        let timestamp =
            engine.block(parent).expect("memory").expect("valid").block.header.timestamp;
        let attributes = PayloadAttributes {
            timestamp: timestamp + 12,
            prev_randao: B256::ZERO,
            suggested_fee_recipient: Address::ZERO,
            withdrawals: Some(Vec::new()),
            parent_beacon_block_root: None,
            slot_number: None,
            target_gas_limit: None,
        };
        let built = engine.build(parent, attributes, Vec::new(), vec![tag].into()).expect("built");
        assert_eq!(engine.new_block(built.block.clone()), Ok(Verdict::Valid));
        parent = built.block.hash();
        built.block
    };
    (0..count).map(next).collect()
}

#[test]
fn an_import_passes_over_what_is_there_and_nothing_else() {
    let json = r#"{"config": {"chainId": 7, "terminalTotalDifficulty": 0,
        "terminalTotalDifficultyPassed": true, "homesteadBlock": 0, "eip150Block": 0,
        "eip155Block": 0, "eip158Block": 0, "byzantiumBlock": 0, "constantinopleBlock": 0,
        "petersburgBlock": 0, "istanbulBlock": 0, "berlinBlock": 0, "londonBlock": 0,
        "shanghaiTime": 0}, "gasLimit": "0x1c9c380", "difficulty": "0x0", "alloc": {}}"#;
    let folder = Folder::new();
    let genesis = folder.write("genesis.json", json);
    let file: alloy_genesis::Genesis = serde_json::from_str(json).expect("JSON");
    let chain = ChainSpec::from_config(&file.config).expect("in order");
    let first = Genesis::new(&file, &chain).expect("in order");
    let database = Database::open(MemoryDisk::new(), &state::Options::default()).expect("memory");
    let engine = Engine::open(chain, Some(first), database, EngineOptions::default());
    let engine = engine.expect("memory");
    let main = branch(&engine, engine.heads().genesis, 1, 5);
    let side = branch(&engine, main[1].hash(), 2, 4);
    let rlp =
        |blocks: &[SealedBlock]| blocks.iter().flat_map(|it| alloy_rlp::encode(&**it)).collect();
    let write = |name: &str, blocks: &[SealedBlock]| {
        let bytes: Vec<u8> = rlp(blocks);
        folder.write(name, bytes)
    };
    let [main_file, side_file] = [write("main.rlp", &main), write("side.rlp", &side)];
    let both = write("both.rlp", &[&main[..], &side].concat());
    let chain = Chain { folder, genesis, file: main_file };
    let import = |data: &str, file: &Path, words: &str| {
        let arguments = ["import", "--chain", text(&chain.genesis), text(file)];
        chain.run(data, &arguments, words);
    };
    let head = |number: u64, block: &SealedBlock| format!("block {number}, {}", block.hash());
    // Stopped between the branches, and in two files: the last block is the head.
    import("one", &chain.file, &head(5, &main[4]));
    import("one", &both, &format!("4 blocks imported; the head is {}", head(6, &side[3])));
    import("one", &both, &format!("0 blocks imported; the head is {}", head(6, &side[3])));
    import("two", &chain.file, &head(5, &main[4]));
    import("two", &side_file, &head(6, &side[3]));
    // A file that goes no further than the head, of a branch that is not there.
    let more = branch(&engine, main[0].hash(), 3, 2);
    let write = |name: &str, blocks: &[SealedBlock]| {
        let bytes: Vec<u8> = rlp(blocks);
        chain.folder.write(name, bytes)
    };
    let more_file = write("more.rlp", &more);
    import("two", &more_file, "2 blocks imported");
    // Again the last block is the head, though it is lower than others.
    let all = write("all.rlp", &[&main[..], &more].concat());
    import("two", &all, &format!("0 blocks imported; the head is {}", head(3, &more[1])));
    // A skipped block whose state is pruned does not become the head, without an error.
    let arguments = [
        "import",
        "--chain",
        text(&chain.genesis),
        "--history.retain-blocks",
        "0",
        text(&chain.file),
    ];
    import("three", &both, &head(6, &side[3]));
    chain.run("three", &["db", "prune", "--history.retain-blocks", "0"], "block 6 and later");
    chain.run(
        "three",
        &arguments,
        &format!("0 blocks imported; the head is {}", head(6, &side[3])),
    );
    // A file of another chain: what is missing is named, and where this chain begins and is.
    let other = chain.folder.write("other.json", json.replace("0x1c9c380", "0x1c9c381"));
    let arguments = ["import", "--chain", text(&other), text(&chain.file)];
    let (genesis, block) = (engine.heads().genesis, main[0].hash());
    let words = format!(
        "block 1, {block}, cannot be run: block 0, {genesis}, is not known: the file is of another \
         chain: this chain begins with 0x"
    );
    chain.refused("other", &arguments, &words);
    // Ancestors of the head do not move it.
    let old = write("old.rlp", &main[..2]);
    import("one", &old, &format!("0 blocks imported; the head is {}", head(6, &side[3])));
}

/// It takes as much room as the state.
#[test]
fn what_an_init_without_an_end_has_left_is_removed() {
    let folder = Folder::new();
    let genesis = folder.write("genesis.json", include_str!("../../../../../docs/genesis.json"));
    let directory = folder.path("data/chain");
    let disk = DirectoryDisk::open(&directory).expect("a directory");
    let database = Database::open(disk, &state::Options::default()).expect("empty");
    let mut batch = database.batch();
    for _ in 0..1000 {
        batch.append(&[7; 1000]);
    }
    batch.seal().expect("sealed");
    database.persist().expect("written");
    drop(database);
    let nodes = directory.join("nodes-0000000000000000");
    let bytes = || fs::metadata(&nodes).expect("a file").len();
    assert!(bytes() > 1_000_000);
    let chain = Chain { folder, genesis: genesis.clone(), file: genesis };
    chain.run("data", &["init", "--chain", text(&chain.genesis)], "the chain begins with");
    assert!(bytes() < 1_000_000);
    chain.run("data", &["db", "verify"], "block 0");
    assert!(!chain.folder.path("data/chain.unfinished").exists());
}

#[tokio::test]
async fn a_chain_that_begins_with_a_state_says_what_it_lacks() {
    let genesis = include_str!("../../../../../docs/genesis.json");
    let file: alloy_genesis::Genesis = serde_json::from_str(genesis).expect("JSON");
    let spec = ChainSpec::from_config(&file.config).expect("in order");
    let mut header = Genesis::new(&file, &spec).expect("in order").header;
    header.number = 5;
    header.parent_hash = B256::repeat_byte(6);
    header.transactions_root = B256::repeat_byte(7);
    let folder = Folder::new();
    let path = folder.write("genesis.json", genesis);
    let first = folder.write("header.rlp", alloy_rlp::encode(&header));
    let answer = |result: &Value| json!({"jsonrpc": "2.0", "id": 1, "result": result}).to_string();
    let first_hash = header.hash_slow();
    let raw = json!(Bytes::from(alloy_rlp::encode(&header)));
    let mut object = serde_json::to_value(&header).expect("JSON");
    object["hash"] = json!(first_hash);
    let forms = [
        answer(&raw),
        format!("{raw}\n"),
        format!("\u{feff}{}\r\n", raw.as_str().expect("hex")),
        alloy_primitives::hex::encode(alloy_rlp::encode(&header)),
        answer(&object),
        format!(" {object:#}\n"),
    ];
    let forms = forms.map(|text| folder.write(&format!("form-{}", text.len()), text));
    object["ofLaterForks"] = json!("0x1");
    object["hash"] = json!(B256::repeat_byte(1));
    let later = folder.write("later.json", object.to_string());
    let unknown = folder.write("unknown.json", answer(&Value::Null));
    let as_json = folder.write("as_json.json", answer(&json!({"number": "0x5"})));
    header.difficulty = U256::ONE;
    let mined = folder.write("mined.rlp", alloy_rlp::encode(&header));
    let chain = Chain { folder, genesis: path.clone(), file: path };
    let init = |header| {
        let genesis = text(&chain.genesis);
        ["init", "--chain", genesis, "--state", genesis, "--header", text(header)]
    };
    let network = ["import", "--chain", "mainnet", text(&first)];
    chain.refused("mainnet", &network, "geth --mainnet dumpgenesis > genesis.json");
    let network = ["init", "--chain", "hoodi"];
    chain.refused("hoodi", &network, "geth --hoodi dumpgenesis > genesis.json");
    chain.refused("mined", &init(&mined), "block 5 has proof of work");
    chain.refused("unknown", &init(&unknown), "the server has no such block");
    chain.refused("as-json", &init(&as_json), "save the answer of debug_getRawHeader");
    let nope = chain.folder.path("nope");
    chain.refused("nope", &init(&nope), "--header: cannot read");
    let of_other_hash = format!("give the hash {first_hash}, not {}", B256::repeat_byte(1));
    chain.refused("later", &init(&later), &of_other_hash);
    let null = chain.folder.write("null", "null\n");
    chain.refused("null", &init(&null), "the server has no such block");
    for (index, form) in forms.iter().enumerate() {
        let begins = format!("the chain begins with {first_hash}");
        chain.run(&format!("form{index}"), &init(form), &begins);
    }
    // A state that is not of the genesis's own accounts is that of no block that is known.
    let other = genesis.replacen("\"balance\": \"0x0\"", "\"balance\": \"0x1\"", 1);
    let other = chain.folder.write("other.json", other);
    let state = ["init", "--chain", text(&chain.genesis), "--state", text(&other)];
    chain.refused("other", &state, "--header gives the header of the block whose state it is");
    chain.run("data", &init(&first), "the chain begins with");
    let out = chain.folder.path("out");
    for more in [&["--from", "5"][..], &["--from", "5", "--format", "payloads"]] {
        let arguments = [&["export", text(&out)], more].concat();
        chain.refused("data", &arguments, "block 5, whose body is not known");
    }
    for form in ["era1", "ere"] {
        let export = ["export", text(&out), "--format", form];
        chain.refused("data", &export, "an archive would begin with block 8192");
    }
    // A call knows the parent's hash, which the first header names, and none before.
    let mut options = NodeOptions::new(file, chain.folder.path("data"));
    options.ports.metrics = Some(([127, 0, 0, 1], 0).into());
    let node = Node::start(options).await.expect("started");
    let metrics = node.metrics_addr.expect("it is offered");
    let (_, shown) = crate::metrics::request(metrics, "GET", "/metrics", "", b"").await;
    let shown = String::from_utf8(shown).expect("text");
    assert!(shown.contains("deponent_block_number{block=\"oldest_state\"} 5"), "{shown}");
    let mut client = Client::connect(&node.http_addr.to_string(), None).await.expect("connected");
    let back = |blocks: u8| {
        // NUMBER less `blocks`, BLOCKHASH, returned.
        let code = format!("0x60{blocks:02x}430340 5f5260205ff3").replace(' ', "");
        let to = Address::repeat_byte(0x77);
        json!([{"to": to}, "latest", {to.to_string(): {"code": code}}])
    };
    let parent: B256 = client.call("eth_call", back(1)).await.expect("its hash");
    assert_eq!(parent, header.parent_hash);
    let error = client.call::<B256>("eth_call", back(2)).await.expect_err("unknown");
    assert!(error.to_string().contains("header of ancestor 3 is missing"), "{error}");
    assert!(error.to_string().contains("4444"), "{error}");
    drop(client);
    node.stop().await;
    // The log does not call the first block the genesis.
    let log = chain.folder.path("log");
    let ports = ["--http.port", "0", "--authrpc.port", "0", "--ipcdisable"];
    let mut program =
        chain.command("data", &[&["node", "--log.file", text(&log)], &ports[..]].concat());
    let mut program = program.stderr(std::process::Stdio::null()).spawn().expect("run");
    let read = || fs::read_to_string(&log).unwrap_or_default();
    while !read().contains("chain opened") {
        assert!(program.try_wait().expect("asked").is_none(), "{}", read());
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    program.kill().expect("killed");
    program.wait().expect("it ends");
    let first_block = format!(" chain_id=1337 first_block=5 first_hash={}", first_hash);
    assert!(read().contains(&first_block), "{}", read());
    // The state from a pipe.
    let mut command =
        chain.command("piped", &["init", "--state", "-", "--chain", text(&chain.genesis)]);
    command.stdin(fs::File::open(&chain.genesis).expect("a file"));
    let output = command.output().expect("run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The commands keep as much of the past as the node.
#[tokio::test]
async fn commands_keep_what_the_node_keeps() {
    let Some(chain) = Chain::new() else { return };
    let prune = |words: &str, more: &[&str]| {
        chain.run("data", &[&["db", "prune"], more].concat(), words);
    };
    chain.import("data", "54 blocks");
    prune("the states after block 0 and later", &[]);
    let genesis = fs::read(&chain.genesis).expect("a file");
    for (retain_history, from) in [(50, 4), (20, 34)] {
        let genesis = serde_json::from_slice(&genesis).expect("a genesis");
        let mut options = NodeOptions::new(genesis, chain.folder.path("data"));
        options.engine_options = EngineOptions { retain_history, ..EngineOptions::default() };
        Node::start(options).await.expect("started").stop().await;
        let words = format!("the states after block {from} and later");
        chain.import("data", "0 blocks imported");
        prune(&words, &[]);
        prune(&words, &["--history.retain-blocks", "1000"]);
    }
    prune("the states after block 44 and later", &["--history.retain-blocks", "10"]);
}

#[test]
fn a_check_finds_what_is_damaged() {
    let Some(chain) = Chain::new() else { return };
    chain.import("data", "54 blocks");
    let nodes = chain.folder.path("data/chain/nodes-0000000000000000");
    let mut bytes = fs::read(&nodes).expect("a file");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&nodes, bytes).expect("written");
    chain.refused("data", &["db", "verify"], text(&nodes));
}

#[test]
fn an_import_that_is_killed_goes_on() {
    let Some(chain) = Chain::new() else { return };
    let bytes = fs::read(&chain.file).expect("a file");
    for part in 1..8 {
        let mut killed = chain
            .command("data", &["import", "--chain", text(&chain.genesis), "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("run");
        let mut input = killed.stdin.take().expect("piped");
        // It reads while it imports, so how much it has read is unknown.
        input.write_all(&bytes[..bytes.len() * part / 8]).expect("it reads on");
        killed.kill().expect("killed");
        killed.wait().expect("ended");
    }
    chain.import("data", "the head is block 54");
    let root = read(&chain.file).last().expect("blocks").block.header.state_root;
    chain.run("data", &["db", "verify"], &format!("nodes is {root}"));
}

/// At any time from its start to its end.
#[test]
fn an_indexing_that_is_killed_goes_on() {
    let Some(chain) = Chain::new() else { return };
    chain.import("data", "54 blocks");
    let open = || {
        let disk =
            DirectoryDisk::open(chain.folder.path("data").join("chain")).expect("it is there");
        Database::open(disk, &state::Options::default()).expect("it opens")
    };
    let mut random = StdRng::seed_from_u64(testing::seed());
    let begun = Instant::now();
    chain.run("data", &["db", "index", "--anew"], "indexed from block 0");
    let whole = begun.elapsed();
    let blocks = blocks(&read(&chain.file));
    for _ in 0..20 {
        open().drop_lookup().expect("written");
        for _ in 0..random.random_range(1..4) {
            let mut killed = chain
                .command("data", &["db", "index"])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("run");
            std::thread::sleep(whole.mul_f64(random.random_range(0.0..1.2)));
            killed.kill().expect("killed");
            killed.wait().expect("ended");
        }
        chain.run("data", &["db", "index"], "indexed from block 0");
        let database = open();
        assert_eq!(database.indexed_from().expect("readable"), Some(0));
        for block in &blocks {
            let (number, hash, bloom) =
                (block.header.number, block.hash(), block.header.logs_bloom);
            let found = database.blocks_by_bloom(number..=number, &|found| *found == bloom);
            assert_eq!(found.expect("readable"), Some(vec![(number, hash)]));
            for transaction in &block.body.transactions {
                let found = database.transaction_blocks(transaction.hash()).expect("readable");
                assert!(found.contains(&number), "block {number}: {found:?}");
            }
        }
    }
}

#[test]
fn an_export_that_was_stopped_goes_on_if_it_is_the_same() {
    let Some(chain) = Chain::new() else { return };
    chain.import("data", "54 blocks");
    let path = chain.folder.path("copy");
    let partial = chain.folder.path("copy.partial");
    for form in ["rlp", "payloads"] {
        let export = |from: &str, to: &str| {
            let file = text(&path);
            chain.run("data", &["export", file, "--format", form, "--from", from, "--to", to], "");
            fs::read(&path).expect("a file")
        };
        let (other, whole) = (export("38", "40"), export("37", "54"));
        for length in [0, 1, whole.len() / 3, whole.len() - 1, whole.len()] {
            fs::write(&partial, &whole[..length]).expect("written");
            assert_eq!(export("37", "54"), whole, "{form}, {length}");
        }
        // The partial file has other blocks.
        fs::write(&partial, &other).expect("written");
        assert_eq!(export("37", "54"), whole, "{form}");
        fs::write(&partial, &whole).expect("written");
        assert_eq!(export("38", "40"), other, "{form}");
    }
    chain.refused("data", &["export", text(&path), "--to", "55"], "above the head");
    chain.refused("data", &["export", text(&path), "--from", "9", "--to", "8"], "above the last");
}

/// Devices, pipes and links to files are written, not replaced.
#[test]
fn an_export_goes_where_it_is_told() {
    let Some(chain) = Chain::new() else { return };
    chain.import("data", "54 blocks");
    let whole = fs::read(&chain.file).expect("a file");
    for to in ["-", "/dev/stdout"] {
        let output = chain.command("data", &["export", to]).output().expect("run");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.stdout, whole, "{to}");
    }
    let pipe = chain.folder.path("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status().expect("run");
    assert!(made.success());
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || fs::read(pipe).expect("read")
    });
    chain.run("data", &["export", text(&pipe)], "blocks 1 to 54 are written");
    assert_eq!(reader.join().expect("no panic"), whole);
    assert!(!fs::metadata(&pipe).expect("it is there").is_file());

    let (link, file) = (chain.folder.path("link"), chain.folder.write("file", "old"));
    std::os::unix::fs::symlink(&file, &link).expect("linked");
    chain.run("data", &["export", text(&link)], "blocks 1 to 54 are in");
    assert!(link.is_symlink());
    assert_eq!(fs::read(&file).expect("a file"), whole);

    // The target of a link need not exist.
    let (link, file) = (chain.folder.path("early"), chain.folder.path("later"));
    std::os::unix::fs::symlink("later", &link).expect("linked");
    chain.run("data", &["export", text(&link)], "blocks 1 to 54 are in");
    assert!(link.is_symlink());
    assert_eq!(fs::read(&file).expect("a file"), whole);
    let packed = chain.folder.path("packed.gz");
    std::os::unix::fs::symlink("later", &packed).expect("linked");
    chain.refused("data", &["export", text(&packed)], "the names of both end in .gz");

    // A file that has the standard output's name is none of it, and what it held stays.
    chain.folder.write("-", "another");
    for to in ["-", "/dev/stdout"] {
        let path = chain.folder.write("appended", "before ");
        let file = fs::File::options().append(true).open(&path).expect("a file");
        let mut command = chain.command("data", &["export", to]);
        let status = command.current_dir(path.parent().expect("its folder")).stdout(file).status();
        assert!(status.expect("run").success());
        assert_eq!(fs::read(&path).expect("a file"), [b"before ", &whole[..]].concat(), "{to}");
    }
    assert_eq!(fs::read(chain.folder.path("-")).expect("a file"), b"another");

    let folder = chain.folder.path("folder");
    fs::create_dir(&folder).expect("made");
    chain.refused("data", &["export", text(&folder)], "folder: is a directory");
    assert!(!chain.folder.path("folder.partial").exists());
}

#[test]
fn era1_archives_are_written_with_their_checksums_and_read_again() {
    let Some(chain) = Chain::new() else { return };
    chain.import("data", "54 blocks");
    let folder = chain.folder.path("history");
    let export = |to: &str| {
        let folder = text(&folder);
        chain.run("data", &["export", folder, "--format", "era1", "--to", to], "1 file there");
        let files = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("one").path());
        let mut files: Vec<_> = files.collect();
        files.sort();
        let [checksums, file] = &files[..] else { panic!("{files:?}") };
        let written = fs::read(file).expect("a file");
        let checksum = B256::from_slice(&Sha256::digest(&written));
        assert_eq!(fs::read_to_string(checksums).expect("a file"), hex::encode_prefixed(checksum));
        (file.clone(), written)
    };
    let (few, _) = export("10");
    assert_eq!(read(&few).len(), 11);
    // The file of the same epoch takes its place.
    let (file, written) = export("35");
    assert_ne!(few, file);
    assert_eq!(blocks(&read(&file))[1..], blocks(&read(&chain.file))[..MINED]);
    // Complete files are not written again; damaged ones are refused.
    let changed = |path: &Path| path.metadata().and_then(|data| data.modified()).expect("a time");
    let before = changed(&file);
    assert_eq!(export("35"), (file.clone(), written.clone()));
    assert_eq!(export("20"), (file.clone(), written.clone()));
    assert_eq!(changed(&file), before);
    let era1 = ["export", text(&folder), "--format", "era1"];
    chain.run("data", &era1, "blocks 0 to 35 are in");
    fs::write(&file, &written[..written.len() - 1]).expect("written");
    chain.refused("data", &era1, text(&file));
    fs::write(&file, &written).expect("written");
    chain.refused("data", &[&era1[..], &["--to", "36"]].concat(), "proof of stake");
    chain.refused("data", &[&era1[..], &["--from", "7"]].concat(), "multiples of 8192");

    let Some(geth) = geth::binary() else {
        println!("geth does not read it: there is no geth");
        return;
    };
    // geth finds archives by the name of a network that it knows.
    let name = file.file_name().and_then(|name| name.to_str()).expect("a name");
    let named = folder.join(name.replace("unknown", "mainnet"));
    fs::rename(&file, &named).expect("renamed");
    let run = |arguments: &[&str]| {
        let data = chain.folder.path("geth");
        let output = Command::new(&geth).arg("--datadir").arg(data).args(arguments).output();
        let output = output.expect("run");
        let said = String::from_utf8([output.stdout, output.stderr].concat()).expect("UTF-8");
        assert!(output.status.success(), "geth {arguments:?}: {said}");
        said
    };
    run(&["init", text(&chain.genesis)]);
    let said = run(&["import-history", "--era.format", "era1", text(&folder)]);
    assert!(said.contains("Import done"), "{said}");
    let last = read(&named).last().expect("blocks").block.hash();
    assert!(run(&["db", "metadata"]).contains(&last.to_string()));
}

/// A network's archives, of which geth knows the name by that of the network.
fn renamed(file: &Path) -> PathBuf {
    let name = file.file_name().and_then(|name| name.to_str()).expect("a name");
    let named = file.with_file_name(name.replace("unknown", "mainnet"));
    fs::rename(file, &named).expect("renamed");
    named
}

/// Those in a folder, in order.
fn files_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("one").path());
    let mut files: Vec<_> = entries.collect();
    files.sort();
    files
}

#[test]
fn ere_archives_are_written_over_the_merge_and_read_again() {
    let Some(chain) = Chain::new() else { return };
    chain.import("data", "54 blocks");
    let folder = chain.folder.path("history");
    let export = |more: &[&str], words: &str| {
        let arguments = [&["export", text(&folder), "--format", "ere"], more].concat();
        chain.run("data", &arguments, words);
        let files = files_in(&folder);
        let [checksums, file] = &files[..] else { panic!("{files:?}") };
        let checksum = B256::from_slice(&Sha256::digest(fs::read(file).expect("a file")));
        assert_eq!(fs::read_to_string(checksums).expect("a file"), hex::encode_prefixed(checksum));
        file.clone()
    };
    let imported = blocks(&read(&chain.file));
    let few = export(&["--to", "40"], "blocks 0 to 40 are in");
    let file = export(&[], "blocks 0 to 54 are in");
    assert_ne!(few, file);
    assert_eq!(blocks(&read(&file))[1..], imported[..]);
    let hash = hex::encode(&imported[53].hash()[..4]);
    assert_eq!(file, folder.join(format!("unknown-00000-{hash}-noproofs.ere")));
    assert_eq!(export(&["--to", "50"], "blocks 0 to 50 are in"), file);
    let from = ["export", text(&folder), "--format", "ere", "--from", "7"];
    chain.refused("data", &from, "multiples of 8192");
    let other = ["export", text(&folder), "--format", "era1"];
    chain.refused("data", &other, ".era1 files go into a directory without this one");
    let era = ["export", text(&folder), "--format", "era"];
    chain.refused("data", &era, "beacon blocks and beacon states, which only a consensus client");

    let import = |data: &str, file: &Path, words: &str| {
        chain.run(data, &["import", "--chain", text(&chain.genesis), text(file)], words);
    };
    import("copy", &file, "54 blocks imported; the head is block 54");
    import("copy", &folder, "0 blocks imported; the head is block 54");
    let Some(geth) = testing::geth::Geth::find(chain.genesis.clone()) else { return };
    // geth reads ours, and writes the same blocks.
    renamed(&file);
    let data = chain.folder.path("geth");
    geth.run(&data, &["init", text(&chain.genesis)]);
    let said = geth.run(&data, &["import-history", "--era.format", "ere", text(&folder)]);
    assert!(said.contains("Import done"), "{said}");
    let head = imported[53].hash().to_string();
    assert!(geth.run(&data, &["db", "metadata"]).contains(&head));
    let (theirs, data) = (chain.folder.path("theirs"), chain.folder.path("whole"));
    geth.import(&data, &chain.file);
    geth.run(&data, &["export-history", "--era.format", "ere", text(&theirs), "0", "54"]);
    import("from-geth", &theirs, "54 blocks imported; the head is block 54");
    assert_eq!(files_in(&theirs)[1].file_name(), file.file_name());
    chain.run("from-geth", &["db", "verify"], "block 54");
}

#[test]
fn files_come_in_any_order_and_holes_between_them_are_named() {
    let Some(chain) = Chain::new() else { return };
    let all = blocks(&read(&chain.file));
    let folder = chain.folder.path("parts");
    fs::create_dir(&folder).expect("made");
    let part = |name: &str, first: usize, last: usize| {
        let rlp = all[first - 1..last].iter().flat_map(|block| alloy_rlp::encode(&**block));
        let path = folder.join(name);
        fs::write(&path, rlp.collect::<Vec<u8>>()).expect("written");
        path
    };
    let run = |data: &str, files: &[&Path], words: &str, is_done: bool| {
        let files = files.iter().map(|file| text(file));
        let arguments: Vec<&str> =
            ["import", "--chain", text(&chain.genesis)].into_iter().chain(files).collect();
        match is_done {
            true => chain.run(data, &arguments, words),
            false => chain.refused(data, &arguments, words),
        }
    };
    let (a, b, c) = (part("c.rlp", 1, 20), part("b.rlp", 15, 40), part("a.rlp", 41, 54));
    run("one", &[&c, &a, &b], "54 blocks imported; the head is block 54", true);
    run("two", &[&b, &c, &b, &a, &a], "54 blocks imported; the head is block 54", true);
    fs::write(folder.join("notes.txt"), "no chain file").expect("written");
    run("three", &[&folder], "54 blocks imported; the head is block 54", true);
    run("three", &[&c], "0 blocks imported; the head is block 54", true);
    // Archives and others beside each other.
    let export = |to: &Path, form: &str, range: [&str; 2]| {
        let arguments =
            ["export", text(to), "--format", form, "--from", range[0], "--to", range[1]];
        chain.run("three", &arguments, "are in");
    };
    let (era1, lines) = (chain.folder.path("era1"), chain.folder.path("lines.jsonl.gz"));
    export(&era1, "era1", ["0", "35"]);
    export(&lines, "payloads", ["36", "50"]);
    run("four", &[&c, &lines, &era1], "54 blocks imported; the head is block 54", true);

    let hole = format!(
        "blocks 21 to 40 are missing: {} ends with block 20, {} begins with block 41",
        a.display(),
        c.display()
    );
    run("five", &[&c, &a], &hole, false);
    let (late, last) = (part("d.rlp", 22, 30), part("e.rlp", 50, 54));
    let more = format!(
        "blocks 31 to 49 are missing: {} ends with block 30, {} begins with block 50",
        late.display(),
        last.display()
    );
    let one = format!("block 21 is missing: {} ends with block 20", a.display());
    run("five", &[&last, &late, &a], &one, false);
    run("five", &[&last, &late, &a], &more, false);
    let words = format!(
        "blocks 1 to 14 are missing: the chain ends with block 0, {} begins with block 15",
        b.display()
    );
    run("five", &[&b], &words, false);
    // Nothing was imported from files with a hole.
    run("five", &[&a], "20 blocks imported; the head is block 20", true);
    let words = "blocks 21 to 40 are missing: the chain ends with block 20";
    run("five", &[&c], words, false);
    run("five", &[&era1, &c], "blocks 36 to 40 are missing", false);
    let empty = chain.folder.path("empty");
    fs::create_dir(&empty).expect("made");
    run("five", &[&empty], "no chain file in this folder: names end in .era1, .ere, .era", false);

    // A file from a pipe is put in order, too.
    let arguments = ["import", "--chain", text(&chain.genesis), text(&c), "-", text(&a)];
    let mut command = chain.command("six", &arguments);
    let output = command.stdin(fs::File::open(&b).expect("a file")).output().expect("run");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("54 blocks imported; the head is block 54"), "{output:?}");
}

/// The archive of another chain has the numbers of blocks that are there, which are not read.
#[test]
fn an_archive_of_another_chain_is_not_passed_over() {
    let Some(chain) = Chain::new() else { return };
    chain.import("data", "54 blocks");
    let genesis = fs::read_to_string(&chain.genesis).expect("a file");
    let mut genesis: Value = serde_json::from_str(&genesis).expect("JSON");
    genesis["extraData"] = json!("0x6f74686572");
    let other = chain.folder.write("other.json", genesis.to_string());
    chain.run("other", &["init", "--chain", text(&other)], "the chain begins with");
    let folder = chain.folder.path("other-ere");
    chain.run("other", &["export", text(&folder), "--format", "ere"], "blocks 0 to 0 are in");
    let words = "begins with block 0, 0x";
    chain.refused("data", &["import", text(&folder)], words);
    chain.refused("data", &["import", text(&folder)], "the file is of another chain");
}
