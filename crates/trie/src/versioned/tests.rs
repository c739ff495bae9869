//! Versioned tries beside their slow twin, the [`StateTrie`] over nodes by hash.

use super::{record::RecordChild, *};
use crate::{
    AccountChange, AccountInfo, EMPTY_ROOT_HASH, Error, StateChanges, StateTrie,
    state::tests::{Access, Block, Flat, Store, access, changes, hash, info, read, slot_value},
};
use alloy_primitives::{B256, KECCAK256_EMPTY, U256, keccak256};
use proptest::prelude::*;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

mod damage;
mod large;
mod sweeping;

/// Events while a block runs that must have no influence on its result.
#[derive(Clone, Debug)]
pub(crate) enum Noise {
    SetAhead(B256, Option<AccountInfo>, Vec<(B256, U256)>),
    HashAhead(B256, usize),
}

/// How the units of work are run.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Runner {
    Serial,
    Backwards,
    Threads,
}

/// A block with its noise, on top of any version before.
#[derive(Clone, Debug)]
struct Scene {
    parent: usize,
    block: Block,
    noise_before: Vec<Noise>,
    noise_after: Vec<Noise>,
    /// Of how many accounts the reads are left to the end.
    late_reads: usize,
    /// Whether the final values are set ahead.
    is_foreseen: bool,
    runner: Runner,
}

fn noise() -> impl Strategy<Value = Vec<Noise>> {
    let slots = prop::collection::vec((hash(), slot_value()), 0..6);
    let noise = prop_oneof![
        4 => (hash(), prop::option::of(info()), slots)
            .prop_map(|(address, info, slots)| Noise::SetAhead(address, info, slots)),
        1 => (hash(), 0..30usize).prop_map(|(address, budget)| Noise::HashAhead(address, budget)),
    ];
    prop::collection::vec(noise, 0..12)
}

fn scene() -> impl Strategy<Value = Scene> {
    let block = prop::collection::btree_map(hash(), access(), 0..12);
    let runner = prop_oneof![
        2 => Just(Runner::Serial), 2 => Just(Runner::Backwards), 1 => Just(Runner::Threads)
    ];
    (any::<usize>(), block, noise(), noise(), 0..12usize, any::<bool>(), runner).prop_map(
        |(parent, mut block, noise_before, noise_after, late_reads, is_foreseen, runner)| {
            for (address, access) in &mut block {
                if let Some(change) = &mut access.change {
                    change.hashed_address = *address;
                }
            }
            Scene { parent, block, noise_before, noise_after, late_reads, is_foreseen, runner }
        },
    )
}

