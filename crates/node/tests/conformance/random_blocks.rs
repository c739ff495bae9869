//! Random blocks: whatever contracts do to each other, the witness is the one that the second judge
//! gives, verifies statelessly, records itself again, and has nothing to spare.

use crate::access_lists::falsified;
use crate::blocks::difference;
use crate::inputs;
use crate::judge::FlatState;
use alloy_eips::eip4895::Withdrawal;
use alloy_eips::eip7702::SignedAuthorization;
use alloy_hardforks::EthereumHardforks;
use alloy_primitives::{Address, Bytes, TxKind, U256, keccak256};
use alloy_rpc_types_engine::{ExecutionPayload, ExecutionPayloadSidecar, ExecutionPayloadV4};
use engine::{Engine, EngineOptions, Genesis, Payload, Verdict};
use execution::{SealedBlock, Transaction};
use state::{Database, MemoryDisk};
use std::collections::BTreeMap;
use testing::Random;
use testing::asm::*;
use testing::world::{self, Signer, StartAccount, World, genesis_alloc, marker};
use witness::Witness;

/// Blocks in a chain, at most.
const BLOCKS: usize = 5;
/// Transactions in a block, at most.
const TRANSACTIONS: usize = 5;
const CONTRACTS: u8 = 8;
/// Contracts that do nothing: the first of them.
const IDLE: u8 = 3;
const SIGNERS: u8 = 5;
const FORKS: [&str; 6] = ["shanghai", "cancun", "prague", "osaka", "osaka", "amsterdam"];
/// The most that a transaction here can cost, in wei, with a wei to send.
const MOST: u128 = 1_000_000 * world::GAS_PRICE + 1;

/// Runs the random chain of a few blocks that `seed` makes, and returns how many blocks it has.
pub(crate) fn run(seed: u64) -> Result<usize, String> {
    let mut random = Random::new(seed);
    let fork = random.pick(&FORKS);
    let accounts = accounts(&mut random, fork);
    let mut world = World::new(world::chain(fork), accounts.clone());
    let genesis = genesis(&world, accounts);
    let mut judge = FlatState::new(&genesis);
    let engine = parallel_engine(&world, genesis)?;
    let mut pool = Pool::new(fork);
    let blocks = 1 + random.below(BLOCKS);
    for number in 1..=blocks {
        let block = block(&mut random, &world, &mut pool);
        let checked = match fork {
            "amsterdam" => check_ahead(&mut random, &world, &engine, &block),
            _ => check_guessed(&world, &engine, &block),
        };
        checked.and_then(|()| check(&mut world, &mut judge, &block)).map_err(|error| {
            let transactions = &block.body.transactions;
            format!("{fork}, block {number}: {error}; transactions: {transactions:?}")
        })?;
    }
    Ok(blocks)
}

fn check(world: &mut World, judge: &mut FlatState, block: &SealedBlock) -> Result<(), String> {
    let validated = world.check(block)?;
    let senders =
        execution::recover_senders(&block.body.transactions).map_err(|error| error.to_string())?;
    let expected = judge.advance(&world.chain, block, &senders)?;
    if expected != validated.witness {
        return Err(difference("second judge", &expected, &validated.witness));
    }
    let verified = execution::verify(&world.chain, block, None, &validated.witness);
    inputs::check(&world.chain, block, &verified.map_err(|error| error.to_string())?)?;
    world.extend(block, validated);
    Ok(())
}

/// The first block of a new world.
fn genesis(world: &World, accounts: Vec<(Address, StartAccount)>) -> Genesis {
    Genesis { header: world.parent().clone(), alloc: genesis_alloc(accounts) }
}

/// An engine that runs the smallest block on all its threads.
fn parallel_engine(world: &World, genesis: Genesis) -> Result<Engine, String> {
    let small = state::Options {
        cache_bytes: 1 << 20,
        code_cache_bytes: 1 << 20,
        index_cache_bytes: 1 << 20,
        ..state::Options::default()
    };
    let database = Database::open(MemoryDisk::new(), &small);
    let database = database.map_err(|error| error.to_string())?;
    let options = EngineOptions {
        parallel_gas: 0,
        ahead_gas: 0,
        ahead_threads: 2,
        ..EngineOptions::default()
    };
    Engine::open(world.chain.clone(), Some(genesis), database, options)
        .map_err(|error| error.to_string())
}

