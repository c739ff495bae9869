//! Test support that several crates share. It is a dev-dependency only and is never published.

mod fixtures;
mod folder;
pub mod geth;
mod random;

pub use fixtures::fixtures;
pub use folder::Folder;
pub use random::Random;
