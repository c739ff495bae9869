//! Answers by descriptor, on the same host: memory files, and their way over a Unix socket.
//!
//! Sealed memory files are Linux's. Elsewhere nothing is lent, so every answer comes as any other,
//! and a descriptor that somebody sends is an error.

use std::fs;
use std::sync::Arc;

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

/// What a client gets the descriptor of.
#[derive(Debug)]
pub(crate) enum Outgoing {
    /// A memory file.
    Lent(Arc<Lent>),
    /// Any other, open to be read alone.
    File(Arc<fs::File>),
}
