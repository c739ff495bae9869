//! Floor 5. The engine, with all its threads and its tries, on a disk whose power fails.

use super::{SMALL, Simulation, check_found, heads, sweeping};
use crate::{Engine, EngineOptions, Error, Heads, Verdict, samples};
use alloy_primitives::B256;
use execution::SealedBlock;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use state::{JournalMode, Options};
use std::collections::BTreeMap;
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
