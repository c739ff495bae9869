//! Chains that begin with a dump by hashed keys: one of geth's, beside geth; ones that are cut off,
//! wrong or begin late; an `init` that is killed.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256, hex, keccak256};
use engine::StateImport;
use files::BlockReader;
use serde_json::{Value, json};
use state::{Database, DirectoryDisk};
use testing::geth::{Geth, path_text as text};
use testing::{Folder, Random};
use trie::AccountInfo;
use trie::bulk::StateBuilder;
use trie::versioned::MemoryRecords;

use crate::support::published_chain;

/// Longest wait for a command that goes on.
const PATIENCE: Duration = Duration::from_secs(300);

/// A command on the data directory of this name: whether it succeeded, and what it has said.
fn run(folder: &Folder, data: &str, arguments: &[&str], input: &[u8]) -> (bool, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_deponent"));
    command.args(arguments).arg("--datadir").arg(folder.path(data));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("run");
    let mut pipe = child.stdin.take().expect("piped");
    let output = std::thread::scope(|scope| {
        // A command that refuses it does not read all of it.
        scope.spawn(move || pipe.write_all(input).ok());
        child.wait_with_output().expect("ended")
    });
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(said).expect("UTF-8"))
}

#[track_caller]
fn succeeds(folder: &Folder, data: &str, arguments: &[&str], input: &[u8], words: &str) {
    let (done, said) = run(folder, data, arguments, input);
    assert!(done && said.contains(words), "{words}: {said}");
}

#[track_caller]
fn fails(folder: &Folder, data: &str, arguments: &[&str], input: &[u8], words: &[&str]) {
    let (done, said) = run(folder, data, arguments, input);
    assert!(!done && words.iter().all(|words| said.contains(words)), "{words:?}: {said}");
}

/// A path-scheme geth that never had preimages: its state comes over, and its next blocks are
/// valid on it.
#[test]
fn a_chain_goes_on_from_a_snapshot_of_geth() {
    let Some((fixtures, genesis)) = published_chain() else { return };
    let Some(geth) = Geth::find(fixtures.join("genesis.json")) else { return };
    let folder = Folder::new();
    let reader = BlockReader::open(&fixtures.join("chain.rlp")).expect("a chain");
    let blocks: Vec<_> = reader.map(|block| block.expect("a block").block).collect();
    let (before, after) = blocks.split_at(blocks.len() - 12);
    let [first, rest] = [before, after].map(|blocks| {
        let name = format!("from-{}.rlp", blocks[0].header.number);
        folder.write(
            &name,
            blocks.iter().flat_map(|block| alloy_rlp::encode(&**block)).collect::<Vec<u8>>(),
        )
    });
    let header = &before.last().expect("blocks").header;
    let data = folder.path("theirs");
    let path_scheme = ["--state.scheme", "path"];
    geth.run(&data, &[&path_scheme[..], &["init", text(&geth.genesis)]].concat());
    geth.run(&data, &[&path_scheme[..], &["import", text(&first)]].concat());
    let dump = geth.run(&data, &["snapshot", "dump"]);
    assert!(dump.contains("\"storage\"") && !dump.contains("\"address\""));
    let genesis = folder.write("genesis.json", genesis);
    let head = folder.write("head", alloy_rlp::encode(header));
    let init = ["init", "--chain", text(&genesis), "--state", "-", "--header", text(&head)];

    let other = alloy_rlp::encode(&after[0].header);
    let other = folder.write("other", other);
    let of_other = ["init", "--chain", text(&genesis), "--state", "-", "--header", text(&other)];
    let words = format!("Give the header of the block whose stateRoot is {}", header.state_root);
    fails(&folder, "ours", &of_other, dump.as_bytes(), &[&words]);
    for flag in ["--nocode", "--nostorage"] {
        let without = geth.run(&data, &["snapshot", "dump", flag]);
        let words = format!("with {flag}, so dump without that");
        fails(&folder, "ours", &init, without.as_bytes(), &[&words]);
    }
    // The last accounts are missing.
    let count = dump.lines().count();
    let part = geth.run(&data, &["snapshot", "dump", "--limit", &(count / 3).to_string()]);
    fails(&folder, "ours", &init, part.as_bytes(), &["was cut off", "geth snapshot dump --start"]);
    let begins = format!("the chain begins with {}", header.hash_slow());
    let key: Value = serde_json::from_str(part.lines().last().expect("lines")).expect("JSON");
    let start = ["snapshot", "dump", "--start", key["key"].as_str().expect("a key")];
    let late = geth.run(&data, &start);
    assert!(late.lines().count() < count);
    succeeds(&folder, "ours", &init, late.as_bytes(), &begins);
    succeeds(&folder, "whole", &init, dump.as_bytes(), &begins);
    let last = after.last().expect("blocks").header.number;
    for data in ["ours", "whole"] {
        let words = format!("12 blocks imported; the head is block {last}");
        succeeds(&folder, data, &["import", text(&rest)], &[], &words);
        succeeds(&folder, data, &["db", "verify"], &[], &format!("block {last}"));
    }
    // The dump of geth's other command is refused, and the error says what to do.
    let hashed = geth.run(&data, &["dump", "--iterative", "--incompletes"]);
    let words = ["geth snapshot dump", "--nostorage"];
    fails(&folder, "refused", &init, hashed.as_bytes(), &words);
    let without = geth.run(&data, &["dump", "--iterative"]);
    fails(&folder, "refused", &init, without.as_bytes(), &["geth snapshot dump"]);
}

