//! `debug_storageRangeAt`, `accountRange`, `getModifiedAccountsBy*`, `intermediateRoots` and
//! `codeByHash`: the state by parts. Shapes and words of errors are geth's.

use std::collections::BTreeMap;
use std::sync::Arc;

use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, hex};
use engine::{AccountRange, BlockRecord, ModifiedAccount, StorageRange};
use engine_api::json::{Data, FixedData};
use execution::{Traced, TracerConfig};
use rpc::{Code, Error, Json, Params};
use serde::de::{Error as _, IgnoredAny};
use serde::{Deserialize, Deserializer, Serialize};

use super::blocks::{BlockId, NumberOrTag};
use super::lenient::HexOrDecimal;
use super::trace::{begin, done};
use super::transactions::whole;
use super::{Api, refusal, state};
use crate::limits::{MODIFIED_ACCOUNTS, STATE_RANGE, TRACED_BLOCKS};

/// `debug_storageRangeAt`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ShownStorage {
    storage: Option<BTreeMap<B256, ShownSlot>>,
    next_key: Option<B256>,
}

#[derive(Serialize)]
struct ShownSlot {
    /// The key, which is kept nowhere: there are hashes alone.
    key: (),
    value: B256,
}

impl ShownStorage {
    fn new(range: Option<StorageRange>) -> Self {
        let Some(StorageRange { slots, next }) = range else {
            return Self { storage: None, next_key: None };
        };
        let slot = |(key, value)| (key, ShownSlot { key: (), value: B256::from(value) });
        Self { storage: Some(slots.into_iter().map(slot).collect()), next_key: next }
    }
}

/// An account by its address, or by the hash of that.
enum NamedAccount {
    Address(Address),
    Hashed(B256),
}

impl<'de> Deserialize<'de> for NamedAccount {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        let Data(bytes) = Data::deserialize(json)?;
        match bytes.len() {
            20 => Ok(Self::Address(Address::from_slice(&bytes))),
            32 => Ok(Self::Hashed(B256::from_slice(&bytes))),
            bytes => Err(D::Error::custom(format!("{} hex digits instead of 40", 2 * bytes))),
        }
    }
}

/// `debug_storageRangeAt`: slots of an account before a transaction of a block. Of block 0, which
/// has none, those after it, of an account that is named by the hash of its address: so a follower
/// gets all of the first state, of which no addresses are kept.
pub(super) fn storage(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let id: BlockId = params.next("block")?;
    let HexOrDecimal(index) = params.next("transaction index")?;
    let account: NamedAccount = params.next("address")?;
    let Data(start) = params.next("first key")?;
    let HexOrDecimal(most) = params.next("number of slots")?;
    params.end()?;
    let start = key(&start, true)?;
    let most = usize::try_from(most).unwrap_or(usize::MAX).min(STATE_RANGE);
    let record = named(api, &id)?;
    let address = match account {
        NamedAccount::Hashed(hash) if record.number() == 0 => {
            let view = api.engine.state(record.hash()).map_err(refusal)?;
            let range = view.slots_from(&hash, &start, most).map_err(refusal)?;
            return Json::of(&ShownStorage::new(range));
        }
        NamedAccount::Hashed(_) => {
            let words = "an address expected: its hash is taken for block 0 alone";
            return Err(Error::invalid_params(words));
        }
        NamedAccount::Address(_) if record.number() == 0 => {
            return Err(Error::failed_call("no transaction in genesis".into()));
        }
        NamedAccount::Address(address) => address,
    };
    whole(Some(record.clone()))?;
    let count = record.block.body.transactions.len() as u64;
    if index >= count.max(1) {
        let hash = record.hash();
        let words = format!("transaction index {index} out of range for block {hash}");
        return Err(Error::failed_call(words));
    }
    let _turn = begin(api, TracerConfig::Noop, None)?;
    let index = usize::try_from(index).unwrap_or(usize::MAX);
    let range = api.engine.storage_range(&record, index, address, (start, most));
    Json::of(&ShownStorage::new(range.map_err(refusal)?))
}

