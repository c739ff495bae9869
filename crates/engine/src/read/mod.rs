//! Reading a version of the state, and a block's ancestors.

pub(crate) mod ancestors;
pub(crate) mod remembered;
pub(crate) mod version;
