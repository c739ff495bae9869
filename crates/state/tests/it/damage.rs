//! Flipped bits and torn tails: a refusal that names file and offset, or the truth.

use crate::workload::{Difference, Model, OPTIONS, Workload, open};
use alloy_primitives::{B256, Bytes, keccak256};
use deponent_state::{Database, DirectoryDisk, Disk, MemoryDisk, NewBlock, Options};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use testing::disks::{Fault, FaultDisk};
use trie::versioned::{NodeAddress, Version};

type Files = BTreeMap<String, Vec<u8>>;

/// A store with something of everything, and what is in it.
fn store(steps: u64) -> (Files, Model) {
    let disk = FaultDisk::new(&Files::new(), Fault::Never);
    let mut workload = Workload::new(5);
    workload.run(&disk, steps).expect("nothing fails");
    (disk.after_restart(), workload.acknowledged)
}

/// Where every byte counts, or every page, frame and block is hit.
fn places(name: &str, length: usize, rng: &mut StdRng) -> Vec<usize> {
    if name == "format" {
        return (0..length).collect();
    }
    let step = if name == "index" { 97 } else { 41 };
    let sampled = (0..length).step_by(step).map(|at| at + rng.random_range(0..step));
    let mut places: Vec<_> = sampled.filter(|at| *at < length).collect();
    places.extend(0..length.min(64));
    if name == "index" {
        places.extend(4096..4096 + 64);
        places.extend(8192..8192 + 64);
    }
    places
}

/// Opens and reads everything, and says what was refused.
fn refusal(files: &Files, model: &Model, context: &str) -> Option<String> {
    let store = match open(MemoryDisk::with_contents(files)) {
        Ok(store) => store,
        Err(error) => return Some(error.to_string()),
    };
    let read = match model.check(&store) {
        Ok(()) => None,
        Err(Difference::Unread(text)) => Some(text),
        Err(Difference::Wrong(text)) => panic!("{context}: a wrong answer: {text}"),
    };
    let report = store.verify(&mut |_| {}).expect("it reports what it finds");
    let verified = report.first.map(|error| error.to_string());
    assert!(read.is_none() || verified.is_some(), "{context}: not found: {read:?}");
    read.or(verified)
}

#[test]
fn what_was_read_ahead_needs_no_file() {
    let (files, model) = store(36);
    let disk = MemoryDisk::with_contents(&files);
    let options = Options { cache_bytes: 1 << 30, ..OPTIONS };
    let store = Database::open(disk.clone(), &options).expect("it opens");
    let mut end = store.nodes().end();
    while let Some(next) = store.nodes().read_ahead(end).expect("nothing fails") {
        assert!(next < end, "it comes to the start");
        end = next;
    }
    for (name, bytes) in files.iter().filter(|(name, _)| name.starts_with("nodes")) {
        let file = disk.open(name, false).expect("memory").expect("there");
        file.write_at(0, &vec![0; bytes.len()]).expect("memory");
    }
    assert!(matches!(model.check(&store), Ok(())), "every page is in memory");
}

#[test]
fn no_flipped_bit_gives_a_wrong_answer() {
    let (files, model) = store(36);
    assert_eq!(refusal(&files, &model, "as it was"), None);
    let mut rng = StdRng::seed_from_u64(6);
    let mut counts: BTreeMap<String, [u64; 2]> = BTreeMap::new();
    for (name, bytes) in &files {
        for at in places(name, bytes.len(), &mut rng) {
            let mut damaged = files.clone();
            let bit = 1 << rng.random_range(0..8);
            damaged.get_mut(name).expect("there")[at] ^= bit;
            let context = format!("{name}, byte {at}, bit {bit}");
            let refused = refusal(&damaged, &model, &context);
            if let Some(text) = &refused {
                let named = text.contains(&format!("memory:{name}")) && text.contains("offset");
                assert!(named, "{context}: {text}");
            }
            let kind = name.split('-').next().expect("one part").to_owned();
            counts.entry(kind).or_default()[usize::from(refused.is_some())] += 1;
        }
    }
    println!("[harmless, refused] flips by file: {counts:?}");
    for log in ["nodes", "blocks", "codes", "witnesses", "format"] {
        assert_eq!(counts[log][0], 0, "all of {log} is in use");
    }
}

#[test]
fn a_file_that_ends_early_is_refused_by_name() {
    let (files, model) = store(36);
    for (name, bytes) in &files {
        for left in [0, 1, 63, 64, 65, bytes.len() / 2, bytes.len() - 1] {
            if left >= bytes.len() {
                continue;
            }
            let mut torn = files.clone();
            torn.get_mut(name).expect("there").truncate(left);
            let context = format!("{name} of {left} bytes");
            if let Some(text) = refusal(&torn, &model, &context) {
                assert!(text.contains(&format!("memory:{name}")), "{context}: {text}");
            } else {
                assert_eq!(name, "index", "{context}");
            }
        }
        let mut missing = files.clone();
        missing.remove(name);
        let text = refusal(&missing, &model, name).expect("a file is missing");
        assert!(text.contains(&format!("memory:{name}")), "{name}: {text}");
    }
}

