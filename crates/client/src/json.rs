//! JSON-RPC: parameters and answers.

use std::borrow::Cow;

use alloy_consensus::Header;
use alloy_primitives::{Bytes, hex};
use alloy_rpc_types_engine::{ForkchoiceUpdated, PayloadStatus};
use engine_api::ForkchoiceUpdateResponse;
use rpc::{RawValue, Spare, read_json, response};
use serde::{Deserialize, Serialize};
use serde_json::value::to_raw_value;
use witness::{DecodeError, NodeList, Witness, limits};

use crate::answers::{status_of, updated};
use crate::{Error, WitnessAnswer};

/// Parameters as they are sent.
pub(crate) fn params(params: &impl Serialize) -> Result<Box<RawValue>, Error> {
    to_raw_value(params).map_err(|error| Error::Encode(error.to_string()))
}

/// Reads the result of `engine_newPayload` or `engine_newPayloadWithWitness`, for callers with a
/// connection of their own; the bytes of the witness go to memory of `spare`.
///
/// # Errors
/// [`Error::Decode`] when the result is not that of the specification, or its witness is malformed.
pub fn status(
    result: &str,
    spare: &Spare,
) -> Result<(PayloadStatus, Option<WitnessAnswer>), Error> {
    let names = ["status", "latestValidHash", "validationError", "witness"];
    let [status, hash, error, witness] = response::fields(result, names)?;
    let status = engine_api::PayloadStatus {
        status: optional(status)?.ok_or_else(|| Error::Decode("status: missing".into()))?,
        latest_valid_hash: optional(hash)?.flatten(),
        validation_error: optional(error)?.flatten(),
    };
    let witness = match witness.filter(|witness| *witness != "null") {
        Some(rlp) => {
            let mut bytes = spare.take();
            response::bytes_into(rlp, &mut bytes)?;
            let mut witness = witness::rlp::decode(&spare.lend(bytes).into())?;
            // geth's have the newest first.
            witness.sort_headers();
            let (public_keys, received_bytes) = (Vec::new(), result.len());
            Some(WitnessAnswer { witness, public_keys, timings: None, received_bytes })
        }
        None => None,
    };
    Ok((status_of(status), witness))
}

fn optional<'a, T: Deserialize<'a>>(field: Option<&'a str>) -> Result<Option<T>, Error> {
    Ok(field.map(read_json).transpose()?)
}

/// Reads the answer to `engine_forkchoiceUpdated`.
pub(crate) fn forkchoice_updated(result: &str) -> Result<ForkchoiceUpdated, Error> {
    let read: ForkchoiceUpdateResponse = read_json(result)?;
    Ok(updated(read))
}

/// Reads the answer to `debug_executionWitness`: all items into one buffer, in memory of `spare`.
/// geth writes headers as objects.
pub(crate) fn witness(result: &str, spare: &Spare) -> Result<Witness, Error> {
    #[derive(Deserialize)]
    struct Items<'a> {
        #[serde(borrow)]
        state: Vec<&'a str>,
        #[serde(borrow)]
        codes: Vec<&'a str>,
        #[serde(borrow)]
        headers: Vec<&'a RawValue>,
    }
    let Items { state, codes, headers } = read_json(result)?;
    check("headers", headers.len(), limits::HEADERS)?;
    let headers = headers.into_iter().map(header).collect::<Result<Vec<_>, _>>()?;
    let headers = headers.iter().map(|header| &**header).collect();
    let lists = [
        ("state", state, limits::ITEMS),
        ("codes", codes, limits::ITEMS),
        ("headers", headers, limits::HEADERS),
    ];
    let mut digits = Vec::new();
    for (field, items, limit) in &lists {
        check(field, items.len(), *limit)?;
        for item in items {
            let found = item.strip_prefix("0x").filter(|digits| !digits.starts_with("0x"));
            let found = found.ok_or_else(|| malformed(field, "an item without 0x"))?;
            check(field, found.len() / 2, limits::ITEM_BYTES)?;
            digits.push((*field, found));
        }
    }
    let mut bytes = spare.take();
    bytes.resize(digits.iter().map(|(_, digits)| digits.len() / 2).sum(), 0);
    let mut rest = &mut bytes[..];
    for (field, digits) in &digits {
        let (item, others) = rest.split_at_mut(digits.len() / 2);
        hex::decode_to_slice(digits, item).map_err(|fault| malformed(field, fault))?;
        rest = others;
    }
    let bytes = Bytes::from(spare.lend(bytes));
    let mut rest = &bytes[..];
    let mut items = digits.iter().map(|(_, digits)| {
        let (item, others) = rest.split_at(digits.len() / 2);
        rest = others;
        item
    });
    let [nodes, codes, headers] = lists.map(|(_, list, _)| list.len());
    let state = NodeList::of_piece(&bytes, items.by_ref().take(nodes).map(Ok::<_, Error>))?;
    let mut strings =
        |count| items.by_ref().take(count).map(|item| bytes.slice_ref(item)).collect();
    let mut witness = Witness { state, codes: strings(codes), headers: strings(headers) };
    witness.sort_headers();
    Ok(witness)
}

/// A header in hex, which is written as a string or as an object.
fn header(json: &RawValue) -> Result<Cow<'_, str>, Error> {
    if json.get().starts_with('{') {
        let header: Header = read_json(json.get())?;
        return Ok(hex::encode_prefixed(alloy_rlp::encode(&header)).into());
    }
    Ok(read_json::<&str>(json.get())?.into())
}

fn check(field: &'static str, got: usize, limit: usize) -> Result<(), Error> {
    match got > limit {
        true => Err(DecodeError::TooLarge { field, got, limit }.into()),
        false => Ok(()),
    }
}

fn malformed(field: &'static str, reason: impl ToString) -> Error {
    DecodeError::Malformed { field, reason: reason.to_string() }.into()
}

#[cfg(test)]
mod tests;
