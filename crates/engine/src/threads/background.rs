//! When work that nobody waits for is done, and by which priority.

use crate::limits;
use crate::shared::Core;
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

fn read_ahead(core: &Core, end: NodeAddress, bytes: u64, is_stopped: &AtomicBool) {
    run_when_idle();
    let is_stopped = || is_stopped.load(Ordering::Relaxed);
    let goes_on = || !is_stopped() && !core.is_running();
    let has_turn = || {
        while core.is_running() && !is_stopped() {
            std::thread::sleep(limits::READ_AHEAD_PAUSE);
        }
        !is_stopped()
    };
    let until = end.offset().saturating_sub(bytes);
    // A process has no memory that was freed before its first block, which may come at once.
    let most = touched_for((end.offset() - until) as usize);
    touch_first(|portion| !has_turn() || touch_memory(portion.min(most), &core.rest, goes_on));
    let (mut next, mut grown_bytes) = (end, 0);
    while next.offset() > until && has_turn() {
        match core.database.nodes().read_ahead(next) {
            Ok(Some(before)) => {
                // What is read stays, and the next block needs memory too.
                grown_bytes += (next.offset() - before.offset()) as usize;
                if grown_bytes >= limits::READ_AHEAD_STEP_BYTES {
                    touch_memory(touched_for(grown_bytes), &core.rest, goes_on);
                    grown_bytes = 0;
                }
                next = before;
            }
            Ok(None) => break,
            Err(error) => {
                // Whoever needs what is there will meet it.
                tracing::debug!(%error, "reading ahead has ended");
                break;
            }
        }
    }
    touch_memory(touched_for((end.offset() - next.offset()) as usize), &core.rest, goes_on);
}

/// Touches memory in portions, each as soon as the one before is through, or was tried often
/// enough: where blocks come one right after the other, none may ever be.
fn touch_first(is_touched: impl Fn(usize) -> bool) {
    for portion in limits::TOUCHED_FIRST_BYTES {
        (0..limits::TOUCHED_FIRST_TRIES).any(|_| is_touched(portion));
    }
}

/// Lets other threads of the system go before the calling one, for good: by its nice value, and,
/// from Linux 6.12 on, by the length of its turns. An answer, or its reader, that wakes where this
/// thread runs would wait for the end of its turn otherwise, or the system's next tick: some
/// milliseconds, where processors are few and no other is idle.
///
/// Both are needed. A thread that wakes goes first if it would be through with its turn earlier, by
/// a clock that runs slower the lower a nice value is: with a short turn alone, this one would.
#[cfg(target_os = "linux")]
pub(crate) fn yield_to_others() {
    #[allow(unsafe_code, reason = "the system says a number, of the calling thread alone")]
    // SAFETY: nothing is passed but 0, the calling thread.
    let policy = unsafe { libc::sched_getscheduler(0) };
    if ![libc::SCHED_OTHER, libc::SCHED_BATCH, libc::SCHED_IDLE].contains(&policy) {
        // Others of the process wait for it, and an operator has said how it runs.
        return;
    }
    let attributes = libc::sched_attr {
        size: size_of::<libc::sched_attr>() as u32,
        sched_policy: policy as u32,
        sched_flags: 0,
        sched_nice: limits::BACKGROUND_NICE,
        sched_priority: 0,
        sched_runtime: limits::BACKGROUND_TURN.as_nanos() as u64,
        sched_deadline: 0,
        sched_period: 0,
    };
    #[allow(unsafe_code, reason = "the system reads a structure, of the calling thread alone")]
    // SAFETY: the attributes outlive the call, and say how long they are; 0 is the calling thread.
    let outcome = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    if outcome == 0 {
        return;
    }
    // A container may forbid that call alone.
    let thread = Some(rustix::thread::gettid());
    if let Err(error) = rustix::process::setpriority_process(thread, limits::BACKGROUND_NICE) {
        tracing::debug!(%error, "the priority of a thread stays as it is");
    }
}

/// Elsewhere priority is not a thread's alone.
#[cfg(not(target_os = "linux"))]
pub(crate) fn yield_to_others() {}

