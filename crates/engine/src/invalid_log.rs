//! Floor 0. The lines of the log about invalid blocks, whose number others decide about.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use alloy_primitives::B256;

use crate::limits::{INVALID_LOG_PAUSE, LOGGED_REASON_CHARS};

/// Logs why a block is invalid: at most one line in five seconds, with the number of those that
/// were left out. All engines of a process share the line.
pub(crate) fn log_invalid(hash: B256, reason: &str) {
    static THROTTLE: Mutex<Throttle> = Mutex::new(Throttle { last: None, left_out: 0 });
    let mut throttle = THROTTLE.lock().expect("nothing panics while it is locked");
    let Some(left_out) = throttle.next(Instant::now(), INVALID_LOG_PAUSE) else { return };
    drop(throttle);
    let reason = start(reason);
    match left_out {
        0 => tracing::warn!(%hash, reason, "an invalid block"),
        _ => tracing::warn!(%hash, reason, left_out, "an invalid block, after others"),
    }
}

fn start(reason: &str) -> &str {
    let end = reason.char_indices().nth(LOGGED_REASON_CHARS);
    end.map_or(reason, |(end, _)| &reason[..end])
}

struct Throttle {
    last: Option<Instant>,
    left_out: u64,
}

impl Throttle {
    /// The number of lines left out since the last one, or `None` where this one is, too.
    fn next(&mut self, now: Instant, pause: Duration) -> Option<u64> {
        if self.last.is_some_and(|last| now.duration_since(last) < pause) {
            self.left_out += 1;
            return None;
        }
        self.last = Some(now);
        Some(std::mem::take(&mut self.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_between_are_counted() {
        let (begin, pause) = (Instant::now(), Duration::from_secs(5));
        let mut throttle = Throttle { last: None, left_out: 0 };
        let mut at = |seconds| throttle.next(begin + Duration::from_secs(seconds), pause);
        assert_eq!([0, 1, 4, 5, 6, 20].map(&mut at), [Some(0), None, None, Some(2), None, Some(1)]);
    }

    #[test]
    fn a_long_reason_is_cut_between_characters() {
        assert_eq!(start("short"), "short");
        assert_eq!(start(&"é".repeat(4000)), "é".repeat(LOGGED_REASON_CHARS));
    }
}
