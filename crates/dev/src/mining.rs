use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::Error;

/// When blocks are mined, beside those that are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mining {
    /// A block for each transaction that can run.
    pub is_automatic: bool,
    /// A block after each such time.
    pub interval: Option<Duration>,
}

impl Default for Mining {
    /// A block for each transaction, and no other.
    fn default() -> Self {
        Self { is_automatic: true, interval: None }
    }
}

/// The interval at which a thread mines blocks, and word of its changes.
#[derive(Debug, Default)]
pub(crate) struct Interval {
    state: Mutex<IntervalState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct IntervalState {
    interval: Option<Duration>,
    /// How often it was set.
    version: u64,
    is_over: bool,
}

impl Interval {
    pub(crate) fn get(&self) -> Option<Duration> {
        self.lock().interval
    }

    pub(crate) fn set(&self, interval: Option<Duration>) {
        let mut state = self.lock();
        state.interval = interval.filter(|interval| !interval.is_zero());
        state.version += 1;
        self.changed.notify_all();
    }

    /// Ends the thread.
    pub(crate) fn end(&self) {
        self.lock().is_over = true;
        self.changed.notify_all();
    }

    /// Has blocks mined until there is no chain any more.
    pub(crate) fn run(&self, mine: impl Fn() -> Option<Result<(), Error>>) {
        while self.wait() {
            match mine() {
                Some(Ok(())) => {}
                Some(Err(error)) => tracing::warn!(%error, "no block was mined at its time"),
                None => return,
            }
        }
    }

    /// Waits for the time of the next block; `false` when the chain ends.
    fn wait(&self) -> bool {
        let mut state = self.lock();
        loop {
            if state.is_over {
                return false;
            }
            let version = state.version;
            let same = |state: &mut IntervalState| state.version == version && !state.is_over;
            state = match state.interval {
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(interval) => {
                    let waited = self.changed.wait_timeout_while(state, interval, same);
                    let (state, waited) = waited.unwrap_or_else(PoisonError::into_inner);
                    if waited.timed_out() {
                        return true;
                    }
                    state
                }
            };
        }
    }

    fn lock(&self) -> MutexGuard<'_, IntervalState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
