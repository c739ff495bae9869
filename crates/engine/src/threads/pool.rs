//! Floor 1. Threads that help others, and sleep in between.
//!
//! The threads of rayon look for work for a while before they sleep, and yield each time that they
//! find none. Where processors are few, the answer to a block would have to wait for all of them.
//! And a caller there waits until each thread has looked at its work, also when nothing is left to
//! be done; here it does not wait for a thread that has not begun.

use crate::error::NO_PANIC;
use crate::threads::affinity::Affinity;
use crate::threads::joined::JoinedThread;
use std::any::Any;
use std::collections::VecDeque;
use std::fmt;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use trie::versioned::WorkUnit;

/// A number of threads. Dropping it ends them.
pub(crate) struct ThreadPool {
    queue: Arc<WorkQueue>,
    threads: Vec<JoinedThread>,
    affinity: Option<Arc<Affinity>>,
}

#[derive(Default)]
struct WorkQueue {
    state: Mutex<WorkQueueState>,
    changed: Condvar,
}

#[derive(Default)]
struct WorkQueueState {
    /// Work, and how many more threads are to do it; the oldest first.
    asked: VecDeque<(Arc<Work>, usize)>,
    is_over: bool,
}

/// One function that any number of threads run at once.
struct Work {
    run: &'static (dyn Fn() + Sync),
    progress: Mutex<WorkProgress>,
    ended: Condvar,
}

#[derive(Default)]
struct WorkProgress {
    /// Threads that run it.
    running: usize,
    /// The payload of the first panic.
    panic: Option<Box<dyn Any + Send>>,
}

/// A time in which threads of pools help with what outlives it, see [`scope`].
pub(crate) struct Scope<'env> {
    asked: Mutex<Vec<(Arc<WorkQueue>, Arc<Work>)>>,
    /// Neither longer nor shorter than what is borrowed.
    borrowed: PhantomData<fn(&'env ()) -> &'env ()>,
}

/// Runs `run`, which may ask threads for help meanwhile. When it has ended, no thread begins with
/// that work any more, and those that have begun are waited for. A panic of theirs is passed on.
pub(crate) fn scope<'env, T>(run: impl FnOnce(&Scope<'env>) -> T) -> T {
    let scope = Scope { asked: Mutex::default(), borrowed: PhantomData };
    let outcome = catch_unwind(AssertUnwindSafe(|| run(&scope)));
    let panic = scope.end();
    match (outcome, panic) {
        (Ok(outcome), None) => outcome,
        (Err(panic), _) | (_, Some(panic)) => resume_unwind(panic),
    }
}

impl<'env> Scope<'env> {
    /// Asks `count` threads of a pool, or all there are, to run `work` as soon as they have nothing
    /// else to do.
    pub(crate) fn ask(&self, pool: &ThreadPool, count: usize, work: &'env (dyn Fn() + Sync)) {
        let count = count.min(pool.threads_count());
        if count == 0 {
            return;
        }
        #[allow(unsafe_code, reason = "threads that were there before use what is borrowed here")]
        // SAFETY: the reference goes to `Work::run` alone, which is called where `running` counts
        // the caller. `scope` does not return, or go on to panic, before no thread can begin and
        // `running` is 0, and 'env outlives that; later on `Work` may be dropped, and is not run.
        let run = unsafe {
            std::mem::transmute::<&'env (dyn Fn() + Sync), &'static (dyn Fn() + Sync)>(work)
        };
        let work = Arc::new(Work { run, progress: Mutex::default(), ended: Condvar::new() });
        self.asked.lock().expect(NO_PANIC).push((pool.queue.clone(), work.clone()));
        if let Some(affinity) = &pool.affinity {
            affinity.keep_off();
        }
        pool.queue.state().asked.push_back((work, count));
        (0..count).for_each(|_| pool.queue.changed.notify_one());
    }