/// Lets the calling thread run, for good, only where no other wants the processor. Unlike one of a
/// low priority it gives way as soon as another wakes, on any version of the system, and where it
/// runs counts as idle; but where others want all, it gets next to nothing.
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

/// How much memory is touched ahead when caches have grown by so much.
pub(crate) fn touched_for(grown_bytes: usize) -> usize {
    (limits::TOUCHED_PER_GROWN * grown_bytes).min(limits::TOUCHED_MAX_BYTES)
}

/// Has the system clear memory before a block needs it: as long as the cache of nodes grows, it
/// takes memory that was free, and fresh memory is the dearest thing on a machine. The allocator
/// keeps what is freed here for the next block. It ends when `goes_on` says no, before each part,
/// some 100 µs; returns whether all was touched.
pub(crate) fn touch_memory(bytes: usize, rest: &Rest, goes_on: impl Fn() -> bool) -> bool {
    let part = |_| {
        rest.pause();
        std::hint::black_box(vec![1u8; limits::TOUCHED_PART_BYTES])
    };
    let count = bytes / limits::TOUCHED_PART_BYTES;
    let parts: Vec<_> = (0..count).take_while(|_| goes_on()).map(part).collect();
    // None is freed before all are there.
    parts.len() == count
}

/// Has work that nobody waits for rest while an answer is on its way. Where processors are few, the
/// one that makes the answer would be taken away from it, or the one of its reader, however low the
/// priority of that work is.
#[derive(Debug, Default)]
pub(crate) struct Rest {
    /// Whether there may be one. Who works mostly looks at no more than this.
    is_on: AtomicBool,
    /// Whether somebody waits for the work.
    is_awaited: AtomicBool,
    state: Mutex<RestState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct RestState {
    until: Option<Instant>,
    /// How many wait for the work.
    waiting: usize,
}

/// Somebody waits for work that could rest: as long as this is held, it does not.
#[derive(Debug)]
pub(crate) struct Waiting<'a>(&'a Rest);

impl Rest {
    fn state(&self) -> MutexGuard<'_, RestState> {
        self.state.lock().expect("no thread panics while it holds the lock")
    }

    /// Begins a rest. One that is under way ends then too, for those who come to it from now on.
    pub(crate) fn begin(&self, time: Duration) {
        let mut state = self.state();
        state.until = Some(Instant::now() + time.min(limits::REST_MAX));
        self.is_on.store(true, Ordering::Relaxed);
    }

    /// Ends it: there is other work that this can be done beside.
    pub(crate) fn end(&self) {
        if self.is_on.load(Ordering::Relaxed) {
            self.state().until = None;
            self.is_on.store(false, Ordering::Relaxed);
            self.changed.notify_all();
        }
    }

    /// Says that the caller waits for the work.
    pub(crate) fn wait_for_work(&self) -> Waiting<'_> {
        self.wait_more_by(1);
        self.changed.notify_all();
        Waiting(self)
    }

    fn wait_more_by(&self, count: isize) {
        let mut state = self.state();
        state.waiting = state.waiting.checked_add_signed(count).expect("who waits has begun to");
        self.is_awaited.store(state.waiting > 0, Ordering::Relaxed);
    }

    /// Whether somebody waits for the work, so that what nobody waits for is better left.
    pub(crate) fn is_awaited(&self) -> bool {
        self.is_awaited.load(Ordering::Relaxed)
    }

    /// Waits as [`wait`](Self::wait) does, and lets other threads go first: between two parts of
    /// the work, some 100 µs each. A thread that wakes meanwhile may wait for the end of a part
    /// whatever its priority: the system takes it for one that has had more than its share.
    ///
    /// Not where somebody waits for the work: who yields may wait for milliseconds, for all that
    /// its priority is below.
    pub(crate) fn pause(&self) {
        if !self.is_awaited() {
            self.wait();
            std::thread::yield_now();
        }
    }

    /// Waits for the end of a rest, if there is one: [`limits::REST_MAX`] at most, whatever begins
    /// meanwhile.
    pub(crate) fn wait(&self) {
        if !self.is_on.load(Ordering::Relaxed) {
            return;
        }
        let most = Instant::now() + limits::REST_MAX;
        let mut state = self.state();
        while let Some(left) = state.left(most) {
            let waited = self.changed.wait_timeout(state, left);
            state = waited.expect("no thread panics while it holds the lock").0;
        }
        if state.until.is_some_and(|until| until <= Instant::now()) {
            state.until = None;
            self.is_on.store(false, Ordering::Relaxed);
        }
    }
}