/// A state in both forms, with its root.
struct Dump {
    root: B256,
    /// By hashed keys, the root's line first.
    lines: Vec<String>,
    /// By addresses.
    plain: String,
}

/// Accounts, of which one has `many` slots.
fn dump(random: &mut Random, count: usize, many: usize) -> Dump {
    let word = |random: &mut Random| keccak256(random.number().to_le_bytes());
    let mut plain = Vec::new();
    let mut state = BTreeMap::new();
    for number in 0..count {
        let address = Address::from_slice(&word(random)[12..]);
        let (nonce, balance) = (random.number() >> 40, U256::from(random.number()));
        let code: Bytes = match random.below(4) {
            0 => word(random)[..1 + random.below(32)].to_vec().into(),
            _ => Bytes::new(),
        };
        let slots = if number == 0 { many } else { random.below(4).saturating_sub(2) };
        let slots: BTreeMap<B256, U256> = (0..slots)
            .map(|_| (word(random), U256::from(random.number() | 1) << random.below(190)))
            .collect();
        let storage: BTreeMap<_, _> =
            slots.iter().map(|(slot, value)| (slot, B256::from(*value))).collect();
        let (balance_text, storage) = (format!("{balance:#x}"), json!(storage));
        let line = json!({"balance": balance_text, "nonce": nonce, "code": code,
                          "storage": storage, "address": address});
        plain.push(line.to_string());
        let hashed = slots.into_iter().map(|(slot, value)| (keccak256(slot), value)).collect();
        state.insert(keccak256(address), (nonce, balance, code, hashed));
    }
    let (root, mut lines) = hashed(&state);
    lines.insert(0, json!({"root": root}).to_string());
    let plain = [&lines[..1], &plain].concat().join("\n");
    Dump { root, lines, plain }
}

type Hashed = BTreeMap<B256, (u64, U256, Bytes, BTreeMap<B256, U256>)>;

/// The root of a state, and its lines as `geth snapshot dump` writes them.
fn hashed(state: &Hashed) -> (B256, Vec<String>) {
    let mut records = MemoryRecords::default();
    let (mut lines, mut builder) = (Vec::new(), StateBuilder::new(&mut records));
    for (key, (nonce, balance, code, slots)) in state {
        let code_hash = if code.is_empty() { KECCAK256_EMPTY } else { keccak256(code) };
        let info = AccountInfo { nonce: *nonce, balance: *balance, code_hash };
        builder.account(*key, info).expect("in order");
        for (slot, value) in slots {
            builder.slot(*slot, *value).expect("in order");
        }
        let (_, account) = builder.end_account().expect("an account");
        let mut line = format!(
            "{{\"balance\":\"{balance}\",\"nonce\":{nonce},\"root\":\"{}\",\"codeHash\":\"{}\"",
            account.storage_root, code_hash
        );
        if !code.is_empty() {
            line += &format!(",\"code\":\"{code}\"");
        }
        let slots: Vec<_> = slots
            .iter()
            .map(|(slot, value)| {
                format!("\"{slot}\":\"{}\"", hex::encode(alloy_rlp::encode(value)))
            })
            .collect();
        if !slots.is_empty() {
            line += &format!(",\"storage\":{{{}}}", slots.join(","));
        }
        lines.push(line + &format!(",\"key\":\"{key}\"}}"));
    }
    (builder.finish().root, lines)
}

