//! A verdict as a status, and the headers that go with it.

use std::time::Duration;

use alloy_primitives::B256;
use client::ssz::{PayloadStatus, Status};
use engine::{Verdict, WitnessItems};
use rpc::rest::{HeaderMap, HeaderValue};

use crate::api::Api;

/// Where the witness of a VALID block is.
const WITNESS: &str = "deponent-witness";

/// How many items it has.
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

/// Adds the headers of a VALID answer on `hash`. They cost nothing: the witness is not put together
/// for them, so its size in bytes is not there; `HEAD` on it tells.
pub(super) fn add_headers(api: &Api, hash: B256, headers: &mut HeaderMap) {
    let mut insert = |name: &'static str, value: String| {
        let value = HeaderValue::try_from(value).expect("digits and ASCII");
        headers.insert(name, value);
    };
    let record = api.engine.block(hash).ok().flatten();
    if let Some(items) = record.and_then(|record| record.witness_items()) {
        let WitnessItems { nodes_at_most, codes, headers } = items;
        insert(WITNESS, format!("/engine/v1/witnesses/{hash}"));
        insert(
            WITNESS_ITEMS,
            format!("nodes-at-most={nodes_at_most}, codes={codes}, headers={headers}"),
        );
    }
    if let Some((_, timings)) = api.engine.last_timings().filter(|(of, _)| *of == hash) {
        let parts = [
            ("recovery", timings.recovery),
            ("parent", timings.parent),
            ("execution", timings.execution),
            ("root", timings.root),
            ("catching-up", timings.catching_up),
            ("witness", timings.witness),
        ];
        let milliseconds =
            |(name, time): (&str, Duration)| format!("{name};dur={:.3}", time.as_secs_f64() * 1e3);
        insert(TIMINGS, parts.map(milliseconds).join(", "));
    }
}
