//! Floor 2. The chain: its blocks, their states, the heads. Data alone, no threads.

pub(crate) mod bad;
pub(crate) mod before;
pub(crate) mod choice;
pub(crate) mod events;
pub(crate) mod figures;
pub(crate) mod floors;
pub(crate) mod found;
pub(crate) mod genesis;
pub(crate) mod orphans;
pub(crate) mod parts;
pub(crate) mod persisted;
pub(crate) mod read_set;
pub(crate) mod record;
pub(crate) mod sealed;
pub(crate) mod slots;
pub(crate) mod state_import;
pub(crate) mod stored;
pub(crate) mod timings;
pub(crate) mod tree;
pub(crate) mod unsealed;
pub(crate) mod verdict;
