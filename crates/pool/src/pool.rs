use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use alloy_consensus::{Header, Transaction as _};
use alloy_primitives::{Address, B256};
use execution::{ChainSpec, Transaction};
use state::Disk;

use crate::best::Best;
use crate::book::{Added, Book, Left};
use crate::check::Rules;
use crate::decode::Sent;
use crate::entry::Pooled;
use crate::error::{Refusal, RefusalKind};
use crate::head::{Head, SenderState, Senders};
use crate::log::Log;
use crate::options::Options;
use crate::sidecar::{PooledBlob, check as check_sidecar, prepare_settings, verify};

/// Signed transactions that are in no block yet.
///
/// All its functions may be called from any thread at once.
#[derive(Debug)]
pub struct Pool {
    chain: ChainSpec,
    options: Options,
    senders: Box<dyn Senders>,
    book: Mutex<Book>,
    /// Notified when transactions became pending, and by [`Self::wake`].
    told: Condvar,
    /// Locked while the book is.
    log: Option<Mutex<Log>>,
    /// How many transactions were refused, by kind.
    refused: [AtomicU64; RefusalKind::ALL.len()],
}

/// A new head, and the transactions of the blocks between it and the last one.
#[derive(Debug, Default)]
pub struct HeadChange {
    /// The header of the new head.
    pub head: Header,
    /// The hashes of the transactions of all blocks that joined the chain.
    pub included: HashSet<B256>,
    /// The transactions of the blocks that left the chain, in their order there, with the senders.
    pub returned: Vec<Returned>,
    /// The number of the finalized block, if there is one: blobs up to it are forgotten.
    pub finalized: Option<u64>,
}

/// A transaction of a block that left the chain.
#[derive(Debug, Clone)]
pub struct Returned {
    /// The transaction.
    pub transaction: Transaction,
    /// Its hash.
    pub hash: B256,
    /// Its sender.
    pub sender: Address,
}

/// How many transactions there are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Status {
    /// Those that could run now.
    pub pending: usize,
    /// Those before which there is a gap, or for which there is too little money.
    pub queued: usize,
}

/// The numbers of a pool, for operators. Those that count, count since the pool was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Figures {
    /// How many transactions there are.
    pub status: Status,
    /// Bytes of memory of the transactions.
    pub transaction_bytes: usize,
    /// Bytes of memory of their blobs, and of those of blocks that are not finalized.
    pub blob_bytes: usize,
    /// Transactions that were taken.
    pub added: u64,
    /// Transactions that were refused, by the names of kinds of reasons.
    pub refused: Vec<(&'static str, u64)>,
    /// Transactions that left for lack of room.
    pub evicted: u64,
    /// Transactions that left in favour of another with their nonce.
    pub replaced: u64,
    /// Transactions that left since they waited for too long.
    pub stale: u64,
}

/// Transactions of some senders, of each by nonce.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Content {
    /// Those that could run now.
    pub pending: BTreeMap<Address, Vec<Arc<Pooled>>>,
    /// Those before which there is a gap, or for which there is too little money.
    pub queued: BTreeMap<Address, Vec<Arc<Pooled>>>,
}

impl Pool {
    /// An empty pool of a chain, whose head has this header.
    pub fn new(
        chain: ChainSpec,
        options: Options,
        senders: Box<dyn Senders>,
        head: Header,
    ) -> Self {
        let book = Mutex::new(Book::new(Head::new(&chain, head)));
        Self {
            chain,
            options,
            senders,
            book,
            told: Condvar::new(),
            log: None,
            refused: Default::default(),
        }
    }

    /// The same with a log: what enters it is on the disk, a directory of its own, before
    /// [`Self::add`] returns, and survives the process, however it ends. The transactions that an
    /// earlier process had there come back, as far as they still could be in a block.
    ///
    /// # Errors
    /// Those of the disk, and the reason why an account could not be read.
    pub fn with_log(self, disk: impl Disk + 'static) -> Result<Self, String> {
        let (mut log, found) = Log::open(disk).map_err(|error| error.to_string())?;
        let mut book = self.book();
        let mut states = HashMap::new();
        for pooled in &found {
            let sender = pooled.sender();
            states.insert(sender, self.senders.sender(book.head.hash, sender)?);
        }
        book.restore(found, &self.options, |sender| states[&sender]);
        log.rewrite(&book).map_err(|error| error.to_string())?;
        book.changed.clear();
        drop(book);
        Ok(Self { log: Some(Mutex::new(log)), ..self })
    }

    /// Takes a transaction, if it could be in a block now or later and pays enough. The proofs of
    /// blobs are verified, 20 ms each; blob proofs are replaced by cell proofs, in a third of a
    /// second each.
    ///
    /// # Errors
    /// [`Refusal`] with the first rule that it breaks, in the order and with the words of geth.
    pub fn add(&self, sent: impl Into<Sent>) -> Result<Added, Refusal> {
        let sent = sent.into();
        let hash = *sent.transaction.tx_hash();
        self.counted(self.admit(sent, hash, None))
    }

