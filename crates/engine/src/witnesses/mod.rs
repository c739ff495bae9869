//! The witnesses of valid blocks.

pub(crate) mod assemble;
pub(crate) mod recent;
