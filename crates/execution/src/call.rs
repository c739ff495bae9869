use crate::cache::BlockCache;
use crate::codes::{CodeInspector, Context};
use crate::deadline::Deadline;
use crate::evm::{environment, evm_with};
use crate::limits::CALL_CHANGES;
use crate::overrides::{Inapplicable, OverriddenState, Overrides, prepare};
use crate::recorder::Recorder;
use crate::trace::{TraceOptions, TraceStop, TransactionEnd};
use crate::{BlockError, CallError, ChainSpec};
use alloy_consensus::{Header, TxType};
use alloy_eips::eip2930::AccessList;
use alloy_eips::eip4844::DATA_GAS_PER_BLOB;
use alloy_eips::eip7702::SignedAuthorization;
use alloy_evm::{Evm, EvmEnv};
use alloy_primitives::{Address, B256, Bytes, TxKind, U256};
use revm::bytecode::opcode;
use revm::context::TxEnv;
use revm::context_interface::block::BlobExcessGasAndPrice;
use revm::context_interface::either::Either;
use revm::context_interface::result::{
    EVMError, ExecutionResult, HaltReason, InvalidTransaction, OutOfGasError, Output,
    ResultAndState, ResultGas,
};
use revm::inspector::{Inspector, NoOpInspector};
use revm::interpreter::instructions::host;
use revm::interpreter::interpreter::EthInterpreter;
use revm::interpreter::{
    Instruction, InstructionContext, InstructionExecResult, InstructionResult,
};
use witness::State;

/// A message call, or the creation of a contract, that becomes part of no block.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Call {
    /// The caller. Its balance counts; its nonce and its code do not.
    pub from: Address,
    /// The account that is called, or none: then `input` creates a contract.
    pub to: TxKind,
    /// The gas limit.
    pub gas: u64,
    /// The highest price of a unit of gas, in wei. If this and the priority fee are zero, gas is
    /// free, and the block's base fee is zero for the call.
    pub max_fee_per_gas: u128,
    /// The highest fee above the base fee for a unit of gas, in wei.
    pub max_priority_fee_per_gas: u128,
    /// The value, in wei.
    pub value: U256,
    /// The input, or the init code of the contract.
    pub input: Bytes,
    /// The access list (EIP-2930).
    pub access_list: AccessList,
    /// The versioned hashes of the blobs (EIP-4844). No list may be empty.
    pub blob_hashes: Option<Vec<B256>>,
    /// The highest price of a unit of blob gas, in wei. If it is zero, blob gas is free.
    pub max_fee_per_blob_gas: u128,
    /// The authorization list (EIP-7702). No list may be empty.
    pub authorization_list: Option<Vec<SignedAuthorization>>,
}

impl Call {
    /// The most that its blobs may cost, in wei.
    pub(crate) fn blob_fee(&self) -> U256 {
        let blobs = self.blob_hashes.as_ref().map_or(0, Vec::len);
        U256::from(blobs) * U256::from(DATA_GAS_PER_BLOB) * U256::from(self.max_fee_per_blob_gas)
    }
}

/// The outcome of a call. Error texts follow geth, so that they can be searched for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallOutcome {
    /// The call returned this data; the creation of a contract returns its code.
    Returned(Bytes),
    /// The call reverted with this data.
    Reverted(Bytes),
    /// The call failed while it ran, for this reason.
    Halted(String),
    /// The call could not begin, for this reason.
    Refused(String),
}

/// Makes a call in the block of `header`, on `state`, the state after that block. The caller's
/// nonce and code and the gas limits of transactions and blocks are ignored; its balance counts.
///
/// # Errors
/// [`CallError::OutOfTime`]; [`BlockError::State`] when the state cannot answer, and
/// [`BlockError::Internal`].
pub fn call<S: State>(
    chain: &ChainSpec,
    header: &Header,
    call: &Call,
    overrides: &Overrides,
    deadline: &Deadline,
    state: S,
) -> Result<CallOutcome, CallError> {
    let site = Site::new(chain, header, overrides, GasCap::None).until(deadline);
    Ok(match site.run(call, state)? {
        Ran::Ended { end, .. } => end.outcome(),
        Ran::Inapplicable(reason) => CallOutcome::Refused(reason),
        Ran::Refused(reason) => {
            let reason = site.refusal(call, &reason);
            CallOutcome::Refused(format!("err: {reason} (supplied gas {})", call.gas))
        }
    })
}

