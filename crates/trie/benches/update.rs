//! A block's changes in a large trie and the root after them: 90 % updates, 10 % inserts, all
//! paths loaded before, one thread. Beside it two rivals that encode and hash node by node:
//! [`SparseTrie`], and alloy's [`HashBuilder`], which has no trie: it gets the changed leaves and
//! the hashes of all unchanged nodes beside their paths, in order, gathered before. What ends in
//! `whole` has all of the trie in memory, and not the paths alone.
//!
//! `cargo bench -p deponent-trie --bench update`; with `LANES=avx2` or `LANES=sse2` before it,
//! hashing is as on a machine that has no more. Run as a test (`cargo test --benches`), each is
//! called once, on small tries.
#![allow(missing_docs)] // criterion's macros make public functions

use alloy_primitives::{B256, KECCAK256_EMPTY, U256, keccak256, map::B256Set};
use alloy_rlp::Decodable;
use alloy_trie::{
    HashBuilder, Nibbles,
    nodes::{RlpNode, TrieNode},
};
use criterion::{
    BatchSize, BenchmarkGroup, BenchmarkId, Criterion, criterion_group, criterion_main,
    measurement::WallTime,
};
use deponent_trie::{
    Account, AccountChange, AccountInfo, EMPTY_ROOT_HASH, NodeSource, SparseTrie, StateChanges,
    by_hash,
    keccak::{self, Lanes},
    versioned::{BlockTrie, Lister, MemoryRecords, Version, account, run_serially, slot},
};
use std::hint::black_box;
use std::sync::Arc;

type Changes = Vec<(B256, u64)>;

/// The keys of the large trie.
#[derive(Clone, Copy)]
enum Kind {
    Slots,
    Accounts,
}

/// The account that has the slots.
const OWNER: B256 = B256::repeat_byte(0x55);

fn key(number: u64) -> B256 {
    keccak256(number.to_le_bytes())
}

fn info(value: u64) -> AccountInfo {
    AccountInfo { nonce: value % 1000, balance: U256::from(value), code_hash: KECCAK256_EMPTY }
}

/// A value of eight bytes.
fn value(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1 << 63
}

fn state_changes(kind: Kind, changes: &Changes) -> StateChanges {
    let change = |hashed_address, value, storage| AccountChange {
        hashed_address,
        account: Some(info(value)),
        storage_wiped: false,
        storage,
    };
    let accounts = match kind {
        Kind::Slots => {
            let slots = changes.iter().map(|(key, value)| (*key, U256::from(*value)));
            vec![change(OWNER, 1, slots.collect())]
        }
        Kind::Accounts => changes.iter().map(|(key, value)| change(*key, *value, vec![])).collect(),
    };
    StateChanges { accounts }
}

fn leaf(kind: Kind, value: u64) -> Vec<u8> {
    match kind {
        Kind::Slots => alloy_rlp::encode(value),
        Kind::Accounts => {
            let AccountInfo { nonce, balance, code_hash } = info(value);
            Account { nonce, balance, storage_root: EMPTY_ROOT_HASH, code_hash }.to_rlp()
        }
    }
}

/// A large state.
struct State {
    kind: Kind,
    records: MemoryRecords,
    version: Version,
    leaves_count: u64,
}

impl State {
    fn new(kind: Kind, leaves_count: u64) -> Self {
        let mut records = MemoryRecords::default();
        let mut trie = BlockTrie::new(records.clone(), Version::EMPTY).unwrap();
        let changes = (0..leaves_count).map(|number| (key(number), value(number))).collect();
        trie.finish(&state_changes(kind, &changes), &run_serially).unwrap();
        let version = trie.write(&mut records);
        Self { kind, records, version, leaves_count }
    }

    fn changes(&self, count: u64) -> Changes {
        let number = |index: u64| match index % 10 {
            0 => self.leaves_count + index,
            _ => value(index) % self.leaves_count,
        };
        let mut changes: Changes =
            (0..count).map(|index| (key(number(index)), value(index + 77))).collect();
        changes.sort_unstable();
        changes.dedup_by_key(|(key, _)| *key);
        changes
    }

    fn keys(&self) -> Vec<B256> {
        (0..self.leaves_count).map(key).collect()
    }

