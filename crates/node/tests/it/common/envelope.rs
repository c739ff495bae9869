//! The parameters of `engine_newPayload` as what the REST API takes.

use alloy_primitives::{B256, Bytes};
use alloy_rpc_types_engine::{
    ExecutionPayload, ExecutionPayloadV1, ExecutionPayloadV2, ExecutionPayloadV3,
    ExecutionPayloadV4,
};
use client::ssz::ExecutionPayloadEnvelope;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The envelope that says what these parameters of `version` say, and the versioned hashes, which
/// it has no place for. `None` where the parameters lack something.
pub(crate) fn envelope(
    version: u8,
    params: &Value,
) -> Option<(ExecutionPayloadEnvelope, Vec<B256>)> {
    fn of<T: DeserializeOwned>(value: &Value) -> Option<T> {
        serde_json::from_value(value.clone()).ok()
    }
    let payload = &params[0];
    let payload = match version {
        1 => ExecutionPayload::V1(of::<ExecutionPayloadV1>(payload)?),
        2 if payload["withdrawals"].is_null() => {
            ExecutionPayload::V1(of::<ExecutionPayloadV1>(payload)?)
        }
        2 => ExecutionPayload::V2(of::<ExecutionPayloadV2>(payload)?),
        3 | 4 => ExecutionPayload::V3(of::<ExecutionPayloadV3>(payload)?),
        _ => ExecutionPayload::V4(of::<ExecutionPayloadV4>(payload)?),
    };
    let (hashes, root) = match version >= 3 {
        true => (of(&params[1])?, Some(of::<B256>(&params[2])?)),
        false => (Vec::new(), None),
    };
    let requests = match version >= 4 {
        true => Some(of::<Vec<Bytes>>(&params[3])?),
        false => None,
    };
    let envelope = ExecutionPayloadEnvelope {
        payload,
        parent_beacon_block_root: root,
        execution_requests: requests,
    };
    Some((envelope, hashes))
}
