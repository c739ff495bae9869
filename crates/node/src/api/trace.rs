//! `debug_trace*`: calls, and transactions run again, under a tracer. Words of errors are geth's.

use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::B256;
use engine::{BlockRecord, PendingBlock, StateAt};
use engine_api::json::{Data, FixedData, Object};
use execution::{Deadline, TraceOptions, Traced, TracerConfig, decode_block, recover_senders};
use rpc::{Code, Error, Json, Params, Pieces};

use super::blocks::{AnyBlock, BlockId, NumberOrTag};
use super::trace_config::TraceConfig;
use super::trace_turns::TraceTurn;
use super::transactions::whole;
use super::{Api, call as calls, refusal};
use crate::call_bounds::deadline;
use crate::limits::EVM_TRACE_BYTES;
use crate::receipts::Contents;

/// `debug_traceTransaction`: of a transaction in a canonical block.
pub(super) fn transaction(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let hash: FixedData<32> = params.next("transaction hash")?;
    let config = config(params)?;
    let found = api.engine.find_transaction(&hash.into()).map_err(refusal)?;
    let Some((record, index)) = found else {
        return Err(Error::failed_call("transaction not found".into()));
    };
    let answers = traced(api, &AnyBlock::Valid(record), Some(index), &config)?;
    let answer = answers.into_iter().next();
    let answer = answer.ok_or_else(|| Error::new(Code::Internal, "no transaction was traced"))?;
    Ok(json(answer))
}

/// `debug_traceBlockByHash`: of a block of any branch.
pub(super) fn block_by_hash(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let hash: FixedData<32> = params.next("block hash")?;
    let config = config(params)?;
    let hash = B256::from(hash);
    let record = api.block(hash)?;
    let record = record.ok_or_else(|| Error::failed_call(format!("block {hash} not found")))?;
    let block = AnyBlock::Valid(record);
    Ok(all(block.contents(), traced(api, &block, None, &config)?))
}

/// `debug_traceBlockByNumber`: of a block of the chain, or of the pending one.
pub(super) fn block_by_number(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let id: NumberOrTag = params.next("block")?;
    let config = config(params)?;
    let block = api.any_block(&BlockId::Number(id))?;
    let block = block.ok_or_else(|| {
        Error::failed_call(match id {
            NumberOrTag::Number(number) => format!("block #{number} not found"),
            other => format!("there is no {}", BlockId::Number(other)),
        })
    })?;
    Ok(all(block.contents(), traced(api, &block, None, &config)?))
}

/// `debug_traceBlock`: of a block that is given, on the state after its parent.
pub(super) fn block(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let Data(rlp) = params.next("block")?;
    let config = config(params)?;
    let invalid = |reason| Error::failed_call(format!("could not decode block: {reason}"));
    let block = decode_block(&rlp).map_err(invalid)?;
    if block.header.number == 0 {
        return Err(Error::failed_call("genesis is not traceable".into()));
    }
    let parent = block.header.parent_hash;
    if api.block(parent)?.is_none() {
        return Err(Error::failed_call(format!("block {parent} not found")));
    }
    let senders = recover_senders(&block.body.transactions).map_err(invalid)?;
    let (_turn, options) = begun(api, &config)?;
    let traced = api.engine.trace_block(&block, &senders, None, &options).map_err(refusal)?;
    let hashes: Vec<_> = block.body.transactions.iter().map(|it| *it.hash()).collect();
    Ok(list(&hashes, done(traced)?))
}

/// `debug_traceCall`: of a call after any kept block.
pub(super) fn call(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let call = calls::called(api, &mut params, api.bounds.gas)?;
    let id: Option<BlockId> = params.optional("block")?;
    let config: Option<Object<TraceConfig<'_>>> = params.optional("configuration")?;
    params.end()?;
    let mut config = config.map_or_else(TraceConfig::default, |Object(config)| config);
    if matches!(id, Some(BlockId::Number(NumberOrTag::Pending))) {
        let reason = "tracing on top of pending is not supported";
        return Err(Error::failed_call(reason.into()));
    }
    let id = id.unwrap_or(BlockId::Number(NumberOrTag::Latest));
    let record = api.block_by_id(&id)?;
    let record = record.ok_or_else(|| Error::failed_call(format!("there is no {id}")))?;
    let overrides = config.overrides()?;
    let (_turn, mut options) = begun(api, &config)?;
    let at = match config.index() {
        Some(index) => {
            let part = part(api, &record, index, &options.deadline)?;
            options.first_log = part.logs;
            StateAt::Pending(part)
        }
        None => record.hash().into(),
    };
    let traced = api.engine.trace_call(at, &call, &overrides, &options);
    done(traced.map_err(refusal)?).map(json)
}

