//! Nodes read by a reader that keeps pages at hand, beside nodes looked up in the cache of all.

use crate::workload::open;
use deponent_state::limits::SLOW_READ;
use deponent_state::{MemoryDisk, NodeReader};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::time::Duration;
use testing::disks::{Access, WatchedDisk};
use trie::versioned::{RecordReader, RecordSink, Records};

#[test]
fn a_reader_reads_what_a_look_up_gives() {
    let rng = &mut StdRng::seed_from_u64(testing::seed());
    let database = open(MemoryDisk::default()).expect("a new one");
    let mut batch = database.batch();
    // Some 20,000 pages, more than are at hand, so that pages take each other's place.
    let addresses: Vec<_> = (0..100_000u32)
        .map(|number| {
            let mut record = vec![0; rng.random_range(700..900)];
            record[..4].copy_from_slice(&number.to_be_bytes());
            batch.append(&record)
        })
        .collect();
    batch.seal().expect("there is room");
    let nodes = database.nodes();
    let mut reader = NodeReader::new(nodes.clone());
    for _ in 0..200_000 {
        let number = rng.random_range(0..addresses.len());
        let at = addresses[number];
        let read = reader.read(at, <[u8]>::to_vec).expect("it is there");
        assert_eq!(read, nodes.record(at).expect("it is there").as_ref());
        assert_eq!(read[..4], (number as u32).to_be_bytes());
    }
}

#[test]
fn a_reader_tells_how_long_it_has_waited_for_the_device() {
    let disk = MemoryDisk::default();
    let database = open(disk.clone()).expect("a new one");
    let mut batch = database.batch();
    let addresses: Vec<_> = (0..40).map(|_| batch.append(&[7; 900])).collect();
    batch.seal().expect("there is room");
    database.persist().expect("memory");
    let mut reader = NodeReader::new(database.nodes().clone());
    addresses.iter().for_each(|at| reader.read(*at, |_| ()).expect("it is there"));
    assert_eq!(reader.waited(), Duration::ZERO, "all is in memory");
    drop((reader, database));
    let slow = WatchedDisk::new(disk, |_, access| {
        if matches!(access, Access::Read(_)) {
            std::thread::sleep(SLOW_READ);
        }
    });
    let database = open(slow).expect("the same");
    let mut reader = NodeReader::new(database.nodes().clone());
    addresses.iter().for_each(|at| reader.read(*at, |_| ()).expect("it is there"));
    assert!(reader.waited() >= 10 * SLOW_READ, "{:?}", reader.waited());
}
