//! The logs of a block, as JSON-RPC shows them.

use alloy_rpc_types_eth::Log;
use engine::BlockRecord;

/// All logs of a block, in order.
pub(crate) fn block_logs(record: &BlockRecord) -> Vec<Log> {
    let BlockRecord { block, receipts, .. } = record;
    let (hash, header) = (block.hash(), &block.header);
    let mut shown = Vec::new();
    for (index, (transaction, receipt)) in (0..).zip(block.body.transactions.iter().zip(receipts)) {
        for inner in receipt.logs() {
            shown.push(Log {
                inner: inner.clone(),
                block_hash: Some(hash),
                block_number: Some(header.number),
                block_timestamp: Some(header.timestamp),
                transaction_hash: Some(*transaction.hash()),
                transaction_index: Some(index),
                log_index: Some(shown.len() as u64),
                removed: false,
            });
        }
    }
    shown
}
