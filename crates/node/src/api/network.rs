//! Methods about peers and a pool, of which there are none.

use alloy_primitives::U64;
use rpc::{Code, Error, Json, Params};
use serde_json::json;

use super::{Api, identity};
use crate::node_record::NodeRecord;

/// `net_listening`: for peers, which the node never does.
pub(super) fn listening(_: &Api, params: Params<'_>) -> Result<Json, Error> {
    params.end()?;
    Json::of(&false)
}

/// `net_peerCount`.
pub(super) fn peer_count(_: &Api, params: Params<'_>) -> Result<Json, Error> {
    params.end()?;
    Json::of(&U64::ZERO)
}

/// `admin_peers`.
pub(super) fn peers(_: &Api, params: Params<'_>) -> Result<Json, Error> {
    params.end()?;
    Json::of(&[(); 0])
}

/// `admin_nodeInfo`: as geth, with ports of 0.
pub(super) fn node_info(api: &Api, params: Params<'_>) -> Result<Json, Error> {
    params.end()?;
    let record = api.record.as_deref();
    let record = record.ok_or_else(|| Error::new(Code::Internal, "the node has no key"))?;
    let NodeRecord { id, enode, enr } = record;
    Json::of(&json!({
        "id": alloy_primitives::hex::encode(id),
        "name": identity::client_name(),
        "enode": enode,
        "enr": enr,
        "ip": "127.0.0.1",
        "ports": {"discovery": 0, "listener": 0},
        "listenAddr": "",
        "protocols": {},
    }))
}
