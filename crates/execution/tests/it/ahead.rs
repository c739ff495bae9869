//! Transactions that run ahead count if their reads are right, and otherwise change nothing. The
//! random blocks of the conformance runner check the same on any contracts.

use alloy_consensus::TxReceipt;
use alloy_primitives::{Address, B256, Bytes, Log, TxKind, U256, address};
use deponent_execution::{
    AccessList, AheadExecutor, AheadOutcome, AheadOutcomes, BlockError, CodeCache,
    CommittedChanges, Executed, PriorChanges, RunOptions, SealedBlock, prefetch_reads,
    recover_senders, run,
};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use testing::asm::*;
use testing::world::{
    self, FollowedState, RanBefore, RunInBatches, Signer, StartAccount, World, marker, summary,
};
use witness::{Account, State, StateError};

const COUNTER: Address = address!("0x00000000000000000000000000000000000000a1");

/// Adds one to slot 1, and logs.
fn counter() -> Bytes {
    let add = [&push(&[1])[..], &push(&[1]), &[SLOAD, ADD]].concat();
    let store = [&push(&[1])[..], &[SSTORE], &LOG_RANDOM].concat();
    [add, store].concat().into()
}

fn amsterdam() -> World {
    let signers = (1..=3).map(|number| (Signer::new(number).address(), StartAccount::rich()));
    let counter = (COUNTER, StartAccount::contract(counter()).storage([(1, 5)]));
    World::new(world::chain("amsterdam"), signers.chain([counter]))
}

/// A block in which each transaction reads what the one before has written.
fn block(world: &World, rounds: u64) -> SealedBlock {
    let calls = |nonce| (1..=3).map(move |number| Signer::new(number).call(nonce, COUNTER, []));
    world.block((0..rounds).flat_map(calls).collect())
}

fn list(world: &World, block: &SealedBlock) -> Bytes {
    world.validate(block).unwrap().executed.block_access_list.unwrap()
}

/// Counts the transactions taken.
#[derive(Debug)]
struct Counted<A> {
    ran: A,
    taken: Cell<usize>,
    has_ended: Cell<bool>,
}

impl<A: AheadOutcomes> AheadOutcomes for Counted<A> {
    fn take(&self, index: usize) -> Option<AheadOutcome> {
        let ran = self.ran.take(index)?;
        self.taken.set(self.taken.get() + 1);
        Some(ran)
    }

    fn end(&self) {
        assert!(!self.has_ended.replace(true), "it ends once");
    }
}

impl<A> Counted<A> {
    fn new(ran: A) -> Self {
        Self { ran, taken: Cell::new(0), has_ended: Cell::new(false) }
    }
}

/// The random value of the block that transactions run ahead in. A log with it tells that its
/// transaction counts as it ran ahead; the state reads are the same.
const FORGED: B256 = B256::repeat_byte(0xff);

/// Logs the block's random value.
const LOG_RANDOM: [u8; 4] = [0x44, PUSH0, PUSH0, 0xa1];

/// The block with another random value.
fn forged(block: &SealedBlock) -> SealedBlock {
    let mut block = block.clone().into_block();
    block.header.mix_hash = FORGED;
    SealedBlock::new(block)
}

/// The transactions that count as they ran ahead.
fn counted(executed: &Executed) -> Vec<usize> {
    let is_forged = |log: &Log| log.topics() == [FORGED];
    let receipts = executed.receipts.iter().enumerate();
    let counted = receipts.filter(|(_, receipt)| receipt.logs().iter().any(is_forged));
    counted.map(|(index, _)| index).collect()
}

/// Runs a block with all transactions run ahead. Returns how many count as they ran ahead.
fn forge(world: &World, block: &SealedBlock, list: &Bytes) -> usize {
    let senders = recover_senders(&block.body.transactions).unwrap();
    let list = AccessList::decode(list, block.header.gas_limit).unwrap().unwrap();
    let (chain, senders, codes) = (&world.chain, &senders, None);
    let (before, other) = (PriorChanges::List(&list), forged(block));
    let of = AheadExecutor { chain, block: &other, senders, before, codes };
    let ahead = Counted::new(RanBefore::run(&of, world.state(), |_| false));
    let help = RunOptions { ahead: Some(&ahead), codes };
    let executed = run(chain, block, senders, help, &mut world.state()).unwrap();
    assert_eq!(ahead.taken.get(), senders.len());
    assert!(ahead.has_ended.get());
    counted(&executed).len()
}

