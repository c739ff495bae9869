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
        let mut text = Text::default();
        text.push("nodes-at-most=").number(nodes_at_most);
        text.push(", codes=").number(codes);
        text.push(", headers=").number(headers);
        match bytes {
            Some(WitnessBytes::Exactly(bytes)) => text.push(", bytes=").number(bytes),
            Some(WitnessBytes::AtMost(bytes)) => text.push(", bytes-at-most=").number(bytes),
            None => {}
        }
        if let Some(timings) = timings.filter(|timings| !timings.witness.is_zero()) {
            text.push(", ms=").milliseconds(timings.witness);
        }
        insert(WITNESS, format!("/engine/v1/witnesses/{hash}"));
        insert(WITNESS_ITEMS, text.0);
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
        let mut text = Text::default();
        for (name, time) in parts {
            let separator = if text.0.is_empty() { "" } else { ", " };
            text.push(separator).push(name).push(";dur=").milliseconds(time);
        }
        insert(TIMINGS, text.0);
    }
}

/// What a header says, put together at the cost of few instructions: every answer has some, and
/// seldom are those of formatting in the processor's caches then.
#[derive(Default)]
struct Text(String);

impl Text {
    fn push(&mut self, text: &str) -> &mut Self {
        self.0.push_str(text);
        self
    }

    fn number(&mut self, number: usize) {
        self.0.push_str(itoa::Buffer::new().format(number));
    }

    /// With three decimals.
    fn milliseconds(&mut self, time: Duration) {
        let micros = time.as_micros() as usize;
        self.number(micros / 1000);
        let decimals = 1000 + micros % 1000;
        self.push(".").push(&itoa::Buffer::new().format(decimals)[1..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_have_three_decimals() {
        for (micros, expected) in [(0, "0.000"), (7, "0.007"), (90_050, "90.050")] {
            let mut text = Text::default();
            text.milliseconds(Duration::from_micros(micros));
            assert_eq!(text.0, expected);
        }
    }
}
