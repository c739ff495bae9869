//! Where nodes are kept: our log of pages, and redb, side by side.
//!
//! `cargo bench -p deponent-state --bench nodes -- [DIRECTORY]`. Medians over interleaved rounds.
//! Reads are in time on the processor, as other work on the machine does not count there.

use deponent_state::{Database, DirectoryDisk, NewBlock, Options};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use redb::{ReadableDatabase, TableDefinition};
use std::path::Path;
use std::time::{Duration, Instant};
use trie::versioned::{NodeAddress, RecordSink, Records};

const BLOCK_NODES: usize = 14_000;
const NODE_BYTES: usize = 400;
const ROUNDS: usize = 9;
const GETS: usize = 200_000;
const TABLE: TableDefinition<'static, u64, &[u8]> = TableDefinition::new("nodes");

fn main() {
    let argument = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let directory = match argument {
        Some(parent) => tempfile::tempdir_in(parent),
        None => tempfile::tempdir(),
    };
    let directory = directory.expect("a directory");
    let mut node = vec![0; NODE_BYTES];
    let mut rng = StdRng::seed_from_u64(1);
    let mut ours = Ours::open(directory.path());
    let mut redb = Redb::open(directory.path());
    let mut commits = [const { Vec::new() }; 2];
    let mut gets = [const { Vec::new() }; 2];
    for _ in 0..ROUNDS {
        rng.fill(&mut node[..]);
        commits[0].push(time(|| ours.commit(&node)));
        commits[1].push(time(|| redb.commit(&node)));
    }
    for seed in 0..ROUNDS as u64 {
        gets[0].push(on_processor(|| ours.get(seed)));
        gets[1].push(on_processor(|| redb.get(seed)));
    }
    println!("{:8} {:>14} {:>14}", "", "commit ms", "get ns");
    for (name, at) in [("pages", 0), ("redb", 1)] {
        let commit = median(&mut commits[at]).as_secs_f64() * 1e3;
        let get = median(&mut gets[at]).as_secs_f64() * 1e9 / GETS as f64;
        println!("{name:8} {commit:14.1} {get:14.0}");
    }
    ours.addresses.truncate(4 * BLOCK_NODES / 100);
    let hot = on_processor(|| ours.get(1)).as_secs_f64() * 1e9 / GETS as f64;
    println!("pages, 14 of them: {hot:.0} ns a get");
}

/// How long this thread ran, from what the scheduler counts.
fn on_processor(run: impl FnOnce()) -> Duration {
    let ran = || {
        let counted = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
        let nanoseconds = counted.split(' ').next().expect("a number").parse();
        Duration::from_nanos(nanoseconds.expect("a number"))
    };
    let before = ran();
    run();
    ran() - before
}

fn time(run: impl FnOnce()) -> Duration {
    let started = Instant::now();
    run();
    started.elapsed()
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort();
    times[times.len() / 2]
}

struct Ours {
    store: Database,
    addresses: Vec<NodeAddress>,
    blocks: u64,
}

impl Ours {
    fn open(directory: &Path) -> Self {
        let disk = DirectoryDisk::open(directory.join("pages")).expect("a directory");
        let store = Database::open(disk, &Options::default()).expect("a new store");
        Self { store, addresses: Vec::new(), blocks: 0 }
    }

    fn commit(&mut self, node: &[u8]) {
        let mut batch = self.store.batch();
        self.addresses.extend((0..BLOCK_NODES).map(|_| batch.append(node)));
        batch.seal().expect("a working disk");
        self.blocks += 1;
        let hash = [self.blocks as u8; 32].into();
        let block = NewBlock { hash, number: self.blocks, ..NewBlock::default() };
        self.store.add(block).expect("a working disk");
        self.store.persist().expect("a working disk");
    }

    fn get(&self, seed: u64) {
        let mut rng = StdRng::seed_from_u64(seed);
        let nodes = self.store.nodes();
        let mut sum = 0u64;
        for _ in 0..GETS {
            let at = self.addresses[rng.random_range(0..self.addresses.len())];
            sum += u64::from(nodes.record(at).expect("there").as_ref()[0]);
        }
        std::hint::black_box(sum);
    }
}

struct Redb {
    database: redb::Database,
    next: u64,
}

impl Redb {
    fn open(directory: &Path) -> Self {
        let database = redb::Database::create(directory.join("redb")).expect("a new file");
        Self { database, next: 0 }
    }

    fn commit(&mut self, node: &[u8]) {
        let transaction = self.database.begin_write().expect("a transaction");
        {
            let mut table = transaction.open_table(TABLE).expect("a table");
            for _ in 0..BLOCK_NODES {
                table.insert(self.next, node).expect("inserted");
                self.next += 1;
            }
        }
        transaction.commit().expect("a working disk");
    }

    fn get(&self, seed: u64) {
        let mut rng = StdRng::seed_from_u64(seed);
        let transaction = self.database.begin_read().expect("a transaction");
        let table = transaction.open_table(TABLE).expect("a table");
        let mut sum = 0u64;
        for _ in 0..GETS {
            let key = rng.random_range(0..self.next);
            sum += u64::from(table.get(key).expect("read").expect("there").value()[0]);
        }
        std::hint::black_box(sum);
    }
}
