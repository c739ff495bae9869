//! The index's values, as bytes. Numbers are little endian.

use crate::log::FrameLocation;
use alloy_primitives::{B256, Bloom};
use trie::versioned::{NodeAddress, Version};

/// A block that becomes canonical, and what it is found by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewCanonical {
    pub(crate) hash: B256,
    /// The bloom of its logs.
    pub(crate) bloom: Bloom,
    /// The first eight bytes of the hash of each transaction.
    pub(crate) transactions: Vec<u64>,
}

impl NewCanonical {
    /// The block with this hash, with the log bloom of its header and the hashes of its
    /// transactions.
    pub fn new(hash: B256, bloom: Bloom, transactions: impl IntoIterator<Item = B256>) -> Self {
        let transactions = transactions.into_iter();
        let transactions = transactions.map(|hash| transaction_key(&hash)).collect();
        Self { hash, bloom, transactions }
    }

    /// How many transactions it has.
    pub fn transaction_count(&self) -> usize {
        self.transactions.len()
    }

    /// The memory that it takes, in bytes, about.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>() + 8 * self.transactions.len()
    }
}

/// The first eight bytes of a transaction's hash.
pub(crate) fn transaction_key(hash: &B256) -> u64 {
    u64::from_be_bytes(*hash.first_chunk().expect("32 bytes"))
}

/// A block, as the index keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredBlock {
    pub(crate) number: u64,
    pub(crate) parent_hash: B256,
    pub(crate) version: Version,
    pub(crate) floor: NodeAddress,
    pub(crate) sequence: u64,
    pub(crate) block: FrameLocation,
    pub(crate) witness: Option<FrameLocation>,
    pub(crate) touched: Option<FrameLocation>,
    pub(crate) sweep: Vec<u8>,
}

impl StoredBlock {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(160 + self.sweep.len());
        bytes.extend_from_slice(&self.number.to_le_bytes());
        bytes.extend_from_slice(self.parent_hash.as_slice());
        bytes.extend_from_slice(self.version.root.as_slice());
        bytes.extend_from_slice(&self.version.address.offset().to_le_bytes());
        bytes.extend_from_slice(&self.floor.offset().to_le_bytes());
        bytes.extend_from_slice(&self.sequence.to_le_bytes());
        bytes.extend_from_slice(&location_bytes(self.block));
        for location in [self.witness, self.touched] {
            bytes.push(u8::from(location.is_some()));
            let none = FrameLocation { address: 0, bytes: 0 };
            bytes.extend_from_slice(&location_bytes(location.unwrap_or(none)));
        }
        bytes.extend_from_slice(&self.sweep);
        bytes
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut reader = ByteReader { bytes };
        Some(Self {
            number: reader.number()?,
            parent_hash: reader.hash()?,
            version: Version { root: reader.hash()?, address: reader.address()? },
            floor: reader.address()?,
            sequence: reader.number()?,
            block: reader.location()?,
            witness: reader.optional(ByteReader::location)?,
            touched: reader.optional(ByteReader::location)?,
            sweep: reader.bytes.to_vec(),
        })
    }
}

/// The extent of every log, and the other state that the store needs after a restart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StoreState {
    /// Start and end of the logs of nodes, blocks, codes and witnesses.
    pub(crate) logs: [(u64, u64); 4],
    /// The number of the last change that is in the index.
    pub(crate) sequence: u64,
    /// Versions of blocks with smaller numbers are forgotten.
    pub(crate) versions_from: u64,
    /// The number of blocks with their witness in a segment, by the start of the segment.
    pub(crate) witnesses: Vec<(u64, u64)>,
}

impl StoreState {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let logs = self.logs.iter().flat_map(|&(start, end)| [start, end]);
        let witnesses = self.witnesses.iter().flat_map(|&(start, count)| [start, count]);
        let numbers = logs.chain([self.sequence, self.versions_from]).chain(witnesses);
        numbers.flat_map(u64::to_le_bytes).collect()
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut reader = ByteReader { bytes };
        let mut state = Self::default();
        for log in &mut state.logs {
            *log = (reader.number()?, reader.number()?);
        }
        state.sequence = reader.number()?;
        state.versions_from = reader.number()?;
        while !reader.bytes.is_empty() {
            state.witnesses.push((reader.number()?, reader.number()?));
        }
        Some(state)
    }
}

/// From which number on canonical blocks can be found by their transactions and logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StoredLookup {
    pub(crate) from: u64,
    /// The number of the last change when this was written.
    pub(crate) sequence: u64,
}

impl StoredLookup {
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        [self.from, self.sequence].into_iter().flat_map(u64::to_le_bytes).collect()
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut reader = ByteReader { bytes };
        let stored = Self { from: reader.number()?, sequence: reader.number()? };
        reader.bytes.is_empty().then_some(stored)
    }
}

/// Genesis, head, safe and finalized block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StoredHeads(pub(crate) [Option<B256>; 4]);

impl StoredHeads {
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        let head = |head: Option<B256>| {
            let flag = [u8::from(head.is_some())];
            flag.into_iter().chain(head.unwrap_or_default().0)
        };
        self.0.into_iter().flat_map(head).collect()
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut reader = ByteReader { bytes };
        let mut heads = Self::default();
        for head in &mut heads.0 {
            *head = reader.optional(ByteReader::hash)?;
        }
        reader.bytes.is_empty().then_some(heads)
    }
}

pub(crate) fn location_bytes(location: FrameLocation) -> [u8; 12] {
    let mut bytes = [0; 12];
    bytes[..8].copy_from_slice(&location.address.to_le_bytes());
    bytes[8..].copy_from_slice(&location.bytes.to_le_bytes());
    bytes
}

pub(crate) fn location_from(bytes: &[u8; 12]) -> FrameLocation {
    let (address, length) = bytes.split_at(8);
    FrameLocation {
        address: u64::from_le_bytes(address.try_into().expect("eight bytes")),
        bytes: u32::from_le_bytes(length.try_into().expect("four bytes")),
    }
}

struct ByteReader<'a> {
    bytes: &'a [u8],
}

impl ByteReader<'_> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.bytes.split_first_chunk()?;
        self.bytes = rest;
        Some(*array)
    }

    fn number(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn hash(&mut self) -> Option<B256> {
        self.array().map(B256::new)
    }

    fn address(&mut self) -> Option<NodeAddress> {
        self.number().filter(|offset| *offset < 1 << 48).map(NodeAddress::new)
    }

    fn location(&mut self) -> Option<FrameLocation> {
        self.array().map(|bytes| location_from(&bytes))
    }

    /// A flag, and a value, which is of no meaning when the flag is zero.
    fn optional<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        let [flag] = self.array()?;
        let value = read(self)?;
        match flag {
            0 => Some(None),
            1 => Some(Some(value)),
            _ => None,
        }
    }
}
