use crate::cache::BlockCache;
use crate::codes::Context;
use crate::evm::{BlockEvm, environment, evm_with};
use crate::limits::CALL_CHANGES;
use crate::recorder::{ReadError, Recorder};
use crate::{BlockError, ChainSpec};
use alloy_consensus::{Header, TxType};
use alloy_eips::eip2930::AccessList;
use alloy_eips::eip7702::SignedAuthorization;
use alloy_evm::Evm;
use alloy_primitives::map::{AddressMap, B256Map};
use alloy_primitives::{Address, B256, Bytes, TxKind, U256, keccak256};
use revm::Database;
use revm::bytecode::opcode;
use revm::context::{JournalTr, TxEnv};
use revm::context_interface::either::Either;
use revm::context_interface::result::{
    EVMError, ExecutionResult, HaltReason, InvalidTransaction, OutOfGasError, Output,
    ResultAndState,
};
use revm::database_interface::bal::EvmDatabaseError;
use revm::interpreter::instructions::host;
use revm::interpreter::interpreter::EthInterpreter;
use revm::interpreter::{
    Instruction, InstructionContext, InstructionExecResult, InstructionResult,
};
use revm::state::{Account as EvmAccount, EvmStorageSlot};
use std::collections::BTreeMap;
use trie::{Account, EMPTY_ROOT_HASH};
use witness::{State, StateError};

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
    /// The versioned hashes of the blobs (EIP-4844).
    pub blob_hashes: Vec<B256>,
    /// The highest price of a unit of blob gas, in wei. If it is zero, blob gas is free.
    pub max_fee_per_blob_gas: u128,
    /// The authorization list (EIP-7702).
    pub authorization_list: Vec<SignedAuthorization>,
}

/// State overrides by address: the accounts as a call sees them, in place of the state's.
pub type StateOverrides = AddressMap<AccountOverride>;

/// The overridden fields of one account; a field that is `None` keeps its value. A precompiled
/// contract that is overridden becomes an ordinary account.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccountOverride {
    /// The balance, in wei.
    pub balance: Option<U256>,
    /// The nonce.
    pub nonce: Option<u64>,
    /// The code.
    pub code: Option<Bytes>,
    /// The storage.
    pub storage: Option<StorageOverride>,
}

/// The overridden storage of one account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StorageOverride {
    /// These slots; all others are zero.
    Whole(BTreeMap<U256, U256>),
    /// These slots; all others keep their values.
    Some(BTreeMap<U256, U256>),
}

