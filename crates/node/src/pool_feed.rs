//! The transaction pool of a node: it reads the engine's accounts, and is told of new heads on the
//! thread of the feed.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use alloy_consensus::Transaction as _;
use alloy_primitives::{B256, U256};
use anyhow::Context as _;
use dev::EngineAccounts;
use engine::{ChainEvent, Engine, HeadChange, WitnessSize};
use pool::{Options, Pool, Returned, Status};
use state::DirectoryDisk;

use crate::limits::{POOL_REORG_BLOCKS, POOL_STALE_PAUSE};
use crate::observe::Observer;

/// The settings of a node's pool.
#[derive(Debug, Clone, Default)]
pub struct TxpoolOptions {
    /// The bounds of its transactions.
    pub pool: Options,
    /// The bounds of what ports hand to it.
    pub send: SendBounds,
}

/// The bounds of transactions that are sent to a port.
#[derive(Debug, Clone, Copy)]
pub struct SendBounds {
    /// The most that the gas of a transaction may cost, in wei; `None` for any sum.
    pub fee_cap: Option<U256>,
    /// Whether a transaction may name no chain (EIP-155).
    pub allows_unprotected: bool,
}

impl Default for SendBounds {
    fn default() -> Self {
        Self { fee_cap: Some(ETHER), allows_unprotected: false }
    }
}

/// Wei of an ether.
pub(crate) const ETHER: U256 = U256::from_limbs([1_000_000_000_000_000_000, 0, 0, 0]);

impl SendBounds {
    /// Refuses what may be an accident, with geth's words (`SubmitTransaction`).
    pub(crate) fn check(&self, transaction: &execution::Transaction) -> Result<(), String> {
        let gas = U256::from(transaction.gas_limit());
        let fee = gas * U256::from(transaction.max_fee_per_gas());
        if let Some(cap) = self.fee_cap.filter(|cap| fee > *cap) {
            let [fee, cap] = [fee, cap].map(|wei| f64::from(wei) / 1e18);
            return Err(format!(
                "tx fee ({fee:.2} ether) exceeds the configured cap ({cap:.2} ether)"
            ));
        }
        if transaction.chain_id().is_none() && !self.allows_unprotected {
            let words = "only replay-protected (EIP-155) transactions allowed over RPC";
            return Err(words.into());
        }
        Ok(())
    }
}

/// Makes the pool of an engine, at its head, with the transactions in its directory. Builds take
/// their transactions from it.
///
/// # Errors
/// If the head or the directory cannot be read.
pub(crate) fn pool_of(
    engine: &Arc<Engine>,
    options: Options,
    directory: &Path,
) -> anyhow::Result<Arc<Pool>> {
    let head = engine.block(engine.heads().head)?;
    let head = head.expect("the head is a valid block").block.header.clone();
    let accounts = Box::new(EngineAccounts::of(engine));
    let pool = Pool::new(engine.chain().clone(), options, accounts, head);
    let disk = DirectoryDisk::open(directory)?;
    let pool = pool.with_log(disk).map_err(anyhow::Error::msg).with_context(|| {
        format!("cannot read the transaction pool: move {} away", directory.display())
    })?;
    let Status { pending, queued } = pool.status();
    if pending + queued > 0 {
        tracing::info!(pending, queued, "transactions of the last run are in the pool");
    }
    let pool = Arc::new(pool);
    engine.draw_from(pool.clone());
    Ok(pool)
}

/// Tells the pool of new heads.
#[derive(Debug)]
pub(crate) struct PoolFeed {
    engine: Arc<Engine>,
    pool: Arc<Pool>,
    /// When old queued transactions were last removed.
    removed: Instant,
}

impl PoolFeed {
    pub(crate) fn new(engine: Arc<Engine>, pool: Arc<Pool>) -> Self {
        Self { engine, pool, removed: Instant::now() }
    }

    fn follow(&self, head: B256, left: &[B256], joined: &[B256]) {
        let Ok(Some(record)) = self.engine.block(head) else { return };
        let body = |hash: &B256| self.engine.block(*hash).ok()?.filter(|record| record.has_body());
        let mut change =
            pool::HeadChange { head: record.block.header.clone(), ..pool::HeadChange::default() };
        let joined = joined.iter().rev().take(POOL_REORG_BLOCKS);
        for record in joined.filter_map(body) {
            change.included.extend(record.block.body.transactions.iter().map(|it| *it.hash()));
        }
        let finalized = self.engine.heads().finalized;
        change.finalized = finalized.and_then(|hash| self.engine.number(&hash).ok().flatten());
        // From the oldest block on.
        for record in left.iter().take(POOL_REORG_BLOCKS).rev().filter_map(body) {
            let transactions = record.block.body.transactions.iter().zip(&record.senders);
            change.returned.extend(transactions.map(|(transaction, sender)| Returned {
                hash: *transaction.hash(),
                transaction: transaction.clone(),
                sender: *sender,
            }));
        }
        if let Err(error) = self.pool.head_changed(change) {
            tracing::warn!(%head, %error, "the transaction pool does not follow the head");
        }
    }
}

impl Observer for PoolFeed {
    fn event(&mut self, event: &ChainEvent, _: Option<WitnessSize>) {
        if let ChainEvent::Chosen(change) = event {
            let HeadChange { before, now, left, joined } = change;
            if before.head != now.head {
                self.follow(now.head, left, joined);
            }
        }
    }

    fn lost(&mut self, _: u64) {
        self.follow(self.engine.heads().head, &[], &[]);
    }

    fn second(&mut self) {
        if self.removed.elapsed() >= POOL_STALE_PAUSE {
            self.pool.remove_stale();
            self.removed = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_consensus::{SignableTransaction as _, TxLegacy};
    use alloy_primitives::Signature;

    #[test]
    fn transactions_that_may_be_accidents_are_refused_unless_they_are_allowed() {
        let check = |bounds: SendBounds, gas_price, chain_id| {
            let transaction = TxLegacy { chain_id, gas_price, gas_limit: 1_000_000, ..def() };
            bounds.check(&transaction.into_signed(Signature::test_signature()).into())
        };
        let (usual, chain) = (SendBounds::default(), Some(1));
        let ether = 1_000_000_000_000;
        assert_eq!(check(usual, ether, chain), Ok(()));
        let words = "tx fee (1.25 ether) exceeds the configured cap (1.00 ether)";
        assert_eq!(check(usual, ether * 5 / 4, chain), Err(words.into()));
        let words = "only replay-protected (EIP-155) transactions allowed over RPC";
        assert_eq!(check(usual, ether, None), Err(words.into()));
        let all = SendBounds { fee_cap: None, allows_unprotected: true };
        assert_eq!(check(all, ether * 100, None), Ok(()));
    }

    fn def() -> TxLegacy {
        TxLegacy::default()
    }
}
