//! Reads of blocks from before the one with which a chain for tests began elsewhere: its endpoint
//! answers them, and nothing of that is checked.

use alloy_primitives::{B256, U64};
use engine_api::json::FixedData;
use rpc::{Code, Error, Json, Params, RawValue, read_json};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Api;
use super::blocks::{BlockId, NumberOrTag};
use crate::dev::{ForkPoint, within};

/// The part of a block that a method needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Needs {
    /// Its header or the state after it, which are here for the first block.
    State,
    /// Its transactions or what came of them.
    Body,
}

/// The methods that name a block, and which of their parameters does.
const OF_BLOCKS: &[(&str, usize, Needs)] = &[
    ("debug_getRawBlock", 0, Needs::Body),
    ("debug_getRawHeader", 0, Needs::State),
    ("debug_getRawReceipts", 0, Needs::Body),
    ("debug_traceBlockByHash", 0, Needs::Body),
    ("debug_traceBlockByNumber", 0, Needs::Body),
    ("debug_traceCall", 1, Needs::State),
    ("eth_call", 1, Needs::State),
    ("eth_createAccessList", 1, Needs::State),
    ("eth_estimateGas", 1, Needs::State),
    ("eth_feeHistory", 1, Needs::Body),
    ("eth_getBalance", 1, Needs::State),
    ("eth_getBlockAccessList", 0, Needs::Body),
    ("eth_getBlockByHash", 0, Needs::Body),
    ("eth_getBlockByNumber", 0, Needs::Body),
    ("eth_getBlockReceipts", 0, Needs::Body),
    ("eth_getBlockTransactionCountByHash", 0, Needs::Body),
    ("eth_getBlockTransactionCountByNumber", 0, Needs::Body),
    ("eth_getCode", 1, Needs::State),
    ("eth_getHeaderByHash", 0, Needs::State),
    ("eth_getHeaderByNumber", 0, Needs::State),
    ("eth_getProof", 2, Needs::State),
    ("eth_getRawTransactionByBlockHashAndIndex", 0, Needs::Body),
    ("eth_getRawTransactionByBlockNumberAndIndex", 0, Needs::Body),
    ("eth_getStorageAt", 2, Needs::State),
    ("eth_getStorageValues", 1, Needs::State),
    ("eth_getTransactionByBlockHashAndIndex", 0, Needs::Body),
    ("eth_getTransactionByBlockNumberAndIndex", 0, Needs::Body),
    ("eth_getTransactionCount", 1, Needs::State),
    ("eth_getUncleByBlockHashAndIndex", 0, Needs::Body),
    ("eth_getUncleByBlockNumberAndIndex", 0, Needs::Body),
    ("eth_getUncleCountByBlockHash", 0, Needs::Body),
    ("eth_getUncleCountByBlockNumber", 0, Needs::Body),
    ("eth_simulateV1", 1, Needs::State),
    ("trace_block", 0, Needs::Body),
    ("trace_call", 2, Needs::State),
    ("trace_callMany", 1, Needs::State),
    ("trace_replayBlockTransactions", 0, Needs::Body),
];

/// The methods whose first parameter names a transaction.
const OF_TRANSACTIONS: &[&str] = &[
    "debug_getRawTransaction",
    "debug_traceTransaction",
    "eth_getRawTransactionByHash",
    "eth_getTransactionByHash",
    "eth_getTransactionReceipt",
    "trace_get",
    "trace_replayTransaction",
    "trace_transaction",
];

impl Api {
    /// The answer of the endpoint with which a chain for tests began, where the call is about what
    /// is before its first block; `None` where it is answered here.
    pub(crate) fn forwarded(
        &self,
        method: &str,
        params: Option<&RawValue>,
    ) -> Option<Result<Json, Error>> {
        let fork = self.fork()?;
        let mut params: Vec<Value> = serde_json::from_str(params?.get()).ok()?;
        if method == "eth_getLogs" {
            return self.logs_before(&fork, &mut params).transpose();
        }
        if OF_TRANSACTIONS.contains(&method) {
            return self.transaction_before(&fork, method, params).transpose();
        }
        let (_, index, needs) = OF_BLOCKS.iter().find(|(name, ..)| *name == method)?;
        let named = params.get_mut(*index)?;
        let id: BlockId = read_json(&named.to_string()).ok()?;
        if let Some(number) = match self.is_before(&fork, &id, *needs) {
            Ok(number) => number?,
            Err(error) => return Some(Err(error)),
        } {
            *named = json!(U64::from(number));
        }
        Some(ask(&fork, method, params))
    }

    /// Answers a call here, which waits for the endpoint of a fork as long as calls may take, where
    /// it only reads.
    pub(crate) fn in_time<T>(&self, method: &str, answer: impl FnOnce() -> T) -> T {
        let is_of_blocks = OF_BLOCKS.iter().any(|(name, ..)| *name == method);
        let is_read = is_of_blocks || OF_TRANSACTIONS.contains(&method);
        match self.fork() {
            Some(_) if is_read => within(self.bounds.time, answer),
            _ => answer(),
        }
    }

    fn fork(&self) -> Option<std::sync::Arc<ForkPoint>> {
        self.dev.as_ref()?.fork()
    }

