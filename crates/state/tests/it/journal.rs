//! The journal: nothing that was acknowledged is lost, wherever the process or the power ends.

use crate::workload::OPTIONS;
use alloy_primitives::{B256, Bytes, keccak256};
use deponent_state::{
    Database, Disk, Error, JournalChoice, JournalMode, MemoryDisk, NewBlock, Options,
};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::{BTreeMap, BTreeSet};
use testing::disks::{Fault, FaultDisk};

type Files = BTreeMap<String, Vec<u8>>;

/// A test run: blocks in a row that are appended, some of which are persisted.
struct Run {
    random: StdRng,
    /// Blocks that were begun, and those of them that were acknowledged, which come first.
    begun: Vec<(B256, Bytes)>,
    acknowledged: usize,
    /// Fork choices that were begun, and the last of them that was acknowledged.
    choices: u64,
    acknowledged_choice: u64,
}

impl Run {
    fn new(seed: u64) -> Self {
        let random = StdRng::seed_from_u64(seed);
        Self { random, begun: Vec::new(), acknowledged: 0, choices: 0, acknowledged_choice: 0 }
    }

    fn go(&mut self, store: &Database, steps: usize) -> Result<(), Error> {
        (0..steps).try_for_each(|_| self.step(store))
    }

    fn step(&mut self, store: &Database) -> Result<(), Error> {
        match self.random.random_range(0..10) {
            0..6 => self.block(store),
            6..9 => {
                self.choices += 1;
                let number = self.choices;
                store.journal().append_choice(JournalChoice { number, choice: note(number) })?;
                store.journal().sync()?;
                self.acknowledged_choice = number;
                Ok(())
            }
            _ => {
                let number = self.choices.to_le_bytes().to_vec();
                store.set_meta("choice", number.into())?;
                store.persist().map(drop)
            }
        }
    }

    fn block(&mut self, store: &Database) -> Result<(), Error> {
        let mut block = vec![0; self.random.random_range(0..900)];
        self.random.fill(&mut block[..]);
        let hash = keccak256([&self.begun.len().to_le_bytes()[..], &block].concat());
        let parent_hash = self.begun.last().map(|(hash, _)| *hash).unwrap_or_default();
        let number = self.begun.len() as u64;
        self.begun.push((hash, block.clone().into()));
        let bytes = block.len();
        store.journal().append_block(hash, bytes, |out| out.extend_from_slice(&block))?;
        store.journal().sync()?;
        self.acknowledged = self.begun.len();
        store.add(NewBlock { hash, number, parent_hash, ..NewBlock::default() })
    }

    /// Each block that was acknowledged is in the index or in the journal, in order and as it was,
    /// and so is the last fork choice. If `may_lose`, a tail of them may be missing.
    fn check(&self, files: &Files, may_lose: bool, context: &str) {
        let store = Database::open(MemoryDisk::with_contents(files), &OPTIONS)
            .unwrap_or_else(|error| panic!("{context}: {error}"));
        let replayed = replayed(&store);
        assert_eq!(replayed.len(), store.journal().found_count());
        let place = |hash: &B256| self.begun.iter().position(|(begun, _)| begun == hash);
        let places = replayed.iter().map(|(hash, block)| {
            let place = place(hash).unwrap_or_else(|| panic!("{context}: {hash} was not begun"));
            assert_eq!(*block, self.begun[place].1, "{context}");
            assert!(store.entry(hash).expect("memory").is_none(), "{context}: it is persisted");
            place
        });
        let places: Vec<_> = places.collect();
        assert!(places.is_sorted(), "{context}: {places:?}");
        let found: BTreeSet<_> = places.into_iter().collect();
        let is_persisted = |hash| store.entry(hash).expect("memory").is_some();
        let is_kept = |place| found.contains(&place) || is_persisted(&self.begun[place].0);
        let last = store.journal().last_choice();
        let journaled = last.as_ref().map_or(0, |choice| choice.number);
        assert!(last.is_none_or(|choice| choice.choice == note(choice.number)), "{context}");
        assert!(journaled <= self.choices, "{context}");
        if !may_lose {
            let lost = (0..self.acknowledged).find(|place| !is_kept(*place));
            assert_eq!(lost, None, "{context}: of {}", self.acknowledged);
            let meta = store.meta("choice").expect("memory");
            let persisted = meta.map_or(0, |meta| u64::from_le_bytes(meta[..].try_into().unwrap()));
            assert!(journaled.max(persisted) >= self.acknowledged_choice, "{context}");
        }
    }
}

