//! Room in memory that all connections of a port share. Who does not go on, though others wait for
//! room, gives it back, and loses the connection or the request: so a thousand clients who send or
//! read a byte now and then keep nobody out.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::limits::{CHUNK_BYTES, ROOM_PAUSE};

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
    /// See [`Limits::room_time`](crate::Limits::room_time).
    time: Duration,
    free: Arc<Semaphore>,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    last_id: u64,
    /// When somebody was told to go.
    last_ended: Option<Instant>,
    /// Whom to tell, by when they have to have gone on.
    until: BTreeMap<Key, Arc<Notify>>,
}

/// When the time is over, and a number that makes it one of a kind.
type Key = (Instant, u64);

/// A part of a room.
#[derive(Debug)]
pub(crate) struct Place {
    room: Arc<Room>,
    permit: OwnedSemaphorePermit,
    over: Arc<Notify>,
    /// Where its time is bounded.
    key: Mutex<Option<Key>>,
}

impl Room {
    pub(crate) fn new(most_bytes: usize, time: Duration) -> Arc<Self> {
        let (free, held) = (semaphore(most_bytes), Mutex::default());
        Arc::new(Self { most_bytes, time, free, held })
    }

    /// So many bytes of it, if nobody has to be waited for. `over` is notified when they are to be
    /// given back, which is not before [`Place::goes_on`] was called.
    pub(crate) fn try_take(self: &Arc<Self>, bytes: usize, over: &Arc<Notify>) -> Option<Place> {
        let units = units(bytes, self.most_bytes);
        let permit = Arc::clone(&self.free).try_acquire_many_owned(units).ok()?;
        Some(self.place(permit, over))
    }

    /// As [`try_take`](Self::try_take), once there is room.
    pub(crate) async fn take(self: &Arc<Self>, bytes: usize, over: &Arc<Notify>) -> Place {
        if let Some(place) = self.try_take(bytes, over) {
            return place;
        }
        let permit = self.permit(bytes, None).await;
        self.place(permit, over)
    }

    fn place(self: &Arc<Self>, permit: OwnedSemaphorePermit, over: &Arc<Notify>) -> Place {
        let (room, over) = (Arc::clone(self), Arc::clone(over));
        Place { room, permit, over, key: Mutex::new(None) }
    }

    /// `has_some` is how whoever waits is told to go, if they have some of it already.
    async fn permit(&self, bytes: usize, has_some: Option<&Arc<Notify>>) -> OwnedSemaphorePermit {
        let mut permit = pin!(permits(&self.free, units(bytes, self.most_bytes)));
        loop {
            if let Ok(permit) = timeout(ROOM_PAUSE, &mut permit).await {
                return permit;
            }
            self.end_longest(has_some);
        }
    }

    /// Tells the one whose time was over first to give its place back: each who waits one after the
    /// other, since many may need as many places. Those who have some of it already are told one
    /// after the other however many wait: each of them may need what the others have, and what one
    /// gives back may be enough for all. Nobody ends itself, who is kept from going on.
    fn end_longest(&self, has_some: Option<&Arc<Notify>>) {
        let (mut held, now) = (self.held(), Instant::now());
        let is_soon = held.last_ended.is_some_and(|last| now.duration_since(last) < ROOM_PAUSE / 2);
        let is_other = |over: &Arc<Notify>| has_some.is_none_or(|own| !Arc::ptr_eq(own, over));
        if !(has_some.is_some() && is_soon)
            && let Some((&first, _)) = held.until.iter().find(|(_, over)| is_other(over))
            && first.0 <= now
            && let Some(over) = held.until.remove(&first)
        {
            over.notify_one();
            held.last_ended = Some(now);
        }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().expect("nothing panics while it is held")
    }
}

impl Place {
    /// Takes so many bytes more.
    pub(crate) async fn grow(&mut self, bytes: usize) {
        let units = units(bytes, self.room.most_bytes);
        let more = match Arc::clone(&self.room.free).try_acquire_many_owned(units) {
            Ok(more) => more,
            Err(_) => self.room.permit(bytes, Some(&self.over)).await,
        };
        self.permit.merge(more);
    }

