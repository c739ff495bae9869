//! Disks in memory that fail as real ones do, or that report each access.

mod fault;
mod watched;

pub use fault::{Fault, FaultDisk};
pub use state::{Disk, File};
pub use watched::{Access, WatchedDisk};
