use crate::{ChainSpec, InvalidBlock};
use alloy_consensus::crypto::{InvalidSignatureS, RecoveryError, SECP256K1N_HALF};
use alloy_consensus::{
    BlockBody, EthereumTxEnvelope, Header, ReceiptEnvelope, Transaction as _, TxEip4844,
};
use alloy_hardforks::EthereumHardforks;
use alloy_primitives::{Address, B256, Bytes, keccak256};
use alloy_rlp::{Decodable, Encodable};
use secp256k1::ecdsa::{RecoverableSignature, RecoveryId};
use secp256k1::{Message, SECP256K1, SecretKey};
use std::fmt;
use witness::PublicKey;

/// A signed transaction as blocks hold it: blobs stay outside.
pub type Transaction = EthereumTxEnvelope<TxEip4844>;

/// Header and body.
pub type Block = alloy_consensus::Block<Transaction>;

/// A receipt with its type and bloom.
pub type Receipt = ReceiptEnvelope;

/// A block with its hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedBlock {
    block: Block,
    hash: B256,
}

impl SealedBlock {
    /// Computes the hash of `block`.
    pub fn new(block: Block) -> Self {
        let hash = block.header.hash_slow();
        Self { block, hash }
    }

    /// The first block of a chain, with this header and nothing in its body.
    pub fn first(header: Header) -> Self {
        let withdrawals = header.withdrawals_root.map(|_| Default::default());
        let body = BlockBody { transactions: Vec::new(), ommers: Vec::new(), withdrawals };
        Self::new(Block { header, body })
    }

    /// keccak-256 of the header's RLP.
    pub const fn hash(&self) -> B256 {
        self.hash
    }

    /// Length of the block's RLP in bytes.
    pub fn rlp_bytes(&self) -> usize {
        self.block.length()
    }

    /// Gives the block back.
    pub fn into_block(self) -> Block {
        self.block
    }
}

impl std::ops::Deref for SealedBlock {
    type Target = Block;

    fn deref(&self) -> &Block {
        &self.block
    }
}

/// Reads a block's RLP: `[header, transactions, ommers, withdrawals?]`, nothing after it.
///
/// # Errors
/// [`InvalidBlock::Rlp`] if the bytes are not the canonical RLP of a block.
pub fn decode_block(rlp: &[u8]) -> Result<SealedBlock, InvalidBlock> {
    let mut rest = rlp;
    let block = Block::decode(&mut rest).map_err(|error| InvalidBlock::Rlp(error.to_string()))?;
    if !rest.is_empty() {
        return Err(InvalidBlock::Rlp(format!("{} bytes after the end", rest.len())));
    }
    // The decoder does not hold typed transactions to the length of the string around them.
    if alloy_rlp::encode(&block) != rlp {
        return Err(InvalidBlock::Rlp("not the encoding of the block that it describes".into()));
    }
    Ok(SealedBlock::new(block))
}

/// The signer of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signer {
    /// The transaction's sender.
    pub address: Address,
    /// The public key, of which the address is derived.
    pub public_key: PublicKey,
}

/// The senders of a block's transactions: a list of addresses, or an implementation that recovers
/// each sender when it is asked for.
pub trait Senders: fmt::Debug + Sync {
    /// The sender of a transaction, by its index in the block.
    ///
    /// # Errors
    /// [`InvalidBlock::Signature`] when its signature is wrong.
    ///
    /// # Panics
    /// If the block has no such transaction.
    fn sender(&self, index: usize) -> Result<Address, InvalidBlock>;
}

impl<T: AsRef<[Address]> + fmt::Debug + Sync> Senders for T {
    fn sender(&self, index: usize) -> Result<Address, InvalidBlock> {
        Ok(self.as_ref()[index])
    }
}

/// The sender of each transaction, from its signature (EIP-2: `s` in the lower half).
///
/// # Errors
/// [`InvalidBlock::Signature`] for the first transaction whose signature is wrong.
pub fn recover_senders(transactions: &[Transaction]) -> Result<Vec<Address>, InvalidBlock> {
    let recover = |(index, transaction)| Ok(recover_signer(index, transaction)?.address);
    transactions.iter().enumerate().map(recover).collect()
}

/// The signer of one transaction, the one at `index` in its block.
///
/// # Errors
/// [`InvalidBlock::Signature`] if the signature is wrong.
pub fn recover_signer(index: usize, transaction: &Transaction) -> Result<Signer, InvalidBlock> {
    if transaction.signature().s() > SECP256K1N_HALF {
        let reason = InvalidSignatureS.to_string();
        return Err(InvalidBlock::Signature { index, reason });
    }
    recover_any_signer(index, transaction)
}

