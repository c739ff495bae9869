//! The tables by which transactions and logs are found: of canonical blocks, from one number on.

use super::stored::{NewCanonical, StoreState, StoredLookup};
use super::{CANONICAL, META, STATE};
use alloy_primitives::Bloom;
use redb::{ReadTransaction, ReadableTable, TableDefinition, TableError, WriteTransaction};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// The first eight bytes of a transaction's hash, and the number of a block that had it when it
/// became canonical. Entries of blocks that left the canonical chain stay: whoever looks reads the
/// block.
const TRANSACTIONS: TableDefinition<'static, (u64, u64), ()> = TableDefinition::new("transactions");
/// Number to the log bloom of the canonical block.
const BLOOMS: TableDefinition<'static, u64, &[u8; 256]> = TableDefinition::new("blooms");

/// The key of the number from which on canonical blocks are in both tables.
const LOOKUP: &str = "lookup";

/// Changes of the canonical chain by number; `None` takes a number away.
pub(crate) type CanonicalByNumber = BTreeMap<u64, Option<Arc<NewCanonical>>>;

/// Changes which blocks are canonical, and the tables with them. `from` is what
/// [`begin`] gave, and `sequence` the number of the change that is written with it.
pub(crate) fn put_canonical(
    transaction: &WriteTransaction,
    changes: &CanonicalByNumber,
    from: Option<u64>,
    sequence: u64,
) -> Result<(), redb::Error> {
    let mut canonical = transaction.open_table(CANONICAL)?;
    let mut blooms = transaction.open_table(BLOOMS)?;
    let highest = changes.keys().next_back().copied();
    // In a new store everything that follows is in the tables.
    let mut from = from.or(highest.map(|number| number + 1));
    let mut keys = Vec::new();
    for (number, block) in changes.iter().rev() {
        from = from.map(|from| if number + 1 >= from { from.min(*number) } else { from });
        match block {
            Some(block) => {
                canonical.insert(number, &block.hash.0)?;
                blooms.insert(number, &block.bloom.0.0)?;
                keys.extend(block.transactions.iter().map(|key| (*key, *number)));
            }
            None => {
                canonical.remove(number)?;
                blooms.remove(number)?;
            }
        }
    }
    put_transactions(transaction, keys)?;
    if let Some(from) = from {
        put_from(transaction, from, sequence)?;
    }
    Ok(())
}

/// The number from which on canonical blocks are in the tables before a change: above the last
/// one where an older version of the program wrote; `None` where there is no canonical block.
pub(crate) fn begin(transaction: &WriteTransaction) -> Result<Option<u64>, redb::Error> {
    let last = transaction.open_table(CANONICAL)?.last()?.map(|(number, _)| number.value());
    let known = from_in(&transaction.open_table(META)?)?;
    Ok(last.map(|last| known.unwrap_or(last + 1)))
}

/// Adds canonical blocks below those in the tables, the highest first.
pub(crate) fn put_below(
    transaction: &WriteTransaction,
    blocks: &[(u64, NewCanonical)],
    sequence: u64,
) -> Result<(), redb::Error> {
    let Some(mut from) = begin(transaction)? else { return Ok(()) };
    let mut keys = Vec::new();
    let mut blooms = transaction.open_table(BLOOMS)?;
    for (number, block) in blocks {
        assert_eq!(number + 1, from, "blocks are added without a gap");
        from = *number;
        blooms.insert(number, &block.bloom.0.0)?;
        keys.extend(block.transactions.iter().map(|key| (*key, *number)));
    }
    drop(blooms);
    put_transactions(transaction, keys)?;
    put_from(transaction, from, sequence)
}

/// Drops the blooms above `number`.
pub(crate) fn remove_blooms_above(
    transaction: &WriteTransaction,
    number: u64,
    sequence: u64,
) -> Result<(), redb::Error> {
    let from = from_in(&transaction.open_table(META)?)?;
    transaction.open_table(BLOOMS)?.retain_in(number + 1.., |_, _| false)?;
    match from {
        Some(from) => put_from(transaction, from.min(number + 1), sequence),
        None => Ok(()),
    }
}

/// Drops both tables.
pub(crate) fn remove(transaction: &WriteTransaction) -> Result<(), redb::Error> {
    transaction.delete_table(BLOOMS)?;
    transaction.delete_table(TRANSACTIONS)?;
    transaction.open_table(META)?.remove(LOOKUP)?;
    Ok(())
}

/// Where the tables begin; `None` where they are missing.
pub(crate) fn indexed_from(transaction: &ReadTransaction) -> Result<Option<u64>, redb::Error> {
    from_in(&transaction.open_table(META)?)
}

/// Whether a canonical block has its bloom, where the tables have it at all.
pub(crate) fn is_whole(transaction: &ReadTransaction, number: u64) -> Result<bool, redb::Error> {
    match indexed_from(transaction)? {
        Some(from) if number >= from => Ok(transaction.open_table(BLOOMS)?.get(number)?.is_some()),
        _ => Ok(true),
    }
}

/// Calls `found` with the blooms of these numbers, in order.
pub(crate) fn blooms(
    transaction: &ReadTransaction,
    numbers: RangeInclusive<u64>,
    found: &mut dyn FnMut(u64, &Bloom) -> Result<(), redb::Error>,
) -> Result<(), redb::Error> {
    let blooms = match transaction.open_table(BLOOMS) {
        Err(TableError::TableDoesNotExist(_)) => return Ok(()),
        table => table?,
    };
    for row in blooms.range(numbers)? {
        let (number, bloom) = row?;
        found(number.value(), <&Bloom>::from(bloom.value()))?;
    }
    Ok(())
}

/// The numbers of blocks that may have a transaction, ascending.
pub(crate) fn transaction_blocks(
    transaction: &ReadTransaction,
    key: u64,
) -> Result<Vec<u64>, redb::Error> {
    let transactions = match transaction.open_table(TRANSACTIONS) {
        Err(TableError::TableDoesNotExist(_)) => return Ok(Vec::new()),
        table => table?,
    };
    let rows = transactions.range((key, 0)..=(key, u64::MAX))?;
    rows.map(|row| Ok(row?.0.value().1)).collect()
}

/// Ascending keys find the pages of the last one in memory.
fn put_transactions(
    transaction: &WriteTransaction,
    mut keys: Vec<(u64, u64)>,
) -> Result<(), redb::Error> {
    keys.sort_unstable();
    let mut transactions = transaction.open_table(TRANSACTIONS)?;
    for key in keys {
        transactions.insert(key, ())?;
    }
    Ok(())
}

fn put_from(transaction: &WriteTransaction, from: u64, sequence: u64) -> Result<(), redb::Error> {
    let stored = StoredLookup { from, sequence };
    transaction.open_table(META)?.insert(LOOKUP, stored.to_bytes().as_slice())?;
    Ok(())
}

/// A version of the program without these tables leaves the number as it was, so it counts only if
/// it was written with the last change.
fn from_in(
    meta: &impl ReadableTable<&'static str, &'static [u8]>,
) -> Result<Option<u64>, redb::Error> {
    let (Some(state), Some(lookup)) = (meta.get(STATE)?, meta.get(LOOKUP)?) else {
        return Ok(None);
    };
    let state = StoreState::from_bytes(state.value());
    let lookup = StoredLookup::from_bytes(lookup.value());
    let known = state.zip(lookup).filter(|(state, lookup)| state.sequence == lookup.sequence);
    Ok(known.map(|(_, lookup)| lookup.from))
}
