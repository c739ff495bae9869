use std::time::{SystemTime, UNIX_EPOCH};

use crate::Error;

/// The time of the next block: that of the system and an offset, or what was said.
#[derive(Debug, Clone, Default)]
pub(crate) struct Clock {
    /// Seconds that the chain is ahead of the system.
    offset: i128,
    /// The time of the next block, once.
    next: Option<u64>,
    /// Seconds between blocks, instead of the system's time.
    interval: Option<u64>,
}

impl Clock {
    pub(crate) fn now(&self) -> u64 {
        u64::try_from(i128::from(system()) + self.offset).unwrap_or(0)
    }

    /// The time of the block after one at `parent`.
    pub(crate) fn take(&mut self, parent: u64) -> u64 {
        let time = self.peek(parent);
        if self.next.take().is_some() {
            self.set(time);
        }
        time
    }

    /// The same, without taking it.
    pub(crate) fn peek(&self, parent: u64) -> u64 {
        let after = parent.saturating_add(1);
        match (self.next, self.interval) {
            (Some(next), _) => next.max(after),
            (None, Some(interval)) => parent.saturating_add(interval).max(after),
            (None, None) => self.now().max(after),
        }
    }

    /// Moves the clock on, and returns how far it is ahead in all.
    pub(crate) fn increase(&mut self, seconds: u64) -> i128 {
        self.offset = self.offset.saturating_add(seconds.into());
        self.offset
    }

    /// Sets the clock, and returns how far that moved it.
    pub(crate) fn set(&mut self, time: u64) -> i128 {
        let before = std::mem::replace(&mut self.offset, i128::from(time) - i128::from(system()));
        self.offset - before
    }

    /// Says when the next block is.
    pub(crate) fn set_next(&mut self, time: u64, parent: u64) -> Result<(), Error> {
        if time <= parent {
            return Err(Error::Time { given: time });
        }
        self.next = Some(time);
        Ok(())
    }

    /// Sets the seconds between blocks, and returns what they were.
    pub(crate) const fn set_interval(&mut self, seconds: Option<u64>) -> Option<u64> {
        std::mem::replace(&mut self.interval, seconds)
    }
}

fn system() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}