/// Runs a block of Amsterdam with transactions that have run ahead, from its access list and from
/// false ones, by themselves and as payloads of an engine: all must give what they give in order.
fn check_ahead(
    random: &mut Random,
    world: &World,
    engine: &Engine,
    block: &SealedBlock,
) -> Result<(), String> {
    let in_order = world.validate(block).map_err(|error| error.to_string())?;
    let list = in_order.executed.block_access_list.as_ref().ok_or("no access list")?;
    for _ in 0..3 {
        let (list, left_out) = (falsified(random, list), random.number());
        let is_left_out = |index| left_out >> index & 1 == 1;
        let ahead = world.validate_ahead(block, &list, is_left_out);
        in_order.check_same(&ahead.map_err(|error| error.to_string())?)?;
        let mut false_block = block.clone().into_block();
        false_block.header.block_access_list_hash = Some(keccak256(&list));
        let false_block = SealedBlock::new(false_block);
        let reason = world.validate(&false_block).err().map(|error| error.to_string());
        let ahead = world.validate_ahead(&false_block, &list, is_left_out);
        let ahead = ahead.err().map(|error| error.to_string());
        let verdict = engine.new_payload(payload(&false_block, list));
        let engines = match verdict.map_err(|error| error.to_string())? {
            Verdict::Invalid { reason, .. } => Some(reason),
            Verdict::Valid | Verdict::Syncing(_) => None,
        };
        if reason != ahead || reason != engines {
            return Err(format!("{reason:?} in order, {ahead:?} ahead, {engines:?} in the engine"));
        }
    }
    check_engine(engine, block, &in_order.witness, engine.new_payload(payload(block, list.clone())))
}

/// Runs a block on an engine that has no list of it, and whose threads run transactions ahead.
fn check_guessed(world: &World, engine: &Engine, block: &SealedBlock) -> Result<(), String> {
    let in_order = world.validate(block).map_err(|error| error.to_string())?;
    check_engine(engine, block, &in_order.witness, engine.new_block(block.clone()))
}

/// An error if a valid block is not valid to an engine, or has another witness.
fn check_engine(
    engine: &Engine,
    block: &SealedBlock,
    expected: &Witness,
    verdict: Result<Verdict, engine::Error>,
) -> Result<(), String> {
    let witness = engine.witness(block.hash()).map_err(|error| error.to_string())?;
    match (verdict, witness) {
        (Ok(Verdict::Valid), Some(witness)) if *witness == *expected => Ok(()),
        (Ok(Verdict::Valid), Some(witness)) => {
            Err(difference("the parallel engine", expected, &witness))
        }
        (verdict, _) => Err(format!("the parallel engine: {verdict:?}")),
    }
}

fn payload(block: &SealedBlock, list: Bytes) -> Payload {
    let payload = ExecutionPayloadV4::from_block_unchecked_with_bal(block.hash(), block, list);
    let sidecar = ExecutionPayloadSidecar::from_block(block);
    Payload { execution: ExecutionPayload::V4(payload), sidecar }
}

/// The values that transactions and contracts choose from.
struct Pool {
    /// Addresses worth a look: accounts there are, accounts there may be, some that never are.
    addresses: Vec<Address>,
    init_codes: Vec<Vec<u8>>,
    amsterdam: bool,
}

fn contract(number: u8) -> Address {
    Address::with_last_byte(0xc0 + number)
}

impl Pool {
    fn new(fork: &str) -> Self {
        let mut addresses: Vec<_> = (0..CONTRACTS).map(contract).collect();
        addresses.extend((1..=SIGNERS).map(|number| Signer::new(number).address()));
        addresses.extend([world::COINBASE, Address::with_last_byte(4), Address::repeat_byte(0xab)]);
        for number in 0..CONTRACTS {
            addresses.push(contract(number).create(1));
            addresses.extend(created(number));
        }
        addresses.push(Signer::new(1).address().create(0));
        let mut init_codes = init_codes();
        let amsterdam = fork == "amsterdam";
        if amsterdam {
            init_codes.push(deploy(&selfdestruct()));
        }
        Self { addresses, init_codes, amsterdam }
    }