    /// The block with these paths loaded.
    fn loaded<'a>(&self, keys: impl IntoIterator<Item = &'a B256>) -> BlockTrie<MemoryRecords> {
        let mut trie = BlockTrie::new(self.records.clone(), self.version).unwrap();
        for key in keys {
            match self.kind {
                Kind::Slots => drop(trie.shard_mut(&OWNER).touch_slot(&OWNER, key).unwrap()),
                Kind::Accounts => drop(trie.shard_mut(key).touch(key).unwrap()),
            }
        }
        trie
    }

    /// The root of the large trie.
    fn root(&self) -> B256 {
        match self.kind {
            Kind::Slots => account(&self.records, &self.version, &OWNER).unwrap().unwrap().1.root,
            Kind::Accounts => self.version.root,
        }
    }

    /// The nodes on these paths.
    fn nodes<'a>(&self, keys: impl IntoIterator<Item = &'a B256>) -> impl NodeSource {
        let block = self.loaded(keys);
        let nodes = Lister::default().list(&self.records, &block.witness_addresses()).unwrap();
        by_hash(nodes.iter_shared())
    }

    /// The trie with these paths in the slow way.
    fn revealed<'a>(&self, keys: impl IntoIterator<Item = &'a B256> + Clone) -> SparseTrie {
        let nodes = self.nodes(keys.clone());
        let mut trie = SparseTrie::new(self.root());
        for key in keys {
            trie.get(key.as_slice(), &nodes).unwrap();
        }
        trie
    }

    /// The input of a hash builder for the trie after the changes.
    fn items(&self, changes: &Changes) -> Vec<(Nibbles, Item)> {
        let changed = changes.iter().map(|(key, value)| {
            let leaf = leaf(self.kind, *value);
            (Nibbles::unpack(key), Item::Leaf(leaf))
        });
        let mut items: Vec<_> = changed.collect();
        let keys: B256Set = changes.iter().map(|(key, _)| *key).collect();
        let nodes = self.nodes(&keys);
        let mut pending = vec![(Nibbles::default(), self.root())];
        while let Some((path, hash)) = pending.pop() {
            let Some(rlp) = nodes.node(&hash) else {
                items.push((path, Item::Unchanged(hash)));
                continue;
            };
            match TrieNode::decode(&mut rlp.as_ref()).unwrap() {
                TrieNode::Branch(branch) => {
                    for (nibble, child) in branch.as_ref().children() {
                        let hash = child.and_then(RlpNode::as_hash);
                        pending.extend(
                            hash.map(|hash| (path.join(&Nibbles::from_nibbles([nibble])), hash)),
                        );
                    }
                }
                TrieNode::Extension(extension) => {
                    let hash = extension.child.as_hash().expect("keys are long");
                    pending.push((path.join(&extension.key), hash));
                }
                TrieNode::Leaf(leaf) => {
                    let path = path.join(&leaf.key);
                    if !keys.contains(&B256::from_slice(&path.pack())) {
                        items.push((path, Item::Leaf(leaf.value)));
                    }
                }
                TrieNode::EmptyRoot => unreachable!("the trie is large"),
            }
        }
        items.sort_unstable_by_key(|(path, _)| *path);
        items
    }
}

fn apply(trie: &mut SparseTrie, kind: Kind, changes: &Changes) -> B256 {
    let nothing = by_hash([]);
    for (key, value) in changes {
        trie.insert(key.as_slice(), leaf(kind, *value), &nothing).unwrap();
    }
    trie.root()
}

/// The input of a hash builder.
enum Item {
    Leaf(Vec<u8>),
    Unchanged(B256),
}

fn root_of(items: &[(Nibbles, Item)]) -> B256 {
    let mut builder = HashBuilder::default();
    for (path, item) in items {
        match item {
            Item::Leaf(value) => builder.add_leaf(*path, value),
            Item::Unchanged(hash) => builder.add_branch(*path, *hash, false),
        }
    }
    builder.root()
}

fn measure(group: &mut BenchmarkGroup<'_, WallTime>, state: &State, count: u64) {
    let changes = state.changes(count);
    let keys = || changes.iter().map(|(key, _)| key);
    let new = state_changes(state.kind, &changes);
    let size = format!("{}/{}", state.leaves_count, count);
    measure_versioned(group, BenchmarkId::new("versioned", &size), || state.loaded(keys()), &new);
    let revealed = state.revealed(keys());
    let id = BenchmarkId::new("sparse", &size);
    measure_sparse(group, id, &revealed, state.kind, &changes);
    let items = state.items(&changes);
    assert_eq!(root_of(&items), apply(&mut revealed.clone(), state.kind, &changes));
    group.bench_function(BenchmarkId::new("hash-builder", &size), |b| {
        b.iter(|| root_of(black_box(&items)));
    });
}

