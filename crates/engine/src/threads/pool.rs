//! Threads that help whoever has work for them, and sleep as long as nobody has.
//!
//! The threads of rayon look for work for a while before they sleep, and let others run each time
//! that they find none. Where processors are few, the answer to a block has to wait for all of
//! them. And who gives them work there waits until each has looked at it, also when nothing is left
//! to be done; here nobody waits for a thread that has not begun.

use std::any::Any;
use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;

/// So many threads. Dropping it ends them.
#[derive(Debug)]
pub(crate) struct ThreadPool {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Work, and how many more threads are to do it; the oldest first.
    asked: VecDeque<(Arc<Work>, usize)>,
    is_over: bool,
}

/// What threads are asked to do, all of them the same.
struct Work {
    run: &'static (dyn Fn() + Sync),
    progress: Mutex<Progress>,
    ended: Condvar,
}

#[derive(Default)]
struct Progress {
    /// How many threads are at it.
    running: usize,
    /// What the first that panicked has said.
    panic: Option<Box<dyn Any + Send>>,
}

/// Asks threads of a pool for help with one kind of work.
#[derive(Debug)]
pub(crate) struct Help<'a> {
    pool: &'a ThreadPool,
    work: Arc<Work>,
}

impl ThreadPool {
    /// Starts `count` threads, named by `name` and their index, each of which does `first` first.
    pub(crate) fn start(
        count: usize,
        name: &str,
        first: impl Fn() + Clone + Send + 'static,
    ) -> Self {
        let shared = Arc::<Shared>::default();
        let thread = |index| {
            let (shared, first) = (shared.clone(), first.clone());
            let run = move || {
                first();
                shared.work();
            };
            let thread = std::thread::Builder::new().name(format!("{name}-{index}")).spawn(run);
            thread.expect("the system starts a thread")
        };
        let threads = (0..count).map(thread).collect();
        Self { shared, threads }
    }

    pub(crate) fn threads_count(&self) -> usize {
        self.threads.len()
    }

    /// Runs `run`, which may ask threads to do `work` meanwhile. When it has ended, nobody begins
    /// with `work` any more, and those who have begun are waited for.
    pub(crate) fn with_help<T>(
        &self,
        work: &(dyn Fn() + Sync),
        run: impl FnOnce(&Help<'_>) -> T,
    ) -> T {
        #[allow(unsafe_code, reason = "threads that were there before use what is borrowed here")]
        // SAFETY: the reference goes to `Work::run` alone, which is called where `running` counts
        // the caller. This function does not return, or go on to panic, before no thread can begin
        // and `running` is 0; after that nobody calls it, though a `Work` may be dropped later.
        let work =
            unsafe { std::mem::transmute::<&(dyn Fn() + Sync), &'static (dyn Fn() + Sync)>(work) };
        let work = Work { run: work, progress: Mutex::default(), ended: Condvar::new() };
        let help = Help { pool: self, work: Arc::new(work) };
        let outcome = catch_unwind(AssertUnwindSafe(|| run(&help)));
        help.end();
        let panic = help.work.progress().panic.take();
        match (outcome, panic) {
            (Ok(outcome), None) => outcome,
            (Err(panic), _) | (_, Some(panic)) => resume_unwind(panic),
        }
    }
}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        self.shared.state().is_over = true;
        self.shared.changed.notify_all();
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a thread that helps has panicked");
            }
        }
    }
}

impl Help<'_> {
    /// Asks `count` more threads, or all there are, as soon as they have nothing else to do.
    pub(crate) fn ask(&self, count: usize) {
        let count = count.min(self.pool.threads_count());
        if count > 0 {
            self.pool.shared.state().asked.push_back((self.work.clone(), count));
        }
        (0..count).for_each(|_| self.pool.shared.changed.notify_one());
    }

    fn end(&self) {
        self.pool.shared.state().asked.retain(|(work, _)| !Arc::ptr_eq(work, &self.work));
        let is_running = |progress: &mut Progress| progress.running > 0;
        drop(self.work.ended.wait_while(self.work.progress(), is_running).expect(NO_PANIC));
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
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

impl State {
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
    fn progress(&self) -> MutexGuard<'_, Progress> {
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

impl fmt::Debug for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Work").field("running", &self.progress().running).finish_non_exhaustive()
    }
}

const NO_PANIC: &str = "no thread panics while it holds the lock";

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn pool(count: usize) -> ThreadPool {
        ThreadPool::start(count, "test", || ())
    }

    #[test]
    fn as_many_threads_help_as_were_asked() {
        let pool = pool(4);
        for count in 0..=4 {
            // All are at it at once, this thread with them.
            let meet = Barrier::new(count + 1);
            let helped = AtomicUsize::new(0);
            let work = || {
                meet.wait();
                helped.fetch_add(1, Ordering::Relaxed);
            };
            let here = pool.with_help(&work, |help| {
                help.ask(count);
                meet.wait();
                7
            });
            assert_eq!((here, helped.into_inner()), (7, count));
        }
    }

    #[test]
    fn who_has_begun_is_waited_for_and_who_has_not_is_not() {
        let pool = pool(1);
        let (begun, end) = (Barrier::new(2), Barrier::new(2));
        let work = || {
            begun.wait();
            end.wait();
        };
        pool.with_help(&work, |help| {
            help.ask(1);
            begun.wait();
            // The only thread is taken.
            let helped = AtomicUsize::new(0);
            let other = || {
                helped.fetch_add(1, Ordering::Relaxed);
            };
            pool.with_help(&other, |help| help.ask(3));
            assert_eq!(helped.into_inner(), 0);
            assert_eq!(pool.shared.state().asked.len(), 0);
            end.wait();
        });
        let left = AtomicUsize::new(100);
        let take = |left: usize| left.checked_sub(1);
        let work =
            || while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok() {};
        pool.with_help(&work, |help| {
            help.ask(1);
            work();
        });
        assert_eq!(left.into_inner(), 0);
    }

    #[test]
    fn a_panic_reaches_who_asked_and_the_threads_stay() {
        let pool = pool(2);
        for index in 0..3 {
            let meet = Barrier::new(2);
            let work = || {
                meet.wait();
                panic!("helper {index}");
            };
            let run = AssertUnwindSafe(|| {
                pool.with_help(&work, |help| {
                    help.ask(1);
                    meet.wait();
                });
            });
            let said = catch_unwind(run).unwrap_err();
            assert_eq!(said.downcast_ref::<String>(), Some(&format!("helper {index}")));
        }
        let run = AssertUnwindSafe(|| pool.with_help(&|| (), |_| panic!("here")));
        let said = catch_unwind(run).unwrap_err();
        assert_eq!(said.downcast_ref::<&str>(), Some(&"here"));
    }
}
