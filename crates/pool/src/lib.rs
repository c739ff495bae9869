//! A pool of Ethereum transactions: admission with geth's rules, order by effective tip,
//! replacement and eviction.
//!
//! A [`Pool`] knows neither engine nor network. It reads accounts through [`Senders`], and is told
//! of new heads.
//!
//! - [`decode`] reads a transaction as it is sent.
//! - [`Pool::add`] checks a transaction and takes it, or answers a [`Refusal`] in geth's words.
//!   The signature is recovered and the sender's account is read outside of the pool's lock.
//! - A sender's transactions are *pending* from its nonce on without a gap, as far as its balance
//!   pays for all of them; the others are *queued*.
//! - [`Pool::with_log`] has transactions outlast the process.
//! - [`Pool::best`] is an iterator over the pending transactions in the order in which a block
//!   takes them. [`Best::skip_sender`] leaves the rest of a sender out, where one cannot run.
//! - [`Pool::head_changed`] is called after each change of the head, also for a reorganisation, and
//!   with the head as it was where accounts changed without a block. Then the accounts of all
//!   senders are read.
//! - [`Pool::blobs`] is for `engine_getBlobs`: blobs stay until their block is finalized.
//! - [`Pool::became_pending`] and [`Pool::wait_for_pending`] are for `newPendingTransactions`.
//! - [`Pool::transaction`], [`Pool::next_nonce`], [`Pool::content`] and [`Pool::status`] are for
//!   `eth_getTransactionByHash`, `eth_getTransactionCount` of `pending`, and `txpool_*`.
//!
//! Room is made by eviction: the last queued transaction of the sender with most queued ones; where
//! there are none, the last pending transaction with the lowest effective tip, first among senders
//! with more than [`Options::account_slots`]. A transaction that would be evicted at once is
//! refused. Values and fees are in wei, tips in wei of gas.
//!
//! ```
//! # extern crate execution as deponent_execution;
//! use std::collections::HashMap;
//!
//! use alloy_consensus::Header;
//! use alloy_primitives::{B256, Bytes, TxKind, U256};
//! use deponent_execution::ChainSpec;
//! use deponent_pool::{HeadChange, Options, Pool, SenderState};
//! # use testing::world::{Signer, chain};
//!
//! // A chain at Osaka, and an account with money.
//! # let chain: ChainSpec = chain("osaka");
//! # let signer = Signer::new(1);
//! let head = Header { gas_limit: 36_000_000, base_fee_per_gas: Some(7), ..Header::default() };
//! let balance = U256::from(10).pow(U256::from(18));
//! let state = SenderState { nonce: 4, balance, code_hash: B256::ZERO };
//! let senders = Box::new(HashMap::from([(signer.address(), state)]));
//! let pool = Pool::new(chain, Options::default(), senders, head.clone());
//!
//! let transfer = |nonce| signer.transact(nonce, TxKind::default(), U256::ZERO, Bytes::new());
//! assert!(pool.add(transfer(4))?.is_pending);
//! assert!(!pool.add(transfer(6))?.is_pending);
//! assert_eq!(pool.next_nonce(signer.address()), Some(5));
//! let refused = pool.add(transfer(3)).unwrap_err();
//! assert_eq!(refused.to_string(), "nonce too low: next nonce 4, tx nonce 3");
//!
//! // A block takes transactions until one does not fit.
//! let mut best = pool.best(pool.next_base_fee());
//! while let Some(next) = best.next() {
//!     if next.cost() > balance {
//!         best.skip_sender(next.sender());
//!     }
//! }
//!
//! // The next head.
//! let head = Header { number: 1, timestamp: 12, ..head };
//! pool.head_changed(HeadChange { head, ..HeadChange::default() })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod account;
mod became_pending;
mod best;
mod book;
mod check;
mod decode;
mod entry;
mod error;
mod head;
mod limits;
mod log;
mod options;
mod pool;
mod sidecar;
mod sidecars;
mod source;

pub use best::Best;
pub use book::Added;
pub use decode::{Sent, decode};
pub use entry::Pooled;
pub use error::Refusal;
pub use head::{SenderState, Senders};
pub use options::Options;
pub use pool::{Content, Figures, HeadChange, Pool, Returned, Status};
pub use sidecar::PooledBlob;
