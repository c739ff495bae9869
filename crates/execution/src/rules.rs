//! The rules of blocks before the merge: their forks, the DAO's balances, and state roots in
//! receipts.

use crate::cache::BlockCache;
use crate::recorder::{ReadError, account_info};
use crate::{ChainSpec, Receipt};
use alloy_consensus::{Eip658Value, Header};
use alloy_evm::eth::dao_fork::{DAO_HARDFORK_ACCOUNTS, DAO_HARDFORK_BENEFICIARY};
use alloy_evm::eth::spec::EthExecutorSpec;
use alloy_hardforks::{EthereumHardfork, EthereumHardforks, ForkCondition};
use alloy_primitives::{Address, U256};
use revm::DatabaseCommit;
use revm::database::TransitionAccount;
use revm::database::states::bundle_state::BundleRetention;
use revm::database_interface::Database;
use revm::database_interface::bal::EvmDatabaseError;
use revm::state::Account;
use revm::state::TransactionId;
use witness::{BlockState, Change, State};

/// The forks as alloy-evm is to see them while one block runs.
///
/// A block is after the merge if its difficulty is zero, which
/// [`validate_header`](crate::validate_header) has checked; its number does not decide. The DAO
/// fork is hidden, since alloy-evm moves the balances after the transactions instead of before, and
/// so is a Petersburg after Constantinople.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BlockRules<'a> {
    chain: &'a ChainSpec,
    merged: bool,
}

impl<'a> BlockRules<'a> {
    pub(crate) fn new(chain: &'a ChainSpec, header: &Header) -> Self {
        Self { chain, merged: header.difficulty.is_zero() }
    }
}

impl EthereumHardforks for BlockRules<'_> {
    fn ethereum_fork_activation(&self, fork: EthereumHardfork) -> ForkCondition {
        match (fork, self.merged) {
            (EthereumHardfork::Paris, true) => ForkCondition::Block(0),
            (EthereumHardfork::Paris, false) | (EthereumHardfork::Dao, _) => ForkCondition::Never,
            // The library has no Constantinople without Petersburg, which differ in SSTORE alone.
            (EthereumHardfork::Petersburg, _) => {
                self.chain.ethereum_fork_activation(EthereumHardfork::Constantinople)
            }
            _ => self.chain.ethereum_fork_activation(fork),
        }
    }
}

impl EthExecutorSpec for BlockRules<'_> {
    fn deposit_contract_address(&self) -> Option<Address> {
        self.chain.deposit_contract_address()
    }
}

/// Moves the money of the DAO and its children to the contract that pays it back (EIP-779). With
/// `keep_empty`, as before Spurious Dragon, accounts that it leaves empty are there afterwards,
/// even if they were not before.
pub(crate) fn move_dao_balances<S: State>(
    db: &mut BlockCache<S>,
    keep_empty: bool,
) -> Result<(), EvmDatabaseError<ReadError>> {
    let mut sum = U256::ZERO;
    let mut accounts = Vec::with_capacity(DAO_HARDFORK_ACCOUNTS.len() + 1);
    for address in DAO_HARDFORK_ACCOUNTS {
        let mut account = load(db, address)?;
        sum += std::mem::take(&mut account.info.balance);
        accounts.push((address, account));
    }
    let mut account = load(db, DAO_HARDFORK_BENEFICIARY)?;
    account.info.balance += sum;
    accounts.push((DAO_HARDFORK_BENEFICIARY, account));
    for (_, account) in accounts.iter_mut().filter(|(_, account)| account.is_empty()) {
        // revm takes what is empty and touched for deleted, unless it is new.
        if keep_empty {
            account.mark_created();
        }
    }
    db.commit(accounts.into_iter().collect());
    Ok(())
}

fn load<S: State>(
    db: &mut BlockCache<S>,
    address: Address,
) -> Result<Account, EvmDatabaseError<ReadError>> {
    let info = db.basic(address)?;
    let missing = || Account::new_not_existing(TransactionId::ZERO);
    let mut account = info.map_or_else(missing, Account::from);
    account.mark_touch();
    Ok(account)
}

/// Puts the root of the state as it is now into the receipt of the transaction that has just run,
/// as receipts before Byzantium have it (EIP-658).
pub(crate) fn put_root<S: BlockState>(
    db: &mut BlockCache<S>,
    receipt: &mut Receipt,
) -> Result<(), ReadError> {
    let transitions = db.0.transition_state.iter().flat_map(|state| &state.transitions);
    let changes: Vec<_> = transitions.map(|(address, account)| change(*address, account)).collect();
    db.0.merge_transitions(BundleRetention::PlainState);
    let root = db.recorder().read(|state| state.apply_transaction(&changes))?;
    if let Receipt::Legacy(receipt) = receipt {
        receipt.receipt.status = Eip658Value::PostState(root);
    }
    Ok(())
}

fn change(address: Address, account: &TransitionAccount) -> Change {
    let slots = account.storage.iter().map(|(slot, value)| (*slot, value.present_value()));
    Change {
        address,
        account: account.info.as_ref().map(account_info),
        storage_wiped: account.storage_was_destroyed,
        slots: slots.collect(),
    }
}
