//! What is done behind a block's answer.

pub(crate) mod persist;
pub(crate) mod seal;
