use std::collections::BTreeMap;
use std::sync::Arc;

use alloy_primitives::B256;
use engine::{
    BlockFigures, BuildStep, ChainEvent, ForkchoiceAnswer, ForkchoiceFigures, HeadChange, Heads,
    Missing, StateReads, Timings, WitnessBytes, WitnessSize,
};
use prometheus_client::encoding::prometheus_text::encode;

use super::*;
use crate::observe::Observer;

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// The values of all series by their names, without the prefix `deponent_`.
fn values(metrics: &Metrics) -> BTreeMap<String, f64> {
    let mut text = String::new();
    encode(&mut text, &metrics.registry).expect("a text");
    let lines = text.lines().filter_map(|line| line.strip_prefix("deponent_"));
    let read = |line: &str| {
        let (name, value) = line.rsplit_once(' ').expect("a series and a value");
        (name.to_owned(), value.parse().expect("a number"))
    };
    lines.map(read).collect()
}

#[track_caller]
fn check(metrics: &Metrics, expected: &[(&str, f64)]) {
    let found = values(metrics);
    for (name, value) in expected {
        assert_eq!(found.get(*name), Some(value), "{name}: {found:#?}");
    }
}

/// Metrics that have seen these events, each with the same witness.
fn after(events: &[ChainEvent], witness: Option<WitnessSize>) -> Arc<Metrics> {
    let metrics = Arc::new(Metrics::default());
    let mut observer = MetricsObserver(metrics.clone());
    events.iter().for_each(|event| observer.event(event, witness));
    metrics
}

#[test]
fn each_figure_of_a_block_is_counted_under_its_own_name() {
    let timings = Timings {
        recovery: seconds(1),
        parent: seconds(2),
        execution: seconds(4),
        root: seconds(8),
        catching_up: seconds(3),
        disk: seconds(5),
        journal: seconds(32),
        witness: seconds(64),
    };
    let reads =
        StateReads { accounts: 10, slots: 20, codes: 4, code_bytes: 4096, uncached_codes: 1 };
    let figures = BlockFigures {
        gas_used: 30_000_000,
        transactions: 180,
        timings,
        waited: seconds(128),
        total: seconds(300),
        reads,
        ..BlockFigures::default()
    };
    let size = |bytes| WitnessSize { nodes_at_most: 70, codes: 7, headers: 2, bytes };
    let ran = [ChainEvent::Ran(figures)];
    let metrics = after(&ran, Some(size(Some(WitnessBytes::AtMost(5_000)))));
    check(
        &metrics,
        &[
            ("block_stage_duration_seconds_sum{stage=\"recovery\"}", 1.0),
            ("block_stage_duration_seconds_sum{stage=\"parent\"}", 2.0),
            ("block_stage_duration_seconds_sum{stage=\"execution\"}", 4.0),
            ("block_stage_duration_seconds_sum{stage=\"root\"}", 8.0),
            ("block_stage_duration_seconds_sum{stage=\"catching_up\"}", 3.0),
            ("block_stage_duration_seconds_sum{stage=\"journal\"}", 32.0),
            ("block_stage_duration_seconds_sum{stage=\"witness\"}", 64.0),
            ("block_stage_duration_seconds_sum{stage=\"waiting\"}", 128.0),
            ("gas_used_total", 30e6),
            ("transactions_total", 180.0),
            ("last_block_gas_used", 30e6),
            ("last_block_gas_per_second", 2e6),
            ("state_reads_total{what=\"accounts\"}", 10.0),
            ("state_reads_total{what=\"slots\"}", 20.0),
            ("state_reads_total{what=\"codes\"}", 4.0),
            ("state_reads_total{what=\"code_bytes\"}", 4096.0),
            ("state_reads_total{what=\"uncached_codes\"}", 1.0),
            ("witness_nodes_sum", 70.0),
            ("witness_codes_sum", 7.0),
            ("witness_size_bytes_sum", 5_000.0),
        ],
    );
    // An unknown size is not counted; the last block is the last one, and sums are sums.
    let metrics = after(&[ran[0].clone(), ran[0].clone()], Some(size(None)));
    check(
        &metrics,
        &[
            ("witness_nodes_count", 2.0),
            ("witness_size_bytes_count", 0.0),
            ("gas_used_total", 60e6),
            ("last_block_gas_used", 30e6),
        ],
    );
}

