//! Transactions that are in no block, as JSON-RPC shows them.

use ::pool::{Pool, Pooled};
use alloy_consensus::transaction::{Recovered, TransactionInfo};
use alloy_primitives::{Address, B256};
use alloy_rpc_types_eth::Transaction;
use engine::Engine;
use serde::Serialize;

/// A transaction that is in no block.
#[derive(Serialize)]
pub(crate) struct Unmined {
    #[serde(flatten)]
    transaction: Transaction<execution::Transaction>,
    /// `null`, as the block's other members.
    #[serde(rename = "blockTimestamp")]
    block_timestamp: (),
}

impl Unmined {
    pub(crate) fn new(pooled: &Pooled) -> Self {
        Self::of(pooled.transaction().clone(), pooled.sender())
    }

    /// A transaction that became pending, as it was then: it is in the pool, or in a canonical
    /// block by now. `None` of one that has gone, and where the index cannot be read.
    pub(crate) fn find(engine: &Engine, pool: &Pool, hash: B256) -> Option<Self> {
        if let Some(pooled) = pool.transaction(hash) {
            return Some(Self::new(&pooled));
        }
        let (record, index) = engine.find_transaction(&hash).ok().flatten()?;
        let transaction = record.block.body.transactions.get(index)?.clone();
        Some(Self::of(transaction, *record.senders.get(index)?))
    }

    fn of(transaction: execution::Transaction, sender: Address) -> Self {
        let recovered = Recovered::new_unchecked(transaction, sender);
        let transaction = Transaction::from_transaction(recovered, TransactionInfo::default());
        Self { transaction, block_timestamp: () }
    }
}
