//! Transactions that run ahead of their turn on other threads. Of a block that came with an access
//! list (EIP-7928) what the list names is read once, by whoever needs it first.

use crate::block::live::{self, Known, Reads};
use crate::chain::record::BlockRecord;
use crate::limits;
use crate::read::ancestors::Ancestors;
use crate::read::remembered::Reader;
use crate::read::version as state_view;
use crate::shared::Core;
use alloy_primitives::map::{AddressMap, Entry, HashMap};
use alloy_primitives::{Address, B256, Bytes, U256};
use execution::{AccessList, AheadExecutor, AheadOutcome, AheadOutcomes, CommittedChanges};
use state::NodeStore;
use std::cell::Cell;
use std::cmp::Reverse;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, RwLock};
use trie::EMPTY_ROOT_HASH;
use trie::versioned::{SlotRead, Version};
use witness::{Account, Code, State, StateError};

/// What a list names, as the block's parent has it.
#[derive(Debug)]
pub(crate) struct Listed {
    pub(crate) list: AccessList,
    nodes: NodeStore,
    version: Version,
    accounts: Vec<OnceLock<Known>>,
    slots: Vec<OnceLock<U256>>,
}

impl Listed {
    pub(crate) fn new(list: AccessList, nodes: NodeStore, version: Version) -> Self {
        let accounts = list.accounts().iter().map(|_| OnceLock::new()).collect();
        let slots = (0..list.slots_count()).map(|_| OnceLock::new()).collect();
        Self { list, nodes, version, accounts, slots }
    }

    /// An account that the list names, `None` if it does not.
    pub(crate) fn account(&self, address: Address) -> Result<Option<Known>, StateError> {
        let Some(place) = self.list.place(&address) else { return Ok(None) };
        if let Some(known) = self.accounts[place].get() {
            return Ok(Some(*known));
        }
        // Another thread may read it too, and finds the same.
        let known = live::read_account(&self.nodes, &self.version, address)?;
        Ok(Some(*self.accounts[place].get_or_init(|| known)))
    }

    /// Where a slot is among those that the list names, and its value; `None` if it is not named.
    pub(crate) fn slot(
        &self,
        address: Address,
        known: &Known,
        slot: U256,
    ) -> Result<Option<(usize, U256)>, StateError> {
        let account = self.list.place(&address).map(|place| &self.list.accounts()[place]);
        let Some(place) = account.and_then(|account| account.slot_place(&slot)) else {
            return Ok(None);
        };
        if let Some(value) = self.slots[place].get() {
            return Ok(Some((place, *value)));
        }
        let value = live::read_slot(&self.nodes, known, slot)?;
        Ok(Some((place, *self.slots[place].get_or_init(|| value))))
    }

    /// How many slots the list names of accounts with storage, when all accounts have been asked
    /// for.
    pub(crate) fn slots_with_paths(&self) -> Option<usize> {
        let mut count = 0;
        for (known, listed) in self.accounts.iter().zip(self.list.accounts()) {
            let has_storage = |account: Account| account.storage_root != EMPTY_ROOT_HASH;
            if known.get()?.account.is_some_and(has_storage) {
                count += listed.slots().len();
            }
        }
        Some(count)
    }
}

/// What the block's thread and those that run transactions ahead of it tell each other, of a block
/// without a list.
#[derive(Debug, Default)]
pub(crate) struct Guess {
    /// What the block's thread has come to.
    pub(crate) so_far: CommittedChanges,
    /// What the others have read.
    pub(crate) found: Found,
}

/// What threads have read of the state after the parent.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// In parts, so that threads seldom wait for each other.
    parts: [RwLock<Part>; FOUND_PARTS],
}

#[derive(Debug, Default)]
struct Part {
    accounts: AddressMap<Known>,
    /// With the slots' hashes.
    slots: HashMap<(Address, U256), (B256, SlotRead)>,
}

