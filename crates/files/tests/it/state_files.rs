//! Genesis files and state dumps, read and sorted.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use alloy_primitives::{Address, B256, Bytes, U256, hex, keccak256};
use deponent_files::{
    AccountPiece, AccountReader, FileAccount, Progress, SortOptions, SortedEntry, SortedState,
    StateForm, read_genesis, read_genesis_head,
};
use engine::Genesis;
use execution::ChainSpec;
use serde_json::{Value, json};

use super::block_files::gzip;
use super::states::{
    DIALECTS, Dialect, Held, State, entries, file, line, root, root_of, slot, sorted_entries,
    state, word,
};
use super::{check_error, read};
use testing::{Folder, Random, fixtures};

/// So little memory that a few thousand accounts make many runs, and a few hundred slots a part.
const LITTLE: usize = 256 << 10;

fn sort(file: &Path, folder: &Folder, memory_bytes: usize) -> Result<SortedState, String> {
    let options = SortOptions { directory: folder.path("sorted"), memory_bytes };
    let sorted = SortedState::prepare(file, &options, &mut Progress::silent());
    sorted.map_err(|error| error.to_string())
}

/// The codes of a state, as sorting keeps them.
fn codes(sorted: &SortedState) -> BTreeMap<B256, Bytes> {
    let codes = sorted.codes().expect("codes");
    codes.map(|code| code.expect("a code")).collect()
}

#[test]
fn a_state_file_is_sorted_in_every_form() {
    let mut random = Random::seeded();
    let state = state(&mut random, 700, 40);
    let expected: BTreeMap<B256, Bytes> = state
        .values()
        .filter(|held| !held.code.is_empty())
        .map(|held| (keccak256(&held.code), held.code.clone()))
        .collect();
    for dialect in DIALECTS {
        for memory in [LITTLE, 64 << 20] {
            let folder = Folder::new();
            let path = folder.write("state", file(&state, dialect));
            let sorted = sort(&path, &folder, memory).expect("sorted");
            let with_roots = !matches!(dialect, Dialect::Reth | Dialect::Genesis);
            assert_eq!(sorted_entries(&sorted), entries(&state, with_roots), "{dialect:?}");
            assert_eq!(codes(&sorted), expected);
            assert_eq!(sorted.accounts(), state.len() as u64);
            let is_genesis = dialect == Dialect::Genesis;
            assert_eq!(sorted.root(), (!is_genesis).then(|| root(&state)));
            sorted.remove().expect("removed");
            assert_eq!(fs::read_dir(folder.path("sorted")).expect("a folder").count(), 0);
        }
    }
    let folder = Folder::new();
    let path = folder.write("state.gz", gzip(file(&state, Dialect::Geth).as_bytes()));
    let sorted = sort(&path, &folder, LITTLE).expect("sorted");
    assert_eq!(sorted_entries(&sorted), entries(&state, true));
}

#[test]
fn real_states_have_their_roots() {
    let Some(fixtures) = fixtures() else { return };
    for name in ["geth-ethtest", "hivechain-osaka-200"] {
        let folder = Folder::new();
        let path = fixtures.join(name).join("headstate.json");
        let sorted = sort(&path, &folder, LITTLE).expect("sorted");
        let found = sorted_entries(&sorted);
        let root = sorted.root().expect("a dump has a root");
        assert_eq!(root_of(found.iter().copied()), root, "{name}");
        let chain = read(&fixtures.join(name).join("chain.rlp"));
        assert_eq!(chain.last().expect("blocks").block.header.state_root, root);
        // The same accounts, a line each, as `geth dump --iterative` has them.
        let dump: Value = serde_json::from_slice(&fs::read(&path).expect("a file")).expect("JSON");
        let accounts = dump["accounts"].as_object().expect("accounts").values();
        let mut lines = vec![json!({"root": root}).to_string()];
        lines.extend(accounts.map(Value::to_string));
        let other = Folder::new();
        let lines = sort(&other.write("dump.jsonl", lines.join("\n")), &other, LITTLE);
        assert_eq!(sorted_entries(&lines.expect("sorted")), found);
    }
}

