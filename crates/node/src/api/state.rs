//! The state after any kept block: accounts, slots, codes, and their proofs.

use alloy_primitives::{Address, B256, U64, U256};
use alloy_rpc_types_eth::{EIP1186AccountProofResponse, EIP1186StorageProof};
use alloy_serde::JsonStorageKey;
use engine::StateView;
use engine_api::json::FixedData;
use rpc::{Code, Error, Json, Params, quote};
use trie::Account;

use super::blocks::{BlockId, NumberOrTag};
use super::{Api, refusal};
use crate::limits::PROOF_SLOTS;

/// `eth_getBalance`.
pub(super) fn balance(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let address = address(&mut params)?;
    let account = state(api, params)?.account(address).map_err(refusal)?;
    Json::of(&account.map_or(U256::ZERO, |account| account.balance))
}

/// `eth_getTransactionCount`.
pub(super) fn transaction_count(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let address = address(&mut params)?;
    let account = state(api, params)?.account(address).map_err(refusal)?;
    Json::of(&U64::from(account.map_or(0, |account| account.nonce)))
}

/// `eth_getCode`.
pub(super) fn code(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let address = address(&mut params)?;
    Json::of(&state(api, params)?.code(address).map_err(refusal)?)
}

/// `eth_getStorageAt`.
pub(super) fn storage_at(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let address = address(&mut params)?;
    let slot = slot(&params.next::<String>("storage slot")?)?;
    let value = state(api, params)?.storage(address, slot.as_b256().into()).map_err(refusal)?;
    Json::of(&B256::from(value))
}

/// `eth_getProof` (EIP-1186).
pub(super) fn proof(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let address = address(&mut params)?;
    let keys: Vec<String> = params.list("storage keys", PROOF_SLOTS)?;
    let keys = keys.iter().map(|key| slot(key)).collect::<Result<Vec<_>, _>>()?;
    let slots: Vec<U256> = keys.iter().map(|key| key.as_b256().into()).collect();
    let proof = state(api, params)?.proof(address, &slots).map_err(refusal)?;
    // An account that is not there has neither code nor storage, and so no hashes of them, as in
    // geth; EIP-1186 gives the hashes of emptiness to accounts that are there.
    let account = proof.account.unwrap_or(Account {
        nonce: 0,
        balance: U256::ZERO,
        storage_root: B256::ZERO,
        code_hash: B256::ZERO,
    });
    let storage = keys.into_iter().zip(proof.storage);
    let storage_proof = storage.map(|(key, slot)| EIP1186StorageProof {
        key,
        value: slot.value,
        proof: slot.proof,
    });
    Json::of(&EIP1186AccountProofResponse {
        address,
        balance: account.balance,
        code_hash: account.code_hash,
        nonce: account.nonce,
        storage_hash: account.storage_root,
        account_proof: proof.proof,
        storage_proof: storage_proof.collect(),
    })
}

fn address(params: &mut Params<'_>) -> Result<Address, Error> {
    let address: FixedData<20> = params.next("address")?;
    Ok(Address::from(address))
}

/// A slot's number, as a quantity or as 32 bytes.
fn slot(text: &str) -> Result<JsonStorageKey, Error> {
    let digits = text.strip_prefix("0x").filter(|digits| {
        // The parser passes over underscores.
        (1..=64).contains(&digits.len()) && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
    });
    let number = digits.and_then(|digits| U256::from_str_radix(digits, 16).ok());
    let Some(number) = number else {
        let detail = format!("storage slot: \"{}\" is not 0x and 1 to 64 hex digits", quote(text));
        return Err(Error::invalid_params(detail));
    };
    Ok(if text.len() == 66 {
        JsonStorageKey::Hash(number.into())
    } else {
        JsonStorageKey::Number(number)
    })
}

/// The state after the block that the last parameter names.
fn state(api: &Api, mut params: Params<'_>) -> Result<StateView, Error> {
    let hash = block(api, &mut params)?;
    params.end()?;
    api.engine.state(hash).map_err(refusal)
}

/// The block that the next parameter names; the head when there is none.
pub(super) fn block(api: &Api, params: &mut Params<'_>) -> Result<B256, Error> {
    let id: Option<BlockId> = params.optional("block")?;
    let id = match id {
        // There is no pool: what is pending is what is there.
        None | Some(BlockId::Number(NumberOrTag::Pending)) => BlockId::Number(NumberOrTag::Latest),
        Some(id) => id,
    };
    let record = api.block_by_id(&id)?;
    let record = record.ok_or_else(|| Error::new(Code::Server, format!("there is no {id}")))?;
    Ok(record.hash())
}
