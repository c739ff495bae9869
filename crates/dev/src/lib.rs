//! A chain for tests: it mines its own blocks, without a consensus layer.
//!
//! A [`DevChain`] has an engine, which validates each block and has its witness, and a pool. It
//! mines a block for each transaction, at intervals, or when it is told to. Its clock can be moved,
//! and [snapshots](DevChain::snapshot) are places to come back to.
//!
//! [`DevChain::amend`] changes accounts without a transaction. The blocks after such a change are
//! valid on this chain alone: their parent's header does not have the root of the changed state.
//! All others are ordinary blocks, which every client validates.
//!
//! Any account may send transactions: one that [`impersonated`] makes has no signature, but names
//! its sender. Times are in seconds since the epoch, fees and balances in wei.
//!
//! ```
//! # extern crate engine as deponent_engine;
//! # extern crate pool as deponent_pool;
//! use std::sync::Arc;
//!
//! use alloy_primitives::{Address, U256};
//! use deponent_dev::{DevChain, DevGenesis, Mining};
//! use deponent_engine::{Amendment, Engine};
//!
//! // A chain at Osaka, in memory, with one rich account.
//! let who = Address::repeat_byte(1);
//! let genesis = DevGenesis::default().rich(who, U256::from(10).pow(U256::from(22))).build()?;
//! let engine = Arc::new(Engine::new(genesis.chain, genesis.first)?);
//! let dev = DevChain::new(engine.clone(), Mining::default())?;
//!
//! let snapshot = dev.snapshot()?;
//! dev.amend(&[(who, Amendment::Balance(U256::from(5)))])?;
//! let block = dev.mine(1, None)?[0];
//! assert_eq!(engine.heads().head, block);
//! assert_eq!(engine.state(block)?.account(who)?.map(|who| who.balance), Some(U256::from(5)));
//!
//! assert!(dev.revert(snapshot)?);
//! assert_eq!(engine.heads().head, engine.heads().genesis);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod accounts;
mod chain;
mod clock;
mod dump;
mod error;
mod genesis;
mod impersonate;
pub mod limits;
mod mining;
mod snapshots;

pub use accounts::EngineAccounts;
pub use chain::DevChain;
pub use error::Error;
pub use genesis::{DevGenesis, Genesis, missing_contracts};
pub use impersonate::impersonated;
pub use mining::Mining;
pub use snapshots::SnapshotId;