#[test]
fn real_genesis_files_have_the_roots_of_their_headers() {
    let Some(fixtures) = fixtures() else { return };
    let folders = [
        "geth-ethtest",
        "hivechain-osaka-200",
        "hive-sync",
        "witness-chain",
        "execution-apis/tests",
    ];
    for name in folders {
        let path = fixtures.join(name).join("genesis.json");
        let whole: alloy_genesis::Genesis =
            serde_json::from_slice(&fs::read(&path).expect("a file")).expect("a genesis");
        let chain = ChainSpec::from_config(&whole.config).expect("a chain");
        let folder = Folder::new();
        let sorted = sort(&path, &folder, LITTLE).expect("sorted");
        assert_eq!(sorted.root(), None);
        let root = root_of(sorted_entries(&sorted).into_iter());
        let genesis = Genesis::new(&whole, &chain).expect("a genesis");
        assert_eq!(root, genesis.header.state_root, "{name}");
        // As `deponent node` reads it.
        let read = read_genesis(&path).expect("a genesis");
        let read = Genesis::new(&read, &chain).expect("a genesis");
        assert_eq!(with_defaults(read), with_defaults(genesis));
        // All but the accounts is read without them.
        let head = read_genesis_head(&path).expect("a head");
        assert_eq!(head, alloy_genesis::Genesis { alloc: BTreeMap::new(), ..whole });
    }
}

/// A member of an account that is left out means its default.
fn with_defaults(mut genesis: Genesis) -> Genesis {
    for account in genesis.alloc.values_mut() {
        account.nonce.get_or_insert_default();
        account.code.get_or_insert_default();
        account.storage.get_or_insert_default();
    }
    genesis
}

