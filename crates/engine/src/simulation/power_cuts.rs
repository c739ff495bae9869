//! Floor 5. The engine, with all its threads and its tries, on a disk whose power fails.

use super::{SMALL, Simulation, check_found, heads, sweeping, transaction_hashes};
use crate::lookup::index_in_batches;
use crate::{Engine, EngineOptions, Error, Heads, Verdict, samples};
use alloy_primitives::{B256, Bloom};
use execution::SealedBlock;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use state::{Database, JournalMode, Options};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use testing::disks::{Fault, FaultDisk};

/// The answers of a run before the power failed.
#[derive(Debug, Default)]
struct Told {
    /// The last block that was called final, which is said of persisted ones alone.
    last_final: Option<B256>,
    /// The last head that was said to be persisted.
    persisted: Arc<Mutex<Option<B256>>>,
    /// How many of the blocks were called valid.
    valid: usize,
    /// The heads after the last fork choice that was answered.
    heads: Option<Heads>,
}

/// Gives the blocks to the engine, each of which becomes the head, and every fifth of the first
/// ones final.
fn feed(
    engine: &Engine,
    blocks: &[SealedBlock],
    final_up_to: usize,
    told: &mut Told,
) -> Result<(), Error> {
    for (index, block) in blocks.iter().enumerate() {
        let hash = block.hash();
        assert_eq!(engine.new_block(block.clone())?, Verdict::Valid);
        told.valid = index + 1;
        let is_final = index < final_up_to && index % 5 == 4;
        let finalized = if is_final { hash } else { B256::ZERO };
        engine.forkchoice_updated(heads(hash, B256::ZERO, finalized), None)?;
        told.heads = Some(engine.heads());
        if is_final {
            engine.persist()?;
            told.last_final = Some(hash);
        }
    }
    Ok(())
}

impl Told {
    fn check_final(&self, engine: &Engine, blocks: &[SealedBlock], context: &str) {
        let place = |hash| blocks.iter().position(|block| block.hash() == hash);
        if let Some(hash) = *self.persisted.lock().unwrap() {
            // The journal may have lost more than the index has.
            let head = engine.heads().head;
            assert!(place(head) >= place(hash), "{context}: back at {head} from {hash}");
        }
        if let Some(hash) = self.last_final {
            let finalized = engine.heads().finalized.expect("one was final");
            assert!(place(finalized) >= place(hash), "{context}: {finalized} instead of {hash}");
            assert!(engine.block(hash).unwrap().is_some(), "{context}: {hash} is gone");
        }
    }

    /// Nothing that was answered is lost, and the heads are those of the last answer or of the
    /// fork choice that was under way.
    fn check_all(&self, engine: &Engine, blocks: &[SealedBlock], context: &str) {
        for (index, block) in blocks[..self.valid].iter().enumerate() {
            let hash = block.hash();
            assert!(engine.block(hash).unwrap().is_some(), "{context}: block {index} is lost");
        }
        let Some(told) = self.heads else { return };
        let found = engine.heads();
        let next = blocks.get(self.valid - 1).map(SealedBlock::hash);
        assert!(found == told || Some(found.head) == next, "{context}: {found:?}, not {told:?}");
    }
}

/// The canonical blocks after the first, as the links to parents say.
fn canonical(engine: &Engine, blocks: &[SealedBlock]) -> Vec<SealedBlock> {
    let mut next = engine.heads().head;
    let mut found = Vec::new();
    while let Some(block) = blocks.iter().find(|block| block.hash() == next) {
        next = block.header.parent_hash;
        found.push(block.clone());
    }
    found.reverse();
    found
}

