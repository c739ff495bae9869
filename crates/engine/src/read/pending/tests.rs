use crate::samples::*;
use crate::world::{self, Signer, StartAccount};
use crate::{Engine, StateAt, TransactionSource, Verdict};
use alloy_primitives::{Address, B256, Bytes, TxKind, U256, hex};
use execution::{
    AccountOverride, BlockCalls, Call, Candidates, Deadline, Overrides, SimulationOptions,
    StateOverrides, Transaction, UnsignedCall,
};
use std::sync::Arc;
use testing::Random;
use trie::Account;

/// With one word of input it returns the slot that this names, with two it stores the second one
/// there.
const STORE: Address = Address::repeat_byte(0x57);
const STORE_CODE: &[u8] = &hex!("36602014600e576020355f3555005b5f35545f5260205ff3");

/// With a word of input it returns the slot that this names, without any it ends itself.
const ENDER: Address = Address::repeat_byte(0xed);
const ENDER_CODE: &[u8] = &hex!("3660065733ff5b5f35545f5260205ff3");

/// Deploys a code of one byte.
const DEPLOY: [u8; 10] = hex!("600160005360016000f3");

/// An account that an override gives a code.
const OTHER: Address = Address::repeat_byte(0x77);

/// Transactions in this order.
#[derive(Debug)]
struct Source(Vec<(Transaction, Address)>);

impl TransactionSource for Source {
    fn candidates(&self, _: u64) -> Box<dyn Candidates + '_> {
        Box::new(Rest(self.0.iter()))
    }

    fn arrivals(&self) -> u64 {
        0
    }
}

struct Rest<'a>(std::slice::Iter<'a, (Transaction, Address)>);

impl Candidates for Rest<'_> {
    fn next(&mut self) -> Option<(Transaction, Address)> {
        self.0.next().cloned()
    }

    fn skip_sender(&mut self) {}
}

fn word(number: u64) -> B256 {
    U256::from(number).into()
}

/// The transaction of a sender with this nonce.
fn transaction(random: &mut Random, sender: &Signer, nonce: u64) -> Transaction {
    match random.below(5) {
        0 => sender.call(nonce, ENDER, Bytes::new()),
        1 => {
            let (to, input) = (TxKind::Create, Bytes::from_static(&DEPLOY));
            sender.transact_with(nonce, to, U256::ZERO, input, 200_000, 1)
        }
        2 => {
            let to = TxKind::Call(Address::repeat_byte(0xaa));
            sender.transact_with(nonce, to, U256::from(5), Bytes::new(), 100_000, 1)
        }
        _ => {
            let [slot, value] = [random.below(5), random.below(3)].map(|n| word(n as u64));
            sender.call(nonce, STORE, [slot, value].concat())
        }
    }
}

/// An engine whose source has some transactions, and the accounts that they may change.
fn engine_with(fork: &str, random: &mut Random) -> (Engine, Vec<Address>) {
    let signers: Vec<_> = (1..=3).map(Signer::new).collect();
    let rich = signers.iter().map(|signer| (signer.address(), StartAccount::rich()));
    let contracts = [
        (STORE, StartAccount::contract(STORE_CODE.to_vec()).storage([(0, 7), (1, 8)])),
        (ENDER, StartAccount::contract(ENDER_CODE.to_vec()).storage([(3, 9)])),
    ];
    let alloc = world::genesis_alloc(rich.chain(contracts).chain([counter()]));
    let config = world::config(fork);
    let gas_limit = 30_000_000;
    let genesis = alloy_genesis::Genesis { config, gas_limit, alloc, ..Default::default() };
    let engine = engine_from(&genesis);
    let mut addresses = vec![STORE, ENDER, world::COINBASE, Address::repeat_byte(0xaa), OTHER];
    let mut transactions = Vec::new();
    for signer in &signers {
        addresses.push(signer.address());
        for nonce in 0..random.below(4) as u64 {
            addresses.push(signer.address().create(nonce));
            transactions.push((transaction(random, signer, nonce), signer.address()));
        }
    }
    engine.draw_from(Arc::new(Source(transactions)));
    (engine, addresses)
}

