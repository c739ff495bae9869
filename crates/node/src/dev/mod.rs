//! `deponent dev`: a node that mines its own chain for tests.

mod wallet;

use std::sync::Arc;

use ::dev::{DevChain, Mining};

pub use wallet::Wallet;
pub(crate) use wallet::{DERIVATION_PATH, MNEMONIC};

/// How a node mines its own chain.
#[derive(Debug, Clone, Default)]
pub struct DevOptions {
    /// When blocks are mined.
    pub mining: Mining,
    /// The accounts that the node signs for.
    pub wallet: Wallet,
    /// The answer to `web3_clientVersion`, where it is not the node's own.
    pub client_version: Option<String>,
}

/// The chain of such a node, and its accounts.
#[derive(Debug)]
pub(crate) struct DevNode {
    pub(crate) chain: Arc<DevChain>,
    pub(crate) wallet: Wallet,
    /// As in [`DevOptions`].
    pub(crate) client_version: Option<String>,
}
