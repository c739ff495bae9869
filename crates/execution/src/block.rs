use crate::{ChainSpec, InvalidBlock};
use alloy_consensus::crypto::RecoveryError;
use alloy_consensus::transaction::SignerRecoverable;
use alloy_consensus::{EthereumTxEnvelope, Transaction as _, TxEip4844};
use alloy_hardforks::EthereumHardforks;
use alloy_primitives::{Address, B256, Bytes, FixedBytes, keccak256};
use alloy_rlp::{Decodable, Encodable};

/// A signed transaction as blocks hold it: blobs stay outside.
pub type Transaction = EthereumTxEnvelope<TxEip4844>;

/// An uncompressed secp256k1 public key: 0x04, X, Y.
pub type PublicKey = FixedBytes<65>;

/// Header and body.
pub type Block = alloy_consensus::Block<Transaction>;

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

/// The sender of each transaction, from its signature (EIP-2: `s` in the lower half).
pub fn recover_senders(transactions: &[Transaction]) -> Result<Vec<Address>, InvalidBlock> {
    let recover = |(index, transaction)| recover_sender(index, transaction);
    transactions.iter().enumerate().map(recover).collect()
}

/// The sender of one transaction, `index` in its block.
pub fn recover_sender(index: usize, transaction: &Transaction) -> Result<Address, InvalidBlock> {
    let wrong = |error: RecoveryError| InvalidBlock::Signature { index, reason: error.to_string() };
    transaction.recover_signer().map_err(wrong)
}

/// As [`recover_senders`], by the rules of block `number` of a chain, which may be from before
/// Spurious Dragon.
pub fn recover_senders_at(
    chain: &ChainSpec,
    number: u64,
    transactions: &[Transaction],
) -> Result<Vec<Address>, InvalidBlock> {
    let recover = |(index, transaction)| recover_sender_at(chain, number, index, transaction);
    transactions.iter().enumerate().map(recover).collect()
}

/// As [`recover_sender`], by the rules of block `number` of a chain: before Homestead any `s` is
/// right (EIP-2), before Spurious Dragon no signature names a chain (EIP-155).
pub fn recover_sender_at(
    chain: &ChainSpec,
    number: u64,
    index: usize,
    transaction: &Transaction,
) -> Result<Address, InvalidBlock> {
    let names_chain = transaction.is_legacy() && transaction.chain_id().is_some();
    if names_chain && !chain.is_spurious_dragon_active_at_block(number) {
        let reason = "it names a chain, which is not known yet".to_owned();
        return Err(InvalidBlock::Signature { index, reason });
    }
    if chain.is_homestead_active_at_block(number) {
        return recover_sender(index, transaction);
    }
    let wrong = |error: RecoveryError| InvalidBlock::Signature { index, reason: error.to_string() };
    transaction.recover_signer_unchecked().map_err(wrong)
}

/// The public key behind the signature of one transaction, `index` in its block. Whether the
/// signature is one that blocks may have, [`recover_sender_at`] says.
pub fn recover_public_key(
    index: usize,
    transaction: &Transaction,
) -> Result<PublicKey, InvalidBlock> {
    let key = transaction.signature().recover_from_prehash(&transaction.signature_hash());
    let key = key.map_err(|error| InvalidBlock::Signature { index, reason: error.to_string() })?;
    Ok(PublicKey::from_slice(key.to_encoded_point(false).as_bytes()))
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

#[cfg(test)]
mod tests;
