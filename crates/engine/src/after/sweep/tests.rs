use super::*;
use crate::samples::{branch, genesis_file, open};
use crate::{Engine, EngineOptions, world};
use alloy_genesis::{Genesis, GenesisAccount};
use alloy_primitives::{Address, U256};
use state::MemoryDisk;

fn sweeping_engine(file: &Genesis) -> Engine {
    let options = EngineOptions { sweep_min_bytes: 1, ..EngineOptions::default() };
    open(MemoryDisk::new(), file, &state::Options::default(), options).unwrap()
}

/// All of it is in use.
#[test]
fn the_state_that_a_chain_begins_with_is_not_swept_at_once() {
    let rich = || GenesisAccount { balance: U256::MAX, ..Default::default() };
    let mut file = genesis_file(world::config("osaka"));
    file.alloc.extend((1..2_000u64).map(|n| (Address::from_word(U256::from(n).into()), rich())));
    let engine = sweeping_engine(&file);
    let head = *branch(&engine, engine.heads().genesis, 0, 3).last().unwrap();
    let sealed = engine.block(head).unwrap().unwrap().seal.wait().unwrap().sweep;
    assert_eq!((sealed.cycle, sealed.owed_bytes), (None, 0));
    assert!(sealed.live_bytes > 100_000, "{sealed:?}");
}

#[test]
fn a_sweep_is_in_nobodys_way() {
    let engine = sweeping_engine(&genesis_file(world::config("osaka")));
    let shared = &engine.shared;
    let head = *branch(&engine, engine.heads().genesis, 0, 3).last().unwrap();
    let record = engine.block(head).unwrap().unwrap();
    let (version, below) =
        (record.seal.wait().unwrap().version, shared.chain.database.nodes().end());
    let cycle = Cycle { below, cursor: SweepCursor::default(), moved_bytes: 0 };
    let begun = SweepState { cycle: Some(cycle), owed_bytes: 1 << 30, ..SweepState::default() };
    // How far it comes behind a block that has appended so many bytes.
    let swept_by = |appended_bytes, seal: &Seal| {
        sweep_on(shared, version, begun, appended_bytes, seal).unwrap().sweep
    };
    let goes_on = |seal: &Seal| swept_by(0, seal) != begun;
    let seal = Seal::default();
    assert!(goes_on(&seal));
    let block = shared.background.block_runs();
    assert!(!goes_on(&seal), "a block runs");
    // The log is long, so it goes on by what the block has appended, and no further.
    let swept = swept_by(1, &seal);
    assert!(swept.owed_bytes < begun.owed_bytes && swept.cycle.is_some(), "{swept:?}");
    drop(block);
    let waiting = shared.background.want();
    assert!(!goes_on(&seal), "a thread waits for another block's state");
    drop(waiting);
    seal.want();
    assert!(!goes_on(&seal), "a thread wants this block's state");
    let swept = swept_by(0, &Seal::default());
    assert!(swept.cycle.is_none(), "{swept:?}");
}
