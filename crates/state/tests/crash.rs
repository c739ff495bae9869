//! The power fails at every operation of a workload; what is left is a committed state.

mod common;

use alloy_primitives::Bytes;
use common::{Model, Workload, open};
use state::{Database, Error, Fault, FaultDisk, MemoryDisk};
use std::collections::BTreeMap;

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

/// Opens what is left, compares it, and goes on with it.
fn check(files: &Files, workload: &Workload, context: &str) {
    let store =
        open(MemoryDisk::with_contents(files)).unwrap_or_else(|error| panic!("{context}: {error}"));
    let model = found(&store, workload, context);
    let report = store.verify(&mut |_| {}).expect("read");
    assert_eq!(report.damaged, 0, "{context}: {:?}", report.first);
    let mut next = Workload::after(model);
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

/// What a process has written and not synced when it is killed, the next one sees, and a power cut
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
                let names = text.contains("fault:") && text.contains("offset");
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
        store.set_canonical(&[], store.heads()).expect_err("refused"),
        store.batch().seal().expect_err("refused"),
        store.unwind(0).expect_err("refused"),
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