impl RestState {
    /// How long the rest lasts from now on, if it does.
    fn left(&self, most: Instant) -> Option<Duration> {
        let until = self.until.filter(|_| self.waiting == 0)?;
        let left = until.min(most).saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.wait_more_by(-1);
    }
}

/// Counts steps of work that nobody waits for, some microseconds each, and lets other threads go
/// first every few steps: not every system ends its turn for one that wakes.
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
            self.rest.pause();
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
    #[cfg(target_os = "linux")]
    fn who_yields_is_the_least_of_the_system_and_has_short_turns() {
        let nice = || rustix::process::getpriority_process(Some(rustix::thread::gettid())).unwrap();
        let before = nice();
        let yielding = std::thread::spawn(move || {
            yield_to_others();
            (nice(), turn())
        });
        let (lowered, turn) = yielding.join().unwrap();
        assert_eq!((lowered, nice()), (limits::BACKGROUND_NICE, before));
        // Systems that do not know the length of a turn say 0.
        assert!([Duration::ZERO, limits::BACKGROUND_TURN].contains(&turn), "{turn:?}");
    }

    /// How long the calling thread's turn is, if the system knows.
    #[cfg(target_os = "linux")]
    fn turn() -> Duration {
        let (mut bytes, length) = ([0u8; 48], 48);
        #[allow(unsafe_code, reason = "the system writes a structure of so many bytes")]
        // SAFETY: the bytes outlive the call, and it is told how many they are.
        let outcome =
            unsafe { libc::syscall(libc::SYS_sched_getattr, 0, bytes.as_mut_ptr(), length, 0) };
        assert_eq!(outcome, 0);
        Duration::from_nanos(u64::from_ne_bytes(bytes[24..32].try_into().unwrap()))
    }

    #[test]
    fn memory_is_touched_until_there_is_other_work() {
        let rest = Rest::default();
        let asked = std::cell::Cell::new(0);
        let goes_on = |parts| asked.replace(asked.get() + 1) < parts;
        let bytes = 3 * limits::TOUCHED_PART_BYTES;
        assert!(!touch_memory(bytes, &rest, || goes_on(2)));
        assert_eq!(asked.take(), 3);
        assert!(touch_memory(bytes, &rest, || goes_on(3)));
        assert_eq!(asked.take(), 3);
        assert!(touch_memory(0, &rest, || false));
    }

    #[test]
    fn touching_first_ends_though_blocks_never_do() {
        let tried = std::cell::RefCell::new(Vec::new());
        touch_first(|portion| {
            tried.borrow_mut().push(portion);
            false
        });
        let tries = |portion: &usize| [*portion; limits::TOUCHED_FIRST_TRIES];
        assert_eq!(
            tried.take(),
            limits::TOUCHED_FIRST_BYTES.iter().flat_map(tries).collect::<Vec<_>>()
        );
        touch_first(|portion| {
            tried.borrow_mut().push(portion);
            true
        });
        assert_eq!(tried.take(), limits::TOUCHED_FIRST_BYTES);
    }

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
    fn nothing_rests_that_somebody_waits_for() {
        let (rest, hour) = (Rest::default(), Duration::from_secs(3600));
        let later = Instant::now() + hour;
        let rests = || rest.state().left(later).is_some();
        assert!(!rests());
        rest.begin(Duration::ZERO);
        rest.state().until = Some(later);
        assert!(rests());
        assert!(!rest.is_awaited());
        let [one, other] = [rest.wait_for_work(), rest.wait_for_work()];
        assert!(!rests());
        drop(one);
        rest.begin(hour);
        assert!(!rests() && rest.is_awaited());
        drop(other);
        assert!(!rest.is_awaited());
        rest.state().until = Some(later);
        assert!(rests());
        rest.end();
        assert!(!rests());
    }
}
