//! Bounds of traces. What they tell is compared with geth in the node's tests.

use crate::call::{MAIN, rich, to_main, world};
use alloy_primitives::{Address, TxKind, U256, bytes, hex};
use deponent_execution::{
    Call, CallTracerConfig, Deadline, Erc7562TracerConfig, FlatCallTracerConfig, Overrides,
    ParityTypes, PrestateTracerConfig, StructLogConfig, TraceOptions, Traced, TracerConfig,
    trace_call,
};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use testing::world::{self, Signer, StartAccount, World};

const BYTES: usize = 1 << 20;

fn traced(code: &str, gas: u64, tracer: TracerConfig, deadline: Deadline) -> Traced<String> {
    let world = world(hex::decode(code).expect("hex"), Vec::new());
    let call = Call { gas, ..to_main() };
    let options = TraceOptions { tracer, first_log: 0, deadline, bytes: BYTES };
    let none = Overrides::default();
    trace_call(&world.chain, world.parent(), &call, &none, &options, world.state())
        .expect("it runs")
}

/// The answer of a tracer to a call in a block of this world.
fn answer(world: &World, call: &Call, tracer: TracerConfig) -> Value {
    let options = TraceOptions { tracer, first_log: 0, deadline: Deadline::never(), bytes: BYTES };
    let none = Overrides::default();
    let traced = trace_call(&world.chain, world.parent(), call, &none, &options, world.state());
    let Traced::Done(answer) = traced.expect("it runs") else { panic!("no answer") };
    serde_json::from_str(&answer).expect("JSON")
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

#[test]
fn a_transaction_whose_gas_is_used_up_before_its_first_frame_is_a_frame_that_failed() {
    // In Amsterdam what the account is charged that a transfer makes, is more than there is.
    let accounts = vec![(rich(), StartAccount::rich())];
    let world = World::new(world::chain("amsterdam"), accounts);
    let (from, to) = (rich(), Address::repeat_byte(0x77));
    let call = Call { from, to: to.into(), gas: 30_000, value: U256::ONE, ..Call::default() };
    let of = |tracer| answer(&world, &call, tracer);

    let frame = of(TracerConfig::Calls(CallTracerConfig::default()));
    let expected = json!({
        "from": from.to_string().to_lowercase(), "to": to.to_string().to_lowercase(),
        "gas": "0x7530", "gasUsed": "0x7530", "input": "0x", "value": "0x1", "type": "CALL",
        "error": "out of gas",
    });
    assert_eq!(frame, expected);
    let creation = Call { to: TxKind::Create, input: bytes!("00"), gas: 60_000, ..call.clone() };
    let created = answer(&world, &creation, TracerConfig::Calls(CallTracerConfig::default()));
    assert_eq!((&created["type"], &created["error"]), (&json!("CREATE"), &json!("out of gas")));

    let logs = of(TracerConfig::StructLogs(all()));
    assert_eq!((&logs["failed"], &logs["structLogs"]), (&json!(true), &json!([])));
    let flat = of(TracerConfig::FlatCalls(FlatCallTracerConfig::default()));
    assert_eq!(
        (&flat[0]["error"], &flat[0]["action"]["value"]),
        (&json!("out of gas"), &json!("0x1"))
    );
    let tree = of(TracerConfig::Erc7562(Erc7562TracerConfig::default()));
    assert_eq!(tree["error"], "out of gas");
    let before = of(TracerConfig::Prestate(PrestateTracerConfig::default()));
    assert!(before.get(from.to_string().to_lowercase()).is_some(), "{before}");
    let types = ParityTypes { trace: true, vm_trace: true, state_diff: true };
    let replayed = of(TracerConfig::Parity(types));
    assert_eq!(replayed["trace"][0]["error"], "Out of gas");
    assert_eq!(replayed["vmTrace"], json!({"code": "0x", "ops": []}));
}

#[test]
fn authorizations_of_accounts_that_are_there_are_refunded_from_the_first_instruction_on() {
    let (known, sender, new) = (Signer::new(2), Signer::new(3), Signer::new(4));
    let accounts = [&known, &sender].map(|signer| (signer.address(), StartAccount::rich()));
    // STOP
    let world = world(bytes!("00"), accounts.into());
    let refund = |list: Vec<_>| {
        let from = sender.address();
        let call = Call { from, authorization_list: Some(list), ..to_main() };
        let logs = answer(&world, &call, TracerConfig::StructLogs(StructLogConfig::default()));
        logs["structLogs"][0].get("refund").and_then(Value::as_u64).unwrap_or(0)
    };
    assert_eq!(refund(vec![known.authorize(0, MAIN)]), 12_500);
    assert_eq!(refund(vec![new.authorize(0, MAIN)]), 0);
    // The second one of an account that the first one has made; one whose nonce is not right.
    assert_eq!(refund(vec![new.authorize(0, MAIN), new.authorize(1, MAIN)]), 12_500);
    assert_eq!(refund(vec![known.authorize(1, MAIN), new.authorize(1, MAIN)]), 0);
    // The sender's nonce is used by the transaction.
    assert_eq!(refund(vec![sender.authorize(0, MAIN)]), 0);
    assert_eq!(refund(vec![sender.authorize(1, MAIN), known.authorize(0, MAIN)]), 25_000);
}
