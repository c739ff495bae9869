//! The power fails at every operation of a workload; what is left is a committed state.

use crate::workload::{Model, OPTIONS, Workload, open};
use alloy_primitives::{B256, Bytes};
use deponent_state::{Database, Error, MemoryDisk, NewBlock, Retained};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;
use testing::disks::{Fault, FaultDisk};

type Files = BTreeMap<String, Vec<u8>>;

const STEPS: u64 = 42;

fn operations(seed: u64, files: &Files) -> u64 {
    let disk = FaultDisk::new(files, Fault::Never);
    Workload::new(seed).run(&disk, STEPS).expect("nothing fails");
    disk.operations()
}

/// Which of the states that the workload may have left there is.
fn found<'a>(store: &Database, workload: &'a Workload, context: &str) -> &'a Model {
    let candidates: Vec<&Model> =
        std::iter::once(&workload.acknowledged).chain(&workload.begun).collect();
    let outcomes: Vec<_> = candidates.iter().map(|model| model.check(store)).collect();
    let matching = outcomes.iter().position(Result::is_ok);
    candidates[matching.unwrap_or_else(|| panic!("{context}: {outcomes:?}"))]
}

/// Opens the store that is left, compares it, and continues the workload.
fn check(files: &Files, workload: &Workload, context: &str) {
    let store =
        open(MemoryDisk::with_contents(files)).unwrap_or_else(|error| panic!("{context}: {error}"));
    let model = found(&store, workload, context);
    let report = store.verify(&mut |_| {}).expect("read");
    assert_eq!(report.damaged, 0, "{context}: {:?}", report.first);
    let mut next = workload.resumed(model, 99);
    let block = next.block(&store).expect("it goes on");
    next.make_head(&store, block).expect("it goes on");
    next.persist(&store).expect("it goes on");
    next.model.check(&store).unwrap_or_else(|error| panic!("{context}, after: {error:?}"));
}

#[test]
fn a_power_cut_at_any_operation_leaves_a_committed_state() {
    let none = Files::new();
    let count = operations(1, &none);
    println!("{count} operations");
    for at in 0..count {
        let disk = FaultDisk::new(&none, Fault::PowerCut { at });
        let mut workload = Workload::new(1);
        // The last operations are those of closing, which reports nothing.
        let _ = workload.run(&disk, STEPS);
        for seed in 0..4 {
            let files = disk.after_power_cut(seed);
            check(&files, &workload, &format!("operation {at}, seed {seed}"));
        }
        check(&disk.after_restart(), &workload, &format!("operation {at}, restart"));
    }
}

#[test]
fn a_power_cut_while_it_opens_after_a_power_cut_leaves_it_too() {
    let none = Files::new();
    let count = operations(2, &none);
    for first in (0..count).step_by(7) {
        let disk = FaultDisk::new(&none, Fault::PowerCut { at: first });
        let mut workload = Workload::new(2);
        let _ = workload.run(&disk, STEPS);
        let files = disk.after_power_cut(first);
        for at in 0.. {
            let again = FaultDisk::new(&files, Fault::PowerCut { at });
            let opened = open(again.clone()).map(drop);
            for seed in 0..3 {
                let context = format!("operation {first}, then {at}, seed {seed}");
                check(&again.after_power_cut(seed), &workload, &context);
            }
            if opened.is_ok() && again.operations() <= at {
                break;
            }
        }
    }
}

/// Unsynced writes of a killed process are visible to the next one, and a power cut
/// after that may take away.
#[test]
fn a_power_cut_after_a_process_was_killed_leaves_it_too() {
    let none = Files::new();
    let count = operations(5, &none);
    for at in count * 3 / 4..count {
        let disk = FaultDisk::new(&none, Fault::PowerCut { at });
        let mut workload = Workload::new(5);
        let _ = workload.run(&disk, STEPS);
        let again = disk.restarted(Fault::Never);
        let store = open(again.clone()).expect("nothing is lost yet");
        for seed in 0..48 {
            let context = format!("killed at {at}, seed {seed}");
            let files = again.after_power_cut(seed);
            let left = open(MemoryDisk::with_contents(&files));
            let left = left.unwrap_or_else(|error| panic!("{context}: {error}"));
            if seed % 16 == 0 {
                found(&left, &workload, &context);
            }
        }
        drop(store);
        check(&again.after_power_cut(at), &workload, &format!("killed at {at}, closed"));
    }
}

