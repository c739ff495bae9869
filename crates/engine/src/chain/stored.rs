//! Floor 2. Blocks as the database keeps them.

use crate::chain::parts::StoredParts;
use crate::chain::read_set::ReadSet;
use crate::chain::record::BlockRecord;
use crate::chain::sealed::{Seal, Sealed, SweepState};
use crate::error::Error;
use alloy_primitives::{B256, Bytes};
use alloy_rlp::Decodable;
use state::{Database, NewBlock, NewCode, Retained};
use std::sync::Arc;

/// A block as the database takes it, but for its state.
pub(crate) fn encode_block(record: &BlockRecord, codes: Vec<(B256, Bytes)>) -> NewBlock {
    NewBlock {
        hash: record.hash(),
        number: record.number(),
        parent_hash: record.block.header.parent_hash,
        block: record.to_stored(),
        touched: record.read_set.as_ref().map(ReadSet::to_stored),
        codes: new_codes(codes),
        ..NewBlock::default()
    }
}

/// Hands a block with its state to the database.
pub(crate) fn add_block(
    database: &Database,
    block: NewBlock,
    sealed: &Sealed,
) -> Result<(), Error> {
    let Sealed { version, sweep } = *sealed;
    let (floor, sweep) = (sweep.floor, sweep.to_stored());
    Ok(database.add(NewBlock { version, floor, sweep, ..block })?)
}

/// These codes as the database takes them: with their tables of jump destinations.
pub(crate) fn new_codes(codes: Vec<(B256, Bytes)>) -> Vec<NewCode> {
    let new_code = |(hash, code): (B256, Bytes)| {
        let table = execution::jump_table(&code);
        NewCode::new(hash, code, table)
    };
    codes.into_iter().map(new_code).collect()
}

/// Number and parent of a valid block that the database has.
pub(crate) fn stored_link(database: &Database, hash: &B256) -> Result<Option<(u64, B256)>, Error> {
    Ok(database.entry(hash)?.map(|entry| (entry.number, entry.parent_hash)))
}

/// A valid block as the database has it. Reading it takes a while: the tree must not be locked
/// meanwhile.
pub(crate) fn stored_block(
    database: &Database,
    hash: &B256,
) -> Result<Option<Arc<BlockRecord>>, Error> {
    let (Some(entry), Some(block)) = (database.entry(hash)?, database.block(hash)?) else {
        return Ok(None);
    };
    let read_set = match database.touched(hash)? {
        Retained::Present(stored) => Some(ReadSet::from_stored(&stored)?),
        Retained::Never | Retained::Deleted => None,
    };
    let sealed = match entry.version {
        Some(version) => Ok(Sealed { version, sweep: SweepState::from_stored(&entry.sweep)? }),
        None => Err(Error::Pruned(*hash)),
    };
    let record = BlockRecord::from_stored(&block, read_set, Seal::kept(sealed))?;
    Ok(Some(Arc::new(record)))
}

/// The header of a block in a database that no engine has open.
///
/// # Errors
/// [`Error::UnknownBlock`]; [`Error::Storage`] where it cannot be read.
pub fn block_header(database: &Database, hash: B256) -> Result<alloy_consensus::Header, Error> {
    let stored = database.block(&hash)?.ok_or(Error::UnknownBlock(hash))?;
    let header = alloy_consensus::Header::decode(&mut &stored_header(&stored)?[..]);
    header.map_err(|error| Error::Storage(format!("the header of {hash} cannot be read: {error}")))
}

/// The RLP of the header of a [stored](BlockRecord::to_stored) block, found without reading the
/// rest.
pub(crate) fn stored_header(stored: &Bytes) -> Result<Bytes, Error> {
    Ok(stored.slice_ref(StoredParts::of(stored)?.header))
}
