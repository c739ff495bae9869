//! Values that a scrape asks the node for: numbers of blocks, caches, disk, ports, the process.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use alloy_primitives::B256;
use engine::{CacheUse, Engine, Heads};
use follow::{Backfill, UpstreamFigures};
use pool::{Figures, Pool, Status};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use rpc::{PortMemory, PortUse};
use state::CacheStats;

use super::Labels;
use super::process::process_metrics;
use crate::disk::free_bytes;

/// The parts of a node that are asked.
#[derive(Clone)]
pub(crate) struct NodeState {
    pub(crate) engine: Arc<Engine>,
    pub(crate) pool: Arc<Pool>,
    pub(crate) data_dir: PathBuf,
    /// The memory of the public port, and of the Engine API's port and the Unix socket.
    pub(crate) ports: [(&'static str, Option<PortMemory>); 2],
    /// Fills gaps of the chain, where there are upstreams.
    pub(crate) backfill: Option<Arc<Backfill>>,
}

/// A registry that asks this node.
pub(super) fn registry(state: NodeState) -> Registry {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(state));
    registry
}

impl fmt::Debug for NodeState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NodeState")
    }
}

impl Collector for NodeState {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut out = Output(encoder);
        let version = [("version", env!("CARGO_PKG_VERSION")), ("commit", COMMIT)];
        out.gauge("deponent_build_info", "The program: always 1", &[(&version, 1.0)])?;
        self.chain(&mut out)?;
        self.persistence(&mut out)?;
        caches(&mut out, &self.engine.cache_use())?;
        txpool(&mut out, &self.pool.figures())?;
        self.disk(&mut out)?;
        self.ports(&mut out)?;
        if let Some(backfill) = &self.backfill {
            follow(&mut out, backfill)?;
        }
        for metric in process_metrics() {
            let name = format!("process_{}", metric.name);
            match metric.is_counter {
                true => out.counter(&name, metric.help, &[(&[], metric.value)])?,
                false => out.gauge(&name, metric.help, &[(&[], metric.value)])?,
            }
        }
        Ok(())
    }
}

const COMMIT: &str = env!("DEPONENT_COMMIT_SHOWN");

impl NodeState {
    fn chain(&self, out: &mut Output<'_>) -> fmt::Result {
        let Heads { head, safe, finalized, .. } = self.engine.heads();
        let number = |hash: B256| self.engine.number(&hash).ok().flatten();
        let progress = self.engine.progress().ok().flatten();
        let head_number = number(head);
        let highest = progress.map(|progress| progress.highest).or(head_number);
        let record = self.engine.block(head).ok().flatten();
        let heads = [
            ("head", head_number),
            ("safe", safe.and_then(number)),
            ("finalized", finalized.and_then(number)),
            ("persisted", number(self.engine.persisted_head())),
            ("oldest_state", Some(self.engine.oldest_state())),
            ("highest_known", highest),
        ];
        let time = record.map_or(0, |record| record.block.header.timestamp);
        chain_metrics(out, &heads, progress.is_some(), time)
    }

    fn persistence(&self, out: &mut Output<'_>) -> fmt::Result {
        let waiting = self.engine.database().unpersisted_bytes();
        let most = self.engine.most_unpersisted_bytes();
        let help = "Bytes that wait for the disk";
        out.gauge("deponent_unpersisted_bytes", help, &one(waiting as f64))?;
        let help = "Bytes that may wait before payloads wait for the disk (back-pressure)";
        out.gauge("deponent_unpersisted_limit_bytes", help, &one(most as f64))
    }

