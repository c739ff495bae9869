//! Metrics for Prometheus: what is counted while the node works, and what is asked for at a scrape.
//!
//! To count costs a few atomic operations, whether anyone scrapes or not. `docs/metrics.md` has the
//! table of all metrics, which a test compares with the output.

mod answers;
mod blocks;
mod port;
mod process;
mod scrape;

use std::time::Duration;

use engine::{Error as EngineError, JudgedPayload, Verdict};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use rpc::rest::StatusCode;
use rpc::{Code, Error};

pub(crate) use answers::{CodesSent, Wire};
pub(crate) use blocks::MetricsObserver;
pub(crate) use port::MetricsPort;
pub(crate) use scrape::{NodeState, Output, chain_metrics};

use answers::AnswerMetrics;
use blocks::BlockMetrics;

/// Names and values of labels.
type Labels<const N: usize> = [(&'static str, &'static str); N];

/// Histograms by labels.
type Histograms<const N: usize> = Family<Labels<N>, Histogram, fn() -> Histogram>;

/// The counts that a node keeps while it works. They may be used by any number of threads.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    new_payload: Histograms<1>,
    calls: Histograms<1>,
    call_errors: Family<Labels<2>, Counter>,
    requests: Histograms<1>,
    request_errors: Family<Labels<2>, Counter>,
    pub(crate) answers: AnswerMetrics,
    blocks: BlockMetrics,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("deponent");
        let new_payload = histograms(of_blocks);
        let calls = histograms(of_calls);
        let requests = histograms(of_calls);
        let (call_errors, request_errors) = Default::default();
        for (name, help, histograms) in [
            ("new_payload_duration_seconds", NEW_PAYLOAD, &new_payload),
            ("rpc_call_duration_seconds", CALLS, &calls),
            ("rest_request_duration_seconds", REQUESTS, &requests),
        ] {
            registry.register(name, help, Histograms::clone(histograms));
        }
        for (name, help, errors) in [
            ("rpc_errors", CALL_ERRORS, &call_errors),
            ("rest_errors", REQUEST_ERRORS, &request_errors),
        ] {
            registry.register(name, help, Family::<Labels<2>, Counter>::clone(errors));
        }
        let answers = AnswerMetrics::new(&mut registry);
        let blocks = BlockMetrics::new(&mut registry);
        Self {
            registry,
            new_payload,
            calls,
            call_errors,
            requests,
            request_errors,
            answers,
            blocks,
        }
    }
}

const NEW_PAYLOAD: &str = "Time of a payload in the engine, until its verdict is known";
const CALLS: &str = "Time of a JSON-RPC call, from its turn to its answer, without sending it";
const REQUESTS: &str = "Time of a REST request, from its turn to its answer, without sending it";
const CALL_ERRORS: &str = "JSON-RPC calls that were answered with an error, by its code";
const REQUEST_ERRORS: &str = "REST requests that were answered with an error, by its status";

/// The label of calls of methods that there are not.
const UNKNOWN: &str = "unknown";

impl Metrics {
    /// Counts a payload that was handed to the engine.
    pub(crate) fn new_payload(&self, took: Duration, judged: Result<&JudgedPayload, &EngineError>) {
        let is_known = judged.is_ok_and(JudgedPayload::is_known);
        let status = match judged.map(|judged| &judged.verdict) {
            Ok(Verdict::Valid) if is_known => "known",
            Ok(Verdict::Valid) => "valid",
            Ok(Verdict::Invalid { .. }) => "invalid",
            Ok(Verdict::Syncing(_)) => "syncing",
            Err(_) => "error",
        };
        observe(&self.new_payload, [("status", status)], took);
    }

    /// Counts a call of a method; `None` is one that there is not.
    pub(crate) fn called(
        &self,
        method: Option<&'static str>,
        took: Duration,
        error: Option<&Error>,
    ) {
        let method = method.unwrap_or(UNKNOWN);
        observe(&self.calls, [("method", method)], took);
        if let Some(error) = error {
            let labels = [("method", method), ("code", code_name(error))];
            self.call_errors.get_or_create(&labels).inc();
        }
    }

    /// Counts a payload that is invalid, of a node whose engine does not tell of it.
    pub(crate) fn invalid_block(&self) {
        self.blocks.invalid();
    }

    /// Counts a request for a resource.
    pub(crate) fn requested(&self, endpoint: &'static str, took: Duration, status: StatusCode) {
        observe(&self.requests, [("endpoint", endpoint)], took);
        if status.is_client_error() || status.is_server_error() {
            let class = if status.is_server_error() { "5xx" } else { "4xx" };
            let labels = [("endpoint", endpoint), ("status", class)];
            self.request_errors.get_or_create(&labels).inc();
        }
    }
}

/// A short name of an error's code.
fn code_name(error: &Error) -> &'static str {
    const NAMES: [(Code, &str); 6] = [
        (Code::Parse, "parse"),
        (Code::InvalidRequest, "invalid_request"),
        (Code::MethodNotFound, "method_not_found"),
        (Code::InvalidParams, "invalid_params"),
        (Code::Internal, "internal"),
        (Code::PrunedHistory, "pruned"),
    ];
    NAMES.into_iter().find(|(code, _)| error.is(*code)).map_or("other", |(_, name)| name)
}

fn observe<const N: usize>(histograms: &Histograms<N>, labels: Labels<N>, took: Duration) {
    histograms.get_or_create(&labels).observe(took.as_secs_f64());
}

fn histograms<const N: usize>(new: fn() -> Histogram) -> Histograms<N> {
    Family::new_with_constructor(new)
}

/// Times of blocks and their parts: a quarter of a millisecond to 8 seconds, in steps of two.
fn of_blocks() -> Histogram {
    Histogram::new(exponential_buckets(0.000_25, 2.0, 16))
}

/// Times of calls: 50 microseconds to 13 seconds, in steps of four, since there are many methods.
fn of_calls() -> Histogram {
    Histogram::new(exponential_buckets(0.000_05, 4.0, 10))
}

#[cfg(test)]
mod tests;
