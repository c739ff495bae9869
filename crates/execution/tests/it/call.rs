//! Calls on a small state. A call gathers its observations in memory and returns them.

use alloy_primitives::{Address, Bytes, TxKind, U256, address};
use deponent_execution::{
    AccountOverride, BlockError, BlockOverrides, Call, CallError, CallOutcome, ChainSpec, Deadline,
    Overrides, StateOverrides, StorageOverride,
};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use testing::asm::*;
use testing::world::{self, Signer, StartAccount, World, marker};
use witness::{State, StateError};

pub(crate) const MAIN: Address = address!("0x00000000000000000000000000000000000000a1");
const OTHER: Address = address!("0x00000000000000000000000000000000000000a2");
const IDENTITY: Address = address!("0x0000000000000000000000000000000000000004");
const GAS: u64 = 1_000_000;

/// Code that returns the one word which `ops` leave on the stack.
fn give(ops: &[u8]) -> Bytes {
    // MSTORE at 0, RETURN 32 bytes from 0.
    [ops, &[PUSH0, 0x52, 0x60, 32, PUSH0, 0xf3]].concat().into()
}

/// Runs one op that takes nothing.
fn op(op: u8) -> Bytes {
    give(&[op])
}

pub(crate) fn rich() -> Address {
    Signer::new(1).address()
}

pub(crate) fn world(code: impl Into<Bytes>, more: Vec<(Address, StartAccount)>) -> World {
    let main = StartAccount::contract(code).storage([(1, 11), (2, 22)]);
    let accounts = vec![(rich(), StartAccount::rich()), (MAIN, main)];
    World::new(world::chain("osaka"), accounts.into_iter().chain(more)).with_ancestors(3)
}

pub(crate) fn to_main() -> Call {
    Call { to: TxKind::Call(MAIN), gas: GAS, ..Call::default() }
}

fn run(world: &World, call: &Call, overrides: &StateOverrides) -> CallOutcome {
    let overrides = Overrides { state: overrides.clone(), ..Overrides::default() };
    run_with(world, call, &overrides)
}

fn run_with(world: &World, call: &Call, overrides: &Overrides) -> CallOutcome {
    let (chain, never) = (&world.chain, Deadline::never());
    deponent_execution::call(chain, world.parent(), call, overrides, &never, world.state())
        .expect("an answer")
}

/// The call returns this word in a block with these overrides.
#[track_caller]
fn check_in(world: &World, call: &Call, block: BlockOverrides, expected: U256) {
    let overrides = Overrides { block, ..Overrides::default() };
    let expected = CallOutcome::Returned(expected.to_be_bytes::<32>().into());
    assert_eq!(run_with(world, call, &overrides), expected);
}

#[track_caller]
fn check(world: &World, call: &Call, expected: u128) {
    check_with(world, call, &StateOverrides::default(), U256::from(expected));
}

#[track_caller]
fn check_with(world: &World, call: &Call, overrides: &StateOverrides, expected: U256) {
    let expected = CallOutcome::Returned(expected.to_be_bytes::<32>().into());
    assert_eq!(run(world, call, overrides), expected);
}

#[track_caller]
fn refused(world: &World, call: &Call, words: &str) {
    match run(world, call, &StateOverrides::default()) {
        CallOutcome::Refused(reason) => assert!(reason.contains(words), "{reason}"),
        other => panic!("{other:?}"),
    }
}

const ORIGIN: u8 = 0x32;
const CALLVALUE: u8 = 0x34;
const GASPRICE: u8 = 0x3a;
const BASEFEE: u8 = 0x48;
const GASLIMIT: u8 = 0x45;
const SELFBALANCE: u8 = 0x47;

