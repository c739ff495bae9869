//! `deponent dev`: a node that mines its own chain for tests.

mod fork;
mod printed_blocks;
mod wallet;

use std::sync::{Arc, PoisonError, RwLock};

use ::dev::{DevChain, Mining};
use alloy_primitives::U256;
use anyhow::{Context as _, bail};
use engine::StateNames;
use execution::ChainSpec;

pub use fork::ForkPoint;
pub(crate) use fork::{GivenRules, endowments, rules_told, within};
pub(crate) use printed_blocks::print_blocks;
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
    /// The block of another chain with which it begins, if it does.
    pub fork: Option<Arc<ForkPoint>>,
    /// The balance of its accounts on a fork, in wei; elsewhere the genesis has it.
    pub balance: U256,
    /// Whether all accounts may send transactions without a signature.
    pub impersonates_all: bool,
    /// Accounts of the first block, beside those of the wallet, with their slots.
    pub names: StateNames,
}

/// The chain of such a node, and its accounts.
#[derive(Debug)]
pub(crate) struct DevNode {
    pub(crate) chain: Arc<DevChain>,
    pub(crate) wallet: Wallet,
    /// As in [`DevOptions`].
    pub(crate) client_version: Option<String>,
    /// The block of another chain with which it begins.
    fork: RwLock<Option<Arc<ForkPoint>>>,
    /// The balance of its accounts on a fork, in wei.
    balance: U256,
}

impl DevNode {
    pub(crate) fn new(chain: Arc<DevChain>, options: DevOptions) -> Self {
        let DevOptions { wallet, client_version, fork, balance, .. } = options;
        Self { chain, wallet, client_version, fork: RwLock::new(fork), balance }
    }

    /// Begins anew with a block of another chain: at the same endpoint where no URL is given, with
    /// its head where no number is.
    pub(crate) fn fork_again(&self, url: Option<&str>, number: Option<u64>) -> anyhow::Result<()> {
        let Some(fork) = self.fork() else {
            bail!("this chain begins with its own first block: start one with --fork-url");
        };
        let engine = self.chain.engine();
        let remote = engine.remote().context("this chain has no state that is elsewhere")?;
        let next = fork.next(url, number)?;
        let rules = ChainSpec::from_config(next.config())?;
        if let Some(difference) = engine.chain().difference(&rules, None) {
            bail!(
                "block {} of {} has other rules ({difference}): start another chain with \
                 --fork-block-number",
                next.header.number,
                next.endpoint
            );
        }
        next.add_to(remote);
        let amendments = endowments(self.wallet.addresses(), self.balance);
        self.chain.begin_anew(next.header.clone(), &amendments)?;
        *self.fork.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(next));
        Ok(())
    }

    /// The block of another chain with which it begins, if it does.
    pub(crate) fn fork(&self) -> Option<Arc<ForkPoint>> {
        self.fork.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
