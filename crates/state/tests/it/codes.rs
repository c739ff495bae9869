//! Codes that lie in their files: what is mapped is what was written, and nothing else is.

use crate::workload::{Difference, OPTIONS, Workload, open, table, with_tables};
use alloy_primitives::{B256, Bytes, keccak256};
use deponent_state::limits::{CODE_FIRST_BYTES, CODE_PADDING_BYTES, MAPPED_BEYOND_BYTES};
use deponent_state::{Database, DirectoryDisk, MemoryDisk, StoredCode, read_mapped};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::os::unix::fs::FileExt;
use std::path::Path;

fn open_directory(directory: &Path) -> Database {
    open(DirectoryDisk::open(directory).expect("free")).expect("opens")
}

fn code(rng: &mut StdRng, bytes: usize) -> (B256, Bytes) {
    let mut code = vec![0; bytes];
    rng.fill(&mut code[..]);
    (keccak256(&code), code.into())
}

/// Reads a code and its tail, and checks that nothing is missing.
fn stored(store: &Database, (hash, code): &(B256, Bytes)) -> StoredCode {
    let found = store.stored_code(hash).expect("it can be read").expect("it is there");
    assert_eq!(found.code(), *code);
    assert!(found.padded[code.len()..].iter().all(|byte| *byte == 0));
    let first = code.iter().copied().chain([0; CODE_FIRST_BYTES]).take(CODE_FIRST_BYTES);
    assert!(first.eq(found.first));
    assert_eq!(found.table.is_some(), found.padding > 0);
    assert!(found.table.as_ref().is_none_or(|found| **found == table(code)));
    let mut read = vec![0; code.len()];
    assert_eq!(read_mapped(&found.code(), &mut read), found.location.is_some());
    assert!(found.location.is_none() || read == *code);
    assert_eq!(store.code(hash).expect("it can be read").as_ref(), Some(code));
    found
}

#[test]
fn codes_stay_in_their_files_while_these_grow_and_are_closed() {
    let mut rng = StdRng::seed_from_u64(testing::seed());
    let folder = tempfile::tempdir().expect("a directory");
    let mut store = open_directory(folder.path());
    let (mut codes, mut held) = (Vec::new(), Vec::new());
    for round in 0..30 {
        let some: Vec<_> = (0..rng.random_range(1..10))
            .map(|_| {
                let bytes = rng.random_range(40..9000);
                code(&mut rng, bytes)
            })
            .collect();
        store.add_codes(with_tables(some.clone())).expect("a working disk");
        for code in &some {
            // It waits to be written.
            let waiting = stored(&store, code);
            assert!(waiting.location.is_none() && waiting.padding == 0);
        }
        store.persist().expect("a working disk");
        codes.extend(some);
        for code in &codes {
            let found = stored(&store, code);
            assert!(found.location.is_some() && found.padding == CODE_PADDING_BYTES);
            let location = found.location.expect("it is mapped");
            let file = store.code_file(location.segment).expect("it can be opened").expect("there");
            let mut bytes = vec![0; code.1.len()];
            file.read_exact_at(&mut bytes, location.offset).expect("it is there");
            assert_eq!(code.1, bytes);
            assert!(file.write_at(b"x", location.offset).is_err(), "it is read alone");
            assert!(store.code_file(location.segment + 1).expect("no fault").is_none());
            held.push((found, code.1.clone()));
        }
        if round % 7 == 6 {
            drop(store);
            store = open_directory(folder.path());
        }
    }
    assert!(store.stats().expect("readable").codes.files > 3);
    assert_eq!(store.verify(&mut |_| {}).expect("readable").damaged, 0);
    // Codes that were handed out outlive the store and the names of its files.
    drop(store);
    folder.close().expect("removed");
    assert!(held.iter().all(|(found, code)| found.code() == *code));
}

#[test]
fn a_code_that_is_longer_than_a_mapping_is_read() {
    let mut rng = StdRng::seed_from_u64(1);
    let folder = tempfile::tempdir().expect("a directory");
    let store = open_directory(folder.path());
    let long = (OPTIONS.segment_bytes + MAPPED_BEYOND_BYTES) as usize;
    let codes = [code(&mut rng, 10), code(&mut rng, long), code(&mut rng, 20)];
    store.add_codes(with_tables(codes.clone())).expect("a working disk");
    store.persist().expect("a working disk");
    let are_mapped = codes.map(|code| stored(&store, &code).location.is_some());
    assert_eq!(are_mapped, [true, false, true]);
}

#[test]
fn where_files_cannot_be_mapped_codes_are_read() {
    let mut rng = StdRng::seed_from_u64(2);
    let store = open(MemoryDisk::new()).expect("opens");
    let code = code(&mut rng, 300);
    store.add_codes(with_tables([code.clone()])).expect("memory");
    store.persist().expect("memory");
    let found = stored(&store, &code);
    assert!(found.location.is_none() && found.padding == CODE_PADDING_BYTES);
}

#[test]
fn no_bit_flipped_in_a_mapped_file_gives_a_wrong_answer() {
    let folder = tempfile::tempdir().expect("a directory");
    let store = open_directory(folder.path());
    let mut workload = Workload::new(8);
    for step in 0..40 {
        workload.step(&store, step).expect("a working disk");
    }
    workload.persist(&store).expect("a working disk");
    drop(store);
    let model = workload.model;
    let files = std::fs::read_dir(folder.path()).expect("readable");
    let names = files.map(|file| file.expect("readable").file_name().into_string().expect("ours"));
    let segments: Vec<_> = names.filter(|name| name.starts_with("codes-")).collect();
    let mut rng = StdRng::seed_from_u64(9);
    for flip in 0..120 {
        let name = &segments[flip % segments.len()];
        let path = folder.path().join(name);
        let whole = std::fs::read(&path).expect("readable");
        let mut damaged = whole.clone();
        let at = rng.random_range(0..whole.len());
        damaged[at] ^= 1 << rng.random_range(0..8);
        std::fs::write(&path, damaged).expect("a working disk");
        let refused = match DirectoryDisk::open(folder.path()).and_then(open) {
            Err(error) => error.to_string(),
            Ok(store) => match model.check(&store) {
                Err(Difference::Unread(text)) => text,
                Err(Difference::Wrong(text)) => panic!("{name}, byte {at}: wrong: {text}"),
                Ok(()) => panic!("{name}, byte {at}: it was not noticed"),
            },
        };
        let is_named = refused.contains(name.as_str()) && refused.contains("offset");
        assert!(is_named, "{name}, byte {at}: {refused}");
        std::fs::write(&path, whole).expect("a working disk");
    }
    model.check(&open_directory(folder.path())).expect("whole again");
}
