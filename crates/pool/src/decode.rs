use alloy_eips::{Decodable2718 as _, Encodable2718 as _};
use execution::Transaction;

use crate::error::Refusal;
use crate::limits::TRANSACTION_BYTES;

/// Reads a transaction as it is sent: RLP, or a byte of its type and RLP (EIP-2718).
///
/// # Errors
/// [`Refusal`] if the bytes are none, or of a type that the pool does not take.
pub fn decode(bytes: &[u8]) -> Result<Transaction, Refusal> {
    match bytes {
        [] => return Err(Refusal::Empty),
        [3, ..] => return Err(Refusal::Blobs),
        [0 | 5..0x80, ..] => return Err(Refusal::UnknownType),
        _ => {}
    }
    if bytes.len() > TRANSACTION_BYTES {
        return Err(Refusal::Oversized { size: bytes.len(), limit: TRANSACTION_BYTES });
    }
    let decoded = Transaction::decode_2718_exact(bytes);
    let transaction = decoded.map_err(|fault| Refusal::Rlp(fault.to_string()))?;
    // The decoder takes some encodings that are not the canonical one.
    if transaction.encoded_2718() != bytes {
        return Err(Refusal::Rlp("not the canonical encoding of the transaction".into()));
    }
    Ok(transaction)
}
