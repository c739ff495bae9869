//! `debug_setHead` and `debug_resetHead`: moving the head without a consensus client.

use alloy_primitives::B256;
use engine::Verdict;
use engine_api::json::FixedData;
use rpc::{Code, Error, Json, Params};

use super::lenient::HexOrDecimal;
use super::{Api, refusal};

/// `debug_setHead`: back to the canonical block with this number, as geth; `null`.
pub(super) fn set(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let HexOrDecimal(number) = params.next("block number")?;
    params.end()?;
    let hash = api.engine.canonical_hash(number).map_err(refusal)?;
    let hash = hash.ok_or_else(|| {
        let detail = format_args!("there is no canonical block {number}: the head is before it");
        Error::new(Code::Server, detail)
    })?;
    reset_to(api, hash)?;
    Json::of(&())
}

/// `debug_resetHead`: to any valid block, by its hash, as Nethermind; `true`.
pub(super) fn reset(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let hash: FixedData<32> = params.next("block hash")?;
    params.end()?;
    reset_to(api, hash.into())?;
    Json::of(&true)
}

fn reset_to(api: &Api, hash: B256) -> Result<(), Error> {
    let outcome = api.engine.reset_head(hash).map_err(refusal)?;
    match outcome.verdict {
        Verdict::Valid => {
            tracing::warn!(%hash, "the head was set by hand");
            Ok(())
        }
        _ => Err(Error::new(Code::Server, format_args!("there is no valid block {hash}"))),
    }
}