pub(crate) fn run(runner: Runner, units: &mut [WorkUnit<'_>]) {
    match runner {
        Runner::Serial => run_serially(units),
        Runner::Backwards => units.iter_mut().rev().for_each(WorkUnit::run),
        Runner::Threads => std::thread::scope(|scope| {
            for units in units.chunks_mut(3) {
                scope.spawn(|| run_serially(units));
            }
        }),
    }
}

fn make_noise(trie: &mut BlockTrie<MemoryRecords>, noise: &[Noise]) {
    for noise in noise {
        match noise {
            Noise::SetAhead(address, info, slots) => {
                trie.shard_mut(address).set_ahead(address, *info, slots).unwrap();
            }
            Noise::HashAhead(address, budget) => {
                assert!(trie.shard_mut(address).hash_ahead(*budget).unwrap() <= *budget);
            }
        }
    }
}

/// A state in its three forms: by address, by hash, and as maps.
#[derive(Clone, Debug)]
struct Known {
    version: Version,
    flat: Flat,
}

#[derive(Debug)]
struct World {
    records: MemoryRecords,
    store: Store,
    /// The last read of each slot, in whatever version.
    reads: RefCell<HashMap<(B256, B256), SlotRead>>,
}

impl Default for World {
    fn default() -> Self {
        let (records, store) = (MemoryRecords::spread_out(), Store::default());
        Self { records, store, reads: RefCell::default() }
    }
}

impl World {
    /// Runs a block on both tries and compares them.
    fn perform(&mut self, parent: &Known, scene: &Scene) -> Known {
        let (block, flat) = (&scene.block, &parent.flat);
        let changes = changes(block);
        let mut twin = StateTrie::new(parent.version.root);
        read(&mut twin, block, flat, &self.store).unwrap();

        let mut trie = BlockTrie::new(self.records.clone(), parent.version).unwrap();
        make_noise(&mut trie, &scene.noise_before);
        let mut shards = trie.take_shards();
        let mut late_keys = Vec::new();
        for (index, (address, Access { slots_read, .. })) in block.iter().enumerate() {
            if index < scene.late_reads {
                late_keys.push((*address, None));
                late_keys.extend(slots_read.iter().map(|slot| (*address, Some(*slot))));
                continue;
            }
            let shard = &mut shards[trie.shard_of(address)];
            assert_eq!(shard.touch(address), Ok(flat.account(address)));
            for slot in slots_read {
                assert_eq!(shard.touch_slot(address, slot), Ok(flat.slot(address, slot)));
            }
        }
        trie.put_shards(shards);
        trie.touch_all(late_keys, &|units| run(scene.runner, units)).unwrap();
        let shared = Arc::new(trie);
        assert_eq!(
            shared.witness(&mut Lister::default(), 1, &run_serially),
            twin.clone().take_witness_nodes()
        );
        let mut trie = Arc::into_inner(shared).expect("the nodes are dropped");
        make_noise(&mut trie, &scene.noise_after);
        if scene.is_foreseen {
            for change in &changes.accounts {
                let address = &change.hashed_address;
                let shard = trie.shard_mut(address);
                shard.set_ahead(address, change.account, &change.storage).unwrap();
                shard.hash_ahead(usize::MAX).unwrap();
            }
        }
        let root = twin.apply(&changes, &self.store).unwrap();
        let found = trie.finish(&changes, &|units| run(scene.runner, units));
        assert_eq!(found, Ok(root));
        let witness = twin.take_witness_nodes();
        let trie = Arc::new(trie);
        let mut lister = Lister::default();
        // The lister was used for other witnesses before.
        for threads in [3, 1, 2] {
            let run = |units: &mut [WorkUnit<'_>]| run(scene.runner, units);
            let found = trie.witness(&mut lister, threads, &run);
            assert_eq!(found, witness);
            lister.recycle(found);
        }
        let size = (witness.len(), witness.iter().map(|node| node.len()).sum::<usize>());
        let found = trie.witness_size();
        let has_twins = trie.witness_addresses().len() > witness.len();
        assert!(found == size || has_twins && found.0 > size.0 && found.1 > size.1);
        assert_eq!(found.0, trie.witness_addresses().len());
        assert!(found.0 <= trie.nodes_count() + 17);
        let addresses = trie.witness_addresses();
        assert_eq!(lister.list(&self.records, &addresses).unwrap(), witness);

        let before = self.records.end();
        let version = trie.write(&mut self.records);
        assert_eq!(version.root, root);
        if root == parent.version.root {
            assert_eq!((version, self.records.end()), (parent.version, before));
        }
        self.check_written(&twin, before);
        twin.new_nodes(&mut |hash, rlp| drop(self.store.insert(hash, rlp)));
        Known { version, flat: flat.after(&changes) }
    }

    /// Nothing is written but what the twin has new, too, or has taken back.
    fn check_written(&self, twin: &StateTrie, before: NodeAddress) {
        let mut new = BTreeSet::new();
        twin.clone().new_nodes(&mut |hash, _| {
            new.insert(hash);
        });
        for address in self.records.addresses(before) {
            let record = self.records.record(address).unwrap();
            let hash = keccak256(record::parse(&record).unwrap().rlp());
            assert!(new.contains(&hash), "{hash} is not new");
        }
    }

    /// Reads all of a version, and compares it with the maps and with the twin's proofs.
    fn check(&self, Known { version, flat }: &Known) {
        assert_eq!(version.root, flat.root());
        check_nodes(&self.records, version, true);
        let mut twin = StateTrie::new(version.root);
        let mut shortcuts = Shortcuts::new(*version);
        let mut addresses: BTreeSet<B256> = flat.0.keys().copied().collect();
        addresses.extend([B256::ZERO, B256::repeat_byte(0x20), B256::repeat_byte(0x77)]);
        for address in addresses {
            let found = account(&self.records, version, &address).unwrap();
            assert_eq!(shortcuts.account(&self.records, &address), Ok(found));
            assert_eq!(found.map(|(account, _)| account), flat.account(&address));
            let mut slots: Vec<B256> = flat
                .0
                .get(&address)
                .into_iter()
                .flat_map(|(_, slots)| slots.keys())
                .copied()
                .collect();
            slots.extend([B256::ZERO, B256::repeat_byte(0x20), B256::repeat_byte(0x77)]);
            let storage = found.map_or(Version::EMPTY, |(_, storage)| storage);
            let mut shortcuts = Shortcuts::new(storage);
            for hashed_slot in &slots {
                let value = slot(&self.records, &storage, hashed_slot);
                assert_eq!(value, Ok(flat.slot(&address, hashed_slot)));
                // The second time it goes by what the first one has found.
                for _ in 0..2 {
                    let mut reads = self.reads.borrow_mut();
                    let before = reads.get(&(address, *hashed_slot)).copied();
                    let read = shortcuts.slot(&self.records, hashed_slot, before).unwrap();
                    assert_eq!(Ok(read.value), value);
                    reads.insert((address, *hashed_slot), read);
                }
            }
            let proof = account_proof(&self.records, version, &address, &slots);
            assert_eq!(proof, twin.account_proof(address, &slots, &self.store));
        }
    }
}

/// Checks that each node has the hash that its parent says, and stands before its parent.
/// Returns the lowest address.
pub(crate) fn check_nodes(
    records: &MemoryRecords,
    version: &Version,
    is_accounts: bool,
) -> Option<NodeAddress> {
    if version.address.is_none() {
        assert_eq!(version.root, EMPTY_ROOT_HASH);
        return None;
    }
    let mut lowest = version.address;
    let mut pending = vec![(version.address, version.root)];
    while let Some((at, hash)) = pending.pop() {
        lowest = lowest.min(at);
        let record = records.record(at).unwrap();
        let node = record::parse(&record).unwrap();
        assert_eq!(keccak256(node.rlp()), hash);
        let children = match node {
            record::RecordNode::Branch(branch) => {
                branch.children().unwrap();
                (0..16).map(|nibble| branch.child(nibble).unwrap()).collect()
            }
            record::RecordNode::Extension(extension) => vec![extension.child],
            record::RecordNode::Leaf(leaf) => {
                assert_eq!(leaf.storage.is_some(), is_accounts);
                if let Some(address) = leaf.storage {
                    let root = crate::Account::from_rlp(leaf.value).unwrap().storage_root;
                    assert!(address < at);
                    let storage = Version { root, address };
                    lowest = check_nodes(records, &storage, false).unwrap_or(lowest).min(lowest);
                }
                vec![]
            }
        };
        for child in children {
            if let RecordChild::Record { address, hash } = child {
                assert!(address < at);
                pending.push((address, B256::from(*hash)));
            }
        }
    }
    Some(lowest)
}

fn check_scenes(scenes: &[Scene]) {
    let mut world = World::default();
    let mut known = vec![Known { version: Version::EMPTY, flat: Flat::default() }];
    for scene in scenes {
        // Mostly on the latest version, sometimes on one before.
        let fork = scene.parent % (2 * known.len());
        let parent = known.get(fork).or(known.last()).unwrap().clone();
        let next = world.perform(&parent, scene);
        world.check(&next);
        known.push(next);
    }
    for known in &known {
        world.check(known);
    }
}

proptest! {
    #[test]
    fn versions_agree_with_the_slow_twin(scenes in prop::collection::vec(scene(), 1..6)) {
        check_scenes(&scenes);
    }
}
