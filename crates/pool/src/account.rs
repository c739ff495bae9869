use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use alloy_primitives::U256;

use crate::entry::{Entry, Pooled};
use crate::error::Refusal;
use crate::head::SenderState;
use crate::limits::ACCOUNT_BLOB_TRANSACTIONS;

/// The transactions of a sender, by nonce.
///
/// The pending ones are those that could run now, one after the other: without a gap from the
/// account's nonce on, as far as the balance pays for all of them. The others are queued.
#[derive(Debug)]
pub(crate) struct Account {
    pub(crate) state: SenderState,
    pub(crate) entries: BTreeMap<u64, Entry>,
    /// How many of the entries are pending.
    pub(crate) pending: usize,
    /// The most that the pending ones may cost together, in wei.
    pending_cost: U256,
    /// When the sender last sent a transaction.
    pub(crate) last_sent: Instant,
}

impl Account {
    pub(crate) fn new(state: SenderState, now: Instant) -> Self {
        let entries = BTreeMap::new();
        Self { state, entries, pending: 0, pending_cost: U256::ZERO, last_sent: now }
    }

    /// Divides the entries anew into pending and queued ones.
    pub(crate) fn settle(&mut self) {
        (self.pending, self.pending_cost) = (0, U256::ZERO);
        for (nonce, expected) in self.entries.keys().zip(self.state.nonce..) {
            let cost = self.pending_cost.checked_add(self.entries[nonce].pooled.cost());
            match cost.filter(|cost| *nonce == expected && *cost <= self.state.balance) {
                Some(cost) => (self.pending, self.pending_cost) = (self.pending + 1, cost),
                None => break,
            }
        }
    }

    /// The nonce after the last pending entry.
    pub(crate) fn next_nonce(&self) -> u64 {
        self.state.nonce + self.pending as u64
    }

    pub(crate) fn is_pending(&self, nonce: u64) -> bool {
        nonce < self.next_nonce()
    }

    pub(crate) fn queued(&self) -> usize {
        self.entries.len() - self.pending
    }

    /// The pending entries, by nonce.
    pub(crate) fn pending_entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values().take(self.pending)
    }

    /// The pending and the queued transactions, by nonce.
    pub(crate) fn lists(&self) -> [Vec<Arc<Pooled>>; 2] {
        let mut pending: Vec<_> = self.entries.values().map(|entry| entry.pooled.clone()).collect();
        let queued = pending.split_off(self.pending);
        [pending, queued]
    }

    /// Whether its entries have blobs, which is so for all or for none; `None` without entries.
    pub(crate) fn has_blobs(&self) -> Option<bool> {
        Some(self.entries.first_key_value()?.1.pooled.has_blobs())
    }

    /// The last pending entry.
    pub(crate) fn tail(&self) -> Option<&Entry> {
        let nonce = self.next_nonce().checked_sub(1).filter(|_| self.pending > 0)?;
        self.entries.get(&nonce)
    }

    /// Checks nonce and balance beside the other entries, as geth does
    /// (`ValidateTransactionWithState`).
    pub(crate) fn check(&self, pooled: &Pooled) -> Result<(), Refusal> {
        let (nonce, cost, spent) = (pooled.nonce(), pooled.cost(), self.pending_cost);
        let balance = self.state.balance;
        if nonce < self.state.nonce {
            return self.state.check(pooled);
        }
        let has_same = self.entries.contains_key(&nonce);
        if pooled.has_blobs() && !has_same && nonce > self.next_nonce() {
            return Err(Refusal::NonceTooHigh { next: self.next_nonce(), nonce });
        }
        self.state.check(pooled)?;
        if self.is_pending(nonce) {
            let bump = cost.saturating_sub(self.entries[&nonce].pooled.cost());
            if balance < spent.saturating_add(bump) {
                return Err(Refusal::FundsForReplacement { balance, spent, bump });
            }
        } else if balance < spent.saturating_add(cost) {
            return Err(Refusal::FundsInAll { balance, spent, cost });
        }
        if pooled.has_blobs() && !has_same && self.entries.len() >= ACCOUNT_BLOB_TRANSACTIONS {
            return Err(Refusal::AccountLimit(self.entries.len()));
        }
        if self.has_blobs().is_some_and(|has_blobs| has_blobs != pooled.has_blobs()) {
            return Err(Refusal::AddressReserved);
        }
        Ok(())
    }
}

impl SenderState {
    /// Checks nonce and balance as if the sender had no other transactions.
    pub(crate) fn check(&self, pooled: &Pooled) -> Result<(), Refusal> {
        let Self { nonce: next, balance, .. } = *self;
        let (nonce, cost) = (pooled.nonce(), pooled.cost());
        if nonce < next {
            return Err(Refusal::NonceTooLow { next, nonce });
        }
        if balance < cost {
            return Err(Refusal::Funds { balance, cost });
        }
        Ok(())
    }
}
