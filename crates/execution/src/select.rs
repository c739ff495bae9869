//! The transactions of a block under construction.

use crate::access_list::ACCESS_LIST_ITEM_GAS;
use crate::cache::BlockCache;
use crate::evm::{environment, evm};
use crate::execute::{self, Executor, Receipts};
use crate::limits::{HEADER_GROWTH, LEFT_OUT, SYSTEM_CALL_ITEMS, TRANSACTION_GAS};
use crate::recorder::Recorder;
use crate::rules::BlockRules;
use crate::validate::MAX_RLP_BLOCK_SIZE;
use crate::{BlockError, ChainSpec, CodeCache, SealedBlock, Transaction};
use alloy_consensus::Transaction as _;
use alloy_eips::eip4844::DATA_GAS_PER_BLOB;
use alloy_evm::block::{BlockExecutionError, BlockExecutor as _, BlockValidationError};
use alloy_evm::eth::EthBlockExecutor;
use alloy_evm::{Evm as _, FromRecoveredTx as _};
use alloy_hardforks::EthereumHardforks;
use alloy_primitives::map::{HashMap, HashSet};
use alloy_primitives::{Address, U256};
use alloy_rlp::Encodable;
use revm::context::TxEnv;
use revm::state::EvmState;
use std::fmt::Debug;
use witness::State;

/// The transactions that a block may be made of: each sender's by nonce, the best first.
pub trait Candidates {
    /// The best transaction that is left, and its sender. `None` ends the selection.
    fn next(&mut self) -> Option<(Transaction, Address)>;

    /// The transaction that came last is not in the block, so no later one of its sender can be.
    fn skip_sender(&mut self);
}

/// A source of candidates: a pool.
pub trait TransactionSource: Send + Sync + Debug {
    /// The transactions that may be in a block with this base fee, in wei of gas, best first.
    fn candidates(&self, base_fee: u64) -> Box<dyn Candidates + '_>;

    /// A number that grows whenever there may be a better selection than before.
    fn arrivals(&self) -> u64;
}

/// The transactions of a block, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// The transactions.
    pub transactions: Vec<Transaction>,
    /// Their senders.
    pub senders: Vec<Address>,
    /// The fees that they pay the fee recipient, in wei.
    pub fees: U256,
    /// The gas that each used.
    gas_used: Vec<u64>,
    /// The gas that is left.
    gas_left: u64,
    /// Those that had too little gas left, one of a sender, with what they could pay at most; that
    /// which could pay most first. None of them could add less than 1 % to the fees.
    left_out: Vec<(U256, Transaction, Address)>,
}

impl Selection {
    /// Another order to try, in which one of those that were left out has a place: as late as the
    /// gas that is left then allows, so that what pays most stays in front of it; after these
    /// orders, all by gas limit, which is the order with most gas at hand for each.
    pub fn other_order(&self, at: usize) -> Option<Vec<(Transaction, Address)>> {
        let count = self.left_out.len();
        let (_, transaction, sender) = self.left_out.get(at.checked_rem(count)?)?;
        let pairs = self.transactions.iter().cloned().zip(self.senders.iter().copied());
        let mut order: Vec<_> = pairs.collect();
        let left_out = (transaction.clone(), *sender);
        if at < count {
            let behind = order.split_off(self.place(transaction.gas_limit(), sender));
            let (own, others): (Vec<_>, Vec<_>) =
                behind.into_iter().partition(|(_, of)| of == sender);
            order.extend(own.into_iter().chain([left_out]).chain(others));
            return Some(order);
        }
        order.push(left_out);
        // With the largest limit of those that can only follow it.
        let mut limits = HashMap::<_, u64>::default();
        let mut keyed = Vec::new();
        for (transaction, sender) in order.into_iter().rev() {
            let most = limits.entry(sender).or_default();
            *most = transaction.gas_limit().max(*most);
            keyed.push((*most, (transaction, sender)));
        }
        keyed.reverse();
        keyed.sort_by_key(|(most, _)| std::cmp::Reverse(*most));
        (at < 2 * count).then(|| keyed.into_iter().map(|(_, pair)| pair).collect())
    }

    /// The last place where so much gas is left after all transactions of the sender.
    fn place(&self, gas: u64, sender: &Address) -> usize {
        let mut left = self.gas_left;
        let place = (0..self.senders.len()).rev().find(|&place| {
            if self.senders[place] != *sender {
                left += self.gas_used[place];
            }
            left >= gas
        });
        place.unwrap_or_default()
    }

