use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use alloy_consensus::{
    EthereumTxEnvelope, Header, SignableTransaction, Signed, TxEip1559, TxEip4844, TxEip7702,
    TxLegacy,
};
use alloy_primitives::{Address, B256, Bytes, Signature, TxKind, U256};
use deponent_pool::{
    Content, HeadChange, Options, Pool, Pooled, Returned, SenderState, Senders, Status,
};
use execution::Transaction;
use state::MemoryDisk;
use testing::Random;
use testing::world::{CHAIN_ID, Signer, chain};

use crate::header;
use crate::slow::{Lists, Sent, SlowPool};

const SENDERS: u8 = 6;

#[derive(Debug, Clone, Default)]
struct Accounts(Arc<Mutex<HashMap<Address, SenderState>>>);

impl Senders for Accounts {
    fn sender(&self, head: B256, address: Address) -> Result<SenderState, String> {
        self.0.lock().expect("no test panics with it").sender(head, address)
    }
}

struct World {
    random: Random,
    signers: Vec<Signer>,
    accounts: Accounts,
    head: Header,
    pool: Pool,
    /// Has the pool's log.
    disk: MemoryDisk,
    slow: SlowPool,
    /// How many transactions arrived before the pool was last restored, without those that it had.
    arrived_before: u64,
    /// Transactions that were in blocks.
    included: Vec<Sent>,
    sent: u64,
    /// Those in the pool of which it was told that they became pending, and how many it told.
    told: BTreeSet<B256>,
    told_count: u64,
    /// Transactions that the last head brought back: one that was in the pool as well may have left
    /// it for a moment, and is told again.
    returned: BTreeSet<B256>,
}

impl World {
    fn new(mut random: Random) -> Self {
        let options = Options {
            account_slots: 2,
            account_queue: 3,
            transactions: 8 + random.below(8),
            memory_bytes: 16_384 + random.below(16_384),
            lifetime: Duration::ZERO,
            ..Options::default()
        };
        let signers: Vec<_> = (1..=SENDERS).map(Signer::new).collect();
        let head = header(100);
        let accounts = Accounts::default();
        let states = signers.iter().map(|signer| (signer.address(), SenderState::default()));
        let slow = SlowPool::new(options.clone(), states.collect(), 100);
        let pool = Pool::new(chain("osaka"), options, Box::new(accounts.clone()), head.clone());
        let disk = MemoryDisk::new();
        let pool = pool.with_log(disk.clone()).expect("an empty disk");
        Self {
            random,
            signers,
            accounts,
            head,
            pool,
            disk,
            slow,
            arrived_before: 0,
            included: Vec::new(),
            sent: 0,
            told: BTreeSet::new(),
            told_count: 0,
            returned: BTreeSet::new(),
        }
    }

    /// Another process opens what this one has written until now.
    fn kill(&mut self) {
        self.disk = MemoryDisk::with_contents(&self.disk.contents());
        let accounts = Box::new(self.accounts.clone());
        let options = self.slow.options.clone();
        let pool = Pool::new(chain("osaka"), options, accounts, self.head.clone());
        self.pool = pool.with_log(self.disk.clone()).expect("a log in order");
        self.arrived_before = self.slow.arrived - self.pool.arrived();
        assert_eq!(self.disk.contents().len(), 1);
        // A removal may leave a queue that is too long until the next head, which a restart is.
        self.slow.advance(self.head.gas_limit, Vec::new());
        (self.told, self.told_count) = (BTreeSet::new(), 0);
    }