/// Results of calls of all kinds, as text.
fn calls(engine: &Engine, at: &StateAt) -> Vec<String> {
    let mut results = Vec::new();
    let mut ask = |to, input: Bytes, overrides: &Overrides| {
        let never = Deadline::never();
        let call = Call { to: TxKind::Call(to), gas: 1_000_000, input, ..Call::default() };
        results.push(format!("{:?}", engine.call(at.clone(), &call, overrides, &never)));
        let estimate = engine.estimate_gas(at.clone(), &call, overrides, 1_000_000, &never);
        results.push(format!("{estimate:?}"));
        let (gas, nonce, has_gas_price) = (None, None, false);
        let unsigned = UnsignedCall { call, gas, nonce, has_gas_price };
        let state = StateOverrides::default();
        let list = engine.create_access_list(at.clone(), &unsigned, 1_000_000, state, &never);
        results.push(format!("{list:?}"));
        let block = BlockCalls { calls: vec![unsigned], ..BlockCalls::default() };
        let options = SimulationOptions {
            traces_transfers: false,
            validates: false,
            gas: 10_000_000,
            bytes: 1 << 20,
            deadline: never,
        };
        let simulated = engine.simulate(at.clone(), vec![block.clone(), block], options);
        results.push(format!("{simulated:?}"));
    };
    let none = Overrides::default();
    for slot in 0..5 {
        ask(STORE, word(slot).into(), &none);
        ask(STORE, [word(slot), word(4)].concat().into(), &none);
        ask(ENDER, word(slot).into(), &none);
    }
    ask(ENDER, Bytes::new(), &none);
    // NUMBER, and the hashes of the parent and of the block.
    for code in
        [&hex!("435f5260205ff3")[..], &hex!("60014303405f5260205ff3"), &hex!("43405f5260205ff3")]
    {
        let code = Some(Bytes::copy_from_slice(code));
        let state = [(OTHER, AccountOverride { code, ..AccountOverride::default() })];
        let state = StateOverrides::from_iter(state);
        ask(OTHER, Bytes::new(), &Overrides { state, ..Overrides::default() });
    }
    results
}

/// The slow twin of a pending block is the same block in the chain.
fn check(fork: &str, random: &mut Random) -> usize {
    let (engine, addresses) = engine_with(fork, random);
    let head = engine.heads().head;
    let pending = engine.pending(head, attributes(&engine, head), Bytes::new()).unwrap();
    let pending = Arc::new(pending);
    let hash = pending.block.hash();
    assert_eq!(engine.block(hash).unwrap().map(|record| record.hash()), None);
    let at = StateAt::Pending(pending.clone());
    let (view, found) = (engine.pending_state(&pending).unwrap(), calls(&engine, &at));

    assert_eq!(engine.new_block(pending.block.clone()).unwrap(), Verdict::Valid);
    let record = engine.block(hash).unwrap().unwrap();
    assert_eq!((&pending.receipts, &pending.senders), (&record.receipts, &record.senders));
    assert_eq!(pending.parent_hash(), head);
    let state = engine.state(hash).unwrap();
    let fields = |account: Option<Account>| {
        account.map(|account| (account.nonce, account.balance, account.code_hash))
    };
    for address in addresses {
        let [found, expected] = [view.account(address), state.account(address)];
        assert_eq!(fields(found.unwrap()), fields(expected.unwrap()), "{fork} {address}");
        assert_eq!(view.code(address), state.code(address), "{fork} {address}");
        for slot in (0..6).map(U256::from) {
            let [found, expected] = [view.storage(address, slot), state.storage(address, slot)];
            assert_eq!(found, expected, "{fork} {address} {slot}");
        }
    }
    assert_eq!(found, calls(&engine, &hash.into()), "{fork}");
    pending.block.body.transactions.len()
}

#[test]
fn the_state_after_a_pending_block_is_the_one_that_the_block_leaves_in_the_chain() {
    let mut random = Random::seeded();
    let mut transactions = 0;
    for fork in ["shanghai", "cancun", "osaka", "amsterdam"] {
        for _ in 0..testing::rounds("DEPONENT_PENDING", 6, 60) {
            transactions += check(fork, &mut random);
        }
    }
    assert!(transactions > 24, "{transactions}");
}