#[test]
fn what_ran_ahead_is_what_counts() {
    let world = amsterdam();
    let block = block(&world, 2);
    world.check(&block).unwrap();
    assert_eq!(forge(&world, &block, &list(&world, &block)), 6);
}

/// Runs a block without a list, `at_once` transactions ahead in a batch. Returns those that count
/// as they ran ahead.
fn forge_guessed(world: &World, block: &SealedBlock, at_once: usize) -> Vec<usize> {
    let senders = recover_senders(&block.body.transactions).unwrap();
    let (chain, senders, codes, committed) =
        (&world.chain, &senders, None, &CommittedChanges::default());
    let (before, other) = (PriorChanges::Committed(committed), forged(block));
    let of = AheadExecutor { chain, block: &other, senders, before, codes };
    let ahead = Counted::new(RunInBatches::new(of, at_once, || world.state()));
    let help = RunOptions { ahead: Some(&ahead), codes };
    let mut state = FollowedState {
        state: world.state(),
        changes: BTreeMap::new(),
        committed: Some(committed),
    };
    let executed = run(chain, block, senders, help, &mut state).unwrap();
    counted(&executed)
}

#[test]
fn what_gas_was_burned_ahead_is_told_whatever_came_of_it() {
    // The first burns all it has, the second asks for what only its turn can tell.
    let (world, contracts) = osaka([vec![0xfe], vec![COINBASE, POP, 0xfe]]);
    let call = |signer, to| Signer::new(signer).call(0, to, []);
    let transfer = call(3, Address::repeat_byte(0xee));
    let block = world.block(vec![call(1, contracts[0]), call(2, contracts[1]), transfer]);
    let senders = recover_senders(&block.body.transactions).unwrap();
    let (chain, senders, codes, committed) =
        (&world.chain, &senders, None, &CommittedChanges::default());
    let of = AheadExecutor {
        chain,
        block: &block,
        senders,
        before: PriorChanges::Committed(committed),
        codes,
    };
    let (mut next, mut told) = (0..3, Vec::new());
    of.run(world.state(), || next.next(), |_, ran, gas| told.push((ran.is_some(), gas)));
    assert_eq!(told, [(true, 1_000_000), (false, 1_000_000), (true, 21_000)]);
}

/// A world of three who can sign, and contracts with these codes.
fn osaka(codes: impl IntoIterator<Item = Vec<u8>>) -> (World, Vec<Address>) {
    let signers = (1..=3).map(|number| (Signer::new(number).address(), StartAccount::rich()));
    let contracts: Vec<_> = (0xd1..)
        .zip(codes)
        .map(|(byte, code)| {
            let code = [&code[..], &LOG_RANDOM].concat();
            (Address::repeat_byte(byte), StartAccount::contract(code))
        })
        .collect();
    let addresses = contracts.iter().map(|(address, _)| *address).collect();
    (World::new(world::chain("osaka"), signers.chain(contracts)), addresses)
}

#[test]
fn guesses_count_where_transactions_touch_different_things() {
    let increment = [&push(&[1])[..], &[PUSH0, SLOAD, ADD], &store(0)].concat();
    let (world, contracts) = osaka([increment.clone(), increment.clone(), increment]);
    let call =
        |signer, nonce, contract: usize| Signer::new(signer).call(nonce, contracts[contract], []);
    let apart = world.block(vec![call(1, 0, 0), call(2, 0, 1), call(3, 0, 2)]);
    world.check(&apart).unwrap();
    assert_eq!(forge_guessed(&world, &apart, 3), [0, 1, 2]);
    // The second finds another value than the first has left, the third another nonce.
    let together = world.block(vec![call(1, 0, 0), call(2, 0, 0), call(1, 1, 1)]);
    world.check(&together).unwrap();
    assert_eq!(forge_guessed(&world, &together, 3), [0]);
    // One at a time, each finds what it should.
    assert_eq!(forge_guessed(&world, &together, 1), [0, 1, 2]);
}

