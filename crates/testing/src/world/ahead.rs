use std::cell::RefCell;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt::{self, Debug};

use alloy_primitives::{Address, B256, Bytes, U256};
use execution::{AheadExecutor, AheadOutcome, AheadOutcomes, CommittedChanges, Executed};
use witness::{BlockState, Change, State, StateError, TrieState};

use super::World;

/// Transactions that have all run before the turn of the first one, in reverse order.
#[derive(Debug)]
pub struct RanBefore(RefCell<Vec<Option<AheadOutcome>>>);

impl RanBefore {
    /// Runs the transactions of a block on the state of its parent, but for those left out.
    pub fn run(
        of: &AheadExecutor<'_>,
        state: impl State,
        is_left_out: impl Fn(usize) -> bool,
    ) -> Self {
        let mut ran: Vec<_> = of.block.body.transactions.iter().map(|_| None).collect();
        let mut next = (0..ran.len()).rev().filter(|index| !is_left_out(*index));
        of.run(state, || next.next(), |index, outcome, _| ran[index] = outcome);
        Self(RefCell::new(ran))
    }
}

impl AheadOutcomes for RanBefore {
    fn take(&self, index: usize) -> Option<AheadOutcome> {
        self.0.borrow_mut()[index].take()
    }
}

/// Transactions that run ahead in batches: a batch runs at the turn of its first transaction.
pub struct RunInBatches<'a, F> {
    of: AheadExecutor<'a>,
    state: F,
    batch: usize,
    ran: RefCell<Vec<Option<AheadOutcome>>>,
}

impl<'a, F: Fn() -> S, S: State> RunInBatches<'a, F> {
    /// `state` gives the state of the parent, once a batch; `batch` is in transactions.
    pub fn new(of: AheadExecutor<'a>, batch: usize, state: F) -> Self {
        Self { of, state, batch, ran: RefCell::default() }
    }
}

impl<F> Debug for RunInBatches<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunInBatches").field("batch", &self.batch).finish_non_exhaustive()
    }
}

impl<F: Fn() -> S, S: State> AheadOutcomes for RunInBatches<'_, F> {
    fn take(&self, index: usize) -> Option<AheadOutcome> {
        let mut ran = self.ran.borrow_mut();
        let count = self.of.block.body.transactions.len();
        if ran.len() <= index {
            let mut next = index..count.min(index.saturating_add(self.batch));
            self.of.run((self.state)(), || next.next(), |_, outcome, _| ran.push(outcome));
        }
        ran[index].take()
    }
}

/// Everything that executing a block gave, in an order that does not depend on how it ran.
pub fn summary(executed: &Executed) -> impl PartialEq + Debug + use<> {
    let mut accounts = executed.changes.clone();
    accounts.sort_unstable_by_key(|change| change.address);
    accounts.iter_mut().for_each(|change| change.slots.sort_unstable());
    let new_codes: BTreeMap<_, _> = executed.new_codes.iter().cloned().collect();
    let codes_read: BTreeMap<_, _> = executed.codes_read.clone().into_iter().collect();
    (
        executed.receipts.clone(),
        executed.requests.clone(),
        [executed.gas_used, executed.blob_gas_used, executed.block_access_list_items],
        executed.block_access_list.clone(),
        executed.first_ancestor,
        accounts,
        new_codes,
        codes_read,
    )
}

/// State that accumulates the changes reported while a block runs ([`State::ran`]).
#[derive(Debug)]
pub struct FollowedState<'a> {
    /// Where the block reads.
    pub state: TrieState<&'a World>,
    /// The changes so far, by account.
    pub changes: BTreeMap<Address, Change>,
    /// Receives the changes too.
    pub committed: Option<&'a CommittedChanges>,
}

impl State for FollowedState<'_> {
    fn account(&mut self, address: Address) -> Result<Option<trie::Account>, StateError> {
        self.state.account(address)
    }

    fn storage(&mut self, address: Address, slot: U256) -> Result<U256, StateError> {
        self.state.storage(address, slot)
    }

    fn code(&mut self, code_hash: B256) -> Result<Bytes, StateError> {
        self.state.code(code_hash)
    }

    fn block_hash(&mut self, number: u64) -> Result<B256, StateError> {
        self.state.block_hash(number)
    }

    fn ran(&mut self, changes: &mut dyn Iterator<Item = Change>) {
        for change in changes {
            if let Some(committed) = self.committed {
                committed.put(&change);
            }
            match self.changes.entry(change.address) {
                Entry::Vacant(entry) => _ = entry.insert(change),
                Entry::Occupied(mut entry) => entry.get_mut().then(&change),
            }
        }
    }
}

impl BlockState for FollowedState<'_> {
    fn restart(&mut self) -> Result<(), StateError> {
        self.changes.clear();
        self.state.restart()
    }

    fn apply(&mut self, changes: &[Change]) -> Result<B256, StateError> {
        self.state.apply(changes)
    }

    fn apply_transaction(&mut self, changes: &[Change]) -> Result<B256, StateError> {
        self.state.apply_transaction(changes)
    }
}
