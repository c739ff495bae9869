//! Hints to the system about reads. It does not read ahead in files with random access, so
//! sequential readers have to announce their reads.

use crate::workload::{Model, OPTIONS, Workload};
use deponent_state::limits::{READ_AHEAD_BYTES, READ_AROUND_BYTES, SLOW_READ};
use deponent_state::{Database, MemoryDisk, Options};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::thread;
use testing::disks::{Access, Fault, FaultDisk, WatchedDisk};
use trie::versioned::RecordSink;

/// The hints and reads of each file, by name.
#[derive(Debug, Default)]
struct Told {
    random: Vec<String>,
    announced: BTreeMap<String, Vec<Range<u64>>>,
    /// With the length of the longest that it was announced in.
    read: Vec<(Place, Option<u64>)>,
}

impl Told {
    fn note(&mut self, name: &str, access: Access) {
        match access {
            Access::Write => {}
            Access::ReadsAreRandom => self.random.push(name.to_owned()),
            Access::ReadAhead(range) => {
                self.announced.entry(name.to_owned()).or_default().push(range);
            }
            Access::Read(read) => {
                let has = |range: &&Range<u64>| range.start <= read.start && read.end <= range.end;
                let announced = self.announced.get(name).into_iter().flatten().filter(has);
                let longest = announced.map(|range| range.end - range.start).max();
                self.read.push(((name.to_owned(), read.start), longest));
                // A device that is waited for.
                thread::sleep(SLOW_READ);
            }
        }
    }
}

/// Opens what is on a disk, and notes what its files are told.
fn noting(disk: MemoryDisk, options: &Options) -> (Database, Arc<Mutex<Told>>) {
    let told = Arc::<Mutex<Told>>::default();
    let notes = told.clone();
    let disk = WatchedDisk::new(disk, move |name, access| notes.lock().unwrap().note(name, access));
    (Database::open(disk, options).expect("it opens"), told)
}

/// A store of several segments, what is in it, and what its files are told.
fn store() -> (Database, Model, Arc<Mutex<Told>>) {
    let disk = FaultDisk::new(&BTreeMap::new(), Fault::Never);
    let mut workload = Workload::new(5);
    workload.run(&disk, 36).expect("nothing fails");
    let disk = MemoryDisk::with_contents(&disk.after_restart());
    let (store, told) = noting(disk, &Options { cache_bytes: 1 << 30, ..OPTIONS });
    (store, workload.acknowledged, told)
}

/// The same with segments of more than what is read ahead at once, nearly two of them.
fn large_store() -> (Database, Arc<Mutex<Told>>) {
    store_with(1_900_000, 1 << 20)
}

/// A store of so many bytes of nodes, in segments of that length.
fn store_with(bytes: usize, segment_bytes: u64) -> (Database, Arc<Mutex<Told>>) {
    let options = Options { cache_bytes: 1 << 30, segment_bytes, ..OPTIONS };
    let disk = MemoryDisk::new();
    let store = Database::open(disk.clone(), &options).expect("a new one");
    let mut batch = store.batch();
    while batch.bytes() < bytes {
        batch.append(&[7; 900]);
    }
    batch.seal().expect("there is room");
    store.persist().expect("memory");
    drop(store);
    noting(disk, &options)
}

/// A place in a file.
type Place = (String, u64);

/// Takes the reads of nodes so far, but for headers: how many there were, and which of them lay in
/// nothing that was announced, of at least so many bytes.
fn unannounced(told: &Mutex<Told>, least_bytes: u64) -> (usize, Vec<Place>) {
    let mut told = told.lock().unwrap();
    let mut read = std::mem::take(&mut told.read);
    read.retain(|((name, offset), ..)| name.starts_with("nodes") && *offset > 0);
    let count = read.len();
    read.retain(|(_, announced)| announced.is_none_or(|bytes| bytes < least_bytes));
    (count, read.into_iter().map(|(place, _)| place).collect())
}

#[test]
fn reads_of_nodes_alone_are_random() {
    let (store, _, told) = store();
    store.verify(&mut |_| {}).expect("it reads all");
    let told = told.lock().unwrap();
    let is_node = |name: &String| name.starts_with("nodes");
    assert!(told.random.len() > 2 && told.random.iter().all(is_node), "{:?}", told.random);
    let has_been_told = |((name, _), _): &(Place, _)| !is_node(name) || told.random.contains(name);
    let all = told.read.iter().filter(|((_, offset), _)| *offset > 0);
    assert!(all.clone().count() > 8 && all.clone().all(has_been_told));
}

#[test]
fn a_page_is_read_with_what_is_around_it() {
    let (store, model, told) = store();
    unannounced(&told, 0);
    assert!(matches!(model.check(&store), Ok(())));
    let (count, others) = unannounced(&told, READ_AROUND_BYTES);
    // The first one is what tells that there is a device.
    assert!(count > 8 && others.len() <= 1, "{count}: {others:?}");
    let told = told.lock().unwrap();
    let is_around = |range: &Range<u64>| {
        range.start.is_multiple_of(READ_AROUND_BYTES)
            && range.end - range.start == READ_AROUND_BYTES
    };
    assert!(told.announced.values().flatten().all(is_around), "{:?}", told.announced);
}

#[test]
fn what_is_read_in_order_is_announced() {
    let (store, _, told) = store();
    for (store, told) in [(store, told), large_store()] {
        unannounced(&told, 0);
        let mut end = store.nodes().end();
        while let Some(next) = store.nodes().read_ahead(end).expect("nothing fails") {
            let (count, others) = unannounced(&told, READ_AROUND_BYTES + 1);
            let is_first = end == store.nodes().end();
            assert!(count > 0 && (is_first || others.is_empty()), "{others:?}");
            assert!(end.offset() - next.offset() <= READ_AHEAD_BYTES);
            end = next;
        }
        told.lock().unwrap().announced.clear();
        store.verify(&mut |_| {}).expect("it reads all");
        let (count, others) = unannounced(&told, READ_AROUND_BYTES + 1);
        assert!(count > 8 && others.is_empty(), "{count}: {others:?}");
    }
}
