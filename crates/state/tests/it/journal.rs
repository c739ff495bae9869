//! The journal: nothing that was appended is lost, wherever the process or the power ends.

use crate::workload::{OPTIONS, new_canonical};
use alloy_primitives::{B256, Bytes, keccak256};
use deponent_state::{
    Database, Disk, Error, JournalChoice, JournalMode, MemoryDisk, NewBlock, Options,
};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use testing::disks::{Fault, FaultDisk};

type Files = BTreeMap<String, Vec<u8>>;

/// A test run: blocks in a row that are appended, then added to the store, then persisted.
struct Run {
    random: StdRng,
    /// Blocks that were begun, and how many of them were added, which come first.
    begun: Vec<(B256, Bytes)>,
    added: usize,
    /// Fork choices that were begun, and the one that the store has been given.
    choices: u64,
    stored_choice: u64,
    appended: Kept,
    synced: Kept,
}

/// A claim on a store: so many blocks are kept, and this fork choice or a later one.
#[derive(Clone, Copy, Debug, Default)]
struct Kept {
    blocks: usize,
    choice: u64,
}

impl Run {
    fn new(seed: u64) -> Self {
        Self {
            random: StdRng::seed_from_u64(seed),
            begun: Vec::new(),
            added: 0,
            choices: 0,
            stored_choice: 0,
            appended: Kept::default(),
            synced: Kept::default(),
        }
    }

    fn go(&mut self, store: &Database, steps: usize) -> Result<(), Error> {
        (0..steps).try_for_each(|_| self.step(store))
    }

    /// A step of an engine, whose threads append, seal and persist each at their own pace.
    fn step(&mut self, store: &Database) -> Result<(), Error> {
        match self.random.random_range(0..12) {
            0..6 => self.append_block(store)?,
            6..9 => self.append_choice(store)?,
            9..11 => {
                let count = self.random.random_range(0..6);
                self.add(store, count)?;
            }
            _ => {
                self.stored_choice = self.random.random_range(self.stored_choice..=self.choices);
                let number = self.stored_choice.to_le_bytes().to_vec();
                store.set_meta("choice", number.into())?;
                store.persist()?;
            }
        }
        // Another thread may append before this one syncs.
        if self.random.random_bool(0.7) {
            store.journal().sync()?;
            self.synced = self.appended;
        }
        Ok(())
    }

    fn append_block(&mut self, store: &Database) -> Result<(), Error> {
        let mut block = vec![0; self.random.random_range(0..900)];
        self.random.fill(&mut block[..]);
        self.append(store, block)
    }

    fn append(&mut self, store: &Database, block: Vec<u8>) -> Result<(), Error> {
        let hash = keccak256([&self.begun.len().to_le_bytes()[..], &block].concat());
        let bytes = block.len();
        self.begun.push((hash, block.clone().into()));
        store.journal().append_block(hash, bytes, |out| out.extend_from_slice(&block))?;
        self.appended.blocks = self.begun.len();
        Ok(())
    }

    fn append_choice(&mut self, store: &Database) -> Result<(), Error> {
        self.choices += 1;
        let number = self.choices;
        store.journal().append_choice(JournalChoice { number, choice: note(number) })?;
        self.appended.choice = number;
        Ok(())
    }

    /// Adds the next blocks to the store, `count` at most.
    fn add(&mut self, store: &Database, count: usize) -> Result<(), Error> {
        for place in (self.added..self.begun.len()).take(count) {
            let hash = self.begun[place].0;
            let parent = place.checked_sub(1).map(|parent| self.begun[parent].0);
            let (number, parent_hash) = (place as u64, parent.unwrap_or_default());
            store.add(NewBlock { hash, number, parent_hash, ..NewBlock::default() })?;
            self.added += 1;
        }
        Ok(())
    }

    /// Each block that is to be kept is in the index or in the journal, in order and as it was, and
    /// so is the last fork choice.
    fn check(&self, files: &Files, kept: Kept, context: &str) {
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
        let lost = (0..kept.blocks).find(|place| !is_kept(*place));
        assert_eq!(lost, None, "{context}: of {kept:?}");
        let found = journaled.max(stored_choice(&store));
        assert!(found >= kept.choice, "{context}: {found} of {kept:?}");
    }
}

