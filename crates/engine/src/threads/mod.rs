//! The engine's threads.

pub(crate) mod background;
pub(crate) mod helpers;
pub(crate) mod pool;
