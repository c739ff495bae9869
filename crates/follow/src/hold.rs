//! When the filling of a gap is left for that of another one.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use alloy_primitives::B256;
use engine::Engine;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::limits;

/// The times of a [`Backfill`](crate::Backfill); the default ones are those of [`limits`].
#[derive(Debug, Clone, Copy)]
pub struct BackfillOptions {
    /// How long a gap is filled at least before a newer head moves its end, where that makes
    /// headway.
    pub hold: Duration,
    /// How long nothing may come before a newer head moves the end of a gap.
    pub patience: Duration,
    /// How often it is looked whether that is so.
    pub look: Duration,
    /// Pause before a gap is tried again that could not be filled, which each further one doubles.
    pub first_retry: Duration,
    /// The longest such pause.
    pub most_retry: Duration,
}

impl Default for BackfillOptions {
    fn default() -> Self {
        Self {
            hold: limits::TARGET_HOLD,
            patience: limits::REQUEST_TIME,
            look: limits::LOOK_PAUSE,
            first_retry: limits::FIRST_RETRY,
            most_retry: limits::MOST_RETRY,
        }
    }
}

/// Keeps a stage of filling up while heads move. To leave it costs what is on its way: where heads
/// move faster than answers come, none would ever be used. So it is left when it has made headway
/// and its time is over, or when nothing has come for long.
#[derive(Debug)]
pub(crate) struct Hold {
    options: BackfillOptions,
    begun: Instant,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    has_gained: bool,
    leave_at: Instant,
}

impl Hold {
    pub(crate) fn new(options: BackfillOptions) -> Self {
        let begun = Instant::now();
        let state = State { has_gained: false, leave_at: begun + options.patience };
        Self { options, begun, state: Mutex::new(state) }
    }

    /// Something has come, but nothing yet that helps with another head.
    pub(crate) fn answered(&self) {
        let mut state = self.state();
        if !state.has_gained {
            state.leave_at = Instant::now() + self.options.patience;
        }
    }

    /// Headway was made, which helps with another head, too.
    pub(crate) fn gained(&self) {
        let leave_at = self.begun + self.options.hold;
        *self.state() = State { has_gained: true, leave_at };
    }

    /// No upstream has what is asked for.
    pub(crate) fn nowhere(&self) {
        self.state().leave_at = Instant::now();
    }

    /// Waits until this block is not the missing one any more, and its gap is to be left.
    pub(crate) async fn left(&self, engine: &Engine, wake: &Notify, hash: B256) {
        loop {
            let wait = match engine.missing() {
                Ok(Some(missing)) if missing.hash == hash => Duration::MAX,
                // A gap whose block came otherwise is filled at once.
                Ok(None) if engine.number(&hash).is_ok_and(|number| number.is_none()) => return,
                Ok(None) => Duration::MAX,
                Ok(Some(_)) => self.state().leave_at.saturating_duration_since(Instant::now()),
                Err(_) => return,
            };
            if wait.is_zero() {
                return;
            }
            // Headway tells of itself by the time alone.
            let wait = if wait == Duration::MAX { wait } else { wait.min(self.options.look) };
            timeout(wait, wake.notified()).await.unwrap_or_default();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