/// A genesis without accounts: its chain begins with any state.
fn genesis(folder: &Folder) -> PathBuf {
    let mut genesis: Value =
        serde_json::from_str(include_str!("../../../../docs/genesis.json")).expect("JSON");
    genesis["alloc"] = json!({});
    folder.write("genesis.json", genesis.to_string())
}

/// The last account of the unfinished state in a data directory.
fn last(folder: &Folder, data: &str, root: B256) -> Option<B256> {
    let disk = DirectoryDisk::open(folder.path(data).join("chain")).expect("a directory");
    let database = Database::open(disk, &state::Options::default()).expect("a database");
    if database.heads().head.is_some() {
        return None;
    }
    let import = StateImport::resume(&database, root, usize::MAX).expect("read");
    import.and_then(|import| import.last_account())
}

/// The lines that `--start KEY` leaves.
fn from(dump: &Dump, key: B256) -> String {
    let is_before = |line: &&String| {
        let account: Value = serde_json::from_str(line).expect("JSON");
        account["key"].as_str().expect("a key") < key.to_string().as_str()
    };
    let rest = dump.lines[1..].iter().skip_while(is_before);
    let lines: Vec<&str> = dump.lines[..1].iter().chain(rest).map(String::as_str).collect();
    lines.join("\n") + "\n"
}

const BATCH: [&str; 2] = ["--state.batch-bytes", "64KiB"];

#[test]
fn a_dump_that_ends_early_goes_on_behind_it() {
    let folder = Folder::new();
    let mut random = Random::seeded();
    let dump = dump(&mut random, 4000, 9000);
    let whole = dump.lines.join("\n") + "\n";
    let genesis = genesis(&folder);
    let chain = ["--chain", text(&genesis)];
    let init = [&["init", "--state", "-"], &chain[..], &BATCH].concat();
    let plain = folder.write("plain", &dump.plain);
    let plain = [&["init", "--state", text(&plain)], &chain[..]].concat();
    let (done, said) = run(&folder, "by-address", &plain, &[]);
    assert!(done, "{said}");
    let begins = said[said.find("the chain begins with").expect("it does")..][..88].to_owned();
    succeeds(&folder, "whole", &init, whole.as_bytes(), &begins);
    // Between two lines, and within one.
    for (name, cut) in [("lines", whole.len() / 2), ("within", 1 + random.below(whole.len() - 1))] {
        let end = match name {
            "lines" => whole[..cut].rfind('\n').expect("lines") + 1,
            _ => cut,
        };
        let (done, said) = run(&folder, name, &init, &whole.as_bytes()[..end]);
        assert!(!done, "{end} of {}: {said}", whole.len());
        let Some(key) = last(&folder, name, dump.root) else { continue };
        assert!(said.contains(&format!("`geth snapshot dump --start {key}`")), "{said}");
        // No chain is there, and none begins.
        let import = ["import", "--chain", text(&genesis), text(&genesis)];
        fails(&folder, name, &import, &[], &["deponent init has not finished"]);
        // A dump that begins behind it leaves accounts out.
        let mut late = from(&dump, key);
        let second = late.find('\n').expect("lines") + 1;
        let third = second + late[second..].find('\n').expect("lines") + 1;
        let missing = late.clone().drain(second..third).collect::<String>();
        late.replace_range(second..third, "");
        if late.len() > second {
            fails(&folder, name, &init, late.as_bytes(), &["leaves nothing out"]);
        }
        late.insert_str(second, &missing);
        succeeds(&folder, name, &init, late.as_bytes(), &begins);
        succeeds(&folder, name, &["db", "verify"], &[], "block 0");
        assert!(!folder.path(name).join("slots.spool").exists());
    }
}

