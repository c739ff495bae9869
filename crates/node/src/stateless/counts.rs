//! The counts of a node without a state.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

use crate::metrics::Metrics;

/// A value by a label whose values are known at the start.
type Counted = Family<[(&'static str, String); 1], Counter>;

/// The counts of a node without a state.
#[derive(Debug)]
pub(crate) struct StatelessCounts {
    blocks: Counted,
    verifying: Histogram,
    waiting_for_witness: Histogram,
    bytes: Counted,
    refused: Counted,
    failed: Counted,
    waiting: Gauge<u64, AtomicU64>,
    head: Gauge<u64, AtomicU64>,
    /// The names of the sources.
    sources: Vec<String>,
    /// The counts of every node.
    metrics: Arc<Metrics>,
}

impl StatelessCounts {
    pub(crate) fn new(sources: Vec<String>, metrics: Arc<Metrics>) -> Arc<Self> {
        let (blocks, bytes, refused, failed) = Default::default();
        let counts = Self {
            blocks,
            verifying: Histogram::new(exponential_buckets(0.000_5, 2.0, 15)),
            waiting_for_witness: Histogram::new(exponential_buckets(0.001, 2.0, 15)),
            bytes,
            refused,
            failed,
            waiting: Gauge::default(),
            head: Gauge::default(),
            sources,
            metrics,
        };
        // A rate needs a value before the first event.
        for verdict in ["valid", "invalid"] {
            drop(counts.blocks.get_or_create(&[("verdict", verdict.to_owned())]));
        }
        for source in 0..counts.sources.len() {
            for family in [&counts.bytes, &counts.refused, &counts.failed] {
                drop(family.get_or_create(&counts.label(source)));
            }
        }
        Arc::new(counts)
    }

    /// Adds all of them to those of the port of metrics.
    pub(crate) fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("deponent_stateless");
        for (name, help, family) in [
            ("blocks", BLOCKS, &self.blocks),
            ("witnesses_refused", REFUSED, &self.refused),
            ("source_failures", FAILED, &self.failed),
        ] {
            registry.register(name, help, family.clone());
        }
        registry.register_with_unit("witness", BYTES, Unit::Bytes, self.bytes.clone());
        for (name, help, histogram) in [
            ("verification_duration_seconds", VERIFYING, &self.verifying),
            ("witness_wait_seconds", WAITING, &self.waiting_for_witness),
        ] {
            registry.register(name, help, histogram.clone());
        }
        registry.register("waiting_blocks", WAITING_BLOCKS, self.waiting.clone());
        registry.register("head_number", HEAD, self.head.clone());
    }

    fn label(&self, source: usize) -> [(&'static str, String); 1] {
        [("source", self.sources[source].clone())]
    }

    fn judged(&self, verdict: &str) {
        self.blocks.get_or_create(&[("verdict", verdict.to_owned())]).inc();
    }

    /// A block was verified, in this time, after it had waited so long for its witness.
    pub(crate) fn verified(&self, took: Duration, waited: Duration) {
        self.judged("valid");
        self.verifying.observe(took.as_secs_f64());
        self.waiting_for_witness.observe(waited.as_secs_f64());
    }

    pub(crate) fn invalid(&self) {
        self.judged("invalid");
        self.metrics.invalid_block();
    }

    /// A witness of so many bytes came from a source.
    pub(crate) fn received(&self, source: usize, bytes: usize) {
        self.bytes.get_or_create(&self.label(source)).inc_by(bytes as u64);
    }

    pub(crate) fn refused(&self, source: usize) {
        self.refused.get_or_create(&self.label(source)).inc();
    }

    pub(crate) fn failed(&self, source: usize) {
        self.failed.get_or_create(&self.label(source)).inc();
    }

    pub(crate) fn waiting(&self, blocks: usize) {
        self.waiting.set(blocks as u64);
    }

    pub(crate) fn head(&self, number: u64) {
        self.head.set(number);
    }

    /// Witnesses that were refused, by source.
    pub(crate) fn refusals(&self) -> Vec<(String, u64)> {
        let sources = 0..self.sources.len();
        let count = |source| self.refused.get_or_create(&self.label(source)).get();
        sources.map(|source| (self.sources[source].clone(), count(source))).collect()
    }
}

const BLOCKS: &str = "Blocks that were judged, by verdict";
const REFUSED: &str = "Witnesses that lacked something or did not fit, by source";
const FAILED: &str = "Questions to a source without an answer that can be used";
const BYTES: &str = "Content of the witnesses that came, by source";
const VERIFYING: &str = "Time of a verification";
const WAITING: &str = "Time from a block to the witness with which it was verified";
const WAITING_BLOCKS: &str = "Blocks that have no verdict yet";
const HEAD: &str = "Number of the head";
