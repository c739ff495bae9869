//! Running simulated blocks.

use super::logs::CallLogs;
use super::{
    BlockCalls, ChainedState, RefusalKind, RootedState, SimulatedBlock, SimulatedCall,
    SimulatedLog, SimulationOptions, Stop, plan,
};
use crate::cache::BlockCache;
use crate::call::{End, GasCap, Site, bounded_tstore, ended, money_first};
use crate::codes::{CodeInspector, Context};
use crate::evm::{BlockEvm, environment, evm_with};
use crate::execute::{Receipts, change, end};
use crate::limits::TRANSACTION_REGULAR_GAS;
use crate::overrides::{Overrides, move_precompiles, write};
use crate::recorder::TransactionCodes;
use crate::rules::BlockRules;
use crate::unsigned::{UnsignedCall, encoded, unsigned};
use crate::validate::root_of_list;
use crate::{Block, BlockError, Call, CallOutcome, ChainSpec, Receipt, SealedBlock, Transaction};
use alloy_consensus::{BlockBody, Eip658Value, Header, Transaction as _, proofs};
use alloy_eips::eip2718::Encodable2718;
use alloy_evm::block::BlockExecutor;
use alloy_evm::eth::{EthBlockExecutionCtx, EthBlockExecutor, EthTxResult};
use alloy_evm::{Evm, EvmEnv};
use alloy_hardforks::EthereumHardforks;
use alloy_primitives::{Address, B256, Bloom, U256, keccak256};
use revm::bytecode::opcode;
use revm::context_interface::block::BlobExcessGasAndPrice;
use revm::context_interface::result::{EVMError, InvalidTransaction, ResultGas};
use revm::database::states::bundle_state::BundleRetention;
use revm::database_interface::Database;
use revm::interpreter::interpreter::EthInterpreter;
use revm::interpreter::{
    Instruction, InstructionContext, InstructionExecResult, InstructionResult,
};
use revm::state::bal::BlockAccessIndex;
use std::borrow::Cow;

/// Runs blocks, one on the other.
#[derive(Debug)]
pub(super) struct Simulator<'s, S> {
    pub(super) chain: &'s ChainSpec,
    pub(super) options: SimulationOptions,
    pub(super) db: BlockCache<ChainedState<S>>,
    /// The gas that the calls to come may have.
    pub(super) gas_left: u64,
    /// The bytes that results to come may have.
    pub(super) bytes_left: usize,
}

