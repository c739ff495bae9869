//! Signatures by the accounts of a node that mines its own chain.

use alloy_eips::eip2718::Encodable2718 as _;
use alloy_primitives::{Address, B256, Bytes, eip191_hash_message};
use engine_api::json::{Data, Object};
use rpc::{Error, Json, Params};
use serde_json::Value;

use super::call::Request;
use super::dev::{address, filled, no_signer};
use super::{Api, Entry, method};

/// The methods.
pub(super) const SIGN: &[Entry] = &[
    method("eth_sign", sign),
    method("personal_sign", personal_sign),
    method("eth_signTypedData", sign_typed_data),
    method("eth_signTypedData_v4", sign_typed_data),
    method("eth_signTransaction", sign_transaction),
];

/// `eth_sign`: of the message of EIP-191.
fn sign(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let (address, Data(message)) = (address(&mut params)?, params.next("message")?);
    params.end()?;
    signed(api, &address, eip191_hash_message(message))
}

/// `personal_sign`: the same, the other way round.
fn personal_sign(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let (Data(message), address) = (params.next("message")?, address(&mut params)?);
    let _: Option<String> = params.optional("password")?;
    params.end()?;
    signed(api, &address, eip191_hash_message(message))
}

/// `eth_signTypedData_v4`: of an object of EIP-712, or of the same as text.
fn sign_typed_data(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let address = address(&mut params)?;
    let data: Value = params.next("typed data")?;
    params.end()?;
    let hash = tools::typed_data_hash(&data);
    let hash = hash.map_err(|fault| Error::invalid_params(format!("typed data: {fault}")))?;
    signed(api, &address, hash)
}

/// `eth_signTransaction`: the bytes of the transaction, which is not sent.
fn sign_transaction(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let Object(request): Object<Request> = params.next("transaction")?;
    params.end()?;
    let dev = api.dev()?;
    let (sender, transaction) = filled(api, request)?;
    let signed = dev.wallet.sign_transaction(&sender, transaction).ok_or_else(no_signer)?;
    Json::of(&Bytes::from(signed.encoded_2718()))
}

fn signed(api: &Api, address: &Address, hash: B256) -> Result<Json, Error> {
    let signature = api.dev()?.wallet.sign(address, hash).ok_or_else(no_signer)?;
    Json::of(&Bytes::copy_from_slice(&signature.as_bytes()))
}
