//! What the chain is.

pub(crate) mod genesis;
pub(crate) mod read_set;
pub(crate) mod record;
pub(crate) mod tree;