    /// Notes that whoever has it went on, and has to go on again within the room's time, or be
    /// ended when others wait.
    pub(crate) fn goes_on(&self) {
        let (mut key, mut held) = (self.key(), self.room.held());
        // Where it is not there any more, its end was told.
        let is_told = key.take_if(|key| held.until.remove(key).is_some()).is_none();
        if is_told && key.is_some() {
            return;
        }
        held.last_id += 1;
        let next = (Instant::now() + self.room.time, held.last_id);
        held.until.insert(next, Arc::clone(&self.over));
        *key = Some(next);
    }

    /// Keeps the place, whoever needs it and for however long. False where it was told already that
    /// it has to go.
    pub(crate) fn keep(&self) -> bool {
        let key = self.key().take();
        key.is_none_or(|key| self.room.held().until.remove(&key).is_some())
    }

    fn key(&self) -> MutexGuard<'_, Option<Key>> {
        self.key.lock().expect("nothing panics while it is held")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.keep();
    }
}

/// The places of the answers of one connection that its client has yet to take. Answers wait for
/// each other, so it goes on with all of them when it takes bytes, of whichever.
#[derive(Debug, Default)]
pub(crate) struct Untaken {
    over: Arc<Notify>,
    state: Mutex<UntakenState>,
}

#[derive(Debug, Default)]
struct UntakenState {
    places: Vec<Weak<Place>>,
    /// What the client took since it was noted that it goes on.
    taken_bytes: usize,
}

impl Untaken {
    /// Notified when the connection is to end, since others need the room.
    pub(crate) const fn over(&self) -> &Arc<Notify> {
        &self.over
    }

    /// Adds that of an answer, until it is dropped.
    pub(crate) fn add(&self, place: Place) -> Arc<Place> {
        place.goes_on();
        let place = Arc::new(place);
        let mut state = self.state();
        state.places.retain(|place| place.strong_count() > 0);
        state.places.push(Arc::downgrade(&place));
        place
    }

    /// Notes that the client took so many bytes more.
    pub(crate) fn took(&self, bytes: usize) {
        let places: Vec<_> = {
            let mut state = self.state();
            state.taken_bytes += bytes;
            if state.taken_bytes < CHUNK_BYTES {
                return;
            }
            state.taken_bytes = 0;
            state.places.iter().filter_map(Weak::upgrade).collect()
        };
        places.iter().for_each(|place| place.goes_on());
    }

    fn state(&self) -> MutexGuard<'_, UntakenState> {
        self.state.lock().expect("nothing panics while it is held")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Soon over, but not when a test goes on at once.
    const TIME: Duration = ROOM_PAUSE;

    async fn is_told(over: &Notify) -> bool {
        timeout(Duration::ZERO, over.notified()).await.is_ok()
    }

    #[tokio::test]
    async fn who_does_not_go_on_gives_it_back_and_only_when_others_wait() {
        let room = Room::new(4 * UNIT_BYTES, TIME);
        let overs: [Arc<Notify>; 4] = Default::default();
        let take = |at: usize| room.try_take(UNIT_BYTES, &overs[at]);
        let mut places: Vec<_> = (0..4).map(&take).collect();
        assert!(places.iter().all(Option::is_some));
        assert!(take(0).is_none());
        for at in [2, 1] {
            places[at].iter().for_each(Place::goes_on);
        }
        tokio::time::sleep(2 * TIME).await;
        for over in &overs {
            assert!(!is_told(over).await, "nobody waits");
        }
        let other = Arc::default();
        let mut taken = pin!(room.take(UNIT_BYTES, &other));
        assert!(timeout(ROOM_PAUSE * 3 / 2, &mut taken).await.is_err());
        assert!(is_told(&overs[2]).await, "its time was over first");
        assert!(!is_told(&overs[1]).await);
        places[2] = None;
        drop(taken.await);
        assert!(take(0).is_some());
        assert!(!is_told(&overs[1]).await);
        // All are needed: those that have not begun keep their places.
        let mut taken = pin!(room.take(4 * UNIT_BYTES, &other));
        assert!(timeout(4 * ROOM_PAUSE, &mut taken).await.is_err());
        assert!(is_told(&overs[1]).await);
        for at in [0, 3] {
            assert!(!is_told(&overs[at]).await);
        }
    }