impl<S: RootedState> Simulator<'_, S> {
    /// Runs the blocks, which are in order, on the block of `base`.
    pub(super) fn run_all(
        &mut self,
        base: &Header,
        base_hash: B256,
        blocks: Vec<BlockCalls>,
    ) -> Result<Vec<SimulatedBlock>, Stop> {
        // The headers come first: what is overridden in one is the default in the next.
        let mut headers = Vec::with_capacity(blocks.len());
        for calls in &blocks {
            headers.push(plan::header(self.chain, headers.last().unwrap_or(base), calls));
        }
        let (mut parent, mut parent_hash) = (base.clone(), base_hash);
        let mut done = Vec::with_capacity(blocks.len());
        for (mut header, calls) in headers.into_iter().zip(blocks) {
            if self.options.deadline.is_over() {
                return Err(Stop::OutOfTime);
            }
            header.parent_hash = parent_hash;
            plan::fill_fees(self.chain, &mut header, &parent, self.options.validates);
            charge(&mut self.bytes_left, BLOCK_BYTES)?;
            let block = self.run(header, calls)?;
            (parent, parent_hash) = (block.block.header.clone(), block.block.hash());
            self.db.recorder().state.hashes.insert(parent.number, parent_hash);
            done.push(block);
        }
        Ok(done)
    }

    fn run(&mut self, mut header: Header, mut calls: BlockCalls) -> Result<SimulatedBlock, Stop> {
        let Self { chain, options, db, gas_left, bytes_left } = self;
        let (chain, timestamp) = (*chain, header.timestamp);
        let amsterdam = chain.is_amsterdam_active_at_timestamp(timestamp);
        let recorder = db.recorder();
        recorder.begin_block(chain, &header);
        recorder.state.base_fee = header.base_fee_per_gas.unwrap_or_default();
        write(db, &calls.state).map_err(|error| failed(db, &error))?;
        // A body has room for 120,000 slots, which are in the cache now.
        calls.state.values_mut().for_each(|account| account.storage = None);
        db.0.bal_state.bal_builder = amsterdam.then(Default::default);
        db.0.reset_bal_index();
        let withdrawals = header.withdrawals_root.map(|_| calls.withdrawals);
        let context = EthBlockExecutionCtx {
            parent_hash: header.parent_hash,
            parent_beacon_block_root: header.parent_beacon_block_root,
            ommers: &[],
            withdrawals: withdrawals.as_deref().map(Cow::Borrowed),
            extra_data: header.extra_data.clone(),
            tx_count_hint: Some(calls.calls.len()),
            slot_number: header.slot_number,
        };
        let logs = CallLogs::new(options.traces_transfers && !amsterdam);
        let env = block_environment(chain, &header, options, calls.block.blob_base_fee);
        let blob_price = env.block_env.blob_excess_gas_and_price;
        let inspectors = (logs, CodeInspector::until(options.deadline.clone()));
        let evm = evm_with(db, env, replaced(chain, &header), inspectors);
        let rules = BlockRules::new(chain, &header);
        let mut executor = EthBlockExecutor::new(evm, context, rules, Receipts);
        move_precompiles(executor.evm_mut(), &calls.state)
            .map_err(|reason| Stop::refused(RefusalKind::Other, reason))?;
        let none = Overrides::default();
        let site = Site::new(chain, &header, &none, GasCap::None);
        let validates = options.validates;
        let begun = begin_block(&header, &mut executor);
        let mut running = RunningBlock {
            site,
            header: &header,
            executor,
            blob_price,
            validates,
            gas_left,
            bytes_left,
            transactions: Vec::new(),
            senders: Vec::new(),
            results: Vec::new(),
        };
        begun.map_err(|reason| running.failed(&reason))?;
        for call in &calls.calls {
            if options.deadline.is_over() {
                return Err(Stop::OutOfTime);
            }
            running.call(call)?;
        }
        let RunningBlock { executor, transactions, senders, results, .. } = running;
        let ended = end(chain, timestamp, executor);
        let ended = ended.map_err(|error| not_ended(db, error))?;
        header.state_root = state_root(db)?;
        header.gas_used = ended.gas_used;
        header.blob_gas_used = header.excess_blob_gas.map(|_| ended.blob_gas_used);
        let london = header.base_fee_per_gas.is_some();
        let prague = london && chain.is_prague_active_at_timestamp(timestamp);
        header.requests_hash = prague.then(|| ended.requests.requests_hash());
        let list = db.0.take_built_alloy_bal();
        header.block_access_list_hash = list.map(|list| keccak256(alloy_rlp::encode(&list)));
        let withdrawals = withdrawals.map(Into::into);
        let body = BlockBody { transactions, ommers: Vec::new(), withdrawals };
        let block = sealed(header, body, &ended.receipts);
        Ok(SimulatedBlock { block, senders, calls: results })
    }
}

/// Why a block has no end: a failed read comes first, which may look like a broken rule.
fn not_ended<S>(db: &mut BlockCache<ChainedState<S>>, error: BlockError) -> Stop {
    match (db.recorder().error.take(), error) {
        (Some(error), _) => Stop::Failed(error.into()),
        (None, BlockError::Invalid(reason)) => {
            Stop::refused(RefusalKind::Other, reason.to_string())
        }
        (None, error) => Stop::Failed(error),
    }
}

/// The block with the roots of its lists.
fn sealed(mut header: Header, body: BlockBody<Transaction>, receipts: &[Receipt]) -> SealedBlock {
    header.transactions_root = root_of_list(&body.transactions, |transaction, out| {
        out.put_slice(&encoded(transaction));
    });
    header.receipts_root = root_of_list(receipts, Encodable2718::encode_2718);
    let blooms = receipts.iter().map(Receipt::logs_bloom);
    header.logs_bloom = blooms.fold(Bloom::ZERO, |all, bloom| all | *bloom);
    let withdrawals = body.withdrawals.as_ref();
    header.withdrawals_root = withdrawals.map(|list| proofs::calculate_withdrawals_root(&list.0));
    SealedBlock::new(Block { header, body })
}

