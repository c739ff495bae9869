use crate::ahead::{AheadOutcome, AheadOutcomes, RunOptions};
use crate::cache::BlockCache;
use crate::codes::{self, Context, Markers};
use crate::evm::{BlockEvm, environment, evm};
use crate::recorder::{ReadError, Recorder, TransactionCodes, account_info};
use crate::rules::{self, BlockRules};
use crate::{BlockError, ChainSpec, InvalidBlock, Receipt, SealedBlock, Senders, Transaction};
use alloy_consensus::transaction::Recovered;
use alloy_consensus::{Eip658Value, Receipt as Logs, Transaction as _, TxType};
use alloy_eip7928::total_bal_items;
use alloy_eips::eip7685::Requests;
use alloy_eips::{eip6110, eip7002, eip7251};
use alloy_evm::block::{
    BUILDER_DEPOSIT_REQUEST_PREDEPLOY_ADDRESS, BUILDER_EXIT_REQUEST_PREDEPLOY_ADDRESS,
    BlockExecutionError, BlockExecutionResult, BlockExecutor, BlockValidationError,
};
use alloy_evm::eth::receipt_builder::{ReceiptBuilder, ReceiptBuilderCtx};
use alloy_evm::eth::spec::EthExecutorSpec;
use alloy_evm::eth::{EthBlockExecutionCtx, EthBlockExecutor, EthTxResult};
use alloy_evm::{Evm, FromRecoveredTx};
use alloy_hardforks::{EthereumHardfork, EthereumHardforks};
use alloy_primitives::map::B256Map;
use alloy_primitives::{Address, B256, Bytes, Log, U256, b256};
use revm::context::TxEnv;
use revm::context::result::{HaltReason, InvalidTransaction};
use revm::context_interface::Cfg as _;
use revm::database::BundleAccount;
use revm::database::states::bundle_state::BundleRetention;
use revm::database_interface::Database;
use revm::inspector::Inspector;
use revm::state::EvmState;
use revm::state::bal::BlockAccessIndex;
use std::borrow::Cow;
use witness::{BlockState, Change, ReadCode, State};

/// The result of running a block, not yet compared with the header.
#[derive(Debug)]
pub struct Executed {
    /// One receipt a transaction.
    pub receipts: Vec<Receipt>,
    /// EIP-7685 requests, ordered by type, empty ones left out.
    pub requests: Requests,
    /// Gas used by the block as its header counts it.
    pub gas_used: u64,
    /// Blob gas used by the block.
    pub blob_gas_used: u64,
    /// The RLP of the block access list (EIP-7928), from Amsterdam on.
    pub block_access_list: Option<Bytes>,
    /// Items in that list, as EIP-7928 counts them.
    pub block_access_list_items: u64,
    /// Changed accounts and slots, each account once, in no order.
    pub changes: Vec<Change>,
    /// Codes that the block deployed, by hash.
    pub new_codes: Vec<(B256, Bytes)>,
    /// Codes read from the pre-state, by hash: the witness's `codes`.
    pub codes_read: B256Map<ReadCode>,
    /// The lowest ancestor whose hash was read, else the parent: the first of the witness's
    /// `headers`.
    pub first_ancestor: u64,
    /// Whether a transaction ran twice with different outcomes (EIP-7610), so that the recorded
    /// reads contain some that are not part of the block.
    pub(crate) read_too_much: bool,
}

/// Runs the system calls, transactions and withdrawals of `block` on `state`, which is the state
/// after its parent.
///
/// Nothing is compared with the header yet, except what decides whether a transaction may run.
///
/// # Errors
/// [`BlockError::Invalid`] if the block breaks a rule of execution, [`BlockError::State`] if the
/// state cannot answer a read, and [`BlockError::Internal`].
pub fn execute<S: BlockState>(
    chain: &ChainSpec,
    block: &SealedBlock,
    senders: &dyn Senders,
    state: S,
) -> Result<Executed, BlockError> {
    let recorder = Recorder::new(chain, &block.header, state, None, false);
    execute_with(chain, block, senders, recorder, None)
}

