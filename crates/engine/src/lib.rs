//! An Ethereum execution engine: payloads in, verdicts and execution witnesses out.
//!
//! [`Engine`] validates payloads, follows the fork choice, builds payloads, makes calls, and
//! answers every valid block with its execution witness, on the first call and on every later one.
//! It speaks no protocol and starts no runtime; `deponent node` puts it behind the Engine API.
//!
//! # Example
//!
//! A chain in memory, a payload, its verdict, and its witness, by which the block can be verified
//! without the state:
//!
//! ```
//! # extern crate execution as deponent_execution;
//! use alloy_primitives::Bytes;
//! use alloy_rpc_types_engine::{ExecutionPayload, ExecutionPayloadSidecar, PayloadAttributes};
//! use deponent_engine::{Engine, Genesis, Payload, Verdict};
//! use deponent_execution::ChainSpec;
//!
//! // A chain of its own, merged and on Shanghai from its first block on.
//! let file: alloy_genesis::Genesis = serde_json::from_str(
//!     r#"{
//!         "config": {"chainId": 1337, "terminalTotalDifficulty": 0, "shanghaiTime": 0,
//!             "homesteadBlock": 0, "eip150Block": 0, "eip155Block": 0, "eip158Block": 0,
//!             "byzantiumBlock": 0, "constantinopleBlock": 0, "petersburgBlock": 0,
//!             "istanbulBlock": 0, "berlinBlock": 0, "londonBlock": 0},
//!         "gasLimit": "0x1c9c380", "difficulty": "0x0",
//!         "alloc": {"0x00000000000000000000000000000000000000aa": {"balance": "0x1"}}
//!     }"#,
//! )?;
//! let chain = ChainSpec::from_config(&file.config)?;
//! let engine = Engine::new(chain.clone(), Genesis::new(&file, &chain)?)?;
//!
//! // A payload on its first block, as a consensus client would bring it.
//! let attributes =
//!     PayloadAttributes { timestamp: 12, withdrawals: Some(Vec::new()), ..Default::default() };
//! let first = engine.heads().genesis;
//! let block = engine.build(first, attributes, Vec::new(), Bytes::new())?.block;
//! let (execution, _) = ExecutionPayload::from_block_unchecked(block.hash(), &block);
//! let payload = Payload { execution, sidecar: ExecutionPayloadSidecar::none() };
//!
//! let (verdict, assembled) = engine.new_payload_with_witness(payload)?;
//! assert_eq!(verdict, Verdict::Valid);
//! let witness = assembled.expect("a valid block has a witness").witness;
//! deponent_execution::verify(&chain, &block, None, &witness)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Threads
//!
//! All functions are synchronous and may be called from any thread. One block runs at a time; the
//! fork choice and everything that reads do not wait for it. The engine owns the threads that help
//! a block: trie workers, and a pool that recovers senders, runs transactions ahead and hashes.
//! Behind the answer, two threads of the lowest priority seal blocks and persist them.
//!
//! # Persistence
//!
//! A chain on disk is opened by [`Engine::open`] from a [`state::Database`]; [`Engine::new`] keeps
//! one in memory. A block can be built on as soon as it is valid. It is in the database's journal
//! before that, and runs again after a crash unless it is [persisted](Engine::on_persisted); a
//! finalized block is reported as final after that ([`Engine::finalized`]). Dropping the engine
//! persists all that it has.
//!
//! # Limits
//!
//! [`EngineOptions`] says how much history and how many witnesses are kept, how much memory the
//! caches take, and how many threads there are. Where more waits for the disk than
//! [`EngineOptions::unpersisted_bytes`], `newPayload` waits, the fork choice never. All other
//! bounds are in [`limits`]. An invalid block is a [`Verdict`]; an [`Error`] means that no verdict
//! was possible.
//!
//! # Floors
//!
//! The modules stand on floors, and import downwards only: 0 options, limits and errors; 1 threads;
//! 2 the chain as data; 3 reading a version, witnesses, and the work behind an answer; 4 a block
//! while it runs; 5 the engine's functions. `new_payload.rs` is the path of a payload, top to
//! bottom.

mod after;
mod amend;
mod block;
mod build;
mod builder;
mod builds;
mod caches;
mod call;
mod chain;
mod engine;
mod error;
mod forkchoice;
mod invalid_log;
mod journal;
pub mod limits;
mod lookup;
mod new_payload;
mod options;
mod orphans;
mod ranges;
mod read;
mod remote;
#[cfg(test)]
mod samples;
mod shared;
#[cfg(test)]
mod simulation;
mod threads;
mod trace;
mod tries;
mod whole_state;
mod witnesses;

pub use amend::{Amendment, StateHandle};
pub use builds::{BuildRequest, Built, HeaderChoice};
pub use caches::CacheUse;
pub use chain::events::{BuildStep, ChainEvent, ForkchoiceAnswer, ForkchoiceFigures, HeadChange};
pub use chain::figures::{BlockFigures, StateReads, StateWrites};
pub use chain::found::{FoundLog, TakeLog};
pub use chain::genesis::{Genesis, StateEntry, initialise};
pub use chain::persisted::PersistedBlock;
pub use chain::record::{BlockRecord, WitnessBytes, WitnessSize};
pub use chain::state_import::{ImportedAccount, ImportedState, StateImport, unfinished_state};
pub use chain::stored::block_header;
pub use chain::timings::Timings;
pub use chain::tree::Heads;
pub use chain::verdict::{JudgedPayload, Missing, Verdict};
pub use engine::Engine;
pub use error::Error;
pub use execution::{Candidates, TransactionSource};
pub use forkchoice::ForkchoiceOutcome;
pub use lookup::{ChainSince, index_old_blocks};
pub use new_payload::Payload;
pub use options::EngineOptions;
pub use orphans::{MissingBlock, SyncProgress};
pub use ranges::ModifiedAccount;
pub use read::pending::{PendingBlock, PendingView, StateAt};
pub use read::view::{AccountRange, StateView, StorageRange};
pub use remote::{Remote, RemoteBlock, RemoteProof, Upstream};
pub use whole_state::{StateNames, WholeAccount};
pub use witnesses::assembled::Assembled;

#[cfg(test)]
use testing::world;
