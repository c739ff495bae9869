//! Chain files and state dumps: what `deponent import` and `init` read, and `export` writes.
//!
//! [`BlockReader`] gives the blocks of a file, one at a time and in bounded memory, whatever form
//! they are in: the content tells, not the name.
//!
//! | form | as | what is checked |
//! |---|---|---|
//! | RLP | `geth export` writes it, and hive has it | that it is a block's canonical RLP |
//! | era1 | archive of proof of work | all roots, total difficulty, accumulator, index |
//! | era | archive of the consensus layer | block hash, versioned hashes, index |
//! | JSON | `engine_newPayload` and `eth_getBlock` have it | block hash, versioned hashes |
//!
//! All may be packed with gzip or zstd. [`BlockWriter`] writes RLP and payloads, [`Era1Folder`]
//! era1 files; what is in an era file beside the blocks, the consensus layer alone knows.
//!
//! [`AccountReader`] gives the accounts of a genesis or a state dump, and [`SortedState`] puts them
//! into the order of the trie, with the disk's help.

mod beacon;
mod blocks;
mod e2store;
mod era;
mod era1;
mod era1_folder;
mod error;
mod input;
mod json;
pub mod limits;
mod output;
mod payloads;
mod progress;
mod rlp;
mod seal;
mod state;
mod write;

pub use blocks::{BlockReader, FileBlock, Form, Position};
pub use era1::Era1Writer;
pub use era1_folder::Era1Folder;
pub use error::Error;
pub use output::is_stream;
pub use progress::Progress;
pub use state::{
    Account, AccountReader, At, Codes, Entries, Entry, Piece, SortOptions, SortedState, StateForm,
    read_genesis, read_genesis_head,
};
pub use write::{BlockWriter, ExportBlock};