#[test]
fn a_call_sees_the_block_that_it_is_made_in() {
    let block_at = |code: Bytes| world(code, Vec::new());
    check(&block_at(op(NUMBER)), &to_main(), 3);
    check(&block_at(op(GASLIMIT)), &to_main(), 100_000_000);
    let from = Call { from: OTHER, ..to_main() };
    let other = U256::from_be_slice(OTHER.as_slice());
    check_with(&block_at(op(ORIGIN)), &from, &StateOverrides::default(), other);
    for distance in 1..=3_u8 {
        let ops = [&push(&[3 - distance])[..], &[BLOCKHASH]].concat();
        let world = block_at(give(&ops));
        let hash = world.headers[usize::from(3 - distance)].hash_slow();
        check_with(&world, &to_main(), &StateOverrides::default(), hash.into());
    }
    let own = block_at(give(&[NUMBER, BLOCKHASH]));
    check(&own, &to_main(), 0);
}

#[test]
fn gas_that_costs_nothing_has_no_base_fee() {
    let base_fee = u128::from(world(Bytes::new(), Vec::new()).parent().base_fee_per_gas.unwrap());
    let priced = Call { from: rich(), max_fee_per_gas: 99, ..to_main() };
    let tipped = Call { max_priority_fee_per_gas: 2, ..priced.clone() };
    let prices = world(op(GASPRICE), Vec::new());
    check(&prices, &to_main(), 0);
    check(&prices, &priced, base_fee);
    check(&prices, &tipped, base_fee + 2);
    check(&prices, &Call { max_priority_fee_per_gas: 99, ..priced.clone() }, 99);
    let base_fees = world(op(BASEFEE), Vec::new());
    check(&base_fees, &to_main(), 0);
    check(&base_fees, &priced, base_fee);
    refused(&prices, &Call { max_fee_per_gas: base_fee - 1, ..priced.clone() }, "base fee");
    refused(&prices, &Call { max_priority_fee_per_gas: 100, ..priced }, "higher than max fee");
}

#[test]
fn value_and_fees_must_be_there_but_nonce_and_code_do_not_matter() {
    let world = world(op(CALLVALUE), Vec::new());
    let paid = Call { from: rich(), value: U256::from(7), ..to_main() };
    check(&world, &paid, 7);
    refused(&world, &Call { from: OTHER, ..paid.clone() }, "have 0 want 7 (supplied gas 1000000)");
    let priced = Call { max_fee_per_gas: 1_000, ..to_main() };
    refused(&world, &Call { from: OTHER, ..priced }, "have 0 want 1000000000");
    check(&world, &Call { from: MAIN, ..to_main() }, 0);
    check(&world, &Call { gas: 200_000_000, ..to_main() }, 0);
    refused(&world, &Call { gas: 20_999, ..to_main() }, "have 20999, want 21000");
    // Too little money comes before too little gas.
    let words = "have 0 want 7 (supplied gas 9)";
    refused(&world, &Call { from: OTHER, gas: 9, ..paid.clone() }, words);
    refused(&world, &Call { gas: 9, ..paid }, "have 9, want 21000");
}

#[test]
fn a_call_ends_in_one_of_four_ways() {
    let nothing = CallOutcome::Returned(Bytes::new());
    let at = |code: Bytes| run(&world(code, Vec::new()), &to_main(), &StateOverrides::default());
    assert_eq!(at(Bytes::from_static(&[0])), nothing);
    let word = give(&push(&[9])).slice(..3);
    let reverts = [&word[..], &[0x52, 0x60, 32, PUSH0, 0xfd]].concat();
    assert_eq!(at(reverts.into()), CallOutcome::Reverted(U256::from(9).to_be_bytes_vec().into()));
    let halts = [
        (vec![0xfe], "invalid opcode"),
        (vec![0x0c], "invalid opcode"),
        (vec![PUSH0, 0x56], "invalid jump destination"),
        (vec![POP], "stack underflow"),
        // JUMPDEST PUSH0 JUMP
        (vec![0x5b, PUSH0, 0x56], "out of gas"),
    ];
    for (code, reason) in halts {
        assert_eq!(at(code.into()), CallOutcome::Halted(reason.into()));
    }
    let missing = Call { to: TxKind::Call(OTHER), ..to_main() };
    assert_eq!(
        run(&world(Bytes::new(), Vec::new()), &missing, &StateOverrides::default()),
        nothing
    );
    let create = Call { to: TxKind::Create, input: deploy(&idle(1)).into(), ..to_main() };
    let created = run(&world(Bytes::new(), Vec::new()), &create, &StateOverrides::default());
    assert_eq!(created, CallOutcome::Returned(idle(1)));
}

