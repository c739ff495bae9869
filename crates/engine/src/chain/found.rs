//! Floor 2. Log blooms and transactions of canonical blocks, and the logs in a block.

use crate::chain::parts::StoredParts;
use crate::chain::record::BlockRecord;
use crate::error::Error;
use alloy_eips::eip2718::Decodable2718;
use alloy_primitives::{B256, Log, keccak256};
use execution::Receipt;
use state::NewCanonical;

/// Logs of a block, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockLogs {
    /// The block's hash.
    pub hash: B256,
    /// The block's number.
    pub number: u64,
    /// The block's time, in seconds.
    pub timestamp: u64,
    /// Those of its logs that were wanted.
    pub logs: Vec<BlockLog>,
    /// About the bytes that were read for them.
    pub read_bytes: usize,
}

/// A log, and its place in its block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockLog {
    /// The log.
    pub log: Log,
    /// Its place among the block's logs.
    pub index: u64,
    /// The place of its transaction in the block.
    pub transaction_index: u64,
    /// The hash of its transaction.
    pub transaction_hash: B256,
}

/// A block that becomes canonical, with its log bloom and its transactions.
pub(crate) fn new_canonical(record: &BlockRecord) -> NewCanonical {
    let BlockRecord { block, .. } = record;
    let hashes = block.body.transactions.iter().map(|transaction| *transaction.hash());
    NewCanonical::new(record.hash(), block.header.logs_bloom, hashes)
}

/// The same of a block as the database has it.
pub(crate) fn stored_canonical(hash: B256, stored: &[u8]) -> Result<NewCanonical, Error> {
    let parts = StoredParts::of(stored)?;
    let bloom = parts.decode_header()?.logs_bloom;
    Ok(NewCanonical::new(hash, bloom, parts.transaction_hashes()?))
}

/// The logs of a block that are wanted; `None` where the receipts are not there, as those of the
/// first block of a chain that begins with a state.
pub(crate) fn logs_of(record: &BlockRecord, wanted: &dyn Fn(&Log) -> bool) -> Option<BlockLogs> {
    let BlockRecord { block, receipts, .. } = record;
    if receipts.is_empty() && block.header.receipts_root != trie::EMPTY_ROOT_HASH {
        return None;
    }
    let mut found = FoundLogs::default();
    for (receipt, transaction) in receipts.iter().zip(&block.body.transactions) {
        found.add(receipt.logs(), wanted, || *transaction.hash());
    }
    Some(BlockLogs {
        hash: record.hash(),
        number: record.number(),
        timestamp: block.header.timestamp,
        logs: found.logs,
        read_bytes: 0,
    })
}

/// The same of a block as the database has it. Transactions are not decoded.
pub(crate) fn stored_logs(
    hash: B256,
    stored: &[u8],
    wanted: &dyn Fn(&Log) -> bool,
) -> Result<Option<BlockLogs>, Error> {
    let parts = StoredParts::of(stored)?;
    let mut found = FoundLogs::default();
    for (receipt, transaction) in parts.receipts().zip(parts.transactions()) {
        let (mut receipt, transaction) = (receipt?, transaction?);
        let receipt = Receipt::decode_2718(&mut receipt).map_err(|error| {
            Error::Storage(format!("a block's receipts cannot be read back: {error}"))
        })?;
        found.add(receipt.logs(), wanted, || keccak256(transaction));
    }
    let header = parts.decode_header()?;
    if found.transactions == 0 && header.receipts_root != trie::EMPTY_ROOT_HASH {
        return Ok(None);
    }
    Ok(Some(BlockLogs {
        hash,
        number: header.number,
        timestamp: header.timestamp,
        logs: found.logs,
        read_bytes: stored.len(),
    }))
}

/// Collects the logs that are wanted, transaction by transaction.
#[derive(Default)]
struct FoundLogs {
    logs: Vec<BlockLog>,
    transactions: u64,
    seen: u64,
}

impl FoundLogs {
    fn add(&mut self, logs: &[Log], wanted: &dyn Fn(&Log) -> bool, hash: impl Fn() -> B256) {
        let found = (self.seen..).zip(logs).filter(|(_, log)| wanted(log)).collect::<Vec<_>>();
        if !found.is_empty() {
            let transaction_hash = hash();
            self.logs.extend(found.into_iter().map(|(index, log)| BlockLog {
                log: log.clone(),
                index,
                transaction_index: self.transactions,
                transaction_hash,
            }));
        }
        self.seen += logs.len() as u64;
        self.transactions += 1;
    }
}
