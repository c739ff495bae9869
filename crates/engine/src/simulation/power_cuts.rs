//! Floor 5. The engine, with all its threads and its tries, on a disk whose power fails.

use super::{Simulation, heads, open, seed, sweeping};
use crate::{Engine, EngineOptions, Error, Verdict};
use alloy_primitives::B256;
use execution::SealedBlock;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;
use testing::disks::{Fault, FaultDisk};

/// Gives the blocks to the engine, each of which becomes the head, and every fifth of the first
/// ones final. Says in `last_final` which final one was said to be on the disk.
fn feed(
    engine: &Engine,
    blocks: &[SealedBlock],
    final_up_to: usize,
    last_final: &mut Option<B256>,
) -> Result<(), Error> {
    for (index, block) in blocks.iter().enumerate() {
        let hash = block.hash();
        assert_eq!(engine.new_block(block.clone())?, Verdict::Valid);
        let is_final = index < final_up_to && index % 5 == 4;
        let finalized = if is_final { hash } else { B256::ZERO };
        engine.forkchoice_updated(heads(hash, B256::ZERO, finalized), None)?;
        if is_final {
            engine.persist()?;
            *last_final = Some(hash);
        }
    }
    Ok(())
}

#[test]
fn a_power_cut_loses_no_final_block_and_what_is_left_goes_on() {
    let seed = seed();
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
    let open_on = |disk: &FaultDisk| open(disk.clone(), &simulation.genesis, options.clone());
    let whole = FaultDisk::new(&none, Fault::Never);
    let run = |disk: &FaultDisk, last_final: &mut Option<B256>| {
        let engine = open_on(disk)?;
        feed(&engine, &blocks, 15, last_final)
    };
    run(&whole, &mut None).unwrap();
    let mut random = StdRng::seed_from_u64(seed);
    for _ in 0..cuts {
        let at = random.random_range(0..whole.operations());
        let disk = FaultDisk::new(&none, Fault::PowerCut { at });
        let mut last_final = None;
        // Threads take turns as they like: it may be over before that operation.
        let _ = run(&disk, &mut last_final);
        let left = random.random();
        let context = format!("operation {at}, left {left}");
        let disk = FaultDisk::new(&disk.after_power_cut(left), Fault::Never);
        let engine = open_on(&disk).unwrap_or_else(|error| panic!("{context}: {error}"));
        if let Some(hash) = last_final {
            let place = |hash| blocks.iter().position(|block| block.hash() == hash);
            let finalized = engine.heads().finalized.expect("one was final");
            assert!(place(finalized) >= place(hash), "{context}: {finalized} instead of {hash}");
            assert!(engine.block(hash).unwrap().is_some(), "{context}: {hash} is gone");
        }
        let head = engine.heads().head;
        let root = engine.state(head).unwrap().root();
        let header = &simulation.slow.headers[&head];
        assert_eq!(root, header.state_root, "{context}");
        feed(&engine, &blocks, 0, &mut None).unwrap();
        // All that is kept, of both branches.
        for block in &blocks[10..] {
            let witness = engine.witness(block.hash()).unwrap().expect("it is valid");
            assert_eq!(*witness, simulation.slow.witnesses[&block.hash()], "{context}");
        }
    }
}