    fn take(&mut self, transaction: Transaction, sender: Address, gas_used: u64, base_fee: u64) {
        self.fees += fee(&transaction, base_fee, gas_used);
        self.transactions.push(transaction);
        self.senders.push(sender);
        self.gas_used.push(gas_used);
    }

    fn leave_out(&mut self, transaction: Transaction, sender: Address, base_fee: u64) {
        let most = fee(&transaction, base_fee, transaction.gas_limit());
        let place = self.left_out.partition_point(|(other, ..)| *other >= most);
        self.left_out.insert(place, (most, transaction, sender));
        self.left_out.truncate(LEFT_OUT);
    }

    /// No more transactions come.
    fn end(mut self, gas_limit: u64) -> Self {
        self.gas_left = gas_limit.saturating_sub(self.gas_used.iter().sum());
        let fees = self.fees;
        self.left_out.retain(|(most, ..)| most.saturating_mul(U256::from(100)) >= fees);
        self
    }
}

/// The outcome for a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Added {
    /// It is in the block, and used so much gas.
    Yes(u64),
    /// It cannot be in the block.
    No,
    /// Less than its gas limit is left.
    NoGas,
    /// It is in the chain already, or another one with its nonce is.
    NonceTooLow,
}

/// Chooses transactions for the block whose header and withdrawals `draft` has, and which has no
/// transaction yet. They run on `state`, the state after the block's parent.
///
/// A transaction is left out, and the later ones of its sender with it, if it cannot run after
/// those before it, or if the block has no room for it: gas, blobs, the items of EIP-7928, the
/// bytes of EIP-7934. It has at most `max_blobs` blobs, where that is less than its fork allows.
///
/// # Errors
/// [`BlockError::State`] when the state cannot answer, [`BlockError::Invalid`] when the system
/// calls at the beginning of the block fail, and [`BlockError::Internal`].
pub fn select<S: State>(
    chain: &ChainSpec,
    draft: &SealedBlock,
    max_blobs: Option<u64>,
    codes: &CodeCache,
    candidates: &mut dyn Candidates,
    state: S,
) -> Result<Selection, BlockError> {
    let header = &draft.header;
    let recorder = Recorder::new(chain, header, state, Some(codes.clone()), false);
    let cache = revm::database::State::builder().with_database(recorder);
    let mut db = BlockCache(cache.build());
    let rules = BlockRules::new(chain, header);
    let evm = evm(&mut db, environment(chain, header));
    let mut executor = EthBlockExecutor::new(evm, execute::context(draft), rules, Receipts);
    let mut room = Room::new(chain, draft, max_blobs);
    let mut selection = Selection::default();
    let base_fee = header.base_fee_per_gas.unwrap_or(0);
    let outcome = execute::begin(chain, draft, &mut executor).and_then(|()| {
        while let Some((transaction, sender)) = candidates.next() {
            let added = room.add(&mut executor, &transaction, sender);
            if let Some(error) = executor.evm_mut().db_mut().recorder().error.take() {
                return Err(error.into());
            }
            match added? {
                Added::Yes(gas_used) => {
                    selection.take(transaction, sender, gas_used, base_fee);
                }
                // The pool has not heard of the parent yet: the next ones may fit.
                Added::NonceTooLow => {}
                Added::No => candidates.skip_sender(),
                Added::NoGas => {
                    candidates.skip_sender();
                    selection.leave_out(transaction, sender, base_fee);
                }
            }
        }
        Ok(())
    });
    drop(executor);
    match db.recorder().error.take() {
        Some(error) => Err(error.into()),
        None => outcome.map(|()| selection.end(header.gas_limit)),
    }
}

/// The room that a block has left, gas aside.
#[derive(Debug)]
struct Room<'a> {
    chain: &'a ChainSpec,
    timestamp: u64,
    blobs: u64,
    /// `None` before Osaka.
    bytes: Option<usize>,
    /// `None` before Amsterdam.
    items: Option<Items>,
}

/// The items of a block access list, each counted once.
#[derive(Debug)]
struct Items {
    limit: u64,
    accounts: HashSet<Address>,
    slots: HashSet<(Address, U256)>,
}