/// About the bytes of a block without calls as JSON, of a call without logs, and of a log without
/// data.
const BLOCK_BYTES: usize = 2_500;
const CALL_BYTES: usize = 1_000;
const LOG_BYTES: usize = 800;

fn charge(left: &mut usize, bytes: usize) -> Result<(), Stop> {
    match left.checked_sub(bytes) {
        Some(rest) => *left = rest,
        None => {
            let reason = "the results of the calls are too large: ask for fewer calls";
            return Err(Stop::refused(RefusalKind::Limit, reason));
        }
    }
    Ok(())
}

/// The failed read, or this other fault of ours.
fn failed<S>(db: &mut BlockCache<ChainedState<S>>, fault: &dyn ToString) -> Stop {
    let error = db.recorder().error.take();
    Stop::Failed(error.map_or_else(|| BlockError::Internal(fault.to_string()), Into::into))
}

/// The root of the state as it is now.
fn state_root<S: RootedState>(db: &mut BlockCache<ChainedState<S>>) -> Result<B256, Stop> {
    db.0.merge_transitions(BundleRetention::PlainState);
    let accounts = db.0.bundle_state.state.iter();
    let changes: Vec<_> = accounts.filter_map(|(address, one)| change(*address, one)).collect();
    let root = db.recorder().state.state.root_after(changes);
    root.map_err(|error| Stop::Failed(error.into()))
}

/// The block as the EVM reads it.
fn block_environment(
    chain: &ChainSpec,
    header: &Header,
    options: &SimulationOptions,
    blob_base_fee: Option<u128>,
) -> EvmEnv {
    let mut env = environment(chain, header);
    env.block_env.prevrandao.get_or_insert(header.mix_hash);
    env.cfg_env.disable_nonce_check = true;
    env.cfg_env.disable_eip3607 = true;
    env.cfg_env.disable_block_gas_limit = true;
    let amsterdam = chain.is_amsterdam_active_at_timestamp(header.timestamp);
    if !(amsterdam && options.validates) {
        env.cfg_env.tx_gas_limit_cap = Some(u64::MAX);
    }
    let none = BlobExcessGasAndPrice { excess_blob_gas: 0, blob_gasprice: 1 };
    let blob_gas = env.block_env.blob_excess_gas_and_price.get_or_insert(none);
    blob_gas.blob_gasprice = blob_base_fee.unwrap_or(blob_gas.blob_gasprice);
    env
}

type Replaced<'a, S> = (u8, Instruction<EthInterpreter, Context<'a, ChainedState<S>>>);

/// The instructions of simulated calls that are not the library's.
fn replaced<'a, S: RootedState + 'a>(
    chain: &ChainSpec,
    header: &Header,
) -> impl Iterator<Item = Replaced<'a, S>> {
    let tstore = (opcode::TSTORE, Instruction::new(bounded_tstore::<ChainedState<S>>));
    let london = chain.is_london_active_at_block(header.number);
    let base_fee = (opcode::BASEFEE, Instruction::new(base_fee::<S>));
    [tstore].into_iter().chain(london.then_some(base_fee))
}

/// BASEFEE, also where gas is free.
fn base_fee<S: RootedState>(
    context: InstructionContext<'_, Context<'_, ChainedState<S>>, EthInterpreter>,
) -> InstructionExecResult {
    let fee = context.host.journaled_state.database.recorder().state.base_fee;
    match context.interpreter.stack.push(U256::from(fee)) {
        true => Ok(()),
        false => Err(InstructionResult::StackOverflow),
    }
}

type Inspectors = (CallLogs, CodeInspector);

type SimulationExecutor<'a, 'b, S> =
    EthBlockExecutor<'b, BlockEvm<'a, ChainedState<S>, Inspectors>, BlockRules<'b>, Receipts>;

/// Makes the system calls before the first transaction.
fn begin_block<S: RootedState>(
    header: &Header,
    executor: &mut SimulationExecutor<'_, '_, S>,
) -> Result<(), String> {
    let (root, parent_hash) = (header.parent_beacon_block_root, header.parent_hash);
    let caller = &mut executor.system_caller;
    caller
        .apply_beacon_root_contract_call(root, &mut executor.evm)
        .and_then(|()| caller.apply_blockhashes_contract_call(parent_hash, &mut executor.evm))
        .map_err(|error| error.to_string())
}

