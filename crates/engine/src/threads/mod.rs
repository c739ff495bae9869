//! Floor 1. Threads: the pool that helps a block, and those behind the answers.

pub(crate) mod affinity;
pub(crate) mod background;
pub(crate) mod joined;
pub(crate) mod on_drop;
pub(crate) mod pool;
