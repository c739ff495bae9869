use crate::{Error, limits};
use alloy_eips::eip7685::Requests;
use alloy_primitives::map::B256Map;
use alloy_primitives::{Address, B256, Bytes};
use execution::SealedBlock;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use witness::Witness;

/// A valid block, as the chain remembers it.
#[derive(Debug)]
pub struct BlockRecord {
    /// Header and body.
    pub block: SealedBlock,
    /// The sender of each transaction.
    pub senders: Vec<Address>,
    /// The block's EIP-7685 requests.
    pub requests: Requests,
    /// RLP of the block access list, from Amsterdam on.
    pub block_access_list: Option<Bytes>,
}

/// The chain's heads, by hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heads {
    /// The first block.
    pub genesis: B256,
    /// The head of the canonical chain.
    pub head: B256,
    /// The safe block, once the consensus layer has named one.
    pub safe: Option<B256>,
    /// The finalized block, once the consensus layer has named one.
    pub finalized: Option<B256>,
}

/// Why a block is invalid, and where its branch was last valid.
#[derive(Debug, Clone)]
pub(crate) struct InvalidRecord {
    pub(crate) latest_valid_hash: Option<B256>,
    pub(crate) reason: String,
}

/// Every valid block from genesis on, any number of branches, and which of them is canonical.
#[derive(Debug)]
pub(crate) struct BlockTree {
    blocks: B256Map<Arc<BlockRecord>>,
    /// Number to hash, from genesis to the head.
    canonical: BTreeMap<u64, B256>,
    pub(crate) heads: Heads,
    invalid: Bounded<InvalidRecord>,
    witnesses: Witnesses,
}

impl BlockTree {
    pub(crate) fn new(genesis: BlockRecord) -> Self {
        let (number, hash) = (genesis.block.header.number, genesis.block.hash());
        Self {
            blocks: [(hash, Arc::new(genesis))].into_iter().collect(),
            canonical: [(number, hash)].into(),
            heads: Heads { genesis: hash, head: hash, safe: None, finalized: None },
            invalid: Bounded::new(limits::INVALID_BLOCKS),
            witnesses: Witnesses::default(),
        }
    }

    pub(crate) fn block(&self, hash: &B256) -> Option<&Arc<BlockRecord>> {
        self.blocks.get(hash)
    }

    pub(crate) fn insert(&mut self, record: BlockRecord) {
        self.blocks.insert(record.block.hash(), Arc::new(record));
    }

    pub(crate) fn canonical_hash(&self, number: u64) -> Option<B256> {
        self.canonical.get(&number).copied()
    }

    pub(crate) fn is_canonical(&self, record: &BlockRecord) -> bool {
        self.canonical_hash(record.block.header.number) == Some(record.block.hash())
    }

    /// Whether `ancestor` is `descendant` or on its branch.
    pub(crate) fn is_ancestor(&self, ancestor: &B256, descendant: &B256) -> bool {
        let (Some(ancestor), Some(record)) = (self.block(ancestor), self.block(descendant)) else {
            return false;
        };
        let number = ancestor.block.header.number;
        let mut record = record;
        while record.block.header.number > number {
            if self.is_canonical(record) {
                return self.canonical_hash(number) == Some(ancestor.block.hash());
            }
            record = &self.blocks[&record.block.header.parent_hash];
        }
        record.block.hash() == ancestor.block.hash()
    }

    /// Makes the branch of `hash` the canonical chain.
    pub(crate) fn set_head(&mut self, hash: B256) -> Result<(), Error> {
        let mut record = self.block(&hash).ok_or(Error::UnknownBlock(hash))?.clone();
        self.canonical.split_off(&(record.block.header.number + 1));
        while !self.is_canonical(&record) {
            self.canonical.insert(record.block.header.number, record.block.hash());
            record = self.blocks[&record.block.header.parent_hash].clone();
        }
        self.heads.head = hash;
        Ok(())
    }

    pub(crate) fn invalid(&self, hash: &B256) -> Option<&InvalidRecord> {
        self.invalid.get(hash)
    }

    pub(crate) fn insert_invalid(&mut self, hash: B256, record: InvalidRecord) {
        self.invalid.insert(hash, record);
    }

    pub(crate) fn witness(&self, hash: &B256) -> Option<Arc<Witness>> {
        self.witnesses.by_hash.get(hash).map(|(witness, _)| witness.clone())
    }

    pub(crate) fn insert_witness(&mut self, hash: B256, witness: Arc<Witness>) {
        self.witnesses.insert(hash, witness);
    }
}

/// A map that forgets its oldest entries.
#[derive(Debug)]
pub(crate) struct Bounded<T> {
    entries: B256Map<T>,
    order: VecDeque<B256>,
    capacity: usize,
}

impl<T> Bounded<T> {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { entries: B256Map::default(), order: VecDeque::new(), capacity }
    }

    pub(crate) fn get(&self, hash: &B256) -> Option<&T> {
        self.entries.get(hash)
    }

    pub(crate) fn insert(&mut self, hash: B256, value: T) {
        if self.entries.insert(hash, value).is_none() {
            self.order.push_back(hash);
        }
        while self.order.len() > self.capacity {
            let oldest = self.order.pop_front().expect("not empty");
            self.entries.remove(&oldest);
        }
    }
}

/// Witnesses under a byte budget, the newest kept.
#[derive(Debug, Default)]
struct Witnesses {
    by_hash: B256Map<(Arc<Witness>, usize)>,
    order: VecDeque<B256>,
    bytes: usize,
}

impl Witnesses {
    fn insert(&mut self, hash: B256, witness: Arc<Witness>) {
        let bytes = witness.content_bytes();
        if self.by_hash.insert(hash, (witness, bytes)).is_some() {
            return;
        }
        self.bytes += bytes;
        self.order.push_back(hash);
        while self.bytes > limits::WITNESS_BYTES && self.order.len() > 1 {
            let oldest = self.order.pop_front().expect("not empty");
            let (_, bytes) = self.by_hash.remove(&oldest).expect("both hold the same hashes");
            self.bytes -= bytes;
        }
    }
}

#[cfg(test)]
mod tests;