/// A block of which some calls have run.
struct RunningBlock<'a, 'b, 'c, S: RootedState> {
    site: Site<'c>,
    header: &'c Header,
    executor: SimulationExecutor<'a, 'b, S>,
    blob_price: Option<BlobExcessGasAndPrice>,
    validates: bool,
    gas_left: &'c mut u64,
    bytes_left: &'c mut usize,
    transactions: Vec<Transaction>,
    senders: Vec<Address>,
    results: Vec<SimulatedCall>,
}

impl<S: RootedState> RunningBlock<'_, '_, '_, S> {
    fn failed(&mut self, fault: &dyn ToString) -> Stop {
        failed(self.executor.evm_mut().db_mut(), fault)
    }

    /// The gas that the block has left for a call.
    fn available(&self) -> u64 {
        let executor = &self.executor;
        let limit = self.header.gas_limit;
        if !executor.evm.cfg_env().enable_amsterdam_eip8037 {
            return limit.saturating_sub(executor.cumulative_tx_gas_used);
        }
        let regular = limit.saturating_sub(executor.block_regular_gas_used);
        let state = limit.saturating_sub(executor.block_state_gas_used);
        match self.validates && regular >= TRANSACTION_REGULAR_GAS {
            true => state,
            false => state.min(regular),
        }
    }

    fn call(&mut self, given: &UnsignedCall) -> Result<(), Stop> {
        let from = given.call.from;
        let account = self.executor.evm_mut().db_mut().basic(from);
        let account = account.map_err(|error| self.failed(&error))?.unwrap_or_default();
        let nonce = given.nonce.unwrap_or(account.nonce);
        let available = self.available();
        let asked = given.gas.unwrap_or(available);
        if available < asked {
            let reason =
                format!("block gas limit reached: remaining: {available}, required: {asked}");
            return Err(Stop::refused(RefusalKind::BlockGas, reason));
        }
        let call = Call { gas: asked.min(*self.gas_left), ..given.call.clone() };
        if self.validates {
            check_nonce(&call, nonce, account.nonce)?;
        }
        let is_legacy = given.has_gas_price || self.header.base_fee_per_gas.is_none();
        let transaction = unsigned(&call, nonce, self.site.chain.chain_id(), is_legacy);
        let (end, gas) = self.run(&call, &transaction)?;
        *self.gas_left = self.gas_left.saturating_sub(gas.tx_gas_used());
        let logs = self.executor.evm_mut().components_mut().1.0.take();
        let outcome = end.outcome();
        charge(self.bytes_left, result_bytes(&call, &outcome, &logs))?;
        self.results.push(SimulatedCall {
            outcome,
            gas_used: gas.tx_gas_used(),
            most_gas_used: gas.total_gas_spent().max(gas.floor_gas()),
            logs,
            is_capped: call.gas < asked,
        });
        self.senders.push(from);
        self.transactions.push(transaction);
        Ok(())
    }

    /// Runs a call, and keeps its changes.
    fn run(&mut self, call: &Call, transaction: &Transaction) -> Result<(End, ResultGas), Stop> {
        let tx = self.site.transaction(call);
        let is_free =
            !self.validates && call.max_fee_per_gas == 0 && call.max_priority_fee_per_gas == 0;
        let base_fee = self.header.base_fee_per_gas.filter(|_| !is_free).unwrap_or_default();
        let mut blob_price = self.blob_price;
        if let (false, 0, Some(price)) =
            (self.validates, call.max_fee_per_blob_gas, &mut blob_price)
        {
            price.blob_gasprice = 0;
        }
        let index = BlockAccessIndex::new(self.results.len() as u64 + 1);
        let evm = self.executor.evm_mut();
        evm.block.basefee = base_fee;
        evm.block.blob_excess_gas_and_price = blob_price;
        evm.components_mut().1.0.begin();
        evm.set_inspector_enabled(true);
        let db = evm.db_mut();
        db.0.set_bal_index(index);
        db.recorder().transaction = TransactionCodes::of(&tx);
        if tx.kind.is_create() {
            db.recorder().note_creation();
        }
        db.restart_exactly();
        let mut output = match evm.transact_raw(tx) {
            Ok(output) => output,
            Err(EVMError::Transaction(reason)) => return Err(self.refused(call, reason)),
            Err(error) => return Err(self.failed(&error)),
        };
        let is_out_of_time = evm.components_mut().1.1.is_out_of_time();
        if evm.db_mut().recorder().error.is_some() {
            return Err(self.failed(&"a read failed"));
        }
        if is_out_of_time {
            return Err(Stop::OutOfTime);
        }
        // The EVM leaves the last nonce as it is; geth's goes on with zero.
        if let (true, Some(caller)) = (call.to.is_call(), output.state.get_mut(&call.from))
            && caller.info.nonce == u64::MAX
        {
            caller.info.nonce = 0;
        }
        evm.db_mut().note_written(&output.state);
        let (end, gas) = ended(&output.result);
        let blob_gas_used = transaction.blob_gas_used().unwrap_or_default();
        let tx_type = transaction.tx_type();
        self.executor.commit_transaction(EthTxResult { result: output, blob_gas_used, tx_type });
        self.put_root()?;
        Ok((end, gas))
    }

    /// Puts the state root into the receipt of the call that has just run, before Byzantium.
    fn put_root(&mut self) -> Result<(), Stop> {
        if self.site.chain.is_byzantium_active_at_block(self.header.number) {
            return Ok(());
        }
        let root = state_root(self.executor.evm_mut().db_mut())?;
        if let Some(Receipt::Legacy(receipt)) = self.executor.receipts.last_mut() {
            receipt.receipt.status = Eip658Value::PostState(root);
        }
        Ok(())
    }

    fn refused(&mut self, call: &Call, reason: InvalidTransaction) -> Stop {
        let account = self.executor.evm_mut().db_mut().basic(call.from);
        let balance = match account {
            Ok(account) => account.map_or(U256::ZERO, |account| account.balance),
            Err(error) => return self.failed(&error),
        };
        let reason = money_first(call, balance, reason);
        let kind = match &reason {
            InvalidTransaction::LackOfFundForMaxFee { .. }
            | InvalidTransaction::OverflowPaymentInTransaction => RefusalKind::Funds,
            InvalidTransaction::CallGasCostMoreThanGasLimit { .. } => RefusalKind::IntrinsicGas,
            InvalidTransaction::GasPriceLessThanBasefee => RefusalKind::FeeTooLow,
            InvalidTransaction::PriorityFeeGreaterThanMaxFee => RefusalKind::Params,
            InvalidTransaction::CreateInitCodeSizeLimit => RefusalKind::InitCode,
            _ => RefusalKind::Transaction,
        };
        Stop::refused(kind, supplied(call, &self.site.refusal(call, &reason)))
    }
}

