//! RLP and JSON, plain and packed.

use std::fs;

use alloy_consensus::transaction::{Recovered, TransactionInfo};
use alloy_primitives::{Address, B256, hex};
use deponent_files::limits::PACKED_BYTES;
use deponent_files::{BlockForm, BlockReader, FileBlock, read_file};
use execution::{SealedBlock, recover_senders};
use serde_json::{Value, json};

use super::{blocks, read, refused, rlp, try_read};
use testing::{Folder, fixtures};

#[test]
fn files_of_rlp_are_read_block_by_block() {
    let Some(fixtures) = fixtures() else { return };
    let chains = [
        ("hive-sync", 3000),
        ("geth-ethtest", 600),
        ("hivechain-osaka-200", 200),
        ("execution-apis/tests", 54),
    ];
    for (name, length) in chains {
        let folder = fixtures.join(name);
        let found = read(&folder.join("chain.rlp"));
        let head: Value =
            serde_json::from_slice(&fs::read(folder.join("headfcu.json")).expect("a file"))
                .expect("JSON");
        let head: B256 =
            serde_json::from_value(head["params"][0]["headBlockHash"].clone()).expect("a hash");
        assert_eq!(found.len(), length, "{name}");
        assert_eq!(found.last().expect("blocks").block.hash(), head, "{name}");
        assert!(found.windows(2).all(|pair| {
            pair[0].block.hash() == pair[1].block.header.parent_hash
                && pair[1].position.index == pair[0].position.index + 1
                && pair[1].position.offset
                    == pair[0].position.offset + pair[0].block.rlp_bytes() as u64
        }));
        // The whole file is what its blocks encode to.
        assert_eq!(fs::read(folder.join("chain.rlp")).expect("a file"), rlp(&blocks(&found)));
    }
}

#[test]
fn files_of_payloads_are_those_of_the_rlp() {
    let Some(fixtures) = fixtures() else { return };
    for name in ["geth-ethtest", "hivechain-osaka-200"] {
        let folder = fixtures.join(name);
        let chain = blocks(&read(&folder.join("chain.rlp")));
        let payloads = read(&folder.join("newpayload.fixed.json"));
        assert_eq!(blocks(&payloads), chain, "{name}");
        let prague = |block: &&FileBlock| block.block.header.requests_hash.is_some();
        assert!(payloads.iter().filter(prague).all(|block| block.requests.is_some()));
    }
    let one = read(&fixtures.join("hive-sync/headnewpayload.json"));
    let chain = read(&fixtures.join("hive-sync/chain.rlp"));
    assert_eq!(one.len(), 1);
    assert_eq!(one[0].block, chain.last().expect("blocks").block);
    let lines = read(&fixtures.join("witness-chain/payloads.jsonl"));
    assert_eq!(lines.len(), 207);
    assert_eq!(lines[206].position.index, 206);
}

#[test]
fn files_of_eth_get_block_answers_are_those_of_the_rlp() {
    let Some(fixtures) = fixtures() else { return };
    let folder = Folder::new();
    for name in ["geth-ethtest", "execution-apis/tests"] {
        let chain = blocks(&read(&fixtures.join(name).join("chain.rlp")));
        let has_all = |block: &&SealedBlock| block.body.ommers.is_empty();
        let chain: Vec<_> = chain.into_iter().filter(|block| has_all(&block)).collect();
        let lines: Vec<String> = chain.iter().map(|block| rpc_block(block).to_string()).collect();
        assert_eq!(blocks(&read(&folder.write("blocks.jsonl", lines.join("\n")))), chain, "{name}");
    }
    // Answers of a client, as they are.
    let answers = fixtures.join("execution-apis/tests/eth_getBlockByNumber");
    for name in ["get-genesis.io", "get-latest.io", "get-finalized.io", "get-safe.io"] {
        let text = fs::read_to_string(answers.join(name)).expect("a file");
        let answer = text.lines().find_map(|line| line.strip_prefix("<< ")).expect("an answer");
        assert_eq!(read(&folder.write("answer.json", answer)).len(), 1, "{name}");
    }
    let text = fs::read_to_string(answers.join("get-block-london-fork.io")).expect("a file");
    let answer = text.lines().find_map(|line| line.strip_prefix("<< ")).expect("an answer");
    refused(&folder.write("answer.json", answer), &["only the hashes", "ask for whole ones"]);
}

