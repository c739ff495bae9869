//! Floor 3. Pruning: versions that are too old are forgotten, and files that only they need go.

use crate::error::Error;
use crate::shared::Shared;
use crate::witnesses::copies::copy_a_witness;

/// Forgets versions that are too old, and deletes the segments that no version needs. `progress` is
/// told the part that is done, from 0 to 1.
pub(crate) fn prune(shared: &Shared, progress: &mut dyn FnMut(f64)) -> Result<(), Error> {
    let Shared { options, chain, .. } = shared;
    let (blocks, bytes) = (options.retain_witness_blocks, options.retain_witness_bytes);
    // The lists of what blocks read are in the same log, and are needed as long as their states.
    chain.database.retain_witnesses(blocks.max(options.retain_history), bytes)?;
    // Not in one expression: the tree would be locked twice, with a writer in between.
    let head = chain.tree().heads.head;
    // Blocks that are not persisted have no copy yet.
    let persisted = chain.number(&chain.persisted.get().head)?;
    let cutoff = chain.number(&head)?.min(persisted).saturating_sub(options.retain_history);
    let cutoff = chain.unsealed.lowest().map_or(cutoff, |lowest| cutoff.min(lowest.max(1) - 1));
    let first = chain.floors().first;
    let copied_from = first.max(persisted.saturating_sub(blocks));
    if cutoff <= first {
        return Ok(());
    }
    // Before the copies: they are those of its branch.
    let Some(hash) = chain.canonical_hash(cutoff)? else { return Ok(()) };
    // This is the last chance for witnesses without a copy.
    let mut has_copied = false;
    while copy_a_witness(shared, cutoff)? {
        has_copied = true;
        // Copies are all that takes long.
        let done = shared.copies.last().saturating_sub(copied_from);
        progress(done as f64 / (cutoff - copied_from) as f64);
    }
    if has_copied {
        // They are found from then on, and their sources are about to go.
        chain.database.persist()?;
    }
    let Some(oldest) = chain.database.entry(&hash)? else { return Ok(()) };
    let floor = {
        // No head is chosen meanwhile of which this is not true any more.
        let tree = chain.tree();
        let (head, _) = tree.known_link(&tree.heads.head)?;
        let is_so = tree.canonical_hash(cutoff)? == Some(hash)
            && head.saturating_sub(options.retain_history) >= cutoff;
        let mut floors = chain.floors();
        // A block that is yet to be sealed needs its parent's state. One that begins now finds it
        // gone.
        let is_needed = chain.unsealed.lowest().is_some_and(|lowest| lowest <= cutoff);
        if !is_so || is_needed {
            return Ok(());
        }
        floors.cut(cutoff, oldest.floor)
    };
    chain.database.forget_versions(cutoff)?;
    chain.database.delete_segments_below(floor)?;
    Ok(())
}
