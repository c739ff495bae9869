//! Consumers of what happens to the chain: the log, and figures for operators.

mod block_log;
mod condition;
mod slow_blocks;

use engine::{ChainEvent, WitnessSize};

pub(crate) use block_log::{Age, BlockLog, megabytes, mgas_per_s, rounded, short};
pub(crate) use condition::{ClientWatch, Detail, NodeCondition, Sign};
pub(crate) use slow_blocks::SlowBlocks;

/// A consumer of events. It is called on the thread of the feed, in the order of the events, after
/// the subscribers were told.
pub(crate) trait Observer: Send {
    /// Something has happened. `witness` says how much the witness of a block is that has run,
    /// where that is known without waiting for the block to be sealed.
    fn event(&mut self, event: &ChainEvent, witness: Option<WitnessSize>);

    /// So many events were lost: too many waited. An observer asks anew for what it keeps of them.
    fn lost(&mut self, events: u64) {
        _ = events;
    }

    /// A second has passed.
    fn second(&mut self) {}
}
