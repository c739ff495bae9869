//! `blockchain_test_engine`: payloads as the Engine API's parameters, through the node's own
//! answers, with its method versions and error codes; and the same over SSZ.

use crate::blocks::{Judge, check_reason};
use crate::fixture::{FixturePayload, Test};
use crate::report::Witnesses;
use crate::wires::{self, Rest};
use alloy_primitives::B256;
use deponent_node::Api;
use engine::Engine;
use engine_api::{ForkchoiceUpdateResponse, Status};
use execution::ChainSpec;
use rpc::{Error, Handler, Json, RawValue};
use serde_json::json;
use std::sync::Arc;

pub(crate) fn run(
    test: &Test,
    chain: ChainSpec,
    witnesses: &mut Witnesses,
    counts: &mut wires::Counts,
) -> Result<(), String> {
    let genesis = test.genesis()?;
    let mut rest = Rest::new(chain.clone(), test.genesis()?)?;
    let mut judge = Judge::new(&genesis);
    let engine = Engine::new(chain, genesis).map_err(|error| error.to_string())?;
    let engine = Arc::new(engine);
    let api = Api::engine_port(engine.clone(), false);
    for (index, payload) in test.engine_new_payloads.iter().enumerate() {
        run_payload(&api, &engine, payload, &mut judge, witnesses)
            .and_then(|answer| rest_payload(&mut rest, payload, answer, counts))
            .map_err(|error| format!("payload {index}: {error}"))?;
    }
    if let Some(head) = rest.head().filter(|head| *head != engine.heads().head) {
        return Err(format!("the head over SSZ is {head}"));
    }
    match engine.heads().head {
        head if head == test.lastblockhash => Ok(()),
        head => Err(format!("the head is {head}, not {}", test.lastblockhash)),
    }
}

fn run_payload(
    api: &Api,
    engine: &Engine,
    payload: &FixturePayload,
    judge: &mut Judge,
    witnesses: &mut Witnesses,
) -> Result<Result<Json, Error>, String> {
    let method = format!("engine_newPayloadWithWitnessV{}", payload.new_payload_version);
    let answer = api.call(&method, Some(&payload.params));
    if let Some(expected) = &payload.error_code {
        return match answer {
            Err(error) if error.code.to_string() == *expected => Ok(Err(error)),
            Err(error) => Err(format!("error {error:?}, expected {expected}")),
            Ok(_) => Err(format!("an answer, expected error {expected}")),
        };
    }
    let answer = answer.map_err(|error| format!("{method}: {error:?}"))?;
    let read = wires::read(&answer)?;
    let status = &read.content;
    if let Some(expected) = &payload.validation_error {
        check_reason(expected, status.validation_error.as_deref().unwrap_or_default())?;
        return match status.status {
            Status::Invalid if read.witness.is_none() => match status.latest_valid_hash {
                None => Ok(Ok(answer)),
                Some(hash) if engine.block(hash).is_ok_and(|block| block.is_some()) => {
                    Ok(Ok(answer))
                }
                Some(hash) => Err(format!("{hash} is given as valid, but is not")),
            },
            _ => Err(format!("{status:?}, expected INVALID, {expected}")),
        };
    }
    let (Some(hash), Some(witness), Status::Valid) =
        (status.latest_valid_hash, &read.witness, status.status)
    else {
        return Err(format!("{status:?}"));
    };
    set_head(api, payload, hash)?;
    let record = engine.block(hash).map_err(|error| error.to_string())?;
    let record = record.ok_or("a valid block is unknown")?;
    judge.block(engine, &record.block, witnesses)?;
    let kept = engine.witness(hash).map_err(|error| error.to_string())?;
    if Some(witness) != kept.as_deref() {
        return Err("the answer's witness is not the engine's".into());
    }
    // A repeated call gets the same answer, the witness included.
    let again = api.call(&method, Some(&payload.params)).map_err(|error| format!("{error:?}"))?;
    match again.to_vec() == answer.to_vec() {
        true => Ok(Ok(answer)),
        false => Err("the repeated call's answer differs".into()),
    }
}

/// The same payload over SSZ: the answer must be the same.
fn rest_payload(
    rest: &mut Rest,
    payload: &FixturePayload,
    answer: Result<Json, Error>,
    counts: &mut wires::Counts,
) -> Result<(), String> {
    let version = payload.new_payload_version.parse::<u8>().map_err(|error| error.to_string())?;
    let expected = match answer {
        Ok(answer) => Ok(wires::read(&answer)?),
        Err(error) => Err(error),
    };
    rest.payload(version, payload.params.get(), &expected, counts)
}

fn set_head(api: &Api, payload: &FixturePayload, hash: B256) -> Result<(), String> {
    let method = format!("engine_forkchoiceUpdatedV{}", payload.forkchoice_updated_version);
    let zero = B256::ZERO;
    let state = json!({"headBlockHash": hash, "safeBlockHash": zero, "finalizedBlockHash": zero});
    let params = serde_json::value::to_raw_value(&json!([state, null]));
    let params: Box<RawValue> = params.map_err(|error| error.to_string())?;
    let answer =
        api.call(&method, Some(&params)).map_err(|error| format!("{method}: {error:?}"))?;
    let updated: ForkchoiceUpdateResponse =
        serde_json::from_slice(&answer.to_vec()).map_err(|error| format!("answer: {error}"))?;
    match updated.payload_status.status {
        Status::Valid => Ok(()),
        _ => Err(format!("{method}: {updated:?}")),
    }
}
