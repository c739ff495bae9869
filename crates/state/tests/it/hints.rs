//! Hints to the system about reads. It does not read ahead in files with random access, so
//! sequential readers have to announce their reads.

use crate::workload::{Model, OPTIONS, Workload};
use deponent_state::limits::{
    MAX_OPEN_SEGMENTS, PAGE_BYTES, READ_AHEAD_BYTES, READ_AROUND_BYTES, SLOW_READ,
};
use deponent_state::{Database, MemoryDisk, Options};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::thread;
use testing::disks::{Access, Fault, FaultDisk, WatchedDisk};
use trie::versioned::{NodeAddress, RecordSink, Records};

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
fn what_is_wanted_before_long_is_announced_where_a_device_is_waited_for() {
    let record = |page: u64| NodeAddress::new(page * PAGE_BYTES as u64);
    let (store, told) = large_store();
    let nodes = store.nodes();
    let announced = || std::mem::take(&mut told.lock().unwrap().announced);
    // No read has waited yet.
    assert!(!nodes.announce(record(40)));
    assert_eq!(announced(), BTreeMap::new());
    nodes.record(record(1)).expect("it is there");
    announced();
    assert!(!nodes.announce(record(1)));
    assert_eq!(announced(), BTreeMap::new());
    assert!(nodes.announce(record(40)));
    let around = 40 * PAGE_BYTES as u64 / READ_AROUND_BYTES * READ_AROUND_BYTES;
    let told: Vec<_> = announced().into_values().flatten().collect();
    assert_eq!((told.len(), &told[0]), (1, &(around..around + READ_AROUND_BYTES)));
    // Where there is nothing yet.
    assert!(!nodes.announce(nodes.end()));
    assert!(!nodes.announce(NodeAddress::new(nodes.end().offset() + (9 << 20))));
    assert_eq!(announced(), BTreeMap::new());
}

#[test]
fn what_would_be_waited_for_to_be_announced_is_not() {
    let segment_bytes = 3 * PAGE_BYTES as u64;
    let count = MAX_OPEN_SEGMENTS as u64 + 2;
    let (store, told) = store_with((count * segment_bytes) as usize * 2 / 3, segment_bytes);
    let nodes = store.nodes();
    assert!(nodes.end().offset() > (count - 1) * segment_bytes);
    let first_of = |segment: u64| NodeAddress::new((segment * 3 + 1) * PAGE_BYTES as u64);
    nodes.record(first_of(count / 2)).expect("it is there");
    told.lock().unwrap().read.clear();
    // The oldest files are closed again: only so many are open at once.
    assert!(!nodes.announce(first_of(0)) && nodes.announce(first_of(count / 2 + 1)));
    assert_eq!(told.lock().unwrap().read, []);
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
