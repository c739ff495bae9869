//! Metrics of blocks, fork choices and builds, out of the engine's events.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use engine::{
    BlockFigures, BuildStep, ChainEvent, ForkchoiceAnswer, ForkchoiceFigures, Timings,
    WitnessBytes, WitnessSize,
};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use super::answers::of_bytes;
use super::{Histograms, Labels, Metrics, histograms, observe, of_blocks};
use crate::observe::Observer;

/// A gauge of numbers that are not whole.
type FloatGauge = Gauge<f64, AtomicU64>;

/// Counts of blocks, fork choices and builds.
#[derive(Debug)]
pub(super) struct BlockMetrics {
    stages: Histograms<1>,
    forkchoice: Histograms<1>,
    builds: Family<Labels<1>, Counter>,
    build_duration: Histogram,
    gas_used: Counter,
    transactions: Counter,
    invalid: Counter,
    events_lost: Counter,
    last_gas_used: Gauge,
    last_gas_per_second: FloatGauge,
    state_reads: Family<Labels<1>, Counter>,
    reorg_depth: Histogram,
    witness_bytes: Histogram,
    witness_nodes: Histogram,
    witness_codes: Histogram,
}

/// Counts the events of a node's engine.
pub(crate) struct MetricsObserver(pub(crate) Arc<Metrics>);

impl Observer for MetricsObserver {
    fn event(&mut self, event: &ChainEvent, witness: Option<WitnessSize>) {
        self.0.blocks.observe(event, witness);
    }

    /// The gauges are those of the next block that runs.
    fn lost(&mut self, events: u64) {
        self.0.blocks.events_lost.inc_by(events);
    }
}

