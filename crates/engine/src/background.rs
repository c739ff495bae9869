//! The priority of work that nobody waits for.

use trie::versioned::{NodeAddress, RecordSink};

/// Lets other threads of the system go before the calling one, for good. Where processors are few,
/// the fork choice would wait some milliseconds for one otherwise, right after each block.
#[cfg(target_os = "linux")]
pub(crate) fn yield_to_others() {
    use rustix::process::{getpriority_process, setpriority_process};
    use rustix::thread::gettid;

    /// A third of the time of a thread that has none, when both want all.
    const NICE: i32 = 5;

    // On Linux this is of a thread.
    let thread = Some(gettid());
    let lowered = getpriority_process(thread)
        .and_then(|nice| setpriority_process(thread, (nice + NICE).min(19)));
    if let Err(error) = lowered {
        tracing::debug!(%error, "the priority of a thread stays as it is");
    }
}

/// Elsewhere priority is not a thread's alone.
#[cfg(not(target_os = "linux"))]
pub(crate) fn yield_to_others() {}

/// Counts steps of work that nobody waits for, some microseconds each, and lets other threads go
/// first every few steps: lowering a thread's priority shortens its turn, and does not end it.
#[derive(Debug, Default)]
pub(crate) struct Turns(u32);

impl Turns {
    /// Steps between two yields: some 50 µs.
    const STEPS: u32 = 32;

    pub(crate) fn step(&mut self) {
        self.0 += 1;
        if self.0.is_multiple_of(Self::STEPS) {
            std::thread::yield_now();
        }
    }
}

/// A sink that yields as [`Turns`] does.
#[derive(Debug)]
pub(crate) struct Yielding<'a, S> {
    pub(crate) sink: &'a mut S,
    pub(crate) turns: Turns,
}

impl<S: RecordSink> RecordSink for Yielding<'_, S> {
    fn append(&mut self, record: &[u8]) -> NodeAddress {
        self.turns.step();
        self.sink.append(record)
    }
}