#[test]
fn overrides_stand_in_place_of_the_state() {
    let one = |account| StateOverrides::from_iter([(MAIN, account)]);
    let none = AccountOverride::default();
    let slots = |slots: &[(u64, u64)]| {
        slots.iter().map(|(slot, value)| (U256::from(*slot), U256::from(*value))).collect()
    };
    let sum = give(&[&push(&[1])[..], &[SLOAD], &push(&[2]), &[SLOAD, ADD]].concat());
    let sums = world(sum.clone(), Vec::new());
    check(&sums, &to_main(), 33);
    let some = StorageOverride::Some(slots(&[(2, 5)]));
    let some = AccountOverride { storage: Some(some), ..none.clone() };
    check_with(&sums, &to_main(), &one(some), U256::from(16));
    let whole = StorageOverride::Whole(slots(&[(2, 5)]));
    let whole = AccountOverride { storage: Some(whole), ..none.clone() };
    check_with(&sums, &to_main(), &one(whole), U256::from(5));

    let balance = AccountOverride { balance: Some(U256::from(77)), ..none.clone() };
    check_with(&world(op(SELFBALANCE), Vec::new()), &to_main(), &one(balance), U256::from(77));
    let coded = AccountOverride { code: Some(op(NUMBER)), ..none.clone() };
    check_with(&sums, &to_main(), &one(coded.clone()), U256::from(3));
    // Also where there is no account.
    let to_other = Call { to: TxKind::Call(OTHER), ..to_main() };
    let other = StateOverrides::from_iter([(OTHER, coded.clone())]);
    check_with(&sums, &to_other, &other, U256::from(3));
    // A delegation, to code that is itself overridden.
    let delegated = AccountOverride { code: Some(marker(OTHER)), ..none.clone() };
    let both = StateOverrides::from_iter([(MAIN, delegated), (OTHER, coded.clone())]);
    check_with(&sums, &to_main(), &both, U256::from(3));
    // No delegation, although it begins as one.
    let broken = AccountOverride { code: Some(marker(OTHER).slice(..9)), ..none.clone() };
    let outcome = run(&sums, &to_main(), &one(broken));
    assert_eq!(outcome, CallOutcome::Halted("invalid opcode".into()));
    // A precompiled contract.
    let to_identity = Call { to: TxKind::Call(IDENTITY), input: idle(7), ..to_main() };
    assert_eq!(
        run(&sums, &to_identity, &StateOverrides::default()),
        CallOutcome::Returned(idle(7))
    );
    let identity = StateOverrides::from_iter([(IDENTITY, coded)]);
    check_with(&sums, &to_identity, &identity, U256::from(3));
    // The creator's nonce, which its contract's address is made of.
    let creates = give(&create());
    let nonce = AccountOverride { nonce: Some(41), ..none };
    let created = U256::from_be_slice(MAIN.create(41).as_slice());
    check_with(&world(creates, Vec::new()), &to_main(), &one(nonce), created);
}