/// Kills and power cuts one after another, while the store is opened and while it is used.
#[test]
fn any_sequence_of_kills_and_power_cuts_leaves_a_committed_state() {
    let first = testing::seed();
    for seed in (0..50).map(|index| first.wrapping_add(index)).chain(0..150) {
        let mut chance = StdRng::seed_from_u64(seed);
        let mut disk = FaultDisk::new(&Files::new(), Fault::Never);
        let mut workload = Workload::new(seed);
        let mut lives = Vec::new();
        for _ in 0..6 {
            // Half of them end while the store is opened, or soon after.
            let most = if chance.random_bool(0.5) { 40 } else { 400 };
            let at = chance.random_range(0..most);
            let is_killed = chance.random_bool(0.5);
            lives.push((if is_killed { "killed" } else { "power cut" }, at));
            let context = format!("seed {seed}, {lives:?}");
            let fault = Fault::PowerCut { at };
            disk = match is_killed {
                true => disk.restarted(fault),
                false => FaultDisk::new(&disk.after_power_cut(chance.random()), fault),
            };
            match open(disk.clone()) {
                Ok(store) => {
                    let model = found(&store, &workload, &context);
                    workload = workload.resumed(model, chance.random());
                    let _ = workload.go_on(store, &disk, STEPS);
                }
                Err(error) => {
                    let text = error.to_string();
                    assert!(text.contains("power cut"), "{context}: {text}");
                }
            }
        }
        let context = format!("seed {seed}, {lives:?}, the last");
        check(&disk.after_restart(), &workload, &context);
        check(&disk.after_power_cut(seed), &workload, &context);
    }
}

/// Bytes of witnesses for which there is still room in the segment of the test below.
const ROOM: usize = 200;

/// A store whose log of witnesses has room for one frame in its only segment, and after a power cut
/// perhaps a second segment that no index names.
fn with_an_unknown_segment(files: &Files, at: u64, seed: u64) -> Option<Files> {
    let disk = FaultDisk::new(files, Fault::PowerCut { at });
    if let Ok(store) = open(disk.clone()) {
        let _ = add(&store, 2, 1, ROOM).and_then(|()| add(&store, 3, 2, ROOM));
        let _ = store.persist();
    }
    let files = disk.after_power_cut(seed);
    let segments = files.keys().filter(|name| name.starts_with("witnesses-")).count();
    let store = open(MemoryDisk::with_contents(&files)).expect("it opens");
    let is_known = store.entry(&B256::repeat_byte(2)).expect("memory").is_some();
    (segments == 2 && !is_known).then_some(files)
}

fn add(store: &Database, byte: u8, parent: u8, witness_bytes: usize) -> Result<(), Error> {
    store.add(NewBlock {
        hash: B256::repeat_byte(byte),
        number: byte.into(),
        parent_hash: B256::repeat_byte(parent),
        witness: Some(vec![byte; witness_bytes].into()),
        ..NewBlock::default()
    })
}

/// Would it come back when its log reaches beyond the place where it begins, the segment before it
/// would be taken to end there.
#[test]
fn a_segment_that_was_cut_off_does_not_come_back() {
    let disk = FaultDisk::new(&Files::new(), Fault::Never);
    let store = open(disk.clone()).expect("opens");
    let first_bytes = OPTIONS.witness_segment_bytes as usize - ROOM;
    add(&store, 1, 0, first_bytes).and_then(|()| store.persist()).expect("nothing fails");
    drop(store);
    let files = disk.after_restart();
    let cuts = (0..60).flat_map(|at| (0..8).map(move |seed| (at, seed)));
    let mut unknown = cuts.filter_map(|(at, seed)| with_an_unknown_segment(&files, at, seed));
    let files = unknown.next().expect("it is left by one of them");
    // The process that removes it is killed at each operation; the last time it is not.
    for at in 0.. {
        let killed = FaultDisk::new(&files, Fault::PowerCut { at });
        let was_killed = open(killed.clone()).is_err();
        let disk = killed.restarted(Fault::Never);
        let store = open(disk.clone()).expect("nothing is lost yet");
        add(&store, 4, 1, 3 * ROOM).and_then(|()| store.persist()).expect("nothing fails");
        for seed in 0..8 {
            let context = format!("killed at {at}, seed {seed}");
            let left = open(MemoryDisk::with_contents(&disk.after_power_cut(seed)));
            let left = left.unwrap_or_else(|error| panic!("{context}: {error}"));
            for (byte, bytes) in [(1, first_bytes), (4, 3 * ROOM)] {
                let found = left.witness(&B256::repeat_byte(byte));
                let expected = Retained::Present(Bytes::from(vec![byte; bytes]));
                assert_eq!(found.expect("it was persisted"), expected, "{context}");
            }
        }
        if !was_killed {
            break;
        }
    }
}