/// The slow twin of [`execute`]: every transaction runs under the inspector that follows contract
/// creations, so none runs twice and nothing is read in vain. The results are the same.
///
/// # Errors
/// See [`execute`].
#[doc(hidden)]
pub fn execute_exact<S: BlockState>(
    chain: &ChainSpec,
    block: &SealedBlock,
    senders: &dyn Senders,
    state: S,
) -> Result<Executed, BlockError> {
    let recorder = Recorder::new(chain, &block.header, state, None, true);
    execute_with(chain, block, senders, recorder, None)
}

/// Runs `block` as [`execute`] does. `state` has afterwards revealed exactly the nodes that the
/// block reads.
///
/// # Errors
/// See [`execute`].
pub fn run(
    chain: &ChainSpec,
    block: &SealedBlock,
    senders: &dyn Senders,
    options: RunOptions<'_>,
    state: &mut impl BlockState,
) -> Result<Executed, BlockError> {
    let RunOptions { codes, ahead } = options;
    let header = &block.header;
    let recorder = Recorder::new(chain, header, &mut *state, codes.cloned(), false);
    let executed = execute_with(chain, block, senders, recorder, ahead)?;
    if !executed.read_too_much {
        return Ok(executed);
    }
    state.restart()?;
    let recorder = Recorder::new(chain, header, state, codes.cloned(), true);
    execute_with(chain, block, senders, recorder, None)
}

fn execute_with<S: BlockState>(
    chain: &ChainSpec,
    block: &SealedBlock,
    senders: &dyn Senders,
    recorder: Recorder<S>,
    ahead: Option<&dyn AheadOutcomes>,
) -> Result<Executed, BlockError> {
    let header = &block.header;
    let amsterdam = chain.is_amsterdam_active_at_timestamp(header.timestamp);
    let mut db = BlockCache(
        revm::database::State::builder()
            .with_database(recorder)
            .with_bundle_update()
            .with_bal_builder_if(amsterdam)
            .build(),
    );
    let rules = BlockRules::new(chain, header);
    let env = environment(chain, header);
    let executor = EthBlockExecutor::new(evm(&mut db, env), context(block), rules, Receipts);
    let outcome = run_all(chain, block, senders, executor, ahead);
    // A failed read comes first: alloy-evm turns some of them into verdicts on the block.
    if let Some(error) = db.recorder().error.take() {
        return Err(error.into());
    }
    let result = outcome?;
    db.recorder().state.all_ran();
    Ok(finish(db.0, header.number.saturating_sub(1), result))
}

pub(crate) type Executor<'a, 'b, S> =
    EthBlockExecutor<'b, BlockEvm<'a, S>, BlockRules<'b>, Receipts>;

/// The block as the executor is told of it.
pub(crate) fn context(block: &SealedBlock) -> EthBlockExecutionCtx<'_> {
    let header = &block.header;
    EthBlockExecutionCtx {
        parent_hash: header.parent_hash,
        parent_beacon_block_root: header.parent_beacon_block_root,
        ommers: &block.body.ommers,
        withdrawals: block.body.withdrawals.as_ref().map(|w| Cow::Borrowed(&w[..])),
        extra_data: header.extra_data.clone(),
        tx_count_hint: Some(block.body.transactions.len()),
        slot_number: header.slot_number,
    }
}

