//! A block as a file has it.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use alloy_eips::eip7685::Requests;
use alloy_primitives::{Bytes, U256};
use execution::SealedBlock;

/// A block from a file, with everything else that the file holds about it.
#[derive(Debug, Clone)]
pub struct FileBlock {
    /// The block; its hash is that of its header.
    pub block: SealedBlock,
    /// The requests (EIP-7685): in era files and payloads from Prague on.
    pub requests: Option<Requests>,
    /// The block access list (EIP-7928): in payloads from Amsterdam on.
    pub access_list: Option<Bytes>,
    /// The total difficulty including the block: in era1 files.
    pub total_difficulty: Option<U256>,
    /// The position in the file.
    pub position: Position,
}

/// The position of a block in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// The file.
    pub file: Arc<Path>,
    /// The number of bytes before it, in the decompressed content.
    pub offset: u64,
    /// The number of blocks before it.
    pub index: u64,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, offset, index } = self;
        write!(f, "{}: block {} of the file, byte {offset}", file.display(), index + 1)
    }
}

/// The blocks of a file that were read or skipped so far.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) blocks: u64,
    /// The highest number of any of them.
    pub(crate) highest: Option<u64>,
}

impl Seen {
    /// Counts one more, which has this number; `None` for a beacon block without a payload.
    pub(crate) fn block(&mut self, number: Option<u64>) {
        self.blocks += 1;
        self.highest = self.highest.max(number);
    }
}

impl FileBlock {
    /// A block alone.
    pub(crate) fn of(block: SealedBlock) -> Self {
        let position = Position { file: Path::new("").into(), offset: 0, index: 0 };
        Self { block, requests: None, access_list: None, total_difficulty: None, position }
    }

    /// The block at this offset, in bytes.
    pub(crate) fn at(mut self, offset: u64) -> Self {
        self.position.offset = offset;
        self
    }
}
