//! The header of every file, 64 bytes: magic, format version, kind and position.

use crate::Error;
use crate::disk::NamedFile;

/// The version of the format that this program reads and writes.
pub const FORMAT_VERSION: u32 = 2;

pub(crate) const HEADER_BYTES: usize = 64;
const MAGIC: [u8; 8] = *b"DEPONENT";
const CHECKSUM_AT: usize = HEADER_BYTES - 4;

/// The kind of a file, in four letters, and two numbers with a meaning that depends on the kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) kind: [u8; 4],
    pub(crate) numbers: [u64; 2],
}

impl Header {
    pub(crate) fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.kind);
        bytes[16..24].copy_from_slice(&self.numbers[0].to_le_bytes());
        bytes[24..32].copy_from_slice(&self.numbers[1].to_le_bytes());
        let checksum = crc32fast::hash(&bytes[..CHECKSUM_AT]);
        bytes[CHECKSUM_AT..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Reads a header of this kind.
    pub(crate) fn read(file: &NamedFile, kind: [u8; 4]) -> Result<Self, Error> {
        let length = file.len()?;
        if length < HEADER_BYTES as u64 {
            return Err(short(file, length));
        }
        let mut bytes = [0; HEADER_BYTES];
        file.read_at(0, &mut bytes)?;
        if bytes[..8] != MAGIC {
            return Err(foreign(file, &bytes[..8], &MAGIC));
        }
        let found = u32::from_le_bytes(bytes[8..12].try_into().expect("four bytes"));
        if found != FORMAT_VERSION {
            let file = file.path().into();
            return Err(Error::Version { file, found, supported: FORMAT_VERSION });
        }
        let checksum = crc32fast::hash(&bytes[..CHECKSUM_AT]);
        if bytes[CHECKSUM_AT..] != checksum.to_le_bytes() {
            return Err(file.damaged(0, "the header does not match its checksum"));
        }
        if bytes[12..16] != kind {
            return Err(foreign(file, &bytes[12..16], &kind));
        }
        let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight"));
        Ok(Self { kind, numbers: [number(16), number(24)] })
    }

    /// Reads a header that must be this one.
    pub(crate) fn expect(self, file: &NamedFile) -> Result<(), Error> {
        let found = Self::read(file, self.kind)?;
        if found != self {
            let file = file.path().into();
            let (found, expected) = (format!("{:?}", found.numbers), format!("{:?}", self.numbers));
            return Err(Error::Foreign { file, found, expected });
        }
        Ok(())
    }
}

fn short(file: &NamedFile, found_bytes: u64) -> Error {
    Error::Short { file: file.path().into(), found_bytes, expected_bytes: HEADER_BYTES as u64 }
}

fn foreign(file: &NamedFile, found: &[u8], expected: &[u8]) -> Error {
    let text = |bytes: &[u8]| format!("\"{}\"", bytes.escape_ascii());
    Error::Foreign { file: file.path().into(), found: text(found), expected: text(expected) }
}