#[test]
fn what_is_behind_the_end_is_cut_off() {
    let (files, model) = store(36);
    for name in files.keys().filter(|name| *name != "format") {
        for tail in [1, 100, 5000, 40_000] {
            let mut longer = files.clone();
            let bytes = longer.get_mut(name).expect("there");
            bytes.extend(std::iter::repeat_n(0xa5, tail));
            assert_eq!(refusal(&longer, &model, name), None, "{name}, {tail}");
        }
    }
    let mut more = files.clone();
    more.insert("nodes-0000000070000000".into(), vec![1; 99]);
    more.insert("a foreign file".into(), vec![1; 99]);
    assert_eq!(refusal(&more, &model, "more files"), None);
}

#[test]
fn another_format_version_is_refused_by_number() {
    let (mut files, _) = store(6);
    let names: Vec<_> = files.keys().cloned().collect();
    for name in names {
        files.get_mut(&name).expect("there")[8] = 9;
        let text = match open(MemoryDisk::with_contents(&files)) {
            Err(error) => error.to_string(),
            Ok(store) => store.verify(&mut |_| {}).unwrap().first.expect("found").to_string(),
        };
        let expected = format!(
            "memory:{name} has format version 9 at offset 8; this program \
            supports 2"
        );
        assert!(text.starts_with(&expected), "{text}");
        assert!(text.contains("deponent export") && text.contains("deponent import"), "{text}");
        files.get_mut(&name).expect("there")[8] = 2;
    }
}

#[test]
fn files_in_each_other_s_place_are_refused() {
    let (files, model) = store(36);
    let segments: Vec<_> = files.keys().filter(|name| name.contains('-')).collect();
    for pair in segments.windows(2) {
        let mut swapped = files.clone();
        swapped.insert(pair[0].clone(), files[pair[1]].clone());
        swapped.insert(pair[1].clone(), files[pair[0]].clone());
        assert!(refusal(&swapped, &model, "swapped").is_some(), "{pair:?}");
    }
}

#[test]
fn two_processes_cannot_share_a_directory() {
    let folder = tempfile::tempdir().expect("a directory");
    let directory = folder.path().join("made/with/those/above");
    let disk = DirectoryDisk::open(&directory).expect("free");
    let second = DirectoryDisk::open(&directory).expect_err("held");
    assert!(second.to_string().contains("is in use by another process"), "{second}");
    let store = Database::open(disk, &OPTIONS).expect("opens");
    let mut workload = Workload::new(7);
    for step in 0..30 {
        workload.step(&store, step).expect("a working disk");
    }
    workload.persist(&store).expect("a working disk");
    drop(store);
    let disk = DirectoryDisk::open(&directory).expect("free again");
    let store = Database::open(disk, &OPTIONS).expect("opens");
    workload.model.check(&store).expect("the same");
}

/// A page of the index that cannot be read takes nothing else with it, in the same process, while
/// others read and persist.
#[test]
fn what_is_damaged_in_the_index_leaves_the_rest() {
    const BLOCKS: u64 = 1000;
    const INDEX_BLOCKS_AT: usize = 12288;
    const STRIDE_BYTES: usize = 4100;
    let hash = |number: u64| keccak256(number.to_le_bytes());
    let disk = MemoryDisk::new();
    let store = Database::open(disk.clone(), &Options { index_cache_bytes: 0, ..OPTIONS });
    let store = store.expect("it opens");
    for number in 0..BLOCKS {
        let parent_hash = number.checked_sub(1).map_or(B256::ZERO, hash);
        let version = Version { root: B256::ZERO, address: NodeAddress::NONE };
        let block = NewBlock {
            hash: hash(number),
            number,
            parent_hash,
            version,
            floor: NodeAddress::NONE,
            sweep: Bytes::new(),
            block: vec![1].into(),
            codes: Vec::new(),
            witness: None,
            touched: None,
        };
        store.add(block).expect("memory");
    }
    store.persist().expect("memory");
    let index = disk.open("index", false).expect("memory").expect("there");
    let unread = || (0..BLOCKS).filter(|number| store.entry(&hash(*number)).is_err()).count();
    let mut leaves = 0;
    for at in (INDEX_BLOCKS_AT..).step_by(STRIDE_BYTES) {
        let mut byte = [0];
        // Its length changes.
        if at >= index.len().expect("memory") as usize {
            break;
        }
        index.read_at(at as u64, &mut byte).expect("memory");
        index.write_at(at as u64, &[!byte[0]]).expect("memory");
        let Some(bad) = (0..BLOCKS).find(|number| store.entry(&hash(*number)).is_err()) else {
            index.write_at(at as u64, &byte).expect("memory");
            continue;
        };
        let error = store.entry(&hash(bad)).expect_err("it is damaged").to_string();
        assert!(error.contains(&format!("memory:index is damaged at offset {at}")), "{error}");
        let count = unread();
        if count < BLOCKS as usize / 10 {
            leaves += 1;
            if leaves % 16 == 1 {
                let reads = AtomicBool::new(true);
                thread::scope(|scope| {
                    scope.spawn(|| {
                        while reads.load(Ordering::Relaxed) {
                            store.entry(&hash(bad)).expect_err("it is damaged");
                        }
                    });
                    for round in 0..30 {
                        let value = Bytes::from(vec![round; 9]);
                        store.set_meta("note", value.clone()).expect("memory");
                        store.persist().expect("it has nothing to do with what is damaged");
                        assert_eq!(store.meta("note").expect("whole"), Some(value));
                    }
                    reads.store(false, Ordering::Relaxed);
                });
            }
        }
        index.write_at(at as u64, &byte).expect("memory");
        assert_eq!(unread(), 0, "offset {at}: what was damaged is whole again");
    }
    assert!(leaves > 30, "{leaves}");
}
