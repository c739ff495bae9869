use std::sync::{Arc, Weak};

use alloy_primitives::{Address, B256};
use engine::Engine;
use pool::{SenderState, Senders};

/// The accounts of an engine, for a pool. The engine may have the pool as the source of its builds,
/// so they do not keep it alive.
#[derive(Debug)]
pub struct EngineAccounts(Weak<Engine>);

impl EngineAccounts {
    /// The accounts of this engine.
    pub fn of(engine: &Arc<Engine>) -> Self {
        Self(Arc::downgrade(engine))
    }
}

impl Senders for EngineAccounts {
    fn sender(&self, head: B256, address: Address) -> Result<SenderState, String> {
        let engine = self.0.upgrade().ok_or("the node stops")?;
        let account = engine.state(head).and_then(|state| state.account(address));
        let account = account.map_err(|error| error.to_string())?;
        Ok(account.map_or_else(SenderState::default, |account| SenderState {
            nonce: account.nonce,
            balance: account.balance,
            code_hash: account.code_hash,
        }))
    }
}
