//! Counters of what upstreams have given.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of one upstream since the start.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) headers: AtomicU64,
    pub(crate) blocks: AtomicU64,
    pub(crate) access_lists: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) lies: AtomicU64,
    pub(crate) errors: AtomicU64,
}

/// The counters of one upstream at some time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UpstreamFigures {
    /// Headers that were checked and used.
    pub headers: u64,
    /// Blocks that were checked.
    pub blocks: u64,
    /// Block access lists that were checked.
    pub access_lists: u64,
    /// Bytes of answers.
    pub bytes: u64,
    /// Answers that were proven to be false.
    pub lies: u64,
    /// Requests without a good answer, but for lies.
    pub errors: u64,
}

impl Counters {
    pub(crate) fn add(counter: &AtomicU64, count: usize) {
        counter.fetch_add(count as u64, Ordering::Relaxed);
    }

    pub(crate) fn figures(&self) -> UpstreamFigures {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        UpstreamFigures {
            headers: of(&self.headers),
            blocks: of(&self.blocks),
            access_lists: of(&self.access_lists),
            bytes: of(&self.bytes),
            lies: of(&self.lies),
            errors: of(&self.errors),
        }
    }
}
