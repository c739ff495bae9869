//! Floor 5. Transactions by their hash, and logs by what is in them.

use crate::chain::found::{TakeLog, search_logs, search_stored_logs, stored_canonical};
use crate::chain::parts::StoredParts;
use crate::chain::record::BlockRecord;
use crate::engine::Engine;
use crate::error::Error;
use crate::limits;
use crate::shared::Chain;
use alloy_primitives::{B256, Bloom, Log};
use state::Database;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// How the canonical chain has changed since one of its blocks was the head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainSince {
    /// The blocks that have left the chain, the newest first.
    pub left: Vec<B256>,
    /// The block below them, on which the others stand.
    pub fork: B256,
    /// The number of that block.
    pub fork_number: u64,
    /// The blocks that are canonical now, the oldest first.
    pub joined: Vec<B256>,
}

impl Engine {
    /// How the canonical chain has changed since `head` was its head, as one fork choice left it:
    /// at most `most` blocks that left and `most` that joined, those first that come first.
    /// Without the last of those that left there are none that joined. `None` when `head` is
    /// no valid block that is kept.
    ///
    /// # Errors
    /// [`Error::Storage`] when the database cannot be read.
    pub fn changes_since(&self, head: B256, most: usize) -> Result<Option<ChainSince>, Error> {
        let chain = &self.shared.chain;
        loop {
            let (reorgs, now) = {
                let tree = chain.tree();
                (tree.reorgs, tree.heads.head)
            };
            let found = changes_between(chain, head, now, most)?;
            if chain.tree().reorgs == reorgs {
                return Ok(found);
            }
        }
    }

    /// The canonical block with this transaction, and the transaction's place in it. Blocks that
    /// are not persisted yet are searched too.
    ///
    /// # Errors
    /// [`Error::NotIndexed`] where it is not found and older blocks are not indexed;
    /// [`Error::Storage`] when the database cannot be read.
    pub fn find_transaction(
        &self,
        hash: &B256,
    ) -> Result<Option<(Arc<BlockRecord>, usize)>, Error> {
        let chain = &self.shared.chain;
        loop {
            let (reorgs, changes) = {
                let tree = chain.tree();
                (tree.reorgs, tree.changes_in(0..=u64::MAX))
            };
            let newest = changes.into_iter().rev().filter_map(|(_, changed)| changed);
            for block in newest {
                if let Some(found) = transaction_in(chain, &block, hash)? {
                    return Ok(Some(found));
                }
            }
            for number in chain.database.transaction_blocks(hash)? {
                let Some(block) = chain.canonical_hash(number)? else { continue };
                if let Some(found) = transaction_in(chain, &block, hash)? {
                    return Ok(Some(found));
                }
            }
            // Otherwise it may have moved to another block meanwhile.
            if chain.tree().reorgs == reorgs {
                break;
            }
        }
        match self.indexed_from()? {
            from if from > self.first_number() => Err(Error::NotIndexed(from)),
            _ => Ok(None),
        }
    }

    /// The canonical blocks of these numbers, up to the head, whose log bloom is `wanted`,
    /// ascending, all of them as one fork choice left the chain.
    ///
    /// # Errors
    /// [`Error::NotIndexed`] where some of them are not indexed; [`Error::Storage`] when the
    /// database cannot be read.
    pub fn blocks_by_bloom(
        &self,
        numbers: RangeInclusive<u64>,
        wanted: &dyn Fn(&Bloom) -> bool,
    ) -> Result<Vec<(u64, B256)>, Error> {
        let chain = &self.shared.chain;
        if numbers.is_empty() {
            return Ok(Vec::new());
        }
        loop {
            let (reorgs, changes) = {
                let tree = chain.tree();
                (tree.reorgs, tree.changes_in(numbers.clone()))
            };
            // From the first change on there are only such.
            let stored_to = match changes.first() {
                Some((first, _)) => first.checked_sub(1),
                None => Some(*numbers.end()),
            };
            let stored = match stored_to {
                Some(to) => chain.database.blocks_by_bloom(*numbers.start()..=to, wanted)?,
                None => Some(Vec::new()),
            };
            let Some(mut found) = stored else {
                return Err(Error::NotIndexed(self.indexed_from()?));
            };
            for (number, hash) in changes {
                if let Some(hash) = hash
                    && wanted(&bloom(chain, &hash)?)
                {
                    found.push((number, hash));
                }
            }
            if chain.tree().reorgs == reorgs {
                return Ok(found);
            }
        }
    }

