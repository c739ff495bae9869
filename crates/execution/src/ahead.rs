//! Running transactions ahead of their turn, side by side: on what a block access list says of
//! those before (EIP-7928), or, without one, on what these have left so far, and a guess that the
//! others touch something else.
//!
//! List and guess are believed only for as long as that takes. What came of a transaction is used
//! when its turn has come, and when the state then answers everything that the transaction read as
//! it was answered before: the same code, run on the same answers, does the same. These reads are
//! reads of the block as any others, up to the first that is answered otherwise, which the
//! transaction would have made in any case; it then runs in its turn. So whatever a list says,
//! verdict, receipts and witness are those of a block that ran in order.
//!
//! Without a list nobody knows beforehand what the block's beneficiary has, to which each
//! transaction adds. It gets nothing ahead of its turn: an address that stands in for it does, and
//! what asks for the beneficiary, or for what it has, runs in its turn.

use crate::access_list::AccessList;
use crate::cache::BlockCache;
use crate::codes::Context;
use crate::evm::{BlockEvm, environment, evm, evm_with};
use crate::recorder::{Recorder, TransactionCodes, account_info};
use crate::{ChainSpec, CodeCache, CommittedChanges, SealedBlock, Senders};
use alloy_evm::{Evm, FromRecoveredTx};
use alloy_hardforks::EthereumHardforks;
use alloy_primitives::map::AddressSet;
use alloy_primitives::{Address, B256, Bytes, U256};
use revm::bytecode::opcode;
use revm::context::TxEnv;
use revm::context_interface::JournalTr;
use revm::context_interface::result::{ExecutionResult, HaltReason, Output, ResultAndState};
use revm::database::states::block_hash_cache::BlockHashCache;
use revm::database_interface::Database;
use revm::interpreter::instructions::block_info;
use revm::interpreter::interpreter::EthInterpreter;
use revm::interpreter::{Instruction, InstructionContext, InstructionExecResult};
use revm::state::{self, TransactionId, bal::BlockAccessIndex};
use std::fmt::Debug;
use trie::{AccountInfo, EMPTY_ROOT_HASH};
use witness::{Account, Code, State, StateError};

/// Where [`validate`](crate::validate) finds transactions that have run ahead.
pub trait AheadOutcomes: Debug {
    /// What came of the transaction at `index`, asked for once in the order of the block; `None`
    /// when it is to run now.
    fn take(&self, index: usize) -> Option<AheadOutcome>;

    /// All transactions have had their turn: nothing more is asked for.
    fn end(&self) {}
}

/// What makes the running of a block faster, and changes nothing of what it gives.
#[derive(Debug, Clone, Copy, Default)]
pub struct RunOptions<'a> {
    /// Codes made ready to run. Those in the cache are not asked of the state.
    pub codes: Option<&'a CodeCache>,
    /// Transactions that run ahead.
    pub ahead: Option<&'a dyn AheadOutcomes>,
}

/// What came of a transaction that ran ahead, and all that it was told.
#[derive(Debug)]
pub struct AheadOutcome {
    output: ResultAndState<HaltReason>,
    reads: Vec<RecordedRead>,
    /// Codes that it read.
    codes: Vec<B256>,
    /// Whether it created a contract, or tried to: after all that it read.
    create_seen: bool,
    /// What the beneficiary gets, when another address has stood in for it.
    reward: Option<Reward>,
}

#[derive(Debug)]
struct Reward {
    beneficiary: Address,
    wei: U256,
    /// Whether an account that is touched stays, or comes to be, when it is empty: until EIP-161.
    keeps_empty: bool,
}

#[derive(Debug)]
enum RecordedRead {
    Account(Address, Option<AccountInfo>),
    Slot(Address, U256, U256),
    Ancestor(u64, B256),
}

/// A block whose transactions may run ahead.
#[derive(Debug, Clone, Copy)]
pub struct AheadExecutor<'a> {
    /// The chain's rules.
    pub chain: &'a ChainSpec,
    /// The block.
    pub block: &'a SealedBlock,
    /// The transactions' senders.
    pub senders: &'a dyn Senders,
    /// What is known of the transactions before one.
    pub before: PriorChanges<'a>,
    /// Codes made ready to run.
    pub codes: Option<&'a CodeCache>,
}

