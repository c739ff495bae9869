//! Floor 4. Transactions that run ahead of their turn on other threads.

use crate::chain::record::BlockRecord;
use crate::error::NO_PANIC;
use crate::limits;
use crate::read::found::Guess;
use crate::read::listed::AccessListState;
use crate::read::view::VersionState;
use crate::shared::Chain;
use crate::threads::on_drop::OnDrop;
use alloy_consensus::Transaction as _;
use execution::{
    AheadExecutor, AheadOutcome, AheadOutcomes, ChainSpec, CodeCache, PriorChanges, SealedBlock,
    Senders,
};
use std::cell::Cell;
use std::cmp::Reverse;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock};
use trie::versioned::Version;

/// A block that runs, as the threads beside it see it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunningBlock<'a> {
    pub(crate) chain: &'a Chain,
    pub(crate) spec: &'a ChainSpec,
    pub(crate) codes: &'a CodeCache,
    pub(crate) parent: &'a Arc<BlockRecord>,
    pub(crate) block: &'a SealedBlock,
    pub(crate) senders: &'a dyn Senders,
}

/// The transactions of a block, to be run ahead.
#[derive(Debug)]
pub(crate) struct RunAhead<'a> {
    running: RunningBlock<'a>,
    version: Version,
    before: BeforeTurn,
    pub(crate) schedule: Schedule,
}

/// By what a transaction knows the changes of those before it.
#[derive(Debug, Clone)]
pub(crate) enum BeforeTurn {
    /// The block's access list says them.
    Listed(Arc<AccessListState>),
    /// Those that have had their turn tell theirs; the others are guessed to change nothing.
    Guessed(Arc<Guess>),
}

impl<'a> RunAhead<'a> {
    /// For `threads` that run ahead on the state `version` after the parent.
    pub(crate) fn new(
        running: RunningBlock<'a>,
        version: Version,
        before: BeforeTurn,
        threads: usize,
    ) -> Self {
        let order = match before {
            // One that runs a long one leaves all others to the block's own thread meanwhile.
            BeforeTurn::Listed(_) if threads == 1 => Order::Last(0),
            BeforeTurn::Listed(_) => Order::Last(limits::LONG_TRANSACTIONS),
            BeforeTurn::Guessed(_) => Order::Next(limits::AHEAD_TRANSACTIONS),
        };
        let transactions = &running.block.body.transactions;
        let gas_limits: Vec<_> = transactions.iter().map(|tx| tx.gas_limit()).collect();
        let most_gas = running.block.header.gas_used.saturating_mul(limits::AHEAD_GAS_TIMES);
        let schedule = Schedule::new(&gas_limits, order, most_gas);
        Self { running, version, before, schedule }
    }

    /// Runs transactions ahead on this thread, as long as there are any.
    pub(crate) fn run(&self) {
        let RunningBlock { chain, parent, spec, codes, block, senders } = self.running;
        let mut state = VersionState::new(chain, parent, self.version);
        let before = match &self.before {
            BeforeTurn::Listed(listed) => {
                state.listed = Some(listed);
                PriorChanges::List(&listed.list)
            }
            BeforeTurn::Guessed(guess) => {
                state.shared = Some(&guess.reads);
                PriorChanges::Committed(&guess.so_far)
            }
        };
        let of = AheadExecutor { chain: spec, block, senders, before, codes: Some(codes) };
        self.schedule.help(&of, state);
    }
}

/// Decides which thread runs which transaction of a block.
///
/// The block's own thread takes them in order, and runs each that no thread has begun; other
/// threads run them ahead.
#[derive(Debug)]
pub(crate) struct Schedule {
    left: Mutex<Unbegun>,
    stopped: Condvar,
    /// The transaction whose turn it is.
    turn: AtomicUsize,
    /// Gas that may still be burned ahead.
    gas_left: AtomicU64,
    ran: Vec<OnceLock<Mutex<Option<AheadOutcome>>>>,
}

/// Which transactions run ahead first. In both orders some long ones come before all others.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Order {
    /// The last one: the threads go backwards until the block meets them. So all are busy to the
    /// end, and none waits for more than one transaction. So many long ones are first, at
    /// most: the block waits for the one that it meets, and that may be the longest.
    Last(usize),
    /// The next one, at most so many before its turn, so that it finds what most of those before it
    /// have changed.
    Next(usize),
}

/// A transaction that may run ahead, once it is the turn of that one.
#[derive(Debug, Clone, Copy)]
struct NextTransaction {
    index: usize,
    from_turn: usize,
}

/// The transactions that may still begin.
#[derive(Debug)]
struct Unbegun {
    /// In the order in which they run ahead, the first at the end; some have begun.
    queue: Vec<NextTransaction>,
    has_begun: Vec<bool>,
}

impl Schedule {
    /// For transactions with these gas limits. No more are begun when they have burned `most_gas`:
    /// one that reads something else than in its turn may burn all that it is allowed, while its
    /// turn waits for it, and each result is kept until then.
    pub(crate) fn new(gas_limits: &[u64], order: Order, most_gas: u64) -> Self {
        let count = gas_limits.len();
        let mut queue: Vec<_> =
            (0..count).map(|index| NextTransaction { index, from_turn: 0 }).collect();
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
        queue.extend(long.into_iter().map(|index| NextTransaction { index, from_turn: 0 }));
        let left = Unbegun { queue, has_begun: vec![false; count] };
        let ran = gas_limits.iter().map(|_| OnceLock::new()).collect();
        let (turn, gas_left) = (AtomicUsize::new(0), most_gas.into());
        Self { left: left.into(), stopped: Condvar::new(), turn, gas_left, ran }
    }

    /// Runs transactions ahead on this thread, as long as there are any.
    fn help(&self, of: &AheadExecutor<'_>, state: VersionState<'_>) {
        let begun = Cell::new(None);
        // If the thread ends by a bug, no other waits for what it has begun.
        let _put = OnDrop(|| begun.get().into_iter().for_each(|index| self.put(index, None)));
        let next = || {
            begun.set(self.next());
            begun.get()
        };
        of.run(state, next, |index, ran, gas_used| {
            begun.set(None);
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
            let Unbegun { queue, has_begun } = &mut *left;
            let NextTransaction { index, from_turn } = *queue.last()?;
            if has_begun[index] {
                queue.pop();
            } else if from_turn <= self.turn.load(Ordering::Relaxed) {
                queue.pop();
                has_begun[index] = true;
                return Some(index);
            } else {
                // Told of each turn, the block's thread would lose time.
                drop(self.stopped.wait_timeout(left, limits::AHEAD_PAUSE).expect(NO_PANIC));
            }
        }
    }

    fn burned(&self, gas: u64) {
        let relaxed = Ordering::Relaxed;
        let _ = self.gas_left.fetch_update(relaxed, relaxed, |left| Some(left.saturating_sub(gas)));
    }

    /// No more transactions are begun once this is dropped, also when the block's thread panics:
    /// threads that are too far ahead would wait for it.
    pub(crate) fn stopping(&self) -> OnDrop<impl FnMut()> {
        OnDrop(|| {
            self.left().queue.clear();
            self.stopped.notify_all();
        })
    }

    fn left(&self) -> MutexGuard<'_, Unbegun> {
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

#[cfg(test)]
mod tests;
