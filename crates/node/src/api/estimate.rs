//! The gas and the access list that a call needs: `eth_estimateGas`, `eth_createAccessList`.

use alloy_eips::eip2930::AccessList;
use alloy_primitives::U64;
use engine_api::json::{Entries, Object};
use execution::{CallOutcome, CreatedAccessList, Estimate};
use rpc::{Error, Json, Params};
use serde::Serialize;

use super::call::{Asked, Overridden, Request, asked, overrides, reverted};
use super::{Api, state};
use crate::CallBounds;

/// `eth_estimateGas`.
pub(super) fn gas(api: &Api, params: Params<'_>) -> Result<Json, Error> {
    let Asked { at, call, overrides } = asked(api, params, 0)?;
    let CallBounds { gas, .. } = api.bounds;
    let deadline = api.bounds.deadline();
    let estimate = api.engine.estimate_gas(at, &call, &overrides, gas, &deadline);
    match estimate.map_err(|error| api.call_refusal(error))? {
        Estimate::Gas(gas) => Json::of(&U64::from(gas)),
        Estimate::Reverted(output) => Err(reverted(&output)),
        Estimate::Failed(reason) => Err(Error::failed_call(reason)),
    }
}

/// `eth_createAccessList`. How the call ends is a member of the answer, not an error.
pub(super) fn access_list(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let Object(mut request): Object<Request> = params.next("call")?;
    let at = state::block(api, &mut params)?;
    let overridden: Option<Overridden> = params.optional("state overrides")?;
    params.end()?;
    let overrides = overrides(overridden.map_or_else(Vec::new, |Entries(accounts)| accounts))?;
    if request.names_fees() {
        request.fill_fees(api, &api.header_at(&at)?)?;
    }
    let call = request.call(api.engine.chain().chain_id())?;
    let CallBounds { gas, .. } = api.bounds;
    let deadline = api.bounds.deadline();
    let created = api.engine.create_access_list(at, &call, gas, overrides, &deadline);
    match created.map_err(|error| api.call_refusal(error))? {
        CreatedAccessList::Failed(reason) => Err(Error::failed_call(reason)),
        CreatedAccessList::Stable { list, gas_used, outcome } => Json::of(&ShownAccessList {
            access_list: list,
            error: match outcome {
                CallOutcome::Returned(_) => None,
                CallOutcome::Reverted(_) => Some("execution reverted".into()),
                CallOutcome::Halted(reason) | CallOutcome::Refused(reason) => Some(reason),
            },
            gas_used: U64::from(gas_used),
        }),
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ShownAccessList {
    access_list: AccessList,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    gas_used: U64,
}