/// The producer may die at any byte, also before the form of its first account is told.
#[test]
fn a_dump_that_ends_in_its_first_lines_keeps_what_is_there() {
    let folder = Folder::new();
    let mut random = Random::seeded();
    let dump = dump(&mut random, 400, 600);
    let whole = dump.lines.join("\n") + "\n";
    let genesis = genesis(&folder);
    let chain = ["--chain", text(&genesis)];
    let batch = ["--state.batch-bytes", "16KiB"];
    let init = [&["init", "--state", "-"], &chain[..], &batch].concat();
    fails(&folder, "data", &init, &whole.as_bytes()[..whole.len() / 2], &["--start"]);
    let kept = last(&folder, "data", dump.root).expect("a part of the state");
    let root_line = dump.lines[0].len();
    let first = dump.lines[1].len() + 1;
    let mut ends = vec![root_line, root_line + 1, root_line + 2, root_line + first - 1];
    ends.extend((0..4).map(|_| root_line + 2 + random.below(first - 2)));
    for end in ends {
        let start = &whole.as_bytes()[..end];
        let (done, said) = run(&folder, "data", &init, start);
        assert!(!done, "{end}: {said}");
        assert_eq!(last(&folder, "data", dump.root), Some(kept), "{end}: {said}");
        fails(&folder, "new", &init, start, &[]);
    }
    fails(&folder, "data", &init, dump.lines[0].as_bytes(), &["no account", "cut off", "goes on"]);
    // Neither the genesis's own state nor the same state by addresses takes its place.
    let words = [dump.root.to_string(), folder.path("data/chain").display().to_string()];
    let words = [&words[0], &words[1], "remove"];
    fails(&folder, "data", &[&["init"], &chain[..]].concat(), &[], &words);
    fails(&folder, "data", &init, dump.plain.as_bytes(), &words);
    assert_eq!(last(&folder, "data", dump.root), Some(kept));
    succeeds(&folder, "data", &init, whole.as_bytes(), "the chain begins with");
}

#[test]
fn a_dump_that_is_wrong_is_refused_and_the_right_one_taken() {
    let folder = Folder::new();
    let mut random = Random::seeded();
    let dump = dump(&mut random, 1000, 3000);
    let whole = dump.lines.join("\n");
    let genesis = genesis(&folder);
    let chain = ["--chain", text(&genesis)];
    let init = [&["init", "--state", "-"], &chain[..], &BATCH].concat();
    // A balance: the state has another root, and what has come is not used again.
    let at = random.below(900) + 1;
    let other = dump.lines[at].replacen("\"balance\":\"", "\"balance\":\"9", 1);
    let wrong = [&dump.lines[..at], &[other], &dump.lines[at + 1..]].concat().join("\n");
    fails(&folder, "root", &init, wrong.as_bytes(), &["its accounts give", "are not used again"]);
    assert_eq!(last(&folder, "root", dump.root), None);
    succeeds(&folder, "root", &init, whole.as_bytes(), "the chain begins with");
    // A slot of the account with many of them: what is before it is kept.
    let at = dump.lines.iter().position(|line| line.len() > 100_000).expect("one with many");
    let slot = dump.lines[at].find("\"storage\":{\"").expect("slots") + 12;
    let end = slot + dump.lines[at][slot..].find("\":\"").expect("a value") + 3;
    let value = end + dump.lines[at][end..].find('"').expect("its end");
    let mut other = dump.lines[at].clone();
    other.replace_range(end..value, "7b");
    let wrong = [&dump.lines[..at], &[other], &dump.lines[at + 1..]].concat().join("\n");
    let line = format!("line {}", at + 1);
    let words = ["the account says", &line, "the same command goes on from there"];
    let (done, said) = run(&folder, "slot", &init, wrong.as_bytes());
    assert!(!done && (at == 1 || words.iter().all(|words| said.contains(words))), "{said}");
    succeeds(&folder, "slot", &init, whole.as_bytes(), "the chain begins with");
    // Another state takes the place of an unfinished one.
    let half = &whole.as_bytes()[..whole.len() / 2];
    fails(&folder, "other", &init, half, &["--start"]);
    let small = self::dump(&mut random, 3, 1).lines.join("\n");
    succeeds(&folder, "other", &init, small.as_bytes(), "is removed: this is another");
    fails(&folder, "other", &init, half, &["holds a chain already"]);
    succeeds(&folder, "other", &["db", "verify"], &[], "block 0");
}

