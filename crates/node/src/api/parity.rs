//! `trace_*`, OpenEthereum's module: what transactions do, as lists of calls, changes of the state
//! and instructions. The shapes are those of reth.

use std::sync::Arc;

use ::pool::decode;
use alloy_primitives::{Address, B256, U256};
use engine::BlockRecord;
use engine_api::json::{Data, FixedData, List, Object};
use execution::{
    BlockReward, ParityTypes, TraceFilter, TraceOptions, TracedCall, TracerConfig, block_rewards,
    recover_signer,
};
use rpc::{Code, Error, Json, Params, Pieces};
use serde::Deserialize;
use serde_json::json;

use super::blocks::{BlockId, NumberOrTag};
use super::call::{self as calls, Overridden, OverriddenBlock, Request, overridden};
use super::lenient::HexOrDecimal;
use super::trace::{begin, done, json};
use super::transactions::{hash, whole};
use super::{Api, refusal, state};
use crate::limits::{EVM_TRACE_BYTES, FILTER_ENTRIES, TRACED_BLOCKS, TRACED_CALLS};

/// The types of traces that are asked for.
struct Types(ParityTypes);

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
enum TraceType {
    Trace,
    StateDiff,
    VmTrace,
}

impl<'de> Deserialize<'de> for Types {
    fn deserialize<D: serde::Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        let List(types) = List::<TraceType, 16>::deserialize(json)?;
        Ok(Self(ParityTypes {
            trace: types.contains(&TraceType::Trace),
            state_diff: types.contains(&TraceType::StateDiff),
            vm_trace: types.contains(&TraceType::VmTrace),
        }))
    }
}

/// `trace_block`: the traces of a block, one after the other.
pub(super) fn block(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let id: BlockId = params.next("block")?;
    params.end()?;
    let record = named(api, &id)?;
    let mut answer = Traces::new(0, usize::MAX);
    let (_turn, options) = begin(api, TracerConfig::Traces(TraceFilter::default()), None)?;
    answer.add_block(api, &record, &TraceFilter::default(), options)?;
    Ok(answer.finish())
}

/// `trace_transaction`: the traces of a transaction in a canonical block; `null` where there is
/// none.
pub(super) fn transaction(api: &Api, params: Params<'_>) -> Result<Json, Error> {
    let found = api.engine.find_transaction(&hash(params)?).map_err(refusal)?;
    let Some((record, index)) = found else { return Json::of(&()) };
    let mut answer = Traces::new(0, usize::MAX);
    answer.add_all(&traces_of(api, &record, index)?);
    Ok(answer.finish())
}

/// `trace_get`: the trace of a transaction at an address; `null` where there is none.
pub(super) fn get(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let hash: FixedData<32> = params.next("transaction hash")?;
    let List(address): List<HexOrDecimal, 1_024> = params.next("trace address")?;
    params.end()?;
    let found = api.engine.find_transaction(&hash.into()).map_err(refusal)?;
    let Some((record, index)) = found else { return Json::of(&()) };
    let address: Vec<u64> = address.into_iter().map(|HexOrDecimal(place)| place).collect();
    let traces = traces_of(api, &record, index)?;
    for line in traces.lines() {
        let trace: Addressed = serde_json::from_str(line)
            .map_err(|fault| Error::new(Code::Internal, format!("a trace is no JSON: {fault}")))?;
        if trace.trace_address == address {
            return Ok(json(line.to_owned()));
        }
    }
    Json::of(&())
}

/// A trace, as far as it says where it is.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Addressed {
    trace_address: Vec<u64>,
}

/// The traces of a transaction, a line each.
fn traces_of(api: &Api, record: &Arc<BlockRecord>, index: usize) -> Result<String, Error> {
    one(traced(api, record, Some(index), TracerConfig::Traces(TraceFilter::default()))?)
}

