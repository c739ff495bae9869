//! The keys and values of the state's tries: accounts and storage slots.

use crate::{Account, Error};
use alloy_primitives::{B256, U256, keccak256};

/// The key of a storage slot in its storage trie: the Keccak-256 hash of the slot's number as 32
/// bytes, big-endian.
pub fn hashed_slot(slot: U256) -> B256 {
    keccak256(slot.to_be_bytes::<32>())
}

/// The account with this key from its RLP.
pub(crate) fn decode_account(key: &B256, rlp: &[u8]) -> Result<Account, Error> {
    Account::from_rlp(rlp).map_err(|reason| Error::MalformedValue { key: *key, reason })
}

/// The value of the slot with this key from its RLP, which never is that of zero.
pub(crate) fn decode_slot(key: &B256, rlp: &[u8]) -> Result<U256, Error> {
    let malformed = |reason| Error::MalformedValue { key: *key, reason };
    let value: U256 = alloy_rlp::decode_exact(rlp).map_err(malformed)?;
    if value.is_zero() {
        return Err(malformed(alloy_rlp::Error::Custom("slot with value zero")));
    }
    Ok(value)
}
