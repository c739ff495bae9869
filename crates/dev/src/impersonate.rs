use alloy_consensus::{
    EthereumTxEnvelope, SignableTransaction, Signed, TxEip4844, TxEip4844Variant, TypedTransaction,
};
use alloy_primitives::{Address, Signature, U256};
use execution::Transaction;

/// The transaction as sent by `sender`, who does not sign it: its `r` is the sender's address, its
/// `s` zero, which no signature has. Chains for tests alone take it
/// ([`ChainSpec::is_dev`](execution::ChainSpec::is_dev)).
pub fn impersonated(transaction: TypedTransaction, sender: Address) -> Transaction {
    let signature = Signature::new(sender.into_word().into(), U256::ZERO, false);
    match transaction {
        TypedTransaction::Legacy(it) => with(it, signature),
        TypedTransaction::Eip2930(it) => with(it, signature),
        TypedTransaction::Eip1559(it) => with(it, signature),
        TypedTransaction::Eip7702(it) => with(it, signature),
        TypedTransaction::Eip4844(TxEip4844Variant::TxEip4844(it)) => with(it, signature),
        TypedTransaction::Eip4844(TxEip4844Variant::TxEip4844WithSidecar(it)) => {
            with(it.tx, signature)
        }
    }
}

fn with<T: SignableTransaction<Signature>>(transaction: T, signature: Signature) -> Transaction
where
    EthereumTxEnvelope<TxEip4844>: From<Signed<T>>,
{
    Signed::new_unhashed(transaction, signature).into()
}
