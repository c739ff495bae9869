//! Chains: payload files, and what makes them.

pub(crate) mod format;
pub(crate) mod generate;
pub(crate) mod sizes;
pub(crate) mod world;

mod asm;
pub(crate) mod contracts;
pub(crate) mod sign;
pub(crate) mod workload;
