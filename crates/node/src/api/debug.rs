//! `debug_executionWitness` and its names by hash (execution-apis pull request 847).

use alloy_primitives::B256;
use engine::BlockRecord;
use rpc::{Code, Error, Json, Params};

use super::blocks::{BlockId, NumberOrTag};
use super::hex::Fixed;
use super::{Api, refusal};

/// `debug_executionWitness`.
pub(super) fn execution_witness(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let id: BlockId = params.next("block")?;
    mode(params)?;
    if id == BlockId::Number(NumberOrTag::Pending) {
        return Err(refuse("there is no pending block, so it has no witness"));
    }
    let record = api.block_by_id(&id)?.ok_or_else(|| refuse(&format!("there is no {id}")))?;
    answer(api, &record)
}

/// `debug_executionWitnessByBlockHash` and `debug_executionWitnessByHash`.
pub(super) fn execution_witness_by_hash(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let hash: Fixed<32> = params.next("block hash")?;
    mode(params)?;
    let hash = B256::from(hash);
    let record = api.block(hash)?;
    let record = record.ok_or_else(|| refuse(&format!("there is no block {hash}")))?;
    answer(api, &record)
}

/// The last parameter, reth's: we have the canonical content only, whichever is asked for.
fn mode(mut params: Params<'_>) -> Result<(), Error> {
    let mode: Option<&str> = params.optional("mode")?;
    params.end()?;
    match mode {
        None | Some("canonical" | "legacy") => Ok(()),
        Some(_) => Err(Error::invalid_params("the mode is \"canonical\" or \"legacy\"")),
    }
}

fn answer(api: &Api, record: &BlockRecord) -> Result<Json, Error> {
    let hash = record.block.hash();
    let witness = api.engine.witness(hash).map_err(refusal)?;
    let witness = witness
        .ok_or_else(|| refuse("genesis was not executed on a parent, so it has no witness"))?;
    let mut out = Vec::new();
    witness::json::write(&witness, &mut out);
    Ok(out.into())
}

fn refuse(reason: &str) -> Error {
    Error::new(Code::Server, reason)
}