    /// Ends all work; gives the payload of the first panic.
    fn end(&self) -> Option<Box<dyn Any + Send>> {
        let asked = std::mem::take(&mut *self.asked.lock().expect(NO_PANIC));
        for (queue, work) in &asked {
            queue.state().asked.retain(|(asked, _)| !Arc::ptr_eq(asked, work));
        }
        let mut first = None;
        for (_, work) in asked {
            let is_running = |progress: &mut WorkProgress| progress.running > 0;
            let ended = work.ended.wait_while(work.progress(), is_running);
            first = first.or(ended.expect(NO_PANIC).panic.take());
        }
        first
    }
}

impl ThreadPool {
    /// Starts `count` threads, named by `name` and their index, each of which does `first` first.
    pub(crate) fn start(
        count: usize,
        name: &str,
        first: impl Fn() + Clone + Send + 'static,
    ) -> Self {
        let queue = Arc::<WorkQueue>::default();
        let thread = |index| {
            let (queue, first) = (queue.clone(), first.clone());
            JoinedThread::start(format!("{name}-{index}"), move || {
                first();
                queue.work();
            })
        };
        let threads = (0..count).map(thread).collect();
        Self { queue, threads, affinity: None }
    }

    /// The same, of threads that are kept off the processor of a thread that they help.
    pub(crate) fn start_off(count: usize, name: &str, affinity: Arc<Affinity>) -> Self {
        let joining = affinity.clone();
        let mut pool = Self::start(count, name, move || joining.join());
        pool.affinity = Some(affinity);
        pool
    }

    pub(crate) fn threads_count(&self) -> usize {
        self.threads.len()
    }

    /// Runs units on this thread and others, each taking one that no thread has taken: this thread
    /// does not wait for the others to wake.
    pub(crate) fn run(&self, units: &mut [WorkUnit<'_>]) {
        self.run_behind(|| {}, units);
    }

    /// The same, and before it takes its first unit, this thread runs `first`, while the others
    /// wake.
    pub(crate) fn run_behind(&self, first: impl FnOnce(), units: &mut [WorkUnit<'_>]) {
        let helping = self.threads_count().min(units.len()).saturating_sub(1);
        let left = Mutex::new(units.iter_mut());
        let next = || left.lock().expect(NO_PANIC).next();
        let work = || std::iter::from_fn(next).for_each(WorkUnit::run);
        scope(|scope| {
            scope.ask(self, helping, &work);
            first();
            work();
        });
    }
}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        self.queue.state().is_over = true;
        self.queue.changed.notify_all();
        self.threads.clear();
    }
}

impl WorkQueue {
    fn state(&self) -> MutexGuard<'_, WorkQueueState> {
        self.state.lock().expect(NO_PANIC)
    }

    /// Does what is asked for, until the pool ends.
    fn work(&self) {
        let mut state = self.state();
        while !state.is_over {
            let Some(work) = state.next() else {
                state = self.changed.wait(state).expect(NO_PANIC);
                continue;
            };
            drop(state);
            let outcome = catch_unwind(AssertUnwindSafe(work.run));
            work.ended(outcome.err());
            state = self.state();
        }
    }
}

impl WorkQueueState {
    /// The next piece of work, which the caller has begun then.
    fn next(&mut self) -> Option<Arc<Work>> {
        let (work, left) = self.asked.front_mut()?;
        work.progress().running += 1;
        let begun = work.clone();
        *left -= 1;
        if *left == 0 {
            self.asked.pop_front();
        }
        Some(begun)
    }
}

impl Work {
    fn progress(&self) -> MutexGuard<'_, WorkProgress> {
        self.progress.lock().expect(NO_PANIC)
    }

    fn ended(&self, panic: Option<Box<dyn Any + Send>>) {
        let mut progress = self.progress();
        progress.running -= 1;
        if let Some(panic) = panic {
            progress.panic.get_or_insert(panic);
        }
        if progress.running == 0 {
            self.ended.notify_all();
        }
    }
}

impl fmt::Debug for ThreadPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ThreadPool").field(&self.threads).finish()
    }
}

#[cfg(test)]
mod tests;
