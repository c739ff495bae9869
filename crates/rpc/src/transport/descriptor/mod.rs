//! Answers by descriptor, on the same host: memory files, and their way over a Unix socket.
//!
//! Sealed memory files are Linux's. Elsewhere nothing is lent, so each body comes through the
//! socket, and an answer that names a descriptor is an error.

use std::fs;
use std::sync::Arc;

#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(all(target_os = "linux", feature = "client"))]
mod mapped;
#[cfg(target_os = "linux")]
mod memory;
#[cfg(target_os = "linux")]
mod queues;

#[cfg(not(target_os = "linux"))]
pub(crate) use elsewhere::{Descriptors, LentFile, MemoryFiles, ReceivedFiles};
#[cfg(all(target_os = "linux", feature = "client"))]
pub(crate) use mapped::ReceivedFiles;
#[cfg(target_os = "linux")]
pub(crate) use memory::LentFile;
#[cfg(all(target_os = "linux", feature = "server"))]
pub(crate) use memory::MemoryFiles;
#[cfg(target_os = "linux")]
pub(crate) use queues::Descriptors;

/// A file whose descriptor is passed to a client.
#[derive(Debug)]
pub(crate) enum PassedFile {
    /// A memory file.
    Memory(Arc<LentFile>),
    /// Any other file, opened read-only.
    Other(Arc<fs::File>),
}