#[test]
fn overrides_are_seen_where_the_evm_does_not_ask_the_state() {
    // The slot of an account that the call creates.
    let init = give(&[&push(&[0])[..], &[SLOAD]].concat());
    let creation = Call { to: TxKind::Create, input: init, ..to_main() };
    let world = world(Bytes::new(), Vec::new());
    let slots = BTreeMap::from([(U256::ZERO, U256::from(42))]);
    for storage in [StorageOverride::Some(slots.clone()), StorageOverride::Whole(slots)] {
        let account = AccountOverride { storage: Some(storage), ..AccountOverride::default() };
        let created = StateOverrides::from_iter([(creation.from.create(0), account)]);
        check_with(&world, &creation, &created, U256::from(42));
    }
    // An account whose nonce is the last creates no contract.
    let last = AccountOverride { nonce: Some(u64::MAX), ..AccountOverride::default() };
    let last = StateOverrides::from_iter([(creation.from, last)]);
    let outcome = run(&world, &creation, &last);
    assert_eq!(outcome, CallOutcome::Halted("nonce uint64 overflow".into()));
    // All precompiled contracts are warm, an overridden one too: the gas of BALANCE, and 7.
    for (address, cost) in [(IDENTITY, 107), (OTHER, 2_607)] {
        let look = [&[0x5a][..], &push(address.as_slice()), &[0x31, 0x50, 0x5a, 0x90, 0x03]];
        let world = self::world(give(&look.concat()), Vec::new());
        for override_of in [IDENTITY, OTHER] {
            let one = StateOverrides::from_iter([(override_of, AccountOverride::default())]);
            check_with(&world, &to_main(), &one, U256::from(cost));
        }
    }
}

#[test]
fn a_creation_where_there_is_storage_collides_in_a_call_too() {
    let init = deploy(&idle(0x77));
    let code = give(&[load_input(), create2()].concat());
    let created = create2_address(MAIN, &init);
    let call = Call { input: init.into(), ..to_main() };
    let free = world(code.clone(), Vec::new());
    check_with(&free, &call, &StateOverrides::default(), U256::from_be_slice(created.as_slice()));
    let storage_only = StartAccount::default().storage([(1, 1)]);
    check(&world(code, vec![(created, storage_only)]), &call, 0);
}

/// As that of a genesis may be.
#[test]
fn a_block_with_difficulty_may_have_the_rules_of_later_forks() {
    let world = world(op(NUMBER), Vec::new());
    let mut header = world.parent().clone();
    header.difficulty = U256::from(131_072);
    let outcome = deponent_execution::call(
        &world.chain,
        &header,
        &to_main(),
        &Overrides::default(),
        &Deadline::never(),
        world.state(),
    );
    let expected = U256::from(header.number).to_be_bytes_vec();
    assert_eq!(outcome.unwrap(), CallOutcome::Returned(expected.into()));
}

#[test]
fn an_authorization_counts_in_the_call() {
    let world = world(op(NUMBER), Vec::new());
    let signer = Signer::new(2);
    let call = Call { to: TxKind::Call(signer.address()), ..to_main() };
    let nothing = CallOutcome::Returned(Bytes::new());
    assert_eq!(run(&world, &call, &StateOverrides::default()), nothing);
    let authorization_list = Some(vec![signer.authorize(0, MAIN)]);
    check(&world, &Call { authorization_list, ..call }, 3);
}

/// The slow twin: what a transaction in a block stores, the same call returns.
#[test]
fn a_call_gives_what_a_transaction_in_the_next_block_would() {
    let seen = [push(&[1]), vec![SLOAD], vec![SELFBALANCE, ADD, ORIGIN, ADD]].concat();
    let ops = [&seen[..], &[CALLVALUE, ADD]].concat();
    let world = world([&ops[..], &store(9)].concat(), Vec::new());
    let value = U256::from(123);
    let transaction = Signer::new(1).transact(0, TxKind::Call(MAIN), value, Bytes::new());
    let mut after = world.clone();
    let block = after.block(vec![transaction]);
    let validated = after.check(&block).expect("valid");
    after.extend(&block, validated);
    let stored = State::storage(&mut after.state(), MAIN, U256::from(9)).expect("there");
    assert!(!stored.is_zero());
    let code = AccountOverride { code: Some(give(&ops)), ..AccountOverride::default() };
    let call = Call { from: rich(), value, ..to_main() };
    check_with(&world, &call, &StateOverrides::from_iter([(MAIN, code)]), stored);
}

