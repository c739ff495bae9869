//! All entries, and the order in which they are evicted.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use alloy_consensus::Transaction as _;
use alloy_primitives::{Address, B256, U256};

use crate::account::Account;
use crate::became_pending::BecamePending;
use crate::check::Rules;
use crate::entry::{Entry, Pooled, Worth};
use crate::error::Refusal;
use crate::head::{Head, SenderState};
use crate::options::Options;
use crate::sidecars::Sidecars;

/// The place of a sender's last pending entry in the order of eviction, the worst first: those of
/// senders with more than their slots, then by worth.
type Tail = (bool, Worth, Address);

/// How many entries left without a block so far.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Left {
    /// For lack of room.
    pub(crate) evicted: u64,
    /// In favour of another with their nonce.
    pub(crate) replaced: u64,
    /// Since they waited for too long.
    pub(crate) stale: u64,
}

/// Where a sender stands in the orders of eviction.
#[derive(Debug, Default)]
struct Place {
    pending: usize,
    queued: usize,
    tail: Option<Tail>,
}

/// The entries by sender and by hash.
#[derive(Debug)]
pub(crate) struct Book {
    pub(crate) head: Arc<Head>,
    pub(crate) accounts: HashMap<Address, Account>,
    pub(crate) by_hash: HashMap<B256, Arc<Pooled>>,
    /// How many entries delegate an account.
    authorities: HashMap<Address, usize>,
    places: HashMap<Address, Place>,
    /// Senders with queued entries, by the number of those.
    queues: BTreeSet<(usize, Address)>,
    tails: BTreeSet<Tail>,
    pub(crate) pending: usize,
    memory_bytes: usize,
    pub(crate) sidecars: Sidecars,
    /// How many entries arrived so far.
    pub(crate) arrived: u64,
    pub(crate) left: Left,
    pub(crate) became_pending: BecamePending,
    /// The hashes of entries that came or left since they were last taken from here.
    pub(crate) changed: Vec<B256>,
}

/// How a transaction was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Added {
    /// Its hash.
    pub hash: B256,
    /// Whether it could run now; else there is a gap before it, or too little money.
    pub is_pending: bool,
    /// The transaction that it replaced.
    pub replaced: Option<B256>,
}

impl Book {
    pub(crate) fn new(head: Head) -> Self {
        Self {
            head: Arc::new(head),
            accounts: HashMap::new(),
            by_hash: HashMap::new(),
            authorities: HashMap::new(),
            places: HashMap::new(),
            queues: BTreeSet::new(),
            tails: BTreeSet::new(),
            pending: 0,
            memory_bytes: 0,
            sidecars: Sidecars::default(),
            arrived: 0,
            left: Left::default(),
            became_pending: BecamePending::default(),
            changed: Vec::new(),
        }
    }

    /// Takes a checked transaction, if the rules of its sender, the entry with its nonce and the
    /// room allow it. `state` is the sender's account at this head.
    pub(crate) fn add(
        &mut self,
        pooled: Pooled,
        state: SenderState,
        options: &Options,
    ) -> Result<Added, Refusal> {
        let (hash, sender, nonce) = (pooled.hash(), pooled.sender(), pooled.nonce());
        if self.by_hash.contains_key(&hash) {
            return Err(Refusal::AlreadyKnown);
        }
        let now = pooled.arrived();
        let new = || Account::new(state, now);
        let account = self.accounts.entry(sender).or_insert_with(new);
        let checked = account.check(&pooled);
        let replaces = account.entries.get(&nonce).map(|entry| entry.pooled.clone());
        let checked = checked
            .and_then(|()| self.check_delegations(&pooled))
            .and_then(|()| replaces.as_ref().map_or(Ok(()), |old| outbids(&pooled, old, options)));
        let turn = self.arrived;
        let entry = Entry { pooled: Arc::new(pooled), turn, was_pending: false };
        if let Err(refusal) = checked.and_then(|()| self.place(entry, options)) {
            self.forget_if_empty(sender);
            return Err(refusal);
        }
        self.arrived += 1;
        let account = self.accounts.get_mut(&sender).expect("it has the new entry");
        account.last_sent = now;
        let (is_pending, replaced) = (account.is_pending(nonce), replaces.map(|old| old.hash()));
        self.note_pending(sender);
        Ok(Added { hash, is_pending, replaced })
    }

