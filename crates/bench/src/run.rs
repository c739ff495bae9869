//! Runs: contenders on the blocks of a plan, and what is said of them.

pub(crate) mod busy;
pub(crate) mod course;
pub(crate) mod crowd;
pub(crate) mod lane;
pub(crate) mod plan;
pub(crate) mod sample;
pub(crate) mod session;
pub(crate) mod siblings;
pub(crate) mod sweep;
pub(crate) mod tables;
