//! Optimistic parallel execution: transactions run ahead of their turn, on the state that a block
//! access list claims (EIP-7928), or, without a list, on the state that the transactions committed
//! so far have left, on the assumption that those in between touch other accounts and slots.
//!
//! Neither the list nor the assumption is trusted. At its turn a transaction's recorded reads are
//! repeated. If the state gives the same answers, the recorded outcome is used: the same code on
//! the same input has the same effect. At the first different answer the transaction runs again in
//! its turn; it would have made that read in any case. The repeated reads count as reads of the
//! block, so verdict, receipts and witness are those of a block that runs in order, whatever the
//! list claims.
//!
//! Without a list the balance of the block's beneficiary is unknown, since each transaction adds to
//! it. A stand-in address receives the fee ahead of the turn, and a transaction that reads the
//! beneficiary runs in its turn.

use crate::access_list::AccessList;
use crate::cache::BlockCache;
use crate::codes::{CodeInspector, Context};
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

/// Outcomes of transactions that ran ahead, as [`validate`](crate::validate) asks for them.
pub trait AheadOutcomes: Debug {
    /// The outcome of the transaction at `index`; `None` if it is to run now. It is asked for once
    /// for each transaction, in the order of the block.
    fn take(&self, index: usize) -> Option<AheadOutcome>;

    /// Called when all transactions have had their turn; nothing more is asked for.
    fn end(&self) {}
}

/// Options for running a block. They make it faster and have no influence on the result.
#[derive(Debug, Clone, Copy, Default)]
pub struct RunOptions<'a> {
    /// A cache of analyzed codes. The state is not asked for a code in the cache.
    pub codes: Option<&'a CodeCache>,
    /// Outcomes of transactions that run ahead.
    pub ahead: Option<&'a dyn AheadOutcomes>,
}

/// The outcome of a transaction that ran ahead, with its read set.
#[derive(Debug)]
pub struct AheadOutcome {
    output: ResultAndState<HaltReason>,
    reads: Vec<RecordedRead>,
    /// The hashes of the codes that it read.
    codes: Vec<B256>,
    /// Whether it created a contract, or tried to, after its last read.
    create_seen: bool,
    /// The fee of the beneficiary, if a stand-in address received it.
    reward: Option<Reward>,
}

#[derive(Debug)]
struct Reward {
    beneficiary: Address,
    wei: U256,
    /// Whether a touched account exists although it is empty, as before EIP-161.
    keeps_empty: bool,
}

#[derive(Debug)]
enum RecordedRead {
    Account(Address, Option<AccountInfo>),
    Slot(Address, U256, U256),
    Ancestor(u64, B256),
}

impl RecordedRead {
    fn is_of_account(&self, account: Address) -> bool {
        matches!(self, Self::Account(address, _) if *address == account)
    }
}

/// Runs transactions of a block ahead of their turn.
#[derive(Debug, Clone, Copy)]
pub struct AheadExecutor<'a> {
    /// The chain's rules.
    pub chain: &'a ChainSpec,
    /// The block.
    pub block: &'a SealedBlock,
    /// The transactions' senders.
    pub senders: &'a dyn Senders,
    /// The known changes of earlier transactions.
    pub before: PriorChanges<'a>,
    /// A cache of analyzed codes.
    pub codes: Option<&'a CodeCache>,
}

