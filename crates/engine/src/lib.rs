//! The chain: payloads in, verdicts and witnesses out.
//!
//! [`Engine`] validates payloads, follows the fork choice, and builds payloads. It is synchronous:
//! one call at a time writes, any number read meanwhile. Every block that it finds valid has its
//! execution witness, on the first call and on every later one.

mod build;
mod engine;
mod error;
mod forkchoice;
mod genesis;
pub mod limits;
#[cfg(test)]
mod samples;
mod tree;
mod view;
#[cfg(test)]
#[path = "../../execution/src/world.rs"]
mod world;

pub use build::{BuildRequest, Built};
pub use engine::{Engine, Payload, Verdict};
pub use error::Error;
pub use forkchoice::ForkchoiceOutcome;
pub use genesis::{Genesis, GenesisAccount};
pub use tree::{BlockRecord, Heads};
