//! Floor 3. The sweep, which moves live nodes to the end of the log; see docs/design/state.md.

use crate::chain::sealed::{Cycle, Seal, Sealed, SweepState};
use crate::shared::{Chain, Shared};
use crate::{Error, limits};
use trie::versioned::{SweepCursor, Version, sweep};

/// Sweeps as many bytes as blocks have appended, until a thread wants this block's state, a block
/// runs, which may be on another branch and is sealed after this one, or a thread waits for another
/// block's state.
///
/// A cycle begins when the log from the floor on is twice as long as what was in use at the end of
/// the last one. When blocks follow each other too closely and the log gets [twice as long
/// again](limits::SWEEP_URGENCY), each block pays for its own bytes in any case.
pub(crate) fn sweep_on(
    shared: &Shared,
    version: Version,
    mut state: SweepState,
    appended_bytes: u64,
    seal: &Seal,
) -> Result<Sealed, Error> {
    let Shared { options, chain: Chain { database, .. }, background, .. } = shared;
    let nodes = database.nodes();
    let end = nodes.end();
    let log_bytes = end.offset() - state.floor.offset();
    let worth_it = (2 * state.live_bytes).max(options.sweep_min_bytes);
    if state.cycle.is_none() && log_bytes > worth_it {
        state.cycle = Some(Cycle { below: end, cursor: SweepCursor::default(), moved_bytes: 0 });
    }
    if state.cycle.is_none() {
        return Ok(Sealed { version, sweep: state });
    }
    state.owed_bytes += appended_bytes;
    let due_bytes = state.owed_bytes.min(limits::SWEEP_STEP_MAX_BYTES);
    let is_log_long = log_bytes > worth_it.saturating_mul(limits::SWEEP_URGENCY);
    let own_bytes = if is_log_long { appended_bytes.min(due_bytes) } else { 0 };
    let gives_way = || seal.is_wanted() || background.gives_way();
    let goes_on = |walked| walked < if gives_way() { own_bytes } else { due_bytes };
    if state.owed_bytes < options.sweep_step_bytes || !goes_on(0) {
        return Ok(Sealed { version, sweep: state });
    }
    let (mut version, mut walked_bytes) = (version, 0);
    // Records are handed over in parts, so that no thread waits for more than one.
    while let Some(Cycle { below, cursor, moved_bytes }) = &mut state.cycle
        && goes_on(walked_bytes)
    {
        let before = walked_bytes;
        let mut go_on = |walked| {
            walked_bytes = before + walked;
            walked < limits::SWEEP_PART_BYTES && goes_on(walked_bytes)
        };
        let mut batch = database.batch();
        let next = match sweep(nodes, &version, *below, cursor, &mut go_on, &mut batch) {
            Ok((swept, next)) => {
                version = swept;
                next
            }
            Err(error) => {
                // The state is there as it was, and no block may ever need the node that cannot be
                // read.
                tracing::error!(%error, "old nodes were not swept; a later block tries again");
                state.owed_bytes = 0;
                break;
            }
        };
        *moved_bytes += batch.bytes() as u64;
        batch.seal()?;
        state.owed_bytes = state.owed_bytes.saturating_sub(walked_bytes - before);
        match next {
            Some(next) => *cursor = next,
            None => {
                let (floor, live_bytes) = (*below, *moved_bytes);
                state = SweepState { floor, cycle: None, live_bytes, owed_bytes: 0 };
            }
        }
    }
    Ok(Sealed { version, sweep: state })
}

#[cfg(test)]
mod tests;
