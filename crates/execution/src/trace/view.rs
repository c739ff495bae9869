//! The state as a tracer reads it while a transaction runs.

use alloy_primitives::{Address, Bytes, TxKind, U256};
use revm::primitives::hardfork::SpecId;
use revm::state::AccountInfo;

/// A transaction before it runs.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) from: Address,
    /// The account that is called, or that is to be created.
    pub(crate) to: TxKind,
    pub(crate) nonce: u64,
    pub(crate) input: Bytes,
    pub(crate) value: U256,
}

/// The state while a transaction runs, with what it has changed so far. A read that fails answers
/// zero; the failure is kept and becomes the result of the run.
pub(crate) trait View {
    /// The fork of the block.
    fn spec(&self) -> SpecId;
    /// Whether storage has the prices of EIP-1283.
    fn has_net_gas(&self) -> bool;
    /// The account as it is now; one that does not exist has no balance, nonce and code.
    fn account(&mut self, address: Address) -> AccountInfo;
    /// The account as it was before the transaction, if it existed.
    fn account_before(&mut self, address: Address) -> Option<AccountInfo>;
    /// The code of an account that this view has answered.
    fn code(&mut self, account: &AccountInfo) -> Bytes;
    /// The value of a slot before the transaction, and now.
    fn slot(&mut self, address: Address, slot: U256) -> [U256; 2];
    /// Whether the transaction has accessed the account (EIP-2929).
    fn is_warm(&self, address: Address) -> bool;
    /// Whether the transaction has accessed the slot (EIP-2929).
    fn is_slot_warm(&self, address: Address, slot: U256) -> bool;
    /// The recipient of fees.
    fn beneficiary(&self) -> Address;
    /// The accounts that have signed the transaction's authorizations (EIP-7702).
    fn authorities(&self) -> Vec<Address>;
    /// The gas to be refunded for authorizations of accounts that were there (EIP-7702), which the
    /// transaction is given before its first frame; none by the prices of Amsterdam.
    fn authorization_refund(&mut self) -> u64;
    /// The transaction, as it was sent.
    fn sent(&self) -> Sent;
    /// Logs that the transaction has emitted so far, without those of frames that failed.
    fn logs(&self) -> usize;
}
