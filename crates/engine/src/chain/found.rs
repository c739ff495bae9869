//! Floor 2. Log blooms and transactions of canonical blocks, and the logs in a block.

use crate::chain::parts::StoredParts;
use crate::chain::record::BlockRecord;
use crate::error::Error;
use alloy_consensus::Header;
use alloy_eips::eip2718::Decodable2718;
use alloy_primitives::{B256, Log, keccak256};
use execution::Receipt;
use state::NewCanonical;
use std::ops::ControlFlow;

/// A log, and its place.
#[derive(Debug, Clone, Copy)]
pub struct FoundLog<'a> {
    /// The log.
    pub log: &'a Log,
    /// The hash of its block.
    pub block_hash: B256,
    /// The number of its block.
    pub block_number: u64,
    /// The time of its block, in seconds.
    pub timestamp: u64,
    /// Its place among the block's logs.
    pub index: u64,
    /// The place of its transaction in the block.
    pub transaction_index: u64,
    /// The hash of its transaction.
    pub transaction_hash: B256,
}

/// Takes logs one after the other, until it breaks.
pub type TakeLog<'a> = dyn FnMut(FoundLog<'_>) -> ControlFlow<()> + 'a;

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

/// Has the logs of a block taken that are wanted, in their order; false where the receipts are not
/// there, as those of the first block of a chain that begins with a state.
pub(crate) fn search_logs(
    record: &BlockRecord,
    wanted: &dyn Fn(&Log) -> bool,
    take: &mut TakeLog<'_>,
) -> bool {
    let BlockRecord { block, receipts, .. } = record;
    if receipts.is_empty() && block.header.receipts_root != trie::EMPTY_ROOT_HASH {
        return false;
    }
    let mut search = LogSearch::new(record.hash(), &block.header, wanted);
    for (receipt, transaction) in receipts.iter().zip(&block.body.transactions) {
        if search.next(receipt.logs(), take, || *transaction.hash()).is_break() {
            break;
        }
    }
    true
}

/// The same of a block as the database has it. Receipts are decoded one by one, transactions not
/// at all.
pub(crate) fn search_stored_logs(
    hash: B256,
    stored: &[u8],
    wanted: &dyn Fn(&Log) -> bool,
    take: &mut TakeLog<'_>,
) -> Result<bool, Error> {
    let parts = StoredParts::of(stored)?;
    let header = parts.decode_header()?;
    let mut search = LogSearch::new(hash, &header, wanted);
    let mut has_receipts = header.receipts_root == trie::EMPTY_ROOT_HASH;
    for (receipt, transaction) in parts.receipts().zip(parts.transactions()) {
        let (mut receipt, transaction) = (receipt?, transaction?);
        let receipt = Receipt::decode_2718(&mut receipt).map_err(|error| {
            Error::Storage(format!("a block's receipts cannot be read back: {error}"))
        })?;
        has_receipts = true;
        if search.next(receipt.logs(), take, || keccak256(transaction)).is_break() {
            break;
        }
    }
    Ok(has_receipts)
}

/// A search through the logs of a block, transaction by transaction.
struct LogSearch<'a> {
    wanted: &'a dyn Fn(&Log) -> bool,
    block_hash: B256,
    block_number: u64,
    timestamp: u64,
    /// The place of the next log.
    index: u64,
    /// The place of the next transaction.
    transaction_index: u64,
}

impl<'a> LogSearch<'a> {
    fn new(block_hash: B256, header: &Header, wanted: &'a dyn Fn(&Log) -> bool) -> Self {
        let Header { number: block_number, timestamp, .. } = *header;
        Self { wanted, block_hash, block_number, timestamp, index: 0, transaction_index: 0 }
    }

    /// Has the logs of the next transaction taken that are wanted. The hash is made where one is.
    fn next(
        &mut self,
        logs: &[Log],
        take: &mut TakeLog<'_>,
        hash: impl Fn() -> B256,
    ) -> ControlFlow<()> {
        let Self { wanted, block_hash, block_number, timestamp, transaction_index, .. } = *self;
        let mut known = None;
        for (index, log) in (self.index..).zip(logs).filter(|(_, log)| wanted(log)) {
            let transaction_hash = *known.get_or_insert_with(&hash);
            take(FoundLog {
                log,
                block_hash,
                block_number,
                timestamp,
                index,
                transaction_index,
                transaction_hash,
            })?;
        }
        self.index += logs.len() as u64;
        self.transaction_index += 1;
        ControlFlow::Continue(())
    }
}
