use crate::EMPTY_ROOT_HASH;
use alloy_primitives::{B256, KECCAK256_EMPTY, U256};
use alloy_rlp::{RlpDecodable, RlpEncodable};

/// An account as the account trie holds it: the RLP list of these four fields, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, RlpEncodable, RlpDecodable)]
pub struct Account {
    /// The number of transactions sent, or for a contract of contracts created.
    pub nonce: u64,
    /// The balance, in wei.
    pub balance: U256,
    /// The root hash of the account's storage trie.
    pub storage_root: B256,
    /// The Keccak-256 hash of the account's code.
    pub code_hash: B256,
}

impl Account {
    /// Decodes an account from exactly these bytes.
    ///
    /// # Errors
    /// If they are not the canonical RLP of an account, or go on after it.
    pub fn from_rlp(rlp: &[u8]) -> Result<Self, alloy_rlp::Error> {
        alloy_rlp::decode_exact(rlp)
    }

    /// The account's RLP.
    pub fn to_rlp(&self) -> Vec<u8> {
        alloy_rlp::encode(self)
    }
}

impl Default for Account {
    /// The empty account: no nonce, balance, storage or code.
    fn default() -> Self {
        Self {
            nonce: 0,
            balance: U256::ZERO,
            storage_root: EMPTY_ROOT_HASH,
            code_hash: KECCAK256_EMPTY,
        }
    }
}
