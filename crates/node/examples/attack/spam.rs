//! Transactions for the pool of the node: transfers that it takes, and blobs that it must refuse.

use std::sync::OnceLock;

use alloy_consensus::crypto::secp256k1::sign_message;
use alloy_consensus::{
    BlobTransactionSidecarEip7594, EthereumTxEnvelope, SignableTransaction, TxEip1559, TxEip4844,
    TxEip4844WithSidecar,
};
use alloy_eips::Encodable2718;
use alloy_eips::eip4844::{Blob, Bytes48, kzg_to_versioned_hash};
use alloy_genesis::{Genesis, GenesisAccount};
use alloy_primitives::{Address, B256, TxKind, U256, hex, keccak256};
use serde_json::json;

use crate::attacks::request_text;

/// Accounts that send, and transfers of each: more than the pool has room for.
const SENDERS: usize = 256;
const TRANSFERS: u64 = 64;
/// Transactions in a message.
pub(crate) const BATCH: usize = 250;
/// Of a sidecar, whose proofs are the point at infinity and prove nothing of it.
const CELLS: usize = 128;

/// Gives the accounts that send money.
pub(crate) fn fund(genesis: &mut Genesis) -> anyhow::Result<()> {
    for index in 0..SENDERS {
        let key = key(index);
        let sender = sign_message(key, key)?.recover_address_from_prehash(&key)?;
        let rich = GenesisAccount::default().with_balance(U256::from(10).pow(U256::from(20)));
        genesis.alloc.insert(sender, rich);
    }
    Ok(())
}

/// Batches of JSON that send all transfers, those of the first nonces first.
pub(crate) fn transfers(chain_id: u64) -> &'static [String] {
    static BATCHES: OnceLock<Vec<String>> = OnceLock::new();
    BATCHES.get_or_init(|| {
        let nonces = (0..TRANSFERS).flat_map(|nonce| (0..SENDERS).map(move |of| (of, nonce)));
        let calls: Vec<_> =
            nonces.map(|(of, nonce)| sending(&transfer(chain_id, of, nonce))).collect();
        calls.chunks(BATCH).map(|calls| format!("[{}]", calls.join(","))).collect()
    })
}

/// A call that sends a blob with false proofs.
pub(crate) fn false_blob(chain_id: u64, of: usize) -> String {
    let mut infinity = Bytes48::default();
    infinity[0] = 0xc0;
    let mut blob = Box::new(Blob::default());
    blob[31] = 1;
    let sidecar =
        BlobTransactionSidecarEip7594::new(vec![*blob], vec![infinity], vec![infinity; CELLS]);
    let tx = TxEip4844 {
        chain_id,
        gas_limit: 21_000,
        max_fee_per_gas: 100_000_000_000,
        max_priority_fee_per_gas: 1_000_000_000,
        max_fee_per_blob_gas: 100_000_000_000,
        to: Address::repeat_byte(0xaa),
        blob_versioned_hashes: vec![kzg_to_versioned_hash(infinity.as_slice())],
        ..TxEip4844::default()
    };
    let tx = TxEip4844WithSidecar { tx, sidecar };
    let signature = sign_message(key(of), tx.signature_hash()).expect("a key");
    sending(&EthereumTxEnvelope::<TxEip4844WithSidecar<_>>::Eip4844(tx.into_signed(signature)))
}

fn transfer(chain_id: u64, of: usize, nonce: u64) -> EthereumTxEnvelope<TxEip4844> {
    let tx = TxEip1559 {
        chain_id,
        nonce,
        gas_limit: 21_000,
        max_fee_per_gas: 100_000_000_000,
        // Those who pay more push others out.
        max_priority_fee_per_gas: 1_000_000_000 + u128::from(nonce),
        to: TxKind::Call(Address::repeat_byte(0xaa)),
        ..TxEip1559::default()
    };
    let signature = sign_message(key(of), tx.signature_hash()).expect("a key");
    tx.into_signed(signature).into()
}

fn key(index: usize) -> B256 {
    keccak256(format!("deponent attack {index}"))
}

fn sending(transaction: &impl Encodable2718) -> String {
    let raw = hex::encode_prefixed(transaction.encoded_2718());
    request_text("eth_sendRawTransaction", &json!([raw]))
}
