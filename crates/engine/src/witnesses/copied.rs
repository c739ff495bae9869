//! Floor 2. Which witnesses have their copies on disk.

use crate::error::NO_PANIC;
use std::sync::{Mutex, MutexGuard};

/// When a witness is to be copied.
#[derive(Debug, Clone, Copy)]
pub(crate) enum CopyDue {
    /// That of a block since the database was opened: soon, while its nodes are in memory.
    Now,
    /// That of a block before, which has none because the process ended too soon: before its
    /// parent's state is forgotten.
    InTime,
}

/// Which witnesses have their copies.
#[derive(Debug)]
pub(crate) struct CopySchedule {
    progress: Mutex<CopyProgress>,
    /// Held while a copy is made.
    making: Mutex<()>,
    /// The head's number when the database was opened.
    opened_at: u64,
}

/// Up to which number each witness of a canonical block has its copy, or gets none.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CopyProgress {
    now: u64,
    in_time: u64,
    /// How often other blocks became canonical.
    branches: u64,
}

/// The numbers of a chain's first block and of its head.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChainEnds {
    pub(crate) first: u64,
    pub(crate) head: u64,
}

impl CopySchedule {
    /// For a chain that is opened with these ends.
    pub(crate) fn new(ChainEnds { first, head }: ChainEnds) -> Self {
        let progress = CopyProgress { now: head, in_time: first, branches: 0 };
        Self { progress: progress.into(), making: Mutex::new(()), opened_at: head }
    }

    /// Held while a copy is made.
    pub(crate) fn making(&self) -> MutexGuard<'_, ()> {
        self.making.lock().expect(NO_PANIC)
    }

    pub(crate) fn progress(&self) -> CopyProgress {
        *self.lock()
    }

    /// The last number whose copy is due, up to `last`.
    pub(crate) fn last(&self, due: CopyDue, last: u64) -> u64 {
        match due {
            CopyDue::Now => last,
            CopyDue::InTime => last.min(self.opened_at),
        }
    }

    /// Notes that all copies up to `number` are made, unless other blocks became canonical since
    /// `seen`: those are looked at again.
    pub(crate) fn made(&self, due: CopyDue, number: u64, seen: CopyProgress) {
        let mut progress = self.lock();
        if progress.branches == seen.branches {
            *progress.number_mut(due) = number;
        }
    }

    /// Notes that other blocks are canonical above `number`: they may have no copies yet.
    pub(crate) fn branched_off(&self, number: u64) {
        let mut progress = self.lock();
        progress.now = progress.now.min(number);
        progress.branches += 1;
    }

    fn lock(&self) -> MutexGuard<'_, CopyProgress> {
        self.progress.lock().expect(NO_PANIC)
    }
}

impl CopyProgress {
    pub(crate) fn number(&self, due: CopyDue) -> u64 {
        match due {
            CopyDue::Now => self.now,
            CopyDue::InTime => self.in_time,
        }
    }

    fn number_mut(&mut self, due: CopyDue) -> &mut u64 {
        match due {
            CopyDue::Now => &mut self.now,
            CopyDue::InTime => &mut self.in_time,
        }
    }
}