    /// Takes a transaction without looking at its signature, as sent by `sender` and found by
    /// `hash`. All other rules hold.
    ///
    /// # Errors
    /// As [`Self::add`].
    pub fn add_unsigned(
        &self,
        transaction: Transaction,
        hash: B256,
        sender: Address,
    ) -> Result<Added, Refusal> {
        self.counted(self.admit(transaction.into(), hash, Some(sender)))
    }

    fn counted(&self, added: Result<Added, Refusal>) -> Result<Added, Refusal> {
        if let Err(refusal) = &added {
            self.refused[refusal.kind() as usize].fetch_add(1, Ordering::Relaxed);
        }
        added
    }

    fn admit(
        &self,
        Sent { transaction, sidecar }: Sent,
        hash: B256,
        sender: Option<Address>,
    ) -> Result<Added, Refusal> {
        let head = {
            let book = self.book();
            if book.by_hash.contains_key(&hash) {
                return Err(Refusal::AlreadyKnown);
            }
            book.head.clone()
        };
        // Signatures are recovered, and accounts are read, while others have the lock.
        let rules = self.rules(head);
        let mut pooled = rules.check(transaction, hash, sender)?;
        let (sender, mut head) = (pooled.sender(), rules.head);
        if let Some(hashes) = pooled.transaction().blob_versioned_hashes() {
            let sidecar = sidecar.ok_or(Refusal::MissingSidecar)?;
            check_sidecar(hashes, &sidecar)?;
            // Nobody has proofs verified for free.
            let state = self.senders.sender(head.hash, sender).map_err(Refusal::Unreadable)?;
            state.check(&pooled)?;
            pooled = pooled.with_sidecar(Some(verify(sidecar)?));
        }
        loop {
            let read = self.senders.sender(head.hash, sender);
            let mut book = self.book();
            if Arc::ptr_eq(&book.head, &head) {
                let state = read.map_err(Refusal::Unreadable)?;
                let added = book.add(pooled, state, &self.options);
                if added.is_err() {
                    // All that came and left is as before.
                    book.changed.clear();
                    return added;
                }
                if let Err(error) = self.note(&mut book) {
                    book.remove(hash, &self.options);
                    return Err(Refusal::Unwritable(error));
                }
                self.told.notify_all();
                return added;
            }
            head = book.head.clone();
        }
    }

    /// Makes another block the head. The transactions that the chain includes now leave, those of
    /// blocks that left it come back, and all are pending or queued by the accounts at the new
    /// head. With the head as it was, it reads all accounts anew.
    ///
    /// # Errors
    /// The reason why an account could not be read; the pool stays at the head that it had.
    pub fn head_changed(&self, change: HeadChange) -> Result<(), String> {
        let HeadChange { head, included, returned, finalized } = change;
        if head.blob_gas_used.is_some_and(|gas| gas > 0) {
            prepare_settings();
        }
        let head = Arc::new(Head::new(&self.chain, head));
        let rules = self.rules(head.clone());
        let returned = returned.into_iter().filter(|it| !included.contains(&it.hash));
        // A refused one was good for the block that left, and is not for the pool.
        let checked =
            returned.filter_map(|it| rules.check(it.transaction, it.hash, Some(it.sender)).ok());
        let returned: Vec<_> = checked.collect();
        let mut states = HashMap::new();
        let mut read = |sender| {
            states.insert(sender, self.senders.sender(head.hash, sender)?);
            Ok::<_, String>(())
        };
        let known: Vec<_> = self.book().accounts.keys().copied().collect();
        known.into_iter().try_for_each(&mut read)?;
        returned.iter().map(Pooled::sender).try_for_each(&mut read)?;
        let mut book = self.book();
        // Senders that came in the meantime.
        let missing = book.accounts.keys().filter(|sender| !states.contains_key(*sender));
        let missing: Vec<_> = missing.copied().collect();
        for sender in missing {
            states.insert(sender, self.senders.sender(head.hash, sender)?);
        }
        book.advance(head, &included, &self.options, |sender| states[&sender]);
        for pooled in returned {
            let state = states[&pooled.sender()];
            let sidecar = book.sidecars.of(&pooled.hash());
            if pooled.has_blobs() && sidecar.is_none() {
                continue;
            }
            let pooled = pooled.with_sidecar(sidecar);
            let _ = book.add(pooled, state, &self.options);
        }
        if let Some(number) = finalized {
            book.sidecars.finalize(number);
        }
        // A record that is missing here brings back a transaction whose nonce is used.
        let _ = self.note(&mut book);
        self.told.notify_all();
        Ok(())
    }

    /// The hash of the head that the pool is right for.
    pub fn head(&self) -> B256 {
        self.book().head.hash
    }

    /// The base fee of the block after the head, in wei of gas; zero before London.
    pub fn next_base_fee(&self) -> u64 {
        self.book().head.base_fee
    }

    /// The pending transactions in the order in which a block with this base fee, in wei of gas,
    /// takes them. It takes time and memory in proportion to their number.
    pub fn best(&self, base_fee: u64) -> Best {
        Best::new(&self.book(), base_fee)
    }

    /// The transaction with this hash.
    pub fn transaction(&self, hash: B256) -> Option<Arc<Pooled>> {
        self.book().by_hash.get(&hash).cloned()
    }

