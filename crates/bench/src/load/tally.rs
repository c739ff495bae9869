//! What became of calls, counted while they run.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// Parts that each doubling is split into: a value is known to 1/256 of itself.
const PARTS_BITS: u32 = 8;
const PARTS: usize = 1 << PARTS_BITS;

/// How often each latency came, in nanoseconds to 0.4 %. Its size does not grow with the calls.
#[derive(Clone, Debug)]
pub(super) struct Histogram {
    counts: Vec<u64>,
    count: u64,
    sum: u64,
    max: u64,
}

impl Histogram {
    pub(super) fn new() -> Self {
        let parts = (64 - PARTS_BITS as usize + 1) * PARTS;
        Self { counts: vec![0; parts], count: 0, sum: 0, max: 0 }
    }

    pub(super) fn push(&mut self, nanos: u64) {
        self.counts[Self::place(nanos)] += 1;
        self.count += 1;
        self.sum = self.sum.saturating_add(nanos);
        self.max = self.max.max(nanos);
    }

    /// Small values have a place each; others one by their highest bits.
    const fn place(nanos: u64) -> usize {
        let bits = 64 - nanos.leading_zeros();
        let Some(shift) = bits.checked_sub(PARTS_BITS + 1) else { return nanos as usize };
        shift as usize * PARTS + (nanos >> shift) as usize
    }

    /// The middle of what has this place.
    const fn middle(place: usize) -> f64 {
        if place < 2 * PARTS {
            return place as f64;
        }
        let shift = place / PARTS - 1;
        let low = (place % PARTS + PARTS) as f64;
        (low + 0.5) * (1u64 << shift) as f64
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(count, more)| *count += more);
        self.count += other.count;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }

    pub(super) const fn count(&self) -> u64 {
        self.count
    }

    /// In nanoseconds; NaN of none.
    pub(super) fn mean(&self) -> f64 {
        self.sum as f64 / self.count as f64
    }

    /// In nanoseconds, and exact; NaN of none.
    pub(super) fn max(&self) -> f64 {
        if self.count == 0 { f64::NAN } else { self.max as f64 }
    }

    /// In nanoseconds, the least value that this share of all does not exceed (nearest rank); NaN
    /// of none.
    pub(super) fn percentile(&self, share: f64) -> f64 {
        let rank = ((share * self.count as f64).ceil() as u64).max(1);
        let mut before = 0;
        for (place, count) in self.counts.iter().enumerate() {
            before += count;
            if before >= rank && self.count > 0 {
                return Self::middle(place).min(self.max as f64);
            }
        }
        f64::NAN
    }

    /// Values and the share of all that is not above each, for a plot.
    pub(super) fn distribution(&self) -> Vec<(f64, f64)> {
        let mut before = 0;
        let there = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        there
            .map(|(place, count)| {
                before += count;
                (Self::middle(place), before as f64 / self.count as f64)
            })
            .collect()
    }
}

/// What became of a call that has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Failure {
    /// The server asked for patience: HTTP 429, or an error of a code for that.
    Limited,
    /// An error of JSON-RPC.
    Code(i64),
    /// Another status of HTTP than 200.
    Status(u16),
    /// The answer is none to any call that waited.
    WrongId,
    /// The answer cannot be read.
    Malformed,
    /// A batch's answer has no answer to this call.
    Missing,
    /// No answer within the time limit.
    Timeout,
    /// The connection ended before the answer was there.
    Closed,
    /// Not a call: a connection that could not be opened.
    Connect,
    /// Not a call: an answer, again or too late, to one that was done.
    Extra,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Limited => f.write_str("rate limited"),
            Self::Code(code) => write!(f, "JSON-RPC error {code}"),
            Self::Status(status) => write!(f, "HTTP status {status}"),
            Self::WrongId => f.write_str("wrong id"),
            Self::Malformed => f.write_str("malformed answer"),
            Self::Missing => f.write_str("missing from the batch"),
            Self::Timeout => f.write_str("timeout"),
            Self::Closed => f.write_str("connection closed"),
            Self::Connect => f.write_str("connection refused or not made (no call)"),
            Self::Extra => f.write_str("answer to a call that was done (no call)"),
        }
    }
}

/// What came of the calls of one turn, or of several.
#[derive(Clone, Debug)]
pub(super) struct Tally {
    /// Latencies of calls with a result, by kind of call.
    pub(super) latencies: Vec<Histogram>,
    /// Calls with a result, by kind of call, and how many of the results are `null`.
    pub(super) results: Vec<u64>,
    pub(super) nulls: Vec<u64>,
    pub(super) failures: BTreeMap<Failure, u64>,
    /// Calls that were sent.
    pub(super) sent: u64,
    /// Calls with a result that was there before the turn's end.
    pub(super) in_time: u64,
    /// Calls that were due and were not sent before the turn's end.
    pub(super) unsent: u64,
    pub(super) sent_bytes: u64,
    pub(super) received_bytes: u64,
    /// From the first call to the turn's end, or to the last answer where the calls were counted.
    pub(super) elapsed: Duration,
    /// For how long the server had asked for patience.
    pub(super) paused: Duration,
    /// The share of a processor that the busiest thread of ours used.
    pub(super) busiest: f64,
    /// Connections that were given up.
    pub(super) given_up: usize,
}

