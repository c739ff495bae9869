//! Running transactions ahead of their turn, side by side, from what a block access list says
//! (EIP-7928).
//!
//! The list is believed only for as long as that takes. What came of a transaction is used when its
//! turn has come, and when the state then answers everything that the transaction read as it was
//! answered before: the same code, run on the same answers, does the same. These reads are reads of
//! the block as any others, up to the first that is answered otherwise, which the transaction would
//! have made in any case; it then runs in its turn. So whatever a list says, verdict, receipts
//! and witness are those of a block that ran in order.

use crate::access_list::AccessList;
use crate::cache::BlockCache;
use crate::execute::{BlockEvm, environment, evm};
use crate::recorder::{Recorder, TransactionCodes};
use crate::{ChainSpec, CodeCache, SealedBlock, Senders, Transaction};
use alloy_consensus::Transaction as _;
use alloy_evm::{Evm, FromRecoveredTx};
use alloy_primitives::{Address, B256, Bytes, U256};
use revm::context::TxEnv;
use revm::context_interface::result::{HaltReason, ResultAndState};
use revm::database::states::block_hash_cache::BlockHashCache;
use revm::database_interface::Database;
use revm::state::{self, bal::BlockAccessIndex};
use std::fmt::Debug;
use trie::{AccountInfo, EMPTY_ROOT_HASH};
use witness::{Account, Code, State, StateError};

/// Where [`validate`](crate::validate) finds transactions that have run ahead.
pub trait Ahead: Debug {
    /// What came of the transaction at `index`, asked for once in the order of the block; `None`
    /// when it is to run now.
    fn take(&self, index: usize) -> Option<RanAhead>;

    /// All transactions have had their turn: nothing more is asked for.
    fn end(&self) {}
}

/// What makes the running of a block faster, and changes nothing of what it gives.
#[derive(Debug, Clone, Copy, Default)]
pub struct Help<'a> {
    /// Codes made ready to run. Those in the cache are not asked of the state.
    pub codes: Option<&'a CodeCache>,
    /// Transactions that run ahead.
    pub ahead: Option<&'a dyn Ahead>,
}

/// What came of a transaction that ran ahead, and all that it was told.
#[derive(Debug)]
pub struct RanAhead {
    output: ResultAndState<HaltReason>,
    reads: Vec<Read>,
    /// Codes that it read.
    codes: Vec<B256>,
    /// Whether it created a contract, or tried to: after all that it read.
    create_seen: bool,
}

#[derive(Debug)]
enum Read {
    Account(Address, Option<AccountInfo>),
    Slot(Address, U256, U256),
    Ancestor(u64, B256),
}

/// A block whose transactions may run ahead.
#[derive(Debug, Clone, Copy)]
pub struct AheadOf<'a> {
    /// The chain's rules.
    pub chain: &'a ChainSpec,
    /// The block.
    pub block: &'a SealedBlock,
    /// The transactions' senders.
    pub senders: &'a dyn Senders,
    /// What the payload says that the block reads and changes.
    pub list: &'a AccessList,
    /// Codes made ready to run.
    pub codes: Option<&'a CodeCache>,
}

impl AheadOf<'_> {
    /// Runs the transactions that `next` names, by index, each on `state`, which is the state after
    /// the parent, with what the list says that those before have changed, and hands `done` what
    /// came of it: `None` when that is not worth keeping.
    ///
    /// Nothing that `state` is asked here is a read of the block, until the transaction's turn has
    /// come.
    pub fn run<S: State>(
        &self,
        state: S,
        mut next: impl FnMut() -> Option<usize>,
        mut done: impl FnMut(usize, Option<RanAhead>),
    ) {
        let authorizes = |transaction: &Transaction| {
            transaction.authorization_list().is_some_and(|list| !list.is_empty())
        };
        if self.block.body.transactions.iter().any(authorizes) {
            // Which reads of its markers are reads of the pre-state, and which markers are new
            // codes, depends on what all transactions before have done (`settle_markers`).
            while let Some(index) = next() {
                done(index, None);
            }
            return;
        }
        let listed = Listed { list: self.list, state, index: 0, reads: Vec::new() };
        let recorder = Recorder::new(listed, self.codes.cloned(), false);
        let mut db = BlockCache(revm::database::State::builder().with_database(recorder).build());
        let env = environment(self.chain, &self.block.header);
        let mut evm = evm(&mut db, env);
        while let Some(index) = next() {
            let ran = self.block.body.transactions.get(index).and_then(|transaction| {
                // Where the signature is wrong, so is the block.
                let sender = self.senders.sender(index).ok()?;
                run_one(&mut evm, index, &TxEnv::from_recovered_tx(transaction, sender))
            });
            done(index, ran);
        }
    }
}