/// `deponent rpc debug_getRawBlock` prints the first of these.
#[test]
fn files_of_hex_are_those_of_the_rlp() {
    let Some((_, block)) = request() else { return };
    let folder = Folder::new();
    let hex = alloy_primitives::hex::encode(alloy_rlp::encode(block.clone().into_block()));
    for text in [
        format!("\"0x{hex}\"\n"),
        format!("\u{feff}0x{hex}\r\n"),
        format!("{hex}\n\n\"0x{hex}\" 0x{hex}"),
    ] {
        let expected = vec![block.clone(); text.matches(&hex).count()];
        assert_eq!(blocks(&read(&folder.write("blocks.hex", text))), expected);
    }
    for text in [format!("\"{hex}"), format!("{hex}\""), format!("0x0x{hex}"), "fee".into()] {
        refused(&folder.write("blocks.hex", text), &[]);
    }
}

fn rpc_block(block: &SealedBlock) -> Value {
    let mut senders = recover_senders(&block.body.transactions).expect("signed").into_iter();
    let answer = alloy_rpc_types_eth::Block::from_consensus(block.clone().into_block(), None);
    let whole = answer.map_transactions(|transaction| {
        let sender = senders.next().expect("one a transaction");
        let recovered = Recovered::new_unchecked(transaction, sender);
        let info = TransactionInfo { block_hash: Some(block.hash()), ..TransactionInfo::default() };
        alloy_rpc_types_eth::Transaction::from_transaction(recovered, info)
    });
    json!({"jsonrpc": "2.0", "id": 1, "result": whole})
}

#[test]
fn a_packed_file_is_read_as_it_unpacks() {
    let Some(fixtures) = fixtures() else { return };
    let plain = fs::read(fixtures.join("geth-ethtest/chain.rlp")).expect("a file");
    let chain = blocks(&read(&fixtures.join("geth-ethtest/chain.rlp")));
    let folder = Folder::new();
    let half = plain.len() / 2;
    // Members and frames may follow each other anywhere.
    let gzip = [gzip(&plain[..half]), gzip(&plain[half..])].concat();
    assert_eq!(blocks(&read(&folder.write("chain.any", &gzip))), chain);
    let skipped = [&[0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"any"].concat();
    let frames = [zstd(&plain[..half]), skipped.clone(), zstd(&plain[half..])].concat();
    assert_eq!(blocks(&read(&folder.write("chain.any", &frames))), chain);
    assert_eq!(blocks(&read(&folder.write("chain.any", [skipped, frames].concat()))), chain);

    let words = ["byte", "of the decompressed content"];
    refused(&folder.write("chain.any", &gzip[..gzip.len() / 3]), &[&words[..], &["gzip"]].concat());
    let mut broken = gzip.clone();
    *broken.last_mut().expect("bytes") ^= 1;
    refused(&folder.write("chain.any", &broken), &["gzip"]);
    let frame = zstd(&plain);
    refused(&folder.write("chain.any", &frame[..frame.len() / 3]), &["zstd"]);
    refused(&folder.write("chain.any", b"BZh91AY&SY"), &["bzip2", "unpack it first"]);
    refused(&folder.write("chain.any", b"\xfd7zXZ\0"), &["xz", "unpack it first"]);
    // Errors inside have offsets in the decompressed content.
    refused(
        &folder.write("chain.any", self::gzip(b"\x01")),
        &["byte 0 of the decompressed content"],
    );
}

/// Some kilobytes that hold gigabytes are given up before they fill the memory.
#[test]
fn a_packed_file_that_is_read_whole_holds_no_more_than_a_hundred_times_its_length() {
    let (folder, most) = (Folder::new(), u64::MAX);
    let refused = |name: &str, most: u64, words: &str| {
        let error = read_file(&folder.path(name), most).expect_err(name).to_string();
        assert!(error.contains(words), "{name}: {error}");
    };
    let free = usize::try_from(PACKED_BYTES).expect("64 bits");
    let zeros = vec![b'0'; free + 1];
    for (name, packed) in [("zst", zstd(&zeros)), ("gz", gzip(&zeros))] {
        assert!(packed.len() < free / 100, "it is a bomb");
        folder.write(name, packed);
        refused(name, most, "unpack it first");
    }
    folder.write("free.zst", zstd(&zeros[..free]));
    assert_eq!(read_file(&folder.path("free.zst"), most).ok(), Some(zeros[..free].to_vec()));
    refused("free.zst", PACKED_BYTES - 1, "longer than 67108863 bytes");
    // A witness that packs as well as any does.
    let mut random = testing::Random::new(testing::seed());
    let mut word = || format!("{:016x}{:016x}", random.number(), random.number());
    let text: String = (0..=free / 320).map(|_| word().repeat(10)).collect();
    let text = text.into_bytes();
    assert!(text.len() > free);
    folder.write("text.zst", zstd(&text));
    assert_eq!(read_file(&folder.path("text.zst"), most).ok(), Some(text));
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(bytes).expect("memory");
    packed.finish().expect("memory")
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).expect("memory")
}

