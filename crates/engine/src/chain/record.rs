//! Floor 2. A valid block, as the chain keeps it.

use crate::chain::read_set::ReadSet;
use crate::chain::sealed::Seal;
use crate::error::Error;
use alloy_eips::eip2718::{Decodable2718, Encodable2718};
use alloy_eips::eip7685::Requests;
use alloy_primitives::{Address, B256, Bytes, U256};
use alloy_rlp::{Decodable, RlpDecodable, RlpEncodable};
use execution::{Receipt, SealedBlock};

/// A valid block, as the chain remembers it.
#[derive(Debug)]
pub struct BlockRecord {
    /// Header and body.
    pub block: SealedBlock,
    /// The sender of each transaction.
    pub senders: Vec<Address>,
    /// The receipt of each transaction.
    pub receipts: Vec<Receipt>,
    /// The block's EIP-7685 requests.
    pub requests: Requests,
    /// RLP of the block access list, from Amsterdam on.
    pub block_access_list: Option<Bytes>,
    /// The sum of the difficulties up to this block; after the merge it stays what it was.
    pub total_difficulty: U256,
    /// The nodes and codes that the block read; `None` for the first block of a chain, and where
    /// the list has been pruned.
    pub(crate) read_set: Option<ReadSet>,
    /// The state after the block, once its nodes have addresses.
    pub(crate) seal: Seal,
}

/// How many items a witness has, and bytes, as far as that is known without putting it together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WitnessSize {
    /// Trie nodes; a few less where two places of the state have the same one.
    pub nodes_at_most: usize,
    /// Codes.
    pub codes: usize,
    /// Headers.
    pub headers: usize,
    /// Bytes in SSZ: of the last witness that was put together, and of the last block that was
    /// validated.
    pub bytes: Option<WitnessBytes>,
}

/// How many bytes a witness has in SSZ, as far as that is known before its nodes are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WitnessBytes {
    /// So many: it was put together.
    Exactly(usize),
    /// No more than this, if each of its nodes were as long as the longest there are.
    AtMost(usize),
}

impl BlockRecord {
    /// keccak-256 of the header's RLP.
    pub const fn hash(&self) -> B256 {
        self.block.hash()
    }

    /// The block's number.
    pub fn number(&self) -> u64 {
        self.block.header.number
    }

    /// Whether its body is there: not that of the first block of a chain that begins with a state.
    pub fn has_body(&self) -> bool {
        let (header, body) = (&self.block.header, &self.block.body);
        let lacks = |is_empty: bool, root: B256| is_empty && root != trie::EMPTY_ROOT_HASH;
        let withdrawals = body.withdrawals.as_ref().zip(header.withdrawals_root);
        header.block_access_list_hash.is_some() == self.block_access_list.is_some()
            && !lacks(body.transactions.is_empty(), header.transactions_root)
            && !withdrawals.is_some_and(|(list, root)| lacks(list.is_empty(), root))
    }

    /// The block's number and its parent.
    pub(crate) fn link(&self) -> (u64, B256) {
        (self.number(), self.block.header.parent_hash)
    }

    /// About the bytes that the record holds in memory.
    pub(crate) fn bytes(&self) -> usize {
        let receipts: usize = self.receipts.iter().map(|receipt| receipt.encode_2718_len()).sum();
        let read_set = self.read_set.as_ref().map_or(0, ReadSet::bytes);
        2 * (self.block.rlp_bytes() + receipts) + read_set + 1024
    }

    /// The record as the database keeps it, without what the database keeps beside it.
    pub(crate) fn to_stored(&self) -> Bytes {
        let stored = StoredRecord {
            block: alloy_rlp::encode(&*self.block).into(),
            senders: self.senders.clone(),
            receipts: self.receipts.iter().map(|receipt| receipt.encoded_2718().into()).collect(),
            requests: self.requests.iter().cloned().collect(),
            access_list: self.block_access_list.iter().cloned().collect(),
            total_difficulty: self.total_difficulty,
        };
        alloy_rlp::encode(stored).into()
    }

    /// The record that [`to_stored`](Self::to_stored) wrote.
    pub(crate) fn from_stored(
        stored: &[u8],
        read_set: Option<ReadSet>,
        seal: Seal,
    ) -> Result<Self, Error> {
        let damaged = |what: &str, error: &dyn std::fmt::Display| {
            Error::Storage(format!("a block's {what} cannot be read back: {error}"))
        };
        let stored = StoredRecord::decode(&mut &stored[..]).map_err(|e| damaged("record", &e))?;
        let block = execution::decode_block(&stored.block).map_err(|e| damaged("RLP", &e))?;
        let receipts = stored.receipts.iter().map(|rlp| Receipt::decode_2718(&mut &rlp[..]));
        let receipts = receipts.collect::<Result<_, _>>().map_err(|e| damaged("receipts", &e))?;
        Ok(Self {
            block,
            senders: stored.senders,
            receipts,
            requests: Requests::new(stored.requests),
            block_access_list: stored.access_list.into_iter().next(),
            total_difficulty: stored.total_difficulty,
            read_set,
            seal,
        })
    }
}

#[derive(RlpEncodable, RlpDecodable)]
struct StoredRecord {
    block: Bytes,
    senders: Vec<Address>,
    receipts: Vec<Bytes>,
    requests: Vec<Bytes>,
    /// One, or none.
    access_list: Vec<Bytes>,
    total_difficulty: U256,
}
