//! States with keys as hashes are, and storages that are worked on in parts.

use super::*;

fn key(seed: &str, number: u64) -> B256 {
    keccak256(format!("{seed} {number}"))
}

/// A block that writes these slots of one account, and each account of `others`.
fn block(slots: &[(B256, U256)], others: &[u64], read: &[B256]) -> Block {
    let mut block = BTreeMap::new();
    for (address, storage) in others
        .iter()
        .map(|number| (key("account", *number), vec![]))
        .chain([(key("contract", 0), slots.to_vec())])
    {
        let balance = U256::from(slots.len() + 1);
        let info = AccountInfo { nonce: 7, balance, code_hash: KECCAK256_EMPTY };
        let change = AccountChange {
            hashed_address: address,
            account: Some(info),
            storage_wiped: false,
            storage,
        };
        let slots_read = read.iter().copied().collect();
        block.insert(address, Access { change: Some(change), slots_read });
    }
    block
}

fn scene_of(block: Block, runner: Runner) -> Scene {
    let quiet = Vec::new;
    Scene {
        late_reads: usize::from(matches!(runner, Runner::Threads)),
        parent: 0,
        block,
        noise_before: quiet(),
        noise_after: quiet(),
        is_foreseen: true,
        runner,
    }
}

#[test]
fn a_large_storage_grows_changes_and_shrinks_to_nothing() {
    let slot = |number, value: u64| (key("slot", number), U256::from(value));
    let others: Vec<u64> = (0..200).collect();
    let grown: Vec<_> = (0..500).map(|number| slot(number, number + 1)).collect();
    let changed: Vec<_> =
        (0..600).map(|number| slot(number, [0, number, 3][number as usize % 3])).collect();
    let shrunk: Vec<_> = (0..600).map(|number| slot(number, u64::from(number == 77))).collect();
    let gone: Vec<_> = (0..600).map(|number| slot(number, 0)).collect();
    let read: Vec<_> = (0..50).map(|number| key("slot", number * 20)).collect();
    let mut world = World::default();
    let mut known = Known { version: Version::EMPTY, flat: Flat::default() };
    for runner in [Runner::Serial, Runner::Threads] {
        for slots in [&grown, &changed, &shrunk, &gone] {
            for others in [&others[..], &[]] {
                let scene = scene_of(block(slots, others, &read), runner);
                known = world.perform(&known, &scene);
                world.check(&known);
            }
        }
    }
}

#[test]
fn a_state_shrinks_to_one_account_and_to_none() {
    let accounts: Vec<u64> = (0..60).collect();
    let mut world = World::default();
    let mut known = Known { version: Version::EMPTY, flat: Flat::default() };
    known = world.perform(&known, &scene_of(block(&[], &accounts, &[]), Runner::Serial));
    for left in [40, 17, 3, 2, 1, 0] {
        let mut block = block(&[], &accounts, &[]);
        for (_, access) in block.iter_mut().skip(left) {
            access.change.as_mut().unwrap().account = None;
        }
        for runner in [Runner::Serial, Runner::Threads] {
            let next = world.perform(&known, &scene_of(block.clone(), runner));
            assert_eq!(next.flat.0.len(), left);
            world.check(&next);
        }
        known = world.perform(&known, &scene_of(block, Runner::Backwards));
    }
    assert_eq!(known.version, Version::EMPTY);
}

#[test]
fn only_paths_of_changed_keys_are_written() {
    let mut world = World::default();
    let empty = Known { version: Version::EMPTY, flat: Flat::default() };
    let accounts: Vec<u64> = (0..2_000).collect();
    let known = world.perform(&empty, &scene_of(block(&[], &accounts, &[]), Runner::Serial));
    let before = world.records.end();
    let changes = StateChanges {
        accounts: vec![AccountChange {
            hashed_address: key("account", 5),
            account: Some(AccountInfo {
                nonce: 1,
                balance: U256::from(1),
                code_hash: KECCAK256_EMPTY,
            }),
            storage_wiped: false,
            storage: vec![],
        }],
    };
    let mut trie = BlockTrie::new(world.records.clone(), known.version).unwrap();
    trie.finish(&changes, &run_serially).unwrap();
    trie.write(&mut world.records);
    let witness = Arc::new(trie).witness(&mut Lister::default(), 1, &run_serially);
    assert_eq!(world.records.addresses(before).count(), witness.len());
}

#[test]
fn the_addresses_of_a_witness_give_its_nodes_again() {
    let mut world = World::default();
    let empty = Known { version: Version::EMPTY, flat: Flat::default() };
    let accounts: Vec<u64> = (0..3_000).collect();
    let known = world.perform(&empty, &scene_of(block(&[], &accounts, &[]), Runner::Serial));
    for touched in [&accounts[..20], &accounts] {
        let mut trie = BlockTrie::new(world.records.clone(), known.version).unwrap();
        for number in touched {
            let address = key("account", *number);
            trie.shard_mut(&address).touch(&address).unwrap();
        }
        let addresses = trie.witness_addresses();
        assert!(addresses.is_sorted_by(|a, b| a < b));
        let mut lister = Lister::default();
        let witness = Arc::new(trie).witness(&mut lister, 1, &run_serially);
        assert_eq!(lister.list(&world.records, &addresses).unwrap(), witness);
    }
}

#[test]
#[should_panic(expected = "an account is changed at most once")]
fn an_account_changed_twice_is_refused() {
    let change = block(&[], &[1], &[]).into_values().next().unwrap().change.unwrap();
    let changes = StateChanges { accounts: vec![change.clone(), change] };
    let mut trie = BlockTrie::new(MemoryRecords::default(), Version::EMPTY).unwrap();
    let _ = trie.finish(&changes, &run_serially);
}

#[test]
#[should_panic(expected = "a slot is changed at most once")]
fn a_slot_changed_twice_is_refused() {
    let slots = [(B256::ZERO, U256::from(1)), (B256::ZERO, U256::from(2))];
    let changes = changes(&block(&slots, &[], &[]));
    let mut trie = BlockTrie::new(MemoryRecords::default(), Version::EMPTY).unwrap();
    let _ = trie.finish(&changes, &run_serially);
}
