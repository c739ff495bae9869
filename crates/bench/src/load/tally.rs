//! Counts of results and failures, made while calls run.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::measure::Histogram;

/// The reason why a call has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CallFailure {
    /// The server limits the rate: HTTP 429, or an error of a code for that.
    Limited,
    /// An error of JSON-RPC.
    Code(i64),
    /// Another status of HTTP than 200.
    Status(u16),
    /// The answer is to another call.
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
}

impl fmt::Display for CallFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Code(code) => return write!(f, "JSON-RPC error {code}"),
            Self::Status(status) => return write!(f, "HTTP status {status}"),
            Self::Limited => "rate limited",
            Self::WrongId => "wrong id",
            Self::Malformed => "malformed answer",
            Self::Missing => "missing from the batch",
            Self::Timeout => "timeout",
            Self::Closed => "connection closed",
            Self::Connect => "connection refused or not made (no call)",
        })
    }
}

/// The counts of one turn, or of several.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    /// Latencies of calls with a result, by kind of call.
    pub(super) latencies: Vec<Histogram>,
    /// Calls with a result, by kind of call, and how many of the results are `null`.
    pub(super) results: Vec<u64>,
    pub(super) nulls: Vec<u64>,
    pub(super) failures: BTreeMap<CallFailure, u64>,
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
    /// The pauses that the server had asked for.
    pub(super) paused: Duration,
    /// The share of a processor that the busiest thread of ours used.
    pub(super) busiest: f64,
    /// Connections that were given up.
    pub(super) given_up: usize,
}

impl Tally {
    pub(super) fn new(kinds: usize) -> Self {
        let latencies = vec![Histogram::new(); kinds];
        Self { latencies, results: vec![0; kinds], nulls: vec![0; kinds], ..Self::default() }
    }

    pub(super) fn fail(&mut self, failure: CallFailure, count: u64) {
        *self.failures.entry(failure).or_default() += count;
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

    pub(super) fn count(&self, failure: CallFailure) -> u64 {
        self.failures.get(&failure).copied().unwrap_or_default()
    }

    /// Calls without a result, those apart that the server put off.
    pub(super) fn failed(&self) -> u64 {
        let apart = [CallFailure::Limited, CallFailure::Connect];
        let failures = self.failures.iter().filter(|(failure, _)| !apart.contains(failure));
        failures.map(|(_, count)| count).sum()
    }
}
