//! Runs under a tracer: of a call, and of transactions in their block.

use crate::cache::BlockCache;
use crate::call::{GasCap, Ran, Site};
use crate::evm::{environment, evm};
use crate::execute::{self, Executor, Receipts};
use crate::recorder::{Recorder, TransactionCodes};
use crate::rules::BlockRules;
use crate::steps::logs_of;
use crate::trace::{Place, TraceOptions, TraceStop, TracerConfig, TransactionEnd};
use crate::{
    BlockError, Call, CallError, ChainSpec, Deadline, Overrides, SealedBlock, Senders, Transaction,
};
use alloy_consensus::{Header, Transaction as _};
use alloy_evm::block::BlockExecutor as _;
use alloy_evm::eth::EthBlockExecutor;
use alloy_evm::{Evm, FromRecoveredTx as _};
use alloy_primitives::Address;
use revm::DatabaseCommit;
use revm::context::TxEnv;
use revm::context_interface::result::InvalidTransaction;
use revm::inspector::NoOpInspector;
use std::borrow::Cow;
use witness::State;

/// How a run under a tracer ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Traced<T> {
    /// The tracer's answer.
    Done(T),
    /// The call could not begin, for this reason in geth's words, or the block is invalid.
    Refused(String),
    /// Its time was over.
    OutOfTime,
    /// The answer has too many bytes.
    TooLong,
}

impl<T> From<TraceStop> for Traced<T> {
    fn from(stop: TraceStop) -> Self {
        match stop {
            TraceStop::Time => Self::OutOfTime,
            TraceStop::Bytes => Self::TooLong,
        }
    }
}

/// Makes a call under a tracer, as [`call()`](crate::call()) makes it. The answer is JSON.
///
/// # Errors
/// [`BlockError::State`] when the state cannot answer, and [`BlockError::Internal`].
pub fn trace_call<S: State>(
    chain: &ChainSpec,
    header: &Header,
    call: &Call,
    overrides: &Overrides,
    options: &TraceOptions,
    state: S,
) -> Result<Traced<String>, CallError> {
    let site = Site::new(chain, header, overrides, GasCap::None);
    let (ran, traced) = site.run_traced(call, state, &mut NoOpInspector, Some(options))?;
    Ok(match (ran, traced) {
        (Ran::Inapplicable(reason), _) => Traced::Refused(reason),
        (Ran::Refused(reason), _) => Traced::Refused(site.refusal(call, &reason)),
        (Ran::Ended { .. }, Some(Ok(answer))) => Traced::Done(answer),
        (Ran::Ended { .. }, Some(Err(stop))) => stop.into(),
        (Ran::Ended { .. }, None) => {
            return Err(BlockError::Internal("a call was not traced".into()).into());
        }
    })
}

/// A message call, or a transaction, that is traced after a block.
#[derive(Debug, Clone)]
pub enum TracedCall {
    /// A call, made as [`call()`](crate::call()) makes it.
    Call(Box<Call>),
    /// A transaction and its sender, checked as one of a block.
    Signed(Box<Transaction>, Address),
}

impl TracedCall {
    /// The call that a refusal speaks of.
    fn call(&self) -> Cow<'_, Call> {
        let (transaction, from) = match self {
            Self::Call(call) => return Cow::Borrowed(call),
            Self::Signed(transaction, sender) => (transaction, *sender),
        };
        let max_fee_per_gas = transaction.max_fee_per_gas();
        Cow::Owned(Call {
            from,
            to: transaction.kind(),
            gas: transaction.gas_limit(),
            max_fee_per_gas,
            max_priority_fee_per_gas: transaction
                .max_priority_fee_per_gas()
                .unwrap_or(max_fee_per_gas),
            value: transaction.value(),
            input: transaction.input().clone(),
            access_list: transaction.access_list().cloned().unwrap_or_default(),
            blob_hashes: transaction.blob_versioned_hashes().map(<[_]>::to_vec),
            max_fee_per_blob_gas: transaction.max_fee_per_blob_gas().unwrap_or_default(),
            authorization_list: transaction.authorization_list().map(<[_]>::to_vec),
        })
    }
}

