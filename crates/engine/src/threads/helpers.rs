//! The threads that help the one that runs a block, and where they run.
//!
//! Linux wakes a thread where the one runs that wakes it, or where it ran before, also when that
//! processor is taken and another one idle: a guest of two processors was seen to do so nearly
//! always. A helper that is woken there runs when the block waits for it, and not a moment sooner;
//! or it takes the place of the block. So where processors are few, helpers are kept off the one on
//! which the block's thread runs.

use crate::threads::pool::{Help, ThreadPool};
use std::sync::{Arc, Mutex};
use trie::versioned::WorkUnit;

/// The threads that help.
#[derive(Debug)]
pub(crate) struct Helpers {
    #[cfg(target_os = "linux")]
    state: Mutex<State>,
}

#[cfg(target_os = "linux")]
#[derive(Debug, Default)]
struct State {
    threads: Vec<Thread>,
    /// The processor that they are kept off.
    taken: Option<usize>,
}

#[cfg(target_os = "linux")]
#[derive(Debug)]
struct Thread {
    id: rustix::thread::Pid,
    /// Where it could run when it joined.
    processors: rustix::thread::CpuSet,
}

impl Helpers {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            #[cfg(target_os = "linux")]
            state: Mutex::default(),
        })
    }
}

#[cfg(target_os = "linux")]
impl Helpers {
    /// The calling thread is one of them, until the last of them ends.
    pub(crate) fn join(&self) {
        use rustix::thread::{gettid, sched_getaffinity};
        // Where there are more processors than the call can name, they are not few.
        let Ok(processors) = sched_getaffinity(None) else { return };
        let mut state = self.state.lock().expect(NO_PANIC);
        state.threads.push(Thread { id: gettid(), processors });
        // It is not kept off yet.
        state.taken = None;
    }

    /// Keeps them off the processor of the calling thread, if there are few others. Mostly it is
    /// the block's; who asks for a witness beside it has them until the block's says so again.
    pub(crate) fn keep_off(&self) {
        use rustix::thread::{sched_getcpu, sched_setaffinity};
        let here = sched_getcpu();
        let mut state = self.state.lock().expect(NO_PANIC);
        if state.taken.replace(here) == Some(here) {
            return;
        }
        for Thread { id, processors } in &state.threads {
            let mut others = *processors;
            others.unset(here);
            if !(1..crate::limits::FEW_PROCESSORS as u32).contains(&others.count()) {
                continue;
            }
            if let Err(error) = sched_setaffinity(Some(*id), &others) {
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
    pub(crate) fn start(count: usize, helpers: Arc<Helpers>) -> Self {
        let joining = helpers.clone();
        let threads = ThreadPool::start(count, "engine", move || joining.join());
        Self { threads, helpers }
    }

    pub(crate) fn threads_count(&self) -> usize {
        self.threads.threads_count()
    }

    /// As [`ThreadPool::with_help`]. The threads are kept off the processor of this one, as it is
    /// now: who waits may be on another one after that.
    pub(crate) fn with_help<T>(
        &self,
        work: &(dyn Fn() + Sync),
        run: impl FnOnce(&Help<'_>) -> T,
    ) -> T {
        self.helpers.keep_off();
        self.threads.with_help(work, run)
    }

    /// Runs units on this thread and others, each taking one that nobody has taken: this thread
    /// does not wait for the others to wake.
    pub(crate) fn run(&self, units: &mut [WorkUnit<'_>]) {
        self.run_behind(|| {}, units);
    }

    /// The same, and before it takes its first unit, this thread does something else, while the
    /// others wake.
    pub(crate) fn run_behind(&self, first: impl FnOnce(), units: &mut [WorkUnit<'_>]) {
        let helpers = self.threads_count().min(units.len()).saturating_sub(1);
        let left = Mutex::new(units.iter_mut());
        let next = || left.lock().expect(NO_PANIC).next();
        let work = || std::iter::from_fn(next).for_each(WorkUnit::run);
        self.with_help(&work, |help| {
            help.ask(helpers);
            first();
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
        let mut here = CpuSet::new();
        here.set(sched_getcpu());
        // It stays here while it is looked.
        sched_setaffinity(None, &here).unwrap();
        helpers.keep_off();
        let mut others = before;
        others.unset(sched_getcpu());
        let is_few = (1..crate::limits::FEW_PROCESSORS as u32).contains(&others.count());
        let expected = if is_few { others } else { before };
        assert_eq!(sched_getaffinity(other).unwrap(), expected);
        sched_setaffinity(None, &before).unwrap();
        drop(ask);
        thread.join().unwrap();
    }
}
