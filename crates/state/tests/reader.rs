//! Nodes read by a reader that keeps pages at hand, beside nodes looked up in the cache of all.

mod common;

use common::open;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use state::{MemoryDisk, NodeReader};
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
