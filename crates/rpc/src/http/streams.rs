//! What ends a connection of HTTP/2 that stays alive by its pings alone: a client who takes nothing
//! of an answer, who asks for nothing, or who has no token.
//!
//! Over HTTP/1.1 the socket tells ([`Socket`](crate::transport::socket::Socket)). Here nothing need be written
//! to it while an answer waits for its window (RFC 9113 section 5.2), and others go on beside it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::limits::CROSSING_TIME;
use crate::transport::room::Place;

/// The streams of one connection.
#[derive(Debug)]
pub(crate) struct Streams {
    begun: Instant,
    state: Mutex<State>,
    refused: Notify,
}

#[derive(Debug)]
struct State {
    /// Those from before the client knew that the connection was about to end.
    open: usize,
    /// When the last one of these ended, or the connection began, or was about to end.
    idle_since: Instant,
    /// Since when it is about to.
    ending_since: Option<Instant>,
    /// When the clients of the answers took the last chunk, in milliseconds since the connection
    /// began.
    answers: Vec<Weak<AtomicU64>>,
}

/// Why a connection is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Over {
    /// Soon: nobody asks for anything, or whoever does has no token.
    Unwanted,
    /// At once: an answer is not taken, or the client does not let it end.
    Stalled,
}

impl Streams {
    pub(crate) fn new() -> Arc<Self> {
        let begun = Instant::now();
        let state = State { open: 0, idle_since: begun, ending_since: None, answers: Vec::new() };
        Arc::new(Self { begun, state: Mutex::new(state), refused: Notify::new() })
    }

    /// Counts a stream until what it gives is dropped.
    pub(crate) fn open(self: &Arc<Self>) -> Open {
        let mut state = self.state();
        let is_counted = state.ending_since.is_none_or(|since| since.elapsed() < CROSSING_TIME);
        state.open += usize::from(is_counted);
        Open { streams: Arc::clone(self), is_counted }
    }

    /// Has the connection end, since its client has no token.
    pub(crate) fn refuse(&self) {
        self.refused.notify_one();
    }

    /// Notes that the client was told to go away: the streams that it has opened go on, those too
    /// that were on their way then, and those that it opens later do not keep the connection.
    pub(crate) fn end(&self) {
        let mut state = self.state();
        let now = Instant::now();
        (state.ending_since, state.idle_since) = (Some(now), now);
    }

    /// Waits until there is a reason to end the connection: no stream for `idle`, or an answer of
    /// which the client takes nothing for `stalled`. Once it is about to end, it is to end at once
    /// when there was no stream for `stalled`.
    pub(crate) async fn over(&self, idle: Duration, stalled: Duration) -> Over {
        let tick = idle.min(stalled) / 4;
        loop {
            let is_refused = timeout(tick, self.refused.notified()).await.is_ok();
            let mut state = self.state();
            let is_ending = state.ending_since.is_some();
            if is_refused && !is_ending {
                return Over::Unwanted;
            }
            if state.is_stalled(self.begun.elapsed().saturating_sub(stalled)) {
                return Over::Stalled;
            }
            let is_idle = |most| state.open == 0 && state.idle_since.elapsed() >= most;
            match is_ending {
                true if is_idle(stalled) => return Over::Stalled,
                false if is_idle(idle) => return Over::Unwanted,
                _ => {}
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics while it is held")
    }
}

impl State {
    /// Whether of any answer nothing was taken since then.
    fn is_stalled(&mut self, since: Duration) -> bool {
        self.forget_sent();
        let mut answers = self.answers.iter().filter_map(Weak::upgrade);
        answers.any(|taken| Duration::from_millis(taken.load(Ordering::Relaxed)) < since)
    }

    fn forget_sent(&mut self) {
        self.answers.retain(|answer| answer.strong_count() > 0);
    }
}

/// A stream.
#[derive(Debug)]
pub(crate) struct Open {
    streams: Arc<Streams>,
    is_counted: bool,
}

impl Open {
    /// The stream's answer, which has its room until all of it is written.
    pub(crate) fn sends(self, room: Option<Arc<Place>>) -> Arc<Sending> {
        let streams = Arc::clone(&self.streams);
        let sending = Arc::new(Sending { open: self, _room: room, taken: Arc::default() });
        sending.progress();
        let mut state = streams.state();
        if state.answers.len() > 2 * state.open + FORGOTTEN_AT_ONCE {
            state.forget_sent();
        }
        state.answers.push(Arc::downgrade(&sending.taken));
        sending
    }
}

/// Answers that were sent, as many as are forgotten together.
const FORGOTTEN_AT_ONCE: usize = 64;

impl Drop for Open {
    fn drop(&mut self) {
        if self.is_counted {
            let mut state = self.streams.state();
            (state.open, state.idle_since) = (state.open - 1, Instant::now());
        }
    }
}

/// An answer, as long as any of it is not written.
#[derive(Debug)]
pub(crate) struct Sending {
    open: Open,
    _room: Option<Arc<Place>>,
    /// See [`State::answers`]. Apart, since whoever looks at it there must not be the last one who
    /// has the stream.
    taken: Arc<AtomicU64>,
}

impl Sending {
    /// A chunk of it, to be handed over.
    pub(crate) fn chunk(self: &Arc<Self>, bytes: Bytes) -> Bytes {
        self.progress();
        Bytes::from_owner(Chunk { bytes, sending: Arc::clone(self) })
    }

    fn progress(&self) {
        let now = self.open.streams.begun.elapsed().as_millis();
        self.taken.store(u64::try_from(now).unwrap_or(u64::MAX), Ordering::Relaxed);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_request_that_was_on_its_way_when_the_client_was_told_to_go_is_answered() {
        let (streams, soon) = (Streams::new(), Duration::from_millis(20));
        streams.end();
        let crossing = streams.open();
        let over = streams.over(soon, soon);
        assert!(timeout(10 * soon, over).await.is_err(), "it is open");
        tokio::time::sleep(CROSSING_TIME).await;
        let _late = streams.open();
        drop(crossing);
        assert_eq!(streams.over(soon, soon).await, Over::Stalled);
    }
}
