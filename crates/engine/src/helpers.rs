//! Other threads beside the one that runs a block: on other processors than it, as far as there are
//! any.
//!
//! Where processors are few and sleep when they are idle, Linux may wake a thread where the one runs
//! that wakes it, or where it ran before, with another processor idle. A trie worker was seen to take
//! a third of the processor of the very block that it worked for, for tens of milliseconds.

use rayon::ThreadPool;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use trie::versioned::Unit;

/// The processor of a thread that others help.
#[derive(Debug)]
pub(crate) struct Place(AtomicUsize);

impl Place {
    /// Where the calling thread runs.
    pub(crate) fn here() -> Self {
        Self(AtomicUsize::new(processor()))
    }

    /// Notes that the thread which is helped is the calling one, and runs here now.
    pub(crate) fn note(&self) {
        self.0.store(processor(), Ordering::Relaxed);
    }

    /// Moves the calling thread to another processor, if it is on that one and may run elsewhere.
    pub(crate) fn step_aside(&self) {
        if processor() == self.0.load(Ordering::Relaxed) {
            leave_processor();
        }
    }
}

#[cfg(target_os = "linux")]
fn processor() -> usize {
    rustix::thread::sched_getcpu()
}

/// Elsewhere nobody is in the way.
#[cfg(not(target_os = "linux"))]
fn processor() -> usize {
    0
}

#[cfg(target_os = "linux")]
fn leave_processor() {
    use rustix::thread::{sched_getaffinity, sched_setaffinity};
    let Ok(all) = sched_getaffinity(None) else { return };
    let mut others = all;
    others.unset(processor());
    if others.count() == 0 {
        return;
    }
    // Whoever may not run where it runs is moved at once, and stays when it may again.
    let moved = sched_setaffinity(None, &others).and_then(|()| sched_setaffinity(None, &all));
    if let Err(error) = moved {
        tracing::debug!(%error, "a thread stays on its processor");
    }
}

#[cfg(not(target_os = "linux"))]
fn leave_processor() {}

/// Runs units on this thread and on those of a pool, each taking one that nobody has taken: this
/// thread does not wait for the others to wake.
pub(crate) fn run_on(pool: &ThreadPool, units: &mut [Unit<'_>]) {
    let helpers = pool.current_num_threads().min(units.len()).saturating_sub(1);
    let left = Mutex::new(units.iter_mut());
    let next = || left.lock().expect("no thread panics while it holds the lock").next();
    let work = || std::iter::from_fn(next).for_each(Unit::run);
    let place = Place::here();
    pool.in_place_scope(|scope| {
        for _ in 0..helpers {
            scope.spawn(|_| {
                place.step_aside();
                work();
            });
        }
        work();
    });
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    #[test]
    fn who_is_in_the_way_goes_and_may_come_back() {
        let before = sched_getaffinity(None).unwrap();
        let place = Place::here();
        place.step_aside();
        assert_eq!(sched_getaffinity(None).unwrap(), before);
        if before.count() > 1 {
            // Nothing but the system itself moves it back, and it has no reason to.
            let moved = (0..100).any(|_| {
                place.note();
                let noted = place.0.load(Ordering::Relaxed);
                place.step_aside();
                processor() != noted
            });
            assert!(moved);
        }
        let mut here = CpuSet::new();
        here.set(processor());
        sched_setaffinity(None, &here).unwrap();
        place.note();
        place.step_aside();
        assert_eq!(sched_getaffinity(None).unwrap(), here, "there is nowhere else");
        sched_setaffinity(None, &before).unwrap();
    }
}
