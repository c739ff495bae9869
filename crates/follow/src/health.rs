//! When an upstream may be asked again.

use std::time::{Duration, Instant};

/// The back-off of an upstream: each failure in a row doubles the pause after it.
#[derive(Debug)]
pub(crate) struct Health {
    first_pause: Duration,
    most_pause: Duration,
    /// Failures since the last answer that was good.
    failures: u32,
    ready_at: Option<Instant>,
}

impl Health {
    pub(crate) const fn new(first_pause: Duration, most_pause: Duration) -> Self {
        Self { first_pause, most_pause, failures: 0, ready_at: None }
    }

    /// A good answer came. While the upstream is left alone it says nothing: its request was on
    /// its way before.
    pub(crate) fn succeeded(&mut self, now: Instant) {
        if self.pause(now).is_zero() {
            (self.failures, self.ready_at) = (0, None);
        }
    }

    /// An error or a lie came: how long the upstream is left alone. Requests that were on their way
    /// when it was left alone fail together, and count once.
    pub(crate) fn failed(&mut self, now: Instant) -> Duration {
        if let Some(at) = self.ready_at.filter(|at| *at > now) {
            return at - now;
        }
        let times = 2_u32.saturating_pow(self.failures.min(30));
        let pause = self.first_pause.saturating_mul(times).min(self.most_pause);
        self.failures = self.failures.saturating_add(1);
        self.ready_at = Some(now + pause);
        pause
    }

    /// Failures since the last answer that was good.
    pub(crate) const fn failures(&self) -> u32 {
        self.failures
    }

    /// How long it is to be left alone from now on.
    pub(crate) fn pause(&self, now: Instant) -> Duration {
        self.ready_at.map_or(Duration::ZERO, |at| at.saturating_duration_since(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_doubles_with_each_failure_in_a_row_up_to_five_minutes() {
        let mut health = Health::new(Duration::from_secs(1), Duration::from_secs(300));
        let mut now = Instant::now();
        assert_eq!(health.pause(now), Duration::ZERO);
        for expected in [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300] {
            let expected = Duration::from_secs(expected);
            assert_eq!(health.failed(now), expected);
            assert_eq!(health.pause(now), expected);
            // Another request that was on its way.
            assert_eq!(health.failed(now + expected / 2), expected / 2);
            health.succeeded(now + expected / 2);
            now += expected;
            assert_eq!(health.pause(now), Duration::ZERO);
        }
        assert_eq!(health.failures(), 11);
        health.succeeded(now);
        assert_eq!((health.failures(), health.pause(now)), (0, Duration::ZERO));
        assert_eq!(health.failed(now), Duration::from_secs(1));
    }
}
