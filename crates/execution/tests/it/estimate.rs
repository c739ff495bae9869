//! Estimates of gas on a small state.

use alloy_eips::eip2930::{AccessList, AccessListItem};
use alloy_primitives::{Address, Bytes, TxKind, U256, address};
use deponent_execution::{
    AccountOverride, Call, CallError, CallOutcome, Deadline, Estimate, Overrides, StateOverrides,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use testing::asm::*;
use testing::world::{self, Signer, StartAccount, World};
use testing::{Random, rounds};

const MAIN: Address = address!("0x00000000000000000000000000000000000000a1");
const OTHER: Address = address!("0x00000000000000000000000000000000000000a2");
const IDENTITY: Address = address!("0x0000000000000000000000000000000000000004");

/// The most gas of a transaction in Osaka.
const MOST: u64 = 1 << 24;

/// The bound that a port has.
const GAS_CAP: u64 = 50_000_000;

const KECCAK256: u8 = 0x20;
const MLOAD: u8 = 0x51;
const REVERT: u8 = 0xfd;

fn rich() -> Address {
    Signer::new(1).address()
}

fn world_at(fork: &str, main: impl Into<Bytes>, other: impl Into<Bytes>) -> World {
    let main = StartAccount::contract(main).storage((1..=4).map(|slot| (slot, slot * 11)));
    let other = StartAccount::contract(other).storage([(1, 1)]);
    let accounts = [(rich(), StartAccount::rich()), (MAIN, main), (OTHER, other)];
    World::new(world::chain(fork), accounts).with_ancestors(3)
}

fn world(main: impl Into<Bytes>) -> World {
    world_at("osaka", main, Bytes::new())
}

fn to(address: Address) -> Call {
    Call { to: TxKind::Call(address), ..Call::default() }
}

fn with(world: &World, call: &Call, overrides: &StateOverrides) -> Estimate {
    let (chain, header) = (&world.chain, world.parent());
    let overrides = Overrides { state: overrides.clone(), ..Overrides::default() };
    let never = Deadline::never();
    deponent_execution::estimate(chain, header, call, &overrides, GAS_CAP, &never, world.state())
        .expect("an answer")
}

fn estimate(world: &World, call: &Call) -> Estimate {
    with(world, call, &StateOverrides::default())
}

#[track_caller]
fn fails(world: &World, call: &Call, words: &str) {
    match estimate(world, call) {
        Estimate::Failed(reason) => assert!(reason.contains(words), "{reason}"),
        other => panic!("{other:?}"),
    }
}

/// Whether the call succeeds with this gas limit.
fn succeeds(world: &World, call: &Call, gas: u64) -> bool {
    let (chain, header) = (&world.chain, world.parent());
    let (call, overrides) = (Call { gas, ..call.clone() }, Overrides::default());
    let never = Deadline::never();
    let outcome = deponent_execution::call(chain, header, &call, &overrides, &never, world.state());
    matches!(outcome.expect("an answer"), CallOutcome::Returned(_))
}

/// The time is that of all runs together, whichever of them is under way when it is over.
#[test]
fn the_runs_of_an_estimate_have_one_deadline() {
    // Counts from 4,096 down, in some 30,000 instructions.
    let code = [&push(&[0x10, 0])[..], &[0x5b, 0x60, 1, 0x90, 0x03, 0x80, 0x60, 3, 0x57]].concat();
    let world = world(code);
    let estimate = |deadline: &Deadline| {
        let (chain, header, none) = (&world.chain, world.parent(), Overrides::default());
        let call = to(MAIN);
        deponent_execution::estimate(chain, header, &call, &none, GAS_CAP, deadline, world.state())
    };
    let looks = Arc::new(AtomicU64::new(0));
    let counted = looks.clone();
    let count = Deadline::new(move || counted.fetch_add(1, Ordering::Relaxed) == u64::MAX);
    assert!(matches!(estimate(&count), Ok(Estimate::Gas(_))));
    let all = looks.load(Ordering::Relaxed);
    assert!(all > 40, "{all}");
    for after in 0..all {
        let looks = AtomicU64::new(0);
        let deadline = Deadline::new(move || looks.fetch_add(1, Ordering::Relaxed) >= after);
        let outcome = estimate(&deadline);
        assert!(matches!(outcome, Err(CallError::OutOfTime)), "{after}: {outcome:?}");
    }
}

#[test]
fn a_transfer_costs_what_it_uses() {
    let world = world(Bytes::new());
    let value = U256::from(1);
    let transfer = Call { from: rich(), value, ..to(Address::repeat_byte(7)) };
    assert_eq!(estimate(&world, &transfer), Estimate::Gas(21_000));
    assert_eq!(estimate(&world, &Call { gas: 21_000, ..transfer.clone() }), Estimate::Gas(21_000));
    // Less than any transaction has counts as nothing said.
    assert_eq!(estimate(&world, &Call { gas: 5, ..transfer.clone() }), Estimate::Gas(21_000));
    // A precompiled contract has no code, but costs gas; so does an entry of the access list.
    let Estimate::Gas(gas) = estimate(&world, &to(IDENTITY)) else { panic!("it succeeds") };
    assert!((21_015..21_400).contains(&gas), "{gas}");
    let item = AccessListItem { address: OTHER, storage_keys: Vec::new() };
    let listed = Call { access_list: AccessList(vec![item]), ..transfer };
    let Estimate::Gas(gas) = estimate(&world, &listed) else { panic!("it succeeds") };
    assert!((23_400..23_800).contains(&gas), "{gas}");
}

#[test]
fn a_call_that_fails_with_all_gas_has_no_estimate() {
    let reverts = world(revert());
    assert_eq!(estimate(&reverts, &to(MAIN)), Estimate::Reverted(Bytes::new()));
    fails(&world([0xfe]), &to(MAIN), "invalid opcode");
    // JUMPDEST PUSH0 JUMP
    let endless = world([0x5b, PUSH0, 0x56]);
    fails(&endless, &to(MAIN), "gas required exceeds allowance (16777216)");
    let little = Call { gas: 30_000, ..to(MAIN) };
    fails(&endless, &little, "gas required exceeds allowance (30000)");
    // Before Osaka a transaction may have the gas of the block, and a port allows no more.
    let before = world_at("prague", [0x5b, PUSH0, 0x56], Bytes::new());
    fails(&before, &to(MAIN), "gas required exceeds allowance (50000000)");
    let poor = Call { from: OTHER, value: U256::from(1), ..to(MAIN) };
    fails(&endless, &poor, "failed with 16777216 gas: insufficient funds for gas * price + value");
}

#[test]
fn the_balance_bounds_the_gas() {
    let world = world([0x5b, PUSH0, 0x56]);
    let balance = |wei: u64| {
        let account = AccountOverride { balance: Some(U256::from(wei)), ..Default::default() };
        StateOverrides::from_iter([(OTHER, account)])
    };
    let call = Call { from: OTHER, max_fee_per_gas: 100, ..to(MAIN) };
    let failed = |reason: &str| Estimate::Failed(reason.into());
    let words = "gas required exceeds allowance (54321)";
    assert_eq!(with(&world, &call, &balance(5_432_199)), failed(words));
    let words = "gas required exceeds allowance (20000)";
    assert_eq!(with(&world, &call, &balance(2_000_000)), failed(words));
    let paying = Call { value: U256::from(7), ..call.clone() };
    assert_eq!(with(&world, &paying, &balance(7)), failed("insufficient funds for transfer"));
    let words = "gas required exceeds allowance (100)";
    assert_eq!(with(&world, &paying, &balance(10_007)), failed(words));
    let hash = [&[1][..], &[0; 31]].concat();
    let blobs = Call {
        blob_hashes: Some(vec![alloy_primitives::B256::from_slice(&hash)]),
        max_fee_per_blob_gas: 1,
        ..call
    };
    let words = "insufficient funds for gas * price + value";
    assert_eq!(with(&world, &blobs, &balance(131_072)), failed(words));
    let words = "gas required exceeds allowance (30)";
    assert_eq!(with(&world, &blobs, &balance(131_072 + 3_000)), failed(words));
}

#[test]
fn an_estimate_sees_overrides() {
    let world = world(Bytes::new());
    let account = AccountOverride { code: Some(revert().into()), ..Default::default() };
    let overrides = StateOverrides::from_iter([(MAIN, account)]);
    assert_eq!(with(&world, &to(MAIN), &overrides), Estimate::Reverted(Bytes::new()));
}

/// Some ops at random. What fails below the top fails at the top.
fn ops(random: &mut Random, calls: bool) -> Vec<u8> {
    let size = [random.below(64) as u8, random.number() as u8];
    match random.below(if calls { 8 } else { 6 }) {
        // A slot that was set is cleared for a refund; refunds lower what is used, not what is
        // needed.
        0..=2 => set(random.below(8) as u8, random.below(2) as u8),
        3 => [&push(&size)[..], &[MLOAD, POP]].concat(),
        4 => [&push(&size)[..], &[PUSH0, KECCAK256, POP]].concat(),
        5 => look(BALANCE, Address::repeat_byte(random.number() as u8)),
        _ => {
            let call = [&[PUSH0; 5][..], &push(OTHER.as_slice()), &[GAS, CALL]].concat();
            // One less the success, times 2^64 - 1, is read in memory.
            let checked = [&push(&[1])[..], &[0x03], &push(&[0xff; 8]), &[0x02, MLOAD, POP]];
            [call, checked.concat()].concat()
        }
    }
}

fn code(random: &mut Random, calls: bool) -> Vec<u8> {
    let count = 1 + random.below(12);
    let mut code: Vec<u8> = (0..count).flat_map(|_| ops(random, calls)).collect();
    if calls && random.one_in(20) {
        code.extend([PUSH0, PUSH0, REVERT]);
    }
    code
}

/// The slow twin: the least limit by halving alone, from the least to the most.
#[test]
fn an_estimate_is_near_the_least_gas_limit() {
    let mut random = Random::seeded();
    let (mut estimated, mut exact) = (0, 0);
    for _ in 0..rounds("DEPONENT_ESTIMATES", 100, 3_000) {
        let (main, other) = (code(&mut random, true), code(&mut random, false));
        let world = world_at("osaka", main.clone(), other.clone());
        let input = vec![random.number() as u8; random.below(300)];
        let call = Call { input: input.into(), ..to(MAIN) };
        let found = estimate(&world, &call);
        if !succeeds(&world, &call, MOST) {
            assert!(matches!(found, Estimate::Reverted(_)), "{found:?}");
            continue;
        }
        let (mut fails, mut least) = (20_999, MOST);
        while fails + 1 < least {
            let middle = (fails + least) / 2;
            let place = if succeeds(&world, &call, middle) { &mut least } else { &mut fails };
            *place = middle;
        }
        let Estimate::Gas(gas) = found else { panic!("{found:?}, the least is {least}") };
        let at = format!("{gas}, the least is {least}: {main:02x?} {other:02x?}");
        assert!(succeeds(&world, &call, gas), "{at}");
        assert!(gas >= least && (gas - least) * 1_000 < gas * 15, "{at}");
        estimated += 1;
        exact += u32::from(gas == least);
    }
    assert!(estimated > 50, "{estimated} calls succeed");
    assert!(exact < estimated, "all estimates are exact");
}
