//! A verdict as a status, and the headers that go with it.

use std::time::Duration;

use alloy_primitives::B256;
use client::ssz::{PayloadStatus, Status};
use engine::{Verdict, WitnessBytes, WitnessSize};
use rpc::rest::{HeaderMap, HeaderValue};

use crate::api::Api;

/// Where the witness of a VALID block is.
const WITNESS: &str = "deponent-witness";

/// How many items and bytes it has, and what putting it together took.
const WITNESS_ITEMS: &str = "deponent-witness-items";

/// Where the milliseconds went in which the block was validated, as `Server-Timing` has it.
const TIMINGS: &str = "deponent-timings";

/// The verdict on the block `hash`.
pub(crate) fn payload_status(verdict: Verdict, hash: B256) -> PayloadStatus {
    let (status, latest_valid_hash, validation_error) = match verdict {
        Verdict::Valid => (Status::Valid, Some(hash), None),
        Verdict::Invalid { latest_valid_hash, reason } => {
            (Status::Invalid, latest_valid_hash, Some(reason))
        }
        Verdict::Syncing => (Status::Syncing, None, None),
    };
    PayloadStatus { status, latest_valid_hash, validation_error }
}

/// Adds the headers of a VALID answer on `hash`. They cost little: the witness is not put together
/// for them, so before it is, there is a bound on its size alone.
pub(super) fn add_headers(api: &Api, hash: B256, headers: &mut HeaderMap) {
    let mut insert = |name: &'static str, value: String| {
        let value = HeaderValue::try_from(value).expect("digits and ASCII");
        headers.insert(name, value);
    };
    let milliseconds = |time: Duration| format!("{:.3}", time.as_secs_f64() * 1e3);
    let timings = api.engine.last_timings().filter(|(of, _)| *of == hash).map(|(_, of)| of);
    let record = api.engine.block(hash).ok().flatten();
    if let Some(record) = record
        && let Some(size) = api.engine.witness_size(&record)
    {
        let WitnessSize { nodes_at_most, codes, headers, bytes } = size;
        let mut text = format!("nodes-at-most={nodes_at_most}, codes={codes}, headers={headers}");
        match bytes {
            Some(WitnessBytes::Exactly(bytes)) => text += &format!(", bytes={bytes}"),
            Some(WitnessBytes::AtMost(bytes)) => text += &format!(", bytes-at-most={bytes}"),
            None => {}
        }
        if let Some(timings) = timings.filter(|timings| !timings.witness.is_zero()) {
            text += &format!(", ms={}", milliseconds(timings.witness));
        }
        insert(WITNESS, format!("/engine/v1/witnesses/{hash}"));
        insert(WITNESS_ITEMS, text);
    }
    if let Some(timings) = timings {
        let parts = [
            ("recovery", timings.recovery),
            ("parent", timings.parent),
            ("execution", timings.execution),
            ("root", timings.root),
            ("catching-up", timings.catching_up),
            ("witness", timings.witness),
        ];
        let part = |(name, time)| format!("{name};dur={}", milliseconds(time));
        insert(TIMINGS, parts.map(part).join(", "));
    }
}