/// The filter of `trace_filter`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct TraceQuery {
    from_block: Option<NumberOrTag>,
    to_block: Option<NumberOrTag>,
    from_address: Option<List<FixedData<20>, FILTER_ENTRIES>>,
    to_address: Option<List<FixedData<20>, FILTER_ENTRIES>>,
    mode: Option<Mode>,
    after: Option<HexOrDecimal>,
    count: Option<HexOrDecimal>,
}

/// Whether both lists of addresses are to fit, or one of them is enough.
#[derive(Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
enum Mode {
    Union,
    Intersection,
}

/// `trace_filter`: the traces of canonical blocks between those accounts.
pub(super) fn filter(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let Object(asked): Object<TraceQuery> = params.next("filter")?;
    params.end()?;
    let from = bound(api, asked.from_block.unwrap_or(NumberOrTag::Earliest))?;
    let to = bound(api, asked.to_block.unwrap_or(NumberOrTag::Latest))?;
    if from > to {
        return Err(Error::invalid_params(format!(
            "fromBlock is {from}, after toBlock, which is {to}"
        )));
    }
    if to - from >= TRACED_BLOCKS {
        let blocks = to - from + 1;
        return Err(Error::invalid_params(format!(
            "the range has {blocks} blocks, at most {TRACED_BLOCKS} are allowed"
        )));
    }
    let addresses = |list: Option<List<FixedData<20>, FILTER_ENTRIES>>| {
        let list = list.map_or_else(Vec::new, |List(list)| list);
        list.into_iter().map(Address::from).collect()
    };
    let filter = TraceFilter {
        from: addresses(asked.from_address),
        to: addresses(asked.to_address),
        is_union: asked.mode == Some(Mode::Union),
    };
    let number = |given: Option<HexOrDecimal>, default| {
        given.map_or(default, |HexOrDecimal(number)| usize::try_from(number).unwrap_or(usize::MAX))
    };
    let mut answer = Traces::new(number(asked.after, 0), number(asked.count, usize::MAX));
    let (_turn, options) = begin(api, TracerConfig::Traces(filter.clone()), None)?;
    for number in from..=to {
        if answer.is_full() {
            break;
        }
        let id = BlockId::Number(NumberOrTag::Number(number));
        let bytes = EVM_TRACE_BYTES.saturating_sub(answer.bytes);
        let options = TraceOptions { bytes, ..options.clone() };
        answer.add_block(api, &named(api, &id)?, &filter, options)?;
    }
    Ok(answer.finish())
}

/// The number of the block at an end of the range, which there has to be.
fn bound(api: &Api, id: NumberOrTag) -> Result<u64, Error> {
    Ok(named(api, &BlockId::Number(id))?.number())
}

/// `trace_call`: of a call after any kept block.
pub(super) fn call(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let call = calls::called(api, &mut params, api.bounds.gas)?;
    let Types(types) = params.next("trace types")?;
    let id: Option<BlockId> = params.optional("block")?;
    let overrides: Option<Overridden> = params.optional("state overrides")?;
    let in_block: Option<Object<OverriddenBlock>> = params.optional("block overrides")?;
    params.end()?;
    let overrides = overridden(overrides, in_block)?;
    let record = of_state(api, id)?;
    let (_turn, options) = begin(api, TracerConfig::Parity(types), None)?;
    let traced = api.engine.trace_call(record.hash(), &call, &overrides, &options);
    done(traced.map_err(refusal)?).map(json)
}

/// `trace_callMany`: of calls after any kept block, each on what those before it have changed.
pub(super) fn call_many(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let List(asked): List<(Object<Request>, Types), TRACED_CALLS> = params.next("calls")?;
    let id: Option<BlockId> = params.optional("block")?;
    params.end()?;
    let chain_id = api.engine.chain().chain_id();
    let calls = asked.into_iter().map(|(Object(request), Types(types))| {
        let unsigned = request.call(chain_id)?;
        let call = calls::with_gas(unsigned, api.bounds.gas, api.bounds.gas);
        Ok((TracedCall::Call(Box::new(call)), TracerConfig::Parity(types)))
    });
    let calls = calls.collect::<Result<Vec<_>, Error>>()?;
    let answers = after(api, id, &calls)?;
    let mut list = Pieces::from(vec![b'[']);
    for (index, answer) in answers.into_iter().enumerate() {
        if index > 0 {
            list.push(vec![b',']);
        }
        list.push(answer.into_bytes());
    }
    list.push(vec![b']']);
    Ok(list.into())
}