fn run_all<S: BlockState>(
    chain: &ChainSpec,
    block: &SealedBlock,
    senders: &dyn Senders,
    mut executor: Executor<'_, '_, S>,
    ahead: Option<&dyn AheadOutcomes>,
) -> Result<BlockExecutionResult<Receipt>, BlockError> {
    begin(chain, block, &mut executor)?;
    let number = block.header.number;
    let byzantium = chain.is_byzantium_active_at_block(number);
    let transactions = &block.body.transactions;
    for (index, transaction) in transactions.iter().enumerate() {
        let sender = senders.sender(index)?;
        executor.evm_mut().db_mut().0.set_bal_index(BlockAccessIndex::new(index as u64 + 1));
        let ran = ahead.and_then(|ahead| ahead.take(index));
        execute_transaction(chain, &mut executor, transaction, sender, ran)
            .map_err(|error| refused(index, sender, &error))?;
        if let (false, Some(receipt)) = (byzantium, executor.receipts.last_mut()) {
            rules::put_root(executor.evm.db_mut(), receipt)
                .map_err(|error| BlockError::Internal(error.to_string()))?;
        }
    }
    if let Some(ahead) = ahead {
        ahead.end();
    }
    executor
        .evm_mut()
        .db_mut()
        .0
        .set_bal_index(BlockAccessIndex::new(transactions.len() as u64 + 1));
    end(chain, block.header.timestamp, executor)
}

/// Runs what comes behind the transactions: system calls, withdrawals and rewards.
pub(crate) fn end<'a, S: State, I: Inspector<Context<'a, S>>>(
    chain: &ChainSpec,
    timestamp: u64,
    mut executor: EthBlockExecutor<'_, BlockEvm<'a, S, I>, BlockRules<'_>, Receipts>,
) -> Result<BlockExecutionResult<Receipt>, BlockError> {
    let logs = executor.receipts().iter().flat_map(|receipt| receipt.logs());
    let deposits = deposits(chain, timestamp, logs)?;
    check_system_contracts(chain, timestamp, executor.evm_mut().db_mut())?;
    // alloy-evm refuses a deposit with more than one topic, which the rule allows.
    let receipts = std::mem::take(&mut executor.receipts);
    let (_, mut result) = executor.finish().map_err(system_call_failed)?;
    result.receipts = receipts;
    if !deposits.is_empty() {
        let others = std::mem::take(&mut result.requests);
        result.requests.push_request_with_type(eip6110::DEPOSIT_REQUEST_TYPE, deposits);
        result.requests.extend(others);
    }
    Ok(result)
}

/// Runs what comes before the transactions.
pub(crate) fn begin<S: State>(
    chain: &ChainSpec,
    block: &SealedBlock,
    executor: &mut Executor<'_, '_, S>,
) -> Result<(), BlockError> {
    let number = block.header.number;
    if chain.ethereum_fork_activation(EthereumHardfork::Dao).transitions_at_block(number) {
        let keep_empty = !chain.is_spurious_dragon_active_at_block(number);
        rules::move_dao_balances(executor.evm_mut().db_mut(), keep_empty)
            .map_err(|error| BlockError::Internal(error.to_string()))?;
    }
    // alloy-evm calls them the other way round than the specification (`apply_body`).
    let beacon_root = block.header.parent_beacon_block_root;
    let caller = &mut executor.system_caller;
    caller
        .apply_beacon_root_contract_call(beacon_root, &mut executor.evm)
        .and_then(|()| {
            caller.apply_blockhashes_contract_call(block.header.parent_hash, &mut executor.evm)
        })
        .map_err(system_call_failed)
}

fn system_call_failed(error: BlockExecutionError) -> BlockError {
    match error {
        BlockExecutionError::Internal(error) => BlockError::Internal(error.to_string()),
        error => InvalidBlock::Execution(error.to_string()).into(),
    }
}

/// Why the transaction at `index` may not run.
pub(crate) fn refused(index: usize, sender: Address, error: &BlockExecutionError) -> BlockError {
    match error {
        BlockExecutionError::Internal(error) => BlockError::Internal(error.to_string()),
        error => InvalidBlock::Transaction { index, reason: reason(error, sender) }.into(),
    }
}