    /// Puts an entry in, and evicts what there is no room for. Where that would be the entry
    /// itself, all is as before.
    fn place(&mut self, entry: Entry, options: &Options) -> Result<(), Refusal> {
        let (hash, sender, nonce) =
            (entry.pooled.hash(), entry.pooled.sender(), entry.pooled.nonce());
        let mut gone: Vec<_> = self.take(sender, nonce).into_iter().collect();
        let replaced = gone.len();
        self.put(entry);
        self.settle(sender, options);
        self.sidecars.forget_included(options.sidecar_bytes);
        let refusal = loop {
            let Some((owner, worst)) = self.excess(sender, options) else {
                gone.iter().for_each(|entry| self.forget_if_empty(entry.pooled.sender()));
                self.left.replaced += replaced as u64;
                self.left.evicted += (gone.len() - replaced) as u64;
                return Ok(());
            };
            let account = &self.accounts[&owner];
            let (queued, is_pending) = (account.queued(), account.is_pending(worst));
            let evicted = self.take(owner, worst).expect("it was found there");
            self.settle(owner, options);
            if evicted.pooled.hash() != hash {
                gone.push(evicted);
                continue;
            }
            break match is_pending {
                true => Refusal::Underpriced,
                false if queued > options.account_queue => Refusal::AccountLimit(queued - 1),
                false => Refusal::Full,
            };
        };
        for entry in gone {
            let owner = entry.pooled.sender();
            self.put(entry);
            self.settle(owner, options);
        }
        Err(refusal)
    }

    /// The entry to evict next, as sender and nonce; `None` where there is room. `sender` is the
    /// one whose queue may be too long.
    fn excess(&self, sender: Address, options: &Options) -> Option<(Address, u64)> {
        let last = |address: &Address| {
            let nonce = self.accounts[address].entries.last_key_value()?.0;
            Some((*address, *nonce))
        };
        if self.accounts.get(&sender).is_some_and(|found| found.queued() > options.account_queue) {
            return last(&sender);
        }
        if self.sidecars.bytes() > options.sidecar_bytes {
            // There are few: each has a hundred kilobytes.
            let with_blobs = self.accounts.iter().filter(|(_, it)| it.has_blobs() == Some(true));
            let worst = with_blobs
                .filter_map(|(address, it)| Some((it.tail()?.worth(self.head.base_fee), address)));
            return last(worst.min().map(|(_, address)| address)?);
        }
        let is_full = self.by_hash.len() > options.transactions;
        if !is_full && self.memory_bytes <= options.memory_bytes {
            return None;
        }
        // Without queued entries the last one of a sender is its last pending one.
        let queue = self.queues.last().map(|(_, address)| address);
        last(queue.or_else(|| self.tails.first().map(|(.., address)| address))?)
    }

    /// Makes a new head the pool's. `state` is a sender's account at it; sidecars of `included`
    /// transactions stay until they are final.
    pub(crate) fn advance(
        &mut self,
        head: Arc<Head>,
        included: &HashSet<B256>,
        options: &Options,
        state: impl Fn(Address) -> SenderState,
    ) {
        let number = head.header.number;
        let gas = Rules::gas_cap(&head).min(head.header.gas_limit);
        self.head = head;
        let senders: Vec<_> = self.accounts.keys().copied().collect();
        for sender in senders {
            let account = self.accounts.get_mut(&sender).expect("of the list");
            account.state = state(sender);
            let SenderState { nonce, balance, .. } = account.state;
            let is_over = |entry: &Entry| {
                let pooled = &entry.pooled;
                let costs_too_much = pooled.cost() > balance;
                pooled.nonce() < nonce || costs_too_much || pooled.transaction().gas_limit() > gas
            };
            let over = account.entries.iter().filter(|(_, entry)| is_over(entry));
            let over: Vec<_> = over.map(|(nonce, _)| *nonce).collect();
            for nonce in over {
                let Some(Entry { pooled, .. }) = self.take(sender, nonce) else { continue };
                if let Some(sidecar) =
                    pooled.sidecar().filter(|_| included.contains(&pooled.hash()))
                {
                    self.sidecars.include(pooled.hash(), sidecar.clone(), number);
                }
            }
            self.settle(sender, options);
            // There are no gaps before transactions with blobs.
            while self
                .accounts
                .get(&sender)
                .is_some_and(|it| it.has_blobs() == Some(true) && it.queued() > 0)
            {
                self.take_last(sender);
                self.settle(sender, options);
            }
            while self.accounts.get(&sender).is_some_and(|it| it.queued() > options.account_queue) {
                self.take_last(sender);
                self.settle(sender, options);
            }
            self.note_pending(sender);
            self.forget_if_empty(sender);
        }
    }

