//! Lines in a log that may be due very often.

use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Limits a line in the log to one a second, or a minute.
#[derive(Debug)]
pub struct LogThrottle {
    pause: Duration,
    state: Mutex<ThrottleState>,
}

#[derive(Debug, Default)]
struct ThrottleState {
    last: Option<Instant>,
    /// Events since the last line.
    count: usize,
}

impl Default for LogThrottle {
    fn default() -> Self {
        Self { pause: Duration::from_secs(1), state: Mutex::default() }
    }
}

impl LogThrottle {
    /// A line a minute.
    pub fn minutely() -> Self {
        Self { pause: Duration::from_secs(60), ..Self::default() }
    }

    /// True at most once a second, or a minute.
    pub fn is_due(&self) -> bool {
        self.count().is_some()
    }

    /// Counts an event. When a line is due, the events since the last one.
    #[expect(clippy::missing_panics_doc, reason = "nothing panics while it is locked")]
    pub fn count(&self) -> Option<usize> {
        let mut state = self.state.lock().expect("nothing panics while it is locked");
        state.count += 1;
        if state.last.is_some_and(|last| last.elapsed() < self.pause) {
            return None;
        }
        state.last = Some(Instant::now());
        Some(std::mem::take(&mut state.count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_events_between_two_lines_are_counted() {
        let throttle = LogThrottle::minutely();
        assert_eq!(throttle.count(), Some(1));
        assert_eq!(throttle.count(), None);
        assert_eq!(throttle.count(), None);
        throttle.state.lock().expect("no panic").last = None;
        assert_eq!(throttle.count(), Some(3));
    }
}
