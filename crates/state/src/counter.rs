//! Counters that many threads increment all the time.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::limits::COUNTER_STRIPES;

/// A count in parts, each with a cache line of its own: threads that count at once do not wait for
/// each other's line.
#[derive(Debug, Default)]
pub(crate) struct Counter([Stripe; COUNTER_STRIPES]);

/// Aligned to two cache lines, which the processor fetches together.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Stripe(AtomicU64);

/// The part of the next thread that counts.
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// A part that there is not: the thread has not counted yet.
const NONE: usize = usize::MAX;

thread_local! {
    static OWN: Cell<usize> = const { Cell::new(NONE) };
}

impl Counter {
    #[inline]
    pub(crate) fn increment(&self) {
        let mut own = OWN.get();
        if own == NONE {
            own = NEXT.fetch_add(1, Ordering::Relaxed) % COUNTER_STRIPES;
            OWN.set(own);
        }
        self.0[own].0.fetch_add(1, Ordering::Relaxed);
    }

    /// The sum of the parts.
    pub(crate) fn get(&self) -> u64 {
        self.0.iter().map(|stripe| stripe.0.load(Ordering::Relaxed)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn increments_of_many_threads_are_all_counted() {
        let counter = Counter::default();
        std::thread::scope(|scope| {
            for _ in 0..2 * COUNTER_STRIPES {
                scope.spawn(|| (0..1000).for_each(|_| counter.increment()));
            }
        });
        assert_eq!(counter.get(), 2000 * COUNTER_STRIPES as u64);
    }
}