#[test]
fn no_kill_loses_a_valid_block_no_power_cut_a_final_or_synced_one_and_what_is_left_goes_on() {
    let seed = testing::seed();
    // Operations, drawn at random, at which the power fails.
    let cuts = testing::rounds("DEPONENT_CUTS", 100, 300);
    println!("DEPONENT_CUTS={cuts}");
    let mut simulation = Simulation::new(seed, sweeping());
    let first = simulation.fast().heads().genesis;
    let trunk = simulation.branch(first, 20);
    simulation.branch(trunk[14], 10);
    let blocks = simulation.blocks.clone();
    let none = BTreeMap::new();
    // It always sweeps, and keeps so little that segments are deleted.
    let options = EngineOptions { retain_history: 24, ..sweeping() };
    let open_on = |disk: &FaultDisk, journal| {
        let database = Options { journal, ..SMALL };
        samples::open(disk.clone(), &simulation.genesis, &database, options.clone())
    };
    let run = |disk: &FaultDisk, journal, told: &mut Told| {
        let engine = open_on(disk, journal)?;
        let persisted = told.persisted.clone();
        engine.on_persisted(move |block| *persisted.lock().unwrap() = Some(block.hash));
        feed(&engine, &blocks, 15, told)
    };
    let operations = [JournalMode::Write, JournalMode::Sync].map(|journal| {
        let whole = FaultDisk::new(&none, Fault::Never);
        run(&whole, journal, &mut Told::default()).unwrap();
        (journal, whole.operations())
    });
    let mut random = StdRng::seed_from_u64(seed);
    for cut in 0..cuts {
        let (journal, operations) = operations[cut as usize % 2];
        let at = random.random_range(0..operations);
        let disk = FaultDisk::new(&none, Fault::PowerCut { at });
        let mut told = Told::default();
        // Threads take turns as they like: it may be over before that operation.
        let _ = run(&disk, journal, &mut told);
        let left = random.random();
        let context = format!("{journal:?}, operation {at}, left {left}");
        let killed = open_on(&FaultDisk::new(&disk.after_restart(), Fault::Never), journal);
        let killed = killed.unwrap_or_else(|error| panic!("{context}, killed: {error}"));
        told.check_all(&killed, &blocks, &format!("{context}, killed"));
        drop(killed);
        let disk = FaultDisk::new(&disk.after_power_cut(left), Fault::Never);
        let engine = open_on(&disk, journal);
        let engine = engine.unwrap_or_else(|error| panic!("{context}: {error}"));
        told.check_final(&engine, &blocks, &context);
        if journal == JournalMode::Sync {
            told.check_all(&engine, &blocks, &context);
        }
        check_found(&engine, &canonical(&engine, &blocks));
        let head = engine.heads().head;
        let root = engine.state(head).unwrap().root();
        let header = &simulation.slow.headers[&head];
        assert_eq!(root, header.state_root, "{context}");
        feed(&engine, &blocks, 0, &mut Told::default()).unwrap();
        // All that is kept, of both branches.
        for block in &blocks[10..] {
            let witness = engine.witness(block.hash()).unwrap().expect("it is valid");
            assert_eq!(*witness, simulation.slow.witnesses[&block.hash()], "{context}");
        }
    }
}

/// All that a database has of its canonical blocks after the first: from where on they are indexed,
/// the bloom of each, and the numbers under the hash of each transaction.
fn index_of(database: &Database, blocks: &[SealedBlock]) -> impl PartialEq + Debug + use<> {
    let blooms = std::cell::RefCell::new(Vec::<Bloom>::new());
    let wanted = |bloom: &Bloom| {
        blooms.borrow_mut().push(*bloom);
        true
    };
    let found = database.blocks_by_bloom(1..=u64::MAX, &wanted).unwrap();
    let numbers = |hash| database.transaction_blocks(&hash).unwrap();
    let transactions: Vec<_> = blocks.iter().flat_map(transaction_hashes).map(numbers).collect();
    (database.indexed_from().unwrap(), found, blooms.into_inner(), transactions)
}

/// A chain that has no index is indexed, three blocks at a time.
#[test]
fn an_indexing_that_is_stopped_at_any_operation_goes_on_to_the_same_index() {
    const BLOCKS: usize = 3;
    let mut simulation = Simulation::new(testing::seed(), sweeping());
    let first = simulation.fast().heads().genesis;
    simulation.branch(first, 12);
    let blocks = simulation.blocks.clone();
    let open_on = |disk: &FaultDisk| Database::open(disk.clone(), &SMALL);
    let disk = FaultDisk::new(&BTreeMap::new(), Fault::Never);
    let engine =
        samples::open(disk.clone(), &simulation.genesis, &SMALL, sweeping()).expect("in memory");
    feed(&engine, &blocks, 0, &mut Told::default()).unwrap();
    engine.persist().unwrap();
    drop(engine);
    let written = open_on(&disk).unwrap();
    let while_it_grew = index_of(&written, &blocks);
    written.drop_lookup().unwrap();
    drop(written);
    let old = disk.after_restart();
    let index = |disk: &FaultDisk| -> Result<u64, Error> {
        index_in_batches(&open_on(disk)?, BLOCKS, &mut |_, _| ())
    };

    let whole = FaultDisk::new(&old, Fault::Never);
    assert_eq!(index(&whole).unwrap(), blocks.len() as u64 + 1);
    let expected = index_of(&open_on(&whole).unwrap(), &blocks);
    assert_eq!(expected, while_it_grew);
    let mut were_left = std::collections::BTreeSet::new();
    for at in 0..whole.operations() {
        let disk = FaultDisk::new(&old, Fault::PowerCut { at });
        let _ = index(&disk);
        for (name, files) in
            [("killed", disk.after_restart()), ("power cut", disk.after_power_cut(at))]
        {
            let context = format!("{name} at operation {at}");
            let disk = FaultDisk::new(&files, Fault::Never);
            were_left.insert(index(&disk).unwrap_or_else(|error| panic!("{context}: {error}")));
            let database = open_on(&disk).unwrap();
            assert_eq!(index_of(&database, &blocks), expected, "{context}");
        }
    }
    // It began again, it was done, and it was each batch in between.
    assert_eq!(were_left.len(), blocks.len() / BLOCKS + 2, "{were_left:?}");
    // The slow walk.
    let engine = samples::open(whole, &simulation.genesis, &SMALL, sweeping()).unwrap();
    check_found(&engine, &blocks);
    for block in &blocks {
        let bloom = block.header.logs_bloom;
        let number = block.header.number;
        let found = engine.blocks_by_bloom(number..=number, &|found| *found == bloom).unwrap();
        assert_eq!(found, [(number, block.hash())]);
    }
}