/// What is known of the transactions before one that runs ahead.
#[derive(Debug, Clone, Copy)]
pub enum PriorChanges<'a> {
    /// What the payload says that the block reads and changes.
    List(&'a AccessList),
    /// What those have changed that have had their turn.
    Committed(&'a CommittedChanges),
}

impl AheadExecutor<'_> {
    /// Runs the transactions that `next` names, by index, each on `state`, which is the state after
    /// the parent, with what is known of those before, and hands `done` what came of it, `None`
    /// when that is not worth keeping, and the gas that it took.
    ///
    /// Nothing that `state` is asked here is a read of the block, until the transaction's turn has
    /// come.
    pub fn run<S: State>(
        &self,
        state: S,
        mut next: impl FnMut() -> Option<usize>,
        mut done: impl FnMut(usize, Option<AheadOutcome>, u64),
    ) {
        let transactions = &self.block.body.transactions;
        let is_listed = matches!(self.before, PriorChanges::List(_));
        let state = AheadState { before: self.before, state, index: 0, reads: Vec::new() };
        let header = &self.block.header;
        let recorder = Recorder::new(self.chain, header, state, self.codes.cloned(), false);
        let mut db = BlockCache(revm::database::State::builder().with_database(recorder).build());
        let mut env = environment(self.chain, &self.block.header);
        let beneficiary = env.block_env.beneficiary;
        let stand_in = (!is_listed).then(|| stand_in(self.block));
        env.block_env.beneficiary = stand_in.unwrap_or(beneficiary);
        let keeps_empty = !self.chain.is_spurious_dragon_active_at_block(self.block.header.number);
        let is_warm = self.chain.is_shanghai_active_at_timestamp(self.block.header.timestamp);
        let asking = stand_in.map(|_| (opcode::COINBASE, Instruction::new(coinbase)));
        let mut evm = evm_with(&mut db, env, asking);
        if stand_in.is_some() && is_warm {
            // It is as warm as if it were the beneficiary (EIP-3651): an access that a cold one
            // leaves too little gas for reads nothing, and would not be told.
            let precompiles = evm.precompiles().addresses().copied();
            let warm: AddressSet = precompiles.chain([beneficiary]).collect();
            evm.journaled_state.warm_precompiles(&warm);
        }
        while let Some(index) = next() {
            let mut gas_used = 0;
            let ran = transactions.get(index).and_then(|transaction| {
                // Where the signature is wrong, so is the block.
                let sender = self.senders.sender(index).ok()?;
                let transaction = TxEnv::from_recovered_tx(transaction, sender);
                let mut ran = run_one(&mut evm, index, &transaction, &mut gas_used)?;
                match stand_in {
                    Some(stand_in) => ran.reward(beneficiary, stand_in, keeps_empty).then_some(ran),
                    None => Some(ran),
                }
            });
            done(index, ran, gas_used);
        }
    }
}

/// An address that stands in for the beneficiary of a block: no transaction in the block can name
/// it, since the hash is known only when the block is complete.
fn stand_in(block: &SealedBlock) -> Address {
    Address::from_word(block.hash())
}

/// Whoever asks who the beneficiary is would learn of the one that stands in.
fn coinbase<S: State>(
    context: InstructionContext<'_, Context<'_, S>, EthInterpreter>,
) -> InstructionExecResult {
    context.host.journaled_state.database.recorder().transaction.ambiguous = true;
    block_info::coinbase(context)
}

