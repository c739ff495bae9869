//! Floor 4. A block while it runs.

pub(crate) mod ahead;
pub(crate) mod live;
pub(crate) mod plan;
pub(crate) mod prefetch;
pub(crate) mod senders;
pub(crate) mod trie_workers;
