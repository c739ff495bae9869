//! The transactions of a chain, block by block: what makes the state, then what is measured.
//!
//! The mix and the skew are those of a public network. Contracts, senders and recipients are drawn
//! by Zipf's law; of the slots and accounts touched, [`RECENT`] were touched not long before, some
//! are new, and the rest come from anywhere in the state.

mod hostile;

use alloy_eips::eip4844;
use alloy_primitives::{Address, B256, Bytes, TxKind, keccak256};

use crate::chain::contracts::{self, FILL_GAS, Method, PAY_GAS, Swap};
use crate::chain::world::{self, ChainKind, FUNDER, PAYER, World, pieces};
use crate::random::{Random, Zipf};

/// Share of slots and accounts that were touched not long before.
const RECENT: f64 = 0.7;
/// Share that is new.
const NEW: f64 = 0.06;
/// Indices remembered as touched: of accounts, and of the slots of one contract.
const ACCOUNTS_REMEMBERED: usize = 20_000;
const SLOTS_REMEMBERED: usize = 2_000;

/// Slots and accounts that one transaction makes at most, while the state is made.
const SLOTS_A_FILL: u64 = 50_000;
const ACCOUNTS_A_PAY: u64 = 25_000;

const WITHDRAWALS: u64 = 16;

/// Blobs of a transaction at most (EIP-7594), and of a block: the target, so that their fee stays
/// at its lowest.
const TRANSACTION_BLOBS: u64 = 6;
const BLOCK_BLOBS: u64 = 6;

/// A transaction that is not signed yet.
#[derive(Clone, Debug)]
pub(crate) struct PlannedTransaction {
    pub(crate) sender: usize,
    pub(crate) nonce: u64,
    pub(crate) to: TxKind,
    pub(crate) value: u64,
    pub(crate) input: Bytes,
    pub(crate) gas_limit: u64,
    pub(crate) kind: PlannedKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PlannedKind {
    Legacy,
    Eip1559,
    /// EIP-2930: the contract that it calls, with these of its slots.
    AccessList {
        slots: Vec<B256>,
    },
    /// EIP-7702: `authority`, another sender, with its nonce, lets a contract speak for it.
    Delegation {
        authority: usize,
        authority_nonce: u64,
        delegate: Address,
    },
    /// EIP-4844: the blobs, each told from all others by its number.
    Blobs {
        first: u64,
        count: u64,
    },
}

/// The withdrawals and other parts of a block beside its transactions.
#[derive(Clone, Debug)]
pub(crate) struct BlockPlan {
    pub(crate) transactions: Vec<PlannedTransaction>,
    /// Accounts that the consensus layer pays.
    pub(crate) withdrawals: Vec<Address>,
}

/// The blocks that make the state.
pub(crate) fn state_blocks(world: &World) -> Vec<BlockPlan> {
    let mut blocks = Vec::new();
    let mut transactions = Vec::new();
    let (mut nonce, mut block_gas) = (0, 0);
    let slots_a_fill = SLOTS_A_FILL.min(world.state_block_gas / FILL_GAS);
    let accounts_a_pay = ACCOUNTS_A_PAY.min(world.state_block_gas / PAY_GAS);
    let filled = world.slots_by_contract().into_iter().enumerate().flat_map(|(index, slots)| {
        pieces(0, slots, slots_a_fill)
            .map(move |[from, to]| (index, Method::Fill.call(&[from, to]), (to - from) * FILL_GAS))
    });
    let paid = pieces(0, world.accounts, accounts_a_pay)
        .map(|[from, to]| (PAYER, Method::Pay.call(&[from, to]), (to - from) * PAY_GAS));
    for (contract, input, gas) in filled.chain(paid) {
        let to = TxKind::Call(world::contract(contract));
        let gas_limit = gas + gas / 50 + 100_000;
        let kind = PlannedKind::Eip1559;
        transactions.push(PlannedTransaction {
            sender: FUNDER,
            nonce,
            to,
            value: 0,
            input,
            gas_limit,
            kind,
        });
        nonce += 1;
        block_gas += gas;
        if block_gas >= world.state_block_gas {
            blocks.push(BlockPlan::plain(std::mem::take(&mut transactions)));
            block_gas = 0;
        }
    }
    if !transactions.is_empty() {
        blocks.push(BlockPlan::plain(transactions));
    }
    blocks.extend((0..world.settling_blocks).map(|_| BlockPlan::plain(Vec::new())));
    blocks
}

impl BlockPlan {
    pub(crate) const fn plain(transactions: Vec<PlannedTransaction>) -> Self {
        Self { transactions, withdrawals: Vec::new() }
    }
}

/// Draws the measured blocks, one after the other.
#[derive(Clone, Debug)]
pub(crate) struct Workload {
    world: World,
    random: Random,
    by_contract: Zipf,
    by_sender: Zipf,
    nonces: Vec<u64>,
    slots: Vec<Keys>,
    accounts: Keys,
    /// Allowances given and not taken back: contract, owner, spender.
    allowances: Vec<(usize, u64, u64)>,
    tokens_made: u64,
    blobs_made: u64,
    /// The room that is left in the block.
    blobs_left: u64,
}

impl Workload {
    /// The workload on the state that [`state_blocks`] made.
    pub(crate) fn new(world: &World, state_transactions: u64) -> Self {
        let mut nonces = vec![0; world.senders];
        nonces[FUNDER] = state_transactions;
        let slots = world.slots_by_contract();
        Self {
            random: Random::new(world.seed),
            by_contract: Zipf::new(world.contracts, 1.05),
            by_sender: Zipf::new(world.senders, 0.8),
            nonces,
            slots: slots.into_iter().map(|slots| Keys::new(slots, SLOTS_REMEMBERED)).collect(),
            accounts: Keys::new(world.accounts, ACCOUNTS_REMEMBERED),
            allowances: Vec::new(),
            tokens_made: 0,
            blobs_made: 0,
            blobs_left: BLOCK_BLOBS,
            world: world.clone(),
        }
    }