/// Where calls are made.
#[derive(Debug)]
pub(crate) struct Site<'a> {
    pub(crate) chain: &'a ChainSpec,
    /// The header of the block, with what is overridden.
    pub(crate) header: Header,
    /// The block's number, which is not overridden.
    number: u64,
    overrides: &'a Overrides,
    gas_cap: GasCap,
    deadline: Deadline,
}

/// The most gas of a call that its fork knows (EIP-7825, EIP-8037).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GasCap {
    /// None: a call may have any.
    None,
    /// That of a transaction in the block.
    OfTransaction,
}

/// A call that ran, or could not begin.
#[derive(Debug)]
pub(crate) enum Ran {
    Ended {
        end: End,
        gas: ResultGas,
    },
    Refused(InvalidTransaction),
    /// The overrides cannot be applied, for this reason.
    Inapplicable(String),
}

/// A tracer's answer, or why the run was stopped.
pub(crate) type TracerAnswer = Result<String, TraceStop>;

/// How a call ended.
#[derive(Debug)]
pub(crate) enum End {
    Returned(Bytes),
    Reverted(Bytes),
    Halted(HaltReason),
}

impl End {
    pub(crate) fn outcome(self) -> CallOutcome {
        match self {
            Self::Returned(output) => CallOutcome::Returned(output),
            Self::Reverted(output) => CallOutcome::Reverted(output),
            Self::Halted(reason) => CallOutcome::Halted(halt(&reason)),
        }
    }
}

impl<'a> Site<'a> {
    pub(crate) fn new(
        chain: &'a ChainSpec,
        header: &Header,
        overrides: &'a Overrides,
        gas_cap: GasCap,
    ) -> Self {
        let number = header.number;
        let (header, deadline) = (overrides.block.header(header), Deadline::never());
        Self { chain, header, number, overrides, gas_cap, deadline }
    }

    /// The same, where calls end at a deadline.
    pub(crate) fn until(self, deadline: &Deadline) -> Self {
        Self { deadline: deadline.clone(), ..self }
    }

