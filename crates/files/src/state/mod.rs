//! State dumps: reading the accounts of a genesis or a dump, and sorting them by hashed keys.

mod hashed;
mod manifest;
mod merge;
mod read;
mod record;
mod sort;
mod spool;
mod words;

use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, sync_channel};

use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256, keccak256};

use super::error::Error;
use super::limits::{SORT_BATCH_BYTES, SORT_MEMORY_BYTES, SORT_MEMORY_LEAST_BYTES};
use super::progress::Progress;
use manifest::{Folder, Identity, Manifest};
use sort::{Batch, Sorter};

pub use hashed::{HashedAccount, HashedPiece, HashedReader};
pub use merge::{SortedCodes, SortedEntries};
pub use read::{AccountReader, read_genesis, read_genesis_head};
pub use spool::SlotSpool;

/// The two forms of dumps of lines, for errors about what is of the other one.
const FORMS: &str = "`geth snapshot dump` writes \"key\" without \"address\", hashed slots and \
                     values in RLP; `geth dump --iterative` and reth's init-state have \
                     \"address\", plain slots and plain values. A file is the one or the other by \
                     its first account";

/// An account as it stands in a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileAccount {
    /// The address, unless the file has only its hash.
    pub address: Option<Address>,
    /// The hash of the address, if the file has it; one of the two is present.
    pub hashed_address: Option<B256>,
    /// The nonce.
    pub nonce: u64,
    /// The balance, in wei.
    pub balance: U256,
    /// The code, empty for none.
    pub code: Bytes,
    /// The hash of the code, if the file has it.
    pub code_hash: Option<B256>,
    /// The root of the storage trie, if the file has it.
    pub storage_root: Option<B256>,
    /// Slots (not hashed) with their values, in the file's order: those that did not come in
    /// [`AccountPiece::Slots`] before.
    pub storage: Vec<(B256, U256)>,
    /// The position of its beginning.
    pub at: AccountPosition,
}

impl FileAccount {
    /// The hash of the code; `None` if there is none.
    ///
    /// # Errors
    /// If the file has another hash.
    fn hash_of_code(&self) -> Result<Option<B256>, String> {
        let Self { code, code_hash, .. } = self;
        let hash = if code.is_empty() { KECCAK256_EMPTY } else { keccak256(code) };
        match code_hash {
            Some(given) if *given != hash => Err(match code.is_empty() {
                true => format!("\"codeHash\" {given}, but no code: was it left out?"),
                false => format!("\"codeHash\" {given}, but the code hashes to {hash}"),
            }),
            _ => Ok((!code.is_empty()).then_some(hash)),
        }
    }
}

/// The position of an account in a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AccountPosition {
    /// The line, from 1.
    pub line: u64,
    /// The number of bytes before it, in the decompressed content.
    pub offset: u64,
}

/// An item of [`AccountReader`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccountPiece {
    /// Slots of the account at this position, which has too many for one item.
    Slots(AccountPosition, Vec<(B256, U256)>),
    /// An account.
    Account(Box<FileAccount>),
}

/// The forms of state files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum StateForm {
    /// One line with the state root, and one for each account, as `geth dump --iterative` writes
    /// and reth's `init-state` reads.
    Lines,
    /// One object: a genesis with its `alloc`, or a dump with its `accounts`.
    Object,
}

/// An account or a slot, in the order of the state trie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SortedEntry {
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
        /// The root of the storage trie, if the file has it.
        storage_root: Option<B256>,
    },
    /// A slot of the preceding account. Hashed slots ascend; no value is zero.
    Slot {
        /// Keccak-256 of the slot's number.
        hashed_slot: B256,
        /// The value.
        value: U256,
    },
}

/// The options of [`SortedState::prepare`].
#[derive(Debug, Clone)]
pub struct SortOptions {
    /// The directory of the sorted files, created if absent. They take about half the length of the
    /// source. An interrupted attempt at the same source is continued.
    pub directory: PathBuf,
    /// The memory for sorting, in bytes.
    pub memory_bytes: usize,
}