/// As [`recover_senders`], by the rules of block `number` of a chain, which may be from before
/// Spurious Dragon.
///
/// # Errors
/// [`InvalidBlock::Signature`] for the first transaction whose signature is wrong.
pub fn recover_senders_at(
    chain: &ChainSpec,
    number: u64,
    transactions: &[Transaction],
) -> Result<Vec<Address>, InvalidBlock> {
    let recover = |(index, transaction)| {
        recover_signer_at(chain, number, index, transaction).map(|signer| signer.address)
    };
    transactions.iter().enumerate().map(recover).collect()
}

/// As [`recover_signer`], by the rules of block `number` of a chain: before Homestead any `s` is
/// right (EIP-2), before Spurious Dragon no signature names a chain (EIP-155). On a chain for tests
/// ([`ChainSpec::is_dev`]) an `s` of zero is right for the sender that is named.
///
/// # Errors
/// [`InvalidBlock::TransactionChain`] if the signature names another chain, and
/// [`InvalidBlock::Signature`] if it is wrong under these rules.
pub fn recover_signer_at(
    chain: &ChainSpec,
    number: u64,
    index: usize,
    transaction: &Transaction,
) -> Result<Signer, InvalidBlock> {
    let expected = chain.chain_id();
    if let Some(got) = transaction.chain_id().filter(|got| *got != expected) {
        return Err(InvalidBlock::TransactionChain { index, got, expected });
    }
    let signature = transaction.signature();
    if chain.is_dev() && signature.s().is_zero() {
        let address = Address::from_word(signature.r().into());
        return Ok(Signer { address, public_key: PublicKey::ZERO });
    }
    let names_chain = transaction.is_legacy() && transaction.chain_id().is_some();
    if names_chain && !chain.is_spurious_dragon_active_at_block(number) {
        let reason = "it names a chain, which is not known yet".to_owned();
        return Err(InvalidBlock::Signature { index, reason });
    }
    if chain.is_homestead_active_at_block(number) {
        return recover_signer(index, transaction);
    }
    recover_any_signer(index, transaction)
}

/// The signer of a transaction, for any `s` in the signature (SEC 1, section 4.1.6).
fn recover_any_signer(index: usize, transaction: &Transaction) -> Result<Signer, InvalidBlock> {
    let signature = transaction.signature();
    let mut compact = [0; 64];
    compact[..32].copy_from_slice(&signature.r().to_be_bytes::<32>());
    compact[32..].copy_from_slice(&signature.s().to_be_bytes::<32>());
    let recover = || {
        let id = RecoveryId::try_from(i32::from(signature.v()))?;
        let signature = RecoverableSignature::from_compact(&compact, id)?;
        let message = Message::from_digest(transaction.signature_hash().0);
        SECP256K1.recover_ecdsa(&message, &signature)
    };
    let wrong = |error: secp256k1::Error| InvalidBlock::Signature {
        index,
        reason: RecoveryError::from_source(error).to_string(),
    };
    let public_key = PublicKey::from(recover().map_err(wrong)?.serialize_uncompressed());
    Ok(Signer { address: Address::from_raw_public_key(&public_key[1..]), public_key })
}

/// The public key of a secp256k1 secret key; `None` where it is none: zero, or not below the order.
pub fn public_key(secret: &B256) -> Option<PublicKey> {
    let secret = SecretKey::from_slice(secret.as_slice()).ok()?;
    Some(PublicKey::from(secret.public_key(SECP256K1).serialize_uncompressed()))
}

/// Checks `public_keys` (uncompressed, `0x04 || X || Y`, one a transaction, in order) against the
/// senders that the signatures gave.
pub(crate) fn check_public_keys(
    public_keys: &[Bytes],
    senders: &[Address],
) -> Result<(), InvalidBlock> {
    if public_keys.len() != senders.len() {
        let (given, transactions) = (public_keys.len(), senders.len());
        return Err(InvalidBlock::PublicKeyCount { given, transactions });
    }
    for (index, (key, sender)) in public_keys.iter().zip(senders).enumerate() {
        let [4, point @ ..] = &key[..] else { return Err(InvalidBlock::PublicKey { index }) };
        if point.len() != 64 || Address::from_word(keccak256(point)) != *sender {
            return Err(InvalidBlock::PublicKey { index });
        }
    }
    Ok(())
}
