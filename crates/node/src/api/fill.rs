//! `eth_fillTransaction`: a transaction with what its sender leaves open, and without a signature,
//! as geth fills it (`setDefaults` in `internal/ethapi/transaction_args.go` of 1.17.8).

use alloy_consensus::{Transaction as _, Typed2718 as _};
use alloy_primitives::{Address, Bytes, U64, U256, keccak256};
use engine::BlockRecord;
use engine_api::json::Object;
use execution::{
    Call, Estimate, Overrides, UnsignedCall, UnsignedTransaction, encode_unsigned,
    unsigned_transaction,
};
use rpc::{Error, Json, Params};
use serde_json::{Value, json};

use super::call::{Request, reverted};
use super::{Api, refusal};

/// `eth_fillTransaction`.
pub(super) fn fill(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let Object(mut request): Object<Request> = params.next("transaction")?;
    params.end()?;
    let head = api.head()?;
    request.fill_fees(api, &head.block.header)?;
    request.check_to_send()?;
    let chain_id = api.engine.chain().chain_id();
    let UnsignedCall { call, gas, nonce, has_gas_price } = request.call(chain_id)?;
    let nonce = nonce.map_or_else(|| next_nonce(api, call.from, &head), Ok)?;
    let gas = gas.map_or_else(|| estimated(api, &call, &head), Ok)?;
    let transaction = unsigned_transaction(&Call { gas, ..call }, nonce, chain_id, has_gas_price);
    let raw = Bytes::from(encode_unsigned(&transaction));
    let transaction = shown(&transaction, &raw)?;
    Json::of(&json!({ "raw": raw, "tx": transaction }))
}

/// The nonce of a sender's next transaction: behind those of the pool, else that of its account at
/// the head.
pub(super) fn next_nonce(api: &Api, sender: Address, head: &BlockRecord) -> Result<u64, Error> {
    if let Some(nonce) = api.next_nonce(sender) {
        return Ok(nonce);
    }
    let state = api.engine.state(head.hash()).map_err(refusal)?;
    let account = state.account(sender).map_err(refusal)?;
    Ok(account.map_or(0, |account| account.nonce))
}

/// The gas limit with which a call succeeds after the head.
pub(super) fn estimated(api: &Api, call: &Call, head: &BlockRecord) -> Result<u64, Error> {
    let (none, bounds) = (Overrides::default(), api.bounds);
    let deadline = bounds.deadline();
    let estimate = api.engine.estimate_gas(head.hash(), call, &none, bounds.gas, &deadline);
    match estimate.map_err(|error| api.call_refusal(error))? {
        Estimate::Gas(gas) => Ok(gas),
        Estimate::Reverted(output) => Err(reverted(&output)),
        Estimate::Failed(reason) => Err(Error::failed_call(reason)),
    }
}

/// The transaction as geth writes one (`core/types/transaction_marshalling.go`): prices that its
/// type does not have are `null`, and the parts of its signature zero.
fn shown(transaction: &UnsignedTransaction, raw: &Bytes) -> Result<Value, Error> {
    let price = transaction.gas_price().map(U256::from);
    let (is_legacy, tip) = (transaction.is_legacy(), transaction.max_priority_fee_per_gas());
    let mut shown = json!({
        "type": U64::from(transaction.ty()),
        "nonce": U64::from(transaction.nonce()),
        "to": transaction.to(),
        "gas": U64::from(transaction.gas_limit()),
        "gasPrice": price,
        "maxPriorityFeePerGas": tip.map(U256::from),
        "maxFeePerGas": (!is_legacy).then(|| U256::from(transaction.max_fee_per_gas())),
        "value": transaction.value(),
        "input": transaction.input(),
        "v": "0x0",
        "r": "0x0",
        "s": "0x0",
        "hash": keccak256(raw),
    });
    let mut add = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            shown[name] = value;
        }
    };
    let fee = transaction.max_fee_per_blob_gas().map(U256::from);
    add("chainId", transaction.chain_id().map(|id| json!(U64::from(id))));
    add("yParity", (!is_legacy).then(|| json!("0x0")));
    add("accessList", transaction.access_list().map(|list| json!(list)));
    add("maxFeePerBlobGas", fee.map(|fee| json!(fee)));
    add("blobVersionedHashes", transaction.blob_versioned_hashes().map(|hashes| json!(hashes)));
    let authorizations = transaction.authorization_list().filter(|list| !list.is_empty());
    add("authorizationList", authorizations.map(|list| json!(list)));
    Ok(shown)
}