/// The update with the whole trie in memory.
fn measure_whole(group: &mut BenchmarkGroup<'_, WallTime>, state: &State, count: u64) {
    let changes = state.changes(count);
    let all = state.keys();
    let keys = || all.iter().chain(changes.iter().map(|(key, _)| key));
    let new = state_changes(state.kind, &changes);
    let size = format!("{}/{}", state.leaves_count, count);
    group.sample_size(10);
    let id = BenchmarkId::new("versioned-whole", &size);
    measure_versioned(group, id, || state.loaded(keys()), &new);
    let id = BenchmarkId::new("sparse-whole", &size);
    measure_sparse(group, id, &state.revealed(keys()), state.kind, &changes);
}

fn measure_versioned(
    group: &mut BenchmarkGroup<'_, WallTime>,
    id: BenchmarkId,
    loaded: impl Fn() -> BlockTrie<MemoryRecords>,
    new: &StateChanges,
) {
    group.bench_function(id, |b| {
        b.iter_batched(
            &loaded,
            |mut trie| {
                trie.finish(new, &run_serially).unwrap();
                trie
            },
            BatchSize::PerIteration,
        );
    });
}

fn measure_sparse(
    group: &mut BenchmarkGroup<'_, WallTime>,
    id: BenchmarkId,
    revealed: &SparseTrie,
    kind: Kind,
    changes: &Changes,
) {
    group.bench_function(id, |b| {
        b.iter_batched(
            || revealed.clone(),
            |mut trie| {
                apply(&mut trie, kind, changes);
                trie
            },
            BatchSize::PerIteration,
        );
    });
}

/// The other work of an update: loading, hashing ahead, writing, reading.
fn measure_rest(group: &mut BenchmarkGroup<'_, WallTime>, state: &State, count: u64) {
    let changes = state.changes(count);
    let keys = || changes.iter().map(|(key, _)| key);
    let new = state_changes(state.kind, &changes);
    let size = format!("{}/{}", state.leaves_count, count);
    group.bench_function(BenchmarkId::new("touch", &size), |b| {
        b.iter_with_large_drop(|| state.loaded(keys()));
    });
    let mut finished = state.loaded(keys());
    finished.finish(&new, &run_serially).unwrap();
    let finished = Arc::new(finished);
    group.bench_function(BenchmarkId::new("write", &size), |b| {
        b.iter_batched(
            MemoryRecords::default,
            |mut records| {
                finished.write(&mut records);
                records
            },
            BatchSize::PerIteration,
        );
    });
    group.bench_function(BenchmarkId::new("witness", &size), |b| {
        b.iter_with_large_drop(|| finished.witness(&mut Lister::default(), 1, &run_serially));
    });
    group.bench_function(BenchmarkId::new("read", &size), |b| {
        let owner = account(&state.records, &state.version, &OWNER).unwrap();
        b.iter(|| {
            for (key, _) in &changes {
                if let Some((_, storage)) = owner {
                    black_box(slot(&state.records, &storage, key).unwrap());
                } else {
                    black_box(account(&state.records, &state.version, key).unwrap());
                }
            }
        });
    });
}

fn bench(c: &mut Criterion) {
    if let Ok(name) = std::env::var("LANES") {
        let lanes =
            Lanes::ALL.into_iter().find(|lanes| format!("{lanes:?}").eq_ignore_ascii_case(&name));
        keccak::choose(lanes.expect("LANES is avx512, avx2, neon, sse2 or scalar"));
    }
    let is_bench = std::env::args().any(|argument| argument == "--bench");
    let (leaves_count, counts) =
        if is_bench { (1_000_000, [3_000, 300]) } else { (2_000, [100, 10]) };
    for (name, kind) in [("slots", Kind::Slots), ("accounts", Kind::Accounts)] {
        let state = State::new(kind, leaves_count);
        let mut group = c.benchmark_group(name);
        for count in counts {
            measure(&mut group, &state, count);
            measure_rest(&mut group, &state, count);
        }
        measure_whole(&mut group, &state, counts[0]);
    }
}

criterion_group!(benches, bench);
criterion_main!(benches);