impl<'a> Room<'a> {
    fn new(chain: &'a ChainSpec, draft: &SealedBlock, max_blobs: Option<u64>) -> Self {
        let header = &draft.header;
        let timestamp = header.timestamp;
        let of_fork = chain.blob_params(timestamp).map_or(0, |params| params.max_blob_count);
        let size = draft.rlp_bytes() + HEADER_GROWTH;
        let withdrawals = draft.body.withdrawals.as_ref().map_or(0, |list| list.len() as u64);
        let reserved = SYSTEM_CALL_ITEMS + withdrawals;
        Self {
            chain,
            timestamp,
            blobs: max_blobs.map_or(of_fork, |most| most.min(of_fork)),
            bytes: chain
                .is_osaka_active_at_timestamp(timestamp)
                .then(|| MAX_RLP_BLOCK_SIZE.saturating_sub(size)),
            items: chain.is_amsterdam_active_at_timestamp(timestamp).then(|| Items {
                limit: (header.gas_limit / ACCESS_LIST_ITEM_GAS).saturating_sub(reserved),
                accounts: HashSet::default(),
                slots: HashSet::default(),
            }),
        }
    }

    /// Runs a transaction, and adds it if it fits.
    fn add<S: State>(
        &mut self,
        executor: &mut Executor<'_, '_, S>,
        transaction: &Transaction,
        sender: Address,
    ) -> Result<Added, BlockError> {
        let blobs = transaction.blob_gas_used().unwrap_or(0) / DATA_GAS_PER_BLOB;
        let bytes = transaction.length();
        let is_too_large = self.bytes.is_some_and(|left| left < bytes)
            || self.items.is_some() && transaction.gas_limit() > TRANSACTION_GAS;
        if is_too_large || blobs > self.blobs {
            return Ok(Added::No);
        }
        if !execute::has_room(executor, transaction) {
            let ever_fits = transaction.gas_limit() <= executor.evm().block().gas_limit;
            return Ok(if ever_fits { Added::NoGas } else { Added::No });
        }
        let environment = TxEnv::from_recovered_tx(transaction, sender);
        let ran = execute::run_transaction(executor, transaction, sender, &environment, None);
        let output = match ran {
            Ok(output) => output,
            Err(error) => {
                // Its fault is no error of the block.
                executor.evm_mut().error = Ok(());
                let is_too_low = is_nonce_too_low(&error);
                return Ok(if is_too_low { Added::NonceTooLow } else { Added::No });
            }
        };
        let logs = output.result.result.logs().iter();
        let is_deposit_wrong = execute::deposits(self.chain, self.timestamp, logs).is_err();
        let touched = &output.result.state;
        if is_deposit_wrong || self.items.as_mut().is_some_and(|items| !items.add(touched)) {
            return Ok(Added::No);
        }
        let gas_used = output.result.result.tx_gas_used();
        execute::commit(self.chain, executor, &environment, output)
            .map_err(|error| BlockError::Internal(error.to_string()))?;
        self.blobs -= blobs;
        self.bytes = self.bytes.map(|left| left - bytes);
        Ok(Added::Yes(gas_used))
    }
}

/// The fee for the recipient, in wei, of so much gas.
fn fee(transaction: &Transaction, base_fee: u64, gas: u64) -> U256 {
    U256::from(transaction.effective_tip_per_gas(base_fee).unwrap_or(0)) * U256::from(gas)
}

fn is_nonce_too_low(error: &BlockExecutionError) -> bool {
    let BlockExecutionError::Validation(BlockValidationError::InvalidTx { error, .. }) = error
    else {
        return false;
    };
    error.is_nonce_too_low()
}

impl Items {
    /// Counts the accounts and slots that a transaction has touched; `false` if they are too many,
    /// and then they are not counted.
    fn add(&mut self, touched: &EvmState) -> bool {
        let new_accounts: Vec<_> =
            touched.keys().filter(|address| !self.accounts.contains(*address)).collect();
        let slots = touched.iter().flat_map(|(address, account)| {
            account.storage.keys().map(move |slot| (*address, *slot))
        });
        let new_slots: Vec<_> = slots.filter(|slot| !self.slots.contains(slot)).collect();
        let before = self.accounts.len() + self.slots.len();
        if (before + new_accounts.len() + new_slots.len()) as u64 > self.limit {
            return false;
        }
        self.accounts.extend(new_accounts);
        self.slots.extend(new_slots);
        true
    }
}