#[test]
fn who_asks_for_the_beneficiary_runs_in_its_turn() {
    let beneficiary = world::COINBASE;
    let looks = [vec![COINBASE, POP], look(BALANCE, beneficiary), look(BALANCE, Address::ZERO)];
    let (world, contracts) = osaka(looks);
    let block = (1..).zip(&contracts);
    let block =
        world.block(block.map(|(number, to)| Signer::new(number).call(0, *to, [])).collect());
    world.check(&block).unwrap();
    for at_once in [1, 3] {
        assert_eq!(forge_guessed(&world, &block, at_once), [2], "{at_once}");
    }
}

#[test]
fn the_beneficiary_is_warm_also_where_too_little_gas_is_left_for_a_cold_account() {
    let looking = Address::repeat_byte(0xd1);
    let (world, contracts) = osaka([look(BALANCE, world::COINBASE), call_with(looking, 2_600, 0)]);
    assert_eq!(contracts[0], looking);
    let block = world.block(vec![Signer::new(1).call(0, contracts[1], [])]);
    world.check(&block).unwrap();
}

/// An account delegates to [`COUNTER`] and is called, and so is the counter. If `is_known`, another
/// account has delegated to it before the block.
fn delegating(fork: &str, is_known: bool) -> (World, SealedBlock) {
    let [a, b, c] = [1, 2, 3].map(Signer::new);
    let signers = [a, b, c].map(|signer| (signer.address(), StartAccount::rich()));
    let counter = (COUNTER, StartAccount::contract(counter()));
    let known = StartAccount { code: marker(COUNTER), ..StartAccount::rich() };
    let known = is_known.then(|| (Signer::new(4).address(), known));
    let world = World::new(world::chain(fork), signers.into_iter().chain([counter]).chain(known));
    let block = world.block(vec![
        a.delegate(0, COUNTER, [], vec![c.authorize(0, COUNTER)]),
        b.call(0, c.address(), []),
        b.call(1, COUNTER, []),
    ]);
    world.check(&block).unwrap();
    (world, block)
}

#[test]
fn authorizations_run_ahead_and_what_runs_a_code_that_the_state_lacks_in_its_turn() {
    let (world, block) = delegating("osaka", false);
    assert_eq!(forge_guessed(&world, &block, 1), [0, 2]);
    let (world, block) = delegating("osaka", true);
    assert_eq!(forge_guessed(&world, &block, 1), [0, 1, 2]);
}

#[test]
fn a_list_has_what_authorizations_set() {
    for is_known in [false, true] {
        let (world, block) = delegating("amsterdam", is_known);
        assert_eq!(forge(&world, &block, &list(&world, &block)), 3, "{is_known}");
    }
}

#[test]
fn what_read_something_else_runs_again() {
    let world = amsterdam();
    let block = block(&world, 1);
    // Without a list only the first transaction finds what it should.
    assert_eq!(forge(&world, &block, &alloy_rlp::encode(Vec::<Bytes>::new()).into()), 1);
}

#[test]
fn a_transaction_that_has_no_room_is_refused_in_its_turn() {
    let world = amsterdam();
    let mut crowded = block(&world, 1).into_block();
    let list = list(&world, &block(&world, 1));
    crowded.header.gas_limit = 1_000_000;
    let crowded = SealedBlock::new(crowded);
    let senders = recover_senders(&crowded.body.transactions).unwrap();
    let list = AccessList::decode(&list, u64::MAX).unwrap().unwrap();
    let (chain, codes) = (&world.chain, None);
    let of = AheadExecutor {
        chain,
        block: &crowded,
        senders: &senders,
        before: PriorChanges::List(&list),
        codes,
    };
    let ran = RanBefore::run(&of, world.state(), |_| false);
    let run =
        |ahead| run(chain, &crowded, &senders, RunOptions { ahead, codes }, &mut world.state());
    let reason = |outcome: Result<_, BlockError>| outcome.map(drop).unwrap_err().to_string();
    let in_order = reason(run(None));
    assert!(in_order.starts_with("transaction 1: "), "{in_order}");
    assert_eq!(reason(run(Some(&ran))), in_order);
}