#[test]
fn a_state_that_cannot_answer_is_an_error() {
    let mut world = world(op(NUMBER), Vec::new());
    world.codes.clear();
    let (chain, parent) = (&world.chain, world.parent());
    let (none, never) = (Overrides::default(), Deadline::never());
    let error = deponent_execution::call(chain, parent, &to_main(), &none, &never, world.state());
    let Err(CallError::Block(BlockError::State(StateError::MissingCode(_)))) = error else {
        panic!("{error:?}")
    };
}

#[test]
fn a_call_ends_when_its_time_is_over() {
    // Loops; and calls a precompile, which runs no instruction, again and again.
    let precompile = [0x5b, 0x5f, 0x5f, 0x5f, 0x5f, 0x60, 4, 0x5a, 0xfa, 0x50, 0x5f, 0x56];
    for code in [&[0x5b, 0x5f, 0x56][..], &precompile] {
        let world = world(code.to_vec(), Vec::new());
        let looks = AtomicU64::new(0);
        let deadline = Deadline::new(move || looks.fetch_add(1, Ordering::Relaxed) >= 9);
        let (chain, parent, none) = (&world.chain, world.parent(), Overrides::default());
        let call = Call { gas: 1 << 40, ..to_main() };
        let ended = deponent_execution::call(chain, parent, &call, &none, &deadline, world.state());
        assert!(matches!(ended, Err(CallError::OutOfTime)), "{ended:?}");
    }
}

#[test]
fn a_call_sees_the_block_that_is_overridden() {
    const TIMESTAMP: u8 = 0x42;
    const PREVRANDAO: u8 = 0x44;
    const BLOBBASEFEE: u8 = 0x4a;
    let none = BlockOverrides::default;
    let sees = |code: u8, block: BlockOverrides, expected: U256| {
        check_in(&world(op(code), Vec::new()), &to_main(), block, expected);
    };
    let number = |number: u64| BlockOverrides { number: Some(number), ..none() };
    sees(NUMBER, number(77), U256::from(77));
    let later = u64::MAX / 2;
    sees(TIMESTAMP, BlockOverrides { timestamp: Some(later), ..none() }, U256::from(later));
    sees(GASLIMIT, BlockOverrides { gas_limit: Some(9), ..none() }, U256::from(9));
    let beneficiary = BlockOverrides { beneficiary: Some(OTHER), ..none() };
    sees(COINBASE, beneficiary, U256::from_be_slice(OTHER.as_slice()));
    let word = U256::from(5).into();
    sees(PREVRANDAO, BlockOverrides { prev_randao: Some(word), ..none() }, U256::from(5));
    sees(BLOBBASEFEE, BlockOverrides { blob_base_fee: Some(6), ..none() }, U256::from(6));
    // After the merge there is none.
    let difficulty = BlockOverrides { difficulty: Some(U256::from(8)), ..none() };
    let world_of = |code| world(op(code), Vec::new());
    let mix_hash = world_of(PREVRANDAO).parent().mix_hash;
    sees(PREVRANDAO, difficulty, mix_hash.into());
    // Gas that is free has no base fee.
    let base_fee = BlockOverrides { base_fee_per_gas: Some(11), ..none() };
    sees(BASEFEE, base_fee.clone(), U256::ZERO);
    let priced = Call { from: rich(), max_fee_per_gas: 12, ..to_main() };
    check_in(&world_of(BASEFEE), &priced, base_fee, U256::from(11));
    let dear = BlockOverrides { base_fee_per_gas: Some(13), ..none() };
    let outcome =
        run_with(&world_of(BASEFEE), &priced, &Overrides { block: dear, ..Overrides::default() });
    let words = "max fee per gas less than block base fee";
    assert!(matches!(outcome, CallOutcome::Refused(reason) if reason.contains(words)));
    // Blocks from the real number on have no hash; those before have theirs.
    for (number, asked) in [(9, 1), (9, 2), (9, 3), (9, 4), (3, 2), (2, 2), (2, 1), (300, 1)] {
        let world = world(give(&[&push(&[asked])[..], &[BLOCKHASH]].concat()), Vec::new());
        let is_seen = u64::from(asked) < 3 && u64::from(asked) < number && number < 257;
        let hash = is_seen.then(|| world.headers[usize::from(asked)].hash_slow());
        let block = BlockOverrides { number: Some(number), ..none() };
        check_in(&world, &to_main(), block, hash.unwrap_or_default().into());
    }
}

