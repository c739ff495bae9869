//! Chains: payload files, and what makes them.

pub(crate) mod format;
pub(crate) mod generate;
pub(crate) mod sizes;
pub(crate) mod world;

mod asm;
mod contracts;
mod sign;
mod workload;