fn note(number: u64) -> Bytes {
    vec![number as u8; 96].into()
}

fn replayed(store: &Database) -> Vec<(B256, Bytes)> {
    let mut found = Vec::new();
    let each = |hash, block| -> Result<(), Error> {
        found.push((hash, block));
        Ok(())
    };
    store.journal().replay(each).expect("it can be read");
    found
}

fn open(disk: impl Disk + 'static, journal: JournalMode) -> Result<Database, Error> {
    Database::open(disk, &Options { journal, ..OPTIONS })
}

/// Opens a store, runs, ends at operation `at`; then again on what a kill leaves.
fn run(seed: u64, journal: JournalMode, at: u64) -> (FaultDisk, Run) {
    let mut run = Run::new(seed);
    let disk = FaultDisk::new(&Files::new(), Fault::PowerCut { at });
    let _ = open(disk.clone(), journal).and_then(|store| run.go(&store, 60));
    (disk, run)
}

fn operations(seed: u64, journal: JournalMode) -> u64 {
    let (disk, run) = run(seed, journal, u64::MAX);
    assert_eq!(run.acknowledged, run.begun.len(), "nothing fails");
    disk.operations()
}

#[test]
fn a_kill_at_any_operation_loses_nothing_that_was_acknowledged() {
    for seed in [1, rand::random()] {
        let count = operations(seed, JournalMode::Write);
        println!("seed {seed}: {count} operations");
        for at in 0..count {
            let (disk, run) = run(seed, JournalMode::Write, at);
            let context = format!("seed {seed}, operation {at}");
            run.check(&disk.after_restart(), false, &context);
            for cut in 0..4 {
                let files = disk.after_power_cut(cut);
                run.check(&files, true, &format!("{context}, power cut {cut}"));
            }
        }
    }
}

#[test]
fn a_power_cut_at_any_operation_loses_nothing_where_records_are_synced() {
    for seed in [2, rand::random()] {
        let count = operations(seed, JournalMode::Sync);
        println!("seed {seed}: {count} operations");
        for at in 0..count {
            let (disk, run) = run(seed, JournalMode::Sync, at);
            let context = format!("seed {seed}, operation {at}");
            run.check(&disk.after_restart(), false, &context);
            for cut in 0..6 {
                let files = disk.after_power_cut(cut);
                run.check(&files, false, &format!("{context}, power cut {cut}"));
            }
        }
    }
}

/// A record of a first process stays until its block is persisted, whatever later ones append.
#[test]
fn records_outlive_any_number_of_kills() {
    let first = rand::random_range(0..1_000_000);
    println!("seeds from {first}");
    for seed in first..first + 60 {
        let mut chance = StdRng::seed_from_u64(seed);
        let mut run = Run::new(seed);
        let mut disk = FaultDisk::new(&Files::new(), Fault::Never);
        for life in 0..6 {
            let context = format!("seed {seed}, life {life}");
            let at = chance.random_range(0..120);
            disk = disk.restarted(Fault::PowerCut { at });
            let Ok(store) = open(disk.clone(), JournalMode::Sync) else { continue };
            run.check(&disk.after_restart(), false, &context);
            // As an engine does it: the blocks are run, and added again.
            let last = store.journal().last_choice().map_or(0, |choice| choice.number);
            run.choices = run.choices.max(last);
            let known = |(hash, _): &&(B256, Bytes)| {
                let is_found = replayed(&store).iter().any(|(found, _)| found == hash);
                is_found || store.entry(hash).expect("memory").is_some()
            };
            let kept = run.begun.iter().take_while(known).count();
            run.begun.truncate(kept);
            run.acknowledged = run.acknowledged.min(kept);
            let again = replayed(&store).into_iter().try_for_each(|(hash, _)| {
                let place = run.begun.iter().position(|(begun, _)| *begun == hash);
                let place = place.expect("checked above");
                let parent_hash = place.checked_sub(1).map(|before| run.begun[before].0);
                let parent_hash = parent_hash.unwrap_or_default();
                let number = place as u64;
                store.add(NewBlock { hash, number, parent_hash, ..NewBlock::default() })
            });
            let _ = again.and_then(|()| run.go(&store, 30));
            drop(store);
            let cut = chance.random();
            run.check(&disk.after_power_cut(cut), false, &format!("{context}, power cut {cut}"));
        }
        run.check(&disk.after_restart(), false, &format!("seed {seed}, the last"));
    }
}

