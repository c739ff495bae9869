//! Long random workloads against plain maps, and readers beside the writer.

use crate::workload::{Difference, OPTIONS, Workload, new_canonical, open};
use alloy_primitives::{B256, Bytes, keccak256};
use deponent_state::{Database, Heads, MemoryDisk, NewBlock, Options, Retained};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use trie::versioned::{NodeAddress, RecordSink, Records, Version};

#[test]
fn the_store_agrees_with_the_model_after_every_step() {
    for seed in [testing::seed(), 1, 2] {
        let disk = MemoryDisk::new();
        let mut store = open(disk.clone()).expect("memory");
        let mut workload = Workload::new(seed);
        for step in 0..200 {
            workload.step(&store, step).expect("memory");
            let same = workload.model.check(&store);
            same.unwrap_or_else(|error| panic!("seed {seed}, step {step}: {error:?}"));
            if step % 23 == 0 {
                drop(store);
                workload.model = workload.acknowledged.clone();
                store = open(disk.clone()).expect("memory");
            }
        }
        assert_eq!(store.verify(&mut |_| {}).expect("memory").damaged, 0, "seed {seed}");
    }
}

/// Stores blocks with what [`NewBlock`] of a number says, a late witness for each that one says,
/// and retains the witnesses of four blocks; says of which blocks there still is one.
fn retained(late: impl Fn(u64) -> bool, touched: impl Fn(u64) -> bool) -> Vec<u64> {
    let store = open(MemoryDisk::new()).expect("memory");
    for number in 0..40 {
        add(&store, number, touched(number).then(|| vec![1; 300].into()));
        if late(number) {
            store.add_witness(hash(number), vec![2; 900].into()).expect("memory");
        }
        store.retain_witnesses(4, u64::MAX).expect("memory");
    }
    store.persist().expect("memory");
    let is_kept = |number: &u64| matches!(store.witness(&hash(*number)), Ok(Retained::Present(_)));
    (0..40).filter(is_kept).collect()
}

fn hash(number: u64) -> B256 {
    keccak256(number.to_le_bytes())
}

/// Stores a canonical block on the one before it.
fn add(store: &Database, number: u64, touched: Option<Bytes>) {
    let block = NewBlock {
        hash: hash(number),
        number,
        parent_hash: number.checked_sub(1).map_or(B256::ZERO, hash),
        version: Version { root: B256::ZERO, address: NodeAddress::NONE },
        floor: NodeAddress::NONE,
        sweep: Bytes::new(),
        block: Bytes::from_static(b"block"),
        codes: Vec::new(),
        witness: None,
        touched,
    };
    store.add(block).expect("memory");
    let heads = Heads { genesis: Some(hash(0)), head: Some(hash(number)), ..Heads::default() };
    store.set_canonical([(number, Some(new_canonical(hash(number))))], heads).expect("memory");
    store.persist().expect("memory");
}

#[test]
fn blocks_that_are_dropped_are_no_blocks_whose_witness_is_kept() {
    let store = open(MemoryDisk::new()).expect("memory");
    (0..=20).for_each(|number| add(&store, number, Some(vec![1; 900].into())));
    for _ in 0..3 {
        let mut parts = Vec::new();
        assert_eq!(store.unwind(10, &mut |part| parts.push(part)).expect("memory"), 10);
        assert!(parts.is_sorted() && parts.len() == 21 && parts.ends_with(&[1.0]), "{parts:?}");
        (11..=20).for_each(|number| add(&store, number, Some(vec![1; 900].into())));
    }
    store.retain_witnesses(18, u64::MAX).expect("memory");
    store.persist().expect("memory");
    for number in 3..=20 {
        let touched = store.touched(&hash(number)).expect("memory");
        assert!(matches!(touched, Retained::Present(_)), "block {number}: {touched:?}");
    }
    // In the end only these count.
    store.retain_witnesses(1, u64::MAX).expect("memory");
    store.persist().expect("memory");
    assert!(matches!(store.touched(&hash(10)), Ok(Retained::Deleted)));
}

#[test]
fn witnesses_that_come_late_are_counted_as_blocks() {
    // Four in a segment: the four newest stay, and no more than a segment besides.
    let kept = retained(|_| true, |_| false);
    assert!(kept.ends_with(&[36, 37, 38, 39]) && kept.len() <= 8, "{kept:?}");
    // A block with both parts counts once.
    let kept = retained(|_| true, |_| true);
    assert!(kept.ends_with(&[36, 37, 38, 39]) && kept.len() <= 8, "{kept:?}");
    let kept = retained(|number| number % 2 == 0, |number| number % 2 == 0);
    assert!(kept.ends_with(&[32, 34, 36, 38]) && kept.len() <= 8, "{kept:?}");
}