impl Tally {
    pub(super) fn new(kinds: usize) -> Self {
        Self {
            latencies: vec![Histogram::new(); kinds],
            results: vec![0; kinds],
            nulls: vec![0; kinds],
            failures: BTreeMap::new(),
            sent: 0,
            in_time: 0,
            unsent: 0,
            sent_bytes: 0,
            received_bytes: 0,
            elapsed: Duration::ZERO,
            paused: Duration::ZERO,
            busiest: 0.0,
            given_up: 0,
        }
    }

    pub(super) fn fail(&mut self, failure: Failure, count: u64) {
        if count > 0 {
            *self.failures.entry(failure).or_default() += count;
        }
    }

    /// Adds what another thread counted at the same time, or another turn's: then `elapsed` of both
    /// is added by the caller.
    pub(super) fn add(&mut self, other: &Self) {
        self.latencies.iter_mut().zip(&other.latencies).for_each(|(all, more)| all.add(more));
        self.results.iter_mut().zip(&other.results).for_each(|(all, more)| *all += more);
        self.nulls.iter_mut().zip(&other.nulls).for_each(|(all, more)| *all += more);
        for (failure, count) in &other.failures {
            self.fail(*failure, *count);
        }
        self.sent += other.sent;
        self.in_time += other.in_time;
        self.unsent += other.unsent;
        self.sent_bytes += other.sent_bytes;
        self.received_bytes += other.received_bytes;
        self.paused += other.paused;
        self.busiest = self.busiest.max(other.busiest);
        self.given_up += other.given_up;
    }

    /// All latencies together.
    pub(super) fn latency(&self) -> Histogram {
        let mut all = Histogram::new();
        self.latencies.iter().for_each(|one| all.add(one));
        all
    }

    /// Calls a second.
    pub(super) fn rate(&self) -> f64 {
        self.in_time as f64 / self.elapsed.as_secs_f64()
    }

    pub(super) fn count(&self, failure: Failure) -> u64 {
        self.failures.get(&failure).copied().unwrap_or_default()
    }

    /// Calls without a result, those apart that the server put off.
    pub(super) fn failed(&self) -> u64 {
        let apart = [Failure::Limited, Failure::Connect, Failure::Extra];
        let failures = self.failures.iter().filter(|(failure, _)| !apart.contains(failure));
        failures.map(|(_, count)| count).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn a_histogram_knows_what_the_sorted_values_know() {
        let seed = 11;
        let mut random = Random::new(seed);
        for round in 0..200 {
            let count = 1 + random.below(2_000);
            let mut values: Vec<u64> =
                (0..count).map(|_| random.word() >> random.between(20, 63)).collect();
            let mut parts = [Histogram::new(), Histogram::new()];
            for value in &values {
                parts[random.below(2) as usize].push(*value);
            }
            let [mut all, other] = parts;
            all.add(&other);
            values.sort_unstable();
            let sum: u64 = values.iter().sum();
            assert_eq!(all.count(), count);
            assert_eq!(all.max(), values[values.len() - 1] as f64);
            assert_eq!(all.mean(), sum as f64 / count as f64);
            for share in [0.0, 0.1, 0.5, 0.9, 0.95, 0.99, 1.0] {
                let rank = ((share * count as f64).ceil() as usize).max(1);
                let (exact, got) = (values[rank - 1] as f64, all.percentile(share));
                let off = (got - exact).abs();
                assert!(off <= exact / 256.0, "seed {seed}, round {round}: {got}, not {exact}");
            }
        }
    }

    #[test]
    fn a_histogram_of_few_values_is_exact() {
        let mut histogram = Histogram::new();
        assert!(histogram.percentile(0.5).is_nan() && histogram.mean().is_nan());
        (1..=10).for_each(|value| histogram.push(value));
        let shares = [0.5, 0.9, 0.91, 0.95, 1.0].map(|share| histogram.percentile(share));
        assert_eq!(shares, [5.0, 9.0, 10.0, 10.0, 10.0]);
        assert_eq!((histogram.mean(), histogram.max()), (5.5, 10.0));
        assert_eq!(histogram.distribution()[1], (2.0, 0.2));
        histogram.push(u64::MAX);
        assert_eq!(histogram.max(), u64::MAX as f64);
    }
}