fn stored_choice(store: &Database) -> u64 {
    let meta = store.meta("choice").expect("memory");
    meta.map_or(0, |meta| u64::from_le_bytes(meta[..].try_into().unwrap()))
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
    assert_eq!(run.appended.blocks, run.begun.len(), "nothing fails");
    disk.operations()
}

#[test]
fn a_kill_at_any_operation_loses_nothing_that_was_appended() {
    for seed in [1, testing::seed()] {
        let count = operations(seed, JournalMode::Write);
        println!("seed {seed}: {count} operations");
        for at in 0..count {
            let (disk, run) = run(seed, JournalMode::Write, at);
            let context = format!("seed {seed}, operation {at}");
            run.check(&disk.after_restart(), run.appended, &context);
            for cut in 0..4 {
                let files = disk.after_power_cut(cut);
                run.check(&files, Kept::default(), &format!("{context}, power cut {cut}"));
            }
        }
    }
}

#[test]
fn a_power_cut_at_any_operation_loses_nothing_where_records_are_synced() {
    for seed in [2, testing::seed()] {
        let count = operations(seed, JournalMode::Sync);
        println!("seed {seed}: {count} operations");
        for at in 0..count {
            let (disk, run) = run(seed, JournalMode::Sync, at);
            let context = format!("seed {seed}, operation {at}");
            run.check(&disk.after_restart(), run.appended, &context);
            for cut in 0..6 {
                let files = disk.after_power_cut(cut);
                run.check(&files, run.synced, &format!("{context}, power cut {cut}"));
            }
        }
    }
}

/// A record of a first process stays until its block is persisted, whatever later ones append.
#[test]
fn records_outlive_any_number_of_kills() {
    let first = testing::seed();
    for seed in (0..60).map(|index| first.wrapping_add(index)) {
        let mut chance = StdRng::seed_from_u64(seed);
        let mut run = Run::new(seed);
        let mut disk = FaultDisk::new(&Files::new(), Fault::Never);
        for life in 0..6 {
            let context = format!("seed {seed}, life {life}");
            let at = chance.random_range(0..120);
            disk = disk.restarted(Fault::PowerCut { at });
            let Ok(store) = open(disk.clone(), JournalMode::Sync) else { continue };
            run.check(&disk.after_restart(), run.appended, &context);
            // As an engine does it: the blocks are run, and added again, when others come already.
            let again = replayed(&store);
            let is_persisted = |hash: &B256| store.entry(hash).expect("memory").is_some();
            let is_found = |hash: &B256| again.iter().any(|(found, _)| found == hash);
            run.added = run.begun.iter().take_while(|(hash, _)| is_persisted(hash)).count();
            let left = run.begun[run.added..].iter().take_while(|(hash, _)| is_found(hash)).count();
            run.begun.truncate(run.added + left);
            run.stored_choice = stored_choice(&store);
            // All that was found is durable now.
            let last = store.journal().last_choice().map_or(0, |choice| choice.number);
            run.appended = Kept { blocks: run.begun.len(), choice: last.max(run.stored_choice) };
            run.synced = run.appended;
            let _ = run.go(&store, 30);
            drop(store);
            let cut = chance.random();
            let files = disk.after_power_cut(cut);
            run.check(&files, run.synced, &format!("{context}, power cut {cut}"));
        }
        run.check(&disk.after_restart(), run.appended, &format!("seed {seed}, the last"));
    }
}

/// Threads that append and sync as they like: what one of them has synced is there, whatever the
/// others are about.
#[test]
fn a_sync_waits_for_the_one_that_is_under_way() {
    let disk = FaultDisk::new(&Files::new(), Fault::Never);
    let disk = disk.with_sync_time(Duration::from_micros(200));
    let store = open(disk.clone(), JournalMode::Sync).expect("opens");
    let append = |thread: u8| {
        for count in 0..100_u8 {
            let hash = keccak256([thread, count]);
            // A third of a file.
            let appended = store.journal().append_block(hash, 300, |out| out.extend([0; 300]));
            appended.and_then(|()| store.journal().sync()).expect("nothing fails");
            let files = disk.after_power_cut(count.into());
            let left = open(MemoryDisk::with_contents(&files), JournalMode::Write).expect("opens");
            let is_there = replayed(&left).iter().any(|(found, _)| *found == hash);
            assert!(is_there, "block {count} of thread {thread} is lost");
        }
    };
    std::thread::scope(|scope| {
        (0..4).for_each(|thread| _ = scope.spawn(move || append(thread)));
    });
}

