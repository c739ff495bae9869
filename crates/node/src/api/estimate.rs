//! `eth_estimateGas`: the gas limit that a call needs.

use alloy_primitives::U64;
use execution::Estimate;
use rpc::{Error, Json, Params};

use super::call::{Asked, asked, reverted};
use super::{Api, refusal};
use crate::limits::CALL_GAS;

/// `eth_estimateGas`.
pub(super) fn gas(api: &Api, params: Params<'_>) -> Result<Json, Error> {
    let Asked { block, call, overrides } = asked(api, params, 0)?;
    match api.engine.estimate_gas(block, &call, &overrides, CALL_GAS).map_err(refusal)? {
        Estimate::Gas(gas) => Json::of(&U64::from(gas)),
        Estimate::Reverted(output) => Err(reverted(&output)),
        Estimate::Failed(reason) => Err(Error::failed_call(reason)),
    }
}
