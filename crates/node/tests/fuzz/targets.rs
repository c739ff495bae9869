//! One function for each decoder that reads from outside: it takes any bytes, must not panic, and
//! compares what was read with what it is written as. It says whether the bytes were well formed.
//!
//! The tests beside this file run them, and so does cargo-fuzz: see fuzz/README.md.
#![allow(unreachable_pub)] // for cargo-fuzz this is a library

#[path = "checksums.rs"]
mod checksums;
#[cfg(target_os = "linux")]
#[path = "connections.rs"]
mod connections;
#[path = "everyday.rs"]
mod everyday;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use alloy_primitives::map::AddressMap;
use alloy_primitives::{Address, B256, Bloom, Bytes, KECCAK256_EMPTY, U256, hex, keccak256};
use client::Fork;
use client::ssz::{
    BodiesResponse, BuiltPayload, ExecutionPayloadEnvelope, ForkchoiceUpdate,
    ForkchoiceUpdateResponse, PayloadStatus, read_blobs_request, read_bodies_request,
    write_hashes_request,
};
use deponent_node::Api;
use deponent_node::foreign_witness::ForeignWitness;
use engine::{Engine, Genesis};
use execution::stateless::{StatelessInput, StatelessValidationResult};
use execution::{AccessList, ChainSpec};
use files::{AccountReader, BlockForm, BlockReader, BlockWriter, ExportBlock, FileBlock};
use rpc::{Error, Handler, Json, JwtSecret, Limits, Params, RawValue, response};
use state::{
    Database, JournalChoice, JournalMode, MemoryDisk, NewBlock, NewCanonical, NewCode, Options,
    Retained,
};
use tempfile::TempDir;
use testing::disks::{Fault, FaultDisk};
use trie::AccountInfo;
use trie::versioned::{self, MemoryRecords, NodeAddress, RecordSink, Version};

pub use checksums::{era1_file, ere_file, journal};
#[cfg(target_os = "linux")]
pub use connections::{client_connection, server_connection};
pub use everyday::{abi_text, dev_port, pool_log, raw_transaction};

/// Whether a target gets the time that a busy machine takes, and servers that no other input has
/// changed: for the corpus.
pub static IS_PATIENT: AtomicBool = AtomicBool::new(false);

/// A function that is fuzzed.
pub type Target = fn(&[u8]) -> bool;

/// All of them, with their names, and how many times a short run calls each: fewer where a call
/// takes long.
pub const TARGETS: &[(&str, Target, usize)] = &[
    ("abi_text", abi_text, 10_000),
    ("access_list", access_list, 100_000),
    ("block_file", block_file, 10_000),
    ("block_rlp", block_rlp, 50_000),
    #[cfg(target_os = "linux")]
    ("client_connection", client_connection, 1_000),
    ("dev_port", dev_port, 2_000),
    ("engine_port", engine_port, 10_000),
    ("era1_file", era1_file, 10_000),
    ("ere_file", ere_file, 10_000),
    ("foreign_json", foreign_json, 100_000),
    ("foreign_witness", foreign_witness, 50_000),
    ("genesis_file", genesis_file, 2_000),
    ("journal", journal, 300),
    ("jwt", jwt, 100_000),
    ("payload_lines", payload_lines, 10_000),
    ("pool_log", pool_log, 2_000),
    ("raw_transaction", raw_transaction, 20_000),
    ("rest_container", rest_container, 100_000),
    ("rpc_answer", rpc_answer, 100_000),
    ("rpc_message", rpc_message, 100_000),
    #[cfg(target_os = "linux")]
    ("server_connection", server_connection, 2_000),
    ("state_file", state_file, 10_000),
    ("stateless_input", stateless_input, 10_000),
    ("stateless_result", stateless_result, 100_000),
    ("store", store, 1_000),
    ("trie_node", trie_node, 100_000),
    ("trie_records", trie_records, 100_000),
    ("witness_json", witness_json, 50_000),
    ("witness_rlp", witness_rlp, 100_000),
    ("witness_ssz", witness_ssz, 100_000),
];

