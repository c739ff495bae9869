//! The events of an engine that wait to be turned into notifications.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Instant;

use engine::{ChainEvent, HeadChange};

use crate::limits::{FEED_EVENTS, FEED_HASHES};

/// Events in order, within a bound. The engine adds to it while its chain is locked, and never
/// waits.
#[derive(Debug, Default)]
pub(super) struct EventQueue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    events: VecDeque<ChainEvent>,
    hashes: usize,
    /// Events that were lost since the last look.
    lost: u64,
    is_closed: bool,
}

/// The next entry of a queue.
#[derive(Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant, reason = "there is one at a time")]
pub(super) enum Next {
    Event(ChainEvent),
    /// Too many events waited, and so many were dropped.
    Lost(u64),
    /// Nothing came.
    Quiet,
    Closed,
}

impl EventQueue {
    /// Adds an event. Where too many wait, all are dropped: subscribers have to begin anew.
    pub(super) fn push(&self, event: &ChainEvent) {
        let mut waiting = self.waiting();
        waiting.hashes += hashes(event);
        waiting.events.push_back(event.clone());
        if waiting.events.len() > FEED_EVENTS || waiting.hashes > FEED_HASHES {
            waiting.lost += waiting.events.len() as u64;
            (waiting.events, waiting.hashes) = (VecDeque::new(), 0);
        }
        drop(waiting);
        self.changed.notify_one();
    }

    /// Waits for what comes next, until then.
    pub(super) fn next(&self, until: Instant) -> Next {
        let mut waiting = self.waiting();
        loop {
            if waiting.is_closed {
                return Next::Closed;
            }
            if waiting.lost > 0 {
                return Next::Lost(std::mem::take(&mut waiting.lost));
            }
            if let Some(event) = waiting.events.pop_front() {
                waiting.hashes -= hashes(&event);
                return Next::Event(event);
            }
            let Some(left) = until.checked_duration_since(Instant::now()) else {
                return Next::Quiet;
            };
            (waiting, _) = self.changed.wait_timeout(waiting, left).expect(NO_PANIC);
        }
    }

    /// Ends it: what still waits is of no interest.
    pub(super) fn close(self: &Arc<Self>) {
        self.waiting().is_closed = true;
        self.changed.notify_one();
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().expect(NO_PANIC)
    }
}

const NO_PANIC: &str = "nothing panics while it is held";

fn hashes(event: &ChainEvent) -> usize {
    match event {
        ChainEvent::Chosen(HeadChange { left, joined, .. }) => left.len() + joined.len(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::B256;
    use std::time::Duration;

    #[test]
    fn the_events_take_as_much_memory_as_the_bound_says() {
        let bytes = FEED_EVENTS * size_of::<ChainEvent>();
        assert!((8 << 20..20 << 20).contains(&bytes), "{bytes} bytes");
    }

    #[test]
    fn events_come_in_order_and_too_many_are_lost_at_once() {
        let queue = Arc::new(EventQueue::default());
        let event = |byte| ChainEvent::Valid(B256::with_last_byte(byte));
        queue.push(&event(1));
        queue.push(&event(2));
        let next = || queue.next(Instant::now() + Duration::from_secs(60));
        assert_eq!(next(), Next::Event(event(1)));
        assert_eq!(next(), Next::Event(event(2)));
        for _ in 0..=FEED_EVENTS {
            queue.push(&event(3));
        }
        queue.push(&event(4));
        assert_eq!(next(), Next::Lost(FEED_EVENTS as u64 + 1));
        assert_eq!(next(), Next::Event(event(4)));
        assert_eq!(queue.next(Instant::now()), Next::Quiet);
        queue.push(&event(5));
        queue.close();
        assert_eq!(next(), Next::Closed);
    }

    #[test]
    fn the_hashes_in_events_are_bounded_too_and_go_with_their_event() {
        let queue = Arc::new(EventQueue::default());
        let (left, joined) = [(); 2].map(|()| vec![B256::ZERO; FEED_HASHES / 4]).into();
        let heads =
            engine::Heads { genesis: B256::ZERO, head: B256::ZERO, safe: None, finalized: None };
        let half = ChainEvent::Chosen(HeadChange { before: heads, now: heads, left, joined });
        let next = || queue.next(Instant::now() + Duration::from_secs(60));
        for _ in 0..3 {
            queue.push(&half);
            queue.push(&half);
            assert_eq!([next(), next()], [(); 2].map(|()| Next::Event(half.clone())));
        }
        (0..3).for_each(|_| queue.push(&half));
        assert_eq!(next(), Next::Lost(3));
        assert_eq!(queue.next(Instant::now()), Next::Quiet);
    }
}
