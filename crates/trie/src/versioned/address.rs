use crate::EMPTY_ROOT_HASH;
use alloy_primitives::B256;
use std::fmt::Debug;

/// The address of a node record: its byte offset in the log of nodes, below 2^48.
///
/// Zero is the null address: of an empty trie's root, and of a node that is embedded in its parent.
/// Addresses from [`FIRST_REMOTE`](Self::FIRST_REMOTE) on are of nodes that are not in the log: the
/// state that a chain began with is elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeAddress(u64);

impl NodeAddress {
    /// The null address.
    pub const NONE: Self = Self(0);

    /// Bytes of an address in a record, little endian.
    pub const BYTES: usize = 6;

    /// The offset of the first address of a node that is not in the log.
    pub const FIRST_REMOTE: u64 = 1 << 47;

    /// The address at `offset`, in bytes.
    ///
    /// # Panics
    /// If the offset needs more than 48 bits: 256 TiB of nodes.
    pub const fn new(offset: u64) -> Self {
        assert!(offset < 1 << (8 * Self::BYTES), "an address has 48 bits");
        Self(offset)
    }

    /// The offset in bytes.
    pub const fn offset(self) -> u64 {
        self.0
    }

    /// Whether this is the null address.
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Whether it is the address of a node that is not in the log. All nodes below one are such.
    pub const fn is_remote(self) -> bool {
        self.0 >= Self::FIRST_REMOTE
    }

    /// The address as a record holds it.
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes.copy_from_slice(&self.0.to_le_bytes()[..Self::BYTES]);
        bytes
    }

    /// The address that a record holds.
    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        let mut offset = [0; 8];
        offset[..Self::BYTES].copy_from_slice(&bytes);
        Self(u64::from_le_bytes(offset))
    }
}

/// The reason why a record was not read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// The store cannot be read, or is damaged: with file and offset.
    #[error("{0}")]
    Store(String),
    /// The node is elsewhere, and cannot be had from there.
    #[error("{0}")]
    Remote(String),
}

/// Records of nodes by address, readable on any thread.
pub trait Records: Debug + Send + Sync {
    /// The bytes of a record. More bytes may follow: a record knows its length.
    type Record: AsRef<[u8]> + Clone + Debug + Send + Sync;

    /// The record at `at`, which is an address that the store itself gave.
    ///
    /// # Errors
    /// If the record cannot be read, or is damaged.
    fn record(&self, at: NodeAddress) -> Result<Self::Record, RecordError>;

    /// Calls `look` with the bytes of the record at `at`, which may be cheaper than to hold the
    /// record. A lock may be held meanwhile, so `look` must be quick.
    ///
    /// # Errors
    /// See [`record`](Self::record).
    fn look<T>(&self, at: NodeAddress, look: impl FnOnce(&[u8]) -> T) -> Result<T, RecordError> {
        Ok(look(self.record(at)?.as_ref()))
    }
}

impl<R: Records + ?Sized> Records for &R {
    type Record = R::Record;

    fn record(&self, at: NodeAddress) -> Result<Self::Record, RecordError> {
        (**self).record(at)
    }

    fn look<T>(&self, at: NodeAddress, look: impl FnOnce(&[u8]) -> T) -> Result<T, RecordError> {
        (**self).look(at, look)
    }
}

/// A reader of records with a state of its own, such as recently read pages.
pub trait RecordReader {
    /// Calls `see` with the bytes of a record; more may follow. See [`Records::record`].
    ///
    /// # Errors
    /// If the record cannot be read, or is damaged.
    fn read<T>(&mut self, at: NodeAddress, see: impl FnOnce(&[u8]) -> T) -> Result<T, RecordError>;
}

impl<R: Records + ?Sized> RecordReader for &R {
    fn read<T>(&mut self, at: NodeAddress, see: impl FnOnce(&[u8]) -> T) -> Result<T, RecordError> {
        self.look(at, see)
    }
}

impl<R: RecordReader> RecordReader for &mut R {
    fn read<T>(&mut self, at: NodeAddress, see: impl FnOnce(&[u8]) -> T) -> Result<T, RecordError> {
        (**self).read(at, see)
    }
}

/// A destination of new records.
pub trait RecordSink {
    /// Appends a record of at most [`MAX_RECORD_BYTES`](Self::MAX_RECORD_BYTES) and returns its
    /// address.
    fn append(&mut self, record: &[u8]) -> NodeAddress;

    /// The longest record in bytes: a full branch has 532 bytes of RLP and 16 addresses.
    const MAX_RECORD_BYTES: usize = 1024;
}

impl<S: RecordSink> RecordSink for &mut S {
    fn append(&mut self, record: &[u8]) -> NodeAddress {
        (**self).append(record)
    }
}

/// A state, or a single trie: its root hash and the address of its root's record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// The root hash.
    pub root: B256,
    /// The address of the root's record, null if the trie is empty.
    pub address: NodeAddress,
}

impl Version {
    /// The trie without entries.
    pub const EMPTY: Self = Self { root: EMPTY_ROOT_HASH, address: NodeAddress::NONE };
}
