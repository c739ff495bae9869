use crate::Error;
use crate::index::StoredHeads;
use crate::journal::JournalMode;
use crate::limits::{
    CODE_CACHE_BYTES, INDEX_CACHE_BYTES, JOURNAL_FILE_BYTES, PAGE_CACHE_BYTES, SEGMENT_BYTES,
    WITNESS_SEGMENT_BYTES,
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
    /// Bytes of a segment file: whole pages, at least two. A store keeps the size it was created
    /// with.
    pub segment_bytes: u64,
    /// Bytes of a segment file of witnesses.
    pub witness_segment_bytes: u64,
    /// How long what is appended to the journal lasts.
    pub journal: JournalMode,
    /// Bytes of a file of the journal from which on the next one is begun.
    pub journal_file_bytes: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            cache_bytes: PAGE_CACHE_BYTES,
            code_cache_bytes: CODE_CACHE_BYTES,
            index_cache_bytes: INDEX_CACHE_BYTES,
            segment_bytes: SEGMENT_BYTES,
            witness_segment_bytes: WITNESS_SEGMENT_BYTES,
            journal: JournalMode::default(),
            journal_file_bytes: JOURNAL_FILE_BYTES,
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
    /// The lowest address that the version may have a node at.
    pub floor: NodeAddress,
    /// The state of the sweep after this block: opaque here, at most [`MAX_SWEEP_BYTES`] long.
    ///
    /// [`MAX_SWEEP_BYTES`]: crate::limits::MAX_SWEEP_BYTES
    pub sweep: Bytes,
    /// The block itself: opaque here.
    pub block: Bytes,
    /// New codes. Those that the store has are not written again.
    pub codes: Vec<NewCode>,
    /// Its witness.
    pub witness: Option<Bytes>,
    /// The record of the nodes that it read, from which its witness can be made.
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

/// The index entry of a block: all that the store knows of it, its payload aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockEntry {
    /// Its hash.
    pub hash: B256,
    /// Its number.
    pub number: u64,
    /// Its parent.
    pub parent_hash: B256,
    /// The state that it left; `None` if that is deleted.
    pub version: Option<Version>,
    /// The lowest address that the version may have a node at.
    pub floor: NodeAddress,
    /// The state of the sweep after this block.
    pub sweep: Bytes,
    /// A number that ascends in the order in which blocks were added.
    pub sequence: u64,
    /// Whether it survives a crash.
    pub is_persisted: bool,
    /// Whether its witness can be read.
    pub witness: Retained<()>,
    /// Whether the record of the nodes that it read can be read.
    pub touched: Retained<()>,
}

/// A value with a retention limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retained<T> {
    /// It was never stored.
    Never,
    /// It was deleted.
    Deleted,
    /// It is stored.
    Present(T),
}

/// The hashes of the named blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heads {
    /// The first block of the chain.
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

/// The blocks that a call of `persist` made durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Persisted {
    /// The number of blocks.
    pub blocks: u64,
    /// The number and hash of the block that was added last.
    pub last: Option<(u64, B256)>,
}

/// The sizes of the store.
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
    /// Blocks that wait to be persisted, of all branches.
    pub unpersisted_blocks: u64,
    /// Bytes that wait to be persisted: of these blocks, and of all else.
    pub unpersisted_bytes: u64,
}

/// The size of a log, as far as it is persisted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogStats {
    /// The number of files.
    pub files: u64,
    /// Bytes that are kept.
    pub kept_bytes: u64,
    /// Bytes that were deleted, over the log's life.
    pub deleted_bytes: u64,
}

/// The result of `verify`.
#[derive(Clone, Debug, Default)]
pub struct VerifyReport {
    /// Pages of nodes read.
    pub pages: u64,
    /// Frames of blocks, codes and witnesses read.
    pub frames: u64,
    /// Blocks, canonical numbers and codes read in the index.
    pub index_entries: u64,
    /// The number of those that are damaged or name a missing value.
    pub damaged: u64,
    /// The first of those.
    pub first: Option<Error>,
}
