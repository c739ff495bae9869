//! Lines in a log that may be due very often.

use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Limits a line in the log to one a second.
#[derive(Debug, Default)]
pub struct LogThrottle(Mutex<Option<Instant>>);

impl LogThrottle {
    /// True at most once a second.
    #[expect(clippy::missing_panics_doc, reason = "nothing panics while it is locked")]
    pub fn is_due(&self) -> bool {
        let mut last = self.0.lock().expect("nothing panics while it is locked");
        let is_due = last.is_none_or(|last| last.elapsed() >= Duration::from_secs(1));
        if is_due {
            *last = Some(Instant::now());
        }
        is_due
    }
}
