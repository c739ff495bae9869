use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Instant;

use alloy_consensus::Transaction as _;
use alloy_eips::eip7594::BlobTransactionSidecarEip7594;
use alloy_eips::eip7702::SignedAuthorization;
use alloy_primitives::{Address, B256, U256};
use execution::Transaction;

use crate::limits::ENTRY_BYTES;
use crate::sidecar::Sidecar;

/// A transaction in the pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pooled {
    transaction: Transaction,
    hash: B256,
    sender: Address,
    authorities: Vec<Address>,
    sidecar: Option<Sidecar>,
    cost: U256,
    arrived: Instant,
}

impl Pooled {
    pub(crate) fn new(transaction: Transaction, hash: B256, sender: Address) -> Self {
        let mut authorities: Vec<_> = transaction
            .authorization_list()
            .into_iter()
            .flatten()
            .filter_map(|authorization| authorization.recover_authority().ok())
            .collect();
        authorities.sort_unstable();
        authorities.dedup();
        let gas = U256::from(transaction.gas_limit());
        let blob_fee = U256::from(transaction.max_fee_per_blob_gas().unwrap_or_default());
        let blob_gas = U256::from(transaction.blob_gas_used().unwrap_or_default());
        let cost = (gas * U256::from(transaction.max_fee_per_gas()))
            .saturating_add(blob_gas * blob_fee)
            .saturating_add(transaction.value());
        let (sidecar, arrived) = (None, Instant::now());
        Self { transaction, hash, sender, authorities, sidecar, cost, arrived }
    }

    pub(crate) fn with_sidecar(self, sidecar: Option<Sidecar>) -> Self {
        Self { sidecar, ..self }
    }

    /// Its blobs, with their commitments and the proofs of their cells, which are verified; those
    /// of a transaction of EIP-4844 alone.
    pub const fn sidecar(&self) -> Option<&Arc<BlobTransactionSidecarEip7594>> {
        self.sidecar.as_ref()
    }

    /// Whether it has blobs.
    pub(crate) fn has_blobs(&self) -> bool {
        self.transaction.is_eip4844()
    }

    /// The signed transaction.
    pub const fn transaction(&self) -> &Transaction {
        &self.transaction
    }

    /// Its hash: keccak-256 of its bytes, unless it was added with another one.
    pub const fn hash(&self) -> B256 {
        self.hash
    }

    /// Its sender.
    pub const fn sender(&self) -> Address {
        self.sender
    }

    /// Its nonce.
    pub fn nonce(&self) -> u64 {
        self.transaction.nonce()
    }

    /// The most that it can cost its sender, in wei: gas limit times fee, the same of its
    /// blobs, and its value. It is
    /// 2^256-1 where the sum is larger.
    pub const fn cost(&self) -> U256 {
        self.cost
    }

    /// When it entered the pool.
    pub const fn arrived(&self) -> Instant {
        self.arrived
    }

    /// The accounts that it delegates (EIP-7702), ascending, each once.
    pub(crate) fn authorities(&self) -> &[Address] {
        &self.authorities
    }

    /// Bytes of memory that it takes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let lists = self.transaction.access_list().into_iter().flat_map(|list| &list.0);
        let listed: usize = lists.map(|item| 48 + 32 * item.storage_keys.len()).sum();
        let authorizations = self.transaction.authorization_list().map_or(0, <[_]>::len);
        let authorization = size_of::<SignedAuthorization>() + size_of::<Address>();
        ENTRY_BYTES + self.transaction.input().len() + listed + authorizations * authorization
    }

    /// The tip at this base fee, in wei of gas; below zero where the fee does not cover it.
    pub(crate) fn effective_tip(&self, base_fee: u64) -> i128 {
        let signed = |fee: u128| i128::try_from(fee).unwrap_or(i128::MAX);
        let above = signed(self.transaction.max_fee_per_gas()) - i128::from(base_fee);
        match self.transaction.max_priority_fee_per_gas() {
            Some(tip) => above.min(signed(tip)),
            None => above,
        }
    }
}

/// A transaction in the pool, and its turn among all that arrived.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) pooled: Arc<Pooled>,
    pub(crate) turn: u64,
    /// Whether it has been pending.
    pub(crate) was_pending: bool,
}

/// The order in which transactions are worth a place in a block: the highest tip first, then the
/// one that came first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Worth {
    pub(crate) tip: i128,
    turn: Reverse<u64>,
}

impl Entry {
    pub(crate) fn worth(&self, base_fee: u64) -> Worth {
        Worth { tip: self.pooled.effective_tip(base_fee), turn: Reverse(self.turn) }
    }
}
