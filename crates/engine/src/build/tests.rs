use crate::samples::*;
use crate::world::{self, Signer, StartAccount};
use crate::{BuildRequest, Built, Engine, Error, TransactionSource, Verdict};
use alloy_consensus::Transaction as _;
use alloy_primitives::{Address, B256, Bytes, TxKind, U256};
use alloy_rpc_types_engine::{ForkchoiceState, PayloadId};
use execution::{Candidates, Selection, Transaction};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use testing::Random;

/// Transactions in the order of their tips; each sender's by nonce.
#[derive(Debug, Default)]
struct Pool(Mutex<Vec<(Transaction, Address)>>);

impl Pool {
    fn add(&self, transaction: Transaction, sender: Address) {
        self.0.lock().unwrap().push((transaction, sender));
    }
}

impl TransactionSource for Pool {
    fn candidates(&self, base_fee: u64) -> Box<dyn Candidates + '_> {
        let mut senders = BTreeMap::<_, Vec<_>>::new();
        for (transaction, sender) in self.0.lock().unwrap().iter() {
            senders.entry(*sender).or_default().push(transaction.clone());
        }
        for transactions in senders.values_mut() {
            transactions.sort_by_key(|transaction| std::cmp::Reverse(transaction.nonce()));
        }
        Box::new(ByTip { senders, base_fee, last: Address::ZERO })
    }

    fn arrivals(&self) -> u64 {
        self.0.lock().unwrap().len() as u64
    }
}

/// The transactions that are left, by sender, the next one last.
struct ByTip {
    senders: BTreeMap<Address, Vec<Transaction>>,
    base_fee: u64,
    last: Address,
}

impl Candidates for ByTip {
    fn next(&mut self) -> Option<(Transaction, Address)> {
        let tip = |transactions: &[Transaction]| {
            transactions.last()?.effective_tip_per_gas(self.base_fee)
        };
        let best = self.senders.iter().max_by_key(|(_, transactions)| tip(transactions))?;
        self.last = *best.0;
        let next = self.senders.get_mut(&self.last)?.pop()?;
        Some((next, self.last))
    }

    fn skip_sender(&mut self) {
        self.senders.remove(&self.last);
    }
}

/// Transactions in this order, whatever they pay.
#[derive(Debug)]
struct InOrder(Vec<(Transaction, Address)>);

impl Candidates for InOrder {
    fn next(&mut self) -> Option<(Transaction, Address)> {
        self.0.pop()
    }

    fn skip_sender(&mut self) {}
}

fn senders() -> Vec<Signer> {
    (1..=4).map(Signer::new).collect()
}

/// A chain of `fork` with this gas limit, and four rich senders.
fn engine_with(fork: &str, gas_limit: u64) -> Engine {
    let accounts = senders().into_iter().map(|sender| (sender.address(), StartAccount::rich()));
    let alloc = world::genesis_alloc(accounts.chain([counter()]));
    let config = world::config(fork);
    engine_from(&alloy_genesis::Genesis { config, gas_limit, alloc, ..Default::default() })
}

fn transfer(sender: &Signer, nonce: u64, gas_limit: u64, tip: u128) -> Transaction {
    let to = TxKind::Call(Address::repeat_byte(0xaa));
    sender.transact_with(nonce, to, U256::from(1), Bytes::new(), gas_limit, tip)
}

fn best(engine: &Engine, parent: B256) -> Built {
    engine.build_best(parent, attributes(engine, parent), Bytes::new()).unwrap()
}

/// Has the engine build on its head, and returns the build.
fn begin(engine: &Engine) -> PayloadId {
    let head = engine.heads().head;
    let attributes = attributes(engine, head);
    let request = BuildRequest { attributes, version: 3, with_witness: true };
    let state = ForkchoiceState { head_block_hash: head, ..ForkchoiceState::default() };
    engine.forkchoice_updated(state, Some(request)).unwrap().payload_id.unwrap()
}