    /// Draws other blocks from here on, for another branch.
    pub(crate) fn branch(&self) -> Self {
        let mut random = self.random.clone();
        Self { random: Random::new(!random.word()), ..self.clone() }
    }

    /// The next block.
    pub(crate) fn block(&mut self) -> BlockPlan {
        let is_hostile = self.world.kind == ChainKind::Hostile;
        if is_hostile && self.random.chance(hostile::EMPTY) {
            return BlockPlan::plain(Vec::new());
        }
        let [low, high] = self.world.block_gas;
        let target = self.random.between(low, high);
        let (mut transactions, mut gas) = (Vec::new(), 0);
        self.blobs_left = BLOCK_BLOBS;
        while gas < target {
            let (mut plan, expected) = match is_hostile {
                true => self.hostile(),
                false => self.transaction(),
            };
            plan.gas_limit = self.world.fork.gas_limit(plan.gas_limit);
            gas += expected;
            transactions.push(plan);
        }
        let withdrawals = (0..WITHDRAWALS).map(|_| self.account()).collect();
        BlockPlan { transactions, withdrawals }
    }

    /// A transaction and about the gas that it uses.
    fn transaction(&mut self) -> (PlannedTransaction, u64) {
        match self.random.below(1000) {
            0..300 => self.payment(),
            300..310 => self.blobs(),
            310..620 => self.token_transfer(),
            620..790 => self.trade(),
            790..850 => self.approval(),
            850..900 => self.new_token(),
            900..920 => self.burn(),
            920..950 => self.airdrop(),
            950..970 => self.reads(),
            970..980 => self.computation(),
            980..990 => self.deployment(),
            _ => self.delegation(),
        }
    }

    fn payment(&mut self) -> (PlannedTransaction, u64) {
        let (to, value) = (self.account(), self.random.between(1, 1 << 50));
        let mut plan = self.call(to, Bytes::new(), 21_000);
        plan.value = value;
        (plan, 21_000)
    }

    fn token_transfer(&mut self) -> (PlannedTransaction, u64) {
        let token = self.any_contract();
        let input = Method::Transfer.call(&[self.slot(token), self.slot(token), 1]);
        (self.call(world::contract(token), input, 120_000), 43_000)
    }

    /// A route through one to three pools.
    fn trade(&mut self) -> (PlannedTransaction, u64) {
        let hops = 1 + self.random.below(10) / 5 + self.random.below(10) / 8;
        let mut calls = Vec::new();
        for _ in 0..hops {
            let pool = self.any_contract();
            // One side of most pools is one of a few tokens.
            let [a, b] = [self.random.below(4) as usize, self.any_contract()];
            let ticks = self.random.between(2, 8);
            let swap = Swap {
                tokens: [world::contract(a), world::contract(b)],
                trader: self.slot(a),
                pool: self.slot(b),
                amount: self.random.between(1, 1 << 30),
                rounds: self.random.between(30, 150),
                ticks: (0..ticks).map(|_| self.random.below(2_000)).collect(),
            };
            calls.push((world::contract(pool), swap.data()));
            let oracle = self.any_contract();
            let slots: Vec<u64> =
                (0..self.random.between(1, 8)).map(|_| self.slot(oracle)).collect();
            calls.push((world::contract(oracle), Method::Read.call(&slots)));
        }
        let router = self.router();
        let plan = self.call(router, contracts::multicall(&calls), 60_000 + hops * 400_000);
        (plan, 30_000 + hops * 120_000)
    }

