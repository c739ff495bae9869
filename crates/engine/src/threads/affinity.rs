//! Floor 1. On which processors the threads run that help a block.
//!
//! Linux wakes a thread where the one runs that wakes it, or where it ran before, also when that
//! processor is taken and another one idle: a guest of two processors was seen to do so nearly
//! always. A helping thread that is woken there runs when the block waits for it, and not a moment
//! sooner; or it takes the place of the block. So where processors are few, helping threads are
//! kept off the one on which the block's thread runs.

#[cfg(target_os = "linux")]
use crate::{error::NO_PANIC, limits};
#[cfg(target_os = "linux")]
use std::sync::Mutex;

/// The threads that help a block.
#[derive(Debug, Default)]
pub(crate) struct Affinity {
    #[cfg(target_os = "linux")]
    state: Mutex<AffinityState>,
}

#[cfg(target_os = "linux")]
#[derive(Debug, Default)]
struct AffinityState {
    threads: Vec<HelpingThread>,
    /// The processor that they are kept off.
    taken: Option<usize>,
}

#[cfg(target_os = "linux")]
#[derive(Debug)]
struct HelpingThread {
    id: rustix::thread::Pid,
    /// Where it could run when it joined.
    processors: rustix::thread::CpuSet,
}

#[cfg(target_os = "linux")]
impl Affinity {
    /// The calling thread is one of them, until the last of them ends.
    pub(crate) fn join(&self) {
        use rustix::thread::{gettid, sched_getaffinity};
        // Where there are more processors than the call can name, they are not few.
        let Ok(processors) = sched_getaffinity(None) else { return };
        let mut state = self.state.lock().expect(NO_PANIC);
        state.threads.push(HelpingThread { id: gettid(), processors });
        // It is not kept off yet.
        state.taken = None;
    }

    /// Keeps them off the processor of the calling thread, if there are few others. Mostly that is
    /// the block's thread; one that asks for a witness has them until the block's says so again.
    pub(crate) fn keep_off(&self) {
        use rustix::thread::{sched_getcpu, sched_setaffinity};
        let here = sched_getcpu();
        let mut state = self.state.lock().expect(NO_PANIC);
        if state.taken.replace(here) == Some(here) {
            return;
        }
        for HelpingThread { id, processors } in &state.threads {
            let mut others = *processors;
            others.unset(here);
            if !(1..limits::FEW_PROCESSORS as u32).contains(&others.count()) {
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
impl Affinity {
    pub(crate) fn join(&self) {}

    pub(crate) fn keep_off(&self) {}
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
