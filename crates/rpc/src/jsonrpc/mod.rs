//! JSON-RPC 2.0: messages, their parts, and the conversations in which they come.

#[cfg(feature = "server")]
pub(crate) mod batch;
pub(crate) mod error;
#[cfg(feature = "server")]
pub(crate) mod handler;
pub(crate) mod json;
#[cfg(feature = "server")]
pub(crate) mod later;
#[cfg(feature = "server")]
pub(crate) mod message;
pub(crate) mod params;
#[cfg(feature = "client")]
pub mod response;
#[cfg(feature = "server")]
pub(crate) mod schedule;
#[cfg(feature = "server")]
pub(crate) mod session;
#[cfg(feature = "server")]
pub(crate) mod subscription;
#[cfg(feature = "server")]
pub(crate) mod topic;