    /// The state as calls see it.
    pub(crate) fn state<S: State>(&self, state: S) -> OverriddenState<'_, S> {
        OverriddenState::new(state, &self.overrides.state, self.number)
    }

    /// Runs a call. It leaves nothing behind.
    pub(crate) fn run<S: State>(&self, call: &Call, state: S) -> Result<Ran, CallError> {
        self.run_under(call, state, &mut NoOpInspector)
    }

    /// Runs a call under an inspector. It leaves nothing else behind.
    pub(crate) fn run_under<'s, S: State, I>(
        &'s self,
        call: &Call,
        state: S,
        inspector: &mut I,
    ) -> Result<Ran, CallError>
    where
        I: for<'c> Inspector<Context<'c, OverriddenState<'s, S>>>,
    {
        Ok(self.run_traced(call, state, inspector, None)?.0)
    }

    /// Runs a call under an inspector and, where there is one, a tracer, whose answer is there if
    /// the call ended.
    pub(crate) fn run_traced<'s, S: State, I>(
        &'s self,
        call: &Call,
        state: S,
        inspector: &mut I,
        tracing: Option<&TraceOptions>,
    ) -> Result<(Ran, Option<TracerAnswer>), CallError>
    where
        I: for<'c> Inspector<Context<'c, OverriddenState<'s, S>>>,
    {
        let mut db = self.cache(state);
        let (result, traced) = self.run_in(&mut db, call, inspector, tracing)?;
        let ran = match result {
            Ok(found) => {
                let (end, gas) = ended(&found.result);
                Ran::Ended { end, gas }
            }
            Err(ran) => ran,
        };
        Ok((ran, traced))
    }

    /// The state as calls see it, with what is read of it and what they change.
    pub(crate) fn cache<S: State>(&self, state: S) -> BlockCache<OverriddenState<'_, S>> {
        let recorder = Recorder::new(self.chain, &self.header, self.state(state), None, true);
        BlockCache(revm::database::State::builder().with_database(recorder).build())
    }

    /// Runs a call under an inspector and, where there is one, a tracer. What it changes is in the
    /// result.
    pub(crate) fn run_in<'s, S: State, I>(
        &'s self,
        db: &mut BlockCache<OverriddenState<'s, S>>,
        call: &Call,
        inspector: &mut I,
        tracing: Option<&TraceOptions>,
    ) -> Result<(Result<ResultAndState, Ran>, Option<TracerAnswer>), CallError>
    where
        I: for<'c> Inspector<Context<'c, OverriddenState<'s, S>>>,
    {
        let transaction = self.transaction(call);
        self.run_transaction_in(db, (self.environment(call), transaction), call, inspector, tracing)
    }

    /// Runs a transaction in an environment; `call` says of it what a refusal needs.
    pub(crate) fn run_transaction_in<'s, S: State, I>(
        &'s self,
        db: &mut BlockCache<OverriddenState<'s, S>>,
        (env, transaction): (EvmEnv, TxEnv),
        call: &Call,
        inspector: &mut I,
        tracing: Option<&TraceOptions>,
    ) -> Result<(Result<ResultAndState, Ran>, Option<TracerAnswer>), CallError>
    where
        I: for<'c> Inspector<Context<'c, OverriddenState<'s, S>>>,
    {
        // The inspector sees all collisions of contracts (EIP-7610).
        db.restart_exactly();
        let bounded = (opcode::TSTORE, Instruction::new(bounded_tstore::<OverriddenState<'_, S>>));
        let inspectors = (inspector, CodeInspector::until(self.deadline.clone()));
        let mut evm = evm_with(db, env, Some(bounded), inspectors);
        evm.set_inspector_enabled(true);
        let (_, (_, inspector), precompiles) = evm.components_mut();
        inspector.watch = tracing.map(|options| {
            Box::new(options.watch(
                precompiles.addresses().copied().collect(),
                options.first_log,
                0,
            ))
        });
        let result = match prepare(&mut evm, &self.overrides.state) {
            Ok(()) => evm.transact_raw(transaction),
            Err(Inapplicable::Refused(reason)) => {
                return Ok((Err(Ran::Inapplicable(reason)), None));
            }
            Err(Inapplicable::Read(error)) => Err(EVMError::Database(error)),
        };
        let watch = evm.components_mut().1.1.watch.take();
        let traced = watch.zip(result.as_ref().ok()).map(|(watch, found)| {
            let (result, state, gas_limit) = (&found.result, &found.state, call.gas);
            let end = TransactionEnd { result, gas_limit, state, place: None };
            watch.finish(&end, &mut *evm)
        });
        let is_out_of_time = evm.components_mut().1.1.is_out_of_time();
        drop(evm);
        let recorder = db.recorder();
        if let Some(error) = recorder.error.take() {
            return Err(error.into());
        }
        if is_out_of_time {
            return Err(CallError::OutOfTime);
        }
        match result {
            Ok(found) => Ok((Ok(found), traced)),
            Err(EVMError::Transaction(reason)) => {
                let balance = recorder.state.account(call.from)?.map(|account| account.balance);
                let reason = money_first(call, balance.unwrap_or_default(), reason);
                Ok((Err(Ran::Refused(reason)), None))
            }
            Err(error) => Err(BlockError::Internal(error.to_string()).into()),
        }
    }

    /// The block and the chain as a transaction reads them.
    pub(crate) fn strict_environment(&self) -> EvmEnv {
        let mut env = environment(self.chain, &self.header);
        // A block with a difficulty may have the rules of later forks: a genesis does.
        env.block_env.prevrandao.get_or_insert(self.header.mix_hash);
        env
    }

    /// The block and the chain as the call reads them.
    pub(crate) fn environment(&self, call: &Call) -> EvmEnv {
        let mut env = self.strict_environment();
        env.cfg_env.disable_nonce_check = true;
        env.cfg_env.disable_eip3607 = true;
        env.cfg_env.disable_block_gas_limit = true;
        if self.gas_cap == GasCap::None {
            env.cfg_env.tx_gas_limit_cap = Some(u64::MAX);
        }
        if call.max_fee_per_gas == 0 && call.max_priority_fee_per_gas == 0 {
            env.block_env.basefee = 0;
        }
        // A block before Cancun has none, but its overrides may be after it.
        let none = BlobExcessGasAndPrice { excess_blob_gas: 0, blob_gasprice: 1 };
        let blob_gas = env.block_env.blob_excess_gas_and_price.get_or_insert(none);
        if call.blob_hashes.is_some() && call.max_fee_per_blob_gas == 0 {
            blob_gas.blob_gasprice = 0;
        } else if let Some(fee) = self.overrides.block.blob_base_fee {
            blob_gas.blob_gasprice = fee;
        }
        env
    }

    /// The call as a transaction, of the oldest type that has all its fields.
    pub(crate) fn transaction(&self, call: &Call) -> TxEnv {
        let tx_type = if call.authorization_list.is_some() {
            TxType::Eip7702
        } else if call.blob_hashes.is_some() {
            TxType::Eip4844
        } else if self.header.base_fee_per_gas.is_some() {
            TxType::Eip1559
        } else if !call.access_list.is_empty() {
            TxType::Eip2930
        } else {
            TxType::Legacy
        };
        let has_tip = matches!(tx_type, TxType::Eip1559 | TxType::Eip4844 | TxType::Eip7702);
        let authorizations = call.authorization_list.iter().flatten().cloned();
        TxEnv {
            tx_type: tx_type.into(),
            caller: call.from,
            gas_limit: call.gas,
            gas_price: call.max_fee_per_gas,
            kind: call.to,
            value: call.value,
            data: call.input.clone(),
            nonce: 0,
            chain_id: Some(self.chain.chain_id()),
            access_list: call.access_list.clone(),
            gas_priority_fee: has_tip.then_some(call.max_priority_fee_per_gas),
            blob_hashes: call.blob_hashes.clone().unwrap_or_default(),
            max_fee_per_blob_gas: call.max_fee_per_blob_gas,
            authorization_list: authorizations.map(Either::Left).collect(),
        }
    }

    /// Why a call could not begin, in geth's words.
    pub(crate) fn refusal(&self, call: &Call, reason: &InvalidTransaction) -> String {
        let Call { from, max_fee_per_gas, max_priority_fee_per_gas, max_fee_per_blob_gas, .. } =
            call;
        match reason {
            InvalidTransaction::LackOfFundForMaxFee { fee, balance } => {
                format!("{INSUFFICIENT_FUNDS}: address {from} have {balance} want {fee}")
            }
            InvalidTransaction::OverflowPaymentInTransaction => {
                format!("{INSUFFICIENT_FUNDS}: address {from} required balance exceeds 256 bits")
            }
            InvalidTransaction::CallGasCostMoreThanGasLimit { initial_gas, gas_limit } => {
                format!("intrinsic gas too low: have {gas_limit}, want {initial_gas}")
            }
            InvalidTransaction::GasFloorMoreThanGasLimit { gas_floor, gas_limit } => format!(
                "insufficient gas for floor data gas cost: have {gas_limit}, want {gas_floor}"
            ),
            InvalidTransaction::GasPriceLessThanBasefee => format!(
                "max fee per gas less than block base fee: address {from}, maxFeePerGas: \
                 {max_fee_per_gas}, baseFee: {}",
                self.header.base_fee_per_gas.unwrap_or_default()
            ),
            InvalidTransaction::PriorityFeeGreaterThanMaxFee => format!(
                "max priority fee per gas higher than max fee per gas: address {from}, \
                 maxPriorityFeePerGas: {max_priority_fee_per_gas}, maxFeePerGas: {max_fee_per_gas}"
            ),
            InvalidTransaction::BlobGasPriceGreaterThanMax { block_blob_gas_price, .. } => format!(
                "max fee per blob gas less than block blob gas fee: address {from} blobGasFeeCap: \
                 {max_fee_per_blob_gas}, blobBaseFee: {block_blob_gas_price}"
            ),
            InvalidTransaction::EmptyBlobs => "blob transaction missing blob hashes".into(),
            InvalidTransaction::TooManyBlobs { .. } => "blob transaction has too many blobs".into(),
            InvalidTransaction::EmptyAuthorizationList => {
                format!("EIP-7702 transaction with empty auth list (sender {from})")
            }
            InvalidTransaction::CreateInitCodeSizeLimit => "max initcode size exceeded".into(),
            other => other.to_string(),
        }
    }
}

pub(crate) const INSUFFICIENT_FUNDS: &str = "insufficient funds for gas * price + value";

/// The reason for which geth refuses a call: too little money comes before too little gas.
pub(crate) fn money_first(
    call: &Call,
    balance: U256,
    reason: InvalidTransaction,
) -> InvalidTransaction {
    let lacks_gas = matches!(
        reason,
        InvalidTransaction::CallGasCostMoreThanGasLimit { .. }
            | InvalidTransaction::GasFloorMoreThanGasLimit { .. }
    );
    let gas_fee = U256::from(call.gas) * U256::from(call.max_fee_per_gas);
    match gas_fee.checked_add(call.blob_fee()).and_then(|fee| fee.checked_add(call.value)) {
        None if lacks_gas => InvalidTransaction::OverflowPaymentInTransaction,
        Some(fee) if lacks_gas && fee > balance => {
            InvalidTransaction::LackOfFundForMaxFee { fee: fee.into(), balance: balance.into() }
        }
        _ => reason,
    }
}

/// How a call ended, and its gas.
pub(crate) fn ended(result: &ExecutionResult) -> (End, ResultGas) {
    match result {
        // So the library says that the caller has the last nonce.
        ExecutionResult::Success { output: Output::Create(_, None), gas, .. } => {
            (End::Halted(HaltReason::NonceOverflow), *gas)
        }
        ExecutionResult::Success { output, gas, .. } => {
            (End::Returned(output.data().clone()), *gas)
        }
        ExecutionResult::Revert { output, gas, .. } => (End::Reverted(output.clone()), *gas),
        ExecutionResult::Halt { reason, gas, .. } => (End::Halted(reason.clone()), *gas),
    }
}

/// TSTORE, within the bound of a call's memory.
pub(crate) fn bounded_tstore<S: State>(
    context: InstructionContext<'_, Context<'_, S>, EthInterpreter>,
) -> InstructionExecResult {
    match context.host.journaled_state.journal.len() < CALL_CHANGES {
        true => host::tstore(context),
        false => Err(InstructionResult::MemoryLimitOOG),
    }
}

fn halt(reason: &HaltReason) -> String {
    let words = match reason {
        HaltReason::OutOfGas(OutOfGasError::MemoryLimit) => {
            "too many changes of transient storage for a call"
        }
        HaltReason::OutOfGas(_) => "out of gas",
        HaltReason::OpcodeNotFound | HaltReason::InvalidFEOpcode | HaltReason::NotActivated => {
            "invalid opcode"
        }
        HaltReason::InvalidJump => "invalid jump destination",
        HaltReason::StackOverflow => "stack limit reached",
        HaltReason::OutOfOffset => "return data out of bounds",
        HaltReason::CreateCollision => "contract address collision",
        HaltReason::NonceOverflow => "nonce uint64 overflow",
        HaltReason::CreateContractSizeLimit => "max code size exceeded",
        HaltReason::CreateContractStartingWithEF => "invalid code: must not begin with 0xef",
        HaltReason::CreateInitCodeSizeLimit => "max initcode size exceeded",
        HaltReason::StateChangeDuringStaticCall | HaltReason::CallNotAllowedInsideStatic => {
            "write protection"
        }
        HaltReason::OutOfFunds => "insufficient balance for transfer",
        HaltReason::CallTooDeep => "max call depth exceeded",
        other => return other.to_string(),
    };
    words.into()
}
