use crate::{Items, NodeList};
use alloy_primitives::{Bytes, FixedBytes};
use std::borrow::Cow;

/// The nodes, codes and headers that a stateless verifier needs to run one block again, as flat
/// lists of byte strings.
///
/// The items are slices of the buffers that they were read from; a clone copies no content.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Witness {
    /// RLP of trie nodes of the pre-state, account trie and storage tries mixed; canonical
    /// witnesses are sorted and free of duplicates.
    pub state: NodeList,
    /// Contract codes of the pre-state, EIP-7702 delegation markers included; sorted, unique.
    pub codes: Vec<Bytes>,
    /// RLP of ancestor headers, ascending and contiguous; the last is the block's parent.
    pub headers: Vec<Bytes>,
}

impl Witness {
    /// Bytes of content: the sum of all items, without any encoding.
    pub fn content_bytes(&self) -> usize {
        self.lists().into_iter().map(Items::content_bytes).sum()
    }

    /// The lists, in the order of the fields.
    pub fn lists(&self) -> [Items<'_>; 3] {
        let Self { state, codes, headers } = self;
        [state.into(), codes.into(), headers.into()]
    }

    /// Puts `state` and `codes` into canonical order: lexicographic, each item once.
    pub fn sort(&mut self) {
        self.state.sort();
        self.codes.sort_unstable();
        self.codes.dedup();
    }
}

/// A code with the bytes behind it in the same memory, so that it can be run where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Code {
    /// The code, and zeros behind it.
    pub padded: Bytes,
    /// Bytes of the code.
    pub length: usize,
    /// As [`ReadCode::first`].
    pub first: [u8; ReadCode::FIRST_BYTES],
    /// Whether the bytes are mapped from a file, which the system can evict from memory.
    pub is_mapped: bool,
    /// The jump table of the code, if it is known.
    pub jumps: Option<Jumps>,
}

/// The jump table of a code: a bit for each of its bytes, the lowest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Jumps(Cow<'static, [u8]>);

impl Jumps {
    /// The table of a code that is run without a look at it before.
    ///
    /// # Safety
    /// The [`Code`] that it becomes part of has at least 33 zeros behind it, the longest operand
    /// and a `STOP`: the interpreter relies on its end there. And the table has a bit for each
    /// byte.
    #[allow(unsafe_code, reason = "to look for the zeros is what it is there to save")]
    pub const unsafe fn new(table: Cow<'static, [u8]>) -> Self {
        Self(table)
    }

    /// The table.
    pub const fn table(&self) -> &Cow<'static, [u8]> {
        &self.0
    }
}

impl Code {
    /// The code alone.
    pub fn bytes(&self) -> Bytes {
        self.padded.slice(..self.length)
    }
}

impl From<Bytes> for Code {
    fn from(code: Bytes) -> Self {
        let ReadCode { first, bytes } = code.into();
        Self { length: bytes.len(), padded: bytes, first, is_mapped: false, jumps: None }
    }
}

/// A code that a block read. Its order is that of its bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReadCode {
    /// The first bytes, padded with zeros: codes are sorted by them without reading the file that
    /// they are in, unless they begin alike.
    pub first: [u8; Self::FIRST_BYTES],
    /// The code.
    pub bytes: Bytes,
}

impl ReadCode {
    /// The length of [`first`](Self::first).
    pub const FIRST_BYTES: usize = 32;
}

impl From<Bytes> for ReadCode {
    fn from(bytes: Bytes) -> Self {
        let mut first = [0; Self::FIRST_BYTES];
        let length = bytes.len().min(first.len());
        first[..length].copy_from_slice(&bytes[..length]);
        Self { first, bytes }
    }
}

/// An uncompressed secp256k1 public key: 0x04, X, Y. Beside a witness stand those of the block's
/// senders, one a transaction.
pub type PublicKey = FixedBytes<65>;
