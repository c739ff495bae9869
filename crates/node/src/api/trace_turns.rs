//! Turns of traces, whose answers take much memory: a few run at a time, of all ports.

use std::sync::{Condvar, Mutex, PoisonError};

use rpc::{Code, Error};

use crate::limits::{EVM_TRACES, EVM_TRACES_WAITING};

/// Traces that run, and that wait.
struct Counts {
    running: usize,
    waiting: usize,
}

static COUNTS: Mutex<Counts> = Mutex::new(Counts { running: 0, waiting: 0 });
static ENDED: Condvar = Condvar::new();

/// The turn of a trace. The next one begins when it is dropped.
#[derive(Debug)]
pub(super) struct TraceTurn(());

impl TraceTurn {
    /// Waits for a turn.
    ///
    /// # Errors
    /// [`Code::LimitExceeded`] if too many wait already.
    pub(super) fn take() -> Result<Self, Error> {
        let mut counts = COUNTS.lock().unwrap_or_else(PoisonError::into_inner);
        if counts.running >= EVM_TRACES {
            if counts.waiting >= EVM_TRACES_WAITING {
                let detail =
                    format!("{EVM_TRACES} traces run and {EVM_TRACES_WAITING} wait; ask again");
                return Err(Error::new(Code::LimitExceeded, detail));
            }
            counts.waiting += 1;
            let is_full = |counts: &mut Counts| counts.running >= EVM_TRACES;
            counts = ENDED.wait_while(counts, is_full).unwrap_or_else(PoisonError::into_inner);
            counts.waiting -= 1;
        }
        counts.running += 1;
        Ok(Self(()))
    }
}

impl Drop for TraceTurn {
    fn drop(&mut self) {
        COUNTS.lock().unwrap_or_else(PoisonError::into_inner).running -= 1;
        ENDED.notify_one();
    }
}
