//! The code reads of a transaction that are reads of the pre-state.
//!
//! The canonical rule goes by hash: a read counts unless the block, up to that very moment, has
//! written a code with the same hash in frames that were not reverted (`get_code` and
//! `code_writes` in execution-specs). The EVM's database sees reads only, so some transactions,
//! all rare, need a second look:
//!
//! - a code was read after a contract creation: the transaction runs again under
//!   [`CodeInspector`], which follows creations frame by frame;
//! - a contract may have been created where there is storage, which is a collision that only the
//!   inspector can tell the EVM of (EIP-7610): the transaction runs again likewise;
//! - EIP-7702 authorizations write delegation markers: [`authorized_markers`] replays their list.

use crate::cache::BlockCache;
use crate::deadline::{Clock, Deadline};
use crate::net_gas;
use crate::recorder::delegation_marker;
use crate::trace::{Sent, View, Watch};
use alloy_primitives::map::{AddressMap, B256Map};
use alloy_primitives::{Address, Bytes, KECCAK256_EMPTY, Log, U256};
use revm::context::TxEnv;
use revm::context_interface::JournalTr;
use revm::context_interface::journaled_state::account::JournaledAccountTr;
use revm::context_interface::transaction::AuthorizationTr;
use revm::database_interface::Database as _;
use revm::inspector::Inspector;
use revm::interpreter::interpreter::EthInterpreter;
use revm::interpreter::{
    CallInputs, CallOutcome, CreateInputs, CreateOutcome, Gas, InstructionResult, Interpreter,
    InterpreterResult,
};
use revm::primitives::constants::CALL_STACK_LIMIT;
use revm::primitives::hardfork::SpecId;
use revm::state::{AccountInfo, EvmState};
use std::collections::BTreeSet;

/// The EVM's context in [`execute`](crate::execute).
pub(crate) type Context<'a, S> = alloy_evm::eth::EthEvmContext<&'a mut BlockCache<S>>;

/// Tells the recorder where frames begin and end, and which codes they deployed, and the watch
/// what runs.
#[derive(Debug, Default)]
pub(crate) struct CodeInspector {
    /// Follows the transaction for a tracer.
    pub(crate) watch: Option<Box<Watch>>,
    /// Ends a call whose time is over.
    pub(crate) clock: Option<Clock>,
}

impl CodeInspector {
    /// One that ends the runs at a deadline.
    pub(crate) fn until(deadline: Deadline) -> Self {
        Self { watch: None, clock: Some(Clock::new(deadline)) }
    }

    /// Whether the runs were ended.
    pub(crate) fn is_out_of_time(&self) -> bool {
        self.clock.as_ref().is_some_and(Clock::is_over)
    }

    fn look_at_clock(&mut self) {
        if let Some(clock) = &mut self.clock {
            clock.look();
        }
    }
}

impl<'a, S: witness::State> Inspector<Context<'a, S>> for CodeInspector {
    fn step(
        &mut self,
        interpreter: &mut Interpreter<EthInterpreter>,
        context: &mut Context<'a, S>,
    ) {
        if self.clock.as_mut().is_some_and(Clock::step) {
            return interpreter.halt(InstructionResult::OutOfGas);
        }
        if let Some(watch) = &mut self.watch {
            watch.step(interpreter, context);
        }
    }

    fn step_end(
        &mut self,
        interpreter: &mut Interpreter<EthInterpreter>,
        context: &mut Context<'a, S>,
    ) {
        if let Some(watch) = &mut self.watch {
            watch.step_end(interpreter, context);
        }
    }

    fn log(&mut self, context: &mut Context<'a, S>, log: Log) {
        if let Some(watch) = &mut self.watch {
            watch.log(&log, context);
        }
    }

    fn call(
        &mut self,
        context: &mut Context<'a, S>,
        inputs: &mut CallInputs,
    ) -> Option<CallOutcome> {
        self.look_at_clock();
        context.journaled_state.database.recorder().enter_frame();
        if let Some(watch) = &mut self.watch {
            watch.call(inputs, inputs.input.bytes(context), context);
        }
        None
    }

    fn call_end(
        &mut self,
        context: &mut Context<'a, S>,
        _: &CallInputs,
        outcome: &mut CallOutcome,
    ) {
        exit_frame(context, outcome.result.is_ok(), None);
        if let Some(watch) = &mut self.watch {
            watch.call_end(outcome, context);
        }
    }

