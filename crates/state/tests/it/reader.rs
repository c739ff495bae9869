//! Nodes read by a reader that keeps pages at hand, beside nodes looked up in the cache of all.

use crate::workload::open;
use deponent_state::{MemoryDisk, NodeReader};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use trie::versioned::{RecordReader, RecordSink, Records};

#[test]
fn a_reader_reads_what_a_look_up_gives() {
    let seed = rand::random();
    println!("seed {seed}");
    let rng = &mut StdRng::seed_from_u64(seed);
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
fn a_batch_is_sealed_in_parts_and_a_small_one_in_one() {
    let database = open(MemoryDisk::default()).expect("a new one");
    for pages in [0, 1, 32, 33, 64, 65] {
        let mut batch = database.batch();
        let mut addresses = Vec::new();
        while batch.bytes() < pages * (4 << 10) {
            addresses.push(batch.append(&[7; 900]));
        }
        let pauses = Cell::new(0);
        batch.seal_in_parts(|| pauses.set(pauses.get() + 1)).expect("there is room");
        assert_eq!(pauses.get(), pages.saturating_sub(1) / 32, "of {pages} pages");
        for address in addresses {
            let record = database.nodes().record(address).expect("it is there");
            assert!(record.as_ref().starts_with(&[7; 900]));
        }
    }
}

#[test]
fn each_write_of_a_round_may_be_held_back_and_readers_are_not() {
    let database = Arc::new(open(MemoryDisk::default()).expect("a new one"));
    let writes = Arc::new(AtomicUsize::new(0));
    let mut batch = database.batch();
    let addresses: Vec<_> =
        (0..20_000u32).map(|number| batch.append(&number.to_be_bytes().repeat(60))).collect();
    batch.seal().expect("there is room");
    database.pace_writes({
        let (writes, database) = (writes.clone(), Arc::downgrade(&database));
        move || {
            // The index is written once more when all is closed.
            let Some(database) = database.upgrade() else { return };
            let number = writes.fetch_add(1, Ordering::Relaxed);
            // Concurrent readers wait for nothing.
            let record = database.nodes().record(addresses[number]).expect("it is there");
            assert_eq!(record.as_ref()[..4], (number as u32).to_be_bytes());
        }
    });
    database.persist().expect("memory");
    assert!(writes.load(Ordering::Relaxed) > 1);
}
