//! Ethereum chain files and state dumps: reading, writing and sorting, in bounded memory.
//!
//! [`BlockReader`] reads a file block by block. The content determines the form, not the name:
//!
//! | form | written by | checks |
//! |---|---|---|
//! | RLP | `geth export`, hive | canonical RLP |
//! | era1 | archives of proof-of-work blocks | roots, total difficulty, accumulator, index |
//! | ere | archives of blocks before and after the merge | as era1, and proofs by the accumulator |
//! | era | archives of the consensus layer | block hash, versioned hashes, index |
//! | JSON | `engine_newPayload` requests, `eth_getBlock` answers | block hash, versioned hashes |
//!
//! All may be compressed with gzip or zstd. [`BlockWriter`] writes RLP and payloads,
//! [`ArchiveFolder`] era1 and ere files. era files are not written: most of their content only the
//! consensus layer knows. [`in_order`] sorts files by their blocks, and [`gaps`] finds what is
//! missing between them.
//!
//! [`rpc_block`] and [`raw_block`] read the blocks of JSON-RPC answers; [`rpc_requests`] and
//! [`rpc_access_list`] ask for what such blocks lack.
//!
//! [`AccountReader`] reads the accounts of a genesis or a state dump, and [`SortedState`] sorts
//! them on disk into the order of the state trie. [`HashedReader`] reads dumps that are in this
//! order already, by hashed keys.
//!
//! ```
//! # extern crate execution as deponent_execution;
//! use deponent_execution::{Block, SealedBlock};
//! use deponent_files::{BlockForm, BlockReader, BlockWriter, ExportBlock};
//!
//! # let directory = tempfile::tempdir()?;
//! let path = directory.path().join("chain.rlp.gz");
//! let block = SealedBlock::new(Block::default());
//! let mut writer = BlockWriter::create(&path, BlockForm::Rlp)?;
//! writer.write(ExportBlock { block: &block, requests: None, access_list: None })?;
//! writer.finish()?;
//!
//! for found in BlockReader::open(&path)? {
//!     let found = found?;
//!     assert_eq!(found.block, block);
//!     println!("{}: {}", found.position, found.block.hash());
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod archive;
mod archive_folder;
mod beacon;
mod block;
mod blocks;
mod e2store;
mod era;
mod era1;
mod ere;
mod ere_writer;
mod error;
mod gzip;
mod input;
mod json;
pub mod limits;
mod order;
mod output;
mod payloads;
mod progress;
mod receipts;
mod rlp;
mod rpc_block;
mod rpc_requests;
mod seal;
mod state;
mod write;

pub use archive_folder::{ArchiveFolder, ArchiveForm, ArchiveWriter};
pub use block::{FileBlock, Position};
pub use blocks::{BlockForm, BlockReader, read_file};
pub use era1::Era1Writer;
pub use ere_writer::EreWriter;
pub use error::{AnswerError, Error};
pub use execution::SealedBlock;
pub use gzip::{gunzip, gzip};
pub use json::unhexed;
pub use order::{ChainFile, Gap, gaps, in_order};
pub use output::{WRITE_FAILURE_STATUS, is_stream, is_write_failure};
pub use progress::Progress;
pub use rpc_block::{body_access_lists, raw_block, rpc_access_list, rpc_block};
pub use rpc_requests::rpc_requests;
pub use state::{
    AccountPiece, AccountPosition, AccountReader, FileAccount, HashedAccount, HashedPiece,
    HashedReader, SlotSpool, SortOptions, SortedCodes, SortedEntries, SortedEntry, SortedState,
    StateForm, read_genesis, read_genesis_head,
};
pub use write::{BlockWriter, ExportBlock};
