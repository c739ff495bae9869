//! Answers with a witness: how long they take to make, and to send.

use std::sync::Arc;
use std::time::{Duration, Instant};

use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use rpc::Pieces;

use super::{Histograms, Labels, histograms, observe, of_blocks};

/// How an answer gets to its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wire {
    /// JSON over TCP.
    Json,
    /// JSON over the Unix socket.
    JsonUnix,
    /// SSZ over TCP.
    Ssz,
    /// SSZ through the Unix socket.
    SszUnix,
    /// SSZ in a memory file, whose descriptor goes through the Unix socket.
    Descriptor,
}

/// The codes of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CodesSent {
    /// All of them.
    Whole,
    /// Those that the client does not hold.
    Unheld,
    /// None: the client maps the files in which they are.
    Mapped,
}

/// Metrics of answers to payloads with a witness.
#[derive(Debug)]
pub(crate) struct AnswerMetrics {
    assembly: Histograms<2>,
    transport: Histograms<2>,
    bytes: Histograms<2>,
}

/// Observes the time until it is dropped, which is when its answer is sent.
struct SentTimer {
    begun: Instant,
    histogram: Histogram,
}

impl AnswerMetrics {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let (assembly, transport) = (histograms(of_blocks), histograms(of_blocks));
        let bytes = histograms(of_bytes);
        for (name, help, histograms) in [
            ("witness_assembly_duration_seconds", ASSEMBLY, &assembly),
            ("witness_transport_duration_seconds", TRANSPORT, &transport),
            ("witness_answer_bytes", BYTES, &bytes),
        ] {
            registry.register(name, help, Family::clone(histograms));
        }
        Self { assembly, transport, bytes }
    }

    /// Counts an answer that is about to be sent. `assembly` is the time since the verdict.
    pub(crate) fn begin(
        &self,
        wire: Wire,
        codes: CodesSent,
        assembly: Duration,
        body: &mut Pieces,
    ) {
        let labels: Labels<2> = [("wire", wire.label()), ("codes", codes.label())];
        observe(&self.assembly, labels, assembly);
        self.bytes.get_or_create(&labels).observe(body.len_bytes() as f64);
        let histogram = self.transport.get_or_create_owned(&labels);
        body.keep_until_sent(Arc::new(SentTimer { begun: Instant::now(), histogram }));
    }
}

const ASSEMBLY: &str =
    "Time from the verdict on a payload until the answer with its witness can be sent";
const TRANSPORT: &str =
    "Time from then until the last byte was handed to the system, or written to a memory file";
const BYTES: &str = "Bytes of an answer with a witness";

impl Wire {
    const fn label(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::JsonUnix => "json_unix",
            Self::Ssz => "ssz",
            Self::SszUnix => "ssz_unix",
            Self::Descriptor => "descriptor",
        }
    }
}

impl CodesSent {
    const fn label(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Unheld => "unheld",
            Self::Mapped => "mapped",
        }
    }
}

impl Drop for SentTimer {
    fn drop(&mut self) {
        self.histogram.observe(self.begun.elapsed().as_secs_f64());
    }
}

/// Sizes of witnesses: 1 KiB to 1 GiB, in steps of two.
pub(super) fn of_bytes() -> Histogram {
    Histogram::new(exponential_buckets(1024.0, 2.0, 21))
}
