//! Blocks on a small chain in memory, by the crate's public interface.

mod ahead;
mod block;
mod call;
mod chain;
mod collisions;
mod estimate;
mod execute;
mod header;
mod proof_of_work;
mod stateless;
mod trace;
mod validate;
