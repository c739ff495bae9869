//! Sweeps between blocks.

use super::*;
use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

proptest! {
    #[test]
    fn a_swept_version_is_the_same_in_new_places(
        scenes in prop::collection::vec((scene(), 0..2_000u64), 1..8)
    ) {
        let mut world = World::default();
        let mut known = Known { version: Version::EMPTY, flat: Flat::default() };
        let (mut below, mut cursor) = (world.records.end(), Cursor::default());
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
            cursor = Cursor::default();
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
        let next = slice(&mut world, &mut known, below, &Cursor::default(), u64::MAX);
        assert_eq!(next, None);
        // What is up already is not copied again.
        let end = world.records.end();
        slice(&mut world, &mut known, below, &Cursor::default(), u64::MAX);
        assert_eq!(world.records.end(), end);
    }
}

/// Records that note what is announced of them, and whether what is read was before it was first.
#[derive(Debug, Default)]
struct Announced {
    records: MemoryRecords,
    announced: Mutex<HashSet<NodeAddress>>,
    read: Mutex<HashMap<NodeAddress, bool>>,
}

impl Records for Announced {
    type Record = <MemoryRecords as Records>::Record;

    fn record(&self, at: NodeAddress) -> Result<Self::Record, RecordError> {
        let was_announced = self.announced.lock().unwrap().contains(&at);
        self.read.lock().unwrap().entry(at).or_insert(was_announced);
        self.records.record(at)
    }

    fn announce(&self, at: NodeAddress) -> bool {
        assert!(!at.is_none());
        self.announced.lock().unwrap().insert(at)
    }
}

#[test]
fn most_of_a_large_trie_is_announced_before_it_is_swept() {
    let mut records = MemoryRecords::default();
    let mut trie = BlockTrie::new(records.clone(), Version::EMPTY).unwrap();
    let key = |number: u32| keccak256(number.to_be_bytes());
    let info = AccountInfo { nonce: 1, balance: U256::ZERO, code_hash: KECCAK256_EMPTY };
    let change = |number| AccountChange {
        hashed_address: key(number),
        account: Some(info),
        storage_wiped: false,
        storage: if number == 0 {
            (0..3_000).map(|slot| (key(slot), U256::ONE)).collect()
        } else {
            vec![]
        },
    };
    let mut accounts: Vec<_> = (0..3_000).map(change).collect();
    accounts.sort_unstable_by_key(|change| change.hashed_address);
    for change in &mut accounts {
        change.storage.sort_unstable();
    }
    trie.finish(&StateChanges { accounts }, &run_serially).unwrap();
    let version = trie.write(&mut records);
    let mut sink = records.clone();
    let below = records.end();
    let announced = Announced { records, ..Announced::default() };
    let go_on = &mut |_| true;
    let (swept, next) =
        sweep(&announced, &version, below, &Cursor::default(), go_on, &mut sink).unwrap();
    assert_eq!((swept.root, next), (version.root, None));
    let read = announced.read.into_inner().unwrap();
    let were_announced = read.values().filter(|was_announced| **was_announced).count();
    // With siblings alone, and not what is below them, it would be less.
    assert!(4 * were_announced > 3 * read.len(), "{were_announced} of {}", read.len());
    assert!(announced.announced.lock().unwrap().iter().all(|at| read.contains_key(at)));
}

/// Sweeps a part of the version, and checks it.
fn slice(
    world: &mut World,
    known: &mut Known,
    below: NodeAddress,
    cursor: &Cursor,
    budget: u64,
) -> Option<Cursor> {
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
