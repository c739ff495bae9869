use alloy_primitives::{Address, Signature, U256};
use execution::{Transaction, UnsignedTransaction};

/// The transaction as sent by `sender`, who does not sign it: its `r` is the sender's address, its
/// `s` zero, which no signature has. Chains for tests alone take it
/// ([`ChainSpec::is_dev`](execution::ChainSpec::is_dev)).
pub fn impersonated(transaction: UnsignedTransaction, sender: Address) -> Transaction {
    transaction.into_envelope(Signature::new(sender.into_word().into(), U256::ZERO, false))
}
