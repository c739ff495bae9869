use std::io;
use std::sync::Arc;

/// Why the store could not answer, or could not keep something.
///
/// What came from a file names it, and the place in it. Nothing here is ever a verdict on a block.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused: full disk, read-only disk, failing disk.
    #[error("{file}: could not {action} at offset {offset}: {cause}")]
    Io {
        /// The file, or the directory.
        file: String,
        /// What was tried.
        action: &'static str,
        /// Where in the file, in bytes.
        offset: u64,
        /// What the system said; no source, since it is in the text.
        cause: Arc<io::Error>,
    },
    /// What is in the file is not what was written there.
    #[error("{file} is damaged at offset {offset}: {what}")]
    Damaged {
        /// The file.
        file: String,
        /// Where in the file, in bytes.
        offset: u64,
        /// What was found, and what was expected.
        what: String,
    },
    /// The file is not one of ours, or one of ours in another's place.
    #[error("{file} is not a file of this store at offset 0: found {found}, expected {expected}")]
    Foreign {
        /// The file.
        file: String,
        /// What it begins with.
        found: String,
        /// What it should begin with.
        expected: String,
    },
    /// The file was written by a program with another format.
    #[error("{file} has format version {found} at offset 8; this program supports {supported}")]
    Version {
        /// The file.
        file: String,
        /// Its version.
        found: u32,
        /// The version that we know.
        supported: u32,
    },
    /// The file is missing, or ends before what the index knows to be in it.
    #[error("{file} ends at offset {found_bytes}; the index says {expected_bytes} bytes are there")]
    Short {
        /// The file.
        file: String,
        /// Its length, zero when it is missing.
        found_bytes: u64,
        /// The length that it must have at least.
        expected_bytes: u64,
    },
    /// Another process has the directory open.
    #[error("{directory} is in use by another process: its lock file is held")]
    InUse {
        /// The directory.
        directory: String,
    },
    /// The address lies in a segment that was deleted because no kept version needs it.
    #[error("{log}: offset {address} was deleted; the log begins at {start}")]
    Deleted {
        /// The log.
        log: &'static str,
        /// The address asked for.
        address: u64,
        /// The first address kept.
        start: u64,
    },
    /// The address lies past the end of the log, or where no record begins.
    #[error("{log}: there is nothing at offset {address}; the log ends at {end}")]
    NoRecord {
        /// The log.
        log: &'static str,
        /// The address asked for.
        address: u64,
        /// Where the log ends.
        end: u64,
    },
    /// The index's tables contradict themselves or each other.
    #[error("{file}: {what}")]
    Index {
        /// The file.
        file: String,
        /// What the database said.
        what: String,
    },
    /// There is no canonical block with this number to unwind to.
    #[error("no canonical block has number {number}")]
    NotCanonical {
        /// The number.
        number: u64,
    },
    /// An earlier write failed, so nothing is written until the store is opened again.
    #[error("nothing is written until a restart, because a write failed: {0}")]
    Refused(#[source] Box<Error>),
}

impl From<Error> for trie::versioned::RecordError {
    fn from(error: Error) -> Self {
        Self(error.to_string())
    }
}
