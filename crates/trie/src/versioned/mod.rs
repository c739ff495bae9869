//! Tries whose nodes are kept by address and never change; see docs/state.md.

mod address;

pub use address::{NodeAddress, RecordError, RecordSink, Records, Version};
