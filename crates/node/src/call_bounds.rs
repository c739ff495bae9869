//! The bounds of calls that become part of no block: estimates, simulations and traces too.

use std::time::{Duration, Instant};

use execution::Deadline;

use crate::limits::{CALL_GAS, CALL_TIME};

/// The bounds of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallBounds {
    /// The most gas of a call, even if it asks for more.
    pub gas: u64,
    /// The most time that one answer may run calls for, if there is a bound.
    pub time: Option<Duration>,
}

impl Default for CallBounds {
    fn default() -> Self {
        Self { gas: CALL_GAS, time: Some(CALL_TIME) }
    }
}

impl CallBounds {
    /// The deadline of an answer that begins now.
    pub(crate) fn deadline(&self) -> Deadline {
        self.time.map_or_else(Deadline::never, deadline)
    }
}

/// A deadline so much later than now.
pub(crate) fn deadline(time: Duration) -> Deadline {
    let begun = Instant::now();
    Deadline::new(move || begun.elapsed() >= time)
}