/// Runs one transaction, and settles which of its code reads were reads of the pre-state.
fn execute_transaction<S: State>(
    chain: &ChainSpec,
    executor: &mut Executor<'_, '_, S>,
    transaction: &Transaction,
    sender: Address,
    ahead: Option<AheadOutcome>,
) -> Result<(), BlockExecutionError> {
    let environment = TxEnv::from_recovered_tx(transaction, sender);
    let output = run_transaction(executor, transaction, sender, &environment, ahead)?;
    commit(chain, executor, &environment, output)
}

type Output = EthTxResult<HaltReason, TxType>;

/// Runs one transaction, and changes nothing yet.
pub(crate) fn run_transaction<S: State>(
    executor: &mut Executor<'_, '_, S>,
    transaction: &Transaction,
    sender: Address,
    environment: &TxEnv,
    ahead: Option<AheadOutcome>,
) -> Result<Output, BlockExecutionError> {
    executor.evm_mut().db_mut().recorder().transaction = TransactionCodes::of(environment);
    if environment.kind.is_create() {
        executor.evm_mut().db_mut().recorder().note_creation();
    }
    if executor.evm().db().0.database.always_exact {
        executor.evm_mut().db_mut().restart_exactly();
        executor.evm_mut().set_inspector_enabled(true);
    }
    let recovered = Recovered::new_unchecked(transaction, sender);
    let ahead = ahead.filter(|_| has_room(executor, transaction));
    let mut output = match ahead.and_then(|ran| ran.repeat(executor.evm_mut().db_mut())) {
        Some(result) => Ok(EthTxResult {
            result,
            blob_gas_used: transaction.blob_gas_used().unwrap_or_default(),
            tx_type: transaction.tx_type(),
        }),
        None => executor.execute_transaction_without_commit((environment.clone(), recovered)),
    };
    let after = output.as_ref().ok().map(|output| &output.result.state);
    if executor.evm_mut().db_mut().is_ambiguous(after) {
        // An error of the first run must not be seen by the second.
        executor.evm_mut().error = Ok(());
        executor.evm_mut().db_mut().restart_exactly();
        executor.evm_mut().set_inspector_enabled(true);
        output = executor.execute_transaction_without_commit((environment.clone(), recovered));
        executor.evm_mut().set_inspector_enabled(false);
    }
    output
}

/// Makes the changes of a transaction that has run.
pub(crate) fn commit<S: State>(
    chain: &ChainSpec,
    executor: &mut Executor<'_, '_, S>,
    environment: &TxEnv,
    mut output: Output,
) -> Result<(), BlockExecutionError> {
    let db = executor.evm_mut().db_mut();
    settle_markers(db, environment, &mut output.result.state, chain.chain_id())
        .map_err(BlockExecutionError::other)?;
    db.note_written(&output.result.state);
    executor.commit_transaction(output);
    Ok(())
}

/// Whether the block has gas left for the transaction, from Amsterdam on in both dimensions
/// (EIP-8037). A transaction that ran ahead is checked too; if there is too little, the executor
/// reports it.
pub(crate) fn has_room<S: State>(
    executor: &Executor<'_, '_, S>,
    transaction: &Transaction,
) -> bool {
    let (rules, limit) = (executor.evm.cfg_env(), executor.evm.block().gas_limit);
    let gas_limit = transaction.gas_limit();
    let regular = gas_limit.min(rules.tx_gas_limit_cap());
    if rules.enable_amsterdam_eip8037 {
        regular <= limit.saturating_sub(executor.block_regular_gas_used)
            && gas_limit <= limit.saturating_sub(executor.block_state_gas_used)
    } else {
        regular <= limit.saturating_sub(executor.cumulative_tx_gas_used)
    }
}

