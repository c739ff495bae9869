//! An append-only, crash-safe store of an Ethereum chain: nodes of state tries, blocks, codes,
//! witnesses, and the heads.
//!
//! [`Database`] keeps nodes in a log of pages and all other values in logs of frames, on a
//! [`Disk`], with an index (redb) of their locations. A block can be read as soon as it is added,
//! and is durable once [`Database::persist`] has returned. After a crash the store opens with the
//! state of the last `persist`, or of one that was under way. See docs/design/state.md.
//! The crate has no features. Sizes are in bytes; an address is a byte offset in a log.
//!
//! ```
//! # extern crate trie as deponent_trie;
//! use alloy_primitives::Bytes;
//! use deponent_state::{Database, MemoryDisk, NewBlock, Options};
//! use deponent_trie::versioned::{RecordSink, Records};
//!
//! let disk = MemoryDisk::new();
//! let store = Database::open(disk.clone(), &Options::default())?;
//! let mut batch = store.batch();
//! let address = batch.append(b"a node");
//! batch.seal()?;
//! let hash = [1; 32].into();
//! store.add(NewBlock { hash, block: Bytes::from_static(b"a block"), ..NewBlock::default() })?;
//! assert!(store.nodes().record(address)?.as_ref().starts_with(b"a node"));
//! store.persist()?;
//! drop(store);
//! let store = Database::open(disk, &Options::default())?;
//! assert_eq!(store.block(&hash)?, Some(Bytes::from_static(b"a block")));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod back_pressure;
mod cache;
mod counter;
mod database;
mod disk;
mod error;
mod frames;
mod header;
mod index;
mod journal;
pub mod limits;
mod log;
mod pages;
mod record_log;
mod segments;

pub use cache::CacheStats;
pub use database::{
    BlockEntry, Database, Heads, LogStats, NewBlock, Options, Persisted, Retained, Stats,
    VerifyReport,
};
pub use disk::{
    DirectoryDisk, Disk, File, MemoryDisk, create_directory, is_out_of_memory, look_at_mapped,
    read_mapped,
};
pub use error::Error;
pub use frames::JournalTail;
pub use header::FORMAT_VERSION;
pub use index::NewCanonical;
pub use journal::{Journal, JournalChoice, JournalMode};
pub use log::{CodeLocation, NewCode, StoredCode};
pub use pages::{NodeBatch, NodeReader, NodeRecord, NodeStore, RemoteNodes};
pub use record_log::RecordLog;
