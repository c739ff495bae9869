//! The shapes of the Ethereum Engine API: containers in JSON and SSZ, forks, methods, header names.

mod fork;
pub mod ssz;

pub use fork::Fork;
