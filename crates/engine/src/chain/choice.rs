//! Floor 2. The number of a fork choice, which says whether the journal or the database is ahead.

use crate::error::Error;
use alloy_primitives::{B256, Bytes};
use state::{Database, JournalChoice};

/// The database key of the number of the last fork choice that it has.
const CHOICE: &str = "choice";

/// The number of the last fork choice that the database has, 0 before the first.
pub(crate) fn stored_choice(database: &Database) -> Result<u64, Error> {
    let Some(stored) = database.meta(CHOICE)? else { return Ok(0) };
    let number = stored[..].try_into().map(u64::from_le_bytes);
    number.map_err(|_| Error::Storage("the number of the last fork choice is damaged".into()))
}

/// Notes that the database has the heads of this fork choice. The heads are given to it before: a
/// number without its heads would hide the journal's.
pub(crate) fn store_choice(database: &Database, number: u64) -> Result<(), Error> {
    Ok(database.set_meta(CHOICE, Bytes::copy_from_slice(&number.to_le_bytes()))?)
}

/// A fork choice as the journal keeps it: head, safe and finalized, zeros where there is none.
pub(crate) fn journaled(number: u64, hashes: [B256; 3]) -> JournalChoice {
    JournalChoice { number, choice: hashes.iter().flat_map(|hash| hash.0).collect() }
}

/// Head, safe and finalized of a fork choice that the journal has kept.
pub(crate) fn from_journaled(choice: &JournalChoice) -> Result<[B256; 3], Error> {
    let bytes: &[u8; 96] = choice.choice[..]
        .try_into()
        .map_err(|_| Error::Storage("a fork choice in the journal has no three hashes".into()))?;
    Ok([0, 32, 64].map(|at| B256::from_slice(&bytes[at..at + 32])))
}
