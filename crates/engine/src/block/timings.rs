//! Floor 4. Where the time of a block went.

use std::time::Duration;

/// Where the time of one validated block went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Timings {
    /// Recovering senders, or waiting for them, on the block's thread: what others do beside it
    /// does not count.
    pub recovery: Duration,
    /// Until the block begins: waiting for the parent's state to get its addresses, mostly.
    pub parent: Duration,
    /// From the first system call to the root's beginning, recovery aside: execution, and what is
    /// checked of it.
    pub execution: Duration,
    /// The rest of the state root after that.
    pub root: Duration,
    /// Of `root`, until all that was read was loaded.
    pub catching_up: Duration,
    /// Putting the witness together, where it was asked for with the verdict.
    pub witness: Duration,
}

/// How long the root took after the last transaction.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RootTimings {
    /// Until all that was read is loaded: waiting for the workers, and what they have left.
    pub(crate) catching_up: Duration,
    /// Applying what was left, and hashing.
    pub(crate) applying: Duration,
}

impl Timings {
    /// Adds the phases of a block that has run, which took `elapsed` in all.
    pub(crate) fn add(&mut self, root: RootTimings, recovery: Duration, elapsed: Duration) {
        self.catching_up = root.catching_up;
        self.root = root.catching_up + root.applying;
        self.recovery = recovery;
        self.execution = elapsed.saturating_sub(self.parent + self.root + self.recovery);
    }
}
