//! Back-pressure: the count of bytes that are not persisted, and waiting for it to shrink.

use crate::Error;
use crate::disk::WriteHealth;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

#[derive(Debug, Default)]
pub(crate) struct BackPressure {
    waiting_bytes: Mutex<u64>,
    changed: Condvar,
}

impl BackPressure {
    pub(crate) fn take(&self, bytes: u64) {
        *self.lock() += bytes;
    }

    pub(crate) fn release(&self, bytes: u64) {
        let mut waiting = self.lock();
        *waiting = waiting.checked_sub(bytes).expect("what is released was taken");
        self.changed.notify_all();
    }

    pub(crate) fn waiting_bytes(&self) -> u64 {
        *self.lock()
    }

    /// Wakes all waiting threads, so that they check for a failed write.
    pub(crate) fn wake(&self) {
        drop(self.lock());
        self.changed.notify_all();
    }

    pub(crate) fn wait(
        &self,
        limit_bytes: u64,
        timeout: Duration,
        health: &WriteHealth,
    ) -> Result<bool, Error> {
        let deadline = Instant::now() + timeout;
        let mut waiting = self.lock();
        loop {
            health.check()?;
            if *waiting <= limit_bytes {
                return Ok(true);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            waiting = self.changed.wait_timeout(waiting, left).expect("no panic with it").0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, u64> {
        self.waiting_bytes.lock().expect("no thread panics with it")
    }
}