#[test]
fn a_block_has_what_can_run_and_the_best_of_it_first() {
    for fork in ["osaka", "amsterdam"] {
        let (engine, pool) = (engine_with(fork, 30_000_000), Arc::new(Pool::default()));
        let [a, b, c, d] = &senders()[..] else { panic!("four") };
        // Two in a row, of which the second pays more; a nonce that is missing; too little money.
        pool.add(transfer(a, 0, 100_000, 5), a.address());
        pool.add(transfer(a, 1, 100_000, 50), a.address());
        pool.add(transfer(b, 0, 100_000, 20), b.address());
        pool.add(transfer(b, 2, 100_000, 90), b.address());
        let rich = U256::from(10u128.pow(24));
        let to = TxKind::Call(Address::repeat_byte(0xaa));
        pool.add(c.transact_with(0, to, rich, Bytes::new(), 100_000, 70), c.address());
        pool.add(transfer(c, 1, 100_000, 70), c.address());
        pool.add(d.call(0, COUNTER, []), d.address());
        engine.draw_from(pool);
        let built = best(&engine, engine.heads().head);
        let nonces: Vec<_> = built.block.body.transactions.iter().map(|tx| tx.nonce()).collect();
        let tips: Vec<_> = built
            .block
            .body
            .transactions
            .iter()
            .map(|tx| tx.max_priority_fee_per_gas().unwrap())
            .collect();
        assert_eq!((nonces, tips), (vec![0, 0, 1, 0], vec![20, 5, 50, 1]), "{fork}");
        check(&engine, &built);
    }
}

/// The payload is valid, and its witness that of the block.
fn check(engine: &Engine, built: &Built) {
    let payload = payload(&built.block, built.block_access_list.clone());
    assert_eq!(engine.new_payload(payload).unwrap(), Verdict::Valid);
    assert_eq!(*engine.witness(built.block.hash()).unwrap().unwrap(), built.witness);
}

#[test]
fn a_transaction_that_is_in_the_chain_does_not_hold_up_the_next() {
    let (engine, pool) = (engine_with("osaka", 30_000_000), Arc::new(Pool::default()));
    let sender = Signer::new(1);
    pool.add(transfer(&sender, 0, 21_000, 1), sender.address());
    engine.draw_from(pool.clone());
    let first = best(&engine, engine.heads().head);
    check(&engine, &first);
    pool.add(transfer(&sender, 1, 21_000, 1), sender.address());
    let second = best(&engine, first.block.hash());
    assert_eq!(second.block.body.transactions.len(), 1);
    assert_eq!(second.block.body.transactions[0].nonce(), 1);
}

#[test]
fn a_build_gets_better_until_it_is_asked_for_and_stays_as_it_is() {
    let (engine, pool) = (engine_with("osaka", 30_000_000), Arc::new(Pool::default()));
    engine.draw_from(pool.clone());
    let id = begin(&engine);
    let [a, b, ..] = &senders()[..] else { panic!("four") };
    pool.add(transfer(a, 0, 21_000, 1), a.address());
    // It is built when the thread looks again.
    let start = Instant::now();
    let key = super::key(id);
    while engine.builder.builds.peek(&key).is_none_or(|built| built.block_value.is_zero()) {
        assert!(start.elapsed() < Duration::from_secs(60), "nothing is improved");
        std::thread::sleep(Duration::from_millis(10));
    }
    let built = engine.built(id).unwrap().unwrap();
    assert!(built.with_witness);
    assert_eq!(built.block.body.transactions.len(), 1);
    pool.add(transfer(b, 0, 21_000, 1), b.address());
    assert!(Arc::ptr_eq(&built, &engine.built(id).unwrap().unwrap()));
    check(&engine, &built);
    assert!(engine.built(PayloadId::new([9; 8])).unwrap().is_none());
}

#[test]
fn nothing_is_built_on_an_unknown_block() {
    let engine = engine_with("osaka", 30_000_000);
    let unknown = B256::repeat_byte(7);
    let attributes = attributes(&engine, engine.heads().head);
    let error = engine.build_best(unknown, attributes, Bytes::new()).unwrap_err();
    assert_eq!(error, Error::UnknownBlock(unknown));
}

/// All orders of the transactions.
fn orders<T: Clone>(items: &[T]) -> Vec<Vec<T>> {
    if items.is_empty() {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for first in 0..items.len() {
        let mut rest = items.to_vec();
        let first = rest.remove(first);
        for mut order in orders(&rest) {
            order.push(first.clone());
            all.push(order);
        }
    }
    all
}

/// A source of one order.
#[derive(Debug)]
struct OneOrder(Mutex<Vec<(Transaction, Address)>>);

impl TransactionSource for OneOrder {
    fn candidates(&self, _: u64) -> Box<dyn Candidates + '_> {
        Box::new(InOrder(self.0.lock().unwrap().clone()))
    }

    fn arrivals(&self) -> u64 {
        0
    }
}

