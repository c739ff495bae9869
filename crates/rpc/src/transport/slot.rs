//! The slot of a connection among those of its port, the memory of its protocol, and the answers
//! that its client has yet to read.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};
use std::time::Instant;

use tokio::sync::Notify;

use crate::limits::CHUNK_BYTES;
use crate::transport::budget::Reservation;
use crate::transport::peer::Peer;

/// The slot of a connection. When others need one, the connection that has been idle for the
/// longest time is ended, by the notification of its [`UnreadAnswers`], however short that time is:
/// a newcomer waits for no one who asks for little. While a call runs it is not idle. One whose
/// calls wait for a turn, or for memory, is ended only if there is no other.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    pub(crate) peer: Peer,
    pub(crate) unread: Arc<UnreadAnswers>,
    state: Mutex<SlotState>,
}

#[derive(Debug)]
struct SlotState {
    slot: Reservation,
    /// Memory of the protocol that it speaks.
    protocol: Option<Reservation>,
    session: Option<Reservation>,
    /// Calls under way, those that wait among them.
    calls: usize,
    /// Calls that run.
    running: usize,
    /// Whether it has shown a valid token, or needs none because its owner is trusted. It is ended
    /// only if there is no other, and never during a call.
    is_trusted: bool,
}

impl SlotState {
    /// Notes when the connection began to be as idle as it is.
    fn note(&self) {
        let kept = [Some(&self.slot), self.protocol.as_ref(), self.session.as_ref()];
        let is_exempt = self.running > 0 || (self.is_trusted && self.calls > 0);
        let is_last = self.is_trusted || self.calls > 0;
        for reservation in kept.into_iter().flatten() {
            match is_exempt {
                true => _ = reservation.exempt(),
                false => reservation.set_due(Instant::now(), is_last),
            }
        }
    }
}

impl ConnectionSlot {
    pub(crate) fn new(
        peer: Peer,
        unread: Arc<UnreadAnswers>,
        slot: Reservation,
        is_trusted: bool,
    ) -> Arc<Self> {
        let (protocol, session, calls, running) = (None, None, 0, 0);
        let state = SlotState { slot, protocol, session, calls, running, is_trusted };
        state.note();
        let slot = Arc::new(Self { peer, unread, state: Mutex::new(state) });
        slot.unread.belong_to(&slot);
        slot
    }

    /// Keeps the memory of the protocol that the connection speaks from now on.
    pub(crate) fn keep_protocol(&self, memory: Reservation) {
        self.change(|state| state.protocol = Some(memory));
    }

    /// Keeps a place among the sessions.
    pub(crate) fn keep_session(&self, session: Reservation) {
        self.change(|state| state.session = Some(session));
    }

    /// Notes that the connection has shown a valid token.
    pub(crate) fn trust(&self) {
        self.change(|state| state.is_trusted = true);
    }

    /// Notes that a call is under way, until the result is dropped.
    pub(crate) fn call(&self) -> CallUnderWay<'_> {
        self.change(|state| state.calls += 1);
        CallUnderWay { slot: self, is_running: false }
    }

    /// Notes that a call runs, until the result is dropped.
    pub(crate) fn run(&self) -> CallUnderWay<'_> {
        self.change(|state| state.running += 1);
        CallUnderWay { slot: self, is_running: true }
    }

    /// Whether a call is under way.
    pub(crate) fn has_call(&self) -> bool {
        self.state().calls > 0
    }

    /// Notes a sign of life that takes effort: a request, or bytes that came or were read.
    pub(crate) fn note_progress(&self) {
        self.change(|_| {});
    }

    fn change(&self, change: impl FnOnce(&mut SlotState)) {
        let mut state = self.state();
        change(&mut state);
        state.note();
    }

    fn state(&self) -> MutexGuard<'_, SlotState> {
        self.state.lock().expect("nothing panics while it is locked")
    }
}

/// A call that is under way on a connection, or runs.
pub(crate) struct CallUnderWay<'s> {
    slot: &'s ConnectionSlot,
    is_running: bool,
}

impl Drop for CallUnderWay<'_> {
    fn drop(&mut self) {
        self.slot.change(|state| match self.is_running {
            true => state.running -= 1,
            false => state.calls -= 1,
        });
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
    /// Bytes that the client read since the last progress was noted, and since it connected.
    read_bytes: usize,
    all_read_bytes: usize,
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

    /// The bytes that the client has read so far, while there is any answer left.
    pub(crate) fn progress(&self) -> Option<usize> {
        let state = self.state();
        let is_any = state.reservations.iter().any(|reservation| reservation.strong_count() > 0);
        is_any.then_some(state.all_read_bytes)
    }

    /// Notes that the client read so many bytes more.
    pub(crate) fn note_read(&self, bytes: usize) {
        let reservations: Vec<_> = {
            let mut state = self.state();
            state.read_bytes += bytes;
            state.all_read_bytes = state.all_read_bytes.wrapping_add(bytes);
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
