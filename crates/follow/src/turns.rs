//! Which upstream is asked next.

use std::time::Duration;

use rpc::LogThrottle;

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

/// How long it takes until one may be asked.
pub(crate) fn pause(upstreams: &[Upstream]) -> Duration {
    upstreams.iter().map(pause_of).min().unwrap_or(Duration::MAX)
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
        let again_in = format!("{:.1?}", pause(upstreams));
        tracing::warn!(
            upstreams = upstreams.len(),
            of_other_chains = other.len(),
            failures,
            again_in,
            "no upstream of --follow answers: the gap stays until one does"
        );
    }
}