/// A witness as `engine_newPayloadWithWitness` has it. The fourth item is not kept.
pub fn witness_rlp(data: &[u8]) -> bool {
    let Ok(witness) = witness::rlp::decode(&Bytes::copy_from_slice(data)) else { return false };
    let written = witness::rlp::encode(&witness);
    assert_eq!(witness::rlp::encoded_len(&witness), written.len());
    assert_eq!(witness::rlp::decode(&written.clone().into()).as_ref(), Ok(&witness));
    let content = |mut rlp| alloy_rlp::Header::decode_bytes(&mut rlp, true).expect("it is a list");
    let (_keys, items) = content(&written).split_last().expect("four items");
    assert!(content(data).starts_with(items), "the items are written as they were read");
    true
}

/// JSON of others: what serde_json reads, and short errors.
pub fn foreign_json(data: &[u8]) -> bool {
    let theirs = serde_json::from_slice::<serde_json::Value>(data);
    let is_json = theirs.is_ok();
    match rpc::read_json_bytes::<serde_json::Value>(data) {
        Ok(value) => assert_eq!(theirs.ok(), Some(value)),
        Err(error) => {
            assert!(theirs.is_err(), "{error}");
            assert!(error.to_string().len() < 10_000, "{error}");
        }
    }
    is_json
}

/// A witness as other tools have it: the strict reader's content, and canonical when it is written.
pub fn foreign_witness(data: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(data) else { return false };
    let Ok(read) = ForeignWitness::read(text.trim()) else { return false };
    if let Ok(mut strict) = witness::json::decode(data) {
        strict.sort_headers();
        assert_eq!(read.witness, strict);
    }
    let mut written = Vec::new();
    witness::json::write(&read.witness, &mut written);
    let again = ForeignWitness::read(std::str::from_utf8(&written).expect("hex"));
    let again = again.expect("it was written here");
    assert_eq!(again.witness, read.witness);
    assert!(again.differences.is_empty(), "{:?}", again.differences);
    true
}

/// A witness as SSZ, of which there is one way to write it.
pub fn witness_ssz(data: &[u8]) -> bool {
    let Ok(witness) = witness::ssz::decode(&Bytes::copy_from_slice(data)) else { return false };
    assert_eq!(witness::ssz::encode(&witness).as_deref(), Ok(data));
    true
}

/// A witness as `debug_executionWitness` answers it.
pub fn witness_json(data: &[u8]) -> bool {
    let Ok(witness) = witness::json::decode(data) else { return false };
    let mut written = Vec::new();
    witness::json::write(&witness, &mut written);
    assert_eq!(witness::json::decode(&written), Ok(witness));
    true
}

/// The input of a prover, of which there is one way to write it, and its validation.
pub fn stateless_input(data: &[u8]) -> bool {
    let data = Bytes::copy_from_slice(data);
    let result = execution::stateless::validate_input(chain(), &data);
    let Ok(input) = StatelessInput::decode(&data) else {
        assert!(!result.successful_validation);
        return false;
    };
    assert_eq!(input.encode().as_deref(), Ok(&data[..]));
    assert_eq!(result.new_payload_request_root, input.new_payload_request.hash_tree_root());
    true
}

/// The result of a prover, of which there is one way to write it.
pub fn stateless_result(data: &[u8]) -> bool {
    let Ok(result) = StatelessValidationResult::decode(data) else { return false };
    assert_eq!(result.encode(), data);
    true
}

/// A block, of which there is one way to write it.
pub fn block_rlp(data: &[u8]) -> bool {
    let Ok(block) = execution::decode_block(data) else { return false };
    assert_eq!(alloy_rlp::encode(&*block), data);
    // Signatures may be anything.
    let _ = execution::recover_senders(&block.body.transactions);
    true
}

/// A block access list, whose lookups must find what it lists.
pub fn access_list(data: &[u8]) -> bool {
    let Ok(Some(list)) = AccessList::decode(data, 60_000_000) else { return false };
    let mut places = AddressMap::default();
    let mut slots = 0;
    let nobody = AccountInfo { nonce: 0, balance: U256::ZERO, code_hash: KECCAK256_EMPTY };
    for (place, account) in list.accounts().iter().enumerate() {
        assert_eq!(places.insert(account.address(), place), None, "each account is listed once");
        assert_eq!(list.place(&account.address()), Some(place));
        for (at, slot) in account.slots().enumerate() {
            // A slot that is written and read too is found where it is written.
            assert!(account.slot_place(&slot).is_some_and(|found| found <= slots + at));
        }
        slots += account.slots().len();
        account.after(nobody);
        account.slots_after().for_each(drop);
    }
    assert_eq!(slots, list.slots_count());
    true
}