    /// Notes which entries of a sender are pending for the first time.
    fn note_pending(&mut self, sender: Address) {
        let Some(account) = self.accounts.get_mut(&sender) else { return };
        let pending = account.entries.values_mut().take(account.pending);
        for entry in pending.filter(|entry| !entry.was_pending) {
            entry.was_pending = true;
            self.became_pending.push(entry.pooled.hash());
        }
    }

    /// Puts entries back that an earlier process had, in the order in which they arrived, as far as
    /// the accounts at the head and the room allow it. `state` is a sender's account.
    pub(crate) fn restore(
        &mut self,
        found: Vec<Pooled>,
        options: &Options,
        state: impl Fn(Address) -> SenderState,
    ) {
        for pooled in found {
            let (sender, nonce) = (pooled.sender(), pooled.nonce());
            let new = || Account::new(state(sender), pooled.arrived());
            self.accounts.entry(sender).or_insert_with(new);
            self.take(sender, nonce);
            let turn = self.arrived;
            self.put(Entry { pooled: Arc::new(pooled), turn, was_pending: false });
            self.arrived += 1;
        }
        self.advance(self.head.clone(), &HashSet::new(), options, state);
        while let Some((sender, nonce)) = self.excess(Address::ZERO, options) {
            self.take(sender, nonce);
            self.settle(sender, options);
            self.forget_if_empty(sender);
        }
    }

    /// Removes an entry, and leaves the sender's later ones queued.
    pub(crate) fn remove(&mut self, hash: B256, options: &Options) -> Option<Arc<Pooled>> {
        let found = self.by_hash.get(&hash)?.clone();
        self.take(found.sender(), found.nonce());
        self.settle(found.sender(), options);
        self.forget_if_empty(found.sender());
        Some(found)
    }

    /// Removes the queued entries of senders that sent nothing since `then`, and says how many.
    pub(crate) fn remove_stale(&mut self, then: Instant, options: &Options) -> usize {
        let stale = self.queues.iter().map(|(_, sender)| *sender);
        let stale = stale.filter(|sender| self.accounts[sender].last_sent <= then);
        let stale: Vec<_> = stale.collect();
        let before = self.by_hash.len();
        for sender in stale {
            for _ in 0..self.accounts[&sender].queued() {
                self.take_last(sender);
            }
            self.settle(sender, options);
            self.forget_if_empty(sender);
        }
        let stale = before - self.by_hash.len();
        self.left.stale += stale as u64;
        stale
    }

    /// Bytes of memory of transactions, and of sidecars.
    pub(crate) const fn bytes(&self) -> [usize; 2] {
        [self.memory_bytes, self.sidecars.bytes()]
    }

    fn take_last(&mut self, sender: Address) {
        let last = self.accounts[&sender].entries.last_key_value().map(|(nonce, _)| *nonce);
        last.and_then(|nonce| self.take(sender, nonce));
    }

    fn put(&mut self, entry: Entry) {
        let pooled = &entry.pooled;
        for authority in pooled.authorities() {
            *self.authorities.entry(*authority).or_default() += 1;
        }
        self.memory_bytes += pooled.memory_bytes();
        if let Some(sidecar) = pooled.sidecar() {
            self.sidecars.put(pooled.hash(), sidecar.clone());
        }
        self.by_hash.insert(pooled.hash(), pooled.clone());
        self.changed.push(pooled.hash());
        let account = self.accounts.get_mut(&pooled.sender()).expect("made before its entries");
        account.entries.insert(pooled.nonce(), entry);
    }

