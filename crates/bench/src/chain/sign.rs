//! Signs planned transactions, on all processors.

use alloy_consensus::{SignableTransaction as _, TxEip4844};
use alloy_eips::eip2718::Encodable2718 as _;
use alloy_eips::eip2930::{AccessList, AccessListItem};
use alloy_eips::eip4844::{Blob, Bytes48, kzg_to_versioned_hash};
use alloy_eips::eip7594::{BlobTransactionSidecarEip7594, CELLS_PER_EXT_BLOB};
use alloy_eips::eip7702::Authorization;
use alloy_primitives::{Address, B256, Bytes, Signature, U256};
use alloy_rpc_types_eth::TransactionRequest;

use crate::chain::workload::{PlannedKind, PlannedTransaction, versioned_hash};
use crate::chain::world::{self, CHAIN_ID};

const MAX_FEE: u128 = 100_000_000_000;
const PRIORITY_FEE: u128 = 1_000_000_000;
const MAX_BLOB_FEE: u128 = 1_000_000_000;

/// The transactions as blocks hold them, in the order of their plans.
pub(crate) fn sign_all(plans: &[PlannedTransaction]) -> Vec<Bytes> {
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

fn signed(plan: &PlannedTransaction) -> Bytes {
    let mut request = TransactionRequest {
        chain_id: Some(CHAIN_ID),
        nonce: Some(plan.nonce),
        gas: Some(plan.gas_limit),
        max_fee_per_gas: Some(MAX_FEE),
        max_priority_fee_per_gas: Some(PRIORITY_FEE),
        to: Some(plan.to),
        value: Some(U256::from(plan.value)),
        input: plan.input.clone().into(),
        ..TransactionRequest::default()
    };
    match plan.kind.clone() {
        PlannedKind::Legacy => request.gas_price = Some(PRIORITY_FEE * 2),
        PlannedKind::Eip1559 => {}
        PlannedKind::AccessList { slots } => {
            let address = plan.to.to().copied().unwrap_or_default();
            request.gas_price = Some(PRIORITY_FEE * 2);
            request.access_list =
                Some(AccessList(vec![AccessListItem { address, storage_keys: slots }]));
        }
        PlannedKind::Delegation { authority, authority_nonce, delegate } => {
            let chain_id = U256::from(CHAIN_ID);
            let authorization =
                Authorization { chain_id, address: delegate, nonce: authority_nonce };
            let signature = signature(authorization.signature_hash(), authority);
            request.authorization_list = Some(vec![authorization.into_signed(signature)]);
        }
        PlannedKind::Blobs { first, count } => {
            request.max_fee_per_blob_gas = Some(MAX_BLOB_FEE);
            request.blob_versioned_hashes =
                Some((first..first + count).map(versioned_hash).collect());
        }
    }
    let transaction = request.build_consensus_tx().expect("each kind has its fields");
    let signature = signature(transaction.signature_hash(), plan.sender);
    transaction.into_envelope(signature).encoded_2718().into()
}

/// A transaction with `count` empty blobs, as a pool takes it: with the blobs and their proofs,
/// which of the zero polynomial are all the point at infinity.
pub(crate) fn signed_with_blobs(
    sender: usize,
    nonce: u64,
    to: Address,
    count: usize,
) -> (Bytes, B256) {
    let mut infinity = Bytes48::ZERO;
    infinity.0[0] = 0xc0;
    let transaction = TxEip4844 {
        chain_id: CHAIN_ID,
        nonce,
        gas_limit: 21_000,
        max_fee_per_gas: MAX_FEE,
        max_priority_fee_per_gas: PRIORITY_FEE,
        to,
        max_fee_per_blob_gas: MAX_BLOB_FEE,
        blob_versioned_hashes: vec![kzg_to_versioned_hash(infinity.as_slice()); count],
        ..TxEip4844::default()
    };
    let sidecar = BlobTransactionSidecarEip7594 {
        blobs: vec![Blob::ZERO; count],
        commitments: vec![infinity; count],
        cell_proofs: vec![infinity; count * CELLS_PER_EXT_BLOB],
    };
    let signature = signature(transaction.signature_hash(), sender);
    let signed = transaction.with_sidecar(sidecar).into_signed(signature);
    (signed.encoded_2718().into(), *signed.hash())
}

fn signature(hash: B256, sender: usize) -> Signature {
    let signed = world::sender(sender).sign_prehash_recoverable(hash.as_slice());
    signed.expect("a hash can be signed").into()
}
