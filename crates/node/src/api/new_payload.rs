//! `engine_newPayload`, alone and with the witness, and `engine_executeStatelessPayload`.

use std::time::{Duration, Instant};

use alloy_primitives::B256;
use engine::{Assembled, JudgedPayload, Payload, Timings, Verdict};
use engine_api::json::Data;
use engine_api::{PayloadStatus, Status};
use execution::{Roots, SealedBlock};
use rpc::{Error, Json, Params, Pieces, shortened};
use serde::Serialize;
use witness::Witness;

use super::traced::TracedCall;
use super::{Api, Stored, payload, refusal};
use crate::answers::payload_status;
use crate::metrics::CodesSent;

/// `engine_newPayload`.
pub(super) fn plain(api: &Api, params: Params<'_>, version: u8) -> Result<Json, Error> {
    let (hash, payload, copy) = read(api, params, version)?;
    let JudgedPayload { verdict, .. } = validate(api, payload)?;
    Json::of(&status(verdict, hash, copy))
}

/// `engine_newPayloadWithWitness`: each VALID answer has the witness, repeated ones too.
pub(super) fn witness(api: &Api, params: Params<'_>, version: u8) -> Result<Json, Error> {
    let (hash, payload, copy) = read(api, params, version)?;
    let (JudgedPayload { verdict, timings }, assembled) = validate_with_witness(api, payload)?;
    let begun = Instant::now();
    // Of the valid blocks genesis alone has none: nothing was run.
    let Some(Assembled { witness, .. }) = assembled else {
        return Json::of(&status(verdict, hash, copy));
    };
    let mut out = Pieces::default();
    out.push(&br#"{"status":"VALID","witness":"#[..]);
    push_witness(&mut out, &witness);
    out.push(format!(r#","latestValidHash":"{hash}","validationError":null}}"#));
    let assembly = assembly_time(timings) + begun.elapsed();
    api.metrics.answers.begin(api.json_wire(), CodesSent::Whole, assembly, &mut out);
    Ok(out.into())
}

/// Has the engine validate a payload, and counts it.
///
/// # Errors
/// When the engine cannot say.
pub(crate) fn validate(api: &Api, payload: Payload) -> Result<JudgedPayload, Error> {
    api.check_led()?;
    let begun = Instant::now();
    let traced = TracedCall::new_payload(api, &payload.execution);
    let judged = api.engine.judge_payload(payload);
    api.metrics.new_payload(begun.elapsed(), judged.as_ref());
    traced.validated(judged.as_ref());
    judged.map_err(refusal)
}

/// The same, with the witness of a valid block.
///
/// # Errors
/// When the engine cannot say.
pub(crate) fn validate_with_witness(
    api: &Api,
    payload: Payload,
) -> Result<(JudgedPayload, Option<Assembled>), Error> {
    api.check_led()?;
    let begun = Instant::now();
    let traced = TracedCall::new_payload(api, &payload.execution);
    let answer = api.engine.judge_payload_with_witness(payload);
    let judged = answer.as_ref().map(|(judged, _)| judged);
    api.metrics.new_payload(begun.elapsed(), judged);
    traced.validated(judged);
    answer.map_err(refusal)
}

/// How long the engine took to put the witness of a block together for its answer; nothing where
/// the block was known before.
pub(crate) fn assembly_time(timings: Option<Timings>) -> Duration {
    timings.map_or(Duration::ZERO, |timings| timings.witness)
}

/// The payload that is asked about, its block's hash, and a copy of it where a wrong hash is told
/// from other faults: by the first version alone.
fn read(
    api: &Api,
    mut params: Params<'_>,
    version: u8,
) -> Result<(B256, Payload, Option<Payload>), Error> {
    let call = payload::read(&mut params, version)?;
    params.end()?;
    let payload = payload::payload(call, version, api.engine.chain())?;
    let hash = payload.execution.block_hash();
    let copy = (version == 1).then(|| payload.clone());
    Ok((hash, payload, copy))
}

fn status(verdict: Verdict, hash: B256, copy: Option<Payload>) -> PayloadStatus {
    let mut status = payload_status(verdict, hash);
    if status.status == Status::Invalid && copy.is_some_and(is_misnamed) {
        status.status = Status::InvalidBlockHash;
    }
    status
}

/// Whether the payload's fields do not hash to its block hash.
fn is_misnamed(payload: Payload) -> bool {
    let Payload { execution, sidecar } = payload;
    let got = execution.block_hash();
    let block = execution.into_block_with_sidecar_raw(&sidecar);
    block.is_ok_and(|block| block.header.hash_slow() != got)
}

/// Appends the witness as a JSON string: its RLP in hex, which is made while it is sent.
pub(super) fn push_witness(out: &mut Pieces, witness: &Witness) {
    out.push(&b"\"0x"[..]);
    witness::rlp::parts(witness).into_iter().for_each(|part| out.push_hex(part));
    out.push(&b"\""[..]);
    out.read_from(&Stored);
}

/// `engine_executeStatelessPayload`, as geth has it: the block hash is not looked at, the roots
/// are returned for the caller to compare, and a bad witness makes the payload INVALID.
pub(super) fn stateless(api: &Api, mut params: Params<'_>, version: u8) -> Result<Json, Error> {
    let call = payload::read(&mut params, version)?;
    let witness: Data = params.next("witness")?;
    params.end()?;
    let chain = api.engine.chain();
    let payload = payload::payload(call, version, chain)?;
    let outcome = block(payload).and_then(|block| {
        let mut witness = witness::rlp::decode(&witness.0).map_err(|fault| fault.to_string())?;
        // geth's have the newest first.
        witness.sort_headers();
        execution::execute_statelessly(chain, &block, &witness).map_err(|fault| fault.to_string())
    });
    let (status, roots, validation_error) = match outcome {
        Ok(roots) => ("VALID", roots, None),
        Err(reason) => {
            let roots = Roots { state_root: B256::ZERO, receipts_root: B256::ZERO };
            ("INVALID", roots, Some(shortened(reason)))
        }
    };
    let Roots { state_root, receipts_root } = roots;
    Json::of(&StatelessStatus { status, state_root, receipts_root, validation_error })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StatelessStatus {
    status: &'static str,
    state_root: B256,
    receipts_root: B256,
    validation_error: Option<String>,
}

/// The block that a payload describes, whatever its block hash; the versioned hashes must be right.
fn block(payload: Payload) -> Result<SealedBlock, String> {
    let Payload { execution, sidecar } = payload;
    let block =
        execution::decode_payload(execution, &sidecar).map_err(|fault| fault.to_string())?;
    if let Some(hashes) = sidecar.versioned_hashes() {
        let differ = |_| "expectedBlobVersionedHashes differ from the transactions' own";
        execution::validate_versioned_hashes(&block, hashes).map_err(differ)?;
    }
    Ok(block)
}
