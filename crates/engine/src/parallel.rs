//! A block that came with an access list (EIP-7928): what the list names is read once, by whoever
//! needs it first, and transactions run ahead of their turn on other threads.

use crate::ancestors::Ancestors;
use crate::core::Core;
use crate::live::{self, Known};
use crate::record::BlockRecord;
use crate::state_view;
use alloy_primitives::map::{AddressMap, Entry};
use alloy_primitives::{Address, B256, Bytes, U256};
use execution::{AccessList, Ahead, AheadOf, RanAhead};
use state::Nodes;
use std::cell::Cell;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use trie::EMPTY_ROOT_HASH;
use trie::versioned::Version;
use witness::{Account, Code, State, StateError};

/// What a list names, as the block's parent has it.
#[derive(Debug)]
pub(crate) struct Listed {
    pub(crate) list: AccessList,
    nodes: Nodes,
    version: Version,
    accounts: Vec<OnceLock<Known>>,
    slots: Vec<OnceLock<U256>>,
}

impl Listed {
    pub(crate) fn new(list: AccessList, nodes: Nodes, version: Version) -> Self {
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

/// Who runs which transaction of a block.
///
/// The block's own thread takes them in order, and runs each that nobody has begun. Other threads
/// run them ahead, from the last one backwards, until they meet: so everybody is busy to the end,
/// and nobody waits for more than one transaction.
#[derive(Debug)]
pub(crate) struct Schedule {
    /// Transactions that nobody has begun.
    left: Mutex<Range<usize>>,
    ran: Vec<OnceLock<Mutex<Option<RanAhead>>>>,
}

impl Schedule {
    pub(crate) fn new(transactions_count: usize) -> Self {
        let ran = (0..transactions_count).map(|_| OnceLock::new()).collect();
        Self { left: Mutex::new(0..transactions_count), ran }
    }

    /// Runs transactions ahead on this thread, as long as there are any.
    pub(crate) fn help(&self, of: &AheadOf<'_>, state: ParentState<'_>) {
        let begun = Begun { schedule: self, index: Cell::new(None) };
        let next = || {
            begun.index.set(self.left().next_back());
            begun.index.get()
        };
        of.run(state, next, |index, ran| {
            begun.index.set(None);
            self.put(index, ran);
        });
    }

    /// No more transactions are begun.
    pub(crate) fn stop(&self) {
        *self.left() = 0..0;
    }

    fn left(&self) -> MutexGuard<'_, Range<usize>> {
        self.left.lock().expect(NO_PANIC)
    }

    fn put(&self, index: usize, ran: Option<RanAhead>) {
        self.ran[index].set(Mutex::new(ran)).expect("a transaction is begun once");
    }
}

impl Ahead for Schedule {
    fn take(&self, index: usize) -> Option<RanAhead> {
        let mut left = self.left();
        if left.contains(&index) {
            left.start = index + 1;
            return None;
        }
        drop(left);
        self.ran[index].wait().lock().expect(NO_PANIC).take()
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
    /// Accounts that no list names.
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
        Self { core, version, listed, accounts, ancestors, is_over: None }
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