impl SortOptions {
    /// Options with [`SORT_MEMORY_BYTES`] of memory.
    pub fn new(directory: &Path) -> Self {
        Self { directory: directory.into(), memory_bytes: SORT_MEMORY_BYTES }
    }
}

/// The accounts of a file, sorted on disk by hashed address and hashed slot.
#[derive(Debug)]
pub struct SortedState {
    folder: Folder,
    manifest: Manifest,
}

impl SortedState {
    /// Reads all accounts of `file`, a genesis or a state dump, and sorts them on two threads, in
    /// the memory of `options`. An interrupted attempt is continued if the file is unchanged; a
    /// completed one is not repeated. `progress` is set to the file.
    ///
    /// # Errors
    /// If the file is not a state, has an account or slot twice, or has a hash that does not fit an
    /// account's address, code or storage; and if reading or writing fails.
    pub fn prepare(
        file: &Path,
        options: &SortOptions,
        progress: &mut Progress,
    ) -> Result<Self, Error> {
        Self::prepare_opened(AccountReader::open(file)?, options, progress)
    }

    /// As [`prepare`](Self::prepare), of a file of which no account has been read yet.
    ///
    /// # Errors
    /// As [`prepare`](Self::prepare).
    pub fn prepare_opened(
        reader: AccountReader,
        options: &SortOptions,
        progress: &mut Progress,
    ) -> Result<Self, Error> {
        let file = reader.file();
        let memory_bytes = options.memory_bytes.max(SORT_MEMORY_LEAST_BYTES);
        let folder = Folder::open(&options.directory)?;
        let identity = Identity::of(&file)?;
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
            None => reader,
            Some(cut) => AccountReader::resume(&file, manifest.form, manifest.root, cut)?,
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
            // If sorting failed, feeding was only interrupted by that.
            match (fed, sorted) {
                (_, Err(error)) | (Err(error), _) => Err(error),
                (Ok(()), Ok(sorted)) => Ok(sorted),
            }
        })?;
        Ok(Self { folder, manifest })
    }

    /// The state root in the file; a genesis has none.
    pub const fn root(&self) -> Option<B256> {
        self.manifest.root
    }

    /// The number of accounts in the file.
    pub fn accounts(&self) -> u64 {
        self.manifest.runs.iter().map(|run| run.accounts).sum()
    }

    /// All accounts in the order of the trie, each followed by its slots.
    ///
    /// # Errors
    /// If the sorted files are damaged. While iterating also if an account occurs twice.
    pub fn entries(&self) -> Result<SortedEntries, Error> {
        SortedEntries::open(&self.folder, &self.manifest)
    }

    /// The codes with their hashes, in no particular order. Few occur twice.
    ///
    /// # Errors
    /// If the file of codes is damaged.
    pub fn codes(&self) -> Result<SortedCodes, Error> {
        SortedCodes::open(&self.folder, &self.manifest)
    }

    /// Removes the sorted files.
    ///
    /// # Errors
    /// If that fails.
    pub fn remove(self) -> Result<(), Error> {
        self.folder.clear()
    }
}

/// Reads all accounts and sends them to the sorter. If that has stopped, it returns the reason.
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
        let is_part = matches!(piece, AccountPiece::Slots(..));
        bytes += match &piece {
            AccountPiece::Slots(_, slots) => size_of_val(&slots[..]),
            AccountPiece::Account(account) => {
                size_of::<FileAccount>() + size_of_val(&account.storage[..]) + account.code.len()
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
    // If nothing receives it, sorting has failed and returns the reason.
    _ = batches.send(Batch { pieces, cut, last: Some(reader.root()) });
    progress.accounts(reader.accounts());
    progress.bytes(reader.done_bytes());
    Ok(())
}