#[test]
fn a_block_has_the_same_result_whatever_ran_ahead() {
    let world = amsterdam();
    let block = block(&world, 2);
    let list = list(&world, &block);
    let in_order = world.validate(&block).unwrap();
    for left_out in 0..64 {
        let ahead = world.validate_ahead(&block, &list, |index| left_out >> index & 1 == 1);
        let ahead = ahead.unwrap();
        assert_eq!(summary(&ahead.executed), summary(&in_order.executed));
        in_order.check_same(&ahead).unwrap();
    }
}

/// A state that notes what it is asked.
#[derive(Debug)]
struct Asked<S> {
    state: S,
    accounts: BTreeSet<Address>,
    slots: BTreeSet<(Address, U256)>,
}

impl<S: State> State for Asked<S> {
    fn account(&mut self, address: Address) -> Result<Option<Account>, StateError> {
        self.accounts.insert(address);
        self.state.account(address)
    }

    fn storage(&mut self, address: Address, slot: U256) -> Result<U256, StateError> {
        self.slots.insert((address, slot));
        self.state.storage(address, slot)
    }

    fn code(&mut self, code_hash: B256) -> Result<Bytes, StateError> {
        self.state.code(code_hash)
    }

    fn block_hash(&mut self, number: u64) -> Result<B256, StateError> {
        self.state.block_hash(number)
    }
}

#[test]
fn reading_ahead_asks_for_what_transactions_read_in_whatever_order() {
    let callee = |number| Address::repeat_byte(number);
    let contracts = (0xd1..=0xd3)
        .map(|number| (callee(number), StartAccount::contract(counter()).storage([(1, 5)])));
    let signers = [(Signer::new(1).address(), StartAccount::rich())];
    let world = World::new(world::chain("osaka"), signers.into_iter().chain(contracts));
    // All have the same sender, so none but the first could run first.
    let calls = (0..3).map(|nonce| Signer::new(1).call(nonce, callee(0xd1 + nonce as u8), []));
    let block = world.block(calls.collect());
    let senders = recover_senders(&block.body.transactions).unwrap();
    for order in [vec![2, 1], vec![1, 2, 0], vec![7, 2]] {
        let (state, codes) = (world.state(), CodeCache::new(1 << 20, |_| ()));
        let mut asked = Asked { state, accounts: BTreeSet::new(), slots: BTreeSet::new() };
        let mut next = order.iter().copied();
        prefetch_reads(&world.chain, &block, &senders, &codes, &mut asked, || next.next());
        for index in 0..3 {
            let (address, is_asked) = (callee(0xd1 + index as u8), order.contains(&index));
            assert_eq!(asked.accounts.contains(&address), is_asked, "{order:?}: {index}");
            assert_eq!(asked.slots.contains(&(address, U256::from(1))), is_asked);
        }
    }
}

#[test]
fn a_code_just_deployed_is_kept_though_the_next_transaction_does_not_look_at_it() {
    let heir = Signer::new(1).address().create(0);
    let destroyed = Address::repeat_byte(0xd0);
    let code = [&push(heir.as_slice())[..], &[SELFDESTRUCT]].concat();
    let mut destroyed_account = StartAccount::contract(code);
    destroyed_account.balance = U256::from(1);
    let signers = (1..=2).map(|number| (Signer::new(number).address(), StartAccount::rich()));
    let accounts = signers.chain([(destroyed, destroyed_account)]);
    let world = World::new(world::chain("amsterdam"), accounts);
    let creation = deploy(&idle(3)).into();
    let block = world.block(vec![
        Signer::new(1).transact(0, TxKind::Create, U256::ZERO, creation),
        Signer::new(2).call(0, destroyed, []),
    ]);
    world.check(&block).unwrap();
    let list = list(&world, &block);
    let ahead = world.validate_ahead(&block, &list, |index| index == 0).unwrap();
    let codes: Vec<_> = ahead.executed.new_codes.iter().map(|(_, code)| code.clone()).collect();
    assert!(codes.contains(&idle(3)), "{codes:?}");
}
