//! Sweeps between blocks.

use super::*;
use std::collections::HashMap;
use std::sync::Mutex;

proptest! {
    #[test]
    fn a_swept_version_is_the_same_in_new_places(
        scenes in prop::collection::vec((scene(), 0..2_000u64), 1..8)
    ) {
        let mut world = World::default();
        let mut known = Known { version: Version::EMPTY, flat: Flat::default() };
        let (mut below, mut cursor) = (world.records.end(), SweepCursor::default());
        for (scene, budget) in &scenes {
            known = world.perform(&known, scene);
            for _ in 0..2 {
                let next = slice(&mut world, &mut known, below, &cursor, *budget);
                cursor = next.unwrap_or_default();
                if next.is_none() {
                    below = world.records.end();
                }
            }
        }
        // Two whole cycles of small slices.
        for _ in 0..2 {
            while let Some(next) = slice(&mut world, &mut known, below, &cursor, 300) {
                assert!(next > cursor);
                cursor = next;
            }
            cursor = SweepCursor::default();
            below = world.records.end();
        }
    }

    #[test]
    fn a_sweep_without_bound_is_a_whole_cycle(scenes in prop::collection::vec(scene(), 1..4)) {
        let mut world = World::default();
        let mut known = Known { version: Version::EMPTY, flat: Flat::default() };
        for scene in &scenes {
            known = world.perform(&known, scene);
        }
        let below = world.records.end();
        let next = slice(&mut world, &mut known, below, &SweepCursor::default(), u64::MAX);
        assert_eq!(next, None);
        // A node that is above the bound is not copied again.
        let end = world.records.end();
        slice(&mut world, &mut known, below, &SweepCursor::default(), u64::MAX);
        assert_eq!(world.records.end(), end);
    }
}

/// Records that note what is announced of them, and how long before it is first read.
#[derive(Debug, Default)]
struct Announced {
    records: MemoryRecords,
    notes: Mutex<Notes>,
}

#[derive(Debug, Default)]
struct Notes {
    /// With how many records had been read until then.
    announced: HashMap<NodeAddress, usize>,
    /// With how many others were read since it was announced, if it was.
    read: HashMap<NodeAddress, Option<usize>>,
}

impl Records for Announced {
    type Record = <MemoryRecords as Records>::Record;

    fn record(&self, at: NodeAddress) -> Result<Self::Record, RecordError> {
        let mut notes = self.notes.lock().unwrap();
        let count = notes.read.len();
        let since = notes.announced.get(&at).map(|before| count - before);
        notes.read.entry(at).or_insert(since);
        self.records.record(at)
    }

    fn announce(&self, at: NodeAddress) -> bool {
        assert!(!at.is_none());
        let mut notes = self.notes.lock().unwrap();
        let count = notes.read.len();
        notes.announced.insert(at, count).is_none()
    }
}

/// A trie of so many accounts, of which one has slots.
fn large(accounts: u32, slots: u32) -> (MemoryRecords, Version) {
    let mut records = MemoryRecords::default();
    let mut trie = BlockTrie::new(records.clone(), Version::EMPTY).unwrap();
    let key = |number: u32| keccak256(number.to_be_bytes());
    let info = AccountInfo { nonce: 1, balance: U256::ZERO, code_hash: KECCAK256_EMPTY };
    let change = |number| AccountChange {
        hashed_address: key(number),
        account: Some(info),
        storage_wiped: false,
        storage: if number == 0 {
            (0..slots).map(|slot| (key(slot), U256::ONE)).collect()
        } else {
            vec![]
        },
    };
    let mut accounts: Vec<_> = (0..accounts).map(change).collect();
    accounts.sort_unstable_by_key(|change| change.hashed_address);
    for change in &mut accounts {
        change.storage.sort_unstable();
    }
    trie.finish(&StateChanges { accounts }, &run_serially).unwrap();
    let version = trie.write(&mut records);
    (records, version)
}

#[test]
fn most_of_a_large_trie_is_announced_shortly_before_it_is_swept() {
    for (accounts, slots) in [(3_000, 1), (1, 3_000)] {
        let (records, version) = large(accounts, slots);
        let (mut sink, below) = (records.clone(), records.end());
        let announced = Announced { records, ..Announced::default() };
        let go_on = &mut |_| true;
        let (swept, next) =
            sweep(&announced, &version, below, &SweepCursor::default(), go_on, &mut sink).unwrap();
        assert_eq!((swept.root, next), (version.root, None));
        let Notes { announced, read } = announced.notes.into_inner().unwrap();
        let were_announced = read.values().flatten().count();
        // With siblings alone, and not what is below them, it would be less.
        assert!(4 * were_announced > 3 * read.len(), "{were_announced} of {}", read.len());
        assert!(announced.keys().all(|at| read.contains_key(at)));
        // Those of a branch of branches of leaves; with those of the root it would be most.
        let longest = read.values().flatten().max().unwrap();
        assert!(8 * longest < read.len(), "{longest} of {}", read.len());
    }
}

#[test]
fn nothing_more_is_announced_once_the_sweep_is_to_stop() {
    let (records, version) = large(3_000, 3_000);
    let (mut sink, below) = (records.clone(), records.end());
    let announced = Announced { records, ..Announced::default() };
    let was_told = std::cell::Cell::new(None);
    let go_on = &mut |_| {
        let told = announced.notes.lock().unwrap().announced.len();
        // Before the first node below which others would be announced.
        if told > 0 && was_told.get().is_none() {
            was_told.set(Some(told));
        }
        was_told.get().is_none()
    };
    let (_, next) =
        sweep(&announced, &version, below, &SweepCursor::default(), go_on, &mut sink).unwrap();
    assert!(next.is_some());
    assert_eq!(Some(announced.notes.lock().unwrap().announced.len()), was_told.get());
}

/// Sweeps a part of the version, and checks it.
fn slice(
    world: &mut World,
    known: &mut Known,
    below: NodeAddress,
    cursor: &SweepCursor,
    budget: u64,
) -> Option<SweepCursor> {
    let (records, mut sink) = (&world.records, world.records.clone());
    let go_on = &mut |walked| walked < budget;
    let swept = sweep(records, &known.version, below, cursor, go_on, &mut sink);
    let (version, next) = swept.unwrap();
    assert_eq!(version.root, known.version.root);
    known.version = version;
    world.check(known);
    if next.is_none() {
        let lowest = check_nodes(&world.records, &version, true);
        assert!(lowest.is_none_or(|lowest| lowest >= below));
    }
    next
}
