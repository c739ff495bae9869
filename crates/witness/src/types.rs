use alloy_primitives::{Bytes, FixedBytes};

/// What a stateless verifier needs to run one block again, as one flat set of byte strings.
///
/// The items are slices of whatever buffers they were read from; a clone copies no content.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Witness {
    /// RLP of trie nodes of the pre-state, account trie and storage tries mixed; canonical
    /// witnesses are sorted and free of duplicates.
    pub state: Vec<Bytes>,
    /// Contract codes of the pre-state, EIP-7702 delegation markers included; sorted, unique.
    pub codes: Vec<Bytes>,
    /// RLP of ancestor headers, ascending and contiguous; the last is the block's parent.
    pub headers: Vec<Bytes>,
}

impl Witness {
    /// Bytes of content: the sum of all items, without any encoding.
    pub fn content_bytes(&self) -> usize {
        [&self.state, &self.codes, &self.headers].into_iter().flatten().map(|item| item.len()).sum()
    }

    /// Puts `state` and `codes` into canonical order: lexicographic, each item once.
    pub fn sort(&mut self) {
        for items in [&mut self.state, &mut self.codes] {
            items.sort_unstable();
            items.dedup();
        }
    }
}

/// A code, and zeros that lie behind it in the same memory: with those it can run where it lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Code {
    /// The code and the zeros.
    pub padded: Bytes,
    /// Bytes of the code.
    pub length: usize,
    /// Whether the bytes lie in a file, and take no memory that the system cannot have back.
    pub is_mapped: bool,
}

impl Code {
    /// The code alone.
    pub fn bytes(&self) -> Bytes {
        self.padded.slice(..self.length)
    }
}

impl From<Bytes> for Code {
    fn from(code: Bytes) -> Self {
        Self { length: code.len(), padded: code, is_mapped: false }
    }
}

/// An uncompressed secp256k1 public key: 0x04, X, Y. Beside a witness stand those of the block's
/// senders, one a transaction.
pub type PublicKey = FixedBytes<65>;