/// The payload of a build after its first round.
fn improved(engine: &Engine, parent: B256) -> Built {
    let (builder, choice) = (&engine.builder, Bytes::new().into());
    let attributes = attributes(engine, parent);
    let parent = engine.shared.chain.known_block(&parent).unwrap();
    let first = builder.selection(&parent, &attributes, &choice, None, Vec::new()).unwrap();
    let better = builder.better_order(&parent, &attributes, &choice, None, first.clone()).unwrap();
    let Selection { transactions, senders, fees, .. } = better.unwrap_or(first);
    let built = builder.make(&parent, attributes, transactions, &senders, &choice).unwrap();
    assert_eq!(built.block_value, fees);
    built
}

/// The slow twin: of all orders of the transactions, the one that earns most. Blocks have room for
/// two to five, or for all.
#[test]
fn small_pools_give_nearly_all_that_the_best_order_gives() {
    let mut random = Random::seeded();
    // From Amsterdam on, a block of so little gas has no room for an access list.
    check_small_pools(&mut random, "amsterdam", [700_000, 30_000_000]);
    check_small_pools(&mut random, "osaka", [400_000, 30_000_000]);
    check_small_pools(&mut random, "osaka", [110_000, 150_000]);
}

fn check_small_pools(random: &mut Random, fork: &str, gas_limits: [u64; 2]) {
    let (mut first, mut got, mut most) = (U256::ZERO, U256::ZERO, U256::ZERO);
    for _ in 0..testing::rounds("DEPONENT_POOLS", 120, 500) {
        let gas_limit = gas_limits[random.below(2)];
        let (engine, pool) = (engine_with(fork, gas_limit), Arc::new(Pool::default()));
        let mut nonces = [0; 4];
        for _ in 0..2 + random.below(4) {
            let (at, senders) = (random.below(4), senders());
            let (limit, tip) = ([21_000, 60_000, 100_000][random.below(3)], random.below(1000));
            let (nonce, tip) = (nonces[at], 1 + tip as u128);
            let transaction = match limit > 21_000 && random.one_in(3) {
                // The first one in a block uses more gas than the others.
                true => {
                    let to = TxKind::Call(COUNTER);
                    senders[at].transact_with(nonce, to, U256::ZERO, Bytes::new(), limit, tip)
                }
                false => transfer(&senders[at], nonce, limit, tip),
            };
            nonces[at] += 1;
            pool.add(transaction, senders[at].address());
        }
        let list = pool.0.lock().unwrap().clone();
        engine.draw_from(pool);
        let head = engine.heads().head;
        first += best(&engine, head).block_value;
        let built = improved(&engine, head);
        check(&engine, &built);
        got += built.block_value;
        let twin = engine_with(fork, gas_limit);
        let source = Arc::new(OneOrder(Mutex::default()));
        twin.draw_from(source.clone());
        let values = orders(&list).into_iter().map(|order| {
            *source.0.lock().unwrap() = order;
            best(&twin, head).block_value
        });
        most += values.max().unwrap();
    }
    println!("{fork}, {gas_limits:?}: {got} of {most}, and {first} in the order of tips");
    assert!(got * U256::from(100) >= most * U256::from(99), "{got} of {most}");
}

/// The one that needs much gas at hand comes early enough, and no earlier.
#[test]
fn a_build_finds_a_place_for_what_was_left_out() {
    let (engine, pool) = (engine_with("osaka", 110_000), Arc::new(Pool::default()));
    let [a, b, c, d] = &senders()[..] else { panic!("four") };
    for (sender, gas_limit, tip) in [(a, 21_000, 9), (b, 21_000, 8), (c, 60_000, 1), (d, 21_000, 7)]
    {
        pool.add(transfer(sender, 0, gas_limit, tip), sender.address());
    }
    engine.draw_from(pool);
    assert_eq!(best(&engine, engine.heads().head).block.body.transactions.len(), 3);
    let key = super::key(begin(&engine));
    let start = Instant::now();
    let tips = loop {
        assert!(start.elapsed() < Duration::from_secs(60), "nothing is improved");
        if let Some(built) = engine.builder.builds.peek(&key)
            && let transactions = &built.block.body.transactions
            && transactions.len() == 4
        {
            let tips = transactions.iter().map(|it| it.max_priority_fee_per_gas().unwrap());
            break tips.collect::<Vec<_>>();
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    assert_eq!(tips, [9, 8, 1, 7]);
}
