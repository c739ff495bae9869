use crate::Error;
use crate::index::StoredHeads;
use crate::limits::{
    CODE_CACHE_BYTES, INDEX_CACHE_BYTES, PAGE_CACHE_BYTES, SEGMENT_BYTES, WITNESS_SEGMENT_BYTES,
};
use crate::log::NewCode;
use alloy_primitives::{B256, Bytes};
use trie::versioned::{NodeAddress, Version};

/// How a store is opened.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Bytes of pages of nodes in memory.
    pub cache_bytes: u64,
    /// Bytes of codes in memory.
    pub code_cache_bytes: u64,
    /// Bytes of the index in memory.
    pub index_cache_bytes: usize,
    /// Bytes of a segment file, whole pages, two at least. A store keeps what it was begun with.
    pub segment_bytes: u64,
    /// Bytes of a segment file of witnesses.
    pub witness_segment_bytes: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            cache_bytes: PAGE_CACHE_BYTES,
            code_cache_bytes: CODE_CACHE_BYTES,
            index_cache_bytes: INDEX_CACHE_BYTES,
            segment_bytes: SEGMENT_BYTES,
            witness_segment_bytes: WITNESS_SEGMENT_BYTES,
        }
    }
}

/// A block to keep.
#[derive(Clone, Debug)]
pub struct NewBlock {
    /// Its hash.
    pub hash: B256,
    /// Its number.
    pub number: u64,
    /// Its parent, which is in the store.
    pub parent_hash: B256,
    /// The state that it leaves.
    pub version: Version,
    /// Below this the version has no node.
    pub floor: NodeAddress,
    /// What the sweep after this block knows: opaque here, and short.
    pub sweep: Bytes,
    /// The block itself: opaque here.
    pub block: Bytes,
    /// New codes by hash. Those that the store has are not written again.
    pub codes: Vec<NewCode>,
    /// Its witness.
    pub witness: Option<Bytes>,
    /// What it touched, from which its witness can be made.
    pub touched: Option<Bytes>,
}

impl Default for NewBlock {
    fn default() -> Self {
        Self {
            hash: B256::ZERO,
            number: 0,
            parent_hash: B256::ZERO,
            version: Version::EMPTY,
            floor: NodeAddress::NONE,
            sweep: Bytes::new(),
            block: Bytes::new(),
            codes: Vec::new(),
            witness: None,
            touched: None,
        }
    }
}

/// What the store knows of a block, its payload aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockEntry {
    /// Its hash.
    pub hash: B256,
    /// Its number.
    pub number: u64,
    /// Its parent.
    pub parent_hash: B256,
    /// The state that it left, `None` when that is forgotten.
    pub version: Option<Version>,
    /// Below this the version has no node.
    pub floor: NodeAddress,
    /// What the sweep after this block knew.
    pub sweep: Bytes,
    /// Ascends in the order in which blocks were added.
    pub sequence: u64,
    /// Whether it survives a crash.
    pub is_persisted: bool,
    /// Whether its witness can be read.
    pub witness: Retained<()>,
    /// Whether what it touched can be read.
    pub touched: Retained<()>,
}

/// Something that is kept for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retained<T> {
    /// It was never here.
    Never,
    /// It was deleted.
    Deleted,
    /// Here it is.
    Present(T),
}

/// The blocks with a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heads {
    /// The first block.
    pub genesis: Option<B256>,
    /// The head of the canonical chain.
    pub head: Option<B256>,
    /// The newest safe block.
    pub safe: Option<B256>,
    /// The newest finalized block.
    pub finalized: Option<B256>,
}

impl Heads {
    pub(crate) fn to_array(self) -> [Option<B256>; 4] {
        [self.genesis, self.head, self.safe, self.finalized]
    }
}

impl From<StoredHeads> for Heads {
    fn from(StoredHeads([genesis, head, safe, finalized]): StoredHeads) -> Self {
        Self { genesis, head, safe, finalized }
    }
}

impl From<Heads> for StoredHeads {
    fn from(heads: Heads) -> Self {
        Self(heads.to_array())
    }
}

/// What a call of `persist` made durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Persisted {
    /// How many blocks.
    pub blocks: u64,
    /// The number and hash of the one added last.
    pub last: Option<(u64, B256)>,
}

/// How much there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// The log of nodes.
    pub nodes: LogStats,
    /// The log of blocks.
    pub blocks: LogStats,
    /// The log of codes.
    pub codes: LogStats,
    /// The log of witnesses.
    pub witnesses: LogStats,
    /// Blocks in the index.
    pub block_count: u64,
    /// Canonical blocks in the index.
    pub canonical_count: u64,
    /// Codes in the index.
    pub code_count: u64,
    /// Bytes of the index's file.
    pub index_bytes: u64,
    /// Bytes that wait to be persisted.
    pub unpersisted_bytes: u64,
}

/// How much is in a log, as far as it is persisted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogStats {
    /// Files.
    pub files: u64,
    /// Bytes that are kept.
    pub kept_bytes: u64,
    /// Bytes that were deleted, over the log's life.
    pub deleted_bytes: u64,
}

/// What `verify` found.
#[derive(Clone, Debug, Default)]
pub struct VerifyReport {
    /// Pages of nodes read.
    pub pages: u64,
    /// Frames of blocks, codes and witnesses read.
    pub frames: u64,
    /// Blocks, canonical numbers and codes read in the index.
    pub index_entries: u64,
    /// How many of them were damaged, or name what is not there.
    pub damaged: u64,
    /// The first of those.
    pub first: Option<Error>,
}