impl BlockMetrics {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let all = Self {
            stages: histograms(of_blocks),
            forkchoice: histograms(of_blocks),
            builds: Family::default(),
            build_duration: of_blocks(),
            gas_used: Counter::default(),
            transactions: Counter::default(),
            invalid: Counter::default(),
            events_lost: Counter::default(),
            last_gas_used: Gauge::default(),
            last_gas_per_second: FloatGauge::default(),
            state_reads: Family::default(),
            reorg_depth: Histogram::new(exponential_buckets(1.0, 2.0, 8)),
            witness_bytes: of_bytes(),
            witness_nodes: of_items(),
            witness_codes: of_items(),
        };
        // They are there from the start, so that an increase from 0 is seen.
        for step in ["begun", "built", "failed"] {
            drop(all.builds.get_or_create(&[("step", step)]));
        }
        all.register(registry);
        all
    }

    fn register(&self, registry: &mut Registry) {
        registry.register("block_stage_duration_seconds", STAGES, self.stages.clone());
        registry.register("forkchoice_duration_seconds", FORKCHOICE, self.forkchoice.clone());
        registry.register("builds", "Steps of payloads that are built", self.builds.clone());
        registry.register("build_duration_seconds", BUILD, self.build_duration.clone());
        registry.register("gas_used", "Gas of validated blocks", self.gas_used.clone());
        let help = "Transactions of validated blocks";
        registry.register("transactions", help, self.transactions.clone());
        registry.register("invalid_blocks", "Payloads found invalid", self.invalid.clone());
        registry.register("events_lost", EVENTS_LOST, self.events_lost.clone());
        let help = "Gas of the block that was validated last";
        registry.register("last_block_gas_used", help, self.last_gas_used.clone());
        let help = "The same, by the time in which it ran";
        registry.register("last_block_gas_per_second", help, self.last_gas_per_second.clone());
        registry.register("state_reads", STATE_READS, self.state_reads.clone());
        let help = "Blocks that left the canonical chain at a fork choice";
        registry.register("reorg_depth_blocks", help, self.reorg_depth.clone());
        let help = "Bytes of the witness of a block, or a bound of it";
        registry.register("witness_size_bytes", help, self.witness_bytes.clone());
        let help = "Trie nodes in the witness of a block";
        registry.register("witness_nodes", help, self.witness_nodes.clone());
        let help = "Codes in the witness of a block";
        registry.register("witness_codes", help, self.witness_codes.clone());
    }

    fn observe(&self, event: &ChainEvent, witness: Option<WitnessSize>) {
        match event {
            ChainEvent::Ran(figures) => {
                self.ran(figures);
                witness.into_iter().for_each(|size| self.witness(size));
            }
            ChainEvent::Invalid(..) => _ = self.invalid.inc(),
            ChainEvent::Chosen(change) if !change.left.is_empty() => {
                self.reorg_depth.observe(change.left.len() as f64);
            }
            ChainEvent::Forkchoice(ForkchoiceFigures { took, answer, .. }) => {
                observe(&self.forkchoice, [("status", answer_label(*answer))], *took);
            }
            ChainEvent::Build(step) => self.build(step),
            _ => {}
        }
    }

    pub(super) fn invalid(&self) {
        self.invalid.inc();
    }

    fn ran(&self, figures: &BlockFigures) {
        let BlockFigures { gas_used, transactions, timings, waited, reads, .. } = *figures;
        let Timings { recovery, parent, execution, root, catching_up, journal, witness, .. } =
            timings;
        let stages = [
            ("recovery", recovery),
            ("parent", parent),
            ("execution", execution),
            ("root", root),
            ("catching_up", catching_up),
            ("journal", journal),
            ("witness", witness),
            ("waiting", waited),
        ];
        for (stage, took) in stages {
            observe(&self.stages, [("stage", stage)], took);
        }
        self.gas_used.inc_by(gas_used);
        self.transactions.inc_by(transactions as u64);
        self.last_gas_used.set(i64::try_from(gas_used).unwrap_or(i64::MAX));
        let ran = (recovery + parent + execution + root).as_secs_f64();
        self.last_gas_per_second.set(gas_used as f64 / ran.max(1e-9));
        let reads = [
            ("accounts", reads.accounts),
            ("slots", reads.slots),
            ("codes", reads.codes),
            ("code_bytes", reads.code_bytes),
            ("uncached_codes", reads.uncached_codes),
        ];
        for (what, count) in reads {
            self.state_reads.get_or_create(&[("what", what)]).inc_by(count as u64);
        }
    }

    fn witness(&self, WitnessSize { nodes_at_most, codes, bytes, .. }: WitnessSize) {
        self.witness_nodes.observe(nodes_at_most as f64);
        self.witness_codes.observe(codes as f64);
        if let Some(WitnessBytes::Exactly(bytes) | WitnessBytes::AtMost(bytes)) = bytes {
            self.witness_bytes.observe(bytes as f64);
        }
    }

    fn build(&self, step: &BuildStep) {
        let label = match step {
            BuildStep::Begun { .. } => "begun",
            BuildStep::Built { took, .. } => {
                self.build_duration.observe(took.as_secs_f64());
                "built"
            }
            BuildStep::Failed(_) => "failed",
        };
        self.builds.get_or_create(&[("step", label)]).inc();
    }
}

const STAGES: &str = "Time of each stage of a validated block; catching_up is a part of root";
const FORKCHOICE: &str = "Time of a fork choice in the engine";
const BUILD: &str = "Time to build a payload, when it is first asked for";
const EVENTS_LOST: &str =
    "Events of the chain that were dropped uncounted, since too many waited to be counted";
const STATE_READS: &str = "What validated blocks have read of the state, each thing once a block";

const fn answer_label(answer: ForkchoiceAnswer) -> &'static str {
    match answer {
        ForkchoiceAnswer::Applied => "applied",
        ForkchoiceAnswer::Kept => "kept",
        ForkchoiceAnswer::Syncing => "syncing",
        ForkchoiceAnswer::Invalid => "invalid",
        ForkchoiceAnswer::Failed => "failed",
    }
}

/// Counts of a block's items: 1 to a million, in steps of four.
fn of_items() -> Histogram {
    Histogram::new(exponential_buckets(1.0, 4.0, 11))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_events_are_counted_and_gauges_are_those_of_the_next_block() {
        let metrics = Arc::new(Metrics::default());
        let mut observer = MetricsObserver(metrics.clone());
        let ran = |gas_used| ChainEvent::Ran(BlockFigures { gas_used, ..BlockFigures::default() });
        observer.event(&ran(7), None);
        observer.lost(5);
        observer.lost(1);
        assert_eq!(metrics.blocks.events_lost.get(), 6);
        observer.event(&ran(9), None);
        assert_eq!(metrics.blocks.last_gas_used.get(), 9);
        assert_eq!(metrics.blocks.gas_used.get(), 16);
    }
}
