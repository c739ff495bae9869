//! HTTP/1.1 and HTTP/2: calls, resources, content codings.

pub(crate) mod coding;
pub mod resource;

#[cfg(feature = "server")]
mod body;
#[cfg(feature = "server")]
mod check;
#[cfg(feature = "server")]
mod exchange;
#[cfg(feature = "server")]
mod handshake;
#[cfg(feature = "server")]
mod http1;
#[cfg(feature = "server")]
mod http2;
#[cfg(feature = "server")]
mod lending;
#[cfg(feature = "server")]
pub(crate) mod origin;
#[cfg(feature = "server")]
mod refusal;
#[cfg(feature = "server")]
mod response_body;
#[cfg(feature = "server")]
pub(crate) mod server;
#[cfg(feature = "server")]
mod streams;