/// Reads of delegation markers that the transaction itself had written before are no pre-state
/// reads; the other reads of markers must be answered by the state.
fn settle_markers<S: State>(
    db: &mut BlockCache<S>,
    transaction: &TxEnv,
    after: &mut EvmState,
    chain_id: u64,
) -> Result<(), ReadError> {
    if transaction.authorization_list.is_empty() {
        return Ok(());
    }
    let Markers { written, undone } = codes::authorized_markers(db, transaction, after, chain_id);
    let fetched = std::mem::take(&mut db.recorder().transaction.fetched);
    let markers = std::mem::take(&mut db.recorder().transaction.markers);
    for hash in fetched.into_iter().filter(|hash| markers.contains_key(hash)) {
        match written.get(&hash) {
            Some(false) => {
                db.recorder().codes.remove(&hash);
                if undone {
                    db.forget_code(&hash, after);
                }
            }
            Some(true) | None => db.recorder().confirm_code(hash)?,
        }
    }
    if !undone {
        for (hash, code) in markers.into_iter().filter(|(hash, _)| written.contains_key(hash)) {
            db.recorder().note_written(hash, code);
        }
    }
    Ok(())
}

/// From Prague on, the requests of all deposits that the deposit contract has logged, one after the
/// other (EIP-6110, `parse_deposit_requests`). The block is invalid when a log has another layout
/// than the contract's own (`is_valid_deposit_event_data`): five byte strings of fixed lengths.
pub(crate) fn deposits<'a>(
    chain: &ChainSpec,
    timestamp: u64,
    logs: impl Iterator<Item = &'a Log>,
) -> Result<Vec<u8>, InvalidBlock> {
    let mut requests = Vec::new();
    if !chain.is_prague_active_at_timestamp(timestamp) {
        return Ok(requests);
    }
    let contract = chain.deposit_contract_address();
    for log in logs {
        let is_deposit = Some(log.address) == contract
            && log.data.topics().first() == Some(&DEPOSIT_EVENT_SIGNATURE_HASH);
        if is_deposit && append_deposit(&log.data.data, &mut requests).is_none() {
            let reason = "a log of the deposit contract has not the layout of a deposit";
            return Err(InvalidBlock::Execution(reason.into()));
        }
    }
    Ok(requests)
}

/// Lengths of public key, withdrawal credentials, amount, signature and index, in bytes.
const DEPOSIT_FIELDS: [usize; 5] = [48, 32, 8, 96, 8];

/// Appends the request that a log's data makes, field by field; `None` when it has another layout.
fn append_deposit(data: &[u8], requests: &mut Vec<u8>) -> Option<()> {
    let word = |at: usize| data.get(at..at + 32).map(U256::from_be_slice);
    let mut end = 32 * DEPOSIT_FIELDS.len();
    for (index, length) in DEPOSIT_FIELDS.into_iter().enumerate() {
        if word(32 * index) != Some(U256::from(end)) || word(end) != Some(U256::from(length)) {
            return None;
        }
        requests.extend(data.get(end + 32..end + 32 + length)?);
        end += 32 + length.next_multiple_of(32);
    }
    (data.len() == end).then_some(())
}

/// keccak-256 of `DepositEvent(bytes,bytes,bytes,bytes,bytes)`.
const DEPOSIT_EVENT_SIGNATURE_HASH: B256 =
    b256!("0x649bbc62d0e31342afea4e5cd82d4049e7e1ee912fc0889aa790803be39038c5");

/// From Prague on a block is invalid when a contract that its end calls has no code (EIP-7002,
/// EIP-7251, EIP-8282).
fn check_system_contracts<S: State>(
    chain: &ChainSpec,
    timestamp: u64,
    db: &mut BlockCache<S>,
) -> Result<(), InvalidBlock> {
    let prague = chain.is_prague_active_at_timestamp(timestamp);
    let amsterdam = chain.is_amsterdam_active_at_timestamp(timestamp);
    let contracts = [
        (prague, eip7002::WITHDRAWAL_REQUEST_PREDEPLOY_ADDRESS),
        (prague, eip7251::CONSOLIDATION_REQUEST_PREDEPLOY_ADDRESS),
        (amsterdam, BUILDER_DEPOSIT_REQUEST_PREDEPLOY_ADDRESS),
        (amsterdam, BUILDER_EXIT_REQUEST_PREDEPLOY_ADDRESS),
    ];
    for (_, address) in contracts.into_iter().filter(|(active, _)| *active) {
        let account = db.basic(address);
        let account = account.map_err(|error| InvalidBlock::Execution(error.to_string()))?;
        if account.is_none_or(|account| account.is_empty_code_hash()) {
            return Err(InvalidBlock::SystemContractEmpty(address));
        }
    }
    Ok(())
}

