//! The threads that help the one that runs a block, and where they run.
//!
//! Linux wakes a thread where the one runs that wakes it, or where it ran before, also when that
//! processor is taken and another one idle: guests were seen to do so nearly always, whose idle
//! processors look busy to them. A helper that is woken there runs when the block waits for it, and not
//! a moment sooner; or it takes the place of the block. So where processors are few, helpers are kept
//! off the one on which the block's thread runs.

use rayon::{Scope, ThreadPool};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use trie::versioned::Unit;

/// Threads that help, and those that may be asked to.
#[derive(Debug)]
pub(crate) struct Helpers {
    #[cfg(target_os = "linux")]
    threads: Mutex<Vec<rustix::thread::Pid>>,
    /// The processor that they are kept off.
    taken: AtomicUsize,
}

impl Helpers {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            #[cfg(target_os = "linux")]
            threads: Mutex::default(),
            taken: AtomicUsize::new(usize::MAX),
        })
    }
}

#[cfg(target_os = "linux")]
impl Helpers {
    /// The calling thread is one of them, for as long as it lives.
    pub(crate) fn join(&self) {
        let mut threads = self.threads.lock().expect(NO_PANIC);
        threads.push(rustix::thread::gettid());
        // It is not kept off yet.
        self.taken.store(usize::MAX, Ordering::Relaxed);
    }

    /// Keeps them off the processor of the calling thread, if there are few others.
    pub(crate) fn keep_off(&self) {
        use rustix::thread::{sched_getaffinity, sched_getcpu, sched_setaffinity};
        let here = sched_getcpu();
        if self.taken.swap(here, Ordering::Relaxed) == here {
            return;
        }
        let Ok(mut others) = sched_getaffinity(None) else { return };
        others.unset(here);
        if !(1..crate::limits::FEW_PROCESSORS as u32).contains(&others.count()) {
            return;
        }
        for thread in &*self.threads.lock().expect(NO_PANIC) {
            if let Err(error) = sched_setaffinity(Some(*thread), &others) {
                tracing::debug!(%error, "a thread is not kept off a processor");
            }
        }
    }
}

/// Elsewhere they run where they are put.
#[cfg(not(target_os = "linux"))]
impl Helpers {
    pub(crate) fn join(&self) {}

    pub(crate) fn keep_off(&self) {}
}

/// A pool of threads, all of them helpers.
#[derive(Debug)]
pub(crate) struct Pool {
    threads: ThreadPool,
    helpers: Arc<Helpers>,
}

impl Pool {
    /// So many threads; 0 is one a processor.
    pub(crate) fn start(count: usize, helpers: Arc<Helpers>) -> Self {
        let joining = helpers.clone();
        let threads = rayon::ThreadPoolBuilder::new()
            .num_threads(count)
            .thread_name(|index| format!("engine-{index}"))
            .start_handler(move |_| joining.join())
            .build()
            .expect("the system starts a thread a core");
        Self { threads, helpers }
    }

    pub(crate) fn threads_count(&self) -> usize {
        self.threads.current_num_threads()
    }

    /// Keeps the threads off the processor of the calling one.
    pub(crate) fn keep_off(&self) {
        self.helpers.keep_off();
    }

    /// Runs `run` here, and on other threads what it spawns, and waits for these.
    pub(crate) fn scope<'scope, T>(&self, run: impl FnOnce(&Scope<'scope>) -> T) -> T {
        self.keep_off();
        self.threads.in_place_scope(run)
    }

    /// Runs units on this thread and others, each taking one that nobody has taken: this thread does
    /// not wait for the others to wake.
    pub(crate) fn run(&self, units: &mut [Unit<'_>]) {
        let helpers = self.threads_count().min(units.len()).saturating_sub(1);
        let left = Mutex::new(units.iter_mut());
        let next = || left.lock().expect(NO_PANIC).next();
        let work = || std::iter::from_fn(next).for_each(Unit::run);
        self.scope(|scope| {
            (0..helpers).for_each(|_| scope.spawn(|_| work()));
            work();
        });
    }
}

const NO_PANIC: &str = "no thread panics while it holds the lock";

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use rustix::thread::{CpuSet, gettid, sched_getaffinity, sched_getcpu, sched_setaffinity};
    use std::sync::mpsc::channel;

    #[test]
    fn helpers_are_kept_off_where_processors_are_few() {
        let before = sched_getaffinity(None).unwrap();
        let helpers = Helpers::new();
        let (ask, asked) = channel::<()>();
        let (answer, answered) = channel();
        let thread = std::thread::spawn({
            let helpers = helpers.clone();
            move || {
                helpers.join();
                answer.send(gettid()).unwrap();
                asked.recv().unwrap_err();
            }
        });
        let other = Some(answered.recv().unwrap());
        assert_eq!(sched_getaffinity(other).unwrap(), before);
        for processor in (0..CpuSet::MAX_CPU).filter(|processor| before.is_set(*processor)).take(9)
        {
            let mut here = CpuSet::new();
            here.set(processor);
            sched_setaffinity(None, &here).unwrap();
            assert_eq!(sched_getcpu(), processor);
            helpers.keep_off();
            // It may run nowhere but here, so there is no other.
            assert_eq!(sched_getaffinity(other).unwrap(), before);
        }
        sched_setaffinity(None, &before).unwrap();
        if (2..=crate::limits::FEW_PROCESSORS as u32).contains(&before.count()) {
            // The system may move this thread in between, if hardly ever twice.
            let is_kept_off = (0..10).any(|_| {
                helpers.join();
                helpers.keep_off();
                let taken = helpers.taken.load(Ordering::Relaxed);
                !sched_getaffinity(other).unwrap().is_set(taken)
            });
            assert!(is_kept_off);
        }
        drop(ask);
        thread.join().unwrap();
    }
}