    fn approval(&mut self) -> (PlannedTransaction, u64) {
        if !self.allowances.is_empty() && self.random.chance(0.45) {
            let which = self.random.below(self.allowances.len() as u64) as usize;
            let (token, owner, spender) = self.allowances.swap_remove(which);
            let input = Method::Approve.call(&[owner, spender, 0]);
            return (self.call(world::contract(token), input, 100_000), 27_000);
        }
        let token = self.any_contract();
        let (owner, spender) = (self.slot(token), self.random.below(200));
        self.allowances.push((token, owner, spender));
        let input = Method::Approve.call(&[owner, spender, u64::MAX]);
        (self.call(world::contract(token), input, 100_000), 47_000)
    }

    fn new_token(&mut self) -> (PlannedTransaction, u64) {
        let collection = self.any_contract();
        let input = Method::Mint.call(&[self.tokens_made, self.slot(collection)]);
        self.tokens_made += 1;
        (self.call(world::contract(collection), input, 150_000), 60_000)
    }

    fn burn(&mut self) -> (PlannedTransaction, u64) {
        let contract = self.any_contract();
        let input = Method::Burn.call(&[self.slot(contract)]);
        (self.call(world::contract(contract), input, 80_000), 23_000)
    }

    fn airdrop(&mut self) -> (PlannedTransaction, u64) {
        let token = self.any_contract();
        let count = self.random.between(5, 25);
        let from = self.slot(token);
        let calls: Vec<(Address, Bytes)> = (0..count)
            .map(|_| (world::contract(token), Method::Transfer.call(&[from, self.slot(token), 1])))
            .collect();
        let input = contracts::multicall(&calls);
        let router = self.router();
        (self.call(router, input, 60_000 + count * 50_000), 30_000 + count * 13_000)
    }

    fn reads(&mut self) -> (PlannedTransaction, u64) {
        let contract = self.any_contract();
        let count = self.random.between(20, 80);
        let slots: Vec<u64> = (0..count).map(|_| self.slot(contract)).collect();
        let input = Method::Read.call(&slots);
        (
            self.call(world::contract(contract), input, 50_000 + count * 3_500),
            24_000 + count * 2_700,
        )
    }

    fn computation(&mut self) -> (PlannedTransaction, u64) {
        let rounds = self.random.between(1_000, 12_000);
        let contract = world::contract(self.any_contract());
        let plan = self.call(contract, Method::Compute.call(&[rounds]), 50_000 + rounds * 160);
        (plan, 22_000 + rounds * 125)
    }

    fn deployment(&mut self) -> (PlannedTransaction, u64) {
        let len = 50 + (6_000.0 * self.random.unit().powi(3)) as u64;
        let input = contracts::deployment(self.random.word(), len as u16);
        let gas = 100_000 + len * 220;
        let mut plan = self.call(Address::ZERO, input, gas + len * 30 + 50_000);
        plan.to = TxKind::Create;
        (plan, gas)
    }

    fn delegation(&mut self) -> (PlannedTransaction, u64) {
        let to = self.account();
        let mut plan = self.call(to, Bytes::new(), 90_000);
        let authority = 1 + self.random.below(self.world.senders as u64 - 1) as usize;
        if authority != plan.sender {
            let authority_nonce = self.next_nonce(authority);
            let delegate = self.router();
            plan.kind = PlannedKind::Delegation { authority, authority_nonce, delegate };
        }
        (plan, 46_000)
    }

    /// A batch of a rollup, to an account of its own.
    fn blobs(&mut self) -> (PlannedTransaction, u64) {
        let (mut plan, gas) = self.payment();
        let count = self.random.between(1, TRANSACTION_BLOBS).min(self.blobs_left);
        if count > 0 {
            plan.kind = PlannedKind::Blobs { first: self.blobs_made, count };
            self.blobs_left -= count;
            self.blobs_made += count;
        }
        (plan, gas)
    }

    fn call(&mut self, to: Address, input: Bytes, gas_limit: u64) -> PlannedTransaction {
        let sender = self.by_sender.draw(&mut self.random);
        let legacy = self.random.chance(0.15);
        PlannedTransaction {
            sender,
            nonce: self.next_nonce(sender),
            to: TxKind::Call(to),
            value: 0,
            input,
            gas_limit,
            kind: if legacy { PlannedKind::Legacy } else { PlannedKind::Eip1559 },
        }
    }

    fn any_contract(&mut self) -> usize {
        self.by_contract.draw(&mut self.random)
    }

    /// One of a few contracts that many call.
    fn router(&mut self) -> Address {
        world::contract(self.random.below(3) as usize)
    }

    fn next_nonce(&mut self, sender: usize) -> u64 {
        let nonce = self.nonces[sender];
        self.nonces[sender] += 1;
        nonce
    }