/// As many as an array with a default has.
const FOUND_PARTS: usize = 32;

impl Found {
    /// An account, if it was read.
    pub(crate) fn account(&self, address: &Address) -> Option<Known> {
        let part = self.part(address, U256::ZERO).read().expect(NO_PANIC);
        part.accounts.get(address).copied()
    }

    fn put_account(&self, address: Address, known: Known) {
        let mut part = self.part(&address, U256::ZERO).write().expect(NO_PANIC);
        part.accounts.insert(address, known);
    }

    /// The hash of a slot, and what was read of it, if it was.
    pub(crate) fn slot(&self, owner: Address, slot: U256) -> Option<(B256, SlotRead)> {
        let part = self.part(&owner, slot).read().expect(NO_PANIC);
        part.slots.get(&(owner, slot)).copied()
    }

    fn put_slot(&self, owner: Address, slot: U256, found: (B256, SlotRead)) {
        let mut part = self.part(&owner, slot).write().expect(NO_PANIC);
        part.slots.insert((owner, slot), found);
    }

    /// Where it is, by the last bytes of both. That somebody puts much into one part costs time.
    fn part(&self, owner: &Address, slot: U256) -> &RwLock<Part> {
        &self.parts[usize::from(owner[19] ^ slot.byte(0)) % FOUND_PARTS]
    }
}

/// Who runs which transaction of a block.
///
/// The block's own thread takes them in order, and runs each that nobody has begun; other threads
/// run them ahead.
#[derive(Debug)]
pub(crate) struct Schedule {
    left: Mutex<Left>,
    /// The transaction whose turn it is.
    turn: AtomicUsize,
    /// Gas that may still be burned ahead.
    gas_left: AtomicU64,
    ran: Vec<OnceLock<Mutex<Option<AheadOutcome>>>>,
}

/// Which transactions run ahead first. In both orders some long ones come before all others.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Order {
    /// The last one: the threads go backwards until the block meets them. So everybody is busy to
    /// the end, and nobody waits for more than one transaction. So many long ones are first, at
    /// most: the block waits for the one that it meets, and that may be the longest.
    Last(usize),
    /// The next one, at most so many before its turn, so that it finds what most of those before it
    /// have changed.
    Next(usize),
}

/// A transaction that may run ahead, once it is the turn of that one.
#[derive(Debug, Clone, Copy)]
struct Next {
    index: usize,
    from_turn: usize,
}

/// What is left to begin with.
#[derive(Debug)]
struct Left {
    /// In the order in which they run ahead, the first at the end; some have begun.
    queue: Vec<Next>,
    has_begun: Vec<bool>,
}

impl Schedule {
    /// For transactions with these gas limits. No more are begun when they have burned `most_gas`:
    /// one that finds something else than in its turn may burn all that it is allowed, while its
    /// turn waits for it, and what comes of each is kept until then.
    pub(crate) fn new(gas_limits: &[u64], order: Order, most_gas: u64) -> Self {
        let count = gas_limits.len();
        let mut queue: Vec<_> = (0..count).map(|index| Next { index, from_turn: 0 }).collect();
        let most_long = match order {
            Order::Last(most_long) => most_long,
            Order::Next(most) => {
                for next in &mut queue {
                    next.from_turn = (next.index + 1).saturating_sub(most);
                }
                queue.reverse();
                limits::LONG_TRANSACTIONS
            }
        };
        let is_long = |index: &usize| gas_limits[*index] >= limits::LONG_GAS;
        let mut long: Vec<_> = (0..count).filter(is_long).collect();
        long.sort_by_key(|index| (gas_limits[*index], Reverse(*index)));
        long.drain(..long.len().saturating_sub(most_long));
        // Where they come up again they have begun.
        queue.extend(long.into_iter().map(|index| Next { index, from_turn: 0 }));
        let left = Left { queue, has_begun: vec![false; count] };
        let ran = gas_limits.iter().map(|_| OnceLock::new()).collect();
        let (turn, gas_left) = (AtomicUsize::new(0), most_gas.into());
        Self { left: left.into(), turn, gas_left, ran }
    }

