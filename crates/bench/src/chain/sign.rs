//! Signs planned transactions, on all processors.

use alloy_consensus::{SignableTransaction, TxEip1559, TxEip4844, TxEip7702, TxLegacy};
use alloy_eips::eip2718::Encodable2718;
use alloy_eips::eip7702::Authorization;
use alloy_primitives::{Address, B256, Bytes, Signature, TxKind, U256};
use k256::ecdsa::SigningKey;

use crate::chain::workload::{Plan, PlanKind, versioned_hash};
use crate::chain::world::{self, CHAIN_ID};

const MAX_FEE: u128 = 100_000_000_000;
const PRIORITY_FEE: u128 = 1_000_000_000;
const MAX_BLOB_FEE: u128 = 1_000_000_000;

/// The transactions as blocks hold them, in the order of their plans.
pub(crate) fn sign_all(plans: &[Plan]) -> Vec<Bytes> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let share = plans.len().div_ceil(threads).max(1);
    std::thread::scope(|scope| {
        let signers: Vec<_> = plans
            .chunks(share)
            .map(|chunk| scope.spawn(|| chunk.iter().map(signed).collect::<Vec<Bytes>>()))
            .collect();
        signers.into_iter().flat_map(|signer| signer.join().expect("signing ends")).collect()
    })
}

fn signed(plan: &Plan) -> Bytes {
    let Plan { nonce, to, gas_limit, .. } = *plan;
    let (value, input) = (U256::from(plan.value), plan.input.clone());
    let key = world::sender(plan.sender);
    match plan.kind {
        PlanKind::Legacy => {
            let chain_id = Some(CHAIN_ID);
            let gas_price = PRIORITY_FEE * 2;
            let legacy = TxLegacy { chain_id, nonce, gas_price, gas_limit, to, value, input };
            encoded(legacy, &key)
        }
        PlanKind::Eip1559 => {
            let transaction = TxEip1559 {
                chain_id: CHAIN_ID,
                nonce,
                gas_limit,
                max_fee_per_gas: MAX_FEE,
                max_priority_fee_per_gas: PRIORITY_FEE,
                to,
                value,
                input,
                ..TxEip1559::default()
            };
            encoded(transaction, &key)
        }
        PlanKind::Delegation { authority, authority_nonce, delegate } => {
            let authorization = Authorization {
                chain_id: U256::from(CHAIN_ID),
                address: delegate,
                nonce: authority_nonce,
            };
            let hash = authorization.signature_hash();
            let authorization =
                authorization.into_signed(signature(hash, &world::sender(authority)));
            let transaction = TxEip7702 {
                chain_id: CHAIN_ID,
                nonce,
                gas_limit,
                max_fee_per_gas: MAX_FEE,
                max_priority_fee_per_gas: PRIORITY_FEE,
                to: called(to),
                value,
                input,
                authorization_list: vec![authorization],
                ..TxEip7702::default()
            };
            encoded(transaction, &key)
        }
        PlanKind::Blobs { first, count } => {
            let transaction = TxEip4844 {
                chain_id: CHAIN_ID,
                nonce,
                gas_limit,
                max_fee_per_gas: MAX_FEE,
                max_priority_fee_per_gas: PRIORITY_FEE,
                to: called(to),
                value,
                input,
                blob_versioned_hashes: (first..first + count).map(versioned_hash).collect(),
                max_fee_per_blob_gas: MAX_BLOB_FEE,
                ..TxEip4844::default()
            };
            encoded(transaction, &key)
        }
    }
}

/// The recipient of a transaction of a type that cannot create.
const fn called(to: TxKind) -> Address {
    match to {
        TxKind::Call(to) => to,
        TxKind::Create => Address::ZERO,
    }
}

fn encoded<T>(transaction: T, key: &SigningKey) -> Bytes
where
    T: SignableTransaction<Signature>,
    alloy_consensus::Signed<T>: Encodable2718,
{
    let signature = signature(transaction.signature_hash(), key);
    transaction.into_signed(signature).encoded_2718().into()
}

fn signature(hash: B256, key: &SigningKey) -> Signature {
    let (signature, recovery) =
        key.sign_prehash_recoverable(hash.as_slice()).expect("a hash can be signed");
    Signature::from_bytes_and_parity(&signature.to_bytes(), recovery.is_y_odd())
}
