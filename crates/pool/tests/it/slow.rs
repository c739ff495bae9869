//! The pool as a list that is searched anew for each question.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use alloy_consensus::Transaction as _;
use alloy_primitives::{Address, B256, U256};
use deponent_pool::{Options, SenderState};
use execution::Transaction;

#[derive(Debug, Clone)]
pub(crate) struct Sent {
    pub(crate) transaction: Transaction,
    pub(crate) sender: Address,
    /// The accounts that it delegates.
    pub(crate) authorities: Vec<Address>,
}

#[derive(Debug, Clone)]
struct Listed {
    sent: Sent,
    turn: u64,
}

#[derive(Debug)]
pub(crate) struct SlowPool {
    pub(crate) options: Options,
    pub(crate) states: BTreeMap<Address, SenderState>,
    pub(crate) base_fee: u64,
    /// The gas limit of the head.
    gas: u64,
    list: Vec<Listed>,
    pub(crate) arrived: u64,
}

/// Hashes by sender, in the order of nonces.
pub(crate) type Lists = BTreeMap<Address, Vec<B256>>;

impl Sent {
    pub(crate) fn hash(&self) -> B256 {
        *self.transaction.tx_hash()
    }

    fn cost(&self) -> U256 {
        let fee = U256::from(self.transaction.max_fee_per_gas());
        U256::from(self.transaction.gas_limit()) * fee + self.transaction.value()
    }

    fn memory_bytes(&self) -> usize {
        let authorizations = self.transaction.authorization_list().map_or(0, <[_]>::len);
        let authorization = size_of::<alloy_eips::eip7702::SignedAuthorization>() + 20;
        1024 + self.transaction.input().len() + authorizations * authorization
    }

    fn tip(&self, base_fee: u64) -> i128 {
        let fee = self.transaction.max_fee_per_gas() as i128;
        let tip = self.transaction.max_priority_fee_per_gas().map_or(fee, |tip| tip as i128);
        tip.min(fee - i128::from(base_fee))
    }
}

impl SlowPool {
    pub(crate) fn new(
        options: Options,
        states: BTreeMap<Address, SenderState>,
        base_fee: u64,
    ) -> Self {
        Self { options, states, base_fee, gas: 0, list: Vec::new(), arrived: 0 }
    }

    pub(crate) fn add(&mut self, sent: Sent) -> Result<(), String> {
        self.admit(&sent)?;
        let (hash, sender) = (sent.hash(), sent.sender);
        let mut list = self.list.clone();
        list.retain(|old| !(old.sent.sender == sender && old.sent.nonce() == sent.nonce()));
        list.push(Listed { sent, turn: self.arrived });
        while let Some((worst, words)) = self.excess(&list, sender) {
            if worst == hash {
                return Err(words);
            }
            list.retain(|old| old.sent.hash() != worst);
        }
        self.list = list;
        self.arrived += 1;
        Ok(())
    }

    fn admit(&self, sent: &Sent) -> Result<(), String> {
        let (nonce, cost, sender) = (sent.nonce(), sent.cost(), sent.sender);
        let state = self.states[&sender];
        let pending = self.pending(&self.list, sender);
        let spent: U256 = pending.iter().map(|old| old.sent.cost()).sum();
        let same = self.of(&self.list, sender).into_iter().find(|old| old.sent.nonce() == nonce);
        let no_money = "insufficient funds for gas * price + value";
        if self.list.iter().any(|old| old.sent.hash() == sent.hash()) {
            return Err("already known".into());
        }
        if sent.transaction.gas_limit() > self.gas {
            return Err("exceeds block gas limit".into());
        }
        if nonce < state.nonce {
            return Err(format!("nonce too low: next nonce {}, tx nonce {nonce}", state.nonce));
        }
        if cost > state.balance {
            return Err(no_money.into());
        }
        let replaced = pending.iter().find(|old| old.sent.nonce() == nonce);
        let less = replaced.map_or(U256::ZERO, |old| old.sent.cost());
        if spent + cost > state.balance + less {
            return Err(no_money.into());
        }
        let delegates = |old: &Listed| old.sent.authorities.contains(&sender);
        if !state.code_hash.is_zero() || self.list.iter().any(delegates) {
            if pending.is_empty() && nonce != state.nonce {
                return Err("gapped-nonce tx from delegated accounts".into());
            }
            if !pending.is_empty() && replaced.is_none() {
                let words = "in-flight transaction limit reached for delegated accounts";
                return Err(words.into());
            }
        }
        let reserved = |authority: &Address| self.of(&self.list, *authority).len() > 1;
        if sent.authorities.iter().any(reserved) {
            return Err("authority already reserved".into());
        }
        if let Some(old) = same {
            let fees = |it: &Sent| (it.transaction.max_fee_per_gas(), it.tip(0) as u128);
            let ((fee, tip), (old_fee, old_tip)) = (fees(sent), fees(&old.sent));
            let bump = u128::from(100 + self.options.price_bump_percent);
            let enough = |new, old| new > old && new >= old * bump / 100;
            if !enough(fee, old_fee) || !enough(tip, old_tip) {
                return Err("replacement transaction underpriced".into());
            }
        }
        Ok(())
    }