/// Runs the transactions of `block` that `next` names, by index, on `state`, which is the state
/// after the parent: for no other end than that it is asked for most of what they read. What those
/// before have changed is not seen, so one that depends on it may go another way than in its turn.
pub fn prefetch_reads<S: State>(
    chain: &ChainSpec,
    block: &SealedBlock,
    senders: &dyn Senders,
    codes: &CodeCache,
    state: S,
    mut next: impl FnMut() -> Option<usize>,
) {
    let recorder = Recorder::new(chain, &block.header, state, Some(codes.clone()), false);
    let mut db = BlockCache(revm::database::State::builder().with_database(recorder).build());
    let mut env = environment(chain, &block.header);
    // The sender may have another transaction in the block.
    env.cfg_env.disable_nonce_check = true;
    let mut evm = evm(&mut db, env);
    while let Some(index) = next() {
        evm.error = Ok(());
        let Some(transaction) = block.body.transactions.get(index) else { continue };
        // Whatever comes of it, the transaction's own turn will tell.
        let sender = senders.sender(index);
        let _ = sender.map(|sender| evm.transact(TxEnv::from_recovered_tx(transaction, sender)));
    }
}

fn run_one<S: State>(
    evm: &mut BlockEvm<'_, AheadState<'_, S>>,
    index: usize,
    transaction: &TxEnv,
    gas_used: &mut u64,
) -> Option<AheadOutcome> {
    evm.error = Ok(());
    let db = evm.db_mut();
    db.0.cache.clear();
    if db.recorder().lowest_ancestor.is_some() {
        db.0.block_hashes = BlockHashCache::default();
    }
    let recorder = db.recorder();
    recorder.restart();
    recorder.transaction = TransactionCodes::of(transaction);
    recorder.state.index = index as u64 + 1;
    recorder.state.reads.clear();
    if transaction.kind.is_create() {
        recorder.note_creation();
    }
    let mut output = evm.transact(transaction.clone()).ok()?;
    // Nobody asks what a transaction returns, and it may be more than a byte for each of its gas.
    match &mut output.result {
        ExecutionResult::Success { output, .. } => *output = Output::Call(Bytes::new()),
        ExecutionResult::Revert { output, .. } => *output = Bytes::new(),
        ExecutionResult::Halt { .. } => {}
    }
    *gas_used = output.result.gas().total_gas_spent();
    let recorder = evm.db_mut().recorder();
    // What only an inspector could tell is told when the turn has come.
    if recorder.error.is_some() || recorder.transaction.ambiguous {
        return None;
    }
    let TransactionCodes { fetched, create_seen, .. } = std::mem::take(&mut recorder.transaction);
    let reads = std::mem::take(&mut recorder.state.reads);
    Some(AheadOutcome { output, reads, codes: fetched, create_seen, reward: None })
}

impl AheadOutcome {
    /// Notes what the address that stood in for the beneficiary has got; `false` when what came of
    /// the transaction depends on who the beneficiary is.
    fn reward(&mut self, beneficiary: Address, stand_in: Address, keeps_empty: bool) -> bool {
        let of = |of| move |read: &RecordedRead| matches!(read, RecordedRead::Account(address, _) if *address == of);
        if self.reads.iter().any(of(beneficiary)) {
            return false;
        }
        self.reads.retain(|read| !of(stand_in)(read));
        let account = self.output.state.remove(&stand_in);
        let reward = |wei| Reward { beneficiary, wei, keeps_empty };
        self.reward = account.map(|account| reward(account.info.balance));
        true
    }

    /// Reads all that the transaction read, now that its turn has come, and returns what came of
    /// it; `None` as soon as an answer is another.
    pub(crate) fn repeat<S: State>(
        self,
        db: &mut BlockCache<S>,
    ) -> Option<ResultAndState<HaltReason>> {
        let Self { mut output, reads, codes, create_seen, reward } = self;
        for read in reads {
            let is_same = match read {
                RecordedRead::Account(address, before) => {
                    let now = db.basic(address).ok()?;
                    if let (Some(now), Some(account)) = (&now, output.state.get_mut(&address)) {
                        know_code(&mut account.info, now);
                    }
                    before == now.map(|info| account_info(&info))
                }
                RecordedRead::Slot(address, slot, before) => {
                    db.storage(address, slot).ok()? == before
                }
                RecordedRead::Ancestor(number, before) => db.block_hash(number).ok()? == before,
            };
            if !is_same {
                return None;
            }
        }
        for code_hash in codes {
            db.code_by_hash(code_hash).ok()?;
        }
        if let Some(Reward { beneficiary, wei, keeps_empty }) = reward {
            let account = db.basic(beneficiary).ok()?;
            let mut account = account.map_or_else(
                || state::Account::new_not_existing(TransactionId::ZERO),
                state::Account::from,
            );
            account.mark_touch();
            // One that overflows is not paid.
            if let Some(balance) = account.info.balance.checked_add(wei) {
                account.info.balance = balance;
            }
            // As the EVM leaves it at the end of a transaction.
            if keeps_empty && account.is_empty() {
                match account.is_loaded_as_not_existing() {
                    true => account.mark_created(),
                    false => account.unmark_touch(),
                }
            }
            output.state.insert(beneficiary, account);
        }
        if create_seen {
            db.recorder().note_creation();
        }
        Some(output)
    }
}

