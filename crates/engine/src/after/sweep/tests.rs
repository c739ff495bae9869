use super::*;
use crate::samples::{branch, genesis_file};
use crate::{Engine, EngineOptions, Genesis, world};
use alloy_primitives::{Address, U256};
use execution::ChainSpec;
use state::{Database, MemoryDisk};

/// All of it is in use.
#[test]
fn the_state_that_a_chain_begins_with_is_not_swept_at_once() {
    let config = world::config("osaka");
    let chain = ChainSpec::from_config(&config).unwrap();
    let mut file = genesis_file(config);
    file.alloc.extend((1..2_000u64).map(|n| (Address::from_word(U256::from(n).into()), rich())));
    let genesis = Genesis::new(&file, &chain).unwrap();
    let database = Database::open(MemoryDisk::new(), &state::Options::default()).unwrap();
    let options = EngineOptions { sweep_min_bytes: 1, ..EngineOptions::default() };
    let engine = Engine::open(chain, Some(genesis), database, options).unwrap();
    let head = *branch(&engine, engine.heads().genesis, 0, 3).last().unwrap();
    let sealed = engine.block(head).unwrap().unwrap().seal.wait().unwrap().sweep;
    assert_eq!((sealed.cycle, sealed.owed_bytes), (None, 0));
    assert!(sealed.live_bytes > 100_000, "{sealed:?}");
}

fn rich() -> alloy_genesis::GenesisAccount {
    alloy_genesis::GenesisAccount { balance: U256::MAX, ..Default::default() }
}

#[test]
fn a_sweep_is_in_nobodys_way() {
    let config = world::config("osaka");
    let chain = ChainSpec::from_config(&config).unwrap();
    let genesis = Genesis::new(&genesis_file(config), &chain).unwrap();
    let database = Database::open(MemoryDisk::new(), &state::Options::default()).unwrap();
    let options = EngineOptions { sweep_min_bytes: 1, ..EngineOptions::default() };
    let engine = Engine::open(chain, Some(genesis), database, options).unwrap();
    let shared = engine.shared();
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