    /// The hash of the transaction to evict, and the words if it is the newest one.
    fn excess(&self, list: &[Listed], sender: Address) -> Option<(B256, String)> {
        let queued = |sender| self.of(list, sender).len() - self.pending(list, sender).len();
        let last = |sender| self.of(list, sender).last().expect("it has some").sent.hash();
        if queued(sender) > self.options.account_queue {
            let words = format!("account limit exceeded: pooled {} txs", queued(sender) - 1);
            return Some((last(sender), words));
        }
        let memory_bytes: usize = list.iter().map(|old| old.sent.memory_bytes()).sum();
        if list.len() <= self.options.transactions && memory_bytes <= self.options.memory_bytes {
            return None;
        }
        let senders: BTreeSet<_> = list.iter().map(|old| old.sent.sender).collect();
        let longest = senders.iter().map(|sender| (queued(*sender), *sender)).max()?;
        if longest.0 > 0 {
            return Some((last(longest.1), "txpool is full".into()));
        }
        let worst = senders.into_iter().min_by_key(|sender| {
            let pending = self.pending(list, *sender);
            let tail = pending.last().expect("none is queued");
            let is_within = pending.len() <= self.options.account_slots;
            (is_within, tail.sent.tip(self.base_fee), Reverse(tail.turn))
        })?;
        Some((last(worst), "transaction underpriced".into()))
    }

    pub(crate) fn advance(&mut self, gas: u64, returned: Vec<Sent>) {
        self.gas = gas;
        let states = &self.states;
        self.list.retain(|old| {
            let state = states[&old.sent.sender];
            old.sent.nonce() >= state.nonce
                && old.sent.cost() <= state.balance
                && old.sent.transaction.gas_limit() <= gas
        });
        for sender in self.states.keys().copied().collect::<Vec<_>>() {
            loop {
                let own = self.of(&self.list, sender);
                let queued = own.len() - self.pending(&self.list, sender).len();
                if queued <= self.options.account_queue {
                    break;
                }
                let last = own.last().expect("it has some").sent.hash();
                self.remove(last);
            }
        }
        for sent in returned {
            let _ = self.add(sent);
        }
    }

    pub(crate) fn remove(&mut self, hash: B256) {
        self.list.retain(|old| old.sent.hash() != hash);
    }

    pub(crate) fn remove_queued(&mut self) {
        for hash in self.content().1.into_values().flatten() {
            self.remove(hash);
        }
    }

    /// All pending and all queued ones.
    pub(crate) fn content(&self) -> (Lists, Lists) {
        let mut content = (Lists::new(), Lists::new());
        for sender in self.states.keys() {
            let hashes: Vec<_> =
                self.of(&self.list, *sender).iter().map(|old| old.sent.hash()).collect();
            let (pending, queued) = hashes.split_at(self.pending(&self.list, *sender).len());
            for (lists, found) in [(&mut content.0, pending), (&mut content.1, queued)] {
                if !found.is_empty() {
                    lists.insert(*sender, found.to_vec());
                }
            }
        }
        content
    }

    pub(crate) fn next_nonce(&self, sender: Address) -> Option<u64> {
        let has_some = !self.of(&self.list, sender).is_empty();
        let pending = self.pending(&self.list, sender).len() as u64;
        has_some.then(|| self.states[&sender].nonce + pending)
    }

    /// The order of a block that leaves out a sender's rest after the transactions of `skipped`.
    pub(crate) fn best(&self, base_fee: u64, skipped: &BTreeSet<B256>) -> Vec<B256> {
        let mut rest: Vec<_> =
            self.states.keys().map(|sender| self.pending(&self.list, *sender)).collect();
        let mut order = Vec::new();
        loop {
            let next = rest
                .iter_mut()
                .filter(|list| list.first().is_some_and(|next| next.sent.tip(base_fee) >= 0))
                .max_by_key(|list| (list[0].sent.tip(base_fee), Reverse(list[0].turn)));
            let Some(list) = next else { return order };
            let hash = list.remove(0).sent.hash();
            order.push(hash);
            if skipped.contains(&hash) {
                list.clear();
            }
        }
    }

    fn of(&self, list: &[Listed], sender: Address) -> Vec<Listed> {
        let mut own: Vec<_> = list.iter().filter(|it| it.sent.sender == sender).cloned().collect();
        own.sort_by_key(|it| it.sent.nonce());
        own
    }

    fn pending(&self, list: &[Listed], sender: Address) -> Vec<Listed> {
        let (mut pending, mut spent) = (Vec::new(), U256::ZERO);
        let state = self.states[&sender];
        for (next, expected) in self.of(list, sender).into_iter().zip(state.nonce..) {
            spent += next.sent.cost();
            if next.sent.nonce() != expected || spent > state.balance {
                break;
            }
            pending.push(next);
        }
        pending
    }
}

impl Sent {
    pub(crate) fn nonce(&self) -> u64 {
        self.transaction.nonce()
    }
}
