use crate::samples::*;
use crate::world::{self, Signer, StartAccount};
use crate::{BuildRequest, Built, Engine, Error, TransactionSource, Verdict};
use alloy_consensus::Transaction as _;
use alloy_primitives::{Address, B256, Bytes, TxKind, U256};
use alloy_rpc_types_engine::{ForkchoiceState, PayloadId};
use execution::{Candidates, Transaction};
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

/// The slow twin: of all orders of the transactions, the one that earns most. Where the block has
/// room for all, the fees are the same; where it has room for two to five, a transaction that pays
/// more may be in the way of two that pay less.
#[test]
fn small_pools_give_nearly_all_that_the_best_order_gives() {
    let mut random = Random::seeded();
    for (gas_limits, percent) in [([400_000, 30_000_000], 99), ([110_000, 150_000], 70)] {
        check_small_pools(&mut random, gas_limits, percent);
    }
}

fn check_small_pools(random: &mut Random, gas_limits: [u64; 2], percent: u64) {
    let (mut got, mut most) = (U256::ZERO, U256::ZERO);
    for _ in 0..testing::rounds("DEPONENT_POOLS", 30, 500) {
        let gas_limit = gas_limits[random.below(2)];
        let (engine, pool) = (engine_with("osaka", gas_limit), Arc::new(Pool::default()));
        let mut nonces = [0; 4];
        for _ in 0..2 + random.below(4) {
            let (at, senders) = (random.below(4), senders());
            let limit = [21_000, 60_000, 100_000][random.below(3)];
            let transaction =
                transfer(&senders[at], nonces[at], limit, 1 + random.below(1000) as u128);
            nonces[at] += 1;
            pool.add(transaction, senders[at].address());
        }
        let list = pool.0.lock().unwrap().clone();
        engine.draw_from(pool);
        let head = engine.heads().head;
        let built = best(&engine, head);
        check(&engine, &built);
        got += built.block_value;
        let twin = engine_with("osaka", gas_limit);
        let source = Arc::new(OneOrder(Mutex::default()));
        twin.draw_from(source.clone());
        let values = orders(&list).into_iter().map(|order| {
            *source.0.lock().unwrap() = order;
            best(&twin, head).block_value
        });
        most += values.max().unwrap();
    }
    println!("the fees are {got} of {most}");
    assert!(got * U256::from(100) >= most * U256::from(percent), "{got} of {most}");
}