    fn disk(&self, out: &mut Output<'_>) -> fmt::Result {
        let parts = disk_use(&self.data_dir.join("chain"));
        let labels = PARTS.map(|part| [("part", part)]);
        let rows = |value: fn(&DiskUse) -> u64| -> Vec<Row<'_>> {
            labels.iter().zip(&parts).map(|(part, of)| (&part[..], value(of) as f64)).collect()
        };
        let help = "Bytes of files on disk, by what is in them";
        out.gauge("deponent_disk_bytes", help, &rows(|of| of.bytes))?;
        out.gauge("deponent_disk_files", "Files, by what is in them", &rows(|of| of.files))?;
        let free = free_bytes(&self.data_dir).map_or(f64::NAN, |bytes| bytes as f64);
        let help = "Bytes that are free on the disk of the data directory";
        out.gauge("deponent_disk_free_bytes", help, &one(free))
    }

    fn ports(&self, out: &mut Output<'_>) -> fmt::Result {
        let usage = |memory: &Option<PortMemory>| memory.as_ref().map(PortMemory::usage);
        let used = self.ports.each_ref();
        let used = used.map(|(name, memory)| (*name, usage(memory).unwrap_or_default()));
        let labels = used.each_ref().map(|(name, _)| [("port", *name)]);
        let mut gauge = |name: &str, help: &str, value: fn(&PortUse) -> usize| {
            let values = used.iter().map(|(_, used)| value(used) as f64);
            let rows: Vec<Row<'_>> = labels.iter().map(|of| &of[..]).zip(values).collect();
            out.gauge(name, help, &rows)
        };
        gauge("deponent_connections", "Open connections", |used| used.connections)?;
        let help = "Open WebSockets, and connections with JSON-RPC without HTTP";
        gauge("deponent_sessions", help, |used| used.sessions)?;
        gauge("deponent_running_calls", "Calls that run", |used| used.running_calls)?;
        gauge("deponent_subscriptions", "Subscriptions", |used| used.subscriptions)?;
        let help = "Memory files with a witness that clients hold";
        gauge("deponent_lent_files", help, |used| used.lent_files)?;
        let help = "Bytes of memory that requests, answers and connections hold";
        gauge("deponent_port_held_bytes", help, |used| used.held_bytes)?;
        let refused = used.iter().flat_map(|(port, used)| {
            used.refused.iter().map(|(why, count)| ([("port", *port), ("reason", *why)], *count))
        });
        let refused: Vec<_> = refused.collect();
        let rows: Vec<Row<'_>> =
            refused.iter().map(|(labels, count)| (&labels[..], *count as f64)).collect();
        out.counter("deponent_refused", "Requests and messages that were refused", &rows)
    }
}

/// The numbers of blocks by what they are, whether the chain is behind, and the head's time: the
/// same of a node with a state and one without.
pub(crate) fn chain_metrics(
    out: &mut Output<'_>,
    numbers: &[(&'static str, Option<u64>)],
    is_syncing: bool,
    head_time: u64,
) -> fmt::Result {
    let labels: Vec<_> = numbers.iter().map(|(block, _)| [("block", *block)]).collect();
    let rows: Vec<Row<'_>> = labels
        .iter()
        .zip(numbers)
        .filter_map(|(labels, (_, number))| Some((&labels[..], (*number)? as f64)))
        .collect();
    out.gauge("deponent_block_number", "Numbers of blocks, by what they are", &rows)?;
    let is_syncing = f64::from(is_syncing);
    out.gauge("deponent_syncing", "1 while the chain is behind, else 0", &one(is_syncing))?;
    let help = "Time of the head, since 1970";
    out.gauge("deponent_head_timestamp_seconds", help, &one(head_time as f64))
}

fn follow(out: &mut Output<'_>, backfill: &Backfill) -> fmt::Result {
    let figures = backfill.figures();
    let labels: Vec<_> = figures.iter().map(|(name, _)| [("upstream", *name)]).collect();
    let mut counter = |name: &str, help: &str, value: fn(&UpstreamFigures) -> u64| {
        let values = figures.iter().map(|(_, figures)| value(figures) as f64);
        let rows: Vec<Row<'_>> = labels.iter().map(|of| &of[..]).zip(values).collect();
        out.counter(name, help, &rows)
    };
    let help = "Headers of missing blocks that an upstream gave";
    counter("deponent_follow_headers", help, |figures| figures.headers)?;
    let help = "Missing blocks that an upstream gave";
    counter("deponent_follow_blocks", help, |figures| figures.blocks)?;
    let help = "Access lists of missing blocks that an upstream gave";
    counter("deponent_follow_access_lists", help, |figures| figures.access_lists)?;
    let help = "Bytes of an upstream's answers";
    counter("deponent_follow_bytes", help, |figures| figures.bytes)?;
    let help = "Answers of an upstream that were proven to be false";
    counter("deponent_follow_lies", help, |figures| figures.lies)?;
    let help = "Requests that an upstream has not answered, or with an error";
    counter("deponent_follow_errors", help, |figures| figures.errors)?;
    let left = backfill.progress().map_or(0, |progress| progress.missing_blocks());
    let help = "Blocks of a gap that have not run";
    out.gauge("deponent_follow_missing_blocks", help, &one(left as f64))
}

fn txpool(out: &mut Output<'_>, figures: &Figures) -> fmt::Result {
    let mut rows = |name: &str, help: &str, kind: &'static str, rows: &[(&'static str, u64)]| {
        let labels: Vec<_> = rows.iter().map(|(value, _)| [(kind, *value)]).collect();
        let values = rows.iter().map(|(_, value)| *value as f64);
        let rows: Vec<Row<'_>> = labels.iter().map(|of| &of[..]).zip(values).collect();
        match kind {
            "reason" => out.counter(name, help, &rows),
            _ => out.gauge(name, help, &rows),
        }
    };
    let Status { pending, queued } = figures.status;
    let states = [("pending", pending as u64), ("queued", queued as u64)];
    rows("deponent_txpool_transactions", "Transactions in the pool", "state", &states)?;
    let (transactions, blobs) = (figures.transaction_bytes as u64, figures.blob_bytes as u64);
    let parts = [("transactions", transactions), ("blobs", blobs)];
    rows("deponent_txpool_bytes", "Bytes of memory of the pool", "part", &parts)?;
    let help = "Transactions that the pool refused";
    rows("deponent_txpool_refused", help, "reason", &figures.refused)?;
    let Figures { evicted, replaced, stale, .. } = *figures;
    let left = [("room", evicted), ("replaced", replaced), ("stale", stale)];
    let help = "Transactions that left the pool without a block";
    rows("deponent_txpool_evicted", help, "reason", &left)?;
    let help = "Transactions that the pool took";
    out.counter("deponent_txpool_added", help, &one(figures.added as f64))
}

