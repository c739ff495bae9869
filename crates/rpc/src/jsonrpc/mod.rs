//! JSON-RPC 2.0: messages, their parts, and the conversations in which they come.

pub(crate) mod error;
pub(crate) mod json;
pub(crate) mod message;
pub(crate) mod params;
pub mod response;
pub(crate) mod session;
pub(crate) mod subscription;
