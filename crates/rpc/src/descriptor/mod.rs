//! Answers by descriptor, on the same host: memory files, and their way over a Unix socket.
//!
//! Sealed memory files are Linux's. Elsewhere nothing is lent, so every answer comes as any other,
//! and a descriptor that somebody sends is an error.

#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(target_os = "linux")]
mod mapped;
#[cfg(target_os = "linux")]
mod memory;
#[cfg(target_os = "linux")]
mod queues;

#[cfg(not(target_os = "linux"))]
pub(crate) use elsewhere::{Descriptors, Files, Lent, Received};
#[cfg(target_os = "linux")]
pub(crate) use mapped::Received;
#[cfg(target_os = "linux")]
pub(crate) use memory::{Files, Lent};
#[cfg(target_os = "linux")]
pub(crate) use queues::Descriptors;