impl StorageOverride {
    fn value(&self, slot: &U256) -> Option<U256> {
        match self {
            Self::Whole(slots) => Some(slots.get(slot).copied().unwrap_or_default()),
            Self::Some(slots) => slots.get(slot).copied(),
        }
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
/// [`BlockError::State`] when the state cannot answer, and [`BlockError::Internal`].
pub fn call<S: State>(
    chain: &ChainSpec,
    header: &Header,
    call: &Call,
    overrides: &StateOverrides,
    state: S,
) -> Result<CallOutcome, BlockError> {
    let mut env = environment(chain, header);
    // A block with a difficulty may have the rules of later forks: a genesis does.
    env.block_env.prevrandao.get_or_insert(header.mix_hash);
    env.cfg_env.disable_nonce_check = true;
    env.cfg_env.disable_eip3607 = true;
    env.cfg_env.disable_block_gas_limit = true;
    env.cfg_env.tx_gas_limit_cap = Some(u64::MAX);
    if call.max_fee_per_gas == 0 && call.max_priority_fee_per_gas == 0 {
        env.block_env.basefee = 0;
    }
    if let Some(blob_gas) = &mut env.block_env.blob_excess_gas_and_price
        && !call.blob_hashes.is_empty()
        && call.max_fee_per_blob_gas == 0
    {
        blob_gas.blob_gasprice = 0;
    }
    let state = OverriddenState::new(state, overrides);
    let recorder = Recorder::new(chain, header, state, None, true);
    let mut db = BlockCache(revm::database::State::builder().with_database(recorder).build());
    // The inspector sees all collisions of contracts (EIP-7610).
    db.restart_exactly();
    let bounded = (opcode::TSTORE, Instruction::new(bounded_tstore::<S>));
    let mut evm = evm_with(&mut db, env, Some(bounded));
    evm.set_inspector_enabled(true);
    let result = match prepare(&mut evm, overrides) {
        Ok(()) => evm.transact_raw(transaction(chain, header, call)),
        Err(error) => Err(EVMError::Database(error)),
    };
    drop(evm);
    if let Some(error) = db.recorder().error.take() {
        return Err(error.into());
    }
    match result {
        Ok(ResultAndState { result, .. }) => Ok(match result {
            // So the library says that the caller has the last nonce.
            ExecutionResult::Success { output: Output::Create(_, None), .. } => {
                CallOutcome::Halted(halt(&HaltReason::NonceOverflow))
            }
            ExecutionResult::Success { output, .. } => CallOutcome::Returned(output.into_data()),
            ExecutionResult::Revert { output, .. } => CallOutcome::Reverted(output),
            ExecutionResult::Halt { reason, .. } => CallOutcome::Halted(halt(&reason)),
        }),
        Err(EVMError::Transaction(reason)) => {
            Ok(CallOutcome::Refused(refusal(header, call, &reason)))
        }
        Err(error) => Err(BlockError::Internal(error.to_string())),
    }
}

/// Puts into the EVM what it would not ask the state for.
///
/// The EVM takes the slots of an account that it creates as zero unless they are in its journal.
/// A precompiled contract that is overridden is an ordinary account, but warm, as all that the fork
/// has are (EIP-2929).
fn prepare<S: State>(
    evm: &mut BlockEvm<'_, OverriddenState<'_, S>>,
    overrides: &StateOverrides,
) -> Result<(), EvmDatabaseError<ReadError>> {
    let warm = evm.components().2.addresses().copied().collect();
    evm.journaled_state.warm_precompiles(&warm);
    for (&address, found) in overrides {
        evm.precompiles_mut().apply_precompile(&address, |_| None);
        let Some(StorageOverride::Whole(slots) | StorageOverride::Some(slots)) = &found.storage
        else {
            continue;
        };
        let info = evm.db_mut().basic(address)?.unwrap_or_default();
        let mut account = EvmAccount::from(info).with_cold_mark();
        for (&slot, &value) in slots {
            let mut value = EvmStorageSlot::new(value, account.transaction_id);
            value.mark_cold();
            account.storage.insert(slot, value);
        }
        evm.journaled_state.state.insert(address, account);
    }
    Ok(())
}

/// TSTORE, within the bound of a call's memory.
fn bounded_tstore<S: State>(
    context: InstructionContext<'_, Context<'_, OverriddenState<'_, S>>, EthInterpreter>,
) -> InstructionExecResult {
    match context.host.journaled_state.journal.len() < CALL_CHANGES {
        true => host::tstore(context),
        false => Err(InstructionResult::MemoryLimitOOG),
    }
}

/// The call as a transaction, of the oldest type that has all its fields.
fn transaction(chain: &ChainSpec, header: &Header, call: &Call) -> TxEnv {
    let tx_type = if !call.authorization_list.is_empty() {
        TxType::Eip7702
    } else if !call.blob_hashes.is_empty() {
        TxType::Eip4844
    } else if header.base_fee_per_gas.is_some() {
        TxType::Eip1559
    } else if !call.access_list.is_empty() {
        TxType::Eip2930
    } else {
        TxType::Legacy
    };
    let has_tip = matches!(tx_type, TxType::Eip1559 | TxType::Eip4844 | TxType::Eip7702);
    TxEnv {
        tx_type: tx_type.into(),
        caller: call.from,
        gas_limit: call.gas,
        gas_price: call.max_fee_per_gas,
        kind: call.to,
        value: call.value,
        data: call.input.clone(),
        nonce: 0,
        chain_id: Some(chain.chain_id()),
        access_list: call.access_list.clone(),
        gas_priority_fee: has_tip.then_some(call.max_priority_fee_per_gas),
        blob_hashes: call.blob_hashes.clone(),
        max_fee_per_blob_gas: call.max_fee_per_blob_gas,
        authorization_list: call.authorization_list.iter().cloned().map(Either::Left).collect(),
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

fn refusal(header: &Header, call: &Call, reason: &InvalidTransaction) -> String {
    let Call { from, gas, max_fee_per_gas, max_priority_fee_per_gas, .. } = call;
    let reason = match reason {
        InvalidTransaction::LackOfFundForMaxFee { fee, balance } => format!(
            "insufficient funds for gas * price + value: address {from} have {balance} want {fee}"
        ),
        InvalidTransaction::CallGasCostMoreThanGasLimit { initial_gas, gas_limit } => {
            format!("intrinsic gas too low: have {gas_limit}, want {initial_gas}")
        }
        InvalidTransaction::GasFloorMoreThanGasLimit { gas_floor, gas_limit } => {
            format!("insufficient gas for floor data gas cost: have {gas_limit}, want {gas_floor}")
        }
        InvalidTransaction::GasPriceLessThanBasefee => format!(
            "max fee per gas less than block base fee: address {from}, maxFeePerGas: \
             {max_fee_per_gas}, baseFee: {}",
            header.base_fee_per_gas.unwrap_or_default()
        ),
        InvalidTransaction::PriorityFeeGreaterThanMaxFee => format!(
            "max priority fee per gas higher than max fee per gas: address {from}, \
             maxPriorityFeePerGas: {max_priority_fee_per_gas}, maxFeePerGas: {max_fee_per_gas}"
        ),
        InvalidTransaction::CreateInitCodeSizeLimit => "max initcode size exceeded".into(),
        other => other.to_string(),
    };
    format!("err: {reason} (supplied gas {gas})")
}

/// A state under overrides.
#[derive(Debug)]
struct OverriddenState<'a, S> {
    state: S,
    overrides: &'a StateOverrides,
    /// The codes among the overrides, by hash.
    codes: B256Map<&'a Bytes>,
}

impl<'a, S> OverriddenState<'a, S> {
    fn new(state: S, overrides: &'a StateOverrides) -> Self {
        let codes = overrides.values().filter_map(|account| account.code.as_ref());
        let codes = codes.map(|code| (keccak256(code), code)).collect();
        Self { state, overrides, codes }
    }
}

impl<S: State> State for OverriddenState<'_, S> {
    fn account(&mut self, address: Address) -> Result<Option<Account>, StateError> {
        let account = self.state.account(address)?;
        let found = self.overrides.get(&address);
        let Some(found) = found.filter(|found| **found != AccountOverride::default()) else {
            return Ok(account);
        };
        let AccountOverride { balance, nonce, code, storage } = found;
        let mut account = account.unwrap_or_default();
        account.balance = balance.unwrap_or(account.balance);
        account.nonce = nonce.unwrap_or(account.nonce);
        account.code_hash = code.as_ref().map_or(account.code_hash, keccak256);
        if let Some(StorageOverride::Whole(_)) = storage {
            account.storage_root = EMPTY_ROOT_HASH;
        }
        Ok(Some(account))
    }

    fn storage(&mut self, address: Address, slot: U256) -> Result<U256, StateError> {
        let found = self.overrides.get(&address).and_then(|account| account.storage.as_ref());
        match found.and_then(|storage| storage.value(&slot)) {
            Some(value) => Ok(value),
            None => self.state.storage(address, slot),
        }
    }

    fn code(&mut self, code_hash: B256) -> Result<Bytes, StateError> {
        match self.codes.get(&code_hash) {
            Some(code) => Ok((*code).clone()),
            None => self.state.code(code_hash),
        }
    }

    fn block_hash(&mut self, number: u64) -> Result<B256, StateError> {
        self.state.block_hash(number)
    }
}
