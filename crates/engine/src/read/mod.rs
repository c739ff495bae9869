//! Floor 3. Reading the state after a block, and the block's ancestors.

pub(crate) mod ancestors;
pub(crate) mod found;
pub(crate) mod listed;
pub(crate) mod pending;
pub(crate) mod version;
pub(crate) mod view;
