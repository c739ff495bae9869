//! The slot of a connection among those of its port, the memory of its protocol, and the answers
//! that its client has yet to read.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::limits::CHUNK_BYTES;
use crate::transport::budget::Reservation;
use crate::transport::peer::Peer;

/// The slot of a connection. When others need one, the connection that has been idle for the
/// longest time is ended, by the notification of its [`UnreadAnswers`]. While a call is under way
/// it is not idle, and for a while after progress neither.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    pub(crate) peer: Peer,
    pub(crate) unread: Arc<UnreadAnswers>,
    kept: Mutex<KeptReservations>,
    /// Calls under way.
    calls: AtomicUsize,
    /// Whether it has shown a valid token, or needs none because its owner is trusted: it is ended
    /// only if there is no other.
    is_trusted: AtomicBool,
    /// See [`Limits::room_time`](crate::Limits::room_time).
    room_time: Duration,
}

/// The reservations that a connection keeps as long as it lasts.
#[derive(Debug)]
struct KeptReservations {
    slot: Reservation,
    /// Memory of the protocol that it speaks.
    protocol: Option<Reservation>,
    session: Option<Reservation>,
}

impl KeptReservations {
    fn iter(&self) -> impl Iterator<Item = &Reservation> {
        [Some(&self.slot), self.protocol.as_ref(), self.session.as_ref()].into_iter().flatten()
    }
}

impl ConnectionSlot {
    pub(crate) fn new(
        peer: Peer,
        unread: Arc<UnreadAnswers>,
        slot: Reservation,
        is_trusted: bool,
        room_time: Duration,
    ) -> Arc<Self> {
        let kept = Mutex::new(KeptReservations { slot, protocol: None, session: None });
        let (calls, is_trusted) = (AtomicUsize::new(0), is_trusted.into());
        let slot = Arc::new(Self { peer, unread, kept, calls, is_trusted, room_time });
        slot.unread.belong_to(&slot);
        // It may be ended at once.
        slot.set_due(Instant::now());
        slot
    }

    /// Keeps the memory of the protocol that the connection speaks from now on.
    pub(crate) fn keep_protocol(&self, memory: Reservation) {
        self.kept().protocol = Some(memory);
        self.note_progress();
    }

    /// Keeps a place among the sessions.
    pub(crate) fn keep_session(&self, session: Reservation) {
        self.kept().session = Some(session);
        self.note_progress();
    }

    /// Notes that the connection has shown a valid token.
    pub(crate) fn trust(&self) {
        self.is_trusted.store(true, Ordering::Relaxed);
    }

    /// Notes that a call is under way, until the result is dropped.
    pub(crate) fn call(&self) -> CallUnderWay<'_> {
        if self.calls.fetch_add(1, Ordering::Relaxed) == 0 {
            self.kept().iter().for_each(|kept| _ = kept.exempt());
        }
        CallUnderWay(self)
    }

    /// Whether a call is under way, or an answer on its way to the client.
    pub(crate) fn is_busy(&self) -> bool {
        self.calls.load(Ordering::Relaxed) > 0 || self.unread.is_any()
    }

    /// Notes a sign of life that takes effort: a request, or bytes that were read.
    pub(crate) fn note_progress(&self) {
        self.set_due(Instant::now() + self.room_time);
    }

    fn set_due(&self, at: Instant) {
        if self.calls.load(Ordering::Relaxed) == 0 {
            let is_trusted = self.is_trusted.load(Ordering::Relaxed);
            self.kept().iter().for_each(|kept| kept.set_due(at, is_trusted));
        }
    }

    fn kept(&self) -> MutexGuard<'_, KeptReservations> {
        self.kept.lock().expect("nothing panics while it is locked")
    }
}

/// A call that is under way on a connection.
pub(crate) struct CallUnderWay<'s>(&'s ConnectionSlot);

impl Drop for CallUnderWay<'_> {
    fn drop(&mut self) {
        if self.0.calls.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.0.note_progress();
        }
    }
}

/// The memory of the answers of one connection that its client has yet to read. Answers wait for
/// each other, so bytes read of any of them are progress of all.
#[derive(Debug, Default)]
pub(crate) struct UnreadAnswers {
    evicted: Arc<Notify>,
    slot: OnceLock<Weak<ConnectionSlot>>,
    state: Mutex<UnreadState>,
}

#[derive(Debug, Default)]
struct UnreadState {
    reservations: Vec<Weak<Reservation>>,
    /// Bytes that the client read since the last progress was noted.
    read_bytes: usize,
}

impl UnreadAnswers {
    /// Notified when the connection is to end, since others need the memory.
    pub(crate) const fn evicted(&self) -> &Arc<Notify> {
        &self.evicted
    }

    /// Notes whose answers these are: that they are read is progress of the connection.
    pub(crate) fn belong_to(&self, slot: &Arc<ConnectionSlot>) {
        self.slot.set(Arc::downgrade(slot)).expect("a connection has one slot");
    }

    /// Adds the memory of an answer, until it is dropped.
    pub(crate) fn add(&self, reservation: Reservation) -> Arc<Reservation> {
        reservation.note_progress();
        let reservation = Arc::new(reservation);
        let mut state = self.state();
        state.reservations.retain(|reservation| reservation.strong_count() > 0);
        state.reservations.push(Arc::downgrade(&reservation));
        reservation
    }

    /// Whether there is any.
    fn is_any(&self) -> bool {
        self.state().reservations.iter().any(|reservation| reservation.strong_count() > 0)
    }

    /// Notes that the client read so many bytes more.
    pub(crate) fn note_read(&self, bytes: usize) {
        let reservations: Vec<_> = {
            let mut state = self.state();
            state.read_bytes += bytes;
            if state.read_bytes < CHUNK_BYTES {
                return;
            }
            state.read_bytes = 0;
            state.reservations.iter().filter_map(Weak::upgrade).collect()
        };
        reservations.iter().for_each(|reservation| reservation.note_progress());
        if let Some(slot) = self.slot.get().and_then(Weak::upgrade) {
            slot.note_progress();
        }
    }

    fn state(&self) -> MutexGuard<'_, UnreadState> {
        self.state.lock().expect("nothing panics while it is locked")
    }
}