    /// Runs transactions ahead on this thread, as long as there are any.
    pub(crate) fn help(&self, of: &AheadExecutor<'_>, state: ParentState<'_>) {
        let begun = Begun { schedule: self, index: Cell::new(None) };
        let next = || {
            begun.index.set(self.next());
            begun.index.get()
        };
        of.run(state, next, |index, ran, gas_used| {
            begun.index.set(None);
            self.burned(gas_used);
            self.put(index, ran);
        });
    }

    /// Takes the transaction that is to run ahead now.
    fn next(&self) -> Option<usize> {
        loop {
            if self.gas_left.load(Ordering::Relaxed) == 0 {
                return None;
            }
            let mut left = self.left();
            let Left { queue, has_begun } = &mut *left;
            let Next { index, from_turn } = *queue.last()?;
            if has_begun[index] {
                queue.pop();
            } else if from_turn <= self.turn.load(Ordering::Relaxed) {
                queue.pop();
                has_begun[index] = true;
                return Some(index);
            } else {
                drop(left);
                std::thread::sleep(limits::AHEAD_PAUSE);
            }
        }
    }

    fn burned(&self, gas: u64) {
        let relaxed = Ordering::Relaxed;
        let _ = self.gas_left.fetch_update(relaxed, relaxed, |left| Some(left.saturating_sub(gas)));
    }

    /// No more transactions are begun once this is dropped, also when the block's thread panics:
    /// who is too far ahead would wait for it.
    pub(crate) fn stopping(&self) -> Stopping<'_> {
        Stopping(self)
    }

    fn left(&self) -> MutexGuard<'_, Left> {
        self.left.lock().expect(NO_PANIC)
    }

    fn put(&self, index: usize, ran: Option<AheadOutcome>) {
        self.ran[index].set(Mutex::new(ran)).expect("a transaction is begun once");
    }
}

impl AheadOutcomes for Schedule {
    fn take(&self, index: usize) -> Option<AheadOutcome> {
        self.turn.store(index, Ordering::Relaxed);
        if !std::mem::replace(&mut self.left().has_begun[index], true) {
            return None;
        }
        // Mostly it is a matter of microseconds.
        for _ in 0..limits::LOOKS_AHEAD {
            if self.ran[index].get().is_some() {
                break;
            }
            std::hint::spin_loop();
        }
        self.ran[index].wait().lock().expect(NO_PANIC).take()
    }
}

/// See [`Schedule::stopping`].
#[derive(Debug)]
pub(crate) struct Stopping<'a>(&'a Schedule);

impl Drop for Stopping<'_> {
    fn drop(&mut self) {
        self.0.left().queue.clear();
    }
}

/// A transaction that a thread has begun. If the thread ends by a bug, nobody waits for it.
struct Begun<'a> {
    schedule: &'a Schedule,
    index: Cell<Option<usize>>,
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        if let Some(index) = self.index.get() {
            self.schedule.put(index, None);
        }
    }
}

/// The state after the parent, as a thread reads it that is ahead of the block.
#[derive(Debug)]
pub(crate) struct ParentState<'a> {
    core: &'a Core,
    version: Version,
    listed: Option<&'a Listed>,
    /// What threads have found, and how this one reads for all of them.
    found: Option<(&'a Found, Reads<'a>)>,
    /// Accounts that no list names, and nobody else looks for.
    accounts: AddressMap<Known>,
    ancestors: Ancestors<'a>,
    /// Set when nothing that is read is of use any more.
    is_over: Option<&'a AtomicBool>,
}

