//! Floor 3. Copies of witnesses on disk, which outlive the state that they were read from.

use crate::chain::record::BlockRecord;
use crate::shared::Shared;
use crate::witnesses::assemble::Witnesses;
use crate::witnesses::copied::CopyDue;
use crate::witnesses::packed::WitnessCopy;
use crate::{Error, limits};
use alloy_primitives::{B256, Bytes};
use state::Retained;

/// Makes the copies that are late because blocks follow each other without a pause: later on their
/// nodes would have to be read from the disk.
pub(crate) fn copy_late_witnesses(shared: &Shared) -> Result<(), Error> {
    let head = shared.chain.number(&shared.chain.persisted.get().head)?;
    let last = head.saturating_sub(limits::COPIES_BEHIND);
    copy_witnesses(shared, CopyDue::Now, last, &mut |_| ())?;
    Ok(())
}

/// Makes all copies that are due up to the block with the number `last`. They are not all held in
/// memory together: blocks that read much have copies larger than all else that is written of them.
/// False when there were none. `progress` is told the number of each block whose copy is made.
pub(crate) fn copy_witnesses(
    shared: &Shared,
    due: CopyDue,
    last: u64,
    progress: &mut dyn FnMut(u64),
) -> Result<bool, Error> {
    let mut has_copied = false;
    while copy_a_witness(shared, due, last) {
        has_copied = true;
        persist_copies(shared)?;
        progress(shared.copies.progress().number(due));
    }
    Ok(has_copied)
}

/// Brings copies to the disk when they hold much memory.
pub(crate) fn persist_copies(shared: &Shared) -> Result<(), Error> {
    if shared.chain.database.unpersisted_bytes() > limits::LATE_COPIES_BYTES {
        shared.chain.database.persist()?;
    }
    Ok(())
}

/// Makes the next copy of a canonical block's witness, up to the one with the number `last`, to be
/// persisted with the next round; `false` when there is none to make. One that cannot be made holds
/// up no other.
pub(crate) fn copy_a_witness(shared: &Shared, due: CopyDue, last: u64) -> bool {
    let options = &shared.options;
    if options.retain_witness_blocks == 0 || options.retain_witness_bytes == 0 {
        return false;
    }
    let _one_at_a_time = shared.copies.making();
    let hash = match next_copy(shared, due, last) {
        Ok(Some(hash)) => hash,
        Ok(None) => return false,
        Err(error) => {
            tracing::warn!(%error, "the next witness to copy cannot be found");
            return false;
        }
    };
    let copy = || {
        if let Some(record) = shared.chain.block(&hash)?
            && let Some(copy) = encode_copy(shared, &record)?
        {
            shared.chain.database.add_witness(hash, copy)?;
        }
        Ok::<_, Error>(())
    };
    if let Err(error) = tried(copy) {
        tracing::warn!(%error, %hash, "the copy of a block's witness was not made");
    }
    true
}

/// The next canonical block, up to the one with the number `last`, whose witness is to get a copy
/// and has none: persisted, and with its nodes kept. Each is given once.
fn next_copy(shared: &Shared, due: CopyDue, last: u64) -> Result<Option<B256>, Error> {
    let Shared { chain, copies, options, .. } = shared;
    let head = chain.number(&chain.persisted.get().head)?;
    let last = copies.last(due, last).min(head);
    let kept = chain.floors().first() + 1;
    let wanted = (head + 1).saturating_sub(options.retain_witness_blocks);
    let progress = copies.progress();
    let copied = progress.number(due);
    for number in (copied + 1).max(kept).max(wanted)..=last {
        let entry = || {
            let Some(hash) = chain.canonical_hash(number)? else { return Ok(None) };
            Ok::<_, Error>(chain.database.entry(&hash)?.map(|entry| (hash, entry)))
        };
        let entry = match tried(entry) {
            Ok(entry) => entry,
            // It holds up no other.
            Err(error) => {
                tracing::warn!(%error, number, "a block's witness is not copied");
                continue;
            }
        };
        let Some((hash, entry)) = entry else { return Ok(None) };
        if entry.witness == Retained::Never {
            copies.made(due, number, progress);
            return Ok(Some(hash));
        }
    }
    copies.made(due, last.max(copied), progress);
    Ok(None)
}

/// Reads again what the disk failed to read: mostly it can the next time.
fn tried<T>(mut read: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
    let mut outcome = read();
    for _ in 1..limits::COPY_TRIES {
        if outcome.is_ok() {
            break;
        }
        outcome = read();
    }
    outcome
}

/// The copy of a block's witness; `None` when it is the first of its chain.
fn encode_copy(shared: &Shared, record: &BlockRecord) -> Result<Option<Bytes>, Error> {
    let Some(read_set) = &record.read_set else { return Ok(None) };
    let parent = shared.chain.block(&record.block.header.parent_hash)?;
    let Some(parent) = parent else { return Ok(None) };
    shared.recent.with_lister(|lister| {
        let state = match shared.recent.nodes(&record.hash()) {
            Some(nodes) => nodes.list(lister.room()),
            None => Witnesses::new(shared).read_nodes(lister, read_set, &parent)?,
        };
        let code_hashes = read_set.codes.clone();
        let copy = WitnessCopy { state, code_hashes, first_ancestor: read_set.first_ancestor };
        let (packed, state) = copy.pack();
        lister.recycle(state);
        Ok(Some(packed))
    })
}
