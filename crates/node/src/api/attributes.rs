//! The attributes of a payload to build: what each version takes, and for which forks.

use alloy_hardforks::EthereumHardfork::{Amsterdam, Cancun, Shanghai};
use alloy_rpc_types_engine::PayloadAttributes;
use engine_api::EngineMethod;
use engine_api::json::{AttributesFields, Object, Quantity};
use execution::ChainSpec;
use rpc::{Code, Error, RawValue, read_json};
use serde::Deserialize;

use super::payload::check_fork;
use crate::forks::rules_of;

/// Reads the attributes that `version` of `engine_forkchoiceUpdated` takes: first the structure
/// (`-38003`), then the fork (`-38005`).
pub(crate) fn read(
    json: &RawValue,
    version: u8,
    chain: &ChainSpec,
) -> Result<PayloadAttributes, Error> {
    let Object(fields): Object<AttributesFields> =
        read_json(json.get()).map_err(|fault| invalid(&fault))?;
    let timestamp = fields.timestamp();
    let fork = chain.fork_at(timestamp);
    // shanghai.md, `engine_forkchoiceUpdatedV2`: the structure goes by the fork.
    let structure = if version == 2 && fork < Shanghai { 1 } else { version };
    if structure == 1 && fork >= Shanghai {
        let reason = format!("timestamp {timestamp} is in {fork}, which needs withdrawals");
        return Err(invalid(&reason));
    }
    fields.check(structure).map_err(|fault| invalid(&fault))?;
    check_fork(chain, timestamp, &rules_of(EngineMethod::ForkchoiceUpdated.forks(version)))?;
    Ok(fields.into_attributes())
}

/// Reads attributes of whatever version the fork at their timestamp has.
pub(crate) fn read_any(json: &RawValue, chain: &ChainSpec) -> Result<PayloadAttributes, Error> {
    let Object(Timestamp { timestamp }) = read_json(json.get()).map_err(|fault| invalid(&fault))?;
    let fork = chain.fork_at(timestamp.0);
    let version = 1 + [Shanghai, Cancun, Amsterdam].iter().filter(|first| fork >= **first).count();
    read(json, version as u8, chain)
}

#[derive(Deserialize)]
struct Timestamp {
    timestamp: Quantity,
}

fn invalid(reason: &dyn std::fmt::Display) -> Error {
    Error::new(Code::InvalidPayloadAttributes, format_args!("payloadAttributes: {reason}"))
}
