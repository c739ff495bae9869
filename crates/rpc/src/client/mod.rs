//! Clients over all wires.

mod address;
pub(crate) mod batch;
pub(crate) mod error;
mod handshake;
pub(crate) mod http;
mod http_pipeline;
pub(crate) mod pipeline;
pub(crate) mod session;