#[test]
fn files_are_read_from_a_number_on() {
    let Some(fixtures) = fixtures() else { return };
    for name in ["chain.rlp", "newpayload.fixed.json"] {
        let path = fixtures.join("geth-ethtest").join(name);
        let whole = read(&path);
        let reader = BlockReader::open(&path).expect("open").from_number(500);
        let rest: Vec<FileBlock> = reader.map(|block| block.expect("a block")).collect();
        assert_eq!(rest.first().expect("blocks").block.header.number, 500);
        let tail = &whole[whole.len() - rest.len()..];
        for (found, expected) in rest.iter().zip(tail) {
            assert_eq!(found.block, expected.block, "{name}");
            assert_eq!(found.position, expected.position, "{name}");
        }
    }
}

#[test]
fn the_progress_of_a_file_ends_at_its_length() {
    let Some(fixtures) = fixtures() else { return };
    let plain = fixtures.join("geth-ethtest/chain.rlp");
    let folder = Folder::new();
    let packed = folder.write("chain.rlp.gz", gzip(&fs::read(&plain).expect("a file")));
    for path in [plain, packed] {
        let mut reader = BlockReader::open(&path).expect("open");
        let bytes = fs::metadata(&path).expect("a file").len();
        assert_eq!(reader.file_bytes(), Some(bytes));
        let mut done = 0;
        while reader.next().is_some() {
            assert!(reader.done_bytes() >= done);
            done = reader.done_bytes();
        }
        assert_eq!(reader.done_bytes(), bytes);
    }
}

/// A request of `engine_newPayload` out of geth's chain, of Prague.
fn request() -> Option<(Value, SealedBlock)> {
    let folder = fixtures()?.join("geth-ethtest");
    let text = fs::read(folder.join("newpayload.fixed.json")).expect("a file");
    let mut requests: Vec<Value> = serde_json::from_slice(&text).expect("JSON");
    let chain = read(&folder.join("chain.rlp"));
    // One with requests.
    let has_some = |request: &Value| request["params"][3].as_array().is_some_and(|r| !r.is_empty());
    let index = requests.iter().position(has_some).expect("a block with requests");
    let request = requests.swap_remove(index);
    let hash: B256 =
        serde_json::from_value(request["params"][0]["blockHash"].clone()).expect("a hash");
    let block = chain.into_iter().find(|block| block.block.hash() == hash).expect("its block");
    Some((request, block.block))
}

