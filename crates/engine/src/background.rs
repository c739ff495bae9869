//! The priority of work that nobody waits for.

/// Lets other threads of the system go before the calling one, for good. Where processors are few,
/// the fork choice would wait some milliseconds for one otherwise, right after each block.
#[cfg(target_os = "linux")]
pub(crate) fn yield_to_others() {
    use rustix::process::{getpriority_process, setpriority_process};
    use rustix::thread::gettid;

    /// A tenth of the time of a thread that has none, and no more when both want all.
    const NICE: i32 = 10;

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
