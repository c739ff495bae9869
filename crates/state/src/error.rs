use std::io;
use std::sync::Arc;

/// Why the store could not answer, or could not keep something.
///
/// An error about a file names the file, and the offset in it if that is not 0. No error here is a
/// verdict on a block.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused: full disk, read-only disk, failing disk.
    #[error("{file}: could not {action}{}: {cause}", place(*offset))]
    Io {
        /// The file, or the directory.
        file: String,
        /// The operation.
        action: &'static str,
        /// Where in the file, in bytes; 0 for a directory, and for a file as a whole.
        offset: u64,
        /// The system's error. It is part of the text, so it is no source.
        cause: Arc<io::Error>,
    },
    /// The content of the file is not what was written.
    #[error("{file} is damaged at offset {offset}: {what}")]
    Damaged {
        /// The file.
        file: String,
        /// Where in the file, in bytes.
        offset: u64,
        /// A description of the damage.
        what: String,
    },
    /// The file is not one of this store, or has the name of another.
    #[error("{file} is not a file of this store at offset 0: found {found}, expected {expected}")]
    Foreign {
        /// The file.
        file: String,
        /// The value found.
        found: String,
        /// The value expected.
        expected: String,
    },
    /// The file was written by a program with another format.
    #[error(
        "{file} has format version {found} at offset 8; this program supports {supported}: export \
         the blocks with the version of deponent that wrote it (deponent export), and import them \
         into a new data directory (deponent import)"
    )]
    Version {
        /// The file.
        file: String,
        /// Its version.
        found: u32,
        /// The version that this program supports.
        supported: u32,
    },
    /// The file is missing, or shorter than the index says.
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
    /// A node that is not in the log cannot be had.
    #[error("{0}")]
    Remote(String),
    /// The index's tables contradict themselves or each other.
    #[error("{file}: {what}")]
    Index {
        /// The file.
        file: String,
        /// The message of the index.
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

/// The words for a place in a file, none for its begin: a directory has no other.
fn place(offset: u64) -> String {
    if offset == 0 { String::new() } else { format!(" at offset {offset}") }
}

impl From<Error> for trie::versioned::RecordError {
    fn from(error: Error) -> Self {
        match error {
            Error::Remote(reason) => Self::Remote(reason),
            error => Self::Store(error.to_string()),
        }
    }
}
