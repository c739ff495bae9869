//! Floor 3. The queue of the two threads behind the answers: one seals, the other persists.

use crate::chain::record::BlockRecord;
use crate::chain::sealed::Seal;
use crate::chain::unsealed::UnsealedBlock;
use crate::error::NO_PANIC;
use crate::limits;
use crate::tries::Tries;
use crate::witnesses::recent::RecentWitness;
use alloy_primitives::{B256, Bytes};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// A valid block that has run, and all that is left to do about it behind its answer.
#[derive(Debug)]
pub(crate) struct RanBlock {
    pub(crate) parent: Seal,
    pub(crate) record: Arc<BlockRecord>,
    pub(crate) tries: Arc<Tries>,
    /// Whether the tries have all nodes that the block read.
    pub(crate) has_all_nodes: bool,
    pub(crate) new_codes: Vec<(B256, Bytes)>,
    pub(crate) unsealed: UnsealedBlock,
    /// Older blocks and a witness whose memory is freed here, and not before the answer.
    pub(crate) freed: (Vec<Arc<BlockRecord>>, Option<RecentWitness>),
}

/// Blocks to seal, and reasons to persist.
#[derive(Debug)]
pub(crate) struct Queue<B = RanBlock> {
    state: Mutex<QueueState<B>>,
    /// For the thread that seals, and the one that reads the newest nodes while no block runs.
    ran: Condvar,
    /// For the thread that persists, and those that wait for it.
    changed: Condvar,
}

#[derive(Debug)]
struct QueueState<B> {
    to_seal: VecDeque<B>,
    /// When the first of them is sealed, unless that is now.
    seal_at: Option<Instant>,
    /// No more blocks come.
    is_closed: bool,
    /// Blocks sealed and not persisted.
    sealed: usize,
    /// The fork choice has changed since it was last persisted.
    is_choice_new: bool,
    /// Everything is to be persisted now, whatever the threshold says.
    is_persist_wanted: bool,
    /// The thread that persists has ended, or is to.
    is_stopped: bool,
    /// Finished rounds of persistence.
    rounds: u64,
}

impl<B> QueueState<B> {
    /// How long the first block to seal waits for its time.
    fn time_left(&self, now: Instant) -> Duration {
        self.seal_at.map_or(Duration::ZERO, |at| at.saturating_duration_since(now))
    }

    fn is_quiet(&self) -> bool {
        let is_wanted = self.sealed > 0 || self.is_choice_new || self.is_persist_wanted;
        !is_wanted && !self.is_stopped
    }
}

impl<B> Default for Queue<B> {
    fn default() -> Self {
        let state = QueueState {
            to_seal: VecDeque::new(),
            seal_at: None,
            is_closed: false,
            sealed: 0,
            is_choice_new: false,
            is_persist_wanted: false,
            is_stopped: false,
            rounds: 0,
        };
        Self { state: state.into(), ran: Condvar::new(), changed: Condvar::new() }
    }
}

impl<B> Queue<B> {
    fn state(&self) -> MutexGuard<'_, QueueState<B>> {
        self.state.lock().expect(NO_PANIC)
    }

    /// Has a block sealed: soon after the fork choice, or when none comes or the next block does.
    pub(crate) fn push(&self, block: B) {
        let mut state = self.state();
        if state.to_seal.is_empty() {
            state.seal_at = Some(Instant::now() + limits::SEAL_AFTER_VERDICT);
        }
        state.to_seal.push_back(block);
        // Not one: the thread that reads the newest nodes may wait on it too.
        self.ran.notify_all();
    }

    /// Has the blocks that wait sealed from now on: the next one needs their state.
    pub(crate) fn seal_now(&self) {
        if self.state().seal_at.take().is_some() {
            self.ran.notify_all();
        }
    }

    /// The next block to seal, when its time has come; `None` when no more come.
    pub(crate) fn next_block(&self) -> Option<B> {
        let mut state = self.state();
        loop {
            let is_empty = state.to_seal.is_empty();
            let left = state.time_left(Instant::now());
            if state.is_closed || !is_empty && left.is_zero() {
                state.seal_at = None;
                return state.to_seal.pop_front();
            }
            state = match is_empty {
                true => self.ran.wait(state).expect(NO_PANIC),
                false => self.ran.wait_timeout(state, left).expect(NO_PANIC).0,
            };
        }
    }

    /// Says that no more blocks come.
    pub(crate) fn close(&self) {
        self.state().is_closed = true;
        self.ran.notify_all();
    }

    pub(crate) fn block_sealed(&self) {
        self.state().sealed += 1;
        self.changed.notify_all();
    }

    pub(crate) fn fork_choice_changed(&self) {
        let mut state = self.state();
        state.is_choice_new = true;
        self.changed.notify_all();
        if let Some(at) = &mut state.seal_at {
            *at = (*at).min(Instant::now() + limits::SEAL_AFTER_CHOICE);
            self.ran.notify_all();
        }
    }

    /// Asks for everything to be persisted soon.
    pub(crate) fn want_persist(&self) {
        self.state().is_persist_wanted = true;
        self.changed.notify_all();
    }

    /// Has everything persisted that is sealed by now, and waits for it. Returns at once when the
    /// thread has stopped, because it failed or was told to.
    pub(crate) fn flush(&self) {
        let mut state = self.state();
        // The round under way may have begun too early; the one after it has not.
        let goal = state.rounds + 2;
        while state.rounds < goal && !state.is_stopped {
            state.is_persist_wanted = true;
            self.changed.notify_all();
            state = self.changed.wait(state).expect(NO_PANIC);
        }
    }

    /// Waits for a reason to persist; `false` when it is time to stop.
    pub(crate) fn wait_for_round(&self, threshold: usize) -> bool {
        let mut state = self.state();
        loop {
            let is_due = state.sealed > threshold || (state.is_choice_new && threshold == 0);
            if is_due || state.is_persist_wanted {
                state.sealed = 0;
                state.is_choice_new = false;
                state.is_persist_wanted = false;
                return true;
            }
            if state.is_stopped {
                return false;
            }
            state = self.changed.wait(state).expect(NO_PANIC);
        }
    }

    pub(crate) fn round_ended(&self) {
        self.state().rounds += 1;
        self.changed.notify_all();
    }

    /// Whether no round is due for so long, so that other work is in no block's way.
    pub(crate) fn stays_quiet(&self, time: Duration) -> bool {
        let waited = self.changed.wait_timeout_while(self.state(), time, |state| state.is_quiet());
        let (_state, waited) = waited.expect(NO_PANIC);
        waited.timed_out()
    }

    /// Waits for so long, or until no more blocks come; says whether they do.
    pub(crate) fn wait_open(&self, time: Duration) -> bool {
        let waited = self.ran.wait_timeout_while(self.state(), time, |state| !state.is_closed);
        !waited.expect(NO_PANIC).0.is_closed
    }

    pub(crate) fn stop(&self) {
        self.state().is_stopped = true;
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests;
