//! Memory that all connections of a port share. Where others wait for memory, a connection or a
//! request that makes no progress is evicted: a thousand clients that send or read a byte now and
//! then keep no other client out.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::limits::{BUDGET_UNIT_BYTES, CHUNK_BYTES, EVICTION_PAUSE};

/// The permits that so many bytes need of a [`semaphore`] for `most_bytes`: what is longer needs
/// all of them.
pub(crate) fn units(bytes: usize, most_bytes: usize) -> u32 {
    let units = bytes.min(most_bytes).div_ceil(BUDGET_UNIT_BYTES);
    u32::try_from(units).expect("bounds in bytes are below 4 TiB")
}

/// A semaphore for so many bytes.
pub(crate) fn semaphore(most_bytes: usize) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(units(most_bytes, most_bytes) as usize))
}

/// Waits for so many permits.
pub(crate) async fn permits(semaphore: &Arc<Semaphore>, count: u32) -> OwnedSemaphorePermit {
    let permits = Arc::clone(semaphore).acquire_many_owned(count).await;
    permits.expect("these semaphores are never closed")
}

/// A wait for a turn or for memory that took too long, in words for the client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Busy(pub(crate) Duration);

impl fmt::Display for Busy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "busy: this request had no turn for {:?}, try again later", self.0)
    }
}

/// A budget of memory, from which reservations are made first come, first served.
#[derive(Debug)]
pub(crate) struct MemoryBudget {
    most_bytes: usize,
    /// See [`Limits::room_time`](crate::Limits::room_time).
    stall_time: Duration,
    free: Arc<Semaphore>,
    deadlines: Mutex<Deadlines>,
}

/// The reservations that have to make progress.
#[derive(Debug, Default)]
struct Deadlines {
    last_id: u64,
    last_eviction: Option<Instant>,
    /// The holders to notify, by when they have to have made progress.
    holders: BTreeMap<Deadline, Arc<Notify>>,
}

/// When the time is over, and a number that makes the key unique.
type Deadline = (Instant, u64);

/// A part of a budget, until it is dropped.
#[derive(Debug)]
pub(crate) struct Reservation {
    budget: Arc<MemoryBudget>,
    permit: OwnedSemaphorePermit,
    evicted: Arc<Notify>,
    /// `None` where the holder need not make progress.
    deadline: Mutex<Option<Deadline>>,
}

impl MemoryBudget {
    /// So many bytes. Where others wait, a holder is evicted that makes no progress for
    /// `stall_time`.
    pub(crate) fn new(most_bytes: usize, stall_time: Duration) -> Arc<Self> {
        let (free, deadlines) = (semaphore(most_bytes), Mutex::default());
        Arc::new(Self { most_bytes, stall_time, free, deadlines })
    }

    /// Reserves so many bytes, if they are free. `evicted` is notified when they are to be given
    /// back, which is not before [`Reservation::note_progress`] was called.
    pub(crate) fn try_reserve(
        self: &Arc<Self>,
        bytes: usize,
        evicted: &Arc<Notify>,
    ) -> Option<Reservation> {
        let units = units(bytes, self.most_bytes);
        let permit = Arc::clone(&self.free).try_acquire_many_owned(units).ok()?;
        Some(self.reservation(permit, evicted))
    }

    /// As [`try_reserve`](Self::try_reserve), once the bytes are free.
    pub(crate) async fn reserve(
        self: &Arc<Self>,
        bytes: usize,
        evicted: &Arc<Notify>,
    ) -> Reservation {
        if let Some(reservation) = self.try_reserve(bytes, evicted) {
            return reservation;
        }
        let permit = self.permit(bytes, None).await;
        self.reservation(permit, evicted)
    }

    fn reservation(
        self: &Arc<Self>,
        permit: OwnedSemaphorePermit,
        evicted: &Arc<Notify>,
    ) -> Reservation {
        let (budget, evicted) = (Arc::clone(self), Arc::clone(evicted));
        Reservation { budget, permit, evicted, deadline: Mutex::new(None) }
    }