    fn create(
        &mut self,
        context: &mut Context<'a, S>,
        inputs: &mut CreateInputs,
    ) -> Option<CreateOutcome> {
        self.look_at_clock();
        context.journaled_state.database.recorder().enter_frame();
        if let Some(watch) = &mut self.watch {
            watch.create(inputs, context);
        }
        collision(context, inputs)
    }

    fn create_end(
        &mut self,
        context: &mut Context<'a, S>,
        _: &CreateInputs,
        outcome: &mut CreateOutcome,
    ) {
        let success = outcome.result.is_ok() && outcome.address.is_some();
        exit_frame(context, success, Some(&outcome.result.output));
        if let Some(watch) = &mut self.watch {
            watch.create_end(outcome, context);
        }
    }
}

impl<S: witness::State> View for Context<'_, S> {
    fn spec(&self) -> SpecId {
        self.cfg.spec
    }

    fn has_net_gas(&self) -> bool {
        net_gas::is_in_force(&self.cfg.gas_params)
    }

    fn account(&mut self, address: Address) -> AccountInfo {
        match self.journaled_state.state.get(&address) {
            Some(account) => account.info.clone(),
            None => self.account_before(address).unwrap_or_default(),
        }
    }

    fn account_before(&mut self, address: Address) -> Option<AccountInfo> {
        self.journaled_state.database.basic(address).ok().flatten()
    }

    fn code(&mut self, account: &AccountInfo) -> Bytes {
        let code = match &account.code {
            Some(code) => Some(code.clone()),
            None => self.journaled_state.database.code_by_hash(account.code_hash).ok(),
        };
        code.map(|code| code.original_bytes()).unwrap_or_default()
    }

    fn slot(&mut self, address: Address, slot: U256) -> [U256; 2] {
        if let Some(account) = self.journaled_state.state.get(&address) {
            if let Some(value) = account.storage.get(&slot) {
                return [value.original_value(), value.present_value()];
            }
            if account.is_created() {
                return [U256::ZERO; 2];
            }
        }
        [self.journaled_state.database.storage(address, slot).unwrap_or_default(); 2]
    }

    fn is_warm(&self, address: Address) -> bool {
        let journal = &self.journaled_state;
        let id = journal.transaction_id;
        let loaded = journal.state.get(&address);
        journal.warm_addresses.is_warm(&address)
            || loaded.is_some_and(|account| !account.is_cold_transaction_id(id))
    }

    fn is_slot_warm(&self, address: Address, slot: U256) -> bool {
        let journal = &self.journaled_state;
        let id = journal.transaction_id;
        let loaded = journal.state.get(&address).and_then(|account| account.storage.get(&slot));
        journal.warm_addresses.is_storage_warm(&address, &slot)
            || loaded.is_some_and(|slot| !slot.is_cold_transaction_id(id))
    }

    fn beneficiary(&self) -> Address {
        self.block.beneficiary
    }

    fn authorities(&self) -> Vec<Address> {
        self.tx.authorization_list.iter().filter_map(AuthorizationTr::authority).collect()
    }

    fn authorization_refund(&mut self) -> u64 {
        // Before the first frame nothing else raises a nonce, but the sender's is raised once.
        let authorities: BTreeSet<_> = self.authorities().into_iter().collect();
        let refunded = authorities.into_iter().map(|authority| {
            let is_sender = authority == self.tx.caller;
            let before = self.account_before(authority);
            let is_new = before.is_none() && !is_sender;
            let nonce = before.map_or(0, |account| account.nonce) + u64::from(is_sender);
            let accepted = self.account(authority).nonce.saturating_sub(nonce);
            accepted.saturating_sub(u64::from(is_new))
        });
        refunded.sum::<u64>() * self.cfg.gas_params.tx_eip7702_auth_refund_regular()
    }

    fn sent(&self) -> Sent {
        let TxEnv { caller: from, kind: to, nonce, value, .. } = self.tx;
        Sent { from, to, nonce, input: self.tx.data.clone(), value }
    }

    fn logs(&self) -> usize {
        self.journaled_state.logs.len()
    }
}