/// An account that a transaction before has made known with its code stays so: the codes that the
/// block deploys are collected from there.
fn know_code(info: &mut state::AccountInfo, now: &state::AccountInfo) {
    if info.code.is_none() && info.code_hash == now.code_hash {
        info.code.clone_from(&now.code);
    }
}

/// The state after the parent, with what is known of the transactions before one.
#[derive(Debug)]
struct AheadState<'a, S> {
    before: PriorChanges<'a>,
    state: S,
    /// Index of the transaction in a list: 1 is the first.
    index: u64,
    /// What was asked for, with the answers.
    reads: Vec<RecordedRead>,
}

impl<S: State> State for AheadState<'_, S> {
    fn account(&mut self, address: Address) -> Result<Option<Account>, StateError> {
        let parent = self.state.account(address)?;
        let info = match self.before {
            PriorChanges::List(list) => {
                let before = parent.map_or(AccountInfo::EMPTY, AccountInfo::from);
                let listed = list.account(&address);
                let index = BlockAccessIndex::new(self.index);
                let info = listed.map_or(before, |listed| listed.at(index, before));
                // Being there changes only by a change of what is there.
                let is_there =
                    if info == before { parent.is_some() } else { info != AccountInfo::EMPTY };
                is_there.then_some(info)
            }
            PriorChanges::Committed(committed) => {
                committed.account(&address).unwrap_or(parent.map(AccountInfo::from))
            }
        };
        self.reads.push(RecordedRead::Account(address, info));
        let storage_root = parent.map_or(EMPTY_ROOT_HASH, |account| account.storage_root);
        Ok(info.map(|AccountInfo { nonce, balance, code_hash }| Account {
            nonce,
            balance,
            storage_root,
            code_hash,
        }))
    }

    fn storage(&mut self, address: Address, slot: U256) -> Result<U256, StateError> {
        let known = match self.before {
            PriorChanges::List(list) => {
                let index = BlockAccessIndex::new(self.index);
                list.account(&address).and_then(|account| account.slot_at(index, &slot))
            }
            PriorChanges::Committed(committed) => committed.slot(&address, &slot),
        };
        let value = known.map_or_else(|| self.state.storage(address, slot), Ok)?;
        self.reads.push(RecordedRead::Slot(address, slot, value));
        Ok(value)
    }

    fn code(&mut self, code_hash: B256) -> Result<Bytes, StateError> {
        Ok(self.code_to_run(code_hash)?.bytes())
    }

    fn code_to_run(&mut self, code_hash: B256) -> Result<Code, StateError> {
        let PriorChanges::List(list) = self.before else {
            return self.state.code_to_run(code_hash);
        };
        // Its account was read before; if there are several, each has it from somewhere.
        let account = self.reads.iter().rev().find_map(|read| match read {
            RecordedRead::Account(address, Some(info)) if info.code_hash == code_hash => {
                Some(address)
            }
            _ => None,
        });
        let listed = account.and_then(|address| list.account(address)?.code(&code_hash));
        listed.cloned().map_or_else(|| self.state.code_to_run(code_hash), |code| Ok(code.into()))
    }

    fn block_hash(&mut self, number: u64) -> Result<B256, StateError> {
        let hash = self.state.block_hash(number)?;
        self.reads.push(RecordedRead::Ancestor(number, hash));
        Ok(hash)
    }
}

#[cfg(test)]
mod tests;