    /// Whether a block is before the first one, or it is that one and more is needed than is here.
    /// Then the number that names it to the endpoint, or none where its hash does.
    fn is_before(
        &self,
        fork: &ForkPoint,
        id: &BlockId,
        needs: Needs,
    ) -> Result<Option<Option<u64>>, Error> {
        let first = fork.header.number;
        let is_before = |number| number < first || number == first && needs == Needs::Body;
        let number = match *id {
            BlockId::Number(NumberOrTag::Number(number)) => Some(number),
            BlockId::Number(NumberOrTag::Earliest) => Some(0),
            BlockId::Number(NumberOrTag::Pending) => None,
            BlockId::Number(tag) => self.block_by_number(tag)?.map(|record| record.number()),
            BlockId::Hash { hash, .. } => {
                let number = match self.block(hash)? {
                    Some(record) => Some(record.number()),
                    None => number_of(fork, hash)?,
                };
                return Ok(number.filter(|number| is_before(*number)).map(|_| None));
            }
        };
        Ok(number.filter(|number| is_before(*number)).map(Some))
    }

    /// The answer about a transaction that is not here, and is in the first block or before it.
    fn transaction_before(
        &self,
        fork: &ForkPoint,
        method: &str,
        params: Vec<Value>,
    ) -> Result<Option<Json>, Error> {
        let hash = params.first().map(ToString::to_string);
        let hash = hash.and_then(|hash| read_json::<FixedData<32>>(&hash).ok());
        let Some(hash) = hash.map(B256::from) else { return Ok(None) };
        let is_here = matches!(self.engine.find_transaction(&hash), Ok(Some(_)));
        if is_here || self.waiting(hash).is_some() {
            return Ok(None);
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Found {
            block_number: Option<U64>,
        }
        let found: Option<Found> = called(fork, "eth_getTransactionByHash", json!([hash]))?;
        let number = found.and_then(|found| found.block_number);
        match number.is_some_and(|number| number.to::<u64>() <= fork.header.number) {
            true => ask(fork, method, params).map(Some),
            false => Ok(None),
        }
    }

    /// The logs of a range that begins before the second block; those of later blocks are from
    /// here.
    fn logs_before(
        &self,
        fork: &ForkPoint,
        params: &mut Vec<Value>,
    ) -> Result<Option<Json>, Error> {
        let first = fork.header.number;
        let Some(filter) = params.first_mut().and_then(Value::as_object_mut) else {
            return Ok(None);
        };
        if let Some(hash) = filter.get("blockHash").filter(|hash| !hash.is_null()) {
            let Ok(id) = read_json::<BlockId>(&hash.to_string()) else { return Ok(None) };
            return match self.is_before(fork, &id, Needs::Body)? {
                Some(_) => ask(fork, "eth_getLogs", std::mem::take(params)).map(Some),
                None => Ok(None),
            };
        }
        let end = |name: &str| {
            let Some(given) = filter.get(name).filter(|given| !given.is_null()) else {
                return Ok(Some(BlockId::Number(NumberOrTag::Latest)));
            };
            Ok::<_, Error>(read_json::<BlockId>(&given.to_string()).ok())
        };
        let (Some(from), Some(to)) = (end("fromBlock")?, end("toBlock")?) else { return Ok(None) };
        let Some(Some(from)) = self.is_before(fork, &from, Needs::Body)? else { return Ok(None) };
        let whole = self.is_before(fork, &to, Needs::Body)?.flatten();
        let local_to = filter.get("toBlock").cloned();
        filter.insert("fromBlock".into(), json!(U64::from(from)));
        filter.insert("toBlock".into(), json!(U64::from(whole.unwrap_or(first))));
        let before = ask(fork, "eth_getLogs", vec![Value::Object(filter.clone())])?;
        if whole.is_some() {
            return Ok(Some(before));
        }
        filter.insert("fromBlock".into(), json!(U64::from(first + 1)));
        filter.insert("toBlock".into(), local_to.unwrap_or(Value::Null));
        let local = serde_json::value::to_raw_value(params);
        let local = local.map_err(|fault| Error::new(Code::Internal, fault))?;
        let after = super::logs::logs(self, Params::of(Some(&local))?)?;
        joined(&before, &after).map(Some)
    }
}

/// Two lists as one.
fn joined(before: &Json, after: &Json) -> Result<Json, Error> {
    let list = |json: &Json| serde_json::from_slice::<Vec<Box<RawValue>>>(&json.to_vec());
    let both = list(before).and_then(|mut both| {
        both.extend(list(after)?);
        Ok(both)
    });
    Json::of(&both.map_err(|fault| Error::new(Code::Server, fault))?)
}

/// The number of a block that the endpoint knows.
fn number_of(fork: &ForkPoint, hash: B256) -> Result<Option<u64>, Error> {
    #[derive(Deserialize)]
    struct Found {
        number: U64,
    }
    let found: Option<Found> = called(fork, "eth_getBlockByHash", json!([hash, false]))?;
    Ok(found.map(|found| found.number.to()))
}

fn called<T: serde::de::DeserializeOwned>(
    fork: &ForkPoint,
    method: &str,
    params: Value,
) -> Result<T, Error> {
    fork.endpoint.call(method, &params).map_err(|reason| Error::new(Code::Server, reason))
}

fn ask(fork: &ForkPoint, method: &str, params: Vec<Value>) -> Result<Json, Error> {
    Ok(fork.endpoint.forward(method, &Value::Array(params))?.into_bytes().into())
}
