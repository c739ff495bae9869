//! `debug_executionWitness` and its names by hash (execution-apis pull request 847).

use alloy_primitives::B256;
use engine::BlockRecord;
use engine_api::json::FixedData;
use rpc::{Code, Error, Json, Params, Pieces};
use witness::{Items, Witness};

use super::blocks::{BlockId, NumberOrTag};
use super::{Api, Stored, refusal};

/// `debug_executionWitness`.
pub(super) fn execution_witness(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let id: BlockId = params.next("block")?;
    mode(params)?;
    if id == BlockId::Number(NumberOrTag::Pending) {
        return Err(refuse("a pending block has no witness"));
    }
    let record = api.block_by_id(&id)?.ok_or_else(|| refuse(&format!("there is no {id}")))?;
    answer(api, &record)
}

/// `debug_executionWitnessByBlockHash` and `debug_executionWitnessByHash`.
pub(super) fn execution_witness_by_hash(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let hash: FixedData<32> = params.next("block hash")?;
    mode(params)?;
    let hash = B256::from(hash);
    let record = api.block(hash)?;
    let record = record.ok_or_else(|| refuse(&format!("there is no block {hash}")))?;
    answer(api, &record)
}

/// The last parameter, reth's: we have the canonical content only, whichever is asked for.
fn mode(mut params: Params<'_>) -> Result<(), Error> {
    let mode: Option<String> = params.optional("mode")?;
    params.end()?;
    match mode.as_deref() {
        None | Some("canonical" | "legacy") => Ok(()),
        Some(_) => Err(Error::invalid_params("the mode is \"canonical\" or \"legacy\"")),
    }
}

fn answer(api: &Api, record: &BlockRecord) -> Result<Json, Error> {
    let hash = record.block.hash();
    let witness = api.engine.witness(hash).map_err(refusal)?;
    let witness = witness
        .ok_or_else(|| refuse("genesis was not executed on a parent, so it has no witness"))?;
    Ok(json(&witness).into())
}

/// The object that `witness::json` writes, its digits made while they are sent.
fn json(witness: &Witness) -> Pieces {
    let lists = witness.lists();
    let mut out = Pieces::with_capacity(2 * lists.map(Items::len).iter().sum::<usize>() + 7);
    let names = ["{\"state\":[", "],\"codes\":[", "],\"headers\":["];
    for (name, items) in names.into_iter().zip(lists) {
        out.push(name);
        let mut before = &b"\"0x"[..];
        for item in items.iter_shared() {
            out.push(before);
            out.push_hex(item);
            before = b"\",\"0x";
        }
        if !items.is_empty() {
            out.push(&b"\""[..]);
        }
    }
    out.push(&b"]}"[..]);
    out.read_from(&Stored);
    out
}

fn refuse(reason: &str) -> Error {
    Error::new(Code::Server, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pieces_are_the_object_that_is_written_at_once() {
        for (seed, counts) in [[0, 0, 0], [1, 0, 1], [2, 3, 1], [40, 7, 256]].iter().enumerate() {
            let mut byte = seed as u8;
            let mut items = |count: usize| -> Vec<_> {
                let item = |length| {
                    let next = || {
                        byte = byte.wrapping_mul(31).wrapping_add(7);
                        byte
                    };
                    std::iter::repeat_with(next).take(length).collect()
                };
                (1..=count).map(item).collect()
            };
            let [state, codes, headers] = counts.map(&mut items);
            let witness = Witness { state: state.into(), codes, headers };
            let mut written = Vec::new();
            witness::json::write(&witness, &mut written);
            assert_eq!(json(&witness).to_vec(), written);
        }
    }
}
