//! The chain: payloads in, verdicts and witnesses out.
//!
//! [`Engine`] validates payloads, follows the fork choice, and builds payloads. It is synchronous:
//! one call at a time writes, any number read meanwhile. Every block that it finds valid has its
//! execution witness, on the first call and on every later one.

mod after;
mod block;
mod build;
mod call;
mod chain;
mod engine;
mod error;
mod forkchoice;
pub mod limits;
mod read;
#[cfg(test)]
mod samples;
mod shared;
#[cfg(test)]
mod simulation;
mod threads;
mod witnesses;

pub use after::persist::PersistedBlock;
pub use build::{BuildRequest, Built};
pub use chain::genesis::{Genesis, GenesisAccount, StateEntry, initialise};
pub use chain::record::{BlockRecord, WitnessBytes, WitnessSize, block_header};
pub use chain::tree::Heads;
pub use engine::{Engine, Payload, Timings, Verdict};
pub use error::Error;
pub use forkchoice::ForkchoiceOutcome;
pub use read::version::StateView;
pub use shared::EngineOptions;
pub use witnesses::assemble::Assembled;

#[cfg(test)]
use testing::world;
