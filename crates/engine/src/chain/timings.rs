//! Floor 2. Where the time of a block went.

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
    /// Of all of it, waiting for the disk on the block's thread.
    pub disk: Duration,
    /// Noting the valid block in the journal.
    pub journal: Duration,
    /// Putting the witness together, where it was asked for with the verdict.
    pub witness: Duration,
}

impl Timings {
    /// Adds the phases of a block that has run, which took `elapsed` in all, to those of its root.
    pub(crate) fn add(&mut self, root: Self, recovery: Duration, elapsed: Duration) {
        (self.catching_up, self.root, self.disk) = (root.catching_up, root.root, root.disk);
        self.recovery = recovery;
        self.execution = elapsed.saturating_sub(self.parent + self.root + self.recovery);
    }
}
