//! Dumps by hashed keys.

use std::path::Path;

use alloy_primitives::{B256, KECCAK256_EMPTY, U256, keccak256};
use alloy_trie::EMPTY_ROOT_HASH;
use deponent_files::{
    AccountReader, HashedAccount, HashedPiece, HashedReader, Progress, SlotSpool, SortOptions,
    SortedEntry, SortedState,
};
use serde_json::{Value, json};

use super::block_files::gzip;
use super::check_error;
use super::states::{DIALECTS, Held, State, entries, file, hashed_lines, root, slot, state, word};
use testing::{Folder, Random};

fn open(path: &Path) -> Option<HashedReader> {
    AccountReader::open(path).expect("a state").into_hashed().ok()
}

/// The entries of a dump, whose code has its hash.
fn read(reader: HashedReader) -> Vec<SortedEntry> {
    let (mut all, mut slots) = (Vec::new(), Vec::new());
    for piece in reader {
        let account = match piece.expect("a piece") {
            HashedPiece::Slots(more) => {
                slots.extend(more);
                continue;
            }
            HashedPiece::Account(account) => *account,
        };
        let HashedAccount { hashed_address, nonce, balance, code_hash, storage_root, .. } = account;
        assert_eq!(code_hash, account.code.map_or(KECCAK256_EMPTY, keccak256));
        all.push(SortedEntry::Account { hashed_address, nonce, balance, code_hash, storage_root });
        slots.extend(account.storage);
        let slots = slots.drain(..);
        all.extend(slots.map(|(hashed_slot, value)| SortedEntry::Slot { hashed_slot, value }));
    }
    all
}

#[test]
fn a_dump_by_hashed_keys_is_read_as_the_plain_one_is_sorted() {
    let mut random = Random::seeded();
    for (accounts, most_slots) in [(1, 3), (40, 3), (300, 60)] {
        let state = state(&mut random, accounts, most_slots);
        let folder = Folder::new();
        let text = hashed_lines(&state).join("\n") + "\n";
        let path = folder.write("dump", &text);
        for (path, slots_at_once) in
            [(path.clone(), 1), (path, 7), (folder.write("gz", gzip(text.as_bytes())), 1 << 20)]
        {
            let reader = open(&path).expect("by hashed keys").with_slots_at_once(slots_at_once);
            assert_eq!(reader.root(), root(&state));
            assert_eq!(read(reader), entries(&state, true));
        }
        for dialect in DIALECTS {
            let path = folder.write("plain", file(&state, dialect));
            assert!(open(&path).is_none(), "{dialect:?}");
        }
    }
}

/// Its key comes behind more than is looked at for it.
#[test]
fn a_first_account_of_any_length_tells_the_form() {
    let mut random = Random::seeded();
    let storage = (0..750_000).map(|_| slot(&mut random)).collect();
    let state = State::from([(Default::default(), Held { storage, ..Held::default() })]);
    let folder = Folder::new();
    let path = folder.write("dump", hashed_lines(&state).join("\n"));
    assert!(path.metadata().expect("a file").len() > 65 << 20);
    let reader = open(&path).expect("by hashed keys");
    assert_eq!(read(reader), entries(&state, true));
    let path = folder.write("plain", file(&state, DIALECTS[0]));
    assert!(open(&path).is_none());
}

/// The error of a dump with this line between two others.
fn error(line: &str) -> (Folder, String) {
    let folder = Folder::new();
    let account = |key: u8| {
        format!("{{\"balance\":\"1\",\"nonce\":0,\"key\":\"{}\"}}", B256::repeat_byte(key))
    };
    let root = format!("{{\"root\":\"{}\"}}", B256::ZERO);
    let path = folder.write("dump", [root, account(1), line.into(), account(3)].join("\n"));
    let mut reader = open(&path).expect("by hashed keys");
    let error = reader.find_map(Result::err).expect("an error").to_string();
    check_error(&path, &error, &["line 3"]);
    (folder, error)
}

