use std::fmt;

use alloy_consensus::Header;
use alloy_hardforks::{EthereumHardfork, EthereumHardforks as _};
use alloy_primitives::{Address, B256, KECCAK256_EMPTY, U256};
use execution::{ChainSpec, next_base_fee};

/// The accounts of senders at the head.
pub trait Senders: Send + Sync + fmt::Debug {
    /// The account with this address after the block with the hash `head`; the default, of zeros,
    /// where there is none.
    ///
    /// # Errors
    /// The reason why it could not be read, as a sentence.
    fn sender(&self, head: B256, address: Address) -> Result<SenderState, String>;
}

/// The part of an account that the pool has to know.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SenderState {
    /// The nonce of its next transaction.
    pub nonce: u64,
    /// Its balance, in wei.
    pub balance: U256,
    /// The hash of its code; zero or that of no bytes where it has none.
    pub code_hash: B256,
}

impl SenderState {
    /// Whether it has code, which is a delegation (EIP-7702) where it sends transactions.
    pub(crate) fn has_code(&self) -> bool {
        !self.code_hash.is_zero() && self.code_hash != KECCAK256_EMPTY
    }
}

/// The head, for which the pool is right.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) header: Header,
    pub(crate) hash: B256,
    pub(crate) fork: EthereumHardfork,
    /// The base fee of the next block, in wei of gas; zero before London.
    pub(crate) base_fee: u64,
}

impl Head {
    pub(crate) fn new(chain: &ChainSpec, header: Header) -> Self {
        let is_london = chain.is_london_active_at_block(header.number.saturating_add(1));
        Self {
            hash: header.hash_slow(),
            fork: chain.fork_of(&header),
            base_fee: if is_london { next_base_fee(&header) } else { 0 },
            header,
        }
    }
}
