//! The other end of the Engine API: the containers that both ends speak.

mod fork;
pub mod ssz;

pub use fork::Fork;