/// Why a transaction cannot run: a wrong nonce in geth's words, so that they can be searched for.
fn reason(error: &BlockExecutionError, sender: Address) -> String {
    let BlockExecutionError::Validation(BlockValidationError::InvalidTx { error, .. }) = error
    else {
        return error.to_string();
    };
    match error.as_invalid_tx_err() {
        Some(InvalidTransaction::NonceTooHigh { tx, state }) => {
            format!("nonce too high: address {sender}, tx: {tx} state: {state}")
        }
        Some(InvalidTransaction::NonceTooLow { tx, state }) => {
            format!("nonce too low: address {sender}, tx: {tx} state: {state}")
        }
        _ => error.to_string(),
    }
}

fn finish<S: BlockState>(
    mut db: revm::database::State<Recorder<S>>,
    parent: u64,
    result: BlockExecutionResult<Receipt>,
) -> Executed {
    let access_list = db.take_built_alloy_bal();
    db.merge_transitions(BundleRetention::PlainState);
    let bundle = db.take_bundle();
    let changes = bundle.state.iter().filter_map(|(address, account)| change(*address, account));
    let new_codes = bundle.contracts.iter().map(|(hash, code)| (*hash, code.original_bytes()));
    let recorder = db.database;
    Executed {
        receipts: result.receipts,
        requests: result.requests,
        gas_used: result.gas_used,
        blob_gas_used: result.blob_gas_used,
        block_access_list_items: access_list.as_deref().map_or(0, total_bal_items),
        block_access_list: access_list.map(|list| alloy_rlp::encode(&list).into()),
        changes: changes.collect(),
        new_codes: new_codes.collect(),
        codes_read: recorder.codes,
        first_ancestor: recorder.lowest_ancestor.unwrap_or(parent),
        read_too_much: recorder.collided && !recorder.always_exact,
    }
}

/// The change of one account; `None` if it ends as it began.
pub(crate) fn change(address: Address, account: &BundleAccount) -> Option<Change> {
    let storage_wiped = account.status.was_destroyed();
    let slots: Vec<_> = account
        .storage
        .iter()
        .filter(|(_, slot)| storage_wiped || slot.is_changed())
        .map(|(slot, value)| (*slot, value.present_value()))
        .collect();
    if !account.is_info_changed() && !storage_wiped && slots.is_empty() {
        return None;
    }
    let info = account.info.as_ref().map(account_info);
    Some(Change { address, account: info, storage_wiped, slots })
}

/// Builds receipts of [`Transaction`]s.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Receipts;

impl ReceiptBuilder for Receipts {
    type Transaction = Transaction;
    type Receipt = Receipt;

    fn build_receipt<E: Evm>(&self, context: ReceiptBuilderCtx<'_, TxType, E>) -> Receipt {
        let receipt = Logs {
            status: Eip658Value::Eip658(context.result.is_success()),
            cumulative_gas_used: context.cumulative_gas_used,
            logs: context.result.into_logs(),
        }
        .with_bloom();
        match context.tx_type {
            TxType::Legacy => Receipt::Legacy(receipt),
            TxType::Eip2930 => Receipt::Eip2930(receipt),
            TxType::Eip1559 => Receipt::Eip1559(receipt),
            TxType::Eip4844 => Receipt::Eip4844(receipt),
            TxType::Eip7702 => Receipt::Eip7702(receipt),
        }
    }
}
