//! Units of work that may run on any thread.

use std::{cmp::Reverse, fmt};

/// A piece of work on a block's tries, independent of the others that come with it.
pub struct WorkUnit<'a> {
    job: Option<Box<dyn FnOnce() + Send + 'a>>,
    /// The number of accounts and slots that the work changes or reads, at most.
    changes_count: usize,
}

impl<'a> WorkUnit<'a> {
    pub(crate) fn new(changes_count: usize, job: impl FnOnce() + Send + 'a) -> Self {
        Self { job: Some(Box::new(job)), changes_count }
    }

    /// Does the work, the first time that it is called.
    pub fn run(&mut self) {
        if let Some(job) = self.job.take() {
            job();
        }
    }
}

impl fmt::Debug for WorkUnit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_done = self.job.is_none();
        f.debug_struct("WorkUnit")
            .field("changes_count", &self.changes_count)
            .field("is_done", &is_done)
            .finish()
    }
}

/// Runs units one after the other: for [`BlockTrie::finish`](super::BlockTrie::finish) where
/// threads are not worth it.
pub fn run_serially(units: &mut [WorkUnit<'_>]) {
    units.iter_mut().for_each(WorkUnit::run);
}

/// Runs all units, the largest first.
pub(crate) fn run_all(units: &mut [WorkUnit<'_>], run: &dyn Fn(&mut [WorkUnit<'_>])) {
    units.sort_by_key(|unit| Reverse(unit.changes_count));
    run(units);
    assert!(units.iter().all(|unit| unit.job.is_none()), "every unit is run");
}
