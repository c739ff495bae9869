//! How the memory of a node is divided between its ports and its caches.

use std::fmt;

use rpc::{Bound, Limits};
use rustix::process::{Resource, getrlimit};

use crate::limits;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Bytes of memory of a node, by what has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeMemory {
    /// Of all that clients make the public port hold (`--http.memory`), calls that run aside.
    pub http: u64,
    /// The same of the Engine API's port and the Unix socket (`--authrpc.memory`).
    pub authrpc: u64,
    /// The cache of state pages (`--cache.bytes`).
    pub pages: u64,
    /// The cache of codes that are ready to run (`--cache.code-bytes`); a quarter as much again
    /// holds stored ones.
    pub codes: u64,
    /// The nodes of the newest witnesses (`--cache.witness-bytes`).
    pub witnesses: u64,
    /// Bytes that wait for the disk (`--engine.unpersisted-bytes`).
    pub unpersisted: u64,
    /// Transactions that wait for a block (`--txpool.memory`).
    pub txpool: u64,
    /// Their blobs, and those of blocks that are not finalized (`--blobpool.datacap`).
    pub blobs: u64,
}

/// For a machine of 8 GiB.
pub(crate) const DEFAULT_MEMORY: NodeMemory = NodeMemory {
    http: 512 * MIB,
    authrpc: 2304 * MIB,
    pages: GIB,
    codes: 256 * MIB,
    witnesses: 512 * MIB,
    unpersisted: 256 * MIB,
    txpool: 64 * MIB,
    blobs: 32 * MIB,
};

/// Memory that is not divided: a long witness, a block that runs, the program itself.
const FIXED_BYTES: u64 = GIB;

/// The machine of [`DEFAULT_MEMORY`].
const DEFAULT_TOTAL: u64 = 8 * GIB;

impl Default for NodeMemory {
    fn default() -> Self {
        DEFAULT_MEMORY
    }
}

impl NodeMemory {
    /// Divides all memory of a node (`--memory`) as the defaults divide 8 GiB, but for one GiB. Of
    /// less than 4 GiB the sum is more than that: a block and a long witness stay as they are.
    pub fn of(total: u64) -> Self {
        let part = |bytes: u64| {
            let (divided, of) = (total.saturating_sub(FIXED_BYTES), DEFAULT_TOTAL - FIXED_BYTES);
            let part = u128::from(bytes) * u128::from(divided) / u128::from(of);
            u64::try_from(part).unwrap_or(u64::MAX)
        };
        let Self { http, authrpc, pages, codes, witnesses, unpersisted, txpool, blobs } =
            DEFAULT_MEMORY;
        Self {
            http: part(http).max(limits::LEAST_PORT_BYTES),
            authrpc: part(authrpc).max(limits::LEAST_PORT_BYTES),
            pages: part(pages),
            codes: part(codes),
            witnesses: part(witnesses),
            unpersisted: part(unpersisted),
            txpool: part(txpool),
            blobs: part(blobs),
        }
    }

    /// The limits of the public port.
    pub fn public_limits(&self) -> Limits {
        bounded(Limits::public().with_memory(as_usize(self.http)))
    }

    /// The limits of the Engine API's port and the Unix socket.
    pub fn engine_limits(&self) -> Limits {
        bounded(Limits::engine().with_memory(as_usize(self.authrpc)))
    }

    /// The sum of all bounds, as `deponent node --print-limits` prints it.
    pub fn table(&self) -> impl fmt::Display {
        MemoryTable(*self)
    }

    fn caches(&self) -> Vec<Bound> {
        let row = |what, bytes| Bound { what, count: 1, bytes_each: as_usize(bytes) };
        vec![
            row("pages of the state (--cache.bytes)", self.pages),
            row("codes ready to run (--cache.code-bytes)", self.codes),
            row("stored codes, a quarter as much", self.codes / 4),
            row("nodes of witnesses (--cache.witness-bytes)", self.witnesses),
            row("bytes that wait for the disk (--engine.unpersisted-bytes)", self.unpersisted),
            row("transactions in the pool (--txpool.memory)", self.txpool),
            row("blobs in the pool (--blobpool.datacap)", self.blobs),
            row("the port of metrics (--metrics)", 2 * limits::METRICS_PORT_BYTES as u64),
            row("a block that runs", limits::BLOCK_BYTES),
            row("the program itself", limits::PROGRAM_BYTES),
        ]
    }
}

fn as_usize(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// The limits with no more connections than descriptors. Both ports together leave some to the
/// database, which stops when it cannot open a file, and to memory files.
fn bounded(limits: Limits) -> Limits {
    let most = getrlimit(Resource::Nofile).current.and_then(|most| usize::try_from(most).ok());
    let others = crate::limits::OTHER_DESCRIPTORS + 2 * limits.descriptor_files;
    let left = most.unwrap_or(usize::MAX).saturating_sub(others) / 2;
    Limits { connections: limits.connections.min(left.max(limits::LEAST_CONNECTIONS)), ..limits }
}

struct MemoryTable(NodeMemory);

impl fmt::Display for MemoryTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(memory) = self;
        let parts = [
            ("public port (--http.memory)", memory.public_limits().bounds()),
            (
                "Engine API's port and Unix socket (--authrpc.memory)",
                memory.engine_limits().bounds(),
            ),
            ("caches and blocks", memory.caches()),
        ];
        let mut all = 0;
        for (name, bounds) in parts {
            writeln!(f, "{name}")?;
            for bound in &bounds {
                let Bound { what, count, bytes_each } = *bound;
                let (each, sum) = (Size(bytes_each), Size(bound.bytes()));
                match bound.bytes() {
                    0 if count > 1 => {
                        writeln!(f, "  {what:<58} {count:>6} x{:>24}", "counted above")?
                    }
                    0 => {}
                    _ => writeln!(f, "  {what:<58} {count:>6} x {each:>11} {sum:>11}")?,
                }
            }
            let sum: usize = bounds.iter().map(Bound::bytes).sum();
            writeln!(f, "  {:<58} {:>32}", "sum", Size(sum))?;
            all += sum;
        }
        write!(f, "{:<60} {:>32}", "total", Size(all))
    }
}

/// Bytes in the unit in which they are short.
struct Size(usize);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0 as u64;
        let (unit, name) = match bytes {
            GIB.. => (GIB, "GiB"),
            MIB.. => (MIB, "MiB"),
            _ => (KIB, "KiB"),
        };
        f.pad(&format!("{:.1} {name}", bytes as f64 / unit as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn total(memory: NodeMemory) -> usize {
        let rows = [memory.public_limits().bounds(), memory.engine_limits().bounds()];
        rows.iter().flatten().chain(&memory.caches()).map(Bound::bytes).sum()
    }

    #[test]
    fn the_defaults_fit_a_machine_of_8_gib_and_other_machines_are_divided_alike() {
        assert_eq!(NodeMemory::of(8 << 30), DEFAULT_MEMORY);
        for gib in [4, 8, 16, 64] {
            let all = total(NodeMemory::of(gib << 30));
            assert!(all <= (gib as usize) << 30, "{gib} GiB: {all}");
        }
    }

    #[test]
    fn the_table_ends_with_its_sum() {
        let table = DEFAULT_MEMORY.table().to_string();
        assert!(table.lines().all(|line| line.len() <= 100), "{table}");
        let last = table.lines().last().expect("a line");
        assert!(last.starts_with("total"), "{last}");
        let all = Size(total(DEFAULT_MEMORY)).to_string();
        assert!(last.ends_with(&all), "{last} lacks {all}");
    }
}
