//! Floor 1. A thread that is waited for when its owner is dropped.

use std::thread::JoinHandle;

/// A thread. Dropping this waits for its end, so whatever ends it comes before.
#[derive(Debug)]
pub(crate) struct JoinedThread(Option<JoinHandle<()>>);

impl JoinedThread {
    pub(crate) fn start(name: String, run: impl FnOnce() + Send + 'static) -> Self {
        let thread = std::thread::Builder::new().name(name).spawn(run);
        Self(Some(thread.expect("the system starts a thread")))
    }
}

impl Drop for JoinedThread {
    fn drop(&mut self) {
        let thread = self.0.take().expect("dropped once");
        let name = thread.thread().name().map(str::to_owned);
        if thread.join().is_err() {
            tracing::error!(?name, "a thread panicked");
        }
    }
}
