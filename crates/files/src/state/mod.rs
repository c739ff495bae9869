//! States: reading the accounts of a genesis or a dump, and sorting them by their hashed keys.

mod manifest;
mod merge;
mod read;
mod record;
mod sort;

use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, sync_channel};

use alloy_primitives::{Address, B256, Bytes, U256};

use super::error::Error;
use super::limits::{SORT_BATCH_BYTES, SORT_MEMORY_BYTES, SORT_MEMORY_LEAST_BYTES};
use super::progress::Progress;
use manifest::{Folder, Identity, Manifest};
use sort::{Batch, Sorter};

pub use merge::{Codes, Entries};
pub use read::{AccountReader, read_genesis, read_genesis_head};

/// An account as a file has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// The address, unless the file has its hash alone.
    pub address: Option<Address>,
    /// The hash of the address, where the file has it; one of the two is there.
    pub hashed_address: Option<B256>,
    /// The nonce.
    pub nonce: u64,
    /// The balance, in wei.
    pub balance: U256,
    /// The code, empty for none.
    pub code: Bytes,
    /// The hash of the code, where the file has it.
    pub code_hash: Option<B256>,
    /// The root of the storage trie, where the file has it.
    pub storage_root: Option<B256>,
    /// Slots, not hashed, with their values, in the file's order: all that the last
    /// [`Piece::Slots`] have not brought.
    pub storage: Vec<(B256, U256)>,
    /// Where it begins.
    pub at: At,
}

/// Where in a file an account begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct At {
    /// The line, from 1.
    pub line: u64,
    /// Bytes before it, in what the file unpacks to.
    pub offset: u64,
}

/// What [`AccountReader`] gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Slots of the account that begins there, which has more than are handed out at once.
    Slots(At, Vec<(B256, U256)>),
    /// An account.
    Account(Box<Account>),
}

/// The forms that state files have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum StateForm {
    /// A line with the state's root, and one for each account, as `geth dump --iterative` writes
    /// and reth's `init-state` reads.
    Lines,
    /// One object: a genesis with its `alloc`, or a dump with its `accounts`.
    Object,
}

/// What comes next in the order of the state's trie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// An account. Hashed addresses ascend.
    Account {
        /// Keccak-256 of the address.
        hashed_address: B256,
        /// The nonce.
        nonce: u64,
        /// The balance, in wei.
        balance: U256,
        /// Keccak-256 of the code.
        code_hash: B256,
        /// The root of the storage trie as the file says, where it does.
        storage_root: Option<B256>,
    },
    /// A slot of the account before it. Hashed slots ascend; no value is zero.
    Slot {
        /// Keccak-256 of the slot's number.
        hashed_slot: B256,
        /// The value.
        value: U256,
    },
}

/// How a state is sorted.
#[derive(Debug, Clone)]
pub struct SortOptions {
    /// Where sorted runs are kept meanwhile; made when absent. It needs about half the file's
    /// length. What it has of an earlier attempt at the same file is gone on with.
    pub directory: PathBuf,
    /// Memory for sorting, in bytes.
    pub memory_bytes: usize,
}

impl SortOptions {
    /// With the usual memory.
    pub fn new(directory: &Path) -> Self {
        Self { directory: directory.into(), memory_bytes: SORT_MEMORY_BYTES }
    }
}

/// The accounts of a file, sorted by hashed address and hashed slot, on the disk.
#[derive(Debug)]
pub struct SortedState {
    folder: Folder,
    manifest: Manifest,
}