#[test]
fn a_payload_is_read_in_every_form() {
    let Some((request, block)) = request() else { return };
    let folder = Folder::new();
    let params = request["params"].clone();
    let mut beside = params[0].clone();
    beside["versionedHashes"] = params[1].clone();
    beside["parentBeaconBlockRoot"] = params[2].clone();
    beside["executionRequests"] = params[3].clone();
    let mut renamed = beside.clone();
    renamed["expectedBlobVersionedHashes"] = renamed["versionedHashes"].take();
    renamed.as_object_mut().expect("an object").remove("versionedHashes");
    let mut with_witness = request.clone();
    with_witness["method"] = json!("engine_newPayloadWithWitnessV4");
    let labelled = json!({"label": "a test", "number": 1, "params": params});
    let choice = json!({"jsonrpc": "2.0", "id": 2, "method": "engine_forkchoiceUpdatedV3",
                        "params": [{"headBlockHash": block.hash()}, null]});
    let forms = [
        request.to_string(),
        format!("{request:#}"),
        params.to_string(),
        format!("{params:#}"),
        beside.to_string(),
        renamed.to_string(),
        with_witness.to_string(),
        labelled.to_string(),
        rpc_block(&block).to_string(),
        rpc_block(&block)["result"].to_string(),
        format!("\u{feff}{request}"),
        format!("\r\n {request}\r\n\r\n"),
        format!("[{request}]"),
        format!("[]{request}"),
        format!("{choice}\n{request}\n{choice}"),
        format!("{}\n{request}", json!({"deponent": "payloads", "version": 1, "from": 3})),
    ];
    for form in &forms {
        let found = read(&folder.write("payloads.jsonl", form));
        assert_eq!(blocks(&found), std::slice::from_ref(&block), "{form:.300}");
    }
    // One behind the other, and in a list with white space.
    let all = forms[..10].join("\n");
    assert_eq!(read(&folder.write("payloads.jsonl", all)).len(), 10);
    let list = format!("[ {request} ,\n{request} ]\n{request}");
    let found = read(&folder.write("payloads.jsonl", list));
    assert_eq!(found.iter().map(|block| block.position.index).collect::<Vec<_>>(), [0, 1, 2]);
}

#[test]
fn a_payload_without_requests_needs_no_list_of_them() {
    let Some((request, _)) = request() else { return };
    let folder = Folder::new();
    let path = fixtures().expect("fixtures").join("geth-ethtest/newpayload.fixed.json");
    let text = fs::read(path).expect("a file");
    let requests: Vec<Value> = serde_json::from_slice(&text).expect("JSON");
    let without = requests.iter().find(|request| request["params"][3] == json!([]));
    let params = &without.expect("a block of Prague without requests")["params"];
    let mut payload = params[0].clone();
    payload["parentBeaconBlockRoot"] = params[2].clone();
    let found = read(&folder.write("payload.json", payload.to_string()));
    assert_eq!(found[0].requests, Some(Default::default()));

    let mut payload = request["params"][0].clone();
    refused(
        &folder.write("payload.json", payload.to_string()),
        &["line 1, block 1 of the file, byte 0", "parentBeaconBlockRoot is missing"],
    );
    payload["parentBeaconBlockRoot"] = request["params"][2].clone();
    refused(
        &folder.write("payload.json", payload.to_string()),
        &["blockHash", "executionRequests give"],
    );
}

