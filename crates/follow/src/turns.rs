//! Which upstream is asked next.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use alloy_primitives::B256;
use rpc::LogThrottle;

use crate::error::Error;
use crate::limits::CHAIN_PAUSE;
use crate::upstream::Upstream;

/// The place of the upstream that is asked next: of those that may be asked, and of which `is_free`
/// is true, the one with the fewest failures, and of these the one with the most free turns.
pub(crate) fn next(upstreams: &[Upstream], is_free: impl Fn(usize) -> bool) -> Option<usize> {
    let may =
        |(place, upstream): &(usize, &Upstream)| pause_of(upstream).is_zero() && is_free(*place);
    let order = |(_, upstream): &(usize, &Upstream)| {
        (upstream.failures(), usize::MAX - upstream.free_turns())
    };
    upstreams.iter().enumerate().filter(may).min_by_key(order).map(|(place, _)| place)
}

/// How long an upstream is to be left alone. One of another chain is asked for that by others.
fn pause_of(upstream: &Upstream) -> Duration {
    match upstream.has_other_chain() {
        true => CHAIN_PAUSE.min(upstream.most_pause()),
        false => upstream.pause(),
    }
}

/// Says that none may be asked, where all have another chain, or have failed more than once.
pub(crate) fn say_none(upstreams: &[Upstream], log: &LogThrottle) {
    let (other, own): (Vec<_>, Vec<_>) = upstreams.iter().partition(|one| one.has_other_chain());
    let failures = own.into_iter().map(Upstream::failures).min();
    if failures.is_none_or(|failures| failures > 1) && log.is_due() {
        let again_in = upstreams.iter().map(pause_of).min().unwrap_or_default();
        let again_in = format!("{again_in:.1?}");
        tracing::warn!(
            upstreams = upstreams.len(),
            of_other_chains = other.len(),
            failures,
            again_in,
            "no upstream of --follow answers: the gap stays until one does"
        );
    }
}

/// Upstreams that do not have what they were asked for: they are not at fault, but are asked again
/// after a while alone. Forgotten with the gap.
#[derive(Debug, Default)]
pub(crate) struct Absences(BTreeMap<usize, (u32, Instant)>);

impl Absences {
    /// Notes the answer of the upstream at this place.
    pub(crate) fn note<T>(
        &mut self,
        upstreams: &[Upstream],
        place: usize,
        answer: &Result<T, Error>,
    ) {
        match answer {
            Ok(_) => _ = self.0.remove(&place),
            Err(Error::Absent(_)) => {
                let (count, until) = self.0.entry(place).or_insert((0, Instant::now()));
                *until = Instant::now() + upstreams[place].absent_pause(*count);
                *count += 1;
            }
            Err(_) => {}
        }
    }

    /// Whether no upstream has it that could be asked, but for those that have not answered.
    pub(crate) fn are_all(&self, upstreams: &[Upstream], is_late: impl Fn(usize) -> bool) -> bool {
        let is_out = |place| {
            self.0.contains_key(&place) || !pause_of(&upstreams[place]).is_zero() || is_late(place)
        };
        !self.0.is_empty() && (0..upstreams.len()).all(is_out)
    }

    /// How long the upstream at this place is not to be asked; zero where it may be.
    pub(crate) fn pause(&self, upstreams: &[Upstream], place: usize) -> Duration {
        let until = self.0.get(&place).map(|(_, until)| *until);
        let rest = until.map(|until| until.saturating_duration_since(Instant::now()));
        pause_of(&upstreams[place]).max(rest.unwrap_or_default())
    }

    /// How long it takes until one may be asked.
    pub(crate) fn least_pause(&self, upstreams: &[Upstream]) -> Duration {
        let pauses = (0..upstreams.len()).map(|place| self.pause(upstreams, place));
        pauses.min().unwrap_or(Duration::MAX)
    }

    /// Says that none has it.
    pub(crate) fn say(upstreams: &[Upstream], log: &LogThrottle, missing: B256) {
        if log.is_due() {
            tracing::warn!(
                upstreams = upstreams.len(), %missing,
                "no upstream of --follow has a block that is missing: the gap stays until one does"
            );
        }
    }
}