fn caches(out: &mut Output<'_>, used: &CacheUse) -> fmt::Result {
    let CacheUse { pages, codes, stored_codes, witnesses } = used;
    let all = [
        ("pages", pages),
        ("codes", codes),
        ("stored_codes", stored_codes),
        ("witnesses", witnesses),
    ];
    let labels = all.map(|(name, _)| [("cache", name)]);
    let rows = |value: fn(&CacheStats) -> u64| -> Vec<Row<'_>> {
        let values = all.iter().map(|(_, stats)| value(stats) as f64);
        labels.iter().map(|cache| &cache[..]).zip(values).collect()
    };
    out.counter("deponent_cache_hits", "Look-ups that found it", &rows(|stats| stats.hits))?;
    out.counter("deponent_cache_misses", "Look-ups that did not", &rows(|stats| stats.misses))?;
    out.gauge("deponent_cache_bytes", "Bytes in memory", &rows(|stats| stats.bytes))?;
    let help = "Bytes that may be in memory";
    out.gauge("deponent_cache_limit_bytes", help, &rows(|stats| stats.most_bytes))
}

/// The kinds of files in `chain/`, by the beginnings of their names; the last has the others.
const PARTS: [&str; 7] = ["nodes", "blocks", "codes", "witnesses", "journal", "index", "other"];

/// Files of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct DiskUse {
    files: u64,
    bytes: u64,
}

/// The files of a directory, by [`PARTS`]. One that is gone meanwhile is left out.
fn disk_use(chain: &Path) -> [DiskUse; PARTS.len()] {
    let mut parts = [DiskUse::default(); PARTS.len()];
    for file in std::fs::read_dir(chain).into_iter().flatten().flatten() {
        let Ok(found) = file.metadata() else { continue };
        let name = file.file_name();
        let name = name.to_str().unwrap_or_default();
        let at = PARTS.iter().position(|part| name.starts_with(part));
        let part = &mut parts[at.unwrap_or(PARTS.len() - 1)];
        part.files += 1;
        part.bytes += found.len();
    }
    parts
}

/// Labels and a value.
pub(crate) type Row<'r> = (&'r [(&'r str, &'r str)], f64);

pub(crate) const fn one(value: f64) -> [Row<'static>; 1] {
    [(&[], value)]
}

/// Where metrics are written.
pub(crate) struct Output<'e>(pub(crate) DescriptorEncoder<'e>);

impl Output<'_> {
    pub(crate) fn gauge(&mut self, name: &str, help: &str, rows: &[Row<'_>]) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        rows.iter().try_for_each(|(labels, value)| match labels {
            [] => family.encode_gauge(value),
            labels => family.encode_family(labels)?.encode_gauge(value),
        })
    }

    fn counter(&mut self, name: &str, help: &str, rows: &[Row<'_>]) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        rows.iter().try_for_each(|(labels, value)| match labels {
            [] => family.encode_counter::<Labels<0>, f64, f64>(value, None),
            labels => {
                family.encode_family(labels)?.encode_counter::<Labels<0>, f64, f64>(value, None)
            }
        })
    }
}
