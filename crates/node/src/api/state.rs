//! The state after any kept block: accounts, slots, codes, and their proofs.

use std::collections::BTreeMap;
use std::sync::Arc;

use alloy_primitives::{Address, B256, Bytes, U64, U256};
use alloy_rpc_types_eth::{EIP1186AccountProofResponse, EIP1186StorageProof};
use alloy_serde::JsonStorageKey;
use engine::{BlockRecord, PendingView, StateAt, StateView};
use engine_api::json::{Entries, FixedData};
use rpc::{Code, Error, Json, Params, quote};
use trie::Account;

use super::blocks::{BlockId, NumberOrTag};
use super::{Api, refusal};
use crate::limits::{PROOF_SLOTS, STORAGE_VALUES};

/// `eth_getBalance`.
pub(super) fn balance(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let address = address(&mut params)?;
    let account = state(api, params)?.account(address).map_err(refusal)?;
    Json::of(&account.map_or(U256::ZERO, |account| account.balance))
}

/// `eth_getTransactionCount`.
pub(super) fn transaction_count(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let address = address(&mut params)?;
    let id: Option<BlockId> = params.optional("block")?;
    params.end()?;
    let is_pending = id == Some(BlockId::Number(NumberOrTag::Pending));
    if let Some(nonce) = api.next_nonce(address).filter(|_| is_pending) {
        return Json::of(&U64::from(nonce));
    }
    // As geth: authorizations that wait count no more than their senders' transactions do.
    let id = if is_pending { Some(BlockId::Number(NumberOrTag::Latest)) } else { id };
    let state = StateReads::of(api, named(api, id)?)?;
    let account = state.account(address).map_err(refusal)?;
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

/// `eth_getStorageValues`: the values of slots of several accounts, by address.
pub(super) fn storage_values(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    type Slots = Entries<FixedData<20>, Vec<FixedData<32>>, STORAGE_VALUES>;
    let Entries(asked): Slots = params.next("slots by address")?;
    let count: usize = asked.iter().map(|(_, slots)| slots.len()).sum();
    if count > STORAGE_VALUES {
        let detail = format!("too many slots (max {STORAGE_VALUES})");
        return Err(Error::new(Code::ClientLimit, detail));
    }
    if count == 0 {
        return Err(Error::invalid_params("empty request"));
    }
    let state = state(api, params)?;
    let values = asked.into_iter().map(|(address, slots)| {
        let address = Address::from(address);
        let value = |slot: FixedData<32>| state.storage(address, U256::from_be_bytes(slot.0));
        let values = slots.into_iter().map(|slot| value(slot).map(B256::from));
        Ok((address, values.collect::<Result<Vec<_>, _>>()?))
    });
    let values: Result<BTreeMap<_, _>, engine::Error> = values.collect();
    Json::of(&values.map_err(refusal)?)
}

/// `eth_getProof` (EIP-1186).
pub(super) fn proof(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let address = address(&mut params)?;
    let keys: Vec<String> = params.list("storage keys", PROOF_SLOTS)?;
    let keys = keys.iter().map(|key| slot(key)).collect::<Result<Vec<_>, _>>()?;
    let slots: Vec<U256> = keys.iter().map(|key| key.as_b256().into()).collect();
    let StateReads::Kept(state) = state(api, params)? else {
        let detail = "there are no proofs of the pending state: name another block";
        return Err(Error::invalid_params(detail));
    };
    let proof = state.proof(address, &slots).map_err(refusal)?;
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

/// A slot's number, as a quantity or as 32 bytes. The words of errors are geth's.
fn slot(text: &str) -> Result<JsonStorageKey, Error> {
    let digits = text.strip_prefix("0x");
    if digits.is_some_and(|digits| digits.len() > 64) {
        let quoted = quote(text);
        let detail = format!("storage key too long (want at most 32 bytes): \"{quoted}\"");
        return Err(Error::invalid_params(detail));
    }
    // The parser passes over underscores.
    let digits = digits.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
    let number = digits.and_then(|digits| U256::from_str_radix(digits, 16).ok());
    let Some(number) = number else {
        let detail = format!("invalid hex in storage key: \"{}\"", quote(text));
        return Err(Error::invalid_params(detail));
    };
    Ok(if text.len() == 66 {
        JsonStorageKey::Hash(number.into())
    } else {
        JsonStorageKey::Number(number)
    })
}

/// A state to read from.
enum StateReads {
    Kept(StateView),
    Pending(PendingView),
}

impl StateReads {
    fn of(api: &Api, at: StateAt) -> Result<Self, Error> {
        match at {
            StateAt::Block(hash) => api.engine.state(hash).map(Self::Kept),
            StateAt::Pending(pending) => api.engine.pending_state(&pending).map(Self::Pending),
        }
        .map_err(refusal)
    }

    fn account(&self, address: Address) -> Result<Option<Account>, engine::Error> {
        match self {
            Self::Kept(state) => state.account(address),
            Self::Pending(state) => state.account(address),
        }
    }

    fn storage(&self, address: Address, slot: U256) -> Result<U256, engine::Error> {
        match self {
            Self::Kept(state) => state.storage(address, slot),
            Self::Pending(state) => state.storage(address, slot),
        }
    }

    fn code(&self, address: Address) -> Result<Bytes, engine::Error> {
        match self {
            Self::Kept(state) => state.code(address),
            Self::Pending(state) => state.code(address),
        }
    }
}

/// The state after the block that the last parameter names.
fn state(api: &Api, mut params: Params<'_>) -> Result<StateReads, Error> {
    let at = block(api, &mut params)?;
    params.end()?;
    StateReads::of(api, at)
}

/// The block that the next parameter names; the head when there is none.
pub(super) fn block(api: &Api, params: &mut Params<'_>) -> Result<StateAt, Error> {
    named(api, params.optional("block")?)
}

fn named(api: &Api, id: Option<BlockId>) -> Result<StateAt, Error> {
    let id = of_state(id);
    let at = api.state_at(&id)?;
    at.ok_or_else(|| Error::new(Code::Server, format!("there is no {id}")))
}

/// The block of the chain whose state is meant: the head where none is named, and for the pending
/// one. `None` where there is no such block.
pub(super) fn record(api: &Api, id: Option<BlockId>) -> Result<Option<Arc<BlockRecord>>, Error> {
    match of_state(id) {
        BlockId::Number(NumberOrTag::Pending) => api.head().map(Some),
        id => api.block_by_id(&id),
    }
}

/// The block whose state is meant: the head where none is named.
pub(super) fn of_state(id: Option<BlockId>) -> BlockId {
    id.unwrap_or(BlockId::Number(NumberOrTag::Latest))
}
