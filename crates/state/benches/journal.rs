//! How long a record of the journal takes, with and without a sync.
//!
//! `cargo bench -p deponent-state --bench journal -- [DIRECTORY]`. The two take turns; between
//! records the thread sleeps, as a chain does.

use alloy_primitives::keccak256;
use deponent_state::{Database, DirectoryDisk, JournalMode, Options};
use std::path::Path;
use std::time::{Duration, Instant};

const RECORDS: u64 = 400;
const BLOCK_BYTES: [usize; 3] = [600, 100_000, 1_000_000];

fn main() {
    let argument = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let directory = match argument {
        Some(parent) => tempfile::tempdir_in(parent),
        None => tempfile::tempdir(),
    };
    let directory = directory.expect("a directory");
    let stores = [JournalMode::Write, JournalMode::Sync].map(|mode| {
        let store = open(&directory.path().join(format!("{mode:?}")), mode);
        (mode, store)
    });
    println!("record bytes  journal     p50       p95       p99 (microseconds)");
    for bytes in BLOCK_BYTES {
        let block = vec![7; bytes];
        let mut times = [const { Vec::new() }; 2];
        for number in 0..RECORDS {
            let hash = keccak256([number.to_le_bytes(), bytes.to_le_bytes()].concat());
            for ((_, store), times) in stores.iter().zip(&mut times) {
                let start = Instant::now();
                let appended =
                    store.journal().append_block(hash, bytes, |out| out.extend_from_slice(&block));
                appended.and_then(|()| store.journal().sync()).expect("a working disk");
                times.push(start.elapsed().as_nanos() as f64 / 1e3);
                std::thread::sleep(Duration::from_millis(2));
            }
        }
        for ((mode, _), times) in stores.iter().zip(&mut times) {
            times.sort_by(f64::total_cmp);
            let [p50, p95, p99] = [50, 95, 99].map(|part| times[times.len() * part / 100]);
            println!("{bytes:>12}  {:<7} {p50:>9.1} {p95:>9.1} {p99:>9.1}", format!("{mode:?}"));
        }
    }
}

fn open(directory: &Path, journal: JournalMode) -> Database {
    let disk = DirectoryDisk::open(directory).expect("free");
    Database::open(disk, &Options { journal, ..Options::default() }).expect("opens")
}
