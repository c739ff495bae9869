//! A payload as `POST /engine/v1/payloads` takes it: an `ExecutionPayloadEnvelope` in SSZ.

use alloy_primitives::{Bytes, U64, U256};
use anyhow::{Context, ensure};
use serde_json::Value;

/// The envelope of a call of `engine_newPayload`, of Prague to Amsterdam, whose parameters these
/// are.
pub(super) fn envelope(params: &Value) -> anyhow::Result<Vec<u8>> {
    let payload = payload(&params[0])?;
    let parent_beacon_block_root = bytes(&params[2])?;
    ensure!(parent_beacon_block_root.len() == 32, "a parent beacon block root of 32 bytes");
    let requests = list(&params[3], bytes)?;
    let fixed = 4 + 32 + 4;
    let mut envelope = offset(fixed).to_vec();
    envelope.extend_from_slice(&parent_beacon_block_root);
    envelope.extend(offset(fixed + payload.len()));
    envelope.extend(payload);
    envelope.extend(variable(&requests));
    Ok(envelope)
}

/// An `ExecutionPayload` of Cancun to Amsterdam.
fn payload(json: &Value) -> anyhow::Result<Vec<u8>> {
    let is_amsterdam = !json["blockAccessList"].is_null();
    // The fixed part.
    let fixed = if is_amsterdam { 540 } else { 528 };
    let field = |name: &str| bytes(&json[name]).with_context(|| name.to_owned());
    let number = |name: &str| -> anyhow::Result<[u8; 8]> {
        let number: U64 = serde_json::from_value(json[name].clone()).context(name.to_owned())?;
        Ok(number.to::<u64>().to_le_bytes())
    };
    let extra_data = field("extraData")?;
    let transactions = variable(&list(&json["transactions"], bytes)?);
    let withdrawals = list(&json["withdrawals"], withdrawal)?.concat();
    let base_fee: U256 = serde_json::from_value(json["baseFeePerGas"].clone())?;
    let mut out = Vec::new();
    for name in
        ["parentHash", "feeRecipient", "stateRoot", "receiptsRoot", "logsBloom", "prevRandao"]
    {
        out.extend_from_slice(&field(name)?);
    }
    for name in ["blockNumber", "gasLimit", "gasUsed", "timestamp"] {
        out.extend(number(name)?);
    }
    out.extend(offset(fixed));
    out.extend(base_fee.to_le_bytes::<32>());
    out.extend_from_slice(&field("blockHash")?);
    out.extend(offset(fixed + extra_data.len()));
    out.extend(offset(fixed + extra_data.len() + transactions.len()));
    out.extend(number("blobGasUsed")?);
    out.extend(number("excessBlobGas")?);
    if is_amsterdam {
        out.extend(offset(fixed + extra_data.len() + transactions.len() + withdrawals.len()));
        out.extend(number("slotNumber")?);
    }
    ensure!(out.len() == fixed, "the fixed part has {} bytes", out.len());
    out.extend_from_slice(&extra_data);
    out.extend(transactions);
    out.extend(withdrawals);
    if is_amsterdam {
        out.extend_from_slice(&field("blockAccessList")?);
    }
    Ok(out)
}

fn withdrawal(json: &Value) -> anyhow::Result<Bytes> {
    let number = |name: &str| -> anyhow::Result<[u8; 8]> {
        Ok(serde_json::from_value::<U64>(json[name].clone())?.to::<u64>().to_le_bytes())
    };
    let mut out = [number("index")?, number("validatorIndex")?].concat();
    out.extend_from_slice(&bytes(&json["address"])?);
    out.extend(number("amount")?);
    Ok(out.into())
}

fn bytes(json: &Value) -> anyhow::Result<Bytes> {
    Ok(serde_json::from_value(json.clone())?)
}

fn list<T>(json: &Value, read: impl Fn(&Value) -> anyhow::Result<T>) -> anyhow::Result<Vec<T>> {
    json.as_array().context("a list is missing")?.iter().map(read).collect()
}

fn offset(at: usize) -> [u8; 4] {
    u32::try_from(at).expect("a payload is below 4 GiB").to_le_bytes()
}

/// A list of byte lists: offsets, then what they name.
fn variable(items: &[Bytes]) -> Vec<u8> {
    let mut at = items.len() * 4;
    let mut out = Vec::new();
    for item in items {
        out.extend(offset(at));
        at += item.len();
    }
    out.extend(items.iter().flatten());
    out
}