/// A body of the Engine API over REST, of the kind and fork that the first byte says. There is one
/// way to write each.
pub fn rest_container(data: &[u8]) -> bool {
    let Some((kind, ssz)) = data.split_first() else { return false };
    let fork = Fork::ALL[usize::from(kind % 6)];
    let input = Bytes::copy_from_slice(ssz);
    let written = match kind / 6 {
        0 => ExecutionPayloadEnvelope::decode(fork, &input)
            .map(|read| read.encode().expect("it was shorter than offsets reach")),
        1 => PayloadStatus::decode(&input).map(|read| read.encode()),
        2 => ForkchoiceUpdate::decode(fork, &input).map(|read| read.encode(fork)),
        3 => read_bodies_request(&input).map(|read| write_hashes_request(&read)),
        4 => BodiesResponse::decode(fork, &input).map(|read| {
            // The placeholder of an unavailable body may be anything.
            let written = read.encode(fork).expect("it was shorter than offsets reach");
            assert_eq!(BodiesResponse::decode(fork, &written.into()), Ok(read));
            ssz.to_vec()
        }),
        5 => ForkchoiceUpdateResponse::decode(&input).map(|read| read.encode()),
        6 => BuiltPayload::decode(fork, &input)
            .map(|read| read.encode().expect("it was shorter than offsets reach")),
        _ => read_blobs_request(kind % 5, &input).map(|_| ssz.to_vec()),
    };
    written.is_ok_and(|written| {
        assert_eq!(written, ssz);
        true
    })
}

/// Answers with what it was called with.
struct Echo;

impl Handler for Echo {
    fn call(&self, method: &str, params: Option<&RawValue>) -> Result<Json, Error> {
        let mut params = Params::of(params)?;
        let first: Option<&RawValue> = params.optional("first")?;
        let second: Option<String> = params.optional("second")?;
        params.end()?;
        Json::of(&(method, first, second))
    }
}

/// A message to a port: a request, or several.
pub fn rpc_message(data: &[u8]) -> bool {
    answered(data, &Echo)
}

/// A message to the Engine API's port of a node: payloads of all versions, and what else it knows.
pub fn engine_port(data: &[u8]) -> bool {
    static PORT: OnceLock<Api> = OnceLock::new();
    let port = PORT.get_or_init(|| {
        let genesis = Genesis::new(&genesis(), chain()).expect("a genesis");
        let engine = Engine::new(chain().clone(), genesis).expect("it starts");
        Api::engine_port(Arc::new(engine), false)
    });
    answered(data, port)
}

