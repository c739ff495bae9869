use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Lets through what may come very often once a second: lines in a log.
#[derive(Debug, Default)]
pub struct Seldom(Mutex<Option<Instant>>);

impl Seldom {
    /// Whether it has not been due for a second; then it has just been.
    pub fn is_due(&self) -> bool {
        let mut last = self.0.lock().expect("nothing panics while it is held");
        let is_due = last.is_none_or(|last| last.elapsed() >= Duration::from_secs(1));
        if is_due {
            *last = Some(Instant::now());
        }
        is_due
    }
}