#[test]
fn an_init_that_is_killed_anywhere_goes_on() {
    let folder = Folder::new();
    let mut random = Random::seeded();
    let dump = dump(&mut random, 30_000, 40_000);
    let file = folder.write("dump.jsonl", dump.lines.join("\n"));
    let genesis = genesis(&folder);
    let chain = ["--chain", text(&genesis)];
    let init = [&["init", "--state", text(&file)], &chain[..], &BATCH].concat();
    let (done, said) = run(&folder, "whole", &init, &[]);
    assert!(done, "{said}");
    let begins = said[said.find("the chain begins with").expect("it does")..][..88].to_owned();
    let bytes = |data: &str| {
        let nodes = folder.path(data).join("chain/nodes-0000000000000000");
        fs::metadata(nodes).map_or(0, |data| data.len())
    };
    let all = bytes("whole");
    // The last pieces of a dump, of 2 MiB each, are not written before its end.
    let most = all as usize / 2;
    let mut places: Vec<u64> = (0..10).map(|_| random.below(most) as u64).collect();
    places.sort_unstable();
    let from_input = [&["init", "--state", "-"], &chain[..], &BATCH].concat();
    let content = fs::read(&file).expect("the dump");
    let mut went_on = 0;
    for place in places {
        // Without the last bracket of the dump it cannot end before it is killed.
        let held_back = &content[..content.len() - 1];
        let is_there = || bytes("killed") >= place;
        killed_once(&folder, &from_input, held_back, is_there);
        if folder.path("killed/chain/format").exists() {
            let disk = DirectoryDisk::open(folder.path("killed/chain")).expect("a directory");
            let database = Database::open(disk, &state::Options::default()).expect("a database");
            assert_eq!(database.heads().head, None, "it has ended before it was killed");
            drop(database);
            went_on += usize::from(last(&folder, "killed", dump.root).is_some());
        }
    }
    assert!(went_on > 0, "all kills came before the first batch");
    if let (false, said) = run(&folder, "killed", &init, &[]) {
        panic!("{said}");
    }
    succeeds(&folder, "killed", &["db", "verify"], &[], "block 0");
    fails(&folder, "killed", &init, &[], &["holds a chain already", &begins[begins.len() - 64..]]);
    assert!(bytes("killed") < all + all / 4, "nothing is there twice");
}

/// Runs a command with this standard input, which does not end, and kills it when `is_there`.
fn killed_once(folder: &Folder, arguments: &[&str], input: &[u8], is_there: impl Fn() -> bool) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_deponent"));
    command.args(arguments).arg("--datadir").arg(folder.path("killed"));
    command.stdin(Stdio::piped()).stderr(Stdio::null()).stdout(Stdio::null());
    let mut child = command.spawn().expect("run");
    let mut stdin = child.stdin.take().expect("a pipe");
    std::thread::scope(|scope| {
        // It gives the pipe back, so that the input does not end. The process may be killed before
        // it has read all.
        let fed = scope.spawn(move || {
            stdin.write_all(input).ok();
            stdin
        });
        let end = Instant::now() + PATIENCE;
        while !is_there() && Instant::now() < end && child.try_wait().expect("asked").is_none() {}
        let is_late = !is_there();
        child.kill().expect("killed");
        let status = child.wait().expect("ended");
        assert_eq!(status.signal(), Some(9), "it has ended before it was killed: {status}");
        assert!(!is_late, "it has not got so far within {PATIENCE:?}");
        drop(fed.join());
    });
}