#[test]
fn a_genesis_is_read_as_geth_does() {
    let folder = Folder::new();
    let of = |members: &str| folder.write("genesis.json", format!("{{{members}}}"));
    let mix = B256::repeat_byte(7);
    let path = of(&format!(
        r#""config": {{"chainid": 5, "PragueTime": 7}}, "alloc": {{
            "0000000000000000000000000000000000000001": {{
                "balance": "17", "privateKey": "0x12", "comment": "known to all",
                "Storage": {{"0x1": "0x2", "0x3": "0x00"}}, "NONCE": "0x3", "Code": "0x6001"
            }}
        }}, "mixhash": "{mix}", "GASLIMIT": "0x1c9c380", "gasUsed": "0x0",
        "Difficulty": "0x0", "coinbase": null"#
    ));
    let error = read_genesis(&path).expect_err("a coinbase that is none").to_string();
    assert!(error.contains("a genesis expected"), "{error}");
    let text =
        fs::read_to_string(&path).expect("a file").replace("null", &format!("\"0x{:040x}\"", 9));
    let path = folder.write("genesis.json", text);
    let genesis = read_genesis(&path).expect("a genesis");
    assert_eq!((genesis.mix_hash, genesis.gas_limit), (mix, 30_000_000));
    assert_eq!((genesis.config.chain_id, genesis.alloc.len()), (5, 1));
    assert_eq!(genesis.config.prague_time, Some(7));
    let account = &genesis.alloc[&Address::with_last_byte(1)];
    assert_eq!((account.balance, account.nonce), (U256::from(17), Some(3)));
    assert_eq!(account.code, Some(Bytes::from_static(&[0x60, 0x01])));
    let storage = account.storage.as_ref().expect("storage");
    assert_eq!(storage[&B256::with_last_byte(1)], B256::with_last_byte(2));
    let head = read_genesis_head(&path).expect("a head");
    assert_eq!(head, alloy_genesis::Genesis { alloc: BTreeMap::new(), ..genesis });

    let account = r#""0x0000000000000000000000000000000000000001": {"balance": "0x1"}"#;
    for (members, problem) in [
        (r#""gasLimit": "0x5", "alloc": {}"#.to_owned(), "it has no \"config\""),
        (
            r#""config": {}, "gasLimit": "0x5", "difficulty": "0x0""#.to_owned(),
            "it has no \"alloc\", which may be {}",
        ),
        (r#""config": {}, "gasLimit": "0x5", "alloc": {}"#.to_owned(), "it has no \"difficulty\""),
        (r#""config": {}, "difficulty": "0x0", "alloc": {}"#.to_owned(), "it has no \"gasLimit\""),
        (r#""config": [5], "alloc": {}"#.to_owned(), "\"config\" is an object"),
        (r#""config": {"osakTime": 5}, "alloc": {}"#.to_owned(), "schedules \"osakTime\", which"),
        (r#""config": {"LondnBlock": 0}, "alloc": {}"#.to_owned(), "schedules \"LondnBlock\""),
        (
            r#""gasUsed": "0x5", "alloc": {}"#.to_owned(),
            "\"gasUsed\" is \"0x5\", but a first block",
        ),
        (r#""alloc": {}, "Alloc": {}"#.to_owned(), "accounts for a second time"),
        (format!(r#""alloc": {{{account}, {account}}}"#), "an account for a second time"),
        (r#""alloc": {}} {"#.to_owned(), "the end of the file expected"),
        (
            format!(r#""alloc": {{"{:040x}": {{"balance": "1", "codeHash": "{mix}"}}}}"#, 1),
            "but no code: was it left out?",
        ),
        (format!(r#""alloc": {{"pre({mix})": {{"balance": "0x1"}}}}"#), "without an address"),
    ] {
        let error = read_genesis(&of(&members)).expect_err(&members).to_string();
        assert!(error.contains(problem), "{members}: {error}");
    }
}

#[test]
fn an_account_with_many_slots_is_merged_of_parts() {
    let mut random = Random::seeded();
    let mut state = state(&mut random, 50, 5);
    // Over 128 parts of 256 slots, so that parts are merged before the end.
    let many =
        Held { storage: (0..40_000).map(|_| slot(&mut random)).collect(), ..Held::default() };
    let zeroes = (0..5_000).map(|i| (B256::from(U256::from(i)), U256::from(i % 3))).collect();
    state.insert(Address::repeat_byte(1), many);
    state.insert(Address::repeat_byte(2), Held { storage: zeroes, ..Held::default() });
    for dialect in [Dialect::Geth, Dialect::Reth, Dialect::Genesis] {
        let folder = Folder::new();
        let path = folder.write("state", file(&state, dialect));
        let sorted = sort(&path, &folder, LITTLE).expect("sorted");
        assert_eq!(sorted_entries(&sorted), entries(&state, dialect == Dialect::Geth));
    }
}

#[test]
fn more_runs_than_are_merged_at_once_are_merged_before() {
    let mut random = Random::seeded();
    let state = state(&mut random, 360_000, 1);
    let folder = Folder::new();
    let path = folder.write("state", file(&state, Dialect::Reth));
    let sorted = sort(&path, &folder, LITTLE).expect("sorted");
    let manifest = manifest(&folder);
    let runs = manifest["runs"].as_array().expect("runs").len();
    assert!(manifest["next"].as_u64() > Some(256) && runs <= 256, "{runs} runs");
    assert_eq!(sorted_entries(&sorted), entries(&state, false));
}

fn manifest(folder: &Folder) -> Value {
    let text = fs::read(folder.path("sorted/manifest.json")).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

/// Between the last run and the word that all is sorted.
#[test]
fn a_sort_that_was_killed_behind_the_last_account_goes_on() {
    let state = state(&mut Random::seeded(), 300, 10);
    for dialect in DIALECTS {
        let folder = Folder::new();
        let path = folder.write("state", file(&state, dialect));
        let before = sort(&path, &folder, LITTLE).expect("sorted");
        let (entries, root) = (sorted_entries(&before), before.root());
        drop(before);
        let mut manifest = manifest(&folder);
        assert_eq!(manifest["done"], true);
        manifest["done"] = false.into();
        folder.write("sorted/manifest.json", manifest.to_string());
        let after = sort(&path, &folder, LITTLE).expect("it goes on");
        assert_eq!((sorted_entries(&after), after.root()), (entries, root), "{dialect:?}");
    }
}

/// Duplicates, in one run or in two, are reported with their lines.
#[test]
fn accounts_and_slots_that_are_there_twice_are_refused() {
    let mut random = Random::seeded();
    for (count, first, second) in [(10, 3, 7), (10, 3, 4), (6000, 5, 5990), (6000, 2000, 4000)] {
        let folder = Folder::new();
        let state = state(&mut random, count, 3);
        let (_, held) = state.iter().next().expect("an account");
        let twice = Address::repeat_byte(9);
        let mut lines: Vec<String> = file(&state, Dialect::Reth).lines().map(Into::into).collect();
        // Lines are counted from one, and the first is the root's.
        lines.insert(first - 1, line(&twice, held, Dialect::Reth));
        lines.insert(second - 1, line(&twice, &Held::default(), Dialect::Reth));
        let path = folder.write("dump.jsonl", lines.join("\n"));
        let sorted = sort(&path, &folder, LITTLE).expect("sorted");
        let error = sorted.entries().expect("entries").find_map(Result::err).expect("an error");
        let hash = keccak256(twice).to_string();
        let words = [format!("line {second}, "), format!("is on line {first} already"), hash];
        check_error(&path, &error.to_string(), &words.each_ref().map(String::as_str));
    }
    // In a genesis, by bytes.
    let folder = Folder::new();
    let account = r#""0x0000000000000000000000000000000000000009":{"balance":"1"}"#;
    let path = folder.write("genesis.json", format!("{{\"alloc\":{{{account},{account}}}}}"));
    let sorted = sort(&path, &folder, LITTLE).expect("sorted");
    let error = sorted.entries().expect("entries").find_map(Result::err).expect("an error");
    let (first, second) = (10 + 45, 10 + 45 + 1 + account.len());
    let words = [format!("byte {second}: "), format!("is behind byte {first} already")];
    check_error(&path, &error.to_string(), &words.each_ref().map(String::as_str));

    for slots in [r#""0x1":"0x2","0x01":"0x2""#, r#""1":"0","0x1":"0x2""#] {
        let text = format!(
            "{{\"root\":\"{}\"}}\n{{\"address\":\"{}\",\"balance\":0,\"storage\":{{{slots}}}}}",
            B256::ZERO,
            Address::ZERO
        );
        let path = folder.write("dump.jsonl", text);
        let error = sort(&path, &folder, LITTLE).expect_err("refused");
        check_error(&path, &error, &["line 2, byte 78", "twice in one account"]);
    }
    // In two parts, the first of which has long been written.
    let slots: Vec<String> = (1..3000).map(|slot| format!("\"{slot:04x}\":\"1\"")).collect();
    let text = format!(
        "{{\"root\":\"{}\"}}\n\n\
         {{\"balance\":0,\"storage\":{{{},\"1\":\"2\"}},\"address\":\"{}\"}}",
        B256::ZERO,
        slots.join(","),
        Address::ZERO
    );
    let path = folder.write("dump.jsonl", text);
    let sorted = sort(&path, &folder, LITTLE).expect("sorted");
    let error = sorted.entries().expect("entries").find_map(Result::err).expect("an error");
    check_error(&path, &error.to_string(), &["line 3", "twice in one account"]);
}

#[test]
fn a_state_that_is_wrong_is_refused_with_its_place() {
    let (address, key) = (Address::repeat_byte(1), keccak256(Address::repeat_byte(1)));
    let root = B256::ZERO;
    let good = json!({"balance": "1", "address": address});
    let check = |second: &Value, words: &[&str]| {
        let folder = Folder::new();
        let path = folder.write("dump.jsonl", format!("{{\"root\":\"{root}\"}}\n{second}\n{good}"));
        let error = sort(&path, &folder, LITTLE).expect_err("refused");
        check_error(&path, &error, &[&["line 2"], words].concat());
    };
    check(&json!({"balance": "1"}), &["without \"address\""]);
    check(&json!({"address": address}), &["without \"balance\""]);
    check(&json!({"address": "0x12"}), &["\"address\": 20 bytes in hex expected, \"0x12\" found"]);
    check(&json!({"address": "0xz100000000000000000000000000000000000000"}), &["\"address\": "]);
    check(&json!({"balance": "1x"}), &["\"balance\": a number expected, \"1x\" found"]);
    check(&json!({"balance": "0x"}), &["\"balance\": a number expected"]);
    check(&json!({"balance": ""}), &["\"balance\": a number expected"]);
    check(&json!({"balance": "1_0"}), &["\"balance\": a number expected"]);
    check(&json!({"balance": "-1"}), &["\"balance\": a number expected"]);
    check(&json!({"balance": 1.5}), &["\"balance\": a number expected, \"1.5\" found"]);
    check(&json!({"balance": format!("0x1{root:x}")}), &["\"balance\": a number expected"]);
    check(&json!({"balance": {}}), &["a string or number expected, '{' found"]);
    check(&json!({"balance": "9".repeat(300)}), &["a string of more than 256 bytes"]);
    check(&json!({"nonce": "0x10000000000000000"}), &["is over 64 bits"]);
    check(&json!({"code": "0x1"}), &["\"code\": hex expected"]);
    check(&json!({"storage": 1}), &["\"storage\": an object expected"]);
    check(&json!({"storage": {"x": "1"}}), &["a slot: up to 32 bytes in hex expected, \"x\""]);
    check(&json!({"storage": {"1": "x"}}), &["a value: up to 32 bytes in hex expected, \"x\""]);
    check(&json!({"storage": {"1": "0".repeat(65)}}), &["a value: up to 32 bytes"]);
    let with = |member: &str, value: Value| {
        let mut account = good.clone();
        account[member] = value;
        account
    };
    check(&with("key", json!(root)), &["\"key\" 0x00", &format!("hashes to {key}")]);
    check(&with("codeHash", json!(root)), &["but no code: was it left out?"]);
    let mut other = with("code", json!("0x00"));
    other["codeHash"] = json!(root);
    check(&other, &["but the code hashes to"]);
    check(&with("root", json!(root)), &["but no storage: was it left out?"]);
    let mut other = with("storage", json!({"1": "1"}));
    other["root"] = json!(alloy_trie::EMPTY_ROOT_HASH);
    check(&other, &["the storage root is the empty one"]);
}

#[test]
fn what_is_no_state_is_refused() {
    let root = format!("{{\"root\":\"{}\"}}", B256::ZERO);
    let account = r#""0x0000000000000000000000000000000000000009":{"balance":"1"}"#;
    for (text, words) in [
        (String::new(), "a state in JSON expected, the end of the file found"),
        ("[]".into(), "a state in JSON expected, '[' found"),
        ("{}".into(), "a genesis has \"alloc\", a dump begins with \"root\""),
        ("{\"balance\":1,\"address\":\"0x\"}".into(), "the first line of a state dump must be"),
        ("{\"root\":\"0x1\"}".into(), "root: 32 bytes in hex expected"),
        (format!("{root}\n["), "an account expected, '[' found"),
        (format!("{root}\n{{\"balance\":\"1"), "the file ends inside a string"),
        (format!("{root}\n{{\"balance\":\"1\n{{"), "the line ends inside a string"),
        (format!("{root}\n{{\"balance\":\"1\","), "'\"' expected, the end of the file found"),
        (format!("{root}\n{{\"balance\":\"1\""), "',' expected, the end of the file found"),
        (format!("{root}\n{{\"balance\" \"1\""), "':' expected, '\"' found"),
        (format!("{root}\n{{\"any\":"), "a value expected, the end of the file found"),
        (format!("{root}\n{{\"any\":[1"), "the file ends inside this value"),
        (format!("{{\"alloc\":{{{account}}}"), "',' expected, the end of the file found"),
        (format!("{{\"alloc\":{{{account}}}}} x"), "the end of the file expected, 'x' found"),
        (format!("{{\"alloc\":{{{account}}},\"alloc\":{{}}}}"), "accounts for a second time"),
        (format!("{{\"accounts\":{{{account}}},\"next\":\"0x\"}}"), "a part of the state"),
        ("{\"alloc\":{\"0x12\":{}}}".into(), "the key of an account: 20 bytes in hex"),
        ("{\"alloc\":{\"pre(0x12)\":{}}}".into(), "the key of an account: 32 bytes in hex"),
        ("{\"alloc\":[]}".into(), "'{' expected, '[' found"),
    ] {
        let folder = Folder::new();
        let path = folder.write("state.json", &text);
        let error = sort(&path, &folder, LITTLE).expect_err(&text);
        check_error(&path, &error, &[words, "line ", "byte "]);
    }
    // Nothing is a state too.
    for text in [root, "{\"alloc\":{}}".into()] {
        let folder = Folder::new();
        let sorted = sort(&folder.write("state.json", text), &folder, LITTLE).expect("sorted");
        assert_eq!((sorted_entries(&sorted), sorted.accounts()), (vec![], 0));
        assert_eq!(codes(&sorted).len(), 0);
    }
}

#[test]
fn accounts_are_read_one_by_one() {
    let folder = Folder::new();
    let text = r#"
        { "x": {"alloc": "not this"}, "alloc" : {
            "000000000000000000000000000000000000000a": {"balance": "0x0a", "nonce": "0x2"},
            "0x000000000000000000000000000000000000000B": {
                "code": "0x00ff", "storage": {"0x1": "0x02", "03": "000004", "5": "0x"},
                "secretKey": ["\" } ]"], "balance": 11
            },
            "pre(0x0b00000000000000000000000000000000000000000000000000000000000000)":
                {"balance": "12", "code": null, "storage": null}
        }, "config": {} }"#;
    let path = folder.write("genesis.json", text);
    let reader = AccountReader::open(&path).expect("open").with_slots_at_once(2);
    assert_eq!((reader.form(), reader.root()), (StateForm::Object, None));
    let pieces: Vec<AccountPiece> = reader.map(|piece| piece.expect("a piece")).collect();
    let number = |number: u64| U256::from(number);
    let slot = |slot: u64, value: u64| (B256::from(number(slot)), number(value));
    let [
        AccountPiece::Account(a),
        AccountPiece::Slots(at, slots),
        AccountPiece::Account(b),
        AccountPiece::Account(c),
    ] = &pieces[..]
    else {
        panic!("{pieces:?}")
    };
    assert_eq!((a.nonce, a.balance, a.at.line), (2, number(10), 3));
    assert_eq!(slots[..], [slot(1, 2), slot(3, 4)]);
    let FileAccount { address, balance, code, storage, .. } = &**b;
    assert_eq!((*balance, &code[..], at), (number(11), &[0, 255][..], &b.at));
    assert_eq!(*address, Some(Address::with_last_byte(11)));
    assert_eq!(storage[..], [slot(5, 0)]);
    let hashed = hex!("0b00000000000000000000000000000000000000000000000000000000000000");
    assert_eq!((c.address, c.hashed_address), (None, Some(B256::new(hashed))));
}

/// The body of the process that is killed; without a file in the environment it does nothing.
#[test]
fn a_process_that_sorts_a_state_file() {
    let Some(path) = std::env::var_os("FILES_SORT") else { return };
    let directory = std::env::var_os("FILES_SORTED").expect("a folder").into();
    let options = SortOptions { directory, memory_bytes: LITTLE };
    SortedState::prepare(Path::new(&path), &options, &mut Progress::silent()).expect("sorted");
}

#[test]
fn a_sort_that_was_killed_goes_on_where_it_was() {
    let mut random = Random::seeded();
    let mut state = state(&mut random, 60_000, 20);
    let many = (0..20_000).map(|_| slot(&mut random)).collect();
    state.insert(
        word(&mut random)[..20].try_into().unwrap(),
        Held { storage: many, ..Held::default() },
    );
    for (dialect, runs) in [(Dialect::Geth, 2), (Dialect::Geth, 25), (Dialect::Genesis, 10)] {
        let folder = Folder::new();
        let path = folder.write("state", file(&state, dialect));
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "state_files::a_process_that_sorts_a_state_file"])
            .env("FILES_SORT", &path)
            .env("FILES_SORTED", folder.path("sorted"))
            .stdout(Stdio::null())
            .spawn()
            .expect("run");
        while manifest(&folder)["runs"].as_array().is_none_or(|found| found.len() < runs) {
            assert!(child.try_wait().expect("a process").is_none(), "killed before the end");
        }
        child.kill().expect("killed");
        child.wait().expect("ended");
        let before = manifest(&folder);
        assert_eq!(before["done"], json!(false));
        let written = |number: u64| {
            let data = fs::metadata(folder.path(&format!("sorted/run-{number}")));
            data.and_then(|data| data.modified()).expect("a file")
        };
        let first = written(before["runs"][0]["number"].as_u64().expect("a number"));
        fs::write(folder.path("sorted/run-777"), "left behind").expect("written");
        let sorted = sort(&path, &folder, LITTLE).expect("sorted");
        assert!(!folder.path("sorted/run-777").exists());
        assert_eq!(first, written(before["runs"][0]["number"].as_u64().expect("a number")));
        let after = manifest(&folder);
        let kept = before["runs"].as_array().expect("runs");
        assert_eq!(kept[..], after["runs"].as_array().expect("runs")[..kept.len()]);
        assert_eq!(sorted_entries(&sorted), entries(&state, dialect == Dialect::Geth));
        assert_eq!(codes(&sorted).len(), 8);

        // A complete sort is not repeated; another file starts over.
        let again = sort(&path, &folder, LITTLE).expect("sorted");
        assert_eq!(again.accounts(), state.len() as u64);
        assert_eq!(manifest(&folder), after);
        let other: State = state.clone().into_iter().take(9).collect();
        fs::write(&path, file(&other, dialect)).expect("written");
        let sorted = sort(&path, &folder, LITTLE).expect("sorted");
        assert_eq!(sorted.accounts(), 9);
        assert_eq!(sorted_entries(&sorted), entries(&other, dialect == Dialect::Geth));
    }
}

#[test]
fn damaged_sorted_files_are_refused() {
    let mut random = Random::seeded();
    let state = state(&mut random, 3000, 20);
    let folder = Folder::new();
    let path = folder.write("state", file(&state, Dialect::Geth));
    let sorted = sort(&path, &folder, LITTLE).expect("sorted");
    let run = folder.path("sorted/run-0");
    let whole = fs::read(&run).expect("a file");
    fs::write(&run, &whole[1..]).expect("written");
    let error = sorted.entries().expect_err("refused").to_string();
    check_error(&run, &error, &["a sorted file is damaged"]);
    for _ in 0..200 {
        let mut broken = random.damaged(&whole);
        broken.resize(whole.len(), 0);
        fs::write(&run, broken).expect("written");
        if let Ok(entries) = sorted.entries() {
            let found: Vec<Result<SortedEntry, _>> = entries.collect();
            assert!(found.iter().rev().skip(1).all(Result::is_ok));
        }
    }
    fs::remove_file(&run).expect("removed");
    assert!(sorted.entries().is_err());
    fs::write(folder.path("sorted/codes"), "").expect("written");
    assert!(sorted.codes().is_err());
}

#[test]
fn state_files_broken_anywhere_are_refused() {
    let mut random = Random::seeded();
    let state = state(&mut random, 30, 20);
    let folder = Folder::new();
    for dialect in DIALECTS {
        let text = file(&state, dialect);
        for _ in 0..300 {
            let path = folder.write("state", random.damaged(text.as_bytes()));
            let error = match sort(&path, &folder, LITTLE) {
                Err(error) => Some(error),
                Ok(sorted) => {
                    let mut entries = sorted.entries().expect("entries");
                    entries.find_map(Result::err).map(|error| error.to_string())
                }
            };
            if let Some(error) = error {
                check_error(&path, &error, &[]);
            }
            _ = read_genesis_head(&path);
        }
    }
}
