//! Clients over all wires.

pub(crate) mod address;
mod call;
pub(crate) mod error;
mod handshake;
pub(crate) mod http;
pub(crate) mod session;