    fn slot(&mut self, contract: usize) -> u64 {
        self.slots[contract].draw(&mut self.random)
    }

    fn account(&mut self) -> Address {
        world::account(self.accounts.draw(&mut self.random))
    }
}

/// Indices of slots or accounts, with those touched last.
#[derive(Clone, Debug)]
struct Keys {
    /// Those from 0 on are there.
    count: u64,
    /// A ring, written at `next`.
    recent: Vec<u64>,
    next: usize,
    remembered: usize,
}

impl Keys {
    const fn new(count: u64, remembered: usize) -> Self {
        Self { count, recent: Vec::new(), next: 0, remembered }
    }

    /// So many new ones: the first, and the one behind the last.
    const fn extend(&mut self, count: u64) -> [u64; 2] {
        let from = self.count;
        self.count += count;
        [from, self.count]
    }

    fn draw(&mut self, random: &mut Random) -> u64 {
        let share = random.unit();
        if share < RECENT && !self.recent.is_empty() {
            // The later touched, the likelier: the square of an even draw.
            let back = (self.recent.len() as f64 * random.unit().powi(2)) as usize;
            let len = self.recent.len();
            return self.recent[(self.next + len - 1 - back.min(len - 1)) % len];
        }
        let key = if share < RECENT + NEW {
            self.count += 1;
            self.count - 1
        } else {
            random.below(self.count)
        };
        if self.recent.len() < self.remembered {
            self.recent.push(key);
            self.next = self.recent.len() % self.remembered;
        } else {
            self.recent[self.next] = key;
            self.next = (self.next + 1) % self.remembered;
        }
        key
    }
}

/// The amount of a withdrawal, in Gwei; what a validator earns in some days.
pub(crate) const fn withdrawal_gwei(number: u64, place: usize) -> u64 {
    18_000_000 + number * 31 + place as u64
}

/// The versioned hash of a blob that does not exist: its commitment is the hash of its number.
pub(crate) fn versioned_hash(blob: u64) -> B256 {
    let mut hash = keccak256(format!("deponent bench blob {blob}"));
    hash.0[0] = eip4844::VERSIONED_HASH_VERSION_KZG;
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_has_every_slot_and_account_once() {
        let world = World::preset("mini").expect("a preset");
        let blocks = state_blocks(&world);
        assert!(blocks.len() > 1);
        let gas = |block: &BlockPlan| block.transactions.iter().map(|tx| tx.gas_limit).sum::<u64>();
        let total: u64 = blocks.iter().map(gas).sum();
        assert!(total > world.slots * FILL_GAS + world.accounts * PAY_GAS);
        let nonces = blocks.iter().flat_map(|block| &block.transactions).map(|tx| tx.nonce);
        assert!(nonces.enumerate().all(|(at, nonce)| at as u64 == nonce));
    }

    #[test]
    fn a_block_has_no_more_blobs_than_it_may_have() {
        let world =
            World { block_gas: [30_000_000; 2], ..World::preset("mini").expect("a preset") };
        let mut workload = Workload::new(&world, 3);
        let mut next = 0;
        for _ in 0..50 {
            let before = next;
            for plan in workload.block().transactions {
                if let PlannedKind::Blobs { first, count } = plan.kind {
                    assert_eq!(first, next);
                    assert!((1..=TRANSACTION_BLOBS).contains(&count));
                    next += count;
                }
            }
            assert!(next - before <= BLOCK_BLOBS);
        }
        assert!(next > 50, "{next}");
    }

    #[test]
    fn a_hostile_chain_deletes_grows_and_has_empty_blocks() {
        let world = World { kind: ChainKind::Hostile, ..World::preset("mini").expect("a preset") };
        let draw = || {
            let mut workload = Workload::new(&world, 3);
            (0..60).map(|_| workload.block()).collect::<Vec<BlockPlan>>()
        };
        let blocks = draw();
        assert_eq!(format!("{blocks:?}"), format!("{:?}", draw()));
        let empty = blocks.iter().filter(|block| block.transactions.is_empty()).count();
        assert!((4..25).contains(&empty), "{empty}");
        let all = || blocks.iter().flat_map(|block| &block.transactions);
        // The method, as the contracts have it: fill, pay, read, multicall.
        for method in [1, 2, 7, 10] {
            assert!(all().any(|plan| plan.input[31] == method), "{method}");
        }
        assert!(all().all(|plan| plan.gas_limit <= 1 << 24));
    }

    #[test]
    fn most_keys_were_touched_not_long_before() {
        let (mut keys, mut random) = (Keys::new(1_000_000, 1_000), Random::new(3));
        let mut seen = std::collections::HashSet::new();
        let repeats = (0..10_000).filter(|_| !seen.insert(keys.draw(&mut random))).count();
        assert!((6_500..7_500).contains(&repeats), "{repeats}");
    }
}