#[test]
fn after_a_sync_that_failed_none_succeeds() {
    let whole = FaultDisk::new(&Files::new(), Fault::Never);
    let run = |disk: &FaultDisk| {
        let store = open(disk.clone(), JournalMode::Sync)?;
        let mut run = Run::new(6);
        run.append_block(&store)?;
        let begun = disk.operations();
        let synced = store.journal().sync();
        // A thread that waited for that sync, with a record that was in it.
        Ok::<_, Error>((begun, synced.is_ok(), store.journal().sync().is_ok()))
    };
    let (at, ..) = run(&whole).expect("nothing fails");
    let failing = FaultDisk::new(&Files::new(), Fault::Errno { at, errno: 5 });
    assert_eq!(run(&failing).expect("it fails later"), (at, false, false));
}

#[test]
fn a_record_that_a_kill_or_a_flipped_bit_has_torn_ends_its_file_and_is_told() {
    let disk = MemoryDisk::new();
    let options = Options { journal_file_bytes: 1 << 20, ..OPTIONS };
    let store = Database::open(disk.clone(), &options).expect("memory");
    let mut run = Run::new(3);
    (0..4).for_each(|_| run.append_block(&store).expect("memory"));
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
    // Eight fill a file.
    (0..30).for_each(|_| run.append_choice(&store).expect("memory"));
    assert_eq!(files(), 4);
    let choice = JournalChoice { number: 30, choice: note(30) };
    (0..50).for_each(|_| run.append_block(&store).expect("memory"));
    let count = files();
    assert!(count > 10, "{count}");
    // The files of ten blocks stay.
    run.add(&store, 40).and_then(|()| store.persist().map(drop)).expect("memory");
    assert!(1 < files() && files() < count, "{} of {count}", files());
    run.check(&disk.contents(), run.appended, "ten blocks are not persisted");
    run.add(&store, 10).and_then(|()| store.persist().map(drop)).expect("memory");
    assert_eq!(files(), 1);
    drop(store);
    let store = open(disk.clone(), JournalMode::Write).expect("memory");
    assert_eq!((store.journal().found_count(), store.journal().last_choice()), (0, Some(choice)));
    // Nothing is run again of what was dropped on purpose.
    run.append_block(&store).and_then(|()| run.add(&store, 1)).expect("memory");
    let heads = deponent_state::Heads { genesis: Some(run.begun[0].0), ..Default::default() };
    let heads = deponent_state::Heads { head: Some(run.begun[40].0), ..heads };
    let numbers: Vec<_> =
        (0..=40).map(|at| (at as u64, Some(new_canonical(run.begun[at].0)))).collect();
    store.set_canonical(numbers, heads).expect("memory");
    store.unwind(10, &mut |_| ()).expect("memory");
    assert_eq!(files(), 0);
    // A block that comes after that is kept.
    run.append_block(&store).expect("memory");
    drop(store);
    let store = open(disk.clone(), JournalMode::Write).expect("memory");
    assert_eq!(replayed(&store), [run.begun.last().expect("appended").clone()]);
}

#[test]
fn a_file_with_the_last_fork_choice_stays_until_the_next_one_has_a_durable_name() {
    let disk = FaultDisk::new(&Files::new(), Fault::Never);
    let store = open(disk.clone(), JournalMode::Sync).expect("opens");
    let mut run = Run::new(10);
    let persist = |run: &mut Run| run.add(&store, 20).and_then(|()| store.persist().map(drop));
    // The segments of the store are begun here, and their names are synced.
    run.append_block(&store).and_then(|()| persist(&mut run)).expect("nothing fails");
    run.append_choice(&store).and_then(|()| store.journal().sync()).expect("nothing fails");
    let kept = Kept { blocks: 1, ..run.appended };
    let files = || disk.after_restart().into_keys().filter(|name| name.starts_with("journal-"));
    while files().count() < 2 {
        run.append_block(&store).expect("nothing fails");
    }
    persist(&mut run).expect("nothing fails");
    for cut in 0..16 {
        run.check(&disk.after_power_cut(cut), kept, &format!("power cut {cut}"));
    }
}