#[test]
fn a_record_that_a_kill_or_a_flipped_bit_has_torn_ends_its_file_and_is_told() {
    let disk = MemoryDisk::new();
    let options = Options { journal_file_bytes: 1 << 20, ..OPTIONS };
    let store = Database::open(disk.clone(), &options).expect("memory");
    let mut run = Run::new(3);
    while run.acknowledged < 4 {
        run.block(&store).expect("memory");
    }
    drop(store);
    let files = disk.contents();
    let name = files.keys().find(|name| name.starts_with("journal-")).expect("begun");
    let whole = &files[name];
    for at in 64..whole.len() {
        for is_cut in [true, false] {
            let mut torn = files.clone();
            let bytes = torn.get_mut(name).expect("there");
            if is_cut {
                bytes.truncate(at);
            } else {
                bytes[at] ^= 0x10;
            }
            let length = bytes.len() as u64;
            let store = open(MemoryDisk::with_contents(&torn), JournalMode::Write).expect("opens");
            for ((hash, block), begun) in replayed(&store).iter().zip(&run.begun) {
                assert_eq!((*hash, block), (begun.0, &begun.1), "byte {at}");
            }
            let tails = store.journal().tails();
            let is_at_an_end = is_cut && tails.is_empty();
            assert!(is_at_an_end || tails[0].file == format!("memory:{name}"), "{tails:?}");
            assert!(is_at_an_end || tails[0].offset + tails[0].bytes == length, "{tails:?}");
            assert!(is_at_an_end || tails[0].offset <= at as u64);
            assert!(is_cut || replayed(&store).len() < 4, "byte {at}: the change was not noticed");
        }
    }
}

#[test]
fn files_go_when_their_blocks_are_persisted_and_the_choice_stays() {
    let disk = MemoryDisk::new();
    let store = open(disk.clone(), JournalMode::Write).expect("memory");
    let mut run = Run::new(4);
    let files = || disk.contents().keys().filter(|name| name.starts_with("journal-")).count();
    let choice = JournalChoice { number: 7, choice: note(7) };
    store.journal().append_choice(choice.clone()).expect("memory");
    for _ in 0..50 {
        run.block(&store).expect("memory");
    }
    assert!(files() > 10, "{}", files());
    store.persist().expect("memory");
    assert_eq!(files(), 1);
    drop(store);
    let store = open(disk.clone(), JournalMode::Write).expect("memory");
    assert_eq!((store.journal().found_count(), store.journal().last_choice()), (0, Some(choice)));
    // Nothing is run again of what was dropped on purpose.
    run.block(&store).expect("memory");
    let heads = deponent_state::Heads { genesis: Some(run.begun[0].0), ..Default::default() };
    let heads = deponent_state::Heads { head: Some(run.begun[40].0), ..heads };
    let numbers: Vec<_> = (0..=40).map(|at| (at as u64, Some(run.begun[at].0))).collect();
    store.set_canonical(&numbers, heads).expect("memory");
    store.unwind(10, &mut |_| ()).expect("memory");
    assert_eq!(files(), 0);
}

#[test]
fn a_journal_that_is_off_is_read_and_not_written() {
    let disk = MemoryDisk::new();
    let store = open(disk.clone(), JournalMode::Write).expect("memory");
    let mut run = Run::new(5);
    run.block(&store).expect("memory");
    drop(store);
    let journal = || {
        let mut files = disk.contents();
        files.retain(|name, _| name.starts_with("journal-"));
        files
    };
    let before = journal();
    let store = open(disk.clone(), JournalMode::Off).expect("memory");
    assert_eq!(replayed(&store), run.begun);
    run.block(&store).expect("memory");
    store.persist().expect("memory");
    assert!(before.len() == 1 && journal() == before);
}
