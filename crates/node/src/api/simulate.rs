//! `eth_simulateV1`: calls in blocks that become part of no chain.

use alloy_consensus::Transaction as _;
use alloy_primitives::{Bytes, U64, hex};
use alloy_rpc_types_eth::{BlockTransactions, Log};
use engine_api::json::{Entries, List, Object};
use execution::{
    BlockCalls, CallOutcome, Refusal, RefusalKind, SimulatedBlock, SimulatedCall, Simulation,
    SimulationOptions, revert_reason,
};
use rpc::{Code, Error, Json, Params, Pieces, RawValue};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::blocks::BlockId;
use super::call::{Overridden, OverriddenBlock, ReadBlock, Request, overrides};
use super::eth::{RpcBlock, shown_block};
use super::{Api, state};
use crate::limits::{
    BLOCK_CALLS, OVERRIDDEN_ACCOUNTS, SIMULATED_BLOCKS, SIMULATED_CALLS, SIMULATED_SLOTS,
    SIMULATION_BYTES,
};

/// The request.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SimulationRequest<'a> {
    #[serde(borrow)]
    block_state_calls: List<&'a RawValue, { 16 * SIMULATED_BLOCKS }>,
    #[serde(default)]
    trace_transfers: bool,
    #[serde(default)]
    validation: bool,
    #[serde(default)]
    return_full_transactions: bool,
}

/// One of its blocks.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SimulationBlock {
    block_overrides: Option<Object<OverriddenBlock>>,
    state_overrides: Option<Overridden>,
    calls: Option<List<Object<Request>, { SIMULATED_CALLS + 1 }>>,
}

/// `eth_simulateV1`.
pub(super) fn simulate(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let deadline = api.bounds.deadline();
    let Object(asked): Object<SimulationRequest<'_>> = params.next("simulation")?;
    let id: Option<BlockId> = params.optional("block")?;
    params.end()?;
    let blocks = read_blocks(api, &asked.block_state_calls.0)?;
    let Some(at) = api.state_at(&state::of_state(id))? else {
        return Err(Error::failed_call("header not found".into()));
    };
    let options = SimulationOptions {
        traces_transfers: asked.trace_transfers,
        validates: asked.validation,
        gas: api.bounds.gas,
        bytes: SIMULATION_BYTES,
        deadline,
    };
    let simulated = api.engine.simulate(at, blocks, options);
    match simulated.map_err(|error| api.call_refusal(error))? {
        Simulation::Refused(refusal) => Err(refused(refusal)),
        Simulation::Done(blocks) => shown(blocks, asked.return_full_transactions),
    }
}

/// Reads the blocks one by one, so that no more is held than counts.
fn read_blocks(api: &Api, asked: &[&RawValue]) -> Result<Vec<BlockCalls>, Error> {
    if asked.is_empty() {
        return Err(Error::of_call(Code::InvalidParams, "empty input".into()));
    }
    let limit = |reason: String| Err(Error::of_call(Code::ClientLimit, reason));
    if asked.len() > SIMULATED_BLOCKS {
        return limit("too many blocks".into());
    }
    let (mut calls_count, mut accounts_count, mut slots_count) = (0, 0, 0);
    let mut blocks = Vec::with_capacity(asked.len());
    for (index, text) in asked.iter().enumerate() {
        let block: Object<SimulationBlock> = serde_json::from_str(text.get()).map_err(|fault| {
            Error::invalid_params(format!("params[0].blockStateCalls[{index}]: {fault}"))
        })?;
        let Object(SimulationBlock { block_overrides, state_overrides, calls }) = block;
        let calls = calls.map_or_else(Vec::new, |List(calls)| calls);
        if calls.len() > BLOCK_CALLS {
            let reason = format!("too many calls in block: {} > {BLOCK_CALLS}", calls.len());
            return limit(reason);
        }
        calls_count += calls.len();
        if calls_count > SIMULATED_CALLS {
            return limit(format!("too many calls: {calls_count} > {SIMULATED_CALLS}"));
        }
        let accounts = state_overrides.map_or_else(Vec::new, |Entries(accounts)| accounts);
        accounts_count += accounts.len();
        if accounts_count > OVERRIDDEN_ACCOUNTS {
            return limit(format!("more than {OVERRIDDEN_ACCOUNTS} accounts are overridden"));
        }
        slots_count += accounts.iter().map(|(_, Object(it))| it.slots_count()).sum::<usize>();
        if slots_count > SIMULATED_SLOTS {
            return limit(format!("more than {SIMULATED_SLOTS} slots are overridden"));
        }
        let nothing = || Ok(ReadBlock::default());
        let in_block = block_overrides.map_or_else(nothing, |Object(block)| block.read_all())?;
        let ReadBlock { block, beacon_root, withdrawals } = in_block;
        let chain_id = api.engine.chain().chain_id();
        let calls = calls.into_iter().map(|Object(call)| call.call(chain_id));
        let (calls, state) = (calls.collect::<Result<_, _>>()?, overrides(accounts)?);
        blocks.push(BlockCalls { block, beacon_root, withdrawals, state, calls });
    }
    Ok(blocks)
}

