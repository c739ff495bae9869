use alloy_consensus::{EthereumTxEnvelope, Signed, TxEip4844WithSidecar};
use alloy_eips::eip7594::BlobTransactionSidecarVariant;
use alloy_eips::{Decodable2718 as _, Encodable2718 as _};
use execution::Transaction;

use crate::error::Refusal;
use crate::limits::{BLOB_TRANSACTION_BYTES, TRANSACTION_BYTES};

/// A transaction as it is sent.
#[derive(Debug, Clone)]
pub struct Sent {
    /// The transaction, as blocks have it.
    pub transaction: Transaction,
    /// Its blobs, with their commitments and proofs.
    pub sidecar: Option<BlobTransactionSidecarVariant>,
}

/// A transaction whose blobs, if it has some, come with it.
type WithBlobs = EthereumTxEnvelope<TxEip4844WithSidecar<BlobTransactionSidecarVariant>>;

impl From<Transaction> for Sent {
    fn from(transaction: Transaction) -> Self {
        Self { transaction, sidecar: None }
    }
}

/// Reads a transaction as it is sent: RLP, or a byte of its type and RLP (EIP-2718), of one with
/// blobs with the sidecar (EIP-4844, EIP-7594). Without one, a pool refuses it.
///
/// # Errors
/// [`Refusal`] if the bytes are none, or of no known type.
pub fn decode(bytes: &[u8]) -> Result<Sent, Refusal> {
    let limit = match bytes {
        [] => return Err(Refusal::Empty),
        [0 | 5..0x80, ..] => return Err(Refusal::UnknownType),
        [3, ..] => BLOB_TRANSACTION_BYTES,
        _ => TRANSACTION_BYTES,
    };
    if bytes.len() > limit {
        return Err(Refusal::Oversized { size: bytes.len(), limit });
    }
    let wrong = |fault: String| Refusal::Rlp(fault);
    let (sent, encoded): (Sent, _) = if bytes[0] == 3 {
        match WithBlobs::decode_2718_exact(bytes) {
            Ok(pooled) => {
                let encoded = pooled.encoded_2718();
                (split(pooled), encoded)
            }
            // As blocks have it: its fault is another one.
            Err(fault) => {
                let decoded = Transaction::decode_2718_exact(bytes);
                let transaction = decoded.map_err(|_| wrong(fault.to_string()))?;
                let encoded = transaction.encoded_2718();
                (transaction.into(), encoded)
            }
        }
    } else {
        let decoded = Transaction::decode_2718_exact(bytes);
        let transaction = decoded.map_err(|fault| wrong(fault.to_string()))?;
        let encoded = transaction.encoded_2718();
        (transaction.into(), encoded)
    };
    // The decoders take some encodings that are not the canonical one.
    if encoded != bytes {
        return Err(wrong("not the canonical encoding of the transaction".into()));
    }
    Ok(sent)
}

/// The transaction as it is sent.
pub(crate) fn encode(
    transaction: &Transaction,
    sidecar: Option<BlobTransactionSidecarVariant>,
) -> Vec<u8> {
    match (transaction, sidecar) {
        (EthereumTxEnvelope::Eip4844(signed), Some(sidecar)) => {
            let tx = TxEip4844WithSidecar { tx: signed.tx().clone(), sidecar };
            let signed = Signed::new_unchecked(tx, *signed.signature(), *signed.hash());
            WithBlobs::Eip4844(signed).encoded_2718()
        }
        (transaction, _) => transaction.encoded_2718(),
    }
}

fn split(pooled: WithBlobs) -> Sent {
    match pooled {
        EthereumTxEnvelope::Eip4844(signed) => {
            let (TxEip4844WithSidecar { tx, sidecar }, signature, hash) = signed.into_parts();
            let transaction = Signed::new_unchecked(tx, signature, hash).into();
            Sent { transaction, sidecar: Some(sidecar) }
        }
        EthereumTxEnvelope::Legacy(signed) => Transaction::Legacy(signed).into(),
        EthereumTxEnvelope::Eip2930(signed) => Transaction::Eip2930(signed).into(),
        EthereumTxEnvelope::Eip1559(signed) => Transaction::Eip1559(signed).into(),
        EthereumTxEnvelope::Eip7702(signed) => Transaction::Eip7702(signed).into(),
    }
}