    fn any(&self, random: &mut Random) -> Address {
        // Contracts of the first block are met more often than the others.
        if random.one_in(2) {
            contract(random.below(CONTRACTS.into()) as u8)
        } else {
            random.pick(&self.addresses)
        }
    }
}

/// A contract that does something.
fn scripted(random: &mut Random) -> Address {
    contract(IDLE + random.below((CONTRACTS - IDLE).into()) as u8)
}

/// Where CREATE2 in the code of a contract puts the first two init codes.
fn created(number: u8) -> [Address; 2] {
    [0, 1].map(|at| create2_address(contract(number), &init_codes()[at]))
}

/// Init codes of at most 32 bytes: they deploy the code of a contract there is, another one, one
/// that writes and reads, none; or they fail.
fn init_codes() -> Vec<Vec<u8>> {
    vec![
        deploy(&idle(1)),
        deploy(&idle(2)),
        deploy(&[set(1, 1), set(2, 0)].concat()),
        [set(1, 1), deploy(&[])].concat(),
        deploy(&[]),
        revert(),
        vec![0xfe],
        deploy(&[0xef]),
        [&push(&[0xc0]), &[SELFDESTRUCT][..]].concat(),
    ]
}

fn accounts(random: &mut Random, fork: &str) -> Vec<(Address, StartAccount)> {
    let pool = Pool::new(fork);
    let mut accounts = BTreeMap::new();
    for number in 0..CONTRACTS {
        let code = match number {
            0 | 1 => idle(1),
            2 if pool.amsterdam => selfdestruct(),
            2 => idle(2),
            _ => script(random, &pool).into(),
        };
        let mut account = StartAccount::contract(code);
        account.balance = U256::from(random.below(3));
        // Of two or three slots, deletions often leave one: its branch collapses.
        let slots = random.pick(&[0, 1, 2, 2, 3, 3, 13]);
        accounts.insert(contract(number), account.storage((0..slots).map(|slot| (slot, slot + 1))));
    }
    for number in 1..=SIGNERS {
        let mut account = StartAccount::rich();
        if fork != "shanghai" && fork != "cancun" && random.one_in(3) {
            account.code = marker(pool.any(random));
            account = account.storage((0..random.below(3) as u64).map(|slot| (slot, 7)));
        }
        accounts.insert(Signer::new(number).address(), account);
    }
    for _ in 0..random.below(3) {
        let address = created(random.below(CONTRACTS.into()) as u8)[random.below(2)];
        accounts.insert(address, StartAccount::default().storage([(1, 1)]));
    }
    for byte in 0..random.below(20) as u8 {
        accounts.insert(Address::repeat_byte(byte), StartAccount::rich());
    }
    accounts.into_iter().collect()
}

/// A few random operations.
fn script(random: &mut Random, pool: &Pool) -> Vec<u8> {
    let mut code = load_input();
    for _ in 0..4 + random.below(12) {
        code.extend(operation(random, pool));
    }
    code
}

fn operation(random: &mut Random, pool: &Pool) -> Vec<u8> {
    let address = pool.any(random);
    let slots = if random.one_in(4) { 13 } else { 3 };
    let slot = random.below(slots) as u8;
    match random.below(35) {
        0..=4 => set(slot, 0),
        5..=7 => set(slot, random.below(3) as u8),
        8 | 9 => [&push(&[slot]), &[SLOAD, POP][..]].concat(),
        10 => look(BALANCE, address),
        11 | 12 => look(EXTCODESIZE, address),
        13 => look(EXTCODEHASH, address),
        14 => copy_nothing(address),
        15..=18 => call(CALL, address),
        19 => call(CALLCODE, address),
        20 => call(DELEGATECALL, address),
        21 => call(STATICCALL, address),
        22 => call_with(address, random.pick(&[100, 2_600, 2_700, 30_000]), random.below(2) as u8),
        23..=26 => creation(random, pool),
        27 | 32 | 33 => block_hash(random.pick(&[0, 1, 2, 3, 4, 300])),
        28 => vec![PUSH0, PUSH0, 0xa0],
        29 => revert(),
        34 => [&[COINBASE][..], &store(slot)].concat(),
        30 => [&push(address.as_slice()), &[SELFDESTRUCT][..]].concat(),
        _ => [&[GAS][..], &store(slot)].concat(),
    }
}