    /// Waits for so many bytes, and evicts holders meanwhile. `own` is the notification of a holder
    /// that has some already.
    async fn permit(&self, bytes: usize, own: Option<&Arc<Notify>>) -> OwnedSemaphorePermit {
        let mut permit = pin!(permits(&self.free, units(bytes, self.most_bytes)));
        loop {
            if let Ok(permit) = timeout(EVICTION_PAUSE, &mut permit).await {
                return permit;
            }
            self.evict_first(own);
        }
    }

    /// Evicts the holder whose time was over first. Each waiter without a reservation evicts one
    /// after the other, since many waiters may need as many reservations. Waiters that hold some
    /// memory evict one at a time between all of them: each may need what the others hold, and one
    /// eviction may be enough for all. A waiter does not evict itself, as it is kept from making
    /// progress.
    fn evict_first(&self, own: Option<&Arc<Notify>>) {
        let (mut deadlines, now) = (self.deadlines(), Instant::now());
        let last = deadlines.last_eviction;
        let is_soon = last.is_some_and(|last| now.duration_since(last) < EVICTION_PAUSE / 2);
        let is_other = |other: &Arc<Notify>| own.is_none_or(|own| !Arc::ptr_eq(own, other));
        if !(own.is_some() && is_soon)
            && let Some((&first, _)) = deadlines.holders.iter().find(|(_, holder)| is_other(holder))
            && first.0 <= now
            && let Some(holder) = deadlines.holders.remove(&first)
        {
            holder.notify_one();
            deadlines.last_eviction = Some(now);
        }
    }

    fn deadlines(&self) -> MutexGuard<'_, Deadlines> {
        self.deadlines.lock().expect("nothing panics while it is locked")
    }
}

impl Reservation {
    /// Reserves so many bytes more, once they are free.
    pub(crate) async fn grow(&mut self, bytes: usize) {
        let units = units(bytes, self.budget.most_bytes);
        let more = match Arc::clone(&self.budget.free).try_acquire_many_owned(units) {
            Ok(more) => more,
            Err(_) => self.budget.permit(bytes, Some(&self.evicted)).await,
        };
        self.permit.merge(more);
    }

    /// Notes that the holder made progress. It has to make progress again within the budget's stall
    /// time, or is evicted when others wait.
    pub(crate) fn note_progress(&self) {
        let (mut deadline, mut deadlines) = (self.deadline(), self.budget.deadlines());
        // A deadline that is not there any more has led to an eviction.
        let is_evicted = deadline.take_if(|old| deadlines.holders.remove(old).is_some()).is_none();
        if is_evicted && deadline.is_some() {
            return;
        }
        deadlines.last_id += 1;
        let next = (Instant::now() + self.budget.stall_time, deadlines.last_id);
        deadlines.holders.insert(next, Arc::clone(&self.evicted));
        *deadline = Some(next);
    }

    /// Exempts the holder from eviction for good. False where it was evicted already.
    pub(crate) fn exempt(&self) -> bool {
        let deadline = self.deadline().take();
        deadline.is_none_or(|old| self.budget.deadlines().holders.remove(&old).is_some())
    }

    fn deadline(&self) -> MutexGuard<'_, Option<Deadline>> {
        self.deadline.lock().expect("nothing panics while it is locked")
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.exempt();
    }
}

/// The memory of the answers of one connection that its client has yet to read. Answers wait for
/// each other, so bytes read of any of them are progress of all.
#[derive(Debug, Default)]
pub(crate) struct UnreadAnswers {
    evicted: Arc<Notify>,
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

    /// Adds the memory of an answer, until it is dropped.
    pub(crate) fn add(&self, reservation: Reservation) -> Arc<Reservation> {
        reservation.note_progress();
        let reservation = Arc::new(reservation);
        let mut state = self.state();
        state.reservations.retain(|reservation| reservation.strong_count() > 0);
        state.reservations.push(Arc::downgrade(&reservation));
        reservation
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
    }

    fn state(&self) -> MutexGuard<'_, UnreadState> {
        self.state.lock().expect("nothing panics while it is locked")
    }
}

#[cfg(test)]
mod tests;