impl<'a> ParentState<'a> {
    pub(crate) fn new(
        core: &'a Core,
        parent: Arc<BlockRecord>,
        version: Version,
        listed: Option<&'a Listed>,
    ) -> Self {
        let ancestors = Ancestors::new(core, parent);
        let accounts = AddressMap::default();
        Self { core, version, listed, found: None, accounts, ancestors, is_over: None }
    }

    /// Shares what is read with other threads, and does not read what these have found.
    pub(crate) fn sharing(self, found: Option<&'a Found>) -> Self {
        let reads = || Reads::new(self.core, self.version, Reader::Ahead);
        Self { found: found.map(|found| (found, reads())), ..self }
    }

    /// Has reads fail once `is_over` is set, so that whoever reads comes to an end soon.
    pub(crate) fn until(self, is_over: &'a AtomicBool) -> Self {
        Self { is_over: Some(is_over), ..self }
    }

    fn known(&mut self, address: Address) -> Result<Known, StateError> {
        if self.is_over.is_some_and(|is_over| is_over.load(Ordering::Relaxed)) {
            return Err(StateError::Storage("the block has run".into()));
        }
        if let Some(known) =
            self.listed.map(|listed| listed.account(address)).transpose()?.flatten()
        {
            return Ok(known);
        }
        if let Some((found, reads)) = &mut self.found {
            if let Some(known) = found.account(&address) {
                return Ok(known);
            }
            let known = reads.account(address)?;
            found.put_account(address, known);
            return Ok(known);
        }
        match self.accounts.entry(address) {
            Entry::Occupied(known) => Ok(*known.get()),
            Entry::Vacant(entry) => {
                let nodes = self.core.database.nodes();
                Ok(*entry.insert(live::read_account(nodes, &self.version, address)?))
            }
        }
    }
}

impl State for ParentState<'_> {
    fn account(&mut self, address: Address) -> Result<Option<Account>, StateError> {
        Ok(self.known(address)?.account)
    }

    fn storage(&mut self, address: Address, slot: U256) -> Result<U256, StateError> {
        let known = self.known(address)?;
        if let Some((found, reads)) = &mut self.found {
            let Some(storage) = known.storage() else { return Ok(U256::ZERO) };
            if let Some((_, read)) = found.slot(address, slot) {
                return Ok(read.value);
            }
            let read = reads.slot(address, storage, slot)?;
            found.put_slot(address, slot, read);
            return Ok(read.1.value);
        }
        let listed = self.listed.map(|listed| listed.slot(address, &known, slot)).transpose()?;
        match listed.flatten() {
            Some((_, value)) => Ok(value),
            None => live::read_slot(self.core.database.nodes(), &known, slot),
        }
    }

    fn code(&mut self, code_hash: B256) -> Result<Bytes, StateError> {
        state_view::code(&self.core.database, code_hash)
    }

    fn code_to_run(&mut self, code_hash: B256) -> Result<Code, StateError> {
        state_view::code_to_run(&self.core.database, code_hash)
    }

    fn block_hash(&mut self, number: u64) -> Result<B256, StateError> {
        self.ancestors.block_hash(number)
    }
}

