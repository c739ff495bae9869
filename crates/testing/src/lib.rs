//! Test support that several crates share. It is a dev-dependency only and is never published.
//!
//! | module | feature | gives |
//! |---|---|---|
//! | `world` | `world` | blocks on a small chain in memory, and their witnesses checked in every way |
//! | `asm` | `world` | EVM code, op by op |
//! | `oracle` | `oracle` | the slow twin of the tries |
//! | `plain_ssz` | `plain-ssz` | the slow twin of stateless inputs |
//! | `disks` | `disks` | disks that fail, and disks that report accesses |
//! | `geth` | | geth's commands |
//! | `browser` | | Chromium on the path |
#![allow(clippy::missing_panics_doc)] // a panic fails the test that calls

#[cfg(feature = "world")]
pub mod asm;
pub mod browser;
#[cfg(feature = "disks")]
pub mod disks;
mod fixtures;
mod folder;
pub mod geth;
#[cfg(feature = "oracle")]
pub mod oracle;
#[cfg(feature = "plain-ssz")]
pub mod plain_ssz;
mod random;
#[cfg(feature = "world")]
pub mod world;

pub use fixtures::fixtures;
pub use folder::Folder;
pub use random::{Random, rounds, seed};
