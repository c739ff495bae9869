//! Keccak-256 of many inputs, in each way that this machine has.
//!
//! `cargo bench -p deponent-trie --bench keccak`; the time is that of a whole call, and the
//! throughput counts hashes. Run as a test (`cargo test --benches`), each is called once.
#![allow(missing_docs)] // criterion's macros make public functions

use alloy_primitives::B256;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use deponent_trie::keccak::{Lanes, keccak256_many_with};
use std::hint::black_box;

/// How many inputs of one length a call gets: the caches hold them.
const COUNT: usize = 64;

fn bench(c: &mut Criterion) {
    for lanes in Lanes::ALL.into_iter().filter(|lanes| lanes.is_available()) {
        // A key, a leaf of two blocks, a full branch.
        for bytes in [32, 150, 532] {
            measure(c, "full", lanes, COUNT, |_| bytes);
        }
        // Where lanes begin to pay.
        for count in 1..=8 {
            measure(c, "few", lanes, count, |_| 532);
        }
        // The nodes of a level.
        measure(c, "mixed", lanes, 1000, |index| {
            [532, 532, 104, 211, 70, 532, 110, 340][index % 8]
        });
    }
}

fn measure(
    c: &mut Criterion,
    group: &str,
    lanes: Lanes,
    count: usize,
    bytes: impl Fn(usize) -> usize,
) {
    let inputs: Vec<_> = (0..count).map(|index| vec![index as u8; bytes(index)]).collect();
    let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
    let mut hashes = vec![B256::ZERO; count];
    let mut group = c.benchmark_group(group);
    group.throughput(Throughput::Elements(count as u64));
    let id = BenchmarkId::new(format!("{lanes:?}"), format!("{count}x{}", bytes(0)));
    group.bench_function(id, |b| {
        b.iter(|| keccak256_many_with(lanes, black_box(&inputs), black_box(&mut hashes)));
    });
}

criterion_group!(benches, bench);
criterion_main!(benches);