    /// The transaction with this sender and nonce.
    pub fn transaction_of(&self, sender: Address, nonce: u64) -> Option<Arc<Pooled>> {
        let book = self.book();
        let entry = book.accounts.get(&sender)?.entries.get(&nonce)?;
        Some(entry.pooled.clone())
    }

    /// The nonce after a sender's last pending transaction; `None` if the pool has none of it, so
    /// that its account at the head says it.
    pub fn next_nonce(&self, sender: Address) -> Option<u64> {
        self.book().accounts.get(&sender).map(|account| account.next_nonce())
    }

    /// The blobs with these versioned hashes, in their order: of transactions in the pool, and of
    /// those in blocks that are not finalized.
    pub fn blobs(&self, hashes: &[B256]) -> Vec<Option<PooledBlob>> {
        self.book().sidecars.blobs(hashes)
    }

    /// How many transactions there are.
    pub fn status(&self) -> Status {
        let book = self.book();
        Status { pending: book.pending, queued: book.by_hash.len() - book.pending }
    }

    /// The numbers for operators.
    pub fn figures(&self) -> Figures {
        let kinds = RefusalKind::ALL.iter().zip(&self.refused);
        let refused = kinds.map(|((_, name), count)| (*name, count.load(Ordering::Relaxed)));
        let book = self.book();
        let [transaction_bytes, blob_bytes] = book.bytes();
        let Left { evicted, replaced, stale } = book.left;
        Figures {
            status: Status { pending: book.pending, queued: book.by_hash.len() - book.pending },
            transaction_bytes,
            blob_bytes,
            added: book.arrived,
            refused: refused.collect(),
            evicted,
            replaced,
            stale,
        }
    }

    /// How many transactions were taken since the pool was made: it says whether there are new
    /// ones.
    pub fn arrived(&self) -> u64 {
        self.book().arrived
    }

    /// How many times a transaction became pending since the pool was made.
    pub fn pending_count(&self) -> u64 {
        self.book().became_pending.count()
    }

    /// The hashes of the transactions that became pending, in that order, from the `from`-th of
    /// [all](Self::pending_count) on, at most `most`. Some of them may have left the pool. `None`
    /// where some are forgotten: the newest 65,536 are kept.
    pub fn became_pending(&self, from: u64, most: usize) -> Option<Vec<B256>> {
        self.book().became_pending.since(from, most)
    }

    /// Waits until more than `count` transactions [became pending](Self::pending_count), for such
    /// a time at most, or until [`wake`](Self::wake) is called.
    pub fn wait_for_pending(&self, count: u64, time: Duration) {
        let book = self.book();
        if book.became_pending.count() <= count {
            drop(self.told.wait_timeout(book, time));
        }
    }

    /// Ends the waiting of those who wait.
    pub fn wake(&self) {
        drop(self.book());
        self.told.notify_all();
    }

    /// All transactions.
    pub fn content(&self) -> Content {
        let book = self.book();
        let mut content = Content::default();
        for (sender, account) in &book.accounts {
            content.insert(*sender, account.lists());
        }
        content
    }

    /// The transactions of one sender.
    pub fn content_from(&self, sender: Address) -> Content {
        let mut content = Content::default();
        if let Some(account) = self.book().accounts.get(&sender) {
            content.insert(sender, account.lists());
        }
        content
    }

    /// Removes a transaction, if it is there; later ones of its sender are queued then.
    pub fn remove(&self, hash: B256) -> Option<Arc<Pooled>> {
        let mut book = self.book();
        let removed = book.remove(hash, &self.options);
        let _ = self.note(&mut book);
        removed
    }

    /// Removes the queued transactions of senders that sent nothing for the lifetime of the
    /// options, and says how many. It is to be called now and then, as at new heads.
    pub fn remove_stale(&self) -> usize {
        let Some(then) = Instant::now().checked_sub(self.options.lifetime) else { return 0 };
        let mut book = self.book();
        let count = book.remove_stale(then, &self.options);
        let _ = self.note(&mut book);
        count
    }

    /// Writes to the log what has changed, if there is one.
    fn note(&self, book: &mut Book) -> Result<(), String> {
        let changed = std::mem::take(&mut book.changed);
        let Some(log) = &self.log else { return Ok(()) };
        let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
        log.note(book, &changed).map_err(|error| error.to_string())
    }

    fn rules(&self, head: Arc<Head>) -> Rules<'_> {
        Rules { chain: &self.chain, head, minimum_tip: self.options.minimum_tip }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        // No function panics between two changes that belong together.
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Content {
    fn insert(&mut self, sender: Address, lists: [Vec<Arc<Pooled>>; 2]) {
        for (content, list) in [&mut self.pending, &mut self.queued].into_iter().zip(lists) {
            if !list.is_empty() {
                content.insert(sender, list);
            }
        }
    }
}

/// Accounts by address, for tests and for chains that begin.
impl Senders for HashMap<Address, SenderState> {
    fn sender(&self, _: B256, address: Address) -> Result<SenderState, String> {
        Ok(self.get(&address).copied().unwrap_or_default())
    }
}