    /// Takes an entry out of all but the orders of eviction, which [`Self::settle`] puts right.
    fn take(&mut self, sender: Address, nonce: u64) -> Option<Entry> {
        let entry = self.accounts.get_mut(&sender)?.entries.remove(&nonce)?;
        for authority in entry.pooled.authorities() {
            let count = self.authorities.get_mut(authority).expect("counted");
            *count -= 1;
            if *count == 0 {
                self.authorities.remove(authority);
            }
        }
        self.memory_bytes -= entry.pooled.memory_bytes();
        self.sidecars.take(&entry.pooled.hash());
        self.by_hash.remove(&entry.pooled.hash());
        self.changed.push(entry.pooled.hash());
        Some(entry)
    }

    /// Divides a sender's entries anew and puts it where it belongs in the orders of eviction.
    fn settle(&mut self, sender: Address, options: &Options) {
        if let Some(place) = self.places.remove(&sender) {
            self.pending -= place.pending;
            self.queues.remove(&(place.queued, sender));
            place.tail.map(|tail| self.tails.remove(&tail));
        }
        let Some(account) = self.accounts.get_mut(&sender) else { return };
        account.settle();
        let (pending, queued) = (account.pending, account.queued());
        let is_within = pending <= options.account_slots;
        let worth = account.tail().map(|entry| entry.worth(self.head.base_fee));
        let tail = worth.map(|worth| (is_within, worth, sender));
        self.tails.extend(tail);
        if queued > 0 {
            self.queues.insert((queued, sender));
        }
        self.pending += pending;
        self.places.insert(sender, Place { pending, queued, tail });
    }

    fn forget_if_empty(&mut self, sender: Address) {
        if self.accounts.get(&sender).is_some_and(|account| account.entries.is_empty()) {
            self.accounts.remove(&sender);
            self.places.remove(&sender);
        }
    }

    /// Checks the rules for delegated accounts (EIP-7702), as geth does (`validateAuth`): their
    /// money can leave without a transaction of theirs, so that each may have one only.
    fn check_delegations(&self, pooled: &Pooled) -> Result<(), Refusal> {
        let (sender, nonce) = (pooled.sender(), pooled.nonce());
        let account = &self.accounts[&sender];
        if account.state.has_code() || self.authorities.contains_key(&sender) {
            if account.pending == 0 && nonce != account.state.nonce {
                return Err(Refusal::DelegatedGap);
            }
            if account.pending > 0 && !account.is_pending(nonce) {
                return Err(Refusal::DelegatedLimit);
            }
        }
        let is_reserved = |authority: &Address| {
            let account = self.accounts.get(authority);
            account.is_some_and(|it| it.entries.len() > 1 || it.has_blobs() == Some(true))
        };
        if pooled.authorities().iter().any(is_reserved) {
            return Err(Refusal::AuthorityReserved);
        }
        Ok(())
    }
}

/// Checks that a transaction pays enough more than the one with its nonce (`list.Add` of geth's
/// legacy pool, `validateTx` of its blob pool).
fn outbids(new: &Pooled, old: &Pooled, options: &Options) -> Result<(), Refusal> {
    let fees = |pooled: &Pooled| {
        let fee = pooled.transaction().max_fee_per_gas();
        let tip = pooled.transaction().max_priority_fee_per_gas().unwrap_or(fee);
        let blobs = pooled.transaction().max_fee_per_blob_gas();
        [("gas fee cap", Some(fee)), ("gas tip cap", Some(tip)), ("blob gas fee cap", blobs)]
    };
    // Both have blobs or none has.
    let fees = fees(new).into_iter().zip(fees(old));
    let fees = fees.filter_map(|((name, new), (_, old))| Some((name, new?, old?)));
    let percent = match new.has_blobs() {
        true => options.blob_price_bump_percent,
        false => options.price_bump_percent,
    };
    let least = |old| U256::from(old) * U256::from(100 + percent) / U256::from(100);
    let same = fees.clone().find(|(_, new, old)| new <= old);
    let fault = match same {
        Some((name, new, old)) => Some(format!("new tx {name} {new} <= {old} queued")),
        None => fees.clone().find(|(_, new, old)| U256::from(*new) < least(*old)).map(
            |(name, new, old)| {
                format!("new tx {name} {new} < {old} queued + {percent}% replacement penalty")
            },
        ),
    };
    match fault {
        Some(fault) if new.has_blobs() => Err(Refusal::BlobReplacementUnderpriced(fault)),
        Some(_) => Err(Refusal::ReplacementUnderpriced),
        None => Ok(()),
    }
}
