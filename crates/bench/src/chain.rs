//! Chains: payload files, and what makes them.

pub mod format;
pub mod generate;
pub mod reshape;
pub mod sizes;
pub mod world;

mod asm;
mod contracts;
mod sign;
mod workload;
