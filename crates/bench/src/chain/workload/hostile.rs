//! Transactions that are made to hurt: storage and accounts that only grow, slots deleted by the
//! hundred so that branches of the trie collapse, and reads of what is not there.

use alloy_primitives::{Address, Bytes};

use super::{PlannedTransaction, Workload};
use crate::chain::contracts::{self, FILL_GAS, Method, PAY_GAS};
use crate::chain::world::{self, PAYER};

/// Share of blocks without anything.
pub(super) const EMPTY: f64 = 0.2;
/// Things that a transaction does at least, and the gas of one that does the most: Osaka allows
/// 2^24 (EIP-7825).
const LEAST: u64 = 10;
const MOST_GAS: u64 = 12_000_000;
/// Gas of one deletion with its call: used, after the refund, and to be there.
const DELETE_GAS: [u64; 2] = [7_000, 12_000];
/// The same of one slot that is not there.
const ABSENCE_GAS: [u64; 2] = [2_700, 3_500];
/// Absent slots are sought so far behind the last one.
const ABSENT: u64 = 1 << 40;

impl Workload {
    /// A transaction and about the gas that it uses.
    pub(super) fn hostile(&mut self) -> (PlannedTransaction, u64) {
        match self.random.below(100) {
            0..35 => self.new_slots(),
            35..75 => self.deletions(),
            75..90 => self.absences(),
            _ => self.new_accounts(),
        }
    }

    /// As many things of `gas` each as fit into a third of the largest block, or fewer.
    fn many(&mut self, gas: u64) -> u64 {
        let most = (self.world.block_gas[1] / 3).min(MOST_GAS) / gas;
        self.random.between(LEAST, most.max(LEAST))
    }

    fn new_slots(&mut self) -> (PlannedTransaction, u64) {
        let (contract, count) = (self.any_contract(), self.many(FILL_GAS));
        let [from, to] = self.slots[contract].extend(count);
        let gas = count * FILL_GAS;
        let input = Method::Fill.call(&[from, to]);
        (self.call(world::contract(contract), input, gas + gas / 50 + 100_000), gas)
    }

    /// Slots from anywhere in a contract's storage.
    fn deletions(&mut self) -> (PlannedTransaction, u64) {
        let [used, needed] = DELETE_GAS;
        let (contract, count) = (self.any_contract(), self.many(needed));
        let slots = self.slots[contract].count;
        let calls: Vec<(Address, Bytes)> = (0..count)
            .map(|_| (world::contract(contract), Method::Burn.call(&[self.random.below(slots)])))
            .collect();
        let router = self.router();
        let plan = self.call(router, contracts::multicall(&calls), count * needed + 100_000);
        (plan, 30_000 + count * used)
    }

    fn absences(&mut self) -> (PlannedTransaction, u64) {
        let [used, needed] = ABSENCE_GAS;
        let (contract, count) = (self.any_contract(), self.many(needed));
        let end = self.slots[contract].count;
        let slots: Vec<u64> =
            (0..count).map(|_| end + ABSENT + self.random.below(ABSENT)).collect();
        let plan = self.call(
            world::contract(contract),
            Method::Read.call(&slots),
            count * needed + 100_000,
        );
        (plan, 24_000 + count * used)
    }

    fn new_accounts(&mut self) -> (PlannedTransaction, u64) {
        let count = self.many(PAY_GAS);
        let [from, to] = self.accounts.extend(count);
        let gas = count * PAY_GAS;
        let input = Method::Pay.call(&[from, to]);
        (self.call(world::contract(PAYER), input, gas + gas / 50 + 100_000), gas)
    }
}
