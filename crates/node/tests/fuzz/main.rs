//! A short run of the fuzz targets on what was found before, and on changes of it made by chance.

mod targets;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};

use targets::{IS_PATIENT, TARGETS, Target};
use testing::Random;

fn corpus(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus").join(target)
}

/// The inputs of a target by their names.
fn inputs(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = corpus(target);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    let mut inputs: Vec<_> = entries
        .map(|entry| {
            let path = entry.expect("an entry").path();
            let name = path.file_name().expect("it has a name").to_string_lossy().into_owned();
            (name, fs::read(&path).expect("a file"))
        })
        .collect();
    inputs.sort();
    inputs
}

/// Calls a target; when it panics, says with what.
fn call(name: &str, target: Target, data: &[u8], context: &str) -> bool {
    catch_unwind(AssertUnwindSafe(|| target(data))).unwrap_or_else(|_| {
        let path = std::env::temp_dir().join(format!("deponent-fuzz-{name}"));
        let _ = fs::write(&path, data);
        panic!("{name}, {context}: it panicked on what is in {}", path.display())
    })
}

/// Waits for the other test: the calls of one of them take both cores of a small machine, and
/// the corpus is read by servers and clients that bound how long they wait.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn the_corpus_has_well_formed_inputs_for_every_target_and_no_other() {
    let _turn = turn();
    IS_PATIENT.store(true, Ordering::Relaxed);
    let folders = fs::read_dir(corpus("")).expect("a folder");
    let mut names: Vec<_> =
        folders.map(|entry| entry.expect("an entry").file_name().into_string()).collect();
    names.sort();
    let known: Vec<_> = TARGETS.iter().map(|(name, ..)| Ok((*name).to_owned())).collect();
    assert_eq!(names, known);
    for (name, target, _) in TARGETS {
        let mut well_formed = 0;
        for (file, data) in inputs(name) {
            let is_well_formed = call(name, *target, &data, &file);
            assert!(is_well_formed || !file.starts_with("good"), "{name}: {file} is refused");
            well_formed += usize::from(is_well_formed);
        }
        assert!(well_formed > 0, "{name} has no well-formed input");
    }
}

#[test]
fn no_change_of_the_corpus_makes_a_target_panic() {
    let _turn = turn();
    IS_PATIENT.store(false, Ordering::Relaxed);
    let seed = testing::seed();
    let times = testing::rounds("DEPONENT_FUZZ", 1, 10);
    println!("{times} times the usual number of calls");
    std::thread::scope(|scope| {
        for (name, target, calls) in TARGETS {
            scope.spawn(move || {
                let calls = calls * times as usize;
                let inputs: Vec<_> = inputs(name).into_iter().map(|(_, data)| data).collect();
                let mut random = Random::new(seed);
                let mut well_formed = 0;
                for at in 0..calls {
                    let data = changed(&mut random, &inputs);
                    let context = format!("seed {seed}, call {at}");
                    well_formed += usize::from(call(name, *target, &data, &context));
                }
                println!("{name}: {well_formed} of {calls} inputs are well formed");
            });
        }
    });
}

/// One of the inputs, changed in a few places.
fn changed(random: &mut Random, inputs: &[Vec<u8>]) -> Vec<u8> {
    let mut data = random.pick(inputs);
    for _ in 0..=random.below(4) {
        change(random, &mut data, inputs);
    }
    data
}

fn change(random: &mut Random, data: &mut Vec<u8>, inputs: &[Vec<u8>]) {
    const BYTES: [u8; 16] = *b"\x00\x01\x7f\x80\x81\xb7\xb8\xbf\xc0\xf7\xf8\xff\"{0,";
    let at = random.below(data.len().max(1));
    let end = (at + 1 + random.below(40)).min(data.len());
    match random.below(8) {
        _ if data.is_empty() => data.push(random.number() as u8),
        0 => data[at] ^= 1 << random.below(8),
        1 => data[at] = random.pick(&BYTES),
        2 => data.insert(at, random.number() as u8),
        3 => drop(data.drain(at..end)),
        4 => {
            let piece = data[at..end].to_vec();
            data.splice(at..at, piece);
        }
        5 => data.truncate(at),
        6 => {
            // A piece of another input.
            let other = &inputs[random.below(inputs.len())];
            let from = random.below(other.len().max(1));
            let to = (from + 1 + random.below(200)).min(other.len());
            data.splice(at..end, other[from..to].iter().copied());
        }
        _ => {
            // A number that is a little or a lot off.
            let end = (at + 4).min(data.len());
            let number = [0, 1, 4, 12, u32::MAX, 1 << 31][random.below(6)];
            let number = number + [0, 1][random.below(2)] * u32::from(number < 99);
            data[at..end].copy_from_slice(&number.to_le_bytes()[..end - at]);
        }
    }
}
