//! Floor 3. The witnesses of valid blocks.

pub(crate) mod assemble;
pub(crate) mod assembled;
pub(crate) mod copied;
pub(crate) mod copies;
pub(crate) mod packed;
pub(crate) mod recent;