#[test]
fn the_fork_of_a_call_is_that_of_the_overridden_time() {
    let mut config = world::config("paris");
    config.shanghai_time = Some(1 << 40);
    let chain = ChainSpec::from_config(&config).expect("a chain");
    // It has PUSH0, of Shanghai.
    let main = (MAIN, StartAccount::contract(op(NUMBER)));
    let world = World::new(chain, [main]).with_ancestors(3);
    let halted = CallOutcome::Halted("invalid opcode".into());
    assert_eq!(run(&world, &to_main(), &StateOverrides::default()), halted);
    let block = BlockOverrides { timestamp: Some(1 << 40), ..BlockOverrides::default() };
    check_in(&world, &to_main(), block, U256::from(world.parent().number));
}

#[test]
fn a_precompiled_contract_can_be_moved() {
    let moved = |target| AccountOverride { precompile_moved_to: Some(target), ..none() };
    let world = world(Bytes::new(), Vec::new());
    let to = |address| Call { to: TxKind::Call(address), input: idle(7), ..to_main() };
    let overrides = StateOverrides::from_iter([(IDENTITY, moved(OTHER))]);
    assert_eq!(run(&world, &to(OTHER), &overrides), CallOutcome::Returned(idle(7)));
    assert_eq!(run(&world, &to(IDENTITY), &overrides), CallOutcome::Returned(Bytes::new()));
    // The code there is not run.
    let to_its_code = StateOverrides::from_iter([(IDENTITY, moved(MAIN))]);
    let reverts = self::world(revert(), Vec::new());
    assert_eq!(run(&reverts, &to(MAIN), &to_its_code), CallOutcome::Returned(idle(7)));
    // The place is cold, and the former one warm.
    for (address, cost) in [(IDENTITY, 107), (OTHER, 2_607)] {
        let look =
            [&[GAS_LEFT][..], &push(address.as_slice()), &[0x31, 0x50, GAS_LEFT, 0x90, 0x03]];
        let world = self::world(give(&look.concat()), Vec::new());
        check_with(&world, &to_main(), &overrides, U256::from(cost));
    }
    let refused = |overrides: StateOverrides, words: &str| match run(&world, &to_main(), &overrides)
    {
        CallOutcome::Refused(reason) => assert_eq!(reason, words),
        other => panic!("{other:?}"),
    };
    let words = format!("account {OTHER} is not a precompile");
    refused(StateOverrides::from_iter([(OTHER, moved(MAIN))]), &words);
    let words = format!("account {OTHER} is already overridden");
    let both = [(IDENTITY, moved(OTHER)), (OTHER, none())];
    refused(StateOverrides::from_iter(both), &words);
}

const GAS_LEFT: u8 = 0x5a;

fn none() -> AccountOverride {
    AccountOverride::default()
}

#[test]
fn too_little_money_comes_before_too_little_gas_and_no_list_may_be_empty() {
    let world = world(Bytes::new(), Vec::new());
    let little = Call { from: OTHER, gas: 9, value: U256::from(5), ..to_main() };
    let words = "insufficient funds for gas * price + value";
    refused(&world, &little, words);
    let priced = Call { from: OTHER, gas: 9, max_fee_per_gas: 100, ..to_main() };
    refused(&world, &priced, "have 0 want 900");
    refused(&world, &Call { from: rich(), ..little }, "intrinsic gas too low");
    let blobs = Call { blob_hashes: Some(Vec::new()), ..to_main() };
    refused(&world, &blobs, "err: blob transaction missing blob hashes (supplied gas 1000000)");
    let list = Call { authorization_list: Some(Vec::new()), ..to_main() };
    refused(&world, &list, "EIP-7702 transaction with empty auth list (sender 0x");
}
