//! The pending block of a node: the next one, as it would be built now out of the pool.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use alloy_consensus::Header;
use alloy_hardforks::EthereumHardforks;
use alloy_primitives::{Address, B256};
use alloy_rpc_types_engine::PayloadAttributes;
use engine::{Engine, Error, PendingBlock};

use crate::dev::DevNode;
use crate::limits::PENDING_TIME;

/// The pending block that was made last. It is made when it is first asked for, and stays until the
/// head moves, for two seconds at most.
#[derive(Debug, Default)]
pub(crate) struct PendingBlocks(Mutex<Option<(Instant, Arc<PendingBlock>)>>);

impl PendingBlocks {
    /// The pending block now. On a chain for tests it is made anew each time: its state and its
    /// clock may change without a block.
    ///
    /// # Errors
    /// Those of [`Engine::pending`].
    pub(crate) fn get(
        &self,
        engine: &Engine,
        dev: Option<&DevNode>,
    ) -> Result<Arc<PendingBlock>, Error> {
        if let Some(dev) = dev {
            return dev.chain.pending().map(Arc::new);
        }
        // Those who ask meanwhile wait for the one that is made.
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let head = engine.heads().head;
        if let Some((made, block)) = &*last
            && block.parent_hash() == head
            && made.elapsed() < PENDING_TIME
        {
            return Ok(block.clone());
        }
        // It is of no use any more.
        *last = None;
        let parent = engine.block(head)?.ok_or(Error::UnknownBlock(head))?;
        let attributes = attributes(engine, &parent.block.header);
        let block = Arc::new(engine.pending(head, attributes, engine.extra_data())?);
        *last = Some((Instant::now(), block.clone()));
        Ok(block)
    }
}

/// The attributes of a block that no consensus client has asked for.
fn attributes(engine: &Engine, parent: &Header) -> PayloadAttributes {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let timestamp = now.max(parent.timestamp.saturating_add(1));
    let chain = engine.chain();
    let amsterdam = chain.is_amsterdam_active_at_timestamp(timestamp);
    PayloadAttributes {
        timestamp,
        prev_randao: B256::ZERO,
        suggested_fee_recipient: Address::ZERO,
        withdrawals: chain.is_shanghai_active_at_timestamp(timestamp).then(Vec::new),
        parent_beacon_block_root: chain
            .is_cancun_active_at_timestamp(timestamp)
            .then_some(B256::ZERO),
        slot_number: amsterdam.then(|| parent.slot_number.map_or(0, |slot| slot + 1)),
        target_gas_limit: None,
    }
}
