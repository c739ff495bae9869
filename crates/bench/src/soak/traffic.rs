//! The transactions of a long run: of all types, for pools. State grows and is deleted again, so
//! that it stays about as large.

use std::collections::{BTreeMap, HashMap, VecDeque};

use alloy_primitives::{Address, B256, Bytes, TxKind, keccak256};
use anyhow::Context;

use crate::chain::contracts::{self, Method};
use crate::chain::format::Payload;
use crate::chain::sign::{sign_all, signed_with_blobs};
use crate::chain::workload::{PlannedKind, PlannedTransaction};
use crate::chain::world;
use crate::random::Random;
use crate::soak::blocks::BlockStore;

/// Accounts that send, contracts that are called, accounts that are paid.
pub(crate) const SENDERS: usize = 24;
pub(crate) const CONTRACTS: usize = 24;
const PAID: u64 = 2_000;
/// Entries of a contract's mapping that are ever used, and ranges of them that are set before the
/// oldest ones are cleared.
const ENTRIES: u64 = 4_096;
const RANGES: usize = 400;
/// Accounts that delegate (EIP-7702), which send nothing themselves; their keys come after those
/// of the senders.
const AUTHORITIES: u64 = 256;
const FIRST_AUTHORITY: u64 = 1_000;
/// Hundredths of transactions that have blobs, and the first senders, who send nothing else: pools
/// refuse a blob transaction of an account that has others waiting.
const BLOBS: u64 = 4;
const BLOB_SENDERS: u64 = 4;
/// A transaction that is in no block after so many slots is sent again, as a wallet does.
const AGAIN_SLOTS: u64 = 8;
/// Slots of transactions that wait: then no new ones are drawn.
const BACKLOG_SLOTS: usize = 8;
/// One in so many draws deploys a contract that stays.
const DEPLOYMENTS: u64 = 500;

/// A transaction that was sent, until its block is final.
struct Sent {
    raw: Bytes,
    hash: B256,
    /// The slot when it was sent the last time.
    slot: u64,
    /// The blocks that have it.
    blocks: Vec<(u64, B256)>,
}

/// Draws transactions, and keeps those that are in no final block.
pub(crate) struct Traffic {
    random: Random,
    nonces: Vec<u64>,
    sent: BTreeMap<(usize, u64), Sent>,
    by_hash: HashMap<B256, (usize, u64)>,
    /// Ranges of entries that are set, the oldest first: contract, from, to.
    ranges: VecDeque<(usize, u64, u64)>,
    next_entry: Vec<u64>,
    delegations: u64,
    deployments: u64,
    /// Transactions drawn so far.
    pub(crate) drawn: u64,
}