const NO_PANIC: &str = "no thread panics while it holds the lock";

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};
    use std::time::Duration;

    const LONG: u64 = limits::LONG_GAS;

    #[test]
    fn long_transactions_come_first_and_the_others_soon_before_their_turn() {
        let schedule =
            Schedule::new(&[1, LONG, LONG - 1, LONG + 1, 1, LONG], Order::Next(2), u64::MAX);
        let next = [(); 4].map(|()| schedule.next().unwrap());
        assert_eq!(next, [3, 1, 5, 0]);
        // One that others run ahead is waited for.
        schedule.put(0, None);
        schedule.put(1, None);
        assert!(schedule.take(0).is_none() && schedule.take(1).is_none());
        assert_eq!(schedule.next(), Some(2));
        let too_soon = std::thread::scope(|scope| {
            let next = scope.spawn(|| schedule.next());
            std::thread::sleep(Duration::from_millis(20));
            let too_soon = next.is_finished();
            schedule.put(2, None);
            assert!(schedule.take(2).is_none());
            schedule.put(3, None);
            assert!(schedule.take(3).is_none());
            assert_eq!(next.join().unwrap(), Some(4));
            too_soon
        });
        assert!(!too_soon);
        assert_eq!(schedule.next(), None);
    }

    #[test]
    fn of_a_listed_block_so_many_long_transactions_come_before_the_last_ones() {
        let gas = [1, LONG, LONG + 1, LONG + 2, 1];
        let begun = |most| {
            let schedule = Schedule::new(&gas, Order::Last(most), u64::MAX);
            std::iter::from_fn(|| schedule.next()).collect::<Vec<_>>()
        };
        assert_eq!(begun(0), [4, 3, 2, 1, 0]);
        assert_eq!(begun(2), [3, 2, 4, 1, 0]);
    }

    #[test]
    fn no_more_begins_once_it_has_stopped() {
        for order in [Order::Last(0), Order::Last(9), Order::Next(9)] {
            let schedule = Schedule::new(&[LONG; 4], order, u64::MAX);
            assert_eq!(schedule.next(), Some(if let Order::Last(0) = order { 3 } else { 0 }));
            drop(schedule.stopping());
            assert_eq!(schedule.next(), None);
        }
    }

    #[test]
    fn no_more_begins_once_enough_gas_is_burned() {
        let schedule = Schedule::new(&[LONG; 4], Order::Last(0), LONG + 1);
        assert_eq!(schedule.next(), Some(3));
        schedule.burned(LONG);
        assert_eq!(schedule.next(), Some(2));
        schedule.burned(LONG);
        assert_eq!(schedule.next(), None);
        // Those that nobody has begun run in their turn.
        assert!(schedule.take(0).is_none() && schedule.take(1).is_none());
    }

    #[test]
    fn who_is_too_far_ahead_ends_when_the_blocks_thread_panics() {
        let schedule = Schedule::new(&[1; 4], Order::Next(2), u64::MAX);
        let panicked = std::thread::scope(|scope| {
            let ahead = scope.spawn(|| std::iter::from_fn(|| schedule.next()).count());
            let block = scope.spawn(|| {
                let _stopping = schedule.stopping();
                while !schedule.left().has_begun[1] {
                    std::thread::yield_now();
                }
                panic!("a bug");
            });
            assert_eq!(ahead.join().unwrap(), 2);
            block.join().is_err()
        });
        assert!(panicked);
    }

    #[test]
    fn each_transaction_is_begun_by_one_thread() {
        let seed = rand::random();
        println!("seed {seed}");
        let rng = &mut StdRng::seed_from_u64(seed);
        for _ in 0..100 {
            let most = rng.random_range(0..9);
            let order = if rng.random() { Order::Last(most) } else { Order::Next(most + 1) };
            let gas: Vec<_> = (0..rng.random_range(0..60))
                .map(|_| LONG / 2 + rng.random_range(0..LONG))
                .collect();
            let schedule = &Schedule::new(&gas, order, u64::MAX);
            let help = || {
                let begun = std::iter::from_fn(|| schedule.next());
                begun.inspect(|index| schedule.put(*index, None)).collect::<Vec<_>>()
            };
            let mut begun = std::thread::scope(|scope| {
                let helpers = [(); 3].map(|()| scope.spawn(help));
                let mut begun = Vec::new();
                for index in 0..gas.len() {
                    assert!(schedule.take(index).is_none());
                    // Nobody has put what came of it: nobody else has begun it.
                    begun.extend(schedule.ran[index].get().is_none().then_some(index));
                }
                let helped = helpers.map(|helper| helper.join().unwrap());
                begun.extend(helped.concat());
                begun
            });
            begun.sort_unstable();
            assert_eq!(begun, (0..gas.len()).collect::<Vec<_>>());
        }
    }
}
