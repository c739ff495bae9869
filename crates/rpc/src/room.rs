//! Room in memory that all connections of a port share. Who holds some for longer than it should
//! take gives it back, and loses the connection or the request, as soon as others wait for it: so
//! a thousand clients who send or read a byte now and then keep nobody out.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::limits::ROOM_PAUSE;

/// Semaphores count to 2^29 at least; in bytes that would be too little.
const UNIT_BYTES: usize = 1 << 10;

/// The permits that so many bytes need of a semaphore made for `most_bytes`: what is longer
/// needs all of them.
pub(crate) fn units(bytes: usize, most_bytes: usize) -> u32 {
    let units = bytes.min(most_bytes).div_ceil(UNIT_BYTES);
    u32::try_from(units).expect("bounds in bytes are below 4 TiB")
}

/// A semaphore for so many bytes.
pub(crate) fn semaphore(most_bytes: usize) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(units(most_bytes, most_bytes) as usize))
}

pub(crate) async fn permits(semaphore: &Arc<Semaphore>, count: u32) -> OwnedSemaphorePermit {
    let permits = Arc::clone(semaphore).acquire_many_owned(count).await;
    permits.expect("these semaphores are never closed")
}

#[derive(Debug)]
pub(crate) struct Room {
    most_bytes: usize,
    free: Arc<Semaphore>,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    last_id: u64,
    /// Whom to tell, by when their time is over.
    until: BTreeMap<Key, Arc<Notify>>,
}

/// When the time is over, and a number that makes it one of a kind.
type Key = (Instant, u64);

/// A part of a room.
#[derive(Debug)]
pub(crate) struct Place {
    room: Arc<Room>,
    permit: OwnedSemaphorePermit,
    /// Where its time is bounded.
    key: Option<Key>,
}

impl Room {
    pub(crate) fn new(most_bytes: usize) -> Arc<Self> {
        let (free, held) = (semaphore(most_bytes), Mutex::default());
        Arc::new(Self { most_bytes, free, held })
    }

    /// So many bytes of it, if nobody has to be waited for. After `time`, `over` is notified when
    /// others need them.
    pub(crate) fn try_take(
        self: &Arc<Self>,
        bytes: usize,
        time: Duration,
        over: &Arc<Notify>,
    ) -> Option<Place> {
        let units = units(bytes, self.most_bytes);
        let permit = Arc::clone(&self.free).try_acquire_many_owned(units).ok()?;
        Some(self.place(permit, time, over))
    }

    /// As [`try_take`](Self::try_take), once there is room.
    pub(crate) async fn take(
        self: &Arc<Self>,
        bytes: usize,
        time: Duration,
        over: &Arc<Notify>,
    ) -> Place {
        let permit = self.permit(bytes).await;
        self.place(permit, time, over)
    }

    fn place(
        self: &Arc<Self>,
        permit: OwnedSemaphorePermit,
        time: Duration,
        over: &Arc<Notify>,
    ) -> Place {
        let mut held = self.held();
        held.last_id += 1;
        let key = (Instant::now() + time, held.last_id);
        held.until.insert(key, Arc::clone(over));
        drop(held);
        Place { room: Arc::clone(self), permit, key: Some(key) }
    }

    async fn permit(&self, bytes: usize) -> OwnedSemaphorePermit {
        let mut permit = pin!(permits(&self.free, units(bytes, self.most_bytes)));
        loop {
            if let Ok(permit) = timeout(ROOM_PAUSE, &mut permit).await {
                return permit;
            }
            self.end_longest();
        }
    }

    /// Tells the one whose time was over first to give its place back.
    fn end_longest(&self) {
        let mut held = self.held();
        if let Some(first) = held.until.first_entry()
            && first.key().0 <= Instant::now()
        {
            first.remove().notify_one();
        }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().expect("nothing panics while it is held")
    }
}

