//! Calls as transactions without a signature, as geth shows those that it simulates
//! (`TransactionArgs.ToTransaction` of 1.17.8).

use crate::{Call, Transaction};
use alloy_consensus::transaction::RlpEcdsaEncodableTx;
use alloy_consensus::{
    EthereumTypedTransaction, Signed, TxEip1559, TxEip4844, TxEip7702, TxLegacy,
};
use alloy_eips::eip2718::Encodable2718;
use alloy_primitives::{Signature, U256, keccak256};
use alloy_rlp::{Encodable, Header};

/// A call, and what of the transaction that it could be is left open.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnsignedCall {
    /// The call. Its gas limit does not count.
    pub call: Call,
    /// The gas limit.
    pub gas: Option<u64>,
    /// The caller's nonce.
    pub nonce: Option<u64>,
    /// Whether its fees were given as a price of gas: then it is a transaction of the first type.
    pub has_gas_price: bool,
}

/// No signature.
const UNSIGNED: Signature = Signature::new(U256::ZERO, U256::ZERO, false);

/// A transaction that is not signed yet.
pub type UnsignedTransaction = EthereumTypedTransaction<TxEip4844>;

/// The call as a transaction, of the type that geth gives it: the first one where it `is_legacy`,
/// which names no chain then, else that of its blobs or authorizations, else EIP-1559.
pub fn unsigned_transaction(
    call: &Call,
    nonce: u64,
    chain_id: u64,
    is_legacy: bool,
) -> UnsignedTransaction {
    let Call { to, gas: gas_limit, value, access_list, .. } = call.clone();
    let (input, max_fee_per_gas) = (call.input.clone(), call.max_fee_per_gas);
    let max_priority_fee_per_gas = call.max_priority_fee_per_gas;
    let called = to.to().copied().unwrap_or_default();
    if is_legacy {
        let gas_price = max_fee_per_gas;
        return TxLegacy { chain_id: None, nonce, gas_price, gas_limit, to, value, input }.into();
    }
    if let Some(authorization_list) = call.authorization_list.clone() {
        return TxEip7702 {
            chain_id,
            nonce,
            gas_limit,
            max_fee_per_gas,
            max_priority_fee_per_gas,
            to: called,
            value,
            access_list,
            authorization_list,
            input,
        }
        .into();
    }
    if let Some(blob_versioned_hashes) = call.blob_hashes.clone() {
        return TxEip4844 {
            chain_id,
            nonce,
            gas_limit,
            max_fee_per_gas,
            max_priority_fee_per_gas,
            to: called,
            value,
            access_list,
            blob_versioned_hashes,
            max_fee_per_blob_gas: call.max_fee_per_blob_gas,
            input,
        }
        .into();
    }
    TxEip1559 {
        chain_id,
        nonce,
        gas_limit,
        max_fee_per_gas,
        max_priority_fee_per_gas,
        to,
        value,
        access_list,
        input,
    }
    .into()
}

/// The same with an empty signature, and the hash that geth gives it.
pub(crate) fn unsigned(call: &Call, nonce: u64, chain_id: u64, is_legacy: bool) -> Transaction {
    match unsigned_transaction(call, nonce, chain_id, is_legacy) {
        UnsignedTransaction::Legacy(legacy) => {
            let hash = keccak256(encoded_legacy(&legacy));
            Transaction::Legacy(Signed::new_unchecked(legacy, UNSIGNED, hash))
        }
        typed => typed.into_envelope(UNSIGNED),
    }
}

/// The bytes of a transaction that is not signed yet, as geth writes them: the parts of its
/// signature are zero. The hash that geth gives it is their keccak-256.
pub fn encode_unsigned(transaction: &UnsignedTransaction) -> Vec<u8> {
    match transaction {
        UnsignedTransaction::Legacy(legacy) => encoded_legacy(legacy),
        typed => typed.clone().into_envelope(UNSIGNED).encoded_2718(),
    }
}

/// The bytes of a transaction without a signature, as its block has them. The `v` of one of the
/// first type is zero, which no signed one has.
pub(crate) fn encoded(transaction: &Transaction) -> Vec<u8> {
    match transaction {
        Transaction::Legacy(legacy) => encoded_legacy(legacy.tx()),
        typed => typed.encoded_2718(),
    }
}

fn encoded_legacy(legacy: &TxLegacy) -> Vec<u8> {
    let mut fields = Vec::new();
    legacy.rlp_encode_fields(&mut fields);
    for signed in [0_u8; 3] {
        signed.encode(&mut fields);
    }
    let mut encoded = Vec::new();
    Header { list: true, payload_length: fields.len() }.encode(&mut encoded);
    encoded.extend(fields);
    encoded
}