#[test]
fn readers_see_every_block_from_its_adding_on_while_it_is_persisted() {
    let store = Arc::new(open(MemoryDisk::new()).expect("memory"));
    let done = Arc::new(AtomicBool::new(false));
    let model = Arc::new(std::sync::RwLock::new(crate::workload::Model::default()));
    let reads = Arc::new(AtomicU64::new(0));
    std::thread::scope(|scope| {
        let reader = || {
            while !done.load(Ordering::Relaxed) {
                let seen = model.read().expect("no panic").clone();
                for hash in seen.order.iter().rev().take(30) {
                    let known = &seen.blocks[hash];
                    let entry = store.entry(hash).expect("memory").expect("it was added");
                    assert_eq!(entry.number, known.block.number);
                    assert_eq!(store.block(hash).expect("memory"), Some(known.block.block.clone()));
                    for code in &known.block.codes {
                        let found = store.code(&code.hash()).expect("memory");
                        assert_eq!(found.as_ref(), Some(code.code()));
                    }
                    for (at, record) in &known.records {
                        match store.nodes().record(*at) {
                            Ok(found) => assert!(found.as_ref().starts_with(record)),
                            Err(error) => assert!(*at < store.nodes().start(), "{error}"),
                        }
                    }
                    reads.fetch_add(1, Ordering::Relaxed);
                }
            }
        };
        for _ in 0..3 {
            scope.spawn(reader);
        }
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                store.persist().expect("memory");
            }
        });
        let mut workload = Workload::new(8);
        let until = Instant::now() + Duration::from_secs(2);
        while Instant::now() < until {
            let block = workload.block(&store).expect("memory");
            *model.write().expect("no panic") = workload.model.clone();
            workload.make_head(&store, block).expect("memory");
            if workload.model.order.len().is_multiple_of(9) {
                store.retain_witnesses(4, 24 << 10).expect("memory");
                let order = &workload.model.order;
                if let Some(oldest) = order.len().checked_sub(20) {
                    let floor = workload.model.blocks[&order[oldest]].block.floor;
                    store.delete_segments_below(floor).expect("memory");
                }
            }
            assert!(store.wait_for_room(1 << 20, Duration::from_secs(9)).expect("memory"));
            if workload.model.order.len() > 300 {
                done.store(true, Ordering::Relaxed);
                break;
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    assert!(reads.load(Ordering::Relaxed) > 100);
}

#[test]
fn addresses_outside_the_log_are_errors_that_name_them() {
    let store = open(MemoryDisk::new()).expect("memory");
    let mut batch = store.batch();
    let at = batch.append(&[1; 100]);
    assert!(store.nodes().record(at).is_err(), "it is not sealed");
    batch.seal().expect("memory");
    let end = store.nodes().end().offset();
    let trailer = (at.offset() | 0x3fff) - 1;
    for outside in [0, 100, end, end + 5, 1 << 40, trailer] {
        let error = store.nodes().record(NodeAddress::new(outside)).expect_err("outside");
        assert!(error.to_string().contains(&format!("offset {outside}")), "{error}");
    }
    let mut dropped = store.batch();
    let unseen = dropped.append(&[2; 100]);
    drop(dropped);
    let mut batch = store.batch();
    assert_eq!(batch.append(&[3; 100]), unseen, "a dropped batch takes no addresses");
    batch.seal().expect("memory");
    assert_eq!(store.nodes().record(unseen).expect("sealed").as_ref()[..100], [3; 100]);
}

#[test]
fn a_store_of_nothing_opens_and_answers_nothing() {
    let disk = MemoryDisk::new();
    for _ in 0..3 {
        let store = open(disk.clone()).expect("memory");
        assert_eq!(store.persist().expect("memory").blocks, 0);
        crate::workload::Model::default().check(&store).map_err(|_: Difference| ()).expect("empty");
    }
}

#[test]
fn opening_in_memory_is_quick() {
    let times = (0..50).map(|_| {
        let started = Instant::now();
        let store = Database::open(MemoryDisk::new(), &OPTIONS).expect("memory");
        let opened = started.elapsed();
        drop(store);
        opened
    });
    let fastest = times.min().expect("some");
    let started = Instant::now();
    drop(Database::open(MemoryDisk::new(), &Options::default()).expect("memory"));
    println!("opening takes {fastest:?}; with large caches {:?}", started.elapsed());
    assert!(fastest < Duration::from_millis(5));
}