/// `debug_accountRange`.
#[derive(Serialize)]
struct ShownAccounts {
    root: String,
    accounts: BTreeMap<String, ShownAccount>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<B256>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ShownAccount {
    balance: String,
    nonce: u64,
    root: B256,
    code_hash: B256,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<Bytes>,
    /// The hash of the address, which is kept nowhere.
    key: B256,
}

/// `debug_accountRange`: accounts of the state after a block. They have no addresses, and slots no
/// keys, so that both are left out, but for accounts with `incompletes`.
pub(super) fn accounts(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let id: BlockId = params.next("block")?;
    let start: Option<Data> = params.optional("first key")?;
    let most: Option<HexOrDecimal> = params.optional("number of accounts")?;
    let without_code: Option<bool> = params.optional("nocode")?;
    let _without_storage: Option<bool> = params.optional("nostorage")?;
    let incompletes: Option<bool> = params.optional("incompletes")?;
    params.end()?;
    let start = start.map_or(Ok(B256::ZERO), |Data(start)| key(&start, false))?;
    let most = most.map_or(0, |HexOrDecimal(most)| usize::try_from(most).unwrap_or(usize::MAX));
    let most = if most == 0 { STATE_RANGE } else { most.min(STATE_RANGE) };
    let record = match &id {
        BlockId::Number(NumberOrTag::Pending) => api.head()?,
        id => named(api, id)?,
    };
    let view = api.engine.state(record.hash()).map_err(refusal)?;
    let root = hex::encode(view.root());
    if !incompletes.unwrap_or_default() {
        return Json::of(&ShownAccounts { root, accounts: BTreeMap::new(), next: None });
    }
    let AccountRange { accounts: found, next } =
        view.accounts_from(&start, most).map_err(refusal)?;
    let mut accounts = BTreeMap::new();
    for (key, account) in found {
        let has_code = account.code_hash != KECCAK256_EMPTY && !without_code.unwrap_or_default();
        let code = match has_code {
            true => view.code_by_hash(account.code_hash).map_err(refusal)?,
            false => None,
        };
        let shown = ShownAccount {
            balance: account.balance.to_string(),
            nonce: account.nonce,
            root: account.storage_root,
            code_hash: account.code_hash,
            code,
            key,
        };
        accounts.insert(format!("pre({key})"), shown);
    }
    Json::of(&ShownAccounts { root, accounts, next })
}

/// `debug_getModifiedAccountsByNumber`: of one block, or from one to another.
pub(super) fn modified_by_number(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let HexOrDecimal(start) = params.next("first block")?;
    let end: Option<HexOrDecimal> = params.optional("last block")?;
    params.end()?;
    let block = |number| api.block_by_number(NumberOrTag::Number(number));
    let missing = Error::failed_call;
    let first = block(start)?.ok_or_else(|| missing(format!("start block {start:x} not found")))?;
    let last = end.map(|HexOrDecimal(end)| {
        block(end)?.ok_or_else(|| missing(format!("end block {end} not found")))
    });
    modified(api, first, last.transpose()?)
}

/// `debug_getModifiedAccountsByHash`.
pub(super) fn modified_by_hash(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let start: FixedData<32> = params.next("first block")?;
    let end: Option<FixedData<32>> = params.optional("last block")?;
    params.end()?;
    let block = |hash: FixedData<32>, side: &str| {
        let hash = B256::from(hash);
        let words = format!("{side} block {hash:x} not found");
        api.block(hash)?.ok_or_else(|| Error::failed_call(words))
    };
    let first = block(start, "start")?;
    let last = end.map(|end| block(end, "end")).transpose()?;
    modified(api, first, last)
}

/// The accounts that differ between two blocks, or between a block and its parent.
fn modified(
    api: &Api,
    first: Arc<BlockRecord>,
    last: Option<Arc<BlockRecord>>,
) -> Result<Json, Error> {
    let (before, after) = match last {
        Some(last) => (first, last),
        None => {
            let parent = api.block(first.block.header.parent_hash)?;
            let words = || Error::failed_call(format!("block {:x} has no parent", first.number()));
            (parent.ok_or_else(words)?, first)
        }
    };
    let [start, end] = [before.number(), after.number()];
    if start >= end {
        let words =
            format!("start block height ({start}) must be less than end block height ({end})");
        return Err(Error::failed_call(words));
    }
    if end - start > TRACED_BLOCKS {
        let detail = format!("{} blocks, at most {TRACED_BLOCKS} are allowed", end - start);
        return Err(Error::invalid_params(detail));
    }
    let (_turn, options) = begin(api, TracerConfig::Noop, None)?;
    let found = api.engine.modified_accounts(&before, &after, MODIFIED_ACCOUNTS, &options.deadline);
    let found = match found.map_err(refusal)? {
        Traced::TooLong => {
            let detail = format!("more than {MODIFIED_ACCOUNTS} accounts: ask for fewer blocks");
            return Err(Error::new(Code::LimitExceeded, detail));
        }
        found => done(found)?,
    };
    let addresses = found.into_iter().map(|ModifiedAccount { hashed_address, address }| {
        let words = || Error::failed_call(format!("no preimage found for hash {hashed_address:x}"));
        address.ok_or_else(words)
    });
    Json::of(&addresses.collect::<Result<Vec<Address>, _>>()?)
}

/// `debug_intermediateRoots`: the state root after each transaction of a block.
pub(super) fn roots(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let hash: FixedData<32> = params.next("block hash")?;
    let _: Option<IgnoredAny> = params.optional("configuration")?;
    params.end()?;
    let hash = B256::from(hash);
    let missing = || Error::failed_call(format!("block {hash} not found"));
    let record = api.block(hash)?.ok_or_else(missing)?;
    if record.number() == 0 {
        return Err(Error::failed_call("genesis is not traceable".into()));
    }
    whole(Some(record.clone()))?;
    let (_turn, options) = begin(api, TracerConfig::Noop, None)?;
    let roots = api.engine.intermediate_roots(&record.block, &record.senders, &options.deadline);
    let roots = done(roots.map_err(refusal)?)?;
    // Of no transactions geth has no list.
    Json::of(&(!roots.is_empty()).then_some(roots))
}

/// `debug_codeByHash`: a code, `null` where there is none with the hash.
pub(super) fn code(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let hash: FixedData<32> = params.next("code hash")?;
    let id: Option<BlockId> = params.optional("block")?;
    params.end()?;
    let record = state::record(api, id)?;
    let record = record.ok_or_else(|| Error::failed_call("header not found".into()))?;
    let view = api.engine.state(record.hash()).map_err(refusal)?;
    Json::of(&view.code_by_hash(hash.into()).map_err(refusal)?)
}

/// A hashed key of which the first or the last bytes are given.
fn key(given: &[u8], is_start: bool) -> Result<B256, Error> {
    if given.len() > B256::len_bytes() {
        let detail = format!("the first key has {} bytes, at most 32 are allowed", given.len());
        return Err(Error::invalid_params(detail));
    }
    Ok(if is_start { B256::right_padding_from(given) } else { B256::left_padding_from(given) })
}

/// The block that a parameter names, which there has to be.
fn named(api: &Api, id: &BlockId) -> Result<Arc<BlockRecord>, Error> {
    let record = api.block_by_id(id)?;
    record.ok_or_else(|| {
        Error::failed_call(match id {
            BlockId::Number(NumberOrTag::Number(number)) => format!("block #{number} not found"),
            BlockId::Hash { hash, .. } => format!("block {hash} not found"),
            BlockId::Number(tag) => format!("there is no {}", BlockId::Number(*tag)),
        })
    })
}