impl SortedState {
    /// Reads all accounts of `file`, a genesis or a state dump, and sorts them: on two threads, in
    /// the memory that `options` names. An attempt that was interrupted is gone on with, if the
    /// file is the same; a finished one is not repeated. `progress` needs to know nothing of the
    /// file: it is told.
    ///
    /// # Errors
    /// If the file is no state or has an account or slot twice; if what it says of an account's
    /// address, code or storage does not fit; and if reading or writing fails.
    pub fn prepare(
        file: &Path,
        options: &SortOptions,
        progress: &mut Progress,
    ) -> Result<Self, Error> {
        let memory_bytes = options.memory_bytes.max(SORT_MEMORY_LEAST_BYTES);
        let folder = Folder::open(&options.directory)?;
        let identity = Identity::of(file)?;
        let manifest = match folder.manifest()? {
            Some(manifest) if identity.is_some() && manifest.source == identity => manifest,
            _ => {
                folder.clear()?;
                Manifest { source: identity, ..Manifest::default() }
            }
        };
        if manifest.done {
            return Ok(Self { folder, manifest });
        }
        let slots_at_once = memory_bytes / 16 / size_of::<(B256, U256)>();
        let reader = match &manifest.cut {
            None => AccountReader::open(file)?,
            Some(cut) => AccountReader::resume(file, manifest.form, manifest.root, cut)?,
        };
        let mut reader = reader.with_slots_at_once(slots_at_once);
        progress.file(reader.file_bytes(), reader.done_bytes());
        let manifest = Manifest { root: reader.root(), form: reader.form(), ..manifest };
        let sorter = Sorter::new(folder, manifest, reader.source(), memory_bytes)?;
        let (folder, manifest) = std::thread::scope(|scope| {
            let (batches, received) = sync_channel(1);
            let sorting = scope.spawn(move || sorter.run(received));
            let fed = feed(&mut reader, &batches, memory_bytes, progress);
            drop(batches);
            let sorted = sorting.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            // Where sorting has failed, feeding was only cut off.
            match (fed, sorted) {
                (_, Err(error)) | (Err(error), _) => Err(error),
                (Ok(()), Ok(sorted)) => Ok(sorted),
            }
        })?;
        Ok(Self { folder, manifest })
    }

    /// The root that the file says the state has; a genesis says none.
    pub const fn root(&self) -> Option<B256> {
        self.manifest.root
    }

    /// Accounts in the file.
    pub fn accounts(&self) -> u64 {
        self.manifest.runs.iter().map(|run| run.accounts).sum()
    }

    /// Everything, in the order of the trie: each account, and then its slots.
    ///
    /// # Errors
    /// If the sorted files are damaged. While iterating also if an account is there twice.
    pub fn entries(&self) -> Result<Entries, Error> {
        Entries::open(&self.folder, &self.manifest)
    }

    /// The codes with their hashes, in no order. Most are there once.
    ///
    /// # Errors
    /// If the file with the codes is damaged.
    pub fn codes(&self) -> Result<Codes, Error> {
        Codes::open(&self.folder, &self.manifest)
    }

    /// Removes the sorted files, when the state has been made of them.
    ///
    /// # Errors
    /// If that fails.
    pub fn remove(self) -> Result<(), Error> {
        self.folder.clear()
    }
}

/// Reads all accounts and hands them on. When sorting has stopped taking them, it says why.
fn feed(
    reader: &mut AccountReader,
    batches: &SyncSender<Batch>,
    memory_bytes: usize,
    progress: &mut Progress,
) -> Result<(), Error> {
    let limit = SORT_BATCH_BYTES.min(memory_bytes / 32);
    let (mut pieces, mut bytes) = (Vec::new(), 0);
    while let Some(piece) = reader.next() {
        let piece = piece?;
        let is_part = matches!(piece, Piece::Slots(..));
        bytes += match &piece {
            Piece::Slots(_, slots) => size_of_val(&slots[..]),
            Piece::Account(account) => {
                size_of::<Account>() + size_of_val(&account.storage[..]) + account.code.len()
            }
        };
        pieces.push(piece);
        if is_part || bytes >= limit {
            let cut = (!is_part).then(|| reader.cut());
            if batches.send(Batch { pieces: std::mem::take(&mut pieces), cut, last: None }).is_err()
            {
                return Ok(());
            }
            bytes = 0;
            progress.accounts(reader.accounts());
            progress.bytes(reader.done_bytes());
        }
    }
    let cut = Some(reader.cut());
    // Where nobody takes it, sorting has failed and says why.
    _ = batches.send(Batch { pieces, cut, last: Some(reader.root()) });
    progress.accounts(reader.accounts());
    progress.bytes(reader.done_bytes());
    Ok(())
}
