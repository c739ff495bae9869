//! Sockets, WebSockets, bare JSON-RPC and descriptors, which carry messages; and the memory and the
//! turns that messages wait for.

pub(crate) mod budget;
pub(crate) mod descriptor;
pub(crate) mod ipc;
pub(crate) mod json_scanner;
#[cfg(feature = "server")]
pub(crate) mod listener;
pub(crate) mod message_memory;
pub(crate) mod messages;
pub(crate) mod peer;
pub(crate) mod slot;
pub(crate) mod socket;
mod split_frames;
#[cfg(feature = "server")]
pub(crate) mod turns;
pub(crate) mod websocket;
