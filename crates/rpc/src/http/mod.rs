//! HTTP/1.1 and HTTP/2 as a server speaks them: calls, resources, content codings.

pub(crate) mod coding;
mod handshake;
pub mod resource;
pub(crate) mod server;
mod streams;
