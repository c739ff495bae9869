//! How far a gap is filled.

use std::sync::{Mutex, MutexGuard, PoisonError};

use alloy_primitives::B256;

/// The part of a gap's filling that goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Headers are followed back to a block that is known.
    Headers,
    /// Blocks run, from there on.
    Blocks,
}

impl Stage {
    /// Its word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Headers => "headers",
            Self::Blocks => "blocks",
        }
    }
}

/// A gap that is filled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// The part that goes on.
    pub stage: Stage,
    /// The number of the head when it began.
    pub starting: u64,
    /// The number of the block that is missing, once it is known.
    pub target: Option<u64>,
    /// Its hash.
    pub target_hash: B256,
    /// Hashes of the gap that are known.
    pub hashes: usize,
    /// The last block that has run.
    pub ran: u64,
    /// The upstream that was asked last; `None` where none may be asked now.
    pub upstream: Option<String>,
    /// Why it cannot be filled, or why the one before it could not, until its first block that is
    /// known is found.
    pub problem: Option<String>,
}

impl Progress {
    /// Blocks that are missing before it is filled.
    pub fn missing_blocks(&self) -> u64 {
        self.target.map_or(0, |target| target.saturating_sub(self.ran))
    }
}

/// Shared with those who show it.
#[derive(Debug, Default)]
pub(crate) struct SharedProgress(Mutex<Option<Progress>>);

impl SharedProgress {
    pub(crate) fn get(&self) -> Option<Progress> {
        self.lock().clone()
    }

    pub(crate) fn set(&self, progress: Option<Progress>) {
        *self.lock() = progress;
    }

    pub(crate) fn update(&self, change: impl FnOnce(&mut Progress)) {
        if let Some(progress) = &mut *self.lock() {
            change(progress);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Progress>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