#[test]
fn a_payload_that_is_wrong_is_refused_with_its_place() {
    let Some((request, _)) = request() else { return };
    let folder = Folder::new();
    let check = |change: &dyn Fn(&mut Value), words: &[&str]| {
        let mut wrong = request.clone();
        change(&mut wrong);
        let path = folder.write("payloads.jsonl", format!("{request}\n{wrong}\n{request}"));
        let (found, error) = try_read(&path);
        assert_eq!(found.len(), 1);
        let place = format!("line 2, block 2 of the file, byte {}", request.to_string().len() + 1);
        super::check_error(&path, &error.expect("an error"), &[&[&place[..]], words].concat());
    };
    check(&|wrong| wrong["params"][0]["gasUsed"] = json!("0x1"), &["blockHash", "give 0x"]);
    check(&|wrong| wrong["params"][1] = json!([B256::ZERO]), &["versioned hashes"]);
    check(&|wrong| wrong["params"][2] = json!(B256::ZERO), &["parentBeaconBlockRoot"]);
    check(&|wrong| wrong["params"][3] = json!([]), &["executionRequests"]);
    check(&|wrong| wrong["params"][0]["transactions"] = json!(["0x02c0"]), &["block"]);
    check(&|wrong| wrong["params"] = json!([]), &["parameters is empty"]);
    check(&|wrong| wrong["params"].as_array_mut().unwrap().push(json!([])), &["5 parameters"]);
    check(&|wrong| wrong["method"] = json!("eth_call"), &["eth_call"]);
    check(&|wrong| wrong["params"][0]["gasUsed"] = json!("x"), &["the payload", "at its byte"]);
    check(
        &|wrong| drop(wrong["params"][0].as_object_mut().unwrap().remove("stateRoot")),
        &["missing field `stateRoot`"],
    );
    check(&|wrong| *wrong = json!({"any": 1}), &["none of method, params, result"]);
    check(&|wrong| *wrong = json!({"result": null}), &["none of"]);
    check(&|wrong| *wrong = json!({"deponent": "payloads", "version": 2}), &["version 2"]);
    // A line cut short is found where it is cut, and not at the next one's end.
    let text = request.to_string();
    let cut = format!("{}\n{request}", &text[..text.len() / 2]);
    refused(&folder.write("payloads.jsonl", cut), &["line 1", "the line ends inside a string"]);
    let cut = &text[..text.len() - 2];
    refused(&folder.write("payloads.jsonl", cut), &["byte 0", "the file ends inside this value"]);
    for (text, words) in [
        ("[{\"id\":1},", "none of"),
        ("{} x", "none of"),
        ("[", "the file ends inside this value"),
        ("[[]]", "the payload: "),
        ("]", "none of them begins with ']'"),
        ("[1]", "the payload: an object expected"),
        ("[[], 2]", "the payload: an object expected"),
        ("[{\"method\":\"engine_forkchoiceUpdatedV1\",\"params\":[]}", "ends inside a list"),
        ("[{\"method\":\"engine_forkchoiceUpdatedV1\",\"params\":[]} 1]", "expected, '1' found"),
    ] {
        refused(&folder.write("payloads.jsonl", text), &[words]);
    }
    let deep = format!("{{\"a\":{}", "[".repeat(100_000));
    refused(&folder.write("payloads.jsonl", deep), &["brackets inside one another"]);
}

/// serde reads the members of a struct from an array, too.
#[test]
fn a_withdrawal_that_is_an_array_is_refused() {
    let Some((request, block)) = request() else { return };
    let folder = Folder::new();
    let array = json!([["0x0", "0x0", Address::ZERO, "0x0"]]);
    let mut payload = request;
    payload["params"][0]["withdrawals"] = array.clone();
    let mut answer = rpc_block(&block);
    answer["result"]["withdrawals"] = array;
    for wrong in [payload, answer] {
        let file = folder.write("payloads.jsonl", wrong.to_string());
        refused(&file, &["expected an object"]);
    }
}