/// Runs the transactions of `block` that `next` names, by index, on `state`, which is the state
/// after the parent: for no other end than that it is asked for most of what they read. What those
/// before have changed is not seen, so one that depends on it may go another way than in its turn.
pub fn read_ahead<S: State>(
    chain: &ChainSpec,
    block: &SealedBlock,
    senders: &dyn Senders,
    codes: &CodeCache,
    state: S,
    mut next: impl FnMut() -> Option<usize>,
) {
    let recorder = Recorder::new(state, Some(codes.clone()), false);
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
    evm: &mut BlockEvm<'_, Listed<'_, S>>,
    index: usize,
    transaction: &TxEnv,
) -> Option<RanAhead> {
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
    let output = evm.transact(transaction.clone()).ok()?;
    let recorder = evm.db_mut().recorder();
    // What only an inspector could tell is told when the turn has come.
    if recorder.error.is_some() || recorder.transaction.ambiguous {
        return None;
    }
    let TransactionCodes { fetched, create_seen, .. } = std::mem::take(&mut recorder.transaction);
    let reads = std::mem::take(&mut recorder.state.reads);
    Some(RanAhead { output, reads, codes: fetched, create_seen })
}

impl RanAhead {
    /// Reads all that the transaction read, now that its turn has come, and returns what came of
    /// it; `None` as soon as an answer is another.
    pub(crate) fn repeat<S: State>(
        self,
        db: &mut BlockCache<S>,
    ) -> Option<ResultAndState<HaltReason>> {
        let Self { mut output, reads, codes, create_seen } = self;
        for read in reads {
            let is_same = match read {
                Read::Account(address, before) => {
                    let now = db.basic(address).ok()?;
                    if let (Some(now), Some(account)) = (&now, output.state.get_mut(&address)) {
                        know_code(&mut account.info, now);
                    }
                    before == now.map(|info| own(&info))
                }
                Read::Slot(address, slot, before) => db.storage(address, slot).ok()? == before,
                Read::Ancestor(number, before) => db.block_hash(number).ok()? == before,
            };
            if !is_same {
                return None;
            }
        }
        for code_hash in codes {
            db.code_by_hash(code_hash).ok()?;
        }
        if create_seen {
            db.recorder().note_creation();
        }
        Some(output)
    }
}

fn own(info: &state::AccountInfo) -> AccountInfo {
    AccountInfo { nonce: info.nonce, balance: info.balance, code_hash: info.code_hash }
}

/// An account that a transaction before has made known with its code stays so: the codes that the
/// block deploys are collected from there.
fn know_code(info: &mut state::AccountInfo, now: &state::AccountInfo) {
    if info.code.is_none() && info.code_hash == now.code_hash {
        info.code.clone_from(&now.code);
    }
}

/// The state after the parent, with what the list says that the transactions before one have
/// changed.
#[derive(Debug)]
struct Listed<'a, S> {
    list: &'a AccessList,
    state: S,
    /// Index of the transaction in the list: 1 is the first.
    index: u64,
    /// What was asked for, with the answers.
    reads: Vec<Read>,
}

impl<S: State> State for Listed<'_, S> {
    fn account(&mut self, address: Address) -> Result<Option<Account>, StateError> {
        let before = self.state.account(address)?;
        let index = BlockAccessIndex::new(self.index);
        let info_before = before.map_or(AccountInfo::EMPTY, AccountInfo::from);
        let info = match self.list.account(&address) {
            Some(listed) => listed.at(index, info_before),
            None => info_before,
        };
        // Being there changes only by a change of what is there.
        let is_there =
            if info == info_before { before.is_some() } else { info != AccountInfo::EMPTY };
        let info = is_there.then_some(info);
        self.reads.push(Read::Account(address, info));
        let storage_root = before.map_or(EMPTY_ROOT_HASH, |account| account.storage_root);
        Ok(info.map(|AccountInfo { nonce, balance, code_hash }| Account {
            nonce,
            balance,
            storage_root,
            code_hash,
        }))
    }

    fn storage(&mut self, address: Address, slot: U256) -> Result<U256, StateError> {
        let index = BlockAccessIndex::new(self.index);
        let listed = self.list.account(&address).and_then(|a| a.slot_at(index, &slot));
        let value = listed.map_or_else(|| self.state.storage(address, slot), Ok)?;
        self.reads.push(Read::Slot(address, slot, value));
        Ok(value)
    }

    fn code(&mut self, code_hash: B256) -> Result<Bytes, StateError> {
        Ok(self.code_to_run(code_hash)?.bytes())
    }

    fn code_to_run(&mut self, code_hash: B256) -> Result<Code, StateError> {
        // Its account was read before; if there are several, each has it from somewhere.
        let account = self.reads.iter().rev().find_map(|read| match read {
            Read::Account(address, Some(info)) if info.code_hash == code_hash => Some(address),
            _ => None,
        });
        let listed = account.and_then(|address| self.list.account(address)?.code(&code_hash));
        listed.cloned().map_or_else(|| self.state.code_to_run(code_hash), |code| Ok(code.into()))
    }

    fn block_hash(&mut self, number: u64) -> Result<B256, StateError> {
        let hash = self.state.block_hash(number)?;
        self.reads.push(Read::Ancestor(number, hash));
        Ok(hash)
    }
}

#[cfg(test)]
mod tests;
