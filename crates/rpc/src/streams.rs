//! What ends a connection of HTTP/2 that stays alive by its pings alone: a client who takes nothing
//! of an answer, who asks for nothing, or who has no token.
//!
//! Over HTTP/1.1 the socket tells ([`Socket`](crate::socket::Socket)). Here nothing need be written
//! to it while an answer waits for its window (RFC 9113 section 5.2), and others go on beside it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::{Notify, OwnedSemaphorePermit};
use tokio::time::timeout;

/// The streams of one connection.
#[derive(Debug)]
pub(crate) struct Streams {
    begun: Instant,
    state: Mutex<State>,
    refused: Notify,
}

#[derive(Debug)]
struct State {
    open: usize,
    /// When the last one ended, or the connection began.
    idle_since: Instant,
    answers: Vec<Weak<Sending>>,
}

/// Why a connection is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Over {
    /// Soon: nobody asks for anything, or whoever does has no token.
    Unwanted,
    /// At once: an answer is not taken.
    Stalled,
}

impl Streams {
    pub(crate) fn new() -> Arc<Self> {
        let begun = Instant::now();
        let state = State { open: 0, idle_since: begun, answers: Vec::new() };
        Arc::new(Self { begun, state: Mutex::new(state), refused: Notify::new() })
    }

    /// Counts a stream until what it gives is dropped.
    pub(crate) fn open(self: &Arc<Self>) -> Open {
        self.state().open += 1;
        Open(Arc::clone(self))
    }

    /// Has the connection end, since its client has no token.
    pub(crate) fn refuse(&self) {
        self.refused.notify_one();
    }

    /// Waits until there is a reason to end the connection: no stream for `idle`, or an answer that
    /// waits for its client for `stalled`. Once it `is_ending`, it is time to do so after both.
    pub(crate) async fn over(&self, idle: Duration, stalled: Duration, is_ending: bool) -> Over {
        let tick = idle.min(stalled) / 4;
        loop {
            if timeout(tick, self.refused.notified()).await.is_ok() && !is_ending {
                return Over::Unwanted;
            }
            let now = Instant::now();
            let stalled_since = now.saturating_duration_since(self.begun).saturating_sub(stalled);
            let mut state = self.state();
            state.answers.retain(|answer| answer.strong_count() > 0);
            let mut answers = state.answers.iter().filter_map(Weak::upgrade);
            if answers.any(|answer| answer.progressed() < stalled_since) {
                return Over::Stalled;
            }
            let most_idle = if is_ending { idle + stalled } else { idle };
            if state.open == 0 && now.saturating_duration_since(state.idle_since) >= most_idle {
                return if is_ending { Over::Stalled } else { Over::Unwanted };
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics while it is held")
    }
}

/// A stream.
#[derive(Debug)]
pub(crate) struct Open(Arc<Streams>);

impl Open {
    /// The stream's answer, which has its room until all of it is written.
    pub(crate) fn sends(self, room: Option<OwnedSemaphorePermit>) -> Arc<Sending> {
        let streams = Arc::clone(&self.0);
        let sending = Arc::new(Sending { open: self, _room: room, progressed: AtomicU64::new(0) });
        sending.progress();
        streams.state().answers.push(Arc::downgrade(&sending));
        sending
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.open -= 1;
        state.idle_since = Instant::now();
    }
}

/// An answer, as long as any of it is not written.
#[derive(Debug)]
pub(crate) struct Sending {
    open: Open,
    _room: Option<OwnedSemaphorePermit>,
    /// When its client took the last chunk, in milliseconds since the connection began.
    progressed: AtomicU64,
}

impl Sending {
    /// A chunk of it, to be handed over.
    pub(crate) fn chunk(self: &Arc<Self>, bytes: Bytes) -> Bytes {
        self.progress();
        Bytes::from_owner(Chunk { bytes, sending: Arc::clone(self) })
    }

    fn progress(&self) {
        let now = self.open.0.begun.elapsed().as_millis();
        self.progressed.store(u64::try_from(now).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    fn progressed(&self) -> Duration {
        Duration::from_millis(self.progressed.load(Ordering::Relaxed))
    }
}

/// Dropped when it is written, or when nobody wants it any more.
struct Chunk {
    bytes: Bytes,
    sending: Arc<Sending>,
}

impl AsRef<[u8]> for Chunk {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        self.sending.progress();
    }
}