#[test]
fn a_line_that_is_wrong_is_refused_with_its_place() {
    let check = |account: &Value, words: &str| {
        let (_, error) = error(&account.to_string());
        assert!(error.contains(words), "{words}: {error}");
    };
    let key = B256::repeat_byte(2);
    let with = |members: Value| {
        let mut account = json!({"balance": "1", "nonce": 2, "key": key});
        let members = members.as_object().expect("members").clone();
        account.as_object_mut().expect("an account").extend(members);
        account
    };
    let (both, address) = ("`geth snapshot dump` writes", json!("0x01"));
    check(&with(json!({"address": address})), both);
    check(&json!({"balance": "1", "nonce": 2, "address": address}), "`geth dump --iterative`");
    check(&json!({"balance": "1"}), "an account without \"key\"");
    check(&json!({"key": key}), "an account without \"balance\"");
    check(&with(json!({"key": B256::repeat_byte(1)})), "does not come after 0x0101");
    check(&with(json!({"key": B256::ZERO})), "does not come after 0x0101");
    check(&with(json!({"key": "0x12"})), "\"key\": 32 bytes in hex expected, \"0x12\" found");
    check(&with(json!({"nonce": "0x10000000000000000"})), "is over 64 bits");
    check(&with(json!({"balance": "1x"})), "a number expected, \"1x\" found");
    check(&with(json!({"codeHash": B256::ZERO})), "with --nocode, so dump without that");
    check(&with(json!({"codeHash": B256::ZERO, "code": "0x00"})), "but the code hashes to");
    check(&with(json!({"code": "0x1"})), "\"code\": hex expected");
    check(&with(json!({"root": B256::ZERO})), "--nostorage, so dump without that");
    let storage = json!({B256::ZERO.to_string(): "01"});
    let empty = json!({"root": EMPTY_ROOT_HASH, "storage": storage});
    check(&with(empty), "the storage root is the empty one");
    check(&with(json!({"storage": 1})), "\"storage\": an object expected");
    for value in
        ["", "0", "00", "80", "8101", "820001", "8201", "a1", "5", "0x", "x1", "c0", "c101"]
    {
        let storage = json!({B256::ZERO.to_string(): value});
        check(&with(json!({"storage": storage})), "is not the RLP of a value other than zero");
    }
    // As `geth dump` writes a value.
    let storage = json!({B256::ZERO.to_string(): format!("{key:x}")});
    check(&with(json!({"storage": storage})), both);
    let storage = json!({"0x1": "01"});
    check(&with(json!({"storage": storage})), "a slot: 32 bytes in hex expected, \"0x1\"");
    let slots = [2, 1].map(|byte| format!("\"{}\":\"01\"", B256::repeat_byte(byte))).join(",");
    let line = format!("{{\"balance\":\"1\",\"storage\":{{{slots}}},\"key\":\"{key}\"}}");
    assert!(error(&line).1.contains("does not come after 0x0202"));
    let storage = format!("\"storage\":{{\"{}\":\"01\"}}", B256::ZERO);
    let line = format!("{{\"balance\":\"1\",{storage},{storage},\"key\":\"{key}\"}}");
    assert!(error(&line).1.contains("storage for a second time"));
    for (line, words) in [
        ("[", "an account expected, '[' found"),
        ("{\"balance\":\"1", "the line ends inside a string"),
    ] {
        assert!(error(line).1.contains(words), "{words}: {}", error(line).1);
    }
}

/// Each form names the commands when it meets the other.
#[test]
fn the_other_form_is_refused_by_the_name_of_its_command() {
    let folder = Folder::new();
    let root = format!("{{\"root\":\"{}\"}}", B256::ZERO);
    let plain = "{\"balance\":\"1\",\"address\":\"0x0000000000000000000000000000000000000009\"}";
    let long = "{\"balance\":\"1\",\"address\":\"0x0000000000000000000000000000000000000008\",\
                \"storage\":{\"0x1\":\"a00000000000000000000000000000000000000000000000000000000000\
                000001\"}}";
    let hashed = format!("{{\"balance\":\"1\",\"key\":\"{}\"}}", B256::ZERO);
    for lines in [[plain, &hashed], [plain, long]] {
        let path = folder.write("dump", [&root, lines[0], lines[1]].join("\n"));
        let options = SortOptions::new(&folder.path("sorted"));
        let sorted = SortedState::prepare(&path, &options, &mut Progress::silent());
        let error = sorted.expect_err("of two forms").to_string();
        check_error(&path, &error, &["line 3", "`geth snapshot dump`", "`geth dump --iterative`"]);
    }
}

/// Every cut is an error, but between two lines, where the root tells.
#[test]
fn a_dump_that_is_cut_off_gives_an_error_or_fewer_accounts() {
    let state = state(&mut Random::seeded(), 12, 4);
    let text = hashed_lines(&state).join("\n") + "\n";
    let whole = entries(&state, true);
    let folder = Folder::new();
    let first = text.find('\n').expect("lines") + 1;
    let second = first + text[first..].find('\n').expect("lines");
    for cut in second..text.len() {
        let path = folder.write("dump", &text[..cut]);
        let reader = open(&path).expect("the first account is whole");
        let is_between = text.as_bytes()[cut] == b'\n' || text.as_bytes()[cut - 1] == b'\n';
        let pieces: Vec<_> = reader.collect();
        let failed = pieces.iter().filter(|piece| piece.is_err()).count();
        assert_eq!(failed, usize::from(!is_between), "{cut}");
        assert!(pieces.len() <= whole.len());
    }
}

#[test]
fn spooled_slots_come_back_in_their_order() {
    let mut random = Random::seeded();
    let folder = Folder::new();
    let path = folder.path("spool");
    std::fs::write(&path, "left behind").expect("written");
    let mut spool = SlotSpool::new(&path);
    for count in [0, 1, 3, 50_000] {
        assert!(!path.exists());
        let slots: Vec<(B256, U256)> =
            (0..count).map(|_| (word(&mut random), U256::from(random.number()))).collect();
        spool.push(&[(B256::ZERO, U256::ONE)]).expect("written");
        spool.clear().expect("removed");
        slots.chunks(1000).for_each(|some| spool.push(some).expect("written"));
        let mut found = Vec::new();
        let drained = spool.drain(|slot, value| {
            found.push((slot, value));
            Ok::<(), deponent_files::Error>(())
        });
        drained.expect("read");
        assert_eq!(found, slots);
    }
    spool.push(&[(B256::ZERO, U256::ONE)]).expect("written");
    drop(spool);
    assert!(!path.exists());
}