    /// Has the logs of a valid block taken that are `wanted`, in their order, whatever branch the
    /// block is on. It returns about the bytes that were read; `None` when there is no such block.
    ///
    /// # Errors
    /// [`Error::NoReceipts`] of the first block of a chain that begins with a state;
    /// [`Error::Storage`] when the database cannot be read.
    pub fn search_logs(
        &self,
        hash: &B256,
        wanted: &dyn Fn(&Log) -> bool,
        take: &mut TakeLog<'_>,
    ) -> Result<Option<usize>, Error> {
        let chain = &self.shared.chain;
        let recent = chain.tree().recent(hash).cloned();
        let (has_receipts, read_bytes) = match recent {
            Some(record) => (search_logs(&record, wanted, take), 0),
            None => match chain.database.block(hash)? {
                Some(stored) => (search_stored_logs(*hash, &stored, wanted, take)?, stored.len()),
                None => return Ok(None),
            },
        };
        if has_receipts { Ok(Some(read_bytes)) } else { Err(Error::NoReceipts(*hash)) }
    }

    /// The number from which on canonical blocks are found by their transactions and logs.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn indexed_from(&self) -> Result<u64, Error> {
        let chain = &self.shared.chain;
        let persisted = chain.number(&chain.persisted.get().head)?;
        Ok(chain.database.indexed_from()?.unwrap_or(persisted + 1))
    }
}

/// The changes from one head to another, as long as that one is canonical.
fn changes_between(
    chain: &Chain,
    before: B256,
    now: B256,
    most: usize,
) -> Result<Option<ChainSince>, Error> {
    let Some((mut fork_number, mut parent)) = chain.link(&before)? else { return Ok(None) };
    let (mut fork, mut left, mut joined) = (before, Vec::new(), Vec::new());
    let is_canonical = |number, hash| Ok::<_, Error>(chain.canonical_hash(number)? == Some(hash));
    let mut is_on_chain = is_canonical(fork_number, fork)?;
    while !is_on_chain && left.len() < most {
        left.push(fork);
        let Some(link) = chain.link(&parent)? else { return Ok(None) };
        fork = parent;
        (fork_number, parent) = link;
        is_on_chain = is_canonical(fork_number, fork)?;
    }
    if is_on_chain {
        let last = chain.number(&now)?.min(fork_number.saturating_add(most as u64));
        for number in fork_number + 1..=last {
            joined.extend(chain.canonical_hash(number)?);
        }
    }
    Ok(Some(ChainSince { left, fork, fork_number, joined }))
}

/// The block, if it has this transaction, and the transaction's place.
fn transaction_in(
    chain: &Chain,
    block: &B256,
    hash: &B256,
) -> Result<Option<(Arc<BlockRecord>, usize)>, Error> {
    let Some(record) = chain.block(block)? else { return Ok(None) };
    let transactions = &record.block.body.transactions;
    let place = transactions.iter().position(|transaction| transaction.hash() == hash);
    Ok(place.map(|place| (record, place)))
}

/// The log bloom of a valid block.
fn bloom(chain: &Chain, hash: &B256) -> Result<Bloom, Error> {
    let recent = chain.tree().recent(hash).map(|record| record.block.header.logs_bloom);
    if let Some(bloom) = recent {
        return Ok(bloom);
    }
    let stored = chain.database.block(hash)?.ok_or(Error::UnknownBlock(*hash))?;
    Ok(StoredParts::of(&stored)?.decode_header()?.logs_bloom)
}

/// Indexes the canonical blocks of a database that no engine has open, as far as they are not, from
/// the newest to the oldest. `progress` is told the number of blocks that are done, and of all that
/// are to be. What is done stays done when it is stopped. Returns the number of blocks.
///
/// # Errors
/// When the database cannot be read or written.
pub fn index_old_blocks(
    database: &Database,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<u64, Error> {
    index_in_batches(database, limits::INDEX_BLOCKS, progress)
}

/// The same, with at most so many blocks in one transaction of the database.
pub(crate) fn index_in_batches(
    database: &Database,
    blocks: usize,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<u64, Error> {
    let number = |hash: Option<B256>| -> Result<u64, Error> {
        let Some(hash) = hash else { return Ok(0) };
        Ok(database.entry(&hash)?.ok_or(Error::UnknownBlock(hash))?.number)
    };
    let heads = database.heads();
    let Some(head) = heads.head else { return Ok(0) };
    let first = number(heads.genesis)?;
    let from =
        database.indexed_from()?.map_or_else(|| Ok(number(Some(head))? + 1), Ok::<_, Error>)?;
    let total = from.saturating_sub(first);
    let (mut batch, mut transactions) = (Vec::new(), 0);
    for number in (first..from).rev() {
        let missing = || Error::Storage(format!("there is no canonical block {number}"));
        let hash = database.canonical(number)?.ok_or_else(missing)?;
        let stored = database.block(&hash)?.ok_or_else(missing)?;
        let block = stored_canonical(hash, &stored)?;
        transactions += block.transaction_count();
        batch.push((number, block));
        let is_full =
            batch.len() >= blocks || transactions >= limits::INDEX_TRANSACTIONS || number == first;
        if is_full {
            database.index_below(&batch)?;
            batch.clear();
            transactions = 0;
            progress(from - number, total);
        }
    }
    Ok(total)
}
