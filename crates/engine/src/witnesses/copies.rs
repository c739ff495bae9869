//! Floor 3. Copies of witnesses on disk, which outlive the state that they were read from.

use crate::chain::record::BlockRecord;
use crate::shared::Shared;
use crate::witnesses::assemble::Witnesses;
use crate::witnesses::packed::WitnessCopy;
use crate::{Error, limits};
use alloy_primitives::{B256, Bytes};
use state::Retained;

/// Makes the next copy of a canonical block's witness, up to the one with the number `last`, to be
/// persisted with the next round, or at once where copies hold much memory: blocks that read much
/// have copies larger than all else that is written of them. `false` when there is none to make.
/// One that cannot be made holds up no other.
pub(crate) fn copy_a_witness(shared: &Shared, last: u64) -> Result<bool, Error> {
    let Shared { chain, copies, options, .. } = shared;
    if options.retain_witness_blocks == 0 || options.retain_witness_bytes == 0 {
        return Ok(false);
    }
    let _one_at_a_time = copies.making();
    let hash = match next_copy(shared, last) {
        Ok(Some(hash)) => hash,
        Ok(None) => return Ok(false),
        Err(error) => {
            tracing::warn!(%error, "the next witness to copy cannot be found");
            return Ok(false);
        }
    };
    let copy = || {
        if let Some(record) = chain.block(&hash)?
            && let Some(copy) = encode_copy(shared, &record)?
        {
            chain.database.add_witness(hash, copy)?;
        }
        Ok::<_, Error>(())
    };
    if let Err(error) = tried(copy) {
        tracing::warn!(%error, %hash, "the copy of a block's witness was not made");
    }
    if chain.database.unpersisted_bytes() > limits::LATE_COPIES_BYTES {
        chain.database.persist()?;
    }
    Ok(true)
}

/// The next canonical block, up to the one with the number `last`, whose witness is to get a copy
/// and has none: persisted, and with its nodes kept. Each is given once.
fn next_copy(shared: &Shared, last: u64) -> Result<Option<B256>, Error> {
    let Shared { chain, copies, options, .. } = shared;
    let head = chain.number(&chain.persisted.get().head)?;
    let kept = chain.floors().first + 1;
    let wanted = (head + 1).saturating_sub(options.retain_witness_blocks);
    while let Some(number) = copies.next(kept.max(wanted), last.min(head)) {
        let entry = || {
            let Some(hash) = chain.canonical_hash(number)? else { return Ok(None) };
            Ok::<_, Error>(chain.database.entry(&hash)?.map(|entry| (hash, entry)))
        };
        match tried(entry) {
            Ok(Some((hash, entry))) if entry.witness == Retained::Never => return Ok(Some(hash)),
            Ok(Some(_)) => {}
            Ok(None) => {
                // The fork choice has changed since the last round.
                copies.branched_off(number - 1);
                return Ok(None);
            }
            // It holds up no other.
            Err(error) => tracing::warn!(%error, number, "a block's witness is not copied"),
        }
    }
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
            Some(nodes) => lister.copy(&nodes),
            None => Witnesses::new(shared).read_nodes(lister, read_set, &parent)?,
        };
        let code_hashes = read_set.codes.clone();
        let copy = WitnessCopy { state, code_hashes, first_ancestor: read_set.first_ancestor };
        let (packed, state) = copy.pack();
        lister.recycle(state);
        Ok(Some(packed))
    })
}
