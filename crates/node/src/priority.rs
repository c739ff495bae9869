//! The priority of threads.

use crate::limits::PUBLIC_NICE;

/// Lets threads that work on blocks go first. On Linux alone priority is a thread's own.
pub(crate) fn lower_priority() {
    #[cfg(target_os = "linux")]
    if let Err(error) =
        rustix::process::setpriority_process(Some(rustix::thread::gettid()), PUBLIC_NICE)
    {
        tracing::debug!(%error, "the priority of a thread stays as it is");
    }
}