    fn transaction(&mut self) -> Sent {
        let random = &mut self.random;
        let number = random.below(self.signers.len());
        let sender = self.signers[number].address();
        let nonce = self.slow.states[&sender].nonce + random.below(7) as u64;
        let nonce = nonce.saturating_sub(random.one_in(4).into());
        let fee = [90, 100, 110, 111, 121, 150, 1_000][random.below(7)];
        let tip = [1, 2, 3, 10, 90][random.below(5)].min(fee);
        let gas_limit = random.pick(&[60_000, 100_000, 1_000_000]);
        let value = U256::from(random.below(40_000_000));
        let input = Bytes::from(vec![0; random.pick(&[0, 0, 100, 2_000])]);
        // The signature is that of nobody, and makes the hash another one.
        self.sent += 1;
        let sign = Signature::new(U256::from(self.sent), U256::ONE, false);
        let chain_id = CHAIN_ID;
        let to = Address::repeat_byte(7);
        let mut authorities = Vec::new();
        let transaction: Transaction = match random.below(6) {
            0 => {
                let to = TxKind::Call(to);
                let chain_id = Some(chain_id);
                envelope(
                    TxLegacy { chain_id, nonce, gas_limit, gas_price: fee, to, value, input },
                    sign,
                )
            }
            1 => {
                let signer = random.pick(&self.signers);
                authorities.push(signer.address());
                let transaction = TxEip7702 {
                    chain_id,
                    nonce,
                    gas_limit,
                    max_fee_per_gas: fee,
                    max_priority_fee_per_gas: tip,
                    to,
                    value,
                    input,
                    authorization_list: vec![signer.authorize(0, to)],
                    ..TxEip7702::default()
                };
                envelope(transaction, sign)
            }
            _ => {
                let transaction = TxEip1559 {
                    chain_id,
                    nonce,
                    gas_limit,
                    max_fee_per_gas: fee,
                    max_priority_fee_per_gas: tip,
                    to: TxKind::Call(to),
                    value,
                    input,
                    ..TxEip1559::default()
                };
                envelope(transaction, sign)
            }
        };
        Sent { transaction, sender, authorities }
    }

    fn add(&mut self) {
        let again = self.included.last().filter(|_| self.random.one_in(8)).cloned();
        let sent = again.unwrap_or_else(|| self.transaction());
        let expected = self.slow.add(sent.clone());
        let (hash, sender) = (sent.hash(), sent.sender);
        let got = self.pool.add_unsigned(sent.transaction, hash, sender);
        let got = got.map_err(|refusal| {
            // The figures of missing money are compared in `words`.
            let words = refusal.to_string();
            let is_money = words.starts_with("insufficient funds");
            if is_money { words.split(": ").next().expect("one").to_owned() } else { words }
        });
        assert_eq!(got.as_ref().map(|_| ()).map_err(Clone::clone), expected);
        if let Ok(added) = got {
            let pending = self.slow.content().0;
            let is_pending = pending.get(&sender).is_some_and(|list| list.contains(&hash));
            assert_eq!((added.hash, added.is_pending), (hash, is_pending));
        }
    }

    /// A block, or one that takes the place of others.
    fn advance(&mut self) {
        let random = &mut self.random;
        let mut included = Vec::new();
        for pooled in self.pool.best(100).take(random.below(6)) {
            self.slow.states.get_mut(&pooled.sender()).expect("known").nonce = pooled.nonce() + 1;
            included.push(sent(&pooled));
        }
        let mut returned = Vec::new();
        if random.one_in(3) {
            returned = self.included.split_off(self.included.len() - self.included.len().min(3));
            for sent in &returned {
                let state = self.slow.states.get_mut(&sent.sender).expect("known");
                state.nonce = state.nonce.min(sent.nonce());
            }
        }
        for state in self.slow.states.values_mut() {
            match random.below(4) {
                0 => state.balance = U256::from(random.below(1_000_000_000)),
                1 => state.code_hash = B256::repeat_byte(u8::from(random.one_in(4))),
                2 if random.one_in(4) => state.nonce += 1,
                _ => {}
            }
        }
        *self.accounts.0.lock().expect("no test panics with it") =
            self.slow.states.clone().into_iter().collect();
        let base_fee = 90 + random.below(30) as u64;
        let gas_limit = random.pick(&[100_000, 36_000_000]);
        self.head = Header { gas_limit, ..header(base_fee) };
        self.head.number = self.sent;
        self.slow.base_fee = execution::next_base_fee(&self.head);
        let hashes = included.iter().map(Sent::hash).collect();
        let back: Vec<_> =
            returned.iter().filter(|it| !included_in(&included, it)).cloned().collect();
        self.returned = back.iter().map(Sent::hash).collect();
        self.slow.advance(gas_limit, back);
        let returned = returned.into_iter().map(|sent| Returned {
            hash: sent.hash(),
            transaction: sent.transaction,
            sender: sent.sender,
        });
        let returned = returned.collect();
        let change =
            HeadChange { head: self.head.clone(), included: hashes, returned, finalized: None };
        self.pool.head_changed(change).expect("all accounts are there");
        self.included.extend(included);
    }

    fn remove(&mut self) {
        let (pending, queued) = self.slow.content();
        let all: Vec<_> = pending.into_values().chain(queued.into_values()).flatten().collect();
        if all.is_empty() {
            return;
        }
        let hash = self.random.pick(&all);
        self.slow.remove(hash);
        assert_eq!(self.pool.remove(hash).expect("there").hash(), hash);
        assert_eq!(self.pool.remove(hash), None);
    }

