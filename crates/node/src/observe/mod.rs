//! Consumers of what happens to the chain: the log, and figures for operators.

mod block_log;
mod condition;
mod slow_blocks;

use engine::{ChainEvent, WitnessSize};

pub(crate) use block_log::BlockLog;
pub(crate) use condition::{ClientWatch, Detail, NodeCondition};
pub(crate) use slow_blocks::SlowBlocks;

/// A consumer of events. It is called on the thread of the feed, in the order of the events, after
/// the subscribers were told.
pub(crate) trait Observer: Send {
    /// Something has happened. `witness` says how much the witness of a block is that has run.
    fn event(&mut self, event: &ChainEvent, witness: Option<WitnessSize>);

    /// A second has passed.
    fn second(&mut self) {}
}
