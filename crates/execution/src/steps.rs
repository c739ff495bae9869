//! A block that runs again, and is looked at between its transactions.

use crate::cache::BlockCache;
use crate::evm::{environment, evm};
use crate::execute::{self, Executor, Receipts};
use crate::recorder::Recorder;
use crate::rules::BlockRules;
use crate::{BlockError, ChainSpec, SealedBlock, Senders};
use alloy_evm::block::BlockExecutor as _;
use alloy_evm::eth::EthBlockExecutor;
use alloy_evm::{Evm, FromRecoveredTx as _};
use alloy_primitives::{B256, Bytes};
use revm::context::TxEnv;
use revm::database::states::bundle_state::BundleRetention;
use std::ops::ControlFlow;
use witness::{Change, State, StateError};

/// All that a block has changed so far.
#[derive(Debug, Clone, Default)]
pub struct SoFar {
    /// The accounts and slots.
    pub changes: Vec<Change>,
    /// The codes that it has created, with their hashes.
    pub new_codes: Vec<(B256, Bytes)>,
    /// The number of logs of its transactions.
    pub logs: usize,
}

/// How a block ran again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stepped {
    /// To its end, or as far as it was looked at.
    Done,
    /// To a transaction, or an end, that breaks a rule: the reason.
    Invalid(String),
}

/// Runs a block on `state`, which is the state after its parent, and calls `visit` with the number
/// of transactions that have run, the state, and what the block has changed so far: before the
/// first transaction, after each, and with one more at the end of the block. It ends where `visit`
/// breaks. The block's own results are not compared with its header.
///
/// # Errors
/// [`BlockError::State`] when the state cannot answer, and [`BlockError::Internal`].
pub fn step_through<S: State>(
    chain: &ChainSpec,
    block: &SealedBlock,
    senders: &dyn Senders,
    state: S,
    visit: impl FnMut(usize, &mut S, &SoFar) -> Result<ControlFlow<()>, StateError>,
) -> Result<Stepped, BlockError> {
    let recorder = Recorder::new(chain, &block.header, state, None, false);
    let cache = revm::database::State::builder().with_database(recorder).with_bundle_update();
    let mut db = BlockCache(cache.build());
    let outcome = run(chain, block, senders, &mut db, visit);
    match (db.recorder().error.take(), outcome) {
        (Some(error), _) => Err(error.into()),
        (None, Err(BlockError::Invalid(reason))) => Ok(Stepped::Invalid(reason.to_string())),
        (None, outcome) => outcome.map(|()| Stepped::Done),
    }
}

fn run<S: State>(
    chain: &ChainSpec,
    block: &SealedBlock,
    senders: &dyn Senders,
    db: &mut BlockCache<S>,
    mut visit: impl FnMut(usize, &mut S, &SoFar) -> Result<ControlFlow<()>, StateError>,
) -> Result<(), BlockError> {
    let rules = BlockRules::new(chain, &block.header);
    let evm = evm(&mut *db, environment(chain, &block.header));
    let mut executor: Executor<'_, '_, S> =
        EthBlockExecutor::new(evm, execute::context(block), rules, Receipts);
    execute::begin(chain, block, &mut executor)?;
    let mut look = |db: &mut BlockCache<S>, count, logs| -> Result<bool, BlockError> {
        if let Some(error) = db.recorder().error.take() {
            return Err(error.into());
        }
        let so_far = so_far(db, logs);
        Ok(visit(count, &mut db.recorder().state, &so_far)?.is_break())
    };
    for (index, transaction) in block.body.transactions.iter().enumerate() {
        let logs = logs_of(&executor);
        if look(executor.evm_mut().db_mut(), index, logs)? {
            return Ok(());
        }
        let sender = senders.sender(index)?;
        let environment = TxEnv::from_recovered_tx(transaction, sender);
        execute::run_transaction(&mut executor, transaction, sender, &environment, None)
            .and_then(|output| execute::commit(chain, &mut executor, &environment, output))
            .map_err(|error| execute::refused(index, sender, &error))?;
    }
    let (count, logs) = (block.body.transactions.len(), logs_of(&executor));
    if look(executor.evm_mut().db_mut(), count, logs)? {
        return Ok(());
    }
    execute::end(chain, block.header.timestamp, executor)?;
    look(db, count + 1, logs).map(drop)
}

/// The number of logs of the transactions that have run.
pub(crate) fn logs_of<S: State>(executor: &Executor<'_, '_, S>) -> usize {
    executor.receipts().iter().map(|receipt| receipt.logs().len()).sum()
}

fn so_far<S: State>(db: &mut BlockCache<S>, logs: usize) -> SoFar {
    db.0.merge_transitions(BundleRetention::PlainState);
    let bundle = &db.0.bundle_state;
    let accounts = bundle.state.iter();
    let codes = bundle.contracts.iter();
    SoFar {
        changes: accounts.filter_map(|(address, it)| execute::change(*address, it)).collect(),
        new_codes: codes.map(|(hash, code)| (*hash, code.original_bytes())).collect(),
        logs,
    }
}
