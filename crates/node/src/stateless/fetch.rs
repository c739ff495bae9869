//! When which source is asked for a block or its witness.

use std::sync::Arc;
use std::time::{Duration, Instant};

use alloy_primitives::B256;
use execution::SealedBlock;
use witness::Witness;

use crate::limits::{
    STATELESS_ABSENT_PAUSE, STATELESS_DISTRUST, STATELESS_FAILED_PAUSE, STATELESS_HEDGE_TIME,
    STATELESS_LONGEST_PAUSE, STATELESS_RECENT_TIME, STATELESS_REFUSED_PAUSE,
};

/// A thing that a source is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FetchTask {
    /// The block with this hash.
    Block(B256),
    /// The witness of a block.
    Witness { hash: B256, number: u64 },
}

impl FetchTask {
    pub(crate) const fn hash(&self) -> B256 {
        match self {
            Self::Block(hash) | Self::Witness { hash, .. } => *hash,
        }
    }
}

/// The answer of a source.
#[derive(Debug)]
pub(crate) enum Fetched {
    /// A witness, and the bytes that it takes in memory.
    Witness(Witness, usize),
    /// A block with the hash that was asked for, and its body.
    Block(Arc<SealedBlock>),
    /// The source does not have it, or not yet.
    Absent,
    /// There was no answer, or none that can be used.
    Failed,
}

/// The sources as far as one block is concerned.
#[derive(Debug)]
pub(crate) struct Fetch {
    since: Instant,
    offers: Vec<Offer>,
    /// The source that was asked last and has not answered, and since when.
    asked: Option<(usize, Instant)>,
}

/// When a source may be asked, and how often it had no good answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Offer {
    next: Instant,
    absent: u32,
    bad: u32,
}

impl Fetch {
    /// Of so many sources, all of which may be asked now.
    pub(crate) fn new(sources: usize, now: Instant) -> Self {
        Self { since: now, offers: vec![Offer::now(now); sources], asked: None }
    }

    /// Begins to ask a source that has given so many bad answers of late.
    ///
    /// # Errors
    /// When it may be asked.
    pub(crate) fn begin(&mut self, source: usize, bad: u32, now: Instant) -> Result<(), Instant> {
        let others = self.asked.map(|(_, since)| since + STATELESS_HEDGE_TIME);
        let trusted = self.since + (STATELESS_DISTRUST * bad).min(STATELESS_RECENT_TIME);
        let next = self.offers[source].next.max(trusted).max(others.unwrap_or(now));
        if next > now {
            return Err(next);
        }
        self.asked = Some((source, now));
        Ok(())
    }

    /// For how long all sources were asked in vain, once that is long.
    pub(crate) fn lacking(&self, now: Instant) -> Option<Duration> {
        let since = now.saturating_duration_since(self.since);
        let is_vain = self.offers.iter().all(|offer| offer.absent > 0 || offer.bad > 0);
        (is_vain && since >= STATELESS_RECENT_TIME).then_some(since)
    }

    /// A source has answered.
    pub(crate) fn end(&mut self, source: usize) {
        self.asked = self.asked.filter(|(asked, _)| *asked != source);
    }

    pub(crate) fn offer(&mut self, source: usize) -> &mut Offer {
        &mut self.offers[source]
    }
}

impl Offer {
    /// It may be asked now.
    pub(crate) const fn now(now: Instant) -> Self {
        Self { next: now, absent: 0, bad: 0 }
    }

    /// The source does not have it yet: it is asked often while a consensus client waits.
    pub(crate) fn absent(&mut self, age: Duration, now: Instant) {
        self.absent = self.absent.saturating_add(1);
        let most = if age < STATELESS_RECENT_TIME { 2 } else { 5 };
        self.next = now + STATELESS_ABSENT_PAUSE * (1 << self.absent.min(most));
    }

    /// The source has not answered.
    pub(crate) fn failed(&mut self, now: Instant) {
        self.next = now + self.pause(STATELESS_FAILED_PAUSE);
    }

    /// The source gave something that is no good.
    pub(crate) fn refused(&mut self, now: Instant) {
        self.next = now + self.pause(STATELESS_REFUSED_PAUSE);
    }

    /// A pause that doubles each time.
    fn pause(&mut self, first: Duration) -> Duration {
        let pause = first * (1 << self.bad.min(6));
        self.bad = self.bad.saturating_add(1);
        pause.min(STATELESS_LONGEST_PAUSE)
    }
}