/// Ends a frame. Codes that only a reverted frame had written are read from the state again.
fn exit_frame<S>(context: &mut Context<'_, S>, success: bool, created: Option<&Bytes>)
where
    S: witness::State,
{
    let journal = &mut context.journaled_state;
    for code_hash in journal.database.recorder().exit_frame(success, created) {
        journal.database.forget_code(&code_hash, &mut journal.inner.state);
    }
}

/// The outcome of creating a contract at an address that has storage, but neither code nor nonce
/// (EIP-7610): it fails as any collision does, all its gas used. `None` where there is no such
/// collision, or the creation fails before it would be noticed.
fn collision<S: witness::State>(
    context: &mut Context<'_, S>,
    inputs: &CreateInputs,
) -> Option<CreateOutcome> {
    let journal = &mut context.journaled_state;
    if journal.depth() > CALL_STACK_LIMIT as usize {
        return None;
    }
    let caller = &journal.load_account(inputs.caller()).ok()?.data.info;
    let (nonce, balance) = (caller.nonce, caller.balance);
    if balance < inputs.value() || nonce == u64::MAX {
        return None;
    }
    let address = inputs.created_address(nonce);
    let account = &journal.load_account(address).ok()?.data.info;
    if account.nonce != 0 || account.code_hash != KECCAK256_EMPTY {
        return None;
    }
    let recorder = journal.database.recorder();
    if !recorder.has_storage_only(&address) {
        return None;
    }
    recorder.collided = true;
    journal.load_account_mut(inputs.caller()).ok()?.data.bump_nonce();
    Some(CreateOutcome {
        result: InterpreterResult {
            result: InstructionResult::CreateCollision,
            gas: Gas::new_with_regular_gas_and_reservoir(inputs.gas_limit(), inputs.reservoir()),
            output: Bytes::new(),
        },
        address: None,
        charged_create_state_gas: inputs.charged_create_state_gas(),
    })
}

/// The delegation markers that a transaction's authorization list wrote.
#[derive(Debug, Default)]
pub(crate) struct Markers {
    /// Every marker written, with whether its hash was read before that.
    pub(crate) written: B256Map<bool>,
    /// Whether the list was undone: nothing is written for the transactions to come.
    pub(crate) undone: bool,
}

/// Replays the authorization list of a finished but uncommitted transaction, by the rules of
/// EIP-7702 and on the accounts as they were before it; `after` are the accounts after
/// it.
///
/// From Amsterdam on (EIP-2780) the list is paid for while it is processed, and all of it is undone
/// when the gas does not suffice for it, or to resolve the recipient's delegation behind it: the
/// first authority's nonce tells. What such a list would have written after its gas had run out is
/// among `written` all the same; nothing has been read since.
pub(crate) fn authorized_markers<S: witness::State>(
    state: &BlockCache<S>,
    transaction: &TxEnv,
    after: &EvmState,
    chain_id: u64,
) -> Markers {
    let before = |address: &Address| -> Option<AccountInfo> {
        state
            .0
            .cache
            .accounts
            .get(address)
            .map(|account| account.account_info().unwrap_or_default())
    };
    let mut markers = Markers::default();
    let mut read = Vec::new();
    let mut changed = AddressMap::<AccountInfo>::default();
    if let Some(mut sender) = before(&transaction.caller) {
        read.push(sender.code_hash);
        sender.nonce += 1;
        changed.insert(transaction.caller, sender);
    }
    for authorization in &transaction.authorization_list {
        let chain = authorization.chain_id();
        if !(chain.is_zero() || chain == U256::from(chain_id)) || authorization.nonce() == u64::MAX
        {
            continue;
        }
        let Some(authority) = authorization.authority() else { continue };
        let known = changed.get(&authority).cloned().or_else(|| before(&authority));
        let Some(mut account) = known else { break };
        read.push(account.code_hash);
        // An earlier transaction may have written the code into the account.
        let code =
            account.code.as_ref().or_else(|| state.0.cache.contracts.get(&account.code_hash));
        let delegable = account.code_hash == KECCAK256_EMPTY
            || markers.written.contains_key(&account.code_hash)
            || code.is_some_and(|code| code.is_eip7702());
        if !delegable || account.nonce != authorization.nonce() {
            continue;
        }
        // Besides the sender's, no nonce has changed before the first accepted authorization.
        let is_first = changed.len() <= 1;
        let nonce_after = after.get(&authority).map_or(0, |account| account.info.nonce);
        markers.undone |= is_first && nonce_after <= account.nonce;
        account.nonce += 1;
        (account.code_hash, account.code) = (KECCAK256_EMPTY, None);
        if authorization.address() != Address::ZERO {
            let (hash, _) = delegation_marker(authorization.address());
            account.code_hash = hash;
            markers.written.entry(hash).or_insert_with(|| read.contains(&hash));
        }
        changed.insert(authority, account);
    }
    markers
}
