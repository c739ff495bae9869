//! A block's changes in a large trie and the root after them, beside [`SparseTrie`], which
//! encodes and hashes node by node: 90 % updates, 10 % inserts, all paths loaded before, one
//! thread.
//!
//! `cargo bench -p deponent-trie --bench update`; run as a test (`cargo test --benches`), each is
//! called once, on small tries.
#![allow(missing_docs)] // criterion's macros make public functions

use alloy_primitives::{B256, KECCAK256_EMPTY, U256, keccak256};
use criterion::{
    BatchSize, BenchmarkGroup, BenchmarkId, Criterion, criterion_group, criterion_main,
    measurement::WallTime,
};
use std::hint::black_box;
use trie::{
    Account, AccountChange, AccountInfo, EMPTY_ROOT_HASH, SparseTrie, StateChanges, by_hash,
    versioned::{BlockTrie, MemoryRecords, Version, account, run_serially, slot, witness_at},
};

type Changes = Vec<(B256, u64)>;

/// What is in the large trie.
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

    /// The block with the paths of all changes loaded.
    fn loaded(&self, changes: &Changes) -> BlockTrie<MemoryRecords> {
        let mut trie = BlockTrie::new(self.records.clone(), self.version).unwrap();
        for (key, _) in changes {
            match self.kind {
                Kind::Slots => drop(trie.shard_mut(&OWNER).touch_slot(&OWNER, key).unwrap()),
                Kind::Accounts => drop(trie.shard_mut(key).touch(key).unwrap()),
            }
        }
        trie
    }

    /// The same in the slow way.
    fn revealed(&self, changes: &Changes) -> SparseTrie {
        let block = self.loaded(changes);
        let nodes = by_hash(witness_at(&self.records, &block.witness_addresses()).unwrap());
        let root = match self.kind {
            Kind::Slots => account(&self.records, &self.version, &OWNER).unwrap().unwrap().1.root,
            Kind::Accounts => self.version.root,
        };
        let mut trie = SparseTrie::new(root);
        for (key, _) in changes {
            trie.get(key.as_slice(), &nodes).unwrap();
        }
        trie
    }
}

fn measure(group: &mut BenchmarkGroup<'_, WallTime>, state: &State, count: u64) {
    let changes = state.changes(count);
    let new = state_changes(state.kind, &changes);
    let size = format!("{}/{}", state.leaves_count, count);
    group.bench_function(BenchmarkId::new("versioned", &size), |b| {
        b.iter_batched(
            || state.loaded(&changes),
            |mut trie| {
                trie.finish(&new, &run_serially).unwrap();
                trie
            },
            BatchSize::PerIteration,
        );
    });
    let revealed = state.revealed(&changes);
    group.bench_function(BenchmarkId::new("sparse", &size), |b| {
        b.iter_batched(
            || revealed.clone(),
            |mut trie| {
                for (key, value) in &changes {
                    let leaf = leaf(state.kind, *value);
                    trie.insert(key.as_slice(), leaf, &by_hash([])).unwrap();
                }
                trie.root();
                trie
            },
            BatchSize::PerIteration,
        );
    });
}

/// What goes with an update: loading, hashing ahead, writing, reading.
fn measure_rest(group: &mut BenchmarkGroup<'_, WallTime>, state: &State, count: u64) {
    let changes = state.changes(count);
    let new = state_changes(state.kind, &changes);
    let size = format!("{}/{}", state.leaves_count, count);
    group.bench_function(BenchmarkId::new("touch", &size), |b| {
        b.iter_with_large_drop(|| state.loaded(&changes));
    });
    let mut finished = state.loaded(&changes);
    finished.finish(&new, &run_serially).unwrap();
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
        b.iter_with_large_drop(|| finished.witness());
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
    }
}

criterion_group!(benches, bench);
criterion_main!(benches);