fn supplied(call: &Call, reason: &str) -> String {
    format!("err: {reason} (supplied gas {})", call.gas)
}

/// About the bytes of a result as JSON, with its transaction.
fn result_bytes(call: &Call, outcome: &CallOutcome, logs: &[SimulatedLog]) -> usize {
    let output = match outcome {
        CallOutcome::Returned(output) | CallOutcome::Reverted(output) => output.len(),
        CallOutcome::Halted(_) | CallOutcome::Refused(_) => 0,
    };
    let logs = logs.iter().map(|log| LOG_BYTES + 2 * log.log.data.data.len());
    CALL_BYTES + 2 * output + 2 * call.input.len() + logs.sum::<usize>()
}

/// The check of a nonce, which comes before all others.
fn check_nonce(call: &Call, nonce: u64, expected: u64) -> Result<(), Stop> {
    let from = call.from;
    let (kind, reason) = if expected < nonce {
        let reason = format!("nonce too high: address {from}, tx: {nonce} state: {expected}");
        (RefusalKind::NonceTooHigh, reason)
    } else if expected > nonce {
        let reason = format!("nonce too low: address {from}, tx: {nonce} state: {expected}");
        (RefusalKind::NonceTooLow, reason)
    } else if nonce == u64::MAX {
        let reason = format!("nonce has max value: address {from}, nonce: {nonce}");
        (RefusalKind::Transaction, reason)
    } else {
        return Ok(());
    };
    Err(Stop::refused(kind, supplied(call, &reason)))
}