#[test]
fn a_power_cut_while_it_unwinds_brings_no_record_back() {
    for at in 0.. {
        let disk = FaultDisk::new(&Files::new(), Fault::PowerCut { at });
        let mut is_persisted = false;
        let mut unwind = || {
            let store = open(disk.clone(), JournalMode::Sync)?;
            let mut run = Run::new(7);
            (0..10).try_for_each(|_| run.append_block(&store))?;
            run.add(&store, 10)?;
            let hash = |number: usize| Some(run.begun[number].0);
            let heads = deponent_state::Heads { genesis: hash(0), head: hash(9), ..<_>::default() };
            let numbers: Vec<_> =
                (0..10).map(|number| (number as u64, hash(number).map(new_canonical))).collect();
            store.set_canonical(numbers, heads)?;
            store.persist()?;
            is_persisted = true;
            store.unwind(4, &mut |_| ()).map(drop)
        };
        let unwound: Result<(), Error> = unwind();
        for cut in 0..8 {
            let files = disk.after_power_cut(cut);
            let left = open(MemoryDisk::with_contents(&files), JournalMode::Sync).expect("opens");
            let found = left.journal().found_count();
            assert!(!is_persisted || found == 0, "operation {at}, power cut {cut}: {found}");
        }
        if unwound.is_ok() {
            break;
        }
    }
}

/// As a file may have them whose place on the disk was another's, or its own before.
#[test]
fn a_frame_of_another_place_is_no_record() {
    let disk = MemoryDisk::new();
    let store = open(disk.clone(), JournalMode::Write).expect("memory");
    let mut run = Run::new(8);
    // Three fill the first file.
    (0..4).for_each(|_| run.append(&store, vec![9; 300]).expect("memory"));
    drop(store);
    let files = disk.contents();
    let names = files.keys().filter(|name| name.starts_with("journal-"));
    let [first, second] = names.collect::<Vec<_>>()[..] else { panic!("two files") };
    let end = files[second].len();
    let of_another_file = files[first][end..].to_vec();
    let of_another_offset = files[second][64..].to_vec();
    for (name, frames) in [(second, of_another_file), (second, of_another_offset)] {
        let mut changed = files.clone();
        changed.get_mut(name).expect("there").extend(&frames);
        let disk = MemoryDisk::with_contents(&changed);
        let store = open(disk, JournalMode::Write).expect("opens");
        assert_eq!(replayed(&store), run.begun);
        let [tail] = store.journal().tails() else { panic!("one tail") };
        assert_eq!((tail.offset, tail.bytes), (end as u64, frames.len() as u64));
    }
}

#[test]
fn a_file_with_the_header_of_another_is_an_error_that_names_it() {
    let disk = MemoryDisk::new();
    let store = open(disk.clone(), JournalMode::Write).expect("memory");
    let mut run = Run::new(9);
    (0..20).for_each(|_| run.append_block(&store).expect("memory"));
    drop(store);
    let files = disk.contents();
    let names: Vec<_> = files.keys().filter(|name| name.starts_with("journal-")).collect();
    let mut changed = files.clone();
    changed.insert(names[1].clone(), files[names[0]].clone());
    let error = open(MemoryDisk::with_contents(&changed), JournalMode::Write).expect_err("damaged");
    assert!(error.to_string().contains(&**names[1]), "{error}");
}

#[test]
fn a_journal_that_is_off_is_read_and_not_written() {
    let disk = MemoryDisk::new();
    let store = open(disk.clone(), JournalMode::Write).expect("memory");
    let mut run = Run::new(5);
    run.append_block(&store).expect("memory");
    drop(store);
    let journal = || {
        let mut files = disk.contents();
        files.retain(|name, _| name.starts_with("journal-"));
        files
    };
    let before = journal();
    let store = open(disk.clone(), JournalMode::Off).expect("memory");
    assert_eq!(replayed(&store), run.begun);
    run.append_block(&store).and_then(|()| run.add(&store, 2)).expect("memory");
    store.persist().expect("memory");
    assert!(before.len() == 1 && journal() == before);
}
