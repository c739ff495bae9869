//! Finding transactions and logs in canonical blocks.

use super::Database;
use crate::Error;
use crate::index::{CANONICAL, NewCanonical, lookup, transaction_key};
use alloy_primitives::{B256, Bloom};
use redb::ReadableTable;
use std::ops::RangeInclusive;

impl Database {
    /// The numbers of the blocks that may have the transaction with this hash, the newest first.
    /// The canonical block of each has to be read: it may be another one by now, or have one whose
    /// hash begins with the same eight bytes.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn transaction_blocks(&self, hash: &B256) -> Result<Vec<u64>, Error> {
        let key = transaction_key(hash);
        let mut numbers = self.waiting().transaction_blocks(key);
        numbers
            .extend(self.index.read(|transaction| lookup::transaction_blocks(transaction, key))?);
        numbers.sort_unstable_by_key(|number| std::cmp::Reverse(*number));
        numbers.dedup();
        Ok(numbers)
    }

    /// The canonical blocks of these numbers whose log bloom is `wanted`, ascending; `None` where
    /// the blooms of some are missing, as [`indexed_from`](Self::indexed_from) says.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn blocks_by_bloom(
        &self,
        numbers: RangeInclusive<u64>,
        wanted: &dyn Fn(&Bloom) -> bool,
    ) -> Result<Option<Vec<(u64, B256)>>, Error> {
        if numbers.is_empty() {
            return Ok(Some(Vec::new()));
        }
        let waiting = self.waiting().canonical_in(numbers.clone());
        let mut found = self.index.read(|transaction| {
            let canonical = transaction.open_table(CANONICAL)?;
            // Blocks above it are in no table.
            let last = canonical.last()?.map_or(0, |(number, _)| number.value() + 1);
            let from = lookup::indexed_from(transaction)?.unwrap_or(last).min(last);
            let mut before = *numbers.start()..from.min(numbers.end().saturating_add(1));
            if before.any(|number| !waiting.contains_key(&number)) {
                return Ok(None);
            }
            let mut found = Vec::new();
            lookup::blooms(transaction, numbers.clone(), &mut |number, bloom| {
                if wanted(bloom)
                    && !waiting.contains_key(&number)
                    && let Some(hash) = canonical.get(number)?
                {
                    found.push((number, B256::new(*hash.value())));
                }
                Ok(())
            })?;
            Ok(Some(found))
        })?;
        if let Some(found) = &mut found {
            let waiting = waiting.into_iter().filter_map(|(number, block)| Some((number, block?)));
            let wanted = waiting.filter(|(_, block)| wanted(&block.bloom));
            found.extend(wanted.map(|(number, block)| (number, block.hash)));
            found.sort_unstable();
        }
        Ok(found)
    }

    /// The number from which on all persisted canonical blocks can be found by their transactions
    /// and logs. `None` where none can, as in a store that an earlier version of the program wrote
    /// last.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn indexed_from(&self) -> Result<Option<u64>, Error> {
        self.index.read(lookup::indexed_from)
    }

    /// Drops the index of transactions and logs, so that it can be made anew by
    /// [`index_below`](Self::index_below).
    ///
    /// # Errors
    /// The system's. After one, all writes are refused until the store is opened again.
    pub fn drop_lookup(&self) -> Result<(), Error> {
        let _state = self.persisted();
        self.failing(|| self.index.write(lookup::remove))
    }

    /// Makes canonical blocks findable that were persisted by an earlier version of the program:
    /// those right below [`indexed_from`](Self::indexed_from), or up to the last one, the highest
    /// first, without a gap. They are found when this returns.
    ///
    /// # Errors
    /// The system's. After one, all writes are refused until the store is opened again.
    ///
    /// # Panics
    /// When there is a gap.
    pub fn index_below(&self, blocks: &[(u64, NewCanonical)]) -> Result<(), Error> {
        let state = self.persisted();
        self.failing(|| {
            self.index.write(|transaction| lookup::put_below(transaction, blocks, state.sequence))
        })
    }
}

#[cfg(test)]
mod tests;