/// The known changes of the transactions before one that runs ahead.
#[derive(Debug, Clone, Copy)]
pub enum PriorChanges<'a> {
    /// The payload's block access list.
    List(&'a AccessList),
    /// The changes of the transactions that have had their turn.
    Committed(&'a CommittedChanges),
}

impl AheadExecutor<'_> {
    /// Runs the transactions whose indices `next` returns. Each runs on `state`, the state after
    /// the parent, overlaid with the known changes of earlier transactions. `done` receives the
    /// index, the outcome (`None` if it is of no use), and the gas used.
    ///
    /// The reads made of `state` here are not yet reads of the block.
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
        let mut evm = evm_with(&mut db, env, asking, CodeInspector::default());
        if stand_in.is_some() && is_warm {
            // The real beneficiary stays warm (EIP-3651). If it were cold, an access could run out
            // of gas before it reads, and would not be recorded.
            let precompiles = evm.precompiles().addresses().copied();
            let warm: AddressSet = precompiles.chain([beneficiary]).collect();
            evm.journaled_state.warm_precompiles(&warm);
        }
        while let Some(index) = next() {
            let mut gas_used = 0;
            let ran = transactions.get(index).and_then(|transaction| {
                // A wrong signature makes the block invalid in the transaction's own turn.
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

/// COINBASE would reveal the stand-in address, so a transaction that uses it runs in its turn.
fn coinbase<S: State>(
    context: InstructionContext<'_, Context<'_, S>, EthInterpreter>,
) -> InstructionExecResult {
    context.host.journaled_state.database.recorder().transaction.ambiguous = true;
    block_info::coinbase(context)
}

/// Runs the transactions of `block` whose indices `next` returns on `state`, the state after the
/// parent, only to warm caches with their reads; the results are dropped. Changes of earlier
/// transactions are not seen, so a transaction may read other things than in its turn.
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
        // An error here says nothing: the transaction runs again in its turn.
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
    // The returned data is never used, and may take more than a byte for each unit of gas.
    match &mut output.result {
        ExecutionResult::Success { output, .. } => *output = Output::Call(Bytes::new()),
        ExecutionResult::Revert { output, .. } => *output = Bytes::new(),
        ExecutionResult::Halt { .. } => {}
    }
    *gas_used = output.result.gas().total_gas_spent();
    let recorder = evm.db_mut().recorder();
    // An ambiguous transaction needs the inspector, so it runs in its turn.
    if recorder.error.is_some() || recorder.transaction.ambiguous {
        return None;
    }
    let TransactionCodes { fetched, create_seen, .. } = std::mem::take(&mut recorder.transaction);
    let reads = std::mem::take(&mut recorder.state.reads);
    Some(AheadOutcome { output, reads, codes: fetched, create_seen, reward: None })
}

impl AheadOutcome {
    /// Moves the fee from the stand-in address to the beneficiary; `false` if the outcome depends
    /// on who the beneficiary is.
    fn reward(&mut self, beneficiary: Address, stand_in: Address, keeps_empty: bool) -> bool {
        let of = |address| move |read: &RecordedRead| read.is_of_account(address);
        if self.reads.iter().any(of(beneficiary)) {
            return false;
        }
        self.reads.retain(|read| !of(stand_in)(read));
        let account = self.output.state.remove(&stand_in);
        let reward = |wei| Reward { beneficiary, wei, keeps_empty };
        self.reward = account.map(|account| reward(account.info.balance));
        true
    }

    /// Repeats the reads of the transaction, at its turn, and returns its outcome; `None` at the
    /// first read with a different answer.
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
            // A fee that would overflow the balance is not paid.
            if let Some(balance) = account.info.balance.checked_add(wei) {
                account.info.balance = balance;
            }
            // The same account status as the EVM sets at the end of a transaction.
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

/// Keeps the code of an account that an earlier transaction has deployed: the block's new codes are
/// collected from the accounts.
fn know_code(info: &mut state::AccountInfo, now: &state::AccountInfo) {
    if info.code.is_none() && info.code_hash == now.code_hash {
        info.code.clone_from(&now.code);
    }
}

/// The state after the parent, overlaid with the known changes of earlier transactions.
#[derive(Debug)]
struct AheadState<'a, S> {
    before: PriorChanges<'a>,
    state: S,
    /// The transaction's index in a block access list, which counts from 1.
    index: u64,
    /// The reads so far, with their answers.
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
                // An account exists if it did before or any of its fields has changed.
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
        // The code belongs to an account that was read before, the latest one if there are several.
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