/// CREATE or CREATE2 of one of the init codes, and sometimes a call to what was created.
fn creation(random: &mut Random, pool: &Pool) -> Vec<u8> {
    let init = random.pick(&pool.init_codes);
    let length = init.len() as u8;
    let to_memory = [&push(&init), &[PUSH0, 0x52][..]].concat();
    let slice = [push(&[length]), push(&[32 - length]), vec![PUSH0]].concat();
    let mut code = match random.one_in(2) {
        true => [&to_memory[..], &slice, &[0xf0]].concat(),
        false => [&to_memory[..], &[PUSH0], &slice, &[0xf5]].concat(),
    };
    if random.one_in(2) {
        let pays = pool.amsterdam && random.one_in(2);
        code.extend(if pays { pay_created(1) } else { call_created() });
    }
    code.push(POP);
    code
}

/// A valid block. Nonces within it depend on what its transactions do, so it grows by one
/// transaction at a time, each on the state after the others.
fn block(random: &mut Random, world: &World, pool: &mut Pool) -> SealedBlock {
    let withdrawals: Vec<_> = (0..random.below(3)).map(|_| withdrawal(random, pool)).collect();
    let seal = |transactions: &[Transaction]| {
        world.seal(world.draft(transactions.to_vec(), withdrawals.clone())).expect("valid so far")
    };
    let mut transactions = Vec::new();
    for _ in 0..random.below(TRANSACTIONS + 1) {
        let mut after = world.clone();
        let so_far = seal(&transactions);
        let validated = world.validate(&so_far).expect("valid so far");
        after.extend(&so_far, validated);
        transactions.extend(transaction(random, &after, pool));
    }
    for transaction in &transactions {
        let sender =
            execution::recover_senders(std::slice::from_ref(transaction)).expect("signed")[0];
        pool.addresses.push(sender.create(alloy_consensus::Transaction::nonce(transaction)));
    }
    seal(&transactions)
}

fn withdrawal(random: &mut Random, pool: &Pool) -> Withdrawal {
    let (address, amount) = (pool.any(random), random.below(3) as u64);
    Withdrawal { index: 0, validator_index: 0, address, amount }
}

/// A transaction of a signer who can pay for it, if the one drawn can.
fn transaction(random: &mut Random, world: &World, pool: &Pool) -> Option<Transaction> {
    let signer = Signer::new(1 + random.below(SIGNERS.into()) as u8);
    let account = world.account(signer.address());
    if account.balance < U256::from(MOST) {
        return None;
    }
    let nonce = account.nonce;
    let to = if random.one_in(2) { scripted(random) } else { pool.any(random) };
    let value = U256::from(random.below(2));
    let prague = world.chain.is_prague_active_at_timestamp(0);
    Some(match random.below(10) {
        0 | 1 => {
            let init = random.pick(&pool.init_codes);
            signer.transact(nonce, TxKind::Create, value, init.into())
        }
        2 => signer.transact(nonce, TxKind::Create, value, script(random, pool).into()),
        3..=5 if prague => {
            let list = (0..=random.below(2)).map(|_| authorization(random, world, pool, signer));
            let list = list.collect();
            // From Amsterdam on, a list is undone when its gas runs out.
            let gas_limit = match world.chain.is_amsterdam_active_at_timestamp(0) {
                true if random.one_in(2) => 60_000 + 1_000 * random.below(400) as u64,
                _ => 1_000_000,
            };
            signer.delegate_with_gas(gas_limit, nonce, to, Bytes::new(), list)
        }
        _ => signer.transact(nonce, TxKind::Call(to), value, random.pick(&pool.init_codes).into()),
    })
}

/// An authorization that mostly holds: the nonce of the sender is one further by then.
fn authorization(
    random: &mut Random,
    world: &World,
    pool: &Pool,
    sender: Signer,
) -> SignedAuthorization {
    let signer = Signer::new(1 + random.below(usize::from(SIGNERS) + 2) as u8);
    let nonce = world.account(signer.address()).nonce + u64::from(signer == sender);
    let target = match random.below(6) {
        0 => Address::ZERO,
        1..=3 => contract(random.below(4) as u8),
        _ => pool.any(random),
    };
    signer.authorize(nonce + u64::from(random.one_in(6)), target)
}