fn refused(Refusal { kind, reason }: Refusal) -> Error {
    let code = match kind {
        RefusalKind::NonceTooLow => Code::NonceTooLow,
        RefusalKind::NonceTooHigh => Code::NonceTooHigh,
        RefusalKind::FeeTooLow => Code::BaseFeeTooLow,
        RefusalKind::IntrinsicGas => Code::IntrinsicGas,
        RefusalKind::Funds => Code::InsufficientFunds,
        RefusalKind::BlockGas => Code::BlockGasLimit,
        RefusalKind::BlockNumber => Code::BlockNumbers,
        RefusalKind::BlockTime => Code::BlockTimes,
        RefusalKind::InitCode => Code::InitCodeSize,
        RefusalKind::Params => Code::InvalidParams,
        RefusalKind::Limit => Code::ClientLimit,
        RefusalKind::Transaction => Code::Internal,
        RefusalKind::Other => Code::Server,
    };
    Error::of_call(code, reason)
}

/// A block of the answer.
#[derive(Serialize)]
struct ShownBlock {
    #[serde(flatten)]
    block: RpcBlock,
    calls: Vec<ShownCall>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ShownCall {
    return_data: Bytes,
    logs: Vec<Log>,
    gas_used: U64,
    max_used_gas: U64,
    status: U64,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<CallError>,
}

#[derive(Serialize)]
struct CallError {
    message: String,
    code: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<String>,
}

/// The code of a call that failed while it ran.
const FAILED: i64 = -32015;

/// The blocks are rendered one by one: as values they take more memory.
fn shown(blocks: Vec<SimulatedBlock>, full: bool) -> Result<Json, Error> {
    let mut answer = Pieces::from(vec![b'[']);
    for (index, block) in blocks.into_iter().enumerate() {
        let mut text = if index == 0 { Vec::new() } else { vec![b','] };
        let has_legacy = block.block.body.transactions.iter().any(|one| one.is_legacy());
        let block = shown_calls(block, full);
        let written = match full && has_legacy {
            true => serde_json::to_writer(&mut text, &without_signatures(&block)?),
            false => serde_json::to_writer(&mut text, &block),
        };
        written.map_err(|fault| Error::new(Code::Internal, fault))?;
        answer.push(text);
    }
    answer.push(vec![b']']);
    Ok(answer.into())
}

/// A transaction of the first type without a signature has a `v` of zero, of which geth makes this
/// chain's identifier.
fn without_signatures(block: &ShownBlock) -> Result<Value, Error> {
    let internal = |fault: serde_json::Error| Error::new(Code::Internal, fault);
    let mut block = serde_json::to_value(block).map_err(internal)?;
    let transactions = block["transactions"].as_array_mut().into_iter().flatten();
    for transaction in transactions.filter(|transaction| transaction["type"] == "0x0") {
        transaction["v"] = json!("0x0");
        transaction["chainId"] = json!("0x7fffffffffffffee");
    }
    Ok(block)
}

fn shown_calls(simulated: SimulatedBlock, full: bool) -> ShownBlock {
    let SimulatedBlock { block, senders, calls } = simulated;
    let mut shown = shown_block(&block, &senders, full);
    if let BlockTransactions::Full(transactions) = &mut shown.transactions {
        for one in transactions {
            // Where gas is free the fee is below the base fee, which no block has.
            let most = one.inner.max_fee_per_gas();
            one.effective_gas_price = one.effective_gas_price.map(|price| price.min(most));
        }
    }
    let calls = calls.into_iter().zip(&block.body.transactions).zip(0..);
    let calls = calls.map(|((call, transaction), index)| {
        let log = |log: execution::SimulatedLog| Log {
            inner: log.log,
            block_hash: Some(block.hash()),
            block_number: Some(block.header.number),
            block_timestamp: Some(block.header.timestamp),
            transaction_hash: Some(*transaction.hash()),
            transaction_index: Some(index),
            log_index: Some(log.index),
            removed: false,
        };
        shown_call(call, log)
    });
    let calls = calls.collect();
    ShownBlock { block: shown, calls }
}

fn shown_call(call: SimulatedCall, log: impl Fn(execution::SimulatedLog) -> Log) -> ShownCall {
    let SimulatedCall { outcome, gas_used, most_gas_used, logs, is_capped } = call;
    let (return_data, error) = match outcome {
        CallOutcome::Returned(output) => (output, None),
        CallOutcome::Reverted(output) => {
            let reason = revert_reason(&output).map(|reason| format!(": {reason}"));
            let message = format!("execution reverted{}", reason.unwrap_or_default());
            let data = Some(hex::encode_prefixed(output));
            (Bytes::new(), Some(CallError { message, code: 3, data }))
        }
        CallOutcome::Halted(mut message) | CallOutcome::Refused(mut message) => {
            if is_capped {
                message.push_str(" (gas limit was capped by the RPC server's global gas cap)");
            }
            (Bytes::new(), Some(CallError { message, code: FAILED, data: None }))
        }
    };
    ShownCall {
        return_data,
        logs: logs.into_iter().map(log).collect(),
        gas_used: U64::from(gas_used),
        max_used_gas: U64::from(most_gas_used),
        status: U64::from(u64::from(error.is_none())),
        error,
    }
}