#[test]
fn each_event_is_counted_under_its_own_name() {
    use ForkchoiceAnswer::{Applied, Failed, Invalid, Kept, Syncing};
    let heads = Heads { genesis: B256::ZERO, head: B256::ZERO, safe: None, finalized: None };
    let change = |left: usize, joined: usize| {
        let hashes = |count| vec![B256::ZERO; count];
        let (left, joined) = (hashes(left), hashes(joined));
        ChainEvent::Chosen(HeadChange { before: heads, now: heads, left, joined })
    };
    let answers = [(Applied, 1), (Kept, 2), (Syncing, 4), (Invalid, 8), (Failed, 16)];
    let mut events: Vec<_> = answers
        .map(|(answer, took)| {
            let took = seconds(took);
            ChainEvent::Forkchoice(ForkchoiceFigures { head: B256::ZERO, took, answer })
        })
        .into();
    events.extend([change(0, 1), change(3, 1), change(2, 0)]);
    events.push(ChainEvent::Invalid(B256::ZERO, "a reason".into()));
    let built = BuildStep::Built { number: 1, took: seconds(9), gas_used: 5 };
    let steps = [BuildStep::Begun { parent: B256::ZERO }, built, BuildStep::Failed("why".into())];
    for (step, times) in steps.into_iter().zip([4, 3, 2]) {
        events.extend(vec![ChainEvent::Build(step); times]);
    }
    check(
        &after(&events, None),
        &[
            ("forkchoice_duration_seconds_sum{status=\"applied\"}", 1.0),
            ("forkchoice_duration_seconds_sum{status=\"kept\"}", 2.0),
            ("forkchoice_duration_seconds_sum{status=\"syncing\"}", 4.0),
            ("forkchoice_duration_seconds_sum{status=\"invalid\"}", 8.0),
            ("forkchoice_duration_seconds_sum{status=\"failed\"}", 16.0),
            ("reorg_depth_blocks_count", 2.0),
            ("reorg_depth_blocks_sum", 5.0),
            ("invalid_blocks_total", 1.0),
            ("builds_total{step=\"begun\"}", 4.0),
            ("builds_total{step=\"built\"}", 3.0),
            ("builds_total{step=\"failed\"}", 2.0),
            ("build_duration_seconds_sum", 27.0),
        ],
    );
}

#[test]
fn each_answer_of_a_port_is_counted_under_its_own_name() {
    let metrics = Arc::new(Metrics::default());
    MetricsObserver(metrics.clone()).lost(7);
    let invalid = Verdict::Invalid { latest_valid_hash: None, reason: "a reason".into() };
    let judged = |verdict, timings| JudgedPayload { verdict, timings };
    metrics.new_payload(seconds(1), Ok(&judged(Verdict::Valid, Some(Timings::default()))));
    metrics.new_payload(seconds(16), Ok(&judged(Verdict::Valid, None)));
    metrics.new_payload(seconds(2), Ok(&judged(invalid, None)));
    let missing = Missing::Block { number: 1, hash: B256::ZERO };
    metrics.new_payload(seconds(4), Ok(&judged(Verdict::Syncing(missing), None)));
    metrics.new_payload(seconds(8), Err(&EngineError::UnknownBlock(B256::ZERO)));
    metrics.called(Some("eth_chainId"), seconds(1), None);
    for (code, took) in [(Code::PrunedHistory, 2), (Code::InvalidParams, 4), (Code::Server, 8)] {
        metrics.called(Some("eth_getLogs"), seconds(took), Some(&Error::new(code, "a reason")));
    }
    metrics.called(None, seconds(3), Some(&Error::method_not_found("eth_none")));
    for (status, took) in [(200, 1), (304, 2), (404, 4), (503, 8)] {
        let status = StatusCode::from_u16(status).expect("a status");
        metrics.requested("payloads", seconds(took), status);
    }
    check(
        &metrics,
        &[
            ("new_payload_duration_seconds_sum{status=\"valid\"}", 1.0),
            ("new_payload_duration_seconds_sum{status=\"known\"}", 16.0),
            ("new_payload_duration_seconds_sum{status=\"invalid\"}", 2.0),
            ("new_payload_duration_seconds_sum{status=\"syncing\"}", 4.0),
            ("new_payload_duration_seconds_sum{status=\"error\"}", 8.0),
            ("events_lost_total", 7.0),
            ("rpc_call_duration_seconds_sum{method=\"eth_chainId\"}", 1.0),
            ("rpc_call_duration_seconds_sum{method=\"eth_getLogs\"}", 14.0),
            ("rpc_call_duration_seconds_sum{method=\"unknown\"}", 3.0),
            ("rpc_errors_total{method=\"eth_getLogs\",code=\"pruned\"}", 1.0),
            ("rpc_errors_total{method=\"eth_getLogs\",code=\"invalid_params\"}", 1.0),
            ("rpc_errors_total{method=\"eth_getLogs\",code=\"other\"}", 1.0),
            ("rpc_errors_total{method=\"unknown\",code=\"method_not_found\"}", 1.0),
            ("rest_request_duration_seconds_sum{endpoint=\"payloads\"}", 15.0),
            ("rest_errors_total{endpoint=\"payloads\",status=\"4xx\"}", 1.0),
            ("rest_errors_total{endpoint=\"payloads\",status=\"5xx\"}", 1.0),
        ],
    );
}