/// A block up to the transaction at an index, in geth's words where there is none.
fn part(
    api: &Api,
    record: &Arc<BlockRecord>,
    index: u64,
    deadline: &Deadline,
) -> Result<Arc<PendingBlock>, Error> {
    if record.number() == 0 {
        return Err(Error::failed_call("no transaction in genesis".into()));
    }
    whole(Some(record.clone()))?;
    let count = record.block.body.transactions.len();
    let within = usize::try_from(index).ok().filter(|index| *index < count.max(1));
    let within = within.ok_or_else(|| {
        let hash = record.hash();
        Error::failed_call(format!("transaction index {index} out of range for block {hash}"))
    })?;
    done(api.engine.part_of_block(record, within, deadline).map_err(refusal)?)
}

/// The configuration, the last parameter.
fn config(mut params: Params<'_>) -> Result<TraceConfig<'_>, Error> {
    let config: Option<Object<TraceConfig<'_>>> = params.optional("configuration")?;
    params.end()?;
    let config = config.map_or_else(TraceConfig::default, |Object(config)| config);
    config.refuse_overrides()?;
    Ok(config)
}

/// Waits for a turn, from which on the time counts.
fn begun(api: &Api, config: &TraceConfig<'_>) -> Result<(TraceTurn, TraceOptions), Error> {
    begin(api, config.tracer()?, config.time()?)
}

/// Waits for a turn of a tracer, which may run so long, or as long as all calls.
pub(super) fn begin(
    api: &Api,
    tracer: TracerConfig,
    time: Option<Duration>,
) -> Result<(TraceTurn, TraceOptions), Error> {
    let turn = TraceTurn::take()?;
    let deadline = time.map_or_else(|| api.bounds.deadline(), deadline);
    Ok((turn, TraceOptions { tracer, first_log: 0, deadline, bytes: EVM_TRACE_BYTES }))
}

/// Traces a transaction of a block, or all.
fn traced(
    api: &Api,
    block: &AnyBlock,
    index: Option<usize>,
    config: &TraceConfig<'_>,
) -> Result<Vec<String>, Error> {
    let Contents { block: traced, senders, .. } = block.contents();
    if traced.header.number == 0 {
        return Err(Error::failed_call("genesis is not traceable".into()));
    }
    whole(block.record().cloned())?;
    let (_turn, options) = begun(api, config)?;
    let traced = api.engine.trace_block(traced, &senders, index, &options);
    done(traced.map_err(refusal)?)
}

pub(super) fn done<T>(traced: Traced<T>) -> Result<T, Error> {
    match traced {
        Traced::Done(answer) => Ok(answer),
        Traced::Refused(reason) => Err(Error::failed_call(format!("tracing failed: {reason}"))),
        Traced::OutOfTime => Err(Error::failed_call("execution timeout".into())),
        Traced::TooLong => {
            let most = EVM_TRACE_BYTES >> 20;
            let detail = format!(
                "the answer has more than {most} MiB; leave out memory, stack and storage, set \
                 limit, choose another tracer, or ask for fewer blocks"
            );
            Err(Error::new(Code::LimitExceeded, detail))
        }
    }
}

pub(super) fn json(answer: String) -> Json {
    Pieces::from(answer.into_bytes()).into()
}

/// The answers to a block's transactions.
fn all(contents: Contents<'_>, answers: Vec<String>) -> Json {
    let hashes: Vec<_> = contents.block.body.transactions.iter().map(|it| *it.hash()).collect();
    list(&hashes, answers)
}

fn list(hashes: &[B256], answers: Vec<String>) -> Json {
    let mut pieces = Pieces::from(vec![b'[']);
    for (index, (hash, answer)) in hashes.iter().zip(answers).enumerate() {
        let comma = if index == 0 { "" } else { "," };
        pieces.push(format!("{comma}{{\"txHash\":\"{hash}\",\"result\":").into_bytes());
        pieces.push(answer.into_bytes());
        pieces.push(vec![b'}']);
    }
    pieces.push(vec![b']']);
    pieces.into()
}
