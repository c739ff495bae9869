//! Work that may be done on any thread.

use std::{cmp::Reverse, fmt};

/// A piece of work on a block's tries, independent of the others that come with it.
pub struct Unit<'a> {
    job: Option<Box<dyn FnOnce() + Send + 'a>>,
    changes_count: usize,
}

impl<'a> Unit<'a> {
    pub(crate) fn new(changes_count: usize, job: impl FnOnce() + Send + 'a) -> Self {
        Self { job: Some(Box::new(job)), changes_count }
    }

    /// Does the work, the first time that it is called.
    pub fn run(&mut self) {
        if let Some(job) = self.job.take() {
            job();
        }
    }

    /// How many accounts and slots the work changes or reads, at most.
    pub fn changes_count(&self) -> usize {
        self.changes_count
    }
}

impl fmt::Debug for Unit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_done = self.job.is_none();
        f.debug_struct("Unit")
            .field("changes_count", &self.changes_count)
            .field("is_done", &is_done)
            .finish()
    }
}

/// Runs units one after the other: for [`BlockTrie::finish`](super::BlockTrie::finish) where
/// threads are not worth it.
pub fn run_serially(units: &mut [Unit<'_>]) {
    units.iter_mut().for_each(Unit::run);
}

/// Has all units run, the largest first.
pub(crate) fn run_all(units: &mut [Unit<'_>], run: &dyn Fn(&mut [Unit<'_>])) {
    units.sort_by_key(|unit| Reverse(unit.changes_count));
    run(units);
    assert!(units.iter().all(|unit| unit.job.is_none()), "every unit is run");
}
