//! `POST /forkchoice`.

use alloy_rpc_types_engine::PayloadAttributes;
use engine::{BuildRequest, ForkchoiceOutcome};
use engine_api::ssz::{ForkchoiceUpdate, ForkchoiceUpdateResponse};
use engine_api::{EngineMethod, Fork};
use rpc::rest::{Request, Response};

use super::problem::Problem;
use super::{fork, rules, ssz, ssz_body};
use crate::answers::payload_status;
use crate::api::{self, Api};

/// Applies the fork choice and begins the build that is asked for. The columns in custody are read
/// and not used: all cells of a blob are sent with it.
pub(super) fn update(api: &Api, request: &Request) -> Result<Response, Problem> {
    let fork = fork(request)?;
    let update = ForkchoiceUpdate::decode(fork, &ssz_body(request)?)?;
    let state = update.forkchoice_state;
    let build = update.payload_attributes.map(|attributes| build(api, fork, attributes));
    let outcome = api::update_forkchoice(api, state, build.transpose())?;
    let ForkchoiceOutcome { verdict, payload_id, .. } = outcome;
    let payload_status = payload_status(verdict, state.head_block_hash);
    Ok(ssz(ForkchoiceUpdateResponse { payload_status, payload_id }.encode()))
}

/// Longest body that is looked at for a fork choice that is quick: three hashes, two offsets and
/// the columns in custody have 120 bytes.
const QUICK_BYTES: usize = 128;

/// Whether a fork choice builds nothing: it is quick then.
pub(super) fn is_quick(request: &Request) -> bool {
    let update = || ForkchoiceUpdate::decode(fork(request).ok()?, &ssz_body(request).ok()?).ok();
    let is_short = request.body.len() <= QUICK_BYTES;
    is_short && update().is_some_and(|update| update.payload_attributes.is_none())
}

fn build(api: &Api, fork: Fork, attributes: PayloadAttributes) -> Result<BuildRequest, rpc::Error> {
    api::check_fork(api.engine.chain(), attributes.timestamp, &rules(fork))?;
    // Every build has its witness; `with_witness` is for answers over JSON-RPC.
    let version = EngineMethod::ForkchoiceUpdated.version(fork);
    Ok(BuildRequest { attributes, version, with_witness: false })
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::{B256, FixedBytes};
    use alloy_rpc_types_engine::ForkchoiceState;
    use rpc::rest::{Connection, HeaderMap, HeaderValue, Method};

    #[test]
    fn a_fork_choice_is_quick_unless_it_builds() {
        for fork in Fork::ALL {
            let is_quick = |payload_attributes, custody_columns| {
                let forkchoice_state = ForkchoiceState::same_hash(B256::repeat_byte(1));
                let update =
                    ForkchoiceUpdate { forkchoice_state, payload_attributes, custody_columns };
                let mut headers = HeaderMap::new();
                headers
                    .insert("content-type", HeaderValue::from_static("application/octet-stream"));
                headers.insert("eth-execution-version", HeaderValue::from_static(fork.name()));
                super::is_quick(&Request {
                    method: Method::POST,
                    path: "/engine/v1/forkchoice".into(),
                    query: None,
                    headers,
                    body: update.encode(fork).into(),
                    takes_files: false,
                    connection: Connection::default(),
                })
            };
            let columns = (fork == Fork::Amsterdam).then(|| FixedBytes::repeat_byte(2));
            assert!(is_quick(None, None), "{fork:?}");
            assert!(is_quick(None, columns), "{fork:?}");
            let attributes = PayloadAttributes {
                withdrawals: Some(Vec::new()),
                parent_beacon_block_root: Some(B256::ZERO),
                slot_number: Some(1),
                ..PayloadAttributes::default()
            };
            assert!(!is_quick(Some(attributes), None), "{fork:?}");
        }
    }
}
