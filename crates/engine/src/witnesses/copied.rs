//! Floor 2. Which witnesses have their copies on disk.

use crate::error::NO_PANIC;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

/// Up to which number each canonical block's witness has its copy, or gets none.
#[derive(Debug)]
pub(crate) struct CopySchedule {
    last: AtomicU64,
    /// Held while a copy is made.
    making: Mutex<()>,
}

impl CopySchedule {
    /// For a chain whose first block has this number.
    pub(crate) fn new(first: u64) -> Self {
        Self { last: first.into(), making: Mutex::new(()) }
    }

    /// Held while a copy is made.
    pub(crate) fn making(&self) -> MutexGuard<'_, ()> {
        self.making.lock().expect(NO_PANIC)
    }

    /// The number up to which copies are made.
    pub(crate) fn last(&self) -> u64 {
        self.last.load(Ordering::SeqCst)
    }

    /// Takes the next number in `first..=last`. If the caller looks up the block with it after
    /// this, no block that becomes canonical meanwhile is left out: its number comes again.
    pub(crate) fn next(&self, first: u64, last: u64) -> Option<u64> {
        let mut next = None;
        let take = |copied: u64| {
            next = Some((copied + 1).max(first)).filter(|next| *next <= last);
            next
        };
        let _ = self.last.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take);
        next
    }

    /// Notes that the chain begins anew with the block of this number.
    pub(crate) fn begin(&self, first: u64) {
        self.last.store(first, Ordering::SeqCst);
    }

    /// Notes that other blocks are canonical above `number`: they may have no copies yet.
    pub(crate) fn branched_off(&self, number: u64) {
        self.last.fetch_min(number, Ordering::SeqCst);
    }
}
