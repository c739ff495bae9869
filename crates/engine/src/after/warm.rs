//! Floor 3. The newest nodes of a chain that was just opened, read into the cache.

use crate::after::queue::Queue;
use crate::limits;
use crate::shared::Shared;
use std::time::Duration;
use trie::versioned::NodeAddress;

/// Reads the newest nodes before `end`, so that the first blocks need not wait for the device at
/// each node, while no block runs, until the engine is dropped.
pub(crate) fn read_newest(shared: &Shared, queue: &Queue, end: NodeAddress) {
    let until = end.offset().saturating_sub(shared.options.read_ahead_bytes);
    let mut next = end;
    while next.offset() > until && has_turn(shared, queue) {
        match shared.chain.database.nodes().read_ahead(next) {
            Ok(Some(before)) => next = before,
            Ok(None) => break,
            Err(error) => {
                // A block that needs what is there will meet it.
                tracing::debug!(%error, "reading the newest nodes has ended");
                break;
            }
        }
    }
}

/// Waits while a block runs; `false` when the engine is dropped.
fn has_turn(shared: &Shared, queue: &Queue) -> bool {
    let mut is_open = queue.wait_open(Duration::ZERO);
    while is_open && shared.background.is_block_running() {
        is_open = queue.wait_open(limits::READ_AHEAD_PAUSE);
    }
    is_open
}