/// A list of empty items takes ten times the memory of its text: it is read up to its bound.
#[test]
fn a_list_of_too_many_items_is_refused() {
    let folder = Folder::new();
    let refuse = |text: String, words: &str| {
        refused(&folder.write("payloads.jsonl", text), &[words]);
    };
    let many = |item: &str, count: usize| format!("[{}{item}]", format!("{item},").repeat(count));
    let address = "0x0000000000000000000000000000000000000000";
    let withdrawal =
        json!({"index": "0x0", "validatorIndex": "0x0", "address": address, "amount": "0x0"});
    for (member, item, most) in [
        ("transactions", json!("0x"), 1 << 20),
        ("withdrawals", withdrawal, 1 << 16),
        ("executionRequests", json!("0x"), 1 << 8),
    ] {
        let item = item.to_string();
        let words = format!("more than {most} items");
        let payload = format!("{{\"{member}\":{},\"blockHash\":\"0x\"}}", many(&item, most));
        refuse(payload, &words);
    }
    refuse(format!("{{\"params\":{}}}", many("1", 16)), "more than 16 items");
    refuse(many("1", 16), "more than 16 items");
}

#[test]
fn rlp_that_is_wrong_is_refused_with_its_place() {
    let Some(fixtures) = fixtures() else { return };
    let chain = blocks(&read(&fixtures.join("geth-ethtest/chain.rlp")));
    let (first, second) = (rlp(&chain[..1]), rlp(&chain[1..2]));
    let folder = Folder::new();
    let place = format!("block 2 of the file, byte {}: ", first.len());
    for end in 1..second.len() {
        let path = folder.write("chain.rlp", [&first[..], &second[..end]].concat());
        refused(&path, &[&place, "bytes expected, the file ends after"]);
    }
    let check = |wrong: &[u8], words: &[&str]| {
        let path = folder.write("chain.rlp", [&first[..], wrong].concat());
        refused(&path, &[&[&place[..]], words].concat());
    };
    check(&[0x80], &["a block as an RLP list expected, byte 0x80 found"]);
    check(&[0xc0], &["the header of a block expected"]);
    check(&[0xff; 20], &["no block has over"]);
    check(&[&[0xf9, 0x02, 0x00][..], &[0; 512]].concat(), &["the header of a block expected"]);
    let mut wrong = second.clone();
    *wrong.last_mut().expect("bytes") = 0xc1;
    check(&wrong, &["block RLP"]);
}

#[test]
fn a_file_without_blocks_is_refused() {
    let folder = Folder::new();
    refused(&folder.write("empty", ""), &["this one is empty"]);
    refused(&folder.write("white", " \n"), &["this one is empty"]);
    refused(&folder.write("text", "hello"), &["RLP, era1, ere, era or JSON", "'h'"]);
    refused(&folder.write("bytes", [0, 1, 2]), &["byte 0x00"]);
    refused(&folder.path("absent"), &["No such file"]);
    refused(folder.directory(), &["is a directory"]);
    let form = |name: &str, content: &[u8]| {
        BlockReader::open(&folder.write(name, content)).map(|reader| reader.form()).ok()
    };
    assert_eq!(form("any", b"\xf9\0\0"), Some(BlockForm::Rlp));
    assert_eq!(form("any", b" {"), Some(BlockForm::Json));
    assert_eq!(form("any", b"e2\0\0\0\0\0\0\x03\0"), Some(BlockForm::Era1));
    assert_eq!(form("any", b"e2\0\0\0\0\0\0\x01\0"), Some(BlockForm::Era));
    assert_eq!(form("any", b"e2\0\0\0\0\0\0"), None);
}

#[test]
fn mainnets_first_block_is_read() {
    let Some(fixtures) = fixtures() else { return };
    let path = fixtures.join("ethereum-tests/BasicTests/genesishashestest.json");
    let test: Value = serde_json::from_slice(&fs::read(path).expect("a file")).expect("JSON");
    let genesis = hex::decode(test["genesis_rlp_hex"].as_str().expect("hex")).expect("hex");
    let folder = Folder::new();
    let found = read(&folder.write("genesis.rlp", genesis));
    assert_eq!(hex::encode(found[0].block.hash()), test["genesis_hash"].as_str().expect("hex"));
}
