//! What carries messages, and what connections share of a machine: sockets, memory, descriptors.

pub(crate) mod descriptor;
pub(crate) mod ipc;
pub(crate) mod room;
mod short_frames;
pub(crate) mod socket;
pub(crate) mod turns;
pub(crate) mod websocket;
