//! The chain: payloads in, verdicts and witnesses out.
//!
//! [`Engine`] validates payloads, follows the fork choice, and builds payloads. It is synchronous:
//! one call at a time writes, any number read meanwhile. Every block that it finds valid has its
//! execution witness, on the first call and on every later one.

mod ancestors;
mod assemble;
mod background;
mod build;
mod call;
mod core;
mod engine;
mod error;
mod forkchoice;
mod genesis;
mod helpers;
pub mod limits;
mod live;
mod parallel;
mod persist;
mod prefetch;
mod record;
mod recovery;
mod remembered;
mod ring;
#[cfg(test)]
mod samples;
mod seal;
#[cfg(test)]
mod simulation;
mod state_view;
mod thread_pool;
mod touched;
mod tree;
mod workers;
#[cfg(test)]
#[path = "../../execution/src/world.rs"]
mod world;

pub use assemble::Assembled;
pub use build::{BuildRequest, Built};
pub use core::EngineOptions;
pub use engine::{Engine, Payload, Timings, Verdict};
pub use error::Error;
pub use forkchoice::ForkchoiceOutcome;
pub use genesis::{Genesis, GenesisAccount, StateEntry, initialise};
pub use persist::PersistedBlock;
pub use record::{BlockRecord, WitnessBytes, WitnessSize, block_header};
pub use state_view::StateView;
pub use tree::Heads;