impl Place {
    /// Takes so many bytes more, for which it may hold the place for `time` longer.
    pub(crate) async fn grow(&mut self, bytes: usize, time: Duration) {
        let free =
            Arc::clone(&self.room.free).try_acquire_many_owned(units(bytes, self.room.most_bytes));
        let more = match free {
            Ok(more) => more,
            Err(_) => self.room.permit(bytes).await,
        };
        self.permit.merge(more);
        let mut held = self.room.held();
        // Where it is not there any more, its end was told.
        if let Some(key) = &mut self.key
            && let Some(over) = held.until.remove(key)
        {
            key.0 += time;
            held.until.insert(*key, over);
        }
    }

    /// Keeps the place, whoever needs it and for however long. False where it was told already that
    /// it has to go.
    pub(crate) fn keep(&mut self) -> bool {
        let key = self.key.take();
        key.is_none_or(|key| self.room.held().until.remove(&key).is_some())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.keep();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(3600);

    async fn is_told(over: &Notify) -> bool {
        timeout(Duration::ZERO, over.notified()).await.is_ok()
    }

    #[tokio::test]
    async fn who_has_it_longest_gives_it_back_and_only_when_others_wait() {
        let room = Room::new(4 * UNIT_BYTES);
        let overs: [Arc<Notify>; 4] = Default::default();
        let times = [LONG, Duration::from_millis(2), Duration::from_millis(1), LONG];
        let take = |at: usize| room.try_take(UNIT_BYTES, times[at], &overs[at]);
        let mut places: Vec<_> = (0..4).map(&take).collect();
        assert!(places.iter().all(Option::is_some));
        assert!(take(0).is_none());
        tokio::time::sleep(2 * ROOM_PAUSE).await;
        for over in &overs {
            assert!(!is_told(over).await, "nobody waits");
        }
        let other = Arc::default();
        let taken = room.take(UNIT_BYTES, LONG, &other);
        let mut taken = pin!(taken);
        assert!(timeout(ROOM_PAUSE * 3 / 2, &mut taken).await.is_err());
        assert!(is_told(&overs[2]).await, "its time was over first");
        assert!(!is_told(&overs[1]).await);
        places[2] = None;
        drop(taken.await);
        assert!(take(0).is_some());
        assert!(!is_told(&overs[1]).await);
        // Two are needed: those that have time left keep their places.
        let mut taken = pin!(room.take(4 * UNIT_BYTES, LONG, &other));
        assert!(timeout(4 * ROOM_PAUSE, &mut taken).await.is_err());
        assert!(is_told(&overs[1]).await);
        for at in [0, 3] {
            assert!(!is_told(&overs[at]).await);
        }
    }

    #[tokio::test]
    async fn what_is_kept_or_grows_has_its_time() {
        let room = Room::new(4 * UNIT_BYTES);
        let (kept, grown, other) = <(Arc<Notify>, Arc<Notify>, Arc<Notify>)>::default();
        let mut kept_place = room.take(UNIT_BYTES, Duration::ZERO, &kept).await;
        assert!(kept_place.keep());
        let mut grown_place = room.take(UNIT_BYTES, Duration::ZERO, &grown).await;
        grown_place.grow(2 * UNIT_BYTES, LONG).await;
        assert!(room.try_take(1, LONG, &other).is_none());
        assert!(timeout(4 * ROOM_PAUSE, room.take(1, LONG, &other)).await.is_err());
        assert!(!is_told(&kept).await && !is_told(&grown).await);
        drop(kept_place);
        drop(grown_place);
        assert!(room.try_take(4 * UNIT_BYTES, LONG, &other).is_some());
    }

    #[tokio::test]
    async fn who_was_told_to_go_may_not_keep_it() {
        let room = Room::new(UNIT_BYTES);
        let over = Arc::default();
        let mut place = room.take(1, Duration::ZERO, &over).await;
        assert!(timeout(4 * ROOM_PAUSE, room.take(1, LONG, &over)).await.is_err());
        assert!(!place.keep());
    }
}
