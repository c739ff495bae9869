//! When work that nobody waits for is done, and by which priority.

use crate::core::Core;
use crate::limits;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use trie::versioned::{NodeAddress, RecordSink};

/// Reads the newest nodes of a chain that was just opened, so that its first blocks need not wait
/// for the device at each node. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct ReadAhead {
    is_stopped: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl ReadAhead {
    pub(crate) fn start(core: Arc<Core>, bytes: u64) -> Self {
        let is_stopped = Arc::new(AtomicBool::new(false));
        // What comes later is in memory, and may not be written yet.
        let end = core.database.nodes().end();
        let run = {
            let is_stopped = is_stopped.clone();
            move || read_ahead(&core, end, bytes, &is_stopped)
        };
        let thread = std::thread::Builder::new().name("read-ahead".into()).spawn(run);
        let thread = thread.expect("the system starts a thread");
        Self { is_stopped, thread: Some(thread) }
    }
}

impl Drop for ReadAhead {
    fn drop(&mut self) {
        self.is_stopped.store(true, Ordering::Relaxed);
        let thread = self.thread.take().expect("dropped once");
        if thread.join().is_err() {
            tracing::error!("reading ahead panicked");
        }
    }
}

fn read_ahead(core: &Core, mut end: NodeAddress, bytes: u64, is_stopped: &AtomicBool) {
    run_when_idle();
    let until = end.offset().saturating_sub(bytes);
    while end.offset() > until && !is_stopped.load(Ordering::Relaxed) {
        if core.is_running() {
            std::thread::sleep(limits::READ_AHEAD_PAUSE);
            continue;
        }
        match core.database.nodes().read_ahead(end) {
            Ok(Some(next)) => {
                // What is read stays, and the next block needs memory too.
                touch_memory((end.offset() - next.offset()) as usize, &core.rest);
                end = next;
            }
            Ok(None) => return,
            Err(error) => {
                // Whoever needs what is there will meet it.
                tracing::debug!(%error, "reading ahead has ended");
                return;
            }
        }
    }
}

/// Lets other threads of the system go before the calling one, for good, by so much of what Unix
/// calls its nice value. Where processors are few, the fork choice would wait some milliseconds for
/// one otherwise, right after each block.
#[cfg(target_os = "linux")]
pub(crate) fn yield_to_others(nice: i32) {
    use rustix::process::{getpriority_process, setpriority_process};
    use rustix::thread::gettid;

    // On Linux this is of a thread.
    let thread = Some(gettid());
    let lowered = getpriority_process(thread)
        .and_then(|before| setpriority_process(thread, (before + nice).min(19)));
    if let Err(error) = lowered {
        tracing::debug!(%error, "the priority of a thread stays as it is");
    }
}

/// Elsewhere priority is not a thread's alone.
#[cfg(not(target_os = "linux"))]
pub(crate) fn yield_to_others(_nice: i32) {}

/// Lets the calling thread run, for good, only where no other wants the processor. Unlike one of a
/// low priority it gives way as soon as another wakes, in the middle of its turn: that is some
/// milliseconds long, whatever the priority.
#[cfg(target_os = "linux")]
fn run_when_idle() {
    let parameter = libc::sched_param { sched_priority: 0 };
    #[allow(unsafe_code, reason = "the system reads a number, of the calling thread alone")]
    // SAFETY: the parameter outlives the call, and 0 is the calling thread.
    let outcome = unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameter) };
    if outcome != 0 {
        let error = std::io::Error::last_os_error();
        tracing::debug!(%error, "the priority of a thread stays as it is");
    }
}

/// Elsewhere it takes its turns like others.
#[cfg(not(target_os = "linux"))]
fn run_when_idle() {}

/// Has the system clear memory before a block needs it: as long as the cache of nodes grows, it
/// takes memory that was free, and fresh memory is the dearest thing on a machine. `grown_bytes` is
/// by how much it grew of late; the allocator keeps what is freed here for the next block.
pub(crate) fn touch_memory(grown_bytes: usize, rest: &Rest) {
    let bytes = (limits::TOUCHED_PER_GROWN * grown_bytes).min(limits::TOUCHED_MAX_BYTES);
    let part = |_| {
        rest.wait();
        std::thread::yield_now();
        std::hint::black_box(vec![1u8; limits::TOUCHED_PART_BYTES])
    };
    // None is freed before all are there.
    drop((0..bytes / limits::TOUCHED_PART_BYTES).map(part).collect::<Vec<_>>());
}

/// Has work that nobody waits for rest while a large answer is on its way. Where processors are
/// few, the one that makes the answer would be taken away from it, or the one of its reader,
/// however low the priority of that work is.
#[derive(Debug, Default)]
pub(crate) struct Rest {
    until: Mutex<Option<Instant>>,
    ended: Condvar,
}

impl Rest {
    fn until(&self) -> MutexGuard<'_, Option<Instant>> {
        self.until.lock().expect("no thread panics while it holds the lock")
    }

    /// Begins a rest, or changes how long the one under way lasts from now on.
    pub(crate) fn begin(&self, time: Duration) {
        *self.until() = Some(Instant::now() + time.min(limits::REST_MAX));
    }

    /// Ends it: somebody waits for the work after all.
    pub(crate) fn end(&self) {
        if self.until().take().is_some() {
            self.ended.notify_all();
        }
    }

    /// Waits for the end of a rest, if there is one.
    pub(crate) fn wait(&self) {
        let mut until = self.until();
        while let Some(left) = until.and_then(|end| end.checked_duration_since(Instant::now())) {
            let waited = self.ended.wait_timeout(until, left);
            until = waited.expect("no thread panics while it holds the lock").0;
        }
    }
}

/// Counts steps of work that nobody waits for, some microseconds each, and lets other threads go
/// first every few steps: lowering a thread's priority shortens its turn, and does not end it.
#[derive(Debug)]
pub(crate) struct Turns<'a> {
    rest: &'a Rest,
    steps: u32,
}

impl<'a> Turns<'a> {
    /// Steps between two yields: some 50 µs.
    const STEPS: u32 = 32;

    pub(crate) const fn new(rest: &'a Rest) -> Self {
        Self { rest, steps: 0 }
    }

    pub(crate) fn step(&mut self) {
        self.steps += 1;
        if self.steps.is_multiple_of(Self::STEPS) {
            self.rest.wait();
            std::thread::yield_now();
        }
    }
}

/// A sink that yields as [`Turns`] does.
#[derive(Debug)]
pub(crate) struct Yielding<'a, S> {
    pub(crate) sink: &'a mut S,
    pub(crate) turns: Turns<'a>,
}

impl<S: RecordSink> RecordSink for Yielding<'_, S> {
    fn append(&mut self, record: &[u8]) -> NodeAddress {
        self.turns.step();
        self.sink.append(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rest_lasts_as_long_as_was_said() {
        let rest = Rest::default();
        rest.wait();
        for time in [Duration::from_millis(2), Duration::MAX] {
            let start = Instant::now();
            rest.begin(time);
            rest.wait();
            assert!(start.elapsed() >= time.min(limits::REST_MAX));
        }
    }

    #[test]
    fn a_rest_ends_when_somebody_wants_the_work() {
        let rest = Rest::default();
        *rest.until() = Some(Instant::now() + Duration::from_secs(3600));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| rest.wait());
            rest.end();
            waiting.join().expect("no panic");
        });
    }
}
