//! `deponent_lastTimings`: where the time of the last validated block went, and how
//! long the last fork choice took.

use alloy_primitives::B256;
use rpc::{Error, Json, Params};
use serde::Serialize;

use super::Api;

/// Microseconds, except the hash.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Timings {
    block_hash: B256,
    recovery: u64,
    parent: u64,
    execution: u64,
    root: u64,
    catching_up: u64,
    witness: u64,
    /// Of the last fork choice, whatever block it was for.
    forkchoice: u64,
}

/// `null` before a block has been validated.
pub(super) fn last(api: &Api, params: Params<'_>) -> Result<Json, Error> {
    params.end()?;
    let timings = api.engine.last_timings().map(|(block_hash, timings)| Timings {
        block_hash,
        recovery: timings.recovery.as_micros() as u64,
        parent: timings.parent.as_micros() as u64,
        execution: timings.execution.as_micros() as u64,
        root: timings.root.as_micros() as u64,
        catching_up: timings.catching_up.as_micros() as u64,
        witness: timings.witness.as_micros() as u64,
        forkchoice: api.engine.last_forkchoice().as_micros() as u64,
    });
    Json::of(&timings)
}