impl Traffic {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            random: Random::new(seed),
            nonces: vec![0; SENDERS],
            sent: BTreeMap::new(),
            by_hash: HashMap::new(),
            ranges: VecDeque::new(),
            next_entry: vec![0; CONTRACTS],
            delegations: 0,
            deployments: 0,
            drawn: 0,
        }
    }

    /// The transactions of a slot: `count` new ones, and those that wait for too long.
    pub(crate) fn slot(&mut self, slot: u64, count: usize, store: &BlockStore) -> Vec<Bytes> {
        self.forget_final(store);
        let mut out = Vec::new();
        let mut waiting = 0;
        for sent in self.sent.values_mut() {
            if sent.blocks.iter().any(|(number, hash)| store.is_canonical(*number, *hash)) {
                continue;
            }
            waiting += 1;
            if slot - sent.slot >= AGAIN_SLOTS {
                sent.slot = slot;
                out.push(sent.raw.clone());
            }
        }
        if waiting < count * BACKLOG_SLOTS {
            out.extend((0..count).map(|_| self.draw(slot)));
        }
        out
    }

    /// Notes the transactions of a block, on whatever branch.
    pub(crate) fn included(&mut self, payload: &Payload) -> anyhow::Result<()> {
        let call = payload.call().context("a payload that a node built")?;
        for raw in &call.payload.as_v1().transactions {
            let Some(key) = self.by_hash.get(&keccak256(raw)) else { continue };
            if let Some(sent) = self.sent.get_mut(key) {
                sent.blocks.push((payload.number, payload.hash));
            }
        }
        Ok(())
    }

    fn forget_final(&mut self, store: &BlockStore) {
        let is_final = |(number, hash): &(u64, B256)| {
            *number <= store.finalized() && store.is_canonical(*number, *hash)
        };
        let by_hash = &mut self.by_hash;
        self.sent.retain(|_, sent| {
            let keep = !sent.blocks.iter().any(is_final);
            if !keep {
                by_hash.remove(&sent.hash);
            }
            keep
        });
    }

    /// A new transaction, in the form in which a pool takes it.
    fn draw(&mut self, slot: u64) -> Bytes {
        self.drawn += 1;
        let draw = self.random.below(100);
        let senders = if draw < BLOBS { 0..BLOB_SENDERS } else { BLOB_SENDERS..SENDERS as u64 };
        let sender = self.random.between(senders.start, senders.end - 1) as usize;
        let nonce = self.nonces[sender];
        self.nonces[sender] += 1;
        let (raw, hash) = match draw {
            0..BLOBS => {
                let (to, count) = (self.paid(), self.random.between(1, 2) as usize);
                signed_with_blobs(sender, nonce, to, count)
            }
            _ => {
                let plan = self.plan(draw, sender, nonce);
                let raw = sign_all(&[plan]).pop().expect("one was planned");
                let hash = keccak256(&raw);
                (raw, hash)
            }
        };
        let sent = Sent { raw: raw.clone(), hash, slot, blocks: Vec::new() };
        self.by_hash.insert(hash, (sender, nonce));
        self.sent.insert((sender, nonce), sent);
        raw
    }

    fn plan(&mut self, draw: u64, sender: usize, nonce: u64) -> PlannedTransaction {
        let mut plan = PlannedTransaction {
            sender,
            nonce,
            to: TxKind::Call(Address::ZERO),
            value: 0,
            input: Bytes::new(),
            gas_limit: 200_000,
            kind: PlannedKind::Eip1559,
        };
        match draw {
            ..25 => {
                plan.to = self.paid().into();
                (plan.value, plan.gas_limit) = (self.random.between(1, 1 << 40), 21_000);
                plan.kind = PlannedKind::Legacy;
            }
            25..47 => self.grow(&mut plan),
            47..70 => self.clear(&mut plan),
            70..80 => {
                let (from, to) = (self.random.below(ENTRIES), self.random.below(ENTRIES));
                self.call(&mut plan, &Method::Transfer.call(&[from, to, 1]));
            }
            80..88 => {
                let index = self.random.below(ENTRIES);
                let key = [index, 0].map(|word| B256::from(alloy_primitives::U256::from(word)));
                plan.kind = PlannedKind::AccessList { slots: vec![keccak256(key.concat())] };
                self.call(&mut plan, &Method::Approve.call(&[index, self.drawn % 50, 1]));
            }
            88..93 => {
                let indices: Vec<u64> = (0..20).map(|_| self.random.below(ENTRIES)).collect();
                self.call(&mut plan, &Method::Read.call(&indices));
            }
            93..97 => self.delegate(&mut plan),
            _ => self.create(&mut plan),
        }
        plan
    }

    fn paid(&mut self) -> Address {
        world::account(self.random.below(PAID))
    }

    fn call(&mut self, plan: &mut PlannedTransaction, input: &Bytes) {
        let contract = self.random.below(CONTRACTS as u64) as usize;
        (plan.to, plan.input) = (world::contract(contract).into(), input.clone());
    }

    /// Sets entries of a contract that are not set, or were cleared.
    fn grow(&mut self, plan: &mut PlannedTransaction) {
        let contract = self.random.below(CONTRACTS as u64) as usize;
        let from = self.next_entry[contract];
        let to = (from + self.random.between(4, 24)).min(ENTRIES);
        self.next_entry[contract] = to % ENTRIES;
        self.ranges.push_back((contract, from, to));
        plan.to = world::contract(contract).into();
        plan.input = Method::Fill.call(&[from, to]);
        plan.gas_limit = 60_000 + (to - from) * 25_000;
    }

    /// Clears the entries that were set first, if there are enough.
    fn clear(&mut self, plan: &mut PlannedTransaction) {
        if self.ranges.len() < RANGES {
            return self.grow(plan);
        }
        let (contract, from, to) = self.ranges.pop_front().expect("there are some");
        let to_clear = world::contract(contract);
        let calls: Vec<_> =
            (from..to).map(|entry| (to_clear, Method::Burn.call(&[entry]))).collect();
        plan.to = world::contract(0).into();
        plan.input = contracts::multicall(&calls);
        plan.gas_limit = 100_000 + (to - from) * 20_000;
    }

    fn delegate(&mut self, plan: &mut PlannedTransaction) {
        let (turn, which) = (self.delegations / AUTHORITIES, self.delegations % AUTHORITIES);
        self.delegations += 1;
        plan.to = self.paid().into();
        plan.kind = PlannedKind::Delegation {
            authority: (FIRST_AUTHORITY + which) as usize,
            authority_nonce: turn,
            delegate: world::contract(which as usize % CONTRACTS),
        };
    }

    /// A contract: most of them are gone when their transaction ends.
    fn create(&mut self, plan: &mut PlannedTransaction) {
        plan.to = TxKind::Create;
        plan.gas_limit = 1_000_000;
        plan.input = match self.random.below(DEPLOYMENTS * 3 / 100) {
            0 => {
                self.deployments += 1;
                contracts::deployment(self.deployments, 600)
            }
            _ => contracts::short_life(),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_no_block_is_sent_again_and_no_more_is_drawn_than_pools_take() {
        let store = BlockStore::new(B256::ZERO);
        let mut traffic = Traffic::new(7);
        let first = traffic.slot(1, 10, &store);
        assert_eq!(first.len(), 10);
        for slot in 2..=8 {
            assert_eq!(traffic.slot(slot, 10, &store).len(), 10, "{slot}");
        }
        // Eighty wait: those of the first slot are due, and there are no new ones.
        let again = traffic.slot(9, 10, &store);
        let hashes = |raw: &[Bytes]| {
            let mut hashes: Vec<B256> = raw.iter().map(keccak256).collect();
            hashes.sort_unstable();
            hashes
        };
        assert_eq!(hashes(&again), hashes(&first));
        assert_eq!(traffic.drawn, 80);
    }

    #[test]
    fn as_many_entries_are_cleared_as_are_set_once_there_are_enough() {
        let mut traffic = Traffic::new(7);
        for nonce in 0..20_000 {
            let draw = BLOBS + traffic.random.below(100 - BLOBS);
            traffic.plan(draw, 0, nonce);
        }
        assert!(traffic.ranges.len() < RANGES + 300, "{}", traffic.ranges.len());
    }
}