    #[tokio::test]
    async fn as_many_give_it_back_as_wait() {
        let room = Room::new(64 * UNIT_BYTES, Duration::ZERO);
        let overs: Vec<_> = (0..64).map(|_| Arc::default()).collect();
        let places: Vec<_> = overs.iter().map(|over| room.try_take(UNIT_BYTES, over)).collect();
        places.iter().flatten().for_each(Place::goes_on);
        let other = Arc::default();
        let mut waiting = tokio::task::JoinSet::new();
        for _ in 0..32 {
            let (room, other) = (Arc::clone(&room), Arc::clone(&other));
            waiting.spawn(async move { room.take(1, &other).await });
        }
        assert!(timeout(ROOM_PAUSE * 3 / 2, waiting.join_next()).await.is_err());
        // One a pause would be one or two.
        for over in &overs[..32] {
            assert!(is_told(over).await);
        }
    }

    #[tokio::test]
    async fn who_takes_bytes_of_one_answer_goes_on_with_all_of_its_connection() {
        let room = Room::new(2 * UNIT_BYTES, 8 * TIME);
        let untaken = Untaken::default();
        let take = || untaken.add(room.try_take(UNIT_BYTES, untaken.over()).expect("room"));
        let _places = [take(), take()];
        let other = Arc::default();
        let mut taken = pin!(room.take(1, &other));
        for _ in 0..4 {
            for _ in 0..2 {
                untaken.took(CHUNK_BYTES / 2);
            }
            assert!(timeout(4 * TIME, &mut taken).await.is_err());
            assert!(!is_told(untaken.over()).await);
        }
        // A little less is too little.
        untaken.took(CHUNK_BYTES - 1);
        assert!(timeout(6 * TIME, &mut taken).await.is_err());
        assert!(is_told(untaken.over()).await);
    }

    #[tokio::test]
    async fn what_is_kept_or_goes_on_stays() {
        let room = Room::new(3 * UNIT_BYTES, 8 * TIME);
        let overs: [Arc<Notify>; 2] = Default::default();
        let places = overs.each_ref().map(|over| room.try_take(UNIT_BYTES, over).expect("room"));
        let [mut grown, kept] = places;
        kept.goes_on();
        assert!(kept.keep());
        grown.grow(UNIT_BYTES).await;
        let other = Arc::default();
        let mut taken = pin!(room.take(1, &other));
        for _ in 0..4 {
            grown.goes_on();
            assert!(timeout(4 * TIME, &mut taken).await.is_err());
        }
        for over in &overs {
            assert!(!is_told(over).await);
        }
        drop((grown, kept));
        drop(taken.await);
        assert!(room.try_take(3 * UNIT_BYTES, &other).is_some());
    }

    #[tokio::test]
    async fn who_needs_more_ends_others_and_not_itself() {
        let room = Room::new(2 * UNIT_BYTES, Duration::ZERO);
        let overs: [Arc<Notify>; 2] = Default::default();
        let places = overs.each_ref().map(|over| room.try_take(UNIT_BYTES, over).expect("room"));
        let [mut first, second] = places;
        first.goes_on();
        // Whose time is not bounded: it runs.
        assert!(second.keep());
        {
            let mut grown = pin!(first.grow(UNIT_BYTES));
            assert!(timeout(4 * ROOM_PAUSE, &mut grown).await.is_err());
            assert!(!is_told(&overs[0]).await);
            second.goes_on();
            assert!(timeout(4 * ROOM_PAUSE, &mut grown).await.is_err());
            assert!(is_told(&overs[1]).await);
            drop(second);
            grown.await;
        }
        assert!(!is_told(&overs[0]).await);
    }

    #[tokio::test]
    async fn who_was_told_to_go_may_not_keep_it() {
        let room = Room::new(UNIT_BYTES, Duration::ZERO);
        let over = Arc::default();
        let place = room.take(1, &over).await;
        place.goes_on();
        assert!(timeout(4 * ROOM_PAUSE, room.take(1, &over)).await.is_err());
        place.goes_on();
        assert!(!place.keep());
    }
}
