//! Floor 3. Sealing: the nodes of a block that has run get their addresses.

use crate::after::queue::{Queue, RanBlock};
use crate::after::sweep::sweep_on;
use crate::chain::read_set::ReadNodes;
use crate::chain::record::BlockRecord;
use crate::chain::sealed::{Seal, Sealed};
use crate::chain::stored::{add_block, encode_block};
use crate::error::Error;
use crate::shared::{Chain, Shared};
use crate::tries::Tries;
use alloy_primitives::{B256, Bytes};

/// Gives addresses to the nodes that a block has changed, and the block to the database.
pub(crate) fn seal(shared: &Shared, queue: &Queue, block: RanBlock) {
    let RanBlock { parent, record, tries, has_all_nodes, new_codes, unsealed, freed } = block;
    if let Some(read_set) = &record.read_set {
        read_set.list(|| ReadNodes::of(&tries));
    }
    let sealed = try_seal(shared, &parent, &record, &tries, new_codes);
    if let Err(error) = &sealed {
        tracing::error!(%error, block = %record.hash(), "the state after a block was not kept");
        shared.chain.fail(error.clone());
    }
    record.seal.keep(sealed);
    queue.block_sealed();
    if has_all_nodes {
        shared.recent.keep(record.hash(), &tries);
    }
    drop((tries, unsealed));
    let (records, witness) = freed;
    drop(records);
    witness.into_iter().for_each(|witness| shared.recent.recycle(witness));
}

fn try_seal(
    shared: &Shared,
    parent: &Seal,
    record: &BlockRecord,
    tries: &Tries,
    new_codes: Vec<(B256, Bytes)>,
) -> Result<Sealed, Error> {
    let chain: &Chain = &shared.chain;
    let parent = parent.wait()?;
    let _one_at_a_time = chain.sealing();
    let mut batch = chain.database.batch();
    let version = tries.write(&mut batch);
    let appended_bytes = batch.bytes() as u64;
    batch.seal()?;
    let block = encode_block(record, new_codes);
    // The little that comes after it is waited for by a thread that comes meanwhile.
    let sealed = sweep_on(shared, version, parent.sweep, appended_bytes, &record.seal)?;
    add_block(&chain.database, block, &sealed)?;
    chain.floors().add(record.number(), &sealed.sweep);
    Ok(sealed)
}
