//! The attributes of a payload to build: what each version takes, and for which forks.

use std::ops::Range;

use alloy_eips::eip4895::Withdrawal;
use alloy_hardforks::EthereumHardfork::{self, Amsterdam, Bogota, Cancun, Frontier, Shanghai};
use alloy_rpc_types_engine::PayloadAttributes;
use execution::ChainSpec;
use rpc::{Code, Error, RawValue};
use serde::Deserialize;

use super::hex::{Fixed, Quantity};
use super::object::Object;
use super::payload::{WithdrawalFields, check_fork};

/// `PayloadAttributesV1` to `V4`: what only some versions have is optional.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Fields {
    timestamp: Quantity,
    prev_randao: Fixed<32>,
    suggested_fee_recipient: Fixed<20>,
    withdrawals: Option<Vec<Object<WithdrawalFields>>>,
    parent_beacon_block_root: Option<Fixed<32>>,
    slot_number: Option<Quantity>,
    target_gas_limit: Option<Quantity>,
}

/// Reads the attributes that `version` of `engine_forkchoiceUpdated` takes: first the structure
/// (`-38003`), then the fork (`-38005`).
pub(crate) fn read(
    json: &RawValue,
    version: u8,
    chain: &ChainSpec,
) -> Result<PayloadAttributes, Error> {
    let Object(fields): Object<Fields> =
        serde_json::from_str(json.get()).map_err(|fault| invalid(&fault))?;
    let timestamp = fields.timestamp.0;
    let fork = chain.fork_at(timestamp);
    // shanghai.md, `engine_forkchoiceUpdatedV2`: the structure goes by the fork.
    let structure = if version == 2 && fork < Shanghai { 1 } else { version };
    if structure == 1 && fork >= Shanghai {
        let reason = format!("timestamp {timestamp} is in {fork}, which needs withdrawals");
        return Err(invalid(&reason));
    }
    fields.check(structure)?;
    check_fork(chain, timestamp, &forks(version))?;
    Ok(fields.into_attributes())
}

/// Reads attributes of whatever version the fork at their timestamp has.
pub(crate) fn read_any(json: &RawValue, chain: &ChainSpec) -> Result<PayloadAttributes, Error> {
    let Object(Timestamp { timestamp }) =
        serde_json::from_str(json.get()).map_err(|fault| invalid(&fault))?;
    let fork = chain.fork_at(timestamp.0);
    let version = 1 + [Shanghai, Cancun, Amsterdam].iter().filter(|first| fork >= **first).count();
    read(json, version as u8, chain)
}

#[derive(Deserialize)]
struct Timestamp {
    timestamp: Quantity,
}

/// The forks that a version of `engine_forkchoiceUpdated` builds for, the end excluded.
const fn forks(version: u8) -> Range<EthereumHardfork> {
    match version {
        1 => Frontier..Shanghai,
        2 => Frontier..Cancun,
        3 => Cancun..Amsterdam,
        _ => Amsterdam..Bogota,
    }
}

impl Fields {
    fn check(&self, structure: u8) -> Result<(), Error> {
        let optional = [
            ("withdrawals", self.withdrawals.is_some(), 2),
            ("parentBeaconBlockRoot", self.parent_beacon_block_root.is_some(), 3),
            ("slotNumber", self.slot_number.is_some(), 4),
            ("targetGasLimit", self.target_gas_limit.is_some(), 4),
        ];
        for (name, present, since) in optional {
            match (present, structure >= since) {
                (false, true) => return Err(invalid(&format_args!("{name} is missing"))),
                (true, false) => {
                    let structure = format_args!("PayloadAttributesV{structure}");
                    return Err(invalid(&format_args!("{name} is not part of {structure}")));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn into_attributes(self) -> PayloadAttributes {
        PayloadAttributes {
            timestamp: self.timestamp.0,
            prev_randao: self.prev_randao.into(),
            suggested_fee_recipient: self.suggested_fee_recipient.into(),
            withdrawals: self
                .withdrawals
                .map(|list| list.into_iter().map(Withdrawal::from).collect()),
            parent_beacon_block_root: self.parent_beacon_block_root.map(Into::into),
            slot_number: self.slot_number.map(|slot| slot.0),
            target_gas_limit: self.target_gas_limit.map(|limit| limit.0),
        }
    }
}

fn invalid(reason: &dyn std::fmt::Display) -> Error {
    Error::new(Code::InvalidPayloadAttributes, format_args!("payloadAttributes: {reason}"))
}