/// `trace_rawTransaction`: of a signed transaction after any kept block, which is not sent.
pub(super) fn raw_transaction(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let Data(bytes) = params.next("transaction")?;
    let Types(types) = params.next("trace types")?;
    let id: Option<BlockId> = params.optional("block")?;
    params.end()?;
    let sent = decode(&bytes).map_err(|refusal| Error::new(Code::Server, refusal).in_message())?;
    let signer = recover_signer(0, &sent.transaction)
        .map_err(|fault| Error::failed_call(format!("invalid sender: {fault}")))?;
    let traced = TracedCall::Signed(Box::new(sent.transaction), signer.address);
    let answers = after(api, id, &[(traced, TracerConfig::Parity(types))])?;
    one(answers).map(json)
}

/// Traces calls after a block.
fn after(
    api: &Api,
    id: Option<BlockId>,
    calls: &[(TracedCall, TracerConfig)],
) -> Result<Vec<String>, Error> {
    let record = of_state(api, id)?;
    let (_turn, options) = begin(api, TracerConfig::Noop, None)?;
    let bounds = (&options.deadline, options.bytes);
    done(api.engine.trace_calls(record.hash(), calls, bounds).map_err(refusal)?)
}

/// `trace_replayTransaction`: of a transaction in a canonical block.
pub(super) fn replay_transaction(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let hash: FixedData<32> = params.next("transaction hash")?;
    let Types(types) = params.next("trace types")?;
    params.end()?;
    let found = api.engine.find_transaction(&hash.into()).map_err(refusal)?;
    let Some((record, index)) = found else {
        return Err(Error::failed_call("transaction not found".into()));
    };
    one(traced(api, &record, Some(index), TracerConfig::Parity(types))?).map(json)
}

/// `trace_replayBlockTransactions`: of all transactions of a block.
pub(super) fn replay_block(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let id: BlockId = params.next("block")?;
    let Types(types) = params.next("trace types")?;
    params.end()?;
    let record = named(api, &id)?;
    let answers = traced(api, &record, None, TracerConfig::Parity(types))?;
    let mut list = Pieces::from(vec![b'[']);
    let transactions = record.block.body.transactions.iter();
    for (index, (mut answer, transaction)) in answers.into_iter().zip(transactions).enumerate() {
        if index > 0 {
            list.push(vec![b',']);
        }
        // The answer is an object.
        answer.pop();
        list.push(answer.into_bytes());
        list.push(format!(",\"transactionHash\":\"{}\"}}", transaction.hash()).into_bytes());
    }
    list.push(vec![b']']);
    Ok(list.into())
}

/// The block that a parameter names, which there has to be.
fn named(api: &Api, id: &BlockId) -> Result<Arc<BlockRecord>, Error> {
    let record = api.block_by_id(id)?;
    record.ok_or_else(|| Error::failed_call(format!("{id} not found")))
}

/// The block after which calls are traced.
fn of_state(api: &Api, id: Option<BlockId>) -> Result<Arc<BlockRecord>, Error> {
    let record = state::record(api, id)?;
    record.ok_or_else(|| Error::failed_call("header not found".into()))
}

/// Traces a transaction of a known block, or all.
fn traced(
    api: &Api,
    record: &Arc<BlockRecord>,
    index: Option<usize>,
    tracer: TracerConfig,
) -> Result<Vec<String>, Error> {
    let (_turn, options) = begin(api, tracer, None)?;
    run(api, record, index, &options)
}