/// Makes calls one after the other in the block of `header`, each with its tracer, on `state`, the
/// state after that block, and on what those before it have changed. The answers are JSON; together
/// they have so many bytes at most.
///
/// # Errors
/// [`BlockError::State`] when the state cannot answer, and [`BlockError::Internal`].
pub fn trace_calls<S: State>(
    chain: &ChainSpec,
    header: &Header,
    calls: &[(TracedCall, TracerConfig)],
    (deadline, bytes): (&Deadline, usize),
    state: S,
) -> Result<Traced<Vec<String>>, CallError> {
    let overrides = Overrides::default();
    let site = Site::new(chain, header, &overrides, GasCap::None);
    let mut db = site.cache(state);
    let (mut answers, mut taken) = (Vec::with_capacity(calls.len()), 0);
    for (traced, tracer) in calls {
        if deadline.is_over() {
            return Ok(Traced::OutOfTime);
        }
        let options = TraceOptions {
            tracer: tracer.clone(),
            first_log: 0,
            deadline: deadline.clone(),
            bytes: bytes.saturating_sub(taken),
        };
        let call = traced.call();
        let (environment, transaction) = match traced {
            TracedCall::Call(call) => (site.environment(call), site.transaction(call)),
            TracedCall::Signed(transaction, sender) => {
                let signed = TxEnv::from_recovered_tx(&**transaction, *sender);
                (site.strict_environment(), signed)
            }
        };
        db.recorder().transaction = TransactionCodes::of(&transaction);
        let run = (environment, transaction);
        let (ran, traced) =
            site.run_transaction_in(&mut db, run, &call, &mut NoOpInspector, Some(&options))?;
        match (ran, traced) {
            (Ok(found), Some(Ok(answer))) => {
                taken += answer.len();
                answers.push(answer);
                db.note_written(&found.state);
                db.commit(found.state);
            }
            (Ok(_), Some(Err(stop))) => return Ok(stop.into()),
            (Err(Ran::Refused(reason)), _) => {
                return Ok(Traced::Refused(refusal(&site, &call, &reason)));
            }
            (Err(Ran::Inapplicable(reason)), _) => return Ok(Traced::Refused(reason)),
            (Ok(_) | Err(Ran::Ended { .. }), _) => {
                return Err(BlockError::Internal("a call was not traced".into()).into());
            }
        }
    }
    Ok(Traced::Done(answers))
}

/// Why a call or transaction could not begin, in geth's words.
fn refusal(site: &Site<'_>, call: &Call, reason: &InvalidTransaction) -> String {
    let sender = call.from;
    match reason {
        InvalidTransaction::NonceTooHigh { tx, state } => {
            format!("nonce too high: address {sender}, tx: {tx} state: {state}")
        }
        InvalidTransaction::NonceTooLow { tx, state } => {
            format!("nonce too low: address {sender}, tx: {tx} state: {state}")
        }
        other => site.refusal(call, other),
    }
}

/// Runs a block's transactions on `state`, which is the state after its parent, and traces all of
/// them, or the one at `index` alone. The answers are JSON. The block's own results are not
/// compared with its header.
///
/// # Errors
/// [`BlockError::State`] when the state cannot answer, and [`BlockError::Internal`].
pub fn trace_block<S: State>(
    chain: &ChainSpec,
    block: &SealedBlock,
    senders: &dyn Senders,
    index: Option<usize>,
    options: &TraceOptions,
    state: S,
) -> Result<Traced<Vec<String>>, BlockError> {
    let header = &block.header;
    let recorder = Recorder::new(chain, header, state, None, false);
    let mut db = BlockCache(revm::database::State::builder().with_database(recorder).build());
    let rules = BlockRules::new(chain, header);
    let evm = evm(&mut db, environment(chain, header));
    let executor = EthBlockExecutor::new(evm, execute::context(block), rules, Receipts);
    let outcome = trace_all(chain, block, senders, index, options, executor);
    match (db.recorder().error.take(), outcome) {
        (Some(error), _) => Err(error.into()),
        (None, Err(BlockError::Invalid(reason))) => Ok(Traced::Refused(reason.to_string())),
        (None, outcome) => outcome,
    }
}

fn trace_all<S: State>(
    chain: &ChainSpec,
    block: &SealedBlock,
    senders: &dyn Senders,
    index: Option<usize>,
    options: &TraceOptions,
    mut executor: Executor<'_, '_, S>,
) -> Result<Traced<Vec<String>>, BlockError> {
    execute::begin(chain, block, &mut executor)?;
    let (mut answers, mut taken) = (Vec::new(), 0);
    for (place, transaction) in block.body.transactions.iter().enumerate() {
        if options.deadline.is_over() {
            return Ok(Traced::OutOfTime);
        }
        let is_traced = index.is_none_or(|index| index == place);
        executor.evm_mut().db_mut().recorder().always_exact = is_traced;
        executor.evm_mut().set_inspector_enabled(is_traced);
        if is_traced {
            let logs = logs_of(&executor);
            let (_, inspector, precompiles) = executor.evm_mut().components_mut();
            let precompiled = precompiles.addresses().copied().collect();
            inspector.watch = Some(Box::new(options.watch(precompiled, logs, taken)));
        }
        let sender = senders.sender(place)?;
        let environment = TxEnv::from_recovered_tx(transaction, sender);
        let ran = execute::run_transaction(&mut executor, transaction, sender, &environment, None);
        let watch = executor.evm_mut().components_mut().1.watch.take();
        let refused = |error| execute::refused(place, sender, &error);
        let output = ran.map_err(refused)?;
        if let Some(watch) = watch {
            let (result, state) = (&output.result.result, &output.result.state);
            let gas_limit = transaction.gas_limit();
            let at = Place {
                block_hash: block.hash(),
                block_number: block.header.number,
                transaction_hash: *transaction.hash(),
                index: place,
            };
            let end = TransactionEnd { result, gas_limit, state, place: Some(at) };
            match watch.finish(&end, &mut **executor.evm_mut()) {
                Ok(answer) => {
                    taken += answer.len();
                    answers.push(answer);
                }
                Err(stop) => return Ok(stop.into()),
            }
        }
        if index == Some(place) {
            break;
        }
        execute::commit(chain, &mut executor, &environment, output).map_err(refused)?;
    }
    Ok(Traced::Done(answers))
}
