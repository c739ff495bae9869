//! Floor 1. Work behind the answers: its priority, and when it gives way.

use crate::limits;
use crate::threads::on_drop::OnDrop;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// By what background work decides whether to go on with what can be left for later.
#[derive(Debug, Default)]
pub(crate) struct Background {
    runs_block: AtomicBool,
    /// Threads that wait for background work.
    waiting: AtomicUsize,
}

impl Background {
    /// Notes that a block runs, to which the processors are better left, until this is dropped.
    pub(crate) fn block_runs(&self) -> OnDrop<impl FnMut()> {
        self.runs_block.store(true, Ordering::Relaxed);
        OnDrop(|| self.runs_block.store(false, Ordering::Relaxed))
    }

    /// Whether a block runs.
    pub(crate) fn is_block_running(&self) -> bool {
        self.runs_block.load(Ordering::Relaxed)
    }

    /// Notes that the calling thread waits for background work, until this is dropped.
    pub(crate) fn want(&self) -> OnDrop<impl FnMut()> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        OnDrop(|| _ = self.waiting.fetch_sub(1, Ordering::Relaxed))
    }

    /// Whether a thread waits for background work.
    pub(crate) fn is_wanted(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// Whether work that no thread waits for is better left for later.
    pub(crate) fn gives_way(&self) -> bool {
        self.is_block_running() || self.is_wanted()
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
pub(crate) fn lower_priority() {
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
pub(crate) fn lower_priority() {}

#[cfg(test)]
mod tests;