    /// The pool tells of each transaction once that it became pending, as long as it is there. A
    /// head may let one be pending until others come back.
    fn compare_told(&mut self, is_head: bool) {
        let (pending, queued) = self.slow.content();
        let new = self.pool.became_pending(self.told_count, usize::MAX).expect("it is remembered");
        self.told_count += new.len() as u64;
        assert_eq!(self.told_count, self.pool.pending_count());
        for hash in &new {
            let is_first = self.told.insert(*hash);
            assert!(is_first || is_head && self.returned.contains(hash), "{hash} is told twice");
        }
        let pending: BTreeSet<_> = pending.into_values().flatten().collect();
        let missing: Vec<_> = pending.difference(&self.told).collect();
        assert_eq!(missing, Vec::<&B256>::new());
        assert!(is_head || new.iter().all(|hash| pending.contains(hash)), "{new:?}");
        let queued: BTreeSet<_> = queued.into_values().flatten().collect();
        self.told.retain(|hash| pending.contains(hash) || queued.contains(hash));
    }

    fn compare(&mut self) {
        let (pending, queued) = self.slow.content();
        let content = self.pool.content();
        assert_eq!(lists(&content.pending), pending);
        assert_eq!(lists(&content.queued), queued);
        let count = |lists: &Lists| lists.values().map(Vec::len).sum();
        let status = Status { pending: count(&pending), queued: count(&queued) };
        assert_eq!(self.pool.status(), status);
        assert_eq!(self.arrived_before + self.pool.arrived(), self.slow.arrived);
        for sender in self.slow.states.keys() {
            assert_eq!(self.pool.next_nonce(*sender), self.slow.next_nonce(*sender));
            let Content { pending: one, .. } = self.pool.content_from(*sender);
            assert_eq!(lists(&one).get(sender), pending.get(sender));
        }
        for hash in pending.values().chain(queued.values()).flatten() {
            let found = self.pool.transaction(*hash).expect("there");
            let same = self.pool.transaction_of(found.sender(), found.nonce());
            assert_eq!(same, Some(found));
        }
        let base_fee = 80 + self.random.below(80) as u64;
        let skipped: BTreeSet<_> =
            pending.into_values().flatten().filter(|_| self.random.one_in(5)).collect();
        let (mut best, mut order) = (self.pool.best(base_fee), Vec::new());
        while let Some(next) = best.next() {
            order.push(next.hash());
            if skipped.contains(&next.hash()) {
                best.skip_sender(next.sender());
            }
        }
        assert_eq!(order, self.slow.best(base_fee, &skipped));
    }
}

fn included_in(included: &[Sent], sent: &Sent) -> bool {
    included.iter().any(|other| other.hash() == sent.hash())
}

fn sent(pooled: &Pooled) -> Sent {
    let transaction = pooled.transaction().clone();
    let list = alloy_consensus::Transaction::authorization_list(&transaction);
    let authorities = list.into_iter().flatten();
    let authorities = authorities.map(|it| it.recover_authority().expect("signed")).collect();
    Sent { transaction, sender: pooled.sender(), authorities }
}

fn lists(found: &BTreeMap<Address, Vec<Arc<Pooled>>>) -> Lists {
    let hashes = |list: &Vec<Arc<Pooled>>| list.iter().map(|pooled| pooled.hash()).collect();
    found.iter().map(|(sender, list)| (*sender, hashes(list))).collect()
}

fn envelope<T: SignableTransaction<Signature>>(transaction: T, signature: Signature) -> Transaction
where
    EthereumTxEnvelope<TxEip4844>: From<Signed<T>>,
{
    transaction.into_signed(signature).into()
}

#[test]
fn the_pool_and_a_slow_one_agree_on_random_transactions_heads_reorganisations_and_restarts() {
    let seed = testing::seed();
    for round in 0..testing::rounds("DEPONENT_POOL_ROUNDS", 12, 400) {
        let mut world = World::new(Random::new(seed ^ u64::from(round)));
        world.advance();
        for _ in 0..150 {
            let step = world.random.below(20);
            match step {
                0 | 1 => world.advance(),
                2 => world.remove(),
                4 if world.random.one_in(3) => world.kill(),
                3 if world.random.one_in(4) => {
                    let queued = world.pool.status().queued;
                    world.slow.remove_queued();
                    assert_eq!(world.pool.remove_stale(), queued);
                }
                _ => world.add(),
            }
            world.compare();
            // A restart is a head, too.
            world.compare_told([0, 1, 4].contains(&step));
        }
    }
}
