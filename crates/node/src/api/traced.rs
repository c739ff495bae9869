//! Calls of the Engine API as traces.

use std::time::{Duration, Instant, SystemTime};

use alloy_primitives::B256;
use alloy_rpc_types_engine::{ExecutionPayload, PayloadId};
use engine::{Error as EngineError, ForkchoiceOutcome, JudgedPayload, Timings, Verdict};
use serde_json::{Value, json};

use super::Api;
use crate::traces::{Trace, Tracer};

/// A call that is under way; `None` where nothing is traced.
pub(super) struct TracedCall<'a>(Option<BegunTrace<'a>>);

struct BegunTrace<'a> {
    tracer: &'a Tracer,
    name: &'static str,
    begun: (SystemTime, Instant),
    attributes: Vec<(&'static str, Value)>,
}

impl<'a> TracedCall<'a> {
    pub(super) fn new_payload(api: &'a Api, payload: &ExecutionPayload) -> Self {
        Self::begin(api, "newPayload", || {
            let payload = payload.as_v1();
            vec![
                ("block.hash", json!(payload.block_hash)),
                ("block.number", json!(payload.block_number)),
                ("block.gas_used", json!(payload.gas_used)),
                ("block.transactions", json!(payload.transactions.len())),
            ]
        })
    }

    pub(super) fn forkchoice(api: &'a Api, head: B256) -> Self {
        Self::begin(api, "forkchoiceUpdated", || vec![("block.hash", json!(head))])
    }

    pub(super) fn get_payload(api: &'a Api, id: PayloadId) -> Self {
        Self::begin(api, "getPayload", || vec![("payload.id", json!(id.to_string()))])
    }

    fn begin(
        api: &'a Api,
        name: &'static str,
        attributes: impl FnOnce() -> Vec<(&'static str, Value)>,
    ) -> Self {
        Self(api.tracer.as_deref().map(|tracer| BegunTrace {
            tracer,
            name,
            begun: (SystemTime::now(), Instant::now()),
            attributes: attributes(),
        }))
    }

    /// Ends the trace of a payload, with the stages of its block if that has run for it.
    pub(super) fn validated(mut self, judged: Result<&JudgedPayload, &EngineError>) {
        if let (Some(begun), Ok(judged)) = (&mut self.0, judged) {
            begun.attributes.push(("block.known", json!(judged.is_known())));
        }
        let stages = || {
            let timings = judged.ok().and_then(|judged| judged.timings.as_ref());
            timings.map(stages).unwrap_or_default()
        };
        let status = judged.map(|judged| status(&judged.verdict));
        self.end(status.map_err(ToString::to_string), stages);
    }

    /// Ends the trace of a fork choice.
    pub(super) fn chosen(self, outcome: &Result<ForkchoiceOutcome, EngineError>) {
        let status = outcome.as_ref().map(|outcome| status(&outcome.verdict));
        self.end(status.map_err(ToString::to_string), Vec::new);
    }

    /// Ends the trace of a payload that was asked for.
    pub(super) fn built(self, built: Result<(), String>) {
        self.end(built.map(|()| "VALID"), Vec::new);
    }

    fn end(
        self,
        status: Result<&'static str, String>,
        stages: impl FnOnce() -> Vec<(&'static str, Duration)>,
    ) {
        let Some(BegunTrace { tracer, name, begun: (begun, start), mut attributes }) = self.0
        else {
            return;
        };
        let took = start.elapsed();
        let error = match status {
            Ok(status) => {
                attributes.push(("status", json!(status)));
                None
            }
            Err(reason) => Some(reason),
        };
        tracer.end(Trace { name, begun, took, stages: stages(), attributes, error });
    }
}

const fn status(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Valid => "VALID",
        Verdict::Invalid { .. } => "INVALID",
        Verdict::Syncing(_) => "SYNCING",
    }
}

/// The stages of a block in the order in which they end.
fn stages(timings: &Timings) -> Vec<(&'static str, Duration)> {
    let Timings { recovery, parent, execution, root, journal, witness, .. } = *timings;
    vec![
        ("parent", parent),
        ("recovery", recovery),
        ("execution", execution),
        ("root", root),
        ("journal", journal),
        ("witness", witness),
    ]
}