/// Calls the handler; `true` without an error. The answer is JSON, and never an internal error.
fn answered(message: &[u8], handler: &dyn Handler) -> bool {
    let Some(answer) = rpc::answer(message, handler, &Limits::engine()) else { return false };
    let answer = answer.to_vec();
    let text = str::from_utf8(&answer).expect("JSON is text");
    serde_json::from_str::<&RawValue>(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    // Within a string its quotes would be escaped.
    assert!(!text.contains("\"code\":-32603"), "{text}");
    response::result(&answer).is_ok()
}

/// An answer, as our clients and the benchmark read it.
pub fn rpc_answer(data: &[u8]) -> bool {
    let Ok(result) = response::result(data) else { return false };
    let [status, witness] = match response::fields(result, ["status", "witness"]) {
        Ok(fields) => fields,
        Err(_) => return true,
    };
    assert_eq!(response::field(result, "status").ok(), status);
    if let Some(Ok(bytes)) = witness.map(response::bytes) {
        let written = format!("\"{}\"", hex::encode_prefixed(bytes));
        assert!(written.eq_ignore_ascii_case(witness.expect("just decoded")));
    }
    true
}

/// A token, none of which is made with the secret and new, and a file with a secret.
pub fn jwt(data: &[u8]) -> bool {
    let text = String::from_utf8_lossy(data);
    let secret = JwtSecret::from_hex(&"5e".repeat(32)).expect("a secret");
    assert!(secret.verify(&text).is_err());
    JwtSecret::from_hex(&text).is_ok()
}

/// A file with blocks, in any form and wrapping.
pub fn block_file(data: &[u8]) -> bool {
    with_file(data, is_block_file)
}

/// Whether a file has blocks alone, each of which is the same when it is written and read again.
fn is_block_file(path: &Path) -> bool {
    let Ok(reader) = BlockReader::open(path) else { return false };
    reader.into_iter().all(|block| match block {
        Ok(block) => {
            let again = execution::decode_block(&alloy_rlp::encode(&*block.block));
            assert_eq!(again.as_ref(), Ok(&block.block));
            true
        }
        Err(_) => false,
    })
}

/// A file with payloads or blocks in JSON: what is read is written as payloads, and read again.
pub fn payload_lines(data: &[u8]) -> bool {
    with_file(data, |path| {
        let read = |path| BlockReader::open(path)?.collect::<Result<Vec<_>, _>>();
        let Ok(blocks) = read(path) else { return false };
        let again = path.with_file_name("again");
        let mut writer = BlockWriter::create(&again, BlockForm::Json).expect("a file");
        let mut write = |read: &FileBlock| {
            let FileBlock { block, requests, access_list, .. } = read;
            let (requests, access_list) = (requests.as_ref(), access_list.as_ref());
            // A block without what no header has cannot be written.
            writer.write(ExportBlock { block, requests, access_list }).is_ok()
        };
        let written: Vec<_> = blocks.iter().filter(|block| write(block)).collect();
        writer.finish().expect("a file");
        if !written.is_empty() {
            let again = read(&again).expect("it was written here");
            assert!(
                again.iter().map(|read| &read.block).eq(written.iter().map(|read| &read.block))
            );
        }
        true
    })
}

/// A genesis, with which a chain begins or which is refused.
pub fn genesis_file(data: &[u8]) -> bool {
    with_file(data, |path| {
        let Ok(read) = files::read_genesis(path) else { return false };
        let Ok(chain) = ChainSpec::from_config(&read.config) else { return false };
        let Ok(genesis) = Genesis::new(&read, &chain) else { return false };
        let written = serde_json::to_vec(&read.config).expect("JSON");
        let again = serde_json::from_slice(&written).expect("it was written here");
        assert_eq!(ChainSpec::from_config(&again).as_ref(), Ok(&chain));
        Engine::new(chain, genesis).is_ok()
    })
}

/// A file with a state: a genesis, or a dump.
pub fn state_file(data: &[u8]) -> bool {
    with_file(data, |path| {
        let _ = files::read_genesis_head(path);
        let Ok(reader) = AccountReader::open(path) else { return false };
        match reader.into_hashed() {
            Ok(hashed) => hashed.with_slots_at_once(3).all(|piece| piece.is_ok()),
            Err(plain) => plain.with_slots_at_once(3).all(|piece| piece.is_ok()),
        }
    })
}

/// A file of this thread with these bytes.
fn with_file<T>(data: &[u8], read: impl FnOnce(&Path) -> T) -> T {
    thread_local! {
        static FOLDER: TempDir = tempfile::tempdir().expect("a directory");
    }
    FOLDER.with(|folder| {
        let path = folder.path().join("file");
        fs::write(&path, data).expect("a file is written");
        read(&path)
    })
}

/// A trie's node, as a witness has it: the first is the root, and all lie on the path of the key
/// of zeros, as far as they fit together.
pub fn trie_node(data: &[u8]) -> bool {
    let nodes = pieces(data);
    let root = nodes.first().map_or(B256::ZERO, keccak256);
    trie::verify_proof(root, &[0; 32], &nodes).is_ok()
}

/// Records of nodes, of which the last one is the root of a state.
pub fn trie_records(data: &[u8]) -> bool {
    let mut records = MemoryRecords::default();
    let mut last = NodeAddress::NONE;
    for mut record in pieces(data) {
        record.truncate(MemoryRecords::MAX_RECORD_BYTES);
        last = records.append(&record);
    }
    let version = Version { root: B256::ZERO, address: last };
    let keys = [B256::ZERO, B256::repeat_byte(0xff), keccak256(Address::ZERO)];
    let _ = versioned::verify(&records, &version, &mut |_, _| {});
    let mut all_read = true;
    for key in keys {
        let found = versioned::account(&records, &version, &key);
        all_read &= found.is_ok();
        if let Ok(Some((_, storage))) = found {
            all_read &= versioned::slot(&records, &storage, &key).is_ok();
        }
        all_read &= versioned::account_proof(&records, &version, &key, &keys).is_ok();
    }
    all_read
}

/// The data cut into pieces, each behind its length in two bytes.
fn pieces(mut data: &[u8]) -> Vec<Bytes> {
    let mut pieces = Vec::new();
    while let Some(([low, high], rest)) = data.split_first_chunk() {
        let length = usize::from(u16::from_le_bytes([*low, *high])) % 2048;
        let (piece, rest) = rest.split_at(length.min(rest.len()));
        pieces.push(Bytes::copy_from_slice(piece));
        data = rest;
    }
    pieces
}

/// The files of a store, some of whose bytes are changed: each piece names a file, a place in it,
/// and what is there. It opens or says why not, and what it says of itself it says without a panic.
pub fn store(data: &[u8]) -> bool {
    static FILES: OnceLock<BTreeMap<String, Vec<u8>>> = OnceLock::new();
    let mut files = FILES.get_or_init(small_store).clone();
    for piece in pieces(data) {
        let Some(([file, low, high, ..], bytes)) = piece.split_first_chunk::<4>() else { continue };
        let count = files.len();
        let file = files.values_mut().nth(usize::from(*file) % count).expect("of so many");
        let at = usize::from(u16::from_le_bytes([*low, *high])).min(file.len());
        let end = (at + bytes.len()).min(file.len());
        file[at..end].copy_from_slice(&bytes[..end - at]);
    }
    let Ok(store) = Database::open(MemoryDisk::with_contents(&files), &OPTIONS) else {
        return false;
    };
    for number in 0..3 {
        let hash = hash(number);
        let _ = (store.entry(&hash), store.block(&hash), store.code(&hash), store.touched(&hash));
        if let Ok(Retained::Present(witness)) = store.witness(&hash) {
            witness_rlp(&witness);
        }
        let _ = store.canonical(number);
    }
    let mut journaled = |_, _| Ok::<_, state::Error>(());
    let is_read = store.journal().replay(&mut journaled).is_ok();
    is_read && store.verify(&mut |_| {}).is_ok_and(|report| report.damaged == 0)
}

const OPTIONS: Options = Options {
    cache_bytes: 64 << 10,
    code_cache_bytes: 8 << 10,
    index_cache_bytes: 256 << 10,
    segment_bytes: 16 << 10,
    witness_segment_bytes: 4 << 10,
    journal: JournalMode::Write,
    journal_file_bytes: 4 << 10,
};

fn hash(number: u64) -> B256 {
    B256::with_last_byte(number as u8 + 1)
}

/// A store with three blocks.
fn small_store() -> BTreeMap<String, Vec<u8>> {
    let disk = FaultDisk::new(&Default::default(), Fault::Never);
    let store = Database::open(disk.clone(), &OPTIONS).expect("memory");
    for number in 0..3 {
        let mut batch = store.batch();
        let address = batch.append(&[number as u8; 100]);
        batch.seal().expect("memory");
        let block = NewBlock {
            hash: hash(number),
            number,
            parent_hash: number.checked_sub(1).map(hash).unwrap_or_default(),
            version: Version { root: hash(number), address },
            floor: address,
            block: vec![1; 200].into(),
            codes: vec![NewCode::new(hash(number), vec![2; 50].into(), vec![0; 7].into())],
            witness: Some(vec![0xc4, 0xc0, 0xc0, 0xc0, 0xc0].into()),
            touched: Some(vec![3; 40].into()),
            ..NewBlock::default()
        };
        store.add(block).expect("memory");
        let heads = state::Heads { head: Some(hash(number)), ..Default::default() };
        let block = NewCanonical::new(hash(number), Bloom::ZERO, [hash(number)]);
        store.set_canonical([(number, Some(block))], heads).expect("memory");
        store.persist().expect("memory");
    }
    let journaled = |out: &mut Vec<u8>| out.extend_from_slice(&[4; 60]);
    store.journal().append_block(hash(3), 60, journaled).expect("memory");
    let choice = JournalChoice { number: 1, choice: vec![5; 96].into() };
    store.journal().append_choice(choice).expect("memory");
    drop(store);
    disk.after_restart()
}

/// A chain that goes through all forks from Paris on, ten seconds each.
fn genesis() -> alloy_genesis::Genesis {
    serde_json::from_str(include_str!("genesis.json")).expect("a genesis")
}

fn chain() -> &'static ChainSpec {
    static CHAIN: OnceLock<ChainSpec> = OnceLock::new();
    CHAIN.get_or_init(|| ChainSpec::from_config(&genesis().config).expect("a chain"))
}