/// Here no segment's creation makes the store's own files durable with it.
#[test]
fn a_store_that_has_no_segment_yet_survives_a_power_cut() {
    let begin = |disk: &FaultDisk| -> Result<(), Error> {
        let store = open(disk.clone())?;
        store.set_meta("note", Bytes::from_static(b"first"))?;
        store.persist().map(drop)
    };
    for at in 0.. {
        let disk = FaultDisk::new(&Files::new(), Fault::PowerCut { at });
        let done = begin(&disk);
        for seed in 0..16 {
            let context = format!("operation {at}, seed {seed}");
            let files = disk.after_power_cut(seed);
            let store = open(MemoryDisk::with_contents(&files));
            let store = store.unwrap_or_else(|error| panic!("{context}: {error}"));
            let note = store.meta("note").expect("memory");
            assert!(note.is_some() || done.is_err(), "{context}: it was persisted");
        }
        // Killed there and started again, it has it too.
        let again = disk.restarted(Fault::Never);
        begin(&again).expect("nothing fails");
        for seed in 0..16 {
            let context = format!("killed at operation {at}, seed {seed}");
            let files = again.after_power_cut(seed);
            let store = open(MemoryDisk::with_contents(&files));
            let store = store.unwrap_or_else(|error| panic!("{context}: {error}"));
            assert!(store.meta("note").expect("memory").is_some(), "{context}: it was persisted");
        }
        if disk.operations() <= at {
            break;
        }
    }
}

#[test]
fn a_refused_operation_is_the_last_and_harms_nothing() {
    const ENOSPC: i32 = 28;
    const EIO: i32 = 5;
    const EROFS: i32 = 30;
    let none = Files::new();
    let count = operations(3, &none);
    for at in 0..count {
        for errno in [ENOSPC, EIO, EROFS] {
            let context = format!("operation {at}, errno {errno}");
            let disk = FaultDisk::new(&none, Fault::Errno { at, errno });
            let mut workload = Workload::new(3);
            if let Err(error) = workload.run(&disk, STEPS) {
                let text = error.to_string();
                let names = text.contains("fault:") && text.contains(": could not ");
                assert!(names, "{context}: {text}");
            }
            check(&disk.after_restart(), &workload, &context);
            check(&disk.after_power_cut(at), &workload, &context);
        }
    }
}

#[test]
fn after_a_failed_write_every_other_is_refused() {
    let disk = FaultDisk::new(&Files::new(), Fault::Never);
    drop(open(disk.clone()).expect("opens"));
    let files = disk.after_restart();
    let count = {
        let disk = FaultDisk::new(&files, Fault::Never);
        drop(open(disk.clone()).expect("opens"));
        disk.operations()
    };
    let disk = FaultDisk::new(&files, Fault::Errno { at: count, errno: 28 });
    let store = open(disk.clone()).expect("opens");
    let mut workload = Workload::new(4);
    let block = workload.block(&store).expect("in memory");
    workload.make_head(&store, block).expect("in memory");
    let first = workload.persist(&store).expect_err("no space");
    assert!(first.to_string().contains("No space left"), "{first}");
    let operations = disk.operations();
    for error in [
        store.persist().expect_err("refused"),
        store.set_canonical([], store.heads()).expect_err("refused"),
        store.batch().seal().expect_err("refused"),
        store.unwind(0, &mut |_| ()).expect_err("refused"),
        store.add_codes(Vec::new()).expect_err("refused"),
        store.add_witness(block, Bytes::new()).expect_err("refused"),
        workload.block(&store).expect_err("refused"),
        store.wait_for_room(0, std::time::Duration::from_secs(9)).expect_err("refused"),
    ] {
        assert!(error.to_string().starts_with("nothing is written until a restart"), "{error}");
        assert!(error.to_string().contains("No space left"), "{error}");
    }
    workload.model.check(&store).expect("what is in memory can still be read");
    drop(store);
    assert_eq!(disk.operations(), operations, "nothing more was tried");
}
