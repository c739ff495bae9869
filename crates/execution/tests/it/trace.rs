//! Bounds of traces. What they tell is compared with geth in the node's tests.

use crate::call::{to_main, world};
use alloy_primitives::hex;
use deponent_execution::{
    Call, CallTracerConfig, Deadline, Overrides, PrestateTracerConfig, StructLogConfig,
    TraceOptions, Traced, TracerConfig, trace_call,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const BYTES: usize = 1 << 20;

fn traced(code: &str, gas: u64, tracer: TracerConfig, deadline: Deadline) -> Traced<String> {
    let world = world(hex::decode(code).expect("hex"), Vec::new());
    let call = Call { gas, ..to_main() };
    let options = TraceOptions { tracer, deadline, bytes: BYTES };
    let none = Overrides::default();
    trace_call(&world.chain, world.parent(), &call, &none, &options, world.state())
        .expect("it runs")
}

fn all() -> StructLogConfig {
    StructLogConfig { enable_memory: true, enable_return_data: true, ..StructLogConfig::default() }
}

#[test]
fn an_answer_is_bounded_whatever_makes_it_long() {
    let never = || Deadline::new(|| false);
    // Loops; with memory of 100 KB; with a new slot each time; which call themselves.
    for code in ["5b5f56", "5f620186a0525b600656", "5b5a5a555f56", "5b5f5f5f5f5f305af15f56"] {
        let logs = traced(code, 1 << 40, TracerConfig::StructLogs(all()), never());
        assert_eq!(logs, Traced::TooLong, "{code}");
    }
    let deep = "5b5f5f620100005f5f305af15f56";
    let calls = TracerConfig::Calls(CallTracerConfig::default());
    assert_eq!(traced(deep, 1 << 40, calls, never()), Traced::TooLong);
    let slots = TracerConfig::Prestate(PrestateTracerConfig::default());
    assert_eq!(traced("5b5a54505f56", 1 << 40, slots, never()), Traced::TooLong);
}

#[test]
fn a_run_ends_when_its_time_is_over() {
    let looks = Arc::new(AtomicU64::new(0));
    let counted = looks.clone();
    let deadline = Deadline::new(move || counted.fetch_add(1, Ordering::Relaxed) >= 5);
    assert_eq!(traced("5b5f56", 1 << 40, TracerConfig::Noop, deadline), Traced::OutOfTime);
    assert_eq!(looks.load(Ordering::Relaxed), 6);
}

#[test]
fn a_limit_ends_the_recording_and_not_the_run() {
    let limited = StructLogConfig { limit: 200, ..StructLogConfig::default() };
    let deadline = Deadline::new(|| false);
    let Traced::Done(answer) =
        traced("60015b80600201", 100_000, TracerConfig::StructLogs(limited), deadline)
    else {
        panic!("no answer")
    };
    let answer: serde_json::Value = serde_json::from_str(&answer).expect("JSON");
    assert_eq!(answer["failed"], false);
    assert_eq!(answer["structLogs"].as_array().expect("a list").len(), 3, "{answer}");
}
