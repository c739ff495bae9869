//! `POST /forkchoice`.

use alloy_rpc_types_engine::PayloadAttributes;
use client::Fork;
use client::ssz::{ForkchoiceUpdate, ForkchoiceUpdateResponse};
use engine::{BuildRequest, ForkchoiceOutcome};
use rpc::rest::{Request, Response};

use super::problem::Problem;
use super::verdict::payload_status;
use super::{fork, rules, ssz, ssz_body};
use crate::api::{self, Api};

/// Applies the fork choice and begins the build that is asked for. The columns in custody are read
/// and not used: there is no pool whose blobs they could select.
pub(super) fn update(api: &Api, request: &Request) -> Result<Response, Problem> {
    let fork = fork(request)?;
    let update = ForkchoiceUpdate::decode(fork, &ssz_body(request)?)?;
    let state = update.forkchoice_state;
    let build = update.payload_attributes.map(|attributes| build(api, fork, attributes));
    let outcome = api::update_forkchoice(api, state, build.transpose())?;
    let ForkchoiceOutcome { verdict, payload_id } = outcome;
    let payload_status = payload_status(verdict, state.head_block_hash);
    Ok(ssz(ForkchoiceUpdateResponse { payload_status, payload_id }.encode()))
}

fn build(api: &Api, fork: Fork, attributes: PayloadAttributes) -> Result<BuildRequest, rpc::Error> {
    api::check_fork(api.engine.chain(), attributes.timestamp, &rules(fork))?;
    // Every build has its witness; the wish for it is JSON-RPC's.
    Ok(BuildRequest { attributes, version: fork.forkchoice_version(), with_witness: false })
}
