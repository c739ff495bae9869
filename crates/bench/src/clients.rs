//! The clients under test: how each is started, stopped, made ready and called.

pub(crate) mod bounds;
pub(crate) mod client;
pub(crate) mod persisted;
pub(crate) mod port;
pub(crate) mod prepare;
pub(crate) mod process;
pub(crate) mod target;
