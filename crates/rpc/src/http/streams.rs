//! Ends connections of HTTP/2 that stay alive by their pings alone: those of clients that read
//! nothing of an answer, ask for nothing, or have no token.
//!
//! Over HTTP/1.1 the socket does this ([`Socket`](crate::transport::socket::Socket)). Here nothing
//! need be written to it while an answer waits for its window (RFC 9113 section 5.2), and other
//! answers go on beside it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::limits::{CROSSING_TIME, FINISHED_ANSWERS_LEN};
use crate::transport::budget::Reservation;

/// The streams of one connection.
#[derive(Debug)]
pub(super) struct StreamWatch {
    begun: Instant,
    state: Mutex<StreamState>,
    refused: Notify,
}

#[derive(Debug)]
struct StreamState {
    /// Streams from before the client knew that the connection was about to end.
    open: usize,
    /// When the last one of these ended, or the connection began, or was about to end.
    idle_since: Instant,
    /// Since when the connection is about to end.
    ending_since: Option<Instant>,
    /// When the client read the last chunk of each answer, in milliseconds since the connection
    /// began.
    answers: Vec<Weak<AtomicU64>>,
}

/// Why a connection is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CloseReason {
    /// Soon: the client asks for nothing, or has no token.
    Unwanted,
    /// At once: an answer is not read, or the client does not let the connection end.
    Stalled,
}

impl StreamWatch {
    pub(super) fn new() -> Arc<Self> {
        let begun = Instant::now();
        let state =
            StreamState { open: 0, idle_since: begun, ending_since: None, answers: Vec::new() };
        Arc::new(Self { begun, state: Mutex::new(state), refused: Notify::new() })
    }

    /// Counts a stream until the result is dropped.
    pub(super) fn open(self: &Arc<Self>) -> OpenStream {
        let mut state = self.state();
        let is_counted = state.ending_since.is_none_or(|since| since.elapsed() < CROSSING_TIME);
        state.open += usize::from(is_counted);
        OpenStream { streams: Arc::clone(self), is_counted }
    }

    /// Has the connection end, since its client has no token.
    pub(super) fn refuse(&self) {
        self.refused.notify_one();
    }

    /// Notes that the client was told to go away. Streams that were open or on their way by then go
    /// on; those that the client opens later do not keep the connection.
    pub(super) fn end(&self) {
        let mut state = self.state();
        let now = Instant::now();
        (state.ending_since, state.idle_since) = (Some(now), now);
    }

    /// Waits until there is a reason to end the connection: no stream for `idle`, or an answer of
    /// which the client reads nothing for `stalled`. A connection that is about to end ends at once
    /// when there was no stream for `stalled`.
    pub(super) async fn closed(&self, idle: Duration, stalled: Duration) -> CloseReason {
        let tick = idle.min(stalled) / 4;
        loop {
            let is_refused = timeout(tick, self.refused.notified()).await.is_ok();
            let mut state = self.state();
            let is_ending = state.ending_since.is_some();
            if is_refused && !is_ending {
                return CloseReason::Unwanted;
            }
            if state.is_stalled(self.begun.elapsed().saturating_sub(stalled)) {
                return CloseReason::Stalled;
            }
            let is_idle = |most| state.open == 0 && state.idle_since.elapsed() >= most;
            match is_ending {
                true if is_idle(stalled) => return CloseReason::Stalled,
                false if is_idle(idle) => return CloseReason::Unwanted,
                _ => {}
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, StreamState> {
        self.state.lock().expect("nothing panics while it is locked")
    }
}

impl StreamState {
    /// Whether the client has read nothing of some answer since then.
    fn is_stalled(&mut self, since: Duration) -> bool {
        self.forget_finished();
        let mut answers = self.answers.iter().filter_map(Weak::upgrade);
        answers.any(|read| Duration::from_millis(read.load(Ordering::Relaxed)) < since)
    }

    fn forget_finished(&mut self) {
        self.answers.retain(|answer| answer.strong_count() > 0);
    }
}

/// An open stream.
#[derive(Debug)]
pub(super) struct OpenStream {
    streams: Arc<StreamWatch>,
    is_counted: bool,
}

impl OpenStream {
    /// The stream's answer, which keeps its memory until all of it is written.
    pub(super) fn send(self, memory: Option<Arc<Reservation>>) -> Arc<StreamAnswer> {
        let streams = Arc::clone(&self.streams);
        let answer =
            Arc::new(StreamAnswer { stream: self, _memory: memory, read_at: Arc::default() });
        answer.note_progress();
        let mut state = streams.state();
        if state.answers.len() > 2 * state.open + FINISHED_ANSWERS_LEN {
            state.forget_finished();
        }
        state.answers.push(Arc::downgrade(&answer.read_at));
        answer
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        if self.is_counted {
            let mut state = self.streams.state();
            (state.open, state.idle_since) = (state.open - 1, Instant::now());
        }
    }
}

/// An answer, as long as any of it is not written.
#[derive(Debug)]
pub(super) struct StreamAnswer {
    stream: OpenStream,
    _memory: Option<Arc<Reservation>>,
    /// See [`StreamState::answers`]. It has an `Arc` of its own: a look at it there must not be
    /// what drops the stream.
    read_at: Arc<AtomicU64>,
}

impl StreamAnswer {
    /// A chunk of the answer, to be handed to hyper.
    pub(super) fn chunk(self: &Arc<Self>, bytes: Bytes) -> Bytes {
        self.note_progress();
        Bytes::from_owner(StreamChunk { bytes, answer: Arc::clone(self) })
    }

    fn note_progress(&self) {
        let now = self.stream.streams.begun.elapsed().as_millis();
        self.read_at.store(u64::try_from(now).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}

/// A part of an answer, dropped when it is written or the connection has ended.
struct StreamChunk {
    bytes: Bytes,
    answer: Arc<StreamAnswer>,
}

impl AsRef<[u8]> for StreamChunk {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for StreamChunk {
    fn drop(&mut self) {
        self.answer.note_progress();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_request_that_was_on_its_way_when_the_client_was_told_to_go_is_answered() {
        let (streams, soon) = (StreamWatch::new(), Duration::from_millis(20));
        streams.end();
        let crossing = streams.open();
        let closed = streams.closed(soon, soon);
        assert!(timeout(10 * soon, closed).await.is_err(), "it is open");
        tokio::time::sleep(CROSSING_TIME).await;
        let _late = streams.open();
        drop(crossing);
        assert_eq!(streams.closed(soon, soon).await, CloseReason::Stalled);
    }
}
