use alloy_consensus::crypto::secp256k1::sign_message;
use alloy_consensus::{
    EthereumTxEnvelope, SignableTransaction, Signed, TxEip1559, TxEip4844, TxEip7702, TxLegacy,
};
use alloy_eips::eip7702::{Authorization, SignedAuthorization};
use alloy_primitives::{Address, B256, Bytes, Signature, TxKind, U256};
use execution::Transaction;

use super::chains::{CHAIN_ID, GAS_PRICE};

/// A private key, which signs transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signer(B256);

impl Signer {
    /// The signer with this private key, from 1 on.
    pub fn new(number: u8) -> Self {
        Self(B256::with_last_byte(number))
    }

    /// The address of the key.
    pub fn address(&self) -> Address {
        let hash = B256::repeat_byte(1);
        self.sign(hash).recover_address_from_prehash(&hash).expect("just signed")
    }

    /// The signature of a hash.
    pub fn sign(&self, hash: B256) -> Signature {
        sign_message(self.0, hash).expect("a key in range")
    }

    fn envelope<T: SignableTransaction<Signature>>(&self, transaction: T) -> Transaction
    where
        EthereumTxEnvelope<TxEip4844>: From<Signed<T>>,
    {
        let signature = self.sign(transaction.signature_hash());
        transaction.into_signed(signature).into()
    }

    /// A call with this calldata and a million gas.
    pub fn call(&self, nonce: u64, to: Address, input: impl Into<Bytes>) -> Transaction {
        self.transact(nonce, TxKind::Call(to), U256::ZERO, input.into())
    }

    /// A transaction with a dynamic fee (EIP-1559) and a million gas.
    pub fn transact(&self, nonce: u64, to: TxKind, value: U256, input: Bytes) -> Transaction {
        self.transact_with(nonce, to, value, input, 1_000_000, 1)
    }

    /// The same with this gas limit, and this highest priority fee, in wei.
    pub fn transact_with(
        &self,
        nonce: u64,
        to: TxKind,
        value: U256,
        input: Bytes,
        gas_limit: u64,
        max_priority_fee_per_gas: u128,
    ) -> Transaction {
        self.envelope(TxEip1559 {
            chain_id: CHAIN_ID,
            nonce,
            gas_limit,
            max_fee_per_gas: GAS_PRICE,
            max_priority_fee_per_gas,
            to,
            value,
            input,
            ..TxEip1559::default()
        })
    }

    /// A legacy transaction that names the chain (EIP-155), with a million gas.
    pub fn legacy(&self, nonce: u64, to: TxKind, input: impl Into<Bytes>) -> Transaction {
        self.envelope(TxLegacy {
            chain_id: Some(CHAIN_ID),
            nonce,
            gas_limit: 1_000_000,
            gas_price: GAS_PRICE,
            to,
            input: input.into(),
            ..TxLegacy::default()
        })
    }

    /// A legacy transaction from before EIP-155, which names no chain.
    pub fn unprotected(
        &self,
        nonce: u64,
        to: TxKind,
        value: U256,
        input: impl Into<Bytes>,
    ) -> Transaction {
        let (gas_limit, gas_price, input) = (1_000_000, GAS_PRICE, input.into());
        let chain_id = None;
        self.envelope(TxLegacy { chain_id, nonce, gas_limit, gas_price, to, value, input })
    }

    /// A transaction with one blob.
    pub fn blob(&self, nonce: u64, to: Address) -> Transaction {
        let mut versioned_hash = B256::repeat_byte(9);
        versioned_hash[0] = 1;
        self.envelope(TxEip4844 {
            chain_id: CHAIN_ID,
            nonce,
            gas_limit: 100_000,
            max_fee_per_gas: GAS_PRICE,
            max_priority_fee_per_gas: 1,
            to,
            max_fee_per_blob_gas: GAS_PRICE,
            blob_versioned_hashes: vec![versioned_hash],
            ..TxEip4844::default()
        })
    }

    /// A transaction with authorizations (EIP-7702) and a million gas.
    pub fn delegate(
        &self,
        nonce: u64,
        to: Address,
        input: impl Into<Bytes>,
        authorization_list: Vec<SignedAuthorization>,
    ) -> Transaction {
        self.delegate_with_gas(1_000_000, nonce, to, input, authorization_list)
    }

    /// A transaction with authorizations (EIP-7702) and this gas limit.
    pub fn delegate_with_gas(
        &self,
        gas_limit: u64,
        nonce: u64,
        to: Address,
        input: impl Into<Bytes>,
        authorization_list: Vec<SignedAuthorization>,
    ) -> Transaction {
        self.envelope(TxEip7702 {
            chain_id: CHAIN_ID,
            nonce,
            gas_limit,
            max_fee_per_gas: GAS_PRICE,
            max_priority_fee_per_gas: 1,
            to,
            input: input.into(),
            authorization_list,
            ..TxEip7702::default()
        })
    }

    /// The signer's authorization to run the code of `address` in its name (EIP-7702).
    pub fn authorize(&self, nonce: u64, address: Address) -> SignedAuthorization {
        let authorization = Authorization { chain_id: U256::from(CHAIN_ID), address, nonce };
        let signature = self.sign(authorization.signature_hash());
        authorization.into_signed(signature)
    }
}
