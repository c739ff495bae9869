//! Lines of the log about a gap that is filled.

use std::time::{Duration, Instant};

use crate::limits::LOG_PAUSE;
use crate::status::{Progress, SharedProgress};

/// Writes a line from time to time.
#[derive(Debug)]
pub(crate) struct ProgressLog {
    /// When the last line was written.
    last: Instant,
    /// The last block that had run by then.
    ran: u64,
}

impl ProgressLog {
    /// The first line comes when it has taken a while.
    pub(crate) fn new(progress: &SharedProgress) -> Self {
        Self { last: Instant::now(), ran: progress.get().map_or(0, |progress| progress.ran) }
    }

    /// About the way back.
    pub(crate) fn headers(&mut self, progress: &SharedProgress) {
        let Some((progress, _)) = self.due(progress) else { return };
        let Progress { hashes, target, upstream, .. } = progress;
        tracing::info!(hashes, target, upstream, "headers of a gap");
    }

    /// About the blocks.
    pub(crate) fn blocks(&mut self, progress: &SharedProgress) {
        let before = self.ran;
        let Some((progress, since)) = self.due(progress) else { return };
        let Progress { ran: number, target, upstream, .. } = progress;
        let rate = number.saturating_sub(before) as f64 / since.as_secs_f64().max(1e-3);
        let blocks_per_s = rate.round();
        let left = target.map(|target| target.saturating_sub(number));
        let seconds_left =
            left.filter(|_| rate > 0.0).map(|left| (left as f64 / rate).ceil() as u64);
        tracing::info!(number, left, blocks_per_s, seconds_left, upstream, "blocks of a gap");
    }

    fn due(&mut self, progress: &SharedProgress) -> Option<(Progress, Duration)> {
        let since = self.last.elapsed();
        if since < LOG_PAUSE {
            return None;
        }
        let progress = progress.get()?;
        (self.last, self.ran) = (Instant::now(), progress.ran);
        Some((progress, since))
    }
}