/// Runs a transaction of a known block again, or all; genesis has none.
fn run(
    api: &Api,
    record: &Arc<BlockRecord>,
    index: Option<usize>,
    options: &TraceOptions,
) -> Result<Vec<String>, Error> {
    if record.number() == 0 {
        return Ok(Vec::new());
    }
    whole(Some(record.clone()))?;
    let traced = api.engine.trace_block(&record.block, &record.senders, index, options);
    done(traced.map_err(refusal)?)
}

/// The only answer.
fn one(answers: Vec<String>) -> Result<String, Error> {
    let answer = answers.into_iter().next();
    answer.ok_or_else(|| Error::new(Code::Internal, "no transaction was traced"))
}

/// A list of traces.
struct Traces {
    /// How many are left out first.
    after: usize,
    /// How many there may be yet.
    left: usize,
    answer: Pieces,
    is_empty: bool,
    bytes: usize,
}

impl Traces {
    fn new(after: usize, count: usize) -> Self {
        Self { after, left: count, answer: Pieces::from(vec![b'[']), is_empty: true, bytes: 0 }
    }

    const fn is_full(&self) -> bool {
        self.left == 0
    }

    /// Adds the traces of a block, and those of its rewards.
    fn add_block(
        &mut self,
        api: &Api,
        record: &Arc<BlockRecord>,
        filter: &TraceFilter,
        options: TraceOptions,
    ) -> Result<(), Error> {
        for traces in run(api, record, None, &options)? {
            self.add_all(&traces);
        }
        for reward in rewards(api, record, filter) {
            self.add_all(&reward);
        }
        Ok(())
    }

    /// Adds traces, a line each.
    fn add_all(&mut self, traces: &str) {
        let lines = traces.lines().count();
        let skipped = lines.min(self.after);
        self.after -= skipped;
        let taken = (lines - skipped).min(self.left);
        self.left -= taken;
        let mut piece = Vec::with_capacity(traces.len());
        for line in traces.lines().skip(skipped).take(taken) {
            if !self.is_empty {
                piece.push(b',');
            }
            self.is_empty = false;
            piece.extend(line.as_bytes());
        }
        self.bytes += piece.len();
        self.answer.push(piece);
    }

    fn finish(mut self) -> Json {
        self.answer.push(vec![b']']);
        self.answer.into()
    }
}

/// The traces of what was paid for a block and its ommers, before the merge. Nothing was paid for
/// genesis.
fn rewards(api: &Api, record: &BlockRecord, filter: &TraceFilter) -> Vec<String> {
    if record.number() == 0 {
        return Vec::new();
    }
    let paid = block_rewards(api.engine.chain(), &record.block).into_iter();
    let wanted = paid.filter(|reward| filter.passes(None, Some(reward.author)));
    wanted.map(|reward| reward_trace(&reward, record.hash(), record.number())).collect()
}

fn reward_trace(reward: &BlockReward, block_hash: B256, block_number: u64) -> String {
    let kind = if reward.is_of_ommer { "uncle" } else { "block" };
    json!({
        "action": {
            "author": reward.author, "rewardType": kind, "value": U256::from(reward.value),
        },
        "blockHash": block_hash,
        "blockNumber": block_number,
        "result": null,
        "subtraces": 0,
        "traceAddress": [],
        "transactionHash": null,
        "transactionPosition": null,
        "type": "reward",
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_rpc_types_trace::parity::LocalizedTransactionTrace;

    #[test]
    fn alloys_types_read_rewards_and_write_the_same() {
        for is_of_ommer in [false, true] {
            let reward =
                BlockReward { author: Address::repeat_byte(1), is_of_ommer, value: 5 << 60 };
            let shown = reward_trace(&reward, B256::repeat_byte(2), 7);
            let read: LocalizedTransactionTrace = serde_json::from_str(&shown).expect("a trace");
            let shown: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
            assert_eq!(json!(read), shown);
        }
    }
}
