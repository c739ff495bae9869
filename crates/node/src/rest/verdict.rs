//! A verdict as a status, and the headers that go with it.

use std::time::Duration;

use alloy_primitives::B256;
use engine::{WitnessBytes, WitnessSize};
use engine_api::headers::{TIMINGS, WITNESS, WITNESS_ITEMS};
use rpc::rest::{HeaderMap, HeaderValue};

use crate::api::Api;

/// Adds the headers of a VALID answer on `hash`. They cost little: the witness is not put together
/// for them, so before it is, there is a bound on its size alone.
pub(super) fn add_headers(api: &Api, hash: B256, headers: &mut HeaderMap) {
    let mut insert = |name: &'static str, value: String| {
        let value = HeaderValue::try_from(value).expect("digits and ASCII");
        headers.insert(name, value);
    };
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
        let parts = parts.map(|(name, time)| format!("{name};dur={}", milliseconds(time)));
        insert(TIMINGS, parts.join(", "));
    }
}

/// A time in milliseconds, with three decimals.
fn milliseconds(time: Duration) -> String {
    let micros = time.as_micros();
    format!("{}.{:03}", micros / 1000, micros % 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_have_three_decimals() {
        for (micros, expected) in [(0, "0.000"), (7, "0.007"), (90_050, "90.050")] {
            assert_eq!(milliseconds(Duration::from_micros(micros)), expected);
        }
    }
}
