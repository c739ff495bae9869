//! The state of a chain for tests as anvil dumps it: JSON, packed with gzip, in hex.

use std::collections::BTreeMap;

use ::dev::DevChain;
use alloy_primitives::{Address, B256, Bytes, U256};
use engine::WholeAccount;
use engine_api::json::Data;
use rpc::{Error, Json, Params};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::dev::{Loose, failed};
use super::{Api, Entry, ordered};
use crate::limits::DEV_STATE_BYTES;

/// The methods.
pub(super) const DEV_STATE: &[Entry] = &[
    ordered("anvil_dumpState", dump),
    ordered("hardhat_dumpState", dump),
    ordered("anvil_loadState", load),
    ordered("hardhat_loadState", load),
];

/// A state that is written. Blocks and transactions are not part of it.
#[derive(Serialize)]
struct Dumped {
    block: Option<Value>,
    accounts: BTreeMap<Address, DumpedAccount>,
    best_block_number: Option<u64>,
    blocks: [Value; 0],
    transactions: [Value; 0],
    historical_states: Option<Value>,
}

#[derive(Serialize)]
struct DumpedAccount {
    nonce: u64,
    balance: U256,
    code: Bytes,
    storage: BTreeMap<B256, B256>,
}

/// A state that is read: what there is beside its accounts is of no account here.
#[derive(Deserialize)]
struct Loaded {
    accounts: BTreeMap<Address, LoadedAccount>,
}

#[derive(Deserialize)]
struct LoadedAccount {
    nonce: Loose,
    balance: Loose,
    code: Data,
    #[serde(default)]
    storage: BTreeMap<U256, U256>,
}

/// `anvil_dumpState`: the accounts at the head.
fn dump(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let with_history: Option<bool> = params.optional("preserve historical states")?;
    params.end()?;
    if with_history == Some(true) {
        let words = "the states of earlier blocks are not dumped; leave the parameter out";
        return Err(Error::invalid_params(words));
    }
    let json = dumped(&api.dev()?.chain)?;
    Json::of(&Bytes::from(files::gzip(&json)))
}

/// All accounts at the head of a chain, as JSON.
///
/// # Errors
/// Those of [`DevChain::dump`].
pub(crate) fn dumped(chain: &DevChain) -> Result<Vec<u8>, Error> {
    let accounts = chain.dump().map_err(failed)?.into_iter().map(|account| {
        let WholeAccount { address, nonce, balance, code, storage } = account;
        let storage = storage.into_iter().map(|(slot, value)| (slot.into(), value.into()));
        (address, DumpedAccount { nonce, balance, code, storage: storage.collect() })
    });
    let dumped = Dumped {
        block: None,
        accounts: accounts.collect(),
        best_block_number: None,
        blocks: [],
        transactions: [],
        historical_states: None,
    };
    Ok(serde_json::to_vec(&dumped).expect("maps with names"))
}

/// `anvil_loadState`: accounts of such a state, of this program's or of anvil's, packed or not.
fn load(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let Data(state) = params.next("state")?;
    params.end()?;
    let accounts = accounts_of(&state);
    let accounts = accounts.map_err(|fault| Error::invalid_params(format!("state: {fault}")))?;
    api.dev()?.chain.load(&accounts).map_err(failed)?;
    Json::of(&true)
}

/// The accounts of such a state, packed or not.
///
/// # Errors
/// The fault of one that is none.
pub(crate) fn accounts_of(state: &[u8]) -> Result<Vec<WholeAccount>, String> {
    /// The first bytes of gzip.
    const GZIP: [u8; 2] = [0x1f, 0x8b];
    let unpacked;
    let json = if state.starts_with(&GZIP) {
        unpacked = files::gunzip(state, DEV_STATE_BYTES).map_err(|fault| fault.to_string())?;
        &unpacked[..]
    } else {
        state
    };
    let loaded: Loaded = serde_json::from_slice(json)
        .map_err(|fault| format!("expected a state as anvil_dumpState gives it: {fault}"))?;
    let accounts = loaded.accounts.into_iter().map(|(address, account)| {
        let LoadedAccount { nonce, balance: Loose(balance), code: Data(code), storage } = account;
        let nonce = nonce.small("nonce").map_err(|fault| fault.to_string())?;
        Ok(WholeAccount { address, nonce, balance, code, storage })
    });
    accounts.collect()
}
